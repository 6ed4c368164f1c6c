/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * page.h - the HTML page of a capture, or of several: one file with everything in it, or served by
 * `view`.
 *
 * The page is user/page/web, which the build bundles and embeds. The data follow it in blocks:
 *
 *     <script type="application/x-xsptrace" id="KEY">BASE64 OF GZIP</script>
 *
 * No browser runs them. `view` serves the same page, and again the blocks that depend on a range.
 * This is version 1 of the blocks. A block that does not apply is absent. Times are ns from the
 * beginning of the first capture, and durations are ns. What is not known is absent or null, and
 * never 0.
 *
 * "page"      JSON {"version":1, "tool":"xsptrace 0.x", "title":TEXT,
 *             "written":"2026-11-23T07:00:00Z", "captures":[{"name":TEXT, "host":TEXT,
 *             "start":"ISO time", "duration_ns":N}], "cut":TEXT or absent, "server":true if `view`
 *             serves it, "notes":[TEXT...]}. The notes say what the page does not show.
 * "report"    JSON exactly as `analyze --format json --rows 1000` writes it (docs/analyze.md). In a
 *             comparison it is about the second side's first capture, as is the timeline.
 * "compare"   JSON exactly as `compare --format json --rows 1000` writes it, if there are two sides.
 * "trees"     JSON {"names":[TEXT...], "trees":[{"key":"wall", "title":TEXT, "unit":"ns" or
 *             "samples", "parent":[...], "name":[...], "kind":[...], "self":[...],
 *             "before":[...], "count":[...]}]}. The arrays have the same length. Node 0 is the root
 *             (parent -1), and parents come before their children. `self` is the node's own value;
 *             the reader adds those of the nodes below. `kind`: 0 span, 1 Python, 2 native,
 *             3 kernel (of Linux), 4 thread, 5 module, 6 GPU, 7 wait. `before`: the own value on the other
 *             side of a comparison. Keys: "all", "wall", "cpu", "off-cpu", "samples" (weights of
 *             export/export.h), "steps" (as "wall": names that only count stay apart), "modules",
 *             "memory" (bytes alive at the peak), "gpu".
 * "timeline"  little-endian: u32 magic 0x54505358 "XSPT", u32 length of the JSON, JSON, columns.
 *             Blanks pad the JSON to a multiple of 8; its length does not count the 8 bytes of the
 *             head. JSON {"from_ns":N, "to_ns":N, "names":[TEXT...], "tracks":[TRACK...],
 *             "arguments":[...], "parts":[...]}. Positions ("at") are bytes from the end of the
 *             JSON, multiples of 8.
 *             TRACK {"kind":"spans" | "states" | "gpu" | "counter" | "samples" (moments, named by
 *             where the thread was), "pid":N, "tid":N (as outputs show them), "row":N,
 *             "process":TEXT, "thread":TEXT, "name":TEXT (of a row, a stream, a counter),
 *             "unit":UNIT of a counter, "rate":true if its values are a thread's running totals
 *             (hardware counters), "spans":N (how many in truth), "lanes":[LANE...]}. A lane is one
 *             depth of a row (0: outermost). A depth of states or of a stream has several lanes if
 *             they overlap. A depth without cells has no lane.
 *             LANE {"depth":N, "levels":[LEVEL...]}, finest level first.
 *             LEVEL {"resolution_ns":N, "cells":N, "start":at (f64), "duration":at (f64),
 *             "name":at (u32, index of "names"), "count":at (u32), "busy":at (f64), "arguments":at
 *             (u32)}. Cells are in order and do not overlap. "busy" is the sum of the spans'
 *             durations without the gaps between them, and is absent if no count exceeds 1.
 *             "arguments" is absent if no cell has any.
 *             `count` 1: one unchanged span, however long. More: that many spans, which together
 *             last less than the level's resolution. Their cell lasts from the first one's
 *             beginning to the last one's end. Its name is the one that has more than half of the
 *             time, if there is one. Level 0 with resolution 0 has every span unchanged. Each
 *             further level is coarser by 4, 16 ...: it has at most half of the cells of the level
 *             before. A lane with few cells has no further level.
 *             A counter's lane has one level: {"cells":N, "start":at (f64), "value":at (f64)}. Each
 *             value holds until the next one. If points were dropped, the least and the greatest
 *             remain.
 *             The arguments of a cell with one span (the Chrome trace's "args", without ids) are
 *             "arguments"[its number - 1]: a list of indexes of "parts", or 0 if no cell uses it.
 *             "arrows" {"count":N, "from":at (f64), "to":at (f64): times, "tracks":at (u32, two
 *             each: indexes of "tracks")}. They lead from a call to what it launched on the GPU,
 *             from a thread's states to those of the thread that it woke, and from an operator to
 *             its node in the backward pass. If there are too many, count is 0 and "left_out":N;
 *             "arguments_left_out" likewise.
 *             The names of states are the Chrome trace's ("Running", "Runnable", "Blocked: lock",
 *             ...). "row" 0 is the thread's own stack. In a stream, row 1 holds waits for it and
 *             row 2 CUPTI's overhead. Annotations around launched work are lanes before it.
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
	const char *name; /* the file's name, for readers */
};

struct xsp_page_options {
	const struct xsp_page_source *sources;
	size_t source_count; /* several: ranks of a job, or of a comparison if there are `sides` */
	size_t sides; /* 0: no comparison; else the first `sides` sources are the side "before" */
	double threshold; /* for a comparison: smaller differences count as none; below 0: 5 % */
	const struct xsp_cut *cut; /* the range; NULL: all */
	const char *step; /* what marks a step (timeline/steps.h); NULL: the known names */
	size_t cells; /* most cells of the timeline; 0: 1,000,000 */
	bool served; /* `view` serves it */
};

/* NULL if this build has the page; else why not and what to do ("built without it: ..."). */
const char *xsp_page_missing(void);

/* 0 or a negative errno. If the file takes no more, that is its reason (-EFBIG, -ENOSPC ...). `err`
 * is then left to the caller, who knows the file's name; a served page has no file, and `err` is
 * set. */
int xsp_page_write(const struct xsp_page_options *options, FILE *f, struct xsp_error *err);

/*
 * The block "timeline" of a range, in ns from the beginning of the first capture, as gzip. It is
 * finer than the page's if there is more to see. The caller frees *bytes. 0 or a negative errno.
 */
int xsp_page_timeline(const struct xsp_page_options *options, uint64_t from_ns, uint64_t to_ns,
		      uint8_t **bytes, size_t *length, struct xsp_error *err);

/* The page's content security policy, as in its <meta>; "" if there is no page. */
const char *xsp_page_content_security_policy(void);

#endif
