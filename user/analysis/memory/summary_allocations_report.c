/* SPDX-License-Identifier: BSD-2-Clause */
/* summary_allocations_report.c - memory of allocators in reports. */
#include "analysis/memory/summary_allocations_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/units.h"
#include "catalog/allocators.h"

#define SITES_SHOWN 10
#define LEAKS_SHOWN 5
#define POOLS_SHOWN 16

#define ERROR_SIZE (XSP_UNITS_SIZE + 8)

/* " (+- 1.2 MiB)", or nothing. */
static const char *format_error(char out[ERROR_SIZE], uint64_t bytes)
{
	char text[XSP_UNITS_SIZE];

	out[0] = '\0';
	if (bytes > 0)
		snprintf(out, ERROR_SIZE, " (+- %s)", xsp_format_bytes(text, bytes));
	return out;
}

static void print_use(const struct xsp_summary_allocations *a, const struct xsp_capture_reader *r,
		      const struct xsp_memory_use *u, FILE *f)
{
	char pool[120], peak[XSP_UNITS_SIZE], now[XSP_UNITS_SIZE], bytes[XSP_UNITS_SIZE];
	char calls[XSP_UNITS_SIZE], frees[XSP_UNITS_SIZE], when[XSP_UNITS_SIZE];
	char error[3][ERROR_SIZE];
	uint64_t start, end;

	xsp_allocations_pool_name(a, u, pool, sizeof(pool));
	xsp_capture_window(r, &start, &end);
	fprintf(f, "%s%s, allocated since the recording began%s: ",
		xsp_allocations_is_heap(a) ? "" : "PyTorch's ", pool,
		xsp_allocations_is_heap(a) ? ", as estimated from a sample" : "");
	if (a->known)
		fprintf(f, "%s%s at most (after %s), %s%s at the end; ",
			xsp_format_bytes(peak, u->peak),
			format_error(error[0], xsp_allocations_error_of(u->peak_variance)),
			xsp_format_ns(when, u->peak_ns > start ? u->peak_ns - start : 0),
			xsp_format_bytes(now, u->now),
			format_error(error[1], xsp_allocations_error_of(u->now_variance)));
	fprintf(f, "%s%s in %s allocations, %s frees", xsp_format_bytes(bytes, u->allocated),
		format_error(error[2], xsp_allocations_error_of(u->allocated_variance)),
		xsp_format_count(calls, xsp_allocations_whole(u->allocations)),
		xsp_format_count(frees, xsp_allocations_whole(u->frees)));
	if (u->unknown_frees > 0 &&
	    !xsp_allocations_is_heap(a)) /* it is not known what was sampled before */
		fprintf(f, ", and %s of what was there before",
			xsp_format_count(calls, u->unknown_frees));
	fputc('\n', f);
}

static void print_uses(const struct xsp_summary_allocations *a, const struct xsp_capture_reader *r,
		       FILE *f)
{
	const struct xsp_memory_use *uses;
	const size_t count = xsp_timeline_memory(a->timeline, &uses);
	size_t pools = 0;

	for (size_t i = 0; i < count; i++)
		if (xsp_memory_is_allocator(uses[i].pool) && pools++ < POOLS_SHOWN)
			print_use(a, r, &uses[i], f);
	if (pools > POOLS_SHOWN)
		fprintf(f, "... and that of %zu more devices or processes\n", pools - POOLS_SHOWN);
}

static void format_rate(char *out, size_t size, double bytes)
{
	char text[XSP_UNITS_SIZE];

	snprintf(out, size, "%s%s", bytes < 0 ? "-" : "",
		 xsp_format_bytes(text, (uint64_t)(bytes < 0 ? -bytes : bytes)));
}

/* "... of 12 places that came last it is not known whether they grow"; "" if there are none. */
static const char *not_followed(const struct xsp_summary_allocations *a, char text[160])
{
	char count[XSP_UNITS_SIZE];

	text[0] = '\0';
	if (xsp_summary_allocations_sure(a) && a->count > a->growths)
		snprintf(
			text, 160,
			"whether memory grows is followed at %s places: of the %s that came later it is not known",
			xsp_format_count(count, a->growths),
			xsp_format_count((char[XSP_UNITS_SIZE]){0}, a->count - a->growths));
	return text;
}

static void print_leaks(const struct xsp_summary_allocations *a, struct xsp_report *report)
{
	struct xsp_allocation_site *all = xsp_allocations_rank(a, NULL, xsp_allocations_by_slope);
	size_t leaks = 0;

	while (all != NULL && leaks < a->count && all[leaks].slope.grows)
		leaks++;
	for (size_t i = 0; i < leaks && i < LEAKS_SHOWN; i++) {
		const struct xsp_allocation_site *r = &all[i];
		char slope[40], low[40], high[40], alive[XSP_UNITS_SIZE], blocks[XSP_UNITS_SIZE];
		char where[1300];
		format_rate(slope, sizeof(slope), r->slope.slope);
		format_rate(low, sizeof(low), r->slope.low);
		format_rate(high, sizeof(high), r->slope.high);
		xsp_allocations_site_name(a, r->where, 0, where, sizeof(where));
		xsp_list_warn(
			report,
			"leak? only grows: %s, by %s a second (%s to %s): %s in %s blocks are alive",
			where, slope, low, high, xsp_format_bytes(alive, r->alive_bytes),
			xsp_format_count(blocks, r->alive));
	}
	if (leaks > LEAKS_SHOWN)
		xsp_list_warn(report, "      and %zu more places that only grow",
			      leaks - LEAKS_SHOWN);
	free(all);
}

static void print_lines(const struct xsp_summary_allocations *a, const struct xsp_capture_reader *r,
			struct xsp_report *report)
{
	const uint64_t lost = xsp_timeline_allocations_lost(a->timeline);
	char text[160], count[XSP_UNITS_SIZE];

	print_uses(a, r, xsp_list_lines(report));
	if (!a->known)
		xsp_list_warn(
			report,
			"what is alive is not known: between the windows of --max-overhead allocations and frees were not seen; --max-overhead off sees all");
	if (lost > 0)
		xsp_list_warn(
			report,
			"allocations or frees that were not seen: %s: what is alive is wrong by as many blocks, and what grows is not told%s",
			xsp_format_count(count, lost),
			xsp_capture_stats(r)->lost_entries > 0 ? "; a larger --buffer loses less"
							       : "");
	print_leaks(a, report);
	if (not_followed(a, text)[0] != '\0')
		xsp_list_warn(report, "%s", text);
}

static void put_notes(const struct xsp_summary_allocations *a, struct xsp_report_section *section)
{
	char text[160];

	if (xsp_allocations_is_heap(a))
		xsp_report_note(section,
				"bytes and blocks are estimates, from a sample (--memory=malloc)");
	if (not_followed(a, text)[0] != '\0')
		xsp_report_note(section, text);
	if (!xsp_summary_allocations_sure(a))
		xsp_report_note(
			section,
			"what is alive is not known for sure, and what grows is not told: events were lost, or not all of the time was recorded");
}

static void put_pools(const struct xsp_summary_allocations *a, struct xsp_report_section *section)
{
	const struct xsp_memory_use *uses;
	const size_t n = xsp_timeline_memory(a->timeline, &uses);
	struct xsp_report_table *t = xsp_list_table(section, &xsp_allocations_pools);

	for (size_t i = 0; i < n; i++)
		if (xsp_memory_is_allocator(uses[i].pool))
			xsp_report_add(t, a, &uses[i]);
}

int xsp_summary_allocations_report(struct xsp_summary_allocations *a,
				   const struct xsp_capture_reader *r, struct xsp_report *report)
{
	struct xsp_allocation_site *all =
		a != NULL ? xsp_allocations_rank(a, NULL, xsp_allocations_by_alive) : NULL;

	if (a == NULL || all == NULL)
		return a == NULL ? 0 : -ENOMEM;
	const bool heap = xsp_allocations_is_heap(a);
	struct xsp_report_section *section = xsp_report_section(report, "memory", "Memory");
	xsp_list_member(report, "allocations.lost",
			xsp_cell_integer(xsp_timeline_allocations_lost(a->timeline)));
	if (heap) /* estimates from one sample in so many bytes */
		xsp_list_member(report, "allocations.heap_sample_bytes",
				xsp_cell_integer(xsp_timeline_heap_period(a->timeline)));
	put_pools(a, section);
	xsp_list_rows(section, heap ? &xsp_allocations_heap_sites : &xsp_allocations_pool_sites, a,
		      all, sizeof(*all), a->count,
		      xsp_report_how(report)->top > 0 ? SITES_SHOWN : 0);
	if (a->count > 0)
		xsp_list_gap(report);
	free(all);
	put_notes(a, section);
	if (xsp_report_form(report) == XSP_FORM_TEXT)
		print_lines(a, r, report);
	return 0;
}
