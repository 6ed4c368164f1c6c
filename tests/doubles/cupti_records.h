/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cupti_records.h - CUPTI's activity records as the CUPTI double writes them: layouts of
 * cupti_activity.h of CUDA 13.0. check_headers.c compares them with the real header, if it is
 * installed; the offsets below come from the project's notes on CUPTI.
 */
#ifndef XSP_DOUBLE_CUPTI_RECORDS_H
#define XSP_DOUBLE_CUPTI_RECORDS_H

#include <stddef.h>
#include <stdint.h>

enum xd_cupti_kind {
	XD_KIND_MEMCPY = 1,
	XD_KIND_MEMSET = 2,
	XD_KIND_KERNEL = 3,
	XD_KIND_DRIVER = 4,
	XD_KIND_RUNTIME = 5,
	XD_KIND_DEVICE = 8,
	XD_KIND_CONTEXT = 9,
	XD_KIND_CONCURRENT_KERNEL = 10,
	XD_KIND_MARKER = 12,
	XD_KIND_OVERHEAD = 17,
	XD_KIND_MEMCPY2 = 22,
	XD_KIND_CUDA_EVENT = 36,
	XD_KIND_SYNCHRONIZATION = 38,
	XD_KIND_MEMORY2 = 49,
	XD_KIND_GRAPH_TRACE = 51,
	XD_KINDS = 64,
};

#define XD_RECORD struct __attribute__((packed, aligned(8)))

typedef XD_RECORD
{
	uint32_t kind;
	uint8_t cache_config, shared_config;
	uint16_t registers;
	uint32_t cache_requested, cache_executed;
	uint64_t start, end, completed;
	uint32_t device, context, stream;
	int32_t grid[3], block[3];
	int32_t static_shared, dynamic_shared;
	uint32_t local_per_thread, local_total, correlation;
	int64_t grid_id;
	const char *name;
	void *reserved0;
	uint64_t queued, submitted;
	uint8_t launch_type, carveout_requested, carveout, padding;
	uint32_t shared_executed;
	uint64_t graph_node;
	uint32_t shmem_limit;
	uint32_t graph;
	void *access_policy;
	uint32_t channel, channel_type;
	uint32_t cluster[3], cluster_policy;
	uint64_t local_total_v2;
	uint32_t max_cluster, max_active_clusters;
	uint8_t device_launched, padding3[7];
}
xd_kernel_record;

typedef XD_RECORD
{
	uint32_t kind;
	uint8_t copy_kind, source_kind, destination_kind, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation, runtime_correlation, pad;
	void *reserved0;
	uint64_t graph_node;
	uint32_t graph, channel, channel_type;
	uint8_t device_launched, pad2[3];
	uint64_t copies;
}
xd_memcpy_record;

typedef XD_RECORD
{
	uint32_t kind;
	uint8_t copy_kind, source_kind, destination_kind, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream;
	uint32_t source_device, source_context, destination_device, destination_context;
	uint32_t correlation;
	void *reserved0;
	uint64_t graph_node;
	uint32_t graph, channel, channel_type;
}
xd_p2p_record;

typedef XD_RECORD
{
	uint32_t kind, value;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation;
	uint16_t flags, memory_kind;
	uint32_t pad;
	void *reserved0;
	uint64_t graph_node;
	uint32_t graph, channel, channel_type;
	uint8_t device_launched, pad2[3];
}
xd_memset_record;

typedef XD_RECORD
{
	uint32_t kind, cbid;
	uint64_t start, end;
	uint32_t pid, tid, correlation, result;
}
xd_api_record;

typedef XD_RECORD
{
	uint32_t kind, type;
	uint64_t start, end;
	uint32_t correlation, context, stream, event;
	uint64_t event_sync;
	uint32_t result, pad;
}
xd_sync_record;

typedef XD_RECORD
{
	uint32_t kind, overhead, object;
	uint32_t object_id[3];
	uint64_t start, end;
	uint32_t correlation, reserved0;
	void *data;
}
xd_overhead_record;

typedef XD_RECORD
{
	uint32_t kind, operation, memory_kind, correlation;
	uint64_t address, bytes, time, pc;
	uint32_t pid, device, context, stream;
	const char *name;
	uint32_t async, pad1;
	struct {
		uint32_t type, pad2;
		uint64_t address, threshold, size, used;
	} pool;
	const char *source;
}
xd_memory_record;

typedef XD_RECORD
{
	uint32_t kind, correlation, context, stream, event, pad, device, pad2;
	void *reserved0;
	uint64_t device_time, event_sync;
}
xd_event_record_t;

typedef XD_RECORD
{
	uint32_t kind, context, device;
	uint16_t api, null_stream;
	uint32_t parent;
	uint8_t green, padding;
	uint16_t multiprocessors;
	uint32_t cig, padding2;
}
xd_context_record;

typedef XD_RECORD
{
	uint32_t kind, correlation;
	uint64_t start, end;
	uint32_t device, graph, context, stream;
	void *reserved;
	uint32_t end_device, end_context;
}
xd_graph_record;

typedef XD_RECORD
{
	uint32_t kind, flags;
	uint64_t time;
	uint32_t id, object;
	uint32_t object_id[3];
	uint32_t pad;
	const char *name, *domain;
}
xd_marker_record;

#define XD_AT(type, member, offset) _Static_assert(offsetof(type, member) == (offset), #member)
XD_AT(xd_kernel_record, start, 16);
XD_AT(xd_kernel_record, end, 24);
XD_AT(xd_kernel_record, completed, 32);
XD_AT(xd_kernel_record, device, 40);
XD_AT(xd_kernel_record, context, 44);
XD_AT(xd_kernel_record, stream, 48);
XD_AT(xd_kernel_record, grid, 52);
XD_AT(xd_kernel_record, block, 64);
XD_AT(xd_kernel_record, correlation, 92);
XD_AT(xd_kernel_record, grid_id, 96);
XD_AT(xd_kernel_record, name, 104);
XD_AT(xd_kernel_record, queued, 120);
XD_AT(xd_kernel_record, submitted, 128);
XD_AT(xd_kernel_record, graph_node, 144);
XD_AT(xd_kernel_record, graph, 156);
XD_AT(xd_kernel_record, channel, 168);
_Static_assert(sizeof(xd_kernel_record) == 216, "Kernel10");
XD_AT(xd_memcpy_record, copy_kind, 4);
XD_AT(xd_memcpy_record, bytes, 8);
XD_AT(xd_memcpy_record, device, 32);
XD_AT(xd_memcpy_record, stream, 40);
XD_AT(xd_memcpy_record, correlation, 44);
XD_AT(xd_memcpy_record, graph_node, 64);
XD_AT(xd_memcpy_record, graph, 72);
XD_AT(xd_p2p_record, correlation, 60);
XD_AT(xd_memset_record, correlation, 44);
XD_AT(xd_api_record, cbid, 4);
XD_AT(xd_api_record, pid, 24);
XD_AT(xd_api_record, tid, 28);
XD_AT(xd_api_record, correlation, 32);
XD_AT(xd_sync_record, type, 4);
XD_AT(xd_sync_record, correlation, 24);
XD_AT(xd_sync_record, context, 28);
XD_AT(xd_sync_record, stream, 32);
XD_AT(xd_sync_record, event, 36);
XD_AT(xd_overhead_record, start, 24);
XD_AT(xd_overhead_record, end, 32);
XD_AT(xd_event_record_t, correlation, 4);
XD_AT(xd_event_record_t, event, 16);

#endif
