/* SPDX-License-Identifier: BSD-2-Clause */
/* Triggers: what is one, and when each fires. */
#include "capture_builder.h"
#include "trigger/watch.h"

static struct xsp_trigger parsed(const char *text)
{
	struct xsp_error err = {0};
	struct xsp_trigger t;

	cr_assert_eq(xsp_trigger_parse(text, &t, &err), 0, "%s: %s", text, err.text);
	return t;
}

Test(trigger, expressions)
{
	static const struct {
		const char *text;
		enum xsp_trigger_kind kind;
		const char *name;
		double most;
		const char *word;
	} all[] = {
		{"aten::mm>50ms", XSP_TRIGGER_SPAN, "aten::mm", 50e6, "span"},
		{"std::vector<int>::at>1.5s", XSP_TRIGGER_SPAN, "std::vector<int>::at", 1.5e9,
		 "span"},
		{"operator>>2us", XSP_TRIGGER_SPAN, "operator>", 2e3, "span"},
		{"connect/s>100", XSP_TRIGGER_RATE, "connect", 100, "rate"},
		{"step>1.5x", XSP_TRIGGER_SLOW_STEP, NULL, 1.5, "step"},
		{"step>200ms", XSP_TRIGGER_STEP, NULL, 200e6, "step"},
		{"wait:lock>1s", XSP_TRIGGER_WAIT, NULL, 1e9, "wait"},
		{"rss>20G", XSP_TRIGGER_RSS, NULL, 20.0 * (1 << 30), "rss"},
		{"rss+100M/min", XSP_TRIGGER_GROWTH, NULL, 100.0 * (1 << 20), "growth"},
		{"gpu-idle>2s", XSP_TRIGGER_GPU_IDLE, NULL, 2e9, "gpu-idle"},
		{"lost>0", XSP_TRIGGER_LOST, NULL, 0, "lost"},
		{"exit!=0", XSP_TRIGGER_EXIT, NULL, 0, "exit"},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct xsp_trigger t = parsed(all[i].text);
		cr_expect_eq(t.kind, all[i].kind, "%s", all[i].text);
		cr_expect_float_eq(t.most, all[i].most, 1e-6, "%s: %f", all[i].text, t.most);
		cr_expect_str_eq(t.name != NULL ? t.name : "",
				 all[i].name != NULL ? all[i].name : "");
		cr_expect_str_eq(xsp_trigger_word(&t), all[i].word);
		xsp_trigger_clear(&t);
	}
	struct xsp_trigger t = parsed("rss+1G/h");
	cr_expect_float_eq(t.per_ns, 3600e9, 1);
	t = parsed("wait:network>1s");
	cr_expect_eq(t.wait, XSP_WAIT_NETWORK);
}

Test(trigger, what_is_none_has_one_line)
{
	static const char *const wrong[] = {
		"",	    "slow",	">50ms",	 "f>50",      "f>",	    "f>-1s",
		"f/s>many", "step>1x",	"step>0.5x",	 "step>fast", "wait:me>1s", "wait:lock>1",
		"rss>much", "rss+100M", "rss+100M/year", "rss+/min",  "gpu-idle>2", "lost>some",
		"exit!=1",  "exit>0",	"f>nan",	 "step>infx", "f>1s>",	    "f/s>1e999",
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct xsp_error err = {0};
		struct xsp_trigger t;
		cr_expect_lt(xsp_trigger_parse(wrong[i], &t, &err), 0, "%s", wrong[i]);
		cr_expect_eq(err.status, XSP_STATUS_TRIGGER, "%s", wrong[i]);
		cr_expect_not_null(strstr(err.text, "--trigger"), "%s", err.text);
		cr_expect_null(strchr(err.text, '\n'));
		xsp_trigger_clear(&t);
	}
}

/* ---- evaluation ---- */

#define MOST 4

struct watching {
	struct xsp_trigger triggers[MOST];
	struct xsp_watch *watch;
	unsigned fired[MOST];
	char why[300];
	struct xsp_moment when; /* of the last one */
};

static void on_fire(void *ctx, size_t trigger, struct xsp_moment when, const char *why)
{
	struct watching *w = ctx;

	cr_assert_lt(trigger, MOST);
	w->fired[trigger]++;
	w->when = when;
	snprintf(w->why, sizeof(w->why), "%s", why);
}

static void watch(struct watching *w, size_t count, const char *const *texts)
{
	*w = (struct watching){.watch = NULL};
	for (size_t i = 0; i < count; i++)
		w->triggers[i] = parsed(texts[i]);
	cr_assert_eq(xsp_watch_new(w->triggers, count, on_fire, w, &w->watch), 0);
}

static void stop(struct watching *w)
{
	xsp_watch_free(w->watch);
	for (size_t i = 0; i < MOST; i++)
		xsp_trigger_clear(&w->triggers[i]);
}

static void facts(struct watching *w, uint64_t s, uint64_t resident, uint64_t lost, uint64_t gpu_s)
{
	xsp_watch_facts(w->watch, &(struct xsp_watch_facts){.now_ns = s * 1000000000,
							    .resident = resident,
							    .lost = lost,
							    .gpu_ns = gpu_s * 1000000000});
}

Test(trigger, memory_fires_when_it_rises)
{
	struct watching w;

	watch(&w, 1, (const char *const[]){"rss>1000K"});
	for (uint64_t s = 0; s < 5; s++)
		facts(&w, s, 900 << 10, 0, 0);
	cr_expect_eq(w.fired[0], 0);
	for (uint64_t s = 5; s < 10; s++)
		facts(&w, s, 1200 << 10, 0, 0);
	facts(&w, 10, 990 << 10, 0, 0); /* a little below is no other time */
	facts(&w, 11, 1200 << 10, 0, 0);
	cr_expect_eq(w.fired[0], 1);
	facts(&w, 12, 800 << 10, 0, 0);
	facts(&w, 13, 1200 << 10, 0, 0);
	cr_expect_eq(w.fired[0], 2);
	stop(&w);
}

Test(trigger, growth_is_that_of_its_time)
{
	struct watching w;
	uint64_t bytes = 1 << 30;

	watch(&w, 1, (const char *const[]){"rss+100M/min"});
	/* as much at once as a start takes, and then nothing: no leak */
	facts(&w, 1, bytes, 0, 0);
	for (uint64_t s = 2; s < 200; s++)
		facts(&w, s, bytes, 0, 0);
	cr_expect_eq(w.fired[0], 0);
	for (uint64_t s = 200; s < 320; s++) /* 60 MiB a minute */
		facts(&w, s, bytes += 1 << 20, 0, 0);
	cr_expect_eq(w.fired[0], 0, "%s", w.why);
	for (uint64_t s = 320; s < 440; s++) /* 180 MiB a minute */
		facts(&w, s, bytes += 3 << 20, 0, 0);
	cr_expect_eq(w.fired[0], 2, "%u", w.fired[0]);
	stop(&w);
}

Test(trigger, what_the_recorder_knows)
{
	struct watching w;

	watch(&w, 3, (const char *const[]){"lost>10", "gpu-idle>2s", "exit!=0"});
	facts(&w, 1, 0, 10, 0);
	facts(&w, 20, 0, 10, 0); /* no GPU so far */
	cr_expect_eq(w.fired[0] + w.fired[1], 0);
	facts(&w, 21, 0, 11, 20);
	facts(&w, 22, 0, 15, 20);
	cr_expect_eq(w.fired[0], 1);
	cr_expect_eq(w.fired[1], 0);
	facts(&w, 23, 0, 22, 20);
	facts(&w, 30, 0, 22, 20);
	cr_expect_eq(w.fired[0], 2);
	cr_expect_eq(w.fired[1], 1, "once for one idle time");
	facts(&w, 31, 0, 22, 30);
	facts(&w, 33, 0, 22, 30);
	cr_expect_eq(w.fired[1], 2);
	xsp_watch_exit(w.watch, 7, 0);
	cr_expect_eq(w.fired[2], 0);
	xsp_watch_exit(w.watch, 7, 3);
	cr_expect_eq(w.fired[2], 1);
	cr_expect_str_eq(w.why, "process 7 ended with status 3");
	stop(&w);
}

Test(trigger, locks_and_not_conditions)
{
	struct watching w;
	struct xsp_event_wait e = {.head = {.time_ns = 3000000000, .tid = 5},
				   .left_ns = 1000000000,
				   .why = XSP_WAIT_LOCK};

	watch(&w, 1, (const char *const[]){"wait:lock>1s"});
	xsp_watch_wait(w.watch, &e); /* a condition: it is idle */
	cr_expect_eq(w.fired[0], 0);
	e.flags = XSP_WAIT_MUTEX;
	xsp_watch_wait(w.watch, &e);
	e.head.time_ns += 1000000000;
	xsp_watch_wait(w.watch, &e);
	cr_expect_eq(w.fired[0], 1, "one wait");
	e.left_ns = e.head.time_ns - 500000000;
	xsp_watch_wait(w.watch, &e);
	cr_expect_eq(w.fired[0], 1, "a shorter one");
	stop(&w);
}

/* ---- what a timeline says ---- */

struct live {
	struct watching w;
	struct builder b;
	struct xsp_capture_reader *reader;
	struct xsp_timeline *timeline;
	bool goes_on; /* what is too long already */
};

static void put_stack(struct builder *b, uint64_t id)
{
	const struct xsp_capture_python_frame frame = {.name = 0x9001};
	const struct xsp_capture_python stack = {.id = id, .count = 1, .frames = &frame};

	cr_assert_eq(xsp_capture_put_python(b->w, &stack), 0);
}

static void begin_live(struct live *l, size_t count, const char *const *texts)
{
	struct xsp_error err = {0};

	watch(&l->w, count, texts);
	builder_begin(&l->b, 3);
	cr_assert_eq(xsp_capture_put_name(l->b.w, 77, "Optimizer.step#SGD.step"), 0);
	put_stack(&l->b, 1);
	cr_assert_eq(xsp_capture_flush(l->b.w), 0);
	cr_assert_eq(xsp_capture_open(l->b.path, &l->reader, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_timeline_new_live(l->reader, &l->timeline, &err), 0, "%s", err.text);
	xsp_watch_begin(l->w.watch, l->timeline);
}

static void look(struct live *l)
{
	const struct xsp_timeline_sink sink = xsp_watch_sink(l->w.watch);

	cr_assert_eq(xsp_capture_flush(l->b.w), 0);
	cr_assert_eq(xsp_timeline_follow(l->timeline, &sink, 1, NULL), 0);
	l->goes_on = xsp_watch_look(l->w.watch, l->b.now);
}

static void end_live(struct live *l)
{
	stop(&l->w);
	xsp_timeline_free(l->timeline);
	xsp_capture_close(l->reader);
	xsp_capture_abandon(l->b.w);
	unlink(l->b.path);
}

#define MS 1000000ULL

static void call(struct builder *b, uint32_t probe, uint64_t ns)
{
	entry(b, probe, 4096);
	b->now += ns - 1;
	leave(b, probe, 4096);
}

Test(trigger, calls_that_take_too_long)
{
	struct live l;

	begin_live(&l, 2, (const char *const[]){"f1>50ms", "f*/s>4"});
	l.b.now = 5000 * MS;
	call(&l.b, 1, 50 * MS);
	call(&l.b, 0, 500 * MS);
	look(&l);
	cr_expect_eq(l.w.fired[0], 0);
	call(&l.b, 1, 51 * MS);
	look(&l);
	cr_expect_eq(l.w.fired[0], 1);
	cr_expect_not_null(strstr(l.w.why, "f1 took 51"), "%s", l.w.why);
	cr_expect_eq(l.w.when.end_ns - l.w.when.start_ns, 51 * MS);
	cr_expect_eq(l.w.when.end_ns, l.b.now - 1);

	/* one that has not returned fires once, also when it does */
	entry(&l.b, 1, 4096);
	l.b.now += 40 * MS;
	look(&l);
	cr_expect_eq(l.w.fired[0], 1);
	cr_expect(!l.goes_on);
	l.b.now += 40 * MS;
	look(&l);
	look(&l);
	cr_expect_eq(l.w.fired[0], 2);
	cr_expect(l.goes_on);
	cr_expect_not_null(strstr(l.w.why, "has not returned"), "%s", l.w.why);
	leave(&l.b, 1, 4096);
	look(&l);
	cr_expect_eq(l.w.fired[0], 2);
	cr_expect(!l.goes_on);

	/* calls in a second: counted when that is over */
	cr_expect_eq(l.w.fired[1], 0);
	l.b.now = 10000 * MS;
	for (int i = 0; i < 5; i++)
		call(&l.b, 2, MS);
	l.b.now = 11000 * MS;
	call(&l.b, 2, MS);
	look(&l);
	cr_expect_eq(l.w.fired[1], 1);
	cr_expect_not_null(strstr(l.w.why, "5 calls of f*"), "%s", l.w.why);
	end_live(&l);
}

static void step(struct builder *b, uint64_t ns)
{
	b->now += ns - 2;
	begin(b, 0, 4096, 77);
	end(b, 0, 4096);
}

Test(trigger, steps)
{
	struct live l;

	begin_live(&l, 2, (const char *const[]){"step>1.5x", "step>200ms"});
	l.b.now = 5000 * MS;
	for (int i = 0; i < 5; i++)
		step(&l.b, 100 * MS);
	step(&l.b, 180 * MS); /* the median of so few is not known */
	for (int i = 0; i < 20; i++)
		step(&l.b, (unsigned)(90 + i) * MS);
	look(&l);
	cr_expect_eq(l.w.fired[0] + l.w.fired[1], 0, "%s", l.w.why);
	step(&l.b, 170 * MS);
	look(&l);
	cr_expect_eq(l.w.fired[0], 1);
	cr_expect_not_null(strstr(l.w.why, "1.7 times the median of 100 ms"), "%s", l.w.why);
	step(&l.b, 300 * MS);
	look(&l);
	cr_expect_eq(l.w.fired[0], 2);
	cr_expect_eq(l.w.fired[1], 1);

	/* a step that does not end: once, and not again when it does */
	l.b.now += 250 * MS;
	look(&l);
	look(&l);
	cr_expect_eq(l.w.fired[1], 2);
	step(&l.b, 50 * MS);
	look(&l);
	cr_expect_eq(l.w.fired[1], 2);
	end_live(&l);
}

static void enter_in_python(struct builder *b, uint32_t probe, uint64_t sp, uint64_t id)
{
	struct {
		struct xsp_event_range range;
		struct xsp_section section;
		uint64_t id;
	} e = {.range.head = {.kind = XSP_EVENT_ENTRY,
			      .probe = probe,
			      .sp = sp,
			      .flags = XSP_EVENT_SP_EXACT | XSP_EVENT_SECTIONS},
	       .section = {.type = XSP_SECTION_PYTHON, .size = 16, .value = 1},
	       .id = id};

	builder_put(b, &e, sizeof(e));
}

/* Stacks that come while a call is open: their table grows and moves, and a call in it has one, too. */
Test(trigger, lines_of_python_that_come_meanwhile)
{
	struct live l;

	begin_live(&l, 1, (const char *const[]){"f0>50ms"});
	l.b.now = 5000 * MS;
	cr_assert_eq(xsp_capture_put_name(l.b.w, 0x9001, "/x/train.py\n10\nforward"), 0);
	enter_in_python(&l.b, 0, 4096, 1);
	look(&l);
	for (uint64_t id = 2; id < 5000; id++)
		put_stack(&l.b, id);
	look(&l);
	enter_in_python(&l.b, 1, 2048, 1);
	leave(&l.b, 1, 2048);
	l.b.now += 60 * MS;
	leave(&l.b, 0, 4096);
	look(&l);
	cr_expect_eq(l.w.fired[0], 1);
	end_live(&l);
}

/* What was passed over: another timeline, whose names may have other numbers. */
Test(trigger, another_timeline)
{
	struct xsp_timeline *other;
	struct live l;

	begin_live(&l, 1, (const char *const[]){"f1>50ms"});
	l.b.now = 5000 * MS;
	entry(&l.b, 1, 4096);
	look(&l);
	cr_assert_eq(xsp_timeline_new_live(l.reader, &other, NULL), 0);
	xsp_timeline_free(l.timeline);
	l.timeline = other;
	xsp_watch_begin(l.w.watch, other);
	l.b.now += 100 * MS;
	leave(&l.b, 1, 4096);
	look(&l);
	cr_expect_eq(l.w.fired[0], 0, "its beginning is not known");
	call(&l.b, 1, 60 * MS);
	look(&l);
	cr_expect_eq(l.w.fired[0], 1);
	end_live(&l);
}
