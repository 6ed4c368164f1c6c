/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of the reading of traces: numbers, texts, windows that are too small, sorting through a file. The whole of it,
 * against Python's json: tests/e2e/traces.py. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture_builder.h"
#include "import/import.h"
#include "import/json_stream.h"
#include "import/sorter.h"
#include "timeline/cut.h"

static void is_number(const char *value, int scale, int64_t expected)
{
	int64_t got = -1;

	cr_assert(xsp_json_to_number(value, scale, &got), "%s is no number", value);
	cr_assert_eq(got, expected, "%s: %lld, not %lld", value, (long long)got,
		     (long long)expected);
}

Test(import, numbers_are_exact)
{
	is_number("0,", 3, 0);
	is_number("4489573836532.5536,", 3,
		  4489573836532554); /* rounded, where a double would be 512 off */
	is_number("4489573836532.554}", 3, 4489573836532554);
	is_number("1690000000000000.123 ", 3, 1690000000000000123);
	is_number("-12.5]", 3, -12500);
	is_number("\"17.25\"", 3, 17250);
	is_number("1e3,", 3, 1000000);
	is_number("1.5E-3,", 3, 2); /* 1.5 ns: halves go up */
	is_number("0.0000000000000000000000000000001,", 3, 0);
	is_number("9223372036854775807,", 0, INT64_MAX);
	is_number("100000000000000000000000e-20,", 0, 1000);
	is_number("1234567890123456789012345678901234567890e-30,", 0, 1234567890);
}

Test(import, what_is_no_number)
{
	static const char *const none[] = {"NaN,",	   "Infinity,",
					   "-Infinity,",   "null,",
					   "\"\",",	   "\"x\"",
					   "1x,",	   "1e,",
					   "-,",	   "true,",
					   "{},",	   "1e400,",
					   "\"1\\u0030\"", "9223372036854775808,",
					   "\"12"};
	int64_t got;

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		cr_assert_not(xsp_json_to_number(none[i], 0, &got), "%s is a number", none[i]);
}

Test(import, texts_lose_their_escapes)
{
	static const char *const pairs[][2] = {
		{"\"a\\\"b\\\\c\\/d\\n\\t\"", "a\"b\\c/d\n\t"},
		{"\"\\u00e9\\u20ac\\ud83d\\ude00\"", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
		{"\"\\ud83d\"", "\xef\xbf\xbd"}, /* half of a pair */
		{"\"\\u0000\"", "\xef\xbf\xbd"},
		/* backslashes that nobody escaped */
		{"\"\\uzz\"", "\\uzz"},
		{"\"torch\\cuda\\nn.py\"", "torch\\cuda\\nn.py"},
		{"\"torch\\nn\\x.py(1): f\"", "torch\\nn\\x.py(1): f"},
		{"\"C:\\new\"", "C:\\new"},
		{"\"C:\\\\new\\n\"", "C:\\new\n"},
		{"\"\\q\\\"\"", "\\q\""},
		{"12.5,", "12.5"},
	};
	char text[64], padded[128];

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		memset(padded, 0, sizeof(padded));
		strcpy(padded, pairs[i][0]);
		const size_t length = xsp_json_to_text(padded, text, sizeof(text));
		cr_assert_str_eq(text, pairs[i][1]);
		cr_assert_eq(length, strlen(pairs[i][1]));
	}
}

static struct xsp_json_stream *stream_of(const char *text, size_t size)
{
	struct xsp_json_stream *s = NULL;
	int fd = memfd_create("json", 0);

	cr_assert_eq(write(fd, text, size), (ssize_t)size);
	cr_assert_eq(lseek(fd, 0, SEEK_SET), 0);
	cr_assert_eq(xsp_json_stream_new(fd, &s), 0);
	return s;
}

static enum xsp_json_state skipped(const char *text)
{
	struct xsp_json_stream *s = stream_of(text, strlen(text));
	const enum xsp_json_state state = xsp_json_skip(s);

	xsp_json_stream_free(s);
	return state;
}

Test(import, values_are_passed_over)
{
	cr_assert_eq(skipped("{\"a\":[1,2,{\"b\":\"}]\\\"\"}],\"c\":NaN} "), XSP_JSON_OK);
	cr_assert_eq(skipped("\"\\\\\" "), XSP_JSON_OK);
	cr_assert_eq(skipped("[1,"), XSP_JSON_END);
	cr_assert_eq(skipped("\"abc"), XSP_JSON_END);
	cr_assert_eq(skipped("]"), XSP_JSON_WRONG);
	cr_assert_eq(skipped(","), XSP_JSON_WRONG);
}

static char *nested(unsigned depth)
{
	char *text = calloc(1, 2UL * depth + 2);

	memset(text, '[', depth);
	memset(text + depth, ']', depth);
	text[2UL * depth] = ' ';
	return text;
}

Test(import, depth_is_bounded)
{
	char *deep = nested(XSP_JSON_DEPTH_MAX + 1), *fits = nested(XSP_JSON_DEPTH_MAX);

	cr_assert_eq(skipped(deep), XSP_JSON_DEEP);
	cr_assert_eq(skipped(fits), XSP_JSON_OK);
	free(deep);
	free(fits);
}

static const char *parse_value(void *ctx, const char *text, const char **stopped, bool *deep)
{
	const char *end = xsp_json_value(text, stopped, deep);

	if (end != NULL)
		*(size_t *)ctx = (size_t)(end - text);
	return end;
}

/* Values of all sizes around that of the first window, each as a whole. Strings larger than any
 * window are passed over. */
Test(import, windows_grow)
{
	const size_t large = (size_t)3 << 20, text_size = 2 * large + 64;
	char *text = malloc(text_size);
	enum xsp_json_state state;
	size_t size = 0;

	memset(text, 'x', text_size);
	text[0] = '"';
	text[large - 1] = '"';
	text[large] = ' ';
	text[large + 1] = '"';
	text[2 * large] = '"';
	memcpy(text + 2 * large + 1, " {\"a\":1} ", 9);
	struct xsp_json_stream *s = stream_of(text, 2 * large + 10);
	cr_assert_eq(xsp_json_parse(s, parse_value, &size), XSP_JSON_OK);
	cr_assert_eq(size, large);
	cr_assert_eq(xsp_json_skip(s), XSP_JSON_OK);
	cr_assert_eq(xsp_json_offset(s), 2 * large + 1);
	cr_assert_eq(xsp_json_peek(s, &state), '{');
	cr_assert_eq(xsp_json_parse(s, parse_value, &size), XSP_JSON_OK);
	cr_assert_eq(size, 7);
	cr_assert_eq(xsp_json_peek(s, &state), '\0');
	cr_assert_eq(state, XSP_JSON_END);
	xsp_json_stream_free(s);
	free(text);
}

/* ---- sorting ---- */

struct item {
	struct xsp_sorted head;
	uint64_t came, tie;
	char payload[64];
};

static int by_tie(const struct xsp_sorted *a, const struct xsp_sorted *b)
{
	const struct item *x = (const void *)a, *y = (const void *)b;

	return x->tie < y->tie ? -1 : x->tie > y->tie;
}

static void sort_with(size_t memory, unsigned count)
{
	struct xsp_sorter *s = NULL;
	const struct xsp_sorted *record;
	struct item last = {.head = {.time_ns = INT64_MIN}};
	unsigned told = 0;
	int rc;

	srand(7);
	cr_assert_eq(xsp_sorter_new(memory, "/tmp", by_tie, &s), 0);
	for (unsigned i = 0; i < count; i++) {
		struct item item = {.head = {.time_ns = rand() % 1000 - 500,
					     .size = 32 + 8 * (unsigned)(rand() % 8)},
				    .came = i,
				    .tie = (uint64_t)rand() % 4};
		memset(item.payload, (int)(i & 0x7f), sizeof(item.payload));
		cr_assert_eq(xsp_sorter_add(s, &item.head), 0);
	}
	while ((rc = xsp_sorter_next(s, &record)) > 0) {
		struct item item = {.head = *record};
		memcpy(&item, record, record->size);
		const bool later = item.head.time_ns != last.head.time_ns
					   ? item.head.time_ns > last.head.time_ns
				   : item.tie != last.tie ? item.tie > last.tie
							  : item.came > last.came;
		cr_assert(told == 0 || later, "out of order at %u", told);
		for (size_t i = 0; i < record->size - 32; i++)
			cr_assert_eq(item.payload[i], (char)(item.came & 0x7f));
		last = item;
		told++;
	}
	cr_assert_eq(rc, 0);
	cr_assert_eq(told, count);
	xsp_sorter_free(s);
}

Test(import, in_memory)
{
	sort_with(1 << 20, 0);
	sort_with(1 << 20, 1);
	sort_with(1 << 20, 5000);
}

Test(import, through_a_file)
{
	sort_with(1 << 16, 20000);
	sort_with(1 << 16, 1025);
}

/* ---- traces ---- */

struct imported {
	struct result result; /* first: result_span() */
	unsigned allocations; /* and frees */
	unsigned calls, linked; /* of CUDA's API; activities with their call */
	unsigned activities;
	uint64_t bad[XSP_GPU_BADS];
	unsigned of_process[10]; /* activities with a call of the same process, by its number */
	struct xsp_import_report report;
};

static int count_call(void *ctx, const struct xsp_gpu_call *call)
{
	(void)call;
	((struct imported *)ctx)->calls++;
	return 0;
}

static int count_activity(void *ctx, const struct xsp_gpu_activity *a)
{
	((struct imported *)ctx)->activities++;
	((struct imported *)ctx)->linked += a->arrow != 0;
	if (a->pid < 10 && a->arrow != 0 && a->call_tid == a->pid)
		((struct imported *)ctx)->of_process[a->pid]++;
	return 0;
}

static int count_allocation(void *ctx, const struct xsp_memory_event *e)
{
	(void)e;
	((struct imported *)ctx)->allocations++;
	return 0;
}

static void import_trace(struct imported *i, const char *text)
{
	const int in = memfd_create("trace", 0), out = memfd_create("capture", 0);
	const struct xsp_import_options options = {.display_path = "trace", .folder = "/tmp"};
	struct xsp_error err = {0};
	struct result *r = &i->result;

	memset(i, 0, sizeof(*i));
	cr_assert_eq(write(in, text, strlen(text)), (ssize_t)strlen(text));
	cr_assert_eq(lseek(in, 0, SEEK_SET), 0);
	cr_assert_eq(xsp_import(in, out, &options, &i->report, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_capture_open_descriptor(out, "trace", &r->reader, &err), 0, "%s",
		     err.text);
	cr_assert_eq(xsp_timeline_new(r->reader, &r->timeline, &err), 0, "%s", err.text);
	const struct xsp_timeline_sink sink = {.ctx = i,
					       .span = result_span,
					       .call = count_call,
					       .gpu = count_activity,
					       .memory = count_allocation};
	cr_assert_eq(xsp_timeline_run(r->timeline, &sink, 1, &err), 0, "%s", err.text);
	r->counts = *xsp_timeline_counts(r->timeline);
	if (xsp_timeline_gpu(r->timeline) != NULL)
		memcpy(i->bad, xsp_timeline_gpu(r->timeline)->bad, sizeof(i->bad));
	close(in);
	close(out);
}

static void import_free(struct imported *i)
{
	result_free(&i->result);
}

#define SPAN(name, ts, dur, more)                                                                  \
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"" name "\",\"pid\":7,\"tid\":7,\"ts\":" #ts   \
	",\"dur\":" #dur ",\"args\":{" more "}}"

Test(import, lines_that_were_seen_at_spans_are_no_calls)
{
	struct imported i;
	char line[256];

	import_trace(&i, "{\"traceEvents\":[" SPAN("op", 10, 5, "") "," SPAN(
				 "a.py(1): f", 10, 5, "\"seen at spans\":true") "]}");
	cr_assert_eq(i.result.count, 1);
	cr_assert_str_eq(i.result.spans[0].name, "op");
	cr_assert_eq(i.report.counts[XSP_IMPORT_LINES], 1);
	cr_assert(xsp_import_line(&i.report, line, sizeof(line)));
	cr_assert_str_eq(line, "not imported: 1 lines of Python seen at spans");
	import_free(&i);
}

/* The times of an imported span, ns from the trace's first one on. */
static void lies(const struct imported *i, const char *name, uint64_t start_ns, uint64_t end_ns,
		 uint32_t depth)
{
	const struct xsp_span *s = &span_named(&i->result, name, 0)->span;
	uint64_t first = s->start_ns;

	for (size_t k = 0; k < i->result.count; k++)
		if (i->result.spans[k].span.start_ns < first)
			first = i->result.spans[k].span.start_ns;
	cr_assert_eq(s->start_ns - first, start_ns, "%s begins at %lu", name, s->start_ns - first);
	cr_assert_eq(s->end_ns - first, end_ns, "%s ends at %lu", name, s->end_ns - first);
	cr_assert_eq(s->depth, depth, "%s: depth %u", name, s->depth);
	cr_assert_eq(s->tid, 7, "%s is on thread %u", name, s->tid);
}

/* The sum of P's children is 19 us, so its self time is 11. */
Test(import, siblings_that_overlap_by_rounding_stay_siblings)
{
	struct imported i;

	import_trace(&i, "{\"traceEvents\":[" SPAN("P", 0, 30, "") "," SPAN(
				 "A", 1, 9.001, "") "," SPAN("B", 10, 10, "") "]}");
	lies(&i, "P", 0, 30000, 0);
	lies(&i, "A", 1000, 10000, 1);
	lies(&i, "B", 10000, 20000, 1);
	cr_assert_eq(span_named(&i.result, "P", 0)->span.self_ns, 11000);
	cr_assert_eq(i.report.counts[XSP_IMPORT_CLIPPED], 1);
	cr_assert_eq(i.report.counts[XSP_IMPORT_OVERLAPPING], 0);
	import_free(&i);
	/* not a child of A, which would leave A 100 ns of its 900 */
	import_trace(&i, "{\"traceEvents\":[" SPAN("A", 0, 1, "") "," SPAN("B", 0.9, 0.9, "") "]}");
	lies(&i, "A", 0, 900, 0);
	lies(&i, "B", 900, 1800, 0);
	cr_assert_eq(i.report.counts[XSP_IMPORT_CLIPPED], 1);
	import_free(&i);
}

/* B comes after A and what is open in it, and goes beyond P. What ends on another thread meanwhile
 * (Q) stays in order. */
Test(import, all_that_a_rounded_span_crosses_gives_way)
{
	struct imported i;

	import_trace(
		&i,
		"{\"traceEvents\":[" SPAN("P", 0, 20, "") "," SPAN("A", 1, 9.25, "") "," SPAN(
			"C", 2, 8.125, "") "," SPAN("D", 3, 7.125,
						    "") ",{\"ph\":\"X\",\"name\":\"Q\",\"pid\":7,"
							"\"tid\":8,\"ts\":4,\"dur\":6.0625},"
							"{\"ph\":\"X\",\"name\":\"R\",\"pid\":7,"
							"\"tid\":9,\"ts\":9.5,\"dur\":0.5625}"
							"," SPAN("B", 10, 10.5,
								 "") "," SPAN("E", 10, 2, "") "]}");
	lies(&i, "P", 0, 20000, 0);
	lies(&i, "A", 1000, 10000, 1);
	lies(&i, "C", 2000, 10000, 2);
	lies(&i, "D", 3000, 10000, 3);
	lies(&i, "B", 10000, 20000, 1);
	lies(&i, "E", 10000, 12000, 2);
	cr_assert_eq(i.report.counts[XSP_IMPORT_CLIPPED], 4);
	cr_assert_eq(i.report.counts[XSP_IMPORT_OVERLAPPING], 0);
	cr_assert_eq(i.result.counts.orphan_exits, 0);
	import_free(&i);
}

/* By more than 1 us on both sides: of A, or of P, although only 1 us of A would have to be cut. */
Test(import, what_overlaps_by_more_is_on_a_row_of_its_own)
{
	struct imported i;

	import_trace(&i,
		     "{\"traceEvents\":[" SPAN("A", 0, 10, "") "," SPAN("B", 8.999, 3, "") "]}");
	cr_assert_neq(span_named(&i.result, "B", 0)->span.tid, 7);
	lies(&i, "A", 0, 10000, 0);
	cr_assert_eq(i.report.counts[XSP_IMPORT_OVERLAPPING], 1);
	cr_assert_eq(i.report.counts[XSP_IMPORT_CLIPPED], 0);
	import_free(&i);
	import_trace(&i, "{\"traceEvents\":[" SPAN("P", 0, 12, "") "," SPAN(
				 "A", 1, 9.5, "") "," SPAN("B", 10, 4, "") "]}");
	cr_assert_neq(span_named(&i.result, "B", 0)->span.tid, 7);
	lies(&i, "A", 1000, 10500, 1);
	lies(&i, "P", 0, 12000, 0);
	cr_assert_eq(i.report.counts[XSP_IMPORT_CLIPPED], 0);
	import_free(&i);
	/* it lies in A at least as far as it goes beyond it: a child */
	import_trace(&i, "{\"traceEvents\":[" SPAN("A", 0, 10, "") "," SPAN("B", 9.5, 1, "") "]}");
	lies(&i, "B", 9500, 10000, 1);
	import_free(&i);
}

#define CALL(pid, correlation, ts, dur)                                                            \
	"{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":" #pid       \
	",\"tid\":" #pid ",\"ts\":" #ts ",\"dur\":" #dur                                           \
	",\"args\":{\"correlation\":" #correlation "}}"
#define ON_GPU(category, name, correlation, ts, dur)                                               \
	"{\"ph\":\"X\",\"cat\":\"" category "\",\"name\":\"" name                                  \
	"\",\"pid\":0,\"tid\":7,\"ts\":" #ts ",\"dur\":" #dur                                      \
	",\"args\":{\"device\":0,\"context\":1,\"stream\":7,\"correlation\":" #correlation "}}"

Test(import, calls_of_two_processes_are_told_once)
{
	struct imported i;

	import_trace(&i, "{\"traceEvents\":[" CALL(6, 9, 5, 5) "," CALL(7, 1, 10, 5) "," CALL(
				 7, 2, 20, 5) "," ON_GPU("kernel", "k", 2, 30, 5) "]}");
	cr_assert_eq(i.calls, 3);
	cr_assert_eq(i.linked, 1);
	/* process 6 reports no records: it would be one whose agent did not pass on everything */
	cr_assert_eq(xsp_timeline_gpu(i.result.timeline)->unfinished, 0);
	cr_assert_eq(xsp_timeline_gpu(i.result.timeline)->lost, 0);
	import_free(&i);
}

#define LABEL(pid, label)                                                                          \
	"{\"ph\":\"M\",\"name\":\"process_labels\",\"pid\":" #pid                                  \
	",\"tid\":0,\"args\":{\"labels\":\"" label "\"}}"
#define ON_ROW(pid, correlation, ts)                                                               \
	"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":" #pid ",\"tid\":7,\"ts\":" #ts   \
	",\"dur\":5,\"args\":{\"device\":0,\"context\":1,\"stream\":7,"                            \
	"\"correlation\":" #correlation "}}"

/* As we write it (test_export_formats.c): both count their calls from one. */
Test(import, a_gpu_of_two_processes_is_told_of_each)
{
	static const char *const events[] = {
		CALL(6, 1, 5, 5),
		CALL(7, 1, 10, 5),
		CALL(7, 2, 20, 5),
		ON_ROW(0, 1, 30),
		ON_ROW(4194305, 1, 30),
		ON_ROW(0, 2, 40),
		LABEL(0, "GPU 0 (process 7)"),
		LABEL(4194305, "GPU 0 (process 6)"),
	};
	struct imported i;
	char text[4096] = "{\"traceEvents\":[", *p = text + strlen(text);

	for (size_t k = 0; k < sizeof(events) / sizeof(events[0]); k++)
		p += sprintf(p, "%s%s", k > 0 ? "," : "", events[k]);
	strcpy(p, "]}");
	import_trace(&i, text);
	cr_assert_eq(i.calls, 3);
	cr_assert_eq(i.linked, 3);
	cr_assert_eq(i.of_process[6], 1);
	cr_assert_eq(i.of_process[7], 2);
	cr_assert_eq(xsp_timeline_gpu(i.result.timeline)->unfinished, 0);
	cr_assert_eq(xsp_timeline_gpu(i.result.timeline)->lost, 0);
	import_free(&i);
}

/* Longer than the timeline keeps an activity for its call. */
Test(import, long_waits_are_joined_to_their_calls)
{
	struct imported i;

	import_trace(
		&i,
		"{\"traceEvents\":[" CALL(7, 1, 10, 30000000) "," ON_GPU(
			"cuda_sync", "Context Sync", 1, 12,
			29999990) "," SPAN("beside", 20000000, 5,
					   "") "," CALL(7, 2, 40000000,
							30000000) "," ON_GPU("gpu_memcpy",
									     "Memcpy DtoH (Device "
									     "-> Pageable)",
									     2, 40000012,
									     29999900) "," SPAN("be"
												"si"
												"d"
												"e",
												60000000,
												5,
												"") "]}");
	cr_assert_eq(i.calls, 2);
	cr_assert_eq(i.linked, 2);
	import_free(&i);
}

#define MEMORY(ts, bytes, address, total, reserved, more)                                          \
	"{\"ph\":\"i\",\"name\":\"[memory]\",\"pid\":7,\"tid\":7,\"ts\":" #ts                      \
	",\"args\":{\"Bytes\":" #bytes ",\"Addr\":" #address ",\"Device Id\":0,\"Device Type\":1," \
	"\"Total Allocated\":" #total ",\"Total Reserved\":" #reserved more "}}"

/* An allocator that has nothing left of what it reserved reports one total for both, too. */
Test(import, allocations_of_cuda_api_are_told_by_their_mark)
{
	struct imported i;

	import_trace(&i, "{\"traceEvents\":[" MEMORY(
				 10, 512, 4096, 512, 512,
				 ",\"CUDA API\":true") "," MEMORY(11, 512, 4096, 512, 512,
								  "") "," MEMORY(12, -512, 4096, 0,
										 512, "") "]}");
	cr_assert_eq(i.allocations, 2);
	cr_assert_eq(i.report.counts[XSP_IMPORT_INSTANTS], 1);
	import_free(&i);
}

Test(import, parts_of_spans_are_told_as_such)
{
	struct imported i;

	import_trace(&i, "{\"traceEvents\":[" SPAN("part", 10, 5, "\"cut\":true") "," SPAN(
				 "whole", 20, 5, "") "]}");
	cr_assert_eq(span_named(&i.result, "part", 0)->span.flags, XSP_SPAN_CUT);
	cr_assert_eq(span_named(&i.result, "whole", 0)->span.flags, 0);
	cr_assert_eq(i.result.counts.clipped, 1);
	import_free(&i);
}

#define KERNEL(correlation, ts, dur)                                                               \
	"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":" #ts          \
	",\"dur\":" #dur ",\"args\":{\"device\":0,\"stream\":7,\"correlation\":" #correlation "}}"

/* Times of 0, of another clock, and backwards do not make the recording longer. */
Test(import, a_gpu_of_another_clock)
{
	struct imported i;
	uint64_t from, to;

	import_trace(
		&i,
		"{\"traceEvents\":[" SPAN("op", 1615207264505000, 90, "") "," KERNEL(1, 1615207264505100, 20) "," KERNEL(
			2, 0,
			0) "," KERNEL(3, 8615207264,
				      10) "," KERNEL(4, 3615207264505100,
						     10) "," KERNEL(5, 1615207264505050,
								    -10) "," KERNEL(6,
										    1615207264505050,
										    -1615207264505050) "," KERNEL(7,
														  0,
														  1615207264505060) "]}");
	xsp_capture_window(i.result.reader, &from, &to);
	cr_expect_eq(to - from, 120000, "%lu ns", to - from);
	cr_expect_eq(i.bad[XSP_GPU_NO_TIME], 3);
	cr_expect_eq(i.bad[XSP_GPU_OTHER_CLOCK], 1);
	cr_expect_eq(i.bad[XSP_GPU_BACKWARDS], 1);
	cr_expect_eq(i.activities, 1);
	import_free(&i);
	/* a trace that begins at 0 has a time there */
	import_trace(&i, "{\"traceEvents\":[" KERNEL(1, 0, 0) "," SPAN("op", 5, 90, "") "]}");
	cr_expect_eq(i.activities, 1);
	cr_expect_eq(i.bad[XSP_GPU_NO_TIME], 0);
	import_free(&i);
}
