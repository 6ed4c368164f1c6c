/* SPDX-License-Identifier: BSD-2-Clause */
#include "inject/thread/safe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "procfs/procfs.h"

#if defined(__x86_64__)

#define JUDGE_MS 50U /* the thread is stopped meanwhile */

/* The kernel's own codes for restarting a call (include/linux/errno.h); a tracer sees them in rax. */
enum { ERESTARTSYS = 512, ERESTARTNOINTR, ERESTARTNOHAND, ERESTART_RESTARTBLOCK = 516 };

/*
 * System calls in which threads wait, but which neither the allocator nor the loader makes. Exception futex: a thread
 * that waits for one of their locks does not hold it, and has their frames on its stack. The loader also reads, but
 * plain files, and that wait cannot be interrupted.
 */
static const struct {
	short number;
	bool eintr; /* fails with EINTR when the thread is stopped (signal(7)) */
} waits[] = {
	{SYS_nanosleep, false},
	{SYS_clock_nanosleep, false},
	{SYS_poll, false},
	{SYS_ppoll, false},
	{SYS_select, false},
	{SYS_pselect6, false},
	{SYS_futex, false},
	{SYS_read, false},
	{SYS_readv, false},
	{SYS_write, false},
	{SYS_writev, false},
	{SYS_recvfrom, false},
	{SYS_recvmsg, false},
	{SYS_sendto, false},
	{SYS_sendmsg, false},
	{SYS_accept, false},
	{SYS_accept4, false},
	{SYS_wait4, false},
	{SYS_waitid, false},
	{SYS_pause, false},
	{SYS_rt_sigsuspend, false},
	{SYS_flock, false},
	{SYS_restart_syscall, false},
	{SYS_epoll_wait, true},
	{SYS_epoll_pwait, true},
	{SYS_rt_sigtimedwait, true},
	{SYS_semop, true},
	{SYS_semtimedop, true},
	{SYS_msgrcv, true},
	{SYS_msgsnd, true},
	{SYS_recvmmsg, true},
	{441 /* epoll_pwait2 */, true},
};
#define WAITS (sizeof(waits) / sizeof(waits[0]))

static int find_wait(long number)
{
	for (size_t i = 0; i < WAITS; i++)
		if (waits[i].number == number)
			return (int)i;
	return -1;
}

enum xsp_candidate xsp_safe_candidate(pid_t pid, pid_t tid)
{
	char name[64], *text = NULL, *end;
	enum xsp_candidate result = XSP_CANDIDATE_NO;
	struct xsp_stat st;

	snprintf(name, sizeof(name), "task/%d/syscall", tid);
	if (xsp_procfs_stat(&xsp_open_directly, tid, &st) < 0 ||
	    (st.state != 'S' && st.state != 'R') ||
	    xsp_procfs_read(&xsp_open_directly, pid, name, 512, &text, NULL) < 0)
		return result;
	long number = strtol(text, &end, 10);
	if (strncmp(text, "running", 7) == 0) {
		result = XSP_CANDIDATE_RUNNING;
	} else if (end != text && *end == ' ') {
		int i = find_wait(number);
		if (i >= 0)
			result = waits[i].eintr ? XSP_CANDIDATE_INTERRUPTIBLE
						: XSP_CANDIDATE_BLOCKED;
	}
	free(text);
	return result;
}

static const char *const dangers[XSP_DANGERS] = {
	[XSP_DANGER_UNMAPPED] = "it runs code that is not mapped",
	[XSP_DANGER_KERNEL_CODE] = "it is in the kernel's code for programs",
	[XSP_DANGER_C_LIBRARY] = "it is in the C library",
	[XSP_DANGER_LOADER] = "it is in the loader or an allocator",
	[XSP_DANGER_SIGNAL] = "it runs a signal handler",
	[XSP_DANGER_UNKNOWN] =
		"its stack cannot be followed, and has traces of the loader or an allocator",
};

/* Checks that need no file. */
static const char *danger_of_state(const struct xsp_held *held, const struct xsp_tracee *t)
{
	const struct user_regs_struct *r = &t->registers;
	uint64_t self = 0;
	uint8_t code[2];

	if ((long)r->orig_rax >= 0) { /* in a system call, or just after one */
		if (find_wait((long)r->orig_rax) < 0)
			return "it was in a system call that is not known to be harmless";
		if (xsp_held_load(held, r->rip - 2, code, 2) < 0 || code[0] != 0x0f ||
		    code[1] != 0x05)
			return "it made its system call in an unusual way";
	}
	/* cs 0x33: 64-bit code (arch/x86/include/asm/segment.h) */
	if (r->cs != 0x33)
		return "it runs 32-bit code";
	/* glibc and musl both begin a thread's control block with a pointer to itself */
	if (xsp_held_load(held, r->fs_base, &self, 8) < 0 || self != r->fs_base)
		return "it is not a thread of the C library";
	if (xsp_tracee_in_rseq(t, held))
		return "it is in a restartable sequence";
	return NULL;
}

int xsp_safe_danger(struct xsp_reader *reader, const struct xsp_held *held,
		    const struct xsp_tracee *t, uint64_t *gap, const char **danger)
{
	const struct user_regs_struct *r = &t->registers;
	const struct xsp_image_thread thread = {
		.registers = {r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8,
			      r->r9, r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip},
		.gap = *gap,
		.in_call = (long)r->orig_rax >= 0};
	struct xsp_image_verdict verdict = {0};

	*gap = 0;
	*danger = danger_of_state(held, t);
	if (*danger != NULL)
		return 0;
	int rc = xsp_reader_judge(reader, &thread, JUDGE_MS, &verdict);
	if (rc == -ETIMEDOUT)
		*danger = "its stack could not be followed in time";
	if (rc < 0)
		return rc == -ETIMEDOUT ? 0 : rc;
	*danger = dangers[verdict.danger];
	*gap = verdict.gap;
	return verdict.error;
}

void xsp_safe_way_on(struct xsp_tracee *t, struct xsp_stub_registers *alone)
{
	struct user_regs_struct *r = &t->registers;
	uint64_t rax = r->rax, rip = r->rip;
	long in = (long)r->orig_rax, result = (long)r->rax;

	/* Our stop interrupted the call. With this code the kernel restarts it, or returns EINTR if a handler runs
	 * first, as if the thread had never been stopped. */
	if (in >= 0 && result == -EINTR && find_wait(in) >= 0) {
		r->rax = (uint64_t)-ERESTARTNOHAND;
		result = -ERESTARTNOHAND;
	}
	if (in >= 0 && (result == -ERESTARTSYS || result == -ERESTARTNOINTR ||
			result == -ERESTARTNOHAND || result == -ERESTART_RESTARTBLOCK)) {
		rax = result == -ERESTART_RESTARTBLOCK ? SYS_restart_syscall : (uint64_t)in;
		rip = r->rip - 2;
	}
	/* Some calls restart only under handlers with SA_RESTART. We do not know which handler will run, so these
	 * restart under all of them, which harms nobody. */
	bool ends = in >= 0 && (result == -ERESTARTNOHAND || result == -ERESTART_RESTARTBLOCK);
	*alone = (struct xsp_stub_registers){
		.eintr_rax = ends ? (uint64_t)-EINTR : rax,
		.eintr_rip = ends ? r->rip : rip,
		.r15 = r->r15,
		.r14 = r->r14,
		.r13 = r->r13,
		.r12 = r->r12,
		.rbp = r->rbp,
		.rbx = r->rbx,
		.r11 = r->r11,
		.r10 = r->r10,
		.r9 = r->r9,
		.r8 = r->r8,
		.rax = rax,
		.rcx = r->rcx,
		.rdx = r->rdx,
		.rsi = r->rsi,
		.rdi = r->rdi,
		.rip = rip,
		.rsp = r->rsp,
		.flags = r->eflags,
	};
}

#endif
