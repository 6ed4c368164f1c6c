/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples: what sinks get of each, and between which spans. */
#include <sys/syscall.h>

#include "capture_builder.h"

#define SP 0x7ff000000000ULL
#define NO_PROBE UINT32_MAX

enum {
	AT_F1 = 0x1000,
	AT_LEAF = 0x2000,
	AT_EVAL = 0x3000,
	INTO_F1 = 0x4000,
	INTO_MID = 0x5000,
	INTO_EVAL = 0x6000,
	INTO_MAIN = 0x7000,
	NO_CODE = 0x8000
};

struct told {
	char path[16][256];
	struct xsp_sample samples[16];
	size_t count;
	struct xsp_timeline *timeline;
	struct xsp_capture_reader *reader;
};

static int on_sample(void *ctx, const struct xsp_sample *s)
{
	struct told *told = ctx;
	char *path = told->path[told->count];

	cr_assert_lt(told->count, 16);
	for (uint32_t i = 0; i < s->path_length; i++)
		snprintf(path + strlen(path), 256 - strlen(path), "%s%s%s", i > 0 ? ";" : "",
			 s->path[i] & XSP_PATH_FRAME ? "" : "*",
			 xsp_timeline_name(told->timeline, s->path[i] & ~XSP_PATH_FRAME));
	told->samples[told->count++] = *s;
	return 0;
}

static void start(struct builder *b)
{
	builder_begin(b, 2);
	cr_assert_eq(xsp_capture_put_info(b->w, "samples", "cpu-clock 99"), 0);
	address_name(b, XSP_NAME_OF_CODE, AT_F1, "lib.so\nf1");
	address_name(b, XSP_NAME_OF_CODE, AT_LEAF, "lib.so\nleaf");
	address_name(b, XSP_NAME_OF_CODE, AT_EVAL, "python3\n_PyEval_EvalFrameDefault");
	address_name(b, XSP_NAME_OF_RETURN, INTO_F1, "f1");
	address_name(b, XSP_NAME_OF_RETURN, INTO_MID, "mid");
	address_name(b, XSP_NAME_OF_RETURN, INTO_EVAL, "_PyEval_EvalFrameDefault");
	address_name(b, XSP_NAME_OF_RETURN, INTO_MAIN, "main");
	address_name(b, XSP_NAME_OF_RETURN, NO_CODE, "");
}

static void put_line(struct builder *b, uint64_t id, const char *text)
{
	const uint64_t hash = 0x9000 + id;
	struct xsp_capture_python_frame frame = {.name = hash};
	struct xsp_capture_python stack = {.id = id, .count = 1, .frames = &frame};

	cr_assert_eq(xsp_capture_put_name(b->w, hash, text), 0);
	cr_assert_eq(xsp_capture_put_python(b->w, &stack), 0);
}

/* `callers`: return addresses 16 bytes apart, the innermost first; 0 ends them. */
static void sample(struct builder *b, uint64_t sp, uint64_t at, const uint64_t *callers,
		   uint64_t python, int syscall)
{
	struct {
		struct xsp_event_sample e;
		uint64_t sections[24];
	} u = {.e = {.head = {.kind = XSP_EVENT_SAMPLE,
			      .probe = NO_PROBE,
			      .sp = sp,
			      .flags = XSP_EVENT_SECTIONS},
		     .address = at,
		     .period_ns = 10,
		     .syscall = (int16_t)syscall,
		     .kernel = syscall != -2}};
	struct xsp_section *s = (void *)u.sections;
	uint64_t *word = (void *)(s + 1);

	if (python != 0) {
		*s = (struct xsp_section){.type = XSP_SECTION_PYTHON, .size = 16, .value = 1};
		*word++ = python;
		s = (void *)word++;
	}
	*s = (struct xsp_section){.type = XSP_SECTION_STACK, .size = 8};
	for (; callers != NULL && *callers != 0; callers++, s->size += 8)
		*word++ = *callers | 2ULL << XSP_FRAME_SHIFT;
	builder_put(b, &u, (size_t)((char *)word - (char *)&u));
}
#define USER (-2)

static void told_of(struct builder *b, struct told *told)
{
	struct xsp_error err = {0};

	builder_end(b);
	*told = (struct told){.count = 0};
	cr_assert_eq(xsp_capture_open(b->path, &told->reader, &err), 0, "%s", err.text);
	unlink(b->path);
	cr_assert_eq(xsp_timeline_new(told->reader, &told->timeline, &err), 0, "%s", err.text);
	struct xsp_timeline_sink sink = {.ctx = told, .sample = on_sample};
	cr_assert_eq(xsp_timeline_run(told->timeline, &sink, 1, &err), 0, "%s", err.text);
}

static void done(struct told *told)
{
	xsp_timeline_free(told->timeline);
	xsp_capture_close(told->reader);
}

Test(timeline_samples, functions_of_the_kernel)
{
	struct builder b;
	struct told told;
	struct {
		struct xsp_event_sample e;
		struct xsp_section kernel;
	} u = {.e = {.head = {.kind = XSP_EVENT_SAMPLE,
			      .probe = NO_PROBE,
			      .sp = SP,
			      .flags = XSP_EVENT_SECTIONS},
		     .address = AT_LEAF,
		     .kernel = 1},
	       .kernel = {.type = XSP_SECTION_KERNEL, .size = sizeof(struct xsp_section)}};

	start(&b);
	for (uint32_t depth = 0; depth < 2; depth++)
		cr_assert_eq(xsp_capture_put_address_name(b.w, XSP_NAME_OF_KERNEL, 7, depth,
							  depth == 0 ? "copy_[k]" : "vfs_read_[k]"),
			     0);
	for (u.kernel.value = 7; u.kernel.value < 9; u.kernel.value++)
		builder_put(&b, &u, sizeof(u));
	told_of(&b, &told);
	cr_assert_eq(told.count, 2);
	cr_expect_str_eq(told.path[0], "leaf;[kernel] read;vfs_read_[k];copy_[k]");
	cr_expect_eq(told.samples[0].kernel_length, 2);
	cr_expect_str_eq(told.path[1], "leaf;[kernel] read", "of a stack without names");
	cr_expect_eq(told.samples[1].kernel_length, 0);
	done(&told);
}

Test(timeline_samples, spans_stand_around_native_functions)
{
	struct builder b;
	struct told told;

	start(&b);
	sample(&b, SP - 512, AT_LEAF, (uint64_t[]){INTO_MID, INTO_MAIN, NO_CODE, INTO_MID, 0}, 0,
	       USER);
	entry(&b, 0, SP);
	entry(&b, 1, SP - 64);
	/* the second return address is at its span's entry stack pointer: the function that called it */
	sample(&b, SP - 88, AT_LEAF, (uint64_t[]){INTO_F1, INTO_MID, INTO_MAIN, 0}, 0, USER);
	sample(&b, SP - 128, AT_LEAF, (uint64_t[]){INTO_MID, INTO_F1, 0}, 0, 0);
	sample(&b, SP - 96, AT_F1, NULL, 0, -1);
	leave(&b, 1, SP - 64);
	leave(&b, 0, SP);
	told_of(&b, &told);
	cr_assert_eq(told.count, 4);
	cr_expect_str_eq(told.path[0], "main;mid;leaf", "what returns nowhere ends it");
	cr_expect_str_eq(told.path[1], "*f0;*f1;leaf");
	cr_expect_str_eq(told.path[2], "*f0;*f1;mid;leaf;[kernel] read");
	cr_expect_str_eq(told.path[3], "*f0;*f1;[kernel]",
			 "a span's own function is not there twice");
	cr_expect(!told.samples[0].kernel && told.samples[2].kernel);
	cr_expect(!told.samples[1].ends_early && told.samples[3].ends_early);
	cr_expect_str_eq(xsp_timeline_name(told.timeline, told.samples[1].file), "lib.so");
	cr_expect_eq(told.samples[0].period_ns, 10);
	done(&told);
}

Test(timeline_samples, lines_of_python_stand_around_spans_and_for_the_interpreter)
{
	struct builder b;
	struct told told;

	start(&b);
	put_line(&b, 1, "/x/a.py\n7\nstep");
	sample(&b, SP - 512, AT_LEAF, (uint64_t[]){INTO_MID, INTO_EVAL, INTO_MAIN, 0}, 1, USER);
	sample(&b, SP - 512, AT_EVAL, (uint64_t[]){INTO_EVAL, INTO_MAIN, 0}, 1, USER);
	entry(&b, 0, SP - 64);
	sample(&b, SP - 512, AT_LEAF, (uint64_t[]){INTO_MID, 0}, 1, USER);
	sample(&b, SP - 512, AT_LEAF, (uint64_t[]){INTO_MID, 0}, 2, USER);
	told_of(&b, &told);
	cr_expect_str_eq(told.path[0], "a.py:7 step;mid;leaf");
	cr_expect_str_eq(told.path[1], "a.py:7 step;_PyEval_EvalFrameDefault");
	cr_expect_str_eq(told.path[2], "a.py:7 step;*f0;mid;leaf");
	cr_expect_str_eq(told.path[3], "*f0;mid;leaf", "a stack that never came");
	cr_expect_eq(told.samples[3].line, 0);
	done(&told);
}

Test(timeline_samples, none_are_told_where_none_were_recorded)
{
	struct builder b;
	struct told told;

	builder_begin(&b, 1);
	cr_assert_eq(xsp_capture_put_info(b.w, "samples", "off"), 0);
	sample(&b, SP, AT_LEAF, NULL, 0, USER);
	told_of(&b, &told);
	cr_expect_eq(told.count, 0);
	cr_expect(!xsp_timeline_has_samples(told.timeline));
	done(&told);
}

Test(timeline_samples, functions_that_nobody_knows)
{
	struct builder b;
	struct told told;

	start(&b);
	address_name(&b, XSP_NAME_OF_CODE, 0x9000, "no second line");
	address_name(&b, XSP_NAME_OF_CODE, 0x9100, "lib.so\n");
	sample(&b, SP, 0x9000, NULL, 0, USER);
	sample(&b, SP, 0x9100, NULL, 0, USER);
	sample(&b, SP, 0x9200, NULL, 0, 9999);
	sample(&b, SP, 0x9200, NULL, 0, SYS_exit_group);
	told_of(&b, &told);
	cr_expect_str_eq(told.path[0], "[unknown]");
	cr_expect_str_eq(told.path[1], "[unknown]");
	cr_expect_str_eq(told.path[2], "[unknown];[kernel] system call 9999");
	cr_expect_str_eq(told.path[3], "[unknown];[kernel] exit_group");
	done(&told);
}
