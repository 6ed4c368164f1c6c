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
#define COLUMN(key, title, unit)                                                                   \
	{                                                                                          \
		key, title, XSP_UNIT_##unit, false                                                 \
	}
#define IDENTITY(key, title, unit)                                                                 \
	{                                                                                          \
		key, title, XSP_UNIT_##unit, true                                                  \
	}

static const char *const class_names[XSP_GPU_CLASSES] = {"compute", "communication", "memory"};

#define BIT(class) (1U << XSP_GPU_FOR_##class)

struct writer {
	const struct xsp_gpu_analysis *g;
	struct xsp_report_section *section;
	const struct xsp_gpu_device_use *devices;
	size_t device_count;
};

/* ---- cells ---- */

static struct xsp_cell absent(void)
{
	return xsp_cell_text(NULL);
}

static struct xsp_cell ratio(double part, double whole)
{
	return whole > 0 ? xsp_cell_real(part / whole) : absent();
}

static struct xsp_cell ratio_of_sums(uint64_t part, uint64_t whole, double times)
{
	return part == XSP_TOO_MUCH || whole == XSP_TOO_MUCH
		       ? absent()
		       : ratio((double)part * times, (double)whole);
}

static struct xsp_cell mean_cell(uint64_t sum, uint64_t count)
{
	return sum == XSP_TOO_MUCH ? absent() : xsp_cell_integer(sum / count);
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

static void put_devices(const struct writer *w)
{
	static const struct xsp_report_column columns[] = {
		IDENTITY("pid", "Process", NUMBER),
		IDENTITY("device", "GPU", NUMBER),
		COLUMN("name", "Name", TEXT),
		COLUMN("span_ns", "First to last", NS),
		COLUMN("busy_ns", "Busy", NS),
		COLUMN("busy_share", "Busy", SHARE),
		COLUMN("compute_ns", "Compute", NS),
		COLUMN("communication_ns", "Communication alone", NS),
		COLUMN("memory_ns", "Memory alone", NS),
		COLUMN("idle_ns", "Idle", NS),
		COLUMN("idle_host_ns", "Idle, host late", NS),
		COLUMN("unrecorded_ns", "Not recorded", NS),
		COLUMN("streams", "Streams", COUNT),
		COLUMN("concurrency", "At once", NUMBER),
		COLUMN("several_ns", "Several streams", NS),
		COLUMN("longest_gap_ns", "Longest gap", NS),
		COLUMN("longest_gap_at_ns", "At", TIME),
		COLUMN("long_gaps", "Gaps of 500 ms", COUNT),
	};
	XSP_REPORT_SHAPE(analyze, shape, "gpu", "devices", "Time of devices", columns);
	struct xsp_report_table *t = xsp_report_table(w->section, &shape);

	for (size_t i = 0; i < w->device_count; i++) {
		const struct xsp_gpu_device_use *d = &w->devices[i];
		const uint64_t busy = xsp_gpu_device_busy_ns(d);
		uint64_t total = 0;
		if (d->activities == 0)
			continue; /* it was only waited for */
		for (size_t c = 0; c < XSP_GPU_CLASSES; c++)
			xsp_add_saturated(&total, d->total_ns[c]);
		const struct xsp_cell cells[] = {
			pid_cell(w->g, d->pid),
			xsp_cell_integer(d->device),
			xsp_cell_text(device_name(w->g, d->device)),
			xsp_cell_integer(d->last_ns - d->first_ns),
			xsp_cell_integer(busy),
			ratio((double)d->recorded_busy_ns, (double)d->recorded_ns),
			xsp_cell_integer(xsp_gpu_device_ns(d, BIT(COMPUTE), 0)),
			xsp_cell_integer(xsp_gpu_device_ns(d, BIT(COMMUNICATION), BIT(COMPUTE))),
			xsp_cell_integer(xsp_gpu_device_ns(d, BIT(MEMORY),
							   BIT(COMPUTE) | BIT(COMMUNICATION))),
			xsp_cell_integer(d->in_ns[0]),
			xsp_cell_integer(d->host_ns),
			xsp_cell_integer(d->unrecorded_ns),
			xsp_cell_integer(d->streams),
			ratio_of_sums(total, busy, 1),
			xsp_cell_integer(d->several_ns),
			xsp_cell_integer(d->gap_ns),
			d->gap_ns > 0 ? moment_cell(w->g, d->gap_from_ns) : absent(),
			xsp_cell_integer(d->long_gaps),
		};
		xsp_report_row(t, cells);
	}
}

static const char *classes(unsigned bits, char text[64])
{
	size_t used = 0;

	for (unsigned c = 0; c < XSP_GPU_CLASSES; c++)
		if (bits & 1U << c)
			used += (size_t)snprintf(text + used, 64 - used, "%s%s",
						 used > 0 ? ", " : "", class_names[c]);
	return text;
}

static void put_overlaps(const struct writer *w)
{
	static const struct xsp_report_column columns[] = {
		IDENTITY("pid", "Process", NUMBER), IDENTITY("device", "GPU", NUMBER),
		IDENTITY("running", "Running", TEXT), COLUMN("time_ns", "Time", NS),
		COLUMN("share", "Of busy time", SHARE)};
	XSP_REPORT_SHAPE(analyze, shape, "gpu", "overlaps", "What ran at the same time", columns);
	struct xsp_report_table *t = xsp_report_table(w->section, &shape);
	char text[64];

	for (size_t i = 0; i < w->device_count; i++) {
		const struct xsp_gpu_device_use *d = &w->devices[i];
		for (unsigned bits = 1; bits < 1U << XSP_GPU_CLASSES; bits++) {
			if (d->in_ns[bits] == 0)
				continue;
			const struct xsp_cell cells[] = {
				pid_cell(w->g, d->pid),
				xsp_cell_integer(d->device),
				xsp_cell_text(classes(bits, text)),
				xsp_cell_integer(d->in_ns[bits]),
				ratio((double)d->in_ns[bits], (double)xsp_gpu_device_busy_ns(d)),
			};
			xsp_report_row(t, cells);
		}
	}
}

static void put_communication(const struct writer *w)
{
	static const struct xsp_report_column columns[] = {
		IDENTITY("pid", "Process", NUMBER),
		IDENTITY("device", "GPU", NUMBER),
		COLUMN("communication_ns", "Communication", NS),
		COLUMN("hidden_ns", "During compute", NS),
		COLUMN("hidden_share", "During compute", SHARE),
		COLUMN("waiting_ns", "Until the last device began", NS),
		COLUMN("transfer_ns", "From then on", NS),
		COLUMN("alone_ns", "On no other device", NS),
	};
	XSP_REPORT_SHAPE(analyze, shape, "gpu", "communication", "Communication", columns);
	const unsigned both = BIT(COMMUNICATION) | BIT(COMPUTE);
	struct xsp_report_table *t = NULL;

	for (size_t i = 0; i < w->device_count; i++) {
		const struct xsp_gpu_device_use *d = &w->devices[i];
		const uint64_t all = xsp_gpu_device_ns(d, BIT(COMMUNICATION), 0);
		const uint64_t hidden = d->in_ns[both] + d->in_ns[both | BIT(MEMORY)];
		if (all == 0)
			continue;
		if (t == NULL)
			t = xsp_report_table(w->section, &shape);
		const struct xsp_cell cells[] = {
			pid_cell(w->g, d->pid),
			xsp_cell_integer(d->device),
			xsp_cell_integer(all),
			xsp_cell_integer(hidden),
			ratio((double)hidden, (double)all),
			xsp_cell_integer(d->arrival_ns),
			xsp_cell_integer(d->transfer_ns),
			xsp_cell_integer(d->alone_ns),
		};
		xsp_report_row(t, cells);
	}
}

static void put_windows(const struct writer *w)
{
	static const struct xsp_report_column columns[] = {
		IDENTITY("pid", "Process", NUMBER), IDENTITY("device", "GPU", NUMBER),
		IDENTITY("from_ns", "From", TIME), COLUMN("busy_share", "Busy", SHARE)};
	XSP_REPORT_SHAPE(analyze, shape, "gpu", "use", "Use over time", columns);
	struct xsp_report_table *t = xsp_report_table(w->section, &shape);
	uint64_t from, to;

	xsp_timeline_window(w->g->timeline, &from, &to);
	if (to <= from)
		return;
	for (size_t i = 0; i < w->device_count; i++)
		for (unsigned k = 0; w->devices[i].activities > 0 && k < XSP_GPU_USE_WINDOWS; k++) {
			const struct xsp_gpu_device_use *d = &w->devices[i];
			const uint64_t begin = from + xsp_gpu_use_window(to - from, k),
				       end = from + xsp_gpu_use_window(to - from, k + 1);
			const struct xsp_cell cells[] = {
				pid_cell(w->g, d->pid),
				xsp_cell_integer(d->device),
				moment_cell(w->g, begin),
				ratio((double)d->window_ns[k],
				      (double)xsp_timeline_recorded_between(w->g->timeline, begin,
									    end)),
			};
			xsp_report_row(t, cells);
		}
}

/* ---- streams ---- */

static void put_streams(const struct writer *w)
{
	static const struct xsp_report_column columns[] = {
		IDENTITY("pid", "Process", NUMBER),
		IDENTITY("device", "GPU", NUMBER),
		IDENTITY("context", "Context", NUMBER),
		IDENTITY("stream", "Stream", NUMBER),
		COLUMN("activities", "Activities", COUNT),
		COLUMN("busy_ns", "Busy", NS),
		COLUMN("busy_share", "Busy, of first to last", SHARE),
		COLUMN("host_wait_ns", "Idle: host wait", NS),
		COLUMN("kernel_wait_ns", "kernel wait", NS),
		COLUMN("other_ns", "other", NS),
		COLUMN("unknown_ns", "launch not known", NS),
		COLUMN("unrecorded_ns", "Not recorded", NS),
		COLUMN("host_waits", "Host waits", COUNT),
		COLUMN("queued_most", "Queued at most", COUNT),
		COLUMN("queued_mean", "Queued, mean of changes", NUMBER),
		COLUMN("queue_full_ns", "1,024 or more queued", NS),
	};
	XSP_REPORT_SHAPE(analyze, shape, "gpu", "streams", "Streams", columns);
	struct xsp_report_table *t = xsp_report_table(w->section, &shape);
	const struct xsp_gpu_stream_use *streams;
	const size_t n = xsp_gpu_sweep_streams(w->g->sweep, &streams);

	for (size_t i = 0; i < n; i++) {
		const struct xsp_gpu_stream_use *s = &streams[i];
		const struct xsp_gpu_device_use *d = &w->devices[s->device];
		const struct xsp_cell cells[] = {
			pid_cell(w->g, d->pid),
			xsp_cell_integer(d->device),
			xsp_cell_integer(s->context),
			xsp_cell_integer(s->stream),
			xsp_cell_integer(s->activities),
			xsp_cell_integer(s->busy_ns),
			ratio((double)s->recorded_busy_ns, (double)s->recorded_ns),
			xsp_cell_integer(s->idle_ns[XSP_GPU_IDLE_HOST]),
			xsp_cell_integer(s->idle_ns[XSP_GPU_IDLE_KERNEL]),
			xsp_cell_integer(s->idle_ns[XSP_GPU_IDLE_OTHER]),
			xsp_cell_integer(s->idle_ns[XSP_GPU_IDLE_UNKNOWN]),
			xsp_cell_integer(s->unrecorded_ns),
			xsp_cell_integer(s->gaps[XSP_GPU_IDLE_HOST]),
			xsp_cell_integer(s->queued_most),
			ratio((double)s->queued_sum, (double)s->queue_changes),
			xsp_cell_integer(s->full_ns),
		};
		if (s->activities > 0)
			xsp_report_row(t, cells);
	}
}

/* ---- what the host did ---- */

static int by_idle(const void *a, const void *b)
{
	const struct xsp_gpu_host_use *const *x = a, *const *y = b;

	return (*x)->idle_ns > (*y)->idle_ns ? -1 : (*x)->idle_ns < (*y)->idle_ns;
}

static void put_span_row(const struct writer *w, struct xsp_report_table *t,
			 const struct xsp_gpu_host_use *u, double idle)
{
	const struct xsp_timeline *tl = w->g->timeline;
	char text[XSP_PYTHON_LINE_MAX], name[XSP_GPU_HOST_NAME_MAX], parent[XSP_GPU_HOST_NAME_MAX];
	struct xsp_python_line line;
	const bool known = u->line != NULL && xsp_timeline_python_line(tl, u->line, &line);

	if (known)
		xsp_python_line_show(&line, text);
	const struct xsp_cell cells[] = {
		xsp_cell_text(xsp_gpu_host_name(w->g->host, u->name, name)),
		xsp_cell_text(u->parent != 0 ? xsp_gpu_host_name(w->g->host, u->parent - 1, parent)
					     : NULL),
		xsp_cell_text(known ? text : NULL),
		xsp_cell_integer(u->idle_ns),
		ratio((double)u->idle_ns, idle),
	};
	xsp_report_row(t, cells);
}

static void put_wait_row(const struct writer *w, struct xsp_report_table *t,
			 const struct xsp_gpu_host_use *u, double idle)
{
	const struct xsp_cell cells[] = {
		xsp_cell_text(xsp_wait_class_name(u->why)),
		xsp_cell_text(u->place != 0 ? xsp_timeline_name(w->g->timeline, u->place - 1)
					    : NULL),
		xsp_cell_integer(u->idle_ns),
		ratio((double)u->idle_ns, idle),
	};

	xsp_report_row(t, cells);
}

static int put_host(const struct writer *w)
{
	static const struct xsp_report_column in_spans[] = {
		IDENTITY("doing", "Doing", TEXT),
		IDENTITY("inside", "Inside", TEXT),
		IDENTITY("line", "Line", TEXT),
		COLUMN("idle_ns", "GPU idle", NS),
		COLUMN("share", "Of idle time of late launches", SHARE),
	};
	XSP_REPORT_SHAPE(analyze, span_shape, "gpu", "host",
			 "What launching threads did while their GPU was idle", in_spans);
	static const struct xsp_report_column in_waits[] = {
		IDENTITY("reason", "Off its CPU", TEXT),
		IDENTITY("place", "At", TEXT),
		COLUMN("idle_ns", "GPU idle", NS),
		COLUMN("share", "Of idle time of late launches", SHARE),
	};
	XSP_REPORT_SHAPE(analyze, wait_shape, "gpu", "host_waits", "... and was off its CPU",
			 in_waits);
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
	for (unsigned wait = 0; wait < 2; wait++) {
		struct xsp_report_table *t = NULL;
		for (size_t i = 0; i < n && sorted[i]->idle_ns > 0; i++) {
			if (sorted[i]->wait != wait)
				continue;
			if (t == NULL)
				t = xsp_report_table(w->section, wait ? &wait_shape : &span_shape);
			(wait ? put_wait_row : put_span_row)(w, t, sorted[i], (double)idle);
		}
	}
	free(sorted);
	return 0;
}

static void put_waits(const struct writer *w)
{
	static const struct xsp_report_column columns[] = {
		IDENTITY("wait", "Wait of the host", TEXT),
		IDENTITY("work", "What ended last", TEXT),
		COLUMN("count", "Waits", COUNT),
		COLUMN("total_ns", "Total", NS),
		COLUMN("max_ns", "Longest", NS),
	};
	XSP_REPORT_SHAPE(analyze, shape, "gpu", "waits",
			 "Waits for the GPU, and the work waited for", columns);
	const struct xsp_gpu_name_use *names;
	const struct xsp_gpu_wait_use *waits;
	const size_t n = xsp_gpu_sweep_waits(w->g->sweep, &waits);
	struct xsp_report_table *t = n > 0 ? xsp_report_table(w->section, &shape) : NULL;

	xsp_gpu_by_name_uses(w->g->names, &names);
	for (size_t i = 0; i < n; i++) {
		const struct xsp_gpu_wait_use *u = &waits[i];
		const struct xsp_cell cells[] = {
			xsp_cell_text(xsp_gpu_sync_name(u->what)),
			xsp_cell_text(u->name != XSP_GPU_NOWHERE ? names[u->name].name : NULL),
			xsp_cell_integer(u->count),
			xsp_cell_sum(u->total_ns),
			xsp_cell_integer(u->most_ns),
		};
		xsp_report_row(t, cells);
	}
}

/* ---- launches ---- */

static void put_launches(const struct writer *w)
{
	static const struct xsp_report_column columns[] = {
		IDENTITY("pid", "Process", NUMBER),
		IDENTITY("device", "GPU", NUMBER),
		IDENTITY("kind", "Launches of", TEXT),
		COLUMN("count", "Launches", COUNT),
		COLUMN("call_mean_ns", "Call, mean", NS),
		COLUMN("call_max_ns", "Call, longest", NS),
		COLUMN("long_calls", "Calls over 50 us", COUNT),
		COLUMN("delay_mean_ns", "Delay, mean", NS),
		COLUMN("delay_p50_ns", "Delay, p50", NS),
		COLUMN("delay_p99_ns", "Delay, p99", NS),
		COLUMN("delay_max_ns", "Delay, longest", NS),
		COLUMN("long_delays", "Delays over 100 us", COUNT),
		COLUMN("shorter", "Shorter than their call", COUNT),
		COLUMN("shorter_share", "Shorter than their call", SHARE),
	};
	XSP_REPORT_SHAPE(analyze, shape, "gpu", "launches", "Launches", columns);
	static const char *const kinds[XSP_GPU_LAUNCH_KINDS] = {"kernels", "copies", "sets"};
	struct xsp_report_table *t = xsp_report_table(w->section, &shape);

	for (size_t i = 0; i < w->device_count; i++)
		for (unsigned k = 0; k < XSP_GPU_LAUNCH_KINDS; k++) {
			const struct xsp_gpu_launch_use *l = xsp_gpu_by_name_launches(
				w->g->names, (uint32_t)i, (enum xsp_gpu_kind)k);
			if (l == NULL)
				continue;
			const struct xsp_cell cells[] = {
				pid_cell(w->g, w->devices[i].pid),
				xsp_cell_integer(w->devices[i].device),
				xsp_cell_text(kinds[k]),
				xsp_cell_integer(l->count),
				mean_cell(l->call_ns, l->count),
				xsp_cell_integer(l->most_call_ns),
				xsp_cell_integer(l->long_calls),
				mean_cell(l->delay_ns, l->count),
				quantile(&l->delays, 0.5, l->most_delay_ns),
				quantile(&l->delays, 0.99, l->most_delay_ns),
				xsp_cell_integer(l->most_delay_ns),
				xsp_cell_integer(l->long_delays),
				xsp_cell_integer(l->shorter),
				ratio((double)l->shorter, (double)l->count),
			};
			xsp_report_row(t, cells);
		}
}

/* ---- by name ---- */

static void put_kernel_row(struct xsp_report_table *t, const struct xsp_gpu_name_use *u,
			   uint64_t total)
{
	const double n = (double)u->whole;
	const bool any = u->whole > 0;
	const double mean = any ? (double)u->whole_ns / n : 0;
	const double variance = n > 1 ? (u->squares - n * mean * mean) / (n - 1) : 0;
	const struct xsp_cell cells[] = {
		xsp_cell_text(u->name),
		xsp_cell_text(u->kind == XSP_GPU_IS_GRAPH ? "graph" : class_names[u->class]),
		xsp_cell_integer(u->count),
		xsp_cell_sum(u->total_ns),
		ratio_of_sums(u->total_ns, total, 1),
		any ? mean_cell(u->whole_ns, u->whole) : absent(),
		n > 1 && u->whole_ns != XSP_TOO_MUCH
			? xsp_cell_integer((uint64_t)sqrt(variance > 0 ? variance : 0))
			: absent(),
		any ? xsp_cell_integer(u->least_ns) : absent(),
		any ? quantile(&u->durations, 0.5, u->most_ns) : absent(),
		any ? quantile(&u->durations, 0.99, u->most_ns) : absent(),
		any ? xsp_cell_integer(u->most_ns) : absent(),
		u->launched > 0 ? xsp_cell_integer(u->shorter) : absent(),
		ratio(u->occupancy, (double)u->occupied),
		xsp_cell_text(u->limit),
	};

	xsp_report_row(t, cells);
}

static void put_kernels(const struct writer *w, const struct xsp_gpu_name_use *const *uses,
			size_t n)
{
	static const struct xsp_report_column columns[] = {
		IDENTITY("name", "Kernel", TEXT),
		COLUMN("class", "For", TEXT),
		COLUMN("launches", "Runs", COUNT),
		COLUMN("total_ns", "Total", NS),
		COLUMN("share", "Of all kernels", SHARE),
		COLUMN("mean_ns", "Mean", NS),
		COLUMN("std_ns", "Std", NS),
		COLUMN("min_ns", "Min", NS),
		COLUMN("p50_ns", "p50", NS),
		COLUMN("p99_ns", "p99", NS),
		COLUMN("max_ns", "Max", NS),
		COLUMN("shorter", "Shorter than their call", COUNT),
		COLUMN("occupancy", "Occupancy", SHARE),
		COLUMN("limit", "Limited by", TEXT),
	};
	XSP_REPORT_SHAPE(analyze, shape, "gpu", "kernels", "Kernels", columns);
	struct xsp_report_table *t = xsp_report_table(w->section, &shape);
	uint64_t total = 0;

	for (size_t i = 0; i < n; i++)
		if (uses[i]->class != XSP_GPU_FOR_MEMORY)
			xsp_add_saturated(&total, uses[i]->total_ns);
	for (size_t i = 0; i < n; i++)
		if (uses[i]->class != XSP_GPU_FOR_MEMORY)
			put_kernel_row(t, uses[i], total);
}

static void put_copies(const struct writer *w, const struct xsp_gpu_name_use *const *uses, size_t n)
{
	static const struct xsp_report_column columns[] = {
		IDENTITY("name", "Copies and sets", TEXT),
		COLUMN("count", "Count", COUNT),
		COLUMN("asynchronous", "Asynchronous", COUNT),
		COLUMN("bytes", "Bytes", BYTES),
		COLUMN("mean_bytes", "Mean", BYTES),
		COLUMN("total_ns", "Time", NS),
		COLUMN("bandwidth", "Bandwidth", BYTES_PER_SECOND),
		COLUMN("mean_bandwidth", "Mean of each", BYTES_PER_SECOND),
		COLUMN("min_bandwidth", "Least", BYTES_PER_SECOND),
		COLUMN("max_bandwidth", "Most", BYTES_PER_SECOND),
	};
	XSP_REPORT_SHAPE(analyze, shape, "gpu", "copies", "Copies and sets", columns);
	struct xsp_report_table *t = NULL;

	for (size_t i = 0; i < n; i++) {
		const struct xsp_gpu_name_use *u = uses[i];
		if (u->class != XSP_GPU_FOR_MEMORY)
			continue;
		if (t == NULL)
			t = xsp_report_table(w->section, &shape);
		const bool timed = u->timed > 0;
		const struct xsp_cell cells[] = {
			xsp_cell_text(u->name),
			xsp_cell_integer(u->count),
			xsp_cell_integer(u->asynchronous),
			xsp_cell_sum(u->bytes),
			mean_cell(u->bytes, u->count),
			xsp_cell_sum(u->total_ns),
			ratio_of_sums(u->whole_bytes, u->whole_ns, 1e9),
			ratio(u->bandwidth, (double)u->timed),
			timed ? xsp_cell_real(u->least_bandwidth) : absent(),
			timed ? xsp_cell_real(u->most_bandwidth) : absent(),
		};
		xsp_report_row(t, cells);
	}
}

static int by_total(const void *a, const void *b)
{
	const struct xsp_gpu_name_use *const *x = a, *const *y = b;

	return (*x)->total_ns > (*y)->total_ns ? -1 : (*x)->total_ns < (*y)->total_ns;
}

static int put_names(const struct writer *w)
{
	const struct xsp_gpu_name_use *uses, **sorted;
	const size_t n = xsp_gpu_by_name_uses(w->g->names, &uses);

	sorted = calloc(n + 1, sizeof(*sorted));
	if (sorted == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		sorted[i] = &uses[i];
	qsort(sorted, n, sizeof(*sorted), by_total);
	put_kernels(w, sorted, n);
	put_copies(w, sorted, n);
	free(sorted);
	return 0;
}

static void put_operators(const struct writer *w)
{
	static const struct xsp_report_column columns[] = {
		IDENTITY("operator", "Operator", TEXT),
		COLUMN("calls", "Calls with shapes", COUNT),
		COLUMN("gpu_ns", "Kernels", NS),
		COLUMN("flops", "FLOPs", COUNT),
		COLUMN("bytes", "Bytes of tensors", BYTES),
		COLUMN("flops_per_byte", "FLOPs per byte", NUMBER),
		COLUMN("flops_per_second", "FLOP/s", PER_SECOND),
		COLUMN("bytes_per_second", "Bytes", BYTES_PER_SECOND),
	};
	XSP_REPORT_SHAPE(analyze, shape, "gpu", "operators",
			 "Operators whose FLOPs are known, and their kernels", columns);
	const struct xsp_gpu_flops_use *uses;
	const size_t n = xsp_gpu_flops_uses(w->g->flops, &uses);
	struct xsp_report_table *t = n > 0 ? xsp_report_table(w->section, &shape) : NULL;

	for (size_t i = 0; i < n; i++) {
		const struct xsp_gpu_flops_use *u = &uses[i];
		const struct xsp_cell cells[] = {
			xsp_cell_text(xsp_timeline_name(w->g->timeline, u->name)),
			xsp_cell_integer(u->calls),
			xsp_cell_sum(u->gpu_ns),
			xsp_cell_sum(u->flops),
			xsp_cell_sum(u->bytes),
			ratio_of_sums(u->flops, u->bytes, 1),
			ratio_of_sums(u->flops, u->gpu_ns, 1e9),
			ratio_of_sums(u->bytes, u->gpu_ns, 1e9),
		};
		xsp_report_row(t, cells);
	}
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
	const struct xsp_gpu_name_use *names;

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
		xsp_gpu_by_name_uses(w->g->names, &names);
		return names[u->name].name;
	}
}

static int by_path_time(const void *a, const void *b)
{
	const struct xsp_gpu_path_use *const *x = a, *const *y = b;

	return (*x)->ns > (*y)->ns ? -1 : (*x)->ns < (*y)->ns;
}

static int put_path_names(const struct writer *w)
{
	static const struct xsp_report_column columns[] = {
		IDENTITY("kind", "On the path", TEXT), IDENTITY("name", "Name", TEXT),
		COLUMN("total_ns", "Total", NS),       COLUMN("share", "Of all steps", SHARE),
		COLUMN("mean_ns", "A step", NS),       COLUMN("steps", "In steps", COUNT)};
	XSP_REPORT_SHAPE(analyze, shape, "gpu", "path_names", "... by name", columns);
	const struct xsp_gpu_path_counts *c = &w->g->path->counts;
	struct xsp_report_table *t = xsp_report_table(w->section, &shape);
	const struct xsp_gpu_path_use *uses = w->g->path->uses, **sorted;
	const size_t n = w->g->path->use_count;
	char text[XSP_GPU_HOST_NAME_MAX];

	sorted = calloc(n + 1, sizeof(*sorted));
	if (sorted == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		sorted[i] = &uses[i];
	qsort(sorted, n, sizeof(*sorted), by_path_time);
	for (size_t i = 0; i < n; i++) {
		const struct xsp_cell cells[] = {
			xsp_cell_text(path_kinds[sorted[i]->kind]),
			xsp_cell_text(path_name(w, sorted[i], text)),
			xsp_cell_integer(sorted[i]->ns),
			ratio((double)sorted[i]->ns, (double)c->total_ns),
			xsp_cell_integer(sorted[i]->ns / c->steps),
			xsp_cell_integer(sorted[i]->steps),
		};
		xsp_report_row(t, cells);
	}
	free(sorted);
	return 0;
}

static void put_path_kinds(const struct writer *w)
{
	static const struct xsp_report_column columns[] = {
		IDENTITY("kind", "On the path", TEXT), COLUMN("total_ns", "Total", NS),
		COLUMN("share", "Of all steps", SHARE), COLUMN("mean_ns", "A step", NS),
		COLUMN("max_ns", "Most", NS)};
	XSP_REPORT_SHAPE(analyze, shape, "gpu", "path", "Critical path of steps", columns);
	const struct xsp_gpu_path_counts *c = &w->g->path->counts;
	struct xsp_report_table *t = xsp_report_table(w->section, &shape);

	for (unsigned i = 0; i < XSP_GPU_PATH_KINDS; i++) {
		const struct xsp_cell cells[] = {
			xsp_cell_text(path_kinds[i]),
			xsp_cell_integer(c->ns[i]),
			ratio((double)c->ns[i], (double)c->total_ns),
			xsp_cell_integer(c->ns[i] / c->steps),
			xsp_cell_integer(c->most_ns[i]),
		};
		if (c->ns[i] > 0)
			xsp_report_row(t, cells);
	}
}

static void put_path_steps(const struct writer *w)
{
	static const struct xsp_report_column columns[] = {
		IDENTITY("step", "Slowest steps", NUMBER),
		COLUMN("at_ns", "At", TIME),
		COLUMN("time_ns", "Time", NS),
		COLUMN("host_ns", "Host", NS),
		COLUMN("launch_ns", "Launch delay", NS),
		COLUMN("compute_ns", "Kernels", NS),
		COLUMN("communication_ns", "Communication", NS),
		COLUMN("memory_ns", "Copies and sets", NS),
		COLUMN("gap_ns", "Between two on the GPU", NS),
		COLUMN("sync_ns", "Synchronisation", NS),
		COLUMN("off_cpu_ns", "Off its CPU", NS),
		COLUMN("unknown_ns", "Not known", NS),
	};
	XSP_REPORT_SHAPE(analyze, shape, "gpu", "path_steps", "Critical path of the slowest steps",
			 columns);
	struct xsp_report_table *t = xsp_report_table(w->section, &shape);
	const struct xsp_gpu_path_step *steps = w->g->path->slowest;

	for (size_t i = 0; i < w->g->path->slowest_count; i++) {
		struct xsp_cell cells[COUNT_OF(columns)] = {
			xsp_cell_integer(steps[i].number), moment_cell(w->g, steps[i].start_ns),
			xsp_cell_integer(steps[i].end_ns - steps[i].start_ns)};
		for (unsigned k = 0; k < XSP_GPU_PATH_KINDS; k++)
			cells[3 + k] = xsp_cell_integer(steps[i].ns[k]);
		xsp_report_row(t, cells);
	}
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
