/* SPDX-License-Identifier: BSD-2-Clause */
/* track.h - the tracks of the block "timeline": tracks.c collects them, and track_block.c writes
 * them. */
#ifndef XSP_PAGE_TIMELINE_TRACK_H
#define XSP_PAGE_TIMELINE_TRACK_H

#include "base/arena.h"
#include "base/units.h"
#include "model/spans/sequence.h"
#include "page/texts.h"
#include "page/timeline/arguments.h"
#include "page/timeline/levels.h"
#include "report/report.h"

/* Marks a cell's name that is a number of the block's texts, not of the timeline's. */
#define XSP_TRACK_TEXT (1U << 31)

enum xsp_track_kind {
	XSP_TRACK_SPANS,
	XSP_TRACK_STATES,
	XSP_TRACK_STREAM,
	XSP_TRACK_COUNTER,
	XSP_TRACK_SAMPLES,
	XSP_TRACK_KINDS
};
struct xsp_track {
	uint32_t number; /* before the tracks are sorted */
	enum xsp_track_kind kind;
	uint32_t pid, tid, row; /* as outputs show them */
	uint32_t root_pid, root_tid; /* in the root namespace */
	uint32_t order; /* the process's position */
	const char *process, *thread, *name;
	enum xsp_unit unit;
	bool rate; /* a thread's counter: its values are running totals */
	uint64_t spans;
	size_t *lanes; /* by depth: 1 + index; 0: none */
	size_t depth, depth_capacity;
};

/* From a call to the work that it launched. Or from a thread to the one that it woke, or from an
 * operator to its backward node. */
struct xsp_arrow {
	/* numbers of tracks; during its capture's run, `from` is a row's index */
	uint32_t from, to;
	int64_t from_ns, to_ns;
};

struct xsp_tracks {
	struct xsp_view view; /* the current capture's view */
	struct xsp_thread_rows *rows;
	struct xsp_levels *levels;
	struct xsp_arguments *arguments;
	struct xsp_texts texts;
	struct xsp_arena arena;
	struct xsp_track *list;
	size_t count, capacity;
	struct xsp_arrow *arrows;
	size_t arrow_count, arrow_capacity;
	uint64_t arrows_left_out;
	struct xsp_fwdbwd *fwdbwd; /* the current capture's */
	/* for the current capture: */
	size_t first, first_arrow; /* the first track and arrow of the capture */
	size_t *by_row; /* 1 + index; 0: none */
	size_t row_count, row_capacity;
	struct xsp_u64map others; /* streams, counters, samples */
	uint64_t origin_ns, start_ns;
	/* for all captures: */
	int64_t from_ns, to_ns;
	uint64_t no_numbers; /* values that are no numbers */
	uint64_t unseen_calls;
};

#endif
