/* SPDX-License-Identifier: BSD-2-Clause */
/* rules_threads.c - what threads of one name lacked: a CPU, the disk, their pages. */
#include "analysis/rules/rules_private.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/share_interval.h"
#include "analysis/waits/summary_waits_private.h"
#include "base/text.h"
#include "base/rows/u64map.h"

#define FAMILY_SIZE 80

struct group {
	char name[FAMILY_SIZE];
	uint32_t first; /* one of them, by the process's own id */
	uint64_t threads, time_ns, ns, running_ns;
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
static int group(const struct xsp_rule_context *c, enum xsp_wait_class why, struct group **out,
		 size_t *count)
{
	const struct xsp_thread_times *t;
	const size_t n = xsp_timeline_times(c->timeline, &t);
	struct xsp_u64map index = {0};
	size_t capacity = 0, i = 0;

	for (; i < n; i++, t++) {
		struct group first = {.threads = 0};
		char family[FAMILY_SIZE];
		snprintf(first.name, FAMILY_SIZE, "%s", t->thread->comm);
		family_of(first.name, family);
		struct group *g = xsp_u64map_element(
			&index, xsp_u64_mix(xsp_text_hash(family, strlen(family))), out, &capacity,
			count, &first);
		if (g == NULL)
			break;
		/* threads that all have one name, like python3, keep it */
		if (strcmp(g->name, first.name) != 0)
			snprintf(g->name, FAMILY_SIZE, "%s", family);
		g->first = t->thread->ns_tid;
		g->threads++;
		g->time_ns += t->until_ns - t->since_ns;
		g->running_ns += t->running_ns;
		g->ns += why == XSP_WAIT_RUNNABLE ? t->runnable_ns : t->blocked_ns[why];
	}
	xsp_u64map_free(&index);
	return i == n ? 0 : -ENOMEM;
}

/* Where one of them waited longest for that; NULL: not known. */
static const char *place_of(const struct xsp_rule_context *c, const struct group *g,
			    enum xsp_wait_class why)
{
	const struct xsp_summary_waits *w = xsp_rule_summary(c)->waits;
	const struct spot *longest = NULL;
	char family[FAMILY_SIZE], other[FAMILY_SIZE];

	family_of(g->name, family);
	for (size_t i = 0; i < w->spots.count; i++) {
		const struct spot *s = &w->spots.rows[i];
		if (s->of_lock || s->why != why || (longest != NULL && s->ns <= longest->ns))
			continue;
		const struct xsp_timeline_thread *t =
			xsp_timeline_thread(c->timeline, w->members.rows[s->owner].tid);
		family_of(t != NULL ? t->comm : "", other);
		if (strcmp(family, other) == 0)
			longest = s;
	}
	return longest != NULL ? xsp_timeline_name(c->timeline, longest->place - 1) : NULL;
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

static void find_group(const struct xsp_rule_context *c, const struct group *g, double share,
		       enum xsp_wait_class why)
{
	const double cpus = cpus_of(c);
	/* other programs have the CPUs: that says something about the machine, not about this program */
	const bool of_machine = why == XSP_WAIT_RUNNABLE && cpus < ONE_CPU;
	struct xsp_rule_finding f = {.subject = g->name, .part.share = share, .note = of_machine};

	xsp_finding_ns(&f, "total_ns", "in all", g->ns);
	xsp_finding_ns(&f, "running_ns", "on CPU", g->running_ns);
	xsp_finding_count(&f, "threads", "threads", g->threads);
	xsp_finding_flag(&f, "one", g->threads == 1);
	if (why != XSP_WAIT_RUNNABLE)
		xsp_finding_text(&f, "place", "longest at", place_of(c, g, why));
	xsp_finding_flag(&f, "held_back", cpus < ONE_CPU);
	xsp_finding_flag(&f, "many_held_back", cpus < ONE_CPU && g->threads > 1);
	xsp_finding_number(&f, "cpus", NULL, cpus);
	xsp_finding_count(&f, "first", NULL, g->first);
	xsp_rule_found(c, &f);
}

/* Finds groups of threads that waited for `why`, or were runnable, for such a share of their
 * time. */
static int find_groups(const struct xsp_rule_context *c, enum xsp_wait_class why)
{
	const uint64_t watched = xsp_rule_waits_ns(c);
	struct group *groups = NULL;
	size_t count = 0;
	int rc = XSP_RULE_NO_DATA;

	if (xsp_rule_summary(c)->waits != NULL)
		rc = group(c, why, &groups, &count);
	for (size_t i = 0; i < count && rc == 0; i++) {
		/* short-lived threads are compared with all of the time */
		const uint64_t time = groups[i].time_ns > watched ? groups[i].time_ns : watched;
		const double share = xsp_rule_share(groups[i].ns, time);
		if (share > 0 && share >= c->threshold)
			find_group(c, &groups[i], share, why);
	}
	free(groups);
	return rc;
}

int xsp_rule_disk(const struct xsp_rule_context *c)
{
	return find_groups(c, XSP_WAIT_DISK);
}

int xsp_rule_runnable(const struct xsp_rule_context *c)
{
	return find_groups(c, XSP_WAIT_RUNNABLE);
}

/* A fault without disk access is no wait: the kernel finds and clears the page in the thread's
 * own time. */
static void find_storm(const struct xsp_rule_context *c, const struct xsp_fault_samples *s)
{
	const double share = xsp_rule_share(s->ns, s->all_ns);
	/* CPU time of a process that hardly runs is no loss */
	const uint64_t time_ns = xsp_rule_samples_ns(c);
	const double whole = s->all_ns > time_ns ? 1 : xsp_rule_share(s->all_ns, time_ns);
	char doubt[XSP_DOUBT_SIZE];
	double low, high;

	if (s->function == NULL || s->samples < XSP_SAMPLES_LEAST)
		return;
	xsp_share_interval(share, (double)s->samples, &low, &high);
	if (low * whole < c->threshold)
		return;
	struct xsp_rule_finding f = {
		.subject = s->function,
		.part.share = share * whole,
		.sure = low * whole,
		.title =
			"page faults take {on_cpu} of the time on CPUs, most of it in {subject:300}",
		.advice =
			"the same memory is taken from the kernel and given back again and again (mmap and munmap, large mallocs, fork), or more and more is taken: keep "
			"and reuse buffers, raise malloc's M_MMAP_THRESHOLD and M_TRIM_THRESHOLD, or use huge pages",
		.uncertain = xsp_rule_doubt(c, XSP_DOUBT_SAMPLES, doubt)};
	xsp_finding_ns(&f, "total_ns", "in all", s->ns);
	xsp_finding_ns(&f, "running_ns", "on CPU", s->all_ns);
	xsp_finding_share(&f, "on_cpu", NULL, share);
	xsp_rule_found(c, &f);
}

int xsp_rule_page_faults(const struct xsp_rule_context *c)
{
	const struct xsp_fault_samples faults =
		xsp_summary_samples_faults(xsp_rule_summary(c)->samples);

	find_storm(c, &faults);
	const int rc = find_groups(c, XSP_WAIT_FAULT);
	return rc == XSP_RULE_NO_DATA && faults.all_ns > 0 ? 0 : rc;
}
