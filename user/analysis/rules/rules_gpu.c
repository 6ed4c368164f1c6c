/* SPDX-License-Identifier: BSD-2-Clause */
/* rules_gpu.c - rules about the time of GPUs. */
#include <stdio.h>

#include "analysis/gpu/gpu.h"
#include "analysis/rules/rules_private.h"
#include "base/saturate.h"
#include "base/units.h"
#include "catalog/gpu/peaks.h"
#include "catalog/wait_reasons.h"
#include "timeline/python.h"

#define LAUNCHES_LEAST 100U /* fewer launches prove nothing */

/* Fewer activities whose launch is not known than this part are those of before the recording. */
#define UNLAUNCHED_LEAST 0.01

/* What came of the GPU's own records is a doubt of its own: what is not there looks like idle time. */
static const char *doubt(const struct xsp_rule_context *c, char out[XSP_DOUBT_SIZE])
{
	const struct xsp_gpu_counts *n = xsp_timeline_gpu(c->timeline);
	const struct xsp_gpu_analysis *g = xsp_rule_state(c, "gpu");
	char count[XSP_UNITS_SIZE];

	if (n->lost + n->dropped > 0)
		snprintf(out, XSP_DOUBT_SIZE,
			 "%s GPU records were lost: work that is not known looks idle",
			 xsp_format_count(count, n->lost + n->dropped));
	else if (g->untimed > 0)
		snprintf(out, XSP_DOUBT_SIZE,
			 "CUPTI could not time %s kernels: work that is not known looks idle",
			 xsp_format_count(count, g->untimed));
	else if ((double)g->unlaunched > UNLAUNCHED_LEAST * (double)n->records)
		snprintf(out, XSP_DOUBT_SIZE, "the launches of %s activities are not known",
			 xsp_format_count(count, g->unlaunched));
	else
		return xsp_rule_doubt(c, XSP_DOUBT_LOST | XSP_DOUBT_WINDOWS, out);
	return out;
}

static double share_of(uint64_t part, uint64_t whole)
{
	return whole > 0 ? (double)part / (double)whole : 0;
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

/* "; for 328 ms of it off its CPU (lock)", if that was most of it; else "" */
static const char *while_waiting(const struct xsp_gpu_analysis *g, char *out, size_t size)
{
	const struct xsp_gpu_host_use *u = most_idle(g, true);
	char idle[XSP_UNITS_SIZE];

	if (u == NULL || u->idle_ns * 2 < xsp_gpu_host_idle_ns(g->host))
		return "";
	snprintf(out, size, "; for %s of the time it is off its CPU (%s)",
		 xsp_format_ns(idle, u->idle_ns), xsp_wait_class_name(u->why));
	return out;
}

/* `several`: what the threads did is known of all devices together only. */
static void advise_idle(const struct xsp_gpu_analysis *g, const struct xsp_gpu_device_use *d,
			bool several, char *out, size_t size)
{
	const struct xsp_gpu_host_use *u = most_idle(g, false);
	char line[XSP_PYTHON_LINE_MAX], name[XSP_GPU_HOST_NAME_MAX], idle[XSP_UNITS_SIZE];
	char waiting[128];
	struct xsp_python_line at;

	if (u == NULL || d->host_ns * 2 < d->in_ns[0]) {
		snprintf(out, size,
			 "look at the longest gap in the trace, and at what the threads "
			 "that launch do there (record with --waits and --python)");
		return;
	}
	const bool known = u->line != NULL && xsp_timeline_python_line(g->timeline, u->line, &at);
	if (known)
		xsp_python_line_show(&at, line);
	snprintf(out, size,
		 "launches come too late. Meanwhile the launching thread is in %s%s%s (%s%s)%s: do "
		 "that elsewhere or earlier, launch ahead, or in fewer and larger pieces",
		 xsp_gpu_host_name(g->host, u->name, name), known ? " at " : "", known ? line : "",
		 xsp_format_ns(idle, u->idle_ns), several ? ", of all GPUs together" : "",
		 while_waiting(g, waiting, sizeof(waiting)));
}

/* "GPU 0"; with its process if another one has a device of that number. */
static void name_device(const struct xsp_gpu_device_use *all, size_t count,
			const struct xsp_gpu_device_use *d, char *out, size_t size)
{
	size_t same = 0;

	for (size_t i = 0; i < count; i++)
		same += all[i].device == d->device;
	if (same > 1)
		snprintf(out, size, "GPU %u of process %u", d->device, d->pid);
	else
		snprintf(out, size, "GPU %u", d->device);
}

int xsp_rule_gpu_idle(const struct xsp_rule_context *c)
{
	const struct xsp_gpu_analysis *g = xsp_rule_state(c, "gpu");
	const struct xsp_gpu_device_use *devices;
	const size_t n = g != NULL ? xsp_gpu_sweep_devices(g->sweep, &devices) : 0;

	if (n == 0)
		return XSP_RULE_NO_DATA;
	for (size_t i = 0; i < n; i++) {
		const struct xsp_gpu_device_use *d = &devices[i];
		const double share = share_of(d->in_ns[0], d->recorded_ns);
		char subject[64], title[160], advice[4096], why[XSP_DOUBT_SIZE],
			idle[XSP_UNITS_SIZE];
		if (share < c->threshold || d->activities < LAUNCHES_LEAST)
			continue;
		name_device(devices, n, d, subject, sizeof(subject));
		snprintf(title, sizeof(title), "%s is idle for %.3g %% of the time (%s)", subject,
			 share * 100, xsp_format_ns(idle, d->in_ns[0]));
		advise_idle(g, d, n > 1, advice, sizeof(advice));
		struct xsp_report_section *s = xsp_rule_found(
			c,
			(struct xsp_report_finding){.subject = subject,
						    .title = title,
						    .advice = advice,
						    .uncertain = doubt(c, why),
						    .share = share,
						    .from_ns = d->gap_from_ns,
						    .to_ns = d->gap_from_ns + d->gap_ns},
			true);
		xsp_report_value(s, "idle_ns", "Idle", XSP_UNIT_NS, xsp_cell_integer(d->in_ns[0]));
		xsp_report_value(s, "idle_host_ns", "of it, until a late launch", XSP_UNIT_NS,
				 xsp_cell_integer(d->host_ns));
		xsp_report_value(s, "longest_gap_ns", "Longest gap", XSP_UNIT_NS,
				 xsp_cell_integer(d->gap_ns));
	}
	return 0;
}

/* ---- launches ---- */

/* The host is late although it does nothing but launch: most kernels are over before the next call is. */
int xsp_rule_launch_bound(const struct xsp_rule_context *c)
{
	const struct xsp_gpu_analysis *g = xsp_rule_state(c, "gpu");
	const struct xsp_gpu_device_use *devices;
	const size_t n = g != NULL ? xsp_gpu_sweep_devices(g->sweep, &devices) : 0;
	bool known = false;

	for (uint32_t i = 0; i < n; i++) {
		const struct xsp_gpu_device_use *d = &devices[i];
		const struct xsp_gpu_launch_use *l =
			xsp_gpu_by_name_launches(g->names, i, XSP_GPU_IS_KERNEL);
		char subject[64], title[200], why[XSP_DOUBT_SIZE], call[XSP_UNITS_SIZE];
		known = known || l != NULL;
		if (l == NULL || l->count < LAUNCHES_LEAST || l->shorter * 2 < l->count)
			continue;
		const double share = share_of(d->host_ns, d->recorded_ns);
		if (share < c->threshold)
			continue;
		name_device(devices, n, d, subject, sizeof(subject));
		snprintf(title, sizeof(title),
			 "%s waits for launches for %.3g %% of the time: %.3g %% of its kernels "
			 "are shorter than the call that launches them (%s)",
			 subject, share * 100, share_of(l->shorter, l->count) * 100,
			 xsp_format_ns(call, l->call_ns / l->count));
		struct xsp_report_section *s = xsp_rule_found(
			c,
			(struct xsp_report_finding){
				.subject = subject,
				.title = title,
				.advice = "launch less: larger batches, fused operators "
					  "(torch.compile), or CUDA graphs for what repeats",
				.uncertain = doubt(c, why),
				.share = share},
			true);
		xsp_report_value(s, "launches", "Launches of kernels", XSP_UNIT_COUNT,
				 xsp_cell_integer(l->count));
		xsp_report_value(s, "shorter", "of them shorter than their call", XSP_UNIT_COUNT,
				 xsp_cell_integer(l->shorter));
		xsp_report_value(s, "idle_host_ns", "Idle until a late launch", XSP_UNIT_NS,
				 xsp_cell_integer(d->host_ns));
	}
	return known ? 0 : XSP_RULE_NO_DATA;
}

static void find_short_kernel(const struct xsp_rule_context *c, const struct xsp_gpu_name_use *u,
			      uint64_t launches)
{
	const double share = share_of(u->launched, launches);
	char title[320], name[120], mean[XSP_UNITS_SIZE], why[XSP_DOUBT_SIZE];

	xsp_printable(name, sizeof(name), u->name, 60);
	snprintf(title, sizeof(title),
		 "%s is over before its launch is in %.3g %% of its runs, and %.3g %% of all "
		 "launches (mean %s)",
		 name, share_of(u->shorter, u->launched) * 100, share * 100,
		 xsp_format_ns(mean, u->whole > 0 ? u->whole_ns / u->whole : 0));
	struct xsp_report_section *s = xsp_rule_found(
		c,
		(struct xsp_report_finding){
			.subject = u->name,
			.title = title,
			.advice = "give it more work at a time, or fuse it with what runs before "
				  "and behind it",
			.uncertain = doubt(c, why),
			.share = share},
		true);
	xsp_report_value(s, "launches", "Launches", XSP_UNIT_COUNT, xsp_cell_integer(u->launched));
	xsp_report_value(s, "shorter", "of them shorter than their call", XSP_UNIT_COUNT,
			 xsp_cell_integer(u->shorter));
	xsp_report_value(s, "total_ns", "Time on GPUs", XSP_UNIT_NS, xsp_cell_sum(u->total_ns));
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
		    share_of(u->launched, launches) >= c->threshold)
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

/* What a second stream does could run beside the first one's work, and does not. */
int xsp_rule_serial_streams(const struct xsp_rule_context *c)
{
	const struct xsp_gpu_analysis *g = xsp_rule_state(c, "gpu");
	const struct xsp_gpu_device_use *devices;
	const size_t n = g != NULL ? xsp_gpu_sweep_devices(g->sweep, &devices) : 0;

	if (n == 0)
		return XSP_RULE_NO_DATA;
	for (uint32_t i = 0; i < n; i++) {
		const struct xsp_gpu_device_use *d = &devices[i];
		const uint64_t second = d->activities >= LAUNCHES_LEAST ? second_busiest(g, i) : 0;
		const double share = share_of(second, d->recorded_ns);
		char subject[64], title[200], why[XSP_DOUBT_SIZE], busy[XSP_UNITS_SIZE];
		if (share < XSP_SHARE_MEDIUM || share_of(d->several_ns, second) >= c->threshold)
			continue;
		name_device(devices, n, d, subject, sizeof(subject));
		snprintf(title, sizeof(title),
			 "%s has %u streams that do not run at the same time: of what the "
			 "second one does (%s), %.3g %% is beside other work",
			 subject, d->streams, xsp_format_ns(busy, second),
			 share_of(d->several_ns, second) * 100);
		struct xsp_report_section *s = xsp_rule_found(
			c,
			(struct xsp_report_finding){
				.subject = subject,
				.title = title,
				.advice =
					"see what orders them: the default stream, events, copies "
					"from memory that is not pinned, or kernels that fill the "
					"device; where they depend on each other one stream does",
				.uncertain = doubt(c, why),
				.share = share},
			true);
		xsp_report_value(s, "second_ns", "Busy time of the second stream", XSP_UNIT_NS,
				 xsp_cell_integer(second));
		xsp_report_value(s, "several_ns", "Two streams or more at work", XSP_UNIT_NS,
				 xsp_cell_integer(d->several_ns));
	}
	return 0;
}

/* ---- operators ---- */

/* An operator that moves less than this share of what memory can waits for something else. */
#define BANDWIDTH_LEAST 0.3

/* FLOPs that any of the devices can do for each byte; bytes a second of the fastest memory. */
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

/* Tensor cores do more for each byte, and not all bytes may have been recorded: both only make it more so. */
int xsp_rule_memory_bound(const struct xsp_rule_context *c)
{
	const struct xsp_gpu_analysis *g = xsp_rule_state(c, "gpu");
	const struct xsp_gpu_device_use *devices;
	const struct xsp_gpu_flops_use *uses;
	const size_t device_count = g != NULL ? xsp_gpu_sweep_devices(g->sweep, &devices) : 0;
	const size_t n = g != NULL ? xsp_gpu_flops_uses(g->flops, &uses) : 0;
	uint64_t busy = 0, kernels = 0;
	double balance, bandwidth;

	if (n == 0 || !limits(c->timeline, &balance, &bandwidth))
		return XSP_RULE_NO_DATA;
	for (size_t i = 0; i < device_count; i++)
		busy += xsp_gpu_device_busy_ns(&devices[i]);
	/* kernels that run beside each other: shares of the sum of them all */
	for (size_t i = 0; i < device_count; i++)
		for (unsigned k = 0; k < XSP_GPU_CLASSES; k++)
			xsp_add_saturated(&kernels, devices[i].total_ns[k]);
	busy = kernels > busy ? kernels : busy;
	for (size_t i = 0; i < n; i++) {
		const struct xsp_gpu_flops_use *u = &uses[i];
		const double share = share_of(u->gpu_ns, busy),
			     intensity = share_of(u->flops, u->bytes),
			     used = share_of(u->bytes, u->gpu_ns) * 1e9 / bandwidth;
		const char *name = xsp_timeline_name(c->timeline, u->name);
		char title[320], printable[120], why[XSP_DOUBT_SIZE];
		if (u->flops == XSP_TOO_MUCH || u->bytes == XSP_TOO_MUCH ||
		    u->gpu_ns == XSP_TOO_MUCH)
			continue;
		if (share < c->threshold || intensity >= balance || used < BANDWIDTH_LEAST)
			continue;
		xsp_printable(printable, sizeof(printable), name, 60);
		snprintf(title, sizeof(title),
			 "%s does %.3g FLOPs per byte where the GPU can do %.3g, and moves %.3g %% "
			 "of what memory can (%.3g %% of busy time)",
			 printable, intensity, balance, used * 100, share * 100);
		struct xsp_report_section *s = xsp_rule_found(
			c,
			(struct xsp_report_finding){
				.subject = name,
				.title = title,
				.advice = "move fewer bytes: fuse it with its neighbours, use a "
					  "smaller "
					  "type, or larger batches where it reads weights",
				.uncertain = doubt(c, why),
				.share = share},
			true);
		xsp_report_value(s, "flops_per_byte", "FLOPs per byte", XSP_UNIT_NUMBER,
				 xsp_cell_real(intensity));
		xsp_report_value(s, "balance", "FLOPs per byte of the GPU", XSP_UNIT_NUMBER,
				 xsp_cell_real(balance));
		xsp_report_value(s, "bandwidth_share", "Bytes, of what memory can move",
				 XSP_UNIT_SHARE, xsp_cell_real(used));
		xsp_report_value(s, "gpu_ns", "Time of its kernels", XSP_UNIT_NS,
				 xsp_cell_integer(u->gpu_ns));
	}
	return 0;
}
