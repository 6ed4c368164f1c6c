/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine.h - the simulated GPU behind the doubles of libcuda, libcudart and libcupti.
 *
 * It lives in the libcuda double, which exports the xd_ functions to the others. Streams are queues;
 * worker threads take operations off them when their simulated time has come and tell CUPTI's double.
 * The engine counts all it does and writes the counts as JSON when the process exits: the truth, which
 * tests compare with a trace.
 *
 * Environment:
 *   XSP_DOUBLE_TRUTH=FILE     the counts, at exit; what CUPTI's double counts goes to FILE.cupti
 *   XSP_DOUBLE_KERNEL_NS=N    simulated duration of a kernel (2000)
 *   XSP_DOUBLE_SHARED_US=1    a kernel lasts as many us as it has bytes of dynamic shared memory
 *   XSP_DOUBLE_DEVICES=N      (1)
 *   XSP_DOUBLE_WORKERS=N      (2)
 *   XSP_DOUBLE_DRIVER=N       cuDriverGetVersion (13000)
 *   XSP_DOUBLE_FAIL=NAME:N    the Nth call of the API function NAME, and each later one, fails: out
 *                             of memory
 */
#ifndef XSP_DOUBLE_ENGINE_H
#define XSP_DOUBLE_ENGINE_H

#include <stdbool.h>
#include "cbids.h"
#include "cuda_double.h"

#define XD_EXPORT __attribute__((visibility("default")))

enum xd_domain { XD_DRIVER = 1, XD_RUNTIME = 2 }; /* as CUpti_CallbackDomain */

enum xd_op_kind { XD_KERNEL, XD_MEMCPY, XD_MEMCPY_P2P, XD_MEMSET, XD_OPS };

/* CUpti_ActivityMemcpyKind, CUpti_ActivityMemoryKind */
enum { XD_HTOD = 1, XD_DTOH = 2, XD_DTOD = 8, XD_HTOH = 9, XD_PTOP = 10 };
enum { XD_PAGEABLE = 1, XD_PINNED = 2, XD_DEVICE = 3, XD_MANAGED = 5 };

struct CUctx_st {
	uint32_t id;
	int device;
};

struct CUstream_st {
	uint32_t id; /* as CUPTI numbers them: 7 is the context's default stream */
	CUcontext context;
	int priority;
	struct xd_worker *worker;
	uint64_t busy_until; /* ns; under the worker's lock, as what follows */
	uint64_t queued, done;
	CUgraph capture;
};

/* One piece of GPU work. */
struct xd_op {
	uint8_t kind; /* enum xd_op_kind */
	uint8_t async;
	uint8_t copy_kind, from_kind, to_kind;
	uint8_t launch_type;
	bool traced; /* CUPTI was on for it when it was launched */
	uint16_t registers;
	uint32_t correlation;
	CUstream stream;
	uint64_t start, end; /* CLOCK_MONOTONIC ns */
	uint64_t duration;
	uint64_t bytes;
	const char *name;
	uint32_t grid[3], block[3];
	uint32_t static_shared, dynamic_shared;
	uint32_t value;
	int from_device, to_device;
	uint32_t graph;
	uint64_t graph_node;
};

enum xd_sync_kind {
	XD_SYNC_EVENT = 1,
	XD_SYNC_WAIT_EVENT = 2,
	XD_SYNC_STREAM = 3,
	XD_SYNC_CONTEXT = 4
};
struct xd_sync {
	uint32_t kind, correlation, stream, event; /* ~0: none */
	CUcontext context;
	uint64_t start, end;
};

struct xd_memory {
	bool release;
	uint8_t kind; /* XD_DEVICE, … */
	bool async;
	uint64_t address, bytes, time, pool;
	uint32_t correlation, stream; /* ~0: none */
	CUcontext context;
};

struct xd_event_record {
	uint32_t correlation, event, stream;
	CUcontext context;
	uint64_t sync_id;
};

/* Reports to CUPTI's double. Times are CLOCK_MONOTONIC. Any thread. */
struct xd_hooks {
	void (*api)(enum xd_domain domain, uint32_t cbid, uint64_t start, uint64_t end,
		    uint32_t correlation, int result);
	bool (*launched)(const struct xd_op *op);
	void (*op)(const struct xd_op *op);
	void (*sync)(const struct xd_sync *sync);
	void (*memory)(const struct xd_memory *memory);
	void (*event)(const struct xd_event_record *event);
	void (*context)(CUcontext context);
	void (*graph)(uint32_t graph, uint32_t correlation, CUstream stream, uint64_t start,
		      uint64_t end);
};
XD_EXPORT void xd_set_hooks(const struct xd_hooks *hooks);

/* Every API function begins and ends with these. A call inside another has its correlation id. */
struct xd_call {
	enum xd_domain domain;
	uint32_t cbid, correlation;
	uint64_t start;
	bool fail; /* XSP_DOUBLE_FAIL */
};
XD_EXPORT void xd_enter(struct xd_call *call, enum xd_domain domain, uint32_t cbid);
XD_EXPORT int xd_leave(struct xd_call *call, int result);

XD_EXPORT uint64_t xd_now(void);
XD_EXPORT uint64_t xd_env(const char *name, uint64_t otherwise);
XD_EXPORT const char *xd_name(enum xd_domain domain, uint32_t cbid);
/* Calls f for each context. */
XD_EXPORT void xd_contexts(void (*f)(CUcontext context));
/* False in a child of the process that initialised the driver: CUDA does not survive fork. */
XD_EXPORT bool xd_alive(void);

/* ---- inside libcuda ---- */
enum { XD_MAX_DEVICES = 8 };
int xd_start(void);
int xd_devices(void);
CUcontext xd_context(int device); /* the primary one */
CUcontext *xd_current(void); /* the thread's */
CUcontext xd_context_new(int device);
CUstream xd_stream_new(CUcontext context, int priority);
void xd_stream_free(CUstream stream);
/* The stream for a handle that may be 0, CU_STREAM_LEGACY or CU_STREAM_PER_THREAD. */
CUstream xd_stream(CUstream handle, bool per_thread);
/* Queues, or adds to the graph that the stream is captured into. */
int xd_queue(CUstream stream, struct xd_op *op);
void xd_wait_stream(CUstream stream);
bool xd_stream_idle(CUstream stream);
XD_EXPORT void xd_wait_until(uint64_t ns);
void xd_wait_context(CUcontext context);
void xd_report_sync(const struct xd_sync *sync);
void xd_report_memory(const struct xd_memory *memory);
void xd_report_event(const struct xd_event_record *event);
CUgraph xd_graph_new(void);
int xd_graph_add(CUgraph graph, const struct xd_op *op, uint64_t *node);
CUgraphExec xd_graph_instantiate(CUgraph graph);
int xd_graph_launch(CUgraphExec exec, CUstream stream, uint32_t correlation);
void xd_graph_free(CUgraph graph);
void xd_graph_exec_free(CUgraphExec exec);
void xd_count_memory(int64_t bytes);

#endif
