/* SPDX-License-Identifier: BSD-2-Clause */
/* timeline.c - the run: every event of the capture once, through the rules, to the sinks. */
#include "capture/parts.h"
#include "timeline/timeline_private.h"

#include <stdlib.h>
#include <string.h>

/* The order of the calls. The first one decides which spans are CUDA calls. Memory events come
 * before memory itself, which takes part if there are any. */
static const struct xsp_listener *const listeners[] = {
	&xsp_listener_cuda,    &xsp_listener_kernels, &xsp_listener_memory_events,
	&xsp_listener_memory,  &xsp_listener_gpu,     &xsp_listener_waits,
	&xsp_listener_samples, &xsp_listener_values,  &xsp_listener_steps,
	&xsp_listener_charges,
};
#define LISTENERS (sizeof(listeners) / sizeof(listeners[0]))
_Static_assert(LISTENERS <= XSP_LISTENERS_MAX, "room for all");

static int begin_listeners(struct xsp_timeline *t)
{
	for (size_t i = 0; i < LISTENERS; i++) {
		if (t->live && !listeners[i]->live)
			continue;
		int rc = listeners[i]->begin(t);
		if (rc < 0)
			return rc;
		if (rc > 0)
			t->listeners[t->listener_count++] = listeners[i];
	}
	return 0;
}

static int notify_time(struct xsp_timeline *t, uint64_t ns)
{
	int rc = 0;

	for (size_t i = 0; i < t->listener_count && rc == 0; i++)
		if (t->listeners[i]->time != NULL)
			rc = t->listeners[i]->time(t, ns);
	return rc;
}

static int notify_event(struct xsp_timeline *t, const struct xsp_event *e)
{
	int rc = 0;

	for (size_t i = 0; i < t->listener_count && rc == 0; i++)
		if (t->listeners[i]->events >> e->kind & 1)
			rc = t->listeners[i]->event(t, e);
	return rc;
}

static int end_listeners(struct xsp_timeline *t)
{
	int rc = 0;

	for (size_t i = t->listener_count; i > 0 && rc == 0; i--)
		if (t->listeners[i - 1]->end != NULL)
			rc = t->listeners[i - 1]->end(t);
	return rc;
}

/* Kinds of events that open or close spans: what ran before one ran in what was open. */
#define OPEN_OR_CLOSE                                                                              \
	(1U << XSP_EVENT_ENTRY | 1U << XSP_EVENT_EXIT | 1U << XSP_EVENT_POINT |                    \
	 1U << XSP_EVENT_UNWIND | 1U << XSP_EVENT_BEGIN | 1U << XSP_EVENT_END)

static int charge(struct xsp_timeline *t, const struct thread *th, const struct xsp_event *e)
{
	const struct xsp_capture_probe *p = e->probe < t->probe_count ? &t->probes[e->probe] : NULL;
	const bool enters = e->kind == XSP_EVENT_ENTRY || e->kind == XSP_EVENT_BEGIN;

	if (!(OPEN_OR_CLOSE >> e->kind & 1))
		return 0;
	return xsp_charge_until(t, th, e->time_ns,
				p == NULL ? 0
				: enters  ? p->entry_cost_ns
					  : p->exit_cost_ns);
}

/* The capture's definitions; for one that is being written, those so far. */
static int load_definitions(struct xsp_timeline *t, struct xsp_error *err)
{
	uint64_t torn, chunks, events;

	t->probe_count = xsp_capture_probes(t->reader, &t->probes);
	xsp_capture_damage(t->reader, &torn, &chunks, &events);
	t->lossy = xsp_capture_events_lost(t->reader) + chunks > 0;
	int rc = xsp_names_begin(t, err);
	if (rc < 0)
		return rc;
	rc = xsp_threads_begin(t);
	if (rc == 0)
		rc = xsp_windows_begin(t);
	if (rc == 0 && !t->live) /* stacks of a capture that grows have no addresses that stay */
		rc = xsp_python_begin(t);
	if (rc == 0 && t->live) /* no listener, but waits in CUDA calls are the GPU's */
		rc = xsp_listener_cuda.begin(t);
	return rc < 0 ? xsp_error_set(err, rc, XSP_STATUS_FAILED, "out of memory") : 0;
}

static int new_timeline(struct xsp_capture_reader *r, bool live, struct xsp_timeline **out,
			struct xsp_error *err)
{
	*out = NULL;
	struct xsp_timeline *t = calloc(1, sizeof(*t));
	if (t == NULL)
		return xsp_out_of_memory(err);
	t->reader = r;
	t->cut.to_ns = UINT64_MAX;
	t->live = live;
	xsp_capture_window(r, &t->start_ns, &t->end_ns);
	uint32_t first, last;
	if (xsp_capture_parts(r, &first, &last) > 0 && first > 1)
		t->part_ns = t->start_ns;
	t->min_duration_ns = xsp_capture_number(r, "min duration ns");
	t->max_depth = xsp_capture_number(r, "max depth");
	int rc = load_definitions(t, err);
	if (rc == 0) {
		rc = begin_listeners(t);
		if (rc < 0)
			xsp_error_set(err, rc, XSP_STATUS_FAILED, "out of memory");
	}
	if (rc < 0) {
		xsp_timeline_free(t);
		return rc;
	}
	*out = t;
	return 0;
}

int xsp_timeline_new(struct xsp_capture_reader *r, struct xsp_timeline **out, struct xsp_error *err)
{
	return new_timeline(r, false, out, err);
}

int xsp_timeline_new_live(struct xsp_capture_reader *r, struct xsp_timeline **out,
			  struct xsp_error *err)
{
	return new_timeline(r, true, out, err);
}

const struct xsp_capture_reader *xsp_timeline_reader(const struct xsp_timeline *t)
{
	return t->reader;
}

void xsp_timeline_free(struct xsp_timeline *t)
{
	if (t == NULL)
		return;
	for (size_t i = LISTENERS; i > 0; i--)
		listeners[i - 1]->free(t);
	xsp_threads_free(t);
	xsp_others_free(t);
	xsp_python_free(t);
	xsp_cut_free(t);
	xsp_names_free(t);
	xsp_tally_free(&t->before);
	free(t->gone_ns);
	free(t->far_ends);
	free(t);
}

static int add_name(struct xsp_timeline *t, const struct xsp_event *e)
{
	const struct xsp_event_name *n = (const void *)e;
	return xsp_names_add(t, n->name_hash, (const char *)(n + 1), n->length,
			     e->flags & XSP_EVENT_NAME_CUT);
}

/* Of the GPU, or of a process as a whole. */
static bool has_no_thread(const struct xsp_event *e)
{
	return e->kind == XSP_EVENT_GPU || (e->kind == XSP_EVENT_MEMORY && e->probe == UINT32_MAX);
}

static int on_thread_event(struct xsp_timeline *t, const struct xsp_event *e)
{
	struct thread *th;
	int rc;

	if (e->kind == XSP_EVENT_TASK)
		return xsp_threads_task(t, e);
	if (e->kind == XSP_EVENT_TIMES) {
		struct xsp_event_times own;
		rc = xsp_times_of_part(t, &e, &own);
		return rc == 0 ? notify_event(t, e) : rc < 0 ? rc : 0;
	}
	if (has_no_thread(e))
		return notify_event(t, e);
	rc = xsp_threads_get(t, e, &th);
	if (rc == 0 && t->charges_wanted)
		rc = charge(t, th, e);
	if (rc == 0 && t->far_end_count > 0)
		rc = xsp_pair_far_ends(t, th, e->time_ns);
	if (rc == 0 && (t->window_count > 0 || t->let_go_count > 0))
		rc = xsp_windows_pass(t, th, e->time_ns);
	if (rc < 0)
		return rc;
	if (e->kind == XSP_EVENT_WAIT || e->kind == XSP_EVENT_SAMPLE ||
	    e->kind == XSP_EVENT_MEMORY || e->kind == XSP_EVENT_VALUE)
		return notify_event(t, e);
	if (xsp_windows_leave_out(t, e))
		return 0;
	return xsp_pair(t, th, e);
}

static int on_event(void *ctx, const struct xsp_event *e)
{
	struct xsp_timeline *t = ctx;
	const struct xsp_event *own = e;
	int rc = notify_time(t, e->time_ns);

	if (rc < 0)
		return rc;
	if (e->kind == XSP_EVENT_NAME)
		return add_name(t, e);
	const int others = has_no_thread(e) ? 0 : xsp_others_event(t, &e);
	if (others < 0 || others == XSP_OTHERS_DROP)
		return others < 0 ? others : 0;
	rc = on_thread_event(t, e);
	return rc == 0 && others == XSP_OTHERS_ROW ? xsp_others_done(t, own) : rc;
}

static void set_sinks(struct xsp_timeline *t, const struct xsp_timeline_sink *sinks, size_t count)
{
	t->sinks = sinks;
	t->sink_count = count;
	t->steps_wanted = t->places_wanted = false;
	for (size_t i = 0; i < count; i++) {
		t->steps_wanted = t->steps_wanted || sinks[i].step != NULL;
		t->places_wanted = t->places_wanted || sinks[i].charge != NULL;
	}
	t->charges_wanted = t->places_wanted && t->charges != NULL;
	t->steps_wanted = t->steps_wanted && xsp_timeline_steps_expected(t);
	t->steps_end = t->steps_wanted && xsp_timeline_steps_are_ends(t);
}

int xsp_timeline_run(struct xsp_timeline *t, const struct xsp_timeline_sink *sinks, size_t count,
		     struct xsp_error *err)
{
	set_sinks(t, sinks, count);
	t->counts = (struct xsp_timeline_counts){0};
	t->serial = 0;
	t->far_end_count = 0;
	int rc = xsp_capture_read_events(t->reader, on_event, t, err);
	if (rc == 0)
		rc = xsp_threads_end(t, t->end_ns);
	t->counts.exits -= t->far_end_count; /* their range's thread had ended before they came */
	if (rc == 0)
		rc = end_listeners(t);
	t->counts.names_unresolved = xsp_names_unresolved(t);
	if (rc < 0)
		xsp_error_set(err, rc, XSP_STATUS_FAILED, "the capture could not be read: %s",
			      strerror(-rc));
	set_sinks(t, NULL, 0);
	return rc;
}

static int on_definitions(void *ctx)
{
	return load_definitions(ctx, NULL);
}

int xsp_timeline_follow(struct xsp_timeline *t, const struct xsp_timeline_sink *sinks, size_t count,
			struct xsp_error *err)
{
	set_sinks(t, sinks, count);
	int rc = xsp_capture_follow(t->reader, on_definitions, on_event, t, err);
	set_sinks(t, NULL, 0);
	return rc;
}

/* Is the description wanted? A thread without one may need the capture's, and so may a process's
 * threads while it has any. */
static bool is_wanted(void *ctx, uint32_t pid, uint32_t tid)
{
	const struct xsp_timeline *t = ctx;
	const uint32_t *at = xsp_u64map_get(&t->record_of, tid != 0 ? tid : pid);

	return at == NULL || t->records[*at]->thread_info.pid != pid ||
	       (tid == 0 && xsp_u64map_get(&t->by_tid, pid) != NULL);
}

int xsp_timeline_forget(struct xsp_timeline *t)
{
	xsp_waits_forget(t);
	int rc = xsp_capture_forget(t->reader, is_wanted, t);
	return rc < 0 ? rc : xsp_threads_forget(t);
}

const struct xsp_timeline_counts *xsp_timeline_counts(const struct xsp_timeline *t)
{
	return &t->counts;
}
