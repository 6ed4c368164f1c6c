/* SPDX-License-Identifier: BSD-2-Clause */
/* collect.c - the account's listener: adds charges and samples to cells, for all time and for the current step. */
#include "model/account/account_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "base/text.h"
#include "catalog/own_code.h"
#include "catalog/wait_reasons.h"
#include "timeline/python.h"

#define MOST_CELLS (1U << 18)
#define MOST_THREADS (1U << 16)
#define MOST_CHAINS (1U << 16)

int xsp_account_new(struct xsp_timeline *t, struct xsp_capture_reader *r, struct xsp_account **out)
{
	*out = NULL;
	const bool by_samples = !xsp_timeline_has_waits(t);
	if (by_samples && !xsp_timeline_has_samples(t))
		return 0;
	struct xsp_account *a = calloc(1, sizeof(*a));
	if (a == NULL)
		return -ENOMEM;
	a->timeline = t;
	a->reader = r;
	a->by_samples = by_samples;
	a->cells.tally.most = MOST_CELLS;
	a->threads.tally.most = MOST_THREADS;
	a->passes.tally.most = MOST_THREADS;
	a->chains.tally.most = MOST_CHAINS;
	*out = a;
	return 0;
}

void xsp_account_free(struct xsp_account *a)
{
	if (a == NULL)
		return;
	for (size_t i = 0; i < a->threads.count; i++) {
		XSP_FREE(&a->threads.rows[i].touched);
		XSP_FREE(&a->threads.rows[i].first);
		free(a->threads.rows[i].asks);
	}
	for (size_t i = 0; i < a->families.count; i++) {
		XSP_FREE(&a->families.rows[i].rows);
		XSP_FREE(&a->families.rows[i].places);
	}
	for (size_t i = 0; i < a->cells.count; i++)
		free(a->cells.rows[i].slices);
	xsp_tally_free(&a->threads);
	xsp_tally_free(&a->cells);
	xsp_tally_free(&a->passes);
	xsp_tally_free(&a->chains);
	xsp_tally_free(&a->families);
	free(a->shown);
	free(a->dear);
	xsp_u64map_free(&a->ports);
	free(a);
}

uint64_t xsp_account_left_out(const struct xsp_account *a)
{
	return a->threads.tally.left_out + a->cells.tally.left_out;
}

/* ---- cells ---- */

static struct account_thread *thread_of(struct xsp_account *a, uint32_t pid, uint32_t tid)
{
	struct account_thread *th = a->last;

	if (th == NULL || th->tid != tid || th->pid != pid)
		th = a->last = xsp_tally_row(&a->threads, xsp_u64_pair(pid, tid),
					     &(struct account_thread){.pid = pid, .tid = tid});
	return th;
}

static uint64_t key_of(const struct account_cell *c)
{
	return xsp_u64_mix(xsp_u64_pair(c->place, c->callee)) ^
	       xsp_u64_mix(xsp_u64_pair(c->thread, (uint32_t)c->kind << 16 | (uint32_t)c->why << 8 |
							   (uint32_t)c->paused << 1 | c->sampled));
}

/* Where there is no room: the kind's cell without a place. NULL: no memory. */
static struct account_cell *cell_of(struct xsp_account *a, const struct account_cell *c)
{
	struct account_cell bare = *c, *cell = xsp_tally_row(&a->cells, key_of(c), c);

	if (cell != NULL || a->cells.tally.error < 0)
		return cell;
	bare.place = bare.callee = 0;
	a->cells.tally.most = 0; /* there are few of these */
	cell = xsp_tally_row(&a->cells, key_of(&bare), &bare);
	a->cells.tally.most = MOST_CELLS;
	return cell;
}

static int add(struct xsp_account *a, struct account_thread *th, const struct account_cell *c,
	       int64_t ns, uint64_t count, bool in_step)
{
	struct account_cell one = *c;

	if (ns == 0 && count == 0)
		return 0;
	one.thread = xsp_tally_index(&a->threads, th);
	one.peer = (struct account_lead){0};
	one.loop_ns = 0;
	struct account_cell *cell = cell_of(a, &one);
	if (cell == NULL)
		return a->cells.tally.error;
	if (ns > 0 && c->kind == XSP_ACCOUNT_WAIT)
		account_vote(&cell->peer, c->peer.what, ns);
	cell->ns = account_sum(cell->ns, ns);
	cell->loop_ns = account_sum(cell->loop_ns, c->loop_ns);
	cell->count += count;
	if (!in_step)
		return 0;
	cell->now_ns = account_sum(cell->now_ns, ns);
	cell->now_count += count;
	if (cell->touched)
		return 0;
	cell->touched = true;
	return XSP_PUT(&th->touched, xsp_tally_index(&a->cells, cell));
}

/* ---- charges ---- */

static int add_running(struct xsp_account *a, struct account_thread *th, const struct xsp_charge *c)
{
	struct account_cell cell = {.kind = c->in_span ? XSP_ACCOUNT_SPAN : XSP_ACCOUNT_CPU,
				    .paused = c->paused,
				    .place = c->in_span ? c->place : 0,
				    .callee = c->in_span ? c->span + 1 : 0};
	const struct account_cell probes = {.kind = XSP_ACCOUNT_PROBES};
	struct account_cell shorts = {
		.kind = XSP_ACCOUNT_WAIT, .why = XSP_ACCOUNT_SHORT, .place = c->place};

	if (c->in_span && c->place == 0) { /* the span is the place itself */
		cell.place = shorts.place = c->span + 1;
		cell.callee = 0;
	}
	const int64_t ns = (int64_t)(c->to_ns - c->from_ns);
	int rc = add(a, th, &cell, account_sum(ns, -(int64_t)(c->short_ns + c->probe_ns)), 0,
		     c->in_step);
	if (rc == 0)
		rc = add(a, th, &probes, (int64_t)c->probe_ns, 0, c->in_step);
	return rc == 0 ? add(a, th, &shorts, (int64_t)c->short_ns, 0, c->in_step) : rc;
}

static bool is_gil(const struct xsp_account *a, struct account_thread *th, const struct xsp_wait *w)
{
	if (!th->lock_asked && !xsp_timeline_python_lock(a->timeline, w->pid, &th->lock))
		th->lock.bytes = 0;
	th->lock_asked = true;
	return w->argument >= th->lock.address && w->argument - th->lock.address < th->lock.bytes;
}

#define PORTS_MOST 65536U
#define SEVERAL UINT32_MAX

/* Was the port met with several others? */
static bool is_port_of_many(struct xsp_account *a, uint64_t key, uint32_t other)
{
	uint32_t *known = xsp_u64map_get(&a->ports, key);

	if (known == NULL && a->ports.count < PORTS_MOST)
		xsp_u64map_set(&a->ports, key, other); /* without memory it has one */
	else if (known != NULL && *known != other)
		*known = SEVERAL;
	return known != NULL && *known == SEVERAL;
}

/* Of "43131 50051" */
static bool is_listed(const char *ports, uint16_t port)
{
	for (char *end; *ports != '\0'; ports = end) {
		if (strtoul(ports, &end, 10) == port)
			return true;
		if (end == ports)
			return false;
	}
	return false;
}

/* A server's own port is the known one, its client's any that was free. Where both may be: the recording knows who
 * listens. If not, a server has several peers at its port, and who has several connections to one port is its client. */
static bool waits_for_clients(struct xsp_account *a, const struct xsp_wait *w)
{
	const uint32_t ports = (uint32_t)(w->argument >> 32);
	const uint16_t own = (uint16_t)ports, peer = (uint16_t)(ports >> 16);

	if (w->why != XSP_WAIT_NETWORK || own == 0)
		return false;
	if (own >= XSP_FREE_PORTS && peer >= XSP_FREE_PORTS) {
		const char *listening = xsp_capture_info(a->reader, "listening ports");
		if (listening != NULL && listening[0] != '?')
			return is_listed(listening, own);
		const bool serves = is_port_of_many(a, xsp_u64_pair(w->pid, own), peer);
		if (is_port_of_many(a, xsp_u64_pair(w->pid, 1U << 16 | peer), own) != serves)
			return serves;
	}
	return peer == 0 || own < peer;
}

static unsigned why_of(struct xsp_account *a, struct account_thread *th, const struct xsp_wait *w)
{
	if (waits_for_clients(a, w))
		return XSP_ACCOUNT_CLIENT;
	if (w->why == XSP_WAIT_DISK && xsp_wait_is_sync(w->syscall))
		return XSP_ACCOUNT_SYNC;
	if (w->why != XSP_WAIT_LOCK)
		return w->why;
	return is_gil(a, th, w)				      ? XSP_ACCOUNT_GIL
	       : w->owner != 0 || (w->flags & XSP_WAIT_MUTEX) ? XSP_ACCOUNT_MUTEX
	       : w->for_lock				      ? XSP_ACCOUNT_MONITOR
							      : XSP_WAIT_LOCK;
}

/* What the thread started in: the outermost function that is not the C library's or threading's. 0: not known. lines: only if
 * it is one of Python. */
static uint64_t routine_of(const struct xsp_account *a, const uint32_t *path, uint32_t length,
			   bool lines)
{
	const char *function;
	size_t file;
	bool python = false;

	for (uint32_t i = 0; i < length; i++) {
		const char *name = xsp_timeline_name(a->timeline, path[i] & ~XSP_PATH_FRAME);
		if (!(path[i] & XSP_PATH_FRAME) || xsp_wait_is_primitive(name))
			continue;
		const bool line = xsp_python_line_split(name, &file, &function);
		if (line && strncmp(name, "threading.py:", 13) == 0)
			python = true;
		else if (line)
			return xsp_text_hash(function, strlen(function));
		else if (python || (lines && name[0] == '['))
			return 0;
		else if (!lines)
			return xsp_text_hash(name, strlen(name));
	}
	return 0;
}

/* The routine of most stacks: the first ones may be of what the C library or an interpreter does before it calls the thread's
 * function. */
static void vote(struct account_thread *th, uint64_t routine)
{
	if (routine != 0)
		account_vote(&th->routine, routine, 1);
}

static int add_off(struct xsp_account *a, struct account_thread *th, const struct xsp_charge *c)
{
	const struct xsp_wait *w = c->wait;
	struct account_cell cell = {.kind = c->kind == XSP_CHARGE_WAITING ? XSP_ACCOUNT_WAIT
									  : XSP_ACCOUNT_READY,
				    .why = (uint8_t)why_of(a, th, w)};

	if (cell.kind == XSP_ACCOUNT_WAIT) {
		cell.place = w->place != 0   ? w->place
			     : c->place != 0 ? c->place
			     : c->in_span    ? c->span + 1
					     : 0;
		cell.callee = w->inside != cell.place ? w->inside : 0;
		if (c->tid != c->pid)
			vote(th, routine_of(a, w->path, w->path_length, true));
		cell.peer.what = w->peer;
		cell.loop_ns = account_is_in_loop(a, w) ? (int64_t)(c->to_ns - c->from_ns) : 0;
		const bool begins = c->from_ns == w->left_ns;
		int rc = begins && cell.why == XSP_WAIT_NETWORK ? account_count_ask(th) : 0;
		if (rc == 0 && begins && cell.why == XSP_WAIT_LOCK && w->waker != 0)
			rc = account_count_waker(a, th, w);
		if (rc == 0)
			rc = account_count_callers(a, th, w->place, &w->callers,
						   c->to_ns - c->from_ns);
		if (rc < 0)
			return rc;
	}
	return add(a, th, &cell, (int64_t)(c->to_ns - c->from_ns), 0, c->in_step);
}

static int on_charge(void *ctx, const struct xsp_charge *c)
{
	struct xsp_account *a = ctx;
	struct account_thread *th = thread_of(a, c->pid, c->tid);

	if (th == NULL)
		return a->threads.tally.error;
	th->ns += c->to_ns - c->from_ns;
	th->paused_ns += c->paused ? c->to_ns - c->from_ns : 0;
	if (c->kind == XSP_CHARGE_RUNNING)
		th->between_ns += c->to_ns - c->from_ns;
	return c->kind == XSP_CHARGE_RUNNING ? add_running(a, th, c) : add_off(a, th, c);
}

/* ---- samples ---- */

/* What the frame at `at` called: the next one that has a name and is not of the interpreter. 0: itself. */
static uint32_t called_from(const struct xsp_account *a, const struct xsp_sample *s, uint32_t at)
{
	for (at++; at < s->path_length; at++) {
		const uint32_t id = s->path[at] & ~XSP_PATH_FRAME;
		const char *name = xsp_timeline_name(a->timeline, id);
		if (strncmp(name, "Py", 2) != 0 && strncmp(name, "_Py", 3) != 0 &&
		    strstr(name, "+0x") == NULL && name[0] != '[' && !xsp_is_trampoline(name))
			return id + 1;
	}
	return 0;
}

static void place_of(const struct xsp_account *a, const struct xsp_sample *s,
		     struct account_cell *cell)
{
	uint32_t at = s->path_length;

	if (s->own_place != 0)
		while (at > 0 && (s->path[at - 1] & ~XSP_PATH_FRAME) + 1 != s->own_place)
			at--;
	else if (s->own_function != 0)
		at = s->own_function;
	else
		at = 0;
	if (at > 0) {
		cell->place = (s->path[at - 1] & ~XSP_PATH_FRAME) + 1;
		cell->callee = called_from(a, s, at - 1);
	} else {
		cell->place = s->own_place != 0 ? s->own_place
			      : s->line != 0	? s->line
						: s->function + 1;
	}
	if (cell->callee == cell->place)
		cell->callee = 0;
}

/* Is it the kernel's work for such a file? By its functions. */
static bool kernel_is_in(const struct xsp_account *a, const struct xsp_sample *s, const char *part)
{
	for (uint32_t i = s->path_length - s->kernel_length; i < s->path_length; i++)
		if (strstr(xsp_timeline_name(a->timeline, s->path[i] & ~XSP_PATH_FRAME), part) !=
		    NULL)
			return true;
	return false;
}

/* What reads and writes: a pipe is as dear as a file, and what ends on the same machine are messages. */
static enum xsp_dear_call dear_io(const struct xsp_account *a, const struct xsp_sample *s,
				  enum xsp_dear_call call)
{
	if (kernel_is_in(a, s, "unix_stream_"))
		return XSP_DEAR_MESSAGES;
	return call == XSP_DEAR_MESSAGES || kernel_is_in(a, s, "sock_") ||
			       kernel_is_in(a, s, "tty_")
		       ? XSP_DEAR_NONE
		       : call;
}

static enum xsp_dear_call dear_syscall(const struct xsp_account *a, const struct xsp_sample *s)
{
	static const char kernel[] = "[kernel] ";
	const char *name = xsp_timeline_name(a->timeline, xsp_sample_place(s));
	const enum xsp_dear_call call = s->kernel && strncmp(name, kernel, strlen(kernel)) == 0
						? xsp_dear_syscall(name + strlen(kernel))
						: XSP_DEAR_NONE;

	return call == XSP_DEAR_SMALL_IO || call == XSP_DEAR_MESSAGES ? dear_io(a, s, call) : call;
}

static bool is_line_of_python(const struct xsp_account *a, uint32_t frame)
{
	const char *function;
	size_t file;

	return xsp_python_line_split(xsp_timeline_name(a->timeline, frame & ~XSP_PATH_FRAME), &file,
				     &function);
}

#define NEEDS_CALLER 0x80U /* in account.dear, beside 1 + the call */
_Static_assert(1 + XSP_DEAR_PLAIN < NEEDS_CALLER, "the calls and the mark");

/* Of the frame at `at`. */
static enum xsp_dear_call dear_name(struct xsp_account *a, const struct xsp_sample *s, uint32_t at)
{
	const uint32_t id = s->path[at] & ~XSP_PATH_FRAME;
	const char *name = xsp_timeline_name(a->timeline, id);

	if (xsp_grow_zeroed(&a->dear, &a->dear_capacity, (size_t)id + 1) < 0)
		return XSP_DEAR_NONE;
	if (a->dear[id] == 0)
		a->dear[id] = (uint8_t)(1 + xsp_dear_call_of(name)) |
			      (xsp_dear_needs_caller(name) ? NEEDS_CALLER : 0);
	if ((a->dear[id] & NEEDS_CALLER) &&
	    (at == 0 ||
	     !xsp_dear_fits_caller(
		     name, xsp_timeline_name(a->timeline, s->path[at - 1] & ~XSP_PATH_FRAME),
		     is_line_of_python(a, s->path[at - 1]))))
		return XSP_DEAR_NONE;
	return (a->dear[id] & ~NEEDS_CALLER) - 1U;
}

/* Is what is inside of a dear call the reason? re.match() of a text compiles it if it is not in the cache, and yaml.load() need
 * not do its work in Python. */
static bool says_more(enum xsp_dear_call call, enum xsp_dear_call inside)
{
	static const struct {
		enum xsp_dear_call call, inside;
	} pairs[] = {{XSP_DEAR_MATCH, XSP_DEAR_REGEX},
		     {XSP_DEAR_LOAD, XSP_DEAR_YAML},
		     {XSP_DEAR_SCANF, XSP_DEAR_STRLEN}};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		if (pairs[i].call == call && pairs[i].inside == inside)
			return true;
	return false;
}

/* What the place calls that is dear, or is itself: the outermost such function. Without a place of the program's own it is the
 * place, wherever it is. */
static enum xsp_dear_call dear_frame(struct xsp_account *a, const struct xsp_sample *s,
				     struct account_cell *cell)
{
	const bool own = s->own_place != 0 || s->own_function != 0;
	enum xsp_dear_call call = XSP_DEAR_NONE;
	uint32_t i = own ? s->path_length : 0, at = 0;

	while (i > 0 && (s->path[i - 1] & ~XSP_PATH_FRAME) + 1 != cell->place)
		i--;
	for (i -= i > 0; i < s->path_length; i++) {
		const enum xsp_dear_call next = dear_name(a, s, i);
		if (next == XSP_DEAR_PLAIN)
			return next;
		if (call != XSP_DEAR_NONE && !says_more(call, next))
			continue;
		at = i;
		call = next;
	}
	if (!own && s->line == 0 && call != XSP_DEAR_NONE) {
		cell->place = (s->path[at] & ~XSP_PATH_FRAME) + 1;
		cell->callee = 0;
	}
	return call;
}

static uint8_t why_dear(struct xsp_account *a, const struct xsp_sample *s,
			struct account_cell *cell)
{
	enum xsp_dear_call call = s->page_fault ? XSP_DEAR_NONE : dear_frame(a, s, cell);

	if (s->page_fault || call == XSP_DEAR_PLAIN)
		return s->page_fault ? XSP_ACCOUNT_FAULT : 0;
	/* a stream that writes each line at once says less than the system call */
	const enum xsp_dear_call in_kernel = call == XSP_DEAR_NONE || call == XSP_DEAR_STREAM
						     ? dear_syscall(a, s)
						     : XSP_DEAR_NONE;
	call = in_kernel != XSP_DEAR_NONE ? in_kernel : call;
	if (call == XSP_DEAR_NONE) {
		const struct xsp_timeline_thread *th = xsp_timeline_thread(a->timeline, s->tid);
		call = th != NULL ? xsp_dear_thread(th->comm) : XSP_DEAR_NONE;
	}
	return call != XSP_DEAR_NONE ? (uint8_t)(XSP_ACCOUNT_DEAR + call) : 0;
}

/* Without charges, all time on a CPU is that of samples. */
static int add_sampled(struct xsp_account *a, struct account_thread *th, const struct xsp_sample *s,
		       bool paused)
{
	const struct account_cell cell = {.kind = XSP_ACCOUNT_CPU, .paused = paused};

	th->ns += s->period_ns;
	return add(a, th, &cell, (int64_t)s->period_ns, 0, false);
}

int xsp_account_add_off(struct xsp_account *a)
{
	const struct account_cell cell = {.kind = XSP_ACCOUNT_OFF};
	uint64_t start, end;
	int rc = 0;

	xsp_timeline_window(a->timeline, &start, &end);
	for (size_t i = 0; i < a->threads.count && a->by_samples && rc == 0; i++) {
		struct account_thread *th = &a->threads.rows[i];
		const uint64_t off = end - start > th->ns ? end - start - th->ns : 0;
		th->ns += off;
		rc = add(a, th, &cell, (int64_t)off, 0, false);
	}
	return rc;
}

/* In a span the time is exact, and samples say only on which lines of Python it was spent, where the span does not. */
static int add_line(struct xsp_account *a, struct account_thread *th, const struct xsp_sample *s)
{
	const struct account_cell cell = {.kind = XSP_ACCOUNT_SPAN,
					  .sampled = true,
					  .place = s->own_place,
					  .callee = s->span};

	return s->span != 0 && s->own_place != 0 ? add(a, th, &cell, 0, 1, s->in_step) : 0;
}

/* Shares out the time in no span. */
static int on_sample(void *ctx, const struct xsp_sample *s)
{
	struct xsp_account *a = ctx;
	struct account_thread *th = thread_of(a, s->pid, s->tid);
	struct account_cell cell = {.kind = XSP_ACCOUNT_CPU, .sampled = true};

	if (th == NULL)
		return a->threads.tally.error;
	if (s->tid != s->pid && !s->beyond && !s->ends_early)
		vote(th, routine_of(a, s->path, s->path_length, false));
	if (s->in_span && !a->by_samples) {
		const int rc =
			account_count_callers(a, th, s->own_place, &s->callers, s->period_ns);
		return rc == 0 ? add_line(a, th, s) : rc;
	}
	cell.paused = !xsp_timeline_recorded(a->timeline, s->time_ns, s->time_ns);
	place_of(a, s, &cell);
	cell.why = why_dear(a, s, &cell);
	int rc = a->by_samples ? add_sampled(a, th, s, cell.paused) : 0;
	if (rc == 0)
		rc = account_count_callers(a, th, cell.place, &s->callers, s->period_ns);
	if (rc < 0)
		return rc;
	return add(a, th, &cell, 0, 1, s->in_step);
}

/* ---- steps ---- */

/* Makes room for one more step. */
static void widen_slices(struct xsp_account *a, struct account_thread *th)
{
	const uint32_t thread = xsp_tally_index(&a->threads, th);

	th->slice = th->slice > 0 ? th->slice : 1;
	if (th->later <= th->slice * ACCOUNT_SLICES)
		return;
	th->slice *= 2;
	for (size_t i = 0; i < a->cells.count; i++) {
		struct account_slices *s = a->cells.rows[i].slices;
		if (s == NULL || a->cells.rows[i].thread != thread)
			continue;
		for (size_t k = 0; k < ACCOUNT_SLICES; k++)
			s->part[k] = 2 * k + 1 < ACCOUNT_SLICES
					     ? s->part[2 * k] + s->part[2 * k + 1]
					     : 0;
	}
}

static int put_slice(struct account_cell *c, const struct account_thread *th)
{
	if (c->slices == NULL && (c->slices = calloc(1, sizeof(*c->slices))) == NULL)
		return -ENOMEM;
	c->slices->part[(th->later - 1) / th->slice] +=
		c->sampled ? (double)c->now_count : (double)c->now_ns;
	return 0;
}

static void count_step(struct account_cell *c, int64_t ns, uint64_t count, uint64_t step)
{
	const uint64_t distance = step - c->last_step;

	if (c->last_step != 0 && step > c->last_step && (c->period == 0 || distance < c->period))
		c->period = distance;
	c->last_step = step;
	c->step_ns = account_sum(c->step_ns, ns);
	c->step_count += count;
	c->steps++;
	if (ns > (int64_t)c->longest_ns)
		c->longest_ns = (uint64_t)ns;
}

/* Adds what the thread did in the current step: to its counted steps, or to what the end decides about. */
static int end_step(struct xsp_account *a, struct account_thread *th, bool first, bool counts)
{
	int rc = 0;

	for (size_t i = 0; i < th->touched.count; i++) {
		struct account_cell *c = &a->cells.rows[th->touched.rows[i]];
		if (first && rc == 0)
			rc = XSP_PUT(&th->first, (struct account_part){.cell = th->touched.rows[i],
								       .step = th->first_steps,
								       .ns = c->now_ns,
								       .count = c->now_count});
		if (counts && rc == 0)
			rc = put_slice(c, th);
		if (counts)
			count_step(c, c->now_ns, c->now_count, th->ended);
		c->now_ns = 0;
		c->now_count = 0;
		c->touched = false;
	}
	th->first_steps += first;
	th->touched.count = 0;
	return rc;
}

static void judge_first(struct xsp_account *a, struct account_thread *th, bool counts)
{
	for (size_t i = 0; i < th->first.count && counts; i++) {
		const struct account_part *p = &th->first.rows[i];
		if (p->step == th->judged)
			count_step(&a->cells.rows[p->cell], p->ns, p->count, 0);
	}
	th->judged++;
}

static void forget_steps(struct xsp_account *a)
{
	for (size_t i = 0; i < a->cells.count; i++) {
		struct account_cell *c = &a->cells.rows[i];
		c->step_ns = c->now_ns = 0;
		c->step_count = c->now_count = c->steps = c->longest_ns = 0;
		c->last_step = c->period = 0;
		free(c->slices);
		c->slices = NULL;
		c->touched = false;
	}
	for (size_t i = 0; i < a->threads.count; i++) {
		struct account_thread *th = &a->threads.rows[i];
		th->touched.count = th->first.count = 0;
		th->first_steps = th->judged = 0;
		th->steps = th->ended = th->later = th->slice = 0;
	}
}

static int on_step(void *ctx, const struct xsp_step *step)
{
	struct xsp_account *a = ctx;
	const bool counts = step->news == XSP_STEP_COUNTS;
	int rc = 0;

	if (step->news == XSP_STEP_FORGET)
		forget_steps(a);
	if (step->news == XSP_STEP_FORGET || step->news == XSP_STEP_UNFOLLOWED)
		return 0;
	struct account_thread *th = thread_of(a, step->pid, step->tid);
	if (th == NULL)
		return a->threads.tally.error;
	th->ended += step->news == XSP_STEP_ENDED;
	th->later += step->news == XSP_STEP_ENDED && !step->first;
	widen_slices(a, th);
	if (step->news == XSP_STEP_ENDED)
		rc = end_step(a, th, step->first, !step->first);
	else if (!counts && step->news != XSP_STEP_WARM_UP)
		rc = end_step(a, th, false, false);
	else if (step->first)
		judge_first(a, th, counts);
	th->steps += counts;
	return rc;
}

struct xsp_timeline_sink xsp_account_sink(struct xsp_account *a)
{
	return (struct xsp_timeline_sink){.ctx = a,
					  .charge = on_charge,
					  .sample = on_sample,
					  .step = a->by_samples ? NULL : on_step};
}
