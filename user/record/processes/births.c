/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * births.c - --follow: new children, and how long each ran without probes. The kernel side reports a birth (and an
 * exec) by an event that wakes us; children.c attaches. Calls before that are not seen: we measure how long that was,
 * and report it.
 */
#include "record/recorder_private.h"
#include "base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/rows/grow.h"
#include "base/rows/order.h"
#include "base/rows/u64map.h"

/* Libraries load after a birth or an exec: turns are short for so long. */
#define HURRY_NS 50000000ULL
#define GAPS_MAX 65536U
#define RINGS_MAX 64

/* Times without links, us: the first ones, for their median. */
struct gaps {
	uint32_t *us;
	size_t count, room;
	uint64_t all;
	uint32_t most;
};

struct xsp_children {
	struct xsp_birth *born; /* since there was no process to attach to */
	size_t count, room;
	size_t next; /* first one that is not attached to yet */
	struct xsp_u64map seen; /* pid to the time of its birth, in units of about 1 ms */
	struct gaps birth, exec;
	uint64_t births, ended, failed;
	uint64_t hurry_until_ns;
	int wakeups; /* epoll of the rings: the kernel side wakes it for births and execs only */
};

/* ---- setting up ---- */

static int watch_rings(const struct xsp_recorder *r, int epoll)
{
	int fds[RINGS_MAX];
	size_t count = xsp_broker_rings(r->broker, fds, RINGS_MAX);

	for (size_t i = 0; i < count; i++) {
		/* by edge: pending events are no reason to wake up */
		struct epoll_event e = {.events = EPOLLIN | EPOLLET};
		if (epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &e) != 0)
			return -errno;
	}
	return 0;
}

int xsp_children_new(struct xsp_recorder *r)
{
	struct xsp_children *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return -ENOMEM;
	r->children = c;
	c->wakeups = epoll_create1(EPOLL_CLOEXEC);
	return c->wakeups < 0 ? -errno : watch_rings(r, c->wakeups);
}

void xsp_children_free(struct xsp_recorder *r)
{
	struct xsp_children *c = r->children;

	if (c == NULL)
		return;
	if (c->wakeups >= 0)
		close(c->wakeups);
	xsp_u64map_free(&c->seen);
	free(c->born);
	free(c->birth.us);
	free(c->exec.us);
	free(c);
	r->children = NULL;
}

/* ---- births ---- */

/* Each birth is reported twice; pids come again only much later. */
static bool is_known(struct xsp_children *c, const struct xsp_birth *b)
{
	const uint32_t when = (uint32_t)(b->time_ns >> 20), second = 1000;
	uint32_t *before = xsp_u64map_get(&c->seen, (uint64_t)b->pid);

	if (before != NULL && when - *before + second < 2 * second)
		return true;
	/* no memory: reported twice, attached to once */
	xsp_u64map_set(&c->seen, (uint64_t)b->pid, when);
	return false;
}

void xsp_children_born(struct xsp_recorder *r, pid_t pid, pid_t parent, uint64_t time_ns)
{
	struct xsp_children *c = r->children;
	const struct xsp_birth b = {pid, parent, time_ns};

	if (!r->options.attach.follow || is_known(c, &b))
		return;
	c->births++;
	if (xsp_grow(&c->born, &c->room, c->count + 1) < 0)
		c->failed++;
	else
		c->born[c->count++] = b;
}

/* Nothing else sends this signal to a program without a debugger but a breakpoint that is nobody's. */
static void note_trap(struct xsp_recorder *r, pid_t pid)
{
	if (r->has_wanted)
		xsp_recorder_note(
			r,
			"process %d was killed by SIGTRAP. Has it run a copy of its code, with our breakpoints in it? Programs that move their code (node --use-largepages, huge_code_pages of PHP) do: record it without that, or by -p once it has moved, or with nothing attached to code: --profile",
			(int)pid);
}

void xsp_children_task(void *ctx, const struct xsp_event_task *task)
{
	struct xsp_recorder *r = ctx;
	struct recorded_process *p;

	if (task->what == XSP_TASK_EXIT && task->other_tid == SIGTRAP &&
	    task->head.tid == task->head.tgid)
		note_trap(r, (pid_t)task->head.tgid);

	if (task->what == XSP_TASK_FORK && task->head.tgid != task->other_tgid)
		xsp_children_born(r, (pid_t)task->head.tgid, (pid_t)task->other_tgid,
				  task->head.time_ns);
	else if (task->what == XSP_TASK_FORK)
		xsp_overhead_meet(r, (pid_t)task->head.tgid, (pid_t)task->head.tid);
	if (task->what != XSP_TASK_EXEC)
		return;
	/* the sideband reports the same a little later, with the rest */
	p = xsp_recorder_find(r, (pid_t)task->head.tgid);
	if (p != NULL) {
		p->dirty = true;
		p->exec_ns = task->head.time_ns;
	}
	r->children->hurry_until_ns = xsp_now_ns() + HURRY_NS;
}

static void add_gap(struct gaps *g, uint64_t since_ns)
{
	const uint32_t us = (uint32_t)((xsp_now_ns() - since_ns) / 1000);

	g->all++;
	g->most = us > g->most ? us : g->most;
	if (g->count < GAPS_MAX && xsp_grow(&g->us, &g->room, g->count + 1) == 0)
		g->us[g->count++] = us;
}

void xsp_children_exec_attached(struct xsp_recorder *r, const struct recorded_process *p)
{
	/* the launched process waits at its exec for its launcher: it calls nothing meanwhile */
	if (p->exec_ns != 0 && p->pid != r->launched)
		add_gap(&r->children->exec, p->exec_ns);
}

bool xsp_children_next(struct xsp_recorder *r, struct xsp_birth *b)
{
	struct xsp_children *c = r->children;

	if (c->next == c->count) {
		c->next = c->count = 0;
		return false;
	}
	c->hurry_until_ns = xsp_now_ns() + HURRY_NS;
	*b = c->born[c->next++];
	return true;
}

void xsp_children_attached(struct xsp_recorder *r, const struct xsp_birth *b, int rc,
			   const char *why)
{
	struct xsp_children *c = r->children;

	if (rc == 0)
		add_gap(&c->birth, b->time_ns);
	else if (rc == -ESRCH)
		c->ended++; /* it has no row of its own, but its events are recorded */
	else if (c->failed++ == 0 && rc != -EINTR)
		xsp_recorder_note(r, "child %d and perhaps others are not followed: %s",
				  (int)b->pid, why);
}

void xsp_children_wait(struct xsp_recorder *r, int wait_ms)
{
	struct pollfd fds[RINGS_MAX] = {{.fd = r->children->wakeups, .events = POLLIN}};
	struct epoll_event woken[RINGS_MAX];
	nfds_t n = 1;

	for (size_t i = 0; i < r->process_count && n < RINGS_MAX; i++)
		fds[n++] = (struct pollfd){.fd = xsp_process_pidfd(r->processes[i].process),
					   .events = POLLIN};
	if (r->children->next < r->children->count)
		wait_ms = 0;
	else if (wait_ms > 1 && xsp_now_ns() < r->children->hurry_until_ns)
		wait_ms = 1;
	if (poll(fds, n, wait_ms) > 0 && fds[0].revents != 0)
		epoll_wait(r->children->wakeups, woken, RINGS_MAX, 0);
}

/* ---- what we report ---- */

static XSP_ORDER(by_size, uint32_t, XSP_COMPARE(*x, *y));

/* "N attached to ..." or "". */
static void format_gaps(struct gaps *g, const char *since, char *text, size_t size)
{
	text[0] = '\0';
	if (g->count == 0)
		return;
	qsort(g->us, g->count, sizeof(*g->us), by_size);
	snprintf(text, size,
		 "%" PRIu64 " attached to %.1f ms (median%s) after their %s, %.1f ms at most",
		 g->all, g->us[g->count / 2] * 1e-3, g->all > g->count ? " of the first ones" : "",
		 since, g->most * 1e-3);
}

static const char *in_between(const struct xsp_recorder *r)
{
	const struct xsp_attach_options *o = &r->options.attach;

	return o->stop ? ", stopped until then" : "; calls in between are not seen";
}

static int put_births(struct xsp_recorder *r)
{
	struct xsp_children *c = r->children;
	char gaps[160], ended[64] = "", failed[64] = "", waiting[64] = "", text[460];

	if (c->births == 0)
		return 0;
	format_gaps(&c->birth, "birth", gaps, sizeof(gaps));
	if (c->ended > 0)
		snprintf(ended, sizeof(ended), "; %llu had ended before",
			 (unsigned long long)c->ended);
	if (c->failed > 0)
		snprintf(failed, sizeof(failed), "; %llu could not be followed",
			 (unsigned long long)c->failed);
	if (c->next < c->count)
		snprintf(waiting, sizeof(waiting), "; %zu were not reached before the end",
			 c->count - c->next);
	snprintf(text, sizeof(text), "%llu born%s%s%s%s%s%s", (unsigned long long)c->births,
		 gaps[0] != '\0' ? ", " : "", gaps, gaps[0] != '\0' ? in_between(r) : "", ended,
		 failed, waiting);
	return xsp_capture_put_info(r->writer, "children", text);
}

/* Did any child run for a while, or to its end, without probes? */
static bool calls_unseen(const struct xsp_recorder *r)
{
	const struct xsp_attach_options *o = &r->options.attach;
	const struct xsp_children *c = r->children;
	const bool gaps = c->birth.count + c->exec.count + c->ended > 0;

	return c->failed > 0 || c->next < c->count || (gaps && !o->stop);
}

int xsp_children_put_infos(struct xsp_recorder *r)
{
	char gaps[160], text[240];
	int rc = put_births(r);

	if (rc == 0 && calls_unseen(r))
		rc = xsp_capture_put_info(r->writer, "calls unseen", "of children");
	format_gaps(&r->children->exec, "exec", gaps, sizeof(gaps));
	if (rc < 0 || gaps[0] == '\0')
		return rc;
	snprintf(text, sizeof(text), "%s%s", gaps, in_between(r));
	return xsp_capture_put_info(r->writer, "execs", text);
}
