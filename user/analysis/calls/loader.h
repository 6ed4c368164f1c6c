/* SPDX-License-Identifier: BSD-2-Clause */
/* loader.h - ranges in which PyTorch's DataLoader gets a batch: their names, and with --waits what is waited for in them. */
#ifndef XSP_ANALYSIS_LOADER_H
#define XSP_ANALYSIS_LOADER_H

#include "base/rows/tally.h"
#include "timeline/timeline.h"

struct xsp_loader {
	const struct xsp_timeline *timeline;
	uint8_t *names; /* by name id: is it a range's? */
	size_t name_count, name_capacity;
	uint64_t waits[XSP_WAIT_CLASSES], runnable_ns;
	XSP_TALLY(struct xsp_loader_place) places; /* the first ones */
};
struct xsp_loader_place {
	uint32_t place; /* xsp_wait.place */
	uint64_t ns;
};

void xsp_loader_begin(struct xsp_loader *l, const struct xsp_timeline *t);
void xsp_loader_free(struct xsp_loader *l);
/* The names so far; 0 or -ENOMEM. */
int xsp_loader_learn(struct xsp_loader *l);
/* *is: is it a range's name? 0 or -ENOMEM. */
static inline int xsp_loader_look(struct xsp_loader *l, xsp_name_id name, bool *is)
{
	const int rc = name < l->name_count ? 0 : xsp_loader_learn(l);

	*is = rc == 0 && l->names[name];
	return rc;
}
/* A wait, wherever it was. 0 or -ENOMEM. */
int xsp_loader_wait(struct xsp_loader *l, const struct xsp_wait *wait);
/* Where threads waited for longest in such a range: xsp_wait.place; 0: it is not known. */
uint32_t xsp_loader_longest_at(const struct xsp_loader *l);

#endif
