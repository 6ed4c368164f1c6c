/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * difference.h - the stacks of two sides, each of one capture or several, in one file: a flame graph coloured by what
 * became longer and shorter (.svg), or folded stacks with two counts a line, as difffolded.pl writes them (.folded).
 *
 * The second side's times are made those of as many steps (or as much time) as the first one has.
 */
#ifndef XSP_EXPORT_DIFFERENCE_H
#define XSP_EXPORT_DIFFERENCE_H

#include "export/export.h"

struct xsp_stack_difference;

/* Does the ending of a name say one of the two? */
bool xsp_is_stack_difference_name(const char *path);
/* Opens a new file, as xsp_export_open() does; of the options, path, owner and weight count. */
int xsp_stack_difference_open(const struct xsp_export_options *options,
			      struct xsp_stack_difference **out, struct xsp_error *err);
/* Before a capture's run, what listens to it; and behind it, while the timeline is there, of which side it was (0 or 1),
 * how many steps it has (0: none are known), and how much of it was recorded. 0 or a negative errno. */
int xsp_stack_difference_begin(struct xsp_stack_difference *d, struct xsp_capture_reader *reader,
			       struct xsp_timeline *timeline, struct xsp_timeline_sink *sink,
			       struct xsp_error *err);
int xsp_stack_difference_end(struct xsp_stack_difference *d, unsigned side, uint64_t steps,
			     uint64_t recorded_ns, struct xsp_error *err);
/* Writes and closes the file, or drops it; both free d. `sides` are the names of the two. */
int xsp_stack_difference_finish(struct xsp_stack_difference *d, const char *const sides[2],
				struct xsp_error *err);
void xsp_stack_difference_cancel(struct xsp_stack_difference *d); /* NULL is allowed */

#endif
