/* SPDX-License-Identifier: BSD-2-Clause */
/* summary_print.c - the table, and after it everything that the reader must know of it. */
#include "analysis/names/summary_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "model/health.h"

/* ---- the table ---- */

static void print_table(struct xsp_summary *s, struct xsp_capture_reader *r, FILE *f,
			const struct xsp_summary_print *how)
{
	static const struct xsp_list_column columns[] = {
		{.key = "shown"},
		{.key = "calls"},
		{.key = "total_ns"},
		{.key = "self_ns"},
		{.key = "mean_ns", .spare = 2},
		{.key = "p50_ns", .spare = 3},
		{.key = "p99_ns", .spare = 1},
		{.key = "max_ns"},
	};
	static const struct xsp_list_column with_cpu[] = {
		{.key = "shown"},
		{.key = "calls"},
		{.key = "total_ns"},
		{.key = "cpu_shown"},
		{.key = "self_ns"},
		{.key = "mean_ns", .spare = 2},
		{.key = "p50_ns", .spare = 3},
		{.key = "p99_ns", .spare = 1},
		{.key = "max_ns"},
	};
	const bool waits = xsp_timeline_has_waits(s->timeline);
	const struct xsp_list_text text = {&xsp_summary_names_list, waits ? with_cpu : columns,
					   waits ? 9 : 8, 0};
	const struct xsp_summary_names names = {.summary = s, .reader = r};
	const struct xsp_summary_row *rows;
	const size_t all = xsp_summary_rows(s, &rows);
	const size_t count = how->limit > 0 && how->limit < all ? how->limit : all;
	struct xsp_list_fit fit;
	bool marked = false;

	if (all == 0)
		return;
	xsp_list_fit(&text, &names, rows, sizeof(*rows), count, how->width, &fit);
	xsp_list_fitted(&text, &fit, f, &names, rows, sizeof(*rows), count, how->color);
	if (count < all)
		fprintf(f, "... and %zu more name%s\n", all - count, all - count == 1 ? "" : "s");
	xsp_list_hidden(&text, &fit, f);
	for (size_t i = 0; i < count; i++)
		marked = marked || rows[i].mostly_probes;
	if (marked)
		fputs("* in most calls most of the time is that of probes inside: without them it "
		      "is "
		      "less than half\n",
		      f);
	fputc('\n', f);
}

/* ---- the lines after it ---- */

#define INFO_SIZE 256

/* What the capture says, which may have been made to drive the terminal. */
static const char *info_or(const struct xsp_capture_reader *r, const char *key, const char *other,
			   char printable[INFO_SIZE])
{
	const char *text = xsp_capture_info(r, key);

	xsp_printable(printable, INFO_SIZE, text != NULL ? text : other, 0);
	return printable;
}

struct note {
	FILE *f;
	bool color;
};

/* Something that makes the numbers above less than the whole truth. */
static void warn(const struct note *n, const char *text)
{
	fprintf(n->f, "%s%s%s\n", n->color ? "\033[33m" : "", text, n->color ? "\033[0m" : "");
}

/* "a, b, c" of those counters that are not 0. */
struct list {
	char text[512];
	size_t used;
};

static void add(struct list *l, uint64_t n, const char *one, const char *many)
{
	char count[XSP_UNITS_SIZE];
	if (n == 0 || l->used >= sizeof(l->text))
		return;
	l->used += (size_t)snprintf(l->text + l->used, sizeof(l->text) - l->used, "%s%s %s",
				    l->used > 0 ? ", " : "", xsp_format_count(count, n),
				    n == 1 ? one : many);
}

/* --max-overhead: the figures are not of the whole time. */
static void print_windows(const struct xsp_timeline *t, struct xsp_capture_reader *r, FILE *f,
			  uint64_t all_ns)
{
	const struct xsp_capture_window *windows;
	const struct xsp_capture_let_go *l;
	const struct xsp_capture_probe *probes;
	const size_t count = xsp_capture_windows(r, &windows), gone = xsp_capture_let_gos(r, &l);
	char time[XSP_UNITS_SIZE], name[128], why[XSP_LET_GO_REASON_MAX], most[INFO_SIZE];

	if (count > 0 && all_ns > 0)
		fprintf(f,
			"to keep the target within %s all was on for %s of it, in %zu window%s: "
			"the "
			"totals are of %.3g %% of the time\n",
			info_or(r, "max overhead", "--max-overhead", most),
			xsp_format_ns(time, xsp_timeline_recorded_ns(t)), count,
			count == 1 ? "" : "s",
			100.0 * (double)xsp_timeline_recorded_ns(t) / (double)all_ns);
	xsp_capture_probes(r, &probes);
	for (size_t i = 0; i < gone; i++) {
		xsp_printable(name, sizeof(name), probes[l[i].probe].name, 60);
		fprintf(f, "released: %s, %s; --max-overhead off keeps it\n", name,
			xsp_capture_let_go_reason(l[i].calls_per_second,
						  xsp_capture_stats(r)->lost_entries > 0, why));
	}
}

/* What it was asked to leave out, and what of the rest is not of the cut. */
static void print_cut(const struct xsp_timeline *t, FILE *f)
{
	const struct xsp_timeline_counts *c = xsp_timeline_counts(t);
	char cut[XSP_UNITS_SIZE], clipped[XSP_UNITS_SIZE], text[512];

	if (xsp_timeline_cut_text(t) == NULL)
		return;
	xsp_printable(text, sizeof(text), xsp_timeline_cut_text(t), 400);
	fprintf(f, "cut: %s", text);
	if (c->cut > 0) /* else there are none, or the trace that was read did not have them */
		fprintf(f, "; %s span%s left out", xsp_format_count(cut, c->cut),
			c->cut == 1 ? " is" : "s are");
	if (c->clipped > 0)
		fprintf(f,
			", %s go%s beyond it: in totals with what lies in it, in no mean, p50, p99 "
			"or max",
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
	print_windows(s->timeline, r, f, end - start);
	print_cut(s->timeline, f);
}

static void print_lost_probes(struct xsp_capture_reader *r, const struct note *n)
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
	char name[128], entries[XSP_UNITS_SIZE], exits[XSP_UNITS_SIZE], text[320];
	xsp_printable(name, sizeof(name), probes[most->probe].name, 40);
	snprintf(text, sizeof(text),
		 "      most of %s: entries %s, exits %s (%zu function%s have losses)", name,
		 xsp_format_count(entries, most->entries), xsp_format_count(exits, most->exits),
		 count, count == 1 ? "" : "s");
	warn(n, text);
}

static void print_gaps(const struct xsp_capture_reader *r, const struct note *n)
{
	char printable[1200], text[1300];
	uint64_t count;

	for (unsigned i = 0; i < XSP_GAPS; i++) {
		const char *value = xsp_capture_gap(r, i, &count);
		if (value == NULL)
			continue;
		xsp_printable(printable, sizeof(printable), value, 0);
		snprintf(text, sizeof(text), "%s: %s", xsp_capture_gap_key(i), printable);
		warn(n, text);
	}
}

static void print_losses(struct xsp_summary *s, struct xsp_capture_reader *r,
			 const struct xsp_health *h, const struct note *n)
{
	const struct xsp_capture_stats *st = xsp_capture_stats(r);
	const bool complete = h->ended == XSP_CAPTURE_COMPLETE;
	struct list l = {0};
	char text[640], unseen[INFO_SIZE];
	for (unsigned i = 0; i < XSP_LOSSES; i++)
		add(&l, h->lost[i], xsp_loss_words[i].one, xsp_loss_words[i].several);
	if (l.used > 0) {
		snprintf(text, sizeof(text), "lost: %s%s", l.text,
			 complete ? "" : ", up to the last count in the capture");
		warn(n, text);
		print_lost_probes(r, n);
		if (st->lost_entries + st->lost_exits > 0)
			warn(n, "      what is left may lie on another stack, or last too long: a "
				"larger --buffer loses less");
	} else if (complete && xsp_capture_info(r, "calls unseen") != NULL) {
		fprintf(n->f,
			"no event was lost; calls %s before their probes were there are missing\n",
			info_or(r, "calls unseen", "", unseen));
	} else if (complete && st->events > 0) {
		fputs(h->gaps ? "no event was lost\n" : "nothing was lost\n", n->f);
	} else if (st->events > 0) {
		fputs("nothing was lost up to the last count in the capture\n", n->f);
	} else if (complete && h->known) {
		fputs("nothing was lost (no event was counted)\n", n->f);
	} else {
		warn(n, "whether events were lost is not known: the capture holds no counters");
	}
	const uint64_t filtered = h->left_out + xsp_timeline_counts(s->timeline)->filtered;
	if (filtered > 0)
		fprintf(n->f, "held back by filters: %s\n", xsp_format_count(text, filtered));
}

/* How spans that are told of ended, where it was not by a return: of a part, those in it. */
static void print_ends(const struct xsp_summary *s, const struct note *n)
{
	const struct xsp_timeline_counts *c = xsp_timeline_counts(s->timeline);
	char count[XSP_UNITS_SIZE];
	if (c->unfinished > 0)
		fprintf(n->f, "still open at the end of the recording or of their thread: %s\n",
			xsp_format_count(count, c->unfinished));
	if (c->unwound > 0)
		fprintf(n->f, "left by an exception, longjmp or exec: %s\n",
			xsp_format_count(count, c->unwound));
	char text[256];
	if (c->exit_lost > 0) {
		snprintf(text, sizeof(text),
			 "end not seen, closed when the stack showed that they were gone: %s",
			 xsp_format_count(count, c->exit_lost));
		warn(n, text);
	}
}

static void print_counts(const struct xsp_summary *s, struct xsp_capture_reader *r,
			 const struct note *n)
{
	const struct xsp_capture_stats *st = xsp_capture_stats(r);
	const struct xsp_timeline_counts *c = xsp_timeline_counts(s->timeline);
	char count[XSP_UNITS_SIZE], text[256];
	if (c->begun_before > 0)
		fprintf(n->f, "calls that had begun before they were recorded, not shown: %s\n",
			xsp_format_count(count, c->begun_before));
	if (c->orphan_exits > c->begun_before) {
		snprintf(text, sizeof(text), "exits without an entry (%s): %s",
			 st->lost_entries + st->missed_hits > 0
				 ? "lost entries"
				 : "functions entered in another way than from their beginning, or "
				   "while their probes were attached",
			 xsp_format_count(count, c->orphan_exits - c->begun_before));
		warn(n, text);
	}
	if (c->points > 0)
		fprintf(n->f,
			"calls seen at a single instruction, counted without a duration: %s\n",
			xsp_format_count(count, c->points));
	if (c->stack_switches > 0)
		fprintf(n->f, "switches between stacks of a thread: %s\n",
			xsp_format_count(count, c->stack_switches));
	if (c->values_unread > 0) {
		snprintf(text, sizeof(text),
			 "values that were not in memory, or of no known type: %s",
			 xsp_format_count(count, c->values_unread));
		warn(n, text);
	}
	if (c->names_unresolved > 0) {
		snprintf(text, sizeof(text), "names that never arrived: %s",
			 xsp_format_count(count, c->names_unresolved));
		warn(n, text);
	}
}

/* What came late: --follow, and libraries. */
static void print_late(const struct xsp_capture_reader *r, const struct note *n)
{
	for (size_t i = 0; i < XSP_CAPTURE_LATES; i++) {
		const char *text = xsp_capture_info(r, xsp_capture_late_key(i));
		char printable[512];
		if (text == NULL)
			continue;
		xsp_printable(printable, sizeof(printable), text, 0);
		fprintf(n->f, "%s: %s\n", xsp_capture_late_key(i), printable);
	}
}

static void print_damage(const struct xsp_health *h, const struct note *n)
{
	char text[XSP_HEALTH_TEXT];

	for (enum xsp_damage i = 0; i < XSP_DAMAGES; i++)
		if (xsp_health_damage(h, i, text) != NULL)
			warn(n, text);
}

static void print_cost(struct xsp_capture_reader *r, const struct note *n)
{
	const struct xsp_capture_stats *st = xsp_capture_stats(r);
	char probes[XSP_UNITS_SIZE], cpu[XSP_UNITS_SIZE], worst[INFO_SIZE], most[INFO_SIZE];
	uint64_t start, end;
	xsp_capture_window(r, &start, &end);
	if (end > start && st->probes_cost_ns > 0)
		fprintf(n->f,
			"overhead of the target, estimated: %s in probes, %.2f %% of one core\n",
			xsp_format_ns(probes, st->probes_cost_ns),
			100.0 * (double)st->probes_cost_ns / (double)(end - start));
	if (xsp_capture_info(r, "worst slowdown") != NULL)
		fprintf(n->f, "slowed most, estimated: %s, of at most %s\n",
			info_or(r, "worst slowdown", "", worst),
			info_or(r, "max overhead", "any", most));
	if (st->recorder_cpu_ns > 0)
		fprintf(n->f, "xsptrace itself: %s of CPU time\n",
			xsp_format_ns(cpu, st->recorder_cpu_ns));
}

static void warn_of(void *ctx, const char *text)
{
	warn(ctx, text);
}

int xsp_summary_write(struct xsp_summary *s, struct xsp_capture_reader *r, FILE *f,
		      const struct xsp_summary_print *how)
{
	const struct note n = {.f = f, .color = how->color};
	const struct xsp_health health = xsp_health_of(r);
	int rc = 0;

	if (how->by_line || how->by_module)
		rc = xsp_summary_python_write(s->python, f, how);
	else
		print_table(s, r, f, how);
	if (rc < 0)
		return rc;
	xsp_summary_gpu_table(s->gpu, f, how);
	xsp_summary_values_write(&s->values, s->timeline, f, how);
	rc = xsp_summary_samples_write(s->samples, r, f, how);
	if (rc == 0)
		rc = xsp_summary_allocations_table(s->allocations, f, how);
	if (rc == 0)
		rc = xsp_summary_waits_write(s->waits, r, f, how);
	if (rc < 0)
		return rc;
	print_head(s, r, f);
	xsp_steps_write(s->steps, r, f);
	xsp_summary_gpu_print(s->gpu, r, f, warn_of, (void *)(uintptr_t)&n);
	xsp_summary_memory_print(s->memory, r, f, how);
	xsp_summary_allocations_print(s->allocations, r, f, warn_of, (void *)(uintptr_t)&n);
	if (xsp_timeline_cut_text(s->timeline) != NULL) {
		print_ends(s, &n);
		fputs("what follows is of the whole recording:\n", f);
	}
	print_losses(s, r, &health, &n);
	print_gaps(r, &n);
	if (xsp_timeline_cut_text(s->timeline) == NULL)
		print_ends(s, &n);
	print_counts(s, r, &n);
	print_late(r, &n);
	print_damage(&health, &n);
	print_cost(r, &n);
	return ferror(f) ? -EIO : 0;
}
