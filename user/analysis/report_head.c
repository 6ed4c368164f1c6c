/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/report_head.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "base/units.h"
#include "model/health.h"
#include "timeline/others.h"
#include "timeline/windows.h"

struct count {
	const char *key, *title;
	uint64_t value;
	bool always; /* shown even if it is 0 */
};

/* Counts that are not known are absent. */
static void put_counts(struct xsp_report_section *s, const struct count *counts, size_t count,
		       bool known)
{
	for (size_t i = 0; i < count; i++)
		if (counts[i].always || counts[i].value > 0)
			xsp_report_value(s, counts[i].key, counts[i].title, XSP_UNIT_COUNT,
					 known ? xsp_cell_integer(counts[i].value)
					       : xsp_cell_text(NULL));
}

static void put_start(struct xsp_report_section *s, const struct xsp_capture_reader *r,
		      uint64_t start_ns)
{
	const time_t at = (time_t)(xsp_capture_realtime(r, start_ns) / 1000000000);
	char text[64] = "";
	struct tm tm;

	if (xsp_capture_realtime_known(r) && localtime_r(&at, &tm) != NULL)
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S%z", &tm);
	xsp_report_value(s, "start", "began", XSP_UNIT_TEXT,
			 xsp_cell_text(text[0] != '\0' ? text : NULL));
}

static void put_times(struct xsp_report_section *s, struct xsp_timeline *t,
		      const struct xsp_capture_reader *r)
{
	const struct xsp_capture_window *windows;
	const uint64_t recorded = xsp_timeline_recorded_ns(t);
	uint64_t start, end, first, last;

	xsp_timeline_window(t, &start, &end);
	xsp_capture_window(r, &first, &last);
	xsp_report_value(s, "arguments", "recorded with", XSP_UNIT_TEXT,
			 xsp_cell_text(xsp_capture_info(r, "arguments")));
	put_start(s, r, start);
	if (xsp_capture_info(r, "snapshot") != NULL)
		xsp_report_value(s, "snapshot", "a snapshot", XSP_UNIT_TEXT,
				 xsp_cell_text(xsp_capture_info(r, "snapshot")));
	xsp_report_value(s, "from_ns", "from", XSP_UNIT_TIME,
			 start > first ? xsp_cell_integer(start - first) : xsp_cell_text(NULL));
	xsp_report_value(s, "duration_ns", "time", XSP_UNIT_NS,
			 xsp_cell_integer(end > start ? end - start : 0));
	xsp_report_value(s, "recorded_ns", "... of it recorded", XSP_UNIT_NS,
			 xsp_cell_integer(recorded));
	xsp_report_value(s, "schedule", "windows asked for", XSP_UNIT_TEXT,
			 xsp_cell_text(xsp_capture_schedule(r)));
	xsp_report_value(s, "windows", "... in windows", XSP_UNIT_COUNT,
			 xsp_capture_windows(r, &windows) > 0
				 ? xsp_cell_integer(xsp_capture_windows(r, &windows))
				 : xsp_cell_text(NULL));
}

/* What changes the answer, in one sentence for the screen. */
static void put_health(struct xsp_report_section *s, struct xsp_timeline *t,
		       const struct xsp_capture_reader *r)
{
	const struct xsp_health h = xsp_health_of(r);
	const struct xsp_capture_window *windows;
	const struct xsp_capture_let_go *gone;
	const size_t parts = xsp_capture_windows(r, &windows),
		     released = xsp_capture_let_gos(r, &gone);
	const char *slowed = xsp_capture_info(r, "worst slowdown");
	char text[XSP_HEALTH_LOSSES], all[XSP_HEALTH_LOSSES + 200];
	uint64_t start, end;
	bool warns;

	snprintf(all, sizeof(all), "%s", xsp_health_losses(r, &h, &warns, text));
	xsp_timeline_window(t, &start, &end);
	if (parts > 0 && end > start)
		xsp_join(all, sizeof(all), "; ", "%s %.3g %% of the time",
			 xsp_capture_schedule(r) != NULL ? "recorded in windows (--windows), for"
							 : "probes were in for",
			 100.0 * (double)xsp_timeline_recorded_ns(t) / (double)(end - start));
	if (released > 0)
		xsp_join(all, sizeof(all), "; ", "%zu function%s released to keep it fast",
			 released, released == 1 ? " was" : "s were");
	if (h.gaps && !warns)
		xsp_join(all, sizeof(all), " ", "(--full: what is missing)");
	if (slowed != NULL) {
		size_t length = strcspn(slowed, "("); /* "3.1 % (thread ...)": only the figure */
		length -= length > 0 && slowed[length - 1] == ' ';
		xsp_join(all, sizeof(all), "; ", "slowed by about %.*s", (int)length, slowed);
	}
	xsp_report_value(s, "health", "lost", XSP_UNIT_TEXT, xsp_cell_text(all));
}

/* What the figures do not contain, with a count for each cause. */
static void put_losses(struct xsp_report_section *s, const struct xsp_timeline *t,
		       const struct xsp_capture_reader *r)
{
	const struct xsp_health h = xsp_health_of(r);
	const struct xsp_timeline_counts *c = xsp_timeline_counts(t);
	const struct count lost[] = {
		{"lost_entries", "lost entries", h.lost[XSP_LOSS_ENTRIES], true},
		{"lost_exits", "lost exits", h.lost[XSP_LOSS_EXITS], true},
		{"lost_other", "lost other events", h.lost[XSP_LOSS_OTHER], true},
	};
	const struct count counts[] = {
		{"lost_names", "lost names", h.lost[XSP_LOSS_NAMES], false},
		{"missed_hits", "hits missed by the kernel", h.lost[XSP_LOSS_MISSED], false},
		{"untracked", "calls not followed (table full)", h.lost[XSP_LOSS_UNTRACKED], false},
		{"unfinished", "calls open at the end, in no total", c->unfinished, true},
		{"exit_lost", "calls whose end was not seen, in no total", c->exit_lost, false},
		{"orphan_exits", "ends without a beginning",
		 c->orphan_exits > c->begun_before ? c->orphan_exits - c->begun_before : 0, false},
		{"unwound", "calls left by an exception or longjmp", c->unwound, false},
		{"filtered", "calls held back by filters", c->filtered + h.left_out, false},
		{"cut", "calls left out by the cut", c->cut, false},
		{"clipped", "calls that go beyond the cut, in no mean", c->clipped, false},
		{"names_unresolved", "ranges whose name never came", c->names_unresolved, false},
		{"bad_chunks", "damaged pieces of the file", h.bad_chunks, false},
		{"bad_events", "damaged events", h.bad_events, false},
		{"torn_bytes", "bytes cut off at the file's end", h.torn_bytes, false},
	};
	put_counts(s, lost, sizeof(lost) / sizeof(lost[0]), h.known);
	put_counts(s, counts, sizeof(counts) / sizeof(counts[0]), true);
}

static void put_gaps(struct xsp_report_section *s, const struct xsp_timeline *t,
		     const struct xsp_capture_reader *r)
{
	const struct xsp_capture_probe *probes;
	const struct xsp_capture_let_go *gone;
	const size_t let_go = xsp_capture_let_gos(r, &gone);
	const struct xsp_health h = xsp_health_of(r);
	char damage[XSP_HEALTH_TEXT];
	uint64_t count;

	for (unsigned i = 0; i < XSP_GAPS; i++) {
		const char *value = xsp_capture_gap(r, i, &count);
		if (value != NULL)
			xsp_report_notef(s, "%s: %s", xsp_capture_gap_key(i), value);
	}
	for (size_t i = 0; i < XSP_CAPTURE_LATES; i++) {
		const char *value = xsp_capture_info(r, xsp_capture_late_key(i));
		if (value != NULL)
			xsp_report_notef(s, "%s: %s", xsp_capture_late_key(i), value);
	}
	xsp_capture_probes(r, &probes);
	size_t unmet = 0;
	for (size_t i = 0; i < let_go; i++) {
		unmet += gone[i].why == XSP_LET_GO_FAMILY;
		if (gone[i].why != XSP_LET_GO_FAMILY)
			xsp_report_notef(s,
					 "released to keep the target fast: %s (%" PRIu64
					 " calls a second)",
					 probes[gone[i].probe].name, gone[i].calls_per_second);
	}
	if (unmet > 0)
		xsp_report_notef(
			s,
			"released to keep the target fast: %zu more of the same patterns, not called until then",
			unmet);
	if (xsp_timeline_counts(t)->other_threads > 0)
		xsp_report_note(s, XSP_OTHERS_SAID);
	if (xsp_capture_info(r, "not as there") != NULL)
		xsp_report_notef(s, "read from a trace, %s", xsp_capture_info(r, "not as there"));
	if (xsp_health_damage(&h, XSP_DAMAGE_NO_END, damage) != NULL)
		xsp_report_note(s, damage);
	if (!h.known)
		xsp_report_note(
			s, "whether events were lost is not known: the capture holds no counters");
}

void xsp_report_head(struct xsp_timeline *t, const struct xsp_capture_reader *r,
		     struct xsp_report *report)
{
	struct xsp_report_section *s = xsp_report_section(report, "recording", "Recording");
	const struct xsp_timeline_thread *threads;
	const struct xsp_capture_process *processes;
	const struct count counts[] = {
		{"spans", "spans", xsp_timeline_counts(t)->spans, true},
		{"threads", "threads with spans", xsp_timeline_threads(t, &threads), true},
		{"processes", "processes", xsp_capture_processes(r, &processes), true},
	};

	put_times(s, t, r);
	put_health(s, t, r);
	if (xsp_timeline_cut_text(t) != NULL)
		xsp_report_value(s, "part", "a part", XSP_UNIT_TEXT,
				 xsp_cell_text(xsp_timeline_cut_text(t)));
	put_counts(s, counts, sizeof(counts) / sizeof(counts[0]), true);
	put_losses(s, t, r);
	put_gaps(s, t, r);
}
