/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/outputs.h"
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/names/summary.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "cli/job.h"
#include "cli/page_output.h"
#include "export/export.h"
#include "export/run_stats.h"
#include "timeline/timeline.h"

struct work {
	const struct xsp_outputs *o;
	struct xsp_capture_reader *reader;
	struct xsp_timeline *timeline;
	struct xsp_summary *summary;
	struct xsp_export **exports; /* NULL where it could not be opened */
	char **elsewhere; /* the names of those that could not have theirs */
	char **notes; /* what is to be said of them */
	bool *pages; /* those that are pages, and can be written */
	struct xsp_timeline_sink *sinks;
	size_t sink_count;
	int status;
	double progress_at; /* time of the last progress line */
	uint64_t spans;
};

static void failed(struct work *w, const struct xsp_error *err)
{
	int status = xsp_say_error(err);

	if (w->status == 0)
		w->status = status;
}

bool xsp_is_capture_name(const char *path)
{
	return xsp_ends_with(path, strlen(path), ".xspt") && xsp_export_format_for(path) == NULL;
}

static bool is_page(const char *path)
{
	const struct xsp_export_format *format = xsp_export_format_for(path);

	return format != NULL && format->whole;
}

unsigned xsp_by_of(const char *keyword)
{
	static const struct {
		const char *keyword;
		enum xsp_by by;
	} keywords[] = {
		{"thread", XSP_BY_THREAD}, {"line", XSP_BY_LINE}, {"module", XSP_BY_MODULE}};

	for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++)
		if (strcmp(keyword, keywords[i].keyword) == 0)
			return keywords[i].by;
	return 0;
}

static double seconds(void)
{
	return (double)xsp_now_ns() * 1e-9;
}

/* A sink of its own: shows how far it is, at most five times a second. */
static int show_progress(void *ctx, const struct xsp_span *span)
{
	struct work *w = ctx;

	(void)span;
	if (++w->spans % 65536 != 0)
		return 0;
	double now = seconds();
	if (now - w->progress_at < 0.2)
		return 0;
	w->progress_at = now;
	char spans[XSP_UNITS_SIZE];
	fprintf(stderr, "\rwriting outputs: %3.0f%%, %s spans\033[K",
		100 * xsp_capture_progress(w->reader), xsp_format_count(spans, w->spans));
	return 0;
}

/* It is of some formats only, and nobody else would tell that another one is what it always is. */
static void say_weight(const struct xsp_outputs *o)
{
	bool used = o->weight == XSP_WEIGHT_USUAL;

	for (size_t i = 0; i < o->count && !used; i++) {
		const struct xsp_export_format *format = xsp_export_format_for(o->paths[i]);
		used = format != NULL && format->stacks;
	}
	if (!used)
		xsp_say("--weight %s changes nothing: it is what .folded, .svg, .perf and .pb.gz "
			"add up",
			xsp_weight_name(o->weight));
}

static int open_all(struct work *w)
{
	const struct xsp_outputs *o = w->o;
	struct xsp_error err = {0};

	say_weight(o);

	w->exports = calloc(o->count + 1, sizeof(struct xsp_export *));
	w->elsewhere = calloc(o->count + 1, sizeof(char *));
	w->notes = calloc(o->count + 1, sizeof(char *));
	w->pages = calloc(o->count + 1, sizeof(*w->pages));
	w->sinks = calloc(o->count + 3, sizeof(*w->sinks));
	if (w->exports == NULL || w->elsewhere == NULL || w->notes == NULL || w->pages == NULL ||
	    w->sinks == NULL || (o->summary && xsp_summary_new(w->timeline, &w->summary) < 0)) {
		xsp_out_of_memory(&err);
		failed(w, &err);
		return -ENOMEM;
	}
	if (w->summary != NULL) {
		w->sinks[w->sink_count++] = xsp_summary_sink(w->summary);
	}
	for (size_t i = 0; i < o->count; i++) {
		struct xsp_export_options options = {
			.path = o->paths[i],
			.weight = o->weight,
			.by_thread = (o->by & XSP_BY_THREAD) != 0,
			.python_rows = (o->by & XSP_BY_PYTHON) != 0,
			.owner_uid = o->owner_uid,
			.owner_gid = o->owner_gid,
			.before = o->before != NULL ? &o->before[i] : NULL,
			.elsewhere = &w->elsewhere[i],
			.note = &w->notes[i],
			.job = o->job != NULL ? &o->job->names.job : NULL,
		};
		struct xsp_error why = {0};
		if (xsp_is_capture_name(o->paths[i]))
			continue;
		if (is_page(o->paths[i])) {
			w->pages[i] = xsp_page_output_check(o->paths[i], &why) == 0;
			if (!w->pages[i])
				failed(w, &why);
			continue;
		}
		if (xsp_export_open(&options, w->reader, w->timeline, &w->exports[i], &why) < 0) {
			w->exports[i] = NULL;
			failed(w, &why);
			continue;
		}
		w->sinks[w->sink_count++] = xsp_export_sink(w->exports[i]);
	}
	if (o->beside != NULL)
		w->sinks[w->sink_count++] = *o->beside;
	if (o->progress && w->sink_count > 0)
		w->sinks[w->sink_count++] =
			(struct xsp_timeline_sink){.ctx = w, .span = show_progress};
	return 0;
}

/* Behind the run, when all names are known. A job says it in its report. */
static void say_no_steps(const struct work *w)
{
	char text[256];

	if (w->o->step == NULL || w->o->job != NULL || xsp_timeline_steps_expected(w->timeline))
		return;
	xsp_timeline_no_steps(w->timeline, text, sizeof(text));
	xsp_say("%s", text);
}

static void finish_all(struct work *w, bool complete)
{
	for (size_t i = 0; w->sinks != NULL && i < w->o->count; i++) {
		struct xsp_error why = {0};
		char size[XSP_UNITS_SIZE];
		const char *name = w->o->paths[i];
		if (w->exports[i] == NULL)
			continue;
		if (!complete) {
			xsp_export_cancel(w->exports[i]);
			continue;
		}
		struct stat st = {0};
		uint64_t bytes;
		const bool too_large = xsp_export_too_large(w->exports[i], &bytes);
		char why_empty[256];
		const bool empty = xsp_export_is_empty(w->exports[i], why_empty, sizeof(why_empty));
		int rc = xsp_export_finish(w->exports[i], &why);
		if (rc < 0)
			failed(w, &why);
		if (w->elsewhere[i] != NULL) {
			xsp_say_elsewhere(name, w->elsewhere[i]);
			name = w->elsewhere[i];
		}
		if (rc == 0 && !w->o->quiet && stat(name, &st) == 0)
			fprintf(stderr, "wrote %s (%s%s%s)\n", name,
				xsp_format_bytes(size, (uint64_t)st.st_size),
				w->notes[i] != NULL ? ", " : "",
				w->notes[i] != NULL ? w->notes[i] : "");
		else if (rc == 0 && !w->o->quiet && w->notes[i] != NULL)
			fprintf(stderr, "wrote %s (%s)\n", name, w->notes[i]);
		if (rc == 0 && too_large && !w->o->quiet)
			xsp_say("%s holds %s of JSON, more than viewers manage (1 GB): cut it "
				"(xsptrace export --from, --to, -e, --min-duration, --max-depth), "
				"or take .svg, .folded or .perf",
				name, xsp_format_bytes(size, bytes));
		if (rc == 0 && empty && !w->o->quiet)
			xsp_say("%s is empty: %s", name, why_empty);
		free(w->elsewhere[i]);
		free(w->notes[i]);
	}
	free(w->exports);
	free(w->elsewhere);
	free(w->notes);
	free(w->sinks);
}

static void add_counts(struct xsp_summary_count *out, size_t *n, const char *group,
		       const struct xsp_run_stats *stats)
{
	for (size_t i = 0; i < stats->count; i++)
		out[(*n)++] =
			(struct xsp_summary_count){group, stats->list[i].key, stats->list[i].value};
}

static int print_json(struct work *w)
{
	struct xsp_summary_count counts[3 * XSP_RUN_STATS_MAX];
	struct xsp_run_stats losses = {.count = 0}, timeline = {.count = 0},
			     overhead = {.count = 0};
	size_t n = 0;

	xsp_run_stats_losses(w->reader, &losses);
	xsp_run_stats_timeline(w->reader, w->timeline, &timeline);
	xsp_run_stats_overhead(w->reader, &overhead);
	add_counts(counts, &n, "losses", &losses);
	add_counts(counts, &n, "timeline", &timeline);
	add_counts(counts, &n, "overhead", &overhead);
	return xsp_summary_write_json(w->summary, w->reader, stdout, counts, n);
}

static void print_summary(struct work *w)
{
	struct xsp_summary_print how = {
		.limit = w->o->rows,
		.width = xsp_terminal_width(STDOUT_FILENO),
		.color = isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL,
		.by_line = (w->o->by & XSP_BY_LINE) != 0,
		.by_module = (w->o->by & XSP_BY_MODULE) != 0,
	};

	if (w->summary == NULL)
		return;
	if (w->o->json) {
		print_json(w);
		return;
	}
	xsp_wrap_stdout();
	xsp_summary_write(w->summary, w->reader, stdout, &how);
}

static void say_damage(struct work *w)
{
	uint64_t torn, chunks, events;

	xsp_capture_damage(w->reader, &torn, &chunks, &events);
	if (chunks + events > 0)
		xsp_say("the capture is damaged: %llu chunks with a wrong checksum and %llu bad "
			"events were left out",
			(unsigned long long)chunks, (unsigned long long)events);
	if (xsp_capture_how_ended(w->reader) == XSP_CAPTURE_TORN)
		xsp_say("the capture was cut off: its last %llu bytes are no whole chunk and were "
			"left out",
			(unsigned long long)torn);
	else if (xsp_capture_how_ended(w->reader) == XSP_CAPTURE_NO_END)
		xsp_say("the recording was not ended properly: what was collected until then is "
			"shown");
}

/* The captures of the job behind the first one, each in its turn. What is at hand stays until outputs are finished. */
static bool run_others(struct work *w, struct xsp_capture_reader **last, struct xsp_error *err)
{
	for (size_t i = 1; i < w->o->job->files.count; i++) {
		struct xsp_capture_reader *reader = NULL;
		struct xsp_timeline *timeline = NULL;
		if (xsp_input_open(w->o->job->files.paths[i],
				   &(struct xsp_input_options){.keep = NULL}, &reader, err) < 0 ||
		    xsp_timeline_new(reader, &timeline, err) < 0) {
			xsp_capture_close(reader);
			return false;
		}
		for (size_t k = 0; k < w->o->count; k++)
			if (w->exports[k] != NULL)
				xsp_export_next(w->exports[k], reader, timeline);
		say_damage(w);
		xsp_timeline_free(w->timeline);
		xsp_capture_close(*last);
		w->reader = *last = reader;
		w->timeline = timeline;
		if (xsp_timeline_run(timeline, w->sinks, w->sink_count, err) < 0)
			return false;
	}
	return true;
}

static void write_page(struct work *w, size_t index)
{
	const struct xsp_outputs *o = w->o;
	const struct xsp_page_source one = {w->reader, o->name != NULL ? o->name : o->paths[index]};
	const size_t several = o->job != NULL ? o->job->files.count : 0;
	struct xsp_page_source *sources = NULL;
	struct xsp_error err = {0};
	int rc = several == 0 ? 0
			      : xsp_page_sources_open(o->job->files.paths, several, o->progress,
						      &sources, &err);

	if (rc == 0) {
		const struct xsp_page_options page = {.sources = several > 0 ? sources : &one,
						      .source_count = several > 0 ? several : 1,
						      .cut = o->cut,
						      .step = o->step};
		const struct xsp_page_output file = {.path = o->paths[index],
						     .before = o->before != NULL ? &o->before[index]
										 : NULL,
						     .owner_uid = o->owner_uid,
						     .owner_gid = o->owner_gid,
						     .quiet = o->quiet};
		rc = xsp_page_output_write(&file, &page, &err);
	}
	if (rc < 0)
		failed(w, &err);
	xsp_page_sources_close(sources, several);
}

int xsp_write_outputs(struct xsp_capture_reader *capture, const struct xsp_outputs *o)
{
	struct work w = {.o = o, .reader = capture, .progress_at = seconds()};
	struct xsp_capture_reader *last = NULL; /* of a job */
	struct xsp_error err = {0};
	bool complete = false;

	if (xsp_timeline_new(w.reader, &w.timeline, &err) < 0) {
		failed(&w, &err);
		goto out;
	}
	xsp_timeline_mark_steps(w.timeline, o->step);
	if (o->cut != NULL && xsp_timeline_cut(w.timeline, o->cut) < 0) {
		xsp_out_of_memory(&err);
		failed(&w, &err);
		goto out;
	}
	if (open_all(&w) == 0) {
		/* a page reads by itself */
		const bool listens = w.sink_count > 0 || o->counts != NULL;
		complete =
			!listens || xsp_timeline_run(w.timeline, w.sinks, w.sink_count, &err) == 0;
		if (complete && listens && o->job != NULL)
			complete = run_others(&w, &last, &err);
		if (w.spans >= 65536 && o->progress)
			fputs("\r\033[K", stderr);
		if (!complete)
			failed(&w, &err);
	}
	finish_all(&w, complete);
	for (size_t i = 0; complete && i < o->count; i++)
		if (w.pages[i])
			write_page(&w, i);
	say_damage(&w);
	if (complete) {
		say_no_steps(&w);
		print_summary(&w);
	}
	if (complete && o->counts != NULL)
		*o->counts = *xsp_timeline_counts(w.timeline);
out:
	free(w.pages);
	xsp_summary_free(w.summary);
	xsp_timeline_free(w.timeline);
	xsp_capture_close(last);
	return w.status;
}
