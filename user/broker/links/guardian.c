/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * guardian.c - mends what the broker's death leaves. A second guardian stands by: if the first one dies, whatever it was
 * doing, the second one takes its place and starts another. The last thing that a guardian does is to look into the
 * memory of the targets, so it does not matter which call of whom was killed.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/message.h"
#include "broker/kernel/kernel.h"
#include "broker/links/journal.h"
#include "broker/requests.h"

struct guardian {
	struct xsp_journal *journal;
	int broker; /* pidfd */
	int socket; /* to the recorder */
	pid_t next; /* stands by; 0: has to be started, -1: cannot be */
};

/* ---- what was being done ---- */

/* Gives the semaphores as they were. The kernel refuses another one at a site that it still knows, and raises none
 * where the breakpoint is in already. */
static void mend(const struct xsp_journal_slot *s)
{
	char path[32];
	bool any_semaphore = false;

	for (uint32_t i = 0; i < s->count && i < XSP_LINK_SITES; i++)
		any_semaphore |= s->semaphores[i] != 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", s->file);
	struct xsp_link_create_uprobe_multi attr = {
		.prog_fd = (uint32_t)s->program,
		.attach_type = s->attach_type,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)s->offsets,
		.ref_ctr_offsets = any_semaphore ? (uintptr_t)s->semaphores : 0,
		.count = s->count,
		.multi_flags = s->multi_flags,
		.pid = s->pid,
	};
	int link = xsp_link_create_uprobe_multi(&attr);
	xsp_close(link);
}

static void mend_all(const struct xsp_journal_slot *slots, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (__atomic_load_n(&slots[i].active, __ATOMIC_ACQUIRE))
			mend(&slots[i]);
}

/* Shares the table of descriptors: they stay open when the process that made them dies. */
static pid_t clone_sharing(void)
{
	return (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
}

#define CLOSERS 16
#define UNNOTED 64 /* descriptors of links above the highest that is noted */

static _Noreturn void close_some(const struct xsp_journal *j, uint32_t first, pid_t parent)
{
	/* another guardian may use the numbers for its own files once this one has ended */
	for (uint32_t fd = first; fd <= j->top + UNNOTED && getppid() == parent; fd += CLOSERS)
		if (fd >= XSP_JOURNAL_FDS || !__atomic_load_n(&j->kept[fd], __ATOMIC_ACQUIRE))
			close((int)fd);
	_exit(0);
}

/* Closing a link waits for the kernel's grace periods, so several processes close them at a time. */
static void close_links(const struct xsp_journal *j)
{
	const pid_t self = getpid();
	pid_t closers[CLOSERS];

	for (uint32_t k = 0; k < CLOSERS; k++) {
		closers[k] = clone_sharing();
		if (closers[k] == 0)
			close_some(j, 3 + k, self);
	}
	for (uint32_t k = 0; k < CLOSERS; k++)
		if (closers[k] > 0)
			waitpid(closers[k], NULL, 0);
}

/* ---- what is left ---- */

#define ROUND_MS 50 /* somebody whose parent was killed may still be closing */
#define ROUNDS_NS 2000000000ULL

static size_t look_once(const struct xsp_journal *j, int program)
{
	size_t left = 0;

	for (uint32_t i = 0; i < XSP_JOURNAL_PROBED; i++) {
		const struct xsp_journal_probed *p = &j->probed[i];
		size_t more = 0;
		if (__atomic_load_n(&p->used, __ATOMIC_ACQUIRE) != 2)
			continue;
		if (xsp_verify_repair(p->pid, &p->file, program, &more) >= 0)
			left += more;
	}
	return left;
}

/* How many breakpoints nobody can take out: another tracer's, or a debugger's, may be among them. */
static size_t take_out_what_is_left(const struct xsp_journal *j)
{
	const uint64_t end_ns = xsp_now_ns() + ROUNDS_NS;
	const int program = xsp_kernel_load_trivial();
	size_t left = look_once(j, program);

	if (left > 0)
		mend_all(j->semaphores, XSP_JOURNAL_SEMAPHORES);
	while (left > 0 && xsp_now_ns() < end_ns) {
		poll(NULL, 0, ROUND_MS);
		left = look_once(j, program);
	}
	return left;
}

/* ---- guardians ---- */

static void ignore(int number)
{
	(void)number;
}

/* Waits until the guardian before this one has ended. */
static void stand_by(pid_t before)
{
	sigset_t end;

	sigemptyset(&end);
	sigaddset(&end, SIGUSR1);
	sigprocmask(SIG_BLOCK, &end, NULL);
	prctl(PR_SET_PDEATHSIG, SIGUSR1);
	while (getppid() == before)
		sigwaitinfo(&end, NULL);
}

static _Noreturn void guard(struct guardian *g);

static void see_to_the_next(struct guardian *g)
{
	const pid_t self = getpid();

	if (g->next > 0 && waitpid(g->next, NULL, WNOHANG) == g->next)
		g->next = 0;
	if (g->next != 0)
		return;
	g->next = clone_sharing();
	if (g->next != 0)
		return;
	stand_by(self);
	if (__atomic_load_n(&g->journal->over, __ATOMIC_ACQUIRE))
		_exit(0);
	guard(g);
}

static void wait_for_the_broker(struct guardian *g)
{
	struct pollfd fd = {.fd = g->broker, .events = POLLIN};
	sigset_t child, parent;

	/* a death between the look and the wait ends the wait; that of the guardian before this one may come late, and is known */
	sigemptyset(&parent);
	sigaddset(&parent, SIGUSR1);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	sigaction(SIGCHLD, &(struct sigaction){.sa_handler = ignore}, NULL);
	do
		see_to_the_next(g);
	while (ppoll(&fd, 1, NULL, &parent) < 0 && errno == EINTR);
}

static _Noreturn void guard(struct guardian *g)
{
	struct xsp_journal *j = g->journal;

	wait_for_the_broker(g);
	if (__atomic_load_n(&j->over, __ATOMIC_ACQUIRE))
		_exit(0);
	mend_all(j->slots, XSP_JOURNAL_SLOTS);
	see_to_the_next(g);
	close_links(j);
	see_to_the_next(g);
	const size_t left = take_out_what_is_left(j);
	struct xsp_message report = {.op = XSP_GUARDIAN_REPORTS,
				     .result = left < INT32_MAX ? (int32_t)left : INT32_MAX};
	xsp_message_send(g->socket, &report, NULL, NULL, 0);
	__atomic_store_n(&j->over, 1, __ATOMIC_RELEASE);
	_exit(0);
}

int xsp_guardian_start(int socket, struct xsp_journal **out)
{
	*out = NULL;
	struct xsp_journal *j = mmap(NULL, sizeof(*j), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (j == MAP_FAILED)
		return -errno;
	int broker = (int)syscall(SYS_pidfd_open, getpid(), 0);
	struct guardian g = {.journal = j, .broker = broker, .socket = socket};
	xsp_journal_keep(j, socket);
	xsp_journal_keep(j, broker);
	const pid_t pid = broker < 0 ? -1 : clone_sharing();
	if (pid == 0) {
		prctl(PR_SET_NAME, "xsp-guardian");
		guard(&g);
	}
	if (pid < 0) {
		int code = -errno;
		xsp_close(broker);
		munmap(j, sizeof(*j));
		return code;
	}
	*out = j;
	return 0;
}

void xsp_guardian_end(struct xsp_journal *j)
{
	if (j != NULL)
		__atomic_store_n(&j->over, 1, __ATOMIC_RELEASE);
}
