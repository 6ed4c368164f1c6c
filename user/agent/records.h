/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * records.h - the parts of CUPTI's activity records that the agent reads, and the values that it passes to CUPTI.
 * CUPTI's records only grow at their end, so one layout serves all versions: a record is copied as far as it reaches,
 * and the rest is zero. Offsets and values are from cupti_activity.h of CUDA 13.0; tests/doubles/check_headers.c
 * compares them where that file is installed.
 */
#ifndef XSP_AGENT_RECORDS_H
#define XSP_AGENT_RECORDS_H

#include <stdint.h>

/* CUpti_ActivityKind */
enum cupti_kind {
	CUPTI_MEMCPY = 1,
	CUPTI_MEMSET = 2,
	CUPTI_KERNEL = 3,
	CUPTI_DRIVER = 4,
	CUPTI_RUNTIME = 5,
	CUPTI_CONTEXT = 9,
	CUPTI_CONCURRENT_KERNEL = 10,
	CUPTI_MARKER = 12,
	CUPTI_OVERHEAD = 17,
	CUPTI_MEMCPY2 = 22,
	CUPTI_CUDA_EVENT = 36,
	CUPTI_SYNCHRONIZATION = 38,
	CUPTI_MEMORY2 = 49,
	CUPTI_GRAPH_TRACE = 51,
	CUPTI_KIND_MAX = 64,
};

/* CUptiResult */
enum {
	CUPTI_OK = 0,
	CUPTI_MAX_LIMIT_REACHED = 12,
	CUPTI_INVALID_KIND = 21,
	CUPTI_MULTIPLE_SUBSCRIBERS = 39
};
enum { CUPTI_THREAD_ID_SYSTEM = 1 }; /* CUpti_ActivityThreadIdType */
enum { CUPTI_FLUSH_FORCED = 1 }; /* CUpti_ActivityFlag */
enum { CUPTI_DOMAIN_DRIVER = 1, CUPTI_DOMAIN_RUNTIME = 2 }; /* CUpti_CallbackDomain */

#define CUPTI_RECORD __attribute__((packed, aligned(8)))

struct cupti_kernel {
	uint32_t kind;
	uint16_t unused0;
	uint16_t registers;
	uint64_t unused1;
	uint64_t start, end, completed;
	uint32_t device, context, stream;
	uint32_t grid[3], block[3];
	uint32_t static_shared, dynamic_shared;
	uint32_t local_per_thread, local_total, correlation;
	int64_t grid_id;
	const char *name;
	uint64_t unused2;
	uint64_t queued, submitted;
	uint8_t launch_type, unused3[3];
	uint32_t shared_executed;
	uint64_t graph_node;
	uint32_t unused4, graph;
	uint64_t unused5;
	uint32_t channel, channel_type;
	uint32_t cluster[3], unused6;
	uint64_t local_total_v2;
} CUPTI_RECORD;

struct cupti_memcpy {
	uint32_t kind;
	uint8_t copy_kind, source_kind, destination_kind, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation;
	uint64_t unused0, unused1;
	uint64_t graph_node;
	uint32_t graph, channel, channel_type, unused2;
	uint64_t copies;
} CUPTI_RECORD;

struct cupti_memcpy2 {
	uint32_t kind;
	uint8_t copy_kind, source_kind, destination_kind, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream;
	uint32_t source_device, source_context, destination_device, destination_context;
	uint32_t correlation;
	uint64_t unused0;
	uint64_t graph_node;
	uint32_t graph, channel, channel_type;
} CUPTI_RECORD;

struct cupti_memset {
	uint32_t kind, value;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation;
	uint16_t flags, memory_kind;
	uint32_t unused0;
	uint64_t unused1;
	uint64_t graph_node;
	uint32_t graph, channel, channel_type;
} CUPTI_RECORD;

struct cupti_api {
	uint32_t kind, cbid;
	uint64_t start, end;
	uint32_t pid, tid, correlation, result;
} CUPTI_RECORD;

struct cupti_sync {
	uint32_t kind, type;
	uint64_t start, end;
	uint32_t correlation, context, stream, event;
	uint64_t event_sync;
	uint32_t result;
} CUPTI_RECORD;

struct cupti_overhead {
	uint32_t kind, overhead, object, id[3];
	uint64_t start, end;
	uint32_t correlation;
} CUPTI_RECORD;

struct cupti_memory {
	uint32_t kind, operation, memory_kind, correlation;
	uint64_t address, bytes, time, pc;
	uint32_t pid, device, context, stream;
	const char *name;
	uint32_t async, unused0;
	uint32_t pool_type, unused1;
	uint64_t pool, pool_threshold, pool_size, pool_used;
} CUPTI_RECORD;

struct cupti_event {
	uint32_t kind, correlation, context, stream, event, unused0, device, unused1;
	uint64_t unused2, device_time, event_sync;
} CUPTI_RECORD;

struct cupti_marker {
	uint32_t kind, flags;
	uint64_t time;
	uint32_t id, object, object_id[3], unused0;
	const char *name, *domain;
} CUPTI_RECORD;

struct cupti_graph {
	uint32_t kind, correlation;
	uint64_t start, end;
	uint32_t device, graph, context, stream;
	uint64_t unused0;
	uint32_t end_device, end_context;
} CUPTI_RECORD;

struct cupti_context {
	uint32_t kind, context, device;
	uint16_t unused0, null_stream;
} CUPTI_RECORD;

/* CUpti_SubscriberParams */
struct cupti_subscriber_params {
	uint64_t size;
	const char *name;
	char *old_name;
	uint64_t old_size;
};
enum { CUPTI_OLD_NAME = 64 };

#endif
