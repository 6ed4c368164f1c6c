/* SPDX-License-Identifier: BSD-2-Clause */
/* What is recorded, from what was wished and what there is: each feature unsaid, asked for, refused, and where the machine
 * does not have it. */
#include <criterion/criterion.h>
#include <string.h>

#include "record/recording.h"

static const struct xsp_facts nothing_known;

/* -e torch -p PID, in a process that has it. */
static struct xsp_wishes of_operators(void)
{
	return (struct xsp_wishes){.details = XSP_DETAIL_CUDA,
				   .recording = true,
				   .names_probes = true,
				   .operators = true};
}

/* -p PID */
static struct xsp_wishes bare(void)
{
	return (struct xsp_wishes){
		.details = XSP_DETAIL_CUDA, .recording = true, .bare = true, .operators = true};
}

/* ---- each feature, alone ---- */

struct expected {
	enum xsp_feature feature;
	enum xsp_on unsaid, lacking; /* lacking: unsaid, where the machine does not have it */
	enum xsp_on asked_lacking;
	unsigned detail, unsaid_detail;
};

static const struct expected all[] = {
	{XSP_FEATURE_WAITS, XSP_BY_DEFAULT, XSP_OFF, XSP_ASKED, 0, 0},
	{XSP_FEATURE_PYTHON, XSP_BY_DEFAULT, XSP_OFF, XSP_ASKED, XSP_DETAIL_PYTHON,
	 XSP_DETAIL_TORCH_PYTHON},
	{XSP_FEATURE_SAMPLES, XSP_BY_DEFAULT, XSP_OFF, XSP_ASKED, 0, 0},
	{XSP_FEATURE_WAIT_STACKS, XSP_BY_DEFAULT, XSP_BY_DEFAULT, XSP_ASKED, 0, 0},
	{XSP_FEATURE_STACKS, XSP_OFF, XSP_OFF, XSP_ASKED, XSP_DETAIL_STACKS, 0},
	{XSP_FEATURE_COUNTERS, XSP_OFF, XSP_OFF, XSP_OFF, XSP_DETAIL_COUNTERS, 0},
	{XSP_FEATURE_MEMORY, XSP_OFF, XSP_OFF, XSP_ASKED, XSP_DETAIL_MEMORY, 0},
	{XSP_FEATURE_HEAP, XSP_OFF, XSP_OFF, XSP_ASKED, XSP_DETAIL_MALLOC, 0},
	{XSP_FEATURE_BRAKE, XSP_BY_DEFAULT, XSP_BY_DEFAULT, XSP_ASKED, 0, 0},
	{XSP_FEATURE_AGENT, XSP_OFF, XSP_OFF, XSP_OFF, 0, 0},
};

Test(recording, each_feature_has_a_row)
{
	cr_assert_eq(sizeof(all) / sizeof(all[0]), XSP_FEATURES);
	for (unsigned i = 0; i < XSP_FEATURES; i++) {
		cr_assert_eq(all[i].feature, i);
		cr_assert(strncmp(xsp_feature_option(i), "--", 2) == 0);
	}
}

Test(recording, each_feature_unsaid)
{
	const struct xsp_wishes w = of_operators();
	const struct xsp_recording r = xsp_recording_decide(&w, &nothing_known);

	for (unsigned i = 0; i < XSP_FEATURES; i++) {
		cr_assert_eq(r.of[i].on, all[i].unsaid, "%s", xsp_feature_option(i));
		cr_assert_eq(r.of[i].why, XSP_WHY_UNSAID);
		cr_assert_eq(r.details & all[i].unsaid_detail, all[i].unsaid_detail);
		if (all[i].unsaid == XSP_OFF)
			cr_assert_eq(r.details & all[i].detail, 0, "%s", xsp_feature_option(i));
	}
	cr_assert_eq(xsp_recording_defaults(&r),
		     XSP_DEFAULT_WAITS | XSP_DEFAULT_PYTHON | XSP_DEFAULT_SAMPLES);
	cr_assert_not(r.needs_no_probes);
}

Test(recording, each_feature_asked_for)
{
	for (unsigned i = 0; i < XSP_FEATURES; i++) {
		struct xsp_wishes w = of_operators();
		w.of[i] = (struct xsp_wish){XSP_SAID_ON, true, 77};
		const struct xsp_recording r = xsp_recording_decide(&w, &nothing_known);
		cr_assert_eq(r.of[i].on, XSP_ASKED, "%s", xsp_feature_option(i));
		if (i != XSP_FEATURE_WAIT_STACKS)
			cr_assert_eq(r.of[i].value, 77, "%s", xsp_feature_option(i));
		cr_assert_eq(r.details & all[i].detail, all[i].detail);
		cr_assert_eq(xsp_wished_details(&w), XSP_DETAIL_CUDA | all[i].detail);
		cr_assert_eq(xsp_recording_defaults(&r) & 1U << i, 0);
		cr_assert_eq(r.needs_no_probes, i == XSP_FEATURE_WAITS || i == XSP_FEATURE_SAMPLES);
	}
}

Test(recording, each_feature_refused)
{
	for (unsigned i = 0; i < XSP_FEATURES; i++) {
		struct xsp_wishes w = of_operators();
		w.of[i].said = XSP_SAID_OFF;
		const struct xsp_recording r = xsp_recording_decide(&w, &nothing_known);
		cr_assert_eq(r.of[i].on, XSP_OFF, "%s", xsp_feature_option(i));
		cr_assert_eq(r.of[i].why, XSP_WHY_REFUSED, "%s", xsp_feature_option(i));
		cr_assert_eq(r.details & (all[i].detail | all[i].unsaid_detail), 0);
		cr_assert_eq(xsp_recording_defaults(&r) & 1U << i, 0);
	}
}

Test(recording, each_feature_that_the_machine_lacks)
{
	for (unsigned i = 0; i < XSP_FEATURES; i++) {
		struct xsp_wishes w = of_operators();
		const struct xsp_facts f = {.lacking = 1U << i};
		struct xsp_recording r = xsp_recording_decide(&w, &f);
		cr_assert_eq(r.of[i].on, all[i].lacking, "%s", xsp_feature_option(i));
		if (all[i].unsaid != all[i].lacking)
			cr_assert_eq(r.of[i].why, XSP_WHY_MACHINE);
		w.of[i].said = XSP_SAID_ON;
		r = xsp_recording_decide(&w, &f);
		cr_assert_eq(r.of[i].on, all[i].asked_lacking, "%s", xsp_feature_option(i));
		if (r.of[i].on == XSP_OFF) {
			cr_assert_eq(r.of[i].why, XSP_WHY_MACHINE);
			cr_assert_eq(r.details & all[i].detail, 0);
		}
	}
}

/* ---- one with another ---- */

Test(recording, nothing_is_on_by_default_but_in_a_recording)
{
	struct xsp_wishes w = of_operators();

	w.recording = false;
	cr_assert_eq(xsp_recording_defaults(&(struct xsp_recording){0}), 0);
	struct xsp_recording r = xsp_recording_decide(&w, &nothing_known);
	cr_assert_eq(xsp_recording_defaults(&r), 0);
	w.live = true; /* top: waits without stacks, and samples */
	r = xsp_recording_decide(&w, &nothing_known);
	cr_assert_eq(r.of[XSP_FEATURE_WAITS].on, XSP_ASKED);
	cr_assert_eq(r.of[XSP_FEATURE_WAIT_STACKS].on, XSP_OFF);
	cr_assert_eq(r.of[XSP_FEATURE_SAMPLES].on, XSP_ASKED);
	const struct xsp_facts without = {.lacking = 1U << XSP_FEATURE_SAMPLES};
	cr_assert_eq(xsp_recording_decide(&w, &without).of[XSP_FEATURE_SAMPLES].on, XSP_OFF);
	cr_assert_not(r.needs_no_probes, "it names probes");
	w.names_probes = false;
	cr_assert(xsp_recording_decide(&w, &nothing_known).needs_no_probes);
	w.of[XSP_FEATURE_WAITS].said = w.of[XSP_FEATURE_SAMPLES].said = XSP_SAID_OFF;
	cr_assert_not(xsp_recording_decide(&w, &nothing_known).needs_no_probes);
	w = of_operators();
	w.gpu_only = true;
	r = xsp_recording_decide(&w, &nothing_known);
	cr_assert_eq(xsp_recording_defaults(&r), 0);
}

Test(recording, lines_of_python)
{
	struct xsp_wishes w = of_operators();

	cr_assert_eq(xsp_recording_decide(&w, &nothing_known).python_frames, 64);
	w.operators = false;
	struct xsp_recording r = xsp_recording_decide(&w, &nothing_known);
	cr_assert_eq(r.of[XSP_FEATURE_PYTHON].why, XSP_WHY_NO_OPERATORS);
	cr_assert_eq(r.python_frames, XSP_PYTHON_MAX, "samples have lines");
	w = of_operators();
	w.filtered = true;
	r = xsp_recording_decide(&w, &nothing_known);
	cr_assert_eq(r.of[XSP_FEATURE_PYTHON].why, XSP_WHY_FILTERED);
	w = of_operators();
	w.of[XSP_FEATURE_HEAP].said = XSP_SAID_ON;
	r = xsp_recording_decide(&w, &nothing_known);
	cr_assert_eq(r.of[XSP_FEATURE_PYTHON].why, XSP_WHY_HEAP);
	/* what is asked for beside it has the depth of all */
	w = of_operators();
	w.of[XSP_FEATURE_SAMPLES].said = XSP_SAID_ON;
	cr_assert_eq(xsp_recording_decide(&w, &nothing_known).python_frames, XSP_PYTHON_MAX);
	/* refused, samples and waits have none either */
	w.of[XSP_FEATURE_PYTHON].said = XSP_SAID_OFF;
	cr_assert_eq(xsp_recording_decide(&w, &nothing_known).python_frames, 0);
}

Test(recording, stacks)
{
	struct xsp_wishes w = of_operators();

	cr_assert_eq(xsp_recording_decide(&w, &nothing_known).stack_frames, XSP_STACK_MAX,
		     "of samples");
	w.of[XSP_FEATURE_STACKS] = (struct xsp_wish){XSP_SAID_ON, true, 5};
	cr_assert_eq(xsp_recording_decide(&w, &nothing_known).stack_frames, 5);
	w = of_operators();
	w.of[XSP_FEATURE_SAMPLES].said = XSP_SAID_OFF;
	cr_assert_eq(xsp_recording_decide(&w, &nothing_known).stack_frames, 0);
	w.of[XSP_FEATURE_HEAP].said = XSP_SAID_ON;
	cr_assert_eq(xsp_recording_decide(&w, &nothing_known).stack_frames, XSP_STACK_MAX);
}

/* A stack comes with its wait. */
Test(recording, least_times_of_waits)
{
	static const struct {
		uint64_t waits, stacks; /* said; 0: not */
		uint64_t told, with_stack;
	} cases[] = {{0, 0, 10000, 1000000},
		     {5000000, 0, 5000000, 5000000},
		     {0, 100, 100, 100},
		     {5000, 100, 100, 100},
		     {100, 5000, 100, 5000}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct xsp_wishes w = of_operators();
		w.of[XSP_FEATURE_WAITS] =
			(struct xsp_wish){XSP_SAID_ON, cases[i].waits > 0, cases[i].waits};
		if (cases[i].stacks > 0)
			w.of[XSP_FEATURE_WAIT_STACKS] =
				(struct xsp_wish){XSP_SAID_ON, true, cases[i].stacks};
		const struct xsp_recording r = xsp_recording_decide(&w, &nothing_known);
		cr_assert_eq(r.of[XSP_FEATURE_WAITS].value, cases[i].told, "%zu", i);
		cr_assert_eq(r.of[XSP_FEATURE_WAIT_STACKS].value, cases[i].with_stack, "%zu", i);
	}
}

/* Where nobody asked for waits, and all threads of the machine would pay. */
Test(recording, bystanders)
{
	const struct xsp_facts busy = {.switches = 40000}, quiet = {.switches = 30000};
	struct xsp_wishes w = of_operators();
	struct xsp_recording r = xsp_recording_decide(&w, &busy);

	cr_assert_eq(r.of[XSP_FEATURE_WAITS].why, XSP_WHY_BYSTANDERS);
	cr_assert_not(xsp_records(&r, XSP_FEATURE_WAITS) ||
		      xsp_records(&r, XSP_FEATURE_WAIT_STACKS));
	cr_assert(xsp_records(&r, XSP_FEATURE_SAMPLES));
	r = xsp_recording_decide(&w, &quiet);
	cr_assert(xsp_records(&r, XSP_FEATURE_WAITS));
	w.of[XSP_FEATURE_WAITS].said = XSP_SAID_ON;
	r = xsp_recording_decide(&w, &busy);
	cr_assert(xsp_records(&r, XSP_FEATURE_WAITS));
	w = of_operators();
	w.profile = true; /* asked for */
	r = xsp_recording_decide(&w, &busy);
	cr_assert(xsp_records(&r, XSP_FEATURE_WAITS));
}

#define CALLBACKS                                                                                  \
	{                                                                                          \
		.said = XSP_SAID_ON, .valued = true, .value = XSP_BY_CALLBACKS                     \
	}

/* What we start has its operators recorded by the agent, unless they are asked for what it does not read. Their lines stay on, as
 * it may not come. */
Test(recording, the_agent_in_what_is_launched)
{
	const struct {
		struct xsp_wishes w;
		unsigned lacking;
		enum xsp_on on;
		enum xsp_why_off why;
	} cases[] = {
		{.on = XSP_BY_DEFAULT},
		{.lacking = 1U << XSP_FEATURE_AGENT, .why = XSP_WHY_MACHINE},
		{.w.of[XSP_FEATURE_AGENT].said = XSP_SAID_OFF, .why = XSP_WHY_REFUSED},
		{.w.of[XSP_FEATURE_AGENT].said = XSP_SAID_ON, .on = XSP_ASKED},
		{.w.of[XSP_FEATURE_PYTHON].said = XSP_SAID_ON, .on = XSP_BY_DEFAULT},
		{.w.details = XSP_DETAIL_OUTPUTS, .why = XSP_WHY_DETAILS},
		{.w.details = XSP_DETAIL_SHAPES, .on = XSP_BY_DEFAULT},
		{.w.of[XSP_FEATURE_AGENT] = CALLBACKS, .on = XSP_ASKED},
		{.w.of[XSP_FEATURE_AGENT] = CALLBACKS,
		 .w.details = XSP_DETAIL_SEQUENCE,
		 .on = XSP_ASKED},
		{.w.of[XSP_FEATURE_AGENT] = CALLBACKS,
		 .w.details = XSP_DETAIL_SHAPES,
		 .why = XSP_WHY_DETAILS},
		{.w.of[XSP_FEATURE_AGENT] = CALLBACKS,
		 .w.operators_by_name = true,
		 .why = XSP_WHY_NAMES},
		{.w.operators_by_name = true, .on = XSP_BY_DEFAULT},
		{.w.details = XSP_DETAIL_SEQUENCE, .why = XSP_WHY_DETAILS},
		{.w.filtered = true, .why = XSP_WHY_FILTERED},
		{.w.some_threads = true, .why = XSP_WHY_FILTERED},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct xsp_facts f = {.lacking = cases[i].lacking};
		struct xsp_wishes w = cases[i].w;
		w.recording = w.launched = w.operators = true;
		const struct xsp_recording r = xsp_recording_decide(&w, &f);
		cr_expect_eq(r.of[XSP_FEATURE_AGENT].on, cases[i].on, "case %zu", i);
		cr_expect_eq(r.of[XSP_FEATURE_AGENT].why, cases[i].why, "case %zu", i);
		if (cases[i].on == XSP_BY_DEFAULT)
			cr_expect_neq(r.details & (XSP_DETAIL_TORCH_PYTHON | XSP_DETAIL_PYTHON), 0);
		if (cases[i].on == XSP_ASKED)
			cr_expect_eq(r.of[XSP_FEATURE_PYTHON].why, XSP_WHY_AGENT);
	}
}

/* What would be beside spans is not on beside nothing. */
Test(recording, nothing_beside)
{
	const struct xsp_facts f = {.nothing_found = true};
	struct xsp_wishes w = of_operators();

	w.of[XSP_FEATURE_SAMPLES].said = XSP_SAID_ON;
	const struct xsp_recording r = xsp_recording_decide(&w, &f);
	cr_assert_eq(r.of[XSP_FEATURE_WAITS].why, XSP_WHY_NOTHING_BESIDE);
	cr_assert_eq(r.of[XSP_FEATURE_SAMPLES].on, XSP_ASKED);
	cr_assert_eq(xsp_recording_defaults(&r), 0);
	cr_assert_not(r.profile);
}

/* ---- a profile ---- */

Test(recording, a_bare_process_with_nothing_to_trace_is_a_profile)
{
	const struct xsp_facts f = {.nothing_found = true},
			       busy = {.nothing_found = true, .switches = 40000};
	struct xsp_wishes w = bare();

	cr_assert_not(xsp_recording_decide(&w, &nothing_known).profile, "something may be found");
	struct xsp_recording r = xsp_recording_decide(&w, &f);
	cr_assert(r.profile && r.needs_no_probes && !r.refused);
	cr_assert_eq(r.of[XSP_FEATURE_WAITS].on, XSP_ASKED);
	cr_assert_eq(r.of[XSP_FEATURE_SAMPLES].on, XSP_ASKED);
	cr_assert_eq(r.details & XSP_DETAIL_TORCH_PYTHON, 0);
	r = xsp_recording_decide(&w, &busy); /* nobody asked for it */
	cr_assert_eq(r.of[XSP_FEATURE_WAITS].why, XSP_WHY_BYSTANDERS);
	cr_assert(r.profile && r.needs_no_probes);
	w.of[XSP_FEATURE_SAMPLES].said = XSP_SAID_OFF;
	r = xsp_recording_decide(&w, &busy); /* but all of it are waits */
	cr_assert(r.profile && xsp_records(&r, XSP_FEATURE_WAITS));
	w.of[XSP_FEATURE_WAITS].said = XSP_SAID_OFF;
	r = xsp_recording_decide(&w, &f);
	cr_assert(!r.profile && r.refused && !r.needs_no_probes);
	w = bare();
	w.of[XSP_FEATURE_MEMORY].said = XSP_SAID_ON;
	cr_assert_not(xsp_recording_decide(&w, &f).profile, "it takes probes");
	w = of_operators();
	cr_assert_not(xsp_recording_decide(&w, &f).profile, "it was to be something else");
}

/* What the broker loads instead is what was decided anew. */
Test(recording, a_profile_instead_is_what_was_asked_of_the_broker)
{
	const struct xsp_facts f = {.nothing_found = true};
	const struct xsp_wish off = {.said = XSP_SAID_OFF}, seven = {XSP_SAID_ON, true, 7};
	const struct {
		enum xsp_feature feature;
		struct xsp_wish wish;
	} cases[] = {
		{XSP_FEATURE_BRAKE, {.said = XSP_UNSAID}},
		{XSP_FEATURE_WAITS, off},
		{XSP_FEATURE_SAMPLES, off},
		{XSP_FEATURE_PYTHON, off},
		{XSP_FEATURE_PYTHON, seven},
		{XSP_FEATURE_STACKS, seven},
		{XSP_FEATURE_WAIT_STACKS, off},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct xsp_wishes w = bare();
		w.of[cases[i].feature] = cases[i].wish;
		const struct xsp_recording first = xsp_recording_decide(&w, &nothing_known),
					   r = xsp_recording_decide(&w, &f);
		struct xsp_attach_options a = {.details = first.details, .ranges = true},
					  b = {.details = r.details & ~(unsigned)XSP_DETAIL_CUDA};
		xsp_recording_attach(&first, &a);
		xsp_attach_bare(&a);
		xsp_recording_attach(&r, &b);
		cr_assert_eq(a.details, b.details, "%zu", i);
		cr_assert_eq(a.ranges, b.ranges, "%zu", i);
		cr_assert_eq(a.defaults, b.defaults, "%zu", i);
		cr_assert_eq(a.stack_frames, b.stack_frames, "%zu", i);
		cr_assert_eq(a.python_frames, b.python_frames, "%zu", i);
		cr_assert_eq(a.waits, b.waits, "%zu", i);
		cr_assert_eq(a.wait_stacks, b.wait_stacks, "%zu", i);
		cr_assert_eq(a.wait_stacks_thinned, b.wait_stacks_thinned, "%zu", i);
		cr_assert_eq(a.sample_hz, b.sample_hz, "%zu", i);
	}
}
