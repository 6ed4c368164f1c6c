/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * make_capture OUT.xspt EXPECTED.json - a synthetic capture with everything that readers of our
 * formats have tripped over, and what it contains, counted here and not by xsptrace.
 *
 * EXPECTED.json: {"spans":[[pid,tid,row,name,start_ns,end_ns,flags],...],"names":["hex",...],
 * "threads":[[pid,tid,ns_pid,ns_tid,"hex of comm"],...]}. Names as hex of their raw bytes.
 * flags: 1 unfinished, 2 unwound.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "capture/capture.h"

#define STACK_GAP (1ULL << 32) /* between the stacks of a thread, and between threads */
#define FRAME 256ULL
#define DEPTH_MAX 300

struct open_span {
	uint32_t name, probe;
	uint64_t start, sp;
	bool range;
};

struct stack {
	uint32_t pid, tid, row;
	uint64_t top;
	struct open_span open[DEPTH_MAX];
	unsigned depth;
};

struct world {
	struct xsp_capture_writer *w;
	FILE *expected;
	uint64_t now, end;
	const char *names[64];
	size_t name_count;
	const char *separator;
	uint64_t spans;
};

static char long_name[10001];

static void make_long_name(void)
{
	char *p = long_name;

	for (int depth = 0; depth < 1000; depth++)
		p += sprintf(p, "vector<%s", depth % 2 ? "" : "A,");
	snprintf(p, sizeof(long_name) - (size_t)(p - long_name), "%s", "int");
	size_t n = strlen(long_name);
	memset(long_name + n, '>', sizeof(long_name) - 1 - n);
}

/* So long that no demangler takes them; they differ in the middle. */
static char mangled[3][10001];

static void make_mangled(void)
{
	for (size_t i = 0; i < 3; i++) {
		char *p = stpcpy(mangled[i], "_ZN");
		for (size_t n = 0; n < 2400; n++)
			p = stpcpy(p, (n * n + (n == 1200 ? i : 0)) % 3 ? "1aI" : "N1bI");
	}
}

static const char *const function_names[] = {
	"main",
	"at::_ops::mm::call",
	"say \"hi\" to C:\\path\\",
	"bell\x07 tab\t newline\n return\r esc\x1b[31m del\x7f",
	"bad\xff\xfeutf8\xc3",
	"overlong\xc0\xaf surrogate\xed\xa0\x80 cut\xe2\x82",
	"(anonymous namespace)::helper",
	"ns::(anonymous namespace)::deep<(anonymous namespace)::T>",
	"Pointer::operator->",
	"Vector::operator+",
	"Callable::operator()",
	"semi;colon ;and; more ",
	"frame 12",
	"frame 3.5",
	"<xml> & \"attr\" 'x' ]]> <!-- -->",
	"ünïcødé 漢字 🔥",
	" ",
	"libfoo.so+0x1234",
	"tagged_[k]",
	"line\xe2\x80\xa8separator\xc2\x85next",
	"recurse",
	"fiber_work",
	"thrower",
	"never_returns",
	long_name,
	"main::{lambda(int)#1}::operator()",
	"main::{lambda(int)#2}::operator()",
	"enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
	"enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
	"find<'a'>",
	"find<a>",
	"net/http.(*Client).Do",
	mangled[0],
	mangled[1],
	mangled[2],
};
#define FUNCTIONS (sizeof(function_names) / sizeof(function_names[0]))
#define RANGE_PROBE ((uint32_t)FUNCTIONS)

static const char *const range_names[] = {
	"step#3",
	"range \"quoted\" \\ back",
	"range\nwith\x01 control; and \xff",
};

static void fail(const char *what, int code)
{
	fprintf(stderr, "make_capture: %s: %s\n", what, strerror(-code));
	exit(1);
}

static void put(struct world *o, const void *event, size_t size)
{
	int rc = xsp_capture_put_event(o->w, 0, event, size);

	if (rc < 0)
		fail("event", rc);
}

static struct xsp_event head(struct world *o, const struct stack *s, uint32_t probe, uint8_t kind,
			     uint64_t sp, uint16_t size)
{
	return (struct xsp_event){
		.time_ns = o->now,
		.sp = sp,
		.tid = s->tid,
		.tgid = s->pid,
		.probe = probe,
		.kind = kind,
		.flags = XSP_EVENT_SP_EXACT,
		.size = size,
	};
}

static void expect(struct world *o, const struct stack *s, const struct open_span *span, int flags)
{
	fprintf(o->expected, "%s[%u,%u,%u,%u,%" PRIu64 ",%" PRIu64 ",%d]", o->separator, s->pid,
		s->tid, s->row, span->name, span->start, flags & 1 ? o->end : o->now, flags);
	o->separator = ",\n";
	o->spans++;
}

static void enter(struct world *o, struct stack *s, uint32_t probe)
{
	uint64_t sp = s->top - (s->depth + 1) * FRAME;
	struct xsp_event e = head(o, s, probe, XSP_EVENT_ENTRY, sp, sizeof(e));

	put(o, &e, sizeof(e));
	s->open[s->depth++] =
		(struct open_span){.name = probe, .probe = probe, .start = o->now, .sp = sp};
}

static void leave(struct world *o, struct stack *s)
{
	struct open_span *span = &s->open[--s->depth];
	struct xsp_event e = head(o, s, span->probe, XSP_EVENT_EXIT, span->sp, sizeof(e));

	put(o, &e, sizeof(e));
	expect(o, s, span, 0);
}

static void begin_range(struct world *o, struct stack *s, uint32_t range)
{
	struct xsp_event_range e = {.name_hash = 1000 + range};
	uint64_t sp = s->top - (s->depth + 1) * FRAME;
	const char *text = range_names[range];
	struct {
		struct xsp_event_name name;
		char text[XSP_NAME_MAX];
	} n = {.name = {.name_hash = 1000 + range, .length = (uint32_t)strlen(text)}};
	size_t size = sizeof(n.name) + (strlen(text) + 7) / 8 * 8;

	memcpy(n.text, text, strlen(text));
	n.name.head = head(o, s, RANGE_PROBE, XSP_EVENT_NAME, sp, (uint16_t)size);
	put(o, &n, size);
	e.head = head(o, s, RANGE_PROBE, XSP_EVENT_BEGIN, sp, sizeof(e));
	put(o, &e, sizeof(e));
	s->open[s->depth++] = (struct open_span){.name = (uint32_t)FUNCTIONS + range,
						 .probe = RANGE_PROBE,
						 .start = o->now,
						 .sp = sp,
						 .range = true};
}

static void end_range(struct world *o, struct stack *s)
{
	struct open_span *span = &s->open[--s->depth];
	struct xsp_event e = head(o, s, span->probe, XSP_EVENT_END, span->sp, sizeof(e));

	put(o, &e, sizeof(e));
	expect(o, s, span, 0);
}

/* A landing: everything deeper than `depth` frames is gone. */
static void land(struct world *o, struct stack *s, unsigned depth)
{
	struct xsp_event e = head(o, s, RANGE_PROBE + 1, XSP_EVENT_UNWIND,
				  s->top - depth * FRAME - FRAME / 2, sizeof(e));

	put(o, &e, sizeof(e));
	while (s->depth > depth)
		expect(o, s, &s->open[--s->depth], 2);
}

/* From what a probe takes at least up to some microseconds, never round. */
static void pass(struct world *o)
{
	static uint64_t seed = 88172645463325252ULL;

	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	o->now += 83 + seed % 5003;
}

static void nasty_calls(struct world *o, struct stack *s, int rounds)
{
	for (int r = 0; r < rounds; r++) {
		enter(o, s, 0);
		pass(o);
		begin_range(o, s, (uint32_t)r % 3);
		pass(o);
		for (uint32_t f = 1; f < FUNCTIONS; f++) {
			if (f >= 20 && f <= 23)
				continue;
			enter(o, s, f);
			pass(o);
			enter(o, s, 1);
			pass(o);
			leave(o, s);
			pass(o);
			leave(o, s);
			pass(o);
		}
		end_range(o, s);
		pass(o);
		leave(o, s);
		pass(o);
	}
}

static void recursion(struct world *o, struct stack *s, int depth)
{
	for (int i = 0; i < depth; i++) {
		enter(o, s, 20);
		pass(o);
	}
	for (int i = 0; i < depth; i++) {
		pass(o);
		leave(o, s);
	}
	pass(o);
}

/* Two stacks of one thread, in turns: their spans overlap. */
static void fibers(struct world *o, struct stack *a, struct stack *b)
{
	enter(o, a, 0);
	pass(o);
	for (int i = 0; i < 20; i++) {
		enter(o, a, 1);
		pass(o);
		enter(o, b, 21);
		pass(o);
		leave(o, a);
		pass(o);
		leave(o, b);
		pass(o);
	}
	leave(o, a);
	pass(o);
}

static void exceptions(struct world *o, struct stack *s)
{
	for (int i = 0; i < 10; i++) {
		enter(o, s, 0);
		pass(o);
		for (int d = 0; d < 5; d++) {
			enter(o, s, 22);
			pass(o);
		}
		land(o, s, 1);
		pass(o);
		leave(o, s);
		pass(o);
	}
}

static void put_hex(FILE *f, const char *text)
{
	putc('"', f);
	for (; *text; text++)
		fprintf(f, "%02x", (unsigned char)*text);
	putc('"', f);
}

static const struct xsp_capture_process processes[] = {
	{.pid = 5001,
	 .ns_pid = 5001,
	 .parent = 1,
	 .comm = "python3",
	 .cmdline = "/usr/bin/python3 train.py --name \"x\" <&>",
	 .exe = "/usr/bin/python3"},
	/* two containers: both see themselves as 1 */
	{.pid = 6001,
	 .ns_pid = 1,
	 .parent = 1,
	 .comm = "serve",
	 .cmdline = "/srv/serve",
	 .exe = "/srv/serve"},
	{.pid = 7001,
	 .ns_pid = 1,
	 .parent = 1,
	 .comm = "serve",
	 .cmdline = "/srv/serve",
	 .exe = "/srv/serve"},
	/* a third, alone with its numbers */
	{.pid = 8001, .ns_pid = 42, .parent = 1, .comm = "a", .cmdline = "", .exe = ""},
};

static const struct xsp_capture_thread threads[] = {
	{5001, 5001, 5001, "python3"},
	{5001, 5002, 5002, "worker 12"},
	{5001, 5003, 5003, "bad;\xff\"c"},
	{6001, 6001, 1, "serve"},
	{7001, 7001, 1, "serve"},
	{7001, 7002, 9, "serve-io"},
	{8001, 8001, 42, "a"},
	{8001, 8002, 43, "\xe6\xbc\xa2"},
};
#define THREADS (sizeof(threads) / sizeof(threads[0]))

static void define(struct world *o)
{
	int rc = 0;

	rc |= xsp_capture_put_info(o->w, "host", "node\"7");
	rc |= xsp_capture_put_info(o->w, "kernel", "6.18.0");
	rc |= xsp_capture_put_info(o->w, "version", XSP_VERSION);
	rc |= xsp_capture_put_clock(o->w);
	for (size_t i = 0; i < sizeof(processes) / sizeof(processes[0]); i++)
		rc |= xsp_capture_put_process(o->w, &processes[i]);
	for (size_t i = 0; i < THREADS; i++)
		rc |= xsp_capture_put_thread(o->w, &threads[i]);
	rc |= xsp_capture_put_module(
		o->w,
		&(struct xsp_capture_module){.id = 0, .path = "/opt/my app (x86)/lib demo.so"});
	for (uint32_t i = 0; i < FUNCTIONS; i++)
		rc |= xsp_capture_put_probe(o->w,
					    &(struct xsp_capture_probe){.id = i,
									.module = 0,
									.addr = 0x1000 + i * 0x40,
									.size = 0x40,
									.kind = XSP_PROBE_FUNCTION,
									.provider = "function",
									.symbol = "",
									.name = function_names[i],
									.exit_complete = true});
	rc |= xsp_capture_put_probe(o->w, &(struct xsp_capture_probe){.id = RANGE_PROBE,
								      .module = UINT32_MAX,
								      .kind = XSP_PROBE_ANNOTATION,
								      .provider = "record_function",
								      .symbol = "",
								      .name = "record_function"});
	rc |= xsp_capture_put_probe(o->w, &(struct xsp_capture_probe){.id = RANGE_PROBE + 1,
								      .module = UINT32_MAX,
								      .kind = XSP_PROBE_MARK,
								      .provider = "unwind",
								      .symbol = "",
								      .name = "unwind"});
	if (rc)
		fail("definitions", -5);
}

static struct stack *new_stack(size_t thread, uint32_t row)
{
	struct stack *s = calloc(1, sizeof(*s));

	if (s == NULL)
		fail("memory", -12);
	s->pid = threads[thread].pid;
	s->tid = threads[thread].tid;
	s->row = row;
	s->top = 0x7f0000000000ULL - thread * 4 * STACK_GAP - row * STACK_GAP;
	return s;
}

static void put_events(struct world *o)
{
	struct stack *main_row[THREADS], *fiber = new_stack(1, 1);

	for (size_t i = 0; i < THREADS; i++)
		main_row[i] = new_stack(i, 0);
	for (size_t i = 0; i < THREADS; i++)
		nasty_calls(o, main_row[i], 12);
	recursion(o, main_row[0], 200);
	fibers(o, main_row[1], fiber);
	exceptions(o, main_row[2]);
	for (size_t i = 3; i < THREADS; i++)
		for (int r = 0; r < 50; r++)
			recursion(o, main_row[i], 3);
	/* open when the recording ends */
	enter(o, main_row[0], 0);
	pass(o);
	enter(o, main_row[0], 23);
	o->end = o->now + 777;
	while (main_row[0]->depth > 0)
		expect(o, main_row[0], &main_row[0]->open[--main_row[0]->depth], 1);
	for (size_t i = 0; i < THREADS; i++)
		free(main_row[i]);
	free(fiber);
}

int main(int argc, char **argv)
{
	struct world o = {.separator = ""};
	struct xsp_error err = {0};
	struct timespec now;

	if (argc != 3) {
		fprintf(stderr, "usage: make_capture OUT.xspt EXPECTED.json\n");
		return 2;
	}
	make_long_name();
	make_mangled();
	o.expected = fopen(argv[2], "w");
	if (o.expected == NULL ||
	    xsp_capture_create(open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), argv[1],
			       &o.w, &err) < 0) {
		fprintf(stderr, "make_capture: %s\n", o.expected ? err.text : argv[2]);
		return 1;
	}
	define(&o);
	clock_gettime(CLOCK_MONOTONIC, &now);
	uint64_t start = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	o.now = start + 12345;
	fprintf(o.expected, "{\"spans\":[\n");
	put_events(&o);
	fprintf(o.expected, "],\n\"window\":[%" PRIu64 ",%" PRIu64 "],\n\"names\":[", start, o.end);
	for (size_t i = 0; i < FUNCTIONS + 3; i++) {
		fputs(i ? ",\n" : "", o.expected);
		put_hex(o.expected, i < FUNCTIONS ? function_names[i] : range_names[i - FUNCTIONS]);
	}
	fprintf(o.expected, "],\n\"functions\":%zu,\n\"threads\":[", FUNCTIONS);
	for (size_t i = 0; i < THREADS; i++) {
		fprintf(o.expected, "%s[%u,%u,%u,%u,", i ? ",\n" : "", threads[i].pid,
			threads[i].tid,
			i == 0 || threads[i].pid == 5001 ? 5001U
			: threads[i].pid == 8001	 ? 42U
							 : 1U,
			threads[i].ns_tid);
		put_hex(o.expected, threads[i].comm);
		fputs("]", o.expected);
	}
	fprintf(o.expected, "]}\n");
	struct xsp_capture_stats stats = {.events = o.spans * 2,
					  .lost_entries = 3,
					  .lost_exits = 2,
					  .probes_cost_ns = 123456};
	int rc = xsp_capture_put_stats(o.w, &stats);
	if (rc == 0)
		rc = xsp_capture_put_lost(
			o.w, &(struct xsp_capture_lost){.probe = 2, .entries = 3, .exits = 2});
	if (rc < 0)
		fail("stats", rc);
	if (xsp_capture_finish(o.w, start, o.end, &err) < 0) {
		fprintf(stderr, "make_capture: %s\n", err.text);
		return 1;
	}
	return fclose(o.expected) == 0 ? 0 : 1;
}
