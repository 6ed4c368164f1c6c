/* SPDX-License-Identifier: BSD-2-Clause */
/* tracks.h - the block "timeline" (page.h): spans, states, streams and counters at several levels
 * of detail. */
#ifndef XSP_REPORT_TRACKS_H
#define XSP_REPORT_TRACKS_H

#include <stdio.h>

#include "page/json_writer.h"
#include "model/view.h"

struct xsp_tracks;

/* At most `cells` cells. The caller keeps `job`; NULL: one capture. 0 or a negative errno. */
int xsp_tracks_new(size_t cells, const struct xsp_view_job *job, struct xsp_tracks **out);
void xsp_tracks_free(struct xsp_tracks *t); /* NULL is allowed */

/* begin() comes before a capture's run and gives its sink; end() comes after it, while the timeline
 * exists. `origin_ns` is the capture's time (CLOCK_MONOTONIC) that is 0 in the block. 0 or a
 * negative errno. */
int xsp_tracks_begin(struct xsp_tracks *t, struct xsp_capture_reader *reader,
		     struct xsp_timeline *timeline, uint64_t origin_ns,
		     struct xsp_timeline_sink *sink);
int xsp_tracks_end(struct xsp_tracks *t);

/* Call it once, after the last capture. 0 or a negative errno; the caller checks `f` for errors. */
int xsp_tracks_write(struct xsp_tracks *t, FILE *f);
/* Call it after that: writes what the block does not show, or shows changed. One text each, in an
 * array. */
void xsp_tracks_notes(const struct xsp_tracks *t, struct xsp_json_writer *j);

#endif
