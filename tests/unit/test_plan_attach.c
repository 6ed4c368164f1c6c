/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * In which order a module's sites go into a process, and what is left alone there because its code is not the file's, or
 * has got no breakpoint. The broker is made up: it has the answers of a test, and notes what it is asked.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/plan.h"
#include "xsptrace/event.h"

#define FUNCTIONS 3U
#define APART 0x1000U /* bytes from one to the next */
#define FIRST_ID 10U
#define NOBODY UINT64_MAX

static struct {
	/* functions, by their number */
	uint64_t changed; /* before anything is put in */
	uint64_t changed_later; /* once so much was released */
	size_t releases_before_change;
	uint64_t without_breakpoint; /* until it was put in once more */
	/* what was asked */
	struct xsp_attach_site sites[64];
	size_t site_count;
	struct {
		uint32_t probe;
		bool again;
	} released[8];
	size_t releases;
} broker;

int __wrap_xsp_broker_verify(struct xsp_broker *b, pid_t pid, uint32_t handle,
			     const struct xsp_attach_site *sites, size_t count,
			     enum xsp_verify question, uint8_t *differs);
int __wrap_xsp_broker_sites(struct xsp_broker *b, pid_t pid, uint32_t handle,
			    enum xsp_program program, const struct xsp_attach_site *sites,
			    size_t count, size_t *refused_sites, struct xsp_error *err);
int __wrap_xsp_broker_release_from(struct xsp_broker *b, pid_t pid, const uint32_t *probes,
				   size_t count, bool again);

int __wrap_xsp_broker_verify(struct xsp_broker *b, pid_t pid, uint32_t handle,
			     const struct xsp_attach_site *sites, size_t count,
			     enum xsp_verify question, uint8_t *differs)
{
	uint64_t who = NOBODY;

	(void)b;
	(void)pid;
	(void)handle;
	if (question == XSP_VERIFY_CODE)
		who = broker.changed;
	else if (question == XSP_VERIFY_UNPROBED && broker.releases == 0)
		who = broker.without_breakpoint;
	else if (question == XSP_VERIFY_LINKED && broker.releases >= broker.releases_before_change)
		who = broker.changed_later;
	for (size_t i = 0; i < count; i++)
		differs[i] = sites[i].offset / APART == who;
	return 0;
}

int __wrap_xsp_broker_sites(struct xsp_broker *b, pid_t pid, uint32_t handle,
			    enum xsp_program program, const struct xsp_attach_site *sites,
			    size_t count, size_t *refused_sites, struct xsp_error *err)
{
	(void)b;
	(void)pid;
	(void)handle;
	(void)program;
	(void)err;
	for (size_t i = 0; i < count; i++) {
		cr_assert_lt(broker.site_count, sizeof(broker.sites) / sizeof(broker.sites[0]));
		broker.sites[broker.site_count++] = sites[i];
	}
	*refused_sites = 0;
	return 0;
}

int __wrap_xsp_broker_release_from(struct xsp_broker *b, pid_t pid, const uint32_t *probes,
				   size_t count, bool again)
{
	(void)b;
	(void)pid;
	for (size_t i = 0; i < count; i++) {
		cr_assert_lt(broker.releases, sizeof(broker.released) / sizeof(broker.released[0]));
		broker.released[broker.releases].probe = probes[i] - FIRST_ID;
		broker.released[broker.releases++].again = again;
	}
	return 0;
}

/* ---- a module ---- */

/* Three functions, each with an entry and two exits, as placement has them: the entry first. */
static struct xsp_plan_attached attach(void)
{
	static const uint64_t offsets[] = {0, 0x20, 0x40};
	static char names[FUNCTIONS][8];
	struct xsp_site sites[FUNCTIONS][3] = {0};
	struct xsp_planned_probe probes[FUNCTIONS] = {0};
	struct xsp_planned_module m = {
		.display_path = "lib.so", .probes = probes, .count = FUNCTIONS};
	struct xsp_plan plan = {0};
	struct xsp_plan_attached done;
	struct xsp_error err = {0};

	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		names[i][0] = (char)('f' + i);
		for (size_t k = 0; k < 3; k++)
			sites[i][k] =
				(struct xsp_site){.offset = (uint64_t)i * APART + offsets[k],
						  .role = k == 0 ? XSP_ROLE_ENTRY : XSP_ROLE_EXIT,
						  .length = 1};
		probes[i] = (struct xsp_planned_probe){.probe = {.action = XSP_ACTION_SPAN,
								 .offset = (uint64_t)i * APART,
								 .size = 0x100,
								 .pair = i,
								 .name = names[i]},
						       .id = FIRST_ID + i,
						       .place = {.sites = sites[i], .count = 3}};
	}
	cr_assert_eq(xsp_plan_attach(&plan, NULL, &m, NULL, 1, false, &done, &err), 0, "%s",
		     err.text);
	return done;
}

static void begin(void)
{
	memset(&broker, 0, sizeof(broker));
	broker.changed = broker.changed_later = broker.without_breakpoint = NOBODY;
}

TestSuite(plan_attach, .init = begin);

/* They go one by one into a process that runs: a call that is seen to begin is seen to end. */
Test(plan_attach, what_ends_calls_goes_in_first)
{
	bool begun = false;

	attach();
	cr_assert_eq(broker.site_count, 3 * FUNCTIONS);
	for (size_t i = 0; i < broker.site_count; i++) {
		const bool entry = XSP_COOKIE_KIND(broker.sites[i].cookie) == XSP_EVENT_ENTRY;
		cr_expect(entry || !begun, "site %zu, an exit, comes behind an entry", i);
		begun |= entry;
	}
	cr_expect(begun);
	cr_expect_eq(broker.releases, 0);
}

/* One instruction of it was changed: nothing of the function is put in, and the others are. */
Test(plan_attach, changed_functions_are_left_out_as_a_whole)
{
	broker.changed = 1;
	const struct xsp_plan_attached done = attach();
	cr_expect_eq(broker.site_count, 3 * (FUNCTIONS - 1));
	for (size_t i = 0; i < broker.site_count; i++)
		cr_expect_neq(broker.sites[i].offset / APART, 1);
	cr_expect_eq(done.changed.count, 1);
	cr_expect_str_eq(done.changed.names, "g");
	cr_expect_eq(done.unprobed.count, 0);
	cr_expect_eq(broker.releases, 0);
}

Test(plan_attach, what_is_changed_while_it_is_attached_is_taken_out)
{
	broker.changed_later = 2;
	const struct xsp_plan_attached done = attach();
	cr_expect_eq(done.changed.count, 1);
	cr_expect_str_eq(done.changed.names, "h");
	cr_assert_eq(broker.releases, 1);
	cr_expect_eq(broker.released[0].probe, 2);
	cr_expect_not(broker.released[0].again);
}

/* A live patch: while its page can be written the kernel puts nothing in, and then it is other code. */
Test(plan_attach, what_is_put_in_once_more_is_compared_again)
{
	broker.without_breakpoint = broker.changed_later = 1;
	broker.releases_before_change = 1;
	const struct xsp_plan_attached done = attach();
	cr_expect_eq(done.changed.count, 1);
	cr_expect_str_eq(done.changed.names, "g");
	cr_expect_eq(done.unprobed.count, 0);
	cr_assert_eq(broker.releases, 2);
	cr_expect_eq(broker.released[0].probe, 1);
	cr_expect(broker.released[0].again);
	cr_expect_eq(broker.released[1].probe, 1);
	cr_expect_not(broker.released[1].again);
}

Test(plan_attach, what_lacks_its_breakpoint_is_put_in_once_more)
{
	broker.without_breakpoint = 0;
	const struct xsp_plan_attached done = attach();
	cr_expect_eq(done.changed.count, 0);
	cr_expect_eq(done.unprobed.count, 0);
	cr_assert_eq(broker.releases, 1);
	cr_expect_eq(broker.released[0].probe, 0);
	cr_expect(broker.released[0].again);
}

/* ---- what comes first ---- */

/* Of many files: the program, what a pattern names, what is mapped most, what can have breakpoints. Of few: by address. */
Test(plan_attach, what_matters_most_comes_first)
{
	struct xsp_pattern pattern = {.library = "named.so", .glob = "*"};
	struct xsp_plan plan = {.selection = {.patterns = &pattern, .pattern_count = 1}};
	struct xsp_mapped_file many[70];
	char names[70][16];

	for (size_t few = 0; few < 2; few++) {
		struct xsp_mapped_files files = {.files = many, .count = few ? 60 : 70};
		for (uint64_t i = 0; i < 70; i++) {
			snprintf(names[i], sizeof(names[i]), "/lib%02u.so", (unsigned)i);
			many[i] = (struct xsp_mapped_file){.display_path = names[i],
							   .start = i << 20,
							   .use = 4096 * (i % 7 + 1)};
		}
		many[40].display_path = "/named.so";
		many[41].use = 1 << 30;
		many[42].use = 2U << 30;
		many[42].closed = true;
		xsp_plan_by_use(&plan, NULL, &files);
		for (size_t i = 0; few && i < 60; i++)
			cr_expect_eq(many[i].start, i << 20);
		if (few)
			continue;
		cr_expect_eq(many[0].start, 0);
		cr_expect_str_eq(many[1].display_path, "/named.so");
		cr_expect_str_eq(many[2].display_path, "/lib41.so");
		cr_expect_str_eq(many[3].display_path, "/lib06.so");
		cr_expect_str_eq(many[69].display_path, "/lib42.so");
	}
}
