/* SPDX-License-Identifier: BSD-2-Clause */
/* Comparing: a planted change is found and named. Chance, a busy machine and drift are not mistaken
 * for one. */
#include <criterion/criterion.h>
#include <math.h>

#include "analysis/compare/compare.h"
#include "base/text.h"
#include "capture_builder.h"
#include "report/report_private.h"

#define STEP_NS 1000000.0
#define OPERATORS 5U /* f1 to f5; probe 0 opens the steps */
#define KERNELS 6U /* k1 to k6 */

/* What a run is like. */
struct plan {
	uint64_t seed;
	unsigned steps;
	double factor[OPERATORS + 1]; /* by probe, 0 means 1; [0]: of all of them */
	double noise; /* standard deviation of a call's logarithm */
	/* share of the steps during which another program takes the CPU, as much again */
	double busy;
	bool waits; /* and the capture says so: that time is ready time without a CPU */
	double drift; /* of all, over the run */
	int64_t leak; /* bytes a step */
	uint64_t spike; /* additional bytes, in four steps in the middle */
	uint64_t worker; /* bytes of a process that lives for ten steps; then the next one starts */
	uint64_t base; /* resident bytes */
	uint64_t
		/* resident bytes, instead: this many in each step, and half of them after it */
		exact;
	bool once; /* or from the first step on all the time */
	uint64_t lost; /* events */
	unsigned only_from; /* f5 is called from this step on; 0: from the first */
	bool without_5;
	unsigned calls; /* of f4, a step; 0: one */
	unsigned kernels; /* how many there are */
	unsigned on_device_1; /* this many of them, from the last one on, run on device 1 */
	double kernel[KERNELS]; /* factor of each, 0: 1 */
	double clock[2]; /* of each device: factor of all its kernels, 0: 1 */
};

static double uniform(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return ((double)(*state >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(uint64_t *state)
{
	const double r = sqrt(-2 * log(uniform(state)));

	return r * cos(2 * 3.14159265358979 * uniform(state));
}

static void put_memory(struct builder *b, uint64_t resident)
{
	struct {
		struct xsp_event head;
		struct xsp_section section;
		struct xsp_process_memory memory;
	} e = {.head = {.kind = XSP_EVENT_MEMORY, .probe = UINT32_MAX, .flags = XSP_EVENT_SECTIONS},
	       .section = {.type = XSP_SECTION_PROCESS_MEMORY,
			   .size = sizeof(struct xsp_section) + sizeof(struct xsp_process_memory)},
	       .memory = {.resident = resident, .anonymous = resident, .peak = resident}};

	builder_put(b, &e, sizeof(e));
}

/* The thread waits for a CPU. */
static void put_ready(struct builder *b, uint64_t ns)
{
	struct xsp_event_wait e = {.head = {.kind = XSP_EVENT_WAIT, .probe = UINT32_MAX},
				   .left_ns = b->now,
				   .syscall = -1,
				   .why = XSP_WAIT_RUNNABLE};

	b->now += ns;
	if (ns > 0)
		builder_put(b, &e, sizeof(e));
}

/* `taken`: how much longer it lasts because another program has the CPU. */
static void put_operator(struct builder *b, const struct plan *p, uint32_t probe, double all,
			 double taken, uint64_t *state)
{
	static const double shares[OPERATORS + 1] = {0, 0.35, 0.25, 0.2, 0.1, 0.05};
	const double factor = p->factor[probe] > 0 ? p->factor[probe] : 1;
	const double ns = STEP_NS * shares[probe] * factor * all * exp(p->noise * normal(state));

	entry(b, probe, 5000);
	b->now += (uint64_t)(p->waits ? ns : ns * taken);
	if (p->waits)
		put_ready(b, (uint64_t)(ns * (taken - 1)));
	leave(b, probe, 5000);
}

static void put_step(struct builder *b, const struct plan *p, unsigned i, uint64_t *state)
{
	const double own = (p->factor[0] > 0 ? p->factor[0] : 1) * (1 + p->drift * i / p->steps);
	const double taken = uniform(state) < p->busy ? 1 + uniform(state) : 1, all = own * taken;
	char text[32];

	snprintf(text, sizeof(text), "ProfilerStep#%u", i);
	const uint64_t hash = xsp_text_hash(text, strlen(text));
	name(b, hash, text, 0);
	begin(b, 0, 9000, hash);
	for (uint32_t probe = 1; probe <= OPERATORS; probe++)
		for (unsigned k = 0; k < (probe == 4 && p->calls > 0 ? p->calls : 1); k++)
			if (probe < 5 || (!p->without_5 && i >= p->only_from))
				put_operator(b, p, probe, own, taken, state);
	b->now += (uint64_t)(STEP_NS * 0.05 * (p->waits ? own : all));
	if (p->waits)
		put_ready(b, (uint64_t)(STEP_NS * 0.05 * (all - own)));
	end(b, 0, 9000);
	b->now += 1000;
	if (p->exact > 0) {
		if (!p->once || i == 0)
			put_memory(b, p->exact);
		if (!p->once)
			put_memory(b, p->exact / 2);
		return;
	}
	put_memory(b, p->base + (uint64_t)(p->leak * (int64_t)i) +
			      (uint64_t)(1e6 * uniform(state)) +
			      (i / 4 == p->steps / 8 ? p->spike : 0));
	if (p->worker > 0 && (i % 10 == 0 || i % 10 == 9)) {
		const uint32_t pid = b->pid;
		b->pid = 5000 + i / 10;
		put_memory(b, i % 10 == 0 ? p->worker : 0);
		b->pid = pid;
	}
}

/* 400 launches of each, in turn over the whole recording. The GPU is timed more evenly than the
 * CPU. */
static void put_kernels(const struct xsp_timeline_sink *sink, const struct plan *p, uint64_t to_ns)
{
	static const char *const names[KERNELS] = {"k1", "k2", "k3", "k4", "k5", "k6"};
	uint64_t state = p->seed * 104729 + 7;

	for (unsigned i = 0; i < 400 * p->kernels; i++) {
		const unsigned k = i % p->kernels, device = k >= p->kernels - p->on_device_1;
		const double factor = p->kernel[k] > 0 ? p->kernel[k] : 1,
			     clock = p->clock[device] > 0 ? p->clock[device] : 1;
		struct xsp_gpu_activity a = {.kind = XSP_GPU_IS_KERNEL,
					     .name = names[k],
					     .device = device,
					     .start_ns = 1000 +
							 (to_ns - 1000) / (400 * p->kernels) * i};
		a.end_ns = a.start_ns + (uint64_t)(20000 * (k + 1) * factor * clock *
						   exp(p->noise * normal(&state)));
		cr_assert_eq(sink->gpu(sink->ctx, &a), 0);
	}
}

/* Ends the capture and reads it. p: the plan of the kernels, or NULL. */
static struct xsp_series *read_series(struct builder *b, const struct plan *p)
{
	struct xsp_capture_reader *r;
	struct xsp_timeline *t;
	struct xsp_series *s;
	struct xsp_error err = {0};

	builder_end(b);
	cr_assert_eq(xsp_capture_open(b->path, &r, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_timeline_new(r, &t, &err), 0);
	cr_assert_eq(xsp_series_new(t, &s), 0);
	const struct xsp_timeline_sink sink = xsp_series_sink(s);
	cr_assert_eq(xsp_timeline_run(t, &sink, 1, &err), 0);
	if (p != NULL)
		put_kernels(&sink, p, b->now);
	xsp_series_end(s);
	xsp_timeline_free(t);
	xsp_capture_close(r);
	unlink(b->path);
	return s;
}

static struct xsp_series *series_of(const struct plan *p)
{
	struct builder b;
	uint64_t state = p->seed * 7919 + 1;

	builder_begin(&b, OPERATORS + 1);
	if (p->waits)
		cr_assert_eq(xsp_capture_put_info(b.w, "waits", "10"), 0);
	for (unsigned i = 0; i < p->steps; i++)
		put_step(&b, p, i, &state);
	if (p->waits) {
		struct xsp_event_times e = {.head = {.kind = XSP_EVENT_TIMES, .probe = UINT32_MAX},
					    .since_ns = 1000,
					    .running_ns = 1000000,
					    .runnable_ns = (uint64_t)(1000000 * p->busy / 2)};
		builder_put(&b, &e, sizeof(e));
	}
	return read_series(&b, p);
}

#define MOST 8

/* Two sides. */
struct setting {
	struct xsp_compare_capture captures[2][MOST];
	struct xsp_compare_side sides[2];
	struct xsp_report *report;
	unsigned found;
};

static void add(struct setting *s, unsigned side, const struct plan *p)
{
	s->captures[side][s->sides[side].count++] = (struct xsp_compare_capture){
		.path = "run.xspt",
		.command = "train",
		.host = "here",
		.version = "1",
		.filters = "min-duration 0 ns, max-depth 0, threads 0, names 0",
		.series = series_of(p),
		.lost = p->lost};
	s->sides[side].captures = s->captures[side];
}

static void compare(struct setting *s)
{
	cr_assert_eq(xsp_report_new(&s->report), 0);
	cr_assert_eq(xsp_compare(s->sides, 2, 0.05, s->report, &s->found), 0);
}

static void compare_plans(struct setting *s, const struct plan *a, const struct plan *b)
{
	*s = (struct setting){0};
	add(s, 0, a);
	add(s, 1, b);
	compare(s);
}

static void add_three(struct setting *s, unsigned side, struct plan p)
{
	for (unsigned i = 0; i < 3; i++, p.seed += 10)
		add(s, side, &p);
}

static void clear(struct setting *s)
{
	for (unsigned side = 0; side < 2; side++)
		for (size_t i = 0; i < s->sides[side].count; i++)
			xsp_series_free((struct xsp_series *)s->captures[side][i].series);
	xsp_report_free(s->report);
}

/* The cell of a column in the row with that name; absent: there is no such row. */
static struct xsp_cell cell(const struct setting *s, const char *section, const char *table,
			    const char *row, const char *key)
{
	const struct xsp_report_section *in = xsp_report_find_section(s->report, section);
	const struct xsp_report_table *t = in != NULL ? xsp_report_find_table(in, table) : NULL;
	const size_t n = t != NULL ? t->shape->count : 0;

	for (size_t i = 0; t != NULL && i < xsp_report_row_count(t); i++) {
		const struct xsp_cell *cells = xsp_report_row_at(t, i);
		for (size_t k = 0; k < n && strcmp(cells[0].text, row) == 0; k++)
			if (strcmp(t->shape->columns[k].key, key) == 0)
				return cells[k];
	}
	return (struct xsp_cell){0};
}

static const char *verdict(const struct setting *s, const char *section, const char *table,
			   const char *row)
{
	const struct xsp_cell c = cell(s, section, table, row, "verdict");

	return c.kind == XSP_CELL_TEXT ? c.text : "no row";
}

/* The number of rows with a verdict: slower, faster, more, less, new or gone. */
static unsigned verdicts(const struct setting *s)
{
	static const char *const words[] = {"slower",	  "faster",	"more", "less",
					    "grows more", "grows less", "new",	"gone"};
	unsigned n = 0;

	for (size_t i = 0; i < s->report->section_count; i++) {
		const struct xsp_report_section *in = s->report->sections[i];
		for (size_t k = 0; k < in->table_count; k++) {
			const struct xsp_report_table *t = in->tables[k];
			for (size_t row = 0; row < xsp_report_row_count(t); row++)
				for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++)
					n += xsp_report_row_at(t, row)[2].kind == XSP_CELL_TEXT &&
					     strcmp(xsp_report_row_at(t, row)[2].text, words[w]) ==
						     0;
		}
	}
	return n;
}

static size_t findings(const struct setting *s, const struct xsp_report_found **out)
{
	return xsp_report_findings(s->report, out);
}

static const struct plan usual = {
	.seed = 1, .steps = 60, .noise = 0.02, .busy = 0.1, .base = 100 << 20};

Test(compare, a_slower_operator_is_named)
{
	const struct xsp_report_found *found;
	struct plan b = usual;
	struct setting s;

	b.seed = 2;
	b.factor[2] = 1.1;
	compare_plans(&s, &usual, &b);
	cr_expect_str_eq(verdict(&s, "operators", "in_step", "f2"), "slower");
	cr_expect_str_eq(verdict(&s, "operators", "call", "f2"), "slower");
	cr_expect_eq(verdicts(&s), 2, "%u", verdicts(&s));
	const struct xsp_cell change = cell(&s, "operators", "in_step", "f2", "change");
	cr_expect(change.kind == XSP_CELL_REAL && fabs(change.real - 0.1) < 0.02, "%f",
		  change.real);
	cr_expect(cell(&s, "operators", "in_step", "f2", "low").real > 0.05);
	cr_expect(cell(&s, "operators", "in_step", "f2", "high").real < 0.15);
	/* 10 % of a fourth of the step */
	cr_expect_str_eq(verdict(&s, "steps", "step", "step"), "same");
	cr_expect_eq(s.found, XSP_COMPARE_SLOWER);
	cr_assert_eq(findings(&s, &found), 1);
	cr_expect_str_eq(found[0].finding.rule, "slower");
	cr_expect_str_eq(found[0].finding.subject, "f2");
	cr_expect_null(found[0].finding.uncertain);
	clear(&s);

	compare_plans(&s, &b, &usual); /* the other way round */
	cr_expect_str_eq(verdict(&s, "operators", "in_step", "f2"), "faster");
	cr_expect_eq(s.found, 0);
	clear(&s);
}

Test(compare, a_slower_step)
{
	struct plan b = usual;
	struct setting s;

	b.seed = 2;
	b.factor[1] = 1.4;
	compare_plans(&s, &usual, &b);
	cr_expect_str_eq(verdict(&s, "steps", "step", "step"), "slower");
	cr_expect_str_eq(verdict(&s, "operators", "in_step", "f1"), "slower");
	cr_expect_str_eq(verdict(&s, "operators", "in_step", "f3"), "same");
	clear(&s);
}

/* Called twice: the step becomes longer, the call does not. */
Test(compare, more_calls)
{
	struct plan b = usual;
	struct setting s;

	b.seed = 2;
	b.calls = 2;
	compare_plans(&s, &usual, &b);
	cr_expect_str_eq(verdict(&s, "operators", "in_step", "f4"), "slower");
	cr_expect_str_eq(verdict(&s, "operators", "call", "f4"), "same");
	cr_expect(fabs(cell(&s, "operators", "in_step", "f4", "calls_b").real - 2) < 1e-9);
	clear(&s);
}

/* 100 comparisons of one program with itself, on machines of all kinds: not more than 5 may have any verdict. */
/* The loop is gone, and one call does the work of eight: the call is longer, and nothing is
 * slower. */
Test(compare, fewer_and_larger_calls)
{
	const struct xsp_report_found *found;
	struct plan a = usual, b = usual;
	struct setting s;

	a.calls = 8;
	b.seed = 2;
	b.factor[4] = 4;
	compare_plans(&s, &a, &b);
	cr_expect_str_eq(verdict(&s, "operators", "in_step", "f4"), "faster");
	cr_expect_str_eq(verdict(&s, "operators", "call", "f4"), "slower");
	cr_expect_eq(findings(&s, &found), 0);
	cr_expect_eq(s.found, 0, "nothing for --fail-on");
	clear(&s);
	compare_plans(&s, &b, &a); /* the other way round, a step is slower */
	cr_expect_eq(s.found, XSP_COMPARE_SLOWER);
	clear(&s);
}

Test(compare, no_verdict_between_repeats)
{
	static const struct plan kinds[] = {
		{.steps = 60, .noise = 0.02, .busy = 0.1, .base = 100 << 20},
		{.steps = 200, .noise = 0.1, .busy = 0.4, .base = 100 << 20},
		{.steps = 20, .noise = 0.05, .busy = 0.2, .base = 100 << 20},
		{.steps = 100, .noise = 0.03, .busy = 0.2, .drift = 0.3, .base = 100 << 20},
	};
	unsigned wrong = 0, all = 0;

	for (unsigned kind = 0; kind < 4; kind++)
		for (unsigned i = 0; i < 25; i++, all++) {
			struct plan a = kinds[kind], b = kinds[kind];
			struct setting s;
			a.seed = 1000 * kind + 2 * i + 1;
			b.seed = a.seed + 1;
			compare_plans(&s, &a, &b);
			wrong += verdicts(&s) > 0;
			clear(&s);
		}
	cr_log_info("%u of %u with a verdict", wrong, all);
	cr_expect_leq(wrong, 5);
}

/* One recording on each side cannot tell a busier machine from a slower program; three can. */
Test(compare, a_slower_machine)
{
	struct plan b = usual;
	struct setting s;

	b.seed = 2;
	b.factor[0] = 1.3;
	compare_plans(&s, &usual, &b);
	cr_expect_eq(verdicts(&s), 0, "%u", verdicts(&s));
	cr_expect_str_eq(verdict(&s, "operators", "in_step", "f1"), "none: all alike");
	cr_expect_str_eq(verdict(&s, "steps", "step", "step"), "none: all alike");
	clear(&s);

	s = (struct setting){0};
	for (unsigned i = 0; i < 3; i++) {
		struct plan a = usual;
		a.seed = 10 + i;
		b.seed = 20 + i;
		add(&s, 0, &a);
		add(&s, 1, &b);
	}
	compare(&s);
	cr_expect_str_eq(verdict(&s, "steps", "step", "step"), "slower");
	clear(&s);
}

/* Repeats differ more than their steps do: the interval is over repeats. */
Test(compare, repeats_that_differ)
{
	struct setting s = {0};

	for (unsigned i = 0; i < 8; i++) {
		struct plan p = usual;
		p.seed = i + 1;
		p.factor[0] = 1 + 0.3 * (i % 4); /* both sides have all of them */
		add(&s, i / 4, &p);
	}
	compare(&s);
	cr_expect_eq(verdicts(&s), 0, "%u", verdicts(&s));
	cr_expect_str_eq(verdict(&s, "steps", "step", "step"), "none: noise");
	clear(&s);
}

/* Three runs on each side, on a machine that is slower in some runs. */
static void three_a_side(struct setting *s, uint64_t seed, double f2)
{
	uint64_t state = seed * 104729 + 1;

	*s = (struct setting){0};
	for (unsigned i = 0; i < 6; i++) {
		struct plan p = usual;
		p.seed = seed * 6 + i;
		p.factor[0] = exp(0.04 * normal(&state));
		p.factor[2] = i < 3 ? 1 : f2;
		add(s, i / 3, &p);
	}
	compare(s);
}

/* Alone, a tenth is within the differences between runs. Next to the other operators it is not, and
 * those do not count as slower for it. */
Test(compare, few_repeats_of_a_restless_machine)
{
	unsigned found = 0, wrong = 0;
	struct setting s;

	for (uint64_t i = 1; i <= 20; i++) {
		three_a_side(&s, i, 1.15);
		found += strcmp(verdict(&s, "operators", "in_step", "f2"), "slower") == 0;
		cr_expect_str_neq(verdict(&s, "operators", "in_step", "f1"), "slower");
		cr_expect_str_neq(verdict(&s, "operators", "in_step", "f3"), "faster");
		clear(&s);
		three_a_side(&s, i + 100, 1);
		wrong += verdicts(&s) > 0;
		clear(&s);
	}
	cr_expect_geq(found, 18, "%u of 20", found);
	cr_expect_eq(wrong, 0, "%u of 20", wrong);
}

/* Runs on a machine that is slower in some, and where in one of sixteen another program has the CPU half
 * of the time, and the caches; f2 takes `f2` times as long in B. */
static void noisy_sides(struct setting *s, unsigned captures, uint64_t seed, double f2)
{
	uint64_t state = seed * 104729 + 1;

	*s = (struct setting){0};
	for (unsigned i = 0; i < 2 * captures; i++) {
		struct plan p = usual;
		p.seed = seed * 16 + i;
		p.factor[0] = exp(0.04 * normal(&state));
		for (unsigned k = 1; k <= OPERATORS; k++)
			p.factor[k] = exp(0.01 * normal(&state));
		p.factor[2] *= i < captures ? 1 : f2;
		p.waits = true;
		if (uniform(&state) < 1.0 / 16) {
			p.factor[0] *= 1 + 0.5 * uniform(&state);
			p.busy = 0.9;
			p.noise = 0.08;
		}
		add(s, i / captures, &p);
	}
	compare(s);
}

/* Of 40 comparisons with a fifth more of one operator, and 40 of a program with itself. */
Test(compare, more_captures_find_more)
{
	static const unsigned captures[] = {1, 3, 5}, least[] = {34, 38, 39};
	unsigned before = 0;

	for (unsigned n = 0; n < 3; n++) {
		unsigned found = 0, wrong = 0;
		struct setting s;
		for (uint64_t i = 1; i <= 40; i++) {
			noisy_sides(&s, captures[n], 1000 * n + i, 1.2);
			found += strcmp(verdict(&s, "operators", "in_step", "f2"), "slower") == 0;
			clear(&s);
			noisy_sides(&s, captures[n], 1000 * n + i + 500, 1);
			wrong += verdicts(&s) > 0;
			clear(&s);
		}
		cr_log_info("%u a side: found in %u of 40, wrong in %u", captures[n], found, wrong);
		cr_expect_geq(found, least[n], "%u a side: found in %u of 40", captures[n], found);
		cr_expect_eq(wrong, 0, "%u a side: wrong in %u of 40", captures[n], wrong);
		cr_expect_geq(found, before, "more captures, less found: %u, then %u", before,
			      found);
		before = found;
	}
}

/* Four of a side, of which one waited for a CPU for a third of the time: it is dropped, and the top
 * says so. Of three, none is. */
Test(compare, a_disturbed_capture_is_dropped)
{
	for (unsigned captures = 3; captures <= 4; captures++) {
		struct setting s = {0};
		bool said = false;
		for (unsigned i = 0; i < 2 * captures; i++) {
			struct plan p = usual;
			p.seed = 50 + i;
			p.waits = true;
			p.busy = i == 1 ? 0.9 : 0.1;
			add(&s, i / captures, &p);
		}
		compare(&s);
		const struct xsp_report_section *head =
			xsp_report_find_section(s.report, "compared");
		for (size_t i = 0; i < head->note_count; i++)
			said = said || strstr(head->notes[i], "1 capture was dropped") != NULL;
		cr_expect_eq(said, captures == 4, "of %u a side", captures);
		clear(&s);
	}
}

Test(compare, new_and_gone)
{
	struct plan b = usual, seldom = usual;
	struct setting s;

	b.without_5 = true;
	b.seed = 2;
	compare_plans(&s, &usual, &b);
	cr_expect_str_eq(verdict(&s, "operators", "call", "f5"), "gone");
	cr_expect_eq(verdicts(&s), 1);
	clear(&s);
	compare_plans(&s, &b, &usual);
	cr_expect_str_eq(verdict(&s, "operators", "call", "f5"), "new");
	clear(&s);

	seldom.seed = 3;
	seldom.only_from = 58; /* in two steps of sixty */
	compare_plans(&s, &b, &seldom);
	cr_expect_str_eq(verdict(&s, "operators", "call", "f5"), "none: seldom");
	clear(&s);
}

Test(compare, too_little_to_tell)
{
	struct plan a = usual, b = usual;
	struct setting s;

	a.steps = b.steps = 8;
	b.factor[1] = 3;
	compare_plans(&s, &a, &b);
	cr_expect_str_eq(verdict(&s, "steps", "step", "step"), "none: few");
	clear(&s);

	a = b = (struct plan){.steps = 60, .base = 1 << 20}; /* all steps are equally long */
	b.factor[1] = 1.2;
	compare_plans(&s, &a, &b);
	cr_expect_str_eq(verdict(&s, "steps", "step", "step"), "none: no spread");
	clear(&s);
}

/* Without steps calls are compared. */
Test(compare, a_leak)
{
	const struct xsp_report_found *found;
	struct plan b = usual;
	struct setting s;

	b.seed = 2;
	b.leak = 1 << 20;
	compare_plans(&s, &usual, &b);
	cr_expect_str_eq(verdict(&s, "memory", "growth", "resident memory"), "grows more");
	const struct xsp_cell change = cell(&s, "memory", "growth", "resident memory", "change");
	cr_expect(fabs(change.real / (1 << 20) - 1) < 0.1, "%f", change.real);
	cr_expect_eq(s.found, XSP_COMPARE_MEMORY);
	cr_assert_eq(findings(&s, &found), 1);
	cr_expect_str_eq(found[0].finding.rule, "leak");
	cr_expect_eq(found[0].finding.severity, XSP_SEVERITY_HIGH);
	clear(&s);
	compare_plans(&s, &b, &b); /* the same leak on both sides */
	cr_expect_eq(verdicts(&s), 0);
	clear(&s);
}

/* Every step allocates the same amount at "same". If that place is met first, it is followed; after
 * 4,096 other places it is not. */
static struct xsp_series *series_of_places(bool first)
{
	struct builder b;
	struct {
		struct xsp_event head;
		struct xsp_section section;
		uint64_t words[2];
	} e = {.head = {.kind = XSP_EVENT_MEMORY,
			.probe = 1,
			.sp = 4000,
			.flags = XSP_EVENT_SECTIONS},
	       .section = {.type = XSP_SECTION_WORDS, .size = sizeof(e.section) + 16},
	       .words = {0x10000, 64}};

	builder_begin(&b, 1);
	const struct xsp_capture_probe new = {.id = 1,
					      .module = UINT32_MAX,
					      .kind = XSP_PROBE_MARK,
					      .provider = "memory",
					      .symbol =
						      "_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm",
					      .name = "New"};
	cr_assert_eq(xsp_capture_put_probe(b.w, &new), 0);
	for (unsigned i = 0; i < 4096 + 400; i++) {
		char text[32];
		const bool step = first ? i < 400 : i >= 4096;
		snprintf(text, sizeof(text), step ? "same" : "place %u", i);
		const uint64_t hash = xsp_text_hash(text, strlen(text));
		name(&b, hash, text, 0);
		begin(&b, 0, 9000, hash);
		e.words[0] += 0x100000;
		e.words[1] = step ? 1 << 20 : 64;
		builder_put(&b, &e, sizeof(e));
		end(&b, 0, 9000);
		b.now += step ? 1000000 : 100;
	}
	return read_series(&b, NULL);
}

/* A place that is not followed on one side has not stopped growing there. */
Test(compare, more_places_than_are_followed)
{
	struct setting s = {0};
	const char *const *notes;
	bool said = false;

	for (unsigned side = 0; side < 2; side++) {
		s.captures[side][0] = (struct xsp_compare_capture){
			.path = "run.xspt",
			.command = "train",
			.host = "here",
			.version = "1",
			.filters = "",
			.series = series_of_places(side == 1),
		};
		s.sides[side] = (struct xsp_compare_side){.captures = s.captures[side], .count = 1};
	}
	compare(&s);
	cr_expect_str_eq(verdict(&s, "memory", "growth", "same"), "no row");
	cr_expect_eq(findings(&s, &(const struct xsp_report_found *){NULL}), 0);
	const size_t n = xsp_report_notes(xsp_report_find_section(s.report, "compared"), &notes);
	for (size_t i = 0; i < n; i++)
		said = said || strstr(notes[i], "more places than are followed") != NULL;
	cr_expect(said);
	clear(&s);
}

/* A process runs out of memory at its maximum, however short that lasts. */
Test(compare, the_most_memory_is_the_most_that_there_was)
{
	struct plan b = usual;
	struct setting s;

	b.seed = 2;
	b.spike = 200 << 20;
	compare_plans(&s, &usual, &b);
	cr_expect_float_eq(cell(&s, "memory", "peak", "resident memory", "a").real / (1 << 20), 101,
			   1);
	cr_expect_float_eq(cell(&s, "memory", "peak", "resident memory", "b").real / (1 << 20), 301,
			   1);
	cr_expect_str_eq(verdict(&s, "memory", "peak", "resident memory"), "none: peak");
	clear(&s);
}

/* If every step needs as much as the one before, these are as many repeats. An allocation made once
 * is one. */
Test(compare, memory_that_is_the_same_in_every_step)
{
	struct plan a = usual, b = usual;
	struct setting s;

	a.exact = 50 << 20;
	b.exact = 80 << 20;
	b.seed = 2;
	compare_plans(&s, &a, &b);
	cr_expect_str_eq(verdict(&s, "memory", "peak", "resident memory"), "more");
	cr_expect_float_eq(cell(&s, "memory", "peak", "resident memory", "change").real, 0.6, 1e-6);
	cr_expect_eq(s.found, XSP_COMPARE_MEMORY);
	clear(&s);
	compare_plans(&s, &b, &a);
	cr_expect_str_eq(verdict(&s, "memory", "peak", "resident memory"), "less");
	clear(&s);
	b.exact = a.exact;
	compare_plans(&s, &a, &b);
	cr_expect_str_eq(verdict(&s, "memory", "peak", "resident memory"), "same");
	clear(&s);

	b.exact = 80 << 20;
	a.once = b.once = true;
	compare_plans(&s, &a, &b);
	cr_expect_str_eq(verdict(&s, "memory", "peak", "resident memory"), "none: once");
	cr_expect_eq(s.found, 0);
	clear(&s);
	s = (struct setting){0};
	add_three(&s, 0, a);
	add_three(&s, 1, b);
	compare(&s);
	cr_expect_str_eq(verdict(&s, "memory", "peak", "resident memory"), "more");
	clear(&s);
}

/* Workers that follow each other are not there at the same time. */
Test(compare, memory_of_what_has_ended_is_over)
{
	struct plan b = usual;
	struct setting s;

	b.seed = 2;
	b.worker = 300 << 20;
	compare_plans(&s, &usual, &b);
	cr_expect_float_eq(cell(&s, "memory", "peak", "resident memory", "b").real / (1 << 20), 401,
			   1);
	cr_expect_eq(s.found & XSP_COMPARE_NEW_BOTTLENECK, 0);
	cr_expect_str_neq(verdict(&s, "memory", "growth", "resident memory"), "grows more");
	clear(&s);
}

/* A program that freed memory before, and has nothing to free now, leaks nothing. */
Test(compare, no_leak_where_nothing_grows)
{
	const struct xsp_report_found *found;
	struct plan a = usual, b = usual;
	struct setting s;

	a.base = 200 << 20;
	a.leak = -(1 << 20);
	b.seed = 2;
	compare_plans(&s, &a, &b);
	cr_expect_str_eq(verdict(&s, "memory", "growth", "resident memory"), "none: no growth");
	cr_expect_eq(findings(&s, &found), 0);
	cr_expect_eq(s.found, 0);
	clear(&s);
}

/* ---- kernels ---- */

/* The change in % that the note on what most kernels did states; NAN: there is no such note.
 * `whose`: what follows "most kernels" in it. */
static double told_of_kernels(const struct setting *s, const char *whose)
{
	const char *const *notes;
	const size_t n = xsp_report_notes(xsp_report_find_section(s->report, "compared"), &notes);
	char start[80];
	double percent;

	snprintf(start, sizeof(start), "most kernels%s changed by ", whose);
	for (size_t i = 0; i < n; i++)
		if (strncmp(notes[i], start, strlen(start)) == 0 &&
		    sscanf(notes[i] + strlen(start), "%lf %%", &percent) == 1)
			return percent;
	return NAN;
}

static struct plan with_kernels(uint64_t seed, unsigned kernels)
{
	struct plan p = usual;

	p.seed = seed;
	p.kernels = kernels;
	return p;
}

/* A GPU with another clock changes all of its kernels. One recording on each side cannot tell that
 * from slower kernels. */
Test(compare, kernels_of_another_clock)
{
	struct plan a = with_kernels(1, 3), b = with_kernels(2, 3);
	const struct xsp_report_found *found;
	struct setting s;

	b.clock[0] = 1.1;
	compare_plans(&s, &a, &b);
	cr_expect_eq(verdicts(&s), 0, "%u", verdicts(&s));
	cr_expect_eq(s.found, 0);
	cr_expect_eq(findings(&s, &found), 0);
	cr_expect_float_eq(told_of_kernels(&s, ""), 10, 1);
	cr_expect_str_eq(verdict(&s, "kernels", "kernel", "[all kernels]"), "no row");
	clear(&s);

	s = (struct setting){0};
	add_three(&s, 0, a);
	add_three(&s, 1, b);
	compare(&s);
	cr_expect_str_eq(verdict(&s, "kernels", "kernel", "[all kernels]"), "slower");
	cr_expect_float_eq(cell(&s, "kernels", "kernel", "[all kernels]", "change").real, 0.1,
			   0.01);
	cr_expect_eq(verdicts(&s), 1, "%u", verdicts(&s));
	cr_assert_eq(findings(&s, &found), 1);
	cr_expect_str_eq(found[0].finding.rule, "slower-kernel");
	cr_expect_null(strstr(found[0].finding.title, "after"), "%s", found[0].finding.title);
	clear(&s);
}

/* Runs differ by their clocks. None of 40 pairs with one recording on each side may have a slower
 * kernel. */
Test(compare, no_kernel_is_slower_between_runs)
{
	uint64_t state = 5;
	unsigned wrong = 0;

	for (unsigned i = 0; i < 40; i++) {
		struct plan a = with_kernels(2 * i + 1, 3), b = with_kernels(2 * i + 2, 3);
		struct setting s;
		a.clock[0] = exp(0.05 * normal(&state));
		b.clock[0] = exp(0.05 * normal(&state));
		compare_plans(&s, &a, &b);
		wrong += verdicts(&s) > 0;
		clear(&s);
	}
	cr_expect_leq(wrong, 2, "%u of 40", wrong);
}

Test(compare, a_slower_kernel)
{
	for (unsigned kernels = 3; kernels <= KERNELS; kernels += 3) {
		struct plan a = with_kernels(1, kernels), b = with_kernels(2, kernels);
		struct setting s;
		b.clock[0] = 1.1;
		b.kernel[1] = 1.2;
		compare_plans(&s, &a, &b);
		cr_expect_str_eq(verdict(&s, "kernels", "kernel", "k2"), "slower");
		cr_expect_float_eq(cell(&s, "kernels", "kernel", "k2", "change").real, 0.2, 0.02);
		cr_expect_eq(verdicts(&s), 1, "%u", verdicts(&s));
		cr_expect_eq(s.found, XSP_COMPARE_SLOWER);
		clear(&s);
		compare_plans(&s, &b, &a);
		cr_expect_str_eq(verdict(&s, "kernels", "kernel", "k2"), "faster");
		cr_expect_eq(verdicts(&s), 1, "%u", verdicts(&s));
		clear(&s);
	}
}

/* With two kernels, neither shows what the GPU did to the other. */
Test(compare, too_few_kernels_to_tell_the_clock)
{
	struct plan a = with_kernels(1, 2), b = with_kernels(2, 2);
	struct setting s;

	b.kernel[0] = 1.2;
	compare_plans(&s, &a, &b);
	cr_expect_str_eq(verdict(&s, "kernels", "kernel", "k1"), "none: alone");
	cr_expect_str_eq(verdict(&s, "kernels", "kernel", "k2"), "same");
	cr_expect_eq(s.found, 0);
	clear(&s);

	s = (struct setting){0};
	add_three(&s, 0, a);
	add_three(&s, 1, b);
	compare(&s);
	cr_expect_str_eq(verdict(&s, "kernels", "kernel", "k1"), "slower");
	cr_expect_eq(verdicts(&s), 1, "%u", verdicts(&s));
	clear(&s);
}

/* k1 to k3 run on one GPU, the rest on another, which alone is slower. */
Test(compare, each_device_has_its_clock)
{
	struct plan a = with_kernels(1, 6), b = with_kernels(2, 6);
	struct setting s;

	a.on_device_1 = b.on_device_1 = 3;
	b.clock[1] = 1.2;
	compare_plans(&s, &a, &b);
	cr_expect_eq(verdicts(&s), 0, "%u", verdicts(&s));
	cr_expect_float_eq(told_of_kernels(&s, " of device 1"), 20, 1);
	cr_expect(isnan(told_of_kernels(&s, " of device 0")));
	cr_expect_str_eq(verdict(&s, "kernels", "kernel", "k1"), "same");
	clear(&s);
	b.kernel[5] = 1.3;
	compare_plans(&s, &a, &b);
	cr_expect_str_eq(verdict(&s, "kernels", "kernel", "k6"), "slower");
	cr_expect_eq(verdicts(&s), 1, "%u", verdicts(&s));
	clear(&s);
}

/* Pitfall 8: what was lost makes verdicts uncertain. */
Test(compare, losses_are_said)
{
	const struct xsp_report_found *found;
	struct plan b = usual;
	const char *const *notes;
	struct setting s;

	b.seed = 2;
	b.factor[2] = 1.2;
	b.lost = 7;
	compare_plans(&s, &usual, &b);
	cr_expect_str_eq(verdict(&s, "operators", "in_step", "f2"), "slower?");
	cr_assert_eq(findings(&s, &found), 1);
	cr_expect_not_null(found[0].finding.uncertain);
	cr_assert(xsp_report_notes(s.report->sections[0], &notes) > 0);
	cr_expect_not_null(strstr(notes[0], "uncertain: events were lost"));
	clear(&s);
}

/* Pitfall 9: what a filter drops is in its caller's own time. */
Test(compare, other_filters_make_it_uncertain)
{
	struct setting s = {0};
	struct plan b = usual;

	b.seed = 2;
	b.factor[2] = 1.2;
	add(&s, 0, &usual);
	add(&s, 1, &b);
	s.captures[1][0].filters = "min-duration 10000 ns, max-depth 0, threads 0, names 0";
	compare(&s);
	cr_expect_str_eq(verdict(&s, "operators", "in_step", "f2"), "slower?");
	clear(&s);
}

static struct xsp_report *report_of_rule(const char *rule, const char *subject)
{
	struct xsp_report *r;

	cr_assert_eq(xsp_report_new(&r), 0);
	xsp_report_finding(r, &(struct xsp_report_finding){.rule = rule,
							   .severity = XSP_SEVERITY_MEDIUM,
							   .subject = subject,
							   .title = "waits for the GPU",
							   .share = 0.2});
	return r;
}

static struct xsp_report *report_with(const char *subject)
{
	return report_of_rule("sync", subject);
}

Test(compare, findings_that_come_and_go)
{
	struct xsp_report *a = report_with("aten::item"), *b = report_with("cudaMemcpy");
	const struct xsp_report_found *found;
	struct setting s = {0};
	struct plan other = usual;

	other.seed = 2;
	add(&s, 0, &usual);
	add(&s, 1, &other);
	s.captures[0][0].report = a;
	s.captures[1][0].report = b;
	compare(&s);
	cr_expect_eq(s.found, XSP_COMPARE_NEW_BOTTLENECK);
	cr_assert_eq(findings(&s, &found), 1);
	cr_expect_str_eq(found[0].finding.subject, "cudaMemcpy");
	const struct xsp_report_section *in = xsp_report_find_section(s.report, "bottlenecks");
	cr_assert_not_null(in);
	cr_expect_str_eq(xsp_report_row_at(xsp_report_find_table(in, "went"), 0)[1].text,
			 "aten::item");
	clear(&s);
	/* what was nearly found before is not new, and what is nearly found now is not gone */
	s = (struct setting){0};
	add(&s, 0, &usual);
	add(&s, 1, &other);
	s.captures[0][0].report = a;
	s.captures[0][0].nearly = b;
	s.captures[1][0].report = b;
	s.captures[1][0].nearly = a;
	compare(&s);
	cr_expect_eq(s.found, 0);
	cr_expect_eq(findings(&s, &found), 0);
	cr_expect_null(xsp_report_find_section(s.report, "bottlenecks"));
	clear(&s);
	xsp_report_free(a);
	xsp_report_free(b);
}

/* The line has moved, and the process has another number. */
Test(compare, a_finding_of_both_sides_has_not_come)
{
	struct xsp_report *a = report_with("train.py:10 track in process 4360"),
			  *b = report_with("train.py:12 track in process 4360");
	struct setting s = {0};

	add(&s, 0, &usual);
	add(&s, 1, &usual);
	s.captures[0][0].report = a;
	s.captures[1][0].report = b;
	compare(&s);
	cr_expect_eq(s.found, 0);
	cr_expect_null(xsp_report_find_section(s.report, "bottlenecks"));
	clear(&s);
	xsp_report_free(a);
	xsp_report_free(b);
}

struct place_row {
	const char *what;
	double ns, each, share, error;
	const char *part;
};
#define PLACE(member) XSP_FIELD(struct place_row, member)

/* An account of a second. */
static struct xsp_report *report_of_places(const struct place_row *rows, size_t count,
					   uint64_t steps)
{
	static const struct xsp_report_column columns[] = {
		{"what", "where", XSP_UNIT_TEXT, true, PLACE(what)},
		{"ns", "time", XSP_UNIT_NS, false, PLACE(ns)},
		{"each_ns", "each", XSP_UNIT_NS, false, PLACE(each)},
		{"share", "share", XSP_UNIT_SHARE, false, PLACE(share)},
		{"error_share", "+-", XSP_UNIT_SHARE, false, PLACE(error)},
		{"part", "part", XSP_UNIT_TEXT, false, PLACE(part)},
	};
	static const struct xsp_report_shape shape = {"account", "places", "places", columns, 6};
	struct xsp_report *r;

	cr_assert_eq(xsp_report_new(&r), 0);
	struct xsp_report_section *s = xsp_report_section(r, "account", "Account");
	xsp_report_value(s, "steps", "steps", XSP_UNIT_COUNT, xsp_cell_if(steps > 0, steps));
	xsp_report_value(s, "ns", "time", XSP_UNIT_NS, xsp_cell_real(1e9));
	xsp_report_rows(xsp_report_table(s, &shape), NULL, rows, sizeof(*rows), count);
	return r;
}

/* Times of one step; a place is the same though its line has moved, and what it mostly called is another function. */
Test(compare, accounts_side_by_side)
{
	static const struct place_row before[] = {
		{"ready, without a CPU", 200e6, 20e6, 0.2, 0, NULL},
		{"train.py:10 cleanup  gc.collect", 100e6, 10e6, 0.1, 0, NULL},
		{"  waits: lock", 80e6, 8e6, 0.08, 0, "part"}};
	static const struct place_row after[] = {
		{"train.py:12 cleanup", 250e6, 25e6, 0.25, 0, NULL},
		{"ready, without a CPU", 190e6, 19e6, 0.19, 0, NULL},
		{"train.py:30 log  waits: disk", 50e6, 5e6, 0.05, 0, NULL}};
	static const struct {
		const char *name;
		double a, b;
	} wanted[] = {{"train.py:12 cleanup", 10e6, 25e6},
		      {"train.py:30 log  waits: disk", 0, 5e6},
		      {"ready, without a CPU", 20e6, 19e6}};
	struct setting s = {0};

	add(&s, 0, &usual);
	add(&s, 1, &usual);
	struct xsp_report *a = report_of_places(before, 3, 10), *b = report_of_places(after, 3, 10);
	s.captures[0][0].report = a;
	s.captures[1][0].report = b;
	compare(&s);
	const struct xsp_report_table *t =
		xsp_report_find_table(xsp_report_find_section(s.report, "accounts"), "places");
	cr_assert_eq(xsp_report_row_count(t), 3);
	for (size_t i = 0; i < 3; i++) {
		const struct xsp_cell *cells = xsp_report_row_at(t, i);
		cr_expect_str_eq(cells[0].text, wanted[i].name);
		cr_expect_eq(cells[2].kind, wanted[i].a > 0 ? XSP_CELL_REAL : XSP_CELL_ABSENT);
		if (wanted[i].a > 0)
			cr_expect_float_eq(cells[2].real, wanted[i].a, 1);
		cr_expect_float_eq(cells[3].real, wanted[i].b, 1);
		cr_expect_float_eq(cells[4].real, wanted[i].b - wanted[i].a, 1);
	}
	cr_expect_float_eq(xsp_report_row_at(t, 0)[5].real, 2.5, 1e-9);
	clear(&s);
	xsp_report_free(a);
	xsp_report_free(b);
}

static void add_operations(struct xsp_report *r, uint64_t outer, uint64_t inner)
{
	struct operation {
		const char *name;
		uint64_t calls, a_step, total_ns;
	};
	static const struct xsp_report_column columns[] = {
		{"name", "name", XSP_UNIT_TEXT, true, XSP_FIELD(struct operation, name)},
		{"calls", "calls", XSP_UNIT_COUNT, false, XSP_FIELD(struct operation, calls)},
		{"calls_per_step", "a step", XSP_UNIT_COUNT, false,
		 XSP_FIELD(struct operation, a_step)},
		{"total_ns", "total", XSP_UNIT_NS, false, XSP_FIELD(struct operation, total_ns)},
	};
	static const struct xsp_report_shape shape = {"operations", "operations", "operations",
						      columns, 4};
	const struct operation rows[] = {{"parse", inner, 0, 700000000},
					 {"handle", outer, 0, 900000000},
					 {"log", 5000, 0, 90000000}};

	xsp_report_rows(xsp_report_table(xsp_report_section(r, "operations", "Operations"), &shape),
			NULL, rows, sizeof(*rows), 3);
}

/* Without steps: of a call of the outermost function that takes most of both. B is recorded for as long, and calls it half as
 * often: that is a second of a thread of the same shares. */
Test(compare, accounts_of_calls)
{
	static const struct place_row before[] = {{"app.py:10 parse", 600e6, 600e6, 0.6, 0, NULL},
						  {"app.py:20 reply", 400e6, 400e6, 0.4, 0, NULL}};
	struct setting s = {0};

	add(&s, 0, &usual);
	add(&s, 1, &usual);
	struct xsp_report *reports[2];
	for (size_t i = 0; i < 2; i++) {
		reports[i] = report_of_places(before, 2, 0);
		add_operations(reports[i], i == 0 ? 100 : 50, i == 0 ? 300 : 150);
		s.captures[i][0].report = reports[i];
	}
	compare(&s);
	const struct xsp_report_section *accounts = xsp_report_find_section(s.report, "accounts");
	const struct xsp_report_table *t = xsp_report_find_table(accounts, "places");
	const struct xsp_report_figure *values;
	cr_assert_eq(xsp_report_values(accounts, &values), 3);
	cr_expect_str_eq(values[0].value.text, "one call of handle");
	cr_expect_float_eq(values[1].value.real, 10e6, 1);
	cr_expect_float_eq(values[2].value.real, 20e6, 1);
	cr_assert_eq(xsp_report_row_count(t), 2);
	cr_expect_str_eq(xsp_report_row_at(t, 0)[0].text, "app.py:10 parse");
	cr_expect_float_eq(xsp_report_row_at(t, 0)[2].real, 6e6, 1);
	cr_expect_float_eq(xsp_report_row_at(t, 0)[3].real, 12e6, 1);
	clear(&s);
	xsp_report_free(reports[0]);
	xsp_report_free(reports[1]);
}

struct rule_row {
	const char *rule, *threshold, *findings, *needs;
};

/* A recording in which a rule finds no data does not say that there was no problem. */
Test(compare, what_was_not_looked_for_has_not_come)
{
	static const struct xsp_report_column columns[] = {
		{"rule", "rule", XSP_UNIT_TEXT, true, XSP_FIELD(struct rule_row, rule)},
		{"threshold", "threshold", XSP_UNIT_TEXT, false,
		 XSP_FIELD(struct rule_row, threshold)},
		{"findings", "findings", XSP_UNIT_COUNT, false,
		 XSP_FIELD(struct rule_row, findings)},
		{"needs", "needs", XSP_UNIT_TEXT, false, XSP_FIELD(struct rule_row, needs)},
	};
	const struct xsp_report_shape shape = {"rules", "rules", "rules", columns, 4};
	struct xsp_report *a, *b = report_with("cudaMemcpy");
	const struct xsp_report_found *found;
	struct setting s = {0};
	struct plan other = usual;
	const char *const *notes;

	cr_assert_eq(xsp_report_new(&a), 0);
	xsp_report_add(xsp_report_table(xsp_report_section(a, "rules", "Rules"), &shape), NULL,
		       &(struct rule_row){"sync", "5 %", NULL, "CUDA calls"});
	other.seed = 2;
	for (unsigned side = 0; side < 2; side++) { /* new on one side, gone on the other */
		s = (struct setting){0};
		add(&s, 0, &usual);
		add(&s, 1, &other);
		s.captures[side][0].report = a;
		s.captures[1 - side][0].report = b;
		compare(&s);
		cr_expect_eq(s.found, 0);
		cr_expect_eq(findings(&s, &found), 0);
		const struct xsp_report_section *in =
			xsp_report_find_section(s.report, "bottlenecks");
		cr_assert_not_null(in);
		cr_expect_eq(in->table_count, 0);
		cr_assert_eq(xsp_report_notes(in, &notes), 1);
		cr_expect_not_null(strstr(notes[0], "CUDA calls"));
		clear(&s);
	}
	xsp_report_free(a);
	xsp_report_free(b);
}

/* What one recording says of a busy machine, the next one does not. */
Test(compare, findings_of_the_machine_need_repeats)
{
	struct xsp_report *b = report_of_rule("runnable", "python3");
	struct plan plans[6];
	struct setting s = {0};

	for (size_t i = 0; i < 6; i++) {
		plans[i] = usual;
		plans[i].seed = (unsigned)i + 1;
	}
	add(&s, 0, &plans[0]);
	add(&s, 1, &plans[1]);
	s.captures[1][0].report = b;
	compare(&s);
	cr_expect_eq(s.found, 0);
	cr_expect_null(xsp_report_find_section(s.report, "bottlenecks"));
	clear(&s);
	s = (struct setting){0};
	for (size_t i = 0; i < 6; i++)
		add(&s, i < 3 ? 0 : 1, &plans[i]);
	for (size_t i = 0; i < 3; i++)
		s.captures[1][i].report = b;
	compare(&s);
	cr_expect_not_null(xsp_report_find_section(s.report, "bottlenecks"));
	clear(&s);
	xsp_report_free(b);
}
