/* SPDX-License-Identifier: BSD-2-Clause */
/* thread_stop.c - the process that stops threads. */
#include "broker/thread_stop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/files/message.h"
#include "base/clock.h"
#include "broker/broken_calls.h"
#include "inject/thread/tracee.h"
#include "procfs/procfs.h"

_Static_assert(sizeof(struct xsp_stopped_thread) <= XSP_MESSAGE_MAX, "it fits into a message");

#if defined(__x86_64__)

struct process {
	int socket, pidfd, mem;
	pid_t pid;
	struct xsp_tracee tracee;
	bool held, late;
	uint64_t since_ns, stopped_ns;
	struct xsp_parcel in;
	struct xsp_stopped_thread out;
};

static bool is_its_thread(const struct process *p, pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)p->pid, (int)tid);
	/* last: while the process is there, its number is its own */
	return access(path, F_OK) == 0 &&
	       (syscall(SYS_pidfd_send_signal, p->pidfd, 0, NULL, 0) == 0 || errno == EPERM);
}

static void release_thread(struct process *p)
{
	/* passes on a signal that has come meanwhile */
	xsp_tracee_release(&p->tracee, xsp_tracee_signal(&p->tracee));
	p->stopped_ns = xsp_now_ns() - p->since_ns;
	p->held = false;
}

/*
 * The kernel ends this call with EINTR where it could have begun it again. No signal has come, or its handler has not
 * run: with the error for "restart unless a handler runs" the kernel restarts it, as signal(7) has it for other calls.
 * A timeout begins again, too.
 */
static void mend_call(const struct process *p, const struct user_regs_struct *r)
{
	enum { ERESTARTNOHAND = 514 }; /* include/linux/errno.h; programs never see it */

	if ((int64_t)r->rax != -EINTR || (int64_t)r->orig_rax < 0 ||
	    !xsp_call_breaks((unsigned)r->orig_rax))
		return;
	ptrace(PTRACE_POKEUSER, p->tracee.tid, (void *)offsetof(struct user, regs.rax),
	       (void *)-(intptr_t)ERESTARTNOHAND);
}

static int read_thread(struct process *p)
{
	struct user_regs_struct r;
	int rc = xsp_tracee_get(&p->tracee, &r);

	if (rc < 0)
		return rc;
	if (r.cs != 0x33) /* 64-bit code (arch/x86/include/asm/segment.h) */
		return -ENOTSUP;
	const uint64_t values[XSP_STOP_REGISTERS] = {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi,
						     r.rbp, r.rsp, r.r8,  r.r9,	 r.r10, r.r11,
						     r.r12, r.r13, r.r14, r.r15, r.rip};
	mend_call(p, &r);
	memcpy(p->out.registers, values, sizeof(values));
	p->out.thread_pointer = r.fs_base;
	ssize_t n = r.rsp > INT64_MAX
			    ? 0
			    : pread(p->mem, p->out.stack, sizeof(p->out.stack), (off_t)r.rsp);
	p->out.stack_bytes = n > 0 ? (uint64_t)n : 0;
	return 0;
}

/*
 * A thread that sleeps where nothing wakes it does not stop, and is left alone. Every other one stops once it has a
 * processor. We wait for it: its system call was broken off already, and nobody else would repair it.
 */
static int wait_for_stop(struct process *p)
{
	int rc = xsp_tracee_interrupt(&p->tracee, XSP_STOP_WAIT_MS * 1000000ULL);
	struct xsp_stat stat;

	while (rc == -ETIMEDOUT && xsp_now_ns() - p->since_ns < XSP_STOP_RUNNABLE_NS &&
	       xsp_procfs_stat(&xsp_open_directly, p->tracee.tid, &stat) == 0 && stat.state != 'D')
		rc = xsp_tracee_wait(&p->tracee, XSP_STOP_WAIT_MS * 1000000ULL);
	return rc;
}

/* Is it in a call on a socket with a timeout? The kernel would end the call with EINTR, and made again it would last
 * longer. */
static bool has_timeout(const struct process *p, pid_t tid)
{
	struct xsp_procfs_call call;
	struct timeval limit = {0};
	socklen_t size = sizeof(limit);

	xsp_procfs_call(&xsp_open_directly, p->pid, tid, &call);
	const int option = call.number >= 0 ? xsp_call_timeout_option((unsigned)call.number) : 0;
	if (option == 0 || call.arguments[0] > INT32_MAX)
		return false;
	int fd = (int)syscall(SYS_pidfd_getfd, p->pidfd, (int)call.arguments[0], 0);
	if (fd < 0)
		return errno != EBADF;
	bool timed = getsockopt(fd, SOL_SOCKET, option, &limit, &size) == 0 &&
		     (limit.tv_sec != 0 || limit.tv_usec != 0);
	close(fd);
	return timed;
}

static int stop(struct process *p)
{
	int32_t tid;

	if (p->held || p->in.head.size != sizeof(tid))
		return -EPROTO;
	memcpy(&tid, p->in.body, sizeof(tid));
	if (!is_its_thread(p, tid))
		return -ESRCH;
	if (has_timeout(p, tid))
		return -ETIME;
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0)
		return -errno;
	p->tracee.tid = tid;
	p->since_ns = xsp_now_ns();
	p->late = false;
	int rc = wait_for_stop(p);
	if (rc < 0)
		return rc;
	if (p->tracee.before_stop_ns > p->since_ns)
		p->since_ns = p->tracee.before_stop_ns;
	p->held = true;
	rc = is_its_thread(p, tid) ? read_thread(p) : -ESRCH;
	if (rc < 0)
		release_thread(p);
	return rc;
}

static int reply(struct process *p, int result, const void *body, size_t size)
{
	struct xsp_message m = {
		.op = p->in.head.op, .result = result, .size = result < 0 ? 0 : (uint32_t)size};

	return xsp_message_send(p->socket, &m, body, NULL, 0);
}

static int serve_one(struct process *p)
{
	int rc = xsp_message_receive(p->socket, &p->in);

	if (rc < 0)
		return rc == -EINTR ? 0 : rc;
	if (p->in.fd_count != 0)
		return -EPROTO;
	if (p->in.head.op == XSP_THREAD_STOP) {
		rc = stop(p);
		int sent = reply(p, rc, &p->out,
				 offsetof(struct xsp_stopped_thread, stack) + p->out.stack_bytes);
		return rc == -ETIMEDOUT || rc == -EPROTO ? rc : sent;
	}
	if (p->in.head.op != XSP_THREAD_RELEASE)
		return -EPROTO;
	if (p->held)
		release_thread(p);
	struct xsp_released_thread r = {p->stopped_ns, p->late};
	return reply(p, 0, &r, sizeof(r));
}

_Noreturn void xsp_thread_stopper_serve(int socket, pid_t pid, int pidfd)
{
	struct process *p = calloc(1, sizeof(*p));

	/* the kernel then releases the thread that we hold */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "xsp-stopper");
	setpriority(PRIO_PROCESS, 0, -20); /* a thread waits for us */
	if (p != NULL) {
		p->socket = socket;
		p->pid = pid;
		p->pidfd = pidfd;
		p->mem = xsp_open_directly.file(&xsp_open_directly, pid, "mem");
	}
	for (int rc = p == NULL ? -ENOMEM : 0; rc == 0;) {
		struct pollfd fd = {.fd = socket, .events = POLLIN};
		int n = poll(&fd, 1, p->held ? (int)XSP_STOP_LIMIT_MS : -1);
		if (n == 0) {
			release_thread(p);
			p->late = true;
		} else if (n > 0) {
			rc = serve_one(p);
		}
	}
	_exit(0);
}

#else

_Noreturn void xsp_thread_stopper_serve(int socket, pid_t pid, int pidfd)
{
	const struct xsp_message m = {.op = XSP_THREAD_STOP, .result = -ENOTSUP};
	struct xsp_parcel *in = malloc(sizeof(*in));

	(void)pid;
	(void)pidfd;
	while (in != NULL && xsp_message_receive(socket, in) == 0)
		xsp_message_send(socket, &m, NULL, NULL, 0);
	_exit(0);
}

#endif
