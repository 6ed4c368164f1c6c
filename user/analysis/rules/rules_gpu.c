/* SPDX-License-Identifier: BSD-2-Clause */
/* rules_gpu.c - rules about the time on GPUs. */
#include <stdio.h>

#include "analysis/gpu/gpu.h"
#include "analysis/rules/rules_private.h"
#include "base/saturate.h"
#include "base/units.h"
#include "catalog/gpu/peaks.h"
#include "catalog/wait_reasons.h"
#include "timeline/python.h"

#define LAUNCHES_LEAST 100U /* fewer launches prove nothing */

static size_t devices_of(const struct xsp_rule_context *c, const struct xsp_gpu_device_use **out)
{
	const struct xsp_gpu_analysis *g = xsp_rule_state(c, "gpu");

	*out = NULL;
	return g != NULL ? xsp_gpu_sweep_devices(g->sweep, out) : 0;
}

/* ---- idle ---- */

static const struct xsp_gpu_host_use *most_idle(const struct xsp_gpu_analysis *g, bool wait)
{
	const struct xsp_gpu_host_use *uses, *most = NULL;
	const size_t n = xsp_gpu_host_uses(g->host, &uses);

	for (size_t i = 0; i < n; i++)
		if (uses[i].wait == wait && uses[i].idle_ns > 0 &&
		    (most == NULL || uses[i].idle_ns > most->idle_ns))
			most = &uses[i];
	return most;
}

#define GPU_NAME 64
/* "GPU 0"; with the process if another process has a device of that number. */
static void name_device(const struct xsp_gpu_device_use *all, size_t count,
			const struct xsp_gpu_device_use *d, char out[GPU_NAME])
{
	size_t same = 0;

	for (size_t i = 0; i < count; i++)
		same += all[i].device == d->device;
	if (same > 1)
		snprintf(out, GPU_NAME, "GPU %u of process %u", d->device, d->pid);
	else
		snprintf(out, GPU_NAME, "GPU %u", d->device);
}

static void find_idle(const struct xsp_rule_context *c, const struct xsp_gpu_device_use *d,
		      const char *subject, bool several)
{
	const struct xsp_gpu_analysis *g = xsp_rule_state(c, "gpu");
	const struct xsp_gpu_host_use *u = most_idle(g, false), *wait = most_idle(g, true);
	const bool late = u != NULL && d->host_ns * 2 >= d->in_ns[0];
	const bool waits = wait != NULL && wait->idle_ns * 2 >= xsp_gpu_host_sums(g->host)->idle_ns;
	char line[XSP_PYTHON_LINE_MAX], name[XSP_GPU_HOST_NAME_MAX];
	struct xsp_python_line at;
	struct xsp_rule_finding f = {
		.subject = subject,
		.part.share = xsp_rule_share(d->in_ns[0], d->recorded_ns),
		.at_ns = d->gap_from_ns,
		.for_ns = d->gap_ns,
		.advice =
			late ? NULL
			     : "look at the longest gap in the trace, and at what the threads that launch do there (record with --waits and --python)"};

	xsp_finding_ns(&f, "idle_ns", "Idle", d->in_ns[0]);
	xsp_finding_ns(&f, "idle_host_ns", "of it, until a late launch", d->host_ns);
	xsp_finding_ns(&f, "longest_gap_ns", "Longest gap", d->gap_ns);
	if (late) {
		const bool known =
			u->line != NULL && xsp_timeline_python_line(g->timeline, u->line, &at);
		if (known)
			xsp_python_line_show(&at, line);
		xsp_finding_text(&f, "in", NULL, xsp_gpu_host_name(g->host, u->name, name));
		xsp_finding_text(&f, "line", NULL, known ? line : NULL);
		xsp_finding_ns(&f, "in_ns", NULL, u->idle_ns);
		xsp_finding_flag(&f, "several", several);
	}
	if (late && waits) {
		xsp_finding_text(&f, "why", NULL, xsp_wait_class_name(wait->why));
		xsp_finding_ns(&f, "wait_ns", NULL, wait->idle_ns);
	}
	xsp_rule_found(c, &f);
}

int xsp_rule_gpu_idle(const struct xsp_rule_context *c)
{
	const struct xsp_gpu_device_use *devices;
	const size_t n = devices_of(c, &devices);

	for (size_t i = 0; i < n; i++) {
		const struct xsp_gpu_device_use *d = &devices[i];
		char subject[GPU_NAME];
		if (xsp_rule_share(d->in_ns[0], d->recorded_ns) < c->threshold ||
		    d->activities < LAUNCHES_LEAST)
			continue;
		name_device(devices, n, d, subject);
		find_idle(c, d, subject, n > 1);
	}
	return n > 0 ? 0 : XSP_RULE_NO_DATA;
}

/* ---- launches ---- */

/* The host falls short although it only launches: most kernels end before the next launch. */
int xsp_rule_launch_bound(const struct xsp_rule_context *c)
{
	const struct xsp_gpu_analysis *g = xsp_rule_state(c, "gpu");
	const struct xsp_gpu_device_use *devices;
	const size_t n = devices_of(c, &devices);
	bool known = false;

	for (uint32_t i = 0; i < n; i++) {
		const struct xsp_gpu_device_use *d = &devices[i];
		const struct xsp_gpu_launch_use *l =
			xsp_gpu_by_name_launches(g->names, i, XSP_GPU_IS_KERNEL);
		const double share = xsp_rule_share(d->host_ns, d->recorded_ns);
		char subject[GPU_NAME];
		known = known || l != NULL;
		if (l == NULL || l->count < LAUNCHES_LEAST || l->shorter * 2 < l->count ||
		    share < c->threshold)
			continue;
		struct xsp_rule_finding f = {.subject = subject, .part.share = share};
		name_device(devices, n, d, subject);
		xsp_finding_count(&f, "launches", "Launches of kernels", l->count);
		xsp_finding_count(&f, "shorter", "of them shorter than their call", l->shorter);
		xsp_finding_ns(&f, "idle_host_ns", "Idle until a late launch", d->host_ns);
		xsp_finding_share(&f, "short", NULL, xsp_rule_share(l->shorter, l->count));
		xsp_finding_ns(&f, "call_ns", NULL, l->call_ns / l->count);
		xsp_rule_found(c, &f);
	}
	return known ? 0 : XSP_RULE_NO_DATA;
}

static void find_short_kernel(const struct xsp_rule_context *c, const struct xsp_gpu_name_use *u,
			      uint64_t launches)
{
	char name[120];
	struct xsp_rule_finding f = {.subject = u->name,
				     .part.share = xsp_rule_share(u->launched, launches)};

	xsp_printable(name, sizeof(name), u->name, 60);
	xsp_finding_count(&f, "launches", "Launches", u->launched);
	xsp_finding_count(&f, "shorter", "of them shorter than their call", u->shorter);
	xsp_finding_figure(&f, "total_ns", "Time on GPUs", XSP_UNIT_NS, xsp_cell_sum(u->total_ns));
	xsp_finding_text(&f, "name", NULL, name);
	xsp_finding_share(&f, "short", NULL, xsp_rule_share(u->shorter, u->launched));
	xsp_finding_ns(&f, "mean", NULL, u->whole > 0 ? u->whole_ns / u->whole : 0);
	xsp_rule_found(c, &f);
}

int xsp_rule_short_kernels(const struct xsp_rule_context *c)
{
	const struct xsp_gpu_analysis *g = xsp_rule_state(c, "gpu");
	const struct xsp_gpu_name_use *uses;
	const size_t n = g != NULL ? xsp_gpu_by_name_uses(g->names, &uses) : 0;
	uint64_t launches = 0;

	for (size_t i = 0; i < n; i++)
		launches += uses[i].kind == XSP_GPU_IS_KERNEL ? uses[i].launched : 0;
	if (launches == 0)
		return XSP_RULE_NO_DATA;
	for (size_t i = 0; i < n; i++) {
		const struct xsp_gpu_name_use *u = &uses[i];
		if (u->kind == XSP_GPU_IS_KERNEL && u->launched >= LAUNCHES_LEAST &&
		    u->shorter * 2 >= u->launched &&
		    xsp_rule_share(u->launched, launches) >= c->threshold)
			find_short_kernel(c, u, launches);
	}
	return 0;
}

/* ---- streams ---- */

static uint64_t second_busiest(const struct xsp_gpu_analysis *g, uint32_t device)
{
	const struct xsp_gpu_stream_use *streams;
	const size_t n = xsp_gpu_sweep_streams(g->sweep, &streams);
	uint64_t first = 0, second = 0;

	for (size_t i = 0; i < n; i++) {
		const uint64_t busy = streams[i].device == device ? streams[i].recorded_busy_ns : 0;
		if (busy > first) {
			second = first;
			first = busy;
		} else if (busy > second) {
			second = busy;
		}
	}
	return second;
}

/* A second stream's work could run beside the first one's, but does not. */
int xsp_rule_serial_streams(const struct xsp_rule_context *c)
{
	const struct xsp_gpu_analysis *g = xsp_rule_state(c, "gpu");
	const struct xsp_gpu_device_use *devices;
	const size_t n = devices_of(c, &devices);

	for (uint32_t i = 0; i < n; i++) {
		const struct xsp_gpu_device_use *d = &devices[i];
		const uint64_t second = d->activities >= LAUNCHES_LEAST ? second_busiest(g, i) : 0;
		const double share = xsp_rule_share(second, d->recorded_ns);
		const double beside = xsp_rule_share(d->several_ns, second);
		char subject[GPU_NAME];
		if (share < XSP_SHARE_MEDIUM || beside >= c->threshold)
			continue;
		struct xsp_rule_finding f = {.subject = subject, .part.share = share};
		name_device(devices, n, d, subject);
		xsp_finding_ns(&f, "second_ns", "Busy time of the second stream", second);
		xsp_finding_ns(&f, "several_ns", "Two streams or more at work", d->several_ns);
		xsp_finding_count(&f, "streams", NULL, d->streams);
		xsp_finding_share(&f, "beside", NULL, beside);
		xsp_rule_found(c, &f);
	}
	return n > 0 ? 0 : XSP_RULE_NO_DATA;
}

/* ---- operators ---- */

/* An operator that uses a smaller share of the bandwidth waits for something else. */
#define BANDWIDTH_LEAST 0.3

/* The most FLOPs that a device can do per byte, and the bandwidth of the fastest memory. */
static bool limits(const struct xsp_timeline *t, double *balance, double *bandwidth)
{
	const struct xsp_gpu_device_info *devices;
	const size_t n = xsp_timeline_gpu_devices(t, &devices);
	double flops, bytes;
	bool known = false;

	for (size_t i = 0; i < n; i++) {
		if (!xsp_gpu_peaks(&devices[i].device, &flops, &bytes))
			return false;
		if (!known || flops / bytes < *balance)
			*balance = flops / bytes;
		*bandwidth = known && *bandwidth > bytes ? *bandwidth : bytes;
		known = true;
	}
	return known;
}

/* The time of all GPU work; kernels that overlap are added up. */
static uint64_t busy_ns(const struct xsp_gpu_device_use *devices, size_t count)
{
	uint64_t busy = 0, kernels = 0;

	for (size_t i = 0; i < count; i++) {
		busy += xsp_gpu_device_busy_ns(&devices[i]);
		for (unsigned k = 0; k < XSP_GPU_CLASSES; k++)
			xsp_add_saturated(&kernels, devices[i].total_ns[k]);
	}
	return kernels > busy ? kernels : busy;
}

/* Tensor cores raise the balance, and some bytes may be missing: both only strengthen the
 * finding. */
int xsp_rule_memory_bound(const struct xsp_rule_context *c)
{
	const struct xsp_gpu_analysis *g = xsp_rule_state(c, "gpu");
	const struct xsp_gpu_device_use *devices;
	const struct xsp_gpu_flops_use *uses;
	const size_t device_count = devices_of(c, &devices);
	const uint64_t busy = busy_ns(devices, device_count);
	const size_t n = g != NULL ? xsp_gpu_flops_uses(g->flops, &uses) : 0;
	double balance, bandwidth;

	if (n == 0 || !limits(c->timeline, &balance, &bandwidth))
		return XSP_RULE_NO_DATA;
	for (size_t i = 0; i < n; i++) {
		const struct xsp_gpu_flops_use *u = &uses[i];
		const double share = xsp_rule_share(u->gpu_ns, busy),
			     intensity = xsp_rule_share(u->flops, u->bytes),
			     used = xsp_rule_share(u->bytes, u->gpu_ns) * 1e9 / bandwidth;
		const char *name = xsp_timeline_name(c->timeline, u->name);
		char printable[120];
		if (u->flops == XSP_TOO_MUCH || u->bytes == XSP_TOO_MUCH ||
		    u->gpu_ns == XSP_TOO_MUCH || share < c->threshold || intensity >= balance ||
		    used < BANDWIDTH_LEAST)
			continue;
		struct xsp_rule_finding f = {.subject = name, .part.share = share};
		xsp_printable(printable, sizeof(printable), name, 60);
		xsp_finding_number(&f, "flops_per_byte", "FLOPs per byte", intensity);
		xsp_finding_number(&f, "balance", "FLOPs per byte of the GPU", balance);
		xsp_finding_share(&f, "bandwidth_share", "Bytes, of what memory can move", used);
		xsp_finding_ns(&f, "gpu_ns", "Time of its kernels", u->gpu_ns);
		xsp_finding_text(&f, "name", NULL, printable);
		xsp_rule_found(c, &f);
	}
	return 0;
}
