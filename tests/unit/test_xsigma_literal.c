/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The literal of a call site against what the program really names it: xsigma_names runs with a
 * profiler on and tells. A site may stay unnamed, but never get another name.
 */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probes/xsigma/literal.h"

struct tally {
	unsigned sites, plain, named, wrong;
};

/* One line of the program: where, and what before() got there. */
static void judge(struct xsp_module *m, char *line, struct tally *t)
{
	char *rest, name[256] = "";
	uint64_t addr = strtoull(line, &rest, 16);

	rest[strcspn(rest, "\n")] = '\0';
	bool one = rest[0] == '\t' && strchr(rest + 1, '\t') == NULL;
	bool named = xsp_xsigma_literal(m, addr, name, sizeof(name)) == NULL;
	t->sites++;
	t->plain += one;
	t->named += named;
	if (named && !(one && strcmp(rest + 1, name) == 0)) {
		t->wrong++;
		fprintf(stderr, "0x%" PRIx64 ": `%s`, called with `%s`\n", addr, name, rest);
	}
}

static void check_program(const char *path, unsigned least)
{
	struct xsp_module *m;
	struct tally t = {0};
	char line[4096];

	if (access(path, X_OK) < 0)
		cr_skip_test("%s is not built", path);
	cr_assert_eq(xsp_module_open(path, path, &m, NULL), 0);
	FILE *f = popen(path, "r");
	cr_assert_not_null(f);
	while (fgets(line, sizeof(line), f) != NULL)
		judge(m, line, &t);
	cr_assert_eq(pclose(f), 0);
	xsp_module_free(m);
	fprintf(stderr, "%s: %u of %u sites named, %u have one name\n", path, t.named, t.sites,
		t.plain);
	cr_expect_eq(t.wrong, 0U);
	cr_expect_geq(t.named, least, "only %u sites named", t.named);
	cr_expect_geq(t.sites, 40U);
}

/* How many are named may differ with the compiler's version; these are gcc 12 and clang 14, less a few. */
#define PROGRAM(build, least)                                                                      \
	Test(xsigma_literal, build)                                                                \
	{                                                                                          \
		check_program(XSP_WORKLOADS "/xsigma_names_" #build, least);                       \
	}
PROGRAM(gcc, 40)
PROGRAM(gcc_ndebug, 40)
PROGRAM(gcc_unoptimised, 30)
PROGRAM(clang, 40)
PROGRAM(clang_ndebug, 40)
PROGRAM(clang_unoptimised, 24)

Test(xsigma_literal, no_code_at_the_address)
{
	struct xsp_module *m;
	char text[64] = "x";

	cr_assert_eq(xsp_module_open("/proc/self/exe", "self", &m, NULL), 0);
	for (uint64_t addr = 0; addr < 0x20000; addr += 77)
		cr_expect_not_null(xsp_xsigma_literal(m, addr, text, sizeof(text)));
	cr_expect_str_eq(text, "x");
	xsp_module_free(m);
}
