/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * difference.h - the stacks of two sides in one file; each side is one capture or several. Either a
 * flame graph whose colours show what became longer or shorter (.svg), or folded stacks with two
 * counts a line, as difffolded.pl writes them (.folded).
 *
 * The second side's times are scaled to as many steps, or as much time, as the first side has.
 */
#ifndef XSP_EXPORT_DIFFERENCE_H
#define XSP_EXPORT_DIFFERENCE_H

#include "export/export.h"

struct xsp_stack_difference;

/* Does the name have one of the two endings? */
bool xsp_is_stack_difference_name(const char *path);
/* Opens a new file as xsp_export_open() does. Uses only path, owner and weight of the options. */
int xsp_stack_difference_open(const struct xsp_export_options *options,
			      struct xsp_stack_difference **out, struct xsp_error *err);
/* begin() comes before a capture's run and gives its sink. end() comes after it, while the timeline
 * exists. `side` is 0 or 1, `steps` the number of steps (0: none known), `recorded_ns` the time
 * recorded. 0 or a negative errno. */
int xsp_stack_difference_begin(struct xsp_stack_difference *d, struct xsp_capture_reader *reader,
			       struct xsp_timeline *timeline, struct xsp_timeline_sink *sink,
			       struct xsp_error *err);
int xsp_stack_difference_end(struct xsp_stack_difference *d, unsigned side, uint64_t steps,
			     uint64_t recorded_ns, struct xsp_error *err);
/* finish() writes and closes the file; cancel() drops it. Both free d. `sides` are the names of the
 * sides. */
int xsp_stack_difference_finish(struct xsp_stack_difference *d, const char *const sides[2],
				struct xsp_error *err);
void xsp_stack_difference_cancel(struct xsp_stack_difference *d); /* NULL is allowed */

#endif
