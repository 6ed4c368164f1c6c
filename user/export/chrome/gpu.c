/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gpu.c - the GPU's work as Kineto writes it: a process a device (pid: its number), a row a stream
 * (tid: its number). Waits for a stream overlap the kernels, so they have rows of their own. Work
 * of further processes on a device is shown as a process of its own (xsp_view_gpu()).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "base/rows/u64map.h"
#include "catalog/gpu_words.h"
#include "catalog/gpu/occupancy.h"
#include "export/chrome/json.h"
#include "export/chrome/parts.h"
#include "model/run_stats.h"
#include "timeline/gpu_category.h"

#define GPU_SORT_INDEX 5000000U
#define SYNC_TID 1000000U /* waits for a stream: the stream's number + this */
#define NO_STREAM_TID 2000000U /* waits for a whole context */
#define OVERHEAD_SORT_INDEX 0x100000AU
#define DEVICES 16U /* Kineto declares this many */

struct row {
	uint32_t pid; /* root pid of the process that used it */
	uint32_t device, stream; /* device: or XSP_VIEW_OVERHEAD */
	bool sync;
	bool names; /* the first row that names its device */
};

struct xsp_chrome_gpu {
	struct row *rows; /* in the order of their first activities */
	size_t count, capacity;
	struct xsp_u64map known;
	uint32_t pid; /* root pid of the first process with activities, for the rows' names */
	bool several; /* more processes have activities */
};

int xsp_chrome_gpu_new(struct xsp_chrome_gpu **out)
{
	*out = calloc(1, sizeof(**out));
	return *out == NULL ? -ENOMEM : 0;
}

void xsp_chrome_gpu_free(struct xsp_chrome_gpu *g)
{
	if (g == NULL)
		return;
	xsp_u64map_free(&g->known);
	free(g->rows);
	free(g);
}

/* ---- rows ---- */

static uint32_t row_tid(const struct row *r)
{
	if (r->device == XSP_VIEW_OVERHEAD)
		return 0;
	if (r->stream == XSP_GPU_NO_ID)
		return NO_STREAM_TID;
	/* streams have small ids; a hostile one must not become another row's number */
	return (r->stream & 0x3fffffff) + (r->sync ? SYNC_TID : 0);
}

static int meet_row(struct xsp_chrome_gpu *g, const struct row *r, uint32_t pid, uint32_t tid)
{
	const uint64_t key = (uint64_t)pid << 32 | tid, device = (uint64_t)pid << 32 | UINT32_MAX;

	if (xsp_u64map_get(&g->known, key) != NULL)
		return 0;
	const bool names = xsp_u64map_get(&g->known, device) == NULL;
	if (xsp_grow(&g->rows, &g->capacity, g->count + 1) < 0 ||
	    xsp_u64map_set(&g->known, device, 0) < 0 || xsp_u64map_set(&g->known, key, 0) < 0)
		return -ENOMEM;
	g->rows[g->count] = *r;
	g->rows[g->count++].names = names;
	return 0;
}

/* Says whose activities they are if that is not clear: a root pid, or 0. By it an import of the
 * trace (user/import) knows which process made the calls. */
static void put_label(struct xsp_export *x, uint32_t display_pid, uint32_t pid, const char *label)
{
	const struct xsp_chrome *c = xsp_chrome_of(x);
	char text[64];

	if (pid != 0 && (c->gpu->several || x->view.job != NULL))
		snprintf(text, sizeof(text), "%s%sprocess %u%s", label, *label ? " (" : "",
			 xsp_thread_rows_pid(c->rows, pid), *label ? ")" : "");
	else
		snprintf(text, sizeof(text), "%s", label);
	if (text[0] != '\0')
		xsp_chrome_put_text_meta(x, "process_labels", display_pid, 0, "labels", text);
}

/* `pid`: root pid of the process that used it; 0: none. */
static void put_device_row(struct xsp_export *x, uint32_t device, uint32_t pid)
{
	const uint32_t process = pid != 0 ? pid : xsp_chrome_of(x)->gpu->pid;
	const uint32_t display_pid = xsp_view_gpu(&x->view, device, pid);
	const struct xsp_view_named *named = xsp_view_name(&x->view, process);
	char name[256], label[32];

	xsp_run_process_name(x->view.reader, process, name, sizeof(name));
	snprintf(label, sizeof(label), "GPU %u", device);
	xsp_chrome_put_text_meta(x, "process_name", display_pid, 0, "name",
				 named != NULL ? named->name : name);
	put_label(x, display_pid, pid, label);
	xsp_chrome_put_sort_index(x, "process_sort_index", display_pid, 0,
				  GPU_SORT_INDEX + display_pid);
}

static void put_overhead_row(struct xsp_export *x, uint32_t pid)
{
	const uint32_t display_pid = xsp_view_gpu(&x->view, XSP_VIEW_OVERHEAD, pid);

	xsp_chrome_put_text_meta(x, "process_name", display_pid, 0, "name", "CUPTI Overhead");
	put_label(x, display_pid, pid, "");
	xsp_chrome_put_sort_index(x, "process_sort_index", display_pid, 0, OVERHEAD_SORT_INDEX);
}

static void put_stream_row(struct xsp_export *x, const struct row *r)
{
	char name[48];
	uint32_t pid = xsp_view_gpu(&x->view, r->device, r->pid), tid = row_tid(r);

	if (r->stream == XSP_GPU_NO_ID)
		snprintf(name, sizeof(name), "context (sync)");
	else
		snprintf(name, sizeof(name), "stream %u %s", r->stream, r->sync ? "(sync)" : "");
	xsp_chrome_put_text_meta(x, "thread_name", pid, tid, "name", name);
	xsp_chrome_put_sort_index(x, "thread_sort_index", pid, tid,
				  r->stream == XSP_GPU_NO_ID ? NO_STREAM_TID : r->stream);
}

void xsp_chrome_gpu_rows(struct xsp_export *x)
{
	const struct xsp_chrome_gpu *g = xsp_chrome_of(x)->gpu;

	if (g->count == 0)
		return;
	for (uint32_t device = 0; device < DEVICES; device++)
		put_device_row(x, device, xsp_view_gpu_user(&x->view, device));
	for (size_t i = 0; i < g->count; i++) {
		const struct row *r = &g->rows[i];
		if (r->device == XSP_VIEW_OVERHEAD)
			continue;
		if (r->names &&
		    (r->device >= DEVICES || r->pid != xsp_view_gpu_user(&x->view, r->device)))
			put_device_row(x, r->device, r->pid);
		put_stream_row(x, r);
	}
	for (size_t i = 0; i < g->count; i++)
		if (g->rows[i].device == XSP_VIEW_OVERHEAD)
			put_overhead_row(x, g->rows[i].pid);
}

/* ---- arguments ---- */

/* The first one of the arguments has no comma. */
static char *put_first(char *p, const struct xsp_gpu_activity *a)
{
	if (a->external == 0)
		return p;
	p = XSP_PUT(p, ",\"External id\":");
	return xsp_put_u64(p, a->external);
}

static char *put_where(char *p, const struct xsp_gpu_activity *a)
{
	p = xsp_chrome_put_number(p, "device", a->device);
	p = xsp_chrome_put_number(p, "context", a->context);
	p = xsp_chrome_put_number(p, "stream", a->stream);
	return xsp_chrome_put_number(p, "correlation", a->correlation);
}

static char *put_channel(char *p, uint32_t graph, uint64_t node, uint32_t channel, uint32_t type)
{
	p = xsp_chrome_put_number(p, "graph id", graph);
	p = xsp_chrome_put_number(p, "graph node id", node);
	p = xsp_chrome_put_number(p, "channel", channel);
	p = XSP_PUT(p, ",\"channel_type\":\"");
	p = stpcpy(p, xsp_gpu_word(xsp_gpu_channel_words, type));
	*p++ = '"';
	return p;
}

static uint64_t product(const uint32_t v[3])
{
	return (uint64_t)v[0] * v[1] * v[2];
}

static char *put_decimal(char *p, const char *key, double value)
{
	return p + sprintf(p, ",\"%s\":%.6g", key, value);
}

static char *put_occupancy(char *p, const struct xsp_gpu_activity *a,
			   const struct xsp_gpu_kernel *k)
{
	struct xsp_occupancy o;
	const struct xsp_gpu_device *d = &a->on->device;

	if (d->multiprocessors == 0 || d->warp_size == 0)
		return p;
	double blocks = xsp_blocks_per_multiprocessor(d, k);
	double threads = (double)product(k->block);
	p = put_decimal(p, "blocks per SM", blocks);
	p = put_decimal(p, "warps per SM", blocks * threads / d->warp_size);
	if (!xsp_occupancy(d, k, &o))
		return p;
	p += sprintf(p, ",\"est. achieved occupancy %%\":%d",
		     (int)(xsp_occupancy_share(d, k, &o) * 100 + 0.5));
	p += sprintf(
		p,
		",\"occupancy\":{\"activeBlocksPerMultiprocessor\":%d,\"limitingFactors\":\"%s\",\"blockLimitRegs\":%d,\"blockLimitSharedMem\":%d,\"blockLimitWarps\":%d,"
		"\"blockLimitBlocks\":%d,\"blockLimitBarriers\":%d,\"allocatedRegistersPerBlock\":%d,\"allocatedSharedMemPerBlock\":%d}",
		o.active_blocks, o.factors, o.limit_registers, o.limit_shared, o.limit_warps,
		o.limit_blocks, o.limit_barriers, o.registers_per_block, o.shared_per_block);
	return p;
}

static char *put_kernel(char *p, const struct xsp_gpu_activity *a)
{
	const struct xsp_gpu_kernel *k = a->record;

	p = xsp_chrome_put_number(p, "queued", k->queued_ns);
	p = put_where(p, a);
	p = xsp_chrome_put_number(p, "registers per thread", k->registers);
	p = xsp_chrome_put_number(p, "shared memory",
				  (uint64_t)k->static_shared + k->dynamic_shared);
	if (a->on != NULL)
		p = put_occupancy(p, a, k);
	p = xsp_chrome_put_triple(p, "grid", k->grid);
	p = xsp_chrome_put_triple(p, "block", k->block);
	return put_channel(p, k->graph, k->graph_node, k->channel, k->channel_type);
}

static char *put_bandwidth(char *p, const struct xsp_gpu_activity *a, uint64_t bytes)
{
	p = xsp_chrome_put_number(p, "bytes", bytes);
	if (a->end_ns > a->start_ns && !a->cut)
		p = put_decimal(p, "memory bandwidth (GB/s)",
				(double)bytes / (double)(a->end_ns - a->start_ns));
	return p;
}

static char *put_memcpy(char *p, const struct xsp_gpu_activity *a)
{
	const struct xsp_gpu_memcpy *m = a->record;

	if (m->head.type == XSP_GPU_MEMCPY_P2P) {
		p = xsp_chrome_put_number(p, "fromDevice", m->source_device);
		p = xsp_chrome_put_number(p, "inDevice", m->device);
		p = xsp_chrome_put_number(p, "toDevice", m->destination_device);
		p = xsp_chrome_put_number(p, "fromContext", m->source_context);
		p = xsp_chrome_put_number(p, "inContext", m->context);
		p = xsp_chrome_put_number(p, "toContext", m->destination_context);
		p = xsp_chrome_put_number(p, "stream", m->stream);
		p = xsp_chrome_put_number(p, "correlation", a->correlation);
	} else {
		p = put_where(p, a);
	}
	p = put_bandwidth(p, a, m->bytes);
	return put_channel(p, m->graph, m->graph_node, m->channel, m->channel_type);
}

static char *put_memset(char *p, const struct xsp_gpu_activity *a)
{
	const struct xsp_gpu_memset *m = a->record;

	p = put_bandwidth(put_where(p, a), a, m->bytes);
	return put_channel(p, m->graph, m->graph_node, m->channel, m->channel_type);
}

static char *put_call(char *p, const struct xsp_gpu_activity *a)
{
	p = xsp_chrome_put_number(p, "correlation", a->correlation);
	p = xsp_chrome_put_number(p, "device", a->device);
	return xsp_chrome_put_number(p, "context", a->context);
}

static char *put_sync(char *p, const struct xsp_gpu_activity *a)
{
	const struct xsp_gpu_sync *s = a->record;

	p = XSP_PUT(p, ",\"cuda_sync_kind\":\"");
	p = stpcpy(p, xsp_gpu_sync_name(s->what));
	*p++ = '"';
	if (s->what == 1 || s->what == 2) {
		p = XSP_PUT(p, ",\"wait_on_stream\":-1,\"wait_on_cuda_event_record_corr_id\":-1");
		p = xsp_chrome_put_number(p, "wait_on_cuda_event_id", s->event);
	}
	if (a->stream == XSP_GPU_NO_ID)
		p = XSP_PUT(p, ",\"stream\":-1");
	else
		p = xsp_chrome_put_number(p, "stream", a->stream);
	return put_call(p, a);
}

static char *put_event(char *p, const struct xsp_gpu_activity *a)
{
	const struct xsp_gpu_cuda_event *e = a->record;

	p = xsp_chrome_put_number(p, "event_id", e->event);
	return put_call(xsp_chrome_put_number(p, "stream", a->stream), a);
}

static char *put_graph(char *p, const struct xsp_gpu_activity *a)
{
	const struct xsp_gpu_graph *s = a->record;

	return xsp_chrome_put_number(put_where(p, a), "graph id", s->graph);
}

static char *put_nothing(char *p, const struct xsp_gpu_activity *a)
{
	(void)a;
	return p;
}

/* ---- slices ---- */

static char *(*const arguments[XSP_GPU_KINDS])(char *p, const struct xsp_gpu_activity *a) = {
	[XSP_GPU_IS_KERNEL] = put_kernel,    [XSP_GPU_IS_MEMCPY] = put_memcpy,
	[XSP_GPU_IS_MEMSET] = put_memset,    [XSP_GPU_IS_SYNC] = put_sync,
	[XSP_GPU_IS_GRAPH] = put_graph,	     [XSP_GPU_IS_EVENT] = put_event,
	[XSP_GPU_IS_OVERHEAD] = put_nothing, [XSP_GPU_IS_ANNOTATION] = put_nothing,
};

char *xsp_chrome_gpu_arguments(char *p, const struct xsp_gpu_activity *a)
{
	p = arguments[a->kind](p, a);
	return a->cut ? XSP_PUT(p, ",\"cut\":true") : p;
}

/* Finds the row that shows the activity. */
static int find_row(struct xsp_export *x, const struct xsp_gpu_activity *a, uint32_t *pid,
		    uint32_t *tid)
{
	struct xsp_chrome_gpu *g = xsp_chrome_of(x)->gpu;
	const struct row r = {.pid = a->pid,
			      .device = a->kind == XSP_GPU_IS_OVERHEAD ? XSP_VIEW_OVERHEAD
								       : a->device,
			      .stream = a->stream,
			      .sync = xsp_gpu_is_wait(a)};

	if (g->pid == 0)
		g->pid = a->pid;
	g->several |= g->pid != a->pid;
	*pid = xsp_view_gpu(&x->view, r.device, r.pid);
	*tid = row_tid(&r);
	return meet_row(g, &r, *pid, *tid);
}

/* Draws an arrow from a call's slice to an activity's. */
static int put_arrow(struct xsp_export *x, const struct xsp_gpu_activity *a, uint32_t pid,
		     uint32_t tid)
{
	if (a->arrow == 0)
		return 0;
	if (a->arrow_begins) {
		const struct xsp_thread_row *row =
			xsp_chrome_row(x, a->pid, a->call_tid, a->call_row);
		if (row == NULL)
			return -ENOMEM;
		xsp_chrome_put_flow(x, "ac2g", false, a->arrow, row->pid, row->tid, a->call_ns);
	}
	xsp_chrome_put_flow(x, "ac2g", true, a->arrow, pid, tid, a->start_ns);
	return 0;
}

int xsp_chrome_activity(struct xsp_export *x, const struct xsp_gpu_activity *a)
{
	uint64_t start = a->start_ns, duration = a->end_ns - a->start_ns;
	uint32_t pid, tid;
	char name[XSP_GPU_NAME_SIZE];
	int rc = find_row(x, a, &pid, &tid);

	if (rc < 0)
		return rc;
	if (a->kind == XSP_GPU_IS_EVENT) {
		start = ((const struct xsp_gpu_cuda_event *)a->record)->device_ns;
		if (start == 0)
			return 0;
		duration = 1;
	}
	xsp_out_printf(x->out, "{\"ph\":\"X\",\"cat\":\"%s\",\"name\":", xsp_gpu_category(a->kind));
	xsp_out_json(x->out, xsp_gpu_activity_name(a, name));
	char *p = xsp_chrome_put_place(x, xsp_out_reserve(x->out, 2048), pid, tid, start, duration);
	char *end = xsp_chrome_gpu_arguments(put_first(p, a), a);
	if (end == p) { /* no argument */
		end = XSP_PUT(p - strlen(",\"args\":{"), "},\n");
	} else {
		*p = ' '; /* overwrites the first argument's comma */
		end = XSP_PUT(end, "}},\n");
	}
	xsp_out_commit(x->out, end);
	return put_arrow(x, a, pid, tid);
}

/* ---- top-level keys ---- */

static void put_device(struct xsp_out *o, const struct xsp_gpu_device_info *info)
{
	const char *before = ",";

	xsp_out_printf(o, "{\"id\":%u,\"name\":", info->device.id);
	xsp_out_json(o, info->name);
	for (const struct xsp_number_at *k = xsp_gpu_device_keys + 1; k->key != NULL; k++) {
		uint64_t value = 0;
		memcpy(&value, (const char *)&info->device + k->at, k->size); /* little-endian */
		xsp_chrome_number_pair(o, &before, k->key, value);
	}
	xsp_out_text(o, "}");
}

void xsp_chrome_gpu_tail(struct xsp_export *x)
{
	const struct xsp_gpu_counts *c = xsp_timeline_gpu(x->view.timeline);
	const struct xsp_gpu_device_info *devices;
	size_t n = xsp_timeline_gpu_devices(x->view.timeline, &devices);
	struct xsp_run_stats stats;

	if (c == NULL)
		return;
	xsp_out_text(x->out, "\"deviceProperties\":[");
	for (size_t i = 0; i < n; i++) {
		xsp_out_text(x->out, i ? ",\n" : "");
		put_device(x->out, &devices[i]);
	}
	xsp_out_printf(x->out,
		       "],\n\"cupti_version\":%u,\n\"cuda_driver_version\":%u,\n"
		       "\"cuda_runtime_version\":%u,\n",
		       c->api_version, c->driver_version, c->runtime_version);
	xsp_run_stats_gpu(x->view.timeline, false, &stats);
	xsp_chrome_stats(x->out, "xsptrace_gpu", stats.list, stats.count);
	xsp_out_printf(x->out,
		       "\"xsptrace_gpu_clock\":{\"calls_compared\":%" PRIu64
		       ",\"calls_without_span\":%" PRIu64 ",\"start_after_entry_least_ns\":%" PRId64
		       ",\"start_after_entry_mean_ns\":%" PRIu64
		       ",\"end_before_exit_least_ns\":%" PRId64
		       ",\"end_before_exit_mean_ns\":%" PRIu64 "},\n",
		       c->api_matched, c->api_records - c->api_matched, c->start_least,
		       c->api_matched ? c->start_sum / c->api_matched : 0, c->end_least,
		       c->api_matched ? c->end_sum / c->api_matched : 0);
}
