/* SPDX-License-Identifier: BSD-2-Clause */
/* waits.c - the beginning and the end of --waits. The scheduler's programs (bpf/sched.bpf.c) do the rest. */
#include "broker/kernel/attach_private.h"
#include "base/clock.h"
#include "procfs/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* After this time, programs that read the clock before the end have finished. */
#define LAST_NS 2000000

/* Makes the kernel run the program for each task. */
static int walk_tasks(struct bpf_program *program)
{
	struct bpf_link *link = bpf_program__attach_iter(program, NULL);
	char text[64]; /* it writes nothing */

	if (link == NULL)
		return -errno;
	int fd = bpf_iter_create(bpf_link__fd(link)), rc = fd < 0 ? -errno : 0;
	ssize_t n;
	do
		n = fd < 0 ? 0 : read(fd, text, sizeof(text));
	while (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)));
	if (n < 0)
		rc = -errno;
	xsp_close(fd);
	bpf_link__destroy(link);
	return rc;
}

int xsp_attach_programs(const struct xsp_program_link *links, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!bpf_program__autoload(links[i].program))
			continue;
		*links[i].link = bpf_program__attach(links[i].program);
		if (*links[i].link == NULL)
			return -errno;
	}
	return 0;
}

#define SCHED_PROGRAMS 5
static void sched_programs(struct xsp_bpf *b, struct xsp_program_link out[SCHED_PROGRAMS])
{
	const struct xsp_program_link all[SCHED_PROGRAMS] = {
		{b->progs.xsp_sched_switch, &b->links.xsp_sched_switch},
		{b->progs.xsp_sched_waking, &b->links.xsp_sched_waking},
		{b->progs.xsp_sched_wakeup, &b->links.xsp_sched_wakeup},
		{b->progs.xsp_sched_new, &b->links.xsp_sched_new},
		{b->progs.xsp_sched_exec, &b->links.xsp_sched_exec},
	};

	memcpy(out, all, sizeof(all));
}

int xsp_attach_profile(struct xsp_attach *a)
{
	struct xsp_program_link sched[SCHED_PROGRAMS];

	sched_programs(a->bpf, sched);
	int rc = xsp_attach_programs(sched, SCHED_PROGRAMS);
	return rc < 0 ? rc : xsp_samples_open(a);
}

static void detach_sched(struct xsp_attach *a)
{
	struct xsp_program_link sched[SCHED_PROGRAMS];

	sched_programs(a->bpf, sched);
	for (size_t i = 0; i < SCHED_PROGRAMS; i++) {
		bpf_link__destroy(*sched[i].link);
		*sched[i].link = NULL;
	}
}

int xsp_waits_drop(struct xsp_attach *a)
{
	int rc = xsp_attach_waits(a, false);

	xsp_waits_part(a);
	a->waits = false; /* also if they had not begun */
	detach_sched(a);
	return rc;
}

int xsp_waits_meet(struct xsp_attach *a)
{
	__atomic_store_n(&a->bpf->bss->xsp_waits_from_ns, xsp_now_ns(), __ATOMIC_RELEASE);
	return walk_tasks(a->bpf->progs.xsp_sched_meet);
}

int xsp_attach_waits(struct xsp_attach *a, bool on)
{
	if (!a->waits || a->bpf->bss->xsp_waits_until_ns != 0)
		return 0;
	if (on)
		return a->bpf->bss->xsp_waits_from_ns == 0 ? xsp_waits_meet(a) : 0;
	if (a->bpf->bss->xsp_waits_from_ns != 0)
		__atomic_store_n(&a->bpf->bss->xsp_waits_until_ns, xsp_now_ns(), __ATOMIC_RELEASE);
	return 0;
}

/* Waits have ended: writes an event for each thread. */
static void report_ended(struct xsp_attach *a)
{
	LIBBPF_OPTS(bpf_test_run_opts, run);
	nanosleep(&(struct timespec){.tv_nsec = LAST_NS}, NULL);
	bpf_prog_test_run_opts(bpf_program__fd(a->bpf->progs.xsp_sched_part), &run);
}

void xsp_waits_part(struct xsp_attach *a)
{
	if (!a->waits || a->suspended || a->bpf->bss->xsp_waits_until_ns == 0)
		return;
	report_ended(a);
	a->waits = false;
}

void xsp_profile_suspend(struct xsp_attach *a)
{
	xsp_samples_close(a);
	if (!a->waits)
		return;
	if (a->bpf->bss->xsp_waits_until_ns != 0)
		report_ended(a);
	detach_sched(a);
	/* as before the first one: in this order no program takes it for a recording without an end */
	__atomic_store_n(&a->bpf->bss->xsp_waits_from_ns, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&a->bpf->bss->xsp_waits_until_ns, 0, __ATOMIC_RELEASE);
}

int xsp_profile_resume(struct xsp_attach *a)
{
	struct xsp_program_link sched[SCHED_PROGRAMS];

	sched_programs(a->bpf, sched);
	const int rc = a->waits ? xsp_attach_programs(sched, SCHED_PROGRAMS) : 0;
	return rc < 0 ? rc : xsp_samples_open(a);
}

/* ---- what threads have done so far ---- */

/* The programs write while we read: is this row consistent? */
static bool adds_up(const struct xsp_thread_waits *t)
{
	uint64_t sum = t->running_ns + t->runnable_ns;

	for (unsigned i = 0; i < XSP_WAIT_CLASSES; i++)
		sum += t->blocked_ns[i];
	return t->at_ns != 0 && t->since_ns + sum == t->at_ns;
}

/* How long the thread has run since it was last seen to leave its CPU. The kernel does not report every return
 * (bpf/sched.bpf.c). */
static uint64_t ran_since(const struct xsp_thread_waits *t)
{
	char path[48];
	uint64_t cpu_ns = 0, queued_ns;

	snprintf(path, sizeof(path), "/proc/%u/schedstat", t->tid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	if (xsp_procfs_cpu_ns(fd, &cpu_ns, &queued_ns, NULL) < 0)
		cpu_ns = 0;
	close(fd);
	return cpu_ns > t->ran_ns ? cpu_ns - t->ran_ns : 0;
}

/* Adds the time since the last switch, as if what the thread does ended now. */
static void add_open(struct xsp_event_times *e, const struct xsp_thread_waits *t, uint64_t ran_ns)
{
	const uint64_t now = e->head.time_ns, all = now > t->at_ns ? now - t->at_ns : 0;
	const unsigned why = t->why & (XSP_WAIT_CLASSES - 1);
	const uint64_t ran = !t->off || ran_ns > all ? all : ran_ns, off = all - ran;
	const bool waits = why != XSP_WAIT_RUNNABLE;
	uint64_t blocked = !waits ? 0 : off;

	if (waits && t->woken_ns >= t->at_ns && t->woken_ns - t->at_ns < off)
		blocked = t->woken_ns - t->at_ns;
	e->running_ns += ran;
	e->blocked_ns[why] += blocked;
	e->runnable_ns += off - blocked;
	e->now = ran > 0 || !t->off ? XSP_NOW_RUNS
				    : XSP_NOW_WAITS + (blocked < off ? XSP_WAIT_RUNNABLE : why);
}

/* What the kernel side would report if the wait ended now, without the far end of a descriptor. */
static struct xsp_event_wait open_wait(const struct xsp_event_times *e,
				       const struct xsp_thread_waits *t)
{
	const bool woken = t->woken_ns >= t->at_ns && t->woken_ns <= e->head.time_ns;
	struct xsp_event_wait w = {
		.head = e->head,
		.left_ns = t->at_ns,
		.woken_ns = woken && t->why != XSP_WAIT_RUNNABLE ? t->woken_ns : 0,
		.argument = t->argument,
		.short_ns = t->short_ns,
		.syscall = t->syscall,
		.waker = woken ? t->waker : 0,
		.owner = t->owner,
		.state = t->state,
		.why = t->why,
		.flags = t->flags | XSP_WAIT_OPEN,
	};

	w.head.kind = XSP_EVENT_WAIT;
	w.head.size = sizeof(w);
	return w;
}

static int report_times(const struct xsp_thread_waits *t, FILE *out)
{
	struct xsp_thread_now now = {.open = {.head = {.kind = 0}}};
	struct xsp_event_times e = {
		.head = {.time_ns = xsp_now_ns(),
			 .tid = t->tid,
			 .tgid = t->tgid,
			 .probe = UINT32_MAX,
			 .kind = XSP_EVENT_TIMES,
			 .size = sizeof(e)},
		.since_ns = t->since_ns,
		.running_ns = t->running_ns,
		.runnable_ns = t->runnable_ns,
	};

	for (unsigned i = 0; i < XSP_WAIT_CLASSES; i++) {
		e.blocked_ns[i] = t->blocked_ns[i];
		e.waits[i] = t->waits[i];
	}
	add_open(&e, t, t->off ? ran_since(t) : 0);
	now.times = e;
	if (e.now >= XSP_NOW_WAITS)
		now.open = open_wait(&e, t);
	return fwrite(&now, sizeof(now), 1, out) == 1 ? 0 : -EIO;
}

int xsp_attach_times(const struct xsp_attach *a, FILE *out)
{
	const int fd = bpf_map__fd(a->bpf->maps.xsp_thread_waits);
	uint64_t *keys = calloc(XSP_WAITS_THREADS, sizeof(*keys)), batch;
	struct xsp_thread_waits *rows = calloc(XSP_WAITS_THREADS, sizeof(*rows));
	uint32_t count = XSP_WAITS_THREADS;
	int rc = keys == NULL || rows == NULL ? -ENOMEM : 0;

	if (!a->waits)
		count = 0;
	/* ENOENT: there are no more */
	else if (rc == 0 && bpf_map_lookup_batch(fd, NULL, &batch, keys, rows, &count, NULL) != 0 &&
		 errno != ENOENT)
		rc = -errno;
	for (uint32_t i = 0; i < count && rc == 0; i++) {
		bool whole = adds_up(&rows[i]);
		for (unsigned tries = 0; !whole && tries < 3; tries++)
			whole = bpf_map_lookup_elem(fd, &keys[i], &rows[i]) == 0 &&
				adds_up(&rows[i]);
		if (whole && rows[i].named)
			rc = report_times(&rows[i], out);
	}
	free(keys);
	free(rows);
	return rc;
}
