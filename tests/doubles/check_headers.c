/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * check_headers.c - only compiled, with NVIDIA's headers (tests/e2e/agent.py, real_headers):
 * compares the agent's and the doubles' declarations of CUPTI and CUDA with the real ones.
 */
#include <cupti.h>
#include "agent/records.h"
#include "cupti_records.h"
#include "cbids.h"

#define SAME(type, member, real, real_member)                                                      \
	_Static_assert(offsetof(type, member) == offsetof(real, real_member), #type "." #member);  \
	_Static_assert(sizeof(((type *)0)->member) == sizeof(((real *)0)->real_member),            \
		       "size of " #type "." #member)
#define AT(type, member, real, real_member)                                                        \
	_Static_assert(offsetof(type, member) == offsetof(real, real_member), #type "." #member)
#define BOTH(agent, twin, member, real, real_member)                                               \
	SAME(struct agent, member, real, real_member);                                             \
	SAME(twin, member, real, real_member)

#define KERNEL(member, real)                                                                       \
	BOTH(cupti_kernel, xd_kernel_record, member, CUpti_ActivityKernel10, real)
KERNEL(kind, kind);
KERNEL(registers, registersPerThread);
KERNEL(start, start);
KERNEL(end, end);
KERNEL(completed, completed);
KERNEL(device, deviceId);
KERNEL(context, contextId);
KERNEL(stream, streamId);
KERNEL(static_shared, staticSharedMemory);
KERNEL(dynamic_shared, dynamicSharedMemory);
KERNEL(local_per_thread, localMemoryPerThread);
KERNEL(local_total, localMemoryTotal);
KERNEL(correlation, correlationId);
KERNEL(grid_id, gridId);
KERNEL(name, name);
KERNEL(queued, queued);
KERNEL(submitted, submitted);
KERNEL(launch_type, launchType);
KERNEL(shared_executed, sharedMemoryExecuted);
KERNEL(graph_node, graphNodeId);
KERNEL(graph, graphId);
KERNEL(channel, channelID);
KERNEL(channel_type, channelType);
KERNEL(local_total_v2, localMemoryTotal_v2);
AT(struct cupti_kernel, grid, CUpti_ActivityKernel10, gridX);
AT(struct cupti_kernel, block, CUpti_ActivityKernel10, blockX);
AT(struct cupti_kernel, cluster, CUpti_ActivityKernel10, clusterX);
AT(xd_kernel_record, grid, CUpti_ActivityKernel10, gridX);
AT(xd_kernel_record, block, CUpti_ActivityKernel10, blockX);
AT(xd_kernel_record, cluster, CUpti_ActivityKernel10, clusterX);
_Static_assert(sizeof(xd_kernel_record) == sizeof(CUpti_ActivityKernel10), "kernel");

#define MEMCPY(member, real)                                                                       \
	BOTH(cupti_memcpy, xd_memcpy_record, member, CUpti_ActivityMemcpy6, real)
MEMCPY(copy_kind, copyKind);
MEMCPY(source_kind, srcKind);
MEMCPY(destination_kind, dstKind);
MEMCPY(flags, flags);
MEMCPY(bytes, bytes);
MEMCPY(start, start);
MEMCPY(end, end);
MEMCPY(device, deviceId);
MEMCPY(context, contextId);
MEMCPY(stream, streamId);
MEMCPY(correlation, correlationId);
MEMCPY(graph_node, graphNodeId);
MEMCPY(graph, graphId);
MEMCPY(channel, channelID);
MEMCPY(channel_type, channelType);
MEMCPY(copies, copyCount);
_Static_assert(sizeof(xd_memcpy_record) == sizeof(CUpti_ActivityMemcpy6), "memcpy");

#define P2P(member, real)                                                                          \
	BOTH(cupti_memcpy2, xd_p2p_record, member, CUpti_ActivityMemcpyPtoP4, real)
P2P(copy_kind, copyKind);
P2P(bytes, bytes);
P2P(start, start);
P2P(end, end);
P2P(device, deviceId);
P2P(context, contextId);
P2P(stream, streamId);
P2P(source_device, srcDeviceId);
P2P(source_context, srcContextId);
P2P(destination_device, dstDeviceId);
P2P(destination_context, dstContextId);
P2P(correlation, correlationId);
P2P(graph_node, graphNodeId);
P2P(graph, graphId);
P2P(channel, channelID);
P2P(channel_type, channelType);
_Static_assert(sizeof(xd_p2p_record) == sizeof(CUpti_ActivityMemcpyPtoP4), "P2P");

#define MEMSET(member, real)                                                                       \
	BOTH(cupti_memset, xd_memset_record, member, CUpti_ActivityMemset4, real)
MEMSET(value, value);
MEMSET(bytes, bytes);
MEMSET(start, start);
MEMSET(end, end);
MEMSET(device, deviceId);
MEMSET(context, contextId);
MEMSET(stream, streamId);
MEMSET(correlation, correlationId);
MEMSET(flags, flags);
MEMSET(memory_kind, memoryKind);
MEMSET(graph_node, graphNodeId);
MEMSET(graph, graphId);
MEMSET(channel, channelID);
MEMSET(channel_type, channelType);
_Static_assert(sizeof(xd_memset_record) == sizeof(CUpti_ActivityMemset4), "memset");

#define API(member, real) BOTH(cupti_api, xd_api_record, member, CUpti_ActivityAPI, real)
API(cbid, cbid);
API(start, start);
API(end, end);
API(pid, processId);
API(tid, threadId);
API(correlation, correlationId);
API(result, returnValue);
_Static_assert(sizeof(xd_api_record) == sizeof(CUpti_ActivityAPI), "API");

#define SYNC(member, real)                                                                         \
	BOTH(cupti_sync, xd_sync_record, member, CUpti_ActivitySynchronization2, real)
SYNC(type, type);
SYNC(start, start);
SYNC(end, end);
SYNC(correlation, correlationId);
SYNC(context, contextId);
SYNC(stream, streamId);
SYNC(event, cudaEventId);
SYNC(event_sync, cudaEventSyncId);
SYNC(result, returnValue);
_Static_assert(sizeof(xd_sync_record) == sizeof(CUpti_ActivitySynchronization2), "sync");

#define OVERHEAD(member, real)                                                                     \
	BOTH(cupti_overhead, xd_overhead_record, member, CUpti_ActivityOverhead3, real)
OVERHEAD(overhead, overheadKind);
OVERHEAD(object, objectKind);
OVERHEAD(start, start);
OVERHEAD(end, end);
OVERHEAD(correlation, correlationId);
AT(struct cupti_overhead, id, CUpti_ActivityOverhead3, objectId);
_Static_assert(sizeof(xd_overhead_record) == sizeof(CUpti_ActivityOverhead3), "overhead");

#define MEMORY(member, real)                                                                       \
	BOTH(cupti_memory, xd_memory_record, member, CUpti_ActivityMemory4, real)
MEMORY(operation, memoryOperationType);
MEMORY(memory_kind, memoryKind);
MEMORY(correlation, correlationId);
MEMORY(address, address);
MEMORY(bytes, bytes);
MEMORY(time, timestamp);
MEMORY(pc, PC);
MEMORY(device, deviceId);
MEMORY(context, contextId);
MEMORY(stream, streamId);
MEMORY(name, name);
MEMORY(async, isAsync);
SAME(struct cupti_memory, pool_type, CUpti_ActivityMemory4, memoryPoolConfig.memoryPoolType);
SAME(struct cupti_memory, pool, CUpti_ActivityMemory4, memoryPoolConfig.address);
SAME(struct cupti_memory, pool_threshold, CUpti_ActivityMemory4, memoryPoolConfig.releaseThreshold);
SAME(struct cupti_memory, pool_size, CUpti_ActivityMemory4, memoryPoolConfig.pool.size);
SAME(struct cupti_memory, pool_used, CUpti_ActivityMemory4, memoryPoolConfig.utilizedSize);
SAME(xd_memory_record, pool.address, CUpti_ActivityMemory4, memoryPoolConfig.address);
_Static_assert(sizeof(xd_memory_record) == sizeof(CUpti_ActivityMemory4), "memory");

#define EVENT(member, real)                                                                        \
	BOTH(cupti_event, xd_event_record_t, member, CUpti_ActivityCudaEvent2, real)
EVENT(correlation, correlationId);
EVENT(context, contextId);
EVENT(stream, streamId);
EVENT(event, eventId);
EVENT(device, deviceId);
EVENT(device_time, deviceTimestamp);
EVENT(event_sync, cudaEventSyncId);
_Static_assert(sizeof(xd_event_record_t) == sizeof(CUpti_ActivityCudaEvent2), "event");

#define MARKER(member, real)                                                                       \
	BOTH(cupti_marker, xd_marker_record, member, CUpti_ActivityMarker2, real)
MARKER(flags, flags);
MARKER(time, timestamp);
MARKER(id, id);
MARKER(object, objectKind);
MARKER(object_id, objectId);
MARKER(name, name);
MARKER(domain, domain);
_Static_assert(sizeof(xd_marker_record) == sizeof(CUpti_ActivityMarker2), "marker");

#define GRAPH(member, real)                                                                        \
	BOTH(cupti_graph, xd_graph_record, member, CUpti_ActivityGraphTrace2, real)
GRAPH(correlation, correlationId);
GRAPH(start, start);
GRAPH(end, end);
GRAPH(device, deviceId);
GRAPH(graph, graphId);
GRAPH(context, contextId);
GRAPH(stream, streamId);
GRAPH(end_device, endDeviceId);
GRAPH(end_context, endContextId);
_Static_assert(sizeof(xd_graph_record) == sizeof(CUpti_ActivityGraphTrace2), "graph");

#define CONTEXT(member, real)                                                                      \
	BOTH(cupti_context, xd_context_record, member, CUpti_ActivityContext3, real)
CONTEXT(context, contextId);
CONTEXT(device, deviceId);
CONTEXT(null_stream, nullStreamId);
_Static_assert(sizeof(xd_context_record) == sizeof(CUpti_ActivityContext3), "context");

SAME(struct cupti_subscriber_params, size, CUpti_SubscriberParams, structSize);
SAME(struct cupti_subscriber_params, name, CUpti_SubscriberParams, subscriberName);
SAME(struct cupti_subscriber_params, old_name, CUpti_SubscriberParams, oldSubscriberName);
SAME(struct cupti_subscriber_params, old_size, CUpti_SubscriberParams, oldSubscriberSize);
/* the real macro's value, and the one passed to cuptiSubscribe_v2 */
_Static_assert(sizeof(struct cupti_subscriber_params) == CUpti_SubscriberParams_STRUCT_SIZE,
	       "size");

/* values: mine, NVIDIA's */
#define VALUE(mine, real) _Static_assert((int)(mine) == (int)(real), #real)
VALUE(CUPTI_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY);
VALUE(CUPTI_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET);
VALUE(CUPTI_KERNEL, CUPTI_ACTIVITY_KIND_KERNEL);
VALUE(CUPTI_DRIVER, CUPTI_ACTIVITY_KIND_DRIVER);
VALUE(CUPTI_RUNTIME, CUPTI_ACTIVITY_KIND_RUNTIME);
VALUE(CUPTI_CONTEXT, CUPTI_ACTIVITY_KIND_CONTEXT);
VALUE(CUPTI_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
VALUE(CUPTI_MARKER, CUPTI_ACTIVITY_KIND_MARKER);
VALUE(CUPTI_OVERHEAD, CUPTI_ACTIVITY_KIND_OVERHEAD);
VALUE(CUPTI_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMCPY2);
VALUE(CUPTI_CUDA_EVENT, CUPTI_ACTIVITY_KIND_CUDA_EVENT);
VALUE(CUPTI_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
VALUE(CUPTI_MEMORY2, CUPTI_ACTIVITY_KIND_MEMORY2);
VALUE(CUPTI_GRAPH_TRACE, CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
VALUE(CUPTI_MAX_LIMIT_REACHED, CUPTI_ERROR_MAX_LIMIT_REACHED);
VALUE(CUPTI_INVALID_KIND, CUPTI_ERROR_INVALID_KIND);
VALUE(CUPTI_MULTIPLE_SUBSCRIBERS, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
VALUE(CUPTI_THREAD_ID_SYSTEM, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
VALUE(CUPTI_FLUSH_FORCED, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
VALUE(CUPTI_DOMAIN_DRIVER, CUPTI_CB_DOMAIN_DRIVER_API);
VALUE(CUPTI_DOMAIN_RUNTIME, CUPTI_CB_DOMAIN_RUNTIME_API);

#define ONE(name, number) VALUE(number, CUPTI_DRIVER_TRACE_CBID_##name);
XD_DRIVER_CBIDS(ONE)
#undef ONE
#define ONE(name, function, number) VALUE(number, CUPTI_RUNTIME_TRACE_CBID_##name);
XD_RUNTIME_CBIDS(ONE)
#undef ONE

/* attributes that devices.c reads */
VALUE(1, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
VALUE(8, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
VALUE(10, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
VALUE(12, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
VALUE(13, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
VALUE(16, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
VALUE(33, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
VALUE(34, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
VALUE(36, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
VALUE(37, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
VALUE(38, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
VALUE(39, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
VALUE(50, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
VALUE(75, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
VALUE(76, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
VALUE(81, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
VALUE(82, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
VALUE(97, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
VALUE(106, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
VALUE(111, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
