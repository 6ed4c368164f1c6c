/* SPDX-License-Identifier: BSD-2-Clause */
#include "page/page.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analysis/analyses.h"
#include "analysis/compare/compare_read.h"
#include "base/format/json.h"
#include "page/json_writer.h"
#include "page/block.h"
#include "page/rank_names.h"
#include "page/template.h"
#include "page/timeline/tracks.h"
#include "page/trees.h"

#define VERSION 1
#define TITLE_SIZE 600 /* room for two file names */
#define CELLS 1000000U
#define TOP 1000U /* rows of a report's table */
#define THRESHOLD 0.05 /* of a comparison */

struct page {
	const struct xsp_page_options *o;
	size_t source; /* the current one */
	struct xsp_ranks *ranks; /* for a job */
	struct xsp_rank_names names;
	struct xsp_compare_capture *compared; /* for a comparison: all captures, and the result */
	struct xsp_report *comparison;
	uint64_t steps[2], recorded_ns[2];
	bool without_steps;
	struct xsp_report *own; /* analyze's report, if there is no comparison */
	struct xsp_tracks *tracks;
	struct xsp_trees *trees;
	struct xsp_error *err;
};

const char *xsp_page_missing(void)
{
	return xsp_template()[0] != '\0'
		       ? NULL
		       : "built without it: install nodejs and npm, and build again (cmake -DXSPTRACE_WEB=ON says what is missing)";
}

const char *xsp_page_content_security_policy(void)
{
	return xsp_template_policy;
}

/* ---- the captures' times ---- */

/* Several captures that are no comparison. */
static bool is_job(const struct xsp_page_options *o)
{
	return o->sides == 0 && o->source_count > 1;
}

/* Real time of a capture's beginning, by the first rank's clock. */
static uint64_t real_start(const struct page *p, size_t source, uint64_t *start_ns)
{
	const struct xsp_capture_reader *r = p->o->sources[source].reader;
	uint64_t end_ns;

	xsp_capture_window(r, start_ns, &end_ns);
	return xsp_capture_realtime(r, *start_ns) +
	       (p->names.shifts != NULL ? (uint64_t)p->names.shifts[source] : 0);
}

/* The capture's own time that is 0 on the page. For a job that is the beginning of the first
 * capture; compared captures each begin at 0. */
static uint64_t origin_of(const struct page *p, size_t source)
{
	uint64_t first_ns, start_ns;
	const uint64_t real = real_start(p, source, &start_ns);

	return is_job(p->o) ? start_ns - (real - real_start(p, 0, &first_ns)) : start_ns;
}

static int match(struct page *p)
{
	int rc = xsp_ranks_new(&p->ranks);

	if (rc == 0)
		xsp_ranks_mark_steps(p->ranks, p->o->step);
	for (size_t i = 0; i < p->o->source_count && rc == 0; i++)
		rc = xsp_ranks_read(p->ranks, p->o->sources[i].reader, p->o->sources[i].name,
				    p->err);
	if (rc == 0)
		rc = xsp_ranks_match(p->ranks);
	return rc == 0 ? xsp_rank_names_of(p->ranks, p->o->source_count, &p->names) : rc;
}

/* ---- reading ---- */

/* For a comparison the timeline shows the first capture of the second side. */
static bool is_visible(const struct xsp_page_options *o, size_t source)
{
	return o->sides == 0 || source == o->sides;
}

static unsigned side_of(const struct xsp_page_options *o, size_t source)
{
	return source >= o->sides;
}

static int listen(void *ctx, struct xsp_capture_reader *r, struct xsp_timeline *t,
		  struct xsp_sinks *sinks, struct xsp_error *err)
{
	struct page *p = ctx;
	struct xsp_timeline_sink sink;
	int rc = 0;

	(void)err;
	if (is_visible(p->o, p->source)) {
		rc = xsp_tracks_begin(p->tracks, r, t, origin_of(p, p->source), &sink);
		if (rc == 0)
			rc = xsp_sinks_add(sinks, sink);
	}
	return rc == 0 && p->trees != NULL
		       ? xsp_trees_begin(p->trees, r, t, side_of(p->o, p->source), sinks)
		       : rc;
}

static int finish(void *ctx, struct xsp_timeline *t, struct xsp_error *err)
{
	struct page *p = ctx;
	int rc = is_visible(p->o, p->source) ? xsp_tracks_end(p->tracks) : 0;

	(void)t;
	(void)err;
	return rc == 0 && p->trees != NULL ? xsp_trees_end(p->trees) : rc;
}

/* For the run of a source. */
static struct xsp_pass_listener listener_of(struct page *p, size_t source)
{
	p->source = source;
	return (struct xsp_pass_listener){.ctx = p, .begin = listen, .end = finish};
}

static int run(struct page *p, size_t source, const struct xsp_cut *cut)
{
	const struct xsp_pass_listener listener = listener_of(p, source);

	return xsp_pass_run(
		&(struct xsp_pass){p->o->sources[source].reader, cut, p->o->step, &listener, 1},
		p->err);
}

/* A single capture: the page listens to the pass of the analysis. */
static int analyze(struct page *p)
{
	const struct xsp_analyze_options how = {
		.cut = p->o->cut, .step = p->o->step, .beside = listener_of(p, 0)};
	int rc = xsp_report_new(&p->own);

	return rc == 0 ? xsp_analyze(p->o->sources[0].reader, &how, p->own, p->err) : rc;
}

static int analyze_job(struct page *p)
{
	int rc = xsp_report_new(&p->own);

	for (size_t i = 0; i < p->o->source_count && rc == 0; i++)
		rc = run(p, i, p->o->cut);
	return rc == 0 ? xsp_analyze_ranks(p->ranks, NULL, p->own) : rc;
}

/* Adds to the length of a side, by which the trees of the two sides are scaled. */
static void add_steps(struct page *p, size_t source)
{
	const struct xsp_series *series = p->compared[source].series;
	const unsigned side = side_of(p->o, source);

	p->steps[side] += xsp_series_step_count(series);
	p->recorded_ns[side] += xsp_series_recorded_ns(series);
	p->without_steps = p->without_steps || xsp_series_step_count(series) == 0;
}

static int compare(struct page *p)
{
	const struct xsp_page_options *o = p->o;
	unsigned found;
	int rc = xsp_report_new(&p->comparison);

	p->compared = calloc(o->source_count, sizeof(*p->compared));
	if (rc < 0 || p->compared == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < o->source_count && rc == 0; i++) {
		const struct xsp_compare_how how = {
			.cut = o->cut, .step = o->step, .beside = listener_of(p, i)};
		rc = xsp_compare_read(o->sources[i].reader, o->sources[i].name, &how,
				      &p->compared[i], p->err);
		if (rc == 0)
			add_steps(p, i);
	}
	if (rc < 0)
		return rc;
	const struct xsp_compare_side sides[2] = {
		{p->compared, o->sides}, {p->compared + o->sides, o->source_count - o->sides}};
	return xsp_compare(sides, 2, o->threshold >= 0 ? o->threshold : THRESHOLD, p->comparison,
			   &found);
}

static int begin(struct page *p)
{
	int rc = is_job(p->o) ? match(p) : 0;

	return rc == 0 ? xsp_tracks_new(p->o->cells > 0 ? p->o->cells : CELLS,
					is_job(p->o) ? &p->names.job : NULL, &p->tracks)
		       : rc;
}

static int read_all(struct page *p)
{
	int rc = begin(p);

	if (rc == 0)
		rc = xsp_trees_new(p->o->sides > 0, &p->trees);
	if (rc < 0)
		return rc;
	if (p->o->sides > 0)
		return compare(p);
	return is_job(p->o) ? analyze_job(p) : analyze(p);
}

static void end(struct page *p)
{
	xsp_tracks_free(p->tracks);
	xsp_trees_free(p->trees);
	for (size_t i = 0; p->compared != NULL && i < p->o->source_count; i++)
		xsp_compare_clear(&p->compared[i]);
	free(p->compared);
	xsp_report_free(p->comparison);
	xsp_report_free(p->own);
	xsp_rank_names_clear(&p->names);
	xsp_ranks_free(p->ranks);
}

/* ---- blocks ---- */

static void put_time(struct xsp_json_writer *j, const char *key, time_t at)
{
	char text[32];
	struct tm tm;

	gmtime_r(&at, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	xsp_json_text(j, key, text);
}

static void put_capture(struct xsp_json_writer *j, const struct xsp_page_source *s)
{
	uint64_t start, stop;

	xsp_capture_window(s->reader, &start, &stop);
	xsp_json_begin(j, NULL, '{');
	xsp_json_text(j, "name", s->name);
	xsp_json_text(j, "host", xsp_capture_info(s->reader, "host"));
	if (xsp_capture_realtime_known(s->reader))
		put_time(j, "start", (time_t)(xsp_capture_realtime(s->reader, start) / 1000000000));
	xsp_json_number(j, "duration_ns", stop > start ? stop - start : 0);
	xsp_json_end(j, '{');
}

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

static char *title_of(const struct xsp_page_options *o, char *text, size_t size)
{
	const char *first = file_name(o->sources[0].name);

	if (o->sides > 0)
		snprintf(text, size, "%s \u2192 %s", first, file_name(o->sources[o->sides].name));
	else if (o->source_count > 1)
		snprintf(text, size, "%s and %zu more", first, o->source_count - 1);
	else
		snprintf(text, size, "%s", first);
	return text;
}

static int put_page(struct page *p, FILE *f)
{
	char title[TITLE_SIZE];
	struct xsp_json_writer j = {.f = f};

	xsp_json_begin(&j, NULL, '{');
	xsp_json_number(&j, "version", VERSION);
	xsp_json_text(&j, "tool", "xsptrace " XSP_VERSION);
	xsp_json_text(&j, "title", title_of(p->o, title, sizeof(title)));
	put_time(&j, "written", time(NULL));
	xsp_json_begin(&j, "captures", '[');
	for (size_t i = 0; i < p->o->source_count; i++)
		put_capture(&j, &p->o->sources[i]);
	xsp_json_end(&j, '[');
	if (p->o->cut != NULL && p->o->cut->text != NULL)
		xsp_json_text(&j, "cut", p->o->cut->text);
	if (p->o->served)
		xsp_json_bool(&j, "server", true);
	xsp_json_begin(&j, "notes", '[');
	xsp_tracks_notes(p->tracks, &j);
	xsp_trees_notes(p->trees, &j);
	xsp_json_end(&j, '[');
	xsp_json_end(&j, '{');
	return j.failed ? -ENOMEM : 0;
}

static int put_report(struct page *p, FILE *f)
{
	const struct xsp_report *report =
		p->compared != NULL ? p->compared[p->o->sides].report : p->own;

	return xsp_report_write_json(report, f, &(struct xsp_report_how){.top = TOP});
}

static int put_comparison(struct page *p, FILE *f)
{
	return xsp_report_write_json(p->comparison, f, &(struct xsp_report_how){.top = TOP});
}

static int put_trees(struct page *p, FILE *f)
{
	return xsp_trees_write(p->trees, p->without_steps ? p->recorded_ns : p->steps, f);
}

static int put_timeline(struct page *p, FILE *f)
{
	return xsp_tracks_write(p->tracks, f);
}

/* `page` comes last: it says what the others could not show. */
static const struct {
	const char *key;
	int (*put)(struct page *p, FILE *f);
} blocks[] = {
	{"report", put_report},	    {"compare", put_comparison}, {"trees", put_trees},
	{"timeline", put_timeline}, {"page", put_page},
};

static int write_block(struct page *p, FILE *to, const char *key,
		       int (*put)(struct page *p, FILE *f))
{
	FILE *f = xsp_block_open(to, key);

	if (f == NULL)
		return -ENOMEM;
	int rc = put(p, f);
	const int closed = xsp_block_close(f);
	return rc < 0 ? rc : closed;
}

/* ---- the whole ---- */

/* Writes the template up to `stop`, with the page's title instead of its own. */
static int write_template(const struct xsp_page_options *o, const char *stop, FILE *f)
{
	const char *from = strstr(xsp_template(), "<title>");
	const char *to = from != NULL ? strstr(from, "</title>") : NULL;
	char text[TITLE_SIZE], *title = xsp_xml_escaped(title_of(o, text, sizeof(text)), NULL);

	if (title == NULL)
		return -ENOMEM;
	if (to == NULL || to > stop)
		to = from = xsp_template();
	else
		from += strlen("<title>");
	fwrite(xsp_template(), 1, (size_t)(from - xsp_template()), f);
	if (to != from)
		fprintf(f, "%s - xsptrace", title);
	fwrite(to, 1, (size_t)(stop - to), f);
	free(title);
	return 0;
}

static int write_page(struct page *p, FILE *f)
{
	const char *at = strstr(xsp_template(), XSP_TEMPLATE_BLOCKS);
	int rc = at != NULL ? write_template(p->o, at, f) : -EINVAL;

	for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]) && rc == 0; i++)
		if (blocks[i].put != put_comparison || p->comparison != NULL)
			rc = write_block(p, f, blocks[i].key, blocks[i].put);
	if (rc == 0)
		fputs(at + strlen(XSP_TEMPLATE_BLOCKS), f);
	return rc == 0 && (fflush(f) != 0 || ferror(f)) ? -EIO : rc;
}

/* The reason why the file takes no more. A file gives it whenever we ask; a stream gave it only at
 * the failed write. */
static int why_full(FILE *f)
{
	errno = 0;
	return (fputc('\n', f) == EOF || fflush(f) != 0) && errno != 0 ? -errno : -EIO;
}

static int said(struct xsp_error *err, int rc)
{
	if (rc == -ENOMEM)
		return xsp_out_of_memory(err);
	/* keeps the reason if there is one */
	return rc < 0 ? xsp_error_set(err, rc, XSP_STATUS_OUTPUT, "cannot write the page: %s",
				      strerror(-rc))
		      : 0;
}

int xsp_page_write(const struct xsp_page_options *o, FILE *f, struct xsp_error *err)
{
	struct page p = {.o = o, .err = err};

	if (xsp_page_missing() != NULL)
		return xsp_error_set(err, -ENOTSUP, XSP_STATUS_USAGE, "cannot write a page: %s",
				     xsp_page_missing());
	int rc = read_all(&p);
	if (rc == 0)
		rc = write_page(&p, f);
	end(&p);
	if (rc < 0 && rc != -ENOMEM && ferror(f)) {
		rc = why_full(f);
		/* who opened the file knows its name, and reports the error */
		return o->served ? xsp_error_set(err, rc, XSP_STATUS_OUTPUT,
						 "no room for the page: %s", strerror(-rc))
				 : rc;
	}
	return said(err, rc);
}

/* ---- a range of it ---- */

/* The origin may lie before the boot of its host, and is then below 0. */
static uint64_t later(uint64_t origin, uint64_t ns)
{
	const int64_t at = (int64_t)origin, most = INT64_MAX - (at > 0 ? at : 0);

	if (ns > (uint64_t)most)
		return UINT64_MAX;
	return at + (int64_t)ns < 0 ? 0 : (uint64_t)(at + (int64_t)ns);
}

/* The range between two times of the page, within what the page shows of the capture. */
static struct xsp_cut part_of(const struct page *p, size_t source, uint64_t from_ns, uint64_t to_ns)
{
	const struct xsp_cut all = {.to_ns = UINT64_MAX};
	struct xsp_cut cut = p->o->cut != NULL ? *p->o->cut : all;
	const uint64_t origin = origin_of(p, source);

	if (later(origin, from_ns) > cut.from_ns)
		cut.from_ns = later(origin, from_ns);
	if (later(origin, to_ns) < cut.to_ns)
		cut.to_ns = later(origin, to_ns);
	return cut;
}

int xsp_page_timeline(const struct xsp_page_options *o, uint64_t from_ns, uint64_t to_ns,
		      uint8_t **bytes, size_t *length, struct xsp_error *err)
{
	struct page p = {.o = o, .err = err};
	char *text = NULL;
	int rc = begin(&p);

	*bytes = NULL;
	*length = 0;
	for (size_t i = 0; i < o->source_count && rc == 0; i++) {
		const struct xsp_cut cut = part_of(&p, i, from_ns, to_ns);
		if (is_visible(o, i))
			rc = run(&p, i, &cut);
	}
	FILE *f = rc == 0 ? open_memstream(&text, length) : NULL;
	if (rc == 0)
		rc = f != NULL ? write_block(&p, f, NULL, put_timeline) : -ENOMEM;
	if (f != NULL && fclose(f) != 0 && rc == 0)
		rc = -ENOMEM;
	if (rc == 0) {
		*bytes = (uint8_t *)text;
	} else {
		free(text);
		*length = 0;
	}
	end(&p);
	return said(err, rc);
}
