/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/gpu/summary_gpu.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/memory/summary_memory.h"
#include "base/saturate.h"
#include "base/rows/tally.h"
#include "base/units.h"
#include "report/list.h"

#define KERNELS_SHOWN 10
#define ERRORS_SHOWN 5
#define MAX_ERRORS 1024U

struct kernel {
	const char *name; /* owned by the timeline */
	uint64_t calls, total_ns, max_ns;
	uint64_t whole, whole_ns; /* activities that lie within the range */
};

/* An error code that an entry point returned. */
struct api_error {
	uint32_t probe, code;
	uint64_t count;
};

/* What one operator allocated. */
struct allocator {
	xsp_name_id name;
	bool any; /* allocated in an operator; otherwise in none */
	uint64_t bytes, calls;
};

struct xsp_summary_gpu {
	struct xsp_timeline *timeline;
	XSP_TALLY(struct allocator) allocators; /* by operator */
	XSP_TALLY(struct kernel) kernels; /* by the name's address */
	/* Sum of durations: more than the device's time where streams run in parallel. */
	uint64_t kernels_ns;
	uint64_t bytes;
	XSP_TALLY(struct api_error) errors; /* by probe and code */
	uint64_t calls, failed;
};

int xsp_summary_gpu_new(struct xsp_timeline *t, struct xsp_summary_gpu **out)
{
	*out = calloc(1, sizeof(**out));
	if (*out == NULL)
		return -ENOMEM;
	(*out)->timeline = t;
	(*out)->errors.tally.most = MAX_ERRORS;
	return 0;
}

void xsp_summary_gpu_free(struct xsp_summary_gpu *g)
{
	if (g == NULL)
		return;
	xsp_tally_free(&g->allocators);
	xsp_tally_free(&g->kernels);
	xsp_tally_free(&g->errors);
	free(g);
}

/* ---- collecting ---- */

static int count_error(struct xsp_summary_gpu *g, uint32_t probe, uint32_t code)
{
	struct api_error *e = xsp_tally_row(&g->errors, (uint64_t)probe << 32 | code,
					    &(struct api_error){probe, code, 0});

	g->failed++;
	if (e == NULL)
		return g->errors.tally.error;
	e->count++;
	return 0;
}

int xsp_summary_gpu_span(struct xsp_summary_gpu *g, const struct xsp_span *span)
{
	const struct xsp_section *s;
	uint32_t code;

	if (xsp_timeline_cuda(g->timeline, span->probe) == NULL)
		return 0;
	g->calls++;
	s = xsp_details_find(span->details, XSP_SECTION_RESULT, NULL);
	if (s == NULL || xsp_section_length(s) < sizeof(uint64_t))
		return 0;
	memcpy(&code, xsp_section_data(s), sizeof(code)); /* an int: the low half */
	return xsp_cuda_is_error(code) ? count_error(g, span->probe, code) : 0;
}

/* One whose times cannot be true is counted, and is in no time. */
static int count_kernel(struct xsp_summary_gpu *g, const struct xsp_gpu_activity *a)
{
	uint64_t key = (uintptr_t)a->name, duration = a->end_ns - a->start_ns;
	struct kernel *k = xsp_tally_row(&g->kernels, key, &(struct kernel){.name = a->name});

	if (k == NULL)
		return -ENOMEM;
	k->calls++;
	if (a->bad)
		return 0;
	xsp_add_saturated(&k->total_ns, duration);
	if (!a->cut) {
		k->max_ns = duration > k->max_ns ? duration : k->max_ns;
		k->whole++;
		xsp_add_saturated(&k->whole_ns, duration);
	}
	xsp_add_saturated(&g->kernels_ns, duration);
	return 0;
}

int xsp_summary_gpu_activity(struct xsp_summary_gpu *g, const struct xsp_gpu_activity *a)
{
	if (a->kind == XSP_GPU_IS_MEMCPY)
		xsp_add_saturated(&g->bytes, ((const struct xsp_gpu_memcpy *)a->record)->bytes);
	return a->kind == XSP_GPU_IS_KERNEL ? count_kernel(g, a) : 0;
}

int xsp_summary_gpu_memory(struct xsp_summary_gpu *g, const struct xsp_memory_event *e)
{
	uint64_t key = e->op != 0 ? e->op_name : UINT64_MAX;

	if (e->bytes <= 0 || e->pool != XSP_MEMORY_GPU)
		return 0;
	struct allocator *a = xsp_tally_row(
		&g->allocators, key, &(struct allocator){.name = e->op_name, .any = e->op != 0});
	if (a == NULL)
		return -ENOMEM;
	xsp_add_saturated(&a->bytes, (uint64_t)e->bytes);
	a->calls++;
	return 0;
}

/* ---- printing ---- */

static XSP_ORDER(by_bytes, struct allocator, XSP_FALLING(bytes));

#define ALLOCATORS_SHOWN 5

static void print_allocators(struct xsp_summary_gpu *g, FILE *f)
{
	if (g->allocators.count == 0)
		return;
	fputs("      allocated by", f);
	for (size_t i = 0; i < g->allocators.count && i < ALLOCATORS_SHOWN; i++) {
		const struct allocator *a = &g->allocators.rows[i];
		char name[200], bytes[XSP_UNITS_SIZE], calls[XSP_UNITS_SIZE];
		xsp_printable(name, sizeof(name),
			      a->any ? xsp_timeline_name(g->timeline, a->name) : "no operator", 40);
		fprintf(f, "%s %s %s in %s call%s", i ? "," : "", name,
			xsp_format_bytes(bytes, a->bytes), xsp_format_count(calls, a->calls),
			a->calls == 1 ? "" : "s");
	}
	fputc('\n', f);
}

static void print_memory(struct xsp_summary_gpu *g, FILE *f)
{
	const struct xsp_memory_use *uses;
	size_t n = xsp_timeline_memory(g->timeline, &uses);

	for (size_t i = 0; i < n; i++) {
		const struct xsp_memory_use *u = &uses[i];
		char device[32] = "", now[XSP_UNITS_SIZE], peak[XSP_UNITS_SIZE];
		char unknown[XSP_UNITS_SIZE], owner[XSP_SUMMARY_MEMORY_OWNER];
		if (xsp_memory_is_allocator(u->pool))
			continue;
		if (u->device != XSP_GPU_NO_ID)
			snprintf(device, sizeof(device), " of device %u", u->device);
		fprintf(f, "%s%s%s, allocated since the recording began: %s at most, %s at %s end",
			u->pool == XSP_MEMORY_PINNED ? "pinned host memory" : "GPU memory", device,
			xsp_summary_memory_owner(g->timeline, u, owner),
			xsp_format_bytes(peak, u->peak), xsp_format_bytes(now, u->now),
			xsp_timeline_cut_text(g->timeline) != NULL ? "the cut's" : "its");
		if (u->unknown_frees > 0)
			fprintf(f, "; %s frees of what was there before",
				xsp_format_count(unknown, u->unknown_frees));
		fputc('\n', f);
	}
	print_allocators(g, f);
}

static XSP_ORDER(by_total, struct kernel, XSP_FALLING(total_ns) ?: strcmp(x->name, y->name));

#define KERNEL(member) XSP_FIELD(struct kernel, member)
XSP_REPORT_CELL(kernel_mean, void, struct kernel,
		row->whole > 0 && row->whole_ns != XSP_TOO_MUCH
			? xsp_cell_integer(row->whole_ns / row->whole)
			: xsp_cell_absent());

static const struct xsp_report_column kernel_columns[] = {
	{"name", "kernel", XSP_UNIT_TEXT, true, KERNEL(name)},
	{"launches", "launches", XSP_UNIT_COUNT, false, KERNEL(calls)},
	{"total_ns", "GPU time", XSP_UNIT_NS, false, KERNEL(total_ns)},
	{"mean_ns", "mean", XSP_UNIT_NS, false, XSP_BY(kernel_mean)},
	{"max_ns", "max", XSP_UNIT_NS, false, KERNEL(max_ns)},
	{"whole_max_ns", "max", XSP_UNIT_NS, false, XSP_FIELD_IF(struct kernel, max_ns, whole)},
};
static const struct xsp_list_column kernels_shown[] = {
	{.key = "name", .width = -44},	     {.key = "launches", .width = 12},
	{.key = "total_ns", .width = 9},     {.key = "mean_ns", .width = 9},
	{.key = "whole_max_ns", .width = 9},
};
static const struct xsp_list kernel_list = {
	XSP_LIST_COLUMNS(kernel_columns),
	.json = "gpu.kernels",
	.keys = "name launches total_ns max_ns",
	XSP_LIST_TEXT(kernels_shown),
	.rows = "kernel",
};

static void print_activity(const struct xsp_summary_gpu *g, FILE *f)
{
	const struct xsp_gpu_counts *c = xsp_timeline_gpu(g->timeline);
	char kernels[XSP_UNITS_SIZE], time[XSP_UNITS_SIZE], copies[XSP_UNITS_SIZE];
	char bytes[XSP_UNITS_SIZE], sets[XSP_UNITS_SIZE];

	fprintf(f, "GPU: %s kernels (%s in all, of all streams), %s copies (%s), %s memsets\n",
		xsp_format_count(kernels, c->activities[XSP_GPU_IS_KERNEL]),
		xsp_format_ns(time, g->kernels_ns),
		xsp_format_count(copies, c->activities[XSP_GPU_IS_MEMCPY]),
		xsp_format_bytes(bytes, g->bytes),
		xsp_format_count(sets, c->activities[XSP_GPU_IS_MEMSET]));
}

static void print_losses(const struct xsp_gpu_counts *c, struct xsp_report *report)
{
	char bad[XSP_GPU_BAD_TEXT];
	const struct {
		uint64_t count;
		const char *what;
	} losses[] = {
		{c->lost, "GPU records lost on the way from the agent (a larger --buffer helps)"},
		{c->dropped, "GPU records dropped in the target by CUPTI or the agent"},
		{c->unlinked, "GPU activities whose API call is not known"},
		{c->unnamed, "kernels whose name never came"},
		{c->malformed, "GPU records not understood"},
		{c->unfinished, "processes whose agent did not say that it had handed over all"},
	};

	for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++)
		xsp_list_count(report, true, losses[i].what, losses[i].count);
	if (xsp_gpu_bad_text(c, bad) != NULL)
		xsp_list_warn(report, "%s", bad);
	if (c->errors > 0 && c->error[0] != '\0')
		xsp_list_warn(report, "the agent said: %s", c->error);
}

static XSP_ORDER(by_count, struct api_error, XSP_FALLING(count));

static void print_errors(struct xsp_summary_gpu *g, struct xsp_capture_reader *r, FILE *f)
{
	const struct xsp_capture_probe *probes;
	char count[XSP_UNITS_SIZE], call[96];

	if (g->errors.count == 0)
		return;
	xsp_capture_probes(r, &probes);
	xsp_tally_sort(&g->errors, by_count);
	fprintf(f, "CUDA calls that returned an error: %s\n", xsp_format_count(count, g->failed));
	for (size_t i = 0; i < g->errors.count && i < ERRORS_SHOWN; i++) {
		const struct api_error *e = &g->errors.rows[i];
		const struct xsp_cuda_entry *entry = xsp_timeline_cuda(g->timeline, e->probe);
		const char *name = xsp_cuda_error((enum xsp_cuda_api)entry->api, e->code);
		xsp_printable(call, sizeof(call), probes[e->probe].name, 0);
		fprintf(f, "      %s: %s %" PRIu32 ", %s times\n", call,
			name != NULL ? name : "error", e->code, xsp_format_count(count, e->count));
	}
	if (g->errors.count > ERRORS_SHOWN)
		fprintf(f, "      and %zu other kinds\n", g->errors.count - ERRORS_SHOWN);
	if (g->errors.tally.left_out > 0)
		fprintf(f, "      and %s calls of more kinds than are told apart\n",
			xsp_format_count(count, g->errors.tally.left_out));
}

static void print_lines(struct xsp_summary_gpu *g, struct xsp_capture_reader *r,
			struct xsp_report *report)
{
	const struct xsp_gpu_counts *c = xsp_timeline_gpu(g->timeline);
	const char *wanted = xsp_capture_info(r, "gpu");
	FILE *f = xsp_list_lines(report);

	if (c != NULL && c->records > 0)
		print_activity(g, f);
	if (c != NULL)
		print_losses(c, report);
	print_memory(g, f);
	print_errors(g, r, f);
	if ((c == NULL || c->records == 0) && g->calls > 0 && wanted != NULL &&
	    strcmp(wanted, "wanted") == 0)
		fputs("GPU activity was not collected: the agent was not in the process. Give --inject, or start the program with xsptrace -- COMMAND, or with CUDA_INJECTION64_PATH=/path/to/" XSP_GPU_AGENT
		      "\n",
		      f);
}

/* ---- tables ---- */

#define USE_CELL(name, value)                                                                      \
	XSP_REPORT_CELL(use_##name, struct xsp_timeline, struct xsp_memory_use, value)

USE_CELL(pid, xsp_cell_integer(xsp_summary_memory_pid(of, row)));
USE_CELL(device, xsp_cell_if(row->device != XSP_GPU_NO_ID, row->device));
USE_CELL(pinned, xsp_cell_bool(row->pool == XSP_MEMORY_PINNED));

static const struct xsp_report_column use_columns[] = {
	{"pid", "process", XSP_UNIT_NUMBER, true, XSP_BY(use_pid)},
	{"device", "device", XSP_UNIT_NUMBER, true, XSP_BY(use_device)},
	{"pinned_host", "pinned", XSP_UNIT_NUMBER, true, XSP_BY(use_pinned)},
	{"peak_bytes", "at most", XSP_UNIT_BYTES, false, XSP_FIELD(struct xsp_memory_use, peak)},
	{"bytes_at_end", "at the end", XSP_UNIT_BYTES, false,
	 XSP_FIELD(struct xsp_memory_use, now)},
	{"unknown_frees", "frees of what was there before", XSP_UNIT_COUNT, false,
	 XSP_FIELD(struct xsp_memory_use, unknown_frees)},
};
static const struct xsp_list use_list = {
	XSP_LIST_COLUMNS(use_columns),
	.json = "gpu.memory",
	.keys = "pid device? pinned_host peak_bytes bytes_at_end unknown_frees",
};

XSP_REPORT_CELL(allocator_name, struct xsp_timeline, struct allocator,
		row->any ? xsp_cell_text(xsp_timeline_name(of, row->name)) : xsp_cell_absent());

static const struct xsp_report_column allocator_columns[] = {
	{"name", "by", XSP_UNIT_TEXT, true, XSP_BY(allocator_name)},
	{"bytes", "bytes", XSP_UNIT_BYTES, false, XSP_FIELD(struct allocator, bytes)},
	{"calls", "calls", XSP_UNIT_COUNT, false, XSP_FIELD(struct allocator, calls)},
};
static const struct xsp_list allocator_list = {
	XSP_LIST_COLUMNS(allocator_columns),
	.json = "gpu.allocated_by",
	.keys = "name bytes calls",
};

static void put_memory(const struct xsp_summary_gpu *g, struct xsp_report_section *section)
{
	const struct xsp_memory_use *uses;
	const size_t n = xsp_timeline_memory(g->timeline, &uses);
	struct xsp_report_table *t = xsp_list_table(section, &use_list);

	for (size_t i = 0; i < n; i++)
		if (!xsp_memory_is_allocator(uses[i].pool))
			xsp_report_add(t, g->timeline, &uses[i]);
	xsp_list_rows(section, &allocator_list, g->timeline, g->allocators.rows,
		      sizeof(*g->allocators.rows), g->allocators.count, 0);
}

#define SUM(member) XSP_FIELD(struct xsp_summary_gpu, member)
#define ACTIVITIES(name, kind)                                                                     \
	XSP_REPORT_CELL(name, void, struct xsp_summary_gpu,                                        \
			xsp_cell_integer(xsp_timeline_gpu(row->timeline)->activities[kind]))

ACTIVITIES(sum_kernels, XSP_GPU_IS_KERNEL);
ACTIVITIES(sum_copies, XSP_GPU_IS_MEMCPY);

static const struct xsp_report_column call_sums[] = {
	{"api_calls", "calls of the API", XSP_UNIT_COUNT, false, SUM(calls)},
	{"api_errors", "... that failed", XSP_UNIT_COUNT, false, SUM(failed)},
};
static const struct xsp_list of_calls = {XSP_LIST_COLUMNS(call_sums), .json = "gpu",
					 .keys = "api_calls api_errors"};
static const struct xsp_report_column gpu_sums[] = {
	{"kernels", "kernels", XSP_UNIT_COUNT, false, XSP_BY(sum_kernels)},
	{"kernels_ns", "... in all, of all streams", XSP_UNIT_NS, false, SUM(kernels_ns)},
	{"copies", "copies", XSP_UNIT_COUNT, false, XSP_BY(sum_copies)},
	{"copied_bytes", "... in all", XSP_UNIT_BYTES, false, SUM(bytes)},
};
static const struct xsp_list of_gpu = {XSP_LIST_COLUMNS(gpu_sums), .json = "gpu",
				       .keys = "kernels_ns copied_bytes"};

static void put_section(const struct xsp_summary_gpu *g, bool seen, struct xsp_report *report)
{
	struct xsp_report_section *section =
		xsp_report_section(report, "cuda", "CUDA calls, kernels and copies");

	xsp_list_values(section, &of_calls, NULL, g);
	if (seen || xsp_report_form(report) == XSP_FORM_JSON)
		xsp_list_values(section, &of_gpu, NULL, g);
	else
		xsp_report_note(section, "what the GPU did was not collected");
	xsp_list_rows(section, &kernel_list, NULL, g->kernels.rows, sizeof(*g->kernels.rows),
		      g->kernels.count, xsp_report_how(report)->top > 0 ? KERNELS_SHOWN : 0);
	if (g->kernels.count > 0)
		xsp_list_gap(report);
	put_memory(g, section);
}

void xsp_summary_gpu_report(struct xsp_summary_gpu *g, struct xsp_capture_reader *r,
			    struct xsp_report *report)
{
	const struct xsp_gpu_counts *c = xsp_timeline_gpu(g->timeline);
	const bool seen = c != NULL && c->records > 0;

	xsp_tally_sort(&g->kernels, by_total);
	xsp_tally_sort(&g->allocators, by_bytes);
	if (seen || g->calls > 0 || g->kernels.count > 0)
		put_section(g, seen, report);
	if (xsp_report_form(report) == XSP_FORM_TEXT)
		print_lines(g, r, report);
}

bool xsp_summary_gpu_called(const struct xsp_summary_gpu *g)
{
	return g->calls > 0;
}
