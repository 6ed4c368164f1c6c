/* SPDX-License-Identifier: BSD-2-Clause */
/* rules_memory.c - memory that only grows, repeated allocations, and copies that could be
 * cheaper. */
#include "analysis/rules/rules_private.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/calls/call_sites.h"
#include "analysis/gpu/gpu.h"
#include "analysis/memory/summary_memory.h"
#include "base/saturate.h"
#include "base/units.h"

#define ALLOCATION_LEAST_SHARE 0.01 /* of the time: cheaper ones do not matter */
#define COPIES_LEAST_SHARE 0.05
#define COPIES_LEAST 100 /* fewer prove nothing */
#define MOST_COPIES 0.9

/* ---- leak ---- */

/* When steps ran; NULL: there were none. */
static const struct xsp_growth_steps *steps_of(const struct xsp_rule_context *c)
{
	return c->steps.steps > 0 ? xsp_steps_over_time(xsp_rule_summary(c)->steps) : NULL;
}

/* Per step where steps ran meanwhile; else per second. */
static struct xsp_rate rate_of(const struct xsp_slope *s, const char **period)
{
	*period = s->steps_known ? "step" : "second";
	return s->steps_known ? s->a_step : (struct xsp_rate){s->slope, s->low, s->high};
}

static uint64_t bytes_of(double bytes)
{
	return bytes > 0 && bytes < 1e18 ? (uint64_t)bytes : 0;
}

/* Per step or second: fills a machine within the hour. */
#define GRAVE_BYTES (10.0 * 1024 * 1024)

/* For a place or a process. */
static void put_growth(struct xsp_rule_finding *f, struct xsp_rate rate, const char *period,
		       const struct xsp_slope *slope)
{
	xsp_finding_figure(f, "growth", "growth", XSP_UNIT_BYTES_PER_SECOND,
			   xsp_cell_real(slope->slope));
	xsp_finding_bytes(f, "by", NULL, bytes_of(rate.slope));
	xsp_finding_bytes(f, "least", NULL, bytes_of(rate.low));
	xsp_finding_text(f, "period", NULL, period);
}

static void find_leak(const struct xsp_rule_context *c, const struct xsp_allocation_site *site,
		      struct xsp_rate rate, const char *period)
{
	char where[1300];
	struct xsp_rule_finding f = {.subject = where,
				     .part.share = xsp_rule_share(site->alive_bytes, site->bytes),
				     .severity = rate.low < GRAVE_BYTES ? XSP_SEVERITY_MEDIUM
									: XSP_SEVERITY_HIGH};

	xsp_summary_allocations_name(xsp_rule_summary(c)->allocations, site->where, where,
				     sizeof(where));
	put_growth(&f, rate, period, &site->slope);
	xsp_finding_figure(&f, "growth_low", "at least (95%)", XSP_UNIT_BYTES_PER_SECOND,
			   xsp_cell_real(site->slope.low));
	xsp_finding_figure(&f, "growth_high", "at most", XSP_UNIT_BYTES_PER_SECOND,
			   xsp_cell_real(site->slope.high));
	xsp_finding_bytes(&f, "alive_bytes", "alive at the end", site->alive_bytes);
	xsp_finding_count(&f, "alive", "in blocks", site->alive);
	xsp_finding_flag(&f, "heap", xsp_timeline_heap_period(c->timeline) > 0);
	xsp_rule_found(c, &f);
}

/* No finding, but whoever looks for a leak wants to know. */
static void say_that_it_grows(const struct xsp_rule_context *c, struct xsp_rate rate)
{
	char said[160], text[XSP_UNITS_SIZE];

	snprintf(said, sizeof(said),
		 "memory grows by %s a second: record for longer (-d 60) to see whether it goes on",
		 xsp_format_bytes(text, bytes_of(rate.slope)));
	xsp_report_caveat(xsp_report_section(c->report, "memory", "Memory"), said);
}

/* Without steps: in less time a cache that fills, or a young heap of a JVM's, looks like a leak. */
#define GROWS_LEAST_NS 60000000000U

static void find_process(const struct xsp_rule_context *c, const struct xsp_growing_process *p,
			 struct xsp_rate rate, const char *period)
{
	char subject[100];
	struct xsp_rule_finding f = {
		.subject = subject,
		.part.share = xsp_rule_share(p->last - p->first, p->last),
		.severity = XSP_SEVERITY_MEDIUM,
		.note = !p->slope.steps_known && c->recorded_ns < GROWS_LEAST_NS,
		.title =
			"memory of {subject} ({pid}) only grows: by {by} a {period}, at least {least}",
		.advice =
			"see whether it goes on for longer. What allocates it: --memory --python names the line of a PyTorch program, --memory=malloc the function of "
			"any other; of objects of Python's own, tracemalloc does",
		.uncertain =
			"only the whole process was looked at: what is loaded or filled for once grows as well"};

	snprintf(subject, sizeof(subject), "process %.64s", p->name);
	put_growth(&f, rate, period, &p->slope);
	xsp_finding_bytes(&f, "start_bytes", "anonymous memory at the start", p->first);
	xsp_finding_bytes(&f, "end_bytes", "at the end", p->last);
	xsp_finding_figure(&f, "pid", NULL, XSP_UNIT_NUMBER, xsp_cell_integer(p->pid));
	xsp_rule_found(c, &f);
	if (f.note)
		say_that_it_grows(c, rate);
}

#define STEPS_LEAST 30U /* of a whole process: in the first ones it still loads */

/* Without recorded allocations: the kernel's figures of whole processes, which every recording
 * has. */
static int find_growing(const struct xsp_rule_context *c)
{
	/* a step of the job is one step of each rank */
	const double processes = (double)xsp_steps_processes(xsp_rule_summary(c)->steps);
	const struct xsp_summary_memory *memory = xsp_rule_summary(c)->memory;
	struct xsp_growing_process p;
	int rc = XSP_RULE_NO_DATA;

	for (size_t i = 0; xsp_summary_memory_growing(memory, c->reader, steps_of(c), &i, &p);) {
		const char *period;
		struct xsp_rate rate = rate_of(&p.slope, &period);
		if (p.slope.steps_known)
			rate = (struct xsp_rate){.slope = rate.slope * processes,
						 .low = rate.low * processes};
		if (rate.low < c->threshold ||
		    (p.slope.steps_known && c->steps.steps < STEPS_LEAST))
			continue;
		find_process(c, &p, rate, period);
		rc = 0;
	}
	return rc;
}

/* Were all places followed too briefly to show whether they grow?
 * xsp_summary_allocations_growing() ends its list with an empty site. */
static bool were_too_short(const struct xsp_allocation_site *sites)
{
	size_t i = 0;

	while (sites[i].where != NULL && !sites[i].slope.known)
		i++;
	return i > 0 && sites[i].where == NULL;
}

int xsp_rule_leak(const struct xsp_rule_context *c)
{
	const struct xsp_summary_allocations *a = xsp_rule_summary(c)->allocations;
	size_t count, found = 0;

	if (a == NULL || !xsp_summary_allocations_sure(a))
		return find_growing(c);
	struct xsp_allocation_site *sites = xsp_summary_allocations_growing(a, steps_of(c), &count);
	if (sites == NULL)
		return -ENOMEM;
	if (were_too_short(sites)) {
		static_assert(XSP_GROWTH_LEAST_NS == 500000000U, "half a second");
		*c->needs = "allocations over half a second at least";
		free(sites);
		return XSP_RULE_NO_DATA;
	}
	for (size_t i = 0; i < count && found < XSP_FINDINGS_MAX; i++) {
		const char *period;
		const struct xsp_rate rate = rate_of(&sites[i].slope, &period);
		if (rate.low < c->threshold)
			continue;
		find_leak(c, &sites[i], rate, period);
		found++;
	}
	free(sites);
	return 0;
}

/* ---- allocation in the loop ---- */

static void find_allocation(const struct xsp_rule_context *c, const struct xsp_call_place *p,
			    double per_step, struct xsp_rule_part part)
{
	char text[XSP_CALL_SITE_TEXT];
	struct xsp_rule_finding f = {.subject = text,
				     .part = part,
				     .at_ns = p->site.longest_start_ns,
				     .for_ns = p->site.longest_ns};

	xsp_call_site_text(xsp_rule_state(c, "call_sites"), &p->site, text);
	xsp_finding_ns(&f, "total_ns", "in all", p->site.total_ns);
	xsp_finding_calls(&f, p->site.calls, per_step);
	xsp_rule_found(c, &f);
}

int xsp_rule_allocation(const struct xsp_rule_context *c)
{
	size_t count, found = 0;

	if (c->steps.steps == 0 || !xsp_summary_gpu_called(xsp_rule_summary(c)->gpu))
		return XSP_RULE_NO_DATA;
	struct xsp_call_place *places =
		xsp_call_sites_places(xsp_rule_state(c, "call_sites"),
				      1U << XSP_CUDA_ALLOC | 1U << XSP_CUDA_FREE, &count);
	if (places == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < count && found < XSP_FINDINGS_MAX; i++) {
		const double per_step = xsp_rule_share(places[i].in_steps, c->steps.steps);
		const struct xsp_rule_part part =
			xsp_rule_part(c, places[i].site.total_ns, places[i].in_steps_ns);
		if (per_step <= 0 || per_step < c->threshold || part.share < ALLOCATION_LEAST_SHARE)
			continue;
		find_allocation(c, &places[i], per_step, part);
		found++;
	}
	free(places);
	return 0;
}

/* ---- copies ---- */

static bool has_gpu(const struct xsp_rule_context *c)
{
	const struct xsp_gpu_counts *counts = xsp_timeline_gpu(c->timeline);

	return counts != NULL && counts->records > 0;
}

/* Calls that copy: the place with the most time ("": none was seen), and the count and time of
 * all. */
struct callers {
	char place[XSP_CALL_SITE_TEXT];
	struct xsp_call_place sum;
};

static int callers_of_copies(const struct xsp_rule_context *c, struct callers *out)
{
	const struct xsp_call_sites *sites = xsp_rule_state(c, "call_sites");
	size_t count;
	struct xsp_call_place *places = xsp_call_sites_places(sites, 1U << XSP_CUDA_MEMCPY, &count);

	*out = (struct callers){.sum.in_steps = 0};
	if (places == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		xsp_call_place_add(&out->sum, &places[i]);
	if (count > 0)
		xsp_call_site_text(sites, &places[0].site, out->place);
	free(places);
	return 0;
}

/* `cut`: how many lie only partly in the range, which leaves the bandwidth unknown. */
static void put_copies(struct xsp_rule_finding *f, uint64_t count, uint64_t cut, uint64_t bytes,
		       uint64_t ns)
{
	const bool known = ns > 0 && ns != XSP_TOO_MUCH && bytes != XSP_TOO_MUCH && cut == 0;

	xsp_finding_count(f, "copies", "copies", count);
	xsp_finding_figure(f, "bytes", "bytes", XSP_UNIT_BYTES, xsp_cell_sum(bytes));
	xsp_finding_figure(f, "total_ns", "in all", XSP_UNIT_NS, xsp_cell_sum(ns));
	if (known)
		xsp_finding_figure(f, "bandwidth", "bandwidth", XSP_UNIT_BYTES_PER_SECOND,
				   xsp_cell_real((double)bytes * 1e9 / (double)ns));
}

/* At least 1. */
static size_t gpu_count(const struct xsp_rule_context *c)
{
	const struct xsp_gpu_analysis *g = xsp_rule_state(c, "gpu");
	const struct xsp_gpu_device_use *devices;
	const size_t n = g != NULL ? xsp_gpu_sweep_devices(g->sweep, &devices) : 0;

	return n > 0 ? n : 1;
}

int xsp_rule_pageable_copy(const struct xsp_rule_context *c)
{
	const struct xsp_copies *copies = xsp_call_sites_copies(xsp_rule_state(c, "call_sites"));
	const size_t gpus = gpu_count(c);
	const double share = xsp_rule_share(copies->pageable_ns, c->recorded_ns * gpus);
	struct callers callers;

	if (!has_gpu(c))
		return XSP_RULE_NO_DATA;
	if (copies->pageable == 0 || share < c->threshold || copies->pageable_ns == XSP_TOO_MUCH)
		return 0;
	int rc = callers_of_copies(c, &callers);
	if (rc < 0)
		return rc;
	struct xsp_rule_finding f = {.subject = callers.place[0] != '\0' ? callers.place : NULL,
				     .part = {share, "the recorded time"},
				     .at_ns = copies->pageable_longest_start_ns,
				     .for_ns = copies->pageable_longest_ns};
	put_copies(&f, copies->pageable, copies->pageable_cut, copies->pageable_bytes,
		   copies->pageable_ns);
	xsp_finding_flag(&f, "several", gpus > 1);
	xsp_rule_found(c, &f);
	return 0;
}

/* How many are certainly smaller: sizes are known to a power of two. */
static uint64_t smaller(const struct xsp_copies *copies, double bytes)
{
	uint64_t count = 0;

	for (unsigned i = 0; i < 64 && (double)(1ULL << i) <= bytes; i++)
		count += copies->count_below[i];
	return count;
}

int xsp_rule_small_copies(const struct xsp_rule_context *c)
{
	const struct xsp_copies *copies = xsp_call_sites_copies(xsp_rule_state(c, "call_sites"));
	const uint64_t small = smaller(copies, c->threshold);
	struct callers callers;
	int rc = callers_of_copies(c, &callers);
	const struct xsp_call_site *calls = &callers.sum.site;

	if (rc < 0 || !has_gpu(c) || calls->calls == 0)
		return rc < 0 ? rc : XSP_RULE_NO_DATA;
	struct xsp_rule_finding f = {
		.subject = callers.place,
		.part = xsp_rule_part(c, calls->total_ns, callers.sum.in_steps_ns)};
	/* the calls must match these copies: others copy within the device */
	if (small < COPIES_LEAST || xsp_rule_share(small, copies->count) < MOST_COPIES ||
	    f.part.share < COPIES_LEAST_SHARE || calls->calls > 2 * copies->count)
		return 0;
	put_copies(&f, copies->count, copies->cut, copies->bytes, copies->ns);
	xsp_finding_count(&f, "small", NULL, small);
	xsp_finding_bytes(&f, "small_bytes", NULL, bytes_of(c->threshold));
	xsp_rule_found(c, &f);
	return 0;
}
