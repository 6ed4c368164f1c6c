/* SPDX-License-Identifier: BSD-2-Clause */
/* record.c - the main job: from a process to a capture and its outputs. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/recorder.h"
#include "cli/agent_path.h"
#include "cli/cli.h"
#include "cli/inject_agent.h"
#include "cli/launch.h"
#include "cli/list.h"
#include "cli/no_match.h"
#include "cli/options.h"
#include "cli/outputs.h"
#include "cli/status_line.h"
#include "target/process.h"

#define TURN_MS 10

static volatile sig_atomic_t stop_signal; /* the one piece of global state */

static void on_signal(int number)
{
	if (stop_signal != 0) /* a second one: the user does not want to wait */
		_exit(128 + number);
	stop_signal = number;
}

static void catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal};
	const int signals[] = {SIGINT, SIGTERM, SIGHUP};

	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		struct sigaction old;
		/* nohup's SIG_IGN stays */
		if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
	}
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a file-size limit is reported like a full disk */
}

struct recording {
	struct xsp_options o;
	struct xsp_recorder *recorder;
	struct xsp_launch *launch;
	char *arguments;
	char *capture; /* path */
	bool keep_capture; /* asked for, or the default */
	char *default_json; /* the other default output */
	const char *default_outputs[1];
	uid_t uid;
	gid_t gid;
};

/* ---- names ---- */

/* A file name from a command's name: other bytes become '_'. */
static void clean_name(const char *comm, char *name, size_t size)
{
	static const char kept[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	size_t n = 0;

	for (; comm[n] != '\0' && n + 1 < size; n++)
		name[n] = strchr(kept, comm[n]) ? comm[n] : '_';
	name[n] = '\0';
	if (name[0] == '.')
		name[0] = '_';
}

static const char *capture_among(const struct xsp_options *o)
{
	for (size_t i = 0; i < o->output_count; i++) {
		size_t length = strlen(o->outputs[i]);
		if (length >= 5 && strcmp(o->outputs[i] + length - 5, ".xspt") == 0)
			return o->outputs[i];
	}
	return NULL;
}

static int choose_names(struct recording *r, pid_t pid, struct xsp_error *err)
{
	struct xsp_process *p;
	char name[32] = "program";
	const char *asked = capture_among(&r->o);
	int rc = 0;

	if (xsp_process_open(pid, &p, NULL) == 0) {
		clean_name(xsp_process_comm(p), name, sizeof(name));
		xsp_process_free(p);
	}
	r->keep_capture = asked != NULL || r->o.output_count == 0;
	if (asked != NULL)
		rc = asprintf(&r->capture, "%s", asked);
	else if (r->o.output_count > 0)
		rc = asprintf(&r->capture, "%s.xspt", r->o.outputs[0]);
	else
		rc = asprintf(&r->capture, "xsptrace.%s.%d.xspt", name, (int)pid);
	if (rc >= 0 && r->o.output_count == 0)
		rc = asprintf(&r->default_json, "xsptrace.%s.%d.json.gz", name, (int)pid);
	return rc < 0 ? xsp_error_set(err, -ENOMEM, XSP_STATUS_FAILED, "out of memory") : 0;
}

static char *join_arguments(int argc, char **argv)
{
	size_t size = 1;
	char *text, *at;

	for (int i = 0; i < argc; i++)
		size += strlen(argv[i]) + 1;
	at = text = malloc(size);
	for (int i = 0; text != NULL && i < argc; i++)
		at = stpcpy(stpcpy(at, i ? " " : ""), argv[i]);
	return text;
}

/* ---- starting ---- */

static void note(void *ctx, const char *text)
{
	const struct recording *r = ctx;

	if (!r->o.quiet)
		xsp_say("%s", text);
}

/* What this machine cannot count is left out, and said, not shown as zeros. */
static void drop_counters(struct recording *r)
{
	struct xsp_options *o = &r->o;
	size_t kept = 0;

	for (size_t i = 0; i < o->counter_count; i++) {
		struct xsp_error why = {0};
		if (xsp_counter_check(&o->counters[i], &why) == 0)
			o->counters[kept++] = o->counters[i];
		else
			xsp_say("%s", why.text);
	}
	o->counter_count = kept;
	if (kept == 0)
		o->details &= ~(unsigned)XSP_DETAIL_COUNTERS;
}

static int make_recorder(struct recording *r, struct xsp_error *err)
{
	drop_counters(r);
	const struct xsp_options *o = &r->o;
	struct xsp_recorder_options options = {
		.selection = xsp_options_selection(o),
		.attach = {.buffer_bytes = o->buffer_bytes,
			   .rings = o->rings,
			   .method = o->method,
			   .force_plain = o->force_plain,
			   .follow = o->follow,
			   .min_duration_ns = o->min_duration_ns,
			   .max_depth = o->max_depth,
			   .tids = o->tids,
			   .tid_count = o->tid_count,
			   .comms = o->comms,
			   .comm_count = o->comm_count,
			   .verbose = o->verbose},
		.exit_by_return = o->exit_by_return,
		.exit_by_site = o->exit_by_site,
		.capture_path = r->capture,
		.arguments = r->arguments,
		.owner_uid = r->uid,
		.owner_gid = r->gid,
		.note = note,
		.note_ctx = r,
	};

	options.attach.details = options.selection.details;
	options.attach.stack_frames = o->stack_frames;
	options.attach.counters = o->counters;
	options.attach.counter_count = o->counter_count;
	return xsp_recorder_new(&options, &r->recorder, err);
}

/* Nothing is loaded before it is clear that there is something to trace. */
static int check_targets(const struct recording *r, struct xsp_error *err)
{
	for (size_t i = 0; i < r->o.pid_count; i++) {
		struct xsp_process *p;
		int rc = xsp_process_open(r->o.pids[i], &p, err);
		if (rc < 0)
			return rc;
		if (r->o.pids[i] == getpid())
			rc = xsp_error_set(err, -EINVAL, XSP_STATUS_TARGET,
					   "xsptrace cannot trace itself");
		xsp_process_free(p);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static bool is_stopped(void *ctx)
{
	(void)ctx;
	return stop_signal != 0;
}

static int start_attached(struct recording *r, struct xsp_error *err)
{
	for (size_t i = 0; i < r->o.pid_count; i++) {
		int rc = xsp_recorder_add_process(r->recorder, r->o.pids[i], err);
		if (rc < 0)
			return rc;
	}
	if (xsp_recorder_wanted(r->recorder) == 0 && !r->o.inject)
		return xsp_no_match(xsp_recorder_plan(r->recorder), r->o.pids[0], err);
	int rc = xsp_recorder_start(r->recorder, err);
	if (rc == 0 && r->o.inject)
		rc = xsp_inject_agent(r->o.pids, r->o.pid_count, r->o.quiet, is_stopped, err);
	return rc;
}

/* At its exec, then each time the loader has mapped libraries: before their first instruction. */
static int start_launched(struct recording *r, struct xsp_error *err)
{
	pid_t pid = xsp_launch_pid(r->launch);
	int rc = xsp_recorder_add_process(r->recorder, pid, err);

	if (rc == 0)
		rc = xsp_recorder_start(r->recorder, err);
	while (rc == 0) {
		int more = xsp_launch_next(r->launch);
		if (more < 0)
			xsp_say("the start of %s could not be watched (%s): probes in its "
				"libraries come up to 20 ms late",
				r->o.command[0], strerror(-more));
		if (more <= 0)
			break;
		rc = xsp_recorder_add_process(r->recorder, pid, err);
	}
	return rc;
}

static void say_start(const struct recording *r)
{
	const struct xsp_recorder_times *t = xsp_recorder_times(r->recorder);
	const struct xsp_plan *plan = xsp_recorder_plan(r->recorder);
	const struct xsp_attach *a = xsp_recorder_attach(r->recorder);

	size_t functions = xsp_recorder_wanted(r->recorder);
	if (!r->o.quiet)
		fprintf(stderr,
			"tracing %zu function%s%s (%zu sites: %zu nop5, %zu emulated, %zu "
			"single-stepped); %s\n",
			functions, functions == 1 ? "" : "s",
			r->launch != NULL ? " so far, more as libraries come" : "", plan->sites,
			plan->sites_by_class[XSP_SITE_NOP5],
			plan->sites_by_class[XSP_SITE_EMULATED],
			plan->sites_by_class[XSP_SITE_SINGLESTEP],
			r->o.duration_ns ? "Ctrl-C stops early" : "Ctrl-C stops");
	if (xsp_attach_method(a) == XSP_ATTACH_PERF_EVENT && plan->sites > 100 && !r->o.quiet)
		xsp_say("this kernel takes probes out one by one, 20 ms and more each: the end "
			"will "
			"take %zu s or so for %zu sites; a narrower -e is quicker",
			plan->sites / 50, plan->sites);
	if (plan->unplaced > 0 && !r->o.quiet)
		xsp_say("%zu matching functions cannot be probed and are left out: xsptrace list "
			"shows them",
			plan->unplaced);
	if (!r->o.verbose)
		return;
	fprintf(stderr,
		"load %.1f ms, calibrate %.1f ms, read libraries %.1f ms, find %.1f ms, place %.1f "
		"ms, attach %.1f ms\n",
		t->load_ms, t->calibrate_ms, t->read_ms, t->find_ms, t->place_ms, t->attach_ms);
	fprintf(stderr,
		"attach method %s, %s; a hit costs nop5 %.0f ns, emulated %.0f ns, single-stepped "
		"%.0f ns\n",
		xsp_attach_method_name(xsp_attach_method(a)),
		xsp_attach_sleepable(a) ? "sleepable" : "not sleepable",
		plan->costs.ns[XSP_SITE_NOP5], plan->costs.ns[XSP_SITE_EMULATED],
		plan->costs.ns[XSP_SITE_SINGLESTEP]);
}

/* ---- running ---- */

static int run(struct recording *r, struct xsp_error *err)
{
	struct xsp_status_line line = xsp_status_line_begin(!r->o.quiet);
	struct xsp_recorder_status s;
	int rc = 1;

	while (stop_signal == 0 && rc > 0) {
		rc = xsp_recorder_turn(r->recorder, TURN_MS, err);
		double seconds = xsp_recorder_seconds(r->recorder);
		if (xsp_status_line_due(&line, seconds)) {
			xsp_recorder_status(r->recorder, &s);
			xsp_status_line_show(&line, &s, r->o.duration_ns);
		}
		if (r->o.duration_ns != 0 && seconds * 1e9 >= (double)r->o.duration_ns)
			break;
	}
	xsp_status_line_end(&line);
	if (stop_signal == SIGTERM && r->launch != NULL)
		xsp_launch_signal(r->launch, SIGTERM);
	return rc < 0 ? rc : 0;
}

static int finish(struct recording *r)
{
	struct xsp_error err = {0};
	int rc = xsp_recorder_finish(r->recorder, &err);

	if (r->o.verbose)
		fprintf(stderr, "detach %.1f ms\n", xsp_recorder_times(r->recorder)->detach_ms);
	return rc < 0 ? xsp_say_error(&err) : 0;
}

static int write_outputs(struct recording *r)
{
	struct xsp_outputs o = {
		.paths = r->o.outputs,
		.count = r->o.output_count,
		.owner_uid = r->uid,
		.owner_gid = r->gid,
		.summary = !r->o.no_summary && !r->o.quiet,
		.rows = r->o.limit,
		.progress = !r->o.quiet && isatty(STDERR_FILENO),
		.quiet = r->o.quiet,
	};

	if (r->default_json != NULL) {
		r->default_outputs[0] = r->default_json;
		o.paths = r->default_outputs;
		o.count = 1;
	}
	int status = xsp_write_outputs(r->capture, &o);
	if (r->keep_capture) {
		if (!r->o.quiet)
			fprintf(stderr,
				"wrote %s (the capture: xsptrace export makes other formats of "
				"it)\n",
				r->capture);
	} else if (status == 0) {
		unlink(r->capture);
	} else {
		xsp_say("the capture is kept: xsptrace export %s -o OUT tries again", r->capture);
	}
	return status;
}

static int record_now(struct recording *r)
{
	struct xsp_error err = {0};
	pid_t pid = r->launch ? xsp_launch_pid(r->launch) : r->o.pids[0];
	int status, worse;
	int rc = choose_names(r, pid, &err);

	if (rc == 0)
		rc = make_recorder(r, &err);
	if (rc < 0)
		return xsp_say_error(&err);
	rc = r->launch ? start_launched(r, &err) : start_attached(r, &err);
	if (rc < 0) {
		status = xsp_say_error(&err);
		xsp_recorder_free(r->recorder);
		r->recorder = NULL;
		unlink(r->capture);
		return status;
	}
	say_start(r);
	rc = run(r, &err);
	status = rc < 0 ? xsp_say_error(&err) : 0;
	worse = finish(r);
	if (status == 0)
		status = worse;
	worse = write_outputs(r);
	if (status == 0)
		status = worse;
	if (r->launch != NULL && xsp_recorder_wanted(r->recorder) == 0) {
		xsp_no_match(xsp_recorder_plan(r->recorder), pid, &err);
		xsp_say("%s", err.text);
	}
	return status;
}

static int command_status(struct recording *r, int status)
{
	int wait_status;

	if (r->launch == NULL)
		return status;
	if (!xsp_launch_has_run(r->launch)) {
		xsp_say("%s was not run", r->o.command[0]);
		return status;
	}
	if (!xsp_launch_ended(r->launch, &wait_status)) {
		if (!r->o.quiet)
			fprintf(stderr, "%s goes on as process %d\n", r->o.command[0],
				(int)xsp_launch_pid(r->launch));
		return status;
	}
	int passed_on = xsp_launch_exit_status(wait_status);
	return passed_on != 0 ? passed_on : status;
}

int xsp_cmd_record(int argc, char **argv)
{
	struct recording r = {0};
	struct xsp_error err = {0};
	int status = XSP_STATUS_OK;
	enum xsp_options_result parsed = xsp_options_parse(argc, argv, false, &r.o, &err);

	if (parsed == XSP_OPTIONS_DONE)
		goto out;
	if (parsed == XSP_OPTIONS_BAD || check_targets(&r, &err) < 0) {
		status = xsp_say_error(&err);
		goto out;
	}
	if (r.o.dry_run) {
		status = xsp_list_run(&r.o, true);
		goto out;
	}
	if (r.o.exit_by_return)
		xsp_say("warning: --exit=return swaps return addresses on the target's stack: a "
			"C++ exception that "
			"passes a traced function kills the target");
	catch_signals();
	xsp_sudo_user(&r.uid, &r.gid);
	r.arguments = join_arguments(argc, argv);
	if (r.o.command != NULL && xsp_options_selection(&r.o).gpu != 0)
		xsp_agent_prepare(r.o.quiet);
	if (r.o.command != NULL && xsp_launch_start(r.o.command, &r.launch, &err) < 0) {
		status = xsp_say_error(&err);
		goto out;
	}
	status = command_status(&r, record_now(&r));
out:
	xsp_recorder_free(r.recorder);
	xsp_launch_free(r.launch);
	free(r.arguments);
	free(r.capture);
	free(r.default_json);
	xsp_options_clear(&r.o);
	return status;
}
