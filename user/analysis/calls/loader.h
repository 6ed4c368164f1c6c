/* SPDX-License-Identifier: BSD-2-Clause */
/* loader.h - ranges in which PyTorch's DataLoader gets a batch: their names, and what it waits
 * for (--waits). */
#ifndef XSP_ANALYSIS_LOADER_H
#define XSP_ANALYSIS_LOADER_H

#include "base/rows/tally.h"
#include "timeline/timeline.h"

struct xsp_loader {
	const struct xsp_timeline *timeline;
	uint8_t *names; /* by name id: is it such a range? */
	size_t name_count, name_capacity;
	uint64_t waits[XSP_WAIT_CLASSES];
	uint64_t runnable_ns; /* without a CPU */
	XSP_TALLY(struct xsp_loader_place) places; /* up to a limit */
};
struct xsp_loader_place {
	uint32_t place; /* xsp_wait.place */
	uint64_t ns;
};

void xsp_loader_begin(struct xsp_loader *l, const struct xsp_timeline *t);
void xsp_loader_free(struct xsp_loader *l);
/* Classifies all names so far. 0 or -ENOMEM. */
int xsp_loader_learn(struct xsp_loader *l);
/* *is: is it such a range? 0 or -ENOMEM. */
static inline int xsp_loader_look(struct xsp_loader *l, xsp_name_id name, bool *is)
{
	const int rc = name < l->name_count ? 0 : xsp_loader_learn(l);

	*is = rc == 0 && l->names[name];
	return rc;
}
/* Any wait; only those in such ranges count. 0 or -ENOMEM. */
int xsp_loader_wait(struct xsp_loader *l, const struct xsp_wait *wait);
/* Where threads waited longest in such ranges: xsp_wait.place; 0: not known. */
uint32_t xsp_loader_longest_at(const struct xsp_loader *l);

#endif
