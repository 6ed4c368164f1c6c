/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * capture_builder.h - synthetic captures for unit tests, made with the real writer and read with
 * the real reader. Every step asserts; include after criterion.h.
 */
#ifndef XSP_TESTS_CAPTURE_BUILDER_H
#define XSP_TESTS_CAPTURE_BUILDER_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/capture.h"
#include "span_check.h"
#include "timeline/timeline.h"

struct builder {
	char path[256];
	struct xsp_capture_writer *w;
	uint32_t probes;
	uint32_t pid, tid;
	uint64_t now; /* of the next event */
	unsigned ring;
};

static inline void builder_begin(struct builder *b, uint32_t probes)
{
	struct xsp_error err = {0};
	*b = (struct builder){.pid = 100, .tid = 100, .now = 1000};
	const char *folder = getenv("TMPDIR");
	snprintf(b->path, sizeof(b->path), "%s/xsp-test-XXXXXX", folder != NULL ? folder : "/tmp");
	int fd = mkstemp(b->path);
	cr_assert(fd >= 0);
	cr_assert_eq(xsp_capture_create(fd, b->path, &b->w, &err), 0, "%s", err.text);
	for (uint32_t i = 0; i < probes; i++) {
		char name[32];
		snprintf(name, sizeof(name), "f%u", i);
		struct xsp_capture_probe p = {.id = i,
					      .module = UINT32_MAX,
					      .addr = 0x1000 + 0x100 * i,
					      .provider = "function",
					      .symbol = "",
					      .name = name,
					      .exit_complete = true};
		cr_assert_eq(xsp_capture_put_probe(b->w, &p), 0);
	}
	b->probes = probes;
}

static inline void builder_put(struct builder *b, void *event, size_t size)
{
	struct xsp_event *e = event;
	e->time_ns = b->now++;
	e->tid = b->tid;
	e->tgid = b->pid;
	e->size = (uint16_t)size;
	cr_assert_eq(xsp_capture_put_event(b->w, b->ring, event, size), 0);
}

static inline void builder_event(struct builder *b, enum xsp_event_kind kind, uint32_t probe,
				 uint64_t sp, uint8_t flags)
{
	struct xsp_event e = {.kind = (uint8_t)kind, .probe = probe, .sp = sp, .flags = flags};
	builder_put(b, &e, sizeof(e));
}

static inline void entry(struct builder *b, uint32_t probe, uint64_t sp)
{
	builder_event(b, XSP_EVENT_ENTRY, probe, sp, XSP_EVENT_SP_EXACT);
}

static inline void leave(struct builder *b, uint32_t probe, uint64_t sp)
{
	builder_event(b, XSP_EVENT_EXIT, probe, sp, XSP_EVENT_SP_EXACT);
}

static inline void unwind(struct builder *b, uint64_t sp)
{
	builder_event(b, XSP_EVENT_UNWIND, 0, sp, XSP_EVENT_SP_EXACT);
}

/* hash 0: the name could not be read */
static inline void begin(struct builder *b, uint32_t probe, uint64_t sp, uint64_t hash)
{
	struct xsp_event_range r = {.head = {.kind = XSP_EVENT_BEGIN, .probe = probe, .sp = sp},
				    .name_hash = hash};
	if (hash == 0)
		r.head.flags = XSP_EVENT_NAME_LOST;
	builder_put(b, &r, sizeof(r));
}

static inline void end(struct builder *b, uint32_t probe, uint64_t sp)
{
	builder_event(b, XSP_EVENT_END, probe, sp, XSP_EVENT_SP_EXACT);
}

/* The same for the range that thread `tid` began at that time. */
static inline void end_of(struct builder *b, uint32_t probe, uint64_t sp, uint64_t begin_ns,
			  uint32_t tid)
{
	struct {
		struct xsp_event head;
		struct xsp_section section;
		uint64_t begin_ns;
	} e = {.head = {.kind = XSP_EVENT_END,
			.probe = probe,
			.sp = sp,
			.flags = XSP_EVENT_SP_EXACT | XSP_EVENT_SECTIONS},
	       .section = {.type = XSP_SECTION_RANGE,
			   .size = sizeof(struct xsp_section) + sizeof(uint64_t),
			   .value = tid},
	       .begin_ns = begin_ns};
	builder_put(b, &e, sizeof(e));
}

static inline void name(struct builder *b, uint64_t hash, const char *text, uint8_t flags)
{
	struct {
		struct xsp_event_name n;
		char text[XSP_NAME_MAX];
	} e = {.n = {.head = {.kind = XSP_EVENT_NAME, .flags = flags},
		     .name_hash = hash,
		     .length = (uint32_t)strlen(text)}};
	memcpy(e.text, text, strlen(text));
	builder_put(b, &e, sizeof(e.n) + ((strlen(text) + 7) & ~(size_t)7));
}

static inline void address_name(struct builder *b, enum xsp_address_name what, uint64_t address,
				const char *text)
{
	cr_assert_eq(xsp_capture_put_address_name(b->w, what, b->pid, address, text), 0);
}

static inline void task(struct builder *b, enum xsp_task_what what, const char *comm)
{
	struct xsp_event_task t = {.head = {.kind = XSP_EVENT_TASK}, .what = (uint32_t)what};
	strncpy(t.comm, comm, sizeof(t.comm) - 1);
	builder_put(b, &t, sizeof(t));
}

static inline void builder_end(struct builder *b)
{
	struct xsp_error err = {0};
	cr_assert_eq(xsp_capture_finish(b->w, 1000, b->now, &err), 0, "%s", err.text);
	b->w = NULL;
}

/* ---- the spans of a capture ---- */

struct seen {
	struct xsp_span span;
	char name[48];
	char stack[160]; /* ancestors and the span itself, ";" between */
};

struct result {
	struct seen *spans;
	size_t count, capacity;
	struct xsp_timeline_counts counts;
	struct xsp_timeline *timeline;
	struct xsp_capture_reader *reader;
};

static inline int result_span(void *ctx, const struct xsp_span *span)
{
	struct result *r = ctx;
	if (r->count == r->capacity) {
		r->capacity = r->capacity * 2 + 16;
		r->spans = realloc(r->spans, r->capacity * sizeof(*r->spans));
		cr_assert_not_null(r->spans);
	}
	struct seen *s = &r->spans[r->count++];
	s->span = *span;
	snprintf(s->name, sizeof(s->name), "%s", xsp_timeline_name(r->timeline, span->name));
	size_t used = 0;
	/* of a million spans with so many ancestors: snprintf() takes too long */
	for (uint32_t i = 0; i < span->depth && used < sizeof(s->stack) - 1; i++) {
		const char *name = xsp_timeline_name(r->timeline, span->ancestors[i]);
		const size_t length = strnlen(name, sizeof(s->stack) - 1 - used);
		memcpy(s->stack + used, name, length);
		used += length;
		s->stack[used++] = ';';
	}
	if (used < sizeof(s->stack) - 1)
		snprintf(s->stack + used, sizeof(s->stack) - used, "%s", s->name);
	s->stack[sizeof(s->stack) - 1] = '\0';
	s->span.ancestors = NULL;
	return 0;
}

static inline void result_of(struct result *r, const char *path)
{
	struct xsp_error err = {0};
	*r = (struct result){0};
	cr_assert_eq(xsp_capture_open(path, &r->reader, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_timeline_new(r->reader, &r->timeline, &err), 0, "%s", err.text);
	struct xsp_timeline_sink sink = {.ctx = r, .span = result_span};
	cr_assert_eq(xsp_timeline_run(r->timeline, &sink, 1, &err), 0, "%s", err.text);
	r->counts = *xsp_timeline_counts(r->timeline);
}

static inline void result_free(struct result *r)
{
	xsp_timeline_free(r->timeline);
	xsp_capture_close(r->reader);
	free(r->spans);
}

/* Ends the capture, pairs it, removes the file. */
static inline void builder_result(struct builder *b, struct result *r)
{
	builder_end(b);
	result_of(r, b->path);
	unlink(b->path);
}

static inline const struct seen *span_named(const struct result *r, const char *n, size_t nth)
{
	for (size_t i = 0; i < r->count; i++) {
		if (strcmp(r->spans[i].name, n) == 0 && nth-- == 0)
			return &r->spans[i];
	}
	cr_assert_fail("no span %s", n);
	return NULL;
}

/* ---- what always holds ---- */

/* Returns NULL, or says what is wrong. */
static inline const char *broken_invariant(struct result *r)
{
	struct xsp_span *spans = calloc(r->count + 1, sizeof(*spans));
	cr_assert_not_null(spans);
	for (size_t i = 0; i < r->count; i++)
		spans[i] = r->spans[i].span;
	const char *wrong = span_check(spans, r->count, &r->counts);
	free(spans);
	return wrong;
}

static inline void check_invariants(struct result *r)
{
	const char *wrong = broken_invariant(r);
	cr_assert_null(wrong, "%s", wrong);
}

/* A span's event with the Python stack `id`. */
static inline void called_from(struct builder *b, enum xsp_event_kind kind, uint32_t probe,
			       uint64_t sp, uint64_t id)
{
	struct {
		struct xsp_event_range range;
		struct xsp_section section;
		uint64_t id;
	} e = {.range.head = {.kind = (uint8_t)kind,
			      .probe = probe,
			      .sp = sp,
			      .flags = XSP_EVENT_SP_EXACT | XSP_EVENT_SECTIONS},
	       .section = {.type = XSP_SECTION_PYTHON, .size = sizeof(e.section) + 8},
	       .id = id};

	builder_put(b, &e, sizeof(e));
}

#endif
