/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/memory/summary_allocations_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/names/name_rows.h"
#include "base/rows/grow.h"
#include "base/text.h"

#define MAX_GROWTHS 16384U /* sites whose growth is followed: 600 bytes each */

int xsp_summary_allocations_new(struct xsp_timeline *t, struct xsp_summary_allocations **out)
{
	*out = NULL;
	if (!xsp_timeline_has_allocations(t))
		return 0;
	*out = calloc(1, sizeof(**out));
	if (*out == NULL)
		return -ENOMEM;
	(*out)->timeline = t;
	(*out)->known = !xsp_timeline_allocations_in_windows(t);
	return 0;
}

void xsp_summary_allocations_free(struct xsp_summary_allocations *a)
{
	if (a == NULL)
		return;
	for (size_t i = 0; i < a->count; i++)
		free(a->rows[i].growth);
	xsp_tally_free(a);
	free(a->index_of);
	free(a);
}

/* ---- collecting ---- */

/* The span's name. Names that differ only in a number get their common form, in `common`. */
const char *xsp_allocations_span(const struct xsp_summary_allocations *a,
				 const struct xsp_memory_site *s, char common[XSP_ALLOCATIONS_SPAN])
{
	const char *name = s->in_span ? xsp_timeline_name(a->timeline, s->span) : "no span";

	return xsp_name_common(a->timeline, name, common, XSP_ALLOCATIONS_SPAN);
}

/* Finds or makes the site that counts the timeline's `index`. */
static int find_site(struct xsp_summary_allocations *a, uint32_t index)
{
	const struct xsp_memory_site *where;
	char common[XSP_ALLOCATIONS_SPAN];

	xsp_timeline_memory_sites(a->timeline, &where);
	const char *span = xsp_allocations_span(a, &where[index], common);
	const uint64_t key = span == common
				     ? xsp_u64_mix(xsp_text_hash(span, strlen(span))) +
					       xsp_u64_mix((uint64_t)where[index].module << 32 |
							   where[index].place)
				     : index;
	const struct site *site = xsp_tally_row(a, key, &(struct site){.where = index});
	if (site == NULL)
		return -ENOMEM;
	a->index_of[index] = xsp_tally_index(a, site) + 1;
	return 0;
}

static int site_at(struct xsp_summary_allocations *a, uint32_t index, struct site **out)
{
	if (xsp_grow_zeroed(&a->index_of, &a->index_of_capacity, (size_t)index + 1) < 0 ||
	    (a->index_of[index] == 0 && find_site(a, index) < 0))
		return -ENOMEM;
	struct site *s = &a->rows[a->index_of[index] - 1];
	if (s->growth == NULL && a->known && a->growths < MAX_GROWTHS) {
		s->growth = calloc(1, sizeof(*s->growth));
		if (s->growth == NULL)
			return -ENOMEM;
		a->growths++;
	}
	*out = s;
	return 0;
}

int xsp_summary_allocations_event(struct xsp_summary_allocations *a,
				  const struct xsp_memory_event *e)
{
	struct site *s;

	if (a == NULL || e->site == 0)
		return 0;
	int rc = site_at(a, e->site - 1, &s);
	if (rc < 0)
		return rc;
	if (e->bytes > 0) {
		s->allocations += e->blocks;
		s->bytes += (uint64_t)e->bytes;
		s->alive += e->blocks;
		s->alive_bytes += (uint64_t)e->bytes;
		s->variance += e->variance;
		s->all_variance += e->variance;
	} else {
		s->alive -= e->blocks;
		s->alive_bytes -= (uint64_t)-e->bytes;
		s->variance -= e->variance;
	}
	xsp_growth_time(&a->clock, e->time_ns);
	if (s->growth != NULL)
		xsp_growth_put(&a->clock, s->growth, s->alive_bytes);
	return 0;
}

/* ---- ranking ---- */

bool xsp_summary_allocations_sure(const struct xsp_summary_allocations *a)
{
	return a->known && xsp_timeline_allocations_lost(a->timeline) == 0;
}

XSP_ORDER(xsp_allocations_by_alive, struct xsp_allocation_site,
	  XSP_FALLING(alive_bytes) ?: XSP_FALLING(bytes) ?: XSP_RISING(where));
XSP_ORDER(xsp_allocations_by_slope, struct xsp_allocation_site,
	  XSP_FALLING(slope.grows) ?: XSP_FALLING(slope.slope) ?: xsp_allocations_by_alive(x, y));

/* What is alive at the end of the recording lasted until then, even if nothing allocated since.
 * What was freed before was freed as the program ended, which takes its time. */
static struct xsp_slope slope_of(const struct xsp_summary_allocations *a, const struct site *s,
				 const struct xsp_growth_steps *steps)
{
	struct xsp_growth_clock clock = a->clock;
	uint64_t start, end;

	xsp_timeline_window(a->timeline, &start, &end);
	if (s->alive_bytes > 0)
		xsp_growth_time(&clock, end);
	const struct xsp_growth_samples samples = {
		.grain = s->bytes > 0 ? s->all_variance / (double)s->bytes : 0,
		.all_kept = s->alive >= s->allocations};
	return xsp_growth_slope(&clock, s->growth, steps, &samples);
}

/* All sites; the caller frees the array. NULL: out of memory. steps: may be NULL. */
struct xsp_allocation_site *xsp_allocations_rank(const struct xsp_summary_allocations *a,
						 const struct xsp_growth_steps *steps,
						 int (*order)(const void *, const void *))
{
	const struct xsp_memory_site *where;
	struct xsp_allocation_site *all = calloc(a->count + 1, sizeof(*all));

	xsp_timeline_memory_sites(a->timeline, &where);
	for (size_t i = 0; all != NULL && i < a->count; i++) {
		const struct site *s = &a->rows[i];
		all[i] = (struct xsp_allocation_site){
			.where = &where[s->where],
			.alive = xsp_allocations_whole(s->alive),
			.alive_bytes = s->alive_bytes,
			.alive_error = xsp_allocations_error_of(s->variance),
			.allocations = xsp_allocations_whole(s->allocations),
			.bytes = s->bytes};
		if (xsp_summary_allocations_sure(a) && s->growth != NULL)
			all[i].slope = slope_of(a, s, steps);
	}
	if (all != NULL)
		XSP_SORT(all, a->count, order);
	return all;
}

struct xsp_allocation_site *xsp_summary_allocations_growing(const struct xsp_summary_allocations *a,
							    const struct xsp_growth_steps *steps,
							    size_t *count)
{
	struct xsp_allocation_site *all = xsp_allocations_rank(a, steps, xsp_allocations_by_slope);

	*count = 0;
	while (all != NULL && *count < a->count && all[*count].slope.grows)
		(*count)++;
	return all;
}
