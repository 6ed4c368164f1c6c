/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perfetto.c - Perfetto's own format (perfetto.dev, protos/perfetto/trace): TrackEvents whose names
 * are written once. It shows spans and thread states. File size and opening time are a tenth of the
 * Chrome trace's.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/wait_reasons.h"
#include "export/export_private.h"
#include "export/out.h"
#include "export/protobuf.h"
#include "export/text.h"
#include "model/rows/nested.h"
#include "model/rows/states.h"
#include "model/run_stats.h"

/* Field numbers of the messages. */
enum { TRACE_PACKET = 1 };
enum {
	PACKET_CLOCKS = 6,
	PACKET_TIME = 8,
	PACKET_SEQUENCE = 10,
	PACKET_EVENT = 11,
	PACKET_INTERNED = 12,
	PACKET_FLAGS = 13,
	PACKET_DEFAULTS = 59,
	PACKET_CLOCK = 58,
	PACKET_TRACK = 60
};
enum { FLAG_CLEARED = 1, FLAG_NEEDS_STATE = 2 };
enum { CLOCKS_CLOCK = 1, CLOCKS_PRIMARY = 2, CLOCK_ID = 1, CLOCK_TIME = 2 };
enum { REALTIME_CLOCK = 1, MONOTONIC_CLOCK = 3 };
enum { DEFAULTS_CLOCK = 58 };
enum { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PROCESS = 3, TRACK_THREAD = 4, TRACK_PARENT = 5 };
enum { PROCESS_PID = 1, PROCESS_NAME = 6 };
enum { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum {
	EVENT_CATEGORY = 3,
	EVENT_ANNOTATION = 4,
	EVENT_TYPE = 9,
	EVENT_NAME = 10,
	EVENT_TRACK = 11
};
enum { TYPE_BEGIN = 1, TYPE_END = 2 };
enum { INTERNED_CATEGORIES = 1, INTERNED_NAMES = 2, INTERNED_ID = 1, INTERNED_TEXT = 2 };
enum { ANNOTATION_TRUTH = 2, ANNOTATION_NAME = 10 };

#define SEQUENCE 1 /* all packets belong to one sequence */
#define ROW_TRACKS (1ULL << 32) /* track ids: a row's index + this; for a process its pid */
#define STATE_CATEGORY (XSP_CATEGORIES_MAX + 1U)
/* Numbers for names of states, above those of spans. */
#define STATE_NAMES (1U << 31)
#define BLOCKED_NAMES (STATE_NAMES + XSP_STATES) /* + enum xsp_wait_class */
#define INTERNED_AT_ONCE 16384U /* bytes of names in a packet */

struct perfetto {
	struct xsp_nested spans; /* states too */
	struct xsp_message packet, event, inner;
	uint64_t start_ns, track; /* start of the recording; track of the current row */
};

static int perfetto_begin(struct xsp_export *x)
{
	struct perfetto *p = x->state;
	uint64_t end_ns;

	p->spans.cuts = true;
	xsp_timeline_window(x->view.timeline, &p->start_ns, &end_ns);
	return xsp_nested_init(&p->spans, &x->view, x->options.path);
}

static int perfetto_span(struct xsp_export *x, const struct xsp_span *span)
{
	return xsp_nested_span(&((struct perfetto *)x->state)->spans, span);
}

static int add_state(void *ctx, struct xsp_thread_row *row, const struct xsp_state_slice *s)
{
	struct xsp_export *x = ctx;
	struct perfetto *p = x->state;
	const struct xsp_ordered_span o = {
		.start_ns = s->start_ns,
		.end_ns = s->end_ns,
		.name = s->state == XSP_STATE_BLOCKED ? BLOCKED_NAMES + (uint32_t)s->wait->why
						      : STATE_NAMES + (uint32_t)s->state,
	};

	return xsp_ordered_add(p->spans.spans, row->index, &o, false);
}

static int perfetto_wait(struct xsp_export *x, const struct xsp_wait *w)
{
	struct perfetto *p = x->state;
	struct xsp_thread_row *row =
		xsp_thread_rows_of(p->spans.rows, w->pid, w->tid, XSP_STATES_ROW);

	if (row == NULL)
		return -ENOMEM;
	int rc = xsp_states_wait(x->view.timeline, row, w, add_state, x);
	return rc < 0 ? rc : 0;
}

static void perfetto_discard(struct xsp_export *x)
{
	struct perfetto *p = x->state;

	xsp_nested_clear(&p->spans);
	xsp_message_free(&p->packet);
	xsp_message_free(&p->event);
	xsp_message_free(&p->inner);
}

/* ---- packets ---- */

static void put_packet(struct xsp_export *x)
{
	struct perfetto *p = x->state;

	xsp_message_number(&p->packet, PACKET_SEQUENCE, SEQUENCE);
	xsp_message_put(&p->event, TRACE_PACKET, &p->packet);
	if (p->event.failed)
		xsp_out_fail(x->out, -ENOMEM);
	xsp_out_write(x->out, p->event.data, p->event.length);
	xsp_message_clear(&p->event);
}

static void put_clock(struct perfetto *p, uint64_t clock, uint64_t ns)
{
	xsp_message_number(&p->inner, CLOCK_ID, clock);
	xsp_message_number(&p->inner, CLOCK_TIME, ns);
	xsp_message_put(&p->event, CLOCKS_CLOCK, &p->inner);
}

/* Says that times are CLOCK_MONOTONIC, and what real time was then. */
static void put_head(struct xsp_export *x)
{
	struct perfetto *p = x->state;

	put_clock(p, MONOTONIC_CLOCK, p->start_ns);
	put_clock(p, REALTIME_CLOCK, xsp_capture_realtime(x->view.reader, p->start_ns));
	xsp_message_number(&p->event, CLOCKS_PRIMARY, MONOTONIC_CLOCK);
	xsp_message_put(&p->packet, PACKET_CLOCKS, &p->event);
	xsp_message_number(&p->inner, DEFAULTS_CLOCK, MONOTONIC_CLOCK);
	xsp_message_put(&p->packet, PACKET_DEFAULTS, &p->inner);
	xsp_message_number(&p->packet, PACKET_FLAGS, FLAG_CLEARED);
	put_packet(x);
}

/* ---- names ---- */

static void flush_interned(struct xsp_export *x, size_t least)
{
	struct perfetto *p = x->state;

	if (p->event.length <= least)
		return;
	xsp_message_put(&p->packet, PACKET_INTERNED, &p->event);
	xsp_message_number(&p->packet, PACKET_FLAGS, FLAG_NEEDS_STATE);
	put_packet(x);
}

/* Numbers begin with 1: 0 means none. */
static void intern(struct xsp_export *x, unsigned field, uint64_t number, const char *text)
{
	struct perfetto *p = x->state;

	xsp_message_number(&p->inner, INTERNED_ID, number + 1);
	xsp_message_text(&p->inner, INTERNED_TEXT, text);
	xsp_message_put(&p->event, field, &p->inner);
	flush_interned(x, INTERNED_AT_ONCE);
}

static void put_interned(struct xsp_export *x)
{
	const struct perfetto *p = x->state;
	char buffer[XSP_TEXT_SHORT], blocked[48];

	for (unsigned i = 0; i < p->spans.categories.count; i++)
		intern(x, INTERNED_CATEGORIES, i, p->spans.categories.names[i]);
	intern(x, INTERNED_CATEGORIES, STATE_CATEGORY, "thread_state");
	for (unsigned i = 0; i < XSP_STATES; i++)
		intern(x, INTERNED_NAMES, STATE_NAMES + i, xsp_state_name(i));
	for (unsigned i = 0; i < XSP_WAIT_CLASSES; i++) {
		snprintf(blocked, sizeof(blocked), "%s: %s", xsp_state_name(XSP_STATE_BLOCKED),
			 xsp_wait_class_name(i));
		intern(x, INTERNED_NAMES, BLOCKED_NAMES + i, blocked);
	}
	for (size_t i = 0; i < p->spans.kinds.count; i++) {
		const char *name = xsp_timeline_name(x->view.timeline, p->spans.kinds.rows[i].name);
		intern(x, INTERNED_NAMES, i, xsp_text_short(name != NULL ? name : "", buffer));
	}
	flush_interned(x, 0);
}

/* ---- tracks ---- */

static void put_process(struct xsp_export *x, const struct xsp_thread_row *row)
{
	struct perfetto *p = x->state;
	char name[256];

	xsp_run_process_name(x->view.reader, row->root_pid, name, sizeof(name));
	xsp_message_number(&p->event, TRACK_UUID, row->root_pid);
	xsp_message_number(&p->inner, PROCESS_PID, row->pid);
	xsp_message_text(&p->inner, PROCESS_NAME, name);
	xsp_message_put(&p->event, TRACK_PROCESS, &p->inner);
	xsp_message_put(&p->packet, PACKET_TRACK, &p->event);
	put_packet(x);
}

/* A thread's other stack, or its states, is a track of its own in the process. */
static void put_track(struct xsp_export *x, const struct xsp_thread_row *row)
{
	struct perfetto *p = x->state;
	const char *comm = xsp_thread_rows_comm(&x->view, row->root_pid, row->root_tid);
	char name[128];

	xsp_message_number(&p->event, TRACK_UUID, ROW_TRACKS + row->index);
	xsp_message_number(&p->event, TRACK_PARENT, row->root_pid);
	if (row->number == 0) {
		xsp_message_number(&p->inner, THREAD_PID, row->pid);
		xsp_message_number(&p->inner, THREAD_TID, row->tid);
		xsp_message_text(&p->inner, THREAD_NAME, comm);
		xsp_message_put(&p->event, TRACK_THREAD, &p->inner);
	} else {
		if (row->number == XSP_STATES_ROW)
			snprintf(name, sizeof(name), "thread %u (%s) states", row->thread_tid,
				 comm);
		else
			snprintf(name, sizeof(name), "thread %u (%s) stack %u", row->thread_tid,
				 comm, row->number);
		xsp_message_text(&p->event, TRACK_NAME, name);
	}
	xsp_message_put(&p->packet, PACKET_TRACK, &p->event);
	put_packet(x);
}

/* ---- slices ---- */

static void put_annotation(struct perfetto *p, const char *name, bool value)
{
	xsp_message_text(&p->inner, ANNOTATION_NAME, name);
	xsp_message_number(&p->inner, ANNOTATION_TRUTH, value);
	xsp_message_put(&p->event, EVENT_ANNOTATION, &p->inner);
}

static void put_begin(struct perfetto *p, uint32_t name)
{
	const struct xsp_span_kind *frame = name < STATE_NAMES ? &p->spans.kinds.rows[name] : NULL;

	xsp_message_number(&p->event, EVENT_NAME, (uint64_t)name + 1);
	xsp_message_number(&p->event, EVENT_CATEGORY,
			   (frame != NULL ? frame->category : STATE_CATEGORY) + 1U);
	if (frame != NULL && frame->ending == XSP_UNFINISHED)
		put_annotation(p, "finished", false);
	if (frame != NULL && frame->ending == XSP_EXIT_LOST)
		put_annotation(p, "exit lost", true);
	if (frame != NULL && frame->cut)
		put_annotation(p, "cut", true);
}

static int put_event(void *ctx, bool begins, uint32_t name, uint64_t time_ns)
{
	struct xsp_export *x = ctx;
	struct perfetto *p = x->state;

	xsp_message_number(&p->event, EVENT_TYPE, begins ? TYPE_BEGIN : TYPE_END);
	xsp_message_number(&p->event, EVENT_TRACK, p->track);
	if (begins)
		put_begin(p, name);
	xsp_message_number(&p->packet, PACKET_TIME, time_ns);
	xsp_message_put(&p->packet, PACKET_EVENT, &p->event);
	xsp_message_number(&p->packet, PACKET_FLAGS, FLAG_NEEDS_STATE);
	put_packet(x);
	return 0;
}

static int perfetto_end(struct xsp_export *x)
{
	struct perfetto *p = x->state;
	int rc = xsp_states_end(x->view.timeline, p->spans.rows, add_state, x);

	put_head(x);
	put_interned(x);
	for (size_t i = 0; rc == 0 && i < xsp_thread_rows_count(p->spans.rows); i++) {
		const struct xsp_thread_row *row = xsp_thread_rows_at(p->spans.rows, i);
		if (row->first_of_process)
			put_process(x, row);
		put_track(x, row);
		p->track = ROW_TRACKS + row->index;
		rc = xsp_ordered_emit(p->spans.spans, row->index, put_event, x);
	}
	return rc;
}

const struct xsp_export_format xsp_format_perfetto = {
	.suffix = ".pftrace",
	.title = "Perfetto trace",
	.state_size = sizeof(struct perfetto),
	.begin = perfetto_begin,
	.span = perfetto_span,
	.wait = perfetto_wait,
	.end = perfetto_end,
	.discard = perfetto_discard,
};
