/* SPDX-License-Identifier: BSD-2-Clause */
/* Waits: the CPU time of spans, what sinks get of each wait, the sums of threads. */
#include <sys/socket.h>
#include <sys/stat.h>

#include "capture_builder.h"
#include "catalog/wait_reasons.h"
#include "model/rows/states.h"

#define SP 0x7ff000000000ULL
#define NO_PROBE UINT32_MAX

struct told {
	const struct xsp_timeline *timeline;
	struct xsp_wait waits[128];
	char path[128], place[64], inside[64]; /* of the last one */
	size_t count;
	uint64_t short_ns; /* reported separately */
	struct result spans;
};

static int on_wait(void *ctx, const struct xsp_wait *wait)
{
	struct told *told = ctx;

	told->short_ns += wait->flags & XSP_WAIT_SHORT ? wait->short_ns : 0;
	if (wait->flags & XSP_WAIT_SHORT)
		return 0;
	cr_assert_lt(told->count, 128);
	told->path[0] = '\0';
	for (uint32_t i = 0; i < wait->path_length; i++) {
		strcat(told->path, i > 0 ? ";" : "");
		strcat(told->path,
		       xsp_timeline_name(told->timeline, wait->path[i] & ~XSP_PATH_FRAME));
	}
	strcpy(told->place, wait->place ? xsp_timeline_name(told->timeline, wait->place - 1) : "");
	strcpy(told->inside,
	       wait->inside ? xsp_timeline_name(told->timeline, wait->inside - 1) : "");
	told->waits[told->count++] = *wait;
	return 0;
}

static int on_span(void *ctx, const struct xsp_span *span)
{
	return result_span(&((struct told *)ctx)->spans, span);
}

static void start(struct builder *b)
{
	builder_begin(b, 3);
	cr_assert_eq(xsp_capture_put_info(b->w, "waits", "10"), 0);
}

/* The thread runs again at `back`. */
static void wait_of(struct builder *b, uint64_t left, uint64_t woken, uint64_t back,
		    uint64_t short_ns, uint8_t why, uint8_t flags)
{
	struct xsp_event_wait e = {.head = {.kind = XSP_EVENT_WAIT, .probe = NO_PROBE},
				   .left_ns = left,
				   .woken_ns = woken,
				   .short_ns = short_ns,
				   .syscall = 202,
				   .argument = 0x1000,
				   .why = why,
				   .flags = flags};
	b->now = back;
	builder_put(b, &e, sizeof(e));
}

static void times_of(struct builder *b, uint32_t ended)
{
	struct xsp_event_times e = {.head = {.kind = XSP_EVENT_TIMES, .probe = NO_PROBE},
				    .since_ns = 1000,
				    .running_ns = 100,
				    .runnable_ns = 20,
				    .ended = ended};
	e.blocked_ns[XSP_WAIT_LOCK] = 30;
	e.waits[XSP_WAIT_LOCK] = 3;
	builder_put(b, &e, sizeof(e));
}

/* NULL: all of it. */
static void told_of_part(struct builder *b, struct told *told, const struct xsp_cut *cut)
{
	struct xsp_error err = {0};
	struct result *r = &told->spans;

	builder_end(b);
	*told = (struct told){0};
	cr_assert_eq(xsp_capture_open(b->path, &r->reader, &err), 0, "%s", err.text);
	unlink(b->path);
	cr_assert_eq(xsp_timeline_new(r->reader, &r->timeline, &err), 0, "%s", err.text);
	told->timeline = r->timeline;
	if (cut != NULL)
		cr_assert_eq(xsp_timeline_cut(r->timeline, cut), 0);
	struct xsp_timeline_sink sink = {.ctx = told, .span = on_span, .wait = on_wait};
	cr_assert_eq(xsp_timeline_run(r->timeline, &sink, 1, &err), 0, "%s", err.text);
}

static void told_of(struct builder *b, struct told *told)
{
	told_of_part(b, told, NULL);
}

static uint64_t cpu_of(const struct told *told, const char *name)
{
	return span_named(&told->spans, name, 0)->span.cpu_ns;
}

Test(timeline_waits, cpu_time_is_without_waits_inside)
{
	struct builder b;
	struct told told;

	start(&b);
	wait_of(&b, 1100, 1150, 1200, 5, XSP_WAIT_LOCK, 0); /* before all spans */
	b.now = 2000;
	entry(&b, 0, SP); /* 2000 */
	wait_of(&b, 2100, 2150, 2200, 0, XSP_WAIT_LOCK, 0);
	b.now = 2300;
	entry(&b, 1, SP - 64); /* 2300 */
	wait_of(&b, 2400, 2450, 2500, 30, XSP_WAIT_POLL, 0); /* and 30 short ones before */
	wait_of(&b, 2600, 0, 2600, 40, 0, XSP_WAIT_SHORT); /* told before the exit */
	b.now = 2700;
	leave(&b, 1, SP - 64); /* 2700 */
	b.now = 3000;
	leave(&b, 0, SP); /* 3000 */
	told_of(&b, &told);
	cr_expect_eq(cpu_of(&told, "f1"), 400 - 100 - 30 - 40);
	cr_expect_eq(cpu_of(&told, "f0"), 1000 - 100 - 100 - 30 - 40);
	cr_expect_eq(span_named(&told.spans, "f0", 0)->span.self_cpu_ns, 600 - 100);
	cr_expect_eq(told.count, 3);
	cr_expect_eq(told.short_ns, 40, "those of the event that tells of no other");
	cr_expect(!told.waits[0].in_span);
	cr_expect(told.waits[1].in_span);
	cr_expect_str_eq(xsp_timeline_name(told.spans.timeline, told.waits[2].span), "f1");
	result_free(&told.spans);
}

/* They were on by default, and dropped: the CPU time of all that ends later is unknown. */
Test(timeline_waits, nothing_is_known_behind_their_end)
{
	struct builder b;
	struct told told;

	start(&b);
	cr_assert_eq(xsp_capture_put_info(b.w, "waits until ns", "2550"), 0);
	b.now = 2000;
	entry(&b, 0, SP);
	wait_of(&b, 2100, 2150, 2200, 0, XSP_WAIT_LOCK, 0);
	b.now = 2500;
	leave(&b, 0, SP);
	b.now = 2520;
	entry(&b, 1, SP);
	b.now = 2600;
	leave(&b, 1, SP);
	b.now = 2700;
	entry(&b, 2, SP);
	b.now = 2800;
	leave(&b, 2, SP);
	told_of(&b, &told);
	cr_expect_eq(cpu_of(&told, "f0"), 500 - 100);
	cr_expect_eq(cpu_of(&told, "f1"), XSP_CPU_UNKNOWN);
	cr_expect_eq(cpu_of(&told, "f2"), XSP_CPU_UNKNOWN);
	result_free(&told.spans);
}

/* The kernel reported no return: the event of that wait comes with the next one. */
Test(timeline_waits, cpu_time_is_absent_until_the_wait_is_known)
{
	struct builder b;
	struct told told;

	start(&b);
	b.now = 1000;
	entry(&b, 0, SP);
	b.now = 1100;
	entry(&b, 1, SP - 64);
	wait_of(&b, 1500, 0, 1500, 0, 0, XSP_WAIT_SHORT | XSP_WAIT_UNSEEN_RETURN);
	b.now = 1600;
	leave(&b, 1, SP - 64); /* f1: 1100 to 1600, and asleep in it */
	wait_of(&b, 1200, 1450, 1480, 0, XSP_WAIT_SLEEP, 0);
	b.now = 2000;
	entry(&b, 2, SP - 64);
	b.now = 2100;
	leave(&b, 2, SP - 64);
	b.now = 3000;
	leave(&b, 0, SP);
	told_of(&b, &told);
	cr_expect_eq(cpu_of(&told, "f1"), XSP_CPU_UNKNOWN);
	cr_expect_eq(cpu_of(&told, "f2"), 100);
	cr_expect_eq(cpu_of(&told, "f0"), 2000 - 280);
	cr_expect_eq(span_named(&told.spans, "f0", 0)->span.self_cpu_ns, XSP_CPU_UNKNOWN);
	cr_expect_eq(told.count, 1);
	result_free(&told.spans);
}

/* What comes first after the range's edge is that a return was not reported: the wait itself, which
 * comes later, tells of the time before the edge. */
Test(timeline_waits, cpu_time_in_a_range_is_known_once_the_wait_is)
{
	struct builder b;
	struct told told;
	const struct xsp_cut cut = {.from_ns = 1400, .to_ns = 1700, .text = "--from"};

	start(&b);
	b.now = 1000;
	entry(&b, 0, SP);
	wait_of(&b, 1500, 0, 1500, 0, 0, XSP_WAIT_SHORT | XSP_WAIT_UNSEEN_RETURN);
	wait_of(&b, 1200, 1450, 1480, 0, XSP_WAIT_SLEEP, 0);
	wait_of(&b, 1800, 0, 1800, 0, 0, XSP_WAIT_SHORT | XSP_WAIT_UNSEEN_RETURN);
	wait_of(&b, 1600, 1750, 1780, 0, XSP_WAIT_SLEEP, 0);
	wait_of(&b, 1900, 0, 1900, 3, 0, XSP_WAIT_SHORT);
	b.now = 2000;
	leave(&b, 0, SP);
	told_of_part(&b, &told, &cut);
	cr_expect_eq(cpu_of(&told, "f0"), 300 - (1480 - 1400) - (1700 - 1600));
	result_free(&told.spans);
}

/* The time of an entry is read, then its thread is preempted, then the entry is written. */
Test(timeline_waits, a_wait_inside_the_probe_is_inside_the_span)
{
	struct builder b;
	struct told told;

	start(&b);
	wait_of(&b, 1500, 0, 1600, 7, XSP_WAIT_RUNNABLE, 0);
	b.now = 1450;
	entry(&b, 0, SP);
	b.now = 2000;
	leave(&b, 0, SP);
	told_of(&b, &told);
	cr_expect_eq(cpu_of(&told, "f0"), 550 - 107);
	result_free(&told.spans);
}

/* With --min-duration, entries come after the waits in them; with too many of them, the CPU time is
 * unknown. */
Test(timeline_waits, entries_that_come_late)
{
	for (uint64_t n = 60; n <= 70; n += 10) {
		struct builder b;
		struct told told;

		start(&b);
		wait_of(&b, 1100, 1150, 1200, 0, XSP_WAIT_LOCK, 0);
		for (uint64_t i = 0; i < n; i++)
			wait_of(&b, 2000 + 20 * i, 2005 + 20 * i, 2010 + 20 * i, 0, XSP_WAIT_LOCK,
				XSP_WAIT_BEFORE);
		b.now = 1900;
		builder_event(&b, XSP_EVENT_ENTRY, 0, SP, XSP_EVENT_SP_EXACT | XSP_EVENT_REPLAYED);
		b.now = 5000;
		leave(&b, 0, SP);
		told_of(&b, &told);
		cr_expect_eq(cpu_of(&told, "f0"), n < 64 ? 3100 - 10 * n : XSP_CPU_UNKNOWN,
			     "%lu waits", n);
		result_free(&told.spans);
	}
}

Test(timeline_waits, sums_of_threads)
{
	struct builder b;
	struct told told;
	const struct xsp_thread_times *times;

	start(&b);
	task(&b, XSP_TASK_FORK, "worker");
	wait_of(&b, 1100, 1150, 1200, 0, XSP_WAIT_LOCK, XSP_WAIT_BORN);
	task(&b, XSP_TASK_EXIT, "worker");
	wait_of(&b, 1300, 0, 1310, 0, XSP_WAIT_RUNNABLE, 0); /* on its way out */
	times_of(&b, 1);
	task(&b, XSP_TASK_FORK, "another"); /* of the same number */
	times_of(&b, 0);
	told_of(&b, &told);
	cr_assert_eq(xsp_timeline_times(told.spans.timeline, &times), 2);
	cr_expect_str_eq(times[0].thread->comm, "worker");
	cr_expect(times[0].ended);
	cr_expect_str_eq(times[1].thread->comm, "another");
	cr_expect_eq(times[1].blocked_ns[XSP_WAIT_LOCK], 30);
	cr_expect_eq(times[1].waits[XSP_WAIT_LOCK], 3);
	cr_expect_eq(told.count, 2);
	cr_expect_eq(told.waits[1].woken_ns, 1300, "who is preempted can run all the time");
	result_free(&told.spans);
}

static int on_slice(void *ctx, struct xsp_thread_row *row, const struct xsp_state_slice *s)
{
	char *text = ctx;

	(void)row;
	sprintf(text + strlen(text), "%s %lu-%lu%s; ", xsp_state_name(s->state), s->start_ns,
		s->end_ns, s->finished ? "" : " to the end");
	return 0;
}

/* When it left, was woken and came back; to_ns: the end of a range, or 0. */
static void expect_states(uint64_t woken, uint8_t flags, bool ended, uint64_t to_ns,
			  const char *expected)
{
	struct builder b;
	struct told told;
	char text[256] = "";
	struct xsp_thread_rows *rows;

	start(&b);
	task(&b, XSP_TASK_FORK, "worker");
	wait_of(&b, 1100, woken, 1200, 0, XSP_WAIT_LOCK, flags);
	b.now = 1300;
	times_of(&b, ended);
	b.now = 1400;
	const struct xsp_cut cut = {.to_ns = to_ns, .text = "--to"};
	told_of_part(&b, &told, to_ns != 0 ? &cut : NULL);
	struct xsp_view view = {.reader = told.spans.reader, .timeline = told.spans.timeline};
	cr_assert_eq(xsp_thread_rows_new(&view, &rows), 0);
	const struct xsp_wait *w = &told.waits[0];
	struct xsp_thread_row *row = xsp_thread_rows_of(rows, w->pid, w->tid, XSP_STATES_ROW);
	cr_assert_eq(xsp_states_wait(view.timeline, row, w, on_slice, text), 1);
	cr_assert_eq(xsp_states_end(view.timeline, rows, on_slice, text), 0);
	cr_expect_str_eq(text, expected);
	xsp_thread_rows_free(rows);
	xsp_view_clear(&view);
	result_free(&told.spans);
}

Test(timeline_waits, states_that_last_to_the_end)
{
	expect_states(1150, 0, true, 0,
		      "Running 1000-1100; Blocked 1100-1150; Runnable 1150-1200; "
		      "Running 1200-1300; ");
	expect_states(1150, 0, false, 0,
		      "Running 1000-1100; Blocked 1100-1150; Runnable 1150-1200; "
		      "Running 1200-1300 to the end; ");
	expect_states(1150, 0, true, 1250,
		      "Running 1000-1100; Blocked 1100-1150; Runnable 1150-1200; "
		      "Running 1200-1250 to the end; ");
	expect_states(1150, XSP_WAIT_OPEN, false, 0,
		      "Running 1000-1100; Blocked 1100-1150; Runnable 1150-1200 to the end; ");
	expect_states(0, XSP_WAIT_OPEN, false, 0,
		      "Running 1000-1100; Blocked 1100-1200 to the end; ");
	expect_states(1150, 0, true, 1140, "Running 1000-1100; Blocked 1100-1140 to the end; ");
}

/* The kernel side does not know what a call of CUDA's API waits for. */
Test(timeline_waits, inside_a_call_of_cuda)
{
	struct builder b;
	struct told told;
	const struct xsp_thread_times *times;

	start(&b);
	struct xsp_capture_probe p = {.id = 3,
				      .module = UINT32_MAX,
				      .provider = "cuda",
				      .symbol = "cuCtxSynchronize",
				      .name = "cuCtxSynchronize"};
	cr_assert_eq(xsp_capture_put_probe(b.w, &p), 0);
	wait_of(&b, 1100, 1110, 1120, 0, XSP_WAIT_LOCK, 0);
	entry(&b, 3, SP);
	wait_of(&b, 1200, 1220, 1225, 0, XSP_WAIT_LOCK, 0);
	wait_of(&b, 1230, 0, 1240, 0, XSP_WAIT_RUNNABLE, 0);
	leave(&b, 3, SP);
	times_of(&b, 0);
	told_of(&b, &told);
	cr_assert_eq(told.count, 3);
	cr_expect_eq(told.waits[0].why, XSP_WAIT_LOCK);
	cr_expect_eq(told.waits[1].why, XSP_WAIT_GPU);
	cr_expect_eq(told.waits[2].why, XSP_WAIT_RUNNABLE);
	cr_assert_eq(xsp_timeline_times(told.spans.timeline, &times), 1);
	cr_expect_eq(times[0].blocked_ns[XSP_WAIT_LOCK], 10);
	cr_expect_eq(times[0].blocked_ns[XSP_WAIT_GPU], 20);
	cr_expect_eq(times[0].waits[XSP_WAIT_LOCK], 2);
	cr_expect_eq(times[0].waits[XSP_WAIT_GPU], 1);
	result_free(&told.spans);
}

/* Between the span around it and the reason: what the stack says. */
Test(timeline_waits, where)
{
	static const char *const texts[] = {"", "main", "f0", "mine", "__lll_lock_wait"};
	struct {
		struct xsp_event_wait wait;
		struct xsp_section section;
		uint64_t frames[4];
	} e = {.wait = {.head = {.kind = XSP_EVENT_WAIT,
				 .probe = NO_PROBE,
				 .sp = SP - 256,
				 .flags = XSP_EVENT_SECTIONS},
			.left_ns = 1100,
			.why = XSP_WAIT_LOCK},
	       .section = {.type = XSP_SECTION_STACK, .size = sizeof(e.section) + 32},
	       .frames = {0x4000, 0x3000 | 8ULL << XSP_FRAME_SHIFT,
			  0x2000 | 8ULL << XSP_FRAME_SHIFT, 0x1000 | 16ULL << XSP_FRAME_SHIFT}};
	struct builder b;
	struct told told;

	start(&b);
	for (uint64_t i = 1; i < 5; i++)
		address_name(&b, XSP_NAME_OF_RETURN, 0x1000 * i, texts[i]);
	b.now = 1000;
	entry(&b, 0, SP);
	b.now = 1200;
	builder_put(&b, &e, sizeof(e));
	leave(&b, 0, SP);
	told_of(&b, &told);
	cr_assert_eq(told.count, 1);
	cr_expect_str_eq(told.path, "f0;mine;__lll_lock_wait");
	cr_expect_str_eq(told.place, "mine");
	cr_expect_str_eq(told.inside, "__lll_lock_wait");
	result_free(&told.spans);
}

static void wait_for(struct builder *b, const struct xsp_peer *peer, uint32_t waker)
{
	struct {
		struct xsp_event_wait wait;
		struct xsp_section section;
		struct xsp_peer peer;
	} e = {.wait = {.head = {.kind = XSP_EVENT_WAIT,
				 .probe = NO_PROBE,
				 .flags = XSP_EVENT_SECTIONS},
			.left_ns = b->now + 1,
			.waker = waker,
			.why = XSP_WAIT_NETWORK},
	       .section = {.type = XSP_SECTION_PEER, .size = sizeof(e.section) + sizeof(e.peer)},
	       .peer = *peer};

	b->now += 20;
	builder_put(b, &e, sizeof(e));
}

/* An address and its port, a path or a name; and who was there, if that is known for sure. */
Test(timeline_waits, what_is_at_the_other_end)
{
	static const struct {
		struct xsp_peer peer;
		uint32_t waker;
		const char *text; /* NULL: nothing */
	} cases[] = {
		/* in an interrupt that the sender's call began: the network of this machine */
		{{S_IFSOCK, AF_INET, 40000, 5432, 7, 9, "postgres", {{127, 0, 0, 1}}},
		 0,
		 "127.0.0.1:5432 (postgres)"},
		/* from elsewhere, an interrupt may come in anybody's time */
		{{S_IFSOCK, AF_INET, 40000, 5432, 7, 9, "bystander", {{10, 0, 0, 7}}},
		 0,
		 "10.0.0.7:5432"},
		{{S_IFSOCK, AF_INET6, 40000, 443, 7, 0, "", {{0x20, 1, [15] = 1}}},
		 0,
		 "[2001::1]:443"},
		{{S_IFSOCK,
		  AF_INET6,
		  40000,
		  80,
		  7,
		  9,
		  "nginx",
		  {{[10] = 0xff, 0xff, 127, 0, 0, 2}}},
		 0,
		 "127.0.0.2:80 (nginx)"},
		{{S_IFSOCK, AF_INET, 80, 40000, 7, 9, "client", {{127, 0, 0, 1}}}, 0, NULL},
		{{S_IFSOCK, AF_UNIX, 0, 0, 7, 9, "dbus-daemon", {.name = "/run/bus"}},
		 99,
		 "/run/bus (dbus-daemon)"},
		{{S_IFSOCK, AF_UNIX, 0, 0, 7, 9, "x", {.name = "\0hidden"}}, 0, "@hidden"},
		{{S_IFSOCK, AF_UNIX, 0, 0, 8, 11, "worker", {{0}}}, 99, "of worker (11)"},
		{{S_IFIFO, 0, 0, 0, 7, 12, "sort", {{0}}}, 99, "of sort (12)"},
		{{S_IFIFO, 0, 0, 0, 6, 0, "", {{0}}}, 0, NULL},
		{{S_IFREG, 0, 0, 0, 7, 13, "x", {.name = "shard\n7.bin"}}, 99, "shard\n7.bin"},
		{{0, 0, 0, 0, 7, 0, "", {.name = "[eventfd]"}}, 0, "[eventfd]"},
	};
	const size_t count = sizeof(cases) / sizeof(cases[0]);
	char text[XSP_PEER_TEXT];
	struct builder b;
	struct told told;

	start(&b);
	b.now = 1000;
	for (size_t i = 0; i < count; i++)
		wait_for(&b, &cases[i].peer, cases[i].waker);
	told_of(&b, &told);
	cr_assert_eq(told.count, count);
	for (size_t i = 0; i < count; i++) {
		const char *is = xsp_timeline_peer(told.timeline, told.waits[i].peer, text);
		cr_expect_str_eq(is != NULL ? is : "", cases[i].text != NULL ? cases[i].text : "");
	}
	result_free(&told.spans);
}

/* Whoever had the CPU when the answer came is not always who sent it. */
Test(timeline_waits, a_process_is_named_if_nearly_all_say_so)
{
	struct xsp_peer peer = {S_IFSOCK, AF_INET, 40000, 5432, 7, 9, "", {{127, 0, 0, 1}}};
	char text[XSP_PEER_TEXT];

	for (size_t others = 2; others < 4; others++) {
		struct builder b;
		struct told told;
		start(&b);
		b.now = 1000;
		for (size_t i = 0; i < 12; i++) {
			snprintf(peer.comm, sizeof(peer.comm), "%s",
				 i < others ? "bystander" : "postgres");
			wait_for(&b, &peer, 0);
		}
		told_of(&b, &told);
		cr_expect_str_eq(xsp_timeline_peer(told.timeline, told.waits[0].peer, text),
				 others == 2 ? "127.0.0.1:5432 (postgres)" : "127.0.0.1:5432");
		result_free(&told.spans);
	}
}

/* Where threads wait in every program, and names that only begin like that. */
Test(timeline_waits, primitives)
{
	static const char *const wait_in[] = {"read",
					      "__read",
					      "__new_sem_wait_slow64.constprop.0",
					      "do_futex_wait.constprop.0",
					      "pthread_cond_wait",
					      "std::condition_variable::wait",
					      "libc.so.6+0x8612b",
					      "[vdso]"};
	static const char *const others[] = {"read_config",    "Queue::wait",  "select_next",
					     "sleeper.part.0", "wait_for_job", ""};

	for (size_t i = 0; i < sizeof(wait_in) / sizeof(wait_in[0]); i++)
		cr_expect(xsp_wait_is_primitive(wait_in[i]), "%s", wait_in[i]);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		cr_expect_not(xsp_wait_is_primitive(others[i]), "%s", others[i]);
}

/* Captures come from anywhere. */
Test(timeline_waits, what_cannot_be)
{
	struct builder b;
	struct told told;

	start(&b);
	wait_of(&b, 5000, 0, 1200, 0, XSP_WAIT_LOCK, 0); /* left after it came back */
	wait_of(&b, 1300, 9000, 1400, 0, 200,
		0xff & ~XSP_WAIT_SHORT); /* woken later, no such class */
	wait_of(&b, 1500, 10, 1600, UINT64_MAX, XSP_WAIT_LOCK, 0);
	b.now = 1700;
	entry(&b, 0, SP);
	leave(&b, 0, SP);
	told_of(&b, &told);
	cr_assert_eq(told.count, 2);
	cr_expect_eq(told.waits[0].woken_ns, 1400);
	cr_expect_lt(told.waits[0].why, XSP_WAIT_CLASSES);
	cr_expect_eq(told.waits[1].woken_ns, 1600);
	result_free(&told.spans);
}

/* A capture without them: no CPU time is made up. */
Test(timeline_waits, none_were_recorded)
{
	struct builder b;
	struct told told;

	builder_begin(&b, 1);
	entry(&b, 0, SP);
	leave(&b, 0, SP);
	told_of(&b, &told);
	cr_expect_eq(cpu_of(&told, "f0"), XSP_CPU_UNKNOWN);
	cr_expect(!xsp_timeline_has_waits(told.spans.timeline));
	result_free(&told.spans);
}
