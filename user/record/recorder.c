/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/recorder_private.h"
#include "base/clock.h"
#include "capture/recent.h"
#include "record/flight/flight.h"
#include "record/rings/rings.h"

#include "attach/planner.h"
#include "base/text.h"
#include "capture/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#define FLUSH_NS 1000000000ULL
/* A turn names addresses for so long; the rings must not wait. */
#define FRAMES_NS 2000000ULL
/* A turn moves at most so many events of each ring, so that signals and the clock get their turn. */
#define EVENTS_A_TURN 500000
#define EVENTS_A_TURN_BRAKED 100000 /* the same with a brake, for its looks */

static double since_ms(uint64_t start)
{
	return (double)(xsp_now_ns() - start) * 1e-6;
}

/* ---- setting up ---- */

/* "name,name": perf events get an '*'. */
static void list_counters(const struct xsp_recorder *r, char *text, size_t size)
{
	const struct xsp_attach_options *o = &r->options.attach;

	text[0] = '\0';
	for (size_t i = 0; i < o->counter_count; i++)
		xsp_join(text, size, ",", "%s%s", o->counters[i].name,
			 o->counters[i].kind == XSP_COUNTER_PERF ? "*" : "");
}

/* "cpu-clock 99": the clock, and how many samples a second. */
static int put_profile_infos(struct xsp_recorder *r)
{
	const struct xsp_attach_options *o = &r->options.attach;
	char waits[24] = "off", stacks[32] = "off", samples[40] = "off", heap[24] = "off";

	if (o->waits) /* ns: the shortest with an event */
		snprintf(waits, sizeof(waits), "%llu", (unsigned long long)o->wait_least_ns);
	if (o->wait_stacks)
		snprintf(stacks, sizeof(stacks), "%llu%s",
			 (unsigned long long)o->wait_stack_least_ns,
			 o->wait_stacks_thinned ? " thinned" : "");
	if (o->sample_hz > 0)
		snprintf(samples, sizeof(samples), "%s %u",
			 xsp_broker_samples_cycles(r->broker) ? "cycles" : "cpu-clock",
			 o->sample_hz);
	if (o->details & XSP_DETAIL_MALLOC)
		snprintf(heap, sizeof(heap), "%u", o->heap_period);
	int rc = xsp_capture_put_info(r->writer, "waits", waits);
	if (rc == 0)
		rc = xsp_capture_put_info(r->writer, "heap sample", heap);
	if (rc == 0)
		rc = xsp_capture_put_info(r->writer, "wait stacks", stacks);
	if (rc == 0)
		rc = xsp_capture_put_info(r->writer, "samples", samples);
	return rc < 0 ? rc : xsp_defaults_put_info(r);
}

static int put_infos(struct xsp_recorder *r)
{
	const struct xsp_recorder_options *o = &r->options;
	struct utsname u = {0};
	char costs[128], filters[128], counters[XSP_COUNTERS_MAX * 48];
	char min_duration[24], max_depth[16];

	uname(&u);
	xsp_site_costs_text(&r->plan.costs, costs, sizeof(costs));
	snprintf(filters, sizeof(filters),
		 "min-duration %llu ns, max-depth %u, threads %zu, names %zu",
		 (unsigned long long)o->attach.min_duration_ns, o->attach.max_depth,
		 o->attach.tid_count, o->attach.comm_count);
	snprintf(min_duration, sizeof(min_duration), "%llu",
		 (unsigned long long)o->attach.min_duration_ns);
	snprintf(max_depth, sizeof(max_depth), "%u", o->attach.max_depth);
	list_counters(r, counters, sizeof(counters));
	const struct {
		const char *key, *value;
	} infos[] = {
		{"version", XSP_VERSION},
		{"host", u.nodename},
		{"kernel", u.release},
		{"machine", u.machine},
		{"arguments", o->arguments ? o->arguments : ""},
		{"attach", xsp_attach_method_name(xsp_broker_method(r->broker))},
		{"hit costs", costs},
		{"filters", filters},
		{"min duration ns", min_duration}, /* for the timeline */
		{"max depth", max_depth},
		{"gpu", o->selection.gpu & XSP_WANT_ACTIVITY ? "wanted" : "off"},
		{"counters", counters},
	};
	char schedule[XSP_SCHEDULE_TEXT];
	int rc = xsp_capture_put_clock(r->writer);
	if (rc == 0 && xsp_is_scheduled(&o->schedule))
		rc = xsp_capture_put_info(r->writer, "schedule",
					  xsp_schedule_text(&o->schedule, schedule));
	for (size_t i = 0; i < sizeof(infos) / sizeof(infos[0]) && rc == 0; i++)
		rc = xsp_capture_put_info(r->writer, infos[i].key, infos[i].value);
	return rc < 0 ? rc : put_profile_infos(r);
}

static int create_file(struct xsp_recorder *r, struct xsp_error *err)
{
	const struct xsp_recorder_options *o = &r->options;
	struct stat st;

	if (o->capture_named && lstat(o->capture_path, &st) == 0 && !S_ISREG(st.st_mode))
		return xsp_error_set(
			err, -EEXIST, XSP_STATUS_OUTPUT,
			"cannot write %s: it is there and is not a regular file; links and devices are never written through, give another name",
			o->capture_path);
	int rc = o->capture_path != NULL && o->flight == NULL
			 ? xsp_new_file_open(o->capture_path, NULL, &r->file)
			 : xsp_new_file_in_memory(&r->file);
	if (rc < 0)
		return xsp_error_set(err, rc, XSP_STATUS_OUTPUT, "cannot create %s: %s",
				     xsp_recorder_display_path(r), strerror(-rc));
	int fd = fcntl(xsp_new_file_descriptor(r->file), F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return xsp_error_set(err, -errno, XSP_STATUS_FAILED, "out of file descriptors");
	/* in memory it is read at once, and taken back */
	rc = o->capture_path != NULL && r->flight == NULL
		     ? xsp_capture_create_packed(fd, xsp_recorder_display_path(r), o->split,
						 &r->writer, err)
		     : xsp_capture_create(fd, xsp_recorder_display_path(r), &r->writer, err);
	if (rc < 0)
		close(fd);
	return rc;
}

static int create_capture(struct xsp_recorder *r, struct xsp_error *err)
{
	if (xsp_flight_new(r) < 0)
		return xsp_out_of_memory(err);
	const bool file = r->flight == NULL || r->options.flight->live;
	int rc = file ? create_file(r, err)
		      : xsp_capture_create_recent(xsp_flight_recent(r), &r->writer);
	if (rc < 0)
		return file ? rc : xsp_out_of_memory(err);
	if (r->flight != NULL)
		xsp_capture_keep(r->writer, xsp_flight_recent(r));
	rc = put_infos(r);
	if (rc < 0)
		return xsp_error_set(err, rc, XSP_STATUS_OUTPUT, "%s cannot be written: %s",
				     xsp_recorder_display_path(r), strerror(-rc));
	return 0;
}

static void on_task(void *ctx, const struct xsp_event_task *task)
{
	struct xsp_recorder *r = ctx;

	if (task->what == XSP_TASK_EXIT && task->head.tid == task->head.tgid &&
	    task->other_tgid != 0) {
		r->failed.pid = (pid_t)task->head.tgid;
		r->failed.status = task->other_tgid;
	}
	if (task->what == XSP_TASK_EXIT)
		xsp_flight_ended(ctx, (pid_t)task->head.tgid, (int)task->other_tid);
	xsp_children_task(ctx, task);
}

static int on_sections(void *ctx, const struct xsp_event *e)
{
	const struct xsp_event_sample *sample = (const void *)e;

	if (e->kind == XSP_EVENT_SAMPLE && e->size >= sizeof(*sample) && sample->period_ns == 0)
		xsp_flight_fatal(ctx, sample);
	return xsp_recorder_sections(ctx, e);
}

static int open_rings(struct xsp_recorder *r, struct xsp_error *err)
{
	int fds[64];
	const struct xsp_drain_options o = {
		.rings = fds,
		.ring_count = xsp_broker_rings(r->broker, fds, 64),
		.ring_bytes = xsp_broker_ring_bytes(r->broker),
		.agents = r->agents,
		.called_back = r->options.operators_by_callbacks,
		.writer = r->writer,
		.frames = r->frames,
		.unwinder = r->unwinder,
		.costs = xsp_overhead_costs(r),
		.calls = xsp_overhead_calls(r),
		.counts_names = r->options.schedule.adapts,
		.cold_ns = r->plan.costs.cold_ns,
		.steps = xsp_site_costs_steps(&r->plan.costs),
		.task = on_task,
		.resolve = xsp_recorder_resolve,
		.gpu = xsp_recorder_gpu_event,
		.sections = on_sections,
		.python = r->pythons != NULL ? xsp_pythons_see : NULL,
		.ctx = r,
	};
	int rc = xsp_drain_new(&o, &r->drain, err);

	if (rc == 0)
		xsp_drain_discard(r->drain);
	return rc;
}

static int start_planner(struct xsp_recorder *r, struct xsp_error *err)
{
	if (xsp_planner_new(&r->plan, xsp_broker_opener(r->broker), &r->planner) < 0)
		return xsp_out_of_memory(err);
	xsp_planner_on_wait(r->planner, r->options.stopped, r->options.note_ctx);
	r->plan.planner = r->planner;
	int rc = xsp_planner_start(r->planner);
	return rc < 0 ? xsp_error_set(err, rc, XSP_STATUS_FAILED,
				      "xsptrace cannot start its planner: %s", strerror(-rc))
		      : 0;
}

/* While the programs load, which takes one processor as long as this takes others. */
static void look_ahead(struct xsp_recorder *r)
{
	for (size_t i = 0; i < r->options.pid_count; i++) {
		struct xsp_process *p;
		if (xsp_process_open(xsp_broker_opener(r->broker), r->options.pids[i], &p, NULL) <
		    0)
			continue;
		xsp_plan_look_ahead(&r->plan, p);
		xsp_process_free(p);
	}
}

static int open_sideband(struct xsp_recorder *r, struct xsp_error *err)
{
	struct xsp_sideband_options o = {.opener = xsp_broker_opener(r->broker),
					 .follow = r->options.attach.follow};
	int *events = NULL;

	if (xsp_broker_side_events(r->broker, XSP_SIDE_RECORDS, &events, &o.event_count) == 0)
		o.events = events;
	int rc = xsp_sideband_new(&o, &r->sideband, err);
	free(events);
	return rc;
}

static bool copies_stacks(const struct xsp_attach_options *o)
{
	return o->wait_stacks || o->sample_hz > 0 || (o->details & XSP_DETAIL_MALLOC);
}

static bool names_frames(const struct xsp_recorder *r)
{
	const struct xsp_attach_options *o = &r->options.attach;

	return (o->details & XSP_DETAIL_STACKS) || copies_stacks(o);
}

static int make_frames(struct xsp_recorder *r, const struct xsp_recorder_options *o)
{
	const enum xsp_sources_when when = o->flight != NULL ? XSP_SOURCES_ON_DEMAND
					   : o->capture_path == NULL || o->split
						   ? XSP_SOURCES_NOW_AND_THEN
						   : XSP_SOURCES_AT_END;
	int rc = xsp_sources_new(r->writer, r->resolver, when, &r->sources);

	return rc < 0 ? rc : xsp_frames_new(r->writer, r->resolver, r->sources, &r->frames);
}

static int make_parts(struct xsp_recorder *r, const struct xsp_recorder_options *o)
{
	int rc = xsp_resolver_new(xsp_broker_opener(r->broker), &r->resolver);

	if (rc == 0 && names_frames(r))
		rc = make_frames(r, o);
	if (rc == 0 && copies_stacks(&o->attach))
		rc = xsp_javascript_new(xsp_broker_opener(r->broker), r->resolver, &r->javascript);
	if (rc == 0 && copies_stacks(&o->attach))
		rc = xsp_java_new(r->broker, r->resolver, &r->java);
	if (rc == 0 && copies_stacks(&o->attach))
		rc = xsp_unwinder_new(r->resolver, r->javascript, r->java, &r->unwinder);
	if (rc == 0 && o->selection.python)
		rc = xsp_pythons_new(r, &r->pythons);
	if (rc == 0)
		rc = xsp_host_functions_new(r->writer, r->resolver, &r->host_functions);
	if (rc == 0)
		rc = xsp_operators_new(r);
	if (rc == 0)
		rc = xsp_children_new(r);
	return rc < 0 ? rc : xsp_overhead_new(r);
}

int xsp_recorder_new(const struct xsp_recorder_options *options, struct xsp_recorder **out,
		     struct xsp_error *err)
{
	struct xsp_recorder *r = calloc(1, sizeof(*r));
	if (r == NULL)
		return xsp_out_of_memory(err);
	r->options = *options;
	r->plan.selection = options->selection;
	r->plan.exit_by_return = options->exit_by_return;
	r->plan.exit_by_site = options->exit_by_site;
	r->profiling = options->profile;
	if (options->again) /* the first one has had its time */
		r->options.attach_limit_ns /= 4;
	uint64_t start = r->begun_ns = xsp_now_ns();
	xsp_recorder_limit(r, false);
	r->broker = options->broker;
	r->plan.progress = options->progress;
	r->plan.progress_ctx = options->note_ctx;
	xsp_broker_on_wait(r->broker, options->stopped, options->note_ctx);
	/* first, as it is a copy of this process: small, without the rings */
	int rc = start_planner(r, err);
	if (rc == 0) {
		xsp_look_begin(r);
		look_ahead(r);
		rc = xsp_broker_load(r->broker, options->again, err);
	}
	r->times.load_ms = since_ms(start);
	if (rc == 0 && xsp_is_scheduled(&options->schedule) && !options->profile &&
	    xsp_broker_method(r->broker) != XSP_ATTACH_UPROBE_MULTI)
		rc = xsp_error_set(
			err, -EOPNOTSUPP, XSP_STATUS_KERNEL,
			"--windows: this kernel cannot put probes in again (Linux 6.6 can): leave it out, or add --profile, which has none");
	if (rc == 0) {
		xsp_defaults_loaded(r);
		start = xsp_now_ns();
		int failed = xsp_broker_calibrate(r->broker, &r->plan.costs);
		if (failed == -EINTR) /* it goes on, and its events would look like the target's */
			rc = xsp_error_set(err, failed, XSP_STATUS_FAILED, "interrupted");
		else if (failed < 0)
			xsp_recorder_note(
				r,
				"the price of a probe could not be measured here; estimates use defaults");
		r->times.calibrate_ms = since_ms(start);
		r->begun_ns = xsp_now_ns();
		if (rc == 0)
			rc = create_capture(r, err);
	}
	if (rc == 0 && make_parts(r, options) < 0)
		rc = xsp_out_of_memory(err);
	if (rc == 0)
		rc = open_rings(r, err);
	if (rc == 0)
		rc = open_sideband(r, err);
	if (rc < 0) {
		xsp_recorder_free(r);
		return rc;
	}
	if (xsp_sideband_mode(r->sideband) == XSP_SIDEBAND_POLL)
		xsp_recorder_note(r, "%s", xsp_sideband_reason(r->sideband));
	*out = r;
	return 0;
}

void xsp_recorder_free(struct xsp_recorder *r)
{
	if (r == NULL)
		return;
	if (r->started && !r->finished)
		xsp_recorder_finish(r, NULL);
	xsp_planner_free(r->planner);
	xsp_drain_free(r->drain);
	xsp_operators_free(r);
	xsp_frames_free(r->frames);
	xsp_sources_free(r->sources);
	xsp_unwinder_free(r->unwinder);
	xsp_javascript_free(r->javascript);
	xsp_java_free(r->java);
	xsp_host_functions_free(r->host_functions);
	xsp_pythons_free(r->pythons);
	xsp_resolver_free(r->resolver);
	xsp_recorder_arguments_free(r->arguments);
	xsp_children_free(r);
	xsp_overhead_free(r);
	xsp_look_free(r);
	xsp_sideband_free(r->sideband);
	xsp_capture_abandon(r->writer);
	xsp_flight_free(r);
	xsp_new_file_free(r->file);
	for (size_t i = 0; i < r->process_count; i++) {
		xsp_process_free(r->processes[i].process);
		xsp_recorder_free_modules(&r->processes[i]);
		if (r->processes[i].status >= 0)
			close(r->processes[i].status);
	}
	free(r->processes);
	free(r->prices);
	xsp_plan_clear(&r->plan);
	free(r);
}

static int cannot_go_on(const struct xsp_recorder *r, int rc, struct xsp_error *err)
{
	if (xsp_broker_is_gone(r->broker))
		return xsp_broker_gone(r->broker, err);
	return xsp_error_set(
		err, rc, XSP_STATUS_OUTPUT,
		"%s cannot be written on (%s): the recording ends here, and what follows is of what came before",
		r->options.capture_named ? r->options.capture_path : "the capture", strerror(-rc));
}

int xsp_recorder_start(struct xsp_recorder *r, struct xsp_error *err)
{
	r->start_ns = r->part_ns = xsp_now_ns();
	r->rate_time_ns = r->last_flush_ns = r->start_ns;
	r->started = true;
	int rc = xsp_capture_flush(r->writer);
	if (rc < 0)
		return xsp_error_set(err, rc, XSP_STATUS_OUTPUT, "%s cannot be written: %s",
				     xsp_recorder_display_path(r), strerror(-rc));
	/* from here on the user waits for the end of a recording, but not for late files */
	xsp_broker_on_wait(r->broker, NULL, NULL);
	xsp_planner_forget_looks(r->planner);
	xsp_look_free(r);
	r->plan.progress = NULL;
	rc = xsp_broker_ready(r->broker, r->plan.probes);
	if (rc == 0)
		rc = xsp_broker_activate(r->broker, true);
	if (r->agents != NULL)
		xsp_agent_rings_start(r->agents, r->start_ns);
	xsp_overhead_start(r);
	if (rc == 0)
		rc = xsp_recorder_measure(r, true);
	return rc < 0 ? cannot_go_on(r, rc, err) : 0;
}

/* ---- turning ---- */

/* So short that the rings fill to at most an eighth at the last rate. */
static int nap_ms(const struct xsp_recorder *r, int wait_ms)
{
	/* as many as fit at their largest: 32 + 8 bytes, or the reserved size of sections */
	double room = (double)xsp_broker_ring_bytes(r->broker) / 8 /
		      (double)(40 + xsp_broker_detail_bytes(r->broker));

	if (r->rate > 0 && room / r->rate * 1000 < wait_ms)
		wait_ms = (int)(room / r->rate * 1000);
	if (r->agents != NULL)
		wait_ms = xsp_agent_rings_nap_ms(r->agents, wait_ms);
	return wait_ms < 1 ? 1 : wait_ms;
}

static void update_rate(struct xsp_recorder *r)
{
	const struct xsp_drain_totals *sum = xsp_drain_totals(r->drain);
	uint64_t now = xsp_now_ns();
	double seconds = (double)(now - r->rate_time_ns) * 1e-9;

	if (seconds < 0.25)
		return;
	r->rate = (double)(sum->events - r->rate_events) / seconds;
	r->overhead = (double)(sum->cost_ns - r->rate_cost_ns) * 1e-9 / seconds;
	r->rate_time_ns = now;
	r->rate_events = sum->events;
	r->rate_cost_ns = sum->cost_ns;
}

static size_t events_a_turn(const struct xsp_recorder *r)
{
	return r->overheads != NULL ? EVENTS_A_TURN_BRAKED : EVENTS_A_TURN;
}

/* Moves pending events, and adds born processes. The number of events or a negative errno. */
static long read_events(struct xsp_recorder *r)
{
	long moved = xsp_drain_run(r->drain, events_a_turn(r));

	if (moved >= 0)
		xsp_children_attach(r);
	return moved;
}

int xsp_recorder_write_out(struct xsp_recorder *r)
{
	r->last_flush_ns = xsp_now_ns();
	int rc = xsp_recorder_put_stats(r);
	if (rc == 0)
		rc = xsp_recorder_put_gaps(r);
	if (rc == 0)
		rc = xsp_capture_put_clock(r->writer);
	return rc < 0 ? rc : xsp_capture_flush(r->writer);
}

int xsp_recorder_flush(struct xsp_recorder *r, uint64_t *until_ns, struct xsp_error *err)
{
	*until_ns = xsp_now_ns();
	const long moved = read_events(r);
	int rc = moved < 0 ? (int)moved : 0;

	if (rc == 0 && r->options.attach.waits)
		rc = xsp_recorder_put_times(r);
	if (rc == 0)
		rc = xsp_recorder_write_out(r);
	return rc < 0 ? cannot_go_on(r, rc, err) : 0;
}

int xsp_recorder_turn(struct xsp_recorder *r, int wait_ms, struct xsp_error *err)
{
	long moved = read_events(r);
	int rc = moved < 0 ? (int)moved : xsp_overhead_turn(r);

	if (rc == 0)
		rc = xsp_recorder_follow_sideband(r);

	if (rc == 0 && r->process_count == 0) { /* the last one may have children */
		moved = read_events(r);
		rc = moved < 0 ? (int)moved : 0;
	}

	if (rc == 0)
		rc = xsp_recorder_measure(r, false);
	if (rc == 0 && r->frames != NULL)
		rc = xsp_frames_resolve(r->frames, FRAMES_NS, false);
	if (rc == 0 && r->sources != NULL)
		rc = xsp_sources_turn(r->sources, r->planner, false);
	if (rc == 0 && r->pythons != NULL)
		rc = xsp_pythons_turn(r->pythons);
	if (rc == 0)
		rc = xsp_flight_turn(r);
	update_rate(r);
	/* the first events at once: from then on the capture is worth keeping */
	bool first = !r->flushed_events && xsp_drain_totals(r->drain)->events > 0;
	r->flushed_events |= first;
	if (rc == 0 && (first || xsp_now_ns() - r->last_flush_ns >= FLUSH_NS))
		rc = xsp_recorder_write_out(r);
	if (rc < 0)
		return cannot_go_on(r, rc, err);
	if (moved < (long)events_a_turn(r) && r->process_count > 0)
		xsp_children_wait(r, nap_ms(r, wait_ms));
	return (int)r->process_count;
}

/* ---- queries ---- */

struct xsp_new_file *xsp_recorder_file(const struct xsp_recorder *r)
{
	return r->file;
}

bool xsp_recorder_has_events(struct xsp_recorder *r, bool flush)
{
	if (flush)
		xsp_capture_flush(r->writer); /* finishing reports the error */
	return xsp_capture_written(r->writer) > 0;
}

bool xsp_recorder_has_calls(const struct xsp_recorder *r)
{
	return xsp_drain_totals(r->drain)->calls > 0;
}

size_t xsp_recorder_processes(const struct xsp_recorder *r)
{
	return r->process_count;
}

double xsp_recorder_seconds(const struct xsp_recorder *r)
{
	uint64_t until = r->finished ? r->end_ns : xsp_now_ns();

	return r->started ? (double)(until - r->start_ns) * 1e-9 : 0;
}

uint64_t xsp_recorder_bytes(const struct xsp_recorder *r)
{
	return r->writer != NULL ? xsp_capture_bytes(r->writer) : 0;
}

void xsp_recorder_status(struct xsp_recorder *r, struct xsp_recorder_status *s)
{
	struct xsp_attach_counters c = {0};
	struct xsp_capture_stats agents = {0};

	xsp_broker_counters(r->broker, false, &c);
	xsp_operators_count(r, &agents);
	*s = (struct xsp_recorder_status){
		.seconds = xsp_recorder_seconds(r),
		.recorded_ns = (uint64_t)(1e9 * xsp_recorder_seconds(r)),
		.events = xsp_drain_totals(r->drain)->events,
		.lost = c.lost_entries + c.lost_exits + c.lost_other + c.missed +
			agents.lost_entries + agents.lost_exits + agents.lost_other,
		.bytes = r->flight != NULL ? xsp_recent_totals(xsp_flight_recent(r)).bytes
					   : xsp_recorder_bytes(r),
		.events_per_second = r->rate,
		.overhead = r->overhead,
		.processes = r->process_count,
		.functions = xsp_recorder_wanted(r),
		.sites = r->has_wanted ? r->plan.sites : 0,
	};
	xsp_overhead_status(r, s);
}

const struct xsp_recorder_times *xsp_recorder_times(const struct xsp_recorder *r)
{
	return &r->times;
}

const struct xsp_plan *xsp_recorder_plan(const struct xsp_recorder *r)
{
	return &r->plan;
}
