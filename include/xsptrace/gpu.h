/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * gpu.h - what the agent in the target (libxsptrace_agent.so) passes to the tracer.
 *
 * The agent turns CUPTI's activity records into the records below and packs them into batches. It
 * passes on a batch by calling the exported function
 *
 * 	void xsp_gpu_batch(const void *records, size_t bytes)
 *
 * which consists of a 5-byte nop and a return. A probe on it copies the batch into the ring buffer
 * (XSP_EVENT_GPU), and the recorder writes it unchanged into the capture file. So this is also the
 * layout on disk: little endian, every record 8-byte aligned and a multiple of 8 bytes long, whole
 * records only.
 *
 * The program that copies a batch relies on this:
 *   - bytes is a multiple of 8, at most XSP_GPU_BATCH_MAX, and the first record is an
 *     XSP_GPU_BATCH_HEAD.
 *   - `records` is 8-byte aligned, and XSP_GPU_BATCH_ROOM bytes from there are readable whatever
 *     `bytes` is, so that they can be copied in pieces of constant size. They were just written, so
 *     their pages are resident.
 *   - Several threads may pass batches at once.
 *
 * The agent learns what to do from probes that are never hit. Each symbol xsp_gpu_want_X is such a
 * function. xsp_gpu_want_X_semaphore is a 16-bit counter, which the kernel raises while a probe
 * with that reference counter is on the function. The agent does nothing until
 * xsp_gpu_want_activity_semaphore rises; it looks 10 times a second. The others say what to collect
 * beside the default, and are read at that moment.
 *
 * A tracer attaches in this order: xsp_gpu_batch (with xsp_gpu_batch_semaphore), the wishes, and
 * want_activity last. To end, it first detaches want_activity. It keeps the batch probe until
 * XSP_GPU_STATE says XSP_GPU_STOPPED, for a limited time: a driver that hangs may never answer. If
 * the tracer is killed, all probes go, and the agent stops and drops what is left.
 *
 * Time is CLOCK_MONOTONIC in ns. Process and thread ids are those of the target's own pid namespace
 * (getpid, gettid). Correlation, context and stream ids are CUPTI's; device ids are CUDA ordinals.
 * Enumerations that are passed on unchanged are CUPTI's (cupti_activity.h), whose values are fixed.
 */
#ifndef XSPTRACE_GPU_H
#define XSPTRACE_GPU_H

#ifndef __bpf__
#include <linux/types.h>
#include <string.h>
#endif

#define XSP_GPU_VERSION 1

/* 8 KiB with struct xsp_event and the {u32 bytes, u32 reserved} that follows it */
#define XSP_GPU_BATCH_ROOM 8192
#define XSP_GPU_BATCH_MAX (XSP_GPU_BATCH_ROOM - 40)

/* The agent's file and symbols. The semaphore of symbol S is S "_semaphore". */
#define XSP_GPU_AGENT "libxsptrace_agent.so"
#define XSP_DRIVER_FILE "libcuda.so" /* what a process has mapped that may use a GPU */
#define XSP_TORCH_FILE "libtorch_cpu.so" /* ... or PyTorch's operators */
#define XSP_GPU_BATCH_SYMBOL "xsp_gpu_batch"
#define XSP_GPU_WANT_ACTIVITY "xsp_gpu_want_activity" /* kernels, copies, sets, syncs, API calls */
#define XSP_GPU_WANT_MEMORY "xsp_gpu_want_memory" /* XSP_GPU_MEMORY */
#define XSP_GPU_WANT_EVENTS "xsp_gpu_want_events" /* XSP_GPU_CUDA_EVENT */
#define XSP_GPU_WANT_MARKERS "xsp_gpu_want_markers" /* XSP_GPU_MARKER (NVTX) */
/* XSP_GPU_GRAPH, one for each launch, and no graph ids on kernels (CUPTI's GRAPH_TRACE) */
#define XSP_GPU_WANT_GRAPHS "xsp_gpu_want_graphs"
#define XSP_GPU_WANT_LATENCY "xsp_gpu_want_latency" /* kernels: queued and submitted */
/* every API call; else those that start GPU work, wait for it, or allocate */
#define XSP_GPU_WANT_ALL_API "xsp_gpu_want_all_api"
/* collect even if another profiler holds CUPTI's subscription, which may then lose records */
#define XSP_GPU_WANT_SHARED "xsp_gpu_want_shared"
#define XSP_AGENT_WANT_OPERATORS "xsp_agent_want_operators" /* PyTorch's, into rings: ring.h */
/* the same by PyTorch's callbacks, in place of the one before */
#define XSP_AGENT_WANT_CALLBACKS "xsp_agent_want_callbacks"
#define XSP_AGENT_WANT_REGIONS "xsp_agent_want_regions" /* of record_function.h */
#define XSP_GPU_SEMAPHORE_SUFFIX "_semaphore"
/* int xsp_agent_start(void): starts the agent in a process that loaded it later (--inject). 0 or a
 * negative errno (-EALREADY: another copy of the agent is at work). More calls do no harm.
 * InitializeInjection does the same for the driver. */
#define XSP_GPU_START_SYMBOL "xsp_agent_start"

/*
 * Environment of the target, read when the agent starts.
 * WAIT: milliseconds (at most 30,000) that the start of the driver waits for want_activity to rise.
 * So a launched program's first kernels are not missed while the tracer puts its probes on the
 * agent.
 * BUFFER: most memory for CUPTI's buffers in MiB (default 256).
 */
#define XSP_GPU_WAIT_VARIABLE "XSPTRACE_GPU_WAIT_MS"
#define XSP_GPU_BUFFER_VARIABLE "XSPTRACE_GPU_BUFFER_MB"

enum xsp_gpu_type {
	XSP_GPU_INVALID = 0,
	XSP_GPU_BATCH_HEAD = 1, /* struct xsp_gpu_batch_head: first record of each batch */
	XSP_GPU_KERNEL = 2, /* struct xsp_gpu_kernel */
	XSP_GPU_MEMCPY = 3, /* struct xsp_gpu_memcpy */
	XSP_GPU_MEMCPY_P2P = 4, /* struct xsp_gpu_memcpy, with source and destination */
	XSP_GPU_MEMSET = 5, /* struct xsp_gpu_memset */
	XSP_GPU_SYNC = 6, /* struct xsp_gpu_sync */
	XSP_GPU_DRIVER = 7, /* struct xsp_gpu_api: a driver API call */
	XSP_GPU_RUNTIME = 8, /* struct xsp_gpu_api: a runtime API call */
	XSP_GPU_OVERHEAD = 9, /* struct xsp_gpu_overhead */
	XSP_GPU_MEMORY = 10, /* struct xsp_gpu_memory: allocation or release */
	XSP_GPU_CUDA_EVENT = 11, /* struct xsp_gpu_cuda_event */
	XSP_GPU_MARKER = 12, /* struct xsp_gpu_marker */
	XSP_GPU_GRAPH = 13, /* struct xsp_gpu_graph */
	XSP_GPU_NAME = 14, /* struct xsp_gpu_name */
	XSP_GPU_DEVICE = 15, /* struct xsp_gpu_device */
	XSP_GPU_CONTEXT = 16, /* struct xsp_gpu_context */
	XSP_GPU_DROPPED = 17, /* struct xsp_gpu_dropped */
	XSP_GPU_ERROR = 18, /* struct xsp_gpu_error */
	XSP_GPU_STATE = 19, /* struct xsp_gpu_state */
};

/*
 * The head of every record. A reader passes over a type that it does not know by its size.
 *
 * Records of fixed layout grow only at the end, and the agent omits whole 8-byte words of zeros
 * there. A reader takes what is there, and zeros for the rest (xsp_gpu_record_read). Records with
 * text end with it: `length` bytes, unterminated, `text_at` bytes after the start of the record.
 */
struct xsp_gpu_record {
	__u16 type; /* enum xsp_gpu_type */
	__u16 size; /* bytes of the record with this head, a multiple of 8 */
	__u32 correlation; /* CUPTI's correlation id; 0 where there is none */
};

/*
 * A window is one stretch of collection in one process, from the rise of want_activity to its fall.
 * Records are numbered over all windows of a process; batch heads have no number. So (first +
 * records - window_first) records of the window were passed on up to the latest batch. If a tracer
 * that was there from the start has fewer, the rest was lost.
 */
struct xsp_gpu_batch_head {
	struct xsp_gpu_record head; /* correlation: XSP_GPU_VERSION */
	__u32 pid;
	__u32 records; /* in this batch after this one */
	/* number of the first of them. Batches of two threads may come in either order */
	__u64 first;
	__u64 window_first; /* number of the window's first record */
	__u64 window_ns; /* when the window began: its identity within the process */
};

struct xsp_gpu_kernel {
	struct xsp_gpu_record head;
	__u64 start_ns, end_ns; /* both 0: CUPTI could not time it */
	__u64 name; /* id of an XSP_GPU_NAME of space XSP_GPU_NAME_STRING: mangled; 0: none */
	__u32 device, context, stream;
	__u16 registers; /* per thread */
	__u8 channel_type; /* 1 compute, 2 async memcpy */
	__u8 launch_type; /* 0 regular, 1 cooperative, 2 cooperative on several devices */
	__u32 grid[3], block[3];
	__u32 static_shared, dynamic_shared; /* bytes */
	__u32 shared_executed; /* shared memory size set by the driver, bytes */
	__u32 local_per_thread; /* bytes */
	__u32 channel;
	__u32 graph; /* 0: not part of a graph */
	__u64 graph_node;
	__u32 cluster[3];
	__u32 reserved;
	__u64 local_total; /* bytes */
	__s64 grid_id; /* 0: the correlation id */
	__u64 completed_ns; /* 0: not tracked */
	__u64 queued_ns, submitted_ns; /* only with xsp_gpu_want_latency */
};

struct xsp_gpu_memcpy {
	struct xsp_gpu_record head; /* correlation of the call */
	__u64 start_ns, end_ns;
	__u64 bytes;
	__u32 device, context, stream;
	__u8 copy_kind; /* CUpti_ActivityMemcpyKind: 1 HtoD, 2 DtoH, 8 DtoD, 10 PtoP, … */
	__u8 source_kind, destination_kind; /* CUpti_ActivityMemoryKind: 1 pageable, 2 pinned, … */
	__u8 flags; /* 1: asynchronous */
	__u32 channel, channel_type;
	__u32 graph, reserved;
	__u64 graph_node;
	__u32 source_device, source_context, destination_device, destination_context; /* P2P */
	__u64 copies; /* number of copies in a batched copy */
};

struct xsp_gpu_memset {
	struct xsp_gpu_record head;
	__u64 start_ns, end_ns;
	__u64 bytes;
	__u32 device, context, stream;
	__u32 value;
	__u16 flags; /* 1: asynchronous */
	__u16 memory_kind; /* CUpti_ActivityMemoryKind */
	__u32 channel, channel_type;
	__u32 graph;
	__u64 graph_node;
};

/* The device is that of the context; see struct xsp_gpu_context. */
struct xsp_gpu_sync {
	struct xsp_gpu_record head;
	__u64 start_ns, end_ns;
	/* CUpti_ActivitySynchronizationType: 1 event, 2 stream waits for event, 3 stream, 4
	 * context */
	__u32 what;
	__u32 context;
	__u32 stream; /* XSP_GPU_NO_ID: none */
	__u32 event; /* XSP_GPU_NO_ID: none */
	__u64 event_sync; /* matches struct xsp_gpu_cuda_event.event_sync (CUDA 12.9); 0: unknown */
	__u32 result; /* CUresult, if CUPTI says it */
	__u32 reserved;
};
#define XSP_GPU_NO_ID 0xffffffffU

struct xsp_gpu_api {
	struct xsp_gpu_record head;
	__u64 start_ns, end_ns;
	__u32 cbid; /* its name: XSP_GPU_NAME of space XSP_GPU_NAME_DRIVER or _RUNTIME */
	__u32 tid;
	__u32 result; /* CUresult or cudaError_t */
	__u32 reserved;
};

struct xsp_gpu_overhead {
	struct xsp_gpu_record head;
	__u64 start_ns, end_ns;
	__u32 what; /* CUpti_ActivityOverheadKind */
	__u32 object; /* CUpti_ActivityObjectKind: 2 a thread, … */
	__u32 tid; /* object 1 and 2 */
	__u32 device, context, stream; /* object 3, 4, 5 */
};

struct xsp_gpu_memory {
	struct xsp_gpu_record head;
	__u64 time_ns;
	__u64 address, bytes;
	__u32 operation; /* 1 allocation, 2 release */
	__u32 memory_kind; /* CUpti_ActivityMemoryKind */
	__u32 device, context, stream; /* stream: XSP_GPU_NO_ID: none */
	__u32 async;
	__u64 pc; /* of the call in the target, 0: unknown */
	__u64 name; /* XSP_GPU_NAME_STRING: of a variable, static allocations; 0: none */
	__u64 pool; /* address of the memory pool; 0: none */
	__u64 pool_size, pool_used, pool_threshold; /* bytes */
};

struct xsp_gpu_cuda_event {
	struct xsp_gpu_record head;
	__u32 context, stream;
	__u32 event;
	__u32 device;
	__u64 event_sync;
	__u64 device_ns; /* 0: not collected */
};

struct xsp_gpu_marker {
	struct xsp_gpu_record head;
	__u64 time_ns;
	__u32 id; /* the same for the start and the end of a range */
	__u32 flags; /* CUpti_ActivityFlag: 1 instant, 2 start, 4 end */
	__u64 name; /* XSP_GPU_NAME_STRING; 0: none (an end) */
	__u64 domain; /* XSP_GPU_NAME_STRING; 0: the default one */
	__u32 tid;
	__u32 reserved;
};

struct xsp_gpu_graph {
	struct xsp_gpu_record head;
	__u64 start_ns, end_ns;
	__u32 device, context, stream;
	__u32 graph;
	__u32 end_device, end_context;
};

/*
 * A name, before or after the record that refers to it. It is repeated in every second in which it
 * is used. So if it was lost, or came before a second tracer did, it is missing for a second at
 * most. The id of a string is a hash of the text: the same in every process and window.
 */
enum xsp_gpu_name_space {
	XSP_GPU_NAME_STRING = 0,
	XSP_GPU_NAME_DRIVER = 1, /* id: cbid; text: CUPTI's name ("cuLaunchKernel") */
	XSP_GPU_NAME_RUNTIME = 2, /* id: cbid; text: "cudaLaunchKernel_v7000" */
};
struct xsp_gpu_name {
	struct xsp_gpu_record head;
	__u64 id;
	__u32 space; /* enum xsp_gpu_name_space */
	__u32 whole; /* bytes of the whole name; more than length: the text is shortened */
	__u16 text_at;
	__u16 length;
	__u32 reserved;
	/* char text[] */
};
#define XSP_GPU_NAME_MAX 7936 /* longest text; a batch holds it */

/* At the start of each window, and about once a second. 0: the driver does not say. */
struct xsp_gpu_device {
	struct xsp_gpu_record head;
	__u32 id;
	__u32 compute_major, compute_minor;
	__u32 multiprocessors; /* numSms */
	__u64 total_memory; /* bytes */
	__u32 max_threads_per_block, max_threads_per_multiprocessor;
	__u32 registers_per_block, registers_per_multiprocessor;
	__u32 warp_size;
	__u32 shared_per_block, shared_per_block_optin, shared_per_multiprocessor; /* bytes */
	__u32 reserved_shared_per_block; /* bytes */
	__u32 max_blocks_per_multiprocessor;
	__u32 pci_domain, pci_bus, pci_device;
	__u32 clock_khz, memory_clock_khz, memory_bus_bits, l2_bytes;
	__u8 uuid[16];
	__u16 text_at; /* the device's name */
	__u16 length;
	/* char text[] */
};

struct xsp_gpu_context {
	struct xsp_gpu_record head;
	__u32 context, device;
	__u32 null_stream; /* stream id of the context's default stream */
	__u32 reserved;
};

enum xsp_gpu_drop {
	XSP_GPU_DROP_CUPTI = 1, /* CUPTI had no room (cuptiActivityGetNumDroppedRecords) */
	XSP_GPU_DROP_CAP = 2, /* the agent's buffers were at their limit, and nobody read them */
	XSP_GPU_DROP_MALFORMED = 3, /* a record that does not fit its kind, or is incomplete */
};
struct xsp_gpu_dropped {
	struct xsp_gpu_record head;
	__u64 time_ns;
	__u64 count; /* since the last such record with this reason */
	__u64 total; /* in this window */
	__u32 reason; /* enum xsp_gpu_drop */
	__u32 reserved;
};

enum xsp_gpu_failure {
	/* libcupti was not found or does not load; text: the places where it was sought, or the
	 * loader's message */
	XSP_GPU_FAIL_NO_CUPTI = 1,
	XSP_GPU_FAIL_OLD_CUPTI = 2, /* libcupti lacks a function that is needed; text: which */
	XSP_GPU_FAIL_CALL = 3, /* a CUPTI call failed; text: "cuptiX: message" */
	XSP_GPU_FAIL_HELD = 4, /* another profiler holds CUPTI; text: its name, if CUPTI says it */
	/* another profiler started during the window: records may be missing */
	XSP_GPU_FAIL_TAKEN = 5,
	XSP_GPU_FAIL_CLOCK = 6, /* CUPTI cannot use our clock */
	XSP_GPU_FAIL_MEMORY = 7, /* no memory for buffers */
};
struct xsp_gpu_error {
	struct xsp_gpu_record head;
	__u64 time_ns;
	__u32 failure; /* enum xsp_gpu_failure */
	__u32 code; /* CUptiResult, 0: none */
	__u16 text_at;
	__u16 length;
	/* 1: nothing is collected; 0: what the text names is missing, the rest goes on */
	__u32 fatal;
	/* char text[] */
};

enum xsp_gpu_what_state {
	XSP_GPU_STARTING = 1, /* CUPTI is being loaded and enabled: up to 15 s the first time */
	XSP_GPU_ACTIVE = 2, /* collecting; reported about once a second */
	XSP_GPU_STOPPED = 3, /* the last record of a window */
	XSP_GPU_FAILED = 4, /* nothing is collected in this window; an XSP_GPU_ERROR says why */
	XSP_GPU_EXITING = 5, /* the last record of a window: the process exits */
};
struct xsp_gpu_state {
	struct xsp_gpu_record head;
	__u64 time_ns;
	__u32 state; /* enum xsp_gpu_what_state */
	__u32 api_version; /* cuptiGetVersion: 28, 130001, …; 0: not loaded yet */
	__u32 driver_version; /* cuDriverGetVersion: 13000 */
	__u32 runtime_version; /* cudaRuntimeGetVersion if libcudart is a shared library; 0: none */
	__u64 kinds; /* bit k: CUpti_ActivityKind k is enabled */
	__u64 records; /* CUPTI records handed over in this window */
	__u64 dropped; /* in this window, all reasons */
	__u64 start_cost_ns; /* the time that loading and enabling took */
	__u64 buffer_bytes; /* the most memory that activity buffers have had */
	__u64 batches; /* in this window */
};

#ifndef __bpf__
/*
 * Returns the record at *at in a batch of `bytes` bytes, and moves *at to its end. NULL: the end,
 * or what follows is no record (*at is then not `bytes`). Nothing in the batch is trusted. `batch`
 * is 8-byte aligned.
 */
static inline const struct xsp_gpu_record *xsp_gpu_record_next(const void *batch, size_t bytes,
							       size_t *at)
{
	const struct xsp_gpu_record *record;

	if (*at > bytes || bytes - *at < sizeof(*record))
		return NULL;
	record = (const struct xsp_gpu_record *)(const void *)((const char *)batch + *at);
	if (record->size < sizeof(*record) || record->size % 8 || record->size > bytes - *at)
		return NULL;
	*at += record->size;
	return record;
}

/* Copies a record of fixed layout into a struct of its type, with zeros for what was omitted. */
static inline void xsp_gpu_record_read(const struct xsp_gpu_record *record, void *out, size_t size)
{
	size_t have = record->size < size ? record->size : size;

	memcpy(out, record, have);
	memset((char *)out + have, 0, size - have);
}
#endif

#endif /* XSPTRACE_GPU_H */
