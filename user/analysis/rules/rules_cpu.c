/* SPDX-License-Identifier: BSD-2-Clause */
/* rules_cpu.c - operations, loops, first steps, and the recording's own cost. */
#include "analysis/rules/account_part.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/calls/call_sites.h"
#include "base/rows/order.h"
#include "base/rows/tally.h"
#include "catalog/collectives.h"
#include "catalog/gpu/cuda_table.h"

#define MANY_CALLS 20
#define LOOP_LEAST_SHARE 0.10 /* of the time: shorter loops do not matter */

/* ---- hot operation ---- */

/* The row's own time: where it is known, on a CPU, because a call that waits is not hot. */
static uint64_t own_of(const struct xsp_summary_row *row)
{
	const uint64_t own = row->self_cpu_ns + row->own_cpu_unknown_ns;

	return own < row->own_ns ? own : row->own_ns;
}

/* The share of its longest call. That call may have waited or lost its CPU, and says nothing
 * about the others. */
static double share_of_one(const struct xsp_summary_row *row)
{
	return row->timed >= MANY_CALLS ? xsp_rule_share(row->own_cpu_unknown_max_ns, own_of(row))
					: 0;
}

/* Other rules cover waits for the GPU, for other ranks and for data. A step is no operation, and
 * a program rarely starts or ends CUDA. */
static bool is_operation(const struct xsp_rule_context *c, const struct xsp_summary_row *row)
{
	const char *name = xsp_summary_text(xsp_rule_summary(c), row);
	const struct xsp_cuda_entry *cuda = xsp_cuda_find(name);

	return !xsp_timeline_marks_steps(c->timeline, row->name) &&
	       !xsp_call_sites_is_loader(xsp_rule_state(c, "call_sites"), row->name) &&
	       (cuda == NULL || (cuda->kind != XSP_CUDA_SYNC && cuda->kind != XSP_CUDA_CONTEXT)) &&
	       !xsp_collective_is_waiting(name);
}

/* Own time in steps still holds probes and waits: it is reduced in the same proportion as in the
 * whole run. */
static struct xsp_rule_part part_of(const struct xsp_rule_context *c,
				    const struct xsp_summary_row *row)
{
	uint64_t in_steps_ns;

	xsp_steps_calls(xsp_rule_summary(c)->steps, row->name, &in_steps_ns);
	return xsp_rule_part(
		c, own_of(row),
		(uint64_t)((double)in_steps_ns * xsp_rule_share(own_of(row), row->self_ns)));
}

static const char *why_uncertain(const struct xsp_rule_context *c,
				 const struct xsp_summary_row *row, char out[XSP_DOUBT_SIZE])
{
	const char *doubt = xsp_rule_doubt(c, c->rule->doubts, out);

	if (doubt != NULL)
		return doubt;
	if (xsp_rule_summary(c)->waits != NULL && 2 * row->own_cpu_unknown_ns > own_of(row))
		return "the time on a CPU of some of its calls is not known: what they waited may be in it";
	return row->mostly_probes
		       ? "most of the time of most of its calls is that of probes inside them"
		       : NULL;
}

static void find_hot(const struct xsp_rule_context *c, const struct xsp_summary_row *row,
		     struct xsp_rule_part part)
{
	struct xsp_summary *s = xsp_rule_summary(c);
	const struct xsp_call_sites *sites = xsp_rule_state(c, "call_sites");
	const struct xsp_call_site *site = xsp_call_sites_of(sites, row->name);
	char line[XSP_CALL_SITE_TEXT], doubt[XSP_DOUBT_SIZE], inside[XSP_RULE_INSIDE];
	/* sites only count Python's own calls: those of other operations have none */
	const bool at = site != NULL && 2 * site->total_ns > row->total_ns &&
			xsp_call_site_line(sites, site, line);
	const bool measured = row->measured > 0;
	struct xsp_rule_finding f = {.subject = xsp_summary_text(s, row),
				     .part = part,
				     .uncertain = why_uncertain(c, row, doubt),
				     .at_ns = measured ? row->max_start_ns : 0,
				     .for_ns = measured ? row->max_ns : 0};

	xsp_finding_ns(&f, "self_ns", "own time", own_of(row));
	xsp_finding_calls(
		&f, row->calls,
		xsp_rule_share(xsp_steps_calls(s->steps, row->name, NULL), c->steps.steps));
	xsp_finding_ns(&f, "p50_ns", measured ? "p50" : NULL, row->p50_ns);
	xsp_finding_ns(&f, "max_ns", measured ? "longest" : NULL, row->max_ns);
	xsp_finding_text(&f, "inside", "on CPU in",
			 xsp_rule_inside(c, row->name, inside) ? inside : NULL);
	xsp_finding_text(&f, "line", NULL, at ? line : NULL);
	xsp_finding_flag(&f, "waits", s->waits != NULL);
	xsp_rule_found(c, &f);
}

int xsp_rule_hot_operation(const struct xsp_rule_context *c)
{
	const struct xsp_summary_row *rows;
	const size_t count = xsp_summary_rows(xsp_rule_summary(c), &rows);
	size_t found = 0;

	for (size_t i = 0; i < count && found < XSP_FINDINGS_MAX; i++) {
		const struct xsp_rule_part part = part_of(c, &rows[i]);
		if (part.share <= 0 || part.share * (1 - share_of_one(&rows[i])) < c->threshold ||
		    !is_operation(c, &rows[i]))
			continue;
		find_hot(c, &rows[i], part);
		found++;
	}
	return count > 0 ? 0 : XSP_RULE_NO_DATA;
}

/* ---- operation in a Python loop ---- */

/* All operations that one line calls so often: together they are the loop's time. */
struct loop {
	const struct xsp_call_site *most; /* the operation that takes the most time */
	double per_step; /* its calls */
	size_t operations;
	uint64_t calls, total_ns, in_steps_ns;
};

static void find_loop(const struct xsp_rule_context *c, const struct loop *l,
		      struct xsp_rule_part part)
{
	const struct xsp_call_sites *sites = xsp_rule_state(c, "call_sites");
	char subject[XSP_CALL_SITE_TEXT], line[XSP_CALL_SITE_TEXT] = "a line that is not known";
	struct xsp_rule_finding f = {.subject = subject,
				     .part = part,
				     .at_ns = l->most->longest_start_ns,
				     .for_ns = l->most->longest_ns};

	xsp_call_site_line(sites, l->most, line);
	xsp_call_site_text(sites, l->most, subject);
	xsp_finding_ns(&f, "total_ns", "in all, without probes", l->total_ns);
	xsp_finding_calls(&f, l->calls, l->per_step);
	xsp_finding_text(&f, "name", NULL, xsp_timeline_name(c->timeline, l->most->name));
	xsp_finding_text(&f, "line", NULL, line);
	xsp_finding_flag(&f, "with_others", l->operations > 1);
	xsp_finding_flag(&f, "several", l->operations > 2);
	xsp_finding_count(&f, "others", NULL, l->operations - 1);
	xsp_rule_found(c, &f);
}

static void add_to_loop(struct loop *l, const struct xsp_call_site *site, double per_step,
			uint64_t in_steps_ns)
{
	if (l->most == NULL || site->total_ns > l->most->total_ns) {
		l->most = site;
		l->per_step = per_step;
	}
	l->operations++;
	l->calls += site->calls;
	l->total_ns += site->total_ns - site->probe_ns;
	l->in_steps_ns += in_steps_ns;
}

static bool is_at(const struct xsp_rule_context *c, const struct xsp_account_family *f,
		  const struct xsp_account_row *row, unsigned line)
{
	(void)c;
	(void)f;
	return row->place == line &&
	       (row->kind == XSP_ACCOUNT_SPAN || row->kind == XSP_ACCOUNT_CPU);
}

/* Lines are recorded in the first steps only, which probes slow down: the account has the time of all steps. Of a line that calls
 * the operation itself all of it is the loop's; a package that it calls may do other things, too. */
static struct xsp_rule_part part_in_account(const struct xsp_rule_context *c, const struct loop *l)
{
	const struct xsp_account_family *f = xsp_part_shown(c);
	char line[XSP_CALL_SITE_TEXT];

	if (f == NULL || !xsp_call_site_line(xsp_rule_state(c, "call_sites"), l->most, line))
		return (struct xsp_rule_part){0};
	for (size_t i = 0; i < f->count; i++)
		for (size_t k = 0; k < f->places[i].count; k++) {
			const uint32_t place = f->places[i].rows[k].place;
			if (place == 0 ||
			    strcmp(xsp_timeline_name(c->timeline, place - 1), line) != 0)
				continue;
			const struct xsp_account_part p = xsp_part_of(c, f, is_at, place);
			return (struct xsp_rule_part){xsp_part_share(&p),
						      f->steps > 0 ? "each step" : "the time"};
		}
	return (struct xsp_rule_part){0};
}

struct loops {
	XSP_TALLY(struct loop) of; /* by line */
};

/* The loops: what the program's own lines call so often in a step. The caller frees them; NULL:
 * out of memory. */
static int find_loops(const struct xsp_rule_context *c, struct loops *loops, bool *any)
{
	const struct xsp_call_sites *sites = xsp_rule_state(c, "call_sites");
	const struct xsp_call_site *list;
	const size_t n = xsp_call_sites_list(sites, &list);

	*any = false;
	for (size_t i = 0; i < n && c->steps.steps > 0; i++) {
		uint64_t ns;
		*any = *any || list[i].python != NULL;
		if (list[i].kind != 0 || xsp_call_site_of_backward(sites, &list[i]))
			continue;
		const double per_step = xsp_rule_share(xsp_call_site_in_steps(sites, &list[i], &ns),
						       c->steps.steps);
		if (per_step <= 0 || per_step < c->threshold)
			continue;
		const uint64_t line = xsp_call_site_own_line(sites, &list[i]);
		/* a call without a known line is a loop of its own */
		struct loop *l =
			xsp_tally_row(&loops->of, xsp_u64_mix(line != 0 ? line : ~(uint64_t)i),
				      &(struct loop){0});
		if (l == NULL)
			return -ENOMEM;
		add_to_loop(l, &list[i], per_step, ns);
	}
	return 0;
}

static XSP_ORDER(longest_loop, struct loop, XSP_FALLING(total_ns) ?: XSP_RISING(most));

int xsp_rule_python_loop(const struct xsp_rule_context *c)
{
	struct xsp_rule_context with_lines = *c;
	struct loops loops = {0};
	size_t found = 0;
	bool any;

	xsp_call_sites_steps(xsp_rule_state(c, "call_sites"), &with_lines.steps);
	/* the time of probes belongs to neither the calls nor the steps */
	with_lines.steps.sum_ns -= with_lines.steps.probe_ns;
	const int rc = find_loops(&with_lines, &loops, &any);
	xsp_tally_sort(&loops.of, longest_loop);
	for (size_t i = 0; rc == 0 && i < loops.of.count && found < XSP_FINDINGS_MAX; i++) {
		const struct loop *l = &loops.of.rows[i];
		const struct xsp_rule_part all = part_in_account(c, l);
		struct xsp_rule_part part = xsp_rule_part(&with_lines, l->total_ns, l->in_steps_ns);
		part = all.share > part.share ? all : part;
		if (part.share < LOOP_LEAST_SHARE)
			continue;
		find_loop(c, l, part);
		found++;
	}
	xsp_tally_free(&loops.of);
	return rc < 0 ? rc : any ? 0 : XSP_RULE_NO_DATA;
}

/* ---- slow first steps ---- */

/* Every program warms up: the finding is never more than LOW. */
int xsp_rule_warm_up(const struct xsp_rule_context *c)
{
	const struct xsp_steps_figures *s = &c->steps;
	const uint64_t usual = s->warm_up * s->median_ns;
	const uint64_t lost = s->warm_up_ns > usual ? s->warm_up_ns - usual : 0;
	/* each of several threads has some */
	struct xsp_rule_finding f = {.part = {xsp_rule_share(lost, c->time_ns), c->time_of},
				     .at_ns = s->warm_up_from_ns,
				     .for_ns = s->warm_up_to_ns - s->warm_up_from_ns};

	xsp_finding_count(&f, "steps", "first steps", s->warm_up);
	xsp_finding_ns(&f, "total_ns", "which took", s->warm_up_ns);
	xsp_finding_ns(&f, "p50_ns", "the later ones' median", s->median_ns);
	xsp_finding_ns(&f, "lost_ns", NULL, lost);
	if (s->steps > 0 && lost > 0 && f.part.share >= c->threshold)
		xsp_rule_found(c, &f);
	return s->steps > 0 ? 0 : XSP_RULE_NO_DATA;
}

/* ---- the recording's own cost ---- */

int xsp_rule_overhead(const struct xsp_rule_context *c)
{
	const uint64_t cost = xsp_capture_stats(c->reader)->probes_cost_ns;
	struct xsp_summary *s = xsp_rule_summary(c);
	const struct xsp_summary_row *rows, *most = NULL;
	const size_t count = xsp_summary_rows(s, &rows);
	uint64_t start, end;

	if (cost == 0 || xsp_timeline_cut_text(c->timeline) != NULL)
		return XSP_RULE_NO_DATA;
	/* sites also cost time while they go in and out, between windows of --max-overhead */
	xsp_timeline_window(c->timeline, &start, &end);
	const bool between = end - start > c->time_ns;
	const uint64_t time_ns = between ? end - start : c->time_ns;
	struct xsp_rule_finding f = {
		.part = {xsp_rule_share(cost, time_ns), between ? "the whole time" : c->time_of}};
	for (size_t i = 0; i < count; i++)
		if (most == NULL || rows[i].calls > most->calls)
			most = &rows[i];
	xsp_finding_ns(&f, "probes_ns", "in probes", cost);
	xsp_finding_text(&f, "most", NULL, most != NULL ? xsp_summary_text(s, most) : "no name");
	xsp_finding_count(&f, "calls", NULL, most != NULL ? most->calls : 0);
	if (f.part.share >= c->threshold)
		xsp_rule_found(c, &f);
	return 0;
}
