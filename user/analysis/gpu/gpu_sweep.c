/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/gpu/gpu_sweep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/gpu/gpu_host.h"
#include "base/rows/grow.h"
#include "base/saturate.h"
#include "base/rows/tally.h"

/* Communication kernels that may still meet their counterparts on other devices. */
#define MEETINGS_MOST 64
#define MEMBERS_MOST 64

/* The order of entries at the same time. */
enum what { END, LAUNCH, START, END_AT_ONCE, WAIT_END };

struct moment {
	uint64_t ns;
	uint64_t other_ns; /* START: when it ends; others: when it started */
	uint64_t call_ns; /* START; for WAIT_END when the wait ended (`ns` may be later) */
	uint32_t device, stream; /* indices; WAIT_END: stream may be XSP_GPU_NOWHERE */
	uint32_t tid; /* START: the call's thread; WAIT_END: struct xsp_gpu_sync.what */
	uint32_t name;
	uint8_t what, class;
	bool queued; /* START */
};

/* One communication operation on several devices. */
struct meeting {
	uint32_t name, count, ended;
	uint64_t last_ns; /* start of the last kernel to join */
	struct {
		uint32_t device;
		uint64_t start_ns, end_ns; /* 0: still running */
	} members[MEMBERS_MOST];
};

struct xsp_gpu_sweep {
	const struct xsp_timeline *timeline;
	struct xsp_gpu_host *host;
	uint64_t window_from_ns, window_to_ns;
	struct moment *moments;
	size_t count, capacity;
	uint64_t reached_ns;
	XSP_TALLY(struct xsp_gpu_device_use) devices; /* by pid and device */
	XSP_TALLY(struct xsp_gpu_stream_use) streams; /* by a hash of device, context and stream */
	XSP_TALLY(struct xsp_gpu_wait_use) waits; /* by kind and name */
	struct meeting meetings[MEETINGS_MOST];
	size_t meeting_count;
	struct xsp_gpu_sweep_counts counts;
};

int xsp_gpu_sweep_new(const struct xsp_timeline *t, struct xsp_gpu_host *host,
		      struct xsp_gpu_sweep **out)
{
	*out = calloc(1, sizeof(**out));
	if (*out == NULL)
		return -ENOMEM;
	(*out)->timeline = t;
	(*out)->host = host;
	xsp_timeline_window(t, &(*out)->window_from_ns, &(*out)->window_to_ns);
	return 0;
}

void xsp_gpu_sweep_free(struct xsp_gpu_sweep *s)
{
	if (s == NULL)
		return;
	xsp_tally_free(&s->devices);
	xsp_tally_free(&s->streams);
	xsp_tally_free(&s->waits);
	free(s->moments);
	free(s);
}

/* ---- devices and streams ---- */

static int device_of(struct xsp_gpu_sweep *s, uint32_t pid, uint32_t device, uint32_t *out)
{
	const struct xsp_gpu_device_use *d =
		xsp_tally_row(&s->devices, (uint64_t)pid << 32 | device,
			      &(struct xsp_gpu_device_use){
				      .pid = pid, .device = device, .done = XSP_GPU_NOWHERE});

	if (d == NULL)
		return -ENOMEM;
	*out = xsp_tally_index(&s->devices, d);
	return 0;
}

static int stream_of(struct xsp_gpu_sweep *s, uint32_t device, uint32_t context, uint32_t stream,
		     uint32_t *out)
{
	uint64_t key = xsp_u64_mix((uint64_t)device << 32 | context) + stream;
	const struct xsp_gpu_stream_use *st;

	/* The key is a hash: the stream found may be another one. */
	while ((st = xsp_tally_find(&s->streams, key)) != NULL &&
	       (st->device != device || st->context != context || st->stream != stream))
		key++;
	if (st == NULL)
		st = xsp_tally_row(&s->streams, key,
				   &(struct xsp_gpu_stream_use){.device = device,
								.context = context,
								.stream = stream,
								.done = XSP_GPU_NOWHERE});
	if (st == NULL)
		return -ENOMEM;
	*out = xsp_tally_index(&s->streams, st);
	return 0;
}

/* ---- time passes ---- */

uint64_t xsp_gpu_use_window(uint64_t length, uint64_t window)
{
	return (uint64_t)(((unsigned __int128)window * length + XSP_GPU_USE_WINDOWS - 1) /
			  XSP_GPU_USE_WINDOWS);
}

static void fill_windows(const struct xsp_gpu_sweep *s, struct xsp_gpu_device_use *d, uint64_t from,
			 uint64_t to)
{
	const uint64_t length = s->window_to_ns - s->window_from_ns;

	if (s->window_to_ns <= s->window_from_ns)
		return;
	from = from < s->window_from_ns ? 0 : from - s->window_from_ns;
	to = to < s->window_from_ns ? 0 : to - s->window_from_ns;
	while (from < to && from < length) {
		const unsigned __int128 scaled = (unsigned __int128)from * XSP_GPU_USE_WINDOWS;
		const uint64_t window = (uint64_t)(scaled / length);
		const uint64_t edge = xsp_gpu_use_window(length, window + 1);
		const uint64_t until = edge < to ? edge : to;
		d->window_ns[window] += xsp_timeline_recorded_between(
			s->timeline, s->window_from_ns + from, s->window_from_ns + until);
		from = until;
	}
}

static unsigned running(const struct xsp_gpu_device_use *d)
{
	unsigned bits = 0;

	for (unsigned c = 0; c < XSP_GPU_CLASSES; c++)
		bits |= (unsigned)(d->running[c] > 0) << c;
	return bits;
}

/* Idle time is known only once something begins. */
static void pass_device(const struct xsp_gpu_sweep *s, struct xsp_gpu_device_use *d, uint64_t ns)
{
	const unsigned bits = running(d);

	if (bits != 0) {
		d->in_ns[bits] += ns - d->now_ns;
		d->recorded_busy_ns += xsp_timeline_recorded_between(s->timeline, d->now_ns, ns);
		fill_windows(s, d, d->now_ns, ns);
	}
	if (d->streams_running > 1)
		d->several_ns += ns - d->now_ns;
	d->now_ns = ns;
}

static void pass_stream(const struct xsp_gpu_sweep *s, struct xsp_gpu_stream_use *st, uint64_t ns)
{
	if (st->running > 0) {
		st->busy_ns += ns - st->now_ns;
		st->recorded_busy_ns += xsp_timeline_recorded_between(s->timeline, st->now_ns, ns);
	}
	if (st->queued >= XSP_GPU_QUEUE_MOST)
		st->full_ns += ns - st->now_ns;
	st->now_ns = ns;
}

/* ---- communication ---- */

static void end_meeting(struct xsp_gpu_sweep *s, size_t index)
{
	struct meeting *m = &s->meetings[index];

	for (uint32_t i = 0; i < m->count; i++) {
		struct xsp_gpu_device_use *d = &s->devices.rows[m->members[i].device];
		const uint64_t start = m->members[i].start_ns, end = m->members[i].end_ns;
		if (end == 0) { /* dropped: its end is not known */
			s->counts.pushed_out++;
			continue;
		}
		if (m->count == 1) {
			d->alone_ns += end - start;
			continue;
		}
		const uint64_t last = m->last_ns < end ? m->last_ns : end;
		d->arrival_ns += last - start;
		d->transfer_ns += end - last;
	}
	*m = s->meetings[--s->meeting_count];
}

static bool may_join(const struct meeting *m, const struct moment *at)
{
	if (m->name != at->name || m->ended > 0 || m->count == MEMBERS_MOST)
		return false;
	for (uint32_t i = 0; i < m->count; i++)
		if (m->members[i].device == at->device)
			return false;
	return true;
}

static void meet(struct xsp_gpu_sweep *s, const struct moment *at)
{
	size_t i = 0;

	while (i < s->meeting_count && !may_join(&s->meetings[i], at))
		i++;
	if (i == MEETINGS_MOST)
		end_meeting(s, --i);
	struct meeting *m = &s->meetings[i];
	if (i == s->meeting_count) {
		s->meeting_count++;
		m->name = at->name;
		m->count = m->ended = 0;
	}
	m->last_ns = at->ns;
	m->members[m->count].device = at->device;
	m->members[m->count].start_ns = at->ns;
	m->members[m->count++].end_ns = 0;
}

static void leave(struct xsp_gpu_sweep *s, const struct moment *at)
{
	for (size_t k = 0; k < s->meeting_count; k++) {
		struct meeting *m = &s->meetings[k];
		for (uint32_t i = 0; m->name == at->name && i < m->count; i++) {
			if (m->members[i].device != at->device ||
			    m->members[i].start_ns != at->other_ns || m->members[i].end_ns != 0)
				continue;
			m->members[i].end_ns = at->ns;
			if (++m->ended == m->count)
				end_meeting(s, k);
			return;
		}
	}
}

/* ---- moments ---- */

static int end_device_gap(struct xsp_gpu_sweep *s, struct xsp_gpu_device_use *d,
			  const struct moment *m)
{
	const uint64_t from = d->done_ns, length = m->ns - from;

	if (d->activities == 0 || running(d) != 0 || m->ns <= from)
		return 0;
	if (!xsp_timeline_recorded(s->timeline, from, m->ns)) {
		d->unrecorded_ns += length;
		return 0;
	}
	d->in_ns[0] += length;
	if (length > d->gap_ns) {
		d->gap_ns = length;
		d->gap_from_ns = from;
	}
	if (length >= XSP_GPU_LONG_GAP_NS) {
		d->long_gaps++;
		d->long_gap_ns += length;
	}
	if (m->call_ns <= from)
		return 0;
	const uint64_t until = m->call_ns < m->ns ? m->call_ns : m->ns;
	d->host_ns += until - from;
	return xsp_gpu_host_gap(s->host, m->tid, m->device, from, until);
}

static void end_stream_gap(const struct xsp_gpu_sweep *s, struct xsp_gpu_stream_use *st,
			   const struct moment *m)
{
	const uint64_t from = st->done_ns, length = m->ns - from;
	enum xsp_gpu_idle why = XSP_GPU_IDLE_OTHER;

	if (st->activities == 0 || st->running > 0 || m->ns <= from)
		return;
	if (!xsp_timeline_recorded(s->timeline, from, m->ns)) {
		st->unrecorded_ns += length;
		return;
	}
	if (m->call_ns == 0)
		why = XSP_GPU_IDLE_UNKNOWN;
	else if (m->call_ns > from)
		why = XSP_GPU_IDLE_HOST;
	else if (length < XSP_GPU_KERNEL_WAIT_NS)
		why = XSP_GPU_IDLE_KERNEL;
	st->gaps[why]++;
	st->idle_ns[why] += length;
}

static void queue(struct xsp_gpu_stream_use *st, int by)
{
	st->queued += by;
	st->queue_changes++;
	if (st->queued <= 0)
		return;
	st->queued_sum += (uint64_t)st->queued;
	if ((uint64_t)st->queued > st->queued_most)
		st->queued_most = (uint64_t)st->queued;
}

static int pass_start(struct xsp_gpu_sweep *s, const struct moment *m, struct xsp_gpu_device_use *d,
		      struct xsp_gpu_stream_use *st)
{
	const int rc = end_device_gap(s, d, m);

	if (rc < 0)
		return rc;
	end_stream_gap(s, st, m);
	if (d->activities++ == 0)
		d->first_ns = m->ns;
	if (st->activities++ == 0) {
		st->first_ns = m->ns;
		d->streams++;
	}
	xsp_add_saturated(&d->total_ns[m->class], m->other_ns - m->ns);
	xsp_add_saturated(&st->total_ns, m->other_ns - m->ns);
	d->running[m->class]++;
	d->streams_running += st->running++ == 0;
	if (m->class == XSP_GPU_FOR_COMMUNICATION)
		meet(s, m);
	return 0;
}

static void pass_end(struct xsp_gpu_sweep *s, const struct moment *m, struct xsp_gpu_device_use *d,
		     struct xsp_gpu_stream_use *st)
{
	d->running[m->class]--;
	d->streams_running -= --st->running == 0;
	d->last_ns = d->done_ns = m->ns;
	st->last_ns = st->done_ns = m->ns;
	d->done = st->done = m->name;
	if (m->class == XSP_GPU_FOR_COMMUNICATION)
		leave(s, m);
}

static int pass_wait(struct xsp_gpu_sweep *s, const struct moment *m)
{
	const struct xsp_gpu_device_use *d = &s->devices.rows[m->device];
	const struct xsp_gpu_stream_use *st =
		m->stream != XSP_GPU_NOWHERE ? &s->streams.rows[m->stream] : NULL;
	const uint64_t done_ns = st != NULL ? st->done_ns : d->done_ns;
	uint32_t name = st != NULL ? st->done : d->done;

	/* Nothing to wait for: it had ended when the wait began. Or it ended after the wait, and
	 * earlier work is no longer known. */
	if (done_ns < m->other_ns || done_ns > m->call_ns)
		name = XSP_GPU_NOWHERE;
	s->counts.late_waits += done_ns > m->call_ns;
	struct xsp_gpu_wait_use *w =
		xsp_tally_row(&s->waits, (uint64_t)m->tid << 32 | name,
			      &(struct xsp_gpu_wait_use){.what = m->tid, .name = name});
	if (w == NULL)
		return -ENOMEM;
	const uint64_t length = m->call_ns - m->other_ns;
	w->count++;
	xsp_add_saturated(&w->total_ns, length);
	w->most_ns = length > w->most_ns ? length : w->most_ns;
	return 0;
}

static int pass(struct xsp_gpu_sweep *s, const struct moment *m)
{
	struct xsp_gpu_device_use *d = &s->devices.rows[m->device];

	if (m->what == WAIT_END)
		return pass_wait(s, m);
	struct xsp_gpu_stream_use *st = &s->streams.rows[m->stream];
	pass_stream(s, st, m->ns);
	if (m->what == LAUNCH) {
		queue(st, 1);
		return 0;
	}
	pass_device(s, d, m->ns);
	if (m->what != START) {
		pass_end(s, m, d, st);
		return 0;
	}
	if (m->queued)
		queue(st, -1);
	return pass_start(s, m, d, st);
}

/* ---- input: held, sorted, processed ---- */

static XSP_ORDER(by_time, struct moment, XSP_RISING(ns) ?: XSP_RISING(what));

/* Idle time may still turn out to be the host's fault: gaps are known up to here. */
static uint64_t gaps_known_ns(const struct xsp_gpu_sweep *s)
{
	uint64_t ns = s->reached_ns;

	for (size_t i = 0; i < s->devices.count; i++) {
		const struct xsp_gpu_device_use *d = &s->devices.rows[i];
		if (d->activities > 0 && running(d) == 0 && d->done_ns < ns)
			ns = d->done_ns;
	}
	return ns;
}

static int pass_first(struct xsp_gpu_sweep *s, size_t count)
{
	int rc = 0;

	if (count == 0)
		return 0;
	XSP_SORT(s->moments, s->count, by_time);
	for (size_t i = 0; i < count && rc == 0; i++)
		rc = pass(s, &s->moments[i]);
	if (rc < 0)
		return rc;
	s->reached_ns = s->moments[count - 1].ns;
	s->count -= count;
	memmove(s->moments, s->moments + count, s->count * sizeof(*s->moments));
	return xsp_gpu_host_pass(s->host, gaps_known_ns(s));
}

static int hold(struct xsp_gpu_sweep *s, const struct moment *m)
{
	int rc = s->count >= XSP_GPU_HELD_MOST ? pass_first(s, s->count / 2) : 0;

	if (rc == 0)
		rc = XSP_APPEND(s->moments, s->capacity, s->count, *m);
	if (rc == 0 && m->ns < s->reached_ns)
		s->moments[s->count - 1].ns = s->reached_ns;
	return rc;
}

int xsp_gpu_sweep_work(struct xsp_gpu_sweep *s, const struct xsp_gpu_work *w, uint32_t *device)
{
	struct moment m = {.call_ns = w->call_ns,
			   .tid = w->call_tid,
			   .name = w->name,
			   .class = (uint8_t)w->class,
			   .queued = w->queued && w->call_ns != 0};
	uint64_t start_ns = w->start_ns;
	int rc = device_of(s, w->pid, w->device, &m.device);

	if (rc == 0)
		rc = stream_of(s, m.device, w->context, w->stream, &m.stream);
	if (rc < 0)
		return rc;
	*device = m.device;
	/* Room for all three entries: no entry is processed between them. */
	if (s->count + 3 > XSP_GPU_HELD_MOST)
		rc = pass_first(s, s->count / 2);
	if (start_ns < s->reached_ns) {
		s->counts.late++;
		s->counts.late_ns +=
			(w->end_ns < s->reached_ns ? w->end_ns : s->reached_ns) - start_ns;
		start_ns = s->reached_ns;
		if (w->end_ns <= start_ns)
			return rc;
	}
	m.ns = w->call_ns;
	m.what = LAUNCH;
	if (rc == 0 && m.queued)
		rc = hold(s, &m);
	m.ns = start_ns;
	m.other_ns = w->end_ns;
	m.what = START;
	if (rc == 0)
		rc = hold(s, &m);
	m.ns = w->end_ns;
	m.other_ns = start_ns;
	m.what = w->end_ns > start_ns ? END : END_AT_ONCE;
	return rc < 0 ? rc : hold(s, &m);
}

int xsp_gpu_sweep_place(struct xsp_gpu_sweep *s, const struct xsp_gpu_activity *a, uint32_t *device,
			uint32_t *stream)
{
	const int rc = device_of(s, a->pid, a->device, device);

	*stream = XSP_GPU_NOWHERE;
	return rc == 0 && a->stream != XSP_GPU_NO_ID
		       ? stream_of(s, *device, a->context, a->stream, stream)
		       : rc;
}

int xsp_gpu_sweep_wait(struct xsp_gpu_sweep *s, const struct xsp_gpu_activity *sync)
{
	const struct xsp_gpu_sync *record = sync->record;
	struct moment m = {.ns = sync->end_ns,
			   .other_ns = sync->start_ns,
			   .call_ns = sync->end_ns,
			   .tid = record->what,
			   .what = WAIT_END};
	const int rc = xsp_gpu_sweep_place(s, sync, &m.device, &m.stream);

	return rc < 0 ? rc : hold(s, &m);
}

int xsp_gpu_sweep_end(struct xsp_gpu_sweep *s)
{
	const int rc = pass_first(s, s->count);

	for (size_t i = 0; i < s->devices.count; i++) {
		struct xsp_gpu_device_use *d = &s->devices.rows[i];
		d->recorded_ns =
			xsp_timeline_recorded_between(s->timeline, d->first_ns, d->last_ns);
	}
	for (size_t i = 0; i < s->streams.count; i++) {
		struct xsp_gpu_stream_use *st = &s->streams.rows[i];
		st->recorded_ns =
			xsp_timeline_recorded_between(s->timeline, st->first_ns, st->last_ns);
	}
	return rc < 0 ? rc : xsp_gpu_host_pass(s->host, UINT64_MAX);
}

/* ---- results ---- */

XSP_TALLY_ROWS(xsp_gpu_sweep_devices, xsp_gpu_sweep, xsp_gpu_device_use, devices);

XSP_TALLY_ROWS(xsp_gpu_sweep_streams, xsp_gpu_sweep, xsp_gpu_stream_use, streams);

XSP_TALLY_ROWS(xsp_gpu_sweep_waits, xsp_gpu_sweep, xsp_gpu_wait_use, waits);

const struct xsp_gpu_sweep_counts *xsp_gpu_sweep_counts(const struct xsp_gpu_sweep *s)
{
	return &s->counts;
}

uint64_t xsp_gpu_device_ns(const struct xsp_gpu_device_use *d, unsigned with, unsigned without)
{
	uint64_t sum = 0;

	for (unsigned bits = 1; bits < 1U << XSP_GPU_CLASSES; bits++)
		sum += (bits & with) != 0 && (bits & without) == 0 ? d->in_ns[bits] : 0;
	return sum;
}
