/* SPDX-License-Identifier: BSD-2-Clause */
#include "page/peak.h"

#include <errno.h>
#include <stdlib.h>

#include "base/rows/grow.h"

/* Now is the peak: notes what has changed since the last note. That takes no longer than the events
 * that changed it. */
static void note(struct xsp_peak *p)
{
	for (size_t i = 0; i < p->changed_count; i++) {
		struct xsp_peak_site *s = &p->sites[p->changed[i]];
		s->peak = s->alive;
		s->peak_blocks = s->blocks;
		s->changed = false;
	}
	p->changed_count = 0;
	p->most = p->alive;
}

int xsp_peak_event(struct xsp_peak *p, const struct xsp_memory_event *e)
{
	const size_t index = (size_t)e->site - 1;

	if (e->site == 0)
		return 0;
	if (xsp_grow(&p->sites, &p->capacity, index + 1) < 0 ||
	    xsp_grow(&p->changed, &p->changed_capacity, p->changed_count + 1) < 0)
		return -ENOMEM;
	while (p->count <= index)
		p->sites[p->count++] = (struct xsp_peak_site){0};
	if (e->bytes < 0 && p->alive > p->most)
		note(p);
	struct xsp_peak_site *s = &p->sites[index];
	if (!s->changed)
		p->changed[p->changed_count++] = index;
	s->changed = true;
	/* modulo 2^64: a site's frees belong to its allocations */
	s->alive += (uint64_t)e->bytes;
	s->blocks += e->bytes > 0 ? e->blocks : -e->blocks;
	p->alive += (uint64_t)e->bytes;
	return 0;
}

void xsp_peak_end(struct xsp_peak *p)
{
	if (p->alive > p->most)
		note(p);
}

void xsp_peak_free(struct xsp_peak *p)
{
	free(p->sites);
	free(p->changed);
}
