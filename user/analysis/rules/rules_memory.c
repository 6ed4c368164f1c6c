/* SPDX-License-Identifier: BSD-2-Clause */
/* rules_memory.c - what only grows, what is allocated again and again, and copies that could be cheaper. */
#include "analysis/rules/rules_private.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/calls/call_sites.h"
#include "analysis/gpu/gpu.h"
#include "analysis/memory/summary_memory.h"
#include "analysis/summary_report.h"
#include "base/saturate.h"
#include "base/units.h"

#define FINDINGS_MAX 20 /* of one rule, with whatever threshold */
#define ALLOCATION_LEAST_SHARE 0.01 /* of the time: cheaper ones are nobody's question */
#define COPIES_LEAST_SHARE 0.05
#define COPIES_LEAST 100 /* fewer prove nothing */
#define MOST_COPIES 0.9

static const struct xsp_summary_analysis *summary_of(const struct xsp_rule_context *c)
{
	return xsp_rule_state(c, "summary");
}

/* ---- leak ---- */

/* When there were steps; NULL: there were none. */
static const struct xsp_growth_steps *steps_of(const struct xsp_rule_context *c)
{
	return c->steps.steps > 0 ? xsp_steps_over_time(summary_of(c)->summary->steps) : NULL;
}

/* A step, where there were some meanwhile; else a second. */
static struct xsp_rate rate_of(const struct xsp_slope *s, const char **period)
{
	*period = s->steps_known ? "step" : "second";
	return s->steps_known ? s->a_step : (struct xsp_rate){s->slope, s->low, s->high};
}

static uint64_t bytes_of(double bytes)
{
	return bytes > 0 && bytes < 1e18 ? (uint64_t)bytes : 0;
}

/* A step, or a second: what has filled a machine within the hour. */
#define GRAVE_BYTES (10.0 * 1024 * 1024)

static void find_leak(const struct xsp_rule_context *c, const struct xsp_allocation_site *site,
		      struct xsp_rate rate, const char *period)
{
	const struct xsp_summary_allocations *a = summary_of(c)->summary->allocations;
	char where[1300], title[1500], advice[1600], text[XSP_UNITS_SIZE], low[XSP_UNITS_SIZE];

	xsp_summary_allocations_name(a, site->where, where, sizeof(where));
	snprintf(title, sizeof(title), "memory of %s only grows: by %s a %s, at least %s", where,
		 xsp_format_bytes(text, bytes_of(rate.slope)), period,
		 xsp_format_bytes(low, bytes_of(rate.low)));
	snprintf(advice, sizeof(advice), "something keeps what %s allocates: %s", where,
		 xsp_timeline_heap_period(c->timeline) > 0
			 ? "no free follows, or lists and caches only get longer"
			 : "results kept with their graph (.detach(), .item()), lists or caches "
			   "that only get longer");
	struct xsp_report_section *f =
		xsp_rule_found(c,
			       (struct xsp_report_finding){
				       .severity = rate.low < GRAVE_BYTES ? XSP_SEVERITY_MEDIUM
									  : XSP_SEVERITY_HIGH,
				       .subject = where,
				       .title = title,
				       .advice = advice,
				       .share = xsp_rule_share(site->alive_bytes, site->bytes)},
			       false);
	xsp_report_value(f, "growth", "growth", XSP_UNIT_BYTES_PER_SECOND,
			 xsp_cell_real(site->slope.slope));
	xsp_report_value(f, "growth_low", "at least (95%)", XSP_UNIT_BYTES_PER_SECOND,
			 xsp_cell_real(site->slope.low));
	xsp_report_value(f, "growth_high", "at most", XSP_UNIT_BYTES_PER_SECOND,
			 xsp_cell_real(site->slope.high));
	xsp_report_value(f, "alive_bytes", "alive at the end", XSP_UNIT_BYTES,
			 xsp_cell_integer(site->alive_bytes));
	xsp_report_value(f, "alive", "in blocks", XSP_UNIT_COUNT, xsp_cell_integer(site->alive));
}

/* Who allocated it was not recorded: the kernel's figures of whole processes, which every recording has. */
static int find_growing(const struct xsp_rule_context *c)
{
	/* ranks, of each of which a step is one of so many */
	const double processes = (double)xsp_steps_processes(summary_of(c)->summary->steps);
	struct xsp_growing_process p;
	int rc = XSP_RULE_NO_DATA;

	for (size_t i = 0; xsp_summary_memory_growing(summary_of(c)->summary->memory, c->reader,
						      steps_of(c), &i, &p);) {
		char subject[100], title[300], text[XSP_UNITS_SIZE], low[XSP_UNITS_SIZE];
		const char *period;
		struct xsp_rate rate = rate_of(&p.slope, &period);
		if (p.slope.steps_known)
			rate = (struct xsp_rate){.slope = rate.slope * processes,
						 .low = rate.low * processes};
		if (rate.low < c->threshold)
			continue;
		snprintf(subject, sizeof(subject), "process %.64s", p.name);
		snprintf(title, sizeof(title),
			 "memory of process %.64s (%" PRIu32
			 ") only grows: by %s a %s, at least %s",
			 p.name, p.pid, xsp_format_bytes(text, bytes_of(rate.slope)), period,
			 xsp_format_bytes(low, bytes_of(rate.low)));
		struct xsp_report_section *f = xsp_rule_found(
			c,
			(struct xsp_report_finding){
				.severity = XSP_SEVERITY_MEDIUM,
				.subject = subject,
				.title = title,
				.advice = "see whether it goes on for longer. What allocates it: "
					  "--memory --python names the line of a PyTorch program, "
					  "--memory=malloc the function of any other; of objects "
					  "of Python's own, tracemalloc does",
				.uncertain = "only the whole process was looked at: what is loaded "
					     "or filled for once grows as well",
				.share = xsp_rule_share(p.last - p.first, p.last)},
			false);
		xsp_report_value(f, "growth", "growth", XSP_UNIT_BYTES_PER_SECOND,
				 xsp_cell_real(p.slope.slope));
		xsp_report_value(f, "start_bytes", "anonymous memory at the start", XSP_UNIT_BYTES,
				 xsp_cell_integer(p.first));
		xsp_report_value(f, "end_bytes", "at the end", XSP_UNIT_BYTES,
				 xsp_cell_integer(p.last));
		rc = 0;
	}
	return rc;
}

/* Could it be told of none of them whether it grows? That is so of all where they were followed for too short a time. What
 * xsp_summary_allocations_growing() returns ends with an empty site. */
static bool were_too_short(const struct xsp_allocation_site *sites)
{
	size_t i = 0;

	while (sites[i].where != NULL && !sites[i].slope.known)
		i++;
	return i > 0 && sites[i].where == NULL;
}

int xsp_rule_leak(const struct xsp_rule_context *c)
{
	const struct xsp_summary_allocations *a = summary_of(c)->summary->allocations;
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
	for (size_t i = 0; i < count && found < FINDINGS_MAX; i++) {
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
	const struct xsp_call_sites *sites = xsp_rule_state(c, "call_sites");
	char text[XSP_CALL_SITE_TEXT], title[XSP_CALL_SITE_TEXT + 200], doubt[XSP_DOUBT_SIZE];

	xsp_call_site_text(sites, &p->site, text);
	snprintf(title, sizeof(title), "%s: %.4g times a step, %.1f %% of %s", text, per_step,
		 100 * part.share, part.of);
	struct xsp_report_section *f = xsp_rule_found(
		c,
		(struct xsp_report_finding){
			.subject = text,
			.title = title,
			.advice =
				"allocate before the loop and reuse it, or take memory from a "
				"caching "
				"allocator (PyTorch's, cudaMallocAsync): CUDA's own calls wait for "
				"the GPU",
			.uncertain = xsp_rule_doubt(
				c, XSP_DOUBT_LOST | XSP_DOUBT_WINDOWS | XSP_DOUBT_SITES, doubt),
			.share = part.share,
			.from_ns = p->site.longest_start_ns,
			.to_ns = p->site.longest_start_ns + p->site.longest_ns},
		true);
	xsp_report_value(f, "total_ns", "in all", XSP_UNIT_NS, xsp_cell_integer(p->site.total_ns));
	xsp_report_value(f, "calls", "calls", XSP_UNIT_COUNT, xsp_cell_integer(p->site.calls));
	xsp_report_value(f, "calls_per_step", "calls a step", XSP_UNIT_COUNT,
			 xsp_cell_real(per_step));
}

int xsp_rule_allocation(const struct xsp_rule_context *c)
{
	size_t count, found = 0;

	if (c->steps.steps == 0 || !xsp_summary_gpu_called(summary_of(c)->summary->gpu))
		return XSP_RULE_NO_DATA;
	struct xsp_call_place *places =
		xsp_call_sites_places(xsp_rule_state(c, "call_sites"),
				      1U << XSP_CUDA_ALLOC | 1U << XSP_CUDA_FREE, &count);
	if (places == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < count && found < FINDINGS_MAX; i++) {
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

/* Calls that copy: the place that took longest ("": none was seen), and how many and how long all of them. */
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

/* `cut`: of how many only a part is told, so that nothing is known of their bandwidth. */
static void put_copies(struct xsp_report_section *f, uint64_t count, uint64_t cut, uint64_t bytes,
		       uint64_t ns)
{
	xsp_report_value(f, "copies", "copies", XSP_UNIT_COUNT, xsp_cell_integer(count));
	xsp_report_value(f, "bytes", "bytes", XSP_UNIT_BYTES, xsp_cell_sum(bytes));
	xsp_report_value(f, "total_ns", "in all", XSP_UNIT_NS, xsp_cell_sum(ns));
	if (ns > 0 && ns != XSP_TOO_MUCH && bytes != XSP_TOO_MUCH && cut == 0)
		xsp_report_value(f, "bandwidth", "bandwidth", XSP_UNIT_BYTES_PER_SECOND,
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
	char title[240], advice[XSP_CALL_SITE_TEXT + 300], doubt[XSP_DOUBT_SIZE];
	char bytes[XSP_UNITS_SIZE];

	if (!has_gpu(c))
		return XSP_RULE_NO_DATA;
	if (copies->pageable == 0 || share < c->threshold || copies->pageable_ns == XSP_TOO_MUCH)
		return 0;
	int rc = callers_of_copies(c, &callers);
	if (rc < 0)
		return rc;
	snprintf(title, sizeof(title),
		 "copies from or to memory that is not pinned take %.1f %% of the recorded time%s: "
		 "%s",
		 100 * share, gpus > 1 ? ", in the mean of all GPUs" : "",
		 xsp_format_bytes(bytes, copies->pageable_bytes));
	snprintf(advice, sizeof(advice),
		 "pin the host's memory (pin_memory=True, cudaHostAlloc) and copy with "
		 "non_blocking=True: such copies are slower and make their caller wait%s%s",
		 callers.place[0] != '\0' ? ". Most of the time of calls that copy: " : "",
		 callers.place);
	struct xsp_report_section *f = xsp_rule_found(
		c,
		(struct xsp_report_finding){
			.subject = callers.place[0] != '\0' ? callers.place : NULL,
			.title = title,
			.advice = advice,
			.uncertain = xsp_rule_doubt(
				c, XSP_DOUBT_LOST | XSP_DOUBT_WINDOWS | XSP_DOUBT_SITES, doubt),
			.share = share,
			.from_ns = copies->pageable_longest_start_ns,
			.to_ns = copies->pageable_longest_start_ns + copies->pageable_longest_ns},
		true);
	put_copies(f, copies->pageable, copies->pageable_cut, copies->pageable_bytes,
		   copies->pageable_ns);
	return 0;
}

/* Those that are smaller for certain: sizes are known to a power of two. */
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
	char title[240], advice[XSP_CALL_SITE_TEXT + 200], doubt[XSP_DOUBT_SIZE];
	char count[XSP_UNITS_SIZE], bytes[XSP_UNITS_SIZE];
	int rc = callers_of_copies(c, &callers);

	if (rc < 0 || !has_gpu(c) || callers.sum.site.calls == 0)
		return rc < 0 ? rc : XSP_RULE_NO_DATA;
	const struct xsp_rule_part part =
		xsp_rule_part(c, callers.sum.site.total_ns, callers.sum.in_steps_ns);
	/* the calls must be those of the copies: there are copies within the device, too */
	if (small < COPIES_LEAST || xsp_rule_share(small, copies->count) < MOST_COPIES ||
	    part.share < COPIES_LEAST_SHARE || callers.sum.site.calls > 2 * copies->count)
		return 0;
	snprintf(title, sizeof(title),
		 "%s copies of less than %s: the calls for them take %.1f %% of %s",
		 xsp_format_count(count, small), xsp_format_bytes(bytes, bytes_of(c->threshold)),
		 100 * part.share, part.of);
	snprintf(advice, sizeof(advice),
		 "copy once what is copied in pieces, or keep it on the device; most of that time: "
		 "%s",
		 callers.place);
	struct xsp_report_section *f = xsp_rule_found(
		c,
		(struct xsp_report_finding){
			.subject = callers.place,
			.title = title,
			.advice = advice,
			.uncertain = xsp_rule_doubt(
				c, XSP_DOUBT_LOST | XSP_DOUBT_WINDOWS | XSP_DOUBT_SITES, doubt),
			.share = part.share},
		true);
	put_copies(f, copies->count, copies->cut, copies->bytes, copies->ns);
	return 0;
}
