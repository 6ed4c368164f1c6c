/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/moment.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analyses.h"
#include "base/rows/order.h"
#include "base/text.h"
#include "base/units.h"
#include "model/pass.h"
#include "report/report.h"
#include "timeline/python.h"
#include "timeline/timeline.h"

#define PLACES 3
#define LINES 3 /* of a crash */
#define UNREAD "[Python frame not readable]" /* record/names/python.c */
#define LEAST 0.1 /* of the time: smaller places are not said */

struct place {
	const char *what;
	double ns;
};

static XSP_ORDER(longest, struct place, XSP_COMPARE(y->ns, x->ns));

static char *put_places(const struct xsp_report *report, uint64_t all_ns)
{
	const struct xsp_report_section *account = xsp_report_find_section(report, "account");
	const struct xsp_report_table *t = xsp_report_find_table(account, "places");
	struct place places[PLACES];
	char text[600] = "", time[XSP_UNITS_SIZE];
	size_t count = 0;

	for (size_t i = 0; t != NULL && i < xsp_report_row_count(t); i++) {
		const struct place one = {xsp_row_text(t, i, "what"), xsp_row_number(t, i, "ns")};
		if (xsp_row_text(t, i, "part") == NULL && one.what != NULL &&
		    one.ns >= LEAST * (double)all_ns)
			XSP_RANK(places, &count, PLACES, &one, longest);
	}
	for (size_t i = 0; i < count; i++)
		xsp_join(text, sizeof(text), "; ", "%.150s %s", places[i].what,
			 xsp_format_ns(time, (uint64_t)places[i].ns));
	return count > 0 ? strdup(text) : NULL;
}

static char *time_text(struct xsp_capture_reader *reader, const char *about)
{
	struct xsp_cut cut = {.max_depth = 0, .text = "the time of which it is a snapshot"};
	struct xsp_report *report = NULL;
	struct xsp_error err = {0};
	char *text = NULL;
	uint32_t tid = 0;

	if (sscanf(about, "%" SCNu64 " %" SCNu64 " %" SCNu32, &cut.from_ns, &cut.to_ns, &tid) !=
		    3 ||
	    cut.to_ns <= cut.from_ns || xsp_report_new(&report) < 0)
		return NULL;
	const pid_t thread = (pid_t)tid;
	cut.tids = &thread;
	cut.tid_count = tid != 0;
	/* no span is a step: all of the time counts, and not the whole steps in it */
	const struct xsp_analyze_options o = {.cut = &cut, .step = "\1"};
	if (xsp_analyze(reader, &o, report, &err) == 0)
		text = put_places(report, cut.to_ns - cut.from_ns);
	xsp_report_free(report);
	return text;
}

/* ---- a crash ---- */

/* The thread that dies has the first stack that stands for no time. */
struct last {
	struct xsp_timeline *timeline;
	uint64_t time_ns;
	char text[300];
};

/* Its innermost lines of Python. A function that was called for the first time may have no name: there was no time to read it. */
static int on_sample(void *ctx, const struct xsp_sample *s)
{
	struct last *last = ctx;
	const char *function;
	size_t file;

	if (s->period_ns != 0 || (last->time_ns != 0 && last->time_ns <= s->time_ns))
		return 0;
	last->time_ns = s->time_ns;
	last->text[0] = '\0';
	for (uint32_t i = s->path_length, n = 0; i > 0 && n < LINES; i--) {
		const char *name =
			xsp_timeline_name(last->timeline, s->path[i - 1] & ~XSP_PATH_FRAME);
		if (!xsp_python_line_split(name, &file, &function) && strcmp(name, UNREAD) != 0)
			continue;
		xsp_join(last->text, sizeof(last->text), " < ", "%s", name);
		n++;
	}
	return 0;
}

static int begin_last(void *ctx, struct xsp_capture_reader *r, struct xsp_timeline *t,
		      struct xsp_sinks *sinks, struct xsp_error *err)
{
	struct last *last = ctx;

	(void)r;
	(void)err;
	last->timeline = t;
	return xsp_sinks_add(sinks, (struct xsp_timeline_sink){.ctx = ctx, .sample = on_sample});
}

static char *crash_text(struct xsp_capture_reader *reader)
{
	struct last last = {.time_ns = 0};
	const struct xsp_pass_listener listener = {&last, begin_last, NULL, NULL};
	struct xsp_error err = {0};

	xsp_pass_run(&(struct xsp_pass){.reader = reader, .listeners = &listener, .count = 1},
		     &err);
	return last.text[0] != '\0' ? strdup(last.text) : NULL;
}

char *xsp_moment_text(struct xsp_capture_reader *reader)
{
	const char *why = xsp_capture_info(reader, "snapshot"),
		   *about = xsp_capture_info(reader, "snapshot of");

	return about != NULL				    ? time_text(reader, about)
	       : why != NULL && strncmp(why, "sig", 3) == 0 ? crash_text(reader)
							    : NULL;
}
