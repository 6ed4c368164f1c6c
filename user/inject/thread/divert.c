/* SPDX-License-Identifier: BSD-2-Clause */
#include "inject/thread/divert.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>

#include "base/clock.h"
#include "inject/thread/safe.h"
#include "inject/thread/seccomp.h"
#include "inject/thread/tracee.h"

#define BLOB_MAX 2048U
#define LOOK_NS 20000U
#define AREA_NS (10ULL * 1000000) /* the area must be mapped by then */
#define MADE_NS (2000ULL * 1000000) /* pthread_create must have returned by then */
#define STOP_NS MADE_NS /* on a busy machine it may have no turn for long */

size_t xsp_divert_size(void)
{
	size_t size;

	xsp_stub_code(&size);
	return sizeof(struct xsp_stub_data) + size;
}

int xsp_divert_erase(const struct xsp_held *held, uint64_t code)
{
	static const uint8_t zeros[BLOB_MAX];
	struct xsp_stub_data there = {0};

	if (xsp_held_load(held, code, &there, sizeof(there)) < 0 || there.magic != XSP_STUB_MAGIC)
		return -ESRCH; /* it runs another program by now */
	return xsp_held_store(held, code, zeros, xsp_divert_size());
}

#if defined(__x86_64__)

struct diverted {
	struct xsp_attempt *a;
	struct xsp_tracee t;
};

static int failed(struct xsp_attempt *a, int ret, const char *what)
{
	a->failed = what;
	return ret;
}

static int made(struct xsp_attempt *a, const struct xsp_stub_mail *mail)
{
	if (mail->create_result == 0)
		return 0;
	return failed(a, -ENOMEM, "it cannot make a thread (limit of processes, or of memory)");
}

static int write_blob(struct xsp_attempt *a, struct xsp_tracee *t)
{
	uint8_t blob[BLOB_MAX], there[BLOB_MAX];
	size_t size;
	const uint8_t *code = xsp_stub_code(&size);

	if (sizeof(a->stub) + size > sizeof(blob))
		return failed(a, -E2BIG, "the stub is too large");
	memcpy(blob, &a->stub, sizeof(a->stub));
	memcpy(blob + sizeof(a->stub), code, size);
	size += sizeof(a->stub);
	a->code_written = true;
	if (xsp_tracee_poke(t, a->held, a->code, blob, size) < 0 ||
	    xsp_held_load(a->held, a->code, there, size) < 0 || memcmp(blob, there, size) != 0)
		return failed(a, -EPERM, "its code cannot be written to");
	return 0;
}

static void die(const struct xsp_attempt *a, unsigned moment)
{
	if (a->die_at == moment)
		raise(SIGKILL);
}

static bool in_blob(const struct xsp_attempt *a, uint64_t rip)
{
	return rip - a->code < xsp_divert_size();
}

/* Restores the stopped thread, as if nothing had happened, and releases it. */
static int rewind_thread(struct diverted *d, int signal_number)
{
	die(d->a, 2);
	if (d->a->die_at == 5)
		xsp_nap_ns(100000000);
	int ret = xsp_tracee_restore(&d->t, d->a->die_at == 3);

	die(d->a, 4);
	if (ret == 0)
		d->a->code_free = true;
	xsp_tracee_release(&d->t, signal_number);
	return ret;
}

/* Did an instruction raise it, and no process send it (signal(7), si_code in sigaction(2))? */
static bool is_fault(const struct diverted *d, int signal_number)
{
	siginfo_t info = {0};
	const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		if (signal_number == faults[i])
			return ptrace(PTRACE_GETSIGINFO, d->t.tid, NULL, &info) != 0 ||
			       info.si_code > 0;
	return false;
}

/*
 * The thread stopped with a signal or with its whole process. A signal comes before the stub has blocked them, when
 * nothing is done yet: undo it, and try again. Or it comes when the thread goes on by itself: pass it on. After a fault
 * of the stub: undo it, and give up. If the whole process was stopped, the thread finishes by itself when that is
 * continued.
 */
static int came_between(struct diverted *d)
{
	struct xsp_attempt *a = d->a;
	struct xsp_stub_mail mail = {0};
	int signal_number = xsp_tracee_signal(&d->t);

	if (signal_number == 0) {
		xsp_tracee_release(&d->t, 0);
		return failed(a, -ESTALE, "the process was stopped meanwhile");
	}
	if (is_fault(d, signal_number)) {
		rewind_thread(d, 0);
		a->code_free = false; /* we cannot know how far pthread_create came */
		return failed(a, -EFAULT, "the injected code failed; undone");
	}
	xsp_held_load(a->held, a->stub.area, &mail, sizeof(mail));
	if (mail.stage == XSP_STAGE_LEFT) {
		xsp_tracee_release(&d->t, signal_number);
		return made(a, &mail);
	}
	a->danger = "a signal came";
	return rewind_thread(d, signal_number) < 0 ? failed(a, -ESRCH, "the thread ended")
						   : -EAGAIN;
}

/* The stub waits for us, or hangs: stops the thread and restores it. */
static int stop_and_restore(struct diverted *d, bool made)
{
	struct user_regs_struct r = {0};
	int ret = xsp_tracee_interrupt(&d->t, STOP_NS);

	if (ret < 0)
		return failed(d->a, ret, "the thread did not stop again; it goes on by itself");
	int signal_number = xsp_tracee_signal(&d->t);
	ret = xsp_tracee_get(&d->t, &r);
	if (ret == 0 && made && !in_blob(d->a, r.rip)) {
		xsp_tracee_release(&d->t, signal_number); /* it has gone on by itself */
		return 0;
	}
	return ret < 0 ? ret : rewind_thread(d, signal_number);
}

/* After 10 ms without an area: was the mapping refused? If not, the thread has just not run. */
static int look_for_refusal(struct diverted *d)
{
	struct user_regs_struct r = {0};
	int ret = xsp_tracee_interrupt(&d->t, STOP_NS);

	if (ret == 0 && (xsp_tracee_signal(&d->t) != 0))
		return came_between(d);
	if (ret == 0)
		ret = xsp_tracee_get(&d->t, &r);
	if (ret < 0)
		return failed(d->a, ret, "the thread did not stop again; it goes on by itself");
	if (!in_blob(d->a, r.rip) || r.r14 != XSP_STUB_NO_AREA) {
		xsp_tracee_continue(&d->t);
		return 0;
	}
	rewind_thread(d, 0);
	return failed(d->a, -ENOMEM, "it may not map memory");
}

static int hung(struct diverted *d)
{
	stop_and_restore(d, false);
	d->a->code_free = false;
	return failed(d->a, -ETIMEDOUT,
		      "the thread could not make another one within two seconds; undone");
}

static int watch(struct diverted *d)
{
	struct xsp_attempt *a = d->a;
	uint64_t begun = xsp_now_ns();
	bool asked = false;

	for (;;) {
		struct xsp_stub_mail mail;
		int ret = xsp_tracee_wait(&d->t, 0);
		if (ret == 0)
			return came_between(d);
		if (ret == -ESRCH)
			return failed(a, -ESRCH, "the thread ended, or started another program");
		uint64_t waited = xsp_now_ns() - begun;
		bool there = xsp_held_load(a->held, a->stub.area, &mail, sizeof(mail)) == 0;
		if (there && mail.stage >= XSP_STAGE_MADE) {
			ret = stop_and_restore(d, true);
			return ret < 0 ? ret : made(a, &mail);
		}
		if (!there && !asked && waited > AREA_NS) {
			asked = true;
			ret = look_for_refusal(d);
			if (ret < 0)
				return ret;
		}
		if (waited > MADE_NS)
			return hung(d);
		xsp_nap_ns(LOOK_NS);
	}
}

static int divert(struct diverted *d, const struct xsp_stub_registers *alone)
{
	struct xsp_attempt *a = d->a;
	struct user_regs_struct r = d->t.registers;

	a->stub.mask = d->t.mask;
	a->stub.registers = *alone;
	a->stub.time_ns = xsp_now_ns();
	int ret = write_blob(a, &d->t);
	if (ret < 0) {
		rewind_thread(d, 0);
		return ret;
	}
	r.rip = a->code + sizeof(a->stub);
	/* the thread is in no system call that the kernel would restart */
	r.orig_rax = (unsigned long long)-1;
	r.rax = 0;
	ret = xsp_tracee_set(&d->t, &r);
	if (ret < 0 || xsp_tracee_continue(&d->t) < 0) {
		rewind_thread(d, 0);
		return failed(a, -ESRCH, "the thread ended");
	}
	die(a, 1);
	ret = watch(d);
	uint32_t one = 1;
	if (a->code_free)
		xsp_held_store(a->held, a->stub.area + offsetof(struct xsp_stub_mail, released),
			       &one, sizeof(one));
	return ret;
}

/* Is the stopped thread still one of the process that we looked at, in the same program? */
static int held(struct xsp_attempt *a)
{
	int ret = xsp_held_check(a->held, a->tid);

	if (ret == -ESRCH) {
		a->danger = "the thread ended";
		return 0;
	}
	return ret < 0 ? failed(a, ret, "it started another program, or was given other rights")
		       : 0;
}

static int attempt(struct xsp_attempt *a)
{
	struct diverted d = {.a = a};
	struct xsp_stub_registers alone;
	int ret = xsp_tracee_stop(&d.t, a->tid);

	if (ret == -EAGAIN || ret == -ETIMEDOUT || ret == -ESRCH) {
		a->danger = "it did not stop";
		return -EAGAIN;
	}
	if (ret < 0)
		return failed(a, ret, "it cannot be stopped");
	uint64_t begun = xsp_now_ns();
	ret = held(a);
	a->stub.area = a->stub.area_size;
	if (ret == 0 && a->danger == NULL)
		ret = xsp_safe_danger(a->reader, a->held, &d.t, &a->stub.area, &a->danger);
	if (ret == 0 && a->danger == NULL) {
		a->failed = xsp_seccomp_danger(a->held->pid, a->tid);
		ret = a->failed != NULL ? -ENOTSUP : 0;
	}
	if (ret == 0 && a->danger == NULL)
		ret = a->stub.area == 0 ? -ENOMEM : 0;
	/* also before we release it: a system call that our stop interrupted is restarted */
	xsp_safe_way_on(&d.t, &alone);
	if (ret < 0 || a->danger != NULL) {
		xsp_tracee_set(&d.t, &d.t.registers);
		xsp_tracee_release(&d.t, 0);
		if (ret < 0 && a->failed == NULL)
			a->failed = "its memory map cannot be read";
		return ret < 0 ? ret : -EAGAIN;
	}
	a->stub.xsave = a->stub.area + XSP_STUB_XSAVE_AT;
	a->stub.stack_top = a->stub.area + a->stub.area_size;
	ret = divert(&d, &alone);
	a->stopped_ns = xsp_now_ns() - begun;
	return ret;
}

struct call {
	struct xsp_attempt *a;
	int ret;
};

static void *run(void *argument)
{
	struct call *c = argument;
	const struct sched_param first = {.sched_priority = 1};

	/* A thread of the application waits for us; on a busy machine it should not also wait for our turn. This thread
	 * lives for milliseconds, and sleeps most of that time. */
	sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first);
	c->ret = attempt(c->a);
	return NULL;
}

/* Uses a thread of its own: when that ends, the kernel releases a target that would not stop. */
int xsp_divert(struct xsp_attempt *a)
{
	struct call c = {a, -EAGAIN};
	pthread_t thread;

	int ret = pthread_create(&thread, NULL, run, &c);
	if (ret != 0)
		return failed(a, -ret, "out of memory");
	pthread_join(thread, NULL);
	return c.ret;
}

#endif
