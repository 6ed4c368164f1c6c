/* SPDX-License-Identifier: BSD-2-Clause */
/* summary_lines.c - the lines of a summary about the recording: its head, and what was lost. */
#include "analysis/summary_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "model/health.h"
#include "model/run_stats.h"
#include "timeline/others.h"
#include "timeline/windows.h"

#define INFO_SIZE 256

/* A value of the capture, escaped: the file may be forged to drive the terminal. */
static const char *info_or(const struct xsp_capture_reader *r, const char *key, const char *other,
			   char printable[INFO_SIZE])
{
	const char *text = xsp_capture_info(r, key);

	xsp_printable(printable, INFO_SIZE, text != NULL ? text : other, 0);
	return printable;
}

/* With --max-overhead the figures do not cover the whole time. */
static void print_windows(const struct xsp_timeline *t, struct xsp_capture_reader *r, FILE *f,
			  uint64_t all_ns, bool shares)
{
	const struct xsp_capture_window *windows;
	const struct xsp_capture_let_go *l;
	const struct xsp_capture_probe *probes;
	const size_t count = xsp_capture_windows(r, &windows), gone = xsp_capture_let_gos(r, &l);
	char time[XSP_UNITS_SIZE], name[128], why[XSP_LET_GO_REASON_MAX], most[INFO_SIZE];
	char begins[INFO_SIZE + 48];

	if (xsp_capture_schedule(r) != NULL)
		snprintf(begins, sizeof(begins), "by --windows it was recorded");
	else
		snprintf(begins, sizeof(begins), "to keep the target within %s all was on",
			 info_or(r, "max overhead", "--max-overhead", most));
	if (count > 0 && all_ns > 0)
		fprintf(f,
			"%s for %s of it, in %zu window%s: the totals are of %.3g %% of the time%s\n",
			begins, xsp_format_ns(time, xsp_timeline_recorded_ns(t)), count,
			count == 1 ? "" : "s",
			100.0 * (double)xsp_timeline_recorded_ns(t) / (double)all_ns,
			shares ? ", shares have their 95 % error"
			       : ", in windows that are too few for shares");
	xsp_capture_probes(r, &probes);
	size_t unmet = 0;
	for (size_t i = 0; i < gone; i++) {
		unmet += l[i].why == XSP_LET_GO_FAMILY;
		if (l[i].why == XSP_LET_GO_FAMILY)
			continue;
		xsp_printable(name, sizeof(name), probes[l[i].probe].name, 60);
		fprintf(f, "released: %s, %s; --max-overhead off keeps it\n", name,
			xsp_capture_let_go_reason(&l[i], xsp_capture_stats(r)->lost_entries > 0,
						  why));
	}
	if (unmet > 0)
		fprintf(f,
			"released: %zu more of the same patterns, not called until then; --max-overhead off keeps them\n",
			unmet);
}

/* The range that the user chose, and how much of the capture lies outside it. */
static void print_cut(const struct xsp_timeline *t, FILE *f)
{
	const struct xsp_timeline_counts *c = xsp_timeline_counts(t);
	char cut[XSP_UNITS_SIZE], clipped[XSP_UNITS_SIZE], text[512];

	if (xsp_timeline_cut_text(t) == NULL)
		return;
	xsp_printable(text, sizeof(text), xsp_timeline_cut_text(t), 400);
	fprintf(f, "cut: %s", text);
	if (c->cut > 0) /* 0 also if the trace was imported from a format that does not keep them */
		fprintf(f, "; %s span%s left out", xsp_format_count(cut, c->cut),
			c->cut == 1 ? " is" : "s are");
	if (c->clipped > 0)
		fprintf(f,
			", %s go%s beyond it: in totals with what lies in it, in no mean, p50, p99 or max",
			xsp_format_count(clipped, c->clipped), c->clipped == 1 ? "es" : "");
	fputc('\n', f);
}

static void print_head(struct xsp_summary *s, struct xsp_capture_reader *r, FILE *f)
{
	char spans[XSP_UNITS_SIZE], time[XSP_UNITS_SIZE];
	const struct xsp_timeline_thread *threads;
	const struct xsp_summary_row *rows;
	uint64_t start, end;
	size_t thread_count = xsp_timeline_threads(s->timeline, &threads);
	size_t names = xsp_summary_rows(s, &rows);
	xsp_timeline_window(s->timeline, &start, &end);
	xsp_format_count(spans, xsp_timeline_counts(s->timeline)->spans);
	xsp_format_ns(time, end - start);
	fprintf(f, "%s span%s of %zu name%s in %zu thread%s, recorded over %s\n", spans,
		strcmp(spans, "1") == 0 ? "" : "s", names, names == 1 ? "" : "s", thread_count,
		thread_count == 1 ? "" : "s", time);
	print_windows(s->timeline, r, f, end - start, s->shares != NULL);
	print_cut(s->timeline, f);
}

static void print_lost_probes(struct xsp_capture_reader *r, struct xsp_report *report)
{
	const struct xsp_capture_lost *losts;
	const struct xsp_capture_probe *probes;
	const size_t count = xsp_capture_losts(r, &losts);
	const struct xsp_capture_lost *most = NULL;
	xsp_capture_probes(r, &probes);
	for (size_t i = 0; i < count; i++) {
		if (most == NULL || losts[i].entries + losts[i].exits > most->entries + most->exits)
			most = &losts[i];
	}
	if (most == NULL || most->entries + most->exits == 0)
		return;
	char name[128], entries[XSP_UNITS_SIZE], exits[XSP_UNITS_SIZE];
	xsp_printable(name, sizeof(name), probes[most->probe].name, 40);
	xsp_list_warn(report, "      most of %s: entries %s, exits %s (%zu function%s have losses)",
		      name, xsp_format_count(entries, most->entries),
		      xsp_format_count(exits, most->exits), count, count == 1 ? "" : "s");
}

static void print_gaps(const struct xsp_capture_reader *r, struct xsp_report *report)
{
	char printable[1200];
	uint64_t count;

	for (unsigned i = 0; i < XSP_GAPS; i++) {
		const char *value = xsp_capture_gap(r, i, &count);
		if (value == NULL)
			continue;
		xsp_printable(printable, sizeof(printable), value, 0);
		xsp_list_warn(report, "%s: %s", xsp_capture_gap_key(i), printable);
	}
}

static void print_losses(struct xsp_summary *s, struct xsp_capture_reader *r,
			 const struct xsp_health *h, struct xsp_report *report)
{
	const struct xsp_capture_stats *st = xsp_capture_stats(r);
	char text[XSP_HEALTH_LOSSES], printable[XSP_HEALTH_LOSSES];
	bool warns;

	xsp_printable(printable, sizeof(printable), xsp_health_losses(r, h, &warns, text), 0);
	if (warns)
		xsp_list_warn(report, "%s", printable);
	else
		fprintf(xsp_list_lines(report), "%s\n", printable);
	if (warns && h->known)
		print_lost_probes(r, report);
	if (st->lost_entries + st->lost_exits > 0)
		xsp_list_warn(
			report,
			"      what is left may lie on another stack, or last too long: a larger --buffer loses less");
	xsp_list_count(report, false, "held back by filters",
		       h->left_out + xsp_timeline_counts(s->timeline)->filtered);
}

/* How spans ended other than by a return. With a range, only the spans in it. */
static void print_ends(const struct xsp_summary *s, struct xsp_report *report)
{
	const struct xsp_timeline_counts *c = xsp_timeline_counts(s->timeline);

	xsp_list_count(report, false, "still open at the end of the recording or of their thread",
		       c->unfinished);
	xsp_list_count(report, false, "left by an exception, longjmp or exec", c->unwound);
	xsp_list_count(report, true,
		       "end not seen, closed when the stack showed that they were gone",
		       c->exit_lost);
}

static void print_counts(const struct xsp_summary *s, struct xsp_capture_reader *r,
			 struct xsp_report *report)
{
	const struct xsp_capture_stats *st = xsp_capture_stats(r);
	const struct xsp_timeline_counts *c = xsp_timeline_counts(s->timeline);

	xsp_list_count(report, false, "calls that had begun before they were recorded, not shown",
		       c->begun_before);
	if (c->other_threads > 0)
		fputs(XSP_OTHERS_SAID "\n", xsp_list_lines(report));
	xsp_list_count(report, true, "events of other threads, for which no row was left",
		       c->other_dropped);
	xsp_list_count(
		report, true,
		st->lost_entries + st->missed_hits > 0
			? "exits without an entry (lost entries)"
			: "exits without an entry (functions entered in another way than from their beginning, or while their probes were attached)",
		c->orphan_exits > c->begun_before ? c->orphan_exits - c->begun_before : 0);
	xsp_list_count(
		report, false,
		"calls seen at a single instruction (most often a jump to another function), counted without a duration",
		c->points);
	xsp_list_count(report, false, "switches between stacks of a thread", c->stack_switches);
	xsp_list_count(report, true, "values that were not in memory, or of no known type",
		       c->values_unread);
	xsp_list_count(report, true, "names that never arrived", c->names_unresolved);
}

/* What came late because of --follow or of libraries loaded later. */
static void print_late(const struct xsp_capture_reader *r, struct xsp_report *report)
{
	for (size_t i = 0; i < XSP_CAPTURE_LATES; i++) {
		const char *text = xsp_capture_info(r, xsp_capture_late_key(i));
		char printable[512];
		if (text == NULL)
			continue;
		xsp_printable(printable, sizeof(printable), text, 0);
		fprintf(xsp_list_lines(report), "%s: %s\n", xsp_capture_late_key(i), printable);
	}
}

static void print_damage(const struct xsp_health *h, struct xsp_report *report)
{
	char text[XSP_HEALTH_TEXT];

	for (enum xsp_damage i = 0; i < XSP_DAMAGES; i++)
		if (xsp_health_damage(h, i, text) != NULL)
			xsp_list_warn(report, "%s", text);
}

static void print_cost(struct xsp_capture_reader *r, struct xsp_report *report)
{
	const struct xsp_capture_stats *st = xsp_capture_stats(r);
	char probes[XSP_UNITS_SIZE], cpu[XSP_UNITS_SIZE], worst[INFO_SIZE], most[INFO_SIZE];
	FILE *f = xsp_list_lines(report);
	uint64_t start, end;

	xsp_capture_window(r, &start, &end);
	if (end > start && st->probes_cost_ns > 0)
		fprintf(f, "overhead of the target, estimated: %s in probes, %.2f %% of one core\n",
			xsp_format_ns(probes, st->probes_cost_ns),
			100.0 * (double)st->probes_cost_ns / (double)(end - start));
	if (xsp_capture_info(r, "worst slowdown") != NULL)
		fprintf(f, "slowed most, estimated: %s, of at most %s\n",
			info_or(r, "worst slowdown", "", worst),
			info_or(r, "max overhead", "any", most));
	if (st->recorder_cpu_ns > 0)
		fprintf(f, "xsptrace itself: %s of CPU time\n",
			xsp_format_ns(cpu, st->recorder_cpu_ns));
}

/* ---- JSON ---- */

static void put_head(struct xsp_summary *s, struct xsp_capture_reader *r, struct xsp_report *report)
{
	const struct xsp_timeline_thread *threads;
	uint64_t start, end;

	xsp_timeline_window(s->timeline, &start, &end);
	xsp_list_member(report, "version", xsp_cell_text(xsp_capture_info(r, "version")));
	xsp_list_member(report, "start_ns", xsp_cell_integer(start));
	xsp_list_member(report, "duration_ns", xsp_cell_integer(end > start ? end - start : 0));
	xsp_list_member(report, "recorded_ns",
			xsp_cell_integer(xsp_timeline_recorded_ns(s->timeline)));
	if (xsp_timeline_cut_text(s->timeline) != NULL)
		xsp_list_member(report, "cut", xsp_cell_text(xsp_timeline_cut_text(s->timeline)));
	xsp_list_member(report, "complete",
			xsp_cell_bool(xsp_capture_how_ended(r) == XSP_CAPTURE_COMPLETE));
	xsp_list_member(report, "spans", xsp_cell_integer(xsp_timeline_counts(s->timeline)->spans));
	xsp_list_member(report, "threads_with_spans",
			xsp_cell_integer(xsp_timeline_threads(s->timeline, &threads)));
}

static void put_counts(struct xsp_report *report, const char *group,
		       const struct xsp_run_stats *stats)
{
	char path[64];

	for (size_t i = 0; i < stats->count; i++) {
		snprintf(path, sizeof(path), "%s.%s", group, stats->list[i].key);
		xsp_list_member(report, path, xsp_cell_integer(stats->list[i].value));
	}
}

/* ---- both ---- */

void xsp_summary_head(struct xsp_summary *s, struct xsp_capture_reader *r,
		      struct xsp_report *report)
{
	if (xsp_report_form(report) == XSP_FORM_TEXT)
		print_head(s, r, xsp_list_lines(report));
	else
		put_head(s, r, report);
}

static void put_all_counts(struct xsp_summary *s, struct xsp_capture_reader *r,
			   struct xsp_report *report)
{
	struct xsp_run_stats stats;

	xsp_run_stats_losses(r, &stats);
	put_counts(report, "losses", &stats);
	xsp_run_stats_timeline(r, s->timeline, &stats);
	put_counts(report, "timeline", &stats);
	xsp_run_stats_overhead(r, &stats);
	put_counts(report, "overhead", &stats);
}

void xsp_summary_tail(struct xsp_summary *s, struct xsp_capture_reader *r,
		      struct xsp_report *report)
{
	const struct xsp_health health = xsp_health_of(r);
	const bool cut = xsp_timeline_cut_text(s->timeline) != NULL;

	if (xsp_report_form(report) != XSP_FORM_TEXT) {
		put_all_counts(s, r, report);
		return;
	}
	if (cut) {
		print_ends(s, report);
		fputs("what follows is of the whole recording:\n", xsp_list_lines(report));
	}
	print_losses(s, r, &health, report);
	print_gaps(r, report);
	if (!cut)
		print_ends(s, report);
	print_counts(s, r, report);
	print_late(r, report);
	print_damage(&health, report);
	print_cost(r, report);
}
