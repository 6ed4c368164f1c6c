/* SPDX-License-Identifier: BSD-2-Clause */
/* record.c - the main job: from a process to a capture and its outputs. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "record/recorder.h"
#include "cli/agent_path.h"
#include "cli/cli.h"
#include "cli/inject_agent.h"
#include "cli/launch.h"
#include "cli/live_view.h"
#include "cli/list.h"
#include "cli/no_match.h"
#include "cli/options.h"
#include "cli/outputs.h"
#include "cli/screen.h"
#include "cli/session.h"
#include "cli/status_line.h"
#include "cli/switches.h"
#include "export/export.h"
#include "export/out.h"
#include "target/process.h"
#include "xsptrace/gpu.h"

#define TURN_MS 10
/* What --waits costs others at each switch of a thread of theirs, and what of a processor that may be where nobody
 * asked for it. */
#define BYSTANDER_NS 280.0
#define BYSTANDERS_MOST 0.01
#define BYSTANDERS_NS 1000000000ULL /* their switches are looked at so often */

/* What signals say and find: the one piece of global state. */
static volatile sig_atomic_t stop_signal;
static struct xsp_new_file *volatile at_stake; /* the capture, once there is something in it */
static volatile sig_atomic_t at_stake_named; /* it was asked for */
static volatile sig_atomic_t done; /* the outputs are there */

static void write_text(const char *message)
{
	if (write(STDERR_FILENO, message, strlen(message)) < 0)
		return;
}

/* A second signal: the user does not want to wait. */
static void leave_now(int number)
{
	xsp_screen_restore();
	if (at_stake != NULL && xsp_new_file_place(at_stake, at_stake_named) == 0) {
		write_text(
			"\nxsptrace: stopped at once; what was recorded is kept: xsptrace export ");
		write_text(xsp_new_file_name(at_stake));
		write_text(" -o OUT\n");
	} else {
		write_text(done ? "\nxsptrace: stopped at once; the outputs are complete\n"
				: "\nxsptrace: stopped at once; no recording was kept\n");
	}
	_exit(128 + number);
}

static void on_signal(int number)
{
	if (stop_signal != 0)
		leave_now(number);
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
	const struct xsp_live_view *view; /* instead of outputs; NULL: none */
	struct xsp_attach_options attach;
	struct xsp_broker *broker;
	struct xsp_recorder *recorder;
	struct xsp_launch *launch;
	struct xsp_switches switches;
	unsigned busy; /* looks in a row at which others paid too much */
	char *arguments;
	char idle[900]; /* why no call began, if none did */
	char time[32]; /* of the start, for default names */
	char *work; /* the capture's folder if the outputs have none; NULL: here */
	char *capture; /* the name it has or would have */
	bool keep_capture; /* asked for, or the default */
	bool may_keep; /* if the outputs fail: not where they go to a pipe or device, which keeps nothing */
	char *default_json; /* the other default output */
	const char *default_outputs[1];
	struct xsp_standing *before; /* at each output, before the recording */
	struct xsp_status_line starting; /* what is being done until the probes are in */
	char doing[256];
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
	for (size_t i = 0; i < o->output_count; i++)
		if (xsp_is_capture_name(o->outputs[i]))
			return o->outputs[i];
	return NULL;
}

static const char *first_file(const struct xsp_options *o)
{
	for (size_t i = 0; i < o->output_count; i++)
		if (xsp_out_is_file(o->outputs[i]))
			return o->outputs[i];
	return NULL;
}

/* With -o - or a device alone. */
static char *find_work(void)
{
	const char *const folders[] = {getenv("TMPDIR"), "/var/tmp", "/tmp"};
	struct stat st;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (folders[i] != NULL && folders[i][0] == '/' && stat(folders[i], &st) == 0 &&
		    S_ISDIR(st.st_mode))
			return strdup(folders[i]);
	return strdup(".");
}

/* Before the rights are given up, and with them the file that knows the time zone. */
static int prepare_names(struct recording *r, struct xsp_error *err)
{
	time_t now = time(NULL);
	struct tm local;

	if (localtime_r(&now, &local) == NULL ||
	    strftime(r->time, sizeof(r->time), "%Y%m%d-%H%M%S", &local) == 0)
		snprintf(r->time, sizeof(r->time), "%lld", (long long)now);
	if (r->o.output_count == 0 || first_file(&r->o) != NULL)
		return 0;
	r->work = find_work();
	return r->work != NULL ? 0 : xsp_out_of_memory(err);
}

static int choose_names(struct recording *r, pid_t pid, struct xsp_error *err)
{
	struct xsp_process *p;
	char name[32] = "program";
	const char *asked = capture_among(&r->o), *file = first_file(&r->o);
	int rc = 0;

	if (xsp_process_open(xsp_broker_opener(r->broker), pid, &p, NULL) == 0) {
		clean_name(xsp_process_comm(p), name, sizeof(name));
		xsp_process_free(p);
	}
	r->keep_capture = asked != NULL || r->o.output_count == 0;
	r->may_keep = r->keep_capture || file != NULL;
	if (asked != NULL)
		rc = asprintf(&r->capture, "%s", asked);
	else if (file != NULL)
		rc = asprintf(&r->capture, "%s.xspt", file);
	else if (r->work != NULL)
		rc = asprintf(&r->capture, "%s/xsptrace.xspt", r->work);
	else
		rc = asprintf(&r->capture, "xsptrace.%s.%d.%s.xspt", name, (int)pid, r->time);
	if (rc >= 0 && r->o.output_count == 0)
		rc = asprintf(&r->default_json, "xsptrace.%s.%d.%s.json.gz", name, (int)pid,
			      r->time);
	return rc < 0 ? xsp_out_of_memory(err) : 0;
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

	if (r->o.quiet)
		return;
	if (r->view != NULL)
		r->view->note(r->view->ctx, text);
	else
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

static struct xsp_attach_options attach_options(const struct xsp_options *o)
{
	const struct xsp_selection selection = xsp_options_selection(o);

	return (struct xsp_attach_options){
		.buffer_bytes = o->buffer_bytes,
		.rings = o->rings,
		.method = o->method,
		.follow = o->follow,
		.stop = o->follow_stop,
		.min_duration_ns = o->min_duration_ns,
		.max_depth = o->max_depth,
		.tids = o->tids,
		.tid_count = o->tid_count,
		.comms = o->comms,
		.comm_count = o->comm_count,
		.ranges = xsp_selection_has_ranges(&selection),
		.details = selection.details,
		.stack_frames = o->stack_frames,
		.python_frames = o->python_frames,
		.counters = o->counters,
		.counter_count = o->counter_count,
		.waits = o->waits,
		.wait_least_ns = o->wait_least_ns,
		.sample_hz = o->sample_hz,
		.wait_stacks = o->wait_stacks,
		.wait_stacks_thinned = o->wait_stacks_thinned,
		.wait_stack_least_ns = o->wait_stack_least_ns,
		.heap_period = o->heap_period,
		.defaults = o->defaults,
		.brake = o->max_overhead > 0,
		.verbose = o->verbose,
	};
}

static bool is_over(const struct recording *r)
{
	return r->o.duration_ns != 0 && r->recorder != NULL &&
	       xsp_recorder_seconds(r->recorder) * 1e9 >= (double)r->o.duration_ns;
}

/* Asked several times a second while something is waited for. */
static bool is_stopped(void *ctx)
{
	struct recording *r = ctx;

	if (r->doing[0] != '\0')
		xsp_status_line_say(&r->starting, r->doing);
	return stop_signal != 0 || is_over(r);
}

static void show_progress(void *ctx, const char *text)
{
	struct recording *r = ctx;

	snprintf(r->doing, sizeof(r->doing), "%s", text);
	xsp_status_line_say(&r->starting, r->doing);
}

static int make_recorder(struct recording *r, struct xsp_error *err)
{
	struct xsp_recorder_options options = {
		.broker = r->broker,
		.pids = r->o.pids,
		.pid_count = r->o.pid_count,
		.selection = xsp_options_selection(&r->o),
		.attach = r->attach,
		.exit_by_return = r->o.exit_by_return,
		.exit_by_site = r->o.exit_by_site,
		.profile = r->o.profile,
		.stopped = is_stopped,
		.progress = show_progress,
		.budget = r->o.max_overhead,
		.capture_path = r->view == NULL ? r->capture : NULL,
		.capture_named = r->keep_capture,
		.arguments = r->arguments,
		.note = note,
		.note_ctx = r,
	};

	return xsp_recorder_new(&options, &r->recorder, err);
}

/* From here on this process has no rights of its own. */
static int start_session(struct recording *r, const char *agent, struct xsp_error *err)
{
	pid_t launched = r->launch != NULL ? xsp_launch_pid(r->launch) : 0;
	const char **outputs = calloc(r->o.output_count + 1, sizeof(*outputs));
	char *work = NULL;
	if (outputs == NULL || asprintf(&work, "%s/", r->work != NULL ? r->work : ".") < 0) {
		free(outputs);
		return xsp_out_of_memory(err);
	}
	for (size_t i = 0; i < r->o.output_count; i++)
		outputs[i] = r->o.outputs[i];
	const bool in_work = first_file(&r->o) == NULL && r->view == NULL;
	outputs[r->o.output_count] = work;
	struct xsp_session s = {
		.options = &r->o,
		.attach = &r->attach,
		.pids = r->launch != NULL ? &launched : r->o.pids,
		.pid_count = r->launch != NULL ? 1 : r->o.pid_count,
		.agent = agent,
		.outputs = outputs,
		.output_count = r->o.output_count + in_work,
	};

	drop_counters(r);
	r->attach = attach_options(&r->o);
	struct xsp_options profile = r->o;
	profile.profile = true;
	xsp_options_apply_profile(&profile);
	const struct xsp_attach_options instead = attach_options(&profile);
	s.profile = r->o.may_profile ? &instead : NULL;
	int rc = xsp_session_start(&s, &r->broker, err);
	free(outputs);
	free(work);
	return rc;
}

/* As the user who will write them, and before anything is recorded that would be lost. */
static int check_outputs(struct recording *r, struct xsp_error *err)
{
	int rc = 0;

	r->before = calloc(r->o.output_count + 1, sizeof(*r->before));
	if (r->before == NULL)
		return xsp_out_of_memory(err);
	for (size_t i = 0; rc == 0 && i < r->o.output_count; i++) {
		rc = xsp_export_check(r->o.outputs[i], err);
		r->before[i] = xsp_standing_at(r->o.outputs[i]);
	}
	return rc;
}

static void find_threads(const struct recording *r, const struct xsp_process *p, bool *found)
{
	struct xsp_thread_info *threads = NULL;
	size_t count = 0;

	if (r->o.tid_count == 0 || xsp_process_threads(p, &threads, &count) < 0)
		return;
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < r->o.tid_count; j++)
			found[j] |= threads[i].tid == r->o.tids[j];
	free(threads);
}

static int check_threads(const struct recording *r, const bool *found, struct xsp_error *err)
{
	for (size_t i = 0; r->o.command == NULL && i < r->o.tid_count; i++)
		if (!found[i])
			return xsp_error_set(err, -ESRCH, XSP_STATUS_NO_TARGET,
					     "-t %d: process %d has no such thread",
					     (int)r->o.tids[i], (int)r->o.pids[0]);
	return 0;
}

/* Nothing is loaded before it is clear that there is something to trace. */
static int check_targets(const struct recording *r, struct xsp_error *err)
{
	bool *found = calloc(r->o.tid_count + 1, sizeof(*found));
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

/* Of those that the user named with -e. */
static uint64_t named_providers(const struct recording *r)
{
	return r->o.providers & ~r->o.providers_off;
}

static void say_unmatched(struct recording *r)
{
	xsp_status_line_end(&r->starting);
	xsp_say_unmatched(xsp_recorder_plan(r->recorder), r->broker, named_providers(r), note, r);
}

static bool bystanders_pay(double rate)
{
	return rate * BYSTANDER_NS * 1e-9 > BYSTANDERS_MOST;
}

/* Not to be taken for what was asked for. */
static void leave_out(struct recording *r, unsigned which)
{
	which &= r->o.defaults;
	r->o.defaults &= ~which;
	if (which & XSP_DEFAULT_WAITS)
		r->o.waits = r->o.wait_stacks = false;
	if (which & XSP_DEFAULT_SAMPLES)
		r->o.sample_hz = 0;
}

/* What nobody asked for is not on where there is nothing to be beside, or others would pay for it. */
static int decline_defaults(struct recording *r)
{
	const double rate = xsp_switches_rate(&r->switches, 0);
	unsigned which = 0;

	leave_out(r, xsp_broker_without(r->broker));
	if (r->launch == NULL && xsp_options_need_no_probes(&r->o) &&
	    xsp_recorder_wanted(r->recorder) == 0 && named_providers(r) == 0) {
		which = r->o.defaults;
	} else if ((r->o.defaults & XSP_DEFAULT_WAITS) && bystanders_pay(rate)) {
		which = XSP_DEFAULT_WAITS;
		xsp_status_line_end(&r->starting);
		if (!r->o.quiet)
			xsp_say("each processor of this machine changes threads %.0f times a "
				"second, of which --waits would slow each: it is not on by "
				"default here; --waits asks for it",
				rate);
	}
	leave_out(r, which);
	return xsp_recorder_decline(r->recorder, which);
}

static int add_processes(struct recording *r, struct xsp_error *err)
{
	int rc = 0;

	for (size_t i = 0; i < r->o.pid_count && rc >= 0; i++)
		rc = xsp_recorder_add_process(r->recorder, r->o.pids[i], err);
	return rc < 0 ? rc : 0;
}

/* ... nor where samples alone tell where the time goes, and --profile was not asked for. */
static bool decline_waits(struct recording *r)
{
	const double rate = xsp_switches_rate(&r->switches, 0);

	if (!r->o.waits || r->o.sample_hz == 0 || !bystanders_pay(rate))
		return false;
	r->o.waits = r->o.wait_stacks = false;
	xsp_status_line_end(&r->starting);
	if (!r->o.quiet)
		xsp_say("each processor of this machine changes threads %.0f times a second, of "
			"which waits would slow each: samples alone are recorded; --profile "
			"records both whatever they cost",
			rate);
	return true;
}

/* A bare -p, and there is nothing that a provider knows. The kernel side has other programs for it, which are loaded
 * only now: their checking takes its time. */
static int profile_instead(struct recording *r, const struct xsp_error *none, struct xsp_error *err)
{
	xsp_recorder_free(r->recorder);
	r->recorder = NULL;
	int rc = xsp_broker_profile(r->broker);
	if (rc < 0)
		return xsp_error_set(err, rc, XSP_STATUS_FAILED, "the broker does not answer: %s",
				     strerror(-rc));
	r->o.profile = true;
	xsp_options_apply_profile(&r->o);
	const bool declined = decline_waits(r);
	r->attach = attach_options(&r->o);
	rc = make_recorder(r, err);
	/* the broker has them ready all the same */
	if (rc == 0 && declined && xsp_broker_drop(r->broker, XSP_DEFAULT_WAITS) < 0)
		rc = xsp_error_set(err, -EPIPE, XSP_STATUS_FAILED, "the broker does not answer");
	if (rc == 0)
		rc = add_processes(r, err);
	xsp_status_line_end(&r->starting);
	if (rc == 0)
		xsp_say("%s; so this is --profile: %s%s%s, with nothing attached to code",
			none->text, r->o.sample_hz > 0 ? "samples" : "",
			r->o.sample_hz > 0 && r->o.waits ? " and " : "", r->o.waits ? "waits" : "");
	return rc;
}

/* What looks idle may wait for them. */
static void say_children(struct recording *r)
{
	const size_t count = r->o.follow || r->o.quiet || r->view != NULL
				     ? 0
				     : xsp_recorder_children(r->recorder);

	if (count > 0)
		xsp_say("%zu child process%s of the target %s not recorded: -f records them, too",
			count, count == 1 ? "" : "es", count == 1 ? "is" : "are");
}

static int start_recorder(struct recording *r, struct xsp_error *err)
{
	int rc = decline_defaults(r);

	if (r->o.profile && r->o.max_overhead_said)
		xsp_say("--max-overhead brakes probes, and waits and samples that are on by "
			"default: those of --profile go on whatever they cost (--waits=off leaves "
			"samples alone, which cost little)");
	return rc < 0 ? xsp_error_set(err, rc, XSP_STATUS_FAILED,
				      "what is on by default could not be left out: %s",
				      strerror(-rc))
		      : xsp_recorder_start(r->recorder, err);
}

static int start_attached(struct recording *r, struct xsp_error *err)
{
	int rc = add_processes(r, err);
	if (rc < 0)
		return rc;
	/* a provider that was asked for by its name is waited for, as in what is launched */
	r->doing[0] = '\0';
	if (xsp_recorder_wanted(r->recorder) == 0 && !r->o.inject &&
	    !xsp_options_need_no_probes(&r->o) && named_providers(r) == 0) {
		struct xsp_error none = {0};
		rc = xsp_no_match(&r->o, xsp_recorder_plan(r->recorder), r->broker, r->o.pids[0],
				  NULL, &none);
		if (!r->o.may_profile) {
			*err = none;
			return rc;
		}
		rc = profile_instead(r, &none, err);
		if (rc < 0)
			return rc;
	}
	if (xsp_recorder_wanted(r->recorder) > 0 &&
	    xsp_recorder_wanted(r->recorder) == xsp_recorder_plan(r->recorder)->unplaced)
		return xsp_error_set(err, -ENOENT, XSP_STATUS_NO_MATCH,
				     "what matches cannot be probed: xsptrace list, with the same "
				     "options, says why");
	say_unmatched(r);
	say_children(r);
	rc = start_recorder(r, err);
	if (rc == 0 && r->o.inject)
		rc = xsp_inject_agent(r->broker, r->o.pids, r->o.pid_count, r->o.quiet, err);
	return rc;
}

/* Each time the loader has mapped libraries: before their first instruction. */
static int go_with_loader(struct recording *r, struct xsp_error *err)
{
	pid_t pid = xsp_launch_pid(r->launch);
	int rc = 0;

	while (rc == 0) {
		int more = xsp_launch_next(r->launch, xsp_broker_opener(r->broker));
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

static int start_launched(struct recording *r, struct xsp_error *err)
{
	pid_t pid = xsp_launch_pid(r->launch);
	int rc = xsp_recorder_add_process(r->recorder, pid, err);

	if (rc == 0)
		rc = start_recorder(r, err);
	if (rc == 0 && xsp_recorder_stop_at_exec(r->recorder, pid) < 0)
		xsp_say("what %s execs will be traced from some milliseconds after its start",
			r->o.command[0]);
	return rc == 0 ? go_with_loader(r, err) : rc;
}

/* env, nice, a shell: the process has become another program and stands before its first instruction. */
static void start_again(struct recording *r)
{
	pid_t pid = xsp_launch_pid(r->launch);
	struct xsp_error why = {0};
	int rc = xsp_launch_again(r->launch);

	/* root's programs have more rights than we: their libraries get probes a little late */
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

static void say_profile(const struct recording *r)
{
	char text[200];

	xsp_list_recorded(
		&r->o, xsp_broker_samples_cycles(r->broker) ? ", by its cycles" : ", by its clock",
		text, sizeof(text));
	fprintf(stderr, "recording %s%s\n", text,
		r->o.profile ? "; nothing is attached to code; Ctrl-C stops" : "");
}

static bool reads_python(const struct xsp_plan *plan)
{
	for (size_t i = 0; i < plan->count; i++)
		for (size_t j = 0; j < plan->modules[i]->count; j++)
			if (plan->modules[i]->probes[j].probe.detail.entry &
			    1U << XSP_SECTION_PYTHON)
				return true;
	return false;
}

/* Of lines of Python only where there may be some. */
static void say_defaults(const struct recording *r)
{
	const struct {
		bool on;
		const char *option;
	} all[] = {
		{r->o.defaults & XSP_DEFAULT_WAITS, "--waits"},
		{r->o.defaults & XSP_DEFAULT_SAMPLES, "--sample"},
		{(r->o.defaults & XSP_DEFAULT_PYTHON) &&
			 reads_python(xsp_recorder_plan(r->recorder)),
		 "--python"},
	};
	const char *before = "by default also ";

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].on) {
			fprintf(stderr, "%s%s", before, all[i].option);
			before = ", ";
		}
	if (before[0] == ',')
		fputs(" (each =off: not)\n", stderr);
}

static void say_start(const struct recording *r)
{
	const struct xsp_recorder_times *t = xsp_recorder_times(r->recorder);
	const struct xsp_plan *plan = xsp_recorder_plan(r->recorder);

	size_t functions = xsp_recorder_wanted(r->recorder) - plan->unplaced;
	char expect[400];
	xsp_list_expect(plan, r->o.max_overhead, expect, sizeof(expect));
	const char *stops = r->o.duration_ns ? "Ctrl-C stops early" : "Ctrl-C stops";
	if (!r->o.quiet && !r->o.profile && xsp_recorder_wanted(r->recorder) == 0)
		fprintf(stderr, "tracing 0 functions%s: nothing is attached to code; %s\n",
			r->launch != NULL ? " so far, more as libraries come" : "", stops);
	else if (!r->o.quiet && !r->o.profile)
		fprintf(stderr,
			"tracing %zu function%s%s (%zu sites: %zu nop5, %zu emulated, %zu "
			"single-stepped); %s\n",
			functions, functions == 1 ? "" : "s",
			r->launch != NULL ? " so far, more as libraries come" : "", plan->sites,
			plan->sites_by_class[XSP_SITE_NOP5],
			plan->sites_by_class[XSP_SITE_EMULATED],
			plan->sites_by_class[XSP_SITE_SINGLESTEP], stops);
	if (!r->o.quiet && xsp_options_need_no_probes(&r->o))
		say_profile(r);
	if (!r->o.quiet)
		say_defaults(r);
	if (!r->o.quiet && expect[0] != '\0')
		fprintf(stderr, "%s\n", expect);
	if (xsp_broker_method(r->broker) == XSP_ATTACH_PERF_EVENT && plan->sites > 100 &&
	    !r->o.quiet)
		xsp_say("this kernel takes probes out one by one, 20 ms and more each: the end "
			"will "
			"take %zu s or so for %zu sites; a narrower -e is quicker",
			plan->sites / 50, plan->sites);
	if (plan->unplaced > 0 && !r->o.quiet)
		xsp_say("%zu matching function%s cannot be probed and %s left out: xsptrace list "
			"says why",
			plan->unplaced, plan->unplaced == 1 ? "" : "s",
			plan->unplaced == 1 ? "is" : "are");
	if (!r->o.verbose)
		return;
	fprintf(stderr,
		"load %.1f ms, calibrate %.1f ms, read libraries %.1f ms, find %.1f ms, place %.1f "
		"ms, attach %.1f ms\n",
		t->load_ms, t->calibrate_ms, t->read_ms, t->find_ms, t->place_ms, t->attach_ms);
	char costs[128];
	xsp_site_costs_text(&plan->costs, costs, sizeof(costs));
	fprintf(stderr,
		"attach method %s; a hit costs %s; a name %.0f ns more, sections %.0f, cold caches "
		"%.0f\n",
		xsp_attach_method_name(xsp_broker_method(r->broker)), costs, plan->costs.named_ns,
		plan->costs.detail_ns, plan->costs.cold_ns);
}

/* ---- running ---- */

/* The capture has its name as soon as events are in it: whatever ends us then, they are kept. */
static int keep_capture(const struct recording *r, struct xsp_error *err)
{
	struct xsp_new_file *f = xsp_recorder_file(r->recorder);

	at_stake_named = r->keep_capture;
	at_stake = r->may_keep ? f : NULL;
	if (!r->keep_capture || xsp_new_file_name(f) != NULL)
		return 0;
	int rc = xsp_new_file_place(f, true);
	if (rc < 0)
		return xsp_error_set(err, rc, XSP_STATUS_OUTPUT, "cannot write %s: %s", r->capture,
				     strerror(-rc));
	if (xsp_new_file_elsewhere(f))
		xsp_say_elsewhere(r->capture, xsp_new_file_name(f));
	return 0;
}

/* Has anything been there to trace? A launched program may not have had it. */
static bool is_traced(const struct recording *r)
{
	const struct xsp_plan *plan = xsp_recorder_plan(r->recorder);
	bool traced = r->launch == NULL || xsp_options_need_no_probes(&r->o) ||
		      xsp_recorder_wanted(r->recorder) > 0;

	for (size_t i = 0; i < plan->count; i++)
		traced |= plan->modules[i]->is_agent;
	return traced;
}

static int keep_events(const struct recording *r, bool flush, struct xsp_error *err)
{
	if (at_stake != NULL || !r->may_keep || !is_traced(r) ||
	    !xsp_recorder_has_events(r->recorder, flush))
		return 0;
	return keep_capture(r, err);
}

/* The machine may have become a busier one since the start. */
static int look_at_bystanders(struct recording *r)
{
	char why[160];
	const bool looks = (r->o.defaults & XSP_DEFAULT_WAITS) && r->o.max_overhead > 0;
	const double rate = looks ? xsp_switches_rate(&r->switches, BYSTANDERS_NS) : 0;

	if (rate > 0)
		r->busy = bystanders_pay(rate) ? r->busy + 1 : 0;
	if (r->busy < 2)
		return 0;
	r->busy = 0;
	xsp_switches_end(&r->switches);
	snprintf(why, sizeof(why),
		 "each processor of this machine changes threads %.0f times a second, of which it "
		 "slows each",
		 rate);
	return xsp_recorder_drop(r->recorder, XSP_DEFAULT_WAITS, why);
}

static int run(struct recording *r, struct xsp_error *err)
{
	struct xsp_status_line line = xsp_status_line_begin(!r->o.quiet && r->view == NULL);
	struct xsp_recorder_status s;
	int rc = 1;

	while (stop_signal == 0 && rc > 0) {
		rc = xsp_recorder_turn(r->recorder, TURN_MS, err);
		if (rc >= 0 && (keep_events(r, false, err) < 0 || look_at_bystanders(r) < 0))
			rc = -EIO;
		if (r->launch != NULL &&
		    xsp_recorder_is_stopped(r->recorder, xsp_launch_pid(r->launch)))
			start_again(r);
		if (rc >= 0 && r->view != NULL) {
			const int turned = r->view->turn(r->view->ctx, err);
			rc = turned < 0 ? turned : rc;
			if (turned > 0)
				break;
		}
		double seconds = xsp_recorder_seconds(r->recorder);
		if (xsp_status_line_due(&line, seconds)) {
			xsp_recorder_status(r->recorder, &s);
			xsp_status_line_show(&line, &s, r->o.duration_ns);
		}
		if (is_over(r))
			break;
	}
	xsp_status_line_end(&line);
	if (rc >= 0) /* the end may take long, and whoever waits may not want to */
		rc = keep_events(r, true, err);
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

/* Were there to be spans? */
static bool says_why_nothing(const struct recording *r)
{
	return !r->o.profile &&
	       (!xsp_options_need_no_probes(&r->o) || xsp_recorder_wanted(r->recorder) > 0);
}

/* A summary without spans leaves the question why. */
static void say_why_nothing(const struct recording *r, const struct xsp_timeline_counts *c,
			    uint64_t filtered)
{
	if (c->orphan_exits > 0)
		xsp_say("no call began during the recording: those that ended in it had been "
			"entered before");
	else if (filtered > 0)
		xsp_say("no call is shown: the filters held back all of them");
	else if (r->idle[0] != '\0')
		xsp_say("%s", r->idle);
}

static int write_outputs(struct recording *r)
{
	struct xsp_timeline_counts counts = {.spans = 1};
	struct xsp_outputs o = {
		.paths = r->o.outputs,
		.count = r->o.output_count,
		.before = r->before,
		.owner_uid = (uid_t)-1, /* they are ours */
		.owner_gid = (gid_t)-1,
		.summary = r->o.summary_json || (!r->o.no_summary && !r->o.quiet),
		.json = r->o.summary_json,
		.rows = r->o.limit,
		.weight = r->o.weight,
		.by = r->o.by,
		.step = r->o.step,
		.progress = !r->o.quiet && isatty(STDERR_FILENO),
		.quiet = r->o.quiet,
		.counts = &counts,
	};

	if (r->default_json != NULL) {
		r->default_outputs[0] = r->default_json;
		o.paths = r->default_outputs;
		o.count = 1;
		o.before = NULL;
	}
	struct xsp_new_file *f = xsp_recorder_file(r->recorder);
	struct xsp_capture_reader *reader;
	struct xsp_error err = {0};
	int status = keep_capture(r, &err) < 0 ? xsp_say_error(&err) : 0, rc;
	if (xsp_capture_open_descriptor(xsp_new_file_descriptor(f), r->capture, &reader, &err) < 0)
		return xsp_say_error(&err);
	int worse = xsp_write_outputs(reader, &o);
	if (counts.spans + counts.values == 0 && !r->o.quiet && says_why_nothing(r))
		say_why_nothing(r, &counts, xsp_capture_stats(reader)->filtered);
	xsp_capture_close(reader);
	if (status == 0)
		status = worse;
	fflush(stdout); /* both may be one file */
	if (r->keep_capture && xsp_new_file_name(f) != NULL && !r->o.quiet)
		fprintf(stderr,
			"wrote %s (the capture: xsptrace analyze tells what is slow in it, "
			"xsptrace "
			"export makes other formats of it)\n",
			xsp_new_file_name(f));
	done = status == 0;
	at_stake = NULL;
	if (r->keep_capture || status == 0 || !r->may_keep)
		return status;
	rc = xsp_new_file_place(f, false);
	if (rc == 0)
		xsp_say("the capture is kept: xsptrace export %s -o OUT tries again",
			xsp_new_file_name(f));
	else
		xsp_say("the capture could not be kept as %s: %s", r->capture, strerror(-rc));
	return status;
}

/* As long as somebody wants to see it. */
static int show(struct recording *r)
{
	const struct xsp_live_view *v = r->view;
	struct xsp_error err = {0};
	int rc = v->begin(v->ctx, &r->o, r->broker, r->recorder, &err);

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

static int say_interrupted(void)
{
	xsp_say("stopped before anything was recorded");
	return 128 + stop_signal;
}

/* Root, too, writes without its power over other people's folders. */
static void say_who_writes(int code, const struct xsp_error *err)
{
	if (err->status == XSP_STATUS_OUTPUT && code == -EACCES)
		xsp_say("files are written as user %u, without root's powers: choose a folder of "
			"that user's, or --user NAME",
			(unsigned)getuid());
}

static int record_now(struct recording *r)
{
	struct xsp_error err = {0};
	pid_t pid = r->launch ? xsp_launch_pid(r->launch) : r->o.pids[0];
	int status, worse;
	int rc = r->view == NULL ? choose_names(r, pid, &err) : 0;

	r->starting = xsp_status_line_begin(!r->o.quiet);
	if (rc == 0)
		rc = check_outputs(r, &err);
	if (rc == 0)
		rc = make_recorder(r, &err);
	if (rc < 0) {
		xsp_status_line_end(&r->starting);
		say_who_writes(rc, &err);
		return stop_signal != 0 ? say_interrupted() : xsp_say_error(&err);
	}
	rc = r->launch ? start_launched(r, &err) : start_attached(r, &err);
	xsp_status_line_end(&r->starting);
	if (rc < 0) {
		status = stop_signal != 0 ? say_interrupted() : xsp_say_error(&err);
		xsp_recorder_free(r->recorder);
		r->recorder = NULL;
		return status;
	}
	say_start(r);
	if (r->view != NULL)
		return show(r);
	rc = run(r, &err);
	const bool traced = is_traced(r);
	if (traced && says_why_nothing(r) && !xsp_recorder_has_calls(r->recorder))
		xsp_recorder_why_idle(r->recorder, r->idle, sizeof(r->idle));
	status = rc < 0 ? xsp_say_error(&err) : 0;
	worse = finish(r);
	if (status == 0)
		status = worse;
	if (traced) {
		worse = write_outputs(r);
		if (r->launch != NULL)
			say_unmatched(r);
		return status != 0 ? status : worse;
	}
	/* what an earlier run has written is worth more */
	xsp_no_match(&r->o, xsp_recorder_plan(r->recorder), r->broker, pid,
		     r->o.command != NULL ? r->o.command[0] : NULL, &err);
	char late[320];
	if (xsp_recorder_describe_late(r->recorder, late, sizeof(late)))
		xsp_say("%s; nothing is written (%s)", err.text, late);
	else
		xsp_say("%s; nothing is written", err.text);
	if (status == 0)
		status = (int)err.status;
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

/* Events have the kernel's time, which is held against ours everywhere: time_namespaces(7). */
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
	return xsp_error_set(err, -ENOTSUP, XSP_STATUS_KERNEL,
			     "xsptrace runs in a time namespace whose clock is %lld s from the "
			     "kernel's: run it outside (nsenter --time --target 1)",
			     s);
}

/* How long the end waits for the privileged process, which is quick unless something is wrong. */
#define LEAVE_MS 3000

int xsp_record_live(int argc, char **argv, const struct xsp_live_view *view)
{
	const enum xsp_verb verb = view != NULL ? XSP_VERB_TOP : XSP_VERB_RECORD;
	struct recording r = {.view = view};
	struct xsp_error err = {0};
	char agent[PATH_MAX];
	int status = XSP_STATUS_OK;
	enum xsp_options_result parsed = xsp_options_parse(argc, argv, verb, &r.o, &err);

	if (parsed == XSP_OPTIONS_DONE)
		goto out;
	if (parsed == XSP_OPTIONS_BAD) {
		status = xsp_say_error(&err);
		goto out;
	}
	if (check_clock(&err) < 0) {
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
	if (r.o.defaults & XSP_DEFAULT_WAITS)
		r.switches = xsp_switches_begin();
	r.arguments = join_arguments(argc, argv);
	bool have_agent = xsp_agent_path(agent, sizeof(agent));
	struct xsp_user user = xsp_session_user(&r.o);
	if (r.o.inject && !have_agent) {
		xsp_error_set(&err, -ENOENT, XSP_STATUS_FAILED,
			      "--inject: " XSP_GPU_AGENT
			      " was not found beside xsptrace or in ../lib");
		status = xsp_say_error(&err);
		goto out;
	}
	if (r.o.command != NULL && xsp_options_selection(&r.o).gpu != 0)
		xsp_agent_prepare(r.o.quiet);
	if ((r.o.command != NULL &&
	     xsp_launch_start(r.o.command, user.uid, user.gid, &r.launch, &err) < 0) ||
	    prepare_names(&r, &err) < 0 || start_session(&r, have_agent ? agent : NULL, &err) < 0 ||
	    check_targets(&r, &err) < 0) {
		status = xsp_say_error(&err);
		goto out;
	}
	status = command_status(&r, record_now(&r));
out:
	at_stake = NULL;
	xsp_switches_end(&r.switches);
	xsp_recorder_free(r.recorder);
	xsp_broker_free(r.broker, stop_signal != 0 && status >= 128 ? 0 : LEAVE_MS);
	xsp_launch_free(r.launch);
	free(r.arguments);
	free(r.before);
	free(r.work);
	free(r.capture);
	free(r.default_json);
	xsp_options_clear(&r.o);
	return status;
}

int xsp_cmd_record(int argc, char **argv)
{
	return xsp_record_live(argc, argv, NULL);
}
