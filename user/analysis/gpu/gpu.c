/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/gpu/gpu.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/names/steps.h"

static void end_gpu(void *state)
{
	struct xsp_gpu_analysis *g = state;

	if (g == NULL)
		return;
	xsp_gpu_path_free(g->path);
	xsp_gpu_sweep_free(g->sweep);
	xsp_gpu_host_free(g->host);
	xsp_gpu_by_name_free(g->names);
	xsp_gpu_flops_free(g->flops);
	free(g);
}

static int begin_gpu(struct xsp_timeline *t, struct xsp_capture_reader *r, void **state)
{
	struct xsp_gpu_analysis *g;
	uint64_t end;

	*state = NULL;
	if (!xsp_timeline_has_gpu(t))
		return 0;
	g = calloc(1, sizeof(*g));
	if (g == NULL)
		return -ENOMEM;
	g->timeline = t;
	xsp_capture_window(r, &g->origin_ns, &end);
	g->events_lost = xsp_steps_uncertain(r);
	if (xsp_gpu_host_new(t, &g->host) < 0 || xsp_gpu_sweep_new(t, g->host, &g->sweep) < 0 ||
	    xsp_gpu_by_name_new(&g->names) < 0 || xsp_gpu_flops_new(r, &g->flops) < 0 ||
	    xsp_gpu_path_new(t, g->sweep, g->host, &g->path) < 0) {
		end_gpu(g);
		return -ENOMEM;
	}
	*state = g;
	return 0;
}

static int add_work(struct xsp_gpu_analysis *g, const struct xsp_gpu_activity *a)
{
	const struct xsp_gpu_name_use *uses;
	struct xsp_gpu_work w = {
		.start_ns = a->start_ns,
		.end_ns = a->end_ns,
		.call_ns = a->arrow != 0 ? a->call_ns : 0,
		.call_tid = a->call_tid,
		.pid = a->pid,
		.device = a->device,
		.context = a->context,
		.stream = a->stream,
		.queued = xsp_gpu_is_launched(a),
	};
	uint32_t device;

	g->unlaunched += a->arrow == 0;
	if (a->kind == XSP_GPU_IS_KERNEL && !a->cut)
		xsp_gpu_flops_work(g->flops, a->external, a->end_ns - a->start_ns);
	int rc = xsp_gpu_by_name_add(g->names, a, &w.name);
	if (rc < 0)
		return rc;
	xsp_gpu_by_name_uses(g->names, &uses);
	w.class = uses[w.name].class;
	rc = xsp_gpu_sweep_work(g->sweep, &w, &device);
	if (rc == 0)
		rc = xsp_gpu_path_work(g->path, a, &w);
	return rc < 0 ? rc : xsp_gpu_by_name_launch(g->names, a, device);
}

/* A stream that waits for an event does not make the host wait: it is not counted here. */
static int add_sync(struct xsp_gpu_analysis *g, const struct xsp_gpu_activity *a)
{
	const struct xsp_gpu_sync *s = a->record;
	const int rc = s != NULL ? xsp_gpu_path_sync(g->path, a) : 0;

	return rc == 0 && s != NULL && s->what != 2 ? xsp_gpu_sweep_wait(g->sweep, a) : rc;
}

static int on_activity(void *ctx, const struct xsp_gpu_activity *a)
{
	struct xsp_gpu_analysis *g = ctx;

	switch (a->kind) {
	case XSP_GPU_IS_KERNEL:
	case XSP_GPU_IS_MEMCPY:
	case XSP_GPU_IS_MEMSET:
	case XSP_GPU_IS_GRAPH:
		return add_work(g, a);
	case XSP_GPU_IS_SYNC:
		return add_sync(g, a);
	case XSP_GPU_IS_EVENT:
		return a->record != NULL ? xsp_gpu_path_sync(g->path, a) : 0;
	default:
		return 0;
	}
}

static int on_call(void *ctx, const struct xsp_gpu_call *call)
{
	struct xsp_gpu_analysis *g = ctx;

	return xsp_gpu_host_launches(g->host, call->tid);
}

static int on_span(void *ctx, const struct xsp_span *span)
{
	struct xsp_gpu_analysis *g = ctx;
	int rc = xsp_gpu_flops_span(g->flops, span);

	if (rc == 0)
		rc = xsp_gpu_path_span(g->path, span);
	return rc < 0 ? rc : xsp_gpu_host_span(g->host, span);
}

static int on_wait(void *ctx, const struct xsp_wait *wait)
{
	struct xsp_gpu_analysis *g = ctx;
	const int rc = xsp_gpu_path_wait(g->path, wait);

	return rc < 0 ? rc : xsp_gpu_host_wait(g->host, wait);
}

static int on_step(void *ctx, const struct xsp_step *step)
{
	return xsp_gpu_path_step(((struct xsp_gpu_analysis *)ctx)->path, step);
}

static struct xsp_timeline_sink sink_of_gpu(void *state)
{
	return (struct xsp_timeline_sink){.ctx = state,
					  .span = on_span,
					  .call = on_call,
					  .gpu = on_activity,
					  .wait = on_wait,
					  .step = on_step};
}

static int report_gpu(void *state, struct xsp_report *report)
{
	struct xsp_gpu_analysis *g = state;

	if (!g->ended) {
		int rc = xsp_gpu_sweep_end(g->sweep);
		if (rc == 0)
			rc = xsp_gpu_flops_end(g->flops);
		if (rc == 0)
			rc = xsp_gpu_path_end(g->path);
		if (rc < 0)
			return rc;
		g->ended = true;
	}
	return xsp_gpu_report(g, report);
}

const struct xsp_analysis xsp_analysis_gpu = {
	.name = "gpu",
	.begin = begin_gpu,
	.sink = sink_of_gpu,
	.report = report_gpu,
	.end = end_gpu,
};
