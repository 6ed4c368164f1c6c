/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gpu_path.h - the critical path of a step. It is followed back from the step's end, each time to
 * the work that ended last among what was waited for.
 *
 * The rules follow Holistic Trace Analysis. A kernel waits for its launch if that began after the
 * previous work on the stream had ended. Otherwise it waits for that work, or for what an event
 * stands for. A call that synchronises waits for the work that ended last during it. A thread off
 * its CPU waits for the thread that woke it (--waits). Each moment of a step is on its path once,
 * so that the parts add up to the step.
 *
 * Spans and activities are held until their step is over and the GPU's records, which come seconds
 * late, are likely to be there. Then the older half is dropped. A step that does not fit in has no
 * path.
 */
#ifndef XSP_ANALYSIS_GPU_PATH_H
#define XSP_ANALYSIS_GPU_PATH_H

#include "analysis/gpu/gpu_by_name.h"
#include "analysis/gpu/gpu_host.h"
#include "analysis/gpu/gpu_sweep.h"
#include "base/rows/search.h"
#include "base/rows/tally.h"

#define XSP_GPU_PATH_HELD_MOST (1U << 20) /* spans, waits, activities and synchronisations */
#define XSP_GPU_PATH_SLOWEST 5U

enum xsp_gpu_path_kind {
	XSP_GPU_PATH_HOST, /* name: an xsp_name_id of rows; XSP_GPU_NOWHERE: in no span */
	/* from the start of the launch to that of the work; names of GPU work as in gpu_by_name */
	XSP_GPU_PATH_LAUNCH,
	XSP_GPU_PATH_COMPUTE,
	XSP_GPU_PATH_COMMUNICATION,
	XSP_GPU_PATH_MEMORY,
	XSP_GPU_PATH_GAP, /* between two activities of the device */
	XSP_GPU_PATH_SYNC, /* until the call returned; name: struct xsp_gpu_sync.what, 0: a copy */
	XSP_GPU_PATH_OFF, /* off the CPU; name: enum xsp_wait_class */
	XSP_GPU_PATH_UNKNOWN, /* before work whose launch is not known */
	XSP_GPU_PATH_KINDS,
};

/* Time that one thing took on the paths of all steps. */
struct xsp_gpu_path_use {
	enum xsp_gpu_path_kind kind;
	uint32_t name;
	uint64_t ns, steps;
};

struct xsp_gpu_path_step {
	uint32_t tid;
	uint64_t number, start_ns, end_ns;
	uint64_t ns[XSP_GPU_PATH_KINDS]; /* these add up to end_ns - start_ns */
};

struct xsp_gpu_path_counts {
	uint64_t steps, total_ns, ns[XSP_GPU_PATH_KINDS], most_ns[XSP_GPU_PATH_KINDS];
	uint64_t warm_up; /* steps that no figure contains, like the others here: */
	uint64_t too_large, unrecorded;
	uint64_t late; /* activities that came after the path at their time was made */
	uint64_t guessed; /* an event's work was not known: the last work was taken */
};

/* ---- what paths are made of ---- */

struct path_span {
	uint64_t start_ns, end_ns;
	xsp_name_id name; /* a row */
	uint32_t parent; /* index, while a path is made; XSP_GPU_NOWHERE: none */
};

/* A time off the CPU. */
struct path_off {
	uint64_t left_ns, woken_ns, back_ns;
	uint32_t why, waker;
};

struct path_thread {
	uint32_t tid;
	bool unordered; /* a span came out of order */
	struct path_span *spans; /* by end, children first */
	size_t span_count, span_capacity;
	struct path_off *offs; /* in order of time */
	size_t off_count, off_capacity;
};

/* Sorted by stream and start when a path is made. */
struct path_work {
	uint64_t start_ns, end_ns;
	uint64_t call_ns; /* 0: the launch is not known */
	uint32_t call_tid, stream, name; /* stream: index in the sweep */
	enum xsp_gpu_path_kind kind;
};

/* A call, by key and time. BLOCKS wait for the device (key: the thread). RECORDS put an event into
 * a stream (key: the event). STREAM_WAITS make a stream wait for an event (key: the stream). */
struct path_call {
	uint64_t key, call_ns, call_end_ns;
	uint64_t until_ns; /* the call did not wait for work that ended later */
	uint64_t event; /* context and id */
	uint32_t device, stream, what; /* what: struct xsp_gpu_sync.what; 0: a copy */
};
enum path_list { BLOCKS, RECORDS, STREAM_WAITS, CALL_LISTS };
struct path_calls {
	struct path_call *list;
	size_t count, capacity;
};

/* A part of a step's path. */
struct path_share {
	enum xsp_gpu_path_kind kind;
	uint32_t name;
	uint64_t ns;
};

/* A step, with its path once that is made. */
struct path_result {
	struct xsp_gpu_path_step step;
	bool first; /* it may be warm-up */
	struct path_share *shares;
	size_t share_count, share_capacity;
};

struct path_results {
	struct path_result *list;
	size_t count, capacity;
};

struct xsp_gpu_path {
	struct xsp_timeline *timeline;
	struct xsp_gpu_sweep *sweep;
	struct xsp_gpu_host *host;
	bool has_steps; /* there may be steps; otherwise nothing is held */
	XSP_TALLY(struct path_thread) threads; /* by tid */
	struct path_work *works;
	size_t work_count, work_capacity;
	struct path_calls calls[CALL_LISTS];
	bool events; /* the capture has records of events */
	size_t held;
	uint64_t latest_ns;
	uint64_t settled_ns; /* paths are made up to here */
	uint64_t forgotten_ns; /* what ended before this is no longer held */
	/* pending: without a path; firsts: with one, but perhaps warm-up */
	struct path_results pending, firsts;
	XSP_TALLY(struct xsp_gpu_path_use) uses; /* by kind and name */
	struct xsp_gpu_path_step slowest[XSP_GPU_PATH_SLOWEST];
	size_t slowest_count;
	struct xsp_gpu_path_counts counts;
};

/* ---- functions ---- */

/* All functions return 0 or -ENOMEM. */
int xsp_gpu_path_new(struct xsp_timeline *t, struct xsp_gpu_sweep *sweep, struct xsp_gpu_host *host,
		     struct xsp_gpu_path **out);
void xsp_gpu_path_free(struct xsp_gpu_path *p);

int xsp_gpu_path_step(struct xsp_gpu_path *p, const struct xsp_step *step);
int xsp_gpu_path_span(struct xsp_gpu_path *p, const struct xsp_span *span);
int xsp_gpu_path_wait(struct xsp_gpu_path *p, const struct xsp_wait *wait);
/* Adds the activity that the sweep turned into `work`. */
int xsp_gpu_path_work(struct xsp_gpu_path *p, const struct xsp_gpu_activity *a,
		      const struct xsp_gpu_work *work);
/* `a`: a SYNC or an EVENT. */
int xsp_gpu_path_sync(struct xsp_gpu_path *p, const struct xsp_gpu_activity *a);
/* Call it after the run. */
int xsp_gpu_path_end(struct xsp_gpu_path *p);

/* Defined in gpu_path_walk.c. All lists must be in order. 0 or -ENOMEM. */
int xsp_gpu_path_walk(struct xsp_gpu_path *p, struct path_result *result);

/* The last call with this key before that moment; NULL: none. */
static inline const struct path_call *path_call(const struct xsp_gpu_path *p, enum path_list which,
						uint64_t key, uint64_t before_ns)
{
	const struct path_calls *calls = &p->calls[which];
	size_t low = 0;

	XSP_LOWER_BOUND(low, calls->count, i,
			calls->list[i].key < key ||
				(calls->list[i].key == key && calls->list[i].call_ns < before_ns));
	return low > 0 && calls->list[low - 1].key == key ? &calls->list[low - 1] : NULL;
}

#endif
