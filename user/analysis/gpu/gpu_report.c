/* SPDX-License-Identifier: BSD-2-Clause */
/* gpu_report.c - the GPU section: devices, streams, the host, launches. */
#include "analysis/gpu/gpu_report_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/saturate.h"
#include "base/rows/order.h"
#include "base/text.h"
#include "base/units.h"
#include "catalog/wait_reasons.h"
#include "timeline/gpu_category.h"
#include "timeline/python.h"

static const char *device_name(const struct xsp_gpu_analysis *g, uint32_t device)
{
	const struct xsp_gpu_device_info *devices;
	const size_t n = xsp_timeline_gpu_devices(g->timeline, &devices);

	for (size_t i = 0; i < n; i++)
		if (devices[i].device.id == device)
			return devices[i].name;
	return NULL;
}

/* ---- devices ---- */

/* The sum of all activities' durations, even where several ran at once. */
static uint64_t device_total_ns(const struct xsp_gpu_device_use *d)
{
	uint64_t total = 0;

	for (size_t c = 0; c < XSP_GPU_CLASSES; c++)
		xsp_add_saturated(&total, d->total_ns[c]);
	return total;
}

/* Time in which this class ran and no other did. */
static struct xsp_cell class_cell(const struct xsp_gpu_device_use *d, unsigned class,
				  unsigned others)
{
	return xsp_cell_integer(xsp_gpu_device_ns(d, class, others));
}

#define DEVICE(member) XSP_FIELD(struct xsp_gpu_device_use, member)
#define DEVICE_CELL(name, value) CELL(device_##name, struct xsp_gpu_device_use, value)

DEVICE_CELL(pid, pid_cell(of->g, row->pid));
DEVICE_CELL(name_cell, xsp_cell_text(device_name(of->g, row->device)));
DEVICE_CELL(span, xsp_cell_integer(row->last_ns - row->first_ns));
DEVICE_CELL(busy, xsp_cell_integer(xsp_gpu_device_busy_ns(row)));
DEVICE_CELL(busy_share, ratio((double)row->recorded_busy_ns, (double)row->recorded_ns));
DEVICE_CELL(compute, class_cell(row, BIT(COMPUTE), 0));
DEVICE_CELL(communication, class_cell(row, BIT(COMMUNICATION), BIT(COMPUTE)));
DEVICE_CELL(memory, class_cell(row, BIT(MEMORY), BIT(COMPUTE) | BIT(COMMUNICATION)));
DEVICE_CELL(concurrency, ratio_of_sums(device_total_ns(row), xsp_gpu_device_busy_ns(row), 1));
DEVICE_CELL(gap_at, row->gap_ns > 0 ? moment_cell(of->g, row->gap_from_ns) : xsp_cell_absent());

static const struct xsp_report_column device_columns[] = {
	IDENTITY("pid", "Process", NUMBER, BY(device_pid)),
	IDENTITY("device", "GPU", NUMBER, DEVICE(device)),
	COLUMN("name", "Name", TEXT, BY(device_name_cell)),
	COLUMN("span_ns", "First to last", NS, BY(device_span)),
	COLUMN("busy_ns", "Busy", NS, BY(device_busy)),
	COLUMN("busy_share", "Busy", SHARE, BY(device_busy_share)),
	COLUMN("compute_ns", "Compute", NS, BY(device_compute)),
	COLUMN("communication_ns", "Communication alone", NS, BY(device_communication)),
	COLUMN("memory_ns", "Memory alone", NS, BY(device_memory)),
	COLUMN("idle_ns", "Idle", NS, DEVICE(in_ns[0])),
	COLUMN("idle_host_ns", "Idle, host late", NS, DEVICE(host_ns)),
	COLUMN("unrecorded_ns", "Not recorded", NS, DEVICE(unrecorded_ns)),
	COLUMN("streams", "Streams", COUNT, DEVICE(streams)),
	COLUMN("concurrency", "At once", NUMBER, BY(device_concurrency)),
	COLUMN("several_ns", "Several streams", NS, DEVICE(several_ns)),
	COLUMN("longest_gap_ns", "Longest gap", NS, DEVICE(gap_ns)),
	COLUMN("longest_gap_at_ns", "At", TIME, BY(device_gap_at)),
	COLUMN("long_gaps", "Gaps of 500 ms", COUNT, DEVICE(long_gaps)),
};
XSP_REPORT_SHAPE(analyze, devices_shape, "gpu", "devices", "Time of devices", device_columns);

static void put_devices(const struct writer *w)
{
	struct xsp_report_table *t = xsp_report_table(w->section, &devices_shape);

	for (size_t i = 0; i < w->device_count; i++)
		if (w->devices[i].activities > 0) /* otherwise the host only waited for it */
			xsp_report_add(t, w, &w->devices[i]);
}

/* Time in which certain classes ran together, or a window of the recording. */
struct part {
	const struct xsp_gpu_device_use *device;
	unsigned bits; /* of classes */
	unsigned window;
	uint64_t from_ns, to_ns;
};

#define PART_CELL(name, value) CELL(part_##name, struct part, value)

PART_CELL(pid, pid_cell(of->g, row->device->pid));
PART_CELL(device, xsp_cell_integer(row->device->device));
PART_CELL(time, xsp_cell_integer(row->device->in_ns[row->bits]));
PART_CELL(share, ratio((double)row->device->in_ns[row->bits],
		       (double)xsp_gpu_device_busy_ns(row->device)));

static struct xsp_cell part_classes(struct xsp_report_at *at)
{
	const struct part *part = at->row;

	at->text[0] = '\0';
	for (unsigned c = 0; c < XSP_GPU_CLASSES; c++)
		if (part->bits & 1U << c)
			xsp_join(at->text, sizeof(at->text), ", ", "%s", class_names[c]);
	return xsp_cell_text(at->text);
}

static const struct xsp_report_column overlap_columns[] = {
	IDENTITY("pid", "Process", NUMBER, BY(part_pid)),
	IDENTITY("device", "GPU", NUMBER, BY(part_device)),
	IDENTITY("running", "Running", TEXT, BY(part_classes)),
	COLUMN("time_ns", "Time", NS, BY(part_time)),
	COLUMN("share", "Of busy time", SHARE, BY(part_share)),
};
XSP_REPORT_SHAPE(analyze, overlaps_shape, "gpu", "overlaps", "What ran at the same time",
		 overlap_columns);

static void put_overlaps(const struct writer *w)
{
	struct xsp_report_table *t = xsp_report_table(w->section, &overlaps_shape);

	for (size_t i = 0; i < w->device_count; i++)
		for (unsigned bits = 1; bits < 1U << XSP_GPU_CLASSES; bits++)
			if (w->devices[i].in_ns[bits] > 0)
				xsp_report_add(
					t, w,
					&(struct part){.device = &w->devices[i], .bits = bits});
}

static uint64_t communication_ns(const struct xsp_gpu_device_use *d)
{
	return xsp_gpu_device_ns(d, BIT(COMMUNICATION), 0);
}

static uint64_t hidden_ns(const struct xsp_gpu_device_use *d)
{
	const unsigned both = BIT(COMMUNICATION) | BIT(COMPUTE);

	return d->in_ns[both] + d->in_ns[both | BIT(MEMORY)];
}

DEVICE_CELL(communication_all, xsp_cell_integer(communication_ns(row)));
DEVICE_CELL(hidden, xsp_cell_integer(hidden_ns(row)));
DEVICE_CELL(hidden_share, ratio((double)hidden_ns(row), (double)communication_ns(row)));

static const struct xsp_report_column communication_columns[] = {
	IDENTITY("pid", "Process", NUMBER, BY(device_pid)),
	IDENTITY("device", "GPU", NUMBER, DEVICE(device)),
	COLUMN("communication_ns", "Communication", NS, BY(device_communication_all)),
	COLUMN("hidden_ns", "During compute", NS, BY(device_hidden)),
	COLUMN("hidden_share", "During compute", SHARE, BY(device_hidden_share)),
	COLUMN("waiting_ns", "Until the last device began", NS, DEVICE(arrival_ns)),
	COLUMN("transfer_ns", "From then on", NS, DEVICE(transfer_ns)),
	COLUMN("alone_ns", "On no other device", NS, DEVICE(alone_ns)),
};
XSP_REPORT_SHAPE(analyze, communication_shape, "gpu", "communication", "Communication",
		 communication_columns);

static void put_communication(const struct writer *w)
{
	for (size_t i = 0; i < w->device_count; i++)
		if (communication_ns(&w->devices[i]) > 0)
			xsp_report_add(xsp_report_table(w->section, &communication_shape), w,
				       &w->devices[i]);
}

PART_CELL(from, moment_cell(of->g, row->from_ns));
PART_CELL(busy_share,
	  ratio((double)row->device->window_ns[row->window],
		(double)xsp_timeline_recorded_between(of->g->timeline, row->from_ns, row->to_ns)));

static const struct xsp_report_column use_columns[] = {
	IDENTITY("pid", "Process", NUMBER, BY(part_pid)),
	IDENTITY("device", "GPU", NUMBER, BY(part_device)),
	IDENTITY("from_ns", "From", TIME, BY(part_from)),
	COLUMN("busy_share", "Busy", SHARE, BY(part_busy_share)),
};
XSP_REPORT_SHAPE(analyze, use_shape, "gpu", "use", "Use over time", use_columns);

static void put_windows(const struct writer *w)
{
	struct xsp_report_table *t = xsp_report_table(w->section, &use_shape);
	uint64_t from, to;

	xsp_timeline_window(w->g->timeline, &from, &to);
	if (to <= from)
		return;
	for (size_t i = 0; i < w->device_count; i++)
		for (unsigned k = 0; w->devices[i].activities > 0 && k < XSP_GPU_USE_WINDOWS; k++) {
			const struct part part = {
				.device = &w->devices[i],
				.window = k,
				.from_ns = from + xsp_gpu_use_window(to - from, k),
				.to_ns = from + xsp_gpu_use_window(to - from, k + 1)};
			xsp_report_add(t, w, &part);
		}
}

/* ---- streams ---- */

#define STREAM(member) XSP_FIELD(struct xsp_gpu_stream_use, member)
#define STREAM_CELL(name, value) CELL(stream_##name, struct xsp_gpu_stream_use, value)

STREAM_CELL(pid, pid_cell(of->g, of->devices[row->device].pid));
STREAM_CELL(device, xsp_cell_integer(of->devices[row->device].device));
STREAM_CELL(busy_share, ratio((double)row->recorded_busy_ns, (double)row->recorded_ns));
STREAM_CELL(queued_mean, ratio((double)row->queued_sum, (double)row->queue_changes));

static const struct xsp_report_column stream_columns[] = {
	IDENTITY("pid", "Process", NUMBER, BY(stream_pid)),
	IDENTITY("device", "GPU", NUMBER, BY(stream_device)),
	IDENTITY("context", "Context", NUMBER, STREAM(context)),
	IDENTITY("stream", "Stream", NUMBER, STREAM(stream)),
	COLUMN("activities", "Activities", COUNT, STREAM(activities)),
	COLUMN("busy_ns", "Busy", NS, STREAM(busy_ns)),
	COLUMN("busy_share", "Busy, of first to last", SHARE, BY(stream_busy_share)),
	COLUMN("host_wait_ns", "Idle: host wait", NS, STREAM(idle_ns[XSP_GPU_IDLE_HOST])),
	COLUMN("kernel_wait_ns", "kernel wait", NS, STREAM(idle_ns[XSP_GPU_IDLE_KERNEL])),
	COLUMN("other_ns", "other", NS, STREAM(idle_ns[XSP_GPU_IDLE_OTHER])),
	COLUMN("unknown_ns", "launch not known", NS, STREAM(idle_ns[XSP_GPU_IDLE_UNKNOWN])),
	COLUMN("unrecorded_ns", "Not recorded", NS, STREAM(unrecorded_ns)),
	COLUMN("host_waits", "Host waits", COUNT, STREAM(gaps[XSP_GPU_IDLE_HOST])),
	COLUMN("queued_most", "Queued at most", COUNT, STREAM(queued_most)),
	COLUMN("queued_mean", "Queued, mean of changes", NUMBER, BY(stream_queued_mean)),
	COLUMN("queue_full_ns", "1,024 or more queued", NS, STREAM(full_ns)),
};
XSP_REPORT_SHAPE(analyze, streams_shape, "gpu", "streams", "Streams", stream_columns);

static void put_streams(const struct writer *w)
{
	struct xsp_report_table *t = xsp_report_table(w->section, &streams_shape);
	const struct xsp_gpu_stream_use *streams;
	const size_t n = xsp_gpu_sweep_streams(w->g->sweep, &streams);

	for (size_t i = 0; i < n; i++)
		if (streams[i].activities > 0)
			xsp_report_add(t, w, &streams[i]);
}

/* ---- what the host did ---- */

static XSP_ORDER_POINTERS(by_idle, struct xsp_gpu_host_use, XSP_FALLING(idle_ns));

#define HOST(member) XSP_FIELD(struct xsp_gpu_host_use, member)
#define HOST_CELL(name, value) CELL(host_##name, struct xsp_gpu_host_use, value)

HOST_CELL(doing, xsp_cell_text(xsp_gpu_host_name(of->g->host, row->name, at->text)));
HOST_CELL(inside, row->parent != 0
			  ? xsp_cell_text(xsp_gpu_host_name(of->g->host, row->parent - 1, at->text))
			  : xsp_cell_absent());
HOST_CELL(share, ratio((double)row->idle_ns, (double)xsp_gpu_host_sums(of->g->host)->idle_ns));
HOST_CELL(reason, xsp_cell_text(xsp_wait_class_name(row->why)));
HOST_CELL(place, row->place != 0 ? xsp_cell_text(xsp_timeline_name(of->g->timeline, row->place - 1))
				 : xsp_cell_absent());

static struct xsp_cell host_line(struct xsp_report_at *at)
{
	const struct writer *w = at->of;
	const struct xsp_gpu_host_use *u = at->row;
	struct xsp_python_line line;

	if (u->line == NULL || !xsp_timeline_python_line(w->g->timeline, u->line, &line))
		return xsp_cell_absent();
	xsp_python_line_show(&line, at->text);
	return xsp_cell_text(at->text);
}

static const struct xsp_report_column in_spans[] = {
	IDENTITY("doing", "Doing", TEXT, BY(host_doing)),
	IDENTITY("inside", "Inside", TEXT, BY(host_inside)),
	IDENTITY("line", "Line", TEXT, BY(host_line)),
	COLUMN("idle_ns", "GPU idle", NS, HOST(idle_ns)),
	COLUMN("share", "Of idle time of late launches", SHARE, BY(host_share)),
};
XSP_REPORT_SHAPE(analyze, host_shape, "gpu", "host",
		 "What launching threads did while their GPU was idle", in_spans);
static const struct xsp_report_column in_waits[] = {
	IDENTITY("reason", "Off its CPU", TEXT, BY(host_reason)),
	IDENTITY("place", "At", TEXT, BY(host_place)),
	COLUMN("idle_ns", "GPU idle", NS, HOST(idle_ns)),
	COLUMN("share", "Of idle time of late launches", SHARE, BY(host_share)),
};
XSP_REPORT_SHAPE(analyze, host_waits_shape, "gpu", "host_waits", "... and was off its CPU",
		 in_waits);

static int put_host(const struct writer *w)
{
	const struct xsp_gpu_host_use *uses;
	const struct xsp_gpu_host_sums *sums = xsp_gpu_host_sums(w->g->host);
	const uint64_t idle = sums->idle_ns, spans = sums->span_ns;
	const size_t n = xsp_gpu_host_uses(w->g->host, &uses);

	if (idle == 0)
		return 0;
	xsp_report_value(w->section, "host_idle_ns", "Idle because launches were late", XSP_UNIT_NS,
			 xsp_cell_integer(idle));
	xsp_report_value(w->section, "host_outside_ns",
			 "of it, the launching thread was in no span", XSP_UNIT_NS,
			 xsp_cell_integer(idle > spans ? idle - spans : 0));
	const struct xsp_gpu_host_use **sorted = xsp_sorted(uses, n, by_idle);
	if (sorted == NULL)
		return -ENOMEM;
	for (unsigned wait = 0; wait < 2; wait++)
		for (size_t i = 0; i < n && sorted[i]->idle_ns > 0; i++)
			if (sorted[i]->wait == wait)
				xsp_report_add(xsp_report_table(w->section, wait ? &host_waits_shape
										 : &host_shape),
					       w, sorted[i]);
	free(sorted);
	return 0;
}

#define WAIT(member) XSP_FIELD(struct xsp_gpu_wait_use, member)
CELL(wait_name, struct xsp_gpu_wait_use, xsp_cell_text(xsp_gpu_sync_name(row->what)));
CELL(wait_work, struct xsp_gpu_wait_use, xsp_cell_text(xsp_gpu_work_name(of, row->name)));

static const struct xsp_report_column wait_columns[] = {
	IDENTITY("wait", "Wait of the host", TEXT, BY(wait_name)),
	IDENTITY("work", "What ended last", TEXT, BY(wait_work)),
	COLUMN("count", "Waits", COUNT, WAIT(count)),
	COLUMN("total_ns", "Total", NS, WAIT(total_ns)),
	COLUMN("max_ns", "Longest", NS, WAIT(most_ns)),
};
XSP_REPORT_SHAPE(analyze, waits_shape, "gpu", "waits", "Waits for the GPU, and the work waited for",
		 wait_columns);

static void put_waits(const struct writer *w)
{
	const struct xsp_gpu_wait_use *waits;
	const size_t n = xsp_gpu_sweep_waits(w->g->sweep, &waits);

	if (n > 0)
		xsp_report_rows(xsp_report_table(w->section, &waits_shape), w, waits,
				sizeof(*waits), n);
}

/* ---- launches ---- */

struct launches {
	const struct xsp_gpu_device_use *device;
	const char *kind;
	struct xsp_gpu_launch_use use;
};

#define LAUNCH(member) XSP_FIELD(struct launches, member)
#define LAUNCH_CELL(name, value) CELL(launch_##name, struct launches, value)

LAUNCH_CELL(pid, pid_cell(of->g, row->device->pid));
LAUNCH_CELL(device, xsp_cell_integer(row->device->device));
LAUNCH_CELL(call_mean, mean_cell(row->use.call_ns, row->use.count));
LAUNCH_CELL(delay_mean, mean_cell(row->use.delay_ns, row->use.count));
LAUNCH_CELL(delay_p50, quantile(&row->use.delays, 0.5, row->use.most_delay_ns));
LAUNCH_CELL(delay_p99, quantile(&row->use.delays, 0.99, row->use.most_delay_ns));
LAUNCH_CELL(shorter_share, ratio((double)row->use.shorter, (double)row->use.count));

static const struct xsp_report_column launch_columns[] = {
	IDENTITY("pid", "Process", NUMBER, BY(launch_pid)),
	IDENTITY("device", "GPU", NUMBER, BY(launch_device)),
	IDENTITY("kind", "Launches of", TEXT, LAUNCH(kind)),
	COLUMN("count", "Launches", COUNT, LAUNCH(use.count)),
	COLUMN("call_mean_ns", "Call, mean", NS, BY(launch_call_mean)),
	COLUMN("call_max_ns", "Call, longest", NS, LAUNCH(use.most_call_ns)),
	COLUMN("long_calls", "Calls over 50 us", COUNT, LAUNCH(use.long_calls)),
	COLUMN("delay_mean_ns", "Delay, mean", NS, BY(launch_delay_mean)),
	COLUMN("delay_p50_ns", "Delay, p50", NS, BY(launch_delay_p50)),
	COLUMN("delay_p99_ns", "Delay, p99", NS, BY(launch_delay_p99)),
	COLUMN("delay_max_ns", "Delay, longest", NS, LAUNCH(use.most_delay_ns)),
	COLUMN("long_delays", "Delays over 100 us", COUNT, LAUNCH(use.long_delays)),
	COLUMN("shorter", "Shorter than their call", COUNT, LAUNCH(use.shorter)),
	COLUMN("shorter_share", "Shorter than their call", SHARE, BY(launch_shorter_share)),
};
XSP_REPORT_SHAPE(analyze, launches_shape, "gpu", "launches", "Launches", launch_columns);

static void put_launches(const struct writer *w)
{
	static const char *const kinds[XSP_GPU_LAUNCH_KINDS] = {"kernels", "copies", "sets"};
	struct xsp_report_table *t = xsp_report_table(w->section, &launches_shape);

	for (size_t i = 0; i < w->device_count; i++)
		for (unsigned k = 0; k < XSP_GPU_LAUNCH_KINDS; k++) {
			const struct xsp_gpu_launch_use *use = xsp_gpu_by_name_launches(
				w->g->names, (uint32_t)i, (enum xsp_gpu_kind)k);
			if (use != NULL)
				xsp_report_add(t, w,
					       &(struct launches){&w->devices[i], kinds[k], *use});
		}
}

/* ---- what is missing ---- */

static void put_losses(const struct writer *w)
{
	const struct xsp_gpu_sweep_counts *s = xsp_gpu_sweep_counts(w->g->sweep);
	const struct xsp_gpu_counts *c = xsp_timeline_gpu(w->g->timeline);
	const struct xsp_gpu_path_counts *p = &w->g->path->counts;
	const struct {
		uint64_t count;
		const char *text;
	} losses[] = {
		{w->g->unlaunched,
		 "activities without their launch: in no launch statistics, and why their stream was idle before them is not known"},
		{c->early,
		 "activities begin up to 20 us before their launch, as the clocks have it: in no launch statistics"},
		{s->late,
		 "activities came too late to be put in order: in unions, gaps and queues only with what was left of them"},
		{s->pushed_out,
		 "communication kernels ran beside too many others: which of them belong together is not known, and they are in no time of arrival and transfer"},
		{s->late_waits,
		 "waits for the GPU came too late: what ended last before they did is not known"},
		{xsp_gpu_host_sums(w->g->host)->early,
		 "spans were taken before all idle time in them was known (too many at a time)"},
		{p->warm_up, "first steps were warm-up: they have no critical path here"},
		{p->unrecorded, "steps were not recorded all the time: they have no critical path"},
		{p->too_large, "steps were too large to be held: they have no critical path"},
		{p->late,
		 "activities came too late for critical paths: there, they are time of what waited for them"},
		{p->guessed,
		 "times a critical path goes through an event and its record is not known (--gpu events): it went on with what ended last"},
		{c->lost, "GPU records lost on the way from the agent: idle time may be work"},
		{c->dropped, "GPU records dropped in the target: idle time may be work"},
		{c->unnamed, "kernels whose name never came"},
		{c->unfinished, "processes whose agent did not say that it had handed over all"},
	};
	char count[XSP_UNITS_SIZE], bad[XSP_GPU_BAD_TEXT];

	if (xsp_gpu_bad_text(c, bad) != NULL)
		xsp_report_notef(w->section, "%s", bad);
	for (size_t i = 0; i < COUNT_OF(losses); i++)
		if (losses[i].count > 0)
			xsp_report_notef(w->section, "%s %s",
					 xsp_format_count(count, losses[i].count), losses[i].text);
}

int xsp_gpu_report(const struct xsp_gpu_analysis *g, struct xsp_report *r)
{
	struct writer w = {.g = g};

	w.device_count = xsp_gpu_sweep_devices(g->sweep, &w.devices);
	if (w.device_count == 0) {
		char bad[XSP_GPU_BAD_TEXT];
		const char *text = xsp_gpu_bad_text(xsp_timeline_gpu(g->timeline), bad);
		if (text != NULL)
			xsp_report_note(xsp_report_section(r, "gpu", "GPU"), text);
		return 0;
	}
	w.section = xsp_report_section(r, "gpu", "GPU");
	put_devices(&w);
	put_overlaps(&w);
	put_communication(&w);
	put_streams(&w);
	put_launches(&w);
	put_waits(&w);
	int rc = put_host(&w);
	if (rc == 0)
		rc = xsp_gpu_report_names(&w);
	xsp_gpu_report_operators(&w);
	if (rc == 0)
		rc = xsp_gpu_report_path(&w);
	put_windows(&w);
	put_losses(&w);
	return rc;
}
