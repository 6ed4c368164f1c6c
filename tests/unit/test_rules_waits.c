/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that wait: for locks, for Python's, for a CPU, the disk, or pages of memory. */

#include "analyze_check.h"

#include <sys/syscall.h>

#include "analysis/rules/rules_private.h"
#include "analysis/waits/summary_waits_private.h"

/* Of 10 ms thread 101 waits 8 times for `ns`. */
static struct xsp_report *waiting(uint64_t ns, uint32_t owner)
{
	struct builder b;

	open_waits(&b);
	for (unsigned i = 0; i < 8; i++)
		put_wait(&b, 101, START + i * MS, ns, owner, XSP_WAIT_LOCK);
	put_times(&b, 100, START, START + 10 * MS, 0, XSP_WAIT_LOCK, 0);
	put_times(&b, 101, START, START + 10 * MS, 0, XSP_WAIT_LOCK, 8 * ns);
	b.now = START + 10 * MS;
	return report_of(&b, NULL);
}

Test(rules_waits, lock_that_another_thread_holds)
{
	struct xsp_report *r = waiting(500 * US, 100);
	const struct xsp_report_found *f = expect(r, "lock", XSP_SEVERITY_HIGH, 0.4);

	cr_expect_eq(number_of(value_of(f->figures, "waits")), 8);
	cr_expect_eq(number_of(value_of(f->figures, "total_ns")), 4 * MS);
	cr_expect_str_eq(value_of(f->figures, "holder")->text, "main (100)");
	cr_expect_str_eq(value_of(f->figures, "address")->text, "0x1000");
	/* where is not known without stacks */
	cr_expect_eq(strncmp(f->finding.title, "threads wait for a lock", 23), 0, "%s",
		     f->finding.title);
	cr_expect_eq(f->finding.to_ns - f->finding.from_ns, 500 * US);
	xsp_report_free(r);
}

/* Rust, Go and musl: the futex is 2, and no owner follows. */
Test(rules_waits, lock_whose_holder_is_not_known)
{
	for (unsigned flag = 0; flag < 2; flag++) {
		struct builder b;
		open_waits(&b);
		for (unsigned i = 0; i < 8; i++)
			put_wait_of(&b, 101, START + i * MS, 500 * US,
				    (struct xsp_event_wait){.argument = 0x1000,
							    .flags = flag ? XSP_WAIT_MUTEX : 0,
							    .why = XSP_WAIT_LOCK});
		put_times(&b, 101, START, START + 10 * MS, 0, XSP_WAIT_LOCK, 4 * MS);
		b.now = START + 10 * MS;
		struct xsp_report *r = report_of(&b, NULL);
		if (flag)
			expect(r, "lock", XSP_SEVERITY_HIGH, 0.4);
		else
			expect_clean(r);
		xsp_report_free(r);
	}
}

/* Without the lock it would wait for work instead. */
Test(rules_waits, lock_of_a_thread_that_is_idle)
{
	struct builder b;

	open_waits(&b);
	for (unsigned i = 0; i < 8; i++) {
		put_wait(&b, 101, START + i * MS, 300 * US, 100, XSP_WAIT_LOCK);
		put_wait(&b, 101, START + i * MS + 500 * US, 450 * US, 0, XSP_WAIT_LOCK);
	}
	put_times(&b, 101, START, START + 10 * MS, 0, XSP_WAIT_LOCK, 8 * 750 * US);
	b.now = START + 10 * MS;
	struct xsp_report *r = report_of(&b, NULL);
	expect_clean(r);
	xsp_report_free(r);
}

/* A lock that everybody waits for, and then more than are followed. */
Test(rules_waits, more_locks_than_are_followed)
{
	const unsigned followed = 65536, more = 1000;
	struct builder b;

	open_waits(&b);
	put_thread(&b, 110, "other");
	for (unsigned i = 0; i < 8; i++)
		put_wait(&b, 101, START + i * MS, 500 * US, 100, XSP_WAIT_LOCK);
	for (unsigned i = 1; i < followed + more; i++)
		put_wait_of(&b, 110, START + 8 * MS + i * 20, 10,
			    (struct xsp_event_wait){.argument = 0x100000 + 64 * i,
						    .owner = 100,
						    .why = XSP_WAIT_LOCK});
	put_times(&b, 100, START, START + 10 * MS, 0, XSP_WAIT_LOCK, 0);
	put_times(&b, 101, START, START + 10 * MS, 0, XSP_WAIT_LOCK, 4 * MS);
	b.now = START + 10 * MS;
	const char *said = "1,000 waits (10.0 us) were for more locks than are followed";
	builder_end(&b);
	char *text = summary_of(b.path);
	cr_expect_not_null(strstr(text, said), "%s", text);
	free(text);
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "lock", XSP_SEVERITY_HIGH, 0.4);
	cr_assert_not_null(f->finding.uncertain);
	cr_expect_not_null(strstr(f->finding.uncertain, said), "%s", f->finding.uncertain);
	const char *const *notes;
	const size_t n = xsp_report_notes(xsp_report_find_section(r, "threads"), &notes);
	cr_assert_geq(n, 1);
	cr_expect_str_eq(notes[n - 1], said);
	xsp_report_free(r);
}

static void put_person(struct xsp_summary_waits *w, uint32_t lock, uint32_t tid, enum role role)
{
	const struct person p = {.lock = lock, .tid = tid, .role = role, .times = 1};

	cr_assert_not_null(xsp_tally_row(&w->people, xsp_waits_person_key(lock, role, tid), &p));
}

/* As many threads as are followed wait for a lock and wake each other: their number squared is more than a machine has time for. */
Test(rules_waits, lock_that_many_threads_fight_for)
{
	const uint32_t threads = 131072;
	struct lock locks[2] = {{.python_ns = 10, .placed_ns = 10}, {.python_ns = 1}};
	struct xsp_summary_waits w = {.locks = {.tally = {.rows = locks, .count = 2}}};

	for (uint32_t i = 0; i < threads; i++) {
		put_person(&w, 0, i + 1, WAITER);
		put_person(&w, 0, i + 1, WAKER);
	}
	cr_assert_eq(w.people.count, 2 * threads);
	cr_expect(xsp_rule_is_fought_for(&w, &locks[0]));
	cr_expect(!xsp_rule_is_fought_for(&w, &locks[1]));
	xsp_tally_free(&w.people);
	/* half of them have only ever waited for another lock */
	for (uint32_t i = 0; i < threads; i++) {
		put_person(&w, i < threads / 2, i + 1, WAITER);
		put_person(&w, 0, i + 1, WAKER);
	}
	cr_expect(!xsp_rule_is_fought_for(&w, &locks[0]));
	xsp_tally_free(&w.people);
}

/* A worker on a condition variable waits as long, and for nobody. */
Test(rules_waits, idle_threads_wait_for_no_lock)
{
	struct xsp_report *r = waiting(900 * US, 0);

	expect_clean(r);
	cr_expect(!had_no_data(r, "lock"));
	xsp_report_free(r);
	r = waiting(100 * US, 100); /* 8 % */
	expect_clean(r);
	xsp_report_free(r);
}

/* Threads that always want to run; the others sleep. `limit`: what their control group may use, and how often it was stopped. */
static struct xsp_report *hungry(unsigned threads, const char *cpus, const char *limit,
				 const char *const names[2])
{
	struct builder b;

	open_waits(&b);
	if (cpus != NULL)
		cr_assert_eq(xsp_capture_put_info(b.w, "cpus", cpus), 0);
	if (limit != NULL)
		cr_assert_eq(xsp_capture_put_info(b.w, "cpu limit", limit), 0);
	for (uint32_t tid = 110; tid < 110 + threads; tid++) {
		put_thread(&b, tid, names[tid % 2]);
		put_times(&b, tid, START, START + 10 * MS, 6 * MS, XSP_WAIT_SLEEP, MS);
	}
	return report_of(&b, NULL);
}

Test(rules_waits, a_control_group_at_its_limit)
{
	static const char *const names[] = {"w0", "w1"};

	struct xsp_report *r = hungry(1, "1", "0.5 100 97", names);
	const struct xsp_report_found *f = expect(r, "runnable", XSP_SEVERITY_HIGH, 0.6);
	cr_expect_not_null(strstr(f->finding.advice, "may use 0.5 CPUs"), "%s", f->finding.advice);
	cr_expect_not_null(strstr(f->finding.advice, "stopped in 97 of 100 periods"), "%s",
			   f->finding.advice);
	xsp_report_free(r);
	r = hungry(1, "1", "0.5 100 3", names); /* others had the CPUs */
	expect(r, "runnable", XSP_SEVERITY_NOTE, 0.6);
	xsp_report_free(r);
}

Test(rules_waits, more_threads_than_cpus)
{
	static const char *const names[][2] = {{"w0", "w1"}, {"worker", "worker"}};
	static const char *const groups[] = {"w*", "worker"};

	for (size_t i = 0; i < 2; i++) {
		struct xsp_report *r = hungry(5, "2", NULL, names[i]);
		/* threads of one name are one finding, also if a number follows it */
		const struct xsp_report_found *f = expect(r, "runnable", XSP_SEVERITY_MEDIUM, 0.6);
		cr_expect_str_eq(f->finding.subject, groups[i]);
		cr_expect_eq(number_of(value_of(f->figures, "threads")), 5);
		cr_expect_eq(number_of(value_of(f->figures, "total_ns")), 30 * MS);
		cr_expect_not_null(
			strstr(f->finding.advice, "5 threads always want to run, on 2 CPUs"), "%s",
			f->finding.advice);
		xsp_report_free(r);
		/* a few more only share, and so do those of which nobody knows on how many CPUs */
		r = hungry(4, "2", NULL, names[i]);
		expect(r, "runnable", XSP_SEVERITY_NOTE, 0.6);
		xsp_report_free(r);
		r = hungry(5, NULL, NULL, names[i]);
		expect(r, "runnable", XSP_SEVERITY_NOTE, 0.6);
		xsp_report_free(r);
	}
	/* a single one has no CPU because of other programs */
	struct xsp_report *r = hungry(1, "2", NULL, names[0]);
	cr_expect_not_null(strstr(expect(r, "runnable", XSP_SEVERITY_NOTE, 0.6)->finding.advice,
				  "other programs"));
	xsp_report_free(r);
}

Test(rules_waits, where_threads_waited_is_to_be_recorded)
{
	for (int with = 0; with < 2; with++) {
		struct builder b;
		const char *const *notes;
		open_waits(&b);
		cr_assert_eq(xsp_capture_put_info(b.w, "wait stacks", with ? "1000000" : "off"), 0);
		put_times(&b, 101, START, START + 10 * MS, 0, XSP_WAIT_NETWORK, 9 * MS);
		struct xsp_report *r = report_of(&b, NULL);
		const struct xsp_report_section *threads = xsp_report_find_section(r, "threads");
		cr_assert_eq(xsp_report_notes(threads, &notes), !with);
		if (!with)
			cr_expect_not_null(strstr(notes[0], "--wait-stacks"));
		xsp_report_free(r);
	}
}

/* In fsync it is a finding; who copies files waits for the disk by its purpose. */
Test(rules_waits, waits_for_the_disk)
{
	static const struct {
		int syscall;
		uint64_t us;
	} cases[] = {{SYS_fdatasync, 3500}, {SYS_read, 3500}, {SYS_fdatasync, 900}};

	for (size_t i = 0; i < 3; i++) {
		struct builder b;
		open_waits(&b);
		b.now = START + MS;
		entry(&b, WORK, SP - 0x1000);
		put_wait_of(
			&b, 100, START + MS, cases[i].us * US,
			(struct xsp_event_wait){.syscall = cases[i].syscall, .why = XSP_WAIT_DISK});
		leave(&b, WORK, SP - 0x1000);
		put_times(&b, 100, START, START + 10 * MS, 0, XSP_WAIT_DISK, cases[i].us * US);
		struct xsp_report *r = report_of(&b, NULL);
		if (i < 2)
			expect(r, "disk", i == 0 ? XSP_SEVERITY_HIGH : XSP_SEVERITY_NOTE, 0.35);
		else
			expect_none(r, "disk");
		xsp_report_free(r);
	}
}

/* It could run for most of its life, which was short. */
Test(rules_waits, threads_of_a_moment_prove_nothing)
{
	struct builder b;

	open_waits(&b);
	put_times(&b, 101, START, START + 100 * US, 80 * US, XSP_WAIT_FAULT, 20 * US);
	b.now = START + 10 * MS;
	struct xsp_report *r = report_of(&b, NULL);
	expect_clean(r);
	xsp_report_free(r);
}

Test(rules_waits, page_faults)
{
	for (uint64_t ms = 1; ms < 4; ms += 2) {
		struct builder b;
		open_waits(&b);
		put_wait_of(&b, 101, START + MS, ms * MS,
			    (struct xsp_event_wait){.syscall = -1, .why = XSP_WAIT_FAULT});
		put_times(&b, 101, START, START + 10 * MS, 0, XSP_WAIT_FAULT, ms * MS);
		struct xsp_report *r = report_of(&b, NULL);
		if (ms == 3)
			expect(r, "page-faults", XSP_SEVERITY_MEDIUM, 0.3);
		else
			expect_clean(r);
		xsp_report_free(r);
	}
}

/* ---- Python's lock ---- */

/* its condition; its mutex follows after 48 bytes; at 120 is what a thread waits at after it gave
 * the lock away */
#define GIL 0x5000

static void put_python(struct builder *b)
{
	cr_assert_eq(xsp_capture_put_process(
			     b->w, &(struct xsp_capture_process){.pid = 100,
								 .ns_pid = 100,
								 .comm = "python3",
								 .cmdline = "",
								 .exe = "/usr/bin/python3"}),
		     0);
}

/* In 100 ms, threads 101 and 102 wait 40 times for `ns` at `address`, each woken by thread
 * 100; a mutex there has `owner`.  */
static struct xsp_report *wanting(uint64_t ns, uint64_t address, uint32_t owner, bool known)
{
	const unsigned waits = 40;
	struct builder b;

	open_waits(&b);
	put_python(&b);
	if (known)
		cr_assert_eq(xsp_capture_put_info(b.w, "python lock 100", "0x5000 48 176"), 0);
	for (unsigned i = 0; i < waits; i++)
		for (uint32_t tid = 101; tid <= 102; tid++)
			put_wait_of(&b, tid, START + i * 80 * MS / waits, ns,
				    (struct xsp_event_wait){/* both words of a condition variable */
							    .argument = address + i % 2 * 8,
							    .owner = owner,
							    .waker = 100,
							    .why = XSP_WAIT_LOCK});
	for (uint32_t tid = 100; tid <= 102; tid++)
		put_times(&b, tid, START, START + 100 * MS, 0, XSP_WAIT_LOCK,
			  tid == 100 ? 0 : waits * ns);
	b.now = START + 100 * MS;
	return report_of(&b, NULL);
}

Test(rules_waits, threads_that_want_the_lock_of_python)
{
	struct xsp_report *r = wanting(1400 * US, GIL + 12, 0, true);
	const struct xsp_report_found *f = expect(r, "gil", XSP_SEVERITY_HIGH, 0.56);

	cr_expect_not_null(
		strstr(f->finding.title, "(GIL): 56.0 % of the time of 2 threads worker"), "%s",
		f->finding.title);
	cr_expect_eq(number_of(value_of(f->figures, "threads")), 2);
	cr_expect_eq(number_of(value_of(f->figures, "total_ns")), 2 * 40 * 1400 * US);
	cr_expect_str_eq(value_of(f->figures, "holder")->text, "main (100)");
	expect_none(r, "lock");
	xsp_report_free(r);
}

/* Its mutex has an owner as other mutexes have: it is not reported as another lock, and the owner
 * is not the waker there. */
Test(rules_waits, lock_of_python_is_no_other_lock)
{
	struct xsp_report *r = wanting(1400 * US, GIL + 48, 100, true);
	const struct xsp_report_found *f = expect(r, "gil", XSP_SEVERITY_HIGH, 0.56);
	const struct xsp_report_figure *values;

	for (size_t i = xsp_report_values(f->figures, &values); i > 0; i--)
		cr_expect_str_neq(values[i - 1].key, "holder");
	expect_none(r, "lock");
	xsp_report_free(r);
}

/* A lock of the program's own, as long; and threads that seldom want Python's. */
Test(rules_waits, idle_threads_do_not_want_the_lock_of_python)
{
	struct xsp_report *r = wanting(1400 * US, GIL + 176, 0, true);

	expect_clean(r);
	cr_expect(!had_no_data(r, "gil"));
	xsp_report_free(r);
	r = wanting(220 * US, GIL + 12, 0, true); /* 8.8 % */
	expect_clean(r);
	xsp_report_free(r);
	r = wanting(1400 * US, GIL + 12, 0, false);
	cr_expect(had_no_data(r, "gil"));
	xsp_report_free(r);
}

/* In 100 ms thread 101 is woken ten times by what it waits for, and then waits 5 ms for Python's lock, which thread 100 has. */
static struct xsp_report *wanting_when_woken(enum xsp_wait_class why)
{
	struct builder b;
	struct xsp_event_times e = {.head = {.kind = XSP_EVENT_TIMES, .probe = UINT32_MAX},
				    .since_ns = START,
				    .running_ns = 5 * MS};

	open_waits(&b);
	put_python(&b);
	cr_assert_eq(xsp_capture_put_info(b.w, "python lock 100", "0x5000 48 176"), 0);
	for (unsigned i = 0; i < 10; i++) {
		const uint64_t at = START + i * 10 * MS;
		put_wait_of(&b, 101, at, 4500 * US,
			    (struct xsp_event_wait){.argument = 0x9000, .why = why});
		put_wait_of(&b, 101, at + 4600 * US, 5 * MS,
			    (struct xsp_event_wait){
				    .argument = GIL, .waker = 100, .why = XSP_WAIT_LOCK});
	}
	put_times(&b, 100, START, START + 100 * MS, 0, XSP_WAIT_LOCK, 0);
	e.blocked_ns[why] = 45 * MS;
	e.blocked_ns[XSP_WAIT_LOCK] += 50 * MS;
	b.tid = 101;
	b.now = START + 100 * MS;
	builder_put(&b, &e, sizeof(e));
	return report_of(&b, NULL);
}

/* Who sent something waits for its answer; a queue's thread has the time. */
Test(rules_waits, threads_that_are_asked_want_the_lock_of_python)
{
	struct xsp_report *r = wanting_when_woken(XSP_WAIT_NETWORK);
	const struct xsp_report_found *f = expect(r, "gil", XSP_SEVERITY_HIGH, 0.5);

	cr_expect_eq(number_of(value_of(f->figures, "total_ns")), 50 * MS);
	cr_expect_str_eq(value_of(f->figures, "holder")->text, "main (100)");
	xsp_report_free(r);
	r = wanting_when_woken(XSP_WAIT_LOCK);
	expect_none(r, "gil");
	xsp_report_free(r);
	r = wanting_when_woken(XSP_WAIT_SLEEP);
	expect_none(r, "gil");
	xsp_report_free(r);
}
