/* SPDX-License-Identifier: BSD-2-Clause */
#include "page/timeline/tracks.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "base/text.h"
#include "catalog/job_variables.h"
#include "model/rows/counters.h"
#include "model/rows/memory_track.h"
#include "model/rows/states.h"
#include "model/run_stats.h"
#include "page/timeline/track.h"
#include "timeline/gpu_category.h"

#define DEVICES_NUMBERED 16U /* GPUs of a host that get numbers in advance */
#define ARROWS 65536U /* a block with more shows none; `view` shows them for a range */

static const enum xsp_lane_kind lane_kinds[XSP_TRACK_KINDS] = {
	[XSP_TRACK_SPANS] = XSP_LANE_NESTED,	[XSP_TRACK_STATES] = XSP_LANE_NESTED,
	[XSP_TRACK_STREAM] = XSP_LANE_PARALLEL, [XSP_TRACK_COUNTER] = XSP_LANE_COUNTER,
	[XSP_TRACK_SAMPLES] = XSP_LANE_NESTED,
};

/* ---- life ---- */

int xsp_tracks_new(size_t cells, const struct xsp_view_job *job, struct xsp_tracks **out)
{
	struct xsp_tracks *t = calloc(1, sizeof(*t));

	*out = NULL;
	if (t == NULL)
		return -ENOMEM;
	t->view.job = job;
	t->from_ns = INT64_MAX;
	t->to_ns = INT64_MIN;
	int rc = xsp_levels_new(cells, &t->levels);
	if (rc == 0)
		rc = xsp_arguments_new(&t->arguments);
	if (rc < 0) {
		xsp_tracks_free(t);
		return rc;
	}
	*out = t;
	return 0;
}

void xsp_tracks_free(struct xsp_tracks *t)
{
	if (t == NULL)
		return;
	for (size_t i = 0; i < t->count; i++)
		free(t->list[i].lanes);
	xsp_view_clear(&t->view);
	xsp_fwdbwd_free(t->fwdbwd);
	xsp_thread_rows_free(t->rows);
	xsp_levels_free(t->levels);
	xsp_arguments_free(t->arguments);
	xsp_texts_free(&t->texts);
	xsp_arena_free(&t->arena);
	xsp_u64map_free(&t->others);
	free(t->list);
	free(t->arrows);
	free(t->by_row);
	free(t);
}

static int64_t page_time(const struct xsp_tracks *t, uint64_t ns)
{
	return (int64_t)(ns - t->origin_ns);
}

/* ---- tracks and lanes ---- */

static int add_track(struct xsp_tracks *t, const struct xsp_track *what)
{
	if (xsp_grow(&t->list, &t->capacity, t->count + 1) < 0)
		return -ENOMEM;
	t->list[t->count] = *what;
	t->list[t->count].number = (uint32_t)t->count;
	t->count++;
	return 0;
}

/* The lane at that depth. */
static int lane_at(struct xsp_tracks *t, struct xsp_track *track, size_t depth, size_t *lane)
{
	if (xsp_grow(&track->lanes, &track->depth_capacity, depth + 1) < 0)
		return -ENOMEM;
	while (track->depth <= depth)
		track->lanes[track->depth++] = 0;
	if (track->lanes[depth] == 0) {
		const long added = xsp_levels_lane(t->levels, lane_kinds[track->kind]);
		if (added < 0)
			return -ENOMEM;
		track->lanes[depth] = (size_t)added + 1;
	}
	*lane = track->lanes[depth] - 1;
	return 0;
}

static int put_span(struct xsp_tracks *t, struct xsp_track *track, size_t depth, uint64_t start_ns,
		    uint64_t end_ns, uint32_t name, uint32_t arguments)
{
	size_t lane;
	int rc = lane_at(t, track, depth, &lane);

	track->spans++;
	return rc < 0 ? rc
		      : xsp_levels_span(t->levels, lane, page_time(t, start_ns),
					page_time(t, end_ns), name, arguments);
}

static int put_value(struct xsp_tracks *t, struct xsp_track *track, uint64_t ns, double value)
{
	size_t lane;
	int rc = lane_at(t, track, 0, &lane);

	track->spans++;
	return rc < 0 ? rc : xsp_levels_value(t->levels, lane, page_time(t, ns), value);
}

static struct xsp_track of_thread(const struct xsp_thread_row *row, enum xsp_track_kind kind)
{
	return (struct xsp_track){.kind = kind,
				  .pid = row->pid,
				  .tid = row->thread_tid,
				  .root_pid = row->root_pid,
				  .root_tid = row->root_tid};
}

/* The track of a row, made at the first call; NULL: out of memory. */
static struct xsp_track *track_of(struct xsp_tracks *t, const struct xsp_thread_row *row)
{
	const bool states = row->number == XSP_STATES_ROW;
	struct xsp_track new = of_thread(row, states ? XSP_TRACK_STATES : XSP_TRACK_SPANS);

	new.row = states ? 0 : row->number;
	if (xsp_grow(&t->by_row, &t->row_capacity, (size_t)row->index + 1) < 0)
		return NULL;
	while (t->row_count <= row->index)
		t->by_row[t->row_count++] = 0;
	if (t->by_row[row->index] == 0) {
		if (add_track(t, &new) < 0)
			return NULL;
		t->by_row[row->index] = t->count;
	}
	return &t->list[t->by_row[row->index] - 1];
}

/* The track of a stream, a counter, or a thread's samples. */
static struct xsp_track *other_track(struct xsp_tracks *t, uint64_t key,
				     const struct xsp_track *new, const char *name)
{
	const uint32_t *at = xsp_u64map_get(&t->others, key);

	if (at != NULL)
		return &t->list[*at];
	if (xsp_u64map_set(&t->others, key, (uint32_t)t->count) < 0 || add_track(t, new) < 0)
		return NULL;
	struct xsp_track *track = &t->list[t->count - 1];
	track->name = xsp_arena_copy(&t->arena, name, strlen(name));
	return track->name != NULL ? track : NULL;
}

static int put_arrow(struct xsp_tracks *t, const struct xsp_thread_row *from, uint64_t from_ns,
		     const struct xsp_track *to, uint64_t to_ns)
{
	if (from == NULL)
		return -ENOMEM;
	if (t->arrow_count == ARROWS || t->arrows_left_out > 0) {
		t->arrows_left_out += t->arrow_count + 1;
		t->arrow_count = t->first_arrow = 0;
		return 0;
	}
	return XSP_APPEND(t->arrows, t->arrow_capacity, t->arrow_count,
			  (struct xsp_arrow){.from = from->index,
					     .to = to->number,
					     .from_ns = page_time(t, from_ns),
					     .to_ns = page_time(t, to_ns)});
}

/* By now it is known which rows have tracks. Drops the arrows that come from a row without one. */
static void end_arrows(struct xsp_tracks *t)
{
	size_t kept = t->first_arrow;

	for (size_t i = kept; i < t->arrow_count; i++) {
		struct xsp_arrow a = t->arrows[i];
		if (a.from >= t->row_count || t->by_row[a.from] == 0)
			continue;
		a.from = (uint32_t)t->by_row[a.from] - 1;
		t->arrows[kept++] = a;
	}
	t->arrow_count = kept;
}

/* ---- spans and states ---- */

static int put_point(struct xsp_tracks *t, uint32_t pid, uint32_t tid, const char *name,
		     enum xsp_unit unit, uint64_t ns, double value);

struct reading {
	struct xsp_tracks *tracks;
	const struct xsp_span *span;
};

/* A counter that shared its hardware counted only some of the time. */
static int on_reading(void *ctx, const char *name, const struct xsp_perf_value *begin,
		      const struct xsp_perf_value *end)
{
	const struct reading *r = ctx;
	const struct xsp_span *s = r->span;

	if (begin->running_ns < begin->enabled_ns || end->running_ns < end->enabled_ns)
		return 0;
	int rc = put_point(r->tracks, s->pid, s->tid, name, XSP_UNIT_PER_SECOND, s->start_ns,
			   (double)begin->counter);
	return rc < 0 ? rc
		      : put_point(r->tracks, s->pid, s->tid, name, XSP_UNIT_PER_SECOND, s->end_ns,
				  (double)end->counter);
}

static int on_span(void *ctx, const struct xsp_span *span)
{
	struct xsp_tracks *t = ctx;
	const struct xsp_thread_row *row = xsp_thread_rows_get(t->rows, span);
	struct xsp_track *track = row != NULL ? track_of(t, row) : NULL;
	struct xsp_fwdbwd_operator from;
	uint32_t arguments;
	int rc = xsp_arguments_span(t->arguments, span, &arguments);

	if (track == NULL)
		return -ENOMEM;
	if (rc == 0)
		rc = put_span(t, track, span->depth, span->start_ns, span->end_ns, span->name,
			      arguments);
	if (rc == 0 && span->details != NULL)
		rc = xsp_fwdbwd_span(&t->fwdbwd, t->view.timeline, row, span, &from);
	if (rc == 1)
		rc = put_arrow(t, from.row, from.start_ns, track, span->start_ns);
	return rc == 0 && span->details != NULL ? xsp_counter_readings(&t->view, span, on_reading,
								       &(struct reading){t, span})
						: rc;
}

static int put_state(void *ctx, struct xsp_thread_row *row, const struct xsp_state_slice *s)
{
	struct xsp_tracks *t = ctx;
	struct xsp_track *track = track_of(t, row);
	char text[XSP_STATE_TEXT];
	uint32_t name, arguments;

	if (track == NULL)
		return -ENOMEM;
	xsp_state_text(s, text);
	int rc = xsp_texts_number(&t->texts, text, &name);
	if (rc == 0)
		rc = xsp_arguments_state(t->arguments, s, &arguments);
	return rc < 0 ? rc
		      : put_span(t, track, 0, s->start_ns, s->end_ns, name | XSP_TRACK_TEXT,
				 arguments);
}

static int on_wait(void *ctx, const struct xsp_wait *w)
{
	struct xsp_tracks *t = ctx;
	struct xsp_thread_row *row = xsp_thread_rows_of(t->rows, w->pid, w->tid, XSP_STATES_ROW);
	const struct xsp_timeline_thread *waker =
		w->waker != w->tid ? xsp_timeline_thread(t->view.timeline, w->waker) : NULL;
	int rc = row != NULL ? xsp_states_wait(t->view.timeline, row, w, put_state, t) : -ENOMEM;

	if (rc <= 0 || w->waker == 0 || waker == NULL || (w->flags & XSP_WAIT_OPEN))
		return rc < 0 ? rc : 0;
	struct xsp_track *track = track_of(t, row);
	return track == NULL ? -ENOMEM
			     : put_arrow(t,
					 xsp_thread_rows_of(t->rows, waker->pid, waker->tid,
							    XSP_STATES_ROW),
					 w->woken_ns, track, w->back_ns);
}

/* Shows a sample as a moment: where the thread was. */
static int on_sample(void *ctx, const struct xsp_sample *s)
{
	struct xsp_tracks *t = ctx;
	const struct xsp_thread_row *row = xsp_thread_rows_of(t->rows, s->pid, s->tid, 0);

	if (row == NULL)
		return -ENOMEM;
	const struct xsp_track new = of_thread(row, XSP_TRACK_SAMPLES);
	struct xsp_track *track =
		other_track(t, xsp_u64_mix(~((uint64_t)s->pid << 32 | s->tid)), &new, "samples");
	uint32_t arguments;
	int rc = xsp_arguments_sample(t->arguments, s, &arguments);

	if (track == NULL)
		return -ENOMEM;
	return rc < 0 ? rc
		      : put_span(t, track, 0, s->time_ns, s->time_ns,
				 s->path[s->path_length - 1] & ~XSP_PATH_FRAME, arguments);
}

/* ---- GPU ---- */

static int on_activity(void *ctx, const struct xsp_gpu_activity *a)
{
	struct xsp_tracks *t = ctx;
	const bool waits = xsp_gpu_is_wait(a), overhead = a->kind == XSP_GPU_IS_OVERHEAD;
	const bool stream = a->stream != XSP_GPU_NO_ID;
	const struct xsp_track new = {.kind = XSP_TRACK_STREAM,
				      .pid = a->device,
				      .tid = stream ? a->stream : 0,
				      .row = overhead ? 2 : waits,
				      .root_pid = a->pid};
	const uint64_t key = xsp_u64_mix((uint64_t)a->pid << 32 | a->device) +
			     ((uint64_t)a->stream << 2 | new.row);
	char buffer[XSP_GPU_NAME_SIZE], name[48];
	uint64_t start_ns = a->start_ns, end_ns = a->end_ns;
	uint32_t number, arguments;

	if (a->kind == XSP_GPU_IS_EVENT) { /* a moment */
		start_ns = end_ns = ((const struct xsp_gpu_cuda_event *)a->record)->device_ns;
		if (start_ns == 0)
			return 0;
	}
	if (overhead)
		snprintf(name, sizeof(name), "CUPTI overhead");
	else if (!stream)
		snprintf(name, sizeof(name), "context (sync)");
	else
		snprintf(name, sizeof(name), "stream %u%s", a->stream, waits ? " (sync)" : "");
	struct xsp_track *track = other_track(t, xsp_u64_mix(key), &new, name);
	if (track == NULL)
		return -ENOMEM;
	int rc = xsp_texts_number(&t->texts, xsp_gpu_activity_name(a, buffer), &number);
	if (rc == 0)
		rc = xsp_arguments_activity(t->arguments, a, &arguments);
	if (rc == 0 && a->arrow != 0)
		rc = put_arrow(t, xsp_thread_rows_of(t->rows, a->pid, a->call_tid, a->call_row),
			       a->call_ns, track, start_ns);
	/* annotations lie around what was launched in them */
	return rc < 0 ? rc
		      : put_span(t, track, a->kind != XSP_GPU_IS_ANNOTATION, start_ns, end_ns,
				 number | XSP_TRACK_TEXT, arguments);
}

/* ---- counters ---- */

static int put_point(struct xsp_tracks *t, uint32_t pid, uint32_t tid, const char *name,
		     enum xsp_unit unit, uint64_t ns, double value)
{
	const bool rate = unit == XSP_UNIT_PER_SECOND;
	const struct xsp_thread_row *row = xsp_thread_rows_of(t->rows, pid, tid, 0);
	const uint64_t key =
		xsp_u64_mix(xsp_text_hash(name, strlen(name)) + rate) + ((uint64_t)tid << 32 | pid);

	if (row == NULL)
		return -ENOMEM;
	struct xsp_track new = of_thread(row, XSP_TRACK_COUNTER);
	new.unit = unit;
	new.rate = rate;
	struct xsp_track *track = other_track(t, xsp_u64_mix(key) | 1ULL << 63, &new, name);
	return track == NULL ? -ENOMEM : put_value(t, track, ns, value);
}

static int put_counter(struct xsp_tracks *t, uint32_t pid, const char *name, enum xsp_unit unit,
		       uint64_t ns, double value)
{
	return put_point(t, pid, pid, name, unit, ns, value);
}

static int on_process_memory(void *ctx, const struct xsp_process_memory_at *at)
{
	const struct xsp_tracks *t = ctx;

	if (xsp_memory_is_over(&t->view, at))
		return 0;
	int rc = put_counter(ctx, at->pid, "resident memory", XSP_UNIT_BYTES, at->time_ns,
			     (double)at->memory.resident);
	return rc < 0 ? rc
		      : put_counter(ctx, at->pid, "anonymous memory", XSP_UNIT_BYTES, at->time_ns,
				    (double)at->memory.anonymous);
}

static int on_memory(void *ctx, const struct xsp_memory_event *e)
{
	struct xsp_tracks *t = ctx;
	char name[XSP_MEMORY_TRACK];

	if (!xsp_memory_track(&t->view, e, name))
		return 0;
	return put_counter(t, e->pid, name, XSP_UNIT_BYTES, e->time_ns, (double)e->total);
}

static int on_value(void *ctx, const struct xsp_value *v)
{
	struct xsp_tracks *t = ctx;

	if (!isfinite(v->value)) {
		t->no_numbers++;
		return 0;
	}
	return put_counter(t, v->pid, xsp_timeline_name(t->view.timeline, v->name), XSP_UNIT_NUMBER,
			   v->time_ns, v->value);
}

/* Calls with a span come as spans. */
static int on_call(void *ctx, const struct xsp_gpu_call *call)
{
	struct xsp_tracks *t = ctx;

	t->unseen_calls += call->span == NULL;
	return 0;
}

/* ---- a capture ---- */

static const struct xsp_timeline_sink listening = {
	.span = on_span,
	.call = on_call,
	.gpu = on_activity,
	.memory = on_memory,
	.process_memory = on_process_memory,
	.wait = on_wait,
	.sample = on_sample,
	.value = on_value,
};

/* For a job: several captures may use the same pid or device, and the first one that is seen keeps
 * its number. They are seen in the same order whatever the range, since `view` lays a range over
 * the whole. */
static int number_processes(struct xsp_tracks *t)
{
	const struct xsp_capture_process *all;
	const size_t count = xsp_capture_processes(t->view.reader, &all);

	for (size_t i = 0; i < count; i++)
		if (xsp_thread_rows_of(t->rows, all[i].pid, all[i].pid, 0) == NULL)
			return -ENOMEM;
	for (uint32_t device = 0; device < DEVICES_NUMBERED; device++)
		xsp_view_gpu(&t->view, device, 0);
	return 0;
}

int xsp_tracks_begin(struct xsp_tracks *t, struct xsp_capture_reader *reader,
		     struct xsp_timeline *timeline, uint64_t origin_ns,
		     struct xsp_timeline_sink *sink)
{
	uint64_t end_ns;

	t->view.reader = reader;
	t->view.timeline = timeline;
	xsp_arguments_begin(t->arguments, reader, timeline);
	t->origin_ns = origin_ns;
	t->first = t->count;
	t->first_arrow = t->arrow_count;
	t->row_count = 0;
	xsp_u64map_free(&t->others);
	t->others = (struct xsp_u64map){0};
	xsp_timeline_window(timeline, &t->start_ns, &end_ns);
	if (page_time(t, t->start_ns) < t->from_ns)
		t->from_ns = page_time(t, t->start_ns);
	if (page_time(t, end_ns) > t->to_ns)
		t->to_ns = page_time(t, end_ns);
	*sink = listening;
	sink->ctx = t;
	int rc = xsp_thread_rows_new(&t->view, &t->rows);
	return rc == 0 && t->view.job != NULL ? number_processes(t) : rc;
}

/* ---- after its run ---- */

static int copy(struct xsp_tracks *t, const char *text, const char **out)
{
	*out = xsp_arena_copy(&t->arena, text, strlen(text));
	return *out != NULL ? 0 : -ENOMEM;
}

static bool has_one_process(const struct xsp_tracks *t)
{
	const struct xsp_capture_process *all;
	const size_t count = xsp_capture_processes(t->view.reader, &all);
	size_t i = 0;

	while (i < count && all[i].pid == all[0].pid) /* exec defines a process again */
		i++;
	return i == count;
}

/* "rank 3 (host)" of a job, "rank 3 train.py" of a launcher's child, else its name. Returns the order of its tracks. */
static uint32_t name_process(const struct xsp_tracks *t, const struct xsp_track *track, char *out,
			     size_t size)
{
	const struct xsp_view_named *named = xsp_view_name(&t->view, track->root_pid);
	const struct xsp_capture_process *p =
		xsp_capture_process_of(t->view.reader, track->root_pid);
	char name[256];
	uint32_t rank;

	xsp_run_process_name(t->view.reader, track->root_pid, name, sizeof(name));
	if (named != NULL) {
		snprintf(out, size, "%s", named->name);
		return named->order;
	}
	if (p == NULL || !xsp_capture_variable_number(p, XSP_JOB_RANK, &rank)) {
		snprintf(out, size, "%s", name);
		return track->pid;
	}
	snprintf(out, size, "rank %" PRIu32 " %s", rank, name);
	return rank;
}

static int name_track(struct xsp_tracks *t, struct xsp_track *track)
{
	const struct xsp_view_named *named = xsp_view_name(&t->view, track->root_pid);
	const bool gpu = track->kind == XSP_TRACK_STREAM;
	char process[272], text[336];
	int rc = 0;

	track->order = name_process(t, track, process, sizeof(process));
	if (gpu && (named != NULL || has_one_process(t)))
		snprintf(text, sizeof(text), "GPU %u (%s)", track->pid, process);
	else if (gpu) /* its name tells it apart */
		snprintf(text, sizeof(text), "GPU %u (%s, process %u)", track->pid, process,
			 xsp_thread_rows_pid(t->rows, track->root_pid));
	else
		snprintf(text, sizeof(text), "%s", process);
	if (gpu)
		track->pid = xsp_view_gpu(&t->view, track->pid, track->root_pid);
	rc = copy(t, text, &track->process);
	snprintf(text, sizeof(text), "stack %u", track->row);
	if (rc == 0 && track->name == NULL)
		rc = copy(t, track->row > 0 ? text : "", &track->name);
	if (rc == 0)
		rc = copy(
			t,
			gpu || (track->kind == XSP_TRACK_COUNTER && !track->rate)
				? ""
				: xsp_thread_rows_comm(&t->view, track->root_pid, track->root_tid),
			&track->thread);
	return rc;
}

/* Replaces the timeline's names, which end with it, by the block's. */
static int name_cells(struct xsp_tracks *t, size_t lane)
{
	struct xsp_level_cell *cells;
	const size_t count = xsp_levels_cells(t->levels, lane, &cells);
	int rc = 0;

	for (size_t i = 0; i < count && rc == 0; i++) {
		const char *text = cells[i].name & XSP_TRACK_TEXT
					   ? NULL
					   : xsp_timeline_name(t->view.timeline, cells[i].name);
		uint32_t number = cells[i].name & ~XSP_TRACK_TEXT;
		if (!(cells[i].name & XSP_TRACK_TEXT))
			rc = xsp_texts_number(&t->texts, text != NULL ? text : "", &number);
		cells[i].name = number | XSP_TRACK_TEXT;
	}
	return rc;
}

int xsp_tracks_end(struct xsp_tracks *t)
{
	int rc = xsp_states_end(t->view.timeline, t->rows, put_state, t);

	end_arrows(t);
	for (size_t i = t->first; i < t->count && rc >= 0; i++) {
		struct xsp_track *track = &t->list[i];
		rc = name_track(t, track);
		for (size_t d = 0; d < track->depth && track->kind != XSP_TRACK_COUNTER && rc == 0;
		     d++)
			if (track->lanes[d] != 0)
				rc = name_cells(t, track->lanes[d] - 1);
	}
	xsp_arguments_end(t->arguments);
	xsp_fwdbwd_free(t->fwdbwd);
	t->fwdbwd = NULL;
	xsp_thread_rows_free(t->rows);
	t->rows = NULL;
	t->view.part++;
	return rc < 0 ? rc : t->view.error;
}
