/* SPDX-License-Identifier: BSD-2-Clause */
/* A capture that is read while it is written: nothing is missed or reported twice, and memory does
 * not grow. */
#include <fcntl.h>
#include <malloc.h>
#include <sys/stat.h>

#include "analysis/names/live.h"
#include "capture_builder.h"

#define MAIN 0x7ffe00001000ULL

struct watched {
	struct builder b;
	struct xsp_capture_reader *reader;
	struct xsp_timeline *timeline;
	struct xsp_live *live;
};

static void watch(struct watched *w, uint32_t probes, bool waits)
{
	struct xsp_error err = {0};

	builder_begin(&w->b, probes);
	cr_assert_eq(xsp_capture_put_info(w->b.w, "waits", waits ? "0" : "off"), 0);
	cr_assert_eq(xsp_capture_put_info(w->b.w, "samples", "cpu-clock 100"), 0);
	cr_assert_eq(xsp_capture_flush(w->b.w), 0);
	cr_assert_eq(xsp_capture_open(w->b.path, &w->reader, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_timeline_new_live(w->reader, &w->timeline, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_live_new(w->timeline, &w->live), 0);
}

static void look(struct watched *w, uint64_t now_ns)
{
	const struct xsp_timeline_sink sink = xsp_live_sink(w->live);
	struct xsp_error err = {0};

	cr_assert_eq(xsp_capture_flush(w->b.w), 0);
	cr_assert_eq(xsp_timeline_follow(w->timeline, &sink, 1, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_live_update(w->live, now_ns), 0);
}

static void stop(struct watched *w)
{
	xsp_live_free(w->live);
	xsp_timeline_free(w->timeline);
	xsp_capture_close(w->reader);
	xsp_capture_abandon(w->b.w);
	unlink(w->b.path);
}

static struct xsp_live_name name_of(const struct watched *w, const char *text)
{
	struct xsp_live_name *names;
	const size_t count = xsp_live_names(w->live, &names);

	for (size_t i = 0; i < count; i++)
		if (strcmp(xsp_timeline_name(w->timeline, names[i].all.name), text) == 0)
			return names[i];
	return (struct xsp_live_name){.calls = 0};
}

static void times(struct builder *b, uint64_t since, uint64_t running, uint64_t lock, unsigned now,
		  bool ended)
{
	struct xsp_event_times e = {.head = {.kind = XSP_EVENT_TIMES, .probe = UINT32_MAX},
				    .since_ns = since,
				    .running_ns = running,
				    .blocked_ns = {[XSP_WAIT_LOCK] = lock},
				    .ended = ended,
				    .now = now};

	builder_put(b, &e, sizeof(e));
}

Test(live, spans_across_looks)
{
	struct watched w;

	watch(&w, 2, false);
	look(&w, 1000);
	entry(&w.b, 0, MAIN); /* 1000 */
	entry(&w.b, 1, MAIN - 100);
	leave(&w.b, 1, MAIN - 100);
	look(&w, 2000);
	cr_expect_eq(name_of(&w, "f0").open, 1);
	cr_expect_eq(name_of(&w, "f0").all.calls, 0);
	cr_expect_eq(name_of(&w, "f1").calls, 1);
	w.b.now = 2500;
	leave(&w.b, 0, MAIN);
	look(&w, 3000);
	cr_expect_eq(xsp_live_interval_ns(w.live), 1000);
	const struct xsp_live_name f0 = name_of(&w, "f0"), f1 = name_of(&w, "f1");
	cr_expect_eq(f0.open, 0);
	cr_expect_eq(f0.calls, 1);
	cr_expect_eq(f0.total_ns, 1500, "it began before the last look");
	cr_expect_eq(f0.self_ns, 1499);
	cr_expect_eq(f1.calls, 0, "that was before");
	cr_expect_eq(f1.all.calls, 1);
	stop(&w);
}

Test(live, what_a_window_has_cut_is_not_open)
{
	struct watched w;

	watch(&w, 2, false);
	w.b.now = 1000;
	entry(&w.b, 0, MAIN);
	look(&w, 1100);
	cr_expect_eq(name_of(&w, "f0").open, 1);
	cr_assert_eq(xsp_capture_put_window(w.b.w, &(struct xsp_capture_window){500, 1500}), 0);
	look(&w, 2000);
	cr_expect_eq(name_of(&w, "f0").open, 0, "its thread has had no event since");
	w.b.now = 2500;
	entry(&w.b, 1, MAIN - 100);
	look(&w, 3000);
	cr_expect_eq(name_of(&w, "f0").open, 0);
	cr_expect_eq(name_of(&w, "f1").open, 1);
	stop(&w);
}

Test(live, probes_and_names_that_come_later)
{
	struct watched w;
	const struct xsp_capture_probe probe = {.id = 1,
						.module = UINT32_MAX,
						.provider = "function",
						.symbol = "",
						.name = "late",
						.exit_complete = true};

	watch(&w, 1, false);
	look(&w, 1000);
	begin(&w.b, 0, MAIN, 77);
	look(&w, 2000);
	name(&w.b, 77, "range", 0);
	look(&w, 3000);
	cr_assert_eq(xsp_capture_put_probe(w.b.w, &probe), 0);
	w.b.probes = 2;
	entry(&w.b, 1, MAIN - 200);
	leave(&w.b, 1, MAIN - 200);
	begin(&w.b, 0, MAIN - 200, 78);
	name(&w.b, 78, "second", 0);
	end(&w.b, 0, MAIN - 200);
	end(&w.b, 0, MAIN);
	look(&w, 4000);
	cr_expect_eq(name_of(&w, "range").calls, 1);
	cr_expect_eq(name_of(&w, "second").calls, 1);
	cr_expect_eq(name_of(&w, "late").calls, 1);
	stop(&w);
}

/* One or more ranges, each with a name of its own. */
static void make_up(struct watched *w, uint32_t from, uint32_t count)
{
	for (uint32_t i = from; i < from + count; i++) {
		char text[120];
		snprintf(text, sizeof(text), "%0100u", i);
		name(&w->b, 1000 + i, text, 0);
		begin(&w->b, 0, MAIN, 1000 + i);
		end(&w->b, 0, MAIN);
		if (i % 16384 == 0)
			look(w, w->b.now);
	}
	look(w, w->b.now);
}

/* A program may make up names for days. */
Test(live, names_beyond_those_that_are_kept)
{
	struct watched w;

	watch(&w, 1, false);
	make_up(&w, 0, 140000); /* 131,072 are kept */
	const size_t before = mallinfo2().uordblks;
	make_up(&w, 140000, 100000);
	cr_expect_lt(mallinfo2().uordblks, before + (1 << 20));
	cr_expect_eq(name_of(&w, "[name not readable]").all.calls, 240000 - 131072);
	stop(&w);
}

Test(live, what_threads_do)
{
	struct xsp_live_thread *threads;
	struct watched w;

	watch(&w, 1, true);
	look(&w, 1000);
	w.b.now = 2000;
	times(&w.b, 1000, 400, 600, XSP_NOW_WAITS + XSP_WAIT_LOCK, false);
	look(&w, 2000);
	w.b.now = 3000;
	entry(&w.b, 0, MAIN);
	w.b.now = 4000;
	times(&w.b, 1000, 1100, 1900, XSP_NOW_RUNS, false);
	look(&w, 4000);
	cr_assert_eq(xsp_live_threads(w.live, &threads), 1);
	cr_expect_eq(threads[0].interval_ns, 2000);
	cr_expect_eq(threads[0].running_ns, 700);
	cr_expect_eq(threads[0].blocked_ns[XSP_WAIT_LOCK], 1300);
	cr_expect_eq(threads[0].now, XSP_NOW_RUNS);
	cr_assert(threads[0].has_open);
	cr_expect_str_eq(xsp_timeline_name(w.timeline, threads[0].open), "f0");
	times(&w.b, 1000, 1200, 1900, 0, true);
	look(&w, 5000);
	cr_expect_eq(xsp_live_threads(w.live, &threads), 0, "it has ended");
	stop(&w);
}

static void sample_at(struct watched *w, uint64_t ns, uint64_t address)
{
	struct xsp_event_sample e = {
		.head = {.kind = XSP_EVENT_SAMPLE, .probe = UINT32_MAX, .sp = MAIN},
		.address = address,
		.period_ns = 10,
		.syscall = -2};

	w->b.now = ns;
	builder_put(&w->b, &e, sizeof(e));
}

/* The last sample of an interval says where a thread was; without one it is not known. */
Test(live, where_threads_are)
{
	struct xsp_live_thread *threads;
	struct watched w;

	watch(&w, 1, true);
	address_name(&w.b, XSP_NAME_OF_CODE, 1, "app\nfirst");
	address_name(&w.b, XSP_NAME_OF_CODE, 2, "app\nsecond");
	sample_at(&w, 1100, 1);
	sample_at(&w, 1200, 2);
	w.b.now = 2000;
	times(&w.b, 1000, 1000, 0, XSP_NOW_RUNS, false);
	look(&w, 2000);
	cr_assert_eq(xsp_live_threads(w.live, &threads), 1);
	cr_assert_neq(threads[0].place, 0);
	cr_expect_str_eq(xsp_timeline_name(w.timeline, threads[0].place - 1), "second");
	w.b.now = 3000;
	times(&w.b, 1000, 1000, 1000, XSP_NOW_WAITS + XSP_WAIT_LOCK, false);
	look(&w, 3000);
	cr_assert_eq(xsp_live_threads(w.live, &threads), 1);
	cr_expect_eq(threads[0].place, 0);
	stop(&w);
}

/* A thread that is silent for long keeps its name; nothing stays of those that have ended. */
Test(live, names_of_threads)
{
	struct xsp_live_thread *threads;
	const struct xsp_capture_thread *defined;
	struct watched w;

	watch(&w, 1, false);
	for (uint32_t i = 0; i < 50; i++)
		cr_assert_eq(xsp_capture_put_thread(
				     w.b.w,
				     &(struct xsp_capture_thread){.pid = 100,
								  .tid = 100 + i,
								  .ns_tid = i + 1,
								  .comm = i == 7 ? "silent" : "x"}),
			     0);
	for (uint64_t round = 0; round < 20; round++) {
		for (uint32_t i = 1000; i < 1500; i++) {
			w.b.tid = i;
			task(&w.b, XSP_TASK_FORK, "short");
			entry(&w.b, 0, MAIN);
			leave(&w.b, 0, MAIN);
			task(&w.b, XSP_TASK_EXIT, "short");
		}
		look(&w, 1000000 * (round + 1));
		cr_expect_eq(xsp_live_threads(w.live, &threads), 0);
	}
	cr_expect_leq(xsp_capture_threads(w.reader, &defined), 50);
	w.b.tid = 107;
	entry(&w.b, 0, MAIN);
	look(&w, 1000000000);
	cr_assert_eq(xsp_live_threads(w.live, &threads), 1);
	cr_expect_str_eq(threads[0].comm, "silent");
	cr_expect_eq(threads[0].ns_tid, 8);
	look(&w, 1000000001);
	cr_assert_eq(xsp_live_threads(w.live, &threads), 1);
	cr_expect_str_eq(threads[0].comm, "silent");
	cr_expect_eq(name_of(&w, "f0").all.calls, 10000);
	stop(&w);
}

/* The file does not keep what was read. */
Test(live, file_is_given_back)
{
	struct watched w;
	struct stat st;

	watch(&w, 1, false);
	int fd = open(w.b.path, O_RDWR);
	cr_assert(fd >= 0);
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 1 << 30, 4096) != 0)
		cr_skip_test("this file system gives nothing back");
	close(fd);
	xsp_capture_close(w.reader);
	xsp_timeline_free(w.timeline);
	xsp_live_free(w.live);
	fd = open(w.b.path, O_RDWR);
	struct xsp_error err = {0};
	cr_assert_eq(xsp_capture_open_descriptor(fd, "it", &w.reader, &err), 0, "%s", err.text);
	close(fd);
	cr_assert_eq(xsp_timeline_new_live(w.reader, &w.timeline, &err), 0);
	cr_assert_eq(xsp_live_new(w.timeline, &w.live), 0);
	for (uint64_t round = 0; round < 10; round++) {
		for (unsigned i = 0; i < 50000; i++) {
			entry(&w.b, 0, MAIN);
			leave(&w.b, 0, MAIN);
		}
		look(&w, 1000 * (round + 1));
	}
	cr_assert_eq(stat(w.b.path, &st), 0);
	cr_expect_gt(st.st_size, 10 * 3000000);
	cr_expect_lt(st.st_blocks * 512, 5000000);
	cr_expect_eq(name_of(&w, "f0").all.calls, 500000);
	stop(&w);
}
