/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/memory/summary_allocations_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
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
		free(a->sites[i].growth);
	xsp_u64map_free(&a->site_of);
	free(a->index_of);
	free(a->sites);
	free(a);
}

/* ---- collecting ---- */

/* The span's name; of those that only number what they have in common, in `common`. */
const char *xsp_allocations_span(const struct xsp_summary_allocations *a,
				 const struct xsp_memory_site *s, char common[XSP_ALLOCATIONS_SPAN])
{
	const char *name = s->in_span ? xsp_timeline_name(a->timeline, s->span) : "no span";
	const size_t stem = xsp_timeline_step_stem(a->timeline, name);

	if (stem == 0)
		return name;
	snprintf(common, XSP_ALLOCATIONS_SPAN, "%.*s*",
		 (int)(stem < XSP_ALLOCATIONS_SPAN - 2 ? stem : XSP_ALLOCATIONS_SPAN - 2), name);
	return common;
}

/* Finds or makes the one that the timeline's `index` is counted in. */
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
	const long at = xsp_u64map_index(&a->site_of, key, &a->sites, &a->capacity, a->count);
	if (at < 0)
		return -ENOMEM;
	if ((size_t)at == a->count)
		a->sites[a->count++] = (struct site){.where = index};
	a->index_of[index] = (uint32_t)at + 1;
	return 0;
}

static int site_at(struct xsp_summary_allocations *a, uint32_t index, struct site **out)
{
	if (xsp_grow(&a->index_of, &a->index_of_capacity, (size_t)index + 1) < 0)
		return -ENOMEM;
	while (a->index_of_count <= index)
		a->index_of[a->index_of_count++] = 0;
	if (a->index_of[index] == 0 && find_site(a, index) < 0)
		return -ENOMEM;
	struct site *s = &a->sites[a->index_of[index] - 1];
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

int xsp_allocations_by_alive(const void *a, const void *b)
{
	const struct xsp_allocation_site *x = a, *y = b;

	if (x->alive_bytes != y->alive_bytes)
		return x->alive_bytes > y->alive_bytes ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->where < y->where ? -1 : x->where > y->where;
}

int xsp_allocations_by_slope(const void *a, const void *b)
{
	const struct xsp_allocation_site *x = a, *y = b;

	if (x->slope.grows != y->slope.grows)
		return x->slope.grows ? -1 : 1;
	if (x->slope.slope > y->slope.slope || x->slope.slope < y->slope.slope)
		return x->slope.slope > y->slope.slope ? -1 : 1;
	return xsp_allocations_by_alive(a, b);
}

/* What is still alive was there to the recording's end, also if nobody has allocated since; what was given back was so
 * when the program ended, which takes its time. */
static struct xsp_slope slope_of(const struct xsp_summary_allocations *a, const struct site *s,
				 const struct xsp_growth_steps *steps)
{
	struct xsp_growth_clock clock = a->clock;
	uint64_t start, end;

	xsp_timeline_window(a->timeline, &start, &end);
	if (s->alive_bytes > 0)
		xsp_growth_time(&clock, end);
	return xsp_growth_slope(&clock, s->growth, steps);
}

/* All sites, the caller's to free; NULL: out of memory. steps: or NULL. */
struct xsp_allocation_site *xsp_allocations_rank(const struct xsp_summary_allocations *a,
						 const struct xsp_growth_steps *steps,
						 int (*order)(const void *, const void *))
{
	const struct xsp_memory_site *where;
	struct xsp_allocation_site *all = calloc(a->count + 1, sizeof(*all));

	xsp_timeline_memory_sites(a->timeline, &where);
	for (size_t i = 0; all != NULL && i < a->count; i++) {
		const struct site *s = &a->sites[i];
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
	if (all != NULL && a->count > 0)
		qsort(all, a->count, sizeof(*all), order);
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
