/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pprof.c - profile.proto (github.com/google/pprof), gzipped: one sample for each distinct stack,
 * weighed as --weight says. The thread's name is a label.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/rows/grow.h"
#include "base/rows/u64map.h"
#include "export/export_private.h"
#include "export/out.h"
#include "export/protobuf.h"
#include "export/stacks/format.h"
#include "export/text.h"
#include "model/run_stats.h"
#include "model/stacks/stacks.h"

/* Field numbers of profile.proto. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_TIME_NANOS = 9,
	PROFILE_DURATION_NANOS = 10,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
	PROFILE_COMMENT = 13,
	PROFILE_DEFAULT_TYPE = 14
};
enum { VALUE_TYPE = 1, VALUE_UNIT = 2 };
enum { SAMPLE_LOCATIONS = 1, SAMPLE_VALUES = 2, SAMPLE_LABEL = 3 };
enum { LABEL_KEY = 1, LABEL_TEXT = 2 };
enum { LOCATION_ID = 1, LOCATION_LINE = 4, LINE_FUNCTION = 1 };
enum { FUNCTION_ID = 1, FUNCTION_NAME = 2 };

/* The strings that come first. */
enum text {
	NONE,
	COUNT,
	NANOSECONDS,
	THREAD,
	CALLS,
	WALL,
	CPU,
	SAMPLES,
	WAITS,
	OFF_CPU,
	EVENTS,
	COMMENT,
	TEXTS
};

struct profile {
	struct xsp_export *x;
	struct xsp_stacks *stacks;
	struct xsp_message message, inner, packed, label; /* being written */
	const char **strings; /* those after the first ones */
	size_t string_count, string_capacity;
	struct xsp_u64map locations; /* by name: the index of its string is also its id */
	uint64_t path[XSP_STACKS_DEPTH + 3]; /* location ids, by depth */
	uint64_t thread; /* the string of the current thread */
	char comment[160];
};

/* ---- strings and locations ---- */

static int add_string(struct profile *p, const char *text, uint64_t *index)
{
	if (xsp_grow(&p->strings, &p->string_capacity, p->string_count + 1) < 0)
		return -ENOMEM;
	p->strings[p->string_count] = text;
	*index = TEXTS + p->string_count++;
	return 0;
}

static int location_of(struct profile *p, uint32_t node, uint64_t *id)
{
	const uint32_t name = xsp_stacks_node(p->stacks, node)->name;
	const uint32_t *known = xsp_u64map_get(&p->locations, name);

	if (known != NULL) {
		*id = *known;
		return 0;
	}
	int rc = add_string(p, xsp_stacks_name(p->stacks, node), id);
	return rc == 0 ? xsp_u64map_set(&p->locations, name, (uint32_t)*id) : rc;
}

static void flush(struct profile *p)
{
	if (p->message.failed)
		xsp_out_fail(p->x->out, -ENOMEM);
	xsp_out_write(p->x->out, p->message.data, p->message.length);
	xsp_message_clear(&p->message);
}

/* ---- weights ---- */

struct values {
	enum text count, time;
	bool cpu; /* with a third value: time on a CPU */
};

static struct values values_of(const struct xsp_export *x)
{
	switch (x->view.weight) {
	case XSP_WEIGHT_SAMPLES:
		return (struct values){SAMPLES, CPU, false};
	case XSP_WEIGHT_CPU:
		return (struct values){CALLS, CPU, false};
	case XSP_WEIGHT_ALL:
		return (struct values){EVENTS, WALL, false};
	case XSP_WEIGHT_OFF_CPU:
		return (struct values){WAITS, OFF_CPU, false};
	default:
		return (struct values){CALLS, WALL, xsp_timeline_has_waits(x->view.timeline)};
	}
}

static void put_type(struct profile *p, unsigned field, enum text type, enum text unit)
{
	xsp_message_number(&p->inner, VALUE_TYPE, type);
	xsp_message_number(&p->inner, VALUE_UNIT, unit);
	xsp_message_put(&p->message, field, &p->inner);
}

static void put_head(struct profile *p, const struct values *v)
{
	const struct xsp_export *x = p->x;
	uint64_t start, end;

	xsp_timeline_window(x->view.timeline, &start, &end);
	put_type(p, PROFILE_SAMPLE_TYPE, v->count, COUNT);
	put_type(p, PROFILE_SAMPLE_TYPE, v->time, NANOSECONDS);
	if (v->cpu)
		put_type(p, PROFILE_SAMPLE_TYPE, CPU, NANOSECONDS);
	xsp_message_number(&p->message, PROFILE_DEFAULT_TYPE, v->time);
	xsp_message_number(&p->message, PROFILE_TIME_NANOS,
			   xsp_capture_realtime(x->view.reader, start));
	xsp_message_number(&p->message, PROFILE_DURATION_NANOS, end > start ? end - start : 0);
	if (v->count == SAMPLES && xsp_timeline_sample_hz(x->view.timeline) > 0) {
		put_type(p, PROFILE_PERIOD_TYPE, CPU, NANOSECONDS);
		xsp_message_number(&p->message, PROFILE_PERIOD,
				   1000000000 / xsp_timeline_sample_hz(x->view.timeline));
	}
	if (xsp_run_losses_line(x->view.reader, x->view.timeline, p->comment, sizeof(p->comment)))
		xsp_message_number(&p->message, PROFILE_COMMENT, COMMENT);
	flush(p);
}

/* ---- samples ---- */

static void put_sample(struct profile *p, const struct xsp_stack_node *n, const struct values *v)
{
	for (uint32_t d = n->depth > 1 ? n->depth : 2; d >= 2; d--) /* the leaf comes first */
		xsp_message_varint(&p->packed, p->path[d]);
	xsp_message_put(&p->inner, SAMPLE_LOCATIONS, &p->packed);
	xsp_message_varint(&p->packed, n->calls);
	xsp_message_varint(&p->packed, n->self_ns);
	if (v->cpu)
		xsp_message_varint(&p->packed, n->self_cpu_ns);
	xsp_message_put(&p->inner, SAMPLE_VALUES, &p->packed);
	xsp_message_number(&p->label, LABEL_KEY, THREAD);
	xsp_message_number(&p->label, LABEL_TEXT, p->thread);
	xsp_message_put(&p->inner, SAMPLE_LABEL, &p->label);
	xsp_message_put(&p->message, PROFILE_SAMPLE, &p->inner);
	flush(p);
}

static int put_samples(struct profile *p, const struct values *v)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && (i = xsp_stacks_next(p->stacks, i)) != 0;) {
		const struct xsp_stack_node *n = xsp_stacks_node(p->stacks, i);
		if (n->depth > 1)
			rc = location_of(p, i, &p->path[n->depth]);
		else
			rc = add_string(p, xsp_stacks_name(p->stacks, i), &p->thread);
		if (rc < 0 || (n->calls == 0 && n->self_ns == 0))
			continue;
		if (n->depth == 1) /* a stack needs a frame; it has own time if the tree was full */
			rc = add_string(p, "[merged]", &p->path[2]);
		if (rc == 0)
			put_sample(p, n, v);
	}
	return rc;
}

/* Makes a location with a function from each string after the first ones. No sample uses those of
 * threads and the like. */
static void put_locations(struct profile *p)
{
	for (uint64_t id = TEXTS; id < TEXTS + p->string_count; id++) {
		xsp_message_number(&p->inner, FUNCTION_ID, id);
		/* no system name: where it equals the name, `go tool pprof` takes parameters and
		 * template arguments away and adds up functions that differ in them only */
		xsp_message_number(&p->inner, FUNCTION_NAME, id);
		xsp_message_put(&p->message, PROFILE_FUNCTION, &p->inner);
		xsp_message_number(&p->packed, LINE_FUNCTION, id);
		xsp_message_number(&p->inner, LOCATION_ID, id);
		xsp_message_put(&p->inner, LOCATION_LINE, &p->packed);
		xsp_message_put(&p->message, PROFILE_LOCATION, &p->inner);
		flush(p);
	}
}

static void put_strings(struct profile *p)
{
	const char *const first[TEXTS] = {
		[NONE] = "",	       [COUNT] = "count",     [NANOSECONDS] = "nanoseconds",
		[THREAD] = "thread",   [CALLS] = "calls",     [WALL] = "wall",
		[CPU] = "cpu",	       [SAMPLES] = "samples", [WAITS] = "waits",
		[OFF_CPU] = "off-cpu", [EVENTS] = "events",   [COMMENT] = p->comment,
	};
	char buffer[XSP_TEXT_SHORT];

	for (size_t i = 0; i < TEXTS; i++)
		xsp_message_text(&p->message, PROFILE_STRING, first[i]);
	for (size_t i = 0; i < p->string_count; i++) {
		xsp_message_text(&p->message, PROFILE_STRING,
				 xsp_text_short(p->strings[i], buffer));
		flush(p);
	}
	flush(p);
}

static int pprof_end(struct xsp_export *x)
{
	struct profile p = {.x = x, .stacks = x->state};
	const struct values v = values_of(x);
	int rc = xsp_stacks_seal(p.stacks, XSP_STACKS_BY_NAME);

	if (rc == 0) {
		put_head(&p, &v);
		rc = put_samples(&p, &v);
	}
	if (rc == 0) {
		put_locations(&p);
		put_strings(&p);
	}
	xsp_message_free(&p.message);
	xsp_message_free(&p.inner);
	xsp_message_free(&p.packed);
	xsp_message_free(&p.label);
	xsp_u64map_free(&p.locations);
	free(p.strings);
	return rc;
}

const struct xsp_export_format xsp_format_pprof = {
	.suffix = ".pb.gz",
	.title = "pprof",
	.end = pprof_end,
	XSP_STACK_FORMAT,
};
