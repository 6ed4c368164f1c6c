/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/compare/series.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/compare/series_calls.h"
#include "analysis/names/step_shares.h"
#include "base/arena.h"
#include "base/rows/grow.h"
#include "base/rows/order.h"
#include "base/rows/tally.h"
#include "base/text.h"
#include "base/rows/u64map.h"
#include "timeline/python.h"
#include "timeline/waits.h"

#define MAX_PLACES 4096U /* places whose memory is followed */
#define NOT_KNOWN UINT32_MAX

struct xsp_series_share {
	uint32_t step, calls;
	uint64_t self_ns, cpu_ns;
};

struct step {
	uint64_t start_ns, length_ns, outside_ns;
	uint32_t rank; /* by time of beginning */
};

/* Rows of one kind. */
struct rows {
	XSP_TALLY(struct xsp_series_row) named; /* by hash of the name */
	struct xsp_u64map known; /* the timeline's id → index; NOT_KNOWN: no row */
};

/* One process's share of a kind of memory. */
struct holding {
	uint64_t bytes, peak; /* peak: the kernel's own figure */
	uint32_t memory; /* index */
};

struct xsp_series {
	struct xsp_timeline *timeline;
	struct xsp_arena texts;
	struct xsp_step_shares *in_steps; /* by twice the row; by one more: the time on a CPU */
	/* by thread: ready without a CPU since its last call ended */
	XSP_TALLY(struct ready { uint64_t ns; }) ready;
	double ready_share;
	struct rows rows[XSP_SERIES_KINDS];
	uint64_t from_ns, to_ns, recorded_ns;
	struct step kept[XSP_SERIES_STEPS];
	size_t kept_count;
	uint64_t step_count, stride;
	uint64_t steps_in[XSP_SERIES_PIECES];
	XSP_TALLY(struct xsp_series_memory) memory; /* by hash of the name */
	size_t places;
	uint64_t places_left_out;
	struct xsp_u64map place_of; /* the timeline's site → index; NOT_KNOWN: not followed */
	XSP_TALLY(struct holding) holdings;
};

int xsp_series_new(struct xsp_timeline *t, struct xsp_series **out)
{
	struct xsp_series *s = calloc(1, sizeof(*s));

	*out = s;
	if (s == NULL)
		return -ENOMEM;
	s->timeline = t;
	s->stride = 1;
	xsp_timeline_window(t, &s->from_ns, &s->to_ns);
	s->recorded_ns = xsp_timeline_recorded_ns(t);
	if (xsp_step_shares_new(&s->in_steps) < 0) {
		xsp_series_free(s);
		*out = NULL;
		return -ENOMEM;
	}
	return 0;
}

static void free_row(struct xsp_series_row *row)
{
	xsp_series_calls_free(row);
	free(row->shares);
}

void xsp_series_free(struct xsp_series *s)
{
	if (s == NULL)
		return;
	for (size_t kind = 0; kind < XSP_SERIES_KINDS; kind++) {
		struct rows *rows = &s->rows[kind];
		for (size_t i = 0; i < rows->named.count; i++)
			free_row(&rows->named.rows[i]);
		xsp_tally_free(&rows->named);
		xsp_u64map_free(&rows->known);
	}
	xsp_step_shares_free(s->in_steps);
	xsp_tally_free(&s->ready);
	xsp_tally_free(&s->memory);
	xsp_u64map_free(&s->place_of);
	xsp_tally_free(&s->holdings);
	xsp_arena_free(&s->texts);
	free(s);
}

/* Time in pieces: 2.5 is the middle of the third one. */
static double position(const struct xsp_series *s, uint64_t ns)
{
	if (ns <= s->from_ns || s->to_ns <= s->from_ns)
		return 0;
	return (double)(ns - s->from_ns) / (double)(s->to_ns - s->from_ns) * XSP_SERIES_PIECES;
}

static unsigned piece_at(const struct xsp_series *s, uint64_t ns)
{
	const double at = position(s, ns);
	return at < XSP_SERIES_PIECES ? (unsigned)at : XSP_SERIES_PIECES - 1;
}

/* ---- rows ---- */

/* Finds or makes the row of a text: its first `length` bytes, followed by `end`. */
static int row_named(struct xsp_series *s, struct rows *rows, const char *text, size_t length,
		     const char *end, uint32_t *out)
{
	char *name = xsp_arena_alloc(&s->texts, length + strlen(end) + 1);

	if (name == NULL)
		return -ENOMEM;
	memcpy(name, text, length);
	memcpy(name + length, end, strlen(end) + 1);
	const uint64_t hash = xsp_text_hash(name, strlen(name));
	const struct xsp_series_row *row = xsp_tally_row(
		&rows->named, hash, &(struct xsp_series_row){.name = name, .hash = hash});
	if (row == NULL)
		return -ENOMEM;
	*out = xsp_tally_index(&rows->named, row);
	return 0;
}

/* Finds a row by key. Only an unknown key calls `find`, which may find that there is no row. */
static int row_known(struct xsp_series *s, enum xsp_series_kind kind, uint64_t key,
		     const void *what,
		     int (*find)(struct xsp_series *s, const void *what, uint32_t *row),
		     uint32_t *row)
{
	const uint32_t *at = xsp_u64map_get(&s->rows[kind].known, key);

	*row = at != NULL ? *at : NOT_KNOWN;
	if (at != NULL)
		return 0;
	int rc = find(s, what, row);
	return rc < 0 ? rc : xsp_u64map_set(&s->rows[kind].known, key, *row);
}

double xsp_series_ready_share(const struct xsp_series *s)
{
	return s->ready_share;
}

/* ---- spans ---- */

static int find_operator(struct xsp_series *s, const void *what, uint32_t *row)
{
	const char *name = xsp_timeline_name(s->timeline, *(const xsp_name_id *)what);
	const size_t stem = xsp_timeline_step_stem(s->timeline, name);

	return row_named(s, &s->rows[XSP_SERIES_OPERATOR], name, stem > 0 ? stem : strlen(name),
			 stem > 0 ? "*" : "", row);
}

static int operator_of(struct xsp_series *s, const struct xsp_span *span, uint32_t *row)
{
	return row_known(s, XSP_SERIES_OPERATOR, span->name, &span->name, find_operator, row);
}

static int find_line(struct xsp_series *s, const void *what, uint32_t *row)
{
	const struct xsp_span *span = what;
	struct xsp_python_line line;
	char text[XSP_PYTHON_LINE_MAX];

	if (!xsp_timeline_python_line(s->timeline, &span->python->frames[span->python_first],
				      &line))
		return 0;
	xsp_python_line_show(&line, text);
	return row_named(s, &s->rows[XSP_SERIES_LINE], text, strlen(text), "", row);
}

static int find_module(struct xsp_series *s, const void *what, uint32_t *row)
{
	const struct xsp_span *span = what;
	struct xsp_python_module names;
	char path[2048] = "";

	xsp_timeline_python_module(s->timeline, span->python, span->python_first, &names);
	if (names.count == 0)
		return 0;
	for (uint32_t i = 0; i < names.count; i++)
		xsp_join(path, sizeof(path), ".", "%s", names.names[i]);
	return row_named(s, &s->rows[XSP_SERIES_MODULE], path, strlen(path), "", row);
}

static int count_in_row(struct xsp_series *s, enum xsp_series_kind kind, uint32_t row,
			const struct xsp_span *span, uint64_t ready_ns, bool called)
{
	if (row == NOT_KNOWN)
		return 0;
	struct xsp_series_row *r = &s->rows[kind].named.rows[row];
	r->calls += called;
	r->ready_ns += ready_ns;
	return xsp_span_has_duration(span) && !(span->flags & XSP_SPAN_CUT)
		       ? xsp_series_calls_add(r, piece_at(s, span->end_ns), span->self_ns,
					      span->self_cpu_ns)
		       : 0;
}

/* The innermost call has it: the next one of the thread to end, mostly. */
static int on_wait(void *ctx, const struct xsp_wait *w)
{
	struct xsp_series *s = ctx;
	const uint64_t from_ns = w->why == XSP_WAIT_RUNNABLE ? w->left_ns : w->woken_ns;
	struct ready *r;

	/* woken_ns 0: not known */
	if ((w->flags & XSP_WAIT_SHORT) || !w->in_span || from_ns < w->left_ns ||
	    w->back_ns <= from_ns)
		return 0;
	r = xsp_tally_row(&s->ready, w->tid, &(struct ready){0});
	if (r == NULL)
		return -ENOMEM;
	r->ns += w->back_ns - from_ns;
	return 0;
}

static uint64_t take_ready(struct xsp_series *s, uint32_t tid)
{
	struct ready *r = xsp_tally_find(&s->ready, tid);
	const uint64_t ns = r != NULL ? r->ns : 0;

	if (r != NULL)
		r->ns = 0;
	return ns;
}

static int on_span(void *ctx, const struct xsp_span *span)
{
	struct xsp_series *s = ctx;
	const uint64_t ready = take_ready(s, span->tid);
	uint32_t row;
	int rc = operator_of(s, span, &row);

	if (rc == 0)
		rc = count_in_row(s, XSP_SERIES_OPERATOR, row, span, ready, true);
	if (rc < 0 || span->python == NULL || span->python_first >= span->python->count)
		return rc;
	rc = row_known(s, XSP_SERIES_LINE, span->python->frames[span->python_first].name, span,
		       find_line, &row);
	if (rc == 0)
		rc = count_in_row(s, XSP_SERIES_LINE, row, span, ready, span->python_calls);
	if (rc == 0)
		rc = row_known(s, XSP_SERIES_MODULE,
			       xsp_u64_mix(span->python->id) + span->python_first, span,
			       find_module, &row);
	return rc < 0 ? rc
		      : count_in_row(s, XSP_SERIES_MODULE, row, span, ready, span->python_calls);
}

static int find_kernel(struct xsp_series *s, const void *what, uint32_t *row)
{
	return row_named(s, &s->rows[XSP_SERIES_KERNEL], what, strlen(what), "", row);
}

static int on_activity(void *ctx, const struct xsp_gpu_activity *a)
{
	struct xsp_series *s = ctx;
	uint32_t row;

	if (a->kind != XSP_GPU_IS_KERNEL)
		return 0;
	int rc = row_known(s, XSP_SERIES_KERNEL, (uintptr_t)a->name, a->name, find_kernel, &row);
	if (rc < 0)
		return rc;
	struct xsp_series_row *r = &s->rows[XSP_SERIES_KERNEL].named.rows[row];
	r->device = r->calls == 0 || r->device == a->device ? a->device : XSP_SERIES_DEVICES;
	r->calls++;
	return a->cut ? 0
		      : xsp_series_calls_add(r, piece_at(s, a->end_ns), a->end_ns - a->start_ns,
					     XSP_CPU_UNKNOWN);
}

/* ---- steps ---- */

static int on_span_in_step(void *ctx, const struct xsp_span *span, uint32_t thread)
{
	struct xsp_series *s = ctx;
	uint32_t row;
	int rc = operator_of(s, span, &row);

	if (rc == 0)
		rc = xsp_step_shares_add(s->in_steps, span, thread, 2 * row, span->self_ns);
	return rc < 0 ? rc
		      : xsp_step_shares_add(s->in_steps, span, thread, 2 * row + 1,
					    span->self_cpu_ns != XSP_CPU_UNKNOWN ? span->self_cpu_ns
										 : span->self_ns);
}

static void keep_every_second(struct xsp_series *s)
{
	struct rows *rows = &s->rows[XSP_SERIES_OPERATOR];

	for (size_t i = 0; i < s->kept_count; i += 2)
		s->kept[i / 2] = s->kept[i];
	s->kept_count = (s->kept_count + 1) / 2;
	s->stride *= 2;
	for (size_t i = 0; i < rows->named.count; i++) {
		struct xsp_series_row *row = &rows->named.rows[i];
		size_t left = 0;
		for (size_t k = 0; k < row->share_count; k++) {
			if (row->shares[k].step % 2 != 0)
				continue;
			row->shares[left] = row->shares[k];
			row->shares[left++].step /= 2;
		}
		row->share_count = left;
	}
}

static void forget_steps(struct xsp_series *s)
{
	struct rows *rows = &s->rows[XSP_SERIES_OPERATOR];

	for (size_t i = 0; i < rows->named.count; i++)
		rows->named.rows[i].share_count = 0;
	memset(s->steps_in, 0, sizeof(s->steps_in));
	s->kept_count = s->step_count = 0;
	s->stride = 1;
}

/* The calls of the step that is kept next; *inside_ns: their time. */
static int keep_shares(struct xsp_series *s, const struct xsp_step_share *shares, size_t count,
		       uint64_t *inside_ns)
{
	struct rows *rows = &s->rows[XSP_SERIES_OPERATOR];
	const uint32_t step = (uint32_t)s->kept_count;

	for (size_t i = 0; i < count; i++) {
		const struct xsp_step_share *share = &shares[i];
		struct xsp_series_row *row = &rows->named.rows[share->key / 2];
		if (share->key % 2 != 0)
			continue;
		if (XSP_APPEND(row->shares, row->share_capacity, row->share_count,
			       (struct xsp_series_share){.step = step,
							 .calls = (uint32_t)share->calls,
							 .self_ns = share->ns}) < 0)
			return -ENOMEM;
		*inside_ns += share->ns;
	}
	for (size_t i = 0; i < count; i++) {
		struct xsp_series_row *row = &rows->named.rows[shares[i].key / 2];
		if (shares[i].key % 2 != 0 && row->share_count > 0 &&
		    row->shares[row->share_count - 1].step == step)
			row->shares[row->share_count - 1].cpu_ns = shares[i].ns;
	}
	return 0;
}

static int on_step(void *ctx, const struct xsp_step *step)
{
	struct xsp_series *s = ctx;
	const struct xsp_step_share *shares;
	uint64_t inside = 0;
	size_t count;
	int rc = xsp_step_shares_step(s->in_steps, step, &shares, &count);

	if (step->news == XSP_STEP_FORGET)
		forget_steps(s);
	if (rc < 0 || step->news != XSP_STEP_COUNTS)
		return rc;
	s->steps_in[piece_at(s, step->end_ns)]++;
	if (s->step_count++ % s->stride != 0)
		return 0;
	if (s->kept_count == XSP_SERIES_STEPS) {
		keep_every_second(s);
		if ((s->step_count - 1) % s->stride != 0)
			return 0;
	}
	rc = keep_shares(s, shares, count, &inside);
	if (rc < 0)
		return rc;
	const uint64_t length = step->end_ns - step->start_ns;
	s->kept[s->kept_count++] =
		(struct step){.start_ns = step->start_ns,
			      .length_ns = length,
			      .outside_ns = length > inside ? length - inside : 0};
	return 0;
}

static XSP_ORDER_POINTERS(by_start, struct step, XSP_RISING(start_ns) ?: XSP_COMPARE(x, y));

static void rank_steps(struct xsp_series *s)
{
	struct step *sorted[XSP_SERIES_STEPS];

	for (size_t i = 0; i < s->kept_count; i++)
		sorted[i] = &s->kept[i];
	if (s->kept_count > 0)
		XSP_SORT(sorted, s->kept_count, by_start);
	for (size_t i = 0; i < s->kept_count; i++)
		sorted[i]->rank = (uint32_t)i;
}

uint64_t xsp_series_step_count(const struct xsp_series *s)
{
	return s->step_count;
}

double xsp_series_steps_until(const struct xsp_series *s, double at)
{
	double steps = 0;

	for (unsigned i = 0; i < XSP_SERIES_PIECES && i < at; i++)
		steps += (double)s->steps_in[i] * (at - i < 1 ? at - i : 1);
	return steps;
}

size_t xsp_series_steps(const struct xsp_series *s, double *ns)
{
	for (size_t i = 0; i < s->kept_count; i++)
		ns[s->kept[i].rank] = (double)s->kept[i].length_ns;
	return s->kept_count;
}

void xsp_series_shares(const struct xsp_series *s, const struct xsp_series_row *row, bool on_cpu,
		       double *ns, double *calls)
{
	for (size_t i = 0; i < s->kept_count; i++) {
		ns[s->kept[i].rank] = row == NULL ? (double)s->kept[i].outside_ns : 0;
		if (calls != NULL)
			calls[s->kept[i].rank] = 0;
	}
	for (size_t i = 0; row != NULL && i < row->share_count; i++) {
		const struct xsp_series_share *share = &row->shares[i];
		const uint32_t rank = s->kept[share->step].rank;
		ns[rank] = (double)(on_cpu ? share->cpu_ns : share->self_ns);
		if (calls != NULL)
			calls[rank] = share->calls;
	}
}

/* ---- memory ---- */

static int memory_named(struct xsp_series *s, const char *name, bool place, uint32_t *out)
{
	const uint64_t hash = xsp_text_hash(name, strlen(name)) + place;
	struct xsp_series_memory *m = xsp_tally_find(&s->memory, hash);

	*out = NOT_KNOWN;
	if (m == NULL && place && s->places == MAX_PLACES) {
		s->places_left_out++;
		return 0;
	}
	if (m == NULL) {
		const char *copy = xsp_arena_copy(&s->texts, name, strlen(name));
		const struct xsp_series_memory new = {
			.name = copy, .hash = hash, .place = place, .first = XSP_SERIES_PIECES};
		if (copy == NULL || (m = xsp_tally_row(&s->memory, hash, &new)) == NULL)
			return -ENOMEM;
		s->places += place;
	}
	*out = xsp_tally_index(&s->memory, m);
	return 0;
}

static void set_level(const struct xsp_series *s, struct xsp_series_memory *m, uint64_t ns,
		      uint64_t level)
{
	const uint32_t piece = piece_at(s, ns);

	if (m->first == XSP_SERIES_PIECES) { /* its first level */
		m->first = m->piece = piece;
		m->least_at[piece] = position(s, ns);
		m->period = XSP_SERIES_PIECES;
	} else {
		m->period = fmin(m->period, position(s, ns) - m->level_at);
	}
	while (m->piece < piece) {
		m->piece++;
		m->most[m->piece] = m->least[m->piece] = m->level;
		m->least_at[m->piece] =
			m->looked_at ? fmax(m->level_at, m->piece - m->period) : m->piece;
	}
	if (level > m->level && level >= m->most[m->piece])
		m->rose[m->piece] = true;
	m->level = level;
	m->level_at = position(s, ns);
	m->peak = level > m->peak ? level : m->peak;
	m->most[m->piece] = level > m->most[m->piece] ? level : m->most[m->piece];
	if (level <= m->least[m->piece]) {
		m->least[m->piece] = level;
		m->least_at[m->piece] = m->level_at;
	}
}

/* Only a new key needs its name. */
static int hold(struct xsp_series *s, uint64_t key, const char *name, uint64_t ns, uint64_t bytes,
		bool looked_at)
{
	struct holding *h = xsp_tally_find(&s->holdings, key);

	if (h == NULL) {
		struct holding new = {.bytes = 0};
		if (memory_named(s, name, false, &new.memory) < 0 ||
		    (h = xsp_tally_row(&s->holdings, key, &new)) == NULL)
			return -ENOMEM;
	}
	struct xsp_series_memory *m = &s->memory.rows[h->memory];
	m->looked_at = looked_at;
	const uint64_t before = h->bytes;
	h->bytes = bytes;
	set_level(s, m, ns, m->level - before + bytes);
	return 0;
}

static int on_process_memory(void *ctx, const struct xsp_process_memory_at *at)
{
	struct xsp_series *s = ctx;
	const uint64_t key = xsp_u64_mix(at->pid);
	int rc = hold(s, key, "resident memory", at->time_ns, at->memory.resident, true);

	if (rc < 0)
		return rc;
	struct holding *h = xsp_tally_find(&s->holdings, key);
	struct xsp_series_memory *m = &s->memory.rows[h->memory];
	const uint64_t most = m->level - h->bytes + at->memory.peak;
	/* the kernel saw a new peak since the last look: it adds to the other processes' memory */
	if (h->peak != 0 && at->memory.peak > h->peak && most > m->peak)
		m->peak = most;
	h->peak = at->memory.peak;
	return 0;
}

/* "aten::empty at train.py:21 train_step" */
static int name_place(struct xsp_series *s, uint32_t index, uint32_t *out)
{
	const struct xsp_memory_site *sites;
	char *text = NULL;

	*out = NOT_KNOWN;
	if (index >= xsp_timeline_memory_sites(s->timeline, &sites))
		return 0;
	const struct xsp_memory_site *site = &sites[index];
	const char *span = site->in_span ? xsp_timeline_name(s->timeline, site->span) : "no span";
	const size_t stem = xsp_timeline_step_stem(s->timeline, span);
	if (asprintf(&text, "%.*s%s%s%s", (int)(stem > 0 ? stem : strlen(span)), span,
		     stem > 0 ? "*" : "", site->place != 0 ? " at " : "",
		     site->place != 0 ? xsp_timeline_name(s->timeline, site->place - 1) : "") < 0)
		return -ENOMEM;
	int rc = memory_named(s, text, true, out);
	free(text);
	return rc;
}

static int find_place(struct xsp_series *s, uint32_t index, uint32_t *out)
{
	const uint32_t *at = xsp_u64map_get(&s->place_of, index);

	*out = at != NULL ? *at : NOT_KNOWN;
	if (at != NULL)
		return 0;
	int rc = name_place(s, index, out);
	return rc < 0 ? rc : xsp_u64map_set(&s->place_of, index, *out);
}

static int on_memory(void *ctx, const struct xsp_memory_event *e)
{
	static const char *const names[] = {
		[XSP_MEMORY_GPU] = "GPU memory",
		[XSP_MEMORY_PINNED] = "pinned host memory",
		[XSP_MEMORY_TORCH] = "PyTorch's memory",
		[XSP_MEMORY_HEAP] = "heap (estimated)",
	};
	struct xsp_series *s = ctx;
	const uint64_t key = xsp_u64_mix((uint64_t)e->pid << 32 | e->device) +
			     (uint64_t)e->pool * 256 + e->device_type + 1;
	char name[80];
	uint32_t place;

	snprintf(name, sizeof(name), "%s%s", names[e->pool],
		 e->pool == XSP_MEMORY_TORCH && e->device_type != 0 ? " of a device" : "");
	int rc = hold(s, key, name, e->time_ns, e->total, false);
	if (rc == 0 && e->site != 0)
		rc = find_place(s, e->site - 1, &place);
	if (rc < 0 || e->site == 0 || place == NOT_KNOWN)
		return rc;
	struct xsp_series_memory *m = &s->memory.rows[place];
	set_level(s, m, e->time_ns, m->level + (uint64_t)e->bytes);
	return 0;
}

/* ---- the run and its end ---- */

struct xsp_timeline_sink xsp_series_sink(struct xsp_series *s)
{
	return (struct xsp_timeline_sink){
		.ctx = s,
		.span = on_span,
		.step = on_step,
		.in_step = on_span_in_step,
		.gpu = on_activity,
		.memory = on_memory,
		.process_memory = on_process_memory,
		.wait = on_wait,
	};
}

static double ready_share(const struct xsp_timeline *t)
{
	const struct xsp_thread_times *times;
	const size_t n = xsp_timeline_times(t, &times);
	double running = 0, ready = 0;

	for (size_t i = 0; i < n; i++) {
		running += (double)times[i].running_ns;
		ready += (double)times[i].runnable_ns;
	}
	return ready > 0 ? ready / (running + ready) : 0;
}

void xsp_series_end(struct xsp_series *s)
{
	rank_steps(s);
	s->ready_share = ready_share(s->timeline);
	for (size_t i = 0; i < s->memory.count; i++)
		if (s->memory.rows[i].first < XSP_SERIES_PIECES)
			set_level(s, &s->memory.rows[i], s->to_ns, s->memory.rows[i].level);
	s->timeline = NULL;
}

size_t xsp_series_rows(const struct xsp_series *s, enum xsp_series_kind kind,
		       const struct xsp_series_row **rows)
{
	*rows = s->rows[kind].named.rows;
	return s->rows[kind].named.count;
}

size_t xsp_series_memory(const struct xsp_series *s, const struct xsp_series_memory **memory)
{
	*memory = s->memory.rows;
	return s->memory.count;
}

uint64_t xsp_series_places_left_out(const struct xsp_series *s)
{
	return s->places_left_out;
}

uint64_t xsp_series_recorded_ns(const struct xsp_series *s)
{
	return s->recorded_ns;
}
