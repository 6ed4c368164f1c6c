/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * page.h - the HTML page of a capture, or of several: one file with everything in it, or served by `view`.
 *
 * The page is user/page/web (bundled at build time, embedded) with the data in blocks behind it, each
 *
 *     <script type="application/x-xsptrace" id="KEY">BASE64 OF GZIP</script>
 *
 * which no browser runs. `view` serves the same page, and the blocks that depend on a part of the time anew. Blocks
 * (version 1; a block that does not apply is not there; times are ns from the beginning of the first capture, durations
 * ns, and what is not known is absent or null, never 0):
 *
 * "page"      JSON {"version":1, "tool":"xsptrace 0.x", "title":TEXT, "written":"2026-11-23T07:00:00Z",
 *             "captures":[{"name":TEXT, "host":TEXT, "start":"ISO time", "duration_ns":N}], "cut":TEXT or absent,
 *             "server":true where `view` serves it, "notes":[TEXT...]}: notes say what the page leaves out.
 * "report"    JSON exactly as `analyze --format json --top 1000` writes it (docs/analyze.md), of a comparison that of the
 *             second side's first capture, which is also what the timeline shows.
 * "compare"   JSON exactly as `compare --format json --top 1000` writes it, where two sides were given.
 * "trees"     JSON {"names":[TEXT...], "trees":[{"key":"wall", "title":TEXT, "unit":"ns" or "samples",
 *             "parent":[...], "name":[...], "kind":[...], "self":[...], "before":[...], "count":[...]}]}: arrays of one
 *             length; node 0 is the root (parent -1), parents stand before children; `self` is the node's own value, that
 *             of the nodes below is added by the reader; `kind`: 0 span, 1 Python, 2 native, 3 kernel (of Linux), 4 thread,
 *             5 module, 6 GPU; `before`: own value on the other side of a comparison. Keys: "wall", "cpu", "off-cpu",
 *             "samples" (weights of export/export.h), "modules", "memory" (bytes alive at the peak), "gpu".
 * "timeline"  little-endian: u32 magic 0x54505358 "XSPT", u32 length of the JSON behind it (padded with blanks to a multiple
 *             of 8, the 8 bytes of the head not counted), JSON, then columns. JSON {"from_ns":N, "to_ns":N,
 *             "names":[TEXT...], "tracks":[TRACK...], "arguments":[...], "parts":[...]}. Positions ("at") are bytes from the end of the JSON,
 *             multiples of 8.
 *             TRACK {"kind":"spans" | "states" | "gpu" | "counter" | "samples" (moments, named where
 *             the thread was), "pid":N, "tid":N (as outputs show them), "row":N,
 *             "process":TEXT, "thread":TEXT, "name":TEXT (of a row, a stream, a counter), "unit":UNIT of a counter, "rate":true where
 *             its values are running totals, of a thread (hardware counters),
 *             "spans":N (how many in truth), "lanes":[LANE...]}. A lane is one depth of a row (0: outermost); states and
 *             streams may have several where they overlap.
 *             LANE {"depth":N, "levels":[LEVEL...]}, finest first: depths without cells are not there, one may have several. LEVEL {"resolution_ns":N, "cells":N, "start":at (f64 each),
 *             "duration":at (f64), "name":at (u32, index of "names"), "count":at (u32), "busy":at (f64), where any count is more
 *             than 1: the sum of the spans' durations, without the gaps between them; "arguments":at (u32), where any of them has
 *             such}. Cells are in order and do not overlap.
 *             `count` 1: the span as it was, however long. More: so many spans, which all lie within less than the level's
 *             resolution, told as one cell from the first's beginning to the last's end; its name is that with the most
 *             time, where one has more than half of it. Level 0 with resolution 0 has every span as it was. Further levels
 *             are each 4 times as coarse, or 16 times ...: one that would have more than half of the cells is left out,
 *             and so are all where there are few.
 *             A counter's lane has one level: {"cells":N, "start":at (f64), "value":at (f64)} (each value holds until the
 *             next), least and greatest kept where points were left out.
 *             What else is known of a cell that is one span (as the Chrome trace's "args", without ids) is
 *             "arguments"[its number - 1], a list of numbers of objects in "parts", or 0: then no cell has it.
 *             "arrows" {"count":N, "from":at (f64), "to":at (f64): times, "tracks":at (u32, two each: indexes of "tracks")}: from
 *             a call to what it launched on the GPU, from the states of a thread to those of the one that it woke, from an
 *             operator to the node of the backward pass that it made.
 *             Where there are too many they are "left_out":N, and count is 0; "arguments_left_out" likewise.
 *             States' names are those of the Chrome trace ("Running", "Runnable", "Blocked: lock", ...). "row": 0 is the
 *             thread's own stack; of streams 1 is who waits for one, 2 CUPTI's overhead, and the ranges around what was
 *             launched in them are lanes before it.
 */
#ifndef XSP_REPORT_PAGE_H
#define XSP_REPORT_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "capture/capture.h"
#include "timeline/cut.h"

struct xsp_page_source {
	struct xsp_capture_reader *reader;
	const char *name; /* the file's, for people */
};

struct xsp_page_options {
	const struct xsp_page_source *sources;
	size_t source_count; /* several: ranks of a job, or with `sides` a comparison */
	size_t sides; /* 0: no comparison; else the first so many sources are the side "before" */
	double threshold; /* of a comparison: what differs by less is the same; below 0: 5 % */
	const struct xsp_cut *cut; /* NULL: all */
	const char *step; /* what marks a step (timeline/steps.h); NULL: the known names */
	size_t cells; /* of the timeline, at most; 0: 1,000,000 */
	bool served; /* by `view` */
};

/* NULL where the page is in this build; else why not, and what to do ("built without it: ..."). */
const char *xsp_page_missing(void);

/* 0 or a negative errno. If the file takes no more, that is its reason (-EFBIG, -ENOSPC ...), and `err` is left to the caller,
 * who knows the file's name (but for `served`: that has none). */
int xsp_page_write(const struct xsp_page_options *options, FILE *f, struct xsp_error *err);

/*
 * The block "timeline" of what lies between two times (ns from the beginning of the first capture), finer than the page's
 * where there is more to see; gzip. The caller frees *bytes. 0 or a negative errno.
 */
int xsp_page_timeline(const struct xsp_page_options *options, uint64_t from_ns, uint64_t to_ns,
		      uint8_t **bytes, size_t *length, struct xsp_error *err);

/* The policy of the page, as in its <meta>; "" where there is no page. */
const char *xsp_page_content_security_policy(void);

#endif
