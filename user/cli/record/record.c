/* SPDX-License-Identifier: BSD-2-Clause */
/* record.c - the main job: from a process to a capture and its outputs. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/files/file_io.h"
#include "base/clock.h"
#include "cli/record/agent.h"
#include "cli/cli.h"
#include "cli/verbs/list.h"
#include "cli/record/no_match.h"
#include "cli/record/private.h"
#include "cli/screen/screen.h"
#include "cli/record/on_snapshot.h"
#include "cli/record/session.h"
#include "xsptrace/gpu.h"

#define TURN_MS 10
#define BYSTANDERS_NS 250000000ULL /* how often we look at the machine's switches */

/* ---- running ---- */

/* The machine may have become busier since the start. */
static int look_at_bystanders(struct recording *r)
{
	char why[160];
	const bool looks =
		r->what.of[XSP_FEATURE_WAITS].on == XSP_BY_DEFAULT && r->o.max_overhead > 0;
	const double rate = looks ? xsp_switches_rate(&r->switches, BYSTANDERS_NS) : 0;

	if (rate > 0)
		r->busy = xsp_bystanders_pay(rate) ? r->busy + 1 : 0;
	if (r->busy < 2)
		return 0;
	r->busy = 0;
	xsp_switches_end(&r->switches);
	snprintf(
		why, sizeof(why),
		"each processor of this machine changes threads %.0f times a second, of which it slows each",
		rate);
	return xsp_recorder_drop(r->recorder, XSP_DEFAULT_WAITS, why);
}

static int run(struct recording *r, struct xsp_error *err)
{
	struct xsp_status_line line = xsp_status_line_begin(!r->o.quiet && r->view == NULL);
	struct xsp_recorder_status s;
	int rc = 1;

	while (xsp_record_stop_signal() == 0 && rc > 0 && !xsp_supervised_ends(r->supervised)) {
		const uint64_t turn_ns = xsp_now_ns();
		rc = xsp_recorder_turn(r->recorder, TURN_MS, err);
		if (rc >= 0 &&
		    (xsp_record_keep_events(r, false, err) < 0 || look_at_bystanders(r) < 0))
			rc = -EIO;
		if (r->launch != NULL &&
		    xsp_recorder_is_stopped(r->recorder, xsp_launch_pid(r->launch)))
			xsp_record_start_again(r);
		if (rc >= 0 && r->view != NULL) {
			const int turned = r->view->turn(r->view->ctx, err);
			rc = turned < 0 ? turned : rc;
			if (turned > 0)
				break;
		}
		if (rc >= 0) {
			int full = xsp_record_keep_limits(r, err);
			if (full == 0)
				full = xsp_triggers_turn(r->triggers, turn_ns, err);
			if (full == 0)
				full = xsp_supervised_turn(r->supervised, &r->o, r->recorder);
			rc = full < 0 ? full : rc;
			if (full > 0)
				break;
		}
		double seconds = xsp_recorder_seconds(r->recorder);
		xsp_record_look_if_quiet(r);
		xsp_record_look_at_requests(r);
		if (xsp_status_line_due(&line, seconds)) {
			xsp_recorder_status(r->recorder, &s);
			xsp_status_line_show(&line, &s, r->o.duration_ns);
		}
		if (xsp_record_is_over(r))
			break;
	}
	xsp_status_line_end(&line);
	xsp_record_say_full(r);
	r->fired = xsp_triggers_end(r->triggers);
	/* the end may take long, and a second signal may cut it short: keep the capture now */
	if (rc >= 0)
		rc = xsp_record_keep_events(r, true, err);
	if (xsp_record_stop_signal() == SIGTERM && r->launch != NULL)
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

/* Runs until the view ends or the recording does. */
static int show(struct recording *r)
{
	const struct xsp_live_view *v = r->view;
	struct xsp_error err = {0};
	int rc = v->begin(v->ctx, &r->o, &r->what, r->recorder, &err);

	if (rc == 0)
		rc = run(r, &err);
	const bool gone = rc == 0 && xsp_recorder_processes(r->recorder) == 0;
	xsp_screen_restore();
	int status = rc < 0 ? xsp_say_error(&err) : 0, worse = finish(r);
	rc = v->end(v->ctx, gone, &err);
	if (status == 0)
		status = worse;
	return status == 0 && rc < 0 ? xsp_say_error(&err) : status;
}

/* ---- the verb ---- */

static int say_interrupted(void)
{
	xsp_say("stopped before anything was recorded");
	return 128 + xsp_record_stop_signal();
}

/* Says as which user we write: even root writes without power over other users' folders. */
static void say_who_writes(int code, const struct xsp_error *err)
{
	if (err->status == XSP_STATUS_OUTPUT && code == -EACCES)
		xsp_say("files are written as user %u, without root's powers: choose a folder of that user's, or --user NAME",
			(unsigned)getuid());
}

/* Whatever fails then says something else. */
static void blame_broker(const struct recording *r, struct xsp_error *err)
{
	if (r->broker == NULL || !xsp_broker_is_gone(r->broker))
		return;
	*err = (struct xsp_error){0};
	xsp_broker_gone(r->broker, err);
}

/* Returns when the probes are in, or an exit status that is not 0. */
static int start(struct recording *r, pid_t pid)
{
	struct xsp_error err = {0};
	int rc = r->view == NULL ? xsp_record_choose_names(r, pid, &err) : 0;

	r->starting = xsp_status_line_begin(!r->o.quiet);
	if (rc == 0)
		rc = xsp_record_check_outputs(r, &err);
	if (rc == 0)
		rc = xsp_record_make_recorder(r, false, &err);
	if (rc == 0)
		rc = xsp_record_check_room(r, &err);
	const bool made = rc == 0;
	if (rc == 0)
		rc = r->launch ? xsp_record_start_launched(r, &err)
			       : xsp_record_start_attached(r, &err);
	xsp_status_line_end(&r->starting);
	if (rc == 0)
		return 0;
	if (!made)
		say_who_writes(rc, &err);
	blame_broker(r, &err);
	const int status = xsp_record_stop_signal() != 0 ? say_interrupted() : xsp_say_error(&err);
	xsp_recorder_free(r->recorder);
	r->recorder = NULL;
	return status;
}

/* There was nothing to trace. Leaves the files of an earlier run, which are worth more. */
static int leave_nothing(struct recording *r, pid_t pid)
{
	struct xsp_error err = {0};
	char late[320];

	xsp_no_match(&r->what, xsp_recorder_plan(r->recorder), r->broker, pid,
		     r->o.rest_count > 0 ? r->o.rest[0] : NULL, &err);
	xsp_record_say_goes_on(r);
	if (xsp_recorder_describe_late(r->recorder, late, sizeof(late)))
		xsp_say("%s; nothing is written (%s)", err.text, late);
	else
		xsp_say("%s; nothing is written", err.text);
	return (int)err.status;
}

/* Windows are to begin on time: then the probes are in before that. */
#define WINDOWS_LEAD_NS 2000000000ULL

/* Nothing is in the target yet. */
static bool wait_for_start(struct recording *r)
{
	struct xsp_options *o = &r->o;
	const uint64_t lead_ns = xsp_is_scheduled(&o->schedule) ? WINDOWS_LEAD_NS : 0;
	char text[32];
	struct tm tm;

	if (o->start_at_ns == 0)
		return true;
	while (o->start_each_ns > 0 && o->start_at_ns < xsp_real_ns() + lead_ns)
		o->start_at_ns += o->start_each_ns;
	o->schedule.origin_ns = xsp_now_ns() + o->start_at_ns - xsp_real_ns();
	const time_t at = (time_t)(o->start_at_ns / 1000000000);
	strftime(text, sizeof(text), "%H:%M:%S", localtime_r(&at, &tm));
	if (!o->quiet)
		xsp_say("begins at %s", text);
	return xsp_record_wait_for_start(r, lead_ns);
}

static int record_now(struct recording *r)
{
	const pid_t pid = r->launch ? xsp_launch_pid(r->launch) : r->o.pids[0];
	struct xsp_error err = {0};
	int status = wait_for_start(r) ? start(r, pid) : say_interrupted();

	if (status != 0)
		return status;
	xsp_record_say_start(r);
	if (r->view != NULL)
		return show(r);
	xsp_record_say_armed(r);
	int rc = xsp_triggers_start(&r->o, r->recorder, r->supervised, &r->triggers, &err);
	if (rc == 0)
		rc = run(r, &err);
	const bool traced = xsp_record_is_traced(r);
	if (traced && xsp_record_says_why_nothing(r) && !xsp_recorder_has_calls(r->recorder))
		xsp_recorder_why_idle(r->recorder, r->idle, sizeof(r->idle));
	status = rc < 0 ? xsp_say_error(&err) : 0;
	int worse = finish(r);
	status = status != 0 ? status : worse;
	if (traced && r->launch != NULL)
		xsp_record_say_unmatched(r);
	worse = !traced	      ? leave_nothing(r, pid)
		: r->o.flight ? xsp_record_end_flight(r, rc < 0)
			      : xsp_record_write_outputs(r);
	return status != 0 ? status : worse;
}

static int command_status(struct recording *r, int status)
{
	int wait_status;

	if (r->launch == NULL)
		return status;
	if (!xsp_launch_has_run(r->launch)) {
		xsp_say("%s was not run", r->o.rest[0]);
		return status;
	}
	if (!xsp_launch_ended(r->launch, &wait_status))
		return status;
	int passed_on = xsp_launch_exit_status(wait_status);
	return passed_on != 0 ? passed_on : status;
}

/* Events carry the kernel's time, and we compare it with ours everywhere: see
 * time_namespaces(7). */
static int check_clock(struct xsp_error *err)
{
	FILE *f = fopen("/proc/self/timens_offsets", "re");
	long long s = 0, ns = 0;

	if (f != NULL && fscanf(f, "monotonic %lld %lld", &s, &ns) != 2)
		s = ns = 0;
	if (f != NULL)
		fclose(f);
	if (s == 0 && ns == 0)
		return 0;
	return xsp_error_set(
		err, -ENOTSUP, XSP_STATUS_KERNEL,
		"xsptrace runs in a time namespace whose clock is %lld s from the kernel's: run it outside (nsenter --time --target 1)",
		s);
}

#define FIRST_PID_NAMESPACE 0xeffffffcU /* PROC_PID_INIT_INO (Linux' include/linux/proc_ns.h) */

/* The kernel side knows processes by their numbers in the first one, and would find none of ours. */
static int check_numbers(struct xsp_error *err)
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) != 0 || st.st_ino == FIRST_PID_NAMESPACE)
		return 0;
	return xsp_error_set(
		err, -ENOTSUP, XSP_STATUS_KERNEL,
		"xsptrace runs in a PID namespace (a container's), where processes have other numbers than for the kernel: run it in the host's (docker run --pid=host, Kubernetes: hostPID: true)");
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

/* How long the end waits for the broker, which is quick unless something is wrong. */
#define LEAVE_MS 3000

static void clear(struct recording *r, int status)
{
	xsp_record_put_at_stake(NULL, false);
	xsp_switches_end(&r->switches);
	xsp_triggers_free(r->triggers);
	xsp_supervised_free(r->supervised);
	xsp_recorder_free(r->recorder);
	xsp_broker_free(r->broker, xsp_record_stop_signal() != 0 && status >= 128 ? 0 : LEAVE_MS);
	xsp_launch_free(r->launch);
	xsp_close(r->on_snapshot);
	free(r->arguments);
	free(r->before);
	free(r->work);
	free(r->capture);
	free(r->whole);
	free(r->parts);
	free(r->default_json);
	xsp_options_clear(&r->o);
}

/* Returns the exit status. */
static int prepare_and_record(struct recording *r)
{
	const struct xsp_user user = xsp_session_user(&r->o);
	struct xsp_error err = {0};
	char agent[PATH_MAX];
	const bool have_agent = xsp_agent_path(agent, sizeof(agent));

	if (r->o.inject && !have_agent)
		xsp_error_set(&err, -ENOENT, XSP_STATUS_FAILED,
			      "--inject: " XSP_GPU_AGENT
			      " was not found beside xsptrace or in ../lib");
	if (!have_agent || !xsp_agent_knows_operators())
		r->facts.lacking |= 1U << XSP_FEATURE_AGENT;
	if (r->o.rest_count > 0 && xsp_options_selection(&r->o, NULL).gpu != 0)
		xsp_agent_prepare(r->o.quiet);
	if (r->o.on_snapshot != NULL) {
		r->on_snapshot = xsp_on_snapshot_start(r->o.on_snapshot, user.uid, user.gid);
		if (r->on_snapshot < 0)
			xsp_error_set(&err, r->on_snapshot, XSP_STATUS_FAILED,
				      "--on-snapshot has no process: %s",
				      strerror(-r->on_snapshot));
	}
	if (err.status != XSP_STATUS_OK ||
	    (r->o.rest_count > 0 &&
	     xsp_launch_start(r->o.rest, user.uid, user.gid, &r->launch, &err) < 0) ||
	    xsp_record_prepare_names(r, &err) < 0 ||
	    xsp_record_start_session(r, have_agent ? agent : NULL, &err) < 0 ||
	    xsp_record_check_targets(r, &err) < 0) {
		blame_broker(r, &err);
		return xsp_say_error(&err);
	}
	return command_status(r, record_now(r));
}

int xsp_record_live(int argc, char **argv, const struct xsp_live_view *view)
{
	const enum xsp_verb verb = view != NULL ? XSP_VERB_TOP : XSP_VERB_RECORD;
	struct recording r = {.view = view, .on_snapshot = -1};
	struct xsp_error err = {0};
	int status;

	if (!xsp_options_take(argc, argv, verb, &r.o, &status)) {
		; /* nothing is left to do */
	} else if (check_clock(&err) < 0 || check_numbers(&err) < 0) {
		status = xsp_say_error(&err);
	} else if (r.o.dry_run) {
		status = xsp_list_run(&r.o, true);
	} else {
		if (r.o.exit == XSP_EXIT_BY_RETURN)
			xsp_say("warning: --exit=return swaps return addresses on the target's stack: a C++ exception that passes a traced function kills the target");
		xsp_record_catch_signals();
		if (r.o.flight)
			xsp_record_catch_snapshots();
		if (view == NULL)
			r.switches = xsp_switches_begin();
		else if (view->prepare != NULL)
			view->prepare(view->ctx, &r.o);
		r.arguments = join_arguments(argc, argv);
		status = xsp_supervised_new(r.o.supervisor, &r.supervised) == 0
				 ? prepare_and_record(&r)
				 : XSP_STATUS_FAILED;
	}
	clear(&r, status);
	return status;
}

int xsp_cmd_record(int argc, char **argv)
{
	return xsp_record_live(argc, argv, NULL);
}
