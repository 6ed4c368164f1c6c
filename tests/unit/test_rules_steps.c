/* SPDX-License-Identifier: BSD-2-Clause */
/* What steps lose: to the DataLoader, in the first of them, to the recording itself. */

#include "analyze_check.h"

/* ---- the DataLoader ---- */

static void loader_inside(struct builder *b, uint64_t at, uint64_t ns)
{
	enter_range(b, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at,
		    SP - 0x800);
	leave_range(b, at + ns, SP - 0x800);
}

static void starved_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	loader_inside(b, at, 450 * US);
}

/* It may have no more to give. */
static void waiting_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	loader_inside(b, at, 350 * US);
}

static void fed_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	loader_inside(b, at, 50 * US);
}

Test(rules_steps, starved_loader)
{
	struct builder b;

	open_capture(&b, BATCH);
	put_steps(&b, STEPS, MS, starved_inside);
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "loader", XSP_SEVERITY_HIGH, 0.45);
	cr_expect_eq(number_of(value_of(f->figures, "calls")), STEPS);
	expect_none(r, "hot-operation"); /* it is said once */
	xsp_report_free(r);
	open_capture(&b, BATCH);
	put_steps(&b, STEPS, MS, waiting_inside);
	r = report_of(&b, NULL);
	expect(r, "loader", XSP_SEVERITY_NOTE, 0.35);
	xsp_report_free(r);
	open_capture(&b, BATCH);
	put_steps(&b, STEPS, MS, fed_inside);
	r = report_of(&b, NULL);
	expect_clean(r);
	xsp_report_free(r);
}

static void wait_in_loader(struct builder *b, const char *range, uint64_t at,
			   enum xsp_wait_class why)
{
	enter_range(b, range, at, SP - 0x800);
	put_wait(b, 100, at + 10 * US, 430 * US, 0, why);
	leave_range(b, at + 450 * US, SP - 0x800);
}

/* Of steps with that inside: what is found of the DataLoader. */
static const struct xsp_report_found *loader_that(inside_fn *inside, enum xsp_severity severity,
						  struct xsp_report **r)
{
	struct builder b;

	open_waits(&b);
	put_steps(&b, STEPS, MS, inside);
	*r = report_of(&b, NULL);
	return expect(*r, "loader", severity, 0.45);
}

static const struct xsp_report_found *loader_of(inside_fn *inside, struct xsp_report **r)
{
	return loader_that(inside, XSP_SEVERITY_HIGH, r);
}

static void polling_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	wait_in_loader(b, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", at,
		       XSP_WAIT_POLL);
}

/* No line of Python is known: its thread polls in the range, which shows that it waits for
 * workers. */
Test(rules_steps, loader_that_waits_for_its_workers)
{
	struct xsp_report *r;
	const struct xsp_report_found *f = loader_of(polling_inside, &r);

	cr_expect_eq(number_of(value_of(f->figures, "workers_ns")), STEPS * 430 * US);
	cr_expect_eq(number_of(value_of(f->figures, "files_ns")), 0);
	cr_expect_not_null(strstr(f->finding.advice, "waits for the DataLoader's workers"));
	xsp_report_free(r);
}

static void sleeping_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	wait_in_loader(b, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at,
		       XSP_WAIT_SLEEP);
}

/* It has no workers to wait for, and reads no file: neither is blamed. */
Test(rules_steps, loader_that_sleeps_itself)
{
	struct xsp_report *r;
	const struct xsp_report_found *f = loader_of(sleeping_inside, &r);

	cr_expect_eq(number_of(value_of(f->figures, "workers_ns")), 0);
	cr_expect_not_null(strstr(f->finding.advice, "waits in the DataLoader, most for: sleep"),
			   "%s", f->finding.advice);
	cr_expect_null(strstr(f->finding.advice, "for its workers or for files"));
	xsp_report_free(r);
}

static void runnable_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	wait_in_loader(b, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at,
		       XSP_WAIT_RUNNABLE);
}

/* The kernel reported too late that it ran again: its time on a CPU is unknown, and so are its
 * waits. */
static void unknown_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	enter_range(b, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at,
		    SP - 0x800);
	put_wait_of(b, 100, at + 440 * US, 0,
		    (struct xsp_event_wait){.flags = XSP_WAIT_SHORT | XSP_WAIT_UNSEEN_RETURN});
	leave_range(b, at + 450 * US, SP - 0x800);
}

/* Others have the CPUs: the loader is not to blame. */
Test(rules_steps, loader_that_has_no_cpu)
{
	struct xsp_report *r;
	const struct xsp_report_found *f = loader_that(runnable_inside, XSP_SEVERITY_NOTE, &r);

	cr_expect_eq(number_of(value_of(f->figures, "workers_ns")), 0);
	cr_expect_not_null(strstr(f->finding.advice, "could run in the DataLoader but had no CPU"),
			   "%s", f->finding.advice);
	cr_expect_null(strstr(f->finding.advice, "waits for"), "%s", f->finding.advice);
	cr_expect_eq(number_of(value_of(f->figures, "runnable_ns")), STEPS * 430 * US);
	xsp_report_free(r);
}

Test(rules_steps, loader_whose_time_on_a_cpu_is_not_known)
{
	struct xsp_report *r;
	const struct xsp_report_found *f = loader_of(unknown_inside, &r);

	cr_expect_null(value_of(f->figures, "cpu_ns")->text);
	cr_expect_null(strstr(f->finding.advice, "--waits"), "%s", f->finding.advice);
	cr_expect_not_null(strstr(f->finding.advice, "no wait was seen"), "%s", f->finding.advice);
	xsp_report_free(r);
}

/* ---- first steps, overhead ---- */

/* Pitfall 6: the first step takes 5 ms, nine later ones 1 ms. */
Test(rules_steps, first_steps_are_in_no_mean_and_said)
{
	struct builder b;
	char text[32];

	open_capture(&b, BATCH);
	enter_range(&b, "ProfilerStep#0", START, SP);
	leave_range(&b, START + 5 * MS, SP);
	for (unsigned i = 0; i < 9; i++) {
		snprintf(text, sizeof(text), "ProfilerStep#%u", i + 1);
		enter_range(&b, text, START + (5 + i) * MS + 1, SP);
		leave_range(&b, START + (6 + i) * MS, SP);
	}
	b.now = START + 14 * MS;
	struct xsp_report *r = report_of(&b, NULL);
	/* a note, as every program has them: 4 of 14 ms */
	const struct xsp_report_found *f = expect(r, "warm-up", XSP_SEVERITY_NOTE, 4.0 / 14);
	cr_expect_eq(number_of(value_of(f->figures, "steps")), 1);
	const struct xsp_report_section *steps = xsp_report_find_section(r, "steps");
	expect_near(number_of(value_of(steps, "mean_ns")), (double)MS, 2, "mean");
	cr_expect_eq(number_of(value_of(steps, "warm_up")), 1);
	xsp_report_free(r);
}

/* ... on each of four threads: 16 ms of the 56 that they spent in calls, not of 14. */
Test(rules_steps, first_steps_of_several_threads)
{
	struct builder b;
	char text[32];

	open_capture(&b, BATCH);
	for (b.tid = 100; b.tid < 104; b.tid++) {
		b.ring = b.tid - 100;
		enter_range(&b, "ProfilerStep#0", START, SP);
		leave_range(&b, START + 5 * MS, SP);
		for (unsigned i = 0; i < 9; i++) {
			snprintf(text, sizeof(text), "ProfilerStep#%u", i + 1);
			enter_range(&b, text, START + (5 + i) * MS + 1, SP);
			leave_range(&b, START + (6 + i) * MS, SP);
		}
	}
	b.now = START + 14 * MS;
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "warm-up", XSP_SEVERITY_NOTE, 16.0 / 56);
	cr_expect_eq(number_of(value_of(f->figures, "steps")), 4);
	xsp_report_free(r);
}

Test(rules_steps, overhead_of_the_recording)
{
	struct builder b;

	open_capture(&b, BATCH);
	put_steps(&b, STEPS, MS, cool_inside);
	put_stats(&b, &(struct xsp_capture_stats){.events = 1, .probes_cost_ns = 2 * MS});
	struct xsp_report *r = report_of(&b, NULL);
	expect(r, "overhead", XSP_SEVERITY_NOTE, 0.2);
	xsp_report_free(r);
	open_capture(&b, BATCH);
	put_steps(&b, STEPS, MS, cool_inside);
	put_stats(&b, &(struct xsp_capture_stats){.events = 1, .probes_cost_ns = MS / 2});
	r = report_of(&b, NULL);
	expect_clean(r);
	xsp_report_free(r);
}

/* Sites cost time between windows, too, while they are attached and detached: a share of all of the
 * time, never above it. */
Test(rules_steps, overhead_between_windows)
{
	struct builder b;

	open_capture(&b, BATCH);
	cr_assert_eq(xsp_capture_put_window(b.w, &(struct xsp_capture_window){START, START + MS}),
		     0);
	put_steps(&b, STEPS, MS, cool_inside);
	put_stats(&b, &(struct xsp_capture_stats){.events = 1, .probes_cost_ns = 2 * MS});
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "overhead", XSP_SEVERITY_NOTE, 0.2);
	cr_expect_not_null(strstr(f->finding.title, "20.0 % of the whole time"), "%s",
			   f->finding.title);
	xsp_report_free(r);
}
