/* SPDX-License-Identifier: BSD-2-Clause */
/* trees.h - the block "trees" (page.h): stacks by what they are weighed by, modules, memory at its peak, the GPU's work. */
#ifndef XSP_REPORT_TREES_H
#define XSP_REPORT_TREES_H

#include <stdio.h>

#include "page/json_writer.h"
#include "model/pass.h"

struct xsp_trees;

/* `compared`: two sides are set against each other, of which 0 is the one before. 0 or a negative errno. */
int xsp_trees_new(bool compared, struct xsp_trees **out);
void xsp_trees_free(struct xsp_trees *t); /* NULL is allowed */

/* Before a capture's run, what listens to it, and after the run, while the timeline is there. `side`: 1, or of compared
 * ones 0 or 1. 0 or a negative errno. */
int xsp_trees_begin(struct xsp_trees *t, struct xsp_capture_reader *reader,
		    struct xsp_timeline *timeline, unsigned side, struct xsp_sinks *sinks);
int xsp_trees_end(struct xsp_trees *t);

/* Behind the last one, once. `units`: steps (or time) of the two sides: the one before is made as long as the other;
 * 0: not known. 0 or -ENOMEM; errors of `f` are its own. */
int xsp_trees_write(struct xsp_trees *t, const uint64_t units[2], FILE *f);
/* Behind it: what the block does not show as it was; a text each, in an array. */
void xsp_trees_notes(const struct xsp_trees *t, struct xsp_json_writer *j);

#endif
