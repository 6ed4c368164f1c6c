/* SPDX-License-Identifier: BSD-2-Clause */
#include "inject/thread/tracee.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define STOP_LIMIT_NS (250ULL * 1000000) /* on a busy machine the thread may not run for long */
#define POLL_NS 20000U

#if defined(__x86_64__)

int xsp_tracee_wait(struct xsp_tracee *t, uint64_t limit_ns)
{
	uint64_t end = xsp_now_ns() + limit_ns;

	for (;;) {
		const uint64_t asked_ns = xsp_now_ns();
		pid_t got = waitpid(t->tid, &t->status, __WALL | WNOHANG);
		if (got < 0 && errno != EINTR)
			return -ESRCH;
		if (got == t->tid && t->status >> 16 == PTRACE_EVENT_EXEC) {
			xsp_tracee_release(t, 0);
			return -ESRCH;
		}
		if (got == t->tid)
			return WIFSTOPPED(t->status) ? 0 : -ESRCH;
		t->before_stop_ns = asked_ns;
		if (xsp_now_ns() >= end)
			return -ETIMEDOUT;
		xsp_nap_ns(POLL_NS);
	}
}

int xsp_tracee_interrupt(struct xsp_tracee *t, uint64_t limit_ns)
{
	if (ptrace(PTRACE_INTERRUPT, t->tid, NULL, NULL) != 0)
		return -errno;
	return xsp_tracee_wait(t, limit_ns);
}

int xsp_tracee_signal(const struct xsp_tracee *t)
{
	return t->status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(t->status);
}

int xsp_tracee_get(const struct xsp_tracee *t, struct user_regs_struct *registers)
{
	struct iovec v = {registers, sizeof(*registers)};

	if (ptrace(PTRACE_GETREGSET, t->tid, (void *)NT_PRSTATUS, &v) != 0)
		return -errno;
	return v.iov_len == sizeof(*registers) ? 0 : -ENOTSUP; /* 32-bit code */
}

int xsp_tracee_set(const struct xsp_tracee *t, const struct user_regs_struct *registers)
{
	struct iovec v = {(void *)(uintptr_t)registers, sizeof(*registers)};

	return ptrace(PTRACE_SETREGSET, t->tid, (void *)NT_PRSTATUS, &v) == 0 ? 0 : -errno;
}

int xsp_tracee_continue(const struct xsp_tracee *t)
{
	return ptrace(PTRACE_CONT, t->tid, NULL, NULL) == 0 ? 0 : -errno;
}

int xsp_tracee_release(const struct xsp_tracee *t, int signal_number)
{
	return ptrace(PTRACE_DETACH, t->tid, NULL, (void *)(intptr_t)signal_number) == 0 ? 0
											 : -errno;
}

/* Saves what a restore needs. */
static int save(struct xsp_tracee *t)
{
	struct iovec v = {t->xstate, sizeof(t->xstate)};
	int ret = xsp_tracee_get(t, &t->registers);

	if (ret == 0 && ptrace(PTRACE_GETREGSET, t->tid, (void *)NT_X86_XSTATE, &v) != 0)
		ret = -errno;
	t->xstate_size = v.iov_len;
	if (ret == 0 && ptrace(PTRACE_GETSIGMASK, t->tid, (void *)sizeof(t->mask), &t->mask) != 0)
		ret = -errno;
	return ret;
}

int xsp_tracee_stop(struct xsp_tracee *t, pid_t tid)
{
	t->tid = tid;
	/* Stop it if it starts another program: that one is none of ours (xsp_tracee_wait). */
	if (ptrace(PTRACE_SEIZE, tid, NULL, (void *)PTRACE_O_TRACEEXEC) != 0)
		return -errno;
	int ret = xsp_tracee_interrupt(t, STOP_LIMIT_NS);
	if (ret < 0)
		return ret;
	/* WSTOPSIG is SIGTRAP for our own stop, and the stopping signal if the whole process was stopped */
	if (t->status >> 16 != PTRACE_EVENT_STOP || WSTOPSIG(t->status) != SIGTRAP)
		ret = -EAGAIN;
	if (ret == 0)
		ret = save(t);
	if (ret < 0)
		xsp_tracee_release(t, xsp_tracee_signal(t));
	return ret;
}

int xsp_tracee_restore(const struct xsp_tracee *t, bool die)
{
	struct iovec v = {(void *)(uintptr_t)t->xstate, t->xstate_size};

	/* Set the registers last: until then the thread can go on by itself in the stub. */
	ptrace(PTRACE_SETREGSET, t->tid, (void *)NT_X86_XSTATE, &v);
	if (ptrace(PTRACE_SETSIGMASK, t->tid, (void *)sizeof(t->mask), &t->mask) != 0)
		return -errno;
	if (die)
		raise(SIGKILL);
	return xsp_tracee_set(t, &t->registers);
}

/* If /proc/PID/mem may not write code (proc_mem.force_override), writes word by word. */
int xsp_tracee_poke(const struct xsp_tracee *t, const struct xsp_held *held, uint64_t address,
		    const void *bytes, size_t size)
{
	if (xsp_held_store(held, address, bytes, size) == 0)
		return 0;
	for (size_t i = 0; i < size; i += 8) {
		uint64_t word = 0;
		memcpy(&word, (const char *)bytes + i, size - i < 8 ? size - i : 8);
		if (ptrace(PTRACE_POKEDATA, t->tid, (void *)(uintptr_t)(address + i),
			   (void *)(uintptr_t)word) != 0)
			return -errno;
	}
	return 0;
}

/* from linux/ptrace.h (5.13) and linux/rseq.h, as not every libc has them */
#define GET_RSEQ_CONFIGURATION 0x420f
struct rseq_configuration {
	uint64_t abi;
	uint32_t size, signature, flags, pad;
};
struct rseq_critical {
	uint32_t version, flags;
	uint64_t start, length, abort_ip;
};

bool xsp_tracee_in_rseq(const struct xsp_tracee *t, const struct xsp_held *held)
{
	struct rseq_configuration c = {0};
	struct rseq_critical section;
	uint64_t pointer;

	if (ptrace(GET_RSEQ_CONFIGURATION, t->tid, (void *)sizeof(c), &c) <= 0 || c.abi == 0)
		return false;
	/* struct rseq: cpu_id_start, cpu_id, rseq_cs */
	if (xsp_held_load(held, c.abi + 8, &pointer, 8) < 0 || pointer == 0)
		return false;
	return xsp_held_load(held, pointer, &section, sizeof(section)) < 0 ||
	       t->registers.rip - section.start < section.length;
}

#endif
