/* SPDX-License-Identifier: BSD-2-Clause */
#include "catalog/wait_reasons.h"

#include <string.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "base/text.h"

/* Calls whose first argument is a descriptor are FILE: the kind of descriptor decides
 * (bpf/sched.bpf.c). */
static const struct {
	unsigned number;
	enum xsp_wait_class why;
	const char *name;
} calls[] = {
#define CALL(name, why)                                                                            \
	{                                                                                          \
		SYS_##name, XSP_WAIT_##why, #name                                                  \
	}
#ifdef SYS_poll /* x86-64 has these beside their newer forms */
	CALL(poll, POLL),
	CALL(select, POLL),
	CALL(epoll_wait, POLL),
	CALL(open, DISK),
	CALL(stat, DISK),
	CALL(lstat, DISK),
	CALL(unlink, DISK),
	CALL(rename, DISK),
	CALL(mkdir, DISK),
	CALL(pause, SIGNAL),
	CALL(vfork, CHILD),
	CALL(fork, OTHER),
	CALL(access, OTHER),
	CALL(pipe, OTHER),
	CALL(dup2, OTHER),
#endif
#ifdef SYS_futex_wait
	CALL(futex_wait, LOCK),
#endif
	CALL(futex, LOCK),
	CALL(ppoll, POLL),
	CALL(pselect6, POLL),
	CALL(epoll_pwait, POLL),
	CALL(epoll_pwait2, POLL),
	CALL(io_uring_enter, POLL),
	CALL(io_getevents, POLL),
	CALL(nanosleep, SLEEP),
	CALL(clock_nanosleep, SLEEP),
	CALL(read, FILE),
	CALL(write, FILE),
	CALL(readv, FILE),
	CALL(writev, FILE),
	CALL(pread64, FILE),
	CALL(pwrite64, FILE),
	CALL(preadv, FILE),
	CALL(pwritev, FILE),
	CALL(preadv2, FILE),
	CALL(pwritev2, FILE),
	CALL(sendfile, FILE),
	CALL(splice, FILE),
	CALL(close, FILE),
	CALL(flock, FILE),
	CALL(fcntl, FILE),
	CALL(ftruncate, FILE),
	CALL(fallocate, FILE),
	CALL(fsync, DISK),
	CALL(fdatasync, DISK),
	CALL(sync, DISK),
	CALL(syncfs, DISK),
	CALL(msync, DISK),
	CALL(openat, DISK),
	CALL(newfstatat, DISK),
	CALL(unlinkat, DISK),
	CALL(renameat2, DISK),
	CALL(getdents64, DISK),
	CALL(accept, NETWORK),
	CALL(accept4, NETWORK),
	CALL(connect, NETWORK),
	CALL(recvfrom, NETWORK),
	CALL(recvmsg, NETWORK),
	CALL(recvmmsg, NETWORK),
	CALL(sendto, NETWORK),
	CALL(sendmsg, NETWORK),
	CALL(sendmmsg, NETWORK),
	CALL(wait4, CHILD),
	CALL(waitid, CHILD),
	CALL(rt_sigtimedwait, SIGNAL),
	CALL(rt_sigsuspend, SIGNAL),
	CALL(mmap, MEMORY),
	CALL(munmap, MEMORY),
	CALL(mprotect, MEMORY),
	CALL(mremap, MEMORY),
	CALL(madvise, MEMORY),
	CALL(brk, MEMORY),
	CALL(ioctl, DEVICE),
	/* they seldom wait, but samples find threads in them */
	CALL(clone, OTHER),
	CALL(clone3, OTHER),
	CALL(execve, OTHER),
	CALL(exit, OTHER),
	CALL(exit_group, OTHER),
	CALL(kill, OTHER),
	CALL(tgkill, OTHER),
	CALL(lseek, OTHER),
	CALL(fstat, OTHER),
	CALL(sched_yield, OTHER),
	CALL(rt_sigaction, OTHER),
	CALL(rt_sigprocmask, OTHER),
	CALL(pipe2, OTHER),
	CALL(dup3, OTHER),
	CALL(socket, OTHER),
	CALL(getrandom, OTHER),
	CALL(timerfd_settime, OTHER),
	CALL(epoll_ctl, OTHER),
#undef CALL
};
#define CALLS (sizeof(calls) / sizeof(calls[0]))

enum xsp_wait_class xsp_wait_class_of(unsigned syscall)
{
	for (size_t i = 0; i < CALLS; i++)
		if (calls[i].number == syscall)
			return calls[i].why;
	return XSP_WAIT_OTHER;
}

bool xsp_wait_is_sync(int32_t syscall)
{
	return syscall == SYS_fsync || syscall == SYS_fdatasync || syscall == SYS_msync ||
	       syscall == SYS_sync || syscall == SYS_syncfs;
}

const char *xsp_wait_syscall(unsigned syscall)
{
	for (size_t i = 0; i < CALLS; i++)
		if (calls[i].number == syscall)
			return calls[i].name;
	return NULL;
}

static const struct {
	const char *name, *frame;
} classes[XSP_WAIT_CLASSES] = {
#define CLASS(class, name) [XSP_WAIT_##class] = {name, "[" name "]"}
	CLASS(RUNNABLE, "runnable"), CLASS(OTHER, "other"),	CLASS(LOCK, "lock"),
	CLASS(POLL, "poll"),	     CLASS(SLEEP, "sleep"),	CLASS(FILE, "file"),
	CLASS(PIPE, "pipe"),	     CLASS(NETWORK, "network"), CLASS(DISK, "disk"),
	CLASS(CHILD, "child"),	     CLASS(SIGNAL, "signal"),	CLASS(MEMORY, "memory map"),
	CLASS(FAULT, "page fault"),  CLASS(DEVICE, "device"),	CLASS(STOPPED, "stopped"),
	CLASS(GPU, "GPU"),
#undef CLASS
};

const char *xsp_wait_class_name(unsigned why)
{
	return classes[why & (XSP_WAIT_CLASSES - 1)].name;
}

const char *xsp_wait_class_frame(unsigned why)
{
	return classes[why & (XSP_WAIT_CLASSES - 1)].frame;
}

/* Functions of the C library that wait, up to a '.' of the compiler. Below: the beginnings of
 * others in the C library, the C++ library and the kernel. */
static const char *const primitives[] = {
	"accept",	 "accept4",	  "clock_nanosleep",
	"cnd_timedwait", "cnd_wait",	  "connect",
	"do_futex_wait", "epoll_pwait",	  "epoll_pwait2",
	"epoll_wait",	 "fdatasync",	  "flock",
	"fsync",	 "ioctl",	  "madvise",
	"mmap",		 "mmap64",	  "mtx_lock",
	"munmap",	 "nanosleep",	  "open",
	"open64",	 "openat",	  "openat64",
	"pause",	 "poll",	  "ppoll",
	"pread64",	 "preadv",	  "pselect",
	"pwrite64",	 "pwritev",	  "read",
	"readv",	 "recv",	  "recvfrom",
	"recvmmsg",	 "recvmsg",	  "sched_yield",
	"select",	 "sem_clockwait", "sem_timedwait",
	"sem_wait",	 "send",	  "sendfile64",
	"sendmsg",	 "sendto",	  "sigsuspend",
	"sigtimedwait",	 "sigwaitinfo",	  "sleep",
	"splice",	 "start_thread",  "syscall",
	"thrd_join",	 "thrd_sleep",	  "usleep",
	"wait",		 "wait3",	  "wait4",
	"waitid",	 "waitpid",	  "write",
	"writev",
};
static const char *const beginnings[] = {"__", "pthread_", "std::", "[vdso]",
					 /* in a file without symbols: "libc.so.6+0x8612b" */
					 "libc.so.", "libc-2.", "libpthread", "libstdc++.so.",
					 "ld-linux", "ld-musl"};

bool xsp_wait_is_primitive(const char *function)
{
	/* if the compiler inlined a lambda into std::thread's _M_run, it is the program's own
	 * work */
	if (strstr(function, "{lambda") != NULL)
		return false;
	return XSP_BEGINS_WITH_ANY(function, beginnings) ||
	       XSP_IS_AMONG(function, strcspn(function, "."), primitives);
}

bool xsp_wait_is_for_lock(const char *function)
{
	static const char *const locks[] = {
		"ObjectMonitor::enter",
		"ObjectMonitor::EnterI",
		"ObjectSynchronizer::enter", /* Java */
		"__pthread_rwlock_",
		"pthread_rwlock_",
		"absl::Mutex::Lock",
		"folly::SharedMutex",
		"parking_lot::raw_mutex::",
		"parking_lot::raw_rwlock::",
		"rw_lock_s_lock_spin",
		"rw_lock_x_lock",
		"PolicyMutex<",
		"sync_array_wait_event", /* InnoDB */
		"rb_mutex_lock",
		"gvl_acquire",
		"thread_sched_to_running", /* Ruby */
	};

	return XSP_BEGINS_WITH_ANY(function, locks);
}

bool xsp_wait_is_scheduler(const char *function)
{
	static const char *const scheduler[] = {
		"bpf_",	       "__bpf_",       "__traceiter_",	   "__schedule",     "schedule",
		"io_schedule", "do_nanosleep", "preempt_schedule", "__cond_resched", "trampoline"};

	return XSP_BEGINS_WITH_ANY(function, scheduler);
}
