/* SPDX-License-Identifier: BSD-2-Clause */
/* convert.c - converts CUPTI's activity records to those of gpu.h, on whatever thread CUPTI calls. */
#include <string.h>
#include "agent.h"

/* Fields that several records share. */
#define TIMES(r)                                                                                   \
	.head = {.correlation = (r)->correlation}, .start_ns = (r)->start, .end_ns = (r)->end
#define PLACE(r) .device = (r)->device, .context = (r)->context, .stream = (r)->stream
#define ORIGIN(r)                                                                                  \
	.channel = (r)->channel, .channel_type = (r)->channel_type, .graph = (r)->graph,           \
	.graph_node = (r)->graph_node
#define COPY(r)                                                                                    \
	TIMES(r), PLACE(r), ORIGIN(r),                                                             \
		.bytes = (r)->bytes, .copy_kind = (r)->copy_kind, .source_kind = (r)->source_kind, \
		.destination_kind = (r)->destination_kind, .flags = (r)->flags

/* Defines the function that converts records `r` of one kind. */
#define CONVERT(function, from, to, kind, ...)                                                     \
	static void function(struct batch *b, const void *record)                                  \
	{                                                                                          \
		const struct from *r = record;                                                     \
		const struct to out = {__VA_ARGS__};                                               \
                                                                                                   \
		batch_put(b, &out, sizeof(out), kind);                                             \
	}

static void kernel(struct batch *b, const void *record)
{
	const struct cupti_kernel *k = record;
	struct xsp_gpu_kernel out = {
		TIMES(k),
		PLACE(k),
		.name = batch_name(b, k->name),
		.registers = k->registers,
		.channel_type = (uint8_t)k->channel_type,
		.launch_type = k->launch_type,
		.static_shared = k->static_shared,
		.dynamic_shared = k->dynamic_shared,
		.shared_executed = k->shared_executed,
		.local_per_thread = k->local_per_thread,
		.channel = k->channel,
		.graph = k->graph,
		.graph_node = k->graph_node,
		.local_total = k->local_total_v2 ? k->local_total_v2 : k->local_total,
		.completed_ns = k->completed,
		.queued_ns = k->queued,
		.submitted_ns = k->submitted,
	};

	/* for nearly all kernels the launch has the id of its call */
	out.grid_id = k->grid_id == (int64_t)k->correlation ? 0 : k->grid_id;
	memcpy(out.grid, k->grid, sizeof(out.grid));
	memcpy(out.block, k->block, sizeof(out.block));
	memcpy(out.cluster, k->cluster, sizeof(out.cluster));
	batch_put(b, &out, sizeof(out), XSP_GPU_KERNEL);
}

CONVERT(copy, cupti_memcpy, xsp_gpu_memcpy, XSP_GPU_MEMCPY, COPY(r), .copies = r->copies)

CONVERT(copy_p2p, cupti_memcpy2, xsp_gpu_memcpy, XSP_GPU_MEMCPY_P2P, COPY(r),
	.source_device = r->source_device, .source_context = r->source_context,
	.destination_device = r->destination_device, .destination_context = r->destination_context)

CONVERT(set, cupti_memset, xsp_gpu_memset, XSP_GPU_MEMSET, TIMES(r), .bytes = r->bytes, PLACE(r),
	.value = r->value, .flags = r->flags, .memory_kind = r->memory_kind, ORIGIN(r))

CONVERT(sync, cupti_sync, xsp_gpu_sync, XSP_GPU_SYNC, TIMES(r), .what = r->type,
	.context = r->context, .stream = r->stream, .event = r->event, .event_sync = r->event_sync,
	.result = r->result)

static void overhead(struct batch *b, const void *record)
{
	const struct cupti_overhead *o = record;
	bool thread = o->object == 1 || o->object == 2; /* for a process or thread: {pid, tid} */
	struct xsp_gpu_overhead out = {
		TIMES(o),
		.what = o->overhead,
		.object = o->object,
		.tid = thread ? o->id[1] : 0,
		.device = thread ? 0 : o->id[0],
		.context = thread ? 0 : o->id[1],
		.stream = thread ? 0 : o->id[2],
	};

	batch_put(b, &out, sizeof(out), XSP_GPU_OVERHEAD);
}

CONVERT(memory, cupti_memory, xsp_gpu_memory, XSP_GPU_MEMORY,
	.head = {.correlation = r->correlation}, .time_ns = r->time, .address = r->address,
	.bytes = r->bytes, .operation = r->operation, .memory_kind = r->memory_kind, PLACE(r),
	.async = r->async, .pc = r->pc, .name = batch_name(b, r->name), .pool = r->pool,
	/* otherwise it is a process id */
	.pool_size = r->pool_type == 1 ? r->pool_size : 0, .pool_used = r->pool_used,
	.pool_threshold = r->pool_threshold)

CONVERT(event, cupti_event, xsp_gpu_cuda_event, XSP_GPU_CUDA_EVENT,
	.head = {.correlation = r->correlation}, .context = r->context, .stream = r->stream,
	.event = r->event, .device = r->device, .event_sync = r->event_sync,
	.device_ns = r->device_time)

CONVERT(marker, cupti_marker, xsp_gpu_marker, XSP_GPU_MARKER, .time_ns = r->time, .id = r->id,
	.flags = r->flags, .name = batch_name(b, r->name), .domain = batch_name(b, r->domain),
	.tid = r->object == 2 ? r->object_id[1] : 0)

CONVERT(graph, cupti_graph, xsp_gpu_graph, XSP_GPU_GRAPH, TIMES(r), PLACE(r), .graph = r->graph,
	.end_device = r->end_device, .end_context = r->end_context)

CONVERT(context, cupti_context, xsp_gpu_context, XSP_GPU_CONTEXT, .context = r->context,
	.device = r->device, .null_stream = r->null_stream)

/* `least`: the record's size in the oldest version that we read */
#define LEAST(type, last) (offsetof(struct type, last) + sizeof(((struct type *)0)->last))
static const struct {
	void (*convert)(struct batch *b, const void *record);
	size_t least;
} kinds[CUPTI_KIND_MAX] = {
	[CUPTI_KERNEL] = {kernel, LEAST(cupti_kernel, name)},
	[CUPTI_CONCURRENT_KERNEL] = {kernel, LEAST(cupti_kernel, name)},
	[CUPTI_MEMCPY] = {copy, LEAST(cupti_memcpy, correlation)},
	[CUPTI_MEMCPY2] = {copy_p2p, LEAST(cupti_memcpy2, correlation)},
	[CUPTI_MEMSET] = {set, LEAST(cupti_memset, correlation)},
	[CUPTI_SYNCHRONIZATION] = {sync, LEAST(cupti_sync, event)},
	[CUPTI_OVERHEAD] = {overhead, LEAST(cupti_overhead, end)},
	[CUPTI_MEMORY2] = {memory, LEAST(cupti_memory, stream)},
	[CUPTI_CUDA_EVENT] = {event, LEAST(cupti_event, event)},
	[CUPTI_MARKER] = {marker, LEAST(cupti_marker, name)},
	[CUPTI_GRAPH_TRACE] = {graph, LEAST(cupti_graph, stream)},
	[CUPTI_CONTEXT] = {context, LEAST(cupti_context, null_stream)},
};
enum { LARGEST = 256 };

static void api(struct batch *b, const struct cupti *cupti, const struct apis *apis,
		const struct cupti_api *a)
{
	int domain = a->kind == CUPTI_DRIVER ? CUPTI_DOMAIN_DRIVER : CUPTI_DOMAIN_RUNTIME;
	struct xsp_gpu_api out = {
		.head = {.correlation = a->correlation},
		.start_ns = a->start,
		.end_ns = a->end,
		.cbid = a->cbid,
		.tid = a->tid,
		.result = a->result,
	};

	if (!apis->all && (a->cbid >= API_MAX || !apis->wanted[domain][a->cbid]))
		return;
	batch_api_name(b, cupti, domain, a->cbid);
	batch_put(b, &out, sizeof(out),
		  domain == CUPTI_DOMAIN_DRIVER ? XSP_GPU_DRIVER : XSP_GPU_RUNTIME);
}

/* `size`: bytes of the record. False: too few for its kind. */
static bool convert(struct batch *b, const struct cupti *cupti, const struct apis *apis,
		    const void *record, size_t size)
{
	_Alignas(8) uint8_t whole[LARGEST] = {0};
	uint32_t kind;

	if (size < sizeof(kind))
		return false;
	memcpy(&kind, record, sizeof(kind));
	memcpy(whole, record, size < LARGEST ? size : LARGEST);
	if (kind == CUPTI_DRIVER || kind == CUPTI_RUNTIME) {
		if (size < sizeof(struct cupti_api))
			return false;
		api(b, cupti, apis, (const struct cupti_api *)(const void *)whole);
		return true;
	}
	if (kind >= CUPTI_KIND_MAX || !kinds[kind].convert)
		return true; /* another profiler asked for it */
	if (size < kinds[kind].least)
		return false;
	kinds[kind].convert(b, whole);
	return true;
}

static void drop(struct drops *drops, enum xsp_gpu_drop reason, uint64_t count)
{
	atomic_fetch_add(&drops->pending[reason], count);
}

/*
 * A record's size is the distance to the next one. After the last record that CUPTI gives comes the buffer's end, or an
 * incomplete record. Then we take the size of others of its kind in this buffer, or else what every version has.
 */
static size_t record_size(uint16_t sizes[CUPTI_KIND_MAX], uint32_t kind, int status, size_t size)
{
	if (kind >= CUPTI_KIND_MAX)
		return size;
	if (status == CUPTI_OK)
		sizes[kind] = (uint16_t)(size > UINT16_MAX ? 0 : size);
	if (status == CUPTI_OK || status == CUPTI_MAX_LIMIT_REACHED)
		return size;
	return sizes[kind] ? sizes[kind] : kinds[kind].convert ? kinds[kind].least : size;
}

void convert_buffer(struct batch *b, const struct cupti *cupti, const struct apis *apis,
		    struct drops *drops, uint8_t *data, size_t valid)
{
	uint16_t sizes[CUPTI_KIND_MAX] = {0};
	void *record = NULL, *next;
	int status = valid ? cupti->get_next_record(data, valid, &record) : CUPTI_MAX_LIMIT_REACHED;
	size_t dropped = 0;

	while (status == CUPTI_OK) {
		size_t left = (size_t)(data + valid - (uint8_t *)record), size;
		uint32_t kind;

		next = record;
		status = cupti->get_next_record(data, valid, &next);
		size = status == CUPTI_OK ? (size_t)((uint8_t *)next - (uint8_t *)record) : left;
		memcpy(&kind, record, sizeof(kind));
		size = record_size(sizes, kind, status, size);
		if (size > left || !convert(b, cupti, apis, record, size))
			drop(drops, XSP_GPU_DROP_MALFORMED, 1);
		record = next;
	}
	/* we cannot see what follows an incomplete record */
	if (status != CUPTI_MAX_LIMIT_REACHED)
		drop(drops, XSP_GPU_DROP_MALFORMED, 1);
	if (cupti->get_dropped(NULL, 0, &dropped) == CUPTI_OK && dropped)
		drop(drops, XSP_GPU_DROP_CUPTI, dropped);
}

void put_drops(struct batch *b, struct drops *drops, uint64_t now)
{
	for (unsigned reason = XSP_GPU_DROP_CUPTI; reason <= XSP_GPU_DROP_MALFORMED; reason++) {
		uint64_t count = atomic_exchange(&drops->pending[reason], 0);
		struct xsp_gpu_dropped out = {
			.time_ns = now,
			.count = count,
			.total = atomic_fetch_add(&drops->total[reason], count) + count,
			.reason = reason,
		};

		if (count)
			batch_put(b, &out, sizeof(out), XSP_GPU_DROPPED);
	}
}
