/* SPDX-License-Identifier: BSD-2-Clause */
/* gpu_private.h - shared by the files that join GPU activity to calls. */
#ifndef XSP_TIMELINE_GPU_PRIVATE_H
#define XSP_TIMELINE_GPU_PRIVATE_H

#include "base/arena.h"
#include "base/rows/tally.h"
#include "timeline/gpu.h"
#include "timeline/timeline_private.h"

/* How long a call waits for its record, in the recording's time: the agent flushes once a
 * second. */
#define XSP_HELD_NS (10 * 1000000000ULL)
/* How long a matched call stays on its thread, for calls around it without spans. */
#define XSP_DONE_NS (1 * 1000000000ULL)
/* How long a call's record waits for its span's exit: rings are written a second apart at most. */
#define XSP_RECORD_NS (3 * 1000000000ULL)
/* How long activities wait for their call or name, and calls for their activities. */
#define XSP_WAIT_NS (10 * 1000000000ULL)
#define XSP_CALL_NS (60 * 1000000000ULL)
#define XSP_RANGE_NS (10 * 1000000000ULL)

#define XSP_MAX_HELD 65536U /* for each thread */
#define XSP_MAX_RECORDS 65536U /* for each thread */
#define XSP_MAX_CALLS 1048576U
#define XSP_MAX_WAITING 262144U
#define XSP_MAX_GPU_NAMES 1048576U
#define XSP_MAX_USER_RANGES 1048576U

#define XSP_NOWHERE UINT32_MAX /* end of a list */

/* A closed span of the cuda provider. */
struct held {
	struct xsp_span span; /* with a reference of its details, until done */
	uint8_t api;
	bool done; /* handed on */
};

/* A record of a call whose span has not ended yet. */
struct api_record {
	uint64_t start_ns, end_ns, came_ns;
	uint32_t correlation, cbid, result;
	uint8_t api;
	bool bad; /* its times cannot be true: it is no call by itself */
};

struct gpu_thread {
	uint32_t pid, tid;
	struct held *held; /* by end; from held_from on */
	size_t held_from, held_count, held_capacity;
	struct api_record *records;
	size_t record_count, record_capacity;
	uint64_t closed_ns; /* end of the last span to end */
};

/* The program's context of a call: ids of the operator and the user's range (0: none), and their
 * names. */
struct around_call {
	uint64_t op, user;
	xsp_name_id op_name, user_name;
};

/* A call with a correlation id. */
struct call {
	uint32_t pid, correlation;
	uint32_t tid, row;
	uint64_t start_ns, end_ns;
	struct around_call around;
	uint64_t came_ns;
	unsigned left_out; /* enum xsp_left_out */
	bool known; /* a real call; false: only waiting activities */
	bool arrow; /* an activity has its arrow */
	uint32_t waiting; /* first activity that waits for it, or XSP_NOWHERE */
	uint32_t next; /* in order of arrival */
};

union activity_record {
	struct xsp_gpu_record head;
	struct xsp_gpu_kernel kernel;
	struct xsp_gpu_memcpy memcpy;
	struct xsp_gpu_memset memset;
	struct xsp_gpu_sync sync;
	struct xsp_gpu_graph graph;
	struct xsp_gpu_cuda_event event;
	struct xsp_gpu_overhead overhead;
};

/* An activity that waits for its call or name. */
struct waiting {
	union activity_record record;
	uint64_t came_ns;
	uint32_t pid;
	uint8_t kind;
	bool gone; /* joined */
	uint32_t next; /* the next one of the same call */
	uint32_t younger; /* in order of arrival */
};

/* A pool with a free list; `oldest`, `youngest`: in order of arrival. */
struct pool {
	size_t count, capacity;
	uint32_t free, oldest, youngest;
	size_t used;
};

/* A user's range on a stream. */
struct user_range {
	uint64_t user, start_ns, end_ns, touched_ns;
	xsp_name_id name;
	uint32_t pid, device, context, stream;
};

struct gpu_context {
	uint32_t pid, context, device, null_stream;
};

struct gpu_process {
	uint32_t pid;
	uint64_t window_ns; /* identifies the window */
	uint64_t window_first, window_end, window_came; /* record numbers; how many of them came */
	bool open; /* the window's end was not seen */
};

struct stream_times;

struct xsp_gpu {
	struct xsp_timeline *t;
	uint64_t now; /* latest time seen */
	uint64_t from_ns, to_ns; /* what lies outside has another clock */
	bool imported; /* from a trace */
	uint64_t swept_ns;
	struct xsp_gpu_counts counts;

	struct gpu_process *processes;
	size_t process_count, process_capacity;
	struct gpu_context *contexts;
	size_t context_count, context_capacity;
	struct xsp_gpu_device_info *devices;
	size_t device_count, device_capacity;

	struct xsp_arena texts;
	XSP_TALLY(const char *) names; /* by the name's key */

	struct xsp_u64map tids; /* pid << 32 | tid in its namespace → root tid */
	XSP_TALLY(struct gpu_thread) threads; /* by pid << 32 | tid */

	struct call *calls;
	struct pool call_pool;
	struct xsp_u64map call_of; /* pid << 32 | correlation → index in calls */
	struct waiting *waiting;
	struct pool waiting_pool;

	XSP_TALLY(struct user_range) ranges;
	XSP_TALLY(struct stream_times) streams;
};

/* The operator, or the range where there is none; 0: neither is there. */
static inline uint64_t xsp_gpu_launcher(const struct around_call *a)
{
	return a->op != 0 ? a->op : a->user;
}

/* calls.c */
/* A call of CUDA's API has ended. */
int xsp_gpu_span(struct xsp_gpu *g, const struct xsp_span *span, enum xsp_cuda_api api);
int xsp_gpu_api_record(struct xsp_gpu *g, uint32_t pid, const struct xsp_gpu_record *record,
		       enum xsp_cuda_api api);
int xsp_gpu_sweep_calls(struct xsp_gpu *g, bool all);
void xsp_gpu_calls_free(struct xsp_gpu *g);

/* link.c */
/* A call with this correlation id is known. */
int xsp_gpu_call_known(struct xsp_gpu *g, const struct call *found);
int xsp_gpu_activity_record(struct xsp_gpu *g, uint32_t pid, const struct xsp_gpu_record *record);
int xsp_gpu_sweep_activities(struct xsp_gpu *g, bool all);
void xsp_gpu_link_begin(struct xsp_gpu *g);
void xsp_gpu_link_free(struct xsp_gpu *g);

/* bad.c */
void xsp_gpu_bad_begin(struct xsp_gpu *g);
/* `came_ns`: when the record came. */
enum xsp_gpu_bad xsp_gpu_bad_times(const struct xsp_gpu *g, uint64_t start_ns, uint64_t end_ns,
				   uint64_t came_ns);
/* `c`: its call, or NULL. An activity that is not bad is compared with later ones of its stream. */
enum xsp_gpu_bad xsp_gpu_bad_activity(struct xsp_gpu *g, const struct waiting *w,
				      const struct call *c, const struct xsp_gpu_activity *a);
void xsp_gpu_bad_free(struct xsp_gpu *g);

/* names.c */
int xsp_gpu_add_name(struct xsp_gpu *g, const struct xsp_gpu_record *record);
/* NULL: not known yet. Kernels' names are demangled. */
const char *xsp_gpu_name(const struct xsp_gpu *g, uint32_t space, uint64_t id);
int xsp_gpu_add_device(struct xsp_gpu *g, const struct xsp_gpu_record *record);
int xsp_gpu_add_context(struct xsp_gpu *g, uint32_t pid, const struct xsp_gpu_record *record);
const struct gpu_context *xsp_gpu_context(const struct xsp_gpu *g, uint32_t pid, uint32_t context);
const struct xsp_gpu_device_info *xsp_gpu_device(const struct xsp_gpu *g, uint32_t id);
void xsp_gpu_names_free(struct xsp_gpu *g);

#endif
