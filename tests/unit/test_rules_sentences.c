/* SPDX-License-Identifier: BSD-2-Clause */
/* Sentences of findings: figures by their keys, parts that are left out. */
#include <criterion/criterion.h>

#include "analysis/rules/rules.h"

static const char *say(const struct xsp_rule_finding *f, const char *sentence)
{
	static char out[XSP_RULE_SENTENCE];

	return xsp_rule_sentence(f, sentence, out);
}

static struct xsp_rule_finding a_finding(void)
{
	struct xsp_rule_finding f = {.subject = "train.py", .part = {0.1234, "all"}};

	xsp_finding_ns(&f, "total_ns", "in all", 1200000000);
	xsp_finding_count(&f, "calls", "calls", 12345);
	xsp_finding_bytes(&f, "bytes", NULL, 2048);
	xsp_finding_text(&f, "line", NULL, NULL);
	xsp_finding_flag(&f, "one", false);
	xsp_finding_flag(&f, "many", true);
	xsp_finding_figure(&f, "cpus", NULL, XSP_UNIT_NUMBER, xsp_cell_real(2.0 / 3));
	xsp_finding_figure(&f, "sum", "sum", XSP_UNIT_NS, xsp_cell_absent());
	return f;
}

Test(rules_sentences, figures)
{
	const struct xsp_rule_finding f = a_finding();

	cr_expect_str_eq(say(&f, "{subject} takes {share} of {of}: {total_ns}, {calls}, {bytes}"),
			 "train.py takes 12.3 % of all: 1.20 s, 12,345, 2.00 KiB");
	cr_expect_str_eq(say(&f, "{subject:5} {share:2g} {cpus:2f} {cpus:3g} {cpus} {calls:d}"),
			 "train 12 % 0.67 0.667 0.6667 12345");
	cr_expect_str_eq(say(&f, "{line}|{nothing}|{sum}"), "||-");
	cr_expect_str_eq(say(&f, ""), "");
}

Test(rules_sentences, parts_that_are_left_out)
{
	const struct xsp_rule_finding f = a_finding();

	cr_expect_str_eq(say(&f, "a[ at {line}] b[ of {subject}]."), "a b of train.py.");
	cr_expect_str_eq(say(&f, "[one|it][!one|they][many|, {calls:d} of them]"),
			 "they, 12345 of them");
	cr_expect_str_eq(say(&f, "[line|at {line}][!line|somewhere][nothing|else]"), "somewhere");
	cr_expect_str_eq(say(&f, "[line|left out"), "");
	cr_expect_str_eq(say(&f, "{calls"), "12,345");
}

/* What a target's name holds is text, and is cut where there is no room. */
Test(rules_sentences, names_are_not_read)
{
	static char name[2 * XSP_RULE_SENTENCE];
	struct xsp_rule_finding f = a_finding();

	f.subject = "[one|{calls}] 100 %s";
	cr_expect_str_eq(say(&f, "{subject}"), f.subject);
	memset(name, 'x', sizeof(name) - 1);
	f.subject = name;
	cr_expect_eq(strlen(say(&f, "{subject} is long")), XSP_RULE_SENTENCE - 1);
}

/* Every rule says what is slow; what its sentences hold is closed. */
Test(rules_sentences, of_all_rules)
{
	for (size_t i = 0; i < xsp_rule_count; i++) {
		const char *sentences[] = {xsp_rules[i].title, xsp_rules[i].advice};
		cr_expect_not_null(xsp_rules[i].title, "%s", xsp_rules[i].key);
		for (size_t k = 0; k < 2; k++) {
			int open = 0, most = 0;
			for (const char *c = sentences[k]; c != NULL && *c != '\0'; c++) {
				open += *c == '[' || *c == '{'	 ? 1
					: *c == ']' || *c == '}' ? -1
								 : 0;
				most = open > most ? open : most;
				cr_expect_geq(open, 0, "%s", sentences[k]);
			}
			cr_expect_eq(open, 0, "%s", xsp_rules[i].key);
			cr_expect_leq(most, 2, "%s", xsp_rules[i].key);
		}
	}
}
