/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/outputs.h"
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/analyses.h"
#include "analysis/names/summary.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "cli/job.h"
#include "cli/page_output.h"
#include "export/export.h"
#include "model/health.h"
#include "model/pass.h"
#include "timeline/timeline.h"

struct work {
	const struct xsp_outputs *o;
	struct xsp_capture_reader *reader;
	struct xsp_timeline *timeline;
	struct xsp_summary *summary;
	struct xsp_export **exports; /* NULL where it could not be opened */
	char **elsewhere; /* the names that files got if theirs were not possible */
	char **notes; /* notes about the outputs */
	bool *pages; /* whether each is a page that can be written */
	size_t part; /* the index of the current capture of a job */
	bool ended; /* it was read to its end */
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
	} keywords[] = {{"thread", XSP_BY_THREAD},
			{"step", XSP_BY_STEP},
			{"line", XSP_BY_LINE},
			{"module", XSP_BY_MODULE}};

	for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++)
		if (strcmp(keyword, keywords[i].keyword) == 0)
			return keywords[i].by;
	return 0;
}

static double seconds(void)
{
	return (double)xsp_now_ns() * 1e-9;
}

/* A sink that only shows the progress, at most five times a second. */
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

/* Only some formats have a weight. The others would silently be what they always are. */
static void say_weight(const struct xsp_outputs *o)
{
	bool used = o->weight == XSP_WEIGHT_USUAL;

	for (size_t i = 0; i < o->count && !used; i++) {
		const struct xsp_export_format *format = xsp_export_format_for(o->paths[i]);
		used = format != NULL && format->stacks;
	}
	if (!used)
		xsp_say("--weight %s changes nothing: it is what .folded, .svg, .perf and .pb.gz add up",
			xsp_weight_name(o->weight));
}

static void open_export(struct work *w, size_t i)
{
	const struct xsp_outputs *o = w->o;
	struct xsp_export_options options = {
		.path = o->paths[i],
		.weight = o->weight,
		.by_thread = (o->by & XSP_BY_THREAD) != 0,
		.by_step = (o->by & XSP_BY_STEP) != 0,
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
		return;
	if (is_page(o->paths[i])) {
		w->pages[i] = xsp_page_output_check(o->paths[i], &why) == 0;
		if (!w->pages[i])
			failed(w, &why);
	} else if (xsp_export_open(&options, w->reader, w->timeline, &w->exports[i], &why) < 0) {
		w->exports[i] = NULL;
		failed(w, &why);
	}
}

static int open_all(struct work *w)
{
	const struct xsp_outputs *o = w->o;

	say_weight(o);
	w->exports = calloc(o->count + 1, sizeof(struct xsp_export *));
	w->elsewhere = calloc(o->count + 1, sizeof(char *));
	w->notes = calloc(o->count + 1, sizeof(char *));
	w->pages = calloc(o->count + 1, sizeof(*w->pages));
	if (w->exports == NULL || w->elsewhere == NULL || w->notes == NULL || w->pages == NULL ||
	    (o->summary && xsp_summary_new(w->timeline, &w->summary) < 0))
		return -ENOMEM;
	for (size_t i = 0; i < o->count; i++)
		open_export(w, i);
	return 0;
}

/* A page is no sink: it reads the captures itself, later. */
static int add_sinks(struct work *w, struct xsp_sinks *sinks)
{
	const struct xsp_outputs *o = w->o;
	const size_t before = sinks->count; /* the report's */
	int rc = w->summary != NULL ? xsp_sinks_add(sinks, xsp_summary_sink(w->summary)) : 0;

	for (size_t i = 0; i < o->count && rc == 0; i++)
		if (w->exports[i] != NULL)
			rc = xsp_sinks_add(sinks, xsp_export_sink(w->exports[i]));
	if (rc == 0 && o->beside != NULL)
		rc = xsp_sinks_add(sinks, *o->beside);
	/* the counts are wanted even if there is no other sink */
	const bool shown = o->progress && sinks->count > before;
	const struct xsp_timeline_sink counting = {.ctx = w, .span = shown ? show_progress : NULL};
	return rc == 0 && (shown || o->counts != NULL) ? xsp_sinks_add(sinks, counting) : rc;
}

static int begin_part(void *ctx, struct xsp_capture_reader *reader, struct xsp_timeline *timeline,
		      struct xsp_sinks *sinks, struct xsp_error *err)
{
	struct work *w = ctx;
	int rc = 0;

	(void)err;
	w->reader = reader;
	w->timeline = timeline;
	w->ended = false;
	if (w->part == 0)
		rc = open_all(w);
	for (size_t i = 0; w->part > 0 && i < w->o->count; i++)
		if (w->exports[i] != NULL)
			xsp_export_next(w->exports[i], reader, timeline);
	return rc == 0 ? add_sinks(w, sinks) : rc;
}

/* Call it after the run, when all names are known. A job's report says it. */
static void say_no_steps(const struct work *w)
{
	char text[256];

	if (w->o->step == NULL || w->o->job != NULL || xsp_timeline_steps_expected(w->timeline))
		return;
	xsp_timeline_no_steps(w->timeline, text, sizeof(text));
	xsp_say("%s", text);
}

/* "a.json, a.svg". Without memory the name is said at once. */
static void note_written(const struct xsp_outputs *o, const char *name)
{
	char *longer;

	if (asprintf(&longer, "%s%s%s", *o->wrote != NULL ? *o->wrote : "",
		     *o->wrote != NULL ? ", " : "", name) < 0) {
		fprintf(stderr, "wrote %s\n", name);
		return;
	}
	free(*o->wrote);
	*o->wrote = longer;
}

static void finish_all(struct work *w, bool complete)
{
	for (size_t i = 0; w->exports != NULL && i < w->o->count; i++) {
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
		if (rc == 0 && w->o->wrote != NULL && w->notes[i] == NULL)
			note_written(w->o, name);
		else if (rc == 0 && !w->o->quiet && stat(name, &st) == 0)
			fprintf(stderr, "wrote %s (%s%s%s)\n", name,
				xsp_format_bytes(size, (uint64_t)st.st_size),
				w->notes[i] != NULL ? ", " : "",
				w->notes[i] != NULL ? w->notes[i] : "");
		else if (rc == 0 && !w->o->quiet && w->notes[i] != NULL)
			fprintf(stderr, "wrote %s (%s)\n", name, w->notes[i]);
		if (rc == 0 && too_large && !w->o->quiet)
			xsp_say("%s holds %s of JSON, more than viewers manage (1 GB): cut it (xsptrace export --from, --to, -e, --min-duration, --max-depth), or take .svg, .folded or .perf",
				name, xsp_format_bytes(size, bytes));
		if (rc == 0 && empty && !w->o->quiet)
			xsp_say("%s is empty: %s", name, why_empty);
		free(w->elsewhere[i]);
		free(w->notes[i]);
	}
	free(w->exports);
	free(w->elsewhere);
	free(w->notes);
	w->exports = NULL;
	w->elsewhere = w->notes = NULL;
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
		xsp_summary_write_json(w->summary, w->reader, stdout);
		return;
	}
	xsp_wrap_stdout();
	xsp_summary_write(w->summary, w->reader, stdout, &how);
}

static void say_damage(struct work *w)
{
	const struct xsp_health health = xsp_health_of(w->reader);
	char text[XSP_HEALTH_TEXT];

	for (enum xsp_damage i = 0; i < XSP_DAMAGES; i++)
		if (xsp_health_damage(&health, i, text) != NULL)
			xsp_say("%s", text);
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
						     .quiet = o->quiet || o->wrote != NULL};
		rc = xsp_page_output_write(&file, &page, &err);
		if (rc == 0 && o->wrote != NULL)
			note_written(o, o->paths[index]);
	}
	if (rc < 0)
		failed(w, &err);
	xsp_page_sources_close(sources, several);
}

/* After the run; the summary's text says it too. */
static void say_bad_times(const struct work *w)
{
	const struct xsp_gpu_counts *c = xsp_timeline_gpu(w->timeline);
	char text[XSP_GPU_BAD_TEXT];

	if (c != NULL && (w->summary == NULL || w->o->json) && xsp_gpu_bad_text(c, text) != NULL)
		xsp_say("%s", text);
}

/* Between two captures of a job. */
static void end_exports(struct work *w)
{
	for (size_t i = 0; i < w->o->count; i++)
		if (w->exports[i] != NULL)
			xsp_export_end_part(w->exports[i]);
	say_damage(w);
	say_bad_times(w);
}

static void end_progress(const struct work *w)
{
	if (w->spans >= 65536 && w->o->progress)
		fputs("\r\033[K", stderr);
}

static int end_part(void *ctx, struct xsp_timeline *t, struct xsp_error *err)
{
	struct work *w = ctx;

	(void)err;
	w->ended = true;
	if (w->o->job != NULL && w->part + 1 < w->o->job->files.count) {
		end_exports(w);
		return 0;
	}
	end_progress(w);
	finish_all(w, true);
	for (size_t i = 0; i < w->o->count; i++)
		if (w->pages[i])
			write_page(w, i);
	say_damage(w);
	say_bad_times(w);
	say_no_steps(w);
	print_summary(w);
	if (w->o->counts != NULL)
		*w->o->counts = *xsp_timeline_counts(t);
	return 0;
}

static void clear_part(void *ctx)
{
	struct work *w = ctx;

	if (!w->ended) {
		finish_all(w, false);
		say_damage(w);
	}
	xsp_summary_free(w->summary);
	w->summary = NULL;
}

/* Reads the other captures of a job, one after the other. */
static int run_others(struct work *w, const struct xsp_pass_listener *listener,
		      struct xsp_error *err)
{
	int rc = 0;

	while (rc == 0 && ++w->part < w->o->job->files.count) {
		struct xsp_capture_reader *reader = NULL;
		rc = xsp_input_open(w->o->job->files.paths[w->part],
				    &(struct xsp_input_options){.keep = NULL}, &reader, err);
		if (rc == 0)
			rc = xsp_pass_run(
				&(struct xsp_pass){reader, w->o->cut, w->o->step, listener, 1},
				err);
		xsp_capture_close(reader);
	}
	return rc;
}

/* Outputs that are complete stay so without the report. */
static int analyze(const struct work *w, const struct xsp_pass_listener *outputs,
		   struct xsp_error *err)
{
	const struct xsp_outputs *o = w->o;
	const struct xsp_analyze_options how = {.cut = o->cut, .step = o->step, .beside = *outputs};
	const int rc = xsp_analyze(w->reader, &how, *o->report, err);

	if (rc == 0)
		return 0;
	xsp_report_free(*o->report);
	*o->report = NULL;
	if (w->ended)
		xsp_say("the account of the time is missing: %s", err->text);
	return w->ended ? 0 : rc;
}

int xsp_write_outputs(struct xsp_capture_reader *capture, const struct xsp_outputs *o)
{
	struct work w = {.o = o, .reader = capture, .progress_at = seconds()};
	const struct xsp_pass_listener listener = {&w, begin_part, end_part, clear_part};
	struct xsp_error err = {0};
	const struct xsp_pass pass = {capture, o->cut, o->step, &listener, 1};
	int rc = o->report != NULL ? analyze(&w, &listener, &err) : xsp_pass_run(&pass, &err);

	if (rc == 0 && o->job != NULL)
		rc = run_others(&w, &listener, &err);
	if (rc < 0) {
		end_progress(&w);
		failed(&w, &err);
	}
	/* a job's next capture could not be opened: outputs may still be open */
	finish_all(&w, false);
	free(w.pages);
	return w.status;
}
