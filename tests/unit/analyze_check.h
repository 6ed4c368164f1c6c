/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * analyze_check.h - captures with faults of a known size, and checks of what analyze reports on
 * them. Every step asserts. Sizes are counted by hand; a step takes 1 ms of the capture's clock.
 */
#ifndef XSP_TESTS_ANALYZE_CHECK_H
#define XSP_TESTS_ANALYZE_CHECK_H

#include "capture_builder.h"

#include "analysis/analyses.h"
#include "analysis/rules/rules.h"
#include "analysis/names/summary.h"
#include "base/text.h"

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

/* ---- captures ---- */

/* The last probe that it has: allocators make a capture one with --memory. */
static inline void open_capture(struct builder *b, uint32_t count)
{
	static const struct {
		const char *provider, *symbol, *name;
		enum xsp_probe_kind kind;
	} probes[PROBES] = {
		[RANGE] = {"record_function", "", "range", XSP_PROBE_ANNOTATION},
		[WORK] = {"function", "", "work", XSP_PROBE_FUNCTION},
		[HOT] = {"function", "", "hot", XSP_PROBE_FUNCTION},
		[ITEM] = {"torch", "", "aten::item", XSP_PROBE_FUNCTION},
		[SYNC] = {"cuda", "cudaStreamSynchronize", "cudaStreamSynchronize",
			  XSP_PROBE_FUNCTION},
		[MALLOC] = {"cuda", "cudaMalloc", "cudaMalloc", XSP_PROBE_FUNCTION},
		[COPY] = {"cuda", "cudaMemcpyAsync", "cudaMemcpyAsync", XSP_PROBE_FUNCTION},
		[INIT] = {"cuda", "cuInit", "cuInit", XSP_PROBE_FUNCTION},
		[BATCH] = {"gpu", "xsp_gpu_batch", "xsp_gpu_batch", XSP_PROBE_MARK},
		[NEW] = {"memory", "_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm", "New",
			 XSP_PROBE_MARK},
		[DELETE] = {"memory", "_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv", "Delete",
			    XSP_PROBE_MARK},
	};

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

static inline void call(struct builder *b, uint32_t probe, uint64_t from, uint64_t ns)
{
	b->now = from;
	entry(b, probe, SP - 0x1000);
	b->now = from + ns;
	leave(b, probe, SP - 0x1000);
}

static inline void enter_range(struct builder *b, const char *text, uint64_t from, uint64_t sp)
{
	const uint64_t hash = xsp_text_hash(text, strlen(text));

	b->now = from;
	name(b, hash, text, 0);
	b->now = from;
	begin(b, RANGE, sp, hash);
}

static inline void leave_range(struct builder *b, uint64_t at, uint64_t sp)
{
	b->now = at;
	end(b, RANGE, sp);
}

/* Consecutive steps of `ns` each; `inside` makes what is in one of them. */
typedef void inside_fn(struct builder *b, uint64_t at, unsigned step);
static inline void put_steps(struct builder *b, unsigned count, uint64_t ns, inside_fn *inside)
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

static inline void put_stats(struct builder *b, const struct xsp_capture_stats *stats)
{
	cr_assert_eq(xsp_capture_put_stats(b->w, stats), 0);
}

/* ---- what steps have inside ---- */

static inline void hot_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	call(b, HOT, at, 400 * US);
	call(b, WORK, at + 500 * US, 90 * US);
}

static inline void cool_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	call(b, HOT, at, 95 * US);
	call(b, WORK, at + 500 * US, 90 * US);
}

/* ---- threads that wait ---- */

static inline void put_times(struct builder *b, uint32_t tid, uint64_t since, uint64_t until,
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

/* The rest: a futex without a known waker. */
static inline void put_wait_of(struct builder *b, uint32_t tid, uint64_t at, uint64_t ns,
			       struct xsp_event_wait e)
{
	e.head = (struct xsp_event){.kind = XSP_EVENT_WAIT, .probe = UINT32_MAX};
	e.left_ns = at;
	e.woken_ns = at + ns;
	e.syscall = e.syscall != 0 ? e.syscall : 202;
	b->tid = tid;
	b->now = at + ns;
	builder_put(b, &e, sizeof(e));
	b->tid = 100;
}

static inline void put_wait(struct builder *b, uint32_t tid, uint64_t at, uint64_t ns,
			    uint32_t owner, enum xsp_wait_class why)
{
	put_wait_of(
		b, tid, at, ns,
		(struct xsp_event_wait){.argument = 0x1000, .owner = owner, .why = (uint8_t)why});
}

static inline void put_thread(struct builder *b, uint32_t tid, const char *name)
{
	cr_assert_eq(xsp_capture_put_thread(
			     b->w,
			     &(struct xsp_capture_thread){
				     .pid = 100, .tid = tid, .ns_tid = tid, .comm = (char *)name}),
		     0);
}

static inline void open_waits(struct builder *b)
{
	open_capture(b, BATCH);
	cr_assert_eq(xsp_capture_put_info(b->w, "waits", "10"), 0);
	for (uint32_t tid = 100; tid < 103; tid++)
		put_thread(b, tid, tid == 100 ? "main" : "worker");
}

/* ---- reports ---- */

static inline struct xsp_report *report_of(struct builder *b, const struct xsp_analyze_options *o)
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
static inline const struct xsp_report_found *found(const struct xsp_report *r, const char *rule,
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

static inline const struct xsp_cell *value_of(const struct xsp_report_section *s, const char *key)
{
	const struct xsp_report_figure *values;
	const size_t n = xsp_report_values(s, &values);

	for (size_t i = 0; i < n; i++)
		if (strcmp(values[i].key, key) == 0)
			return &values[i].value;
	cr_assert_fail("no value %s", key);
	return NULL;
}

static inline double number_of(const struct xsp_cell *c)
{
	cr_assert(c->kind == XSP_CELL_INTEGER || c->kind == XSP_CELL_REAL);
	return c->kind == XSP_CELL_INTEGER ? (double)c->integer : c->real;
}

static inline void expect_near(double got, double wanted, double off, const char *what)
{
	cr_expect(got >= wanted - off && got <= wanted + off, "%s: %.9g, not %.9g", what, got,
		  wanted);
}

static inline const struct xsp_report_found *expect(const struct xsp_report *r, const char *rule,
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

static inline void expect_none(const struct xsp_report *r, const char *rule)
{
	const struct xsp_report_found *f = found(r, rule, NULL);

	cr_expect_null(f, "%s: %s", rule, f != NULL ? f->finding.title : "");
}

static inline void expect_clean(const struct xsp_report *r)
{
	const struct xsp_report_found *all;
	const size_t n = xsp_report_findings(r, &all);

	cr_expect_eq(n, 0, "%s: %s", n > 0 ? all[0].finding.rule : "",
		     n > 0 ? all[0].finding.title : "");
}

/* What the table of rules says that the rule lacks; NULL: it had data. */
static inline const char *needs_of(const struct xsp_report *r, const char *rule)
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

static inline bool had_no_data(const struct xsp_report *r, const char *rule)
{
	return needs_of(r, rule) != NULL;
}

/* Samples every 10 ms, with one word of a section. */
static inline void put_sampled(struct builder *b, unsigned count, uint64_t code,
			       struct xsp_section section, uint64_t word)
{
	struct {
		struct xsp_event_sample e;
		struct xsp_section section;
		uint64_t word;
	} u = {.e = {.head = {.kind = XSP_EVENT_SAMPLE,
			      .probe = UINT32_MAX,
			      .flags = XSP_EVENT_SECTIONS,
			      .sp = SP - 0x3000},
		     .address = code,
		     .period_ns = 10 * MS,
		     .syscall = -2},
	       .section = section,
	       .word = word};

	for (unsigned i = 0; i < count; i++) {
		b->now += 10 * MS;
		builder_put(b, &u, sizeof(u));
	}
}

/* The summary's text of a capture that has ended. */
static inline char *summary_of(const char *path)
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

#endif
