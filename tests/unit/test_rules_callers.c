/* SPDX-License-Identifier: BSD-2-Clause */
/* Waits that their callers tell apart: of an event loop, and for results of work that was given away. */

#include "analyze_check.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include "catalog/own_code.h"

Test(rules_callers, functions_of_rust)
{
	static const struct {
		const char *name;
		bool own;
	} cases[] = {{"export::write_row", true},
		     {"<export::Row as core::fmt::Display>::fmt", true},
		     {"<&export::Row as core::fmt::Display>::fmt", true},
		     {"<i64 as core::fmt::Display>::fmt", false},
		     {"<&mut [u8] as std::io::Write>::write_all", false},
		     {"<&std::io::stdio::Stdout as std::io::Write>::write_fmt", false},
		     {"<alloc::string::String as core::fmt::Write>::write_str", false},
		     {"<hashbrown::raw::RawTable<T,A> as core::clone::Clone>::clone", false},
		     {"core::fmt::write", false}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect_eq(xsp_is_own_function(cases[i].name), cases[i].own, "%s", cases[i].name);
}

/* "import sys; from gunicorn.app import run; sys.exit(run())" is nobody's own work. */
Test(rules_callers, scripts_that_only_start_a_package)
{
	static const struct {
		const char *path, *function;
		bool starter;
	} cases[] = {{"/usr/bin/gunicorn", "<module>", true},
		     {"/home/me/.venv/bin/celery", "<module>", true},
		     {"/usr/bin/report", "main", false},
		     {"/home/me/bin/report.py", "<module>", false},
		     {"/home/me/bin/jobs/report", "<module>", false},
		     {"/srv/app/serve", "<module>", false}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect_eq(
			xsp_is_starter(cases[i].path, strlen(cases[i].path), cases[i].function),
			cases[i].starter, "%s", cases[i].path);
}

/* Those of the library itself are not the program's: <regex> has some. */
Test(rules_callers, lambdas)
{
	static const struct {
		const char *name;
		bool own;
	} cases[] = {
		{"main::{lambda()#1}::operator()", true},
		{"app::Shop::pay(int) const::{lambda()#1}::operator()", true},
		{"std::_Function_handler<int (char), app::load(char const*)::{lambda(char)#1}>::_M_invoke",
		 true},
		{"void std::__invoke_impl<void, (anonymous namespace)::run(int)::{lambda()#2}>",
		 true},
		{"std::for_each<int*, main::{lambda(int)#1}>", true},
		{"std::__detail::_BracketMatcher<\xe2\x80\xa6>::_M_apply(char, std::integral_constant<bool, false>) const::{lambda()#1}::operator()",
		 false},
		{"std::once_flag::_Prepare_execution::_Prepare_execution<std::call_once<app::f()::{lambda()#1}>(std::once_flag&)::{lambda()#1}>",
		 true},
		{"std::call_once<void (*)()>(std::once_flag&, void (*&&)())::{lambda()#1}::operator()",
		 false},
		{"std::vector<int>::push_back", false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect_eq(xsp_is_own_function(cases[i].name), cases[i].own, "%s", cases[i].name);
}

enum {
	IN_LOOP = 1,
	FOR_RESULT,
	FOR_WORK,
	IN_TAKE,
	IN_TICK,
	IN_WAIT,
	IN_PACE,
	IN_POOL,
	OF_OWN,
	IN_SEND,
	IN_SHAKE
};

static void put_stack(struct builder *b, uint64_t id, const char *own, const char *caller)
{
	const struct xsp_capture_python_frame frames[2] = {
		{.name = xsp_text_hash(own, strlen(own))},
		{.name = xsp_text_hash(caller, strlen(caller))}};
	const bool is_inner = id != IN_LOOP; /* what is called, and its caller */
	const struct xsp_capture_python_frame turned[2] = {frames[is_inner], frames[!is_inner]};

	cr_assert_eq(xsp_capture_put_name(b->w, frames[0].name, own), 0);
	cr_assert_eq(xsp_capture_put_name(b->w, frames[1].name, caller), 0);
	cr_assert_eq(
		xsp_capture_put_python(
			b->w, &(struct xsp_capture_python){.id = id, .count = 2, .frames = turned}),
		0);
}

static void open_callers(struct builder *b)
{
	open_waits(b);
	put_stack(b, IN_LOOP, "/app/serve.py\n10\nfetch",
		  "/usr/lib/python3.11/asyncio/events.py\n80\nHandle._run");
	put_stack(b, FOR_RESULT, "/app/serve.py\n20\nclient",
		  "/usr/lib/python3.11/concurrent/futures/_base.py\n451\nFuture.result");
	put_stack(b, FOR_WORK, "/app/serve.py\n30\nworker",
		  "/usr/lib/python3.11/queue.py\n171\nQueue.get");
	put_stack(b, IN_TAKE, "/app/serve.py\n50\nserver", "/app/jobs.py\n40\nJobQueue.take");
	put_stack(b, IN_TICK, "/app/serve.py\n50\nserver", "/app/jobs.py\n60\nSampler.run");
	put_stack(b, IN_WAIT, "/app/serve.py\n50\nserver", "/app/jobs.py\n70\nFrontEnd.wait_for");
	put_stack(b, IN_PACE, "/app/serve.py\n50\nserver",
		  "/app/jobs.py\n80\nSampler.wait_for_next_tick");
	put_stack(b, IN_POOL,
		  "/usr/lib/python3.11/multiprocessing/pool.py\n540\nPool._handle_tasks",
		  "/usr/lib/python3.11/multiprocessing/reduction.py\n51\nForkingPickler.dumps");
	put_stack(b, OF_OWN, "/app/train.py\n75\nmain",
		  "/usr/lib/python3.11/multiprocessing/connection.py\n378\nConnection._recv");
	put_stack(b, IN_SHAKE, "/app/forward.py\n29\nscore",
		  "/usr/lib/python3.11/ssl.py\n1379\nSSLSocket.do_handshake");
	put_stack(b, IN_SEND,
		  "/usr/lib/python3.11/multiprocessing/pool.py\n540\nPool._handle_tasks",
		  "/usr/lib/python3.11/multiprocessing/connection.py\n367\nConnection._send");
}

static void put_wait_at(struct builder *b, uint32_t tid, uint64_t at, uint64_t ns, uint64_t stack,
			struct xsp_event_wait e)
{
	struct {
		struct xsp_event_wait e;
		struct xsp_section section;
		uint64_t id;
	} u = {.e = e,
	       .section = {.type = XSP_SECTION_PYTHON, .size = 16, .value = (uint32_t)stack},
	       .id = stack};

	u.e.head = (struct xsp_event){
		.kind = XSP_EVENT_WAIT, .probe = UINT32_MAX, .flags = XSP_EVENT_SECTIONS};
	u.e.left_ns = at;
	u.e.woken_ns = b->now = at + ns;
	u.e.syscall = 202;
	b->tid = tid;
	builder_put(b, &u, sizeof(u));
}

/* One answer of 0.6 ms in each millisecond: in a callback of asyncio, or in a thread that does nothing else. */
static struct xsp_report *answers(uint64_t stack)
{
	struct builder b;

	open_callers(&b);
	for (unsigned i = 0; i < 20; i++)
		put_wait_at(
			&b, 100, START + i * MS, 600 * US, stack,
			(struct xsp_event_wait){.why = XSP_WAIT_NETWORK,
						.argument = 5 | 45000ULL << 32 | 5432ULL << 48});
	put_times(&b, 100, START, START + 20 * MS, 0, XSP_WAIT_NETWORK, 12 * MS);
	b.tid = 100;
	return report_of(&b, NULL);
}

Test(rules_callers, calls_that_hold_up_an_event_loop)
{
	struct xsp_report *r = answers(IN_LOOP);
	const struct xsp_report_found *f = expect(r, "waiting", XSP_SEVERITY_HIGH, 0.6);

	cr_expect_str_eq(f->finding.subject, "serve.py:10 fetch");
	cr_expect_not_null(strstr(f->finding.title, "holds up its event loop"), "%s",
			   f->finding.title);
	xsp_report_free(r);
	r = answers(FOR_WORK);
	expect(r, "waiting", XSP_SEVERITY_NOTE, 0.6);
	xsp_report_free(r);
}

/* Three threads wait for 90 of 100 ms; `servers` threads of another kind end that. */
static struct xsp_report *served(uint64_t stack, unsigned servers)
{
	struct builder b;

	open_callers(&b);
	for (uint32_t i = 0; i < servers; i++)
		put_thread(&b, 120 + i, i == 0 ? "server" : "other");
	for (uint32_t i = 0; i < servers; i++)
		put_wait_at(&b, 120 + i, START, 1 * MS, FOR_WORK,
			    (struct xsp_event_wait){.why = XSP_WAIT_POLL});
	for (uint32_t i = 0; i < 3; i++) {
		put_thread(&b, 110 + i, "client");
		for (unsigned k = 0; k < 10; k++)
			put_wait_at(&b, 110 + i, START + (10 * k + 1) * MS + i * MS / 2,
				    9 * MS - MS, stack,
				    (struct xsp_event_wait){.why = XSP_WAIT_LOCK,
							    .argument = 0x1000,
							    .waker = 120 + k % servers});
	}
	for (uint32_t i = 0; i < 3; i++)
		put_times(&b, 110 + i, START, START + 100 * MS, 0, XSP_WAIT_LOCK, 80 * MS);
	for (uint32_t i = 0; i < servers; i++)
		put_times(&b, 120 + i, START, START + 100 * MS, 0, XSP_WAIT_POLL, 1 * MS);
	b.tid = 100;
	return report_of(&b, NULL);
}

/* Who waits for work, or for results of several, is not held up by one. */
Test(rules_callers, results_of_one_thread)
{
	struct xsp_report *r = served(FOR_RESULT, 1);
	const struct xsp_report_found *f = expect(r, "pool", XSP_SEVERITY_HIGH, 0.8);

	cr_expect_str_eq(value_of(f->figures, "server")->text, "server (120)");
	xsp_report_free(r);
	r = served(FOR_RESULT, 2);
	expect_none(r, "pool");
	xsp_report_free(r);
	r = served(FOR_WORK, 1);
	expect_none(r, "pool");
	xsp_report_free(r);
}

/* In each of 50 times 10 ms main waits for 6 ms until another thread wakes it, which sleeps for all but 0.5 ms. */
static struct xsp_report *polled(uint64_t stack, uint64_t sleeps, enum xsp_wait_class why)
{
	struct xsp_event_times e = {.head = {.kind = XSP_EVENT_TIMES, .probe = UINT32_MAX},
				    .since_ns = START,
				    .running_ns = 25 * MS};
	struct builder b;

	open_callers(&b);
	put_thread(&b, 120, "server");
	for (unsigned i = 0; i < 50; i++) {
		const uint64_t at = START + i * 10 * MS;
		put_wait_at(&b, 120, at, 9500 * US, sleeps, (struct xsp_event_wait){.why = why});
		put_wait_at(&b, 100, at + 4 * MS, 6 * MS - US, stack,
			    (struct xsp_event_wait){
				    .why = XSP_WAIT_LOCK, .argument = 0x1000, .waker = 120});
	}
	put_times(&b, 100, START, START + 500 * MS, 0, XSP_WAIT_LOCK, 300 * MS);
	e.blocked_ns[why] = 475 * MS;
	e.waits[why] = 50;
	b.tid = 120;
	b.now = START + 500 * MS;
	builder_put(&b, &e, sizeof(e));
	b.tid = 100;
	return report_of(&b, NULL);
}

/* What takes work, or waits for its result, and sleeps is waited for; what samples or keeps a pace should sleep. */
Test(rules_callers, work_that_lies_until_a_sleep_is_over)
{
	static const struct {
		uint64_t stack, sleeps;
		enum xsp_wait_class why;
		bool found;
	} cases[] = {{FOR_WORK, IN_TAKE, XSP_WAIT_SLEEP, true},
		     {FOR_WORK, IN_WAIT, XSP_WAIT_SLEEP, true},
		     {FOR_WORK, IN_PACE, XSP_WAIT_SLEEP, false},
		     {FOR_RESULT, IN_TICK, XSP_WAIT_SLEEP, true},
		     {FOR_WORK, IN_TICK, XSP_WAIT_SLEEP, false},
		     {FOR_WORK, IN_TAKE, XSP_WAIT_LOCK, false}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct xsp_report *r = polled(cases[i].stack, cases[i].sleeps, cases[i].why);
		if (!cases[i].found) {
			expect_none(r, "waiting");
		} else {
			const struct xsp_report_found *f =
				expect(r, "waiting", XSP_SEVERITY_HIGH, 0.6);
			cr_expect_str_eq(value_of(f->figures, "sleeper")->text, "server (120)");
			cr_expect_eq(number_of(value_of(f->figures, "sleeps_ns")), 475 * MS);
		}
		xsp_report_free(r);
	}
}

/* In each of ten rounds it asks 40 times, and then computes for 2 ms. */
static struct xsp_report *asking_at(uint64_t stack)
{
	struct xsp_event_times times = {.head = {.kind = XSP_EVENT_TIMES, .probe = UINT32_MAX},
					.since_ns = START};
	struct builder b;
	uint64_t at = START;

	open_callers(&b);
	for (unsigned i = 0; i < 400; i++) {
		put_wait_at(
			&b, 100, at, 500 * US, stack,
			(struct xsp_event_wait){.why = XSP_WAIT_NETWORK,
						.argument = 5 | 45000ULL << 32 | 5432ULL << 48});
		at += 520 * US + (i % 40 == 39 ? 2 * MS : 0);
	}
	times.blocked_ns[XSP_WAIT_NETWORK] = 200 * MS;
	times.waits[XSP_WAIT_NETWORK] = 400;
	times.running_ns = at - START - 200 * MS;
	b.now = at;
	builder_put(&b, &times, sizeof(times));
	return report_of(&b, NULL);
}

/* What its own processes send is for them to answer for. */
Test(rules_callers, answers_of_own_processes_are_no_requests)
{
	struct xsp_report *r = asking_at(OF_OWN);

	expect(r, "waiting", XSP_SEVERITY_NOTE, 20.0 / 22.8);
	xsp_report_free(r);
	r = asking_at(FOR_WORK);
	expect(r, "waiting", XSP_SEVERITY_HIGH, 20.0 / 22.8);
	xsp_report_free(r);
}

/* A pool's thread computes for a fifth of its time, and waits until workers read what it sends for main. */
Test(rules_callers, who_has_asked_for_what_is_sent)
{
	struct builder b;

	open_callers(&b);
	put_thread(&b, 120, "pool");
	put_wait_at(&b, 100, START + MS, 990 * MS, FOR_RESULT,
		    (struct xsp_event_wait){.why = XSP_WAIT_LOCK, .waker = 120});
	put_times(&b, 100, START, START + 1000 * MS, 0, XSP_WAIT_LOCK, 990 * MS);
	put_wait_at(&b, 120, START + MS, 800 * MS, IN_SEND,
		    (struct xsp_event_wait){.why = XSP_WAIT_PIPE});
	put_times(&b, 120, START, START + 1000 * MS, 0, XSP_WAIT_PIPE, 800 * MS);
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "waiting", XSP_SEVERITY_HIGH, 0.8);
	cr_expect_not_null(strstr(f->finding.title, "(serve.py:20 client)"), "%s",
			   f->finding.title);
	xsp_report_free(r);
}

/* Of a second it computes for half in handshakes, and waits in them for a quarter; for these two. */
static struct xsp_report *connecting(uint16_t port, uint16_t other)
{
	struct {
		struct xsp_event_wait e;
		struct xsp_section python;
		uint64_t id;
		struct xsp_section section;
		struct xsp_peer peer;
	} u = {.e = {.head = {.kind = XSP_EVENT_WAIT,
			      .probe = UINT32_MAX,
			      .flags = XSP_EVENT_SECTIONS},
		     .why = XSP_WAIT_NETWORK,
		     .syscall = 202},
	       .python = {.type = XSP_SECTION_PYTHON, .size = 16, .value = IN_SHAKE},
	       .id = IN_SHAKE,
	       .section = {.type = XSP_SECTION_PEER, .size = sizeof(u.section) + sizeof(u.peer)}};
	struct builder b;

	open_callers(&b);
	cr_assert_eq(xsp_capture_put_info(b.w, "samples", "cpu-clock 100"), 0);
	for (unsigned i = 0; i < 2; i++) {
		u.peer = (struct xsp_peer){S_IFSOCK, AF_INET, 40000, i == 0 ? port : other,
					   7,	     0,	      "",    {{127, 0, 0, 1}}};
		u.e.left_ns = START + (1 + i * 200) * MS;
		u.e.woken_ns = b.now = u.e.left_ns + 125 * MS;
		builder_put(&b, &u, sizeof(u));
	}
	b.now = START - 1;
	put_sampled(&b, 50, 0,
		    (struct xsp_section){.type = XSP_SECTION_PYTHON, .size = 16, .value = IN_SHAKE},
		    IN_SHAKE);
	put_sampled(&b, 25, 0,
		    (struct xsp_section){.type = XSP_SECTION_PYTHON, .size = 16, .value = IN_TAKE},
		    IN_TAKE);
	put_times(&b, 100, START, START + 1000 * MS, 0, XSP_WAIT_NETWORK, 250 * MS);
	return report_of(&b, NULL);
}

/* Waits for the other side's part of it count; who calls many hosts needs a connection to each. */
Test(rules_callers, connections_to_the_same_peer)
{
	struct xsp_report *r = connecting(5432, 5432);
	const struct xsp_report_found *f = expect(r, "dear-call", XSP_SEVERITY_HIGH, 0.75);

	cr_expect_not_null(strstr(f->finding.title, "making connections"), "%s", f->finding.title);
	xsp_report_free(r);
	r = connecting(5432, 443);
	expect_none(r, "dear-call");
	xsp_report_free(r);
}

/* Each expression of arrays makes one: less than two fifths of the time is what that costs. */
Test(rules_callers, pages_of_arrays_in_python)
{
	for (uint64_t ms = 3; ms <= 6; ms += 3) {
		struct builder b;
		open_callers(&b);
		put_wait_at(&b, 100, START, ms * MS, IN_TAKE,
			    (struct xsp_event_wait){.why = XSP_WAIT_FAULT});
		put_times(&b, 100, START, START + 10 * MS, 0, XSP_WAIT_FAULT, ms * MS);
		struct xsp_report *r = report_of(&b, NULL);
		if (ms == 6)
			expect(r, "page-faults", XSP_SEVERITY_HIGH, 0.6);
		else
			expect_none(r, "page-faults");
		xsp_report_free(r);
	}
}

/* A thread of a pool pickles what the main thread waits for. */
Test(rules_callers, who_has_asked_for_what_is_pickled)
{
	struct xsp_event_times e = {.head = {.kind = XSP_EVENT_TIMES, .probe = UINT32_MAX},
				    .since_ns = START,
				    .running_ns = 900 * MS};
	struct builder b;

	open_callers(&b);
	cr_assert_eq(xsp_capture_put_info(b.w, "samples", "cpu-clock 100"), 0);
	put_thread(&b, 120, "pool");
	put_wait_at(&b, 100, START + MS, 990 * MS, FOR_RESULT,
		    (struct xsp_event_wait){.why = XSP_WAIT_LOCK, .waker = 120});
	put_times(&b, 100, START, START + 1000 * MS, 0, XSP_WAIT_LOCK, 990 * MS);
	b.tid = 120;
	b.now = START - 1;
	put_sampled(&b, 90, 0,
		    (struct xsp_section){.type = XSP_SECTION_PYTHON, .size = 16, .value = IN_POOL},
		    IN_POOL);
	b.now = START + 1000 * MS;
	builder_put(&b, &e, sizeof(e));
	b.tid = 100;
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "dear-call", XSP_SEVERITY_HIGH, 1);
	cr_expect_not_null(strstr(f->finding.title, "pickling for others (serve.py:20 client)"),
			   "%s", f->finding.title);
	xsp_report_free(r);
}
