/* SPDX-License-Identifier: BSD-2-Clause */
/* start.c - from options to probes in place. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/record/agent.h"
#include "cli/record/no_match.h"
#include "cli/record/private.h"
#include "cli/record/session.h"
#include "procfs/opener.h"
#include "target/process.h"

/* ---- what is recorded ---- */

static void decide(struct recording *r)
{
	r->what = xsp_recording_decide(&r->o.wishes, &r->facts);
}

/* Drops counters that this machine does not have, with a line each, rather than show zeros. */
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
		r->facts.lacking |= 1U << XSP_FEATURE_COUNTERS;
}

/* Programs of the kernel side go by the numbers of the root namespace, which nobody in another one knows. */
static void look_at_namespace(struct recording *r)
{
	static const ino_t root = 0xEFFFFFFCU; /* the kernel's PROC_PID_INIT_INO */
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) < 0 || st.st_ino == root)
		return;
	r->facts.lacking |= 1U << XSP_FEATURE_WAITS | 1U << XSP_FEATURE_PYTHON |
			    1U << XSP_FEATURE_SAMPLES | 1U << XSP_FEATURE_WAIT_STACKS;
	xsp_say("xsptrace runs in a PID namespace of its own, where it sees other process numbers than the kernel: waits, samples and Python lines are not recorded. Run it on the host, or with the host's processes (docker run --pid=host)");
}

/* The kernel finds the memory of a process by the thread that a probe is for, and uprobe_multi takes the main thread
 * alone. */
static bool has_lost_main_thread(const struct recording *r)
{
	bool lost = false;

	for (size_t i = 0; r->launch == NULL && i < r->o.pid_count; i++) {
		const pid_t pid = r->o.pids[i], thread = xsp_living_thread(pid);
		if (thread == pid)
			continue;
		xsp_say("the main thread of process %d has ended: its probes are bound to thread %d, and calls after the end of that one are not seen",
			(int)pid, (int)thread);
		lost = true;
	}
	return lost;
}

static struct xsp_attach_options attach_options(const struct recording *r)
{
	const struct xsp_options *o = &r->o;
	const struct xsp_selection selection = xsp_options_selection(o, &r->what);
	struct xsp_attach_options attach = {
		.buffer_bytes = o->buffer_bytes,
		.rings = (unsigned)o->rings,
		.method = (enum xsp_attach_method)o->method,
		.follow = o->follow != 0,
		.launched = r->launch != NULL,
		.stop = o->follow & XSP_FOLLOW_STOP,
		.min_duration_ns = o->part.cut.min_duration_ns,
		.max_depth = (uint32_t)o->part.cut.max_depth,
		.tids = o->part.tids,
		.tid_count = o->part.cut.tid_count,
		.comms = o->part.comms,
		.comm_count = o->part.cut.comm_count,
		.ranges = xsp_selection_has_ranges(&selection),
		.details = selection.details,
		.counters = o->counters,
		.counter_count = o->counter_count,
		.fatal_signals = o->flight,
		.verbose = o->verbose,
	};

	if (has_lost_main_thread(r))
		attach.method = XSP_ATTACH_PERF_EVENT;
	xsp_recording_attach(&r->what, &attach);
	attach.brake = attach.brake || xsp_is_scheduled(&o->schedule);
	return attach;
}

/* ---- the recorder ---- */

/* The planner asks this several times a second while it waits. */
static bool is_stopped(void *ctx)
{
	struct recording *r = ctx;

	if (r->doing[0] != '\0')
		xsp_status_line_say(&r->starting, r->doing);
	return xsp_record_stop_signal() != 0 || xsp_record_is_over(r) ||
	       xsp_supervised_ends(r->supervised);
}

static void show_progress(void *ctx, const char *text)
{
	struct recording *r = ctx;

	snprintf(r->doing, sizeof(r->doing), "%s", text);
	xsp_status_line_say(&r->starting, r->doing);
}

int xsp_record_make_recorder(struct recording *r, bool again, struct xsp_error *err)
{
	struct xsp_recorder_options options = {
		.broker = r->broker,
		.pids = r->o.pids,
		.pid_count = r->o.pid_count,
		.selection = xsp_options_selection(&r->o, &r->what),
		.attach = r->attach,
		.exit_by_return = r->o.exit == XSP_EXIT_BY_RETURN,
		.exit_by_site = r->o.exit == XSP_EXIT_BY_SITE,
		.operators_by_agent = xsp_records(&r->what, XSP_FEATURE_AGENT),
		.operators_by_callbacks = xsp_records_callbacks(&r->what),
		.profile = r->what.profile,
		.again = again,
		.stopped = is_stopped,
		.progress = show_progress,
		.attach_limit_ns = r->o.attach_limit_ns,
		.budget = r->o.max_overhead,
		.schedule = r->o.schedule,
		.capture_path = r->view == NULL ? r->capture : NULL,
		.flight = r->o.flight ? &r->flight : NULL,
		.capture_named = r->keep_capture,
		.split = r->whole != NULL,
		.arguments = r->arguments,
		.note = xsp_record_note,
		.note_ctx = r,
	};

	return xsp_recorder_new(&options, &r->recorder, err);
}

/* From here on this process has no rights of its own. */
int xsp_record_start_session(struct recording *r, const char *agent, struct xsp_error *err)
{
	pid_t launched = r->launch != NULL ? xsp_launch_pid(r->launch) : 0;
	const bool in_work = xsp_record_first_file(&r->o) == NULL && r->view == NULL;
	const char *here = r->o.folder != NULL ? r->o.folder : ".";
	const struct xsp_session s = {
		.options = &r->o,
		.attach = &r->attach,
		.pids = r->launch != NULL ? &launched : r->o.pids,
		.pid_count = r->launch != NULL ? 1 : r->o.pid_count,
		.agent = agent,
		.outputs = r->o.outputs.words,
		.output_count = r->o.outputs.count,
		.work = !in_work	  ? NULL
			: r->work != NULL ? r->work
					  : here,
	};

	drop_counters(r);
	look_at_namespace(r);
	decide(r);
	r->attach = attach_options(r);
	return xsp_session_start(&s, &r->broker, err);
}

/* ---- targets ---- */

static void find_threads(const struct recording *r, const struct xsp_process *p, bool *found)
{
	struct xsp_thread_info *threads = NULL;
	size_t count = 0;

	if (r->o.part.cut.tid_count == 0 || xsp_process_threads(p, &threads, &count) < 0)
		return;
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < r->o.part.cut.tid_count; j++)
			found[j] |= threads[i].tid == r->o.part.tids[j];
	free(threads);
}

static int check_threads(const struct recording *r, const bool *found, struct xsp_error *err)
{
	for (size_t i = 0; r->o.rest_count == 0 && i < r->o.part.cut.tid_count; i++)
		if (!found[i])
			return xsp_error_set(err, -ESRCH, XSP_STATUS_NO_TARGET,
					     "-t %d: process %d has no such thread",
					     (int)r->o.part.tids[i], (int)r->o.pids[0]);
	return 0;
}

/* Loads nothing before it is clear that there is something to trace. */
int xsp_record_check_targets(const struct recording *r, struct xsp_error *err)
{
	bool *found = calloc(r->o.part.cut.tid_count + 1, sizeof(*found));
	int rc = 0;

	if (found == NULL)
		return xsp_out_of_memory(err);
	for (size_t i = 0; rc == 0 && i < r->o.pid_count; i++) {
		struct xsp_process *p;
		rc = xsp_process_open(xsp_broker_opener(r->broker), r->o.pids[i], &p, err);
		if (rc < 0)
			break;
		if (r->o.pids[i] == getpid())
			rc = xsp_error_set(err, -EINVAL, XSP_STATUS_TARGET,
					   "xsptrace cannot trace itself");
		find_threads(r, p, found);
		xsp_process_free(p);
	}
	if (rc == 0)
		rc = check_threads(r, found, err);
	free(found);
	return rc;
}

static int add_processes(struct recording *r, struct xsp_error *err)
{
	int rc = 0;

	for (size_t i = 0; i < r->o.pid_count && rc >= 0; i++)
		rc = xsp_recorder_add_process(r->recorder, r->o.pids[i], err);
	return rc < 0 ? rc : 0;
}

/* Nothing that the user asked for is there, and we wait for no provider that the user named. */
static bool is_nothing_found(const struct recording *r)
{
	return r->launch == NULL && xsp_recorder_wanted(r->recorder) == 0 &&
	       xsp_record_named_providers(r) == 0;
}

/* ---- what is on by default, and what a bare -p records ---- */

/* Drops defaults that nobody asked for, if they have nothing to accompany or if other programs
 * would pay for them. */
static int decline_defaults(struct recording *r)
{
	const bool waits = r->what.of[XSP_FEATURE_WAITS].on == XSP_BY_DEFAULT;
	const unsigned before = xsp_recording_defaults(&r->what);

	r->facts.lacking |= xsp_broker_without(r->broker);
	r->facts.nothing_found = is_nothing_found(r);
	if (waits)
		r->facts.switches = xsp_switches_rate(&r->switches, 0);
	decide(r);
	if (waits && r->what.of[XSP_FEATURE_WAITS].why == XSP_WHY_BYSTANDERS)
		xsp_record_say_busy(r, "--waits",
				    "it is not on by default here; --waits asks for it");
	return xsp_recorder_decline(r->recorder, before & ~xsp_recording_defaults(&r->what));
}

/* A bare -p, and no provider knows anything there: takes a profile. The kernel side has other
 * programs for it, and loads them only now because the verifier takes its time. */
static int profile_instead(struct recording *r, struct xsp_error *err)
{
	const bool busy = r->what.of[XSP_FEATURE_WAITS].why == XSP_WHY_BYSTANDERS;

	xsp_recorder_free(r->recorder);
	r->recorder = NULL;
	if (busy)
		xsp_record_say_busy(
			r, "waits",
			"samples alone are recorded; --profile records both whatever they cost");
	r->attach = attach_options(r);
	int rc = xsp_record_make_recorder(r, true, err);
	/* the broker has the programs ready all the same */
	if (rc == 0 && busy && xsp_broker_drop(r->broker, XSP_DEFAULT_WAITS) < 0)
		rc = xsp_error_set(err, -EPIPE, XSP_STATUS_FAILED, "the broker does not answer");
	if (rc == 0)
		rc = add_processes(r, err);
	return rc;
}

/* Nothing was found: an error, unless it can be a profile. */
static int start_with_nothing(struct recording *r, struct xsp_error *err)
{
	const struct xsp_plan *plan = xsp_recorder_plan(r->recorder);
	struct xsp_error none = {0};
	int rc = xsp_no_match(&r->what, plan, r->broker, r->o.pids[0], NULL, &none);

	r->facts.nothing_found = true;
	r->facts.switches = xsp_switches_rate(&r->switches, 0);
	decide(r);
	if (r->what.profile)
		return profile_instead(r, err);
	*err = none;
	return rc;
}

/* ---- starting ---- */

static int start_recorder(struct recording *r, struct xsp_error *err)
{
	int rc = decline_defaults(r);

	if (r->what.profile && r->what.of[XSP_FEATURE_BRAKE].on == XSP_ASKED)
		xsp_say("--max-overhead brakes probes, and waits and samples that are on by default: those of --profile go on whatever they cost (--waits=off leaves samples alone, which cost little)");
	if (rc < 0)
		return xsp_error_set(err, rc, XSP_STATUS_FAILED,
				     "what is on by default could not be left out: %s",
				     strerror(-rc));
	xsp_record_wait_for_start(r, 0);
	return xsp_recorder_start(r->recorder, err);
}

/* Before the probes, as functions that the agent records have none. */
static int inject(struct recording *r, struct xsp_error *err)
{
	const struct xsp_feature_row *agent = &r->what.of[XSP_FEATURE_AGENT];

	const bool callbacks = agent->value == XSP_BY_CALLBACKS;
	const char *cannot =
		agent->why == XSP_WHY_FILTERED	? "choose calls by duration, depth or thread"
		: agent->why == XSP_WHY_NAMES	? "choose operators by name, by callbacks"
		: agent->why != XSP_WHY_DETAILS ? NULL
		: callbacks
			? "read arguments, results, stacks, lines of Python or counters, by callbacks"
			: "read results, values, stacks or counters";
	if (agent->on == XSP_OFF && cannot != NULL && !r->o.quiet)
		xsp_say("operators keep their probes: the agent cannot yet %s", cannot);
	if (!r->o.inject)
		return 0;
	const unsigned what = agent->on == XSP_OFF
				      ? 0
				      : (r->o.wishes.operators ? XSP_INJECT_OPERATORS : 0) |
						(r->o.wishes.regions && r->o.wishes.names_probes
							 ? XSP_INJECT_REGIONS
							 : 0);
	return xsp_inject_agent(r->broker, r->o.pids, r->o.pid_count, what, r->o.quiet, err);
}

int xsp_record_start_attached(struct recording *r, struct xsp_error *err)
{
	int rc = inject(r, err);

	if (rc == 0)
		rc = add_processes(r, err);

	r->doing[0] = '\0';
	if (rc == 0 && is_nothing_found(r) && !r->o.inject && !r->what.needs_no_probes)
		rc = start_with_nothing(r, err);
	if (rc < 0)
		return rc;
	if (xsp_recorder_wanted(r->recorder) > 0 &&
	    xsp_recorder_wanted(r->recorder) == xsp_recorder_plan(r->recorder)->unplaced)
		return xsp_error_set(
			err, -ENOENT, XSP_STATUS_NO_MATCH,
			"what matches cannot be probed: xsptrace list, with the same options, says why");
	xsp_record_say_unmatched(r);
	xsp_record_look_at_children(r);
	return start_recorder(r, err);
}

/* Attaches each time the loader has mapped libraries, before their first instruction runs. */
static int go_with_loader(struct recording *r, struct xsp_error *err)
{
	pid_t pid = xsp_launch_pid(r->launch);
	int rc = 0;

	while (rc == 0) {
		int more = xsp_launch_next(r->launch, xsp_broker_opener(r->broker));
		if (more < 0)
			xsp_say("the start of %s could not be watched (%s): probes in its libraries come up to 20 ms late",
				r->o.rest[0], strerror(-more));
		if (more <= 0)
			break;
		rc = xsp_recorder_add_process(r->recorder, pid, err);
	}
	return rc;
}

int xsp_record_start_launched(struct recording *r, struct xsp_error *err)
{
	pid_t pid = xsp_launch_pid(r->launch);
	int rc = xsp_recorder_add_process(r->recorder, pid, err);

	if (rc == 0)
		rc = start_recorder(r, err);
	if (rc == 0 && xsp_recorder_stop_at_exec(r->recorder, pid) < 0)
		xsp_say("what %s execs will be traced from some milliseconds after its start",
			r->o.rest[0]);
	return rc == 0 ? go_with_loader(r, err) : rc;
}

/* env, nice or a shell has become another program, which stands before its first instruction. */
void xsp_record_start_again(struct recording *r)
{
	pid_t pid = xsp_launch_pid(r->launch);
	struct xsp_error why = {0};
	int rc = xsp_launch_again(r->launch);

	/* root's programs have more rights than we have: their libraries get probes a little
	 * late */
	if (rc < 0 && !xsp_launch_ended(r->launch, NULL) && (rc != -EPERM || r->o.verbose))
		xsp_say("the next program of process %d could not be watched from its start (%s)",
			(int)pid, strerror(-rc));
	int failed = xsp_recorder_add_process(r->recorder, pid, &why);
	xsp_recorder_go_on(r->recorder, pid);
	if (failed == 0 && rc == 0)
		failed = go_with_loader(r, &why);
	if (failed < 0 && !xsp_launch_ended(r->launch, NULL))
		xsp_say("%s", why.text);
	xsp_launch_release(r->launch);
}
