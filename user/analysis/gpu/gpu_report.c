/* SPDX-License-Identifier: BSD-2-Clause */
/* gpu_report.c - the section of GPUs. */
#include "analysis/gpu/gpu.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/saturate.h"
#include "base/units.h"
#include "catalog/wait_reasons.h"
#include "timeline/gpu_category.h"
#include "timeline/python.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define COLUMN(key, title, unit, source)                                                           \
	{                                                                                          \
		key, title, XSP_UNIT_##unit, false, source                                         \
	}
#define IDENTITY(key, title, unit, source)                                                         \
	{                                                                                          \
		key, title, XSP_UNIT_##unit, true, source                                          \
	}
#define BY XSP_BY
#define CELL(name, type, value) XSP_REPORT_CELL(name, struct writer, type, value)

static const char *const class_names[XSP_GPU_CLASSES] = {"compute", "communication", "memory"};

#define BIT(class) (1U << XSP_GPU_FOR_##class)

struct writer {
	const struct xsp_gpu_analysis *g;
	struct xsp_report_section *section;
	const struct xsp_gpu_device_use *devices;
	size_t device_count;
	uint64_t kernels_ns; /* of all of them */
};

/* ---- cells ---- */

static struct xsp_cell ratio(double part, double whole)
{
	return whole > 0 ? xsp_cell_real(part / whole) : xsp_cell_absent();
}

static struct xsp_cell ratio_of_sums(uint64_t part, uint64_t whole, double times)
{
	return part == XSP_TOO_MUCH || whole == XSP_TOO_MUCH
		       ? xsp_cell_absent()
		       : ratio((double)part * times, (double)whole);
}

static struct xsp_cell mean_cell(uint64_t sum, uint64_t count)
{
	return sum == XSP_TOO_MUCH ? xsp_cell_absent() : xsp_cell_integer(sum / count);
}

/* Never beyond the greatest, which is exact. */
static struct xsp_cell quantile(const struct xsp_histogram *h, double share, uint64_t most)
{
	const uint64_t ns = xsp_histogram_quantile(h, share);

	return xsp_cell_integer(ns < most ? ns : most);
}

/* As outputs show it. */
static struct xsp_cell pid_cell(const struct xsp_gpu_analysis *g, uint32_t pid)
{
	const struct xsp_timeline_thread *th = xsp_timeline_thread(g->timeline, pid);

	return xsp_cell_integer(th != NULL && th->ns_pid != 0 ? th->ns_pid : pid);
}

static struct xsp_cell moment_cell(const struct xsp_gpu_analysis *g, uint64_t ns)
{
	return xsp_cell_integer(ns > g->origin_ns ? ns - g->origin_ns : 0);
}

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

/* Of all that ran, however much of it at a time. */
static uint64_t device_total_ns(const struct xsp_gpu_device_use *d)
{
	uint64_t total = 0;

	for (size_t c = 0; c < XSP_GPU_CLASSES; c++)
		xsp_add_saturated(&total, d->total_ns[c]);
	return total;
}

/* While that class ran, and none of the others. */
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
		if (w->devices[i].activities > 0) /* else it was only waited for */
			xsp_report_add(t, w, &w->devices[i]);
}

/* Which classes ran at a time, or a window of the recording. */
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
	size_t used = 0;

	for (unsigned c = 0; c < XSP_GPU_CLASSES; c++)
		if (part->bits & 1U << c)
			used += (size_t)snprintf(at->text + used, sizeof(at->text) - used, "%s%s",
						 used > 0 ? ", " : "", class_names[c]);
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

static int by_idle(const void *a, const void *b)
{
	const struct xsp_gpu_host_use *const *x = a, *const *y = b;

	return (*x)->idle_ns > (*y)->idle_ns ? -1 : (*x)->idle_ns < (*y)->idle_ns;
}

#define HOST(member) XSP_FIELD(struct xsp_gpu_host_use, member)
#define HOST_CELL(name, value) CELL(host_##name, struct xsp_gpu_host_use, value)

HOST_CELL(doing, xsp_cell_text(xsp_gpu_host_name(of->g->host, row->name, at->text)));
HOST_CELL(inside, row->parent != 0
			  ? xsp_cell_text(xsp_gpu_host_name(of->g->host, row->parent - 1, at->text))
			  : xsp_cell_absent());
HOST_CELL(share, ratio((double)row->idle_ns, (double)xsp_gpu_host_idle_ns(of->g->host)));
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
	const struct xsp_gpu_host_use *uses, **sorted;
	const uint64_t idle = xsp_gpu_host_idle_ns(w->g->host),
		       spans = xsp_gpu_host_span_ns(w->g->host);
	const size_t n = xsp_gpu_host_uses(w->g->host, &uses);

	if (idle == 0)
		return 0;
	xsp_report_value(w->section, "host_idle_ns", "Idle because launches were late", XSP_UNIT_NS,
			 xsp_cell_integer(idle));
	xsp_report_value(w->section, "host_outside_ns",
			 "of it, the launching thread was in no span", XSP_UNIT_NS,
			 xsp_cell_integer(idle > spans ? idle - spans : 0));
	sorted = calloc(n + 1, sizeof(*sorted));
	if (sorted == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		sorted[i] = &uses[i];
	qsort(sorted, n, sizeof(*sorted), by_idle);
	for (unsigned wait = 0; wait < 2; wait++)
		for (size_t i = 0; i < n && sorted[i]->idle_ns > 0; i++)
			if (sorted[i]->wait == wait)
				xsp_report_add(xsp_report_table(w->section, wait ? &host_waits_shape
										 : &host_shape),
					       w, sorted[i]);
	free(sorted);
	return 0;
}

static const char *work_name(const struct writer *w, uint32_t name)
{
	const struct xsp_gpu_name_use *names;

	xsp_gpu_by_name_uses(w->g->names, &names);
	return name != XSP_GPU_NOWHERE ? names[name].name : NULL;
}

#define WAIT(member) XSP_FIELD(struct xsp_gpu_wait_use, member)
CELL(wait_name, struct xsp_gpu_wait_use, xsp_cell_text(xsp_gpu_sync_name(row->what)));
CELL(wait_work, struct xsp_gpu_wait_use, xsp_cell_text(work_name(of, row->name)));

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

	for (size_t i = 0; i < n; i++)
		xsp_report_add(xsp_report_table(w->section, &waits_shape), w, &waits[i]);
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

/* ---- by name ---- */

/* Of work whose times are known from begin to end. */
static struct xsp_cell deviation(const struct xsp_gpu_name_use *u)
{
	const double n = (double)u->whole, mean = u->whole > 0 ? (double)u->whole_ns / n : 0;
	const double variance = n > 1 ? (u->squares - n * mean * mean) / (n - 1) : 0;

	return n > 1 && u->whole_ns != XSP_TOO_MUCH
		       ? xsp_cell_integer((uint64_t)sqrt(variance > 0 ? variance : 0))
		       : xsp_cell_absent();
}

static struct xsp_cell work_quantile(const struct xsp_gpu_name_use *u, double share)
{
	return u->whole > 0 ? quantile(&u->durations, share, u->most_ns) : xsp_cell_absent();
}

#define WORK(member) XSP_FIELD(struct xsp_gpu_name_use, member)
#define WORK_IF(known, member) XSP_FIELD_IF(struct xsp_gpu_name_use, member, known)
#define WORK_CELL(name, value) CELL(work_##name, struct xsp_gpu_name_use, value)

WORK_CELL(class, xsp_cell_text(row->kind == XSP_GPU_IS_GRAPH ? "graph" : class_names[row->class]));
WORK_CELL(share, ratio_of_sums(row->total_ns, of->kernels_ns, 1));
WORK_CELL(mean, row->whole > 0 ? mean_cell(row->whole_ns, row->whole) : xsp_cell_absent());
WORK_CELL(std, deviation(row));
WORK_CELL(p50, work_quantile(row, 0.5));
WORK_CELL(p99, work_quantile(row, 0.99));
WORK_CELL(occupancy, ratio(row->occupancy, (double)row->occupied));

static const struct xsp_report_column kernel_columns[] = {
	IDENTITY("name", "Kernel", TEXT, WORK(name)),
	COLUMN("class", "For", TEXT, BY(work_class)),
	COLUMN("launches", "Runs", COUNT, WORK(count)),
	COLUMN("total_ns", "Total", NS, WORK(total_ns)),
	COLUMN("share", "Of all kernels", SHARE, BY(work_share)),
	COLUMN("mean_ns", "Mean", NS, BY(work_mean)),
	COLUMN("std_ns", "Std", NS, BY(work_std)),
	COLUMN("min_ns", "Min", NS, WORK_IF(whole, least_ns)),
	COLUMN("p50_ns", "p50", NS, BY(work_p50)),
	COLUMN("p99_ns", "p99", NS, BY(work_p99)),
	COLUMN("max_ns", "Max", NS, WORK_IF(whole, most_ns)),
	COLUMN("shorter", "Shorter than their call", COUNT, WORK_IF(launched, shorter)),
	COLUMN("occupancy", "Occupancy", SHARE, BY(work_occupancy)),
	COLUMN("limit", "Limited by", TEXT, WORK(limit)),
};
XSP_REPORT_SHAPE(analyze, kernels_shape, "gpu", "kernels", "Kernels", kernel_columns);

WORK_CELL(mean_bytes, mean_cell(row->bytes, row->count));
WORK_CELL(bandwidth, ratio_of_sums(row->whole_bytes, row->whole_ns, 1e9));
WORK_CELL(mean_bandwidth, ratio(row->bandwidth, (double)row->timed));

static const struct xsp_report_column copy_columns[] = {
	IDENTITY("name", "Copies and sets", TEXT, WORK(name)),
	COLUMN("count", "Count", COUNT, WORK(count)),
	COLUMN("asynchronous", "Asynchronous", COUNT, WORK(asynchronous)),
	COLUMN("bytes", "Bytes", BYTES, WORK(bytes)),
	COLUMN("mean_bytes", "Mean", BYTES, BY(work_mean_bytes)),
	COLUMN("total_ns", "Time", NS, WORK(total_ns)),
	COLUMN("bandwidth", "Bandwidth", BYTES_PER_SECOND, BY(work_bandwidth)),
	COLUMN("mean_bandwidth", "Mean of each", BYTES_PER_SECOND, BY(work_mean_bandwidth)),
	COLUMN("min_bandwidth", "Least", BYTES_PER_SECOND, WORK_IF(timed, least_bandwidth)),
	COLUMN("max_bandwidth", "Most", BYTES_PER_SECOND, WORK_IF(timed, most_bandwidth)),
};
XSP_REPORT_SHAPE(analyze, copies_shape, "gpu", "copies", "Copies and sets", copy_columns);

static int by_total(const void *a, const void *b)
{
	const struct xsp_gpu_name_use *const *x = a, *const *y = b;

	return (*x)->total_ns > (*y)->total_ns ? -1 : (*x)->total_ns < (*y)->total_ns;
}

static int put_names(struct writer *w)
{
	const struct xsp_gpu_name_use *uses, **sorted;
	const size_t n = xsp_gpu_by_name_uses(w->g->names, &uses);

	sorted = calloc(n + 1, sizeof(*sorted));
	if (sorted == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		sorted[i] = &uses[i];
	qsort(sorted, n, sizeof(*sorted), by_total);
	xsp_report_table(w->section, &kernels_shape);
	for (size_t i = 0; i < n; i++)
		if (sorted[i]->class != XSP_GPU_FOR_MEMORY)
			xsp_add_saturated(&w->kernels_ns, sorted[i]->total_ns);
	for (size_t i = 0; i < n; i++)
		xsp_report_add(xsp_report_table(w->section, sorted[i]->class == XSP_GPU_FOR_MEMORY
								    ? &copies_shape
								    : &kernels_shape),
			       w, sorted[i]);
	free(sorted);
	return 0;
}

#define OPERATOR(member) XSP_FIELD(struct xsp_gpu_flops_use, member)
#define OPERATOR_CELL(name, value) CELL(operator_##name, struct xsp_gpu_flops_use, value)

OPERATOR_CELL(name, xsp_cell_text(xsp_timeline_name(of->g->timeline, row->name)));
OPERATOR_CELL(flops_per_byte, ratio_of_sums(row->flops, row->bytes, 1));
OPERATOR_CELL(flops_per_second, ratio_of_sums(row->flops, row->gpu_ns, 1e9));
OPERATOR_CELL(bytes_per_second, ratio_of_sums(row->bytes, row->gpu_ns, 1e9));

static const struct xsp_report_column operator_columns[] = {
	IDENTITY("operator", "Operator", TEXT, BY(operator_name)),
	COLUMN("calls", "Calls with shapes", COUNT, OPERATOR(calls)),
	COLUMN("gpu_ns", "Kernels", NS, OPERATOR(gpu_ns)),
	COLUMN("flops", "FLOPs", COUNT, OPERATOR(flops)),
	COLUMN("bytes", "Bytes of tensors", BYTES, OPERATOR(bytes)),
	COLUMN("flops_per_byte", "FLOPs per byte", NUMBER, BY(operator_flops_per_byte)),
	COLUMN("flops_per_second", "FLOP/s", PER_SECOND, BY(operator_flops_per_second)),
	COLUMN("bytes_per_second", "Bytes", BYTES_PER_SECOND, BY(operator_bytes_per_second)),
};
XSP_REPORT_SHAPE(analyze, operators_shape, "gpu", "operators",
		 "Operators whose FLOPs are known, and their kernels", operator_columns);

static void put_operators(const struct writer *w)
{
	const struct xsp_gpu_flops_use *uses;
	const size_t n = xsp_gpu_flops_uses(w->g->flops, &uses);

	for (size_t i = 0; i < n; i++)
		xsp_report_add(xsp_report_table(w->section, &operators_shape), w, &uses[i]);
}

/* ---- critical path ---- */

static const char *const path_kinds[XSP_GPU_PATH_KINDS] = {
	[XSP_GPU_PATH_HOST] = "host",
	[XSP_GPU_PATH_LAUNCH] = "launch delay",
	[XSP_GPU_PATH_COMPUTE] = "kernels",
	[XSP_GPU_PATH_COMMUNICATION] = "communication",
	[XSP_GPU_PATH_MEMORY] = "copies and sets",
	[XSP_GPU_PATH_GAP] = "between two on the GPU",
	[XSP_GPU_PATH_SYNC] = "synchronisation",
	[XSP_GPU_PATH_OFF] = "off its CPU",
	[XSP_GPU_PATH_UNKNOWN] = "not known",
};

static const char *path_name(const struct writer *w, const struct xsp_gpu_path_use *u,
			     char text[XSP_GPU_HOST_NAME_MAX])
{
	switch (u->kind) {
	case XSP_GPU_PATH_HOST:
		return u->name != XSP_GPU_NOWHERE ? xsp_gpu_host_name(w->g->host, u->name, text)
						  : NULL;
	case XSP_GPU_PATH_SYNC:
		return u->name != 0 ? xsp_gpu_sync_name(u->name) : "Memcpy";
	case XSP_GPU_PATH_OFF:
		return xsp_wait_class_name(u->name);
	case XSP_GPU_PATH_UNKNOWN:
		return NULL;
	default:
		return work_name(w, u->name);
	}
}

static struct xsp_cell path_share(const struct writer *w, uint64_t ns)
{
	return ratio((double)ns, (double)w->g->path->counts.total_ns);
}

static struct xsp_cell path_mean(const struct writer *w, uint64_t ns)
{
	return xsp_cell_integer(ns / w->g->path->counts.steps);
}

#define PATH(member) XSP_FIELD(struct xsp_gpu_path_use, member)
#define PATH_CELL(name, value) CELL(path_use_##name, struct xsp_gpu_path_use, value)

PATH_CELL(kind, xsp_cell_text(path_kinds[row->kind]));
PATH_CELL(name, xsp_cell_text(path_name(of, row, at->text)));
PATH_CELL(share, path_share(of, row->ns));
PATH_CELL(mean, path_mean(of, row->ns));

static const struct xsp_report_column path_name_columns[] = {
	IDENTITY("kind", "On the path", TEXT, BY(path_use_kind)),
	IDENTITY("name", "Name", TEXT, BY(path_use_name)),
	COLUMN("total_ns", "Total", NS, PATH(ns)),
	COLUMN("share", "Of all steps", SHARE, BY(path_use_share)),
	COLUMN("mean_ns", "A step", NS, BY(path_use_mean)),
	COLUMN("steps", "In steps", COUNT, PATH(steps)),
};
XSP_REPORT_SHAPE(analyze, path_names_shape, "gpu", "path_names", "... by name", path_name_columns);

static int by_path_time(const void *a, const void *b)
{
	const struct xsp_gpu_path_use *const *x = a, *const *y = b;

	return (*x)->ns > (*y)->ns ? -1 : (*x)->ns < (*y)->ns;
}

static int put_path_names(const struct writer *w)
{
	struct xsp_report_table *t = xsp_report_table(w->section, &path_names_shape);
	const struct xsp_gpu_path_use *uses = w->g->path->uses, **sorted;
	const size_t n = w->g->path->use_count;

	sorted = calloc(n + 1, sizeof(*sorted));
	if (sorted == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		sorted[i] = &uses[i];
	qsort(sorted, n, sizeof(*sorted), by_path_time);
	for (size_t i = 0; i < n; i++)
		xsp_report_add(t, w, sorted[i]);
	free(sorted);
	return 0;
}

/* What a kind took on the paths of all steps. */
struct path_kind {
	const char *name;
	uint64_t ns, most_ns;
};

CELL(path_kind_share, struct path_kind, path_share(of, row->ns));
CELL(path_kind_mean, struct path_kind, path_mean(of, row->ns));

static const struct xsp_report_column path_columns[] = {
	IDENTITY("kind", "On the path", TEXT, XSP_FIELD(struct path_kind, name)),
	COLUMN("total_ns", "Total", NS, XSP_FIELD(struct path_kind, ns)),
	COLUMN("share", "Of all steps", SHARE, BY(path_kind_share)),
	COLUMN("mean_ns", "A step", NS, BY(path_kind_mean)),
	COLUMN("max_ns", "Most", NS, XSP_FIELD(struct path_kind, most_ns)),
};
XSP_REPORT_SHAPE(analyze, path_shape, "gpu", "path", "Critical path of steps", path_columns);

static void put_path_kinds(const struct writer *w)
{
	const struct xsp_gpu_path_counts *c = &w->g->path->counts;
	struct xsp_report_table *t = xsp_report_table(w->section, &path_shape);

	for (unsigned i = 0; i < XSP_GPU_PATH_KINDS; i++) {
		const struct path_kind kind = {path_kinds[i], c->ns[i], c->most_ns[i]};
		if (kind.ns > 0)
			xsp_report_add(t, w, &kind);
	}
}

#define STEP(member) XSP_FIELD(struct xsp_gpu_path_step, member)
CELL(step_at, struct xsp_gpu_path_step, moment_cell(of->g, row->start_ns));
CELL(step_time, struct xsp_gpu_path_step, xsp_cell_integer(row->end_ns - row->start_ns));

static const struct xsp_report_column path_step_columns[] = {
	IDENTITY("step", "Slowest steps", NUMBER, STEP(number)),
	COLUMN("at_ns", "At", TIME, BY(step_at)),
	COLUMN("time_ns", "Time", NS, BY(step_time)),
	COLUMN("host_ns", "Host", NS, STEP(ns[XSP_GPU_PATH_HOST])),
	COLUMN("launch_ns", "Launch delay", NS, STEP(ns[XSP_GPU_PATH_LAUNCH])),
	COLUMN("compute_ns", "Kernels", NS, STEP(ns[XSP_GPU_PATH_COMPUTE])),
	COLUMN("communication_ns", "Communication", NS, STEP(ns[XSP_GPU_PATH_COMMUNICATION])),
	COLUMN("memory_ns", "Copies and sets", NS, STEP(ns[XSP_GPU_PATH_MEMORY])),
	COLUMN("gap_ns", "Between two on the GPU", NS, STEP(ns[XSP_GPU_PATH_GAP])),
	COLUMN("sync_ns", "Synchronisation", NS, STEP(ns[XSP_GPU_PATH_SYNC])),
	COLUMN("off_cpu_ns", "Off its CPU", NS, STEP(ns[XSP_GPU_PATH_OFF])),
	COLUMN("unknown_ns", "Not known", NS, STEP(ns[XSP_GPU_PATH_UNKNOWN])),
};
XSP_REPORT_SHAPE(analyze, path_steps_shape, "gpu", "path_steps",
		 "Critical path of the slowest steps", path_step_columns);

static void put_path_steps(const struct writer *w)
{
	struct xsp_report_table *t = xsp_report_table(w->section, &path_steps_shape);

	for (size_t i = 0; i < w->g->path->slowest_count; i++)
		xsp_report_add(t, w, &w->g->path->slowest[i]);
}

static int put_path(const struct writer *w)
{
	const struct xsp_gpu_path_counts *c = &w->g->path->counts;
	const struct xsp_gpu_counts *gpu = xsp_timeline_gpu(w->g->timeline);

	if (c->steps == 0) {
		xsp_report_note(w->section, "no step was recorded whole: no critical path "
					    "(--step NAME says what a step is)");
		return 0;
	}
	xsp_report_value(w->section, "path_steps", "Steps with a critical path", XSP_UNIT_COUNT,
			 xsp_cell_integer(c->steps));
	if (w->g->events_lost || gpu->lost + gpu->dropped > 0)
		xsp_report_note(w->section, "uncertain: events or GPU records were lost, what the "
					    "critical path shows as the host's may be the GPU's");
	if (xsp_timeline_cut_hides(w->g->timeline))
		xsp_report_note(w->section,
				"the cut leaves out calls: on the critical path their time is "
				"of what is around them, and launches among them are not known");
	if (gpu->activities[XSP_GPU_IS_SYNC] == 0)
		xsp_report_note(w->section, "no synchronisation was recorded: a critical path "
					    "enters the GPU through copies alone");
	if (w->g->path->thread_count > 1 && !xsp_timeline_has_waits(w->g->timeline))
		xsp_report_note(w->section,
				"which thread waits for which is not known (--waits): on the "
				"critical path that is the time of the one that waits");
	put_path_kinds(w);
	put_path_steps(w);
	return put_path_names(w);
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
		{w->g->unlaunched, "activities without their launch: in no launch statistics, and "
				   "why their stream was idle before them is not known"},
		{w->g->untimed, "activities that CUPTI could not time: in no figure"},
		{s->late, "activities came too late to be put in order: in unions, gaps and "
			  "queues only with what was left of them"},
		{s->pushed_out, "communication kernels ran beside too many others: which of them "
				"belong together is not known, and they are in no time of arrival "
				"and transfer"},
		{s->late_waits, "waits for the GPU came too late: what ended last before they did "
				"is not known"},
		{xsp_gpu_host_early(w->g->host),
		 "spans were taken before all idle time in them was known (too many at a time)"},
		{p->warm_up, "first steps were warm-up: they have no critical path here"},
		{p->unrecorded, "steps were not recorded all the time: they have no critical path"},
		{p->too_large, "steps were too large to be held: they have no critical path"},
		{p->late, "activities came too late for critical paths: there, they are time of "
			  "what waited for them"},
		{p->guessed,
		 "times a critical path goes through an event and its record is not known "
		 "(--gpu events): it went on with what ended last"},
		{c->lost, "GPU records lost on the way from the agent: idle time may be work"},
		{c->dropped, "GPU records dropped in the target: idle time may be work"},
		{c->unnamed, "kernels whose name never came"},
		{c->unfinished, "processes whose agent did not say that it had handed over all"},
	};
	char text[256], count[XSP_UNITS_SIZE];

	for (size_t i = 0; i < COUNT_OF(losses); i++) {
		if (losses[i].count == 0)
			continue;
		snprintf(text, sizeof(text), "%s %s", xsp_format_count(count, losses[i].count),
			 losses[i].text);
		xsp_report_note(w->section, text);
	}
}

int xsp_gpu_report(const struct xsp_gpu_analysis *g, struct xsp_report *r)
{
	struct writer w = {.g = g};

	w.device_count = xsp_gpu_sweep_devices(g->sweep, &w.devices);
	if (w.device_count == 0)
		return 0;
	w.section = xsp_report_section(r, "gpu", "GPU");
	put_devices(&w);
	put_overlaps(&w);
	put_communication(&w);
	put_streams(&w);
	put_launches(&w);
	put_waits(&w);
	int rc = put_host(&w);
	if (rc == 0)
		rc = put_names(&w);
	put_operators(&w);
	if (rc == 0)
		rc = put_path(&w);
	put_windows(&w);
	put_losses(&w);
	return rc;
}
