/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/recorder_private.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define FLUSH_NS 1000000000ULL
/* A turn names addresses for so long; the rings must not wait for it. */
#define FRAMES_NS 2000000ULL
#define FRAMES_LAST_NS 3000000000ULL /* ... and at the end */
/* A turn moves at most so many events of each ring, so that signals and the clock get their turn. */
#define EVENTS_A_TURN 500000

uint64_t xsp_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static double since_ms(uint64_t start)
{
	return (double)(xsp_now_ns() - start) * 1e-6;
}

void xsp_recorder_note(struct xsp_recorder *r, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	if (r->options.note == NULL)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	r->options.note(r->options.note_ctx, text);
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

static int put_infos(struct xsp_recorder *r)
{
	const struct xsp_recorder_options *o = &r->options;
	struct utsname u = {0};
	char costs[128], filters[128], counters[XSP_COUNTERS_MAX * 48];

	uname(&u);
	snprintf(costs, sizeof(costs), "nop5 %.0f ns, emulated %.0f ns, single-stepped %.0f ns",
		 r->plan.costs.ns[XSP_SITE_NOP5], r->plan.costs.ns[XSP_SITE_EMULATED],
		 r->plan.costs.ns[XSP_SITE_SINGLESTEP]);
	snprintf(filters, sizeof(filters),
		 "min-duration %llu ns, max-depth %u, threads %zu, names %zu",
		 (unsigned long long)o->attach.min_duration_ns, o->attach.max_depth,
		 o->attach.tid_count, o->attach.comm_count);
	list_counters(r, counters, sizeof(counters));
	const struct {
		const char *key, *value;
	} infos[] = {
		{"version", XSP_VERSION},
		{"host", u.nodename},
		{"kernel", u.release},
		{"machine", u.machine},
		{"arguments", o->arguments ? o->arguments : ""},
		{"attach", xsp_attach_method(r->attach) == XSP_ATTACH_UPROBE_MULTI ? "uprobe_multi"
										   : "perf_event"},
		{"hit costs", costs},
		{"filters", filters},
		{"gpu", o->selection.gpu != 0 ? "wanted" : "off"},
		{"counters", counters},
	};
	int rc = xsp_capture_put_clock(r->writer);
	for (size_t i = 0; i < sizeof(infos) / sizeof(infos[0]) && rc == 0; i++)
		rc = xsp_capture_put_info(r->writer, infos[i].key, infos[i].value);
	return rc;
}

static int create_capture(struct xsp_recorder *r, struct xsp_error *err)
{
	const struct xsp_recorder_options *o = &r->options;
	int rc = xsp_capture_create(o->capture_path, -1, true, &r->writer, err);

	if (rc < 0)
		return rc;
	if (o->owner_uid != (uid_t)-1) {
		rc = xsp_capture_set_owner(r->writer, o->owner_uid, o->owner_gid);
		if (rc < 0)
			xsp_recorder_note(r, "%s stays root's: %s", o->capture_path, strerror(-rc));
	}
	rc = put_infos(r);
	if (rc < 0)
		return xsp_error_set(err, rc, XSP_STATUS_OUTPUT, "%s cannot be written: %s",
				     o->capture_path, strerror(-rc));
	return 0;
}

static int open_rings(struct xsp_recorder *r, struct xsp_error *err)
{
	int fds[64];
	size_t count = xsp_attach_rings(r->attach, fds, 64);

	int rc =
		xsp_drain_new(fds, count, r->writer, NULL, xsp_recorder_resolve, r, &r->drain, err);
	if (rc == 0)
		xsp_drain_set_gpu(r->drain, xsp_recorder_gpu_event);
	if (rc == 0)
		xsp_drain_set_sections(r->drain, xsp_recorder_sections);
	return rc;
}

int xsp_recorder_new(const struct xsp_recorder_options *options, struct xsp_recorder **out,
		     struct xsp_error *err)
{
	struct xsp_recorder *r = calloc(1, sizeof(*r));
	struct xsp_sideband_options sideband = {.follow = options->attach.follow};

	if (r == NULL)
		return xsp_error_set(err, -ENOMEM, XSP_STATUS_FAILED, "out of memory");
	r->options = *options;
	r->plan.selection = options->selection;
	r->plan.exit_by_return = options->exit_by_return;
	r->plan.exit_by_site = options->exit_by_site;
	uint64_t start = xsp_now_ns();
	int rc = xsp_attach_new(&options->attach, &r->attach, err);
	r->times.load_ms = since_ms(start);
	if (rc == 0) {
		start = xsp_now_ns();
		if (xsp_attach_calibrate(r->attach, &r->plan.costs) < 0)
			xsp_recorder_note(r, "the price of a probe could not be measured here; "
					     "estimates use defaults");
		r->times.calibrate_ms = since_ms(start);
		rc = create_capture(r, err);
	}
	if (rc == 0 && xsp_resolver_new(&r->resolver) < 0)
		rc = xsp_error_set(err, -ENOMEM, XSP_STATUS_FAILED, "out of memory");
	if (rc == 0 && (options->selection.details & XSP_DETAIL_STACKS) &&
	    xsp_frames_new(r->writer, r->resolver, &r->frames) < 0)
		rc = xsp_error_set(err, -ENOMEM, XSP_STATUS_FAILED, "out of memory");
	if (rc == 0 && xsp_stubs_new(r->writer, r->resolver, &r->stubs) < 0)
		rc = xsp_error_set(err, -ENOMEM, XSP_STATUS_FAILED, "out of memory");
	if (rc == 0)
		rc = open_rings(r, err);
	if (rc == 0)
		xsp_drain_set_frames(r->drain, r->frames);
	if (rc == 0)
		rc = xsp_sideband_new(&sideband, &r->sideband, err);
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
	xsp_attach_free(r->attach);
	xsp_drain_free(r->drain);
	xsp_frames_free(r->frames);
	xsp_stubs_free(r->stubs);
	xsp_resolver_free(r->resolver);
	xsp_recorder_arguments_free(r->arguments);
	xsp_sideband_free(r->sideband);
	xsp_capture_abandon(r->writer);
	for (size_t i = 0; i < r->process_count; i++) {
		xsp_process_free(r->processes[i].process);
		free(r->processes[i].attached);
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
				     r->options.capture_path, strerror(-rc));
	xsp_attach_activate(r->attach, true);
	return 0;
}

/* ---- turning ---- */

static size_t alive(const struct xsp_recorder *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->process_count; i++)
		n += r->processes[i].alive;
	return n;
}

/* Sleeps until the time is over, a signal comes, or a process ends. */
static void wait_a_little(const struct xsp_recorder *r, int wait_ms)
{
	struct pollfd fds[64];
	nfds_t n = 0;

	for (size_t i = 0; i < r->process_count && n < 64; i++)
		if (r->processes[i].alive)
			fds[n++] = (struct pollfd){.fd = xsp_process_pidfd(r->processes[i].process),
						   .events = POLLIN};
	poll(fds, n, wait_ms);
}

/* So short that the rings fill to no more than an eighth at the rate seen last. */
static int nap_ms(const struct xsp_recorder *r, int wait_ms)
{
	/* as many as fit of those with most room: 32 + 8 bytes, or what is reserved for sections */
	double room = (double)xsp_attach_ring_bytes(r->attach) / 8 /
		      (double)(40 + xsp_attach_detail_bytes(r->attach));

	if (r->rate > 0 && room / r->rate * 1000 < wait_ms)
		wait_ms = (int)(room / r->rate * 1000);
	return wait_ms < 1 ? 1 : wait_ms;
}

static void take_rate(struct xsp_recorder *r)
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

int xsp_recorder_turn(struct xsp_recorder *r, int wait_ms, struct xsp_error *err)
{
	long moved = xsp_drain_run(r->drain, EVENTS_A_TURN);
	int rc = moved < 0 ? (int)moved : xsp_recorder_follow_sideband(r);

	if (rc == 0 && r->frames != NULL)
		rc = xsp_frames_resolve(r->frames, FRAMES_NS);
	take_rate(r);
	if (rc == 0 && xsp_now_ns() - r->last_flush_ns >= FLUSH_NS) {
		r->last_flush_ns = xsp_now_ns();
		rc = xsp_recorder_put_stats(r);
		if (rc == 0)
			rc = xsp_capture_put_clock(r->writer);
		if (rc == 0)
			rc = xsp_capture_flush(r->writer);
	}
	if (rc < 0)
		return xsp_error_set(
			err, rc, XSP_STATUS_OUTPUT,
			"%s cannot be written (%s): the recording ends here; what is in it can be "
			"read with xsptrace export",
			r->options.capture_path, strerror(-rc));
	if (moved < EVENTS_A_TURN && alive(r) > 0)
		wait_a_little(r, nap_ms(r, wait_ms));
	return (int)alive(r);
}

/* ---- finishing ---- */

int xsp_recorder_put_stats(struct xsp_recorder *r)
{
	struct xsp_attach_counters c;
	struct rusage usage = {0};
	int rc = xsp_attach_counters(r->attach, &c);

	if (rc < 0)
		return rc;
	getrusage(RUSAGE_SELF, &usage);
	double silent = (double)c.silent_hits * r->plan.costs.ns[XSP_SITE_EMULATED];
	struct xsp_capture_stats s = {
		.events = xsp_drain_events(r->drain),
		.lost_entries = c.lost_entries,
		.lost_exits = c.lost_exits,
		.lost_other = c.lost_other,
		.lost_names = c.lost_names,
		.filtered = c.filtered,
		.silent_hits = c.silent_hits,
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
	int rc = xsp_attach_counters(r->attach, &c);

	if (rc < 0 || c.lost_entries + c.lost_exits == 0)
		return rc;
	for (uint32_t probe = 0; probe < r->plan.probes && rc == 0; probe++) {
		struct xsp_capture_lost l = {.probe = probe};
		if (xsp_attach_lost(r->attach, probe, &l.entries, &l.exits) == 0 &&
		    l.entries + l.exits > 0)
			rc = xsp_capture_put_lost(r->writer, &l);
	}
	return rc;
}

static pid_t owner_of(const struct xsp_recorder *r, uint32_t tid)
{
	char path[64];

	for (size_t i = 0; i < r->process_count; i++) {
		snprintf(path, sizeof(path), "/proc/%d/task/%u", (int)r->processes[i].pid, tid);
		if (access(path, F_OK) == 0)
			return r->processes[i].pid;
	}
	return 0;
}

/* A span that is still open and long enough already: its entry goes into the capture now. */
static int put_held_back(void *ctx, uint64_t time_ns, uint64_t sp, uint32_t tid, uint32_t probe)
{
	struct xsp_recorder *r = ctx;
	pid_t tgid = owner_of(r, tid);

	if (tgid == 0 || r->end_ns < time_ns ||
	    r->end_ns - time_ns < r->options.attach.min_duration_ns)
		return 0;
	struct xsp_event e = {
		.time_ns = time_ns,
		.sp = sp,
		.tid = tid,
		.tgid = (uint32_t)tgid,
		.probe = probe,
		.kind = XSP_EVENT_ENTRY,
		.flags = XSP_EVENT_SP_EXACT | XSP_EVENT_REPLAYED,
		.size = sizeof(e),
	};
	size_t rings = xsp_attach_rings(r->attach, NULL, 0);
	return xsp_capture_put_event(r->writer, tid & (unsigned)(rings - 1), &e, sizeof(e));
}

int xsp_recorder_put_held_back(struct xsp_recorder *r)
{
	return xsp_attach_held_back(r->attach, put_held_back, r);
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

	xsp_attach_gpu_stop(r->attach);
	while (rc == 0 && !xsp_recorder_agents_stopped(r, xsp_now_ns() - asked)) {
		poll(NULL, 0, 5);
		rc = drain_all(r);
	}
	return rc;
}

static int put_gpu_losses(struct xsp_recorder *r)
{
	struct xsp_attach_counters c;
	char text[32];
	int rc = xsp_attach_counters(r->attach, &c);

	if (rc < 0 || c.lost_gpu_records == 0)
		return rc;
	snprintf(text, sizeof(text), "%llu", (unsigned long long)c.lost_gpu_records);
	return xsp_capture_put_info(r->writer, "gpu records lost", text);
}

int xsp_recorder_finish(struct xsp_recorder *r, struct xsp_error *err)
{
	if (r->finished)
		return 0;
	r->finished = true;
	xsp_attach_activate(r->attach, false);
	r->end_ns = xsp_now_ns();
	int rc = drain_all(r);
	if (rc == 0)
		rc = stop_agents(r);
	uint64_t start = xsp_now_ns();
	xsp_attach_detach(r->attach); /* waits until no program runs any more */
	r->times.detach_ms = since_ms(start);
	if (rc == 0)
		rc = drain_all(r);
	if (rc == 0 && r->frames != NULL)
		rc = xsp_frames_resolve(r->frames, FRAMES_LAST_NS);
	if (rc == 0)
		rc = xsp_recorder_put_held_back(r);
	if (rc == 0)
		rc = xsp_recorder_put_losses(r);
	if (rc == 0)
		rc = xsp_recorder_put_stats(r);
	if (rc == 0)
		rc = put_gpu_losses(r);
	if (rc == 0)
		rc = xsp_capture_put_clock(r->writer);
	int end = xsp_capture_finish(r->writer, r->start_ns, r->end_ns, err);
	r->writer = NULL;
	if (rc < 0)
		return xsp_error_set(err, rc, XSP_STATUS_OUTPUT,
				     "%s is not complete (%s): what is in it can be read",
				     r->options.capture_path, strerror(-rc));
	return end;
}

/* ---- what it knows ---- */

double xsp_recorder_seconds(const struct xsp_recorder *r)
{
	uint64_t until = r->finished ? r->end_ns : xsp_now_ns();

	return r->started ? (double)(until - r->start_ns) * 1e-9 : 0;
}

void xsp_recorder_status(struct xsp_recorder *r, struct xsp_recorder_status *s)
{
	struct xsp_attach_counters c = {0};

	xsp_attach_counters(r->attach, &c);
	*s = (struct xsp_recorder_status){
		.seconds = xsp_recorder_seconds(r),
		.events = xsp_drain_events(r->drain),
		.lost = c.lost_entries + c.lost_exits + c.lost_other,
		.bytes = r->writer ? xsp_capture_bytes(r->writer) : 0,
		.events_per_second = r->rate,
		.overhead = r->overhead,
		.processes = alive(r),
		.functions = xsp_recorder_wanted(r),
		.sites = r->plan.sites,
	};
}

const struct xsp_recorder_times *xsp_recorder_times(const struct xsp_recorder *r)
{
	return &r->times;
}

const struct xsp_plan *xsp_recorder_plan(const struct xsp_recorder *r)
{
	return &r->plan;
}

const struct xsp_attach *xsp_recorder_attach(const struct xsp_recorder *r)
{
	return r->attach;
}

size_t xsp_recorder_wanted(const struct xsp_recorder *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->plan.count; i++)
		n += r->plan.modules[i]->wanted;
	return n;
}
