/* SPDX-License-Identifier: BSD-2-Clause */
/* compare.c - `xsptrace compare A B`: what became slower or faster, and how sure that is. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/compare/compare_read.h"
#include "base/grow.h"
#include "cli/cli.h"
#include "cli/options/part.h"
#include "base/text.h"
#include "cli/input.h"
#include "cli/page_output.h"
#include "cli/report_output.h"
#include "export/stacks/difference.h"

#define SIDES 26U /* A to Z */
#define PICTURES 8 /* -o .svg and .folded */

static const char usage[] =
	"Usage: xsptrace compare A.xspt B.xspt [C.xspt...] [-o OUT]... [OPTIONS]\n"
	"                        [A PART OF IT]\n"
	"       xsptrace compare A1.xspt,A2.xspt vs B1.xspt,B2.xspt\n"
	"       xsptrace compare before-*.xspt vs after-*.xspt\n"
	"\n"
	"Sets recordings side by side: steps, operators, lines of Python, kernels,\n"
	"memory, findings of analyze. Each side but the first is compared with that one;\n"
	"a verdict is given only where the 95 % interval lies beyond the threshold.\n"
	"Three recordings a side and more tell a slower program from a busier machine.\n"
	"docs/compare.md says how. Needs no root.\n"
	"\n"
	"  -o OUT               .html: a page with everything; .svg: a differential\n"
	"                       flame graph; .folded: stacks with both counts (all three\n"
	"                       of two sides); .txt, .json, .csv: the report, instead of\n"
	"                       on standard output\n"
	"      --format F       text, json or csv\n"
	"      --threshold P    what differs by less is the same (default 5%)\n"
	"      --fail-on LIST   exit status 10 if there is any of: slower, memory,\n"
	"                       new-bottleneck\n"
	"      --weight W       what .svg and .folded add up: wall, cpu, off-cpu, samples\n"
	"      --top N|all      rows of each table (default: 20 in text, else all)\n"
	"      --json-schema    instead of a report: the JSON Schema of --format json\n"
	"  -q, --quiet          no progress\n"
	"\n";
static const char example[] =
	"\nExample: xsptrace compare yesterday.xspt today.xspt -o diff.svg --fail-on slower\n"
	"         xsptrace compare a1.xspt,a2.xspt,a3.xspt vs b1.xspt,b2.xspt,b3.xspt\n";

enum { OPT_FAIL_ON = 256, OPT_THRESHOLD, OPT_WEIGHT };

static const struct option longs[] = {
	{"fail-on", required_argument, NULL, OPT_FAIL_ON},
	{"threshold", required_argument, NULL, OPT_THRESHOLD},
	{"weight", required_argument, NULL, OPT_WEIGHT},
	XSP_CUT_LONGS,
	XSP_REPORT_LONGS,
	{0},
};

struct side {
	char **paths;
	struct xsp_compare_capture *captures; /* of the same */
	size_t count, capacity;
};

struct comparing {
	struct xsp_cut_options cut;
	struct xsp_report_output output;
	const char *pictures[PICTURES];
	struct xsp_stack_difference *open[PICTURES];
	size_t picture_count;
	const char *page; /* -o .html, or NULL */
	enum xsp_weight weight;
	double threshold;
	unsigned fail_on; /* enum xsp_compare_found */
	struct side sides[SIDES];
	size_t side_count;
};

/* ---- options ---- */

static int parse_threshold(struct comparing *c, const char *value, struct xsp_error *err)
{
	char *end;

	c->threshold = strtod(value, &end) / 100;
	if (end == value || (*end != '\0' && strcmp(end, "%") != 0) ||
	    !(c->threshold >= 0 && c->threshold < 1))
		return xsp_wrong_value(err, "--threshold", value, "a share from 0% to 99% (5%)");
	return 0;
}

/* "slower,memory" */
static int parse_fail_on(struct comparing *c, const char *value, struct xsp_error *err)
{
	static const struct {
		const char *keyword;
		enum xsp_compare_found found;
	} keywords[] = {{"slower", XSP_COMPARE_SLOWER},
			{"memory", XSP_COMPARE_MEMORY},
			{"new-bottleneck", XSP_COMPARE_NEW_BOTTLENECK}};

	for (const char *at = value;; at++) {
		const size_t length = strcspn(at, ",");
		size_t i = 0;
		while (i < sizeof(keywords) / sizeof(keywords[0]) &&
		       (strlen(keywords[i].keyword) != length ||
			strncmp(keywords[i].keyword, at, length) != 0))
			i++;
		if (i == sizeof(keywords) / sizeof(keywords[0]))
			return xsp_wrong_value(
				err, "--fail-on", value,
				"some of slower, memory and new-bottleneck, with commas");
		c->fail_on |= keywords[i].found;
		at += length;
		if (*at == '\0')
			return 0;
	}
}

/* At most one of its kind. */
static int set_file(const char **at, const char *path, const char *what, struct xsp_error *err)
{
	if (*at != NULL)
		return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
				     "-o %.200s: the %s is written to one file, and that is "
				     "%.200s",
				     path, what, *at);
	*at = path;
	return 0;
}

static int parse_output(struct comparing *c, const char *path, struct xsp_error *err)
{
	if (xsp_ends_with(path, strlen(path), ".html"))
		return set_file(&c->page, path, "page", err);
	if (!xsp_is_stack_difference_name(path))
		return set_file(&c->output.path, path, "report", err);
	if (c->picture_count == PICTURES)
		return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
				     "-o %.200s: at most %u files of .svg and .folded", path,
				     PICTURES);
	c->pictures[c->picture_count++] = path;
	return 0;
}

static int parse_option(struct comparing *c, int code, char **argv, struct xsp_error *err)
{
	const int handled = xsp_cut_option(&c->cut, code, optarg, err);

	if (handled != 0)
		return handled < 0 ? handled : 0;
	switch (code) {
	case 'o':
		return parse_output(c, optarg, err);
	case OPT_FAIL_ON:
		return parse_fail_on(c, optarg, err);
	case OPT_THRESHOLD:
		return parse_threshold(c, optarg, err);
	case OPT_WEIGHT:
		c->weight = xsp_weight_of(optarg);
		return c->weight < XSP_WEIGHTS ? 0
					       : xsp_wrong_value(err, "--weight", optarg,
								 "wall, cpu, off-cpu or samples");
	default:
		return xsp_report_output_option(&c->output, code, argv, "compare", err);
	}
}

/* ---- sides ---- */

static int add_capture(struct side *s, const char *path, size_t length)
{
	if (xsp_grow(&s->paths, &s->capacity, s->count + 1) < 0)
		return -ENOMEM;
	s->paths[s->count] = strndup(path, length);
	return s->paths[s->count++] != NULL ? 0 : -ENOMEM;
}

/* "A1,A2"; or a file whose name has a comma. */
static int add_argument(struct side *s, const char *argument)
{
	int rc = 0;

	if (access(argument, F_OK) == 0)
		return add_capture(s, argument, strlen(argument));
	for (const char *at = argument; rc == 0; at++) {
		const size_t length = strcspn(at, ",");
		rc = add_capture(s, at, length);
		at += length;
		if (*at == '\0')
			break;
	}
	return rc;
}

/* With "vs" all words up to it are one side, else each is one. */
static int parse_sides(struct comparing *c, char **arguments, int count, struct xsp_error *err)
{
	bool versus = false;
	int rc = 0;

	for (int i = 0; i < count; i++)
		versus = versus || strcmp(arguments[i], "vs") == 0;
	for (int i = 0; i < count && rc == 0; i++) {
		const bool next = strcmp(arguments[i], "vs") == 0;
		if (c->side_count == 0 || next || !versus)
			c->side_count++;
		if (c->side_count > SIDES)
			return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
					     "more than %u sides: write A1,A2 vs B1,B2 for several "
					     "captures a side",
					     SIDES);
		if (!next)
			rc = add_argument(&c->sides[c->side_count - 1], arguments[i]);
	}
	if (rc < 0)
		return xsp_out_of_memory(err);
	for (size_t i = 0; i < c->side_count; i++)
		if (c->sides[i].count == 0)
			return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
					     "no capture on one side of vs: see xsptrace compare "
					     "--help");
	if (c->side_count < 2)
		return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
				     "give two captures at least: see xsptrace compare --help");
	if (c->side_count > 2 && (c->picture_count > 0 || c->page != NULL))
		return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
				     "-o %.200s shows two sides, not %zu",
				     c->page != NULL ? c->page : c->pictures[0], c->side_count);
	if (c->page != NULL && (c->cut.from != NULL || c->cut.to != NULL))
		return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
				     "-o %.200s: --from and --to are times of one capture, and "
				     "a page is of all of each",
				     c->page);
	return c->page != NULL ? xsp_page_output_check(c->page, err) : 0;
}

static int parse_arguments(struct comparing *c, int argc, char **argv, struct xsp_error *err)
{
	int code, rc = 0;

	optind = 1;
	opterr = 0;
	while (rc == 0 && (code = getopt_long(argc, argv, ":" XSP_REPORT_SHORTS XSP_CUT_SHORTS,
					      longs, NULL)) != -1)
		rc = parse_option(c, code, argv, err);
	if (rc < 0 || c->output.help)
		return rc;
	if (c->output.schema == NULL)
		rc = parse_sides(c, argv + optind, argc - optind, err);
	return rc < 0 ? rc : xsp_report_output_choose(&c->output, err);
}

/* ---- reading ---- */

/* The pictures listen to the same run. */
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

static int read_capture(struct comparing *c, unsigned side, size_t index, struct xsp_error *err)
{
	const char *path = c->sides[side].paths[index];
	struct xsp_capture_reader *reader = NULL;
	struct xsp_compare_capture *capture = &c->sides[side].captures[index];
	struct listening listening = {c, side, capture};
	const struct xsp_input_options input = {.progress =
							!c->output.quiet && isatty(STDERR_FILENO)};
	int rc = c->output.path == NULL ? 0 : xsp_refuse_input_as_output(path, c->output.path, err);

	if (rc == 0)
		rc = xsp_input_open(path, &input, &reader, err);
	if (rc == 0)
		rc = xsp_cut_resolve(&c->cut, reader, err);
	if (rc == 0) {
		const struct xsp_compare_how how = {
			.cut = c->cut.given ? &c->cut.cut : NULL,
			.step = c->cut.step,
			.beside = {&listening, begin_pictures, end_pictures, NULL}};
		rc = xsp_compare_read(reader, path, &how, capture, err);
	}
	xsp_capture_close(reader);
	return rc;
}

static int read_all(struct comparing *c, struct xsp_error *err)
{
	const bool shows_progress = !c->output.quiet && isatty(STDERR_FILENO);
	size_t at = 0, all = 0;
	int rc = 0;

	for (unsigned i = 0; i < c->side_count; i++)
		all += c->sides[i].count;
	for (unsigned i = 0; i < c->side_count && rc == 0; i++) {
		struct side *s = &c->sides[i];
		s->captures = calloc(s->count, sizeof(*s->captures));
		if (s->captures == NULL)
			rc = xsp_out_of_memory(err);
		for (size_t k = 0; k < s->count && rc == 0; k++) {
			if (shows_progress)
				fprintf(stderr, "\rreading capture %zu of %zu\033[K", ++at, all);
			rc = read_capture(c, i, k, err);
		}
	}
	if (shows_progress)
		fputs("\r\033[K", stderr);
	return rc;
}

/* ---- writing ---- */

static int open_pictures(struct comparing *c, struct xsp_error *err)
{
	struct xsp_export_options options = {
		.weight = c->weight, .owner_uid = (uid_t)-1, .owner_gid = (gid_t)-1};
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
	const char *const names[] = {c->sides[0].paths[0], c->sides[1].paths[0]};
	int rc = 0;

	for (size_t i = 0; i < c->picture_count && rc == 0; i++) {
		rc = xsp_stack_difference_finish(c->open[i], names, err);
		c->open[i] = NULL;
	}
	return rc;
}

static int write_page(struct comparing *c, struct xsp_error *err)
{
	const size_t before = c->sides[0].count, count = before + c->sides[1].count;
	char **paths = calloc(count, sizeof(*paths));
	struct xsp_page_source *sources = NULL;
	struct xsp_page_output file = {.path = c->page,
				       .owner_uid = (uid_t)-1,
				       .owner_gid = (gid_t)-1,
				       .quiet = c->output.quiet};

	if (paths == NULL)
		return xsp_out_of_memory(err);
	for (size_t i = 0; i < count; i++)
		paths[i] = i < before ? c->sides[0].paths[i] : c->sides[1].paths[i - before];
	int rc = xsp_page_sources_open(paths, count, false, &sources, err);
	if (rc == 0) {
		const struct xsp_page_options page = {.sources = sources,
						      .source_count = count,
						      .sides = before,
						      .threshold = c->threshold,
						      .cut = c->cut.given ? &c->cut.cut : NULL,
						      .step = c->cut.step};
		xsp_sudo_user(&file.owner_uid, &file.owner_gid);
		rc = xsp_page_output_write(&file, &page, err);
	}
	xsp_page_sources_close(sources, count);
	free(paths);
	return rc;
}

static int compare(struct comparing *c, unsigned *found, struct xsp_error *err)
{
	struct xsp_compare_side sides[SIDES];
	struct xsp_report *report = NULL;
	int rc = open_pictures(c, err);

	if (rc == 0)
		rc = read_all(c, err);
	if (rc == 0 && xsp_report_new(&report) < 0)
		rc = xsp_out_of_memory(err);
	if (rc == 0) {
		for (size_t i = 0; i < c->side_count; i++)
			sides[i] =
				(struct xsp_compare_side){c->sides[i].captures, c->sides[i].count};
		if (xsp_compare(sides, c->side_count, c->threshold, report, found) < 0)
			rc = xsp_out_of_memory(err);
	}
	if (rc == 0)
		rc = xsp_report_output_write(&c->output, report, err);
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
	for (size_t i = 0; i < SIDES; i++) {
		struct side *s = &c->sides[i];
		for (size_t k = 0; k < s->count; k++) {
			if (s->captures != NULL)
				xsp_compare_clear(&s->captures[k]);
			free(s->paths[k]);
		}
		free(s->captures);
		free(s->paths);
	}
	xsp_cut_clear(&c->cut);
}

int xsp_cmd_compare(int argc, char **argv)
{
	struct comparing c = {.threshold = 0.05};
	struct xsp_error err = {0};
	int status = XSP_STATUS_OK;
	unsigned found = 0;

	signal(SIGPIPE, SIG_IGN); /* a reader that goes away is an error of the output */
	signal(SIGXFSZ, SIG_IGN);
	int rc = parse_arguments(&c, argc, argv, &err);
	if (rc == 0 && c.output.help) {
		xsp_wrap_stdout();
		printf("%s%s%s", usage, xsp_cut_help, example);
	} else if (rc == 0 && c.output.schema != NULL) {
		rc = xsp_report_output_write(&c.output, NULL, &err);
	} else if (rc == 0) {
		rc = compare(&c, &found, &err);
	}
	if (rc < 0)
		status = xsp_say_error(&err);
	else if (found & c.fail_on)
		status = XSP_STATUS_FOUND;
	clear(&c);
	return status;
}
