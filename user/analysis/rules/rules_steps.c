/* SPDX-License-Identifier: BSD-2-Clause */
/* rules_steps.c - steps that stall, grow, or compute beside their operators. */
#include "analysis/rules/account_part.h"

#include "analysis/account/account_report.h"
#include "timeline/python.h"

/* ---- stalls ---- */

#define STALL_STEPS 4U /* in at most one step of so many */
#define RUNS_AT                                                                                    \
	0.15 /* what computes now and then (a checkpoint, figures) is no fault if it is little */

static bool is_stall(const struct xsp_account_family *f, const struct xsp_account_row *row)
{
	const bool waits = row->kind == XSP_ACCOUNT_WAIT && row->why != XSP_ACCOUNT_SHORT;
	/* so many samples are not in the same step by chance */
	const bool runs =
		row->kind == XSP_ACCOUNT_CPU && row->samples >= XSP_SAMPLES_FEW * row->steps;

	return (waits || runs) && row->place != 0 && row->steps >= 2 &&
	       row->steps * STALL_STEPS <= f->steps;
}

static void find_stall(const struct xsp_rule_context *c, const struct xsp_account_family *f,
		       const struct xsp_account_place *place, const struct xsp_account_row *row)
{
	const struct xsp_account_part p = {.family = f,
					   .ns = row->ns,
					   .place = place,
					   .place_ns = row->ns,
					   .row = row,
					   .places = 1};
	struct xsp_part_finding found;

	if (row->kind == XSP_ACCOUNT_WAIT && xsp_rule_is_of_loader(c, row->why, row->ns))
		return;
	if (!xsp_part_is_enough(&p, row->kind == XSP_ACCOUNT_CPU && c->threshold < RUNS_AT
					    ? RUNS_AT
					    : c->threshold))
		return;
	xsp_part_begin(c, &p, &found);
	found.finding.part.of = "the time of steps";
	xsp_finding_count(&found.finding, "in_steps", "in steps", row->steps);
	xsp_finding_count(&found.finding, "steps", "of steps", f->steps);
	xsp_finding_ns(&found.finding, "max_ns", "longest", row->longest_ns);
	xsp_finding_ns(&found.finding, "mean_ns", "in each of them",
		       (uint64_t)row->ns / row->steps);
	if (row->period > 1)
		xsp_finding_count(&found.finding, "period", "steps from one to the next",
				  row->period);
	xsp_finding_text(&found.finding, "why", NULL, xsp_account_reason(row->kind, row->why));
	xsp_finding_flag(&found.finding, "waits", row->kind == XSP_ACCOUNT_WAIT);
	xsp_part_finish(c, &found);
}

int xsp_rule_stall(const struct xsp_rule_context *c)
{
	const struct xsp_account_family *f = xsp_part_shown(c);

	for (size_t i = 0; f != NULL && f->steps > 0 && i < f->count; i++)
		for (size_t k = 0; k < f->places[i].count; k++)
			if (is_stall(f, &f->places[i].rows[k]))
				find_stall(c, f, &f->places[i], &f->places[i].rows[k]);
	return f != NULL && f->steps > 0 ? 0 : XSP_RULE_NO_DATA;
}

/* ---- steps that grow ---- */

#define GROWS_ITSELF 1.2
#define GROWS_STEADILY 0.2 /* of the growth is in each half of the time at least */
#define OTHERS_GROW 1.1 /* all else may take so much longer on a machine that is no slower */
#define GROWTH_STEPS 30U

static double growth_of(const double thirds[XSP_ACCOUNT_THIRDS])
{
	return thirds[2] - thirds[0];
}

static bool grows(const double thirds[XSP_ACCOUNT_THIRDS])
{
	const double all = growth_of(thirds), least = GROWS_STEADILY * all;

	return all > 0 && thirds[2] > GROWS_ITSELF * thirds[0] && thirds[1] - thirds[0] >= least &&
	       thirds[2] - thirds[1] >= least;
}

/* If all else takes longer, too, by more than OTHERS_GROW, the machine is slower: that part is not this place's growth. */
static bool grows_beside(const double place[XSP_ACCOUNT_THIRDS],
			 const double all[XSP_ACCOUNT_THIRDS])
{
	const double may = OTHERS_GROW * (all[0] - place[0]);
	double own[XSP_ACCOUNT_THIRDS];

	for (size_t k = 0; k < XSP_ACCOUNT_THIRDS; k++) {
		const double rest = all[k] - place[k];
		own[k] = rest > may ? place[k] * may / rest : place[k];
	}
	return grows(own);
}

static void find_growth(const struct xsp_rule_context *c, const struct xsp_account_family *f,
			const struct xsp_account_place *place, double last)
{
	const double *thirds = place->thirds;
	const struct xsp_account_part p = {
		.family = f,
		.ns = (int64_t)(growth_of(thirds) * (double)f->steps / 2),
		.place = place,
		.places = 1};
	struct xsp_part_finding found;

	xsp_part_begin(c, &p, &found);
	found.finding.sure = found.finding.part.share = growth_of(thirds) / last;
	found.finding.part.of = "the last steps";
	xsp_finding_ns(&found.finding, "first_ns", "a step in the first third",
		       (uint64_t)thirds[0]);
	xsp_finding_ns(&found.finding, "last_ns", "in the last", (uint64_t)thirds[2]);
	xsp_finding_count(&found.finding, "steps", "steps", f->steps);
	xsp_part_finish(c, &found);
}

int xsp_rule_growth(const struct xsp_rule_context *c)
{
	const struct xsp_account_family *f = xsp_part_shown(c);
	double all[XSP_ACCOUNT_THIRDS] = {0};

	if (f == NULL || f->steps < GROWTH_STEPS)
		return XSP_RULE_NO_DATA;
	for (size_t i = 0; i < f->count; i++)
		for (size_t k = 0; k < XSP_ACCOUNT_THIRDS && f->places[i].kind < XSP_ACCOUNT_READY;
		     k++)
			all[k] += f->places[i].thirds[k];
	for (size_t i = 0; i < f->count; i++) {
		const struct xsp_account_place *p = &f->places[i];
		if (p->kind < XSP_ACCOUNT_READY && p->name != 0 && grows_beside(p->thirds, all) &&
		    growth_of(p->thirds) >= c->threshold * all[2])
			find_growth(c, f, p, all[2]);
	}
	return 0;
}

/* ---- Python outside of operators ---- */

/* A place that computes and calls no operator: it is not what the step is for, but beside it. */
static bool is_beside(const struct xsp_account_place *p, int64_t *cpu_ns)
{
	int64_t spans = 0;

	*cpu_ns = 0;
	for (size_t i = 0; i < p->count; i++) {
		*cpu_ns += p->rows[i].kind == XSP_ACCOUNT_CPU ? p->rows[i].ns : 0;
		spans += p->rows[i].kind == XSP_ACCOUNT_SPAN ? p->rows[i].ns : 0;
	}
	return spans * 20 < *cpu_ns;
}

/* Another rule says more. */
static bool is_reported(const struct xsp_rule_context *c, const struct xsp_account_place *place)
{
	static const char *const rules[] = {"dear-call", "uneven", "growth", "page-faults",
					    "stall"};
	const char *name = xsp_timeline_name(c->timeline, place->name - 1);

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (xsp_rule_has_found(c->report, rules[i], name))
			return true;
	return false;
}

int xsp_rule_outside(const struct xsp_rule_context *c)
{
	const struct xsp_account_family *f = xsp_part_shown(c);
	const char *function;
	size_t file;

	for (size_t i = 0; f != NULL && f->steps > 0 && i < f->count; i++) {
		const struct xsp_account_place *place = &f->places[i];
		struct xsp_account_part p = {
			.family = f, .place = place, .row = &place->rows[0], .places = 1};
		const bool is_it = is_beside(place, &p.ns);
		if (!is_it || place->name == 0 ||
		    !xsp_python_line_split(xsp_timeline_name(c->timeline, place->name - 1), &file,
					   &function) ||
		    is_reported(c, place))
			continue;
		p.place_ns = p.ns;
		if (xsp_part_is_enough(&p, c->threshold))
			xsp_part_found(c, &p);
	}
	return f != NULL && f->steps > 0 ? 0 : XSP_RULE_NO_DATA;
}
