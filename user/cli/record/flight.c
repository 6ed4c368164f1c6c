/* SPDX-License-Identifier: BSD-2-Clause */
/* flight.c - the flight recorder's snapshots: when they are written, and what is said of each. */
#include "record/flight/flight.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/analyses.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/moment.h"
#include "cli/outputs.h"
#include "cli/record/on_snapshot.h"
#include "cli/record/private.h"
#include "cli/report_output.h"

/* A pass of its own: what was wrong is a small part of what the other one reads. */
static char *moment(const char *path, int fd)
{
	struct xsp_capture_reader *reader;
	struct xsp_error err = {0};

	if (xsp_capture_open_descriptor(fd, path, &reader, &err) < 0)
		return NULL;
	char *text = xsp_moment_text(reader);
	xsp_capture_close(reader);
	return text;
}

/* Its first screen. */
static int show(const struct recording *r, const char *path, int fd)
{
	struct xsp_capture_reader *reader;
	struct xsp_report *report = NULL;
	struct xsp_error err = {0};
	char next[600];

	if (r->o.quiet)
		return 0;
	if (xsp_capture_open_descriptor(fd, path, &reader, &err) < 0)
		return xsp_say_error(&err);
	const struct xsp_outputs o = {.quiet = true, .step = r->o.part.step, .report = &report};
	int status =
		xsp_report_new(&report) < 0 ? XSP_STATUS_FAILED : xsp_write_outputs(reader, &o);
	snprintf(next, sizeof(next), "xsptrace analyze --full %s", path);
	char *when = report != NULL ? moment(path, fd) : NULL;
	if (report != NULL)
		xsp_report_output_screen(report, path, next, when);
	free(when);
	xsp_report_free(report);
	xsp_capture_close(reader);
	return status;
}

static int write_file(struct xsp_recorder *recorder, const struct xsp_flight_snapshot *s,
		      struct xsp_new_file *file, struct xsp_error *err)
{
	const int fd = fcntl(xsp_new_file_descriptor(file), F_DUPFD_CLOEXEC, 3);
	int rc = fd < 0 ? -errno : xsp_flight_write(recorder, fd, s, err);

	if (rc == 0)
		rc = xsp_new_file_place(file, false);
	return rc < 0 && err->status == XSP_STATUS_OK
		       ? xsp_error_set(err, rc, XSP_STATUS_OUTPUT, "cannot write %s: %s", s->path,
				       strerror(-rc))
		       : rc;
}

static void say_written(const struct recording *r, const struct xsp_flight_snapshot *s, int status)
{
	xsp_supervised_written(r->supervised, s->path, s->why[0] != '\0' ? s->why : s->reason,
			       status);
}

static int write_snapshot(void *ctx, struct xsp_recorder *recorder,
			  const struct xsp_flight_snapshot *s)
{
	const struct recording *r = ctx;
	struct xsp_new_file *file = NULL;
	struct xsp_error err = {0};
	int rc = xsp_new_file_open(s->path, NULL, &file), status = 0;

	if (rc < 0)
		xsp_error_set(&err, rc, XSP_STATUS_OUTPUT, "cannot create %s: %s", s->path,
			      strerror(-rc));
	else
		rc = write_file(recorder, s, file, &err);
	if (rc == 0) {
		const char *path = xsp_new_file_name(file);
		if (!r->o.quiet)
			fprintf(stderr, "%swrote %s (%s)\n",
				isatty(STDERR_FILENO) ? "\r\033[K" : "", path,
				s->why[0] != '\0' ? s->why : s->reason);
		if (r->on_snapshot >= 0 && (rc = xsp_on_snapshot_run(r->on_snapshot, path)) < 0)
			xsp_say("--on-snapshot was not run: %s", strerror(-rc));
		status = show(r, path, xsp_new_file_descriptor(file));
	} else {
		status = xsp_say_error(&err);
	}
	fflush(stdout);
	xsp_new_file_free(file);
	if (s->last) /* for the others on_written() is called, in the recording's process */
		say_written(r, s, status);
	return status;
}

static void on_written(void *ctx, const struct xsp_flight_snapshot *s, int status)
{
	struct recording *r = ctx;

	xsp_triggers_written(r->triggers, s->path, s->reason);
	say_written(r, s, status);
}

/* Not when the first one is written, which may be tomorrow. */
static int check_folder(const char *path, struct xsp_error *err)
{
	struct xsp_new_file *file;
	const int rc = xsp_new_file_open(path, NULL, &file);

	if (rc < 0)
		return xsp_error_set(err, rc, XSP_STATUS_OUTPUT, "cannot create files like %s: %s",
				     path, strerror(-rc));
	xsp_new_file_free(file);
	return 0;
}

int xsp_record_prepare_flight(struct recording *r, const char *name, struct xsp_error *err)
{
	if (asprintf(&r->capture, "%s%s", r->o.folder != NULL ? r->o.folder : "", name) < 0)
		return xsp_out_of_memory(err);
	r->flight =
		(struct xsp_flight_options){.age_ns = r->o.flight_age_ns,
					    .bytes = r->o.flight_bytes,
					    .prefix = r->capture,
					    .live = r->o.trigger_count > 0 || r->supervised != NULL,
					    .write = write_snapshot,
					    .written = on_written,
					    .ctx = r,
					    .kept = r->on_snapshot};
	return check_folder(r->capture, err);
}

void xsp_record_say_armed(const struct recording *r)
{
	char age[XSP_UNITS_SIZE], bytes[XSP_UNITS_SIZE], triggers[300];

	if (!r->o.flight || r->o.quiet)
		return;
	xsp_triggers_describe(&r->o, triggers, sizeof(triggers));
	fprintf(stderr,
		"armed: the last %s%s%s%s%s are kept; a snapshot is written by kill -USR2 %d, at Ctrl-C, at the target's end%s%s\n",
		r->o.flight_age_ns != 0 ? xsp_format_ns(age, r->o.flight_age_ns) : "",
		r->o.flight_age_ns != 0 && r->o.flight_bytes != 0 ? ", at most " : "",
		r->o.flight_bytes != 0 ? xsp_format_bytes(bytes, r->o.flight_bytes) : "",
		r->o.flight_bytes != 0 ? " of events" : "",
		r->o.flight_age_ns + r->o.flight_bytes == 0 ? "events since now" : "",
		(int)getpid(), triggers[0] != '\0' ? ", and at " : "", triggers);
}

void xsp_record_look_at_requests(struct recording *r)
{
	if (r->o.flight && xsp_record_snapshot_signal())
		xsp_flight_snapshot(r->recorder, "sigusr2", "asked for by SIGUSR2");
}

/* By itself, or because somebody wanted it to. SIGKILL is the kernel's, too, when memory is short. */
static bool is_in_order(const char *end)
{
	static const char *const words[] = {"end", "sigterm", "sigint", "sighup"};

	return XSP_IS_AMONG(end, strlen(end), words);
}

/* NULL: nothing happened, so there is nothing to keep. */
static const char *last_reason(const struct recording *r, bool failed)
{
	const char *end = xsp_flight_end_reason(r->recorder);

	switch (xsp_record_stop_signal()) {
	case 0:
		if (r->fired != NULL && (end == NULL || strcmp(end, "end") == 0))
			return r->fired;
		if (r->o.only_crashes && end != NULL && is_in_order(end))
			return NULL;
		return failed ? "error" : end;
	case SIGINT:
		return "sigint";
	case SIGHUP:
		return "sighup";
	default:
		return "sigterm";
	}
}

static void say_what_was_kept(const struct recording *r)
{
	const struct xsp_flight_status s = xsp_flight_status(r->recorder);
	struct xsp_recorder_status now;
	char events[XSP_UNITS_SIZE], definitions[XSP_UNITS_SIZE];

	xsp_recorder_status(r->recorder, &now);
	fprintf(stderr,
		"kept %s of events, %.1f s; of %llu, %llu were older and are dropped, %llu more were lost; %llu definitions of %s; %llu were dropped, as no event needed them\n",
		xsp_format_bytes(events, s.bytes), s.seconds, (unsigned long long)now.events,
		(unsigned long long)s.dropped, (unsigned long long)now.lost,
		(unsigned long long)s.definitions,
		xsp_format_bytes(definitions, s.definition_bytes), (unsigned long long)s.pruned);
}

int xsp_record_end_flight(struct recording *r, bool failed)
{
	const char *reason = last_reason(r, failed);
	char seconds[XSP_UNITS_SIZE];
	const int status = xsp_flight_last(r->recorder, reason, NULL);
	const unsigned n = xsp_flight_status(r->recorder).snapshots;

	if (r->o.verbose)
		say_what_was_kept(r);
	if (reason == NULL && !r->o.quiet)
		fprintf(stderr, "disarmed after %s: %u snapshot%s\n",
			xsp_format_ns(seconds, (uint64_t)(1e9 * xsp_recorder_seconds(r->recorder))),
			n, n == 1 ? "" : "s");
	return status;
}
