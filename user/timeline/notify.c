/* SPDX-License-Identifier: BSD-2-Clause */
/* notify.c - hands the kept part to the sinks. */
#include "timeline/timeline_private.h"

/* Calls each sink that wants it; `rc` is the last one's value. */
#define NOTIFY(t, member, ...)                                                                     \
	do {                                                                                       \
		for (size_t i = 0; i < (t)->sink_count && rc >= 0; i++)                            \
			if ((t)->sinks[i].member != NULL)                                          \
				rc = (t)->sinks[i].member((t)->sinks[i].ctx, __VA_ARGS__);         \
		rc = rc < 0 ? rc : 0;                                                              \
	} while (0)

static bool goes_beyond(const struct xsp_timeline *t, uint64_t start_ns, uint64_t end_ns)
{
	return start_ns < t->cut.from_ns || end_ns > t->cut.to_ns;
}

static struct xsp_span clipped(const struct xsp_timeline *t, const struct xsp_span *span)
{
	struct xsp_span s = *span;

	s.flags |= XSP_SPAN_CUT;
	s.start_ns = xsp_timeline_clip(t, s.start_ns);
	s.end_ns = xsp_timeline_clip(t, s.end_ns);
	s.probe_ns = s.self_probe_ns = 0; /* nobody knows them for a part */
	return s;
}

int xsp_notify_step(const struct xsp_timeline *t, const struct xsp_step *step)
{
	int rc = 0;

	NOTIFY(t, step, step);
	return rc;
}

int xsp_notify_in_step(const struct xsp_timeline *t, const struct xsp_span *span, uint32_t thread)
{
	int rc = 0;

	if (span->left_out == 0)
		NOTIFY(t, in_step, span, thread);
	return rc;
}

int xsp_notify_span(struct xsp_timeline *t, const struct xsp_span *span)
{
	struct xsp_span cut;
	int rc = 0;

	if (span->left_out != 0)
		return 0;
	if (goes_beyond(t, span->start_ns, span->end_ns)) {
		cut = clipped(t, span);
		span = &cut;
	}
	t->counts.clipped += (span->flags & XSP_SPAN_CUT) != 0;
	NOTIFY(t, span, span);
	return rc;
}

int xsp_notify_call(const struct xsp_timeline *t, const struct xsp_gpu_call *call)
{
	struct xsp_gpu_call part = *call;
	struct xsp_span span;
	int rc = 0;

	if (call->span != NULL ? call->span->left_out != 0
			       : xsp_cut_time(t, call->start_ns, call->end_ns) != 0 ||
					 xsp_cut_thread(t, call->tid) != 0 ||
					 xsp_cut_leaves_call_out(t, call->name))
		return 0;
	part.cut = goes_beyond(t, call->start_ns, call->end_ns);
	if (part.cut && call->span != NULL) {
		span = clipped(t, call->span);
		part.span = &span;
	}
	part.start_ns = xsp_timeline_clip(t, call->start_ns);
	part.end_ns = xsp_timeline_clip(t, call->end_ns);
	NOTIFY(t, call, &part);
	return rc;
}

int xsp_notify_activity(const struct xsp_timeline *t, const struct xsp_gpu_activity *a,
			bool *reported)
{
	struct xsp_gpu_activity part = *a;
	int rc = 0;

	*reported = !a->left_out && (a->bad || xsp_cut_time(t, a->start_ns, a->end_ns) == 0);
	if (!*reported)
		return 0;
	if (a->bad) {
		NOTIFY(t, untimed, a);
		return rc;
	}
	part.cut = goes_beyond(t, a->start_ns, a->end_ns);
	part.start_ns = xsp_timeline_clip(t, a->start_ns);
	part.end_ns = xsp_timeline_clip(t, a->end_ns);
	NOTIFY(t, gpu, &part);
	return rc;
}

int xsp_notify_memory(const struct xsp_timeline *t, const struct xsp_memory_event *e)
{
	int rc = 0;

	if (!e->left_out && xsp_cut_time(t, e->time_ns, e->time_ns) == 0)
		NOTIFY(t, memory, e);
	return rc;
}

int xsp_notify_process_memory(const struct xsp_timeline *t, const struct xsp_process_memory_at *at)
{
	int rc = 0;

	if (!xsp_cut_chooses(t) && xsp_cut_time(t, at->time_ns, at->time_ns) == 0)
		NOTIFY(t, process_memory, at);
	return rc;
}

int xsp_notify_value(struct xsp_timeline *t, uint32_t probe, const struct xsp_value *v)
{
	int rc = 0;

	if (xsp_cut_time(t, v->time_ns, v->time_ns) != 0 || xsp_cut_thread(t, v->tid) != 0 ||
	    (xsp_cut_name(t, probe, v->name) & XSP_NAME_LEFT_OUT))
		return 0;
	t->counts.values++;
	NOTIFY(t, value, v);
	return rc;
}

int xsp_notify_charge(const struct xsp_timeline *t, const struct xsp_charge *c)
{
	int rc = 0;

	NOTIFY(t, charge, c);
	return rc;
}

int xsp_notify_sample(const struct xsp_timeline *t, const struct xsp_sample *s)
{
	int rc = 0;

	if (xsp_cut_time(t, s->time_ns, s->time_ns) == 0 && xsp_cut_thread(t, s->tid) == 0)
		NOTIFY(t, sample, s);
	return rc;
}

int xsp_notify_wait(const struct xsp_timeline *t, struct xsp_wait *w, bool *reported)
{
	int rc = 0;

	*reported = xsp_cut_time(t, w->left_ns, w->back_ns) == 0 && xsp_cut_thread(t, w->tid) == 0;
	if (!*reported)
		return 0;
	if (w->left_ns < t->cut.from_ns) {
		w->flags |= XSP_WAIT_BEFORE;
		w->short_ns = 0;
	}
	if (w->back_ns > t->cut.to_ns)
		w->flags |= XSP_WAIT_OPEN;
	w->left_ns = xsp_timeline_clip(t, w->left_ns);
	w->woken_ns = xsp_timeline_clip(t, w->woken_ns);
	w->back_ns = xsp_timeline_clip(t, w->back_ns);
	NOTIFY(t, wait, w);
	return rc;
}
