/* SPDX-License-Identifier: BSD-2-Clause */
/* The formats, fed with spans by hand. What real readers make of them: tests/consumers. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "catalog/wait_reasons.h"
#include "export/export.h"
#include "model/stacks/stacks.h"
#include "page/timeline/tracks.h"

#define PERIOD_NS (7889238ULL * 1000000000ULL) /* kineto-trace.md section 2 */

static char folder[] = "/tmp/xsp-formats-XXXXXX";
static char capture[256], output[256];
static struct xsp_capture_reader *reader;
static struct xsp_timeline *timeline;
static char *note; /* expected in the output */

static const char *const function_names[] = {"outer", "inner", "twin", "twin",
					     "a;b \"\x01\xff<&>]]>"};
static const struct xsp_capture_process processes[] = {
	{.pid = 10, .ns_pid = 1, .comm = "first"},
	{.pid = 11, .ns_pid = 1, .comm = "second"},
	/* it knows itself by the number that the first has for us */
	{.pid = 20, .ns_pid = 10, .comm = "third"},
	{.pid = 30, .ns_pid = 5, .comm = "fourth"},
};

static void setup(void)
{
	cr_assert_not_null(mkdtemp(folder));
	snprintf(capture, sizeof(capture), "%s/c.xspt", folder);
}

static void teardown(void)
{
	char command[300];

	xsp_timeline_free(timeline);
	xsp_capture_close(reader);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	cr_assert_eq(system(command), 0);
}

TestSuite(export_formats, .init = setup, .fini = teardown);

/* A capture with definitions only, its window at start_ns. */
static void define(uint64_t start_ns, uint64_t end_ns)
{
	struct xsp_capture_writer *w = NULL;
	struct xsp_error err = {0};

	cr_assert_eq(xsp_capture_create(open(capture, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600),
					capture, &w, &err),
		     0, "%s", err.text);
	xsp_capture_put_clock(w);
	for (size_t i = 0; i < sizeof(processes) / sizeof(processes[0]); i++) {
		const struct xsp_capture_process *p = &processes[i];
		xsp_capture_put_process(w, p);
		xsp_capture_put_thread(
			w, &(struct xsp_capture_thread){p->pid, p->pid, p->ns_pid, p->comm});
		xsp_capture_put_thread(w, &(struct xsp_capture_thread){p->pid, p->pid + 500,
								       p->ns_pid + 50, p->comm});
	}
	xsp_capture_put_module(w, &(struct xsp_capture_module){.id = 0, .path = "/lib/x.so"});
	for (uint32_t i = 0; i < sizeof(function_names) / sizeof(function_names[0]); i++)
		xsp_capture_put_probe(w, &(struct xsp_capture_probe){.id = i,
								     .module = 0,
								     .addr = 0x100 + i,
								     .size = 1,
								     .provider = "function",
								     .symbol = "",
								     .name = function_names[i],
								     .exit_complete = true});
	cr_assert_eq(xsp_capture_finish(w, start_ns, end_ns, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_capture_open(capture, &reader, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_timeline_new(reader, &timeline, &err), 0, "%s", err.text);
}

static struct xsp_export *open_by(const char *name, bool by_thread)
{
	struct xsp_export *x = NULL;
	struct xsp_error err = {0};

	snprintf(output, sizeof(output), "%s/%s", folder, name);
	struct xsp_export_options options = {.path = output,
					     .owner_uid = (uid_t)-1,
					     .owner_gid = (gid_t)-1,
					     .note = &note,
					     .by_thread = by_thread};
	cr_assert_eq(xsp_export_open(&options, reader, timeline, &x, &err), 0, "%s", err.text);
	return x;
}

static struct xsp_export *open_export(const char *name)
{
	return open_by(name, false);
}

static void feed(struct xsp_export *x, struct xsp_span span)
{
	struct xsp_timeline_sink sink = xsp_export_sink(x);

	cr_assert_eq(sink.span(sink.ctx, &span), 0);
}

static const char *finish(struct xsp_export *x)
{
	enum { SIZE = 16 << 20 };
	/* an array would be searched for pointers at the end of each test's process */
	static char *text;
	struct xsp_error err = {0};

	text = text != NULL ? text : malloc(SIZE);
	cr_assert_not_null(text);
	cr_assert_eq(xsp_export_finish(x, &err), 0, "%s", err.text);
	FILE *f = fopen(output, "r");
	cr_assert_not_null(f);
	text[fread(text, 1, SIZE - 1, f)] = '\0';
	fclose(f);
	return text;
}

static xsp_name_id name_id(const char *name)
{
	for (xsp_name_id i = 0; i < xsp_timeline_name_count(timeline); i++)
		if (strcmp(xsp_timeline_name(timeline, i), name) == 0)
			return i;
	cr_assert_fail("no name %s", name);
	return 0;
}

static uint64_t nanoseconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

enum { SPANS = 1000 }; /* ASan's strstr() reads all of the text, each time */

/* Writes spans `step` ns apart from `offset` ns after the start of the next base period on, and
 * reads them as a reader with doubles does. Returns how many had more than three decimals. */
static unsigned round_trip(uint64_t offset, uint64_t step)
{
	uint64_t real = nanoseconds(CLOCK_REALTIME), monotonic = nanoseconds(CLOCK_MONOTONIC);
	uint64_t base = (real / PERIOD_NS + 1) * PERIOD_NS,
		 start = monotonic + (base + offset - real);
	unsigned longer = 0, n = 0;
	char key[64];

	define(start, start + SPANS * step);
	uint64_t from = xsp_capture_realtime(reader, start) - base;
	struct xsp_export *x = open_export("t.json");
	for (uint64_t i = 0; i < SPANS; i++)
		feed(x, (struct xsp_span){.pid = 30,
					  .tid = 30,
					  .start_ns = start + i * step,
					  .end_ns = start + i * step + 7,
					  .serial = i});
	const char *text = finish(x);
	snprintf(key, sizeof(key), "\"baseTimeNanoseconds\":%" PRIu64 ",", base);
	cr_assert_not_null(strstr(text, key), "base time");
	for (const char *at = text; (at = strstr(at, "\"ph\":\"X\",\"cat\":\"cpu_op\"")) != NULL;
	     n++) {
		at = strstr(at, "\"ts\":") + 5;
		char *end;
		double us = strtod(at, &end);
		cr_assert_eq(llround(us * 1000), (long long)(from + n * step), "%.20s", at);
		longer += strspn(strchr(at, '.') + 1, "0123456789") > 3;
	}
	cr_assert_eq(n, SPANS);
	xsp_timeline_free(timeline);
	xsp_capture_close(reader);
	timeline = NULL;
	reader = NULL;
	return longer;
}

Test(export_formats, time_stamps_survive_a_double)
{
	const uint64_t day = 86400ULL * 1000000000;

	cr_expect_eq(round_trip(0, 1), 0);
	cr_expect_eq(round_trip(30 * day, 7), 0);
	cr_expect_eq(round_trip(50 * day, 7), 0);
	cr_expect_eq(round_trip(53 * day, 7), 0);
	cr_expect_eq(round_trip(91 * day, 7), 0);
	/* past 2^42 µs, before 2^52 ns: a quarter of the values needs the fourth decimal */
	unsigned longer = round_trip((1ULL << 42) * 1000, 1);
	cr_expect(longer > SPANS / 5 && longer < 3 * SPANS / 5, "%u", longer);
	longer = round_trip(52 * day, 7);
	cr_expect(longer > SPANS / 5 && longer < 3 * SPANS / 5, "%u", longer);
}

static void expect_text(const char *text, const char *part, bool there)
{
	cr_expect((strstr(text, part) != NULL) == there, "%s: %s", there ? "missing" : "present",
		  part);
}

Test(export_formats, pids_of_several_namespaces_do_not_collide)
{
	define(1000, 100000);
	struct xsp_export *x = open_export("t.json");
	static const uint32_t pids[] = {10, 11, 20, 30};
	for (uint32_t i = 0; i < 4; i++) {
		feed(x, (struct xsp_span){
				.pid = pids[i], .tid = pids[i], .start_ns = 2000, .end_ns = 3000});
		feed(x, (struct xsp_span){.pid = pids[i],
					  .tid = pids[i] + 500,
					  .start_ns = 2000,
					  .end_ns = 3000});
	}
	/* never defined, with the number of a process that is shown already */
	feed(x, (struct xsp_span){.pid = 5, .tid = 5, .start_ns = 2000, .end_ns = 3000});
	const char *text = finish(x);
	expect_text(text, "\"pid\":10,\"tid\":10,", true);
	expect_text(text, "\"pid\":10,\"tid\":510,", true);
	expect_text(text, "\"pid\":11,\"tid\":11,", true);
	expect_text(text, "\"pid\":11,\"tid\":511,", true);
	expect_text(text, "\"pid\":20,\"tid\":20,", true);
	expect_text(text, "\"pid\":20,\"tid\":520,", true);
	/* the fourth, by the numbers of its own namespace */
	expect_text(text, "\"pid\":5,\"tid\":5,", true);
	expect_text(text, "\"pid\":5,\"tid\":55,", true);
	expect_text(text, "\"pid\":1,", false);
	expect_text(text,
		    "\"pid\":20,\"tid\":0,\"args\":{\"labels\":\"CPU (ids of the root pid "
		    "namespace)\"}",
		    true);
}

static void tell_kernel(struct xsp_timeline_sink sink, uint32_t pid, uint32_t device)
{
	const struct xsp_gpu_kernel k = {.head = {XSP_GPU_KERNEL, sizeof(k), 1}};

	cr_assert_eq(sink.gpu(sink.ctx, &(struct xsp_gpu_activity){.kind = XSP_GPU_IS_KERNEL,
								   .record = &k,
								   .name = "k",
								   .pid = pid,
								   .device = device,
								   .stream = 7,
								   .start_ns = 2000,
								   .end_ns = 3000}),
		     0);
}

static void feed_kernel(struct xsp_export *x, uint32_t pid, uint32_t device)
{
	tell_kernel(xsp_export_sink(x), pid, device);
}

/* The first number above those of Linux (pid_max is at most 2^22). */
#define KERNEL_AT(pid) "\"cat\":\"kernel\",\"name\":\"k\",\"pid\":" #pid ",\"tid\":7,"
#define LABEL_OF(pid, label) "\"pid\":" #pid ",\"tid\":0,\"args\":{\"labels\":\"" label "\"}"

/* In a container, where the fourth process knows itself as 5. */
Test(export_formats, gpus_are_not_processes_of_their_number)
{
	define(1000, 100000);
	struct xsp_export *x = open_export("t.json");
	feed_kernel(x, 30, 5); /* before anything else of the process */
	feed_kernel(x, 30, 0);
	feed(x, (struct xsp_span){.pid = 30, .tid = 30, .start_ns = 2000, .end_ns = 3000});
	const char *text = finish(x);
	expect_text(text, KERNEL_AT(0), true);
	expect_text(text, KERNEL_AT(5), false);
	expect_text(text, KERNEL_AT(4194305), true);
	expect_text(text, LABEL_OF(0, "GPU 0"), true);
	expect_text(text, LABEL_OF(4194305, "GPU 5"), true);
	expect_text(text, LABEL_OF(5, "CPU"), true);
	expect_text(text, LABEL_OF(5, "GPU 5"), false);
	expect_text(text, "\"pid\":5,\"tid\":5,", true);
}

Test(export_formats, a_gpu_of_two_processes_has_rows_of_each)
{
	define(1000, 100000);
	struct xsp_export *x = open_export("t.json");
	feed_kernel(x, 30, 0);
	feed_kernel(x, 20, 0);
	feed_kernel(x, 20, 1);
	const char *text = finish(x);
	expect_text(text, KERNEL_AT(0), true);
	expect_text(text, KERNEL_AT(4194305), true);
	expect_text(text, KERNEL_AT(1), true);
	expect_text(text, LABEL_OF(1, "GPU 1 (process 20)"), true);
	expect_text(text, LABEL_OF(0, "GPU 0 (process 5)"), true);
	expect_text(text, LABEL_OF(4194305, "GPU 0 (process 20)"), true);
	expect_text(text, "\"pid\":4194305,\"tid\":7,\"args\":{\"name\":\"stream 7 \"}", true);
}

Test(export_formats, a_gpu_of_two_processes_has_tracks_of_each)
{
	static char text[1 << 16];
	struct xsp_timeline_sink sink;
	struct xsp_tracks *t;

	define(1000, 100000);
	cr_assert_eq(xsp_tracks_new(1000, NULL, &t), 0);
	cr_assert_eq(xsp_tracks_begin(t, reader, timeline, 0, &sink), 0);
	tell_kernel(sink, 30, 0);
	tell_kernel(sink, 20, 0);
	cr_assert_eq(xsp_tracks_end(t), 0);
	FILE *f = fmemopen(text, sizeof(text), "w");
	cr_assert_eq(xsp_tracks_write(t, f), 0);
	fclose(f);
	xsp_tracks_free(t);
	const char *json = text + 8; /* after its length */
	expect_text(json, "\"process\": \"GPU 0 (fourth, process 5)\"", true);
	expect_text(json, "\"process\": \"GPU 0 (third, process 20)\"", true);
}

Test(export_formats, spans_that_end_together_keep_their_nesting)
{
	define(0, 1000000);
	struct xsp_export *x = open_export("t.json");
	struct xsp_span span = {.pid = 30, .tid = 30, .end_ns = 50000, .flags = XSP_SPAN_UNWOUND};
	span.start_ns = 30000; /* innermost first */
	feed(x, span);
	span.start_ns = 20000;
	feed(x, span);
	/* an exit of its own at that moment, and the next entry */
	span.start_ns = 10000;
	span.flags = 0;
	feed(x, span);
	span.start_ns = 50000;
	span.end_ns = 60000;
	feed(x, span);
	span.flags = XSP_SPAN_UNFINISHED;
	span.end_ns = 1000000;
	feed(x, span);
	const char *text = finish(x);
	expect_text(text, "\"dur\":19.996,", true); /* 2 x 2 ns before 50000 */
	expect_text(text, "\"dur\":29.998,", true);
	expect_text(text, "\"dur\":40.000,", true);
	expect_text(text, "\"dur\":10.000,", true);
	expect_text(text,
		    "\"dur\":949.998,\"args\":{\"External id\":1,\"Record function id\":0,\"Ev "
		    "Idx\":4,\"finished\":false}",
		    true);
}

Test(export_formats, fibers_get_rows_of_their_own)
{
	define(0, 1000000);
	struct xsp_export *x = open_export("t.json");
	for (uint32_t row = 0; row < 3; row++)
		feed(x, (struct xsp_span){
				.pid = 30, .tid = 530, .row = row, .start_ns = 10, .end_ns = 20});
	const char *text = finish(x);
	expect_text(text, "\"pid\":5,\"tid\":55,\"ts\"", true);
	expect_text(text, "\"pid\":5,\"tid\":536870913,\"ts\"", true);
	expect_text(text, "\"pid\":5,\"tid\":536870914,\"ts\"", true);
	expect_text(
		text,
		"\"pid\":5,\"tid\":536870914,\"args\":{\"name\":\"thread 55 (fourth) stack 2\"}",
		true);
	expect_text(text, "\"tid\":536870914,\"args\":{\"sort_index\":55}", true);
}

/* A state that began before the recording, or lasted to its end, is marked as such. */
Test(export_formats, states_tell_what_is_not_of_the_recording)
{
	define(0, 1000000);
	struct xsp_export *x = open_export("t.json");
	struct xsp_timeline_sink sink = xsp_export_sink(x);
	struct xsp_wait wait = {.pid = 30,
				.tid = 30,
				.left_ns = 1000,
				.woken_ns = 1000,
				.back_ns = 3000,
				.why = XSP_WAIT_RUNNABLE,
				.syscall = -1,
				.flags = XSP_WAIT_BEFORE};
	cr_assert_eq(sink.wait(sink.ctx, &wait), 0);
	wait = (struct xsp_wait){.pid = 30,
				 .tid = 30,
				 .left_ns = 5000,
				 .woken_ns = 9000,
				 .back_ns = 1000000,
				 .why = XSP_WAIT_LOCK,
				 .syscall = -1,
				 .flags = XSP_WAIT_OPEN};
	cr_assert_eq(sink.wait(sink.ctx, &wait), 0);
	const char *text = finish(x);
	expect_text(text, "\"dur\":2.000,\"args\":{\"begun before\":true}}", true);
	expect_text(text, "\"dur\":4.000,\"args\":{\"in\":\"lock\",\"address\":\"0x0\"}}", true);
	expect_text(text, "\"dur\":991.000,\"args\":{\"finished\":false}}", true);
}

Test(export_formats, csv_says_which_calls_are_not_in_it)
{
	define(0, 1000000);
	struct xsp_export *x = open_export("t.csv");
	struct xsp_timeline_sink sink = xsp_export_sink(x);
	const struct xsp_gpu_call call = {
		.pid = 30, .tid = 30, .start_ns = 10, .end_ns = 20, .name = "cudaFree"};
	feed(x, (struct xsp_span){.pid = 30, .tid = 30, .start_ns = 10, .end_ns = 20});
	cr_assert_eq(sink.call(sink.ctx, &call), 0);
	cr_assert_eq(sink.call(sink.ctx, &call), 0);
	expect_text(finish(x), "cudaFree", false);
	cr_assert_str_eq(note, "without 2 calls of CUDA's that only CUPTI saw: .json and .db have "
			       "them");
	free(note);
}

Test(export_formats, perf_script_times_never_fall_and_deep_stacks_are_cut)
{
	enum { DEPTH = 300 };
	xsp_name_id ancestors[DEPTH] = {0};

	define(0, 1000000);
	struct xsp_export *x = open_export("t.perf");
	feed(x, (struct xsp_span){
			.pid = 30, .tid = 30, .start_ns = 10, .end_ns = 5000000, .self_ns = 42});
	feed(x, (struct xsp_span){
			.pid = 30, .tid = 30, .start_ns = 10, .end_ns = 4000000, .self_ns = 1});
	feed(x, (struct xsp_span){.pid = 30,
				  .tid = 30,
				  .start_ns = 10,
				  .end_ns = 6000000,
				  .self_ns = 2,
				  .depth = DEPTH,
				  .ancestors = ancestors,
				  .name = 1});
	const char *text = finish(x);
	expect_text(text,
		    "fourth 5/5 0.005000:     42 self-ns: \n\t   100 outer+0x0 (/lib/x.so)\n\n"
		    "fourth 5/5 0.005000:     1 self-ns: \n\t   100 outer+0x0 (/lib/x.so)\n\n"
		    "fourth 5/5 0.006000:     2 self-ns: \n\t   101 inner+0x0 (/lib/x.so)\n\t   "
		    "100 outer",
		    true);
	unsigned frames = 0;
	for (const char *at = strstr(text, "0.006000"); (at = strstr(at, "\n\t")) != NULL; at++)
		frames++;
	cr_assert_eq(frames, 127 + 1);
	cr_assert_str_eq(text + strlen(text) - strlen("[outer_frames_cut]+0x0 ([xsptrace])\n\n"),
			 "[outer_frames_cut]+0x0 ([xsptrace])\n\n");
}

/* A thread that calls outer, renames itself and calls it twice more. */
static void define_renamed(void)
{
	static const struct {
		uint64_t time_ns;
		enum xsp_event_kind kind;
	} events[] = {{1000, XSP_EVENT_ENTRY}, {3000, XSP_EVENT_EXIT}, {4000, XSP_EVENT_TASK},
		      {5000, XSP_EVENT_ENTRY}, {8000, XSP_EVENT_EXIT}, {9000, XSP_EVENT_ENTRY},
		      {10000, XSP_EVENT_EXIT}};
	struct xsp_capture_writer *w = NULL;
	struct xsp_error err = {0};

	cr_assert_eq(xsp_capture_create(open(capture, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600),
					capture, &w, &err),
		     0, "%s", err.text);
	xsp_capture_put_process(
		w, &(struct xsp_capture_process){.pid = 30, .ns_pid = 5, .comm = "alpha"});
	xsp_capture_put_thread(w, &(struct xsp_capture_thread){30, 30, 5, "alpha"});
	xsp_capture_put_probe(w, &(struct xsp_capture_probe){.module = UINT32_MAX,
							     .addr = 0x100,
							     .provider = "function",
							     .symbol = "",
							     .name = "outer",
							     .exit_complete = true});
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		struct xsp_event_task e = {.head = {.time_ns = events[i].time_ns,
						    .sp = 0x7000,
						    .tid = 30,
						    .tgid = 30,
						    .kind = (uint8_t)events[i].kind,
						    .flags = XSP_EVENT_SP_EXACT,
						    .size = sizeof(struct xsp_event)},
					   .what = XSP_TASK_RENAME,
					   .comm = "beta"};
		if (e.head.kind == XSP_EVENT_TASK)
			e.head.size = sizeof(e);
		cr_assert_eq(xsp_capture_put_event(w, 0, &e, e.head.size), 0);
	}
	cr_assert_eq(xsp_capture_finish(w, 1000, 20000, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_capture_open(capture, &reader, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_timeline_new(reader, &timeline, &err), 0, "%s", err.text);
}

Test(export_formats, perf_script_has_the_name_that_a_thread_had)
{
	struct xsp_error err = {0};

	define_renamed();
	struct xsp_export *x = open_export("t.perf");
	struct xsp_timeline_sink sink = xsp_export_sink(x);
	cr_assert_eq(xsp_timeline_run(timeline, &sink, 1, &err), 0, "%s", err.text);
	expect_text(finish(x),
		    "alpha 5/5 0.000003:     2000 self-ns: \n\t   100 outer+0x0 ([unknown])\n\n"
		    "beta 5/5 0.000008:     3000 self-ns: \n\t   100 outer+0x0 ([unknown])\n\n"
		    "beta 5/5 0.000010:     1000 self-ns: \n\t   100 outer+0x0 ([unknown])\n\n",
		    true);
}

static uint64_t folded_sum(const char *text)
{
	uint64_t sum = 0;

	for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
		const char *end = strchr(line, '\n');
		while (end[-1] != ' ')
			end--;
		sum += strtoull(end, NULL, 10);
	}
	return sum;
}

Test(export_formats, folded_adds_up_and_is_sorted)
{
	define(0, 1000000);
	xsp_name_id outer[1] = {name_id("outer")};
	struct xsp_export *x = open_export("t.folded");
	struct xsp_span span = {.pid = 30,
				.tid = 30,
				.start_ns = 1,
				.end_ns = 2,
				.depth = 1,
				.ancestors = outer,
				.self_ns = 5};
	span.name = name_id("twin"); /* two functions of one name are one frame */
	span.probe = 2;
	feed(x, span);
	span.probe = 3;
	feed(x, span);
	span.name = name_id(function_names[4]);
	feed(x, span);
	span.depth = 0;
	span.name = 0;
	feed(x, span);
	cr_assert_str_eq(finish(x), "fourth;outer 5\n"
				    "fourth;outer;a:b \"\xEF\xBF\xBD\xEF\xBF\xBD<&>]]> 5\n"
				    "fourth;outer;twin 10\n");
}

Test(export_formats, threads_of_two_processes_are_not_one)
{
	static const struct {
		uint32_t pid, tid;
	} threads[] = {{7, 900}, {30, 530}, {8, 900}, {7, 900}};

	define(0, 1000000);
	struct xsp_export *x = open_by("t.folded", true);
	for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]); i++)
		feed(x, (struct xsp_span){.pid = threads[i].pid,
					  .tid = threads[i].tid,
					  .start_ns = 1,
					  .end_ns = 2,
					  .self_ns = 5});
	cr_assert_str_eq(finish(x), "(7/900);outer 10\n"
				    "(8/900);outer 5\n"
				    "fourth (530);outer 5\n");
}

Test(export_formats, a_known_thread_is_never_one_of_more)
{
	enum { KNOWN = 4096 };

	define(0, 1000000);
	struct xsp_export *x = open_by("t.folded", true);
	struct xsp_span span = {.pid = 7, .start_ns = 1, .end_ns = 2, .self_ns = 5};
	for (span.tid = 1000; span.tid <= 1000 + KNOWN; span.tid++)
		feed(x, span);
	span.tid = 1000;
	span.row = 1; /* a fiber: its thread is looked up again */
	feed(x, span);
	const char *text = finish(x);
	expect_text(text, "(1000);outer 10\n", true);
	expect_text(text, "[more commands];outer 5\n", true);
}

Test(export_formats, recursion_beyond_the_tree_is_merged_not_lost)
{
	enum { DEPTH = 3000 };
	static xsp_name_id ancestors[DEPTH];

	define(0, 1000000);
	struct xsp_export *x = open_export("t.folded");
	for (uint32_t depth = DEPTH; depth-- > 0;)
		feed(x, (struct xsp_span){.pid = 30,
					  .tid = 30,
					  .start_ns = 1,
					  .end_ns = 2,
					  .depth = depth,
					  .ancestors = ancestors,
					  .self_ns = 3});
	const char *text = finish(x);
	cr_assert_eq(folded_sum(text), DEPTH * 3);
	unsigned lines = 0;
	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	cr_assert_eq(lines, XSP_STACKS_DEPTH);
}

Test(export_formats, a_failed_output_does_not_end_the_run)
{
	struct xsp_export *x = NULL;
	struct xsp_error err = {0};
	struct xsp_export_options options = {
		.path = "/dev/full", .owner_uid = (uid_t)-1, .owner_gid = (gid_t)-1};

	define(0, 1000000);
	cr_assert_eq(xsp_export_open(&options, reader, timeline, &x, &err), 0);
	for (int i = 0; i < 100000; i++)
		feed(x, (struct xsp_span){.pid = 30, .tid = 30, .start_ns = 1, .end_ns = 2});
	cr_expect_eq(xsp_export_finish(x, &err), -ENOSPC);
	cr_expect_str_eq(err.text, "cannot write /dev/full: No space left on device");
	cr_expect_eq(err.status, XSP_STATUS_OUTPUT);
}

Test(export_formats, an_unknown_ending_is_a_usage_error)
{
	struct xsp_export *x = NULL;
	struct xsp_error err = {0};
	struct xsp_export_options options = {
		.path = "trace.txt", .owner_uid = (uid_t)-1, .owner_gid = (gid_t)-1};

	define(0, 1000000);
	cr_assert_eq(xsp_export_open(&options, reader, timeline, &x, &err), -EINVAL);
	cr_assert_eq(err.status, XSP_STATUS_USAGE);
	cr_assert_null(x);
}

Test(export_formats, svg_is_xml_whatever_the_names_are)
{
	char command[400];

	define(0, 1000000);
	struct xsp_export *x = open_export("t.svg");
	for (size_t i = 0; i < 5; i++)
		feed(x, (struct xsp_span){.pid = 30,
					  .tid = 30,
					  .start_ns = 0,
					  .end_ns = 1500,
					  .self_ns = 1500,
					  .name = name_id(function_names[i])});
	/* 10 ps wide at the scale of the whole: not drawn, but counted */
	feed(x,
	     (struct xsp_span){
		     .pid = 11, .tid = 11, .start_ns = 0, .end_ns = 10000000, .self_ns = 10000000});
	feed(x, (struct xsp_span){.pid = 10, .tid = 10, .start_ns = 0, .end_ns = 1, .self_ns = 1});
	const char *text = finish(x);
	expect_text(text, "3 frames narrower than 0.1 px are not drawn", false);
	expect_text(text, "2 frames narrower than 0.1 px are not drawn", true);
	expect_text(text, "twin\ntotal 3.000 µs (0.03%)\nself 3.000 µs (0.03%)\n2 calls</title>",
		    true);
	expect_text(text, "http://www.w3.org/2000/svg", true);
	if (system("command -v xmllint >/dev/null") != 0)
		cr_skip_test("xmllint is not installed");
	snprintf(command, sizeof(command), "xmllint --noout --nonet %s", output);
	cr_assert_eq(system(command), 0);
}

Test(export_formats, empty_traces_are_well_formed)
{
	static const char *const names[] = {"t.json", "t.json.gz", "t.perf", "t.folded", "t.svg"};

	define(0, 1000000);
	for (size_t i = 0; i < 5; i++) {
		const char *text = finish(open_export(names[i]));
		if (i == 0)
			expect_text(text, "\"traceEvents\":[\n{\"ph\":\"X\",\"cat\":\"Trace\"",
				    true);
	}
}

/* A gigabyte of JSON is said to be too much for viewers; stacks of as many spans are not. */
/* 70,000 open scopes made each sample 370 KB large. */
Test(export_formats, a_deep_stack_of_a_sample_is_elided_in_its_middle)
{
	uint32_t path[1000];

	define(0, 1000000);
	struct xsp_export *x = open_export("t.json");
	const struct xsp_timeline_sink sink = xsp_export_sink(x);
	for (uint32_t i = 0; i < 1000; i++)
		path[i] = name_id(function_names[i < 500 ? 0 : 1]);
	const struct xsp_sample deep = {.time_ns = 1000,
					.period_ns = 1,
					.pid = 10,
					.tid = 10,
					.path = path,
					.path_length = 1000};
	cr_assert_eq(sink.sample(sink.ctx, &deep), 0);
	const char *stack = strstr(finish(x), "\"stack\":\"");
	cr_assert_not_null(stack);
	const size_t length = strcspn(stack, "}");
	size_t names = 0;
	for (size_t i = 0; i < length; i++)
		names += stack[i] == ';';
	cr_expect_eq(names, 512, "%zu", names);
	cr_expect_not_null(strstr(stack, ";[488 more];"));
}

Test(export_formats, too_large_for_viewers)
{
	static const char *const names[] = {"json", "folded"};

	define(0, 1000000);
	for (size_t i = 0; i < 2; i++) {
		struct xsp_export_options options = {
			.path = "/dev/null", .owner_uid = (uid_t)-1, .owner_gid = (gid_t)-1};
		struct xsp_export *x = i == 0 ? NULL : open_export("t.folded");
		struct xsp_error err = {0};
		uint64_t bytes, before = 0;
		if (i == 0)
			cr_assert_eq(xsp_export_open(&options, reader, timeline, &x, &err), 0);
		struct xsp_span span = {.start_ns = 1000,
					.end_ns = 2000,
					.pid = 10,
					.tid = 10,
					.self_ns = 1000,
					.cpu_ns = XSP_CPU_UNKNOWN,
					.self_cpu_ns = XSP_CPU_UNKNOWN};
		const struct xsp_timeline_sink sink = xsp_export_sink(x);
		for (uint32_t n = 0;
		     n < (i == 0 ? 8000000U : 100000U) && !xsp_export_too_large(x, &bytes); n++) {
			before = bytes;
			cr_assert_eq(sink.span(sink.ctx, &span), 0);
		}
		cr_expect_eq(xsp_export_too_large(x, &bytes), i == 0, "%s: %" PRIu64, names[i],
			     bytes);
		if (i == 0)
			cr_expect(before <= 1000000000 && bytes > 1000000000);
		xsp_export_cancel(x);
	}
}
