/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * analyze's report: thresholds, what it says of a recording that lacks something, and how it is written. The rules
 * themselves are in test_rules_*.c, those of the GPU's own time in test_gpu_analysis.c, of several ranks in test_ranks.c.
 */

#include "analyze_check.h"

#include "base/units.h"
#include "report/report_private.h"

Test(analyze, threshold_of_a_rule)
{
	struct builder b;
	double thresholds[64] = {0};

	cr_assert_leq(xsp_rule_count, 64);
	for (size_t i = 0; i < xsp_rule_count; i++)
		thresholds[i] = xsp_rules[i].threshold;
	cr_assert_eq(xsp_rule_index("nothing", 7), -1);
	thresholds[xsp_rule_index("hot-operation", 13)] = 0.41;
	open_capture(&b, BATCH);
	put_steps(&b, STEPS, MS, hot_inside);
	struct xsp_report *r =
		report_of(&b, &(struct xsp_analyze_options){.thresholds = thresholds});
	expect_clean(r);
	xsp_report_free(r);
}

/* ---- pitfalls ---- */

/* Pitfall 7: rates are relative to the recorded time, 4 of 10 ms. What was open at its ends is in
 * no total. */
Test(analyze, windows_and_open_spans)
{
	struct builder b;

	open_capture(&b, BATCH);
	const struct xsp_capture_window w = {START, START + 4 * MS};
	cr_assert_eq(xsp_capture_put_window(b.w, &w), 0);
	put_steps(&b, 4, MS, hot_inside);
	b.now = START + 4 * MS - 100 * US;
	b.tid = 101;
	entry(&b, WORK, SP); /* it does not end */
	b.now = START + 10 * MS;
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "hot-operation", XSP_SEVERITY_HOT, 0.4);
	cr_assert_not_null(f->finding.uncertain);
	cr_expect_not_null(strstr(f->finding.uncertain, "40 %"), "%s", f->finding.uncertain);
	const struct xsp_report_section *head = r->sections[0];
	cr_expect_str_eq(head->key, "recording");
	cr_expect_eq(number_of(value_of(head, "windows")), 1);
	cr_expect_eq(number_of(value_of(head, "recorded_ns")), 4 * MS);
	cr_expect_eq(number_of(value_of(head, "unfinished")), 1);
	xsp_report_free(r);
}

/* Pitfall 8: with losses a finding says that it is uncertain, and the head says how many. */
Test(analyze, losses_are_said)
{
	struct builder b;

	open_capture(&b, BATCH);
	put_steps(&b, STEPS, MS, hot_inside);
	put_stats(&b, &(struct xsp_capture_stats){.events = 40, .lost_entries = 1234});
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = found(r, "hot-operation", NULL);
	cr_assert_not_null(f);
	cr_assert_not_null(f->finding.uncertain);
	cr_expect_not_null(strstr(f->finding.uncertain, "1,234 events"));
	const struct xsp_report_section *head = r->sections[0];
	cr_expect_eq(number_of(value_of(head, "lost_entries")), 1234);
	xsp_report_free(r);
}

/* The trace of another profiler does not say what it lost. */
Test(analyze, losses_that_are_not_known_are_not_said_to_be_none)
{
	struct builder b;

	open_capture(&b, BATCH);
	put_steps(&b, STEPS, MS, hot_inside);
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_section *head = r->sections[0];
	cr_expect_eq(value_of(head, "lost_entries")->kind, XSP_CELL_ABSENT);
	cr_expect_eq(value_of(head, "lost_exits")->kind, XSP_CELL_ABSENT);
	cr_expect_eq(value_of(head, "lost_other")->kind, XSP_CELL_ABSENT);
	cr_expect_eq(value_of(head, "start")->kind, XSP_CELL_ABSENT, "its clock began at 0");
	xsp_report_free(r);
}

/* Calls before the probes were there are missing as well. */
Test(analyze, probes_that_came_late_are_said)
{
	struct builder b;
	const char *const *notes;

	open_capture(&b, BATCH);
	put_steps(&b, STEPS, MS, hot_inside);
	cr_assert_eq(xsp_capture_put_info(b.w, "libraries", "libm.so was attached to late"), 0);
	put_stats(&b, &(struct xsp_capture_stats){.events = 40});
	struct xsp_report *r = report_of(&b, NULL);
	cr_assert_eq(xsp_report_notes(r->sections[0], &notes), 1);
	cr_expect_str_eq(notes[0], "libraries: libm.so was attached to late");
	xsp_report_free(r);
	/* of 10 ms, 99 and 100 us */
	for (uint64_t us = 99; us <= 100; us++) {
		char ns[24];
		snprintf(ns, sizeof(ns), "%u", (unsigned)(us * US));
		open_capture(&b, BATCH);
		put_steps(&b, STEPS, MS, hot_inside);
		cr_assert_eq(xsp_capture_put_info(b.w, "libraries late ns", ns), 0);
		r = report_of(&b, NULL);
		const char *uncertain =
			expect(r, "hot-operation", XSP_SEVERITY_HOT, 0.4)->finding.uncertain;
		cr_expect_eq(uncertain != NULL, us == 100, "%s", uncertain);
		xsp_report_free(r);
	}
}

/* Pitfall 9: own time under --min-duration holds what was filtered. */
Test(analyze, filtered_children_are_in_own_time)
{
	struct builder b;
	const struct xsp_cut cut = {
		.to_ns = UINT64_MAX, .min_duration_ns = 100 * US, .text = "--min-duration 100us"};

	open_capture(&b, BATCH);
	put_steps(&b, STEPS, MS, hot_inside);
	struct xsp_report *r = report_of(&b, &(struct xsp_analyze_options){.cut = &cut});
	const struct xsp_report_found *f = expect(r, "hot-operation", XSP_SEVERITY_HOT, 0.4);
	cr_assert_not_null(f->finding.uncertain);
	cr_expect_not_null(strstr(f->finding.uncertain, "leaves out calls"), "%s",
			   f->finding.uncertain);
	cr_expect(had_no_data(r, "overhead"), "its figures are of the whole recording");
	xsp_report_free(r);
}

/* ---- writers ---- */

static char *written(const struct xsp_report *r,
		     int (*write)(const struct xsp_report *, FILE *, const struct xsp_report_how *),
		     const struct xsp_report_how *how)
{
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	cr_assert_eq(write(r, f, how), 0);
	fclose(f);
	return text;
}

struct made {
	const char *name;
	uint64_t calls;
	double share;
	const char *title;
};

static struct xsp_report *hand_made(const char *hostile)
{
	static const struct xsp_report_column columns[] = {
		{"name", "name", XSP_UNIT_TEXT, true, XSP_FIELD(struct made, name)},
		{"calls", "calls", XSP_UNIT_COUNT, false, XSP_FIELD(struct made, calls)},
		{"share", "share", XSP_UNIT_SHARE, false, XSP_FIELD(struct made, share)},
	};
	static const struct xsp_report_shape rows = {"head", "rows", "rows", columns, 3};
	struct xsp_report *r;

	cr_assert_eq(xsp_report_new(&r), 0);
	struct xsp_report_section *s = xsp_report_section(r, "head", "Head");
	xsp_report_value(s, "text", "a text", XSP_UNIT_TEXT, xsp_cell_text(hostile));
	xsp_report_value(s, "none", "not known", XSP_UNIT_NS, xsp_cell_text(NULL));
	xsp_report_value(s, "nan", "not a number", XSP_UNIT_NUMBER, xsp_cell_real(0.0 / 0.0));
	xsp_report_value(s, "negative_bytes", "negative", XSP_UNIT_BYTES, xsp_cell_real(-2048));
	xsp_report_note(s, hostile);
	struct xsp_report_table *t = xsp_report_table(s, &rows);
	for (unsigned i = 0; i < 5; i++)
		xsp_report_add(t, NULL, &(struct made){hostile, 1234 + i, 0.125, NULL});
	cr_assert_eq(xsp_report_section(r, "head", "Other"), s, "one of a key");
	for (int i = 0; i < 4; i++)
		xsp_report_finding(
			r, &(struct xsp_report_finding){
				   .rule = "rule",
				   .severity = i == 3 ? XSP_SEVERITY_HIGH : XSP_SEVERITY_LOW,
				   .subject = hostile,
				   .title = hostile,
				   .advice = hostile,
				   .uncertain = hostile,
				   .share = 0.01 * i,
			   });
	cr_assert(!xsp_report_failed(r));
	return r;
}

Test(analyze, findings_are_in_order)
{
	struct xsp_report *r = hand_made("x");
	const struct xsp_report_found *f;

	cr_assert_eq(xsp_report_findings(r, &f), 4);
	cr_expect_eq(f[0].finding.severity, XSP_SEVERITY_HIGH);
	for (int i = 1; i < 4; i++)
		expect_near(f[i].finding.share, 0.01 * (3 - i), 1e-9, "share");
	xsp_report_free(r);
}

/* A call of 10 us, hours after the beginning. */
Test(analyze, where_to_look_is_exact)
{
	struct xsp_report *r;

	cr_assert_eq(xsp_report_new(&r), 0);
	xsp_report_finding(r, &(struct xsp_report_finding){.rule = "rule",
							   .title = "title",
							   .advice = "advice",
							   .from_ns = 7200000012345,
							   .to_ns = 7200000022345});
	char *text = written(r, xsp_report_write_text, &(struct xsp_report_how){0});
	cr_expect_not_null(strstr(text, "--from 7200.000012s --to 7200.000022345s "), "%s", text);
	free(text);
	xsp_report_free(r);
}

/* A text that follows another one is wrapped, too. Names are whole if there is no terminal. */
Test(analyze, lines_do_not_wrap_on_a_terminal)
{
	static const struct xsp_report_column columns[] = {
		{"rule", "rule", XSP_UNIT_TEXT, true, XSP_FIELD(struct made, name)},
		{"title", "finding", XSP_UNIT_TEXT, false, XSP_FIELD(struct made, title)},
	};
	static const struct xsp_report_shape rows = {"section", "rows", "rows", columns, 2};
	char title[120];
	struct xsp_report *r;

	memset(title, 'x', sizeof(title) - 1);
	title[sizeof(title) - 1] = '\0';
	cr_assert_eq(xsp_report_new(&r), 0);
	struct xsp_report_table *t =
		xsp_report_table(xsp_report_section(r, "section", "Section"), &rows);
	xsp_report_add(t, NULL, &(struct made){.name = "hot-operation", .title = title});
	char *text = written(r, xsp_report_write_text, &(struct xsp_report_how){.width = 80});
	for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"))
		cr_expect_leq(xsp_printable(NULL, 0, line, 0), 80, "%s", line);
	free(text);
	text = written(r, xsp_report_write_text, &(struct xsp_report_how){0});
	cr_expect_not_null(strstr(text, title));
	free(text);
	xsp_report_free(r);
}

Test(analyze, text_cannot_harm_a_terminal)
{
	struct xsp_report *r = hand_made("\033[2J\nbad\xff \"quoted\" <&>");
	char *text = written(r, xsp_report_write_text, &(struct xsp_report_how){.top = 2});

	cr_expect_null(strchr(text, '\033'));
	cr_expect_null(strstr(text, "\nbad"), "a line of its own");
	cr_expect_not_null(strstr(text, "... and 3 more"));
	cr_expect_not_null(strstr(text, "-2.00 KiB"));
	cr_expect_null(strstr(text, "not known"), "what is not known is left out");
	free(text);
	xsp_report_free(r);
}

Test(analyze, json_and_csv_escape)
{
	struct xsp_report *r = hand_made("a\"b\\\n\xff,");
	char *json = written(r, xsp_report_write_json, &(struct xsp_report_how){0});
	char *csv = written(r, xsp_report_write_csv, &(struct xsp_report_how){0});
	size_t lines = 0;

	cr_expect_not_null(strstr(json, "\"text\": \"a\\\"b\\\\\\n\\ufffd,\"") != NULL
				   ? json
				   : strstr(json, "\"text\": \"a\\\"b\\\\\\n\xef\xbf\xbd,\""),
			   "%s", json);
	cr_expect_not_null(strstr(json, "\"nan\": null"));
	cr_expect_not_null(strstr(json, "\"calls\": 1238"));
	cr_expect_not_null(strstr(csv, "head,,,text,text,\"a\"\"b\\\n\xef\xbf\xbd,\"\r\n"), "%s",
			   csv);
	cr_expect_not_null(strstr(csv, "head,rows,4,calls,count,1238\r\n"));
	for (const char *at = csv; (at = strstr(at, "\r\n")) != NULL; at += 2)
		lines++;
	/* a head; 4 findings of 9 facts; 4 values, a note; 5 rows of 3 */
	cr_expect_eq(lines, 1 + 4 * 9 + 4 + 1 + 5 * 3);
	free(json);
	free(csv);
	xsp_report_free(r);
}

static struct xsp_report *of_waits(struct builder *b)
{
	open_waits(b);
	put_steps(b, STEPS, MS, hot_inside);
	put_times(b, 100, START, START + 10 * MS, 2 * MS, XSP_WAIT_FAULT, MS);
	return report_of(b, NULL);
}

/* A loop that waits in selectors.py for 10 ms, and what the recorder says of its coroutines. */
static void awaits_are(const char *info, const char *expected)
{
	static const char *const names[] = {
		"/usr/lib/python3.11/selectors.py\n468\nSelector.select", "/x/app.py\n25\nmain"};
	struct xsp_capture_python_frame frames[2];
	const struct xsp_capture_python stack = {.id = 1, .count = 2, .frames = frames};
	struct {
		struct xsp_event_wait e;
		struct xsp_section section;
		uint64_t id;
	} waited = {.e = {.head = {.kind = XSP_EVENT_WAIT,
				   .probe = UINT32_MAX,
				   .flags = XSP_EVENT_SECTIONS},
			  .left_ns = START,
			  .woken_ns = START + 10 * MS,
			  .syscall = 232,
			  .why = XSP_WAIT_POLL},
		    .section = {.type = XSP_SECTION_PYTHON, .size = 16, .value = 2},
		    .id = 1};
	struct builder b;
	char key[32];

	open_waits(&b);
	for (uint64_t i = 0; i < 2; i++) {
		frames[i] = (struct xsp_capture_python_frame){.name = 0x9001 + i};
		cr_assert_eq(xsp_capture_put_name(b.w, frames[i].name, names[i]), 0);
	}
	cr_assert_eq(xsp_capture_put_python(b.w, &stack), 0);
	snprintf(key, sizeof(key), XSP_INFO_AWAITS " %u", b.pid);
	cr_assert_eq(xsp_capture_put_info(b.w, key, info), 0);
	b.now = START + 10 * MS;
	builder_put(&b, &waited, sizeof(waited));
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_table *t =
		xsp_report_find_table(xsp_report_find_section(r, "account"), "places");
	cr_assert_not_null(t);
	const char *said = xsp_row_text(t, 0, "awaits");
	if (expected == NULL)
		cr_expect_null(said, "%s", said);
	else
		cr_expect_str_eq(said, expected);
	xsp_report_free(r);
}

/* What is not as the recorder writes it ends the list. */
Test(analyze, lines_that_coroutines_wait_in)
{
	awaits_are("10\n8\tapp.py:9 Pool.take\tQueue.get\n2\tapp.py:15 query\t\n",
		   "Pool.take:9 Queue.get 80 %, query:15 20 %");
	awaits_are("10\n8\tapp.py:9 f\tg\n2 more", "f:9 g 80 %");
	awaits_are("10\n99\tapp.py:9 f\tg\n", NULL);
	awaits_are("0\n1\tapp.py:9 f\tg\n", NULL);
	awaits_are("10\n8", NULL);
	awaits_are("", NULL);
}

/* How many lines; none has more than 80 columns, and *last is the last one. */
static size_t lines_of_80(char *text, char **last)
{
	size_t count = 0;

	for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
		cr_expect_leq(xsp_printable(NULL, 0, line, 0), 80, "%s", line);
		*last = line;
		count++;
	}
	return count;
}

/* A narrow terminal has fewer columns of a table, and no rows twice; a pipe has all of them. */
Test(analyze, narrow_tables_drop_columns)
{
	struct builder b;
	struct xsp_report *r = of_waits(&b);
	char *text = written(r, xsp_report_write_text,
			     &(struct xsp_report_how){.top = 20, .width = 80}),
	     *last;
	const char *rows = strstr(text, "what was looked for:"), *title = strstr(rows, "threshold");

	cr_assert_not_null(title);
	cr_expect_null(strstr(title + 1, "threshold"), "columns of one table below each other");
	cr_expect_not_null(strstr(text, "columns without room are left out"));
	lines_of_80(text, &last);
	free(text);
	text = written(r, xsp_report_write_text, &(struct xsp_report_how){.top = 20});
	cr_expect_null(strstr(text, "columns without room are left out"));
	cr_expect_not_null(strstr(text, "no data: it needs"));
	free(text);
	xsp_report_free(r);
}

/* Also where there is no account: the first tables are in its place. The last line is the command to go on with. */
Test(analyze, one_screen)
{
	static const char next[] = "xsptrace analyze --full run.xspt";
	const struct xsp_report_how how = {
		.width = 80, .files = "run.xspt, run.json.gz", .next = next};
	struct builder b, plain;
	char *last = NULL;

	open_capture(&plain, BATCH);
	put_steps(&plain, STEPS, MS, hot_inside);
	struct xsp_report *reports[] = {of_waits(&b), report_of(&plain, NULL)};
	for (size_t i = 0; i < 2; i++) {
		char *text = written(reports[i], xsp_report_write_brief, &how);
		cr_expect_not_null(strstr(text, "files: run.xspt, run.json.gz\n"), "%s", text);
		cr_expect_leq(lines_of_80(text, &last), 23);
		cr_expect_str_eq(last, "more:  xsptrace analyze --full run.xspt");
		free(text);
		xsp_report_free(reports[i]);
	}
}

Test(analyze, nothing_in_it)
{
	struct builder b;

	open_capture(&b, BATCH);
	struct xsp_report *r = report_of(&b, NULL);
	expect_clean(r);
	cr_expect(had_no_data(r, "hot-operation"));
	char *text = written(r, xsp_report_write_text, &(struct xsp_report_how){.top = 20});
	cr_expect_not_null(strstr(text, "Findings: none"));
	cr_expect_null(strstr(text, "Operations"), "a heading of nothing");
	free(text);
	xsp_report_free(r);
}
