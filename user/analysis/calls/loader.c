/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/calls/loader.h"

#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"

#define LOADER "enumerate(DataLoader)#" /* torch.utils.data.DataLoader's range around __next__ */
#define PLACES 16U

void xsp_loader_begin(struct xsp_loader *l, const struct xsp_timeline *t)
{
	*l = (struct xsp_loader){.timeline = t, .places.tally.most = PLACES};
}

void xsp_loader_free(struct xsp_loader *l)
{
	free(l->names);
	xsp_tally_free(&l->places);
}

int xsp_loader_learn(struct xsp_loader *l)
{
	const size_t count = xsp_timeline_name_count(l->timeline);

	if (xsp_grow(&l->names, &l->name_capacity, count) < 0)
		return -ENOMEM;
	for (; l->name_count < count; l->name_count++)
		l->names[l->name_count] =
			strncmp(xsp_timeline_name(l->timeline, (xsp_name_id)l->name_count), LOADER,
				strlen(LOADER)) == 0;
	return 0;
}

int xsp_loader_wait(struct xsp_loader *l, const struct xsp_wait *wait)
{
	const uint64_t ns = wait->woken_ns - wait->left_ns;
	bool is = false;

	if (wait->in_span && !(wait->flags & XSP_WAIT_SHORT) &&
	    xsp_loader_look(l, wait->span, &is) < 0)
		return -ENOMEM;
	if (!is)
		return 0;
	l->waits[wait->why] += ns;
	l->runnable_ns += wait->back_ns - wait->woken_ns;
	if (wait->place == 0)
		return 0;
	struct xsp_loader_place *p =
		xsp_tally_row(&l->places, wait->place, &(struct xsp_loader_place){wait->place, 0});
	if (p == NULL)
		return l->places.tally.error;
	p->ns += ns;
	return 0;
}

uint32_t xsp_loader_longest_at(const struct xsp_loader *l)
{
	const struct xsp_loader_place none = {0}, *most = &none;

	for (size_t i = 0; i < l->places.count; i++)
		if (i == 0 || l->places.rows[i].ns > most->ns)
			most = &l->places.rows[i];
	return most->place;
}
