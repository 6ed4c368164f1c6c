/* SPDX-License-Identifier: BSD-2-Clause */
/* metadata.c - top-level keys of the Chrome trace: those that PyTorch and Kineto write, and our own
 * (xsptrace_...). */
#include <inttypes.h>
#include <stdio.h>

#include "catalog/job_variables.h"
#include "catalog/torch/abi.h"
#include "export/chrome/json.h"
#include "export/chrome/parts.h"

static void put_text(struct xsp_export *x, const char *key, const char *value)
{
	const char *before = "";

	xsp_chrome_text_pair(x->out, &before, key, value);
	xsp_out_text(x->out, value != NULL ? ",\n" : "");
}

/* ---- what was recorded, as far as the capture shows it ---- */

static unsigned parts_read(const struct xsp_capture_reader *r)
{
	const struct xsp_capture_operator *all;
	const size_t count = xsp_capture_operators(r, &all);
	unsigned parts = 0;

	for (size_t i = 0; i < count; i++)
		parts |= all[i].parts;
	return parts;
}

static bool has_modules(const struct xsp_capture_python *all, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (uint32_t k = 0; k < all[i].count; k++)
			if (all[i].frames[k].module != 0)
				return true;
	return false;
}

/* As PyTorch's profiler writes them: 1, or no key. */
static void put_features(struct xsp_export *x)
{
	const struct xsp_capture_python *stacks;
	const size_t count = xsp_capture_pythons(x->view.reader, &stacks);
	const unsigned parts = parts_read(x->view.reader);
	const struct {
		const char *key;
		bool on;
	} features[] = {
		{"record_shapes", parts & XSP_TORCH_PART_TENSORS},
		{"with_stack", count > 0},
		{"with_modules", has_modules(stacks, count)},
		{"profile_memory", xsp_timeline_has_allocations(x->view.timeline)},
		{"with_flops", parts & XSP_TORCH_PART_FLOPS},
	};

	for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++)
		if (features[i].on)
			xsp_out_printf(x->out, "\"%s\":1,\n", features[i].key);
}

/* ---- which rank of which job ---- */

struct part {
	uint32_t rank, size; /* size 0: not known */
};

static bool part_of(const struct xsp_capture_process *p, struct part *out)
{
	out->size = 0;
	if (!xsp_capture_variable_number(p, XSP_JOB_RANK, &out->rank))
		return false;
	xsp_capture_variable_number(p, XSP_JOB_WORLD_SIZE, &out->size);
	return out->size == 0 || out->rank < out->size;
}

/* A trace belongs to one rank: if its processes have several, the key is absent. */
static void put_rank(struct xsp_export *x, const struct xsp_capture_process *all, size_t count)
{
	struct part first = {0}, other;
	bool any = false;

	for (size_t i = 0; i < count; i++) {
		if (!part_of(&all[i], &other))
			continue;
		if (any && (other.rank != first.rank || other.size != first.size))
			return;
		first = other;
		any = true;
	}
	if (!any)
		return;
	xsp_chrome_key(x->out, "distributedInfo");
	xsp_out_printf(x->out, "{\"rank\":%" PRIu32, first.rank);
	if (first.size > 0)
		xsp_out_printf(x->out, ",\"world_size\":%" PRIu32, first.size);
	xsp_out_text(x->out, "},\n");
}

static void put_variables(struct xsp_export *x, const struct xsp_capture_process *p)
{
	const char *before = "{";
	char value[256];

	xsp_chrome_number_pair(x->out, &before, "pid", p->ns_pid != 0 ? p->ns_pid : p->pid);
	for (const struct xsp_job_variable *v = xsp_job_variables; v->name != NULL; v++)
		if (xsp_capture_variable(p, v->name, value, sizeof(value)))
			xsp_chrome_text_pair(x->out, &before, v->name, value);
	xsp_out_text(x->out, "}");
}

static void put_job(struct xsp_export *x, const struct xsp_capture_process *all, size_t count)
{
	bool any = false;

	for (size_t i = 0; i < count; i++) {
		if (all[i].environment[0] == '\0')
			continue;
		if (!any)
			xsp_chrome_key(x->out, "xsptrace_job");
		xsp_out_text(x->out, any ? ",\n" : "[");
		put_variables(x, &all[i]);
		any = true;
	}
	if (any)
		xsp_out_text(x->out, "],\n");
}

/* ---- our own keys ---- */

/* What the capture says of its own recording. */
static void put_info(struct xsp_export *x)
{
	static const char *const keys[] = {
		"arguments", "filters",	      "children",	    "execs",
		"libraries", "changed code",  "unnamed call sites", "kernel",
		"version",   "tensor layout", "max overhead",	    "waits",
		"samples",   "wait stacks",   "worst slowdown",	    "operators without arguments",
		"read from", "not as there",  "calls unseen",	    "libraries late ns",
		"hit costs", XSP_INFO_PRICES};
	const char *before = "{";
	uint64_t count;

	xsp_chrome_key(x->out, "xsptrace_capture");
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		xsp_chrome_text_pair(x->out, &before, keys[i],
				     xsp_capture_info(x->view.reader, keys[i]));
	for (unsigned i = 0; i < XSP_GAPS; i++)
		xsp_chrome_text_pair(x->out, &before, xsp_capture_gap_key(i),
				     xsp_capture_gap(x->view.reader, i, &count));
	xsp_chrome_text_pair(x->out, &before, "cut", xsp_timeline_cut_text(x->view.timeline));
	xsp_chrome_text_pair(x->out, &before, "end", xsp_run_how_ended(x->view.reader));
	xsp_out_text(x->out, "},\n");
}

static void put_window(struct xsp_export *x, const struct xsp_chrome *c)
{
	const struct xsp_capture_clock *clocks = NULL;
	size_t n = xsp_capture_clocks(x->view.reader, &clocks);
	uint64_t offset = c->base_ns + c->shift; /* real time - monotonic */
	const struct xsp_run_stat stats[] = {
		{"start_ns", c->start_ns + offset},
		{"end_ns", c->end_ns + offset},
		{"duration_ns", c->end_ns - c->start_ns},
		{"monotonic_start_ns", c->start_ns},
		{"clock_uncertainty_ns", n ? clocks[0].uncertainty_ns : 0},
		{"realtime_moved_ns", xsp_run_clock_step(x->view.reader)},
	};

	xsp_chrome_stats(x->out, "xsptrace_window", stats, sizeof(stats) / sizeof(stats[0]));
}

static const char *function_name(const struct xsp_export *x, uint32_t probe)
{
	const struct xsp_capture_probe *probes = NULL;

	return probe < xsp_capture_probes(x->view.reader, &probes) ? probes[probe].name : "";
}

static void put_brake(struct xsp_export *x, const struct xsp_chrome *c)
{
	const struct xsp_capture_let_go *l = NULL;
	size_t n = xsp_capture_let_gos(x->view.reader, &l);
	const struct xsp_capture_window *w = NULL;
	const struct xsp_run_stat stats[] = {
		{"windows", xsp_capture_windows(x->view.reader, &w)},
		{"recorded_ns", xsp_timeline_recorded_ns(x->view.timeline)},
		{"of_ns", c->end_ns - c->start_ns},
	};

	xsp_chrome_stats(x->out, "xsptrace_windows", stats, sizeof(stats) / sizeof(stats[0]));
	xsp_chrome_key(x->out, "xsptrace_let_go");
	xsp_out_text(x->out, "[");
	for (size_t i = 0; i < n; i++) {
		const char *before = i > 0 ? ",\n{" : "{";
		xsp_chrome_text_pair(x->out, &before, "name", function_name(x, l[i].probe));
		xsp_chrome_number_pair(x->out, &before, "after_ns",
				       l[i].time_ns > c->start_ns ? l[i].time_ns - c->start_ns : 0);
		xsp_chrome_number_pair(x->out, &before, "calls_per_second", l[i].calls_per_second);
		xsp_out_text(x->out, "}");
	}
	xsp_out_text(x->out, "],\n");
}

static void put_losses(struct xsp_export *x)
{
	const struct xsp_capture_lost *lost = NULL;
	const size_t n = xsp_capture_losts(x->view.reader, &lost);

	xsp_chrome_key(x->out, "xsptrace_lost_by_function");
	xsp_out_text(x->out, "[");
	for (size_t i = 0; i < n; i++) {
		const char *before = i > 0 ? ",\n{" : "{";
		xsp_chrome_text_pair(x->out, &before, "name", function_name(x, lost[i].probe));
		xsp_chrome_number_pair(x->out, &before, "entries", lost[i].entries);
		xsp_chrome_number_pair(x->out, &before, "exits", lost[i].exits);
		xsp_out_text(x->out, "}");
	}
	xsp_out_text(x->out, "],\n");
}

/* ---- all of them ---- */

void xsp_chrome_recorded(struct xsp_export *x)
{
	const struct xsp_chrome *c = xsp_chrome_of(x);
	const struct xsp_capture_process *all;
	const size_t count = xsp_capture_processes(x->view.reader, &all);
	struct xsp_run_stats stats;
	char id[20];

	put_text(x, "host_name", xsp_capture_info(x->view.reader, "host"));
	snprintf(id, sizeof(id), "%016" PRIx64, xsp_capture_id(x->view.reader));
	put_text(x, "trace_id", id);
	put_features(x);
	put_rank(x, all, count);
	put_job(x, all, count);
	put_text(x, "xsptrace_version", XSP_VERSION);
	put_info(x);
	put_window(x, c);
	xsp_run_stats_losses(x->view.reader, &stats);
	xsp_chrome_stats(x->out, "xsptrace_losses", stats.list, stats.count);
	xsp_run_stats_overhead(x->view.reader, &stats);
	xsp_chrome_stats(x->out, "xsptrace_overhead", stats.list, stats.count);
	put_brake(x, c);
}

void xsp_chrome_read(struct xsp_export *x)
{
	struct xsp_run_stats stats;

	xsp_run_stats_timeline(x->view.reader, x->view.timeline, &stats);
	xsp_chrome_stats(x->out, "xsptrace_timeline", stats.list, stats.count);
	put_losses(x);
	xsp_chrome_gpu_tail(x);
	xsp_chrome_threads(x);
}
