/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/recorder_private.h"
#include "base/clock.h"

#include "attach/planner.h"
#include "target/perf_map.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#define FLUSH_NS 1000000000ULL
/* A turn names addresses for so long; the rings must not wait for it. */
#define FRAMES_NS 2000000ULL
#define FRAMES_LAST_NS 3000000000ULL /* ... and at the end */
/* A turn moves at most so many events of each ring, so that signals and the clock get their turn. */
#define EVENTS_A_TURN 500000
#define EVENTS_A_TURN_BRAKED 100000 /* ... and the brake its look */

static double since_ms(uint64_t start)
{
	return (double)(xsp_now_ns() - start) * 1e-6;
}

/* ---- setting up ---- */

/* "name,name": those that are perf events have an '*' behind them. */
static void list_counters(const struct xsp_recorder *r, char *text, size_t size)
{
	const struct xsp_attach_options *o = &r->options.attach;
	size_t at = 0;

	text[0] = '\0';
	for (size_t i = 0; i < o->counter_count && at < size; i++)
		at += (size_t)snprintf(text + at, size - at, "%s%s%s", i > 0 ? "," : "",
				       o->counters[i].name,
				       o->counters[i].kind == XSP_COUNTER_PERF ? "*" : "");
}

/* "cpu-clock 99": what is counted between two, and how many a second. */
static int put_profile_infos(struct xsp_recorder *r)
{
	const struct xsp_attach_options *o = &r->options.attach;
	char waits[24] = "off", stacks[32] = "off", samples[40] = "off", heap[24] = "off";

	if (o->waits) /* ns: the least of one with an event */
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
		{"gpu", o->selection.gpu != 0 ? "wanted" : "off"},
		{"counters", counters},
	};
	int rc = xsp_capture_put_clock(r->writer);
	for (size_t i = 0; i < sizeof(infos) / sizeof(infos[0]) && rc == 0; i++)
		rc = xsp_capture_put_info(r->writer, infos[i].key, infos[i].value);
	return rc < 0 ? rc : put_profile_infos(r);
}

/* In messages. */
static const char *display_path(const struct xsp_recorder *r)
{
	return r->options.capture_path != NULL ? r->options.capture_path : "the capture in memory";
}

static int create_capture(struct xsp_recorder *r, struct xsp_error *err)
{
	const struct xsp_recorder_options *o = &r->options;
	struct stat st;

	if (o->capture_named && lstat(o->capture_path, &st) == 0 && !S_ISREG(st.st_mode))
		return xsp_error_set(
			err, -EEXIST, XSP_STATUS_OUTPUT,
			"cannot write %s: it is there and is not a regular file; links "
			"and devices are never written through, give another name",
			o->capture_path);
	int rc = o->capture_path != NULL ? xsp_new_file_open(o->capture_path, NULL, &r->file)
					 : xsp_new_file_in_memory(&r->file);
	if (rc < 0)
		return xsp_error_set(err, rc, XSP_STATUS_OUTPUT, "cannot create %s: %s",
				     display_path(r), strerror(-rc));
	int fd = fcntl(xsp_new_file_descriptor(r->file), F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return xsp_error_set(err, -errno, XSP_STATUS_FAILED, "out of file descriptors");
	rc = xsp_capture_create(fd, display_path(r), &r->writer, err);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	rc = put_infos(r);
	if (rc < 0)
		return xsp_error_set(err, rc, XSP_STATUS_OUTPUT, "%s cannot be written: %s",
				     display_path(r), strerror(-rc));
	return 0;
}

static int open_rings(struct xsp_recorder *r, struct xsp_error *err)
{
	int fds[64];
	size_t count = xsp_broker_rings(r->broker, fds, 64);

	int rc = xsp_drain_new(fds, count, xsp_broker_ring_bytes(r->broker), r->writer,
			       xsp_children_task, xsp_recorder_resolve, r, &r->drain, err);
	if (rc == 0)
		xsp_drain_set_gpu(r->drain, xsp_recorder_gpu_event);
	if (rc == 0)
		xsp_drain_set_sections(r->drain, xsp_recorder_sections);
	if (rc == 0 && r->pythons != NULL)
		xsp_drain_set_python(r->drain, xsp_pythons_see);
	if (rc == 0)
		xsp_drain_discard(r->drain);
	if (rc == 0)
		xsp_drain_set_cold(r->drain, r->plan.costs.cold_ns);
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

/* While the programs are loaded, which takes one processor as long as this others. */
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

	if (xsp_broker_side_events(r->broker, &events, &o.event_count) == 0)
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
	uint64_t start = xsp_now_ns();
	r->broker = options->broker;
	r->plan.progress = options->progress;
	r->plan.progress_ctx = options->note_ctx;
	xsp_broker_on_wait(r->broker, options->stopped, options->note_ctx);
	/* first, as it is a copy of this process: small, without the rings */
	int rc = start_planner(r, err);
	if (rc == 0) {
		look_ahead(r);
		rc = xsp_broker_load(r->broker, options->again, err);
	}
	r->times.load_ms = since_ms(start);
	if (rc == 0) {
		xsp_defaults_loaded(r);
		start = xsp_now_ns();
		int failed = xsp_broker_calibrate(r->broker, &r->plan.costs);
		if (failed ==
		    -EINTR) /* it goes on, and its events would be taken for the target's */
			rc = xsp_error_set(err, failed, XSP_STATUS_FAILED, "interrupted");
		else if (failed < 0)
			xsp_recorder_note(r, "the price of a probe could not be measured here; "
					     "estimates use defaults");
		r->times.calibrate_ms = since_ms(start);
		if (rc == 0)
			rc = create_capture(r, err);
	}
	if (rc == 0 && xsp_resolver_new(xsp_broker_opener(r->broker), &r->resolver) < 0)
		rc = xsp_out_of_memory(err);
	if (rc == 0 && names_frames(r) && xsp_frames_new(r->writer, r->resolver, &r->frames) < 0)
		rc = xsp_out_of_memory(err);
	if (rc == 0 && copies_stacks(&options->attach) &&
	    xsp_unwinder_new(r->resolver, &r->unwinder) < 0)
		rc = xsp_out_of_memory(err);
	if (rc == 0 && options->selection.python && xsp_pythons_new(r, &r->pythons) < 0)
		rc = xsp_out_of_memory(err);
	if (rc == 0 && xsp_host_functions_new(r->writer, r->resolver, &r->host_functions) < 0)
		rc = xsp_out_of_memory(err);
	if (rc == 0)
		rc = open_rings(r, err);
	if (rc == 0 && xsp_children_new(r) < 0)
		rc = xsp_out_of_memory(err);
	if (rc == 0) {
		xsp_drain_set_frames(r->drain, r->frames);
		xsp_drain_set_unwinder(r->drain, r->unwinder);
	}
	if (rc == 0 && xsp_overhead_new(r) < 0)
		rc = xsp_out_of_memory(err);
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
	xsp_frames_free(r->frames);
	xsp_unwinder_free(r->unwinder);
	xsp_host_functions_free(r->host_functions);
	xsp_pythons_free(r->pythons);
	xsp_resolver_free(r->resolver);
	xsp_recorder_arguments_free(r->arguments);
	xsp_children_free(r);
	xsp_overhead_free(r);
	xsp_sideband_free(r->sideband);
	xsp_capture_abandon(r->writer);
	xsp_new_file_free(r->file);
	for (size_t i = 0; i < r->process_count; i++) {
		xsp_process_free(r->processes[i].process);
		free(r->processes[i].attached);
		if (r->processes[i].status >= 0)
			close(r->processes[i].status);
	}
	free(r->processes);
	free(r->prices);
	xsp_plan_clear(&r->plan);
	free(r);
}

int xsp_recorder_start(struct xsp_recorder *r, struct xsp_error *err)
{
	r->start_ns = xsp_now_ns();
	r->rate_time_ns = r->last_flush_ns = r->start_ns;
	r->started = true;
	int rc = xsp_capture_flush(r->writer);
	if (rc < 0)
		return xsp_error_set(err, rc, XSP_STATUS_OUTPUT, "%s cannot be written: %s",
				     display_path(r), strerror(-rc));
	/* from here on the end of a recording is waited for, whoever wants it to end; not for files that come late */
	xsp_broker_on_wait(r->broker, NULL, NULL);
	xsp_planner_forget_looks(r->planner);
	r->plan.progress = NULL;
	rc = xsp_broker_ready(r->broker, r->plan.probes);
	if (rc == 0)
		rc = xsp_broker_activate(r->broker, true);
	xsp_overhead_start(r);
	if (rc == 0)
		rc = xsp_recorder_measure(r, true);
	return rc < 0 ? xsp_error_set(err, rc, XSP_STATUS_FAILED,
				      "xsptrace's privileged process has ended unexpectedly")
		      : 0;
}

/* ---- turning ---- */

/* So short that the rings fill to no more than an eighth at the rate seen last. */
static int nap_ms(const struct xsp_recorder *r, int wait_ms)
{
	/* as many as fit of those with most room: 32 + 8 bytes, or what is reserved for sections */
	double room = (double)xsp_broker_ring_bytes(r->broker) / 8 /
		      (double)(40 + xsp_broker_detail_bytes(r->broker));

	if (r->rate > 0 && room / r->rate * 1000 < wait_ms)
		wait_ms = (int)(room / r->rate * 1000);
	return wait_ms < 1 ? 1 : wait_ms;
}

static void update_rate(struct xsp_recorder *r)
{
	uint64_t now = xsp_now_ns(), events = xsp_drain_events(r->drain),
		 cost = xsp_drain_cost_ns(r->drain);
	double seconds = (double)(now - r->rate_time_ns) * 1e-9;

	if (seconds < 0.25)
		return;
	r->rate = (double)(events - r->rate_events) / seconds;
	r->overhead = (double)(cost - r->rate_cost_ns) * 1e-9 / seconds;
	r->rate_time_ns = now;
	r->rate_events = events;
	r->rate_cost_ns = cost;
}

static size_t events_a_turn(const struct xsp_recorder *r)
{
	return r->overheads != NULL ? EVENTS_A_TURN_BRAKED : EVENTS_A_TURN;
}

static int broker_gone(struct xsp_error *err)
{
	return xsp_error_set(
		err, -EPIPE, XSP_STATUS_FAILED,
		"xsptrace's privileged process has ended unexpectedly: the recording ends "
		"here, its guardian takes the probes out");
}

/* What has come, and those that it says are born. The number of events or a negative errno. */
static long read_events(struct xsp_recorder *r)
{
	long moved = xsp_drain_run(r->drain, events_a_turn(r));

	if (moved >= 0)
		xsp_children_attach(r);
	return moved;
}

static int flush(struct xsp_recorder *r)
{
	r->last_flush_ns = xsp_now_ns();
	int rc = xsp_recorder_put_stats(r);
	if (rc == 0)
		rc = xsp_recorder_put_gaps(r);
	if (rc == 0)
		rc = xsp_capture_put_clock(r->writer);
	return rc < 0 ? rc : xsp_capture_flush(r->writer);
}

static int cannot_go_on(const struct xsp_recorder *r, int rc, struct xsp_error *err)
{
	if (xsp_broker_is_gone(r->broker))
		return broker_gone(err);
	return xsp_error_set(
		err, rc, XSP_STATUS_OUTPUT,
		"%s cannot be written on (%s): the recording ends here, and what follows "
		"is of what came before",
		r->options.capture_named ? r->options.capture_path : "the capture", strerror(-rc));
}

int xsp_recorder_flush(struct xsp_recorder *r, uint64_t *until_ns, struct xsp_error *err)
{
	*until_ns = xsp_now_ns();
	const long moved = read_events(r);
	int rc = moved < 0 ? (int)moved : 0;

	if (rc == 0 && r->options.attach.waits)
		rc = xsp_recorder_put_times(r);
	if (rc == 0)
		rc = flush(r);
	return rc < 0 ? cannot_go_on(r, rc, err) : 0;
}

int xsp_recorder_turn(struct xsp_recorder *r, int wait_ms, struct xsp_error *err)
{
	long moved = read_events(r);
	int rc = moved < 0 ? (int)moved : xsp_overhead_turn(r);

	if (rc == 0)
		rc = xsp_recorder_follow_sideband(r);

	if (rc == 0 && r->process_count == 0) { /* the last one may have left children */
		moved = read_events(r);
		rc = moved < 0 ? (int)moved : 0;
	}

	if (rc == 0)
		rc = xsp_recorder_measure(r, false);
	if (rc == 0 && r->frames != NULL)
		rc = xsp_frames_resolve(r->frames, FRAMES_NS, false);
	if (rc == 0 && r->pythons != NULL)
		rc = xsp_pythons_turn(r->pythons);
	update_rate(r);
	/* the first events at once: from then on there is something to keep */
	bool first = !r->flushed_events && xsp_drain_events(r->drain) > 0;
	r->flushed_events |= first;
	if (rc == 0 && (first || xsp_now_ns() - r->last_flush_ns >= FLUSH_NS))
		rc = flush(r);
	if (rc < 0)
		return cannot_go_on(r, rc, err);
	if (moved < (long)events_a_turn(r) && r->process_count > 0)
		xsp_children_wait(r, nap_ms(r, wait_ms));
	return (int)r->process_count;
}

/* ---- finishing ---- */

int xsp_recorder_put_stats(struct xsp_recorder *r)
{
	struct xsp_attach_counters c;
	struct rusage usage = {0};
	int rc = xsp_broker_counters(r->broker, true, &c);

	if (rc < 0)
		return rc;
	xsp_recorder_update_price(r, &c);
	if (r->pythons != NULL)
		xsp_pythons_count_torn(r->pythons, c.python_torn);
	if (c.stacks_torn > r->gaps[XSP_GAP_STACKS].count)
		xsp_recorder_gap(r, XSP_GAP_STACKS, c.stacks_torn - r->gaps[XSP_GAP_STACKS].count,
				 "as their memory was not there");
	if (c.heap_unseen > r->gaps[XSP_GAP_ALLOCATIONS].count)
		xsp_recorder_gap(r, XSP_GAP_ALLOCATIONS,
				 c.heap_unseen - r->gaps[XSP_GAP_ALLOCATIONS].count,
				 "of the sample, as their calls ended in a jump to code that is "
				 "not known");
	getrusage(RUSAGE_SELF, &usage);
	double silent = r->overheads != NULL
				? (double)(xsp_overhead_unseen_ns(r) + c.unseen_ns)
				: (double)c.silent_hits * r->plan.costs.ns[XSP_SITE_EMULATED];
	struct xsp_capture_stats s = {
		.events = xsp_drain_events(r->drain),
		.lost_entries = c.lost_entries,
		.lost_exits = c.lost_exits,
		.lost_other = c.lost_other,
		.lost_names = c.lost_names + r->unread_names,
		.filtered = c.filtered,
		.silent_hits = c.silent_hits,
		.missed_hits = c.missed,
		.untracked = c.untracked,
		.probes_cost_ns = xsp_drain_cost_ns(r->drain) + (uint64_t)silent,
		.recorder_cpu_ns =
			((uint64_t)usage.ru_utime.tv_sec + (uint64_t)usage.ru_stime.tv_sec) *
				1000000000ULL +
			((uint64_t)usage.ru_utime.tv_usec + (uint64_t)usage.ru_stime.tv_usec) *
				1000ULL,
	};
	return xsp_capture_put_stats(r->writer, &s);
}

int xsp_recorder_put_losses(struct xsp_recorder *r)
{
	struct xsp_attach_counters c;
	int rc = xsp_broker_counters(r->broker, false, &c);

	if (rc < 0 || c.lost_entries + c.lost_exits == 0)
		return rc;
	for (uint32_t probe = 0; probe < r->plan.probes && rc == 0; probe++) {
		struct xsp_capture_lost l = {.probe = probe};
		if (xsp_broker_lost(r->broker, probe, &l.entries, &l.exits) == 0 &&
		    l.entries + l.exits > 0)
			rc = xsp_capture_put_lost(r->writer, &l);
	}
	return rc;
}

static int drain_all(struct xsp_recorder *r)
{
	long moved;

	do
		moved = xsp_drain_run(r->drain, EVENTS_A_TURN);
	while (moved > 0);
	return (int)moved;
}

/* The agents hand over what they have while the probe that takes it is still there. */
static int stop_agents(struct xsp_recorder *r)
{
	uint64_t asked = xsp_now_ns();
	int rc = 0;

	xsp_broker_gpu_stop(r->broker);
	while (rc == 0 && !xsp_recorder_agents_stopped(r, xsp_now_ns() - asked)) {
		poll(NULL, 0, 5);
		rc = drain_all(r);
	}
	return rc;
}

static int put_samples(struct xsp_recorder *r)
{
	struct xsp_attach_counters c;
	char text[64];
	int rc = r->frames != NULL ? xsp_broker_counters(r->broker, false, &c) : 0;

	if (rc < 0 || r->options.attach.sample_hz == 0 || r->frames == NULL)
		return rc;
	snprintf(text, sizeof(text), "%llu %llu", (unsigned long long)c.samples,
		 (unsigned long long)c.samples_ns);
	return xsp_capture_put_info(r->writer, "sample costs", text);
}

static int put_gpu_losses(struct xsp_recorder *r)
{
	struct xsp_attach_counters c;
	char text[32];
	int rc = xsp_broker_counters(r->broker, false, &c);

	if (rc < 0 || c.lost_gpu_records == 0)
		return rc;
	snprintf(text, sizeof(text), "%llu", (unsigned long long)c.lost_gpu_records);
	return xsp_capture_put_info(r->writer, "gpu records lost", text);
}

void xsp_recorder_end(struct xsp_recorder *r)
{
	if (r->ended)
		return;
	r->ended = true;
	xsp_planner_on_wait(r->planner, NULL, NULL);
	xsp_broker_activate(r->broker, false);
	xsp_recorder_measure(r, true); /* what cannot be written is told of at the finish */
	r->end_ns = xsp_now_ns();
}

static int put_pythons(struct xsp_recorder *r)
{
	return r->pythons != NULL ? xsp_pythons_put_info(r->pythons) : 0;
}

/* What there was no room or no time for. */
static void note_unnamed(struct xsp_recorder *r)
{
	if (r->frames != NULL && xsp_resolver_left_maps(r->resolver))
		xsp_recorder_note(r,
				  "perf maps of the target were not read to their end: at "
				  "most %zu MiB are; code that is named further on is "
				  "[generated code]",
				  XSP_PERF_MAP_BYTES >> 20);
	if (r->frames != NULL && xsp_resolver_left_processes(r->resolver))
		xsp_recorder_note(r,
				  "perf maps of more than %u processes: those of the others were "
				  "not read; what they name is [generated code]",
				  XSP_RESOLVER_MAPS);
	if (r->resolver != NULL && xsp_resolver_left_tables(r->resolver))
		xsp_recorder_note(r,
				  "symbols and unwind tables of the target's files would take more "
				  "than %llu MiB, or too many descriptors: those beyond were not "
				  "read; their functions are called FILE+0xADDRESS, and stacks may "
				  "end there",
				  XSP_RESOLVER_TABLES_BYTES >> 20);
	if (r->resolver != NULL && xsp_resolver_left_mappings(r->resolver))
		xsp_recorder_note(r,
				  "the target mapped more than %u libraries: those that came later "
				  "were not remembered; their functions have no names, and stacks "
				  "may end there",
				  XSP_RESOLVER_MAPPINGS);
	if (r->frames != NULL && xsp_frames_left(r->frames))
		xsp_recorder_note(r,
				  "stacks hold more than %u different addresses: those that came "
				  "later have no names",
				  XSP_FRAMES_MAX);
	if (r->frames != NULL && xsp_frames_unnamed(r->frames) > 0)
		xsp_recorder_note(r,
				  "%zu addresses in stacks have no names: at the end these are "
				  "looked up for %llu s at most",
				  xsp_frames_unnamed(r->frames), FRAMES_LAST_NS / 1000000000);
}

int xsp_recorder_finish(struct xsp_recorder *r, struct xsp_error *err)
{
	static int (*const last[])(struct xsp_recorder * r) = {
		xsp_overhead_finish,	xsp_recorder_put_losses,
		xsp_recorder_put_stats, put_samples,
		put_gpu_losses,		xsp_call_sites_put_info,
		xsp_children_put_infos, put_pythons,
		xsp_recorder_put_late,	xsp_recorder_put_changed,
		xsp_recorder_put_gaps,
	};

	if (r->finished)
		return 0;
	r->finished = true;
	xsp_recorder_end(r);
	xsp_recorder_look_for_dropped(r);
	int rc = xsp_overhead_stop(r);
	if (rc == 0)
		rc = drain_all(r);
	if (rc == 0)
		rc = stop_agents(r);
	if (rc == 0 && (r->options.attach.sample_hz > 0 || r->options.attach.wait_stacks))
		rc = xsp_recorder_put_kernel_functions(r);
	uint64_t start = xsp_now_ns();
	xsp_broker_detach(r->broker); /* waits until no program runs any more */
	r->times.detach_ms = since_ms(start);
	if (rc == 0)
		rc = drain_all(r);
	if (rc == 0 && r->frames != NULL)
		rc = xsp_frames_resolve(r->frames, FRAMES_LAST_NS, true);
	if (rc == 0 && r->frames != NULL)
		rc = xsp_frames_put_lines(r->frames, r->planner);
	note_unnamed(r);
	if (rc == 0 && xsp_overhead_is_on(r))
		rc = xsp_recorder_put_held_back(r);
	for (size_t i = 0; rc == 0 && i < sizeof(last) / sizeof(last[0]); i++)
		rc = last[i](r);
	if (rc == 0)
		rc = xsp_capture_put_clock(r->writer);
	int end = xsp_capture_finish(r->writer, r->start_ns, r->end_ns, err);
	r->writer = NULL;
	if (rc < 0 && xsp_broker_is_gone(r->broker))
		return broker_gone(err);
	if (rc < 0)
		return xsp_error_set(err, rc, XSP_STATUS_OUTPUT,
				     "%s is not complete (%s): what is in it can be read",
				     display_path(r), strerror(-rc));
	return end;
}

/* ---- what it knows ---- */

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
	return xsp_drain_calls(r->drain) > 0;
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

void xsp_recorder_status(struct xsp_recorder *r, struct xsp_recorder_status *s)
{
	struct xsp_attach_counters c = {0};

	xsp_broker_counters(r->broker, false, &c);
	*s = (struct xsp_recorder_status){
		.seconds = xsp_recorder_seconds(r),
		.recorded_ns = (uint64_t)(1e9 * xsp_recorder_seconds(r)),
		.events = xsp_drain_events(r->drain),
		.lost = c.lost_entries + c.lost_exits + c.lost_other + c.missed,
		.bytes = r->writer ? xsp_capture_bytes(r->writer) : 0,
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

size_t xsp_recorder_wanted(const struct xsp_recorder *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->plan.count; i++)
		n += r->plan.modules[i]->wanted;
	return n;
}
