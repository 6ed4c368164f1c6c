/* SPDX-License-Identifier: BSD-2-Clause */
/* --weight all: stacks of all the time of threads. Expected figures are counted by hand. */
#include "base/text.h"
#include "model/stacks/merged_stacks.h"
#include "model/stacks/stacks.h"
#include "waits_builder.h"

static void wait_of(struct builder *b, uint64_t left, uint64_t woken, uint64_t back)
{
	struct xsp_event_wait e = {.head = {.kind = XSP_EVENT_WAIT, .probe = NO_PROBE},
				   .left_ns = left,
				   .woken_ns = woken,
				   .syscall = 202,
				   .why = XSP_WAIT_LOCK};
	b->now = back;
	builder_put(b, &e, sizeof(e));
}

static void times_of(struct builder *b, uint64_t ready, uint64_t lock, uint64_t running)
{
	struct xsp_event_times e = {.head = {.kind = XSP_EVENT_TIMES, .probe = NO_PROBE},
				    .since_ns = 1000,
				    .runnable_ns = ready,
				    .running_ns = running};
	e.blocked_ns[XSP_WAIT_LOCK] = lock;
	b->now = 4000;
	builder_put(b, &e, sizeof(e));
}

/* A call of f0 with a wait in it, samples outside of it; and a thread that does nothing. */
static void make(struct builder *b)
{
	start(b);
	sample(b, 1100, AT_HOT);
	sample(b, 1200, AT_HOT);
	b->now = 2000;
	builder_event(b, XSP_EVENT_ENTRY, 0, SP, XSP_EVENT_SP_EXACT);
	sample(b, 2100, AT_COLD); /* in a span: its time is exact */
	wait_of(b, 2400, 2450, 2500);
	b->now = 3000;
	builder_event(b, XSP_EVENT_EXIT, 0, SP, XSP_EVENT_SP_EXACT);
	sample(b, 3500, AT_COLD);
	times_of(b, 50, 50, 2900);
	b->tid = 101;
	times_of(b, 0, 2990, 10);
	builder_end(b);
}

struct read {
	struct xsp_capture_reader *reader;
	struct xsp_timeline *timeline;
	struct xsp_view view;
	struct xsp_stacks *stacks;
};

static void read_all(struct builder *b, struct read *r, struct xsp_view how)
{
	struct xsp_error err = {0};

	*r = (struct read){.view = how};
	cr_assert_eq(xsp_capture_open(b->path, &r->reader, &err), 0, "%s", err.text);
	unlink(b->path);
	cr_assert_eq(xsp_timeline_new(r->reader, &r->timeline, &err), 0, "%s", err.text);
	r->view.reader = r->reader;
	r->view.timeline = r->timeline;
	cr_assert_eq(xsp_stacks_new(&r->view, &r->stacks), 0);
	const struct xsp_timeline_sink sink = xsp_stacks_sink(r->stacks);
	cr_assert_eq(xsp_timeline_run(r->timeline, &sink, 1, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_stacks_seal(r->stacks, XSP_STACKS_BY_NAME), 0);
}

static void clear(struct read *r)
{
	xsp_stacks_free(r->stacks);
	xsp_timeline_free(r->timeline);
	xsp_capture_close(r->reader);
}

/* The own time of all nodes of that name. */
static uint64_t own_of(const struct read *r, const char *name)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; (i = xsp_stacks_next(r->stacks, i)) != 0;)
		if (strcmp(xsp_stacks_name(r->stacks, i), name) == 0)
			sum += xsp_stacks_node(r->stacks, i)->self_ns;
	return sum;
}

Test(stacks, all_time_of_the_threads_that_are_not_idle)
{
	struct builder b;
	struct read r;

	make(&b);
	read_all(&b, &r, (struct xsp_view){.weight = XSP_WEIGHT_ALL});
	cr_expect_eq(xsp_stacks_node(r.stacks, 0)->total_ns, 3000, "%lu",
		     (unsigned long)xsp_stacks_node(r.stacks, 0)->total_ns);
	cr_expect_eq(own_of(&r, "f0"), 1000 - 100);
	cr_expect_eq(own_of(&r, "[lock]"), 50);
	cr_expect_eq(own_of(&r, "[runnable]"), 50);
	/* 2,000 outside of spans: two samples of three, the one that is in a span is none of them */
	cr_expect_eq(own_of(&r, "hot"), 1333, "%lu", (unsigned long)own_of(&r, "hot"));
	cr_expect_eq(own_of(&r, "cold"), 667, "%lu", (unsigned long)own_of(&r, "cold"));
	cr_expect_eq(xsp_stacks_idle(r.stacks), 1);
	clear(&r);
}

Test(stacks, all_time_without_samples_says_so)
{
	struct builder b;
	struct read r;

	start(&b);
	times_of(&b, 0, 1000, 2000);
	builder_end(&b);
	read_all(&b, &r, (struct xsp_view){.weight = XSP_WEIGHT_ALL, .by_thread = true});
	cr_expect_eq(own_of(&r, "[on a CPU, not sampled]"), 2000);
	cr_expect_eq(own_of(&r, "[short waits]"), 1000);
	clear(&r);
}

/* Three steps, each a range of its own name. */
static void make_steps(struct builder *b)
{
	start(b);
	for (unsigned i = 0; i < 3; i++) {
		char text[32];
		snprintf(text, sizeof(text), "ProfilerStep#%u", i + 17);
		const uint64_t hash = xsp_text_hash(text, strlen(text));
		name(b, hash, text, 0);
		b->now = 1000 + 100 * i;
		begin(b, 2, SP, hash);
		b->now = 1050 + 100 * i;
		end(b, 2, SP);
	}
	builder_end(b);
}

Test(stacks, names_that_only_count_are_one_unless_steps_are_asked_for)
{
	struct builder b;
	struct read r;
	struct xsp_merged_stacks merged = {.join_numbered = true};

	make_steps(&b);
	read_all(&b, &r, (struct xsp_view){.weight = XSP_WEIGHT_WALL});
	cr_expect_eq(own_of(&r, "ProfilerStep#*"), 3 * 50);
	cr_expect_eq(own_of(&r, "ProfilerStep#17"), 0);
	clear(&r);
	make_steps(&b);
	read_all(&b, &r, (struct xsp_view){.weight = XSP_WEIGHT_WALL, .by_step = true});
	cr_expect_eq(own_of(&r, "ProfilerStep#18"), 50);
	cr_assert_eq(xsp_merged_add(&merged, r.stacks, 0, false), 0);
	cr_expect_eq(merged.joined, 3);
	cr_expect_eq(merged.nodes.count, 3, "the root, the thread, the step");
	clear(&r);
	xsp_merged_free(&merged);
}
