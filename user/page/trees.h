/* SPDX-License-Identifier: BSD-2-Clause */
/* trees.h - the block "trees" (page.h): stacks by weight, modules, memory at its peak, the GPU's
 * work. */
#ifndef XSP_REPORT_TREES_H
#define XSP_REPORT_TREES_H

#include <stdio.h>

#include "page/json_writer.h"
#include "model/pass.h"

struct xsp_trees;

/* `compared`: there are two sides, and 0 is the one before. 0 or a negative errno. */
int xsp_trees_new(bool compared, struct xsp_trees **out);
void xsp_trees_free(struct xsp_trees *t); /* NULL is allowed */

/* begin() comes before a capture's run and gives its sink; end() comes after it, while the timeline
 * exists. `side` is 1, or 0 or 1 in a comparison. 0 or a negative errno. */
int xsp_trees_begin(struct xsp_trees *t, struct xsp_capture_reader *reader,
		    struct xsp_timeline *timeline, unsigned side, struct xsp_sinks *sinks);
int xsp_trees_end(struct xsp_trees *t);

/* Call it once, after the last capture. `units` are the steps (or the time) of the two sides, by
 * which the side before is scaled to the other; 0: not known. 0 or -ENOMEM; the caller checks `f`
 * for errors. */
int xsp_trees_write(struct xsp_trees *t, const uint64_t units[2], FILE *f);
/* Call it after that: writes what the block shows changed. One text each, in an array. */
void xsp_trees_notes(const struct xsp_trees *t, struct xsp_json_writer *j);

#endif
