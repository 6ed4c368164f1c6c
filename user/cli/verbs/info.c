/* SPDX-License-Identifier: BSD-2-Clause */
/* info.c - `xsptrace info FILE`: what a capture holds, without reading its events. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "capture/parts.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "cli/options/options.h"
#include "model/health.h"
#include "model/pass.h"
#include "timeline/windows.h"

/* Text of a capture may come from a target: it must not drive the terminal. */
static void print_row(const char *key, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void print_row(const char *key, const char *fmt, ...)
{
	char text[4608], printable[sizeof(text) + 4];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	xsp_printable(printable, sizeof(printable), text, 0);
	printf("%-16s %s\n", key, printable);
}

static void print_infos(const struct xsp_capture_reader *r)
{
	static const char *const keys[] = {
		"arguments", "version",	  "host",	   "kernel",	   "machine",
		"attach",    "hit costs", XSP_INFO_PRICES, "filters",	   "snapshot",
		"children",  "execs",	  "libraries",	   "changed code", "unnamed call sites",
		"python",    "waits",	  "samples",	   "read from",	   "not as there"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *value = xsp_capture_info(r, keys[i]);
		if (value != NULL && value[0] != '\0')
			print_row(keys[i], "%s", value);
	}
	for (unsigned i = 0; i < XSP_GAPS; i++) {
		uint64_t count;
		const char *value = xsp_capture_gap(r, i, &count);
		if (value != NULL)
			print_row(xsp_capture_gap_key(i), "%s", value);
	}
}

static void print_window(const struct xsp_capture_reader *r)
{
	static const char *const ends[] = {
		[XSP_CAPTURE_COMPLETE] = "complete (checksums of events are looked at by export)",
		[XSP_CAPTURE_NO_END] =
			"not ended properly (the recorder was killed); readable up to there",
		[XSP_CAPTURE_TORN] = "cut off inside its last chunk; readable up to there",
	};
	uint64_t start, end;
	char when[64] = "at a time that is not known";

	xsp_capture_window(r, &start, &end);
	time_t at = (time_t)(xsp_capture_realtime(r, start) / 1000000000ULL);
	struct tm tm;
	if (xsp_capture_realtime_known(r) && localtime_r(&at, &tm) != NULL)
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S %z", &tm);
	printf("%-16s %s, %.3f s\n", "recorded", when,
	       end > start ? (double)(end - start) * 1e-9 : 0);
	const struct xsp_capture_window *windows;
	size_t count = xsp_capture_windows(r, &windows);
	if (count > 0)
		printf("%-16s %zu of %s, %.3f s together\n", "windows", count,
		       xsp_capture_windows_option(r), (double)xsp_capture_recorded_ns(r) * 1e-9);
	if (xsp_capture_schedule(r) != NULL)
		print_row("schedule", "%s", xsp_capture_schedule(r));
	uint32_t first, last;
	const size_t parts = xsp_capture_parts(r, &first, &last);
	if (parts == 1)
		printf("%-16s %" PRIu32 " of a recording in several files (--split)\n", "part",
		       first);
	else if (parts > 1)
		printf("%-16s %zu, %" PRIu32 " to %" PRIu32 ", of a recording in several files\n",
		       "parts", parts, first, last);
	printf("%-16s %s\n", "file", ends[xsp_capture_how_ended(r)]);
}

/* Prints the damage known so far: damage of events shows only after they have been read. */
static bool print_damage(const struct xsp_capture_reader *r)
{
	const struct xsp_health health = xsp_health_of(r);
	char text[XSP_HEALTH_TEXT];
	bool any = false;

	/* the row `file` says whether it has an end */
	for (enum xsp_damage i = 0; i < XSP_DAMAGE_NO_END; i++) {
		if (xsp_health_damage(&health, i, text) == NULL)
			continue;
		print_row(any ? "" : "damage", "%s", text);
		any = true;
	}
	return any;
}

static void print_processes(const struct xsp_capture_reader *r)
{
	const struct xsp_capture_process *p;
	const struct xsp_capture_thread *t;
	size_t n = xsp_capture_processes(r, &p), threads = xsp_capture_threads(r, &t);

	for (size_t i = 0; i < n; i++)
		print_row(i ? "" : "processes",
			  "%" PRIu32 " (%" PRIu32 " in its namespace) %s: %.200s", p[i].pid,
			  p[i].ns_pid, p[i].comm, p[i].cmdline);
	printf("%-16s %zu known at the start\n", "threads", threads);
}

static size_t functions_of(const struct xsp_capture_probe *p, size_t count)
{
	size_t functions = 0;

	for (size_t i = 0; i < count; i++)
		functions += p[i].kind != XSP_PROBE_MARK;
	return functions;
}

static void print_modules(const struct xsp_capture_reader *r)
{
	const struct xsp_capture_module *m;
	const struct xsp_capture_probe *p;
	size_t modules = xsp_capture_modules(r, &m), probes = xsp_capture_probes(r, &p);
	const size_t functions = functions_of(p, probes);

	for (size_t i = 0; i < modules; i++) {
		char id[2 * 64 + 1] = "";
		for (uint32_t j = 0; j < m[i].build_id_length && j < 64; j++)
			snprintf(id + 2 * j, 3, "%02x", m[i].build_id[j]);
		print_row(i ? "" : "modules", "%.4096s %s", m[i].path, id);
	}
	const struct xsp_capture_let_go *l;
	size_t gone = xsp_capture_let_gos(r, &l);
	for (size_t i = 0; i < gone; i++) {
		char rate[48] = "not called until then";
		if (l[i].why != XSP_LET_GO_FAMILY)
			snprintf(rate, sizeof(rate), "%" PRIu64 " calls/s", l[i].calls_per_second);
		print_row(i ? "" : "released", "%s, %s", p[l[i].probe].name, rate);
	}
	printf("%-16s %zu functions, %zu internal\n", "probes", functions, probes - functions);
}

static void print_stats(const struct xsp_capture_reader *r)
{
	const struct xsp_capture_stats *s = xsp_capture_stats(r);
	const bool complete = xsp_capture_how_ended(r) == XSP_CAPTURE_COMPLETE,
		   counted = complete && xsp_capture_stats_known(r);
	const struct {
		const char *name;
		uint64_t value;
	} counts[] = {
		{"lost entries", s->lost_entries}, {"lost exits", s->lost_exits},
		{"lost other", s->lost_other},	   {"lost names", s->lost_names},
		{"filtered", s->filtered},	   {"silent hits", s->silent_hits},
		{"missed hits", s->missed_hits},   {"untracked", s->untracked},
	};

	printf("%-16s %" PRIu64 "%s\n", "events", counted ? s->events : xsp_capture_events(r),
	       counted ? "" : " in the file");
	if (!xsp_capture_stats_known(r)) {
		print_row("losses", "not known: the capture holds no counters");
		return;
	}
	if (!complete)
		print_row("counters", "the last ones in the file, which may be a second old:");
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		printf("%-16s %" PRIu64 "\n", counts[i].name, counts[i].value);
	const struct xsp_capture_probe *p;
	const size_t probes = xsp_capture_probes(r, &p);
	if (s->probes_cost_ns > 0 || functions_of(p, probes) > 0)
		printf("%-16s %.3f s of the target's threads, %.3f s of xsptrace\n", "cost",
		       (double)s->probes_cost_ns * 1e-9, (double)s->recorder_cpu_ns * 1e-9);
	else
		printf("%-16s not known of the target's threads (no probes; that of samples and waits is not estimated), %.3f s of xsptrace\n",
		       "cost", (double)s->recorder_cpu_ns * 1e-9);
	if (xsp_capture_info(r, "worst slowdown") != NULL)
		print_row("slowed most", "%s", xsp_capture_info(r, "worst slowdown"));
}

/* ---- a range of it ---- */

static void print_part_counts(const struct xsp_timeline *t, const struct xsp_cut_left *p)
{
	const struct xsp_timeline_counts *c = xsp_timeline_counts(t);
	const struct xsp_timeline_thread *threads;
	const size_t n = xsp_timeline_threads(t, &threads);
	uint64_t start, end;

	xsp_timeline_window(t, &start, &end);
	print_row("part", "%s", xsp_timeline_cut_text(t));
	print_row("", "%.3f s", (double)(end - start) * 1e-9);
	print_row("", "%" PRIu64 " spans in %zu threads; %" PRIu64 " of them go beyond it",
		  c->spans, n, c->clipped);
	print_row("",
		  "%" PRIu64 " waits, %" PRIu64 " samples, %" PRIu64 " GPU activities, %" PRIu64
		  " allocations and frees",
		  p->waits, p->samples, p->activities, p->memory);
}

struct part {
	const struct xsp_cut_options *cut;
	struct xsp_cut_left left;
};

static int begin_part(void *ctx, struct xsp_capture_reader *r, struct xsp_timeline *t,
		      struct xsp_sinks *sinks, struct xsp_error *err)
{
	struct part *p = ctx;

	(void)r;
	(void)t;
	(void)err;
	return xsp_sinks_add(sinks, xsp_cut_left_sink(&p->left));
}

static int end_part(void *ctx, struct xsp_timeline *t, struct xsp_error *err)
{
	const struct part *p = ctx;

	print_part_counts(t, &p->left);
	return xsp_cut_check_left(p->cut, xsp_timeline_counts(t), &p->left, err);
}

/* Reads the events of the range. */
static int print_part(struct xsp_capture_reader *r, const struct xsp_cut_options *o)
{
	struct part part = {.cut = o};
	const struct xsp_pass_listener listener = {&part, begin_part, end_part, NULL};
	struct xsp_error err = {0};

	return xsp_pass_run(&(struct xsp_pass){r, &o->cut, NULL, &listener, 1}, &err) < 0
		       ? xsp_say_error(&err)
		       : XSP_STATUS_OK;
}

static int print_all(struct xsp_capture_reader *r, const struct xsp_cut_options *cut)
{
	print_infos(r);
	print_window(r);
	const bool damage_told = print_damage(r);
	print_processes(r);
	print_modules(r);
	print_stats(r);
	const bool damaged = xsp_capture_how_ended(r) == XSP_CAPTURE_TORN;
	const int status = cut->given ? print_part(r, cut) : XSP_STATUS_OK;
	if (cut->given && !damage_told)
		print_damage(r);
	return status == XSP_STATUS_OK && damaged ? XSP_STATUS_CAPTURE : status;
}

int xsp_cmd_info(int argc, char **argv)
{
	struct xsp_options o;
	struct xsp_capture_reader *r = NULL;
	struct xsp_error err = {0};
	int status;

	if (xsp_options_take(argc, argv, XSP_VERB_INFO, &o, &status)) {
		const struct xsp_input_options input = {.progress = o.progress};
		xsp_wrap_stdout();
		status = xsp_input_open(o.rest[0], &input, &r, &err) < 0 ||
					 xsp_cut_resolve(&o.part, r, &err) < 0
				 ? xsp_say_error(&err)
				 : print_all(r, &o.part);
	}
	xsp_capture_close(r);
	xsp_options_clear(&o);
	return status;
}
