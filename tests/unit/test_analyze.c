/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * analyze: each rule on a capture with a fault of a known size, and beside it on one that is clean. Sizes are counted
 * by hand; a step takes 1 ms of the capture's clock.
 */
#include "capture_builder.h"

#include "analysis/analyses.h"
#include "analysis/rules.h"
#include "analysis/summary.h"
#include "base/text.h"
#include "base/units.h"
#include "catalog/scope.h"

#define MS 1000000ULL
#define US 1000ULL
#define SP 0x7ff000000000ULL
#define START 1000ULL /* of the recording: builder_end() */
#define STEPS 10

enum {
	RANGE,
	WORK,
	HOT,
	ITEM,
	SYNC,
	MALLOC,
	COPY,
	INIT,
	BATCH,
	NEW,
	DELETE,
	PROBES,
};
static const struct {
	const char *provider, *symbol, *name;
	enum xsp_probe_kind kind;
} probes[PROBES] = {
	[RANGE] = {"record_function", "", "range", XSP_PROBE_ANNOTATION},
	[WORK] = {"function", "", "work", XSP_PROBE_FUNCTION},
	[HOT] = {"function", "", "hot", XSP_PROBE_FUNCTION},
	[ITEM] = {"torch", "", "aten::item", XSP_PROBE_FUNCTION},
	[SYNC] = {"cuda", "cudaStreamSynchronize", "cudaStreamSynchronize", XSP_PROBE_FUNCTION},
	[MALLOC] = {"cuda", "cudaMalloc", "cudaMalloc", XSP_PROBE_FUNCTION},
	[COPY] = {"cuda", "cudaMemcpyAsync", "cudaMemcpyAsync", XSP_PROBE_FUNCTION},
	[INIT] = {"cuda", "cuInit", "cuInit", XSP_PROBE_FUNCTION},
	[BATCH] = {"gpu", "xsp_gpu_batch", "xsp_gpu_batch", XSP_PROBE_MARK},
	[NEW] = {"memory", "_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm", "New", XSP_PROBE_MARK},
	[DELETE] = {"memory", "_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv", "Delete",
		    XSP_PROBE_MARK},
};

/* ---- captures ---- */

/* Up to which probe: allocators make a capture one with --memory. */
static void open_capture(struct builder *b, uint32_t count)
{
	builder_begin(b, 0);
	for (uint32_t i = 0; i < count; i++) {
		const struct xsp_capture_probe p = {.id = i,
						    .module = UINT32_MAX,
						    .kind = probes[i].kind,
						    .provider = probes[i].provider,
						    .symbol = probes[i].symbol,
						    .name = probes[i].name,
						    .exit_complete = true};
		cr_assert_eq(xsp_capture_put_probe(b->w, &p), 0);
	}
}

static void call(struct builder *b, uint32_t probe, uint64_t from, uint64_t ns)
{
	b->now = from;
	entry(b, probe, SP - 0x1000);
	b->now = from + ns;
	leave(b, probe, SP - 0x1000);
}

static void enter_range(struct builder *b, const char *text, uint64_t from, uint64_t sp)
{
	const uint64_t hash = xsp_text_hash(text, strlen(text));

	b->now = from;
	name(b, hash, text, 0);
	b->now = from;
	begin(b, RANGE, sp, hash);
}

static void leave_range(struct builder *b, uint64_t at, uint64_t sp)
{
	b->now = at;
	end(b, RANGE, sp);
}

/* Steps one behind the other, of `ns` each; `inside` makes what is in one of them. */
typedef void inside_fn(struct builder *b, uint64_t at, unsigned step);
static void put_steps(struct builder *b, unsigned count, uint64_t ns, inside_fn *inside)
{
	char text[32];

	for (unsigned i = 0; i < count; i++) {
		const uint64_t at = START + i * ns;
		snprintf(text, sizeof(text), "ProfilerStep#%u", i);
		enter_range(b, text, at, SP);
		if (inside != NULL)
			inside(b, at + 10 * US, i);
		leave_range(b, at + ns - 1, SP);
	}
	b->now = START + count * ns;
}

static void put_stats(struct builder *b, const struct xsp_capture_stats *stats)
{
	cr_assert_eq(xsp_capture_put_stats(b->w, stats), 0);
}

/* ---- reports ---- */

static struct xsp_report *report_of(struct builder *b, const struct xsp_analyze_options *o)
{
	const struct xsp_analyze_options all = {0};
	struct xsp_capture_reader *r;
	struct xsp_report *report;
	struct xsp_error err = {0};

	if (b->w != NULL)
		builder_end(b);
	cr_assert_eq(xsp_capture_open(b->path, &r, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_report_new(&report), 0);
	cr_assert_eq(xsp_analyze(r, o != NULL ? o : &all, report, &err), 0, "%s", err.text);
	xsp_capture_close(r);
	unlink(b->path);
	return report;
}

/* The first finding of the rule, or NULL; *count (may be NULL): how many. */
static const struct xsp_report_found *found(const struct xsp_report *r, const char *rule,
					    size_t *count)
{
	const struct xsp_report_found *all, *first = NULL;
	const size_t n = xsp_report_findings(r, &all);
	size_t of_rule = 0;

	for (size_t i = 0; i < n; i++)
		if (strcmp(all[i].finding.rule, rule) == 0 && of_rule++ == 0)
			first = &all[i];
	if (count != NULL)
		*count = of_rule;
	return first;
}

static const struct xsp_cell *value_of(const struct xsp_report_section *s, const char *key)
{
	const struct xsp_report_figure *values;
	const size_t n = xsp_report_values(s, &values);

	for (size_t i = 0; i < n; i++)
		if (strcmp(values[i].key, key) == 0)
			return &values[i].value;
	cr_assert_fail("no value %s", key);
	return NULL;
}

static double number_of(const struct xsp_cell *c)
{
	cr_assert(c->kind == XSP_CELL_INTEGER || c->kind == XSP_CELL_REAL);
	return c->kind == XSP_CELL_INTEGER ? (double)c->integer : c->real;
}

static void expect_near(double got, double wanted, double off, const char *what)
{
	cr_expect(got >= wanted - off && got <= wanted + off, "%s: %.9g, not %.9g", what, got,
		  wanted);
}

static const struct xsp_report_found *expect(const struct xsp_report *r, const char *rule,
					     enum xsp_severity severity, double share)
{
	size_t count;
	const struct xsp_report_found *f = found(r, rule, &count);

	cr_assert_not_null(f, "%s found nothing", rule);
	cr_expect_eq(count, 1, "%s: %zu findings", rule, count);
	cr_expect_eq(f->finding.severity, severity, "%s: %s", rule,
		     xsp_severity_name(f->finding.severity));
	expect_near(f->finding.share, share, 0.001, rule);
	return f;
}

static void expect_none(const struct xsp_report *r, const char *rule)
{
	const struct xsp_report_found *f = found(r, rule, NULL);

	cr_expect_null(f, "%s: %s", rule, f != NULL ? f->finding.title : "");
}

static void expect_clean(const struct xsp_report *r)
{
	const struct xsp_report_found *all;
	const size_t n = xsp_report_findings(r, &all);

	cr_expect_eq(n, 0, "%s: %s", n > 0 ? all[0].finding.rule : "",
		     n > 0 ? all[0].finding.title : "");
}

/* What the table of rules says that it needs; NULL: it had data. */
static const char *needs_of(const struct xsp_report *r, const char *rule)
{
	const struct xsp_report_table *t =
		xsp_report_find_table(xsp_report_find_section(r, "rules"), "rules");

	for (size_t i = 0; i < xsp_report_row_count(t); i++)
		if (strcmp(xsp_report_row_at(t, i)[0].text, rule) == 0)
			return xsp_report_row_at(t, i)[3].kind == XSP_CELL_TEXT
				       ? xsp_report_row_at(t, i)[3].text
				       : NULL;
	cr_assert_fail("no rule %s", rule);
	return NULL;
}

static bool had_no_data(const struct xsp_report *r, const char *rule)
{
	return needs_of(r, rule) != NULL;
}

/* ---- operations ---- */

static void hot_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	call(b, HOT, at, 400 * US);
	call(b, WORK, at + 500 * US, 90 * US);
}

Test(analyze, hot_operation)
{
	struct builder b;

	open_capture(&b, BATCH);
	put_steps(&b, STEPS, MS, hot_inside);
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "hot-operation", XSP_SEVERITY_HIGH, 0.4);
	cr_expect_str_eq(f->finding.subject, "hot");
	cr_expect_eq(number_of(value_of(f->figures, "self_ns")), 10 * 400 * US);
	cr_expect_eq(number_of(value_of(f->figures, "calls")), STEPS);
	cr_expect_eq(number_of(value_of(f->figures, "calls_per_step")), 1);
	cr_expect_null(f->finding.uncertain);
	/* where to look is a call of it */
	cr_expect_eq(f->finding.to_ns - f->finding.from_ns, 400 * US);
	cr_expect_eq(f->finding.from_ns % MS, 10 * US);
	cr_expect(had_no_data(r, "lock") && had_no_data(r, "leak") && had_no_data(r, "sync"));
	cr_expect(!had_no_data(r, "hot-operation"));
	xsp_report_free(r);
}

/* CUDA is begun once: in a short recording that is most of the time, and nobody's fault. */
Test(analyze, beginning_cuda_is_no_hot_operation)
{
	struct builder b;

	open_capture(&b, BATCH);
	call(&b, INIT, START, 8 * MS);
	b.now = START + 10 * MS;
	struct xsp_report *r = report_of(&b, NULL);
	expect_clean(r);
	xsp_report_free(r);
}

/* One of forty calls was kept from its CPU: that says nothing of the operation. */
Test(analyze, one_call_makes_no_operation_hot)
{
	struct builder b;

	open_capture(&b, BATCH);
	for (uint64_t i = 0; i < 40; i++)
		call(&b, HOT, START + i * 500 * US, (i == 20 ? 400 : 40) * US);
	call(&b, HOT, START + 20 * MS, 8 * MS);
	b.now = START + 40 * MS;
	struct xsp_report *r = report_of(&b, NULL);
	expect_clean(r);
	xsp_report_free(r);
}

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

static void cool_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	call(b, HOT, at, 95 * US);
	call(b, WORK, at + 500 * US, 90 * US);
}

/* Steps themselves are no operation: what they take outside of calls is not theirs. */
Test(analyze, clean_capture_has_no_finding)
{
	struct builder b;

	open_capture(&b, BATCH);
	put_steps(&b, STEPS, MS, cool_inside);
	struct xsp_report *r = report_of(&b, NULL);
	expect_clean(r);
	const struct xsp_report_section *steps = xsp_report_find_section(r, "steps");
	cr_expect_eq(number_of(value_of(steps, "steps")), STEPS);
	expect_near(number_of(value_of(steps, "steps_per_second")), 1000, 0.1, "steps a second");
	const struct xsp_report_table *t =
		xsp_report_find_table(xsp_report_find_section(r, "operations"), "operations");
	const struct xsp_cell *row = NULL;
	for (size_t i = 0; i < xsp_report_row_count(t); i++)
		if (strcmp(xsp_report_row_at(t, i)[0].text, "hot") == 0)
			row = xsp_report_row_at(t, i);
	cr_assert_not_null(row);
	cr_expect_eq(row[1].integer, STEPS);
	cr_expect_eq(row[3].integer, STEPS * 95 * US);
	cr_expect_eq(number_of(&row[7]), 0, "std of what is always the same");
	xsp_report_free(r);
}

static void uneven_inside(struct builder *b, uint64_t at, unsigned step)
{
	call(b, WORK, at, step % 2 == 0 ? 10 * US : 30 * US);
}

Test(analyze, standard_deviation)
{
	struct builder b;

	open_capture(&b, BATCH);
	put_steps(&b, STEPS, MS, uneven_inside);
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_table *t =
		xsp_report_find_table(xsp_report_find_section(r, "operations"), "operations");
	for (size_t i = 0; i < xsp_report_row_count(t); i++)
		if (strcmp(xsp_report_row_at(t, i)[0].text, "work") == 0)
			/* five of 10 and five of 30 us: squares 10 * 10^2, over 9 */
			expect_near(number_of(&xsp_report_row_at(t, i)[7]), 10540.925, 0.01, "std");
	xsp_report_free(r);
}

/* ---- loops of Python's ---- */

static void python_call(struct builder *b, uint64_t at, uint64_t ns, uint64_t stack)
{
	b->now = at;
	called_from(b, XSP_EVENT_ENTRY, WORK, SP - 0x1000, stack);
	b->now = at + ns;
	leave(b, WORK, SP - 0x1000);
}

/* Stack 1 is line 1 of a.py, 2 is line 2; 3 is another instruction of line 1; 4 is a package that it calls, 5 autograd's
 * engine that it runs. */
static void put_lines(struct builder *b)
{
	struct xsp_capture_python_frame frames[] = {
		{.name = 'a'}, {.name = 'b'}, {.name = 'a'}, {.name = 'n'}, {.name = 'a'}};
	struct xsp_capture_python_frame engine[] = {{.name = 'g'}, {.name = 'i'}, {.name = 'a'}};

	name(b, 'g',
	     "/usr/lib/python3/dist-packages/torch/autograd/graph.py\n825\n_engine_run_backward",
	     0);
	name(b, 'i', "/usr/lib/python3/dist-packages/torch/autograd/__init__.py\n347\nbackward", 0);
	cr_assert_eq(
		xsp_capture_put_python(
			b->w, &(struct xsp_capture_python){.id = 5, .count = 3, .frames = engine}),
		0);
	name(b, 'a', "/me/a.py\n1\nloop", 0);
	name(b, 'b', "/me/a.py\n2\nother", 0);
	name(b, 'n', "/usr/lib/python3/dist-packages/torch/functional.py\n1482\nnorm", 0);
	for (uint64_t i = 0; i < 4; i++)
		cr_assert_eq(xsp_capture_put_python(
				     b->w, &(struct xsp_capture_python){.id = i + 1,
									.count = i < 3 ? 1 : 2,
									.frames = &frames[i]}),
			     0);
}

static void loop_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	for (unsigned i = 0; i < 150; i++)
		python_call(b, at + i * 2 * US, US, 1);
}

/* As `if f(x[i]) == g(y[i])`: of one operator two calls, from two instructions of one line. */
static void one_line_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	for (unsigned i = 0; i < 150; i++)
		python_call(b, at + i * 2 * US, US, i % 2 == 0 ? 1 : 3);
}

static void package_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	for (unsigned i = 0; i < 150; i++)
		python_call(b, at + i * 2 * US, US, 4);
}

static void two_lines_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	for (unsigned i = 0; i < 150; i++)
		python_call(b, at + i * 2 * US, US, 1 + i % 2);
}

/* Two operations of 120 calls each, one of them by a package; none of them has 5 % of the time alone. */
static void two_operations_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	for (unsigned i = 0; i < 120; i++) {
		python_call(b, at + i * 2 * US, 400, 1);
		b->now = at + i * 2 * US + US;
		called_from(b, XSP_EVENT_ENTRY, ITEM, SP - 0x1000, 4);
		b->now += 300;
		leave(b, ITEM, SP - 0x1000);
	}
}

/* As often, but not by Python: by a call around. */
static void native_loop_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	b->now = at - 1;
	called_from(b, XSP_EVENT_ENTRY, ITEM, SP - 0x800, 1);
	loop_inside(b, at, step);
	b->now = at + 500 * US;
	leave(b, ITEM, SP - 0x800);
}

Test(analyze, operation_in_a_loop_of_python)
{
	struct builder b;

	open_capture(&b, BATCH);
	put_lines(&b);
	put_steps(&b, STEPS, MS, loop_inside);
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "python-loop", XSP_SEVERITY_MEDIUM, 0.15);
	cr_expect_str_eq(f->finding.subject, "work at a.py:1 loop");
	cr_expect_eq(number_of(value_of(f->figures, "calls_per_step")), 150);
	cr_expect_eq(number_of(value_of(f->figures, "calls")), 150 * STEPS);
	cr_expect_not_null(strstr(f->finding.advice, "a.py:1 loop"));
	xsp_report_free(r);
}

/* A stack is told by its instructions, a place by its lines: it was two findings of 75 calls, and so none. */
Test(analyze, one_line_is_one_place)
{
	struct builder b;

	open_capture(&b, BATCH);
	put_lines(&b);
	put_steps(&b, STEPS, MS, one_line_inside);
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "python-loop", XSP_SEVERITY_MEDIUM, 0.15);
	cr_expect_str_eq(f->finding.subject, "work at a.py:1 loop");
	cr_expect_eq(number_of(value_of(f->figures, "calls_per_step")), 150);
	cr_expect_eq(number_of(value_of(f->figures, "total_ns")), 150 * STEPS * US);
	xsp_report_free(r);
}

static void engine_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	for (unsigned i = 0; i < 150; i++)
		python_call(b, at + i * 2 * US, US, 5);
}

static void nodes_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	for (unsigned i = 0; i < 150; i++) {
		b->now = at + i * 2 * US;
		called_from(b, XSP_EVENT_ENTRY, BATCH, SP - 0x1000, 1);
		b->now += US;
		leave(b, BATCH, SP - 0x1000);
	}
}

/* `loss.backward()`: it is the engine that goes from node to node, whether or not it is the nodes that are recorded. */
Test(analyze, backward_pass_is_no_loop_of_its_line)
{
	inside_fn *const passes[] = {engine_inside, nodes_inside};

	for (size_t i = 0; i < sizeof(passes) / sizeof(passes[0]); i++) {
		struct builder b;
		open_capture(&b, BATCH);
		const struct xsp_capture_probe node = {
			.id = BATCH,
			.module = UINT32_MAX,
			.provider = "torch",
			.symbol = "",
			.name = "autograd::engine::evaluate_function: AddBackward0",
			.scope = XSP_SCOPE_BACKWARD,
			.exit_complete = true};
		cr_assert_eq(xsp_capture_put_probe(b.w, &node), 0);
		put_lines(&b);
		put_steps(&b, STEPS, MS, passes[i]);
		struct xsp_report *r = report_of(&b, NULL);
		expect_none(r, "python-loop");
		cr_expect(!had_no_data(r, "python-loop"));
		xsp_report_free(r);
	}
}

/* A line of Python calls the operation for `direct`, and another operation calls it for `nested`. */
static void nested_inside(struct builder *b, uint64_t at, uint64_t direct, uint64_t nested)
{
	python_call(b, at, direct, 1);
	b->now = at + direct + US;
	called_from(b, XSP_EVENT_ENTRY, ITEM, SP - 0x800, 2);
	python_call(b, at + direct + 2 * US, nested, 2);
	b->now = at + direct + nested + 3 * US;
	leave(b, ITEM, SP - 0x800);
}

static void mostly_nested(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	nested_inside(b, at, 100 * US, 400 * US);
}

static void mostly_direct(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	nested_inside(b, at, 400 * US, 100 * US);
}

Test(analyze, line_of_a_hot_operation)
{
	inside_fn *const inside[] = {mostly_nested, mostly_direct};

	for (size_t i = 0; i < 2; i++) {
		struct builder b;
		open_capture(&b, BATCH);
		put_lines(&b);
		put_steps(&b, STEPS, MS, inside[i]);
		struct xsp_report *r = report_of(&b, NULL);
		const struct xsp_report_found *f =
			expect(r, "hot-operation", XSP_SEVERITY_HIGH, 0.5);
		cr_expect_eq(strstr(f->finding.advice, "called from a.py:1 loop") != NULL, i == 1,
			     "%s", f->finding.advice);
		cr_expect_null(strstr(f->finding.advice, "a.py:2"), "%s", f->finding.advice);
		xsp_report_free(r);
	}
}

/* What a line calls in a loop is one finding, with the time of all of it. */
Test(analyze, operations_of_one_line_are_one_loop)
{
	struct builder b;

	open_capture(&b, BATCH);
	put_lines(&b);
	put_steps(&b, STEPS, MS, two_operations_inside);
	struct xsp_report *r = report_of(&b, NULL);
	/* 120 times 700 ns of a millisecond */
	const struct xsp_report_found *f = expect(r, "python-loop", XSP_SEVERITY_LOW, 0.084);
	cr_expect_str_eq(f->finding.subject, "work at a.py:1 loop");
	cr_expect_not_null(strstr(f->finding.title, "with 1 other operation:"), "%s",
			   f->finding.title);
	cr_expect_eq(number_of(value_of(f->figures, "calls")), 240 * STEPS);
	cr_expect_eq(number_of(value_of(f->figures, "calls_per_step")), 120);
	xsp_report_free(r);
}

/* Lines were on by default, and the brake took them out in the middle: what is known of the steps until then holds. */
static void loop_with_lines_at_first(struct builder *b, uint64_t at, unsigned step)
{
	for (unsigned i = 0; i < 150; i++)
		python_call(b, at + i * 2 * US, US, step < STEPS / 3 ? 1 : 0);
}

Test(analyze, loop_whose_lines_ended_early)
{
	struct builder b;
	char text[32];

	open_capture(&b, BATCH);
	put_lines(&b);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)(START + STEPS / 3 * MS));
	cr_assert_eq(xsp_capture_put_info(b.w, "lines of Python until ns", text), 0);
	put_steps(&b, STEPS, MS, loop_with_lines_at_first);
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "python-loop", XSP_SEVERITY_MEDIUM, 0.15);
	cr_expect_eq(number_of(value_of(f->figures, "calls_per_step")), 150);
	xsp_report_free(r);
}

/* Nobody takes a loop out of a package: the program's own line is named first. */
Test(analyze, loop_through_a_package)
{
	struct builder b;

	open_capture(&b, BATCH);
	put_lines(&b);
	put_steps(&b, STEPS, MS, package_inside);
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "python-loop", XSP_SEVERITY_MEDIUM, 0.15);
	cr_expect_str_eq(f->finding.subject, "work at a.py:1 loop (in functional.py:1482 norm)");
	xsp_report_free(r);
}

Test(analyze, no_loop_where_no_place_calls_so_often)
{
	struct builder b;
	inside_fn *const clean[] = {two_lines_inside, native_loop_inside};

	for (size_t i = 0; i < 2; i++) {
		open_capture(&b, BATCH);
		put_lines(&b);
		put_steps(&b, STEPS, MS, clean[i]);
		struct xsp_report *r = report_of(&b, NULL);
		expect_none(r, "python-loop");
		cr_expect(!had_no_data(r, "python-loop"));
		xsp_report_free(r);
	}
}

/* ---- loader, first steps, overhead ---- */

static void loader_inside(struct builder *b, uint64_t at, uint64_t ns)
{
	enter_range(b, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at,
		    SP - 0x800);
	leave_range(b, at + ns, SP - 0x800);
}

static void starved_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	loader_inside(b, at, 350 * US);
}

static void fed_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	loader_inside(b, at, 50 * US);
}

Test(analyze, starved_loader)
{
	struct builder b;

	open_capture(&b, BATCH);
	put_steps(&b, STEPS, MS, starved_inside);
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "loader", XSP_SEVERITY_HIGH, 0.35);
	cr_expect_eq(number_of(value_of(f->figures, "calls")), STEPS);
	expect_none(r, "hot-operation"); /* it is said once */
	xsp_report_free(r);
	open_capture(&b, BATCH);
	put_steps(&b, STEPS, MS, fed_inside);
	r = report_of(&b, NULL);
	expect_clean(r);
	xsp_report_free(r);
}

/* Pitfall 6: the first step takes 5 ms, nine later ones 1 ms. */
Test(analyze, first_steps_are_in_no_mean_and_said)
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
	/* LOW, as every program has them: 4 of 14 ms */
	const struct xsp_report_found *f = expect(r, "warm-up", XSP_SEVERITY_LOW, 4.0 / 14);
	cr_expect_eq(number_of(value_of(f->figures, "steps")), 1);
	const struct xsp_report_section *steps = xsp_report_find_section(r, "steps");
	expect_near(number_of(value_of(steps, "mean_ns")), (double)MS, 2, "mean");
	cr_expect_eq(number_of(value_of(steps, "warm_up")), 1);
	xsp_report_free(r);
}

/* ... on each of four threads: 16 ms of the 56 that they spent in calls, not of 14. */
Test(analyze, first_steps_of_several_threads)
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
	const struct xsp_report_found *f = expect(r, "warm-up", XSP_SEVERITY_LOW, 16.0 / 56);
	cr_expect_eq(number_of(value_of(f->figures, "steps")), 4);
	xsp_report_free(r);
}

Test(analyze, overhead_of_the_recording)
{
	struct builder b;

	open_capture(&b, BATCH);
	put_steps(&b, STEPS, MS, cool_inside);
	put_stats(&b, &(struct xsp_capture_stats){.events = 1, .probes_cost_ns = 2 * MS});
	struct xsp_report *r = report_of(&b, NULL);
	expect(r, "overhead", XSP_SEVERITY_MEDIUM, 0.2);
	xsp_report_free(r);
	open_capture(&b, BATCH);
	put_steps(&b, STEPS, MS, cool_inside);
	put_stats(&b, &(struct xsp_capture_stats){.events = 1, .probes_cost_ns = MS / 2});
	r = report_of(&b, NULL);
	expect_clean(r);
	xsp_report_free(r);
}

/* Sites cost between windows, too, on their way in and out: a share of all of the time, never above it. */
Test(analyze, overhead_between_windows)
{
	struct builder b;

	open_capture(&b, BATCH);
	cr_assert_eq(xsp_capture_put_window(b.w, &(struct xsp_capture_window){START, START + MS}),
		     0);
	put_steps(&b, STEPS, MS, cool_inside);
	put_stats(&b, &(struct xsp_capture_stats){.events = 1, .probes_cost_ns = 2 * MS});
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "overhead", XSP_SEVERITY_MEDIUM, 0.2);
	cr_expect_not_null(strstr(f->finding.title, "20.0 % of the whole time"), "%s",
			   f->finding.title);
	xsp_report_free(r);
}

/* ---- threads ---- */

static void put_times(struct builder *b, uint32_t tid, uint64_t since, uint64_t until,
		      uint64_t runnable, enum xsp_wait_class why, uint64_t blocked)
{
	struct xsp_event_times e = {.head = {.kind = XSP_EVENT_TIMES, .probe = UINT32_MAX},
				    .since_ns = since,
				    .running_ns = until - since - runnable - blocked,
				    .runnable_ns = runnable};
	e.blocked_ns[why] = blocked;
	e.waits[why] = blocked > 0;
	b->tid = tid;
	b->now = until;
	builder_put(b, &e, sizeof(e));
	b->tid = 100;
}

/* Of what is not given: a futex of no waker. */
static void put_wait_of(struct builder *b, uint32_t tid, uint64_t at, uint64_t ns,
			struct xsp_event_wait e)
{
	e.head = (struct xsp_event){.kind = XSP_EVENT_WAIT, .probe = UINT32_MAX};
	e.left_ns = at;
	e.woken_ns = at + ns;
	e.syscall = 202;
	b->tid = tid;
	b->now = at + ns;
	builder_put(b, &e, sizeof(e));
	b->tid = 100;
}

static void put_wait(struct builder *b, uint32_t tid, uint64_t at, uint64_t ns, uint32_t owner,
		     enum xsp_wait_class why)
{
	put_wait_of(
		b, tid, at, ns,
		(struct xsp_event_wait){.argument = 0x1000, .owner = owner, .why = (uint8_t)why});
}

static void put_thread(struct builder *b, uint32_t tid, const char *name)
{
	cr_assert_eq(xsp_capture_put_thread(
			     b->w,
			     &(struct xsp_capture_thread){
				     .pid = 100, .tid = tid, .ns_tid = tid, .comm = (char *)name}),
		     0);
}

static void open_waits(struct builder *b)
{
	open_capture(b, BATCH);
	cr_assert_eq(xsp_capture_put_info(b->w, "waits", "10"), 0);
	for (uint32_t tid = 100; tid < 103; tid++)
		put_thread(b, tid, tid == 100 ? "main" : "worker");
}

static void wait_in_loader(struct builder *b, const char *range, uint64_t at,
			   enum xsp_wait_class why)
{
	enter_range(b, range, at, SP - 0x800);
	put_wait(b, 100, at + 10 * US, 330 * US, 0, why);
	leave_range(b, at + 350 * US, SP - 0x800);
}

/* Of steps with that inside: what is found of the DataLoader. */
static const struct xsp_report_found *loader_of(inside_fn *inside, struct xsp_report **r)
{
	struct builder b;

	open_waits(&b);
	put_steps(&b, STEPS, MS, inside);
	*r = report_of(&b, NULL);
	return expect(*r, "loader", XSP_SEVERITY_HIGH, 0.35);
}

static void polling_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	wait_in_loader(b, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", at,
		       XSP_WAIT_POLL);
}

/* No line of Python is known: that its thread polls in the range says that it waits for workers. */
Test(analyze, loader_that_waits_for_its_workers)
{
	struct xsp_report *r;
	const struct xsp_report_found *f = loader_of(polling_inside, &r);

	cr_expect_eq(number_of(value_of(f->figures, "workers_ns")), STEPS * 330 * US);
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
Test(analyze, loader_that_sleeps_itself)
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

/* The kernel told too late when it ran again: its time on a CPU is not known, and no wait is. */
static void unknown_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	enter_range(b, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at,
		    SP - 0x800);
	put_wait_of(b, 100, at + 340 * US, 0,
		    (struct xsp_event_wait){.flags = XSP_WAIT_SHORT | XSP_WAIT_UNSEEN_RETURN});
	leave_range(b, at + 350 * US, SP - 0x800);
}

Test(analyze, loader_that_has_no_cpu)
{
	struct xsp_report *r;
	const struct xsp_report_found *f = loader_of(runnable_inside, &r);

	cr_expect_eq(number_of(value_of(f->figures, "workers_ns")), 0);
	cr_expect_not_null(strstr(f->finding.advice, "could run in the DataLoader but had no CPU"),
			   "%s", f->finding.advice);
	cr_expect_null(strstr(f->finding.advice, "waits for"), "%s", f->finding.advice);
	cr_expect_eq(number_of(value_of(f->figures, "runnable_ns")), STEPS * 330 * US);
	xsp_report_free(r);
}

Test(analyze, loader_whose_time_on_a_cpu_is_not_known)
{
	struct xsp_report *r;
	const struct xsp_report_found *f = loader_of(unknown_inside, &r);

	cr_expect_null(value_of(f->figures, "cpu_ns")->text);
	cr_expect_null(strstr(f->finding.advice, "--waits"), "%s", f->finding.advice);
	cr_expect_not_null(strstr(f->finding.advice, "no wait was seen"), "%s", f->finding.advice);
	xsp_report_free(r);
}

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

Test(analyze, lock_that_another_thread_holds)
{
	struct xsp_report *r = waiting(500 * US, 100);
	const struct xsp_report_found *f = expect(r, "lock", XSP_SEVERITY_HIGH, 0.4);

	cr_expect_eq(number_of(value_of(f->figures, "waits")), 8);
	cr_expect_eq(number_of(value_of(f->figures, "thread_ns")), 4 * MS);
	cr_expect_str_eq(value_of(f->figures, "holder")->text, "main (100)");
	/* where is not known without stacks */
	cr_expect_null(strstr(f->finding.title, ", at "), "%s", f->finding.title);
	cr_expect_not_null(strstr(f->finding.advice, "hold lock 0x"), "%s", f->finding.advice);
	cr_expect_eq(f->finding.to_ns - f->finding.from_ns, 500 * US);
	xsp_report_free(r);
}

/* Of 10 ms the thread that waits for 4 ms is there for 9.5, or for 6: the title says which time the share is of. */
Test(analyze, share_of_a_lock_is_of_the_time_that_is_said)
{
	const struct {
		uint64_t since;
		double share;
		const char *title;
	} cases[] = {{500 * US, 4 / 9.5, "waits 42.1 % of its time"},
		     {4 * MS, 0.4, "waits 40.0 % of the recorded time"}};

	for (size_t i = 0; i < 2; i++) {
		struct builder b;
		open_waits(&b);
		for (unsigned k = 0; k < 4; k++)
			put_wait(&b, 101, START + cases[i].since + k * MS, MS, 100, XSP_WAIT_LOCK);
		put_times(&b, 100, START, START + 10 * MS, 0, XSP_WAIT_LOCK, 0);
		put_times(&b, 101, START + cases[i].since, START + 10 * MS, 0, XSP_WAIT_LOCK,
			  4 * MS);
		b.now = START + 10 * MS;
		struct xsp_report *r = report_of(&b, NULL);
		const struct xsp_report_found *f =
			expect(r, "lock", XSP_SEVERITY_HIGH, cases[i].share);
		cr_expect_not_null(strstr(f->finding.title, cases[i].title), "%s",
				   f->finding.title);
		xsp_report_free(r);
	}
}

/* The summary's text: of a capture that has been ended. */
static char *summary_of(const char *path)
{
	struct xsp_error err = {0};
	struct xsp_capture_reader *r;
	struct xsp_timeline *t;
	struct xsp_summary *s;
	char *text;
	size_t size;

	cr_assert_eq(xsp_capture_open(path, &r, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_timeline_new(r, &t, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_summary_new(t, &s), 0);
	const struct xsp_timeline_sink sink = xsp_summary_sink(s);
	cr_assert_eq(xsp_timeline_run(t, &sink, 1, &err), 0, "%s", err.text);
	FILE *f = open_memstream(&text, &size);
	cr_assert_eq(xsp_summary_write(s, r, f, &(struct xsp_summary_print){.limit = 10}), 0);
	fclose(f);
	xsp_summary_free(s);
	xsp_timeline_free(t);
	xsp_capture_close(r);
	return text;
}

/* A lock that everybody waits for, and then more than are followed. */
Test(analyze, more_locks_than_are_followed)
{
	const unsigned followed = 65536, more = 1000;
	struct builder b;

	open_waits(&b);
	for (unsigned i = 0; i < 8; i++)
		put_wait(&b, 101, START + i * MS, 500 * US, 100, XSP_WAIT_LOCK);
	for (unsigned i = 1; i < followed + more; i++)
		put_wait_of(&b, 102, START + 8 * MS + i * 20, 10,
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

/* A worker on a condition variable waits as long, and for nobody. */
Test(analyze, idle_threads_wait_for_no_lock)
{
	struct xsp_report *r = waiting(900 * US, 0);

	expect_clean(r);
	cr_expect(!had_no_data(r, "lock"));
	xsp_report_free(r);
	r = waiting(100 * US, 100); /* 8 % */
	expect_clean(r);
	xsp_report_free(r);
}

Test(analyze, runnable_but_not_running)
{
	struct builder b;

	open_waits(&b);
	put_times(&b, 101, START, START + 10 * MS, 3500 * US, XSP_WAIT_SLEEP, MS);
	put_times(&b, 102, START, START + 10 * MS, 3500 * US, XSP_WAIT_SLEEP, MS);
	struct xsp_report *r = report_of(&b, NULL);
	/* threads of one name are one finding */
	const struct xsp_report_found *f = expect(r, "runnable", XSP_SEVERITY_HIGH, 0.35);
	cr_expect_str_eq(f->finding.subject, "worker");
	cr_expect_eq(number_of(value_of(f->figures, "threads")), 2);
	cr_expect_eq(number_of(value_of(f->figures, "total_ns")), 7 * MS);
	/* they ran 5.5 ms each, of 10 */
	cr_expect_not_null(strstr(f->finding.advice, "took 1.10 together"), "%s",
			   f->finding.advice);
	xsp_report_free(r);
	/* a single thread is in nobody's way: fewer of its own would not help */
	open_waits(&b);
	put_times(&b, 101, START, START + 10 * MS, 3500 * US, XSP_WAIT_SLEEP, MS);
	r = report_of(&b, NULL);
	f = expect(r, "runnable", XSP_SEVERITY_HIGH, 0.35);
	cr_expect_not_null(strstr(f->finding.advice, "took 0.55 CPUs together: other programs"),
			   "%s", f->finding.advice);
	xsp_report_free(r);
}

/* Their names only number. */
Test(analyze, threads_of_a_pool_are_one_finding)
{
	struct builder b;

	open_waits(&b);
	put_thread(&b, 110, "pricer-0");
	put_thread(&b, 111, "pricer-1");
	for (uint32_t tid = 110; tid <= 111; tid++)
		put_times(&b, tid, START, START + 10 * MS, 3500 * US, XSP_WAIT_SLEEP, MS);
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "runnable", XSP_SEVERITY_HIGH, 0.35);
	cr_expect_str_eq(f->finding.subject, "pricer-*");
	cr_expect_eq(number_of(value_of(f->figures, "threads")), 2);
	xsp_report_free(r);
	/* also without anything between; those of one name that ends in a number keep it */
	static const char *const families[][3] = {{"w0", "w1", "w*"},
						  {"python3", "python3", "python3"}};
	for (size_t i = 0; i < 2; i++) {
		open_waits(&b);
		for (uint32_t k = 0; k < 2; k++) {
			put_thread(&b, 110 + k, families[i][k]);
			put_times(&b, 110 + k, START, START + 10 * MS, 3500 * US, XSP_WAIT_SLEEP,
				  MS);
		}
		r = report_of(&b, NULL);
		f = expect(r, "runnable", XSP_SEVERITY_HIGH, 0.35);
		cr_expect_str_eq(f->finding.subject, families[i][2]);
		xsp_report_free(r);
	}
	/* of one there is its own name */
	open_waits(&b);
	put_thread(&b, 110, "pricer-0");
	put_times(&b, 110, START, START + 10 * MS, 3500 * US, XSP_WAIT_SLEEP, MS);
	r = report_of(&b, NULL);
	cr_expect_str_eq(expect(r, "runnable", XSP_SEVERITY_HIGH, 0.35)->finding.subject,
			 "pricer-0");
	xsp_report_free(r);
}

Test(analyze, where_threads_waited_is_to_be_recorded)
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

Test(analyze, waits_for_the_disk)
{
	struct builder b;

	open_waits(&b);
	put_times(&b, 101, START, START + 10 * MS, 0, XSP_WAIT_DISK, 2500 * US);
	struct xsp_report *r = report_of(&b, NULL);
	cr_expect_str_eq(expect(r, "disk", XSP_SEVERITY_MEDIUM, 0.25)->finding.subject, "worker");
	xsp_report_free(r);
	open_waits(&b);
	put_times(&b, 101, START, START + 10 * MS, 0, XSP_WAIT_DISK, 900 * US);
	r = report_of(&b, NULL);
	expect_clean(r);
	xsp_report_free(r);
}

/* It could run for most of its life, which was short. */
Test(analyze, threads_of_a_moment_prove_nothing)
{
	struct builder b;

	open_waits(&b);
	put_times(&b, 101, START, START + 100 * US, 80 * US, XSP_WAIT_FAULT, 20 * US);
	b.now = START + 10 * MS;
	struct xsp_report *r = report_of(&b, NULL);
	expect_clean(r);
	xsp_report_free(r);
}

Test(analyze, page_faults)
{
	struct builder b;

	open_waits(&b);
	put_times(&b, 101, START, START + 10 * MS, 0, XSP_WAIT_FAULT, 800 * US);
	struct xsp_report *r = report_of(&b, NULL);
	expect(r, "page-faults", XSP_SEVERITY_LOW, 0.08);
	xsp_report_free(r);
	open_waits(&b);
	put_times(&b, 101, START, START + 10 * MS, 0, XSP_WAIT_FAULT, 400 * US);
	r = report_of(&b, NULL);
	expect_clean(r);
	xsp_report_free(r);
}

/* ---- Python's lock ---- */

#define GIL                                                                                        \
	0x5000 /* its condition; 48 bytes behind it its mutex, at 120 what is waited at behind giving it away */

/* Of 100 ms threads 101 and 102 wait so many times for `ns` at `address`, each woken by thread 100; a mutex there has `owner`.
 * `starved`: that one could run meanwhile, and did not. */
static struct xsp_report *wanting_times(unsigned waits, bool starved, uint64_t ns, uint64_t address,
					uint32_t owner, bool known)
{
	struct builder b;

	open_waits(&b);
	cr_assert_eq(xsp_capture_put_process(
			     b.w, &(struct xsp_capture_process){.pid = 100,
								.ns_pid = 100,
								.comm = "python3",
								.cmdline = "",
								.exe = "/usr/bin/python3"}),
		     0);
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
		put_times(&b, tid, START, START + 100 * MS, starved && tid == 100 ? 95 * MS : 0,
			  XSP_WAIT_LOCK, tid == 100 ? 0 : waits * ns);
	b.now = START + 100 * MS;
	return report_of(&b, NULL);
}

static struct xsp_report *wanting(uint64_t ns, uint64_t address, uint32_t owner, bool known)
{
	return wanting_times(40, false, ns, address, owner, known);
}

Test(analyze, threads_that_want_the_lock_of_python)
{
	struct xsp_report *r = wanting(1400 * US, GIL + 12, 0, true);
	const struct xsp_report_found *f = expect(r, "gil", XSP_SEVERITY_HIGH, 0.56);

	cr_expect_not_null(strstr(f->finding.title, "2 threads of main wait 56.0 % of their time"),
			   "%s", f->finding.title);
	cr_expect_eq(number_of(value_of(f->figures, "threads")), 2);
	cr_expect_eq(number_of(value_of(f->figures, "total_ns")), 2 * 40 * 1400 * US);
	cr_expect_eq(number_of(value_of(f->figures, "thread_ns")), 40 * 1400 * US);
	cr_expect_str_eq(value_of(f->figures, "holder")->text, "main (100), 100 % of the times");
	cr_expect_eq(f->finding.to_ns - f->finding.from_ns, 1400 * US);
	expect_none(r, "lock");
	xsp_report_free(r);
}

/* Its mutex has an owner as other mutexes have: it is not told as one once more; and who has it is not who wakes there. */
Test(analyze, lock_of_python_is_no_other_lock)
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
Test(analyze, idle_threads_do_not_want_the_lock_of_python)
{
	struct xsp_report *r = wanting(1400 * US, GIL + 176, 0, true);

	expect_clean(r);
	cr_expect(!had_no_data(r, "gil"));
	xsp_report_free(r);
	r = wanting(220 * US, GIL + 12, 0, true); /* 8.8 % */
	expect_clean(r);
	xsp_report_free(r);
	r = wanting_times(8, false, 9 * MS, GIL + 12, 0, true);
	expect_clean(r);
	xsp_report_free(r);
	r = wanting(1400 * US, GIL + 12, 0, false);
	cr_expect(had_no_data(r, "gil"));
	xsp_report_free(r);
}

/* Who had it had no CPU: whether it would have been given away sooner is not known. */
Test(analyze, lock_of_python_on_a_busy_machine)
{
	struct xsp_report *r = wanting(1400 * US, GIL + 12, 0, true);

	cr_expect_null(expect(r, "gil", XSP_SEVERITY_HIGH, 0.56)->finding.uncertain);
	xsp_report_free(r);
	r = wanting_times(40, true, 2400 * US, GIL + 12, 0, true);
	cr_expect_not_null(expect(r, "gil", XSP_SEVERITY_HIGH, 0.96)->finding.uncertain);
	xsp_report_free(r);
}

/* ---- hot functions ---- */

enum { INTO_CALLER = 0x9000 }; /* a return address */
enum { IN_A_FAULT = 7 }; /* a stack of the kernel's */

static void open_samples(struct builder *b)
{
	static const char *const code[] = {"app\nhot", "libc.so.6\nmemcpy", "app\nspin_for_work",
					   "python3.11\n_PyEval_EvalFrameDefault",
					   "app\n[generated code]"};
	static const char *const lines[] = {"/srv/fight.py\n5\ncount", "/srv/fight.py\n6\ncount"};
	char text[64];

	open_waits(b);
	cr_assert_eq(xsp_capture_put_info(b->w, "samples", "cpu-clock 100"), 0);
	for (size_t i = 0; i < sizeof(code) / sizeof(code[0]); i++)
		address_name(b, XSP_NAME_OF_CODE, i, code[i]);
	for (uint64_t i = 100; i < 120; i++) {
		snprintf(text, sizeof(text), "app\nother_%u", (unsigned)i);
		address_name(b, XSP_NAME_OF_CODE, i, text);
	}
	cr_assert_eq(xsp_capture_put_address_name(b->w, XSP_NAME_OF_KERNEL, IN_A_FAULT, 0,
						  "asm_exc_page_fault_[k]"),
		     0);
	address_name(b, XSP_NAME_OF_RETURN, INTO_CALLER, "parse");
	address_name(b, XSP_NAME_OF_RETURN, INTO_CALLER + 1, "hot");
	address_name(b, XSP_NAME_OF_RETURN, INTO_CALLER + 2, "__libc_read");
	for (uint64_t id = 1; id <= 2; id++) {
		struct xsp_capture_python_frame frame = {.name = 0xf000 + id};
		cr_assert_eq(xsp_capture_put_name(b->w, 0xf000 + id, lines[id - 1]), 0);
		cr_assert_eq(xsp_capture_put_python(b->w,
						    &(struct xsp_capture_python){.id = id,
										 .count = 1,
										 .frames = &frame}),
			     0);
	}
}

enum { AT_HOT, AT_MEMCPY, AT_SPIN, AT_EVAL, AT_GENERATED, AT_OTHERS = 100 };

/* Of 10 ms each, in the instruction `at`, called from `caller` (0: not known), at a line of Python's (0: none). */
struct where {
	uint64_t at, caller, line;
	bool reads, faults; /* in the kernel */
};
static void put_samples(struct builder *b, unsigned count, uint64_t from, struct where w)
{
	struct {
		struct xsp_event_sample e;
		uint64_t sections[8];
	} u = {.e = {.head = {.kind = XSP_EVENT_SAMPLE,
			      .probe = UINT32_MAX,
			      .sp = SP - 0x3000,
			      .flags = XSP_EVENT_SECTIONS},
		     .address = w.at,
		     .period_ns = 10 * MS,
		     .syscall = w.reads ? 0 : -2,
		     .kernel = w.reads || w.faults}};
	struct xsp_section *s = (void *)u.sections;
	uint64_t *word = (void *)(s + 1);

	if (w.faults) {
		*s = (struct xsp_section){
			.type = XSP_SECTION_KERNEL, .size = sizeof(*s), .value = IN_A_FAULT};
		s = (void *)word++;
	}
	if (w.line != 0) {
		*s = (struct xsp_section){.type = XSP_SECTION_PYTHON, .size = 16, .value = 1};
		*word++ = w.line;
		s = (void *)word++;
	}
	*s = (struct xsp_section){.type = XSP_SECTION_STACK, .size = 8};
	/* whatever it is called by calls itself once, and is called by parse() */
	for (unsigned i = 0; i < 2 && w.caller != 0; i++, s->size += 8)
		*word++ = (i == 0 ? w.caller : INTO_CALLER) | 2ULL << XSP_FRAME_SHIFT;
	for (unsigned i = 0; i < count; i++) {
		b->now = from + (i + 1) * 10 * MS;
		builder_put(b, &u, (size_t)((char *)word - (char *)&u));
	}
}

/* What is left of a second, in `functions` others. */
static void put_others(struct builder *b, unsigned count, unsigned functions)
{
	for (unsigned i = 0; i < functions; i++)
		put_samples(b, count / functions, START + 500 * MS,
			    (struct where){.at = AT_OTHERS + i});
	b->tid = 100;
	b->now = START + 1000 * MS;
}

Test(analyze, hot_function)
{
	struct builder b;

	open_samples(&b);
	put_samples(&b, 45, START, (struct where){.at = AT_HOT, .caller = INTO_CALLER});
	/* it calls itself: that is one function, once a sample */
	put_samples(&b, 15, START + 450 * MS,
		    (struct where){.at = AT_HOT, .caller = INTO_CALLER + 1});
	put_others(&b, 40, 8);
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "hot-function", XSP_SEVERITY_HIGH, 0.6);
	cr_expect_str_eq(f->finding.subject, "hot (app)");
	cr_expect_eq(number_of(value_of(f->figures, "samples")), 60);
	cr_expect_eq(number_of(value_of(f->figures, "cpu_ns")), 600 * MS);
	expect_near(number_of(value_of(f->figures, "cpu_share")), 0.6, 1e-9, "share");
	/* R: prop.test(60, 100, correct = FALSE) */
	expect_near(number_of(value_of(f->figures, "cpu_share_low")), 0.5020026, 1e-6, "low");
	expect_near(number_of(value_of(f->figures, "cpu_share_high")), 0.6905987, 1e-6, "high");
	cr_expect_str_eq(value_of(f->figures, "caller")->text, "parse, 100 % of it");
	cr_expect_str_eq(value_of(f->figures, "thread")->text, "main (100)");
	cr_expect_eq(f->finding.from_ns, 0);
	cr_expect_eq(f->finding.to_ns, 600 * MS);
	cr_expect_null(f->finding.uncertain);
	xsp_report_free(r);
}

/* Of a second, `faults` samples of 10 ms in page faults and `others` in something else. */
static struct xsp_report *faulting(unsigned faults, unsigned others, uint64_t time_ns)
{
	struct builder b;

	open_samples(&b);
	put_samples(&b, faults, START, (struct where){.at = AT_HOT, .faults = true});
	put_others(&b, others, others < 10 ? others : 10);
	b.now = START + time_ns;
	return report_of(&b, NULL);
}

Test(analyze, storm_of_page_faults)
{
	struct xsp_report *r = faulting(40, 60, 1000 * MS);
	const struct xsp_report_found *f = expect(r, "page-faults", XSP_SEVERITY_HIGH, 0.4);

	cr_expect_not_null(strstr(f->finding.title, "40.0 % of the time on CPUs"), "%s",
			   f->finding.title);
	cr_expect_eq(number_of(value_of(f->figures, "total_ns")), 400 * MS);
	xsp_report_free(r);
}

/* A third of three samples; four of forty, which may be one in thirty; and all that a process does that hardly runs. */
Test(analyze, few_samples_are_no_storm)
{
	struct xsp_report *r = faulting(1, 2, 1000 * MS);

	expect_none(r, "page-faults");
	xsp_report_free(r);
	r = faulting(4, 40, 500 * MS);
	expect_none(r, "page-faults");
	xsp_report_free(r);
	r = faulting(40, 10, 60000 * MS);
	expect_none(r, "page-faults");
	xsp_report_free(r);
}

/* Ten functions of a tenth each; one that has most of little; and few samples of whatever. */
Test(analyze, no_function_is_hot)
{
	struct builder b;

	open_samples(&b);
	put_others(&b, 100, 10);
	struct xsp_report *r = report_of(&b, NULL);
	expect_clean(r);
	cr_expect(!had_no_data(r, "hot-function"));
	xsp_report_free(r);

	open_samples(&b);
	put_samples(&b, 60, START, (struct where){.at = AT_HOT});
	b.now = START + 10000 * MS; /* it slept */
	r = report_of(&b, NULL);
	expect_clean(r);
	xsp_report_free(r);

	open_samples(&b);
	put_samples(&b, 29, START, (struct where){.at = AT_HOT});
	b.now = START + 290 * MS;
	r = report_of(&b, NULL);
	expect_clean(r);
	xsp_report_free(r);

	open_samples(&b); /* nothing names it */
	put_samples(&b, 90, START, (struct where){.at = AT_GENERATED});
	b.now = START + 1000 * MS;
	r = report_of(&b, NULL);
	expect_clean(r);
	xsp_report_free(r);
}

/* Other programs had its CPU: it is hot as before, and what it took of the time is told as it is. */
Test(analyze, hot_function_on_a_busy_machine)
{
	struct builder b;

	open_samples(&b);
	put_samples(&b, 60, START, (struct where){.at = AT_HOT});
	put_others(&b, 40, 8);
	put_times(&b, 100, START, START + 10000 * MS, 9000 * MS, XSP_WAIT_SLEEP, 0);
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "hot-function", XSP_SEVERITY_HIGH, 0.06);
	cr_expect_not_null(strstr(f->finding.title, "takes 6.0 % of the recorded time, in "), "%s",
			   f->finding.title);
	cr_expect_not_null(strstr(f->finding.title, "had a CPU for 10 % of the time"), "%s",
			   f->finding.title);
	xsp_report_free(r);

	open_samples(&b); /* it slept instead */
	put_samples(&b, 60, START, (struct where){.at = AT_HOT});
	put_others(&b, 40, 8);
	put_times(&b, 100, START, START + 10000 * MS, 0, XSP_WAIT_SLEEP, 9000 * MS);
	r = report_of(&b, NULL);
	expect_none(r, "hot-function");
	xsp_report_free(r);
}

/* Samples and waits go on between windows of functions, and may end before the recording does: shares are of their time. */
Test(analyze, shares_are_of_the_time_that_was_watched)
{
	struct builder b;

	open_samples(&b);
	cr_assert_eq(xsp_capture_put_window(b.w, &(struct xsp_capture_window){START, START + MS}),
		     0);
	put_samples(&b, 30, START, (struct where){.at = AT_HOT});
	b.now = START + 1000 * MS;
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "hot-function", XSP_SEVERITY_MEDIUM, 0.3);
	cr_expect_null(f->finding.uncertain, "%s", f->finding.uncertain);
	xsp_report_free(r);

	open_samples(&b);
	cr_assert_eq(xsp_capture_put_info(b.w, "samples until ns", "1000001000"), 0);
	put_samples(&b, 30, START, (struct where){.at = AT_HOT});
	b.now = START + 10000 * MS;
	r = report_of(&b, NULL);
	f = expect(r, "hot-function", XSP_SEVERITY_MEDIUM, 0.3);
	cr_expect_str_eq(f->finding.uncertain, "samples were recorded in the first 1.00 s only");
	xsp_report_free(r);

	open_waits(&b);
	cr_assert_eq(xsp_capture_put_info(b.w, "waits until ns", "10001000"), 0);
	put_wait(&b, 101, START + MS, 4 * MS, 100, XSP_WAIT_LOCK);
	put_times(&b, 100, START, START + 10 * MS, 0, XSP_WAIT_LOCK, 0);
	put_times(&b, 101, START, START + 10 * MS, 2 * MS, XSP_WAIT_LOCK, 4 * MS);
	b.now = START + 1000 * MS;
	r = report_of(&b, NULL);
	f = expect(r, "lock", XSP_SEVERITY_HIGH, 0.4);
	cr_expect_str_eq(f->finding.uncertain, "waits were recorded in the first 10.0 ms only");
	expect(r, "runnable", XSP_SEVERITY_MEDIUM, 0.2);
	xsp_report_free(r);
}

/* Some of its samples are in spans of it, where the span stands for it: it is one function. */
Test(analyze, hot_function_that_is_a_span_as_well)
{
	struct builder b;

	open_samples(&b);
	b.now = START;
	entry(&b, HOT, SP - 0x1000);
	put_samples(&b, 25, START, (struct where){.at = AT_HOT});
	b.now = START + 250 * MS;
	leave(&b, HOT, SP - 0x1000);
	put_samples(&b, 35, START + 250 * MS, (struct where){.at = AT_HOT});
	put_others(&b, 40, 8);
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "hot-function", XSP_SEVERITY_HIGH, 0.6);
	cr_expect_eq(number_of(value_of(f->figures, "samples")), 60);
	xsp_report_free(r);
}

/* Of 200 samples 56 are there: surely more than 20 % only if they are of 200 moments, not of 50 on four CPUs. */
Test(analyze, samples_of_one_moment_are_one)
{
	struct builder b;

	for (unsigned cpus = 1; cpus <= 4; cpus += 3) {
		open_samples(&b);
		put_samples(&b, 56, START, (struct where){.at = AT_HOT});
		put_others(&b, 144, 16);
		b.now = START + 2000 * MS / cpus;
		struct xsp_report *r = report_of(&b, NULL);
		if (cpus == 1)
			expect(r, "hot-function", XSP_SEVERITY_MEDIUM, 0.28);
		else
			expect_none(r, "hot-function");
		xsp_report_free(r);
	}
}

Test(analyze, hot_function_of_python)
{
	struct builder b;

	open_samples(&b);
	put_samples(&b, 40, START, (struct where){.at = AT_EVAL, .line = 1});
	put_samples(&b, 20, START + 400 * MS, (struct where){.at = AT_EVAL, .line = 2});
	put_others(&b, 40, 8);
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "hot-function", XSP_SEVERITY_HIGH, 0.6);
	cr_expect_str_eq(f->finding.subject, "count (fight.py)");
	cr_expect_not_null(strstr(f->finding.title, "most of it at fight.py:5 count"), "%s",
			   f->finding.title);
	cr_expect_str_eq(value_of(f->figures, "line")->text, "fight.py:5 count, 67 % of it");
	xsp_report_free(r);
}

/* What a line calls is the line's, too: one finding, which has both. */
Test(analyze, hot_function_that_python_calls)
{
	struct builder b;

	open_samples(&b);
	put_samples(&b, 60, START, (struct where){.at = AT_MEMCPY, .line = 1});
	put_others(&b, 40, 8);
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "hot-function", XSP_SEVERITY_HIGH, 0.6);
	cr_expect_str_eq(f->finding.subject, "memcpy (libc.so.6)");
	cr_expect_str_eq(value_of(f->figures, "line")->text, "fight.py:5 count, 100 % of it");
	xsp_report_free(r);
}

/* The system call is named, and who made it behind the C library; a loop that waits is told from one that works. */
Test(analyze, hot_kernel_and_hot_spinning)
{
	struct builder b;

	open_samples(&b);
	put_samples(&b, 60, START,
		    (struct where){.at = AT_MEMCPY, .caller = INTO_CALLER + 2, .reads = true});
	put_others(&b, 40, 8);
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "hot-function", XSP_SEVERITY_HIGH, 0.6);
	cr_expect_str_eq(f->finding.subject, "[kernel] read");
	cr_expect_not_null(strstr(f->finding.advice, "system calls"), "%s", f->finding.advice);
	xsp_report_free(r);

	open_samples(&b);
	put_samples(&b, 60, START, (struct where){.at = AT_SPIN});
	put_others(&b, 40, 8);
	r = report_of(&b, NULL);
	f = expect(r, "hot-function", XSP_SEVERITY_HIGH, 0.6);
	cr_expect_not_null(strstr(f->finding.advice, "by its name it waits"), "%s",
			   f->finding.advice);
	xsp_report_free(r);
}

/* The span is hot: where it is so is part of that finding, and no second one. */
Test(analyze, hot_operation_says_where_it_is_hot)
{
	struct builder b;

	open_samples(&b);
	b.now = START;
	entry(&b, WORK, SP - 0x1000);
	put_samples(&b, 60, START, (struct where){.at = AT_MEMCPY});
	b.now = START + 600 * MS;
	leave(&b, WORK, SP - 0x1000);
	put_others(&b, 40, 8);
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "hot-operation", XSP_SEVERITY_HIGH, 0.6);
	cr_expect_str_eq(value_of(f->figures, "inside")->text,
			 "memcpy (libc.so.6) in 100 % of its samples");
	cr_expect_null(strstr(f->finding.advice, "--sample"), "%s", f->finding.advice);
	expect_none(r, "hot-function");
	xsp_report_free(r);
}

/* By Wilson's interval, by hand: of one of one the least is 1 / (1 + z^2) = 20.65 %, of 100 of 100 it is 96.30 %; at 50 of
 * 100 it is 9.62 % each way. */
Test(analyze, error_of_a_share_of_few_samples)
{
	const struct {
		unsigned here, others;
		const char *printed;
	} cases[] = {{1, 0, "100.00 %     79.35  hot"},
		     {100, 0, "100.00 %      3.70  hot"},
		     {50, 50, " 50.00 %      9.62  hot"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct builder b;
		open_samples(&b);
		put_samples(&b, cases[i].here, START, (struct where){.at = AT_HOT});
		put_samples(&b, cases[i].others, START + 500 * MS, (struct where){.at = AT_MEMCPY});
		builder_end(&b);
		char *text = summary_of(b.path);
		unlink(b.path);
		cr_expect_not_null(strstr(text, cases[i].printed), "%s", text);
		free(text);
	}
}

/* ---- memory ---- */

static void put_memory(struct builder *b, uint32_t probe, uint64_t address, uint64_t bytes)
{
	struct {
		struct xsp_event head;
		struct xsp_section section;
		uint64_t words[2];
	} e = {.head = {.kind = XSP_EVENT_MEMORY,
			.probe = probe,
			.sp = SP - 0x2000,
			.flags = XSP_EVENT_SECTIONS},
	       .section = {.type = XSP_SECTION_WORDS, .size = sizeof(e.section) + 16},
	       .words = {address, bytes}};

	builder_put(b, &e, sizeof(e));
}

/* Steps of 5 ms; each allocates in `work` (or in no call), and gives back what `kept` does not keep. */
static struct xsp_report *allocating_in(uint64_t steps, uint64_t bytes, bool kept, bool in_call)
{
	struct builder b;
	char text[32];

	open_capture(&b, PROBES);
	for (uint64_t i = 0; i < steps; i++) {
		const uint64_t at = START + i * 5 * MS;
		snprintf(text, sizeof(text), "ProfilerStep#%u", (unsigned)i);
		enter_range(&b, text, at, SP);
		b.now = at + 100 * US;
		if (in_call)
			entry(&b, WORK, SP - 0x1000);
		put_memory(&b, NEW, 0x10000 + i * 0x100, bytes);
		b.now = at + 150 * US;
		if (!kept)
			put_memory(&b, DELETE, 0x10000 + i * 0x100, 0);
		if (in_call)
			leave(&b, WORK, SP - 0x1000);
		leave_range(&b, at + 5 * MS - 1, SP);
	}
	b.now = START + steps * 5 * MS;
	return report_of(&b, NULL);
}

/* A second of them. */
static struct xsp_report *allocating(uint64_t bytes, bool kept, bool in_call)
{
	return allocating_in(200, bytes, kept, in_call);
}

/* In 0.45 s it is not told whether memory grows, which is no word that it does not; in 0.55 s it is found. What was given
 * back on the spot is not judged either. */
Test(analyze, too_short_to_tell_a_leak)
{
	struct xsp_report *r = allocating_in(90, 20 << 20, true, true);

	expect_none(r, "leak");
	cr_assert_not_null(needs_of(r, "leak"));
	cr_expect_not_null(strstr(needs_of(r, "leak"), "half a second"), "%s", needs_of(r, "leak"));
	xsp_report_free(r);
	r = allocating_in(90, 20 << 20, false, true);
	cr_expect(had_no_data(r, "leak"));
	xsp_report_free(r);
	r = allocating_in(110, 20 << 20, true, true);
	expect(r, "leak", XSP_SEVERITY_HIGH, 1);
	cr_expect(!had_no_data(r, "leak"));
	xsp_report_free(r);
	r = allocating_in(110, 20 << 20, false, true);
	expect_none(r, "leak");
	cr_expect(!had_no_data(r, "leak"));
	xsp_report_free(r);
}

Test(analyze, leak)
{
	struct xsp_report *r = allocating(20 << 20, true, true);
	size_t count;
	const struct xsp_report_found *f = found(r, "leak", &count);

	cr_assert_eq(count, 1);
	cr_expect_eq(f->finding.severity, XSP_SEVERITY_HIGH);
	cr_expect_str_eq(f->finding.subject, "work");
	/* 20 MiB in 5 ms */
	expect_near(number_of(value_of(f->figures, "growth")), 4000.0 * (1 << 20), 40.0 * (1 << 20),
		    "growth");
	cr_expect_eq(number_of(value_of(f->figures, "alive")), 200);
	xsp_report_free(r);
	r = allocating(20 << 20, false, true);
	expect_clean(r);
	cr_expect(!had_no_data(r, "leak"));
	xsp_report_free(r);
}

/* 100 KiB a step, whether a step takes 2 ms or 20 ms: their mean is that of none. */
Test(analyze, leak_of_steps_of_different_lengths)
{
	struct builder b;
	char text[32];
	uint64_t at = START;

	open_capture(&b, PROBES);
	for (uint64_t i = 0; i < 600; i++) {
		const uint64_t ns = (i < 300 ? 2 : 20) * MS;
		snprintf(text, sizeof(text), "ProfilerStep#%u", (unsigned)i);
		enter_range(&b, text, at, SP);
		b.now = at + 100 * US;
		entry(&b, WORK, SP - 0x1000);
		put_memory(&b, NEW, 0x10000 + i * 0x100, 100 << 10);
		b.now = at + 150 * US;
		leave(&b, WORK, SP - 0x1000);
		leave_range(&b, at + ns - 1, SP);
		at += ns;
	}
	b.now = at;
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "leak", XSP_SEVERITY_MEDIUM, 1);
	double grows, least;
	const char *by = strstr(f->finding.title, "by ");
	cr_assert_eq(sscanf(by, "by %lf KiB a step, at least %lf KiB", &grows, &least), 2, "%s",
		     f->finding.title);
	expect_near(grows, 100, 1, f->finding.title);
	cr_expect(least <= 100 && least > 98, "%s", f->finding.title);
	xsp_report_free(r);
}

/* Each range allocates, and so is a place of its own. */
Test(analyze, more_places_than_are_followed)
{
	struct builder b;
	char text[32];
	const char *const *notes;

	open_capture(&b, PROBES);
	for (uint64_t i = 0; i < 16384 + 6; i++) {
		snprintf(text, sizeof(text), "place %u", (unsigned)i);
		enter_range(&b, text, START + i * 1000, SP);
		put_memory(&b, NEW, 0x10000 + i * 0x100, 64);
		leave_range(&b, START + i * 1000 + 900, SP);
	}
	const char *said = "whether memory grows is followed at 16,384 places: of the 6 that came "
			   "later it is not known";
	builder_end(&b);
	char *summary = summary_of(b.path);
	cr_expect(strstr(summary, said) != NULL);
	free(summary);
	struct xsp_report *r = report_of(&b, NULL);
	const size_t n = xsp_report_notes(xsp_report_find_section(r, "memory"), &notes);
	cr_assert_geq(n, 1);
	cr_expect_str_eq(notes[n - 1], said);
	xsp_report_free(r);
}

/* Ten looks a second, for ten seconds: without --memory, what the kernel says of the process. */
static struct xsp_report *resident(uint64_t (*bytes)(unsigned look))
{
	struct builder b;

	open_capture(&b, BATCH);
	for (unsigned i = 0; i < 100; i++) {
		struct {
			struct xsp_event head;
			struct xsp_section section;
			struct xsp_process_memory memory;
		} e = {.head = {.kind = XSP_EVENT_MEMORY,
				.probe = UINT32_MAX,
				.flags = XSP_EVENT_SECTIONS},
		       .section = {.type = XSP_SECTION_PROCESS_MEMORY,
				   .size = sizeof(e.section) + sizeof(e.memory)},
		       .memory = {.resident = 100 << 20, .anonymous = bytes(i)}};
		b.now = START + i * 100 * MS;
		if (i == 0 || bytes(i) != bytes(i - 1)) /* what has not changed is not told */
			builder_put(&b, &e, sizeof(e));
	}
	b.now = START + 10000 * MS;
	return report_of(&b, NULL);
}

static uint64_t leaking(unsigned look)
{
	return (10 << 20) + look * (200ULL << 10);
}

static uint64_t loading(unsigned look)
{
	return (10 << 20) + (look < 60 ? look : 60) * (200ULL << 10);
}

static uint64_t creeping(unsigned look)
{
	return (100 << 20) + look * (20ULL << 10);
}

static uint64_t trickling(unsigned look)
{
	return (10 << 20) + look * (4ULL << 10);
}

Test(analyze, memory_of_a_process_that_only_grows)
{
	struct xsp_report *r = resident(leaking);
	size_t count;
	const struct xsp_report_found *f = found(r, "leak", &count);

	cr_assert_eq(count, 1);
	cr_expect_eq(f->finding.severity, XSP_SEVERITY_MEDIUM);
	expect_near(number_of(value_of(f->figures, "growth")), 2000 << 10, 20 << 10, "growth");
	cr_expect_not_null(strstr(f->finding.advice, "--memory"));
	cr_expect_not_null(f->finding.uncertain);
	xsp_report_free(r);
}

/* Two ranks, one of which grows by 200 KiB in each of its own steps of 100 ms: the other one's are not its. */
Test(analyze, memory_of_one_of_two_ranks)
{
	struct builder b;
	char text[32];

	open_capture(&b, BATCH);
	for (unsigned i = 0; i < 100; i++) {
		struct {
			struct xsp_event head;
			struct xsp_section section;
			struct xsp_process_memory memory;
		} e = {.head = {.kind = XSP_EVENT_MEMORY,
				.probe = UINT32_MAX,
				.flags = XSP_EVENT_SECTIONS},
		       .section = {.type = XSP_SECTION_PROCESS_MEMORY,
				   .size = sizeof(e.section) + sizeof(e.memory)},
		       .memory = {.resident = 100 << 20, .anonymous = leaking(i)}};
		snprintf(text, sizeof(text), "ProfilerStep#%u", i);
		for (b.pid = b.tid = 100; b.pid < 300; b.pid += 100, b.tid = b.pid)
			enter_range(&b, text, START + i * 100 * MS, SP);
		b.pid = b.tid = 100;
		builder_put(&b, &e, sizeof(e));
		for (b.pid = b.tid = 100; b.pid < 300; b.pid += 100, b.tid = b.pid)
			leave_range(&b, START + (i + 1) * 100 * MS - 1, SP);
	}
	b.pid = b.tid = 100;
	b.now = START + 10000 * MS;
	struct xsp_report *r = report_of(&b, NULL);
	size_t count;
	const struct xsp_report_found *f = found(r, "leak", &count);
	double grows, least;
	cr_assert_eq(count, 1);
	cr_assert_eq(sscanf(strstr(f->finding.title, "by "), "by %lf KiB a step, at least %lf KiB",
			    &grows, &least),
		     2, "%s", f->finding.title);
	expect_near(grows, 200, 4, f->finding.title);
	cr_expect(least <= 200 && least > 190, "%s", f->finding.title);
	xsp_report_free(r);
}

/* What is loaded for six seconds of ten, 200 KiB a second of 100 MiB, and 40 KiB a second. */
Test(analyze, memory_of_clean_processes)
{
	uint64_t (*const clean[])(unsigned) = {loading, creeping, trickling};

	for (size_t i = 0; i < sizeof(clean) / sizeof(clean[0]); i++) {
		struct xsp_report *r = resident(clean[i]);
		expect_none(r, "leak");
		cr_expect(had_no_data(r, "leak"));
		xsp_report_free(r);
	}
}

/* What a loss kept with its graph takes; 25 MiB a second are no small matter. */
Test(analyze, leak_of_small_blocks)
{
	struct xsp_report *r = allocating(128 << 10, true, true);
	const struct xsp_report_found *f = expect(r, "leak", XSP_SEVERITY_MEDIUM, 1);

	expect_near(number_of(value_of(f->figures, "growth")), 25.0 * (1 << 20), 0.3 * (1 << 20),
		    "growth");
	xsp_report_free(r);
	r = allocating(16 << 10, true, true);
	expect_none(r, "leak");
	xsp_report_free(r);
}

/* Steps that only number are one place: each allocates once, and together they leak. */
Test(analyze, leak_in_the_step_itself)
{
	struct xsp_report *r = allocating(20 << 20, true, false);
	const struct xsp_report_found *f = expect(r, "leak", XSP_SEVERITY_HIGH, 1);
	const struct xsp_report_table *t =
		xsp_report_find_table(xsp_report_find_section(r, "memory"), "sites");

	cr_expect_str_eq(f->finding.subject, "ProfilerStep#*");
	cr_expect_eq(number_of(value_of(f->figures, "alive")), 200);
	cr_assert_eq(xsp_report_row_count(t), 1);
	cr_expect_eq(xsp_report_row_at(t, 0)[4].integer, 200, "allocations");
	xsp_report_free(r);
}

/* ---- CUDA ---- */

struct batch {
	union {
		struct xsp_event_gpu event;
		uint64_t words[1024];
	} u;
	size_t used;
	uint32_t records;
	uint64_t first;
};

static void put_record(struct batch *b, const void *record, size_t size)
{
	memcpy((char *)(&b->u.event + 1) + b->used, record, size);
	b->used += size;
	b->records++;
}

static void open_batch(struct batch *b, uint64_t first)
{
	const struct xsp_gpu_batch_head h = {
		.head = {XSP_GPU_BATCH_HEAD, sizeof(h), XSP_GPU_VERSION}, .window_ns = 5};

	*b = (struct batch){.first = first};
	put_record(b, &h, sizeof(h));
	b->records = 0;
}

static void send_batch(struct builder *c, struct batch *b)
{
	struct xsp_gpu_batch_head *h = (void *)(&b->u.event + 1);

	h->first = b->first;
	h->records = b->records;
	b->first += b->records;
	b->u.event.bytes = (uint32_t)b->used;
	b->u.event.head.kind = XSP_EVENT_GPU;
	b->u.event.head.probe = BATCH;
	builder_put(c, &b->u, sizeof(b->u.event) + b->used);
}

static void put_kernel(struct batch *g, uint64_t from, uint64_t to)
{
	const struct xsp_gpu_kernel k = {.head = {XSP_GPU_KERNEL, sizeof(k), 0},
					 .start_ns = from,
					 .end_ns = to,
					 .name = 9,
					 .stream = 7};
	put_record(g, &k, sizeof(k));
}

static void put_kernel_name(struct batch *g)
{
	struct {
		struct xsp_gpu_name n;
		char text[8];
	} n = {.n = {.head = {XSP_GPU_NAME, sizeof(n), 0},
		     .id = 9,
		     .text_at = sizeof(n.n),
		     .length = 5},
	       .text = "sgemm"};
	put_record(g, &n, sizeof(n));
}

static void put_copy(struct batch *g, uint64_t from, uint64_t ns, uint64_t bytes, uint8_t memory)
{
	const struct xsp_gpu_memcpy m = {.head = {XSP_GPU_MEMCPY, sizeof(m), 0},
					 .start_ns = from,
					 .end_ns = from + ns,
					 .bytes = bytes,
					 .stream = 7,
					 .copy_kind = 1,
					 .source_kind = memory,
					 .destination_kind = 3};
	put_record(g, &m, sizeof(m));
}

static void sync_of(struct builder *b, uint64_t at, uint64_t ns)
{
	b->now = at;
	entry(b, ITEM, SP - 0x800);
	call(b, SYNC, at + US, ns);
	b->now = at + ns + 2 * US;
	leave(b, ITEM, SP - 0x800);
}

static void waiting_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	sync_of(b, at, 250 * US);
}

static void brief_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	sync_of(b, at, 50 * US);
}

/* A kernel begins 100 us after each wait, and lasts longer than that. */
static struct xsp_report *syncing(inside_fn *inside)
{
	struct builder b;
	struct batch g;

	open_capture(&b, NEW);
	put_steps(&b, STEPS, MS, inside);
	open_batch(&g, 0);
	put_kernel_name(&g);
	for (unsigned i = 0; i < STEPS; i++)
		put_kernel(&g, START + i * MS + 111 * US, START + i * MS + 311 * US);
	send_batch(&b, &g);
	b.now = START + STEPS * MS;
	return report_of(&b, NULL);
}

/* Pitfall 4: who waits, and what for. */
Test(analyze, waiting_for_the_gpu)
{
	struct xsp_report *r = syncing(waiting_inside);
	const struct xsp_report_found *f = expect(r, "sync", XSP_SEVERITY_MEDIUM, 0.25);

	cr_expect_str_eq(f->finding.subject, "cudaStreamSynchronize in aten::item");
	cr_expect_eq(number_of(value_of(f->figures, "calls_per_step")), 1);
	cr_expect_eq(number_of(value_of(f->figures, "total_ns")), STEPS * 250 * US);
	cr_expect_str_eq(value_of(f->figures, "waited_for")->text, "sgemm 1.50 ms");
	expect_none(r, "hot-operation");
	xsp_report_free(r);
	r = syncing(brief_inside);
	expect_clean(r);
	cr_expect(!had_no_data(r, "sync"));
	xsp_report_free(r);
}

static struct batch of_steps;

/* Of a wait of 250 us a kernel of its first half is told before it ends; one of the second half later: below. */
static void told_early_inside(struct builder *b, uint64_t at, unsigned step)
{
	b->now = at;
	entry(b, ITEM, SP - 0x800);
	b->now = at + US;
	entry(b, SYNC, SP - 0x1000);
	if (step == 0)
		put_kernel_name(&of_steps);
	put_kernel(&of_steps, at + 21 * US, at + 101 * US);
	b->now = at + 150 * US;
	send_batch(b, &of_steps);
	b->now = at + 251 * US;
	leave(b, SYNC, SP - 0x1000);
	b->now = at + 252 * US;
	leave(b, ITEM, SP - 0x800);
	open_batch(&of_steps, of_steps.first);
}

/* CUPTI hands over what has ended whenever a buffer is full: also while a call waits for the rest. */
Test(analyze, gpu_records_that_come_during_a_wait)
{
	struct builder b;

	open_capture(&b, NEW);
	open_batch(&of_steps, 0);
	put_steps(&b, STEPS, MS, told_early_inside);
	for (unsigned i = 0; i < STEPS; i++)
		put_kernel(&of_steps, START + i * MS + 181 * US, START + i * MS + 281 * US);
	send_batch(&b, &of_steps);
	b.now = START + STEPS * MS;
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "sync", XSP_SEVERITY_MEDIUM, 0.25);
	/* 80 us of the first kernel, from 181 to 261 of the second */
	cr_expect_str_eq(value_of(f->figures, "waited_for")->text, "sgemm 1.60 ms");
	cr_expect_null(f->finding.uncertain, "%s", f->finding.uncertain);
	xsp_report_free(r);
}

/* `count` kernels of 100 ns each, one each 200 ns, told 50 at a time */
static void put_kernels(struct builder *b, uint64_t from, unsigned count)
{
	struct batch g;

	open_batch(&g, 0);
	put_kernel_name(&g);
	for (unsigned i = 0; i < count; i++) {
		put_kernel(&g, from + i * 200, from + i * 200 + 100);
		if (i % 50 < 49 && i + 1 < count)
			continue;
		b->now = from + (i + 1) * 200;
		send_batch(b, &g);
		open_batch(&g, g.first);
	}
}

/* More than is held of what the GPU did, in one wait of 19 ms of 20. */
Test(analyze, more_gpu_records_in_a_wait_than_are_held)
{
	struct builder b;

	open_capture(&b, NEW);
	b.now = START;
	entry(&b, SYNC, SP);
	put_kernels(&b, START + MS, 70000);
	b.now = START + 19 * MS;
	leave(&b, SYNC, SP);
	b.now = START + 20 * MS;
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "sync", XSP_SEVERITY_HIGH, 0.95);
	/* of 1,094 times 64 the last 1,024 are held, in the last of which are 48: 65,520 of 100 ns */
	cr_expect_str_eq(value_of(f->figures, "waited_for")->text, "sgemm 6.55 ms");
	cr_assert_not_null(f->finding.uncertain);
	cr_expect_not_null(strstr(f->finding.uncertain, "is a lower bound: 1 calls"), "%s",
			   f->finding.uncertain);
	xsp_report_free(r);
}

/* ... and more waits than are held, when a kernel comes that ran in the first of them. */
Test(analyze, more_waits_than_are_held)
{
	const uint64_t waits = 2 * 8192 + 1;
	struct builder b;

	open_capture(&b, NEW);
	for (uint64_t i = 0; i < waits; i++)
		call(&b, SYNC, START + i * 2 * US, US);
	put_kernels(&b, START, 1);
	b.now = START + waits * 2 * US;
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "sync", XSP_SEVERITY_HIGH, 0.5);
	cr_assert_not_null(f->finding.uncertain);
	cr_expect_not_null(strstr(f->finding.uncertain, "is a lower bound"), "%s",
			   f->finding.uncertain);
	xsp_report_free(r);
}

static void allocating_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	call(b, MALLOC, at, 40 * US);
}

static void allocating_once(struct builder *b, uint64_t at, unsigned step)
{
	if (step == 0)
		call(b, MALLOC, at, 400 * US);
}

Test(analyze, allocation_in_the_loop)
{
	struct builder b;

	open_capture(&b, BATCH);
	put_steps(&b, STEPS, MS, allocating_inside);
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "allocation", XSP_SEVERITY_LOW, 0.04);
	cr_expect_eq(number_of(value_of(f->figures, "calls_per_step")), 1);
	xsp_report_free(r);
	open_capture(&b, BATCH);
	put_steps(&b, STEPS, MS, allocating_once);
	r = report_of(&b, NULL);
	expect_clean(r);
	cr_expect(!had_no_data(r, "allocation"));
	xsp_report_free(r);
}

static void fail(struct builder *b, uint64_t at, uint64_t code)
{
	struct {
		struct xsp_event head;
		struct xsp_section section;
		uint64_t code;
	} e = {.head = {.kind = XSP_EVENT_EXIT,
			.probe = SYNC,
			.sp = SP,
			.flags = XSP_EVENT_SP_EXACT | XSP_EVENT_SECTIONS},
	       .section = {.type = XSP_SECTION_RESULT, .size = sizeof(e.section) + 8},
	       .code = code};

	b->now = at;
	entry(b, SYNC, SP);
	b->now = at + 10;
	builder_put(b, &e, sizeof(e));
}

/* 1,024 kinds are told apart; the codes are the target's. */
Test(analyze, more_kinds_of_errors_than_are_told_apart)
{
	struct builder b;

	open_capture(&b, BATCH);
	for (uint64_t i = 0; i < 1024 + 7; i++)
		fail(&b, START + i * 100, 100000 + i);
	builder_end(&b);
	char *text = summary_of(b.path);
	cr_expect_not_null(strstr(text, "an error: 1,031\n"), "%s", text);
	cr_expect_not_null(strstr(text, "and 7 calls of more kinds than are told apart\n"), "%s",
			   text);
	free(text);
	unlink(b.path);
}

static void copying_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	for (unsigned i = 0; i < 12; i++)
		call(b, COPY, at + i * 20 * US, 5 * US);
}

/* 120 copies, of so many bytes each, a microsecond long; from memory of that kind (1: pageable, 2: pinned). */
static struct xsp_report *copying(uint64_t bytes, uint64_t ns, uint8_t memory)
{
	struct builder b;
	struct batch g;

	open_capture(&b, NEW);
	put_steps(&b, STEPS, MS, copying_inside);
	open_batch(&g, 0);
	for (unsigned i = 0; i < 120; i++) {
		put_copy(&g, START + i * 50 * US, ns, bytes, memory);
		if (i % 40 == 39) { /* what fits into one */
			send_batch(&b, &g);
			open_batch(&g, g.first);
		}
	}
	b.now = START + STEPS * MS;
	return report_of(&b, NULL);
}

/* The agent goes on in a pause of --max-overhead: 40 of these copies, 0.8 ms, lie in the 2 ms that were recorded. */
Test(analyze, copies_in_a_pause)
{
	struct builder b;
	struct batch g;

	open_capture(&b, NEW);
	cr_assert_eq(
		xsp_capture_put_window(b.w, &(struct xsp_capture_window){START, START + 2 * MS}),
		0);
	put_steps(&b, 2, MS, copying_inside);
	open_batch(&g, 0);
	for (unsigned i = 0; i < 120; i++) {
		put_copy(&g, START + i * 50 * US, 20 * US, 1 << 20, 1);
		if (i % 40 == 39) {
			send_batch(&b, &g);
			open_batch(&g, g.first);
		}
	}
	b.now = START + STEPS * MS;
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "pageable-copy", XSP_SEVERITY_HIGH, 0.4);
	cr_expect_eq(number_of(value_of(f->figures, "copies")), 40);
	cr_expect_eq(number_of(value_of(f->figures, "bytes")), 40.0 * (1 << 20));
	xsp_report_free(r);
}

/* What copies say of their bytes is the target's: 120 times 2^62 are no sum, nor is 2^64 ns a time. */
Test(analyze, sums_that_are_too_much)
{
	struct builder b;
	struct batch g;

	struct xsp_report *r = copying(1ULL << 62, 20 * US, 1);
	const struct xsp_report_found *f = expect(r, "pageable-copy", XSP_SEVERITY_MEDIUM, 0.24);
	cr_expect_eq(value_of(f->figures, "bytes")->kind, XSP_CELL_ABSENT);
	const struct xsp_report_table *t =
		xsp_report_find_table(xsp_report_find_section(r, "gpu"), "copies");
	cr_assert_eq(xsp_report_row_count(t), 1);
	cr_expect_eq(xsp_report_row_at(t, 0)[3].kind, XSP_CELL_ABSENT, "bytes");
	cr_expect_eq(xsp_report_row_at(t, 0)[4].kind, XSP_CELL_ABSENT, "mean");
	cr_expect_eq(xsp_report_row_at(t, 0)[6].kind, XSP_CELL_ABSENT, "bandwidth");
	cr_expect_eq(value_of(xsp_report_find_section(r, "cuda"), "copied_bytes")->kind,
		     XSP_CELL_ABSENT);
	xsp_report_free(r);

	open_capture(&b, NEW);
	open_batch(&g, 0);
	put_kernel_name(&g);
	put_kernel(&g, START, START + MS);
	put_kernel(&g, START + MS, UINT64_MAX);
	send_batch(&b, &g);
	b.now = START + STEPS * MS;
	r = report_of(&b, NULL);
	t = xsp_report_find_table(xsp_report_find_section(r, "gpu"), "kernels");
	cr_assert_eq(xsp_report_row_count(t), 1);
	cr_expect_eq(xsp_report_row_at(t, 0)[2].integer, 1, "runs");
	cr_expect_eq(xsp_report_row_at(t, 0)[3].integer, MS, "total");
	xsp_report_free(r);
}

Test(analyze, copies)
{
	/* 120 calls of 5 us in 10 ms */
	struct xsp_report *r = copying(4096, US, 2);
	const struct xsp_report_found *f = expect(r, "small-copies", XSP_SEVERITY_LOW, 0.06);
	cr_expect_eq(number_of(value_of(f->figures, "copies")), 120);
	cr_expect_eq(number_of(value_of(f->figures, "bytes")), 120 * 4096);
	expect_none(r, "pageable-copy");
	xsp_report_free(r);
	r = copying(1 << 20, 20 * US, 1); /* 2.4 ms of 10 */
	f = expect(r, "pageable-copy", XSP_SEVERITY_MEDIUM, 0.24);
	cr_expect_eq(number_of(value_of(f->figures, "bytes")), 120.0 * (1 << 20));
	expect_near(number_of(value_of(f->figures, "bandwidth")), (1 << 20) / 20e-6, 1e3,
		    "bandwidth");
	expect_none(r, "small-copies");
	xsp_report_free(r);
	r = copying(1 << 20, 48 * US, 2); /* 48 of 50 us: the GPU is busy */
	expect_clean(r);
	xsp_report_free(r);
}

/* ---- pitfalls ---- */

/* Pitfall 7: rates are of the time that was recorded, 4 of 10 ms; and what was open at its ends is in no total. */
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
	const struct xsp_report_found *f = expect(r, "hot-operation", XSP_SEVERITY_HIGH, 0.4);
	cr_assert_not_null(f->finding.uncertain);
	cr_expect_not_null(strstr(f->finding.uncertain, "40 %"), "%s", f->finding.uncertain);
	const struct xsp_report_section *head = xsp_report_section_at(r, 0);
	cr_expect_str_eq(xsp_report_section_key(head), "recording");
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
	const struct xsp_report_section *head = xsp_report_section_at(r, 0);
	cr_expect_eq(number_of(value_of(head, "lost_entries")), 1234);
	xsp_report_free(r);
}

/* Of another profiler's trace nobody knows. */
Test(analyze, losses_that_are_not_known_are_not_said_to_be_none)
{
	struct builder b;

	open_capture(&b, BATCH);
	put_steps(&b, STEPS, MS, hot_inside);
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_section *head = xsp_report_section_at(r, 0);
	cr_expect_eq(value_of(head, "lost_entries")->kind, XSP_CELL_ABSENT);
	cr_expect_eq(value_of(head, "lost_exits")->kind, XSP_CELL_ABSENT);
	cr_expect_eq(value_of(head, "lost_other")->kind, XSP_CELL_ABSENT);
	cr_expect_eq(value_of(head, "start")->kind, XSP_CELL_ABSENT, "its clock began at 0");
	xsp_report_free(r);
}

/* What was called before probes were there is missing as well. */
Test(analyze, probes_that_came_late_are_said)
{
	struct builder b;
	const char *const *notes;

	open_capture(&b, BATCH);
	put_steps(&b, STEPS, MS, hot_inside);
	cr_assert_eq(xsp_capture_put_info(b.w, "libraries", "libm.so was attached to late"), 0);
	put_stats(&b, &(struct xsp_capture_stats){.events = 40});
	struct xsp_report *r = report_of(&b, NULL);
	cr_assert_eq(xsp_report_notes(xsp_report_section_at(r, 0), &notes), 1);
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
			expect(r, "hot-operation", XSP_SEVERITY_HIGH, 0.4)->finding.uncertain;
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
	const struct xsp_report_found *f = expect(r, "hot-operation", XSP_SEVERITY_HIGH, 0.4);
	cr_assert_not_null(f->finding.uncertain);
	cr_expect_not_null(strstr(f->finding.uncertain, "leaves out calls"), "%s",
			   f->finding.uncertain);
	cr_expect(had_no_data(r, "overhead"), "its figures are of the whole recording");
	xsp_report_free(r);
}

/* The program did something else for nine tenths of the time: of its steps' time it is as much as without that. */
Test(analyze, shares_are_of_steps_where_they_are_known)
{
	struct builder b;

	open_capture(&b, BATCH);
	put_lines(&b);
	put_steps(&b, STEPS, MS, loop_inside);
	b.now = START + 100 * MS;
	struct xsp_report *r = report_of(&b, NULL);
	expect(r, "python-loop", XSP_SEVERITY_MEDIUM, 0.15);
	const struct xsp_report_found *f = expect(r, "hot-operation", XSP_SEVERITY_MEDIUM, 0.15);
	cr_expect_not_null(strstr(f->finding.title, "of the time of steps"), "%s",
			   f->finding.title);
	xsp_report_free(r);
}

/* Time of many threads is no time of the program: a tenth of each of 8 is no eight tenths. */
Test(analyze, shares_of_several_threads)
{
	struct builder b;

	open_capture(&b, BATCH);
	for (uint32_t t = 0; t < 8; t++) {
		b.tid = 200 + t;
		call(&b, WORK, START, 9 * MS);
		call(&b, HOT, START + 9 * MS, MS - 1);
	}
	b.now = START + 10 * MS;
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *all;
	const size_t n = xsp_report_findings(r, &all);
	for (size_t i = 0; i < n; i++)
		cr_expect(strcmp(all[i].finding.subject, "work") != 0 ||
				  (all[i].finding.share > 0.89 && all[i].finding.share < 0.91),
			  "%s: %f", all[i].finding.title, all[i].finding.share);
	cr_expect_gt(n, 0);
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

static struct xsp_report *hand_made(const char *hostile)
{
	static const struct xsp_report_column columns[] = {
		{"name", "name", XSP_UNIT_TEXT, true},
		{"calls", "calls", XSP_UNIT_COUNT, false},
		{"share", "share", XSP_UNIT_SHARE, false},
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
		xsp_report_row(t, (const struct xsp_cell[]){xsp_cell_text(hostile),
							    xsp_cell_integer(1234 + i),
							    xsp_cell_real(0.125)});
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

/* A text behind another one is cut, too: names are whole where there is no terminal. */
Test(analyze, lines_do_not_wrap_on_a_terminal)
{
	static const struct xsp_report_column columns[] = {
		{"rule", "rule", XSP_UNIT_TEXT, true},
		{"title", "finding", XSP_UNIT_TEXT, false},
	};
	static const struct xsp_report_shape rows = {"section", "rows", "rows", columns, 2};
	char title[120];
	struct xsp_report *r;

	memset(title, 'x', sizeof(title) - 1);
	title[sizeof(title) - 1] = '\0';
	cr_assert_eq(xsp_report_new(&r), 0);
	struct xsp_report_table *t =
		xsp_report_table(xsp_report_section(r, "section", "Section"), &rows);
	xsp_report_row(
		t, (const struct xsp_cell[]){xsp_cell_text("hot-operation"), xsp_cell_text(title)});
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

/* Where names allow, 80 columns: what does not fit stands below. */
Test(analyze, text_is_80_columns_wide)
{
	struct builder b;

	open_waits(&b);
	put_steps(&b, STEPS, MS, hot_inside);
	put_times(&b, 100, START, START + 10 * MS, 2 * MS, XSP_WAIT_FAULT, MS);
	struct xsp_report *r = report_of(&b, NULL);
	char *text = written(r, xsp_report_write_text, &(struct xsp_report_how){.top = 20});
	for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"))
		cr_expect_leq(strlen(line), 80, "%s", line);
	free(text);
	xsp_report_free(r);
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
