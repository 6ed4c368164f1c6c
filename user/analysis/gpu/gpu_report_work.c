/* SPDX-License-Identifier: BSD-2-Clause */
/* gpu_report_work.c - the GPU section, second half: work by name, operators, the critical path. */
#include "analysis/gpu/gpu_report_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/rows/order.h"
#include "catalog/wait_reasons.h"
#include "timeline/gpu_category.h"

const char *xsp_gpu_work_name(const struct writer *w, uint32_t name)
{
	const struct xsp_gpu_name_use *names;

	xsp_gpu_by_name_uses(w->g->names, &names);
	return name != XSP_GPU_NOWHERE ? names[name].name : NULL;
}

/* ---- by name ---- */

/* Over work whose start and end are both known. */
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

static XSP_ORDER_POINTERS(by_total, struct xsp_gpu_name_use, XSP_FALLING(total_ns));

int xsp_gpu_report_names(struct writer *w)
{
	const struct xsp_gpu_name_use *uses;
	const size_t n = xsp_gpu_by_name_uses(w->g->names, &uses);
	const struct xsp_gpu_name_use **sorted = xsp_sorted(uses, n, by_total);

	if (sorted == NULL)
		return -ENOMEM;
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

void xsp_gpu_report_operators(const struct writer *w)
{
	const struct xsp_gpu_flops_use *uses;
	const size_t n = xsp_gpu_flops_uses(w->g->flops, &uses);

	if (n > 0)
		xsp_report_rows(xsp_report_table(w->section, &operators_shape), w, uses,
				sizeof(*uses), n);
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
		return xsp_gpu_work_name(w, u->name);
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

static XSP_ORDER_POINTERS(by_path_time, struct xsp_gpu_path_use, XSP_FALLING(ns));

static int put_path_names(const struct writer *w)
{
	struct xsp_report_table *t = xsp_report_table(w->section, &path_names_shape);
	const size_t n = w->g->path->uses.count;
	const struct xsp_gpu_path_use **sorted = xsp_sorted(w->g->path->uses.rows, n, by_path_time);

	if (sorted == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		xsp_report_add(t, w, sorted[i]);
	free(sorted);
	return 0;
}

/* The time of one kind on the paths of all steps. */
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
	xsp_report_rows(xsp_report_table(w->section, &path_steps_shape), w, w->g->path->slowest,
			sizeof(*w->g->path->slowest), w->g->path->slowest_count);
}

int xsp_gpu_report_path(const struct writer *w)
{
	const struct xsp_gpu_path_counts *c = &w->g->path->counts;
	const struct xsp_gpu_counts *gpu = xsp_timeline_gpu(w->g->timeline);

	if (c->steps == 0) {
		xsp_report_note(
			w->section,
			"no step was recorded whole: no critical path (--step NAME says what a step is)");
		return 0;
	}
	xsp_report_value(w->section, "path_steps", "Steps with a critical path", XSP_UNIT_COUNT,
			 xsp_cell_integer(c->steps));
	if (w->g->events_lost || gpu->lost + gpu->dropped > 0)
		xsp_report_note(
			w->section,
			"uncertain: events or GPU records were lost, what the critical path shows as the host's may be the GPU's");
	if (xsp_timeline_cut_hides(w->g->timeline))
		xsp_report_note(
			w->section,
			"the cut leaves out calls: on the critical path their time is of what is around them, and launches among them are not known");
	if (gpu->activities[XSP_GPU_IS_SYNC] == 0)
		xsp_report_note(
			w->section,
			"no synchronisation was recorded: a critical path enters the GPU through copies alone");
	if (w->g->path->threads.count > 1 && !xsp_timeline_has_waits(w->g->timeline))
		xsp_report_note(
			w->section,
			"which thread waits for which is not known (--waits): on the critical path that is the time of the one that waits");
	put_path_kinds(w);
	put_path_steps(w);
	return put_path_names(w);
}
