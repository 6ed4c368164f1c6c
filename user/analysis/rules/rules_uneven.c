/* SPDX-License-Identifier: BSD-2-Clause */
/* rules_uneven.c - one of several threads or ranks that do the same work does most of it. */
#include "analysis/rules/account_part.h"

#include <string.h>

#include "analysis/waits/summary_waits_private.h"

#define ABOVE 2.0 /* it computes so many times what the others do */
#define SAME_WORK                                                                                  \
	50.0 /* and they at least 1 / so much of what it does: else theirs is another work */

#define CRITICAL 0.6 /* of its time it computes: the others wait for it */
#define REQUESTS_MOST                                                                              \
	0.1 /* of the time they wait for requests: a server's workers get what comes */

#define IDLE_LEAST 0.2 /* of its time a thread waits for one that does the same work */

/* What threads that do the same work computed at a place: one of them, and the others in the mean. */
struct uneven {
	const struct xsp_account_family *family; /* of that one */
	const struct xsp_account_place *place;
	uint32_t tid;
	double most_ns, others_ns;
	size_t threads;
};

static bool is_work(const struct xsp_account_row *row)
{
	return row->kind == XSP_ACCOUNT_CPU || row->kind == XSP_ACCOUNT_SPAN;
}

/* The place's work on CPUs; *row: its largest. */
static int64_t work_at(const struct xsp_account_place *p, const struct xsp_account_row **row)
{
	int64_t ns = 0;

	*row = NULL;
	for (size_t i = 0; i < p->count; i++) {
		if (!is_work(&p->rows[i]))
			continue;
		ns += p->rows[i].ns;
		*row = *row != NULL ? *row : &p->rows[i];
	}
	return ns;
}

static bool are_servers(const struct xsp_rule_context *c, const struct xsp_account_family *f)
{
	const int64_t ns = xsp_part_waited_ns(c, f, XSP_WAIT_POLL) +
			   xsp_part_waited_ns(c, f, XSP_ACCOUNT_CLIENT);

	return (double)ns > REQUESTS_MOST * (double)xsp_part_wanted_ns(f);
}

/* It is found if the others would take so much off the one that computes nearly always, and wait meanwhile. */
static void find_uneven(const struct xsp_rule_context *c, const struct uneven *u)
{
	const struct xsp_account_family *f = u->family;
	const double members = f->members > 0 ? (double)f->members : 1;
	const double wanted = (double)xsp_part_wanted_ns(f) / members, threads = (double)u->threads;
	const double mean = (u->most_ns + u->others_ns * (threads - 1)) / threads;
	const double saved = wanted > 0 ? (u->most_ns - mean) / wanted : 0;
	char who[128];
	struct xsp_account_part p = {
		.family = f, .place = u->place, .ns = (int64_t)(u->most_ns - mean), .places = 1};
	struct xsp_part_finding found;

	/* main threads of one program do the same work (ranks); of others the place shows whether they do */
	const bool same = f->tid == f->pid && f->members > 1;
	if (saved < c->threshold || u->most_ns < ABOVE * u->others_ns ||
	    u->most_ns < XSP_PART_LEAST_NS || u->most_ns < CRITICAL * wanted || are_servers(c, f) ||
	    (!same && u->most_ns > SAME_WORK * u->others_ns))
		return;
	xsp_part_begin(c, &p, &found);
	found.finding.sure = saved < 1 ? saved : 1;
	found.finding.part.share =
		found.finding.sure * (double)xsp_part_wanted_ns(f) / (double)f->ns;
	xsp_waits_thread(c->timeline, u->tid, who, sizeof(who));
	xsp_finding_text(&found.finding, "who", "which", who);
	xsp_finding_ns(&found.finding, "most_ns", "takes", (uint64_t)u->most_ns);
	xsp_finding_ns(&found.finding, "others_ns", "the others, mean", (uint64_t)u->others_ns);
	xsp_finding_count(&found.finding, "of_threads", "of so many", u->threads);
	xsp_part_finish(c, &found);
}

static void compare_members(const struct xsp_rule_context *c, const struct xsp_account_family *f,
			    const struct xsp_account_place *p)
{
	const struct xsp_account_row *row;
	int64_t most_ns = 0, all_ns = 0;

	/* of those that come and go the last has not ended yet */
	if (work_at(p, &row) <= 0 || row->most == 0 || p->name == 0 ||
	    !xsp_rule_was_there(c, f->all_ns / f->members))
		return;
	/* whatever it calls there */
	for (size_t i = 0; i < p->count; i++) {
		if (!is_work(&p->rows[i]) || p->rows[i].most != row->most)
			continue;
		most_ns += p->rows[i].most_ns;
		all_ns += p->rows[i].ns;
	}
	find_uneven(c, &(struct uneven){.family = f,
					.place = p,
					.tid = row->most,
					.most_ns = (double)most_ns,
					.others_ns = (double)(all_ns - most_ns) /
						     (double)(f->members - 1),
					.threads = f->members});
}

static bool has_team(const struct xsp_rule_context *c, const struct xsp_account_family *f)
{
	static const char *const teams[] = {"GOMP_", "__kmp", "libgomp", "libomp", "libiomp"};

	for (size_t i = 0; i < f->count; i++)
		for (size_t k = 0; k < f->places[i].count; k++) {
			const struct xsp_account_row *row = &f->places[i].rows[k];
			const uint32_t name = row->callee != 0 ? row->callee : row->place;
			for (size_t n = 0; name != 0 && n < sizeof(teams) / sizeof(teams[0]); n++)
				if (strncmp(xsp_timeline_name(c->timeline, name - 1), teams[n],
					    strlen(teams[n])) == 0)
					return true;
		}
	return false;
}

/* Is g idle until f has done its part? f wakes it, or a third one that itself waits for f. */
static bool waits_for(const struct xsp_rule_context *c, const struct xsp_account_family *g,
		      const struct xsp_account_family *f)
{
	const struct xsp_account_family *third = xsp_rule_family_of(c, g->pid, g->waker);

	return (double)xsp_part_waited_ns(c, g, XSP_WAIT_LOCK) >=
		       IDLE_LEAST * (double)xsp_part_wanted_ns(g) &&
	       (g->waker == f->tid || (third != NULL && third->waker == f->tid));
}

/* What two kinds of threads do both: g's work is that alone, unless they are a team. */
static void compare_families(const struct xsp_rule_context *c, const struct xsp_account_family *f,
			     const struct xsp_account_family *g, bool team)
{
	const struct xsp_account_row *row, *other;

	for (size_t i = 0; i < f->count; i++)
		for (size_t k = 0; k < g->count && f->places[i].name != 0; k++) {
			if (f->places[i].name != g->places[k].name)
				continue;
			const double one = (double)work_at(&f->places[i], &row);
			const double all = (double)work_at(&g->places[k], &other);
			if (row == NULL || other == NULL || all <= 0 ||
			    (!team && 2 * all < (double)g->cpu_ns))
				continue;
			find_uneven(c, &(struct uneven){.family = f,
							.place = &f->places[i],
							.tid = f->tid,
							.most_ns = one,
							.others_ns = all / (double)g->members,
							.threads = g->members + 1});
		}
}

/* A main thread and its workers are two families: a team of OpenMP, or one waits for the other. */
static void compare_kinds(const struct xsp_rule_context *c, const struct xsp_account_family *f,
			  const struct xsp_account_family *g)
{
	const bool team = has_team(c, f) || has_team(c, g);

	if (g != f && g->pid == f->pid && g->members > 0 && f->steps + g->steps == 0 &&
	    (team || waits_for(c, g, f)))
		compare_families(c, f, g, team);
}

int xsp_rule_uneven(const struct xsp_rule_context *c)
{
	const struct xsp_account_family *f;
	const size_t count = xsp_rule_families(c, &f);

	if (xsp_rule_summary(c)->waits == NULL)
		return XSP_RULE_NO_DATA;
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; f[i].members > 1 && k < f[i].count; k++)
			compare_members(c, &f[i], &f[i].places[k]);
		for (size_t k = 0; f[i].members == 1 && k < count; k++)
			compare_kinds(c, &f[i], &f[k]);
	}
	return count > 0 ? 0 : XSP_RULE_NO_DATA;
}
