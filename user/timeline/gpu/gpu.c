/* SPDX-License-Identifier: BSD-2-Clause */
/* gpu.c - batches of the agent's records: unpacks and counts them, and drops what is too old. */
#include "timeline/gpu/gpu_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "catalog/providers.h"

#define SWEEP_NS 250000000ULL
#define MAX_PROCESSES 65536U

/* ---- processes and their windows ---- */

static int process_of(struct xsp_gpu *g, uint32_t pid, struct gpu_process **out)
{
	for (size_t i = 0; i < g->process_count; i++) {
		*out = &g->processes[i];
		if ((*out)->pid == pid)
			return 0;
	}
	if (g->process_count >= MAX_PROCESSES)
		return -E2BIG;
	if (XSP_APPEND(g->processes, g->process_capacity, g->process_count,
		       (struct gpu_process){.pid = pid}) < 0)
		return -ENOMEM;
	*out = &g->processes[g->process_count - 1];
	return 0;
}

/* The records that the agent handed over in the window and the capture lacks. */
static void close_window(struct xsp_gpu *g, struct gpu_process *p)
{
	uint64_t handed = p->window_end - p->window_first;

	if (p->window_ns == 0)
		return;
	g->counts.windows++;
	g->counts.unfinished += p->open;
	if (handed > p->window_came)
		g->counts.lost += handed - p->window_came;
	p->window_ns = 0;
}

static void on_head(struct xsp_gpu *g, struct gpu_process *p, const struct xsp_gpu_record *record)
{
	struct xsp_gpu_batch_head h;

	xsp_gpu_record_read(record, &h, sizeof(h));
	if (h.window_ns != p->window_ns) {
		close_window(g, p);
		p->window_ns = h.window_ns;
		p->window_first = p->window_end = h.window_first;
		p->window_came = 0;
		p->open = true;
	}
	if (h.first + h.records > p->window_end && h.records <= XSP_GPU_BATCH_MAX / 8)
		p->window_end = h.first + h.records;
}

static void on_state(struct xsp_gpu *g, struct gpu_process *p, const struct xsp_gpu_record *record)
{
	struct xsp_gpu_state s;

	xsp_gpu_record_read(record, &s, sizeof(s));
	if (s.state == XSP_GPU_STOPPED || s.state == XSP_GPU_FAILED || s.state == XSP_GPU_EXITING)
		p->open = false;
	if (s.api_version != 0)
		g->counts.api_version = s.api_version;
	if (s.driver_version != 0)
		g->counts.driver_version = s.driver_version;
	if (s.runtime_version != 0)
		g->counts.runtime_version = s.runtime_version;
}

static void on_error(struct xsp_gpu *g, const struct xsp_gpu_record *record)
{
	struct xsp_gpu_error e;
	size_t length;

	xsp_gpu_record_read(record, &e, sizeof(e));
	g->counts.errors++;
	if (e.text_at > record->size || e.length > record->size - e.text_at)
		return;
	length = e.length < sizeof(g->counts.error) ? e.length : sizeof(g->counts.error) - 1;
	memcpy(g->counts.error, (const char *)record + e.text_at, length);
	g->counts.error[length] = '\0';
	for (size_t i = 0; i < length; i++)
		if (g->counts.error[i] < ' ' || g->counts.error[i] == 127)
			g->counts.error[i] = '?';
}

/* ---- records ---- */

/* Records that begin with the times of what they are of. */
#define TIMED                                                                                      \
	(1U << XSP_GPU_KERNEL | 1U << XSP_GPU_MEMCPY | 1U << XSP_GPU_MEMCPY_P2P |                  \
	 1U << XSP_GPU_MEMSET | 1U << XSP_GPU_SYNC | 1U << XSP_GPU_OVERHEAD |                      \
	 1U << XSP_GPU_DRIVER | 1U << XSP_GPU_RUNTIME)

/* CUPTI begins somewhat before a window of --windows, and ends after it. */
static bool is_between_windows(const struct xsp_gpu *g, const struct xsp_gpu_record *record)
{
	struct {
		struct xsp_gpu_record head;
		uint64_t start_ns;
	} any;

	if (!g->t->scheduled || record->type > XSP_GPU_OVERHEAD || !(TIMED >> record->type & 1))
		return false;
	xsp_gpu_record_read(record, &any, sizeof(any));
	return any.start_ns != 0 && !xsp_timeline_recorded(g->t, any.start_ns, any.start_ns);
}

static int on_record(struct xsp_gpu *g, struct gpu_process *p, const struct xsp_gpu_record *record)
{
	struct xsp_gpu_dropped d;

	if (is_between_windows(g, record))
		return 0;
	switch (record->type) {
	case XSP_GPU_KERNEL:
	case XSP_GPU_MEMCPY:
	case XSP_GPU_MEMCPY_P2P:
	case XSP_GPU_MEMSET:
	case XSP_GPU_SYNC:
	case XSP_GPU_OVERHEAD:
	case XSP_GPU_CUDA_EVENT:
	case XSP_GPU_GRAPH:
		return xsp_gpu_activity_record(g, p->pid, record);
	case XSP_GPU_DRIVER:
		return xsp_gpu_api_record(g, p->pid, record, XSP_CUDA_DRIVER);
	case XSP_GPU_RUNTIME:
		return xsp_gpu_api_record(g, p->pid, record, XSP_CUDA_RUNTIME);
	case XSP_GPU_NAME:
		return xsp_gpu_add_name(g, record);
	case XSP_GPU_DEVICE:
		return xsp_gpu_add_device(g, record);
	case XSP_GPU_CONTEXT:
		return xsp_gpu_add_context(g, p->pid, record);
	case XSP_GPU_DROPPED:
		xsp_gpu_record_read(record, &d, sizeof(d));
		g->counts.dropped += d.count;
		return 0;
	case XSP_GPU_ERROR:
		on_error(g, record);
		return 0;
	case XSP_GPU_STATE:
		on_state(g, p, record);
		return 0;
	default:
		return 0;
	}
}

static int on_batch(struct xsp_timeline *t, const struct xsp_event *event)
{
	struct xsp_gpu *g = t->gpu;
	const struct xsp_event_gpu *e = (const void *)event;
	const struct xsp_gpu_record *record;
	struct gpu_process *p;
	size_t at = 0;
	int rc;

	rc = process_of(g, event->tgid, &p);
	if (rc < 0)
		return rc == -E2BIG ? 0 : rc;
	/* names first: a batch may use a name before its record */
	while (rc == 0 && (record = xsp_gpu_record_next(e + 1, e->bytes, &at)) != NULL)
		if (record->type == XSP_GPU_NAME || record->type == XSP_GPU_CONTEXT)
			rc = on_record(g, p, record);
	if (at != e->bytes)
		g->counts.malformed++;
	at = 0;
	while (rc == 0 && (record = xsp_gpu_record_next(e + 1, e->bytes, &at)) != NULL) {
		if (record->type == XSP_GPU_BATCH_HEAD) {
			on_head(g, p, record);
			continue;
		}
		g->counts.records++;
		p->window_came++;
		if (record->type != XSP_GPU_NAME && record->type != XSP_GPU_CONTEXT)
			rc = on_record(g, p, record);
	}
	return rc;
}

/* ---- age ---- */

static int on_time(struct xsp_timeline *t, uint64_t ns)
{
	struct xsp_gpu *g = t->gpu;

	if (ns > g->now)
		g->now = ns;
	if (g->now - g->swept_ns < SWEEP_NS)
		return 0;
	g->swept_ns = g->now;
	int rc = xsp_gpu_sweep_calls(g, false);
	return rc < 0 ? rc : xsp_gpu_sweep_activities(g, false);
}

static int end(struct xsp_timeline *t)
{
	struct xsp_gpu *g = t->gpu;
	int rc = xsp_gpu_sweep_calls(g, true);

	if (rc == 0)
		rc = xsp_gpu_sweep_activities(g, true);
	for (size_t i = 0; i < g->process_count; i++)
		close_window(g, &g->processes[i]);
	/* the kernel's own count includes the last batches */
	g->counts.lost =
		xsp_max_u64(g->counts.lost, xsp_capture_number(g->t->reader, "gpu records lost"));
	return rc;
}

/* ---- calls ---- */

static int promise_call(struct xsp_timeline *t, const struct row *row, struct xsp_span *span)
{
	(void)row;
	span->call_follows = xsp_timeline_cuda(t, span->probe) != NULL;
	return 0;
}

static int on_call(struct xsp_timeline *t, const struct xsp_span *span)
{
	const struct xsp_cuda_entry *e = xsp_timeline_cuda(t, span->probe);

	return e != NULL ? xsp_gpu_span(t->gpu, span, (enum xsp_cuda_api)e->api) : 0;
}

/* ---- lifetime ---- */

static bool has_agent(const struct xsp_timeline *t)
{
	for (size_t i = 0; i < t->probe_count; i++)
		if (xsp_provider_traits(t->probes[i].provider) & XSP_PROVIDER_GPU_RECORDS)
			return true;
	return false;
}

static int begin(struct xsp_timeline *t)
{
	if (!has_agent(t))
		return 0;
	t->gpu = calloc(1, sizeof(*t->gpu));
	if (t->gpu == NULL)
		return -ENOMEM;
	t->gpu->t = t;
	xsp_gpu_link_begin(t->gpu);
	xsp_gpu_bad_begin(t->gpu);
	return 1;
}

static void free_gpu(struct xsp_timeline *t)
{
	struct xsp_gpu *g = t->gpu;

	if (g == NULL)
		return;
	xsp_gpu_calls_free(g);
	xsp_gpu_link_free(g);
	xsp_gpu_names_free(g);
	xsp_gpu_bad_free(g);
	free(g->processes);
	free(g);
}

const struct xsp_listener xsp_listener_gpu = {
	.name = "GPU activity",
	.begin = begin,
	.time = on_time,
	.events = 1U << XSP_EVENT_GPU,
	.event = on_batch,
	.note = promise_call,
	.listen = on_call,
	.end = end,
	.free = free_gpu,
};

bool xsp_timeline_has_gpu(const struct xsp_timeline *t)
{
	return t->gpu != NULL;
}

const struct xsp_gpu_counts *xsp_timeline_gpu(const struct xsp_timeline *t)
{
	return t->gpu != NULL ? &t->gpu->counts : NULL;
}
