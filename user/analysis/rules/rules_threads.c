/* SPDX-License-Identifier: BSD-2-Clause */
/* rules_threads.c - threads that lacked a CPU. */
#include "analysis/rules/rules_private.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/rows/tally.h"

#define FAMILY_SIZE 80

struct group {
	char name[FAMILY_SIZE];
	uint32_t first; /* one of them, by the process's own id */
	uint64_t threads, time_ns, ns, running_ns;
};

struct groups {
	XSP_TALLY(struct group) of; /* by name */
};

/* "worker-*" for "worker-12", "w*" for "w3": a pool numbers its threads. */
static void family_of(const char *name, char out[FAMILY_SIZE])
{
	size_t end = strlen(name);

	while (end > 0 && isdigit((unsigned char)name[end - 1]))
		end--;
	const bool numbered = end > 0 && name[end] != '\0';
	snprintf(out, FAMILY_SIZE, "%.*s%s", numbered ? (int)end : FAMILY_SIZE - 1, name,
		 numbered ? "*" : "");
}

/* Groups threads by name: a pool, or threads that come and go, are one group. 0 or -ENOMEM; the
 * caller frees *out. */
static int group(const struct xsp_rule_context *c, struct groups *out)
{
	const struct xsp_thread_times *t;
	const size_t n = xsp_timeline_times(c->timeline, &t);

	for (size_t i = 0; i < n; i++, t++) {
		struct group first = {.threads = 0};
		char family[FAMILY_SIZE];
		snprintf(first.name, FAMILY_SIZE, "%s", t->thread->comm);
		family_of(first.name, family);
		struct group *g = xsp_tally_row(
			&out->of, xsp_u64_mix(xsp_text_hash(family, strlen(family))), &first);
		if (g == NULL)
			return -ENOMEM;
		/* threads that all have one name, like python3, keep it */
		if (strcmp(g->name, first.name) != 0)
			snprintf(g->name, FAMILY_SIZE, "%s", family);
		g->first = t->thread->ns_tid;
		g->threads++;
		g->time_ns += t->until_ns - t->since_ns;
		g->running_ns += t->running_ns;
		g->ns += t->runnable_ns;
	}
	return 0;
}

/* How many CPUs the recorded processes used together. */
static double cpus_of(const struct xsp_rule_context *c)
{
	const struct xsp_thread_times *times;
	const size_t n = xsp_timeline_times(c->timeline, &times);
	uint64_t ns = 0, time_ns = xsp_rule_waits_ns(c);

	for (size_t i = 0; i < n; i++) {
		const uint64_t there = times[i].until_ns - times[i].since_ns;
		ns += times[i].running_ns;
		time_ns = there > time_ns ? there : time_ns;
	}
	return xsp_rule_share(ns, time_ns);
}

/* A program that uses less is held back by others, or by a limit. */
#define ONE_CPU 0.9

#define HUNGRY 0.8 /* of its time a thread runs, or could */
#define MANY 2U /* threads for each CPU */

/* Are there many more threads that always want to run than CPUs? Fewer are healthy: they only share. */
static bool are_many(const struct xsp_rule_context *c, uint64_t *hungry, uint64_t *cpus)
{
	const char *text = xsp_capture_info(c->reader, "cpus");
	const struct xsp_thread_times *t;
	const size_t n = xsp_timeline_times(c->timeline, &t);

	*hungry = 0;
	*cpus = text != NULL ? strtoull(text, NULL, 10) : 0;
	for (size_t i = 0; i < n; i++)
		*hungry += xsp_rule_was_there(c, t[i].until_ns - t[i].since_ns) &&
			   xsp_rule_share(t[i].running_ns + t[i].runnable_ns,
					  t[i].until_ns - t[i].since_ns) >= HUNGRY;
	return *cpus > 0 && *hungry > MANY * *cpus;
}

#define OFTEN_STOPPED 0.1 /* of the periods in which it wanted to run */

/* How the processes' control group was held back (capture-format.md, `cpu limit`). */
struct limit {
	double cpus;
	uint64_t periods, stopped;
};

static bool is_limited(const struct xsp_rule_context *c, struct limit *l)
{
	const char *text = xsp_capture_info(c->reader, "cpu limit");

	*l = (struct limit){.cpus = 0};
	return text != NULL &&
	       sscanf(text, "%lf %" SCNu64 " %" SCNu64, &l->cpus, &l->periods, &l->stopped) == 3 &&
	       xsp_rule_share(l->stopped, l->periods) >= OFTEN_STOPPED;
}

static void find_group(const struct xsp_rule_context *c, const struct group *g, double share)
{
	const double used = cpus_of(c);
	uint64_t hungry = 0, cpus = 0;
	struct limit limit;
	const bool limited = is_limited(c, &limit);
	const bool many = !limited && are_many(c, &hungry, &cpus);
	/* otherwise other programs have the CPUs, or a few threads share them: nothing would be saved */
	struct xsp_rule_finding f = {.subject = g->name,
				     .part.share = share,
				     .note = !many && !limited,
				     .sure = limited ? share : XSP_SHARE_MEDIUM};

	xsp_finding_ns(&f, "total_ns", "in all", g->ns);
	xsp_finding_ns(&f, "running_ns", "on CPU", g->running_ns);
	xsp_finding_count(&f, "threads", "threads", g->threads);
	xsp_finding_flag(&f, "one", g->threads == 1);
	xsp_finding_flag(&f, "held_back", !many && !limited && used < ONE_CPU);
	xsp_finding_flag(&f, "limited", limited);
	xsp_finding_number(&f, "limit", limited ? "CPUs that its control group may use" : NULL,
			   limit.cpus);
	xsp_finding_count(&f, "periods", limited ? "periods in which it wanted to run" : NULL,
			  limit.periods);
	xsp_finding_count(&f, "stopped", limited ? "of them in which it was stopped" : NULL,
			  limit.stopped);
	xsp_finding_flag(&f, "many", many);
	xsp_finding_count(&f, "hungry", many ? "threads that always want to run" : NULL, hungry);
	xsp_finding_count(&f, "may_use", many ? "CPUs that they may use" : NULL, cpus);
	xsp_finding_number(&f, "cpus", NULL, used);
	xsp_finding_count(&f, "first", NULL, g->first);
	xsp_rule_found(c, &f);
}

/* Finds groups of threads that could run and had no CPU for such a share of their time. */
int xsp_rule_runnable(const struct xsp_rule_context *c)
{
	const uint64_t watched = xsp_rule_waits_ns(c);
	struct groups groups = {0};
	int rc = XSP_RULE_NO_DATA;

	if (xsp_rule_summary(c)->waits != NULL)
		rc = group(c, &groups);
	for (size_t i = 0; i < groups.of.count && rc == 0; i++) {
		const struct group *g = &groups.of.rows[i];
		/* short-lived threads are compared with all of the time */
		const uint64_t time = g->time_ns > watched ? g->time_ns : watched;
		const double share = xsp_rule_share(g->ns, time);
		if (share > 0 && share >= c->threshold)
			find_group(c, g, share);
	}
	xsp_tally_free(&groups.of);
	return rc;
}
