/* SPDX-License-Identifier: BSD-2-Clause */
/* Dear calls that what is around or inside of them tells apart: parsing, and copies. */

#include "analyze_check.h"

enum { IN_CODE = 1 };

static void open_dear(struct builder *b)
{
	open_waits(b);
	cr_assert_eq(xsp_capture_put_info(b->w, "samples", "cpu-clock 100"), 0);
	address_name(b, XSP_NAME_OF_CODE, IN_CODE, "app\nwork_on");
}

/* ---- parsing ---- */

/* All samples of a second are in a function of Python that calls these, the innermost first. */
static struct xsp_report *in_python(const char *const *texts, unsigned count)
{
	struct xsp_capture_python_frame frames[3];
	struct {
		struct xsp_event_sample e;
		struct xsp_section section;
		uint64_t id;
	} u = {.e = {.head = {.kind = XSP_EVENT_SAMPLE,
			      .probe = UINT32_MAX,
			      .flags = XSP_EVENT_SECTIONS,
			      .sp = SP - 0x3000},
		     .address = IN_CODE,
		     .period_ns = 10 * MS,
		     .syscall = -2},
	       .section = {.type = XSP_SECTION_PYTHON, .size = 16, .value = 7},
	       .id = 7};
	struct builder b;

	open_dear(&b);
	for (unsigned i = 0; i < count; i++) {
		frames[i].name = xsp_text_hash(texts[i], strlen(texts[i]));
		cr_assert_eq(xsp_capture_put_name(b.w, frames[i].name, texts[i]), 0);
	}
	cr_assert_eq(xsp_capture_put_python(b.w, &(struct xsp_capture_python){.id = 7,
									      .count = count,
									      .frames = frames}),
		     0);
	for (unsigned i = 0; i < 100; i++) {
		b.now = START + (i + 1) * 10 * MS - 1;
		builder_put(&b, &u, sizeof(u));
	}
	put_times(&b, 100, START, START + 1000 * MS, 0, XSP_WAIT_LOCK, 0);
	return report_of(&b, NULL);
}

#define OF_PYTHON "/usr/lib/python3.11/"
#define OF_YAML "/usr/lib/python3/dist-packages/yaml/"
#define IN_PROGRAM "/app/triage.py\n28\nline"

/* What is inside of a dear call is the reason, if it need not be there; who parses may be there to do so. */
Test(rules_dear, what_python_parses_and_compiles)
{
	static const struct {
		const char *doing;
		enum xsp_severity severity;
		unsigned count;
		const char *frames[3];
	} cases[] = {
		/* re.match() of a text that is not in re's cache compiles it; of a pattern that is compiled it matches */
		{"compiling",
		 XSP_SEVERITY_HIGH,
		 3,
		 {OF_PYTHON "re/_compiler.py\n740\ncompile", OF_PYTHON "re/__init__.py\n166\nmatch",
		  IN_PROGRAM}},
		{"matching",
		 XSP_SEVERITY_HIGH,
		 2,
		 {OF_PYTHON "re/__init__.py\n166\nmatch", IN_PROGRAM}},
		{"strptime",
		 XSP_SEVERITY_NOTE,
		 2,
		 {OF_PYTHON "_strptime.py\n350\n_strptime", IN_PROGRAM}},
		{"parsing files",
		 XSP_SEVERITY_NOTE,
		 2,
		 {OF_PYTHON "json/__init__.py\n293\nload", IN_PROGRAM}},
		{"YAML",
		 XSP_SEVERITY_HIGH,
		 3,
		 {OF_YAML "scanner.py\n150\nScanner.fetch_more_tokens",
		  OF_YAML "__init__.py\n81\nload", IN_PROGRAM}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct xsp_report *r = in_python(cases[i].frames, cases[i].count);
		const char *title = expect(r, "dear-call", cases[i].severity, 1)->finding.title;
		cr_expect_not_null(strstr(title, cases[i].doing), "%s", title);
		xsp_report_free(r);
	}
}
