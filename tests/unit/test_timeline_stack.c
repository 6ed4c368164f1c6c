/* SPDX-License-Identifier: BSD-2-Clause */
/* Stacks: the functions, and lines of Python, between two spans, as span->path has them. */
#include <criterion/criterion.h>

#include "record/names/frames.h"
#include "capture_builder.h"

#define SP 0x7ffc00001000ULL
#define ROOM 8

static uint64_t frame(uint64_t address, uint64_t words)
{
	return address | words << XSP_FRAME_SHIFT;
}

/* An entry whose stack is `frames`, ended by 0. */
static void entry_with(struct builder *b, uint32_t probe, uint64_t sp, const uint64_t *frames)
{
	struct {
		struct xsp_event_range range;
		struct xsp_section section;
		uint64_t frames[ROOM];
	} e = {.range.head = {.kind = XSP_EVENT_ENTRY,
			      .probe = probe,
			      .sp = sp,
			      .flags = XSP_EVENT_SP_EXACT | XSP_EVENT_SECTIONS}};
	size_t n = 0;

	while (frames[n] != 0) {
		e.frames[n] = frames[n];
		n++;
	}
	e.section.type = XSP_SECTION_STACK;
	e.section.size = (uint16_t)(sizeof(e.section) + n * 8);
	builder_put(b, &e, sizeof(e.range) + e.section.size);
}

static void names_of(struct builder *b)
{
	static const char *const texts[] = {"", "main", "outer", "middle", "inner", "f0 in it"};

	for (uint64_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		address_name(b, XSP_NAME_OF_RETURN, 0x1000 * i, texts[i]);
}

struct paths {
	const struct xsp_timeline *timeline;
	char text[16][256];
	size_t count;
};

static int on_span(void *ctx, const struct xsp_span *span)
{
	struct paths *s = ctx;
	char *text = s->text[s->count++];

	cr_assert_lt(s->count, 16U);
	for (uint32_t i = 0; span->path != NULL && i < span->path_length; i++) {
		xsp_name_id id = span->path[i];
		strcat(text, id & XSP_PATH_FRAME ? "" : "*");
		strcat(text, xsp_timeline_name(s->timeline, id & ~XSP_PATH_FRAME));
		strcat(text, ";");
	}
	strcat(text, xsp_timeline_name(s->timeline, span->name));
	return 0;
}

static void run(struct builder *b, struct paths *s)
{
	struct xsp_error err = {0};
	struct xsp_capture_reader *reader;
	struct xsp_timeline *timeline;
	struct xsp_timeline_sink sink = {.ctx = s, .span = on_span};

	cr_assert_eq(xsp_capture_finish(b->w, 1000, b->now, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_capture_open(b->path, &reader, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_timeline_new(reader, &timeline, &err), 0, "%s", err.text);
	s->timeline = timeline;
	cr_assert_eq(xsp_timeline_run(timeline, &sink, 1, &err), 0, "%s", err.text);
	xsp_timeline_free(timeline);
	xsp_capture_close(reader);
	unlink(b->path);
}

Test(timeline_stack, what_lies_between)
{
	struct builder b;
	struct paths s = {0};

	builder_begin(&b, 3);
	names_of(&b);
	/* f0: outer, main. f1, 0x100 bytes below: inner, middle, f0 itself, and those of f0 again */
	entry_with(&b, 0, SP, (const uint64_t[]){frame(0x2000, 0), frame(0x1000, 16), 0});
	entry_with(&b, 1, SP - 0x100,
		   (const uint64_t[]){frame(0x4000, 0), frame(0x3000, 20), frame(0x5000, 11),
				      frame(0x2000, 1), frame(0x1000, 16), 0});
	/* f2: its frames skip some, and go on above f1: not between the two */
	entry_with(&b, 2, SP - 0x140, (const uint64_t[]){frame(0x3000, 0), frame(0x1000, 48), 0});
	leave(&b, 2, SP - 0x140);
	leave(&b, 1, SP - 0x100);
	entry_with(&b, 2, SP - 0x80, (const uint64_t[]){frame(0x4000, 0), 0});
	leave(&b, 2, SP - 0x80);
	leave(&b, 0, SP);
	run(&b, &s);
	cr_assert_eq(s.count, 4);
	cr_expect_str_eq(s.text[0], "main;outer;*f0;middle;inner;*f1;middle;f2");
	cr_expect_str_eq(s.text[1], "main;outer;*f0;middle;inner;f1");
	cr_expect_str_eq(s.text[2], "main;outer;*f0;inner;f2");
	cr_expect_str_eq(s.text[3], "main;outer;f0");
}

/* ---- Python ---- */

/* The lines that stacks are made of: one for each letter, and those that open ranges. */
static void lines_of(struct builder *b)
{
	char text[64];

	for (char c = 'a'; c <= 'z'; c++) {
		snprintf(text, sizeof(text), "/home/me/%c.py\n%d\n%c", c, c - 'a' + 1, c);
		name(b, (uint64_t)c, text, 0);
	}
	name(b, '+', "/x/torch/autograd/profiler.py\n7\nrecord_function.__enter__", 0);
	name(b, '?', "\n0\n[Python frame not readable]", 0);
}

/* The stack `frames`, outermost first as people read it. */
static void stack_of(struct builder *b, uint64_t id, const char *frames, uint32_t flags)
{
	struct xsp_capture_python_frame f[ROOM] = {0};
	struct xsp_capture_python p = {
		.id = id, .count = (uint32_t)strlen(frames), .flags = flags, .frames = f};

	for (uint32_t i = 0; i < p.count; i++)
		f[i].name = (uint64_t)frames[p.count - 1 - i];
	cr_assert_eq(xsp_capture_put_python(b->w, &p), 0);
}

/* f1 with the stack `inner` in f0 with `outer`: the path of f1. */
static void check_between(const char *outer, const char *inner, uint32_t flags,
			  const char *expected)
{
	struct builder b;
	struct paths s = {0};

	builder_begin(&b, 2);
	lines_of(&b);
	stack_of(&b, 1, outer, flags);
	stack_of(&b, 2, inner, flags);
	called_from(&b, XSP_EVENT_ENTRY, 0, SP, 1);
	called_from(&b, XSP_EVENT_ENTRY, 1, SP - 64, 2);
	leave(&b, 1, SP - 64);
	leave(&b, 0, SP);
	run(&b, &s);
	cr_assert_eq(s.count, 2);
	cr_expect_str_eq(s.text[0], expected);
}

Test(timeline_stack, lines_of_python)
{
	check_between("ab", "ab", 0, "a.py:1 a;b.py:2 b;*f0;f1");
	check_between("ab", "abcd", 0, "a.py:1 a;b.py:2 b;*f0;c.py:3 c;d.py:4 d;f1");
	check_between("ab", "ac", 0, "a.py:1 a;b.py:2 b;*f0;c.py:3 c;f1");
	check_between("a", "aaa", 0, "a.py:1 a;*f0;a.py:1 a;a.py:1 a;f1");
	check_between("a?", "a?b", 0, "a.py:1 a;[Python frame not readable];*f0;b.py:2 b;f1");
	/* both are cut at the limit, the inner one further in */
	check_between("abcd", "cdef", XSP_PYTHON_CUT,
		      "a.py:1 a;b.py:2 b;c.py:3 c;d.py:4 d;*f0;e.py:5 e;f.py:6 f;f1");
	check_between("aaaa", "aaab", XSP_PYTHON_CUT,
		      "a.py:1 a;a.py:1 a;a.py:1 a;a.py:1 a;*f0;b.py:2 b;f1");
}

/* A function that only opened a range has returned before something is called in the range. */
Test(timeline_stack, lines_around_a_range)
{
	struct builder b;
	struct paths s = {0};

	builder_begin(&b, 2);
	lines_of(&b);
	stack_of(&b, 1, "ab+", 0);
	stack_of(&b, 2, "ac", 0);
	called_from(&b, XSP_EVENT_BEGIN, 0, SP, 1);
	called_from(&b, XSP_EVENT_ENTRY, 1, SP - 64, 2);
	leave(&b, 1, SP - 64);
	called_from(&b, XSP_EVENT_ENTRY, 1, SP - 64, 77); /* a stack that the capture lacks */
	leave(&b, 1, SP - 64);
	end(&b, 0, SP);
	run(&b, &s);
	cr_assert_eq(s.count, 3);
	cr_expect_str_eq(s.text[0], "a.py:1 a;b.py:2 b;*f0;c.py:3 c;f1");
	cr_expect_str_eq(s.text[1], "a.py:1 a;b.py:2 b;*f0;f1");
	cr_expect_str_eq(s.text[2], "a.py:1 a;b.py:2 b;f0");
}

/* An address that is no return address ends the stack, and so does one without a name. */
Test(timeline_stack, nothing_beyond_garbage)
{
	struct builder b;
	struct paths s = {0};

	builder_begin(&b, 3);
	names_of(&b);
	entry_with(&b, 0, SP,
		   (const uint64_t[]){frame(0x2000, 0), frame(0x7000, 2), frame(0x1000, 2), 0});
	leave(&b, 0, SP);
	address_name(&b, XSP_NAME_OF_RETURN, 0x9000, "");
	entry_with(&b, 1, SP, (const uint64_t[]){frame(0x9000, 0), frame(0x1000, 2), 0});
	leave(&b, 1, SP);
	run(&b, &s);
	cr_assert_eq(s.count, 2);
	cr_expect_str_eq(s.text[0], "outer;f0");
	cr_expect_str_eq(s.text[1], "f1");
}
