/* SPDX-License-Identifier: BSD-2-Clause */
/* info.c - `xsptrace info FILE`: what a capture holds, without reading its events. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/units.h"
#include "capture/capture.h"
#include "cli/cli.h"

static const char usage[] =
	"Usage: xsptrace info FILE.xspt\n\n"
	"Shows what a capture holds: when and of what it was taken, processes, modules, probes,\n"
	"events, losses, damage. Needs no root.\n";

/* What comes from a capture may have come from a target: it must not drive the terminal. */
static void print_row(const char *key, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void print_row(const char *key, const char *fmt, ...)
{
	char text[4608], shown[sizeof(text) + 4];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	xsp_printable(shown, sizeof(shown), text, 0);
	printf("%-16s %s\n", key, shown);
}

static void print_infos(const struct xsp_capture_reader *r)
{
	static const char *const keys[] = {
		"arguments",	      "version", "host",     "kernel", "machine",   "attach",
		"hit costs",	      "filters", "children", "execs",  "libraries", "changed code",
		"unnamed call sites", "python",	 "waits",    "samples"};

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
	uint64_t start, end, torn, chunks, events;
	char when[64] = "?";

	xsp_capture_window(r, &start, &end);
	time_t at = (time_t)(xsp_capture_realtime(r, start) / 1000000000ULL);
	struct tm tm;
	if (localtime_r(&at, &tm) != NULL)
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S %z", &tm);
	printf("%-16s %s, %.3f s\n", "recorded", when,
	       end > start ? (double)(end - start) * 1e-9 : 0);
	const struct xsp_capture_window *windows;
	size_t count = xsp_capture_windows(r, &windows);
	if (count > 0)
		printf("%-16s %zu of --max-overhead, %.3f s together\n", "windows", count,
		       (double)xsp_capture_recorded_ns(r) * 1e-9);
	printf("%-16s %s\n", "file", ends[xsp_capture_how_ended(r)]);
	xsp_capture_damage(r, &torn, &chunks, &events);
	if (torn + chunks + events > 0)
		printf("%-16s %" PRIu64 " bytes torn off, %" PRIu64
		       " chunks with a wrong checksum, %" PRIu64 " bad events\n",
		       "damage", torn, chunks, events);
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

static void print_modules(const struct xsp_capture_reader *r)
{
	const struct xsp_capture_module *m;
	const struct xsp_capture_probe *p;
	size_t modules = xsp_capture_modules(r, &m), probes = xsp_capture_probes(r, &p),
	       functions = 0;

	for (size_t i = 0; i < modules; i++) {
		char id[2 * 64 + 1] = "";
		for (uint32_t j = 0; j < m[i].build_id_length && j < 64; j++)
			snprintf(id + 2 * j, 3, "%02x", m[i].build_id[j]);
		print_row(i ? "" : "modules", "%.4096s  %s", m[i].path, id);
	}
	const struct xsp_capture_let_go *l;
	size_t gone = xsp_capture_let_gos(r, &l);
	for (size_t i = 0; i < gone; i++)
		printf("%-16s %s, %" PRIu64 " calls/s\n", i ? "" : "let go", p[l[i].probe].name,
		       l[i].calls_per_second);
	for (size_t i = 0; i < probes; i++)
		functions += p[i].kind != XSP_PROBE_MARK;
	printf("%-16s %zu functions, %zu internal\n", "probes", functions, probes - functions);
}

static void print_stats(const struct xsp_capture_reader *r)
{
	const struct xsp_capture_stats *s = xsp_capture_stats(r);
	const bool complete = xsp_capture_how_ended(r) == XSP_CAPTURE_COMPLETE;
	const struct {
		const char *name;
		uint64_t value;
	} counts[] = {
		{"lost entries", s->lost_entries}, {"lost exits", s->lost_exits},
		{"lost other", s->lost_other},	   {"lost names", s->lost_names},
		{"filtered", s->filtered},	   {"silent hits", s->silent_hits},
		{"missed hits", s->missed_hits},   {"untracked", s->untracked},
	};

	printf("%-16s %" PRIu64 "%s\n", "events", complete ? s->events : xsp_capture_events(r),
	       complete ? "" : " in the file");
	if (!xsp_capture_stats_known(r)) {
		print_row("losses", "not known: the capture holds no counters");
		return;
	}
	if (!complete)
		print_row("counters", "the last ones in the file, which may be a second old:");
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		printf("%-16s %" PRIu64 "\n", counts[i].name, counts[i].value);
	printf("%-16s %.3f s of the target's threads, %.3f s of xsptrace\n", "cost",
	       (double)s->probes_cost_ns * 1e-9, (double)s->recorder_cpu_ns * 1e-9);
}

int xsp_cmd_info(int argc, char **argv)
{
	struct xsp_capture_reader *r;
	struct xsp_error err = {0};

	if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		fputs(usage, stdout);
		return XSP_STATUS_OK;
	}
	if (argc != 2) {
		xsp_say("give one capture file: xsptrace info FILE.xspt");
		return XSP_STATUS_USAGE;
	}
	if (xsp_capture_open(argv[1], &r, &err) < 0)
		return xsp_say_error(&err);
	print_infos(r);
	print_window(r);
	print_processes(r);
	print_modules(r);
	print_stats(r);
	int damaged = xsp_capture_how_ended(r) == XSP_CAPTURE_TORN;
	xsp_capture_close(r);
	return damaged ? XSP_STATUS_CAPTURE : XSP_STATUS_OK;
}
