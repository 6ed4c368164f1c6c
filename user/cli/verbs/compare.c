/* SPDX-License-Identifier: BSD-2-Clause */
/* compare.c - `xsptrace compare A B`: what became slower or faster, and how sure that is. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/compare/compare_read.h"
#include "cli/capture_files.h"
#include "cli/cli.h"
#include "base/text.h"
#include "cli/input.h"
#include "cli/options/options.h"
#include "cli/page_output.h"
#include "export/stacks/difference.h"

#define PICTURES 8 /* -o .svg and .folded */

struct comparing {
	struct xsp_options o;
	const char *pictures[PICTURES];
	struct xsp_stack_difference *open[PICTURES];
	size_t picture_count;
	const char *page; /* -o .html, or NULL */
	struct xsp_capture_files files;
	struct xsp_compare_capture *captures; /* the captures of each side */
};

/* ---- options ---- */

/* Takes at most one file of each kind. */
static int set_file(const char **at, const char *path, const char *what, struct xsp_error *err)
{
	if (*at != NULL)
		return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
				     "-o %.200s: the %s is written to one file, and that is %.200s",
				     path, what, *at);
	*at = path;
	return 0;
}

static int parse_output(struct comparing *c, const char *path, struct xsp_error *err)
{
	if (xsp_ends_with(path, strlen(path), ".html"))
		return set_file(&c->page, path, "page", err);
	if (!xsp_is_stack_difference_name(path))
		return set_file(&c->o.report.path, path, "report", err);
	if (c->picture_count == PICTURES)
		return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
				     "-o %.200s: at most %u files of .svg and .folded", path,
				     PICTURES);
	c->pictures[c->picture_count++] = path;
	return 0;
}

/* ---- sides ---- */

static int check_sides(const struct comparing *c, struct xsp_error *err)
{
	const struct xsp_cut_options *part = &c->o.part;
	const size_t sides = c->files.side_count;

	if (sides < 2)
		return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
				     "give two captures at least: see xsptrace compare --help");
	if (sides > 2 && (c->picture_count > 0 || c->page != NULL))
		return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
				     "-o %.200s shows two sides, not %zu",
				     c->page != NULL ? c->page : c->pictures[0], sides);
	if (c->page != NULL && (part->from != NULL || part->to != NULL))
		return xsp_error_set(
			err, -EINVAL, XSP_STATUS_USAGE,
			"-o %.200s: --from and --to are times of one capture, and a page is of all of each",
			c->page);
	return c->page != NULL ? xsp_page_output_check(c->page, err) : 0;
}

static int read_options(struct comparing *c, struct xsp_error *err)
{
	const struct xsp_options *o = &c->o;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < o->outputs.count; i++)
		rc = parse_output(c, o->outputs.words[i], err);
	if (rc == 0 && o->report.schema == NULL)
		rc = xsp_capture_sides(&c->files, o->rest, o->rest_count, err);
	if (rc == 0 && o->report.schema == NULL)
		rc = check_sides(c, err);
	return rc < 0 ? rc : xsp_report_output_choose(&c->o.report, err);
}

/* ---- reading ---- */

/* The pictures listen to the same pass. */
struct listening {
	struct comparing *comparing;
	unsigned side;
	const struct xsp_compare_capture *capture;
};

static int begin_pictures(void *ctx, struct xsp_capture_reader *r, struct xsp_timeline *t,
			  struct xsp_sinks *sinks, struct xsp_error *err)
{
	struct comparing *c = ((struct listening *)ctx)->comparing;
	struct xsp_timeline_sink sink;
	int rc = 0;

	for (size_t i = 0; i < c->picture_count && rc == 0; i++) {
		rc = xsp_stack_difference_begin(c->open[i], r, t, &sink, err);
		if (rc == 0)
			rc = xsp_sinks_add(sinks, sink);
	}
	return rc;
}

static int end_pictures(void *ctx, struct xsp_timeline *t, struct xsp_error *err)
{
	const struct listening *l = ctx;
	const struct xsp_series *series = l->capture->series;
	int rc = 0;

	(void)t;
	for (size_t i = 0; i < l->comparing->picture_count && rc == 0; i++)
		rc = xsp_stack_difference_end(l->comparing->open[i], l->side,
					      xsp_series_step_count(series),
					      xsp_series_recorded_ns(series), err);
	return rc;
}

static int read_capture(struct comparing *c, size_t index, struct xsp_error *err)
{
	const char *path = c->files.paths[index];
	struct xsp_capture_reader *reader = NULL;
	struct listening listening = {c, xsp_capture_side(&c->files, index), &c->captures[index]};
	const struct xsp_options *o = &c->o;
	const struct xsp_input_options input = {.progress = o->progress};
	int rc = o->report.path == NULL ? 0 : xsp_refuse_input_as_output(path, o->report.path, err);

	if (rc == 0)
		rc = xsp_input_open(path, &input, &reader, err);
	if (rc == 0)
		rc = xsp_cut_resolve(&c->o.part, reader, err);
	if (rc == 0) {
		const struct xsp_compare_how how = {
			.cut = xsp_cut_of(&c->o.part),
			.step = c->o.part.step,
			.beside = {&listening, begin_pictures, end_pictures, NULL}};
		rc = xsp_compare_read(reader, path, &how, &c->captures[index], err);
	}
	xsp_capture_close(reader);
	return rc;
}

static int read_all(struct comparing *c, struct xsp_error *err)
{
	int rc = 0;

	c->captures = calloc(c->files.count, sizeof(*c->captures));
	if (c->captures == NULL)
		return xsp_out_of_memory(err);
	for (size_t i = 0; i < c->files.count && rc == 0; i++) {
		if (c->o.progress)
			fprintf(stderr, "\rreading capture %zu of %zu\033[K", i + 1,
				c->files.count);
		rc = read_capture(c, i, err);
	}
	if (c->o.progress)
		fputs("\r\033[K", stderr);
	return rc;
}

/* ---- writing ---- */

static int open_pictures(struct comparing *c, struct xsp_error *err)
{
	struct xsp_export_options options = {.weight = c->o.weight};
	int rc = 0;

	xsp_sudo_user(&options.owner_uid, &options.owner_gid);
	for (size_t i = 0; i < c->picture_count && rc == 0; i++) {
		options.path = c->pictures[i];
		rc = xsp_stack_difference_open(&options, &c->open[i], err);
	}
	return rc;
}

static int finish_pictures(struct comparing *c, struct xsp_error *err)
{
	const char *const names[] = {c->files.paths[0], c->files.paths[c->files.ends[0]]};
	int rc = 0;

	for (size_t i = 0; i < c->picture_count && rc == 0; i++) {
		rc = xsp_stack_difference_finish(c->open[i], names, err);
		c->open[i] = NULL;
	}
	return rc;
}

static int write_page(struct comparing *c, struct xsp_error *err)
{
	struct xsp_page_source *sources = NULL;
	struct xsp_page_output file = {.path = c->page, .quiet = c->o.quiet};
	int rc = xsp_page_sources_open(c->files.paths, c->files.count, false, &sources, err);

	if (rc == 0) {
		const struct xsp_page_options page = {.sources = sources,
						      .source_count = c->files.count,
						      .sides = c->files.ends[0],
						      .threshold = c->o.threshold,
						      .cut = xsp_cut_of(&c->o.part),
						      .step = c->o.part.step};
		xsp_sudo_user(&file.owner_uid, &file.owner_gid);
		rc = xsp_page_output_write(&file, &page, err);
	}
	xsp_page_sources_close(sources, c->files.count);
	return rc;
}

static int compare(struct comparing *c, unsigned *found, struct xsp_error *err)
{
	struct xsp_compare_side sides[XSP_CAPTURE_SIDES];
	struct xsp_report *report = NULL;
	int rc = open_pictures(c, err);

	if (rc == 0)
		rc = read_all(c, err);
	if (rc == 0 && xsp_report_new(&report) < 0)
		rc = xsp_out_of_memory(err);
	if (rc == 0) {
		for (size_t i = 0, at = 0; i < c->files.side_count; at = c->files.ends[i++])
			sides[i] =
				(struct xsp_compare_side){c->captures + at, c->files.ends[i] - at};
		if (xsp_compare(sides, c->files.side_count, c->o.threshold, report, found) < 0)
			rc = xsp_out_of_memory(err);
	}
	if (rc == 0)
		rc = xsp_report_output_write(&c->o.report, report, err);
	if (rc == 0)
		rc = finish_pictures(c, err);
	if (rc == 0 && c->page != NULL)
		rc = write_page(c, err);
	xsp_report_free(report);
	return rc;
}

static void clear(struct comparing *c)
{
	for (size_t i = 0; i < c->picture_count; i++)
		xsp_stack_difference_cancel(c->open[i]);
	for (size_t i = 0; c->captures != NULL && i < c->files.count; i++)
		xsp_compare_clear(&c->captures[i]);
	free(c->captures);
	xsp_capture_files_clear(&c->files);
	xsp_options_clear(&c->o);
}

int xsp_cmd_compare(int argc, char **argv)
{
	struct comparing c = {.captures = NULL};
	struct xsp_error err = {0};
	unsigned found = 0;
	int status;

	signal(SIGPIPE, SIG_IGN); /* if a reader goes away, it is an error of the output */
	signal(SIGXFSZ, SIG_IGN);
	if (xsp_options_take(argc, argv, XSP_VERB_COMPARE, &c.o, &status)) {
		int rc = read_options(&c, &err);
		if (rc == 0)
			rc = c.o.report.schema != NULL
				     ? xsp_report_output_write(&c.o.report, NULL, &err)
				     : compare(&c, &found, &err);
		if (rc < 0)
			status = xsp_say_error(&err);
		else if (found & c.o.fail_on)
			status = XSP_STATUS_FOUND;
	}
	clear(&c);
	return status;
}
