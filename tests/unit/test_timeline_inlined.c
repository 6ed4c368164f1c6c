/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions that the compiler inlined stand in stacks as if they had been called. */
#include "capture_builder.h"
#include "timeline/charge.h"
#include "timeline/memory.h"
#include "xsptrace/programs.h"

#define SP 0x7ff000000000ULL
#define NO_PROBE UINT32_MAX

/* main() has work() inlined, and in that step(); the latter calls leaf(), and main() waits in rest(). */
enum {
	IN_STEP = 0x1000,
	IN_LEAF = 0x2000,
	IN_COPY = 0x3000,
	INTO_STEP = 0x4000,
	INTO_REST = 0x5000,
	INTO_START = 0x6000,
	IN_NAP = 0x7000,
	INTO_GROW = 0x8000,
	INTO_MALLOC = 0x9000
};

static void inlined(struct builder *b, enum xsp_address_name what, uint64_t address,
		    const char *const *texts)
{
	const uint64_t key = xsp_capture_writer_key(b->w);

	for (unsigned depth = 0; texts[depth] != NULL; depth++)
		cr_assert_eq(xsp_capture_put_name(
				     b->w, xsp_inlined_name_hash(key, what, b->pid, address, depth),
				     texts[depth]),
			     0);
}
#define INLINED(b, what, address, ...)                                                             \
	inlined(b, what, address, (const char *[]){__VA_ARGS__, NULL})

static void start(struct builder *b)
{
	static const uint64_t own[] = {IN_STEP, IN_LEAF, INTO_STEP, INTO_REST, INTO_GROW};

	builder_begin(b, 1);
	cr_assert_eq(xsp_capture_put_info(b->w, "samples", "cpu-clock 99"), 0);
	cr_assert_eq(xsp_capture_put_info(b->w, "waits", "10"), 0);
	cr_assert_eq(xsp_capture_put_number(b->w, XSP_INFO_INLINED, 0), 0);
	address_name(b, XSP_NAME_OF_CODE, IN_STEP, "app\nmain");
	address_name(b, XSP_NAME_OF_CODE, IN_LEAF, "app\nleaf");
	address_name(b, XSP_NAME_OF_CODE, IN_COPY, "libc.so.6\nmemcpy");
	address_name(b, XSP_NAME_OF_RETURN, INTO_STEP, "main");
	address_name(b, XSP_NAME_OF_RETURN, INTO_REST, "main");
	address_name(b, XSP_NAME_OF_RETURN, INTO_GROW, "main");
	address_name(b, XSP_NAME_OF_RETURN, INTO_START, "__libc_start_main");
	address_name(b, XSP_NAME_OF_RETURN, IN_NAP, "clock_nanosleep");
	address_name(b, XSP_NAME_OF_RETURN, INTO_MALLOC, "operator new");
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		address_name(b, XSP_NAME_OF_FILE, own[i], "/home/me/app");
	INLINED(b, XSP_NAME_OF_INLINED_CODE, IN_STEP, "work", "step");
	INLINED(b, XSP_NAME_OF_INLINED, INTO_STEP, "work", "step");
	INLINED(b, XSP_NAME_OF_INLINED, INTO_REST, "rest");
	INLINED(b, XSP_NAME_OF_INLINED, INTO_GROW, "list", "grow");
}

#define ROOM 6
struct stack {
	struct xsp_section section;
	uint64_t frames[ROOM];
};

/* Return addresses 16 bytes apart, the innermost first; 0 ends them. The bytes that they take. */
static size_t fill(struct stack *s, const uint64_t *callers)
{
	size_t n = 0;

	for (; callers != NULL && callers[n] != 0; n++)
		s->frames[n] = callers[n] | 2ULL << XSP_FRAME_SHIFT;
	s->section = (struct xsp_section){.type = XSP_SECTION_STACK,
					  .size = (uint16_t)(sizeof(s->section) + n * 8)};
	return s->section.size;
}

static void sample(struct builder *b, uint64_t sp, uint64_t at, const uint64_t *callers)
{
	struct {
		struct xsp_event_sample e;
		struct stack stack;
	} u = {.e = {.head = {.kind = XSP_EVENT_SAMPLE,
			      .probe = NO_PROBE,
			      .sp = sp,
			      .flags = XSP_EVENT_SECTIONS},
		     .address = at,
		     .period_ns = 10,
		     .syscall = -2}};

	builder_put(b, &u, sizeof(u.e) + fill(&u.stack, callers));
}

static void wait_in(struct builder *b, const uint64_t *callers)
{
	struct {
		struct xsp_event_wait e;
		struct stack stack;
	} u = {.e = {.head = {.kind = XSP_EVENT_WAIT,
			      .probe = NO_PROBE,
			      .sp = SP - 256,
			      .flags = XSP_EVENT_SECTIONS},
		     .left_ns = b->now,
		     .why = XSP_WAIT_SLEEP}};

	b->now += 100;
	builder_put(b, &u, sizeof(u.e) + fill(&u.stack, callers));
}

struct told {
	char path[8][256], own[8][32], function[8][32];
	size_t count;
	char wait_path[256], place[32], inside[32];
	struct xsp_timeline *timeline;
	struct xsp_capture_reader *reader;
};

static const char *text_of(const struct told *told, const uint32_t *path, uint32_t length,
			   char text[256])
{
	for (uint32_t i = 0; i < length; i++)
		snprintf(text + strlen(text), 256 - strlen(text), "%s%s%s", i > 0 ? ";" : "",
			 path[i] & XSP_PATH_FRAME ? "" : "*",
			 xsp_timeline_name(told->timeline, path[i] & ~XSP_PATH_FRAME));
	return text;
}

static int on_sample(void *ctx, const struct xsp_sample *s)
{
	struct told *told = ctx;
	const size_t i = told->count++;

	cr_assert_lt(i, 8);
	text_of(told, s->path, s->path_length, told->path[i]);
	if (s->own_function != 0)
		snprintf(told->own[i], 32, "%s",
			 xsp_timeline_name(told->timeline,
					   s->path[s->own_function - 1] & ~XSP_PATH_FRAME));
	snprintf(told->function[i], 32, "%s", xsp_timeline_name(told->timeline, s->function));
	return 0;
}

static int on_wait(void *ctx, const struct xsp_wait *w)
{
	struct told *told = ctx;

	text_of(told, w->path, w->path_length, told->wait_path);
	snprintf(told->place, 32, "%s", xsp_timeline_name(told->timeline, w->place - 1));
	snprintf(told->inside, 32, "%s", xsp_timeline_name(told->timeline, w->inside - 1));
	return 0;
}

static int on_charge(void *ctx, const struct xsp_charge *c)
{
	(void)ctx;
	(void)c;
	return 0;
}

static void told_of(struct builder *b, struct told *told)
{
	struct xsp_error err = {0};

	builder_end(b);
	*told = (struct told){.count = 0};
	cr_assert_eq(xsp_capture_open(b->path, &told->reader, &err), 0, "%s", err.text);
	unlink(b->path);
	cr_assert_eq(xsp_timeline_new(told->reader, &told->timeline, &err), 0, "%s", err.text);
	struct xsp_timeline_sink sink = {
		.ctx = told, .sample = on_sample, .wait = on_wait, .charge = on_charge};
	cr_assert_eq(xsp_timeline_run(told->timeline, &sink, 1, &err), 0, "%s", err.text);
}

static void done(struct told *told)
{
	xsp_timeline_free(told->timeline);
	xsp_capture_close(told->reader);
}

Test(timeline_inlined, samples)
{
	struct builder b;
	struct told told;

	start(&b);
	sample(&b, SP - 64, IN_STEP, (uint64_t[]){INTO_START, 0});
	sample(&b, SP - 96, IN_LEAF, (uint64_t[]){INTO_STEP, INTO_START, 0});
	sample(&b, SP - 96, IN_COPY, (uint64_t[]){INTO_STEP, INTO_START, 0});
	sample(&b, SP - 96, IN_LEAF, (uint64_t[]){INTO_START, 0});
	told_of(&b, &told);
	cr_assert_eq(told.count, 4);
	cr_expect_str_eq(told.path[0], "__libc_start_main;main;work;step");
	cr_expect_str_eq(told.function[0], "step", "the innermost");
	cr_expect_str_eq(told.own[0], "step");
	cr_expect_str_eq(told.path[1], "__libc_start_main;main;work;step;leaf");
	cr_expect_str_eq(told.own[1], "leaf");
	cr_expect_str_eq(told.path[2], "__libc_start_main;main;work;step;memcpy");
	cr_expect_str_eq(told.own[2], "step", "what called into the library");
	cr_expect_str_eq(told.path[3], "__libc_start_main;leaf", "nothing is inlined there");
	done(&told);
}

/* The span f0 is that of main(). It is there once, and what is inlined into it is inside. */
Test(timeline_inlined, samples_in_a_span_of_the_function_around)
{
	struct builder b;
	struct told told;

	start(&b);
	address_name(&b, XSP_NAME_OF_CODE, IN_STEP + 1, "app\nf0");
	address_name(&b, XSP_NAME_OF_FILE, IN_STEP + 1, "/home/me/app");
	INLINED(&b, XSP_NAME_OF_INLINED_CODE, IN_STEP + 1, "work", "step");
	entry(&b, 0, SP);
	sample(&b, SP - 8, IN_STEP + 1, (uint64_t[]){INTO_START, 0});
	/* its own frame is followed by the return address at its entry's stack pointer */
	sample(&b, SP - 24, IN_LEAF, (uint64_t[]){INTO_STEP, INTO_START, 0});
	sample(&b, SP - 24, IN_COPY, (uint64_t[]){INTO_STEP, INTO_START, 0});
	sample(&b, SP - 40, IN_COPY, (uint64_t[]){INTO_GROW, INTO_STEP, INTO_START, 0});
	leave(&b, 0, SP);
	told_of(&b, &told);
	cr_assert_eq(told.count, 4);
	cr_expect_str_eq(told.path[0], "*f0;work;step");
	cr_expect_str_eq(told.own[0], "step");
	cr_expect_str_eq(told.path[1], "*f0;work;step;leaf");
	cr_expect_str_eq(told.own[1], "leaf");
	cr_expect_str_eq(told.path[2], "*f0;work;step;memcpy");
	cr_expect_str_eq(told.own[2], "step");
	cr_expect_str_eq(told.path[3], "*f0;work;step;main;list;grow;memcpy");
	cr_expect_str_eq(told.own[3], "grow");
	done(&told);
}

Test(timeline_inlined, waits)
{
	struct builder b;
	struct told told;

	start(&b);
	wait_in(&b, (uint64_t[]){IN_NAP, INTO_REST, INTO_START, 0});
	told_of(&b, &told);
	cr_expect_str_eq(told.wait_path, "__libc_start_main;main;rest;clock_nanosleep");
	cr_expect_str_eq(told.place, "rest");
	cr_expect_str_eq(told.inside, "clock_nanosleep");
	done(&told);
}

/* A function that was put into several is what the one around it calls, as far as places go. */
Test(timeline_inlined, helpers)
{
	struct builder b;
	struct told told;

	start(&b);
	INLINED(&b, XSP_NAME_OF_INLINED_CODE, IN_LEAF, "clock_ns");
	for (unsigned i = 0; i < 3; i++) {
		static const struct {
			enum xsp_address_name what;
			uint64_t address;
			const char *text;
		} rows[] = {{XSP_NAME_OF_INLINED_CODE, IN_STEP, "1"},
			    {XSP_NAME_OF_INLINED_CODE, IN_LEAF, "1"},
			    {XSP_NAME_OF_INLINED, INTO_REST, "99"}};
		const uint64_t hash =
			xsp_inlined_name_hash(xsp_capture_writer_key(b.w), rows[i].what, b.pid,
					      rows[i].address, XSP_INLINED_HELPERS);
		cr_assert_eq(xsp_capture_put_name(b.w, hash, rows[i].text), 0);
	}
	sample(&b, SP - 64, IN_STEP, (uint64_t[]){INTO_START, 0});
	sample(&b, SP - 96, IN_LEAF, (uint64_t[]){INTO_STEP, INTO_START, 0});
	wait_in(&b, (uint64_t[]){IN_NAP, INTO_REST, INTO_START, 0});
	told_of(&b, &told);
	cr_expect_str_eq(told.path[0], "__libc_start_main;main;work;step");
	cr_expect_str_eq(told.function[0], "step");
	cr_expect_str_eq(told.own[0], "work");
	cr_expect_str_eq(told.path[1], "__libc_start_main;main;work;step;leaf;clock_ns");
	cr_expect_str_eq(told.own[1], "leaf");
	cr_expect_str_eq(told.wait_path, "__libc_start_main;main;rest;clock_nanosleep");
	cr_expect_str_eq(told.place, "main", "more helpers than functions");
	done(&told);
}

/* Without the info, a capture is one of an older version: nobody looks for such names. */
Test(timeline_inlined, captures_without_them)
{
	struct builder b;
	struct told told;

	builder_begin(&b, 1);
	cr_assert_eq(xsp_capture_put_info(b.w, "samples", "cpu-clock 99"), 0);
	address_name(&b, XSP_NAME_OF_CODE, IN_STEP, "app\nmain");
	sample(&b, SP - 64, IN_STEP, NULL);
	told_of(&b, &told);
	cr_expect_str_eq(told.path[0], "main");
	done(&told);
}

/* More than readers look for, and an empty name: hostile captures. */
Test(timeline_inlined, no_deeper_than_is_written)
{
	struct builder b;
	struct told told;
	char text[8];

	start(&b);
	address_name(&b, XSP_NAME_OF_CODE, IN_STEP + 2, "app\nmain");
	for (unsigned depth = 0; depth < XSP_INLINED_DEPTH + 3; depth++) {
		snprintf(text, sizeof(text), "i%u", depth);
		cr_assert_eq(xsp_capture_put_name(b.w,
						  xsp_inlined_name_hash(xsp_capture_writer_key(b.w),
									XSP_NAME_OF_INLINED_CODE,
									b.pid, IN_STEP + 2, depth),
						  depth == 1 ? "" : text),
			     0);
	}
	sample(&b, SP - 64, IN_STEP + 2, NULL);
	told_of(&b, &told);
	cr_expect(strncmp(told.path[0], "main;i0;[empty name];i2;", 24) == 0, "%s", told.path[0]);
	cr_expect_str_eq(told.function[0], "i15");
	done(&told);
}

static void allocate(struct builder *b, const uint64_t *callers)
{
	struct {
		struct xsp_event head;
		struct xsp_section section;
		uint64_t words[XSP_MEMORY_WORDS];
		struct stack stack;
	} e = {.head = {.kind = XSP_EVENT_MEMORY, .flags = XSP_EVENT_SECTIONS, .probe = 1},
	       .section = {.type = XSP_SECTION_WORDS,
			   .size = sizeof(struct xsp_section) + XSP_MEMORY_WORDS * 8},
	       .words = {0x7f0000001000, 4096}};

	builder_put(b, &e, sizeof(e) - sizeof(e.stack) + fill(&e.stack, callers));
}

/* The line is that of the innermost one. */
Test(timeline_inlined, allocations)
{
	const struct xsp_capture_probe p = {.id = 1,
					    .module = UINT32_MAX,
					    .provider = "memory",
					    .symbol = "malloc",
					    .name = "malloc",
					    .exit_complete = true};
	const struct xsp_memory_site *sites;
	struct builder b;
	struct told told;

	start(&b);
	cr_assert_eq(xsp_capture_put_info(b.w, "heap sample", "1"), 0);
	cr_assert_eq(xsp_capture_put_probe(b.w, &p), 0);
	address_name(&b, XSP_NAME_OF_LINE, INTO_GROW, "/home/me/app.cc\n12");
	allocate(&b, (uint64_t[]){INTO_MALLOC, INTO_GROW, INTO_START, 0});
	told_of(&b, &told);
	cr_assert_eq(xsp_timeline_memory_sites(told.timeline, &sites), 1);
	cr_expect_str_eq(xsp_timeline_name(told.timeline, sites[0].place - 1),
			 "grow (app.cc:12) <- list <- main <- __libc_start_main");
	cr_expect_eq(sites[0].line, 12);
	done(&told);
}
