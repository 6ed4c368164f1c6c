/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gpu_path.h - the critical path of a step: back from its end, at each moment to what ended last of what was waited for.
 *
 * What may be waited for follows Holistic Trace Analysis: a kernel waits for its launch, if that began when the work before it on
 * the stream had ended, else for that work, or for what an event stands for; a call that synchronises for the work that
 * ended last in it. A thread off its CPU waits for the one that woke it (--waits). Each moment of the step is on the path
 * once, so that the parts add up to the step.
 *
 * Spans and activities are held until their step is over and the GPU's records, which come seconds late, may be there; then
 * the older half goes. Steps that are larger than that have no path.
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
	XSP_GPU_PATH_HOST, /* name: xsp_name_id, of rows; XSP_GPU_NOWHERE: in no span */
	XSP_GPU_PATH_LAUNCH, /* from the launch's beginning to the work's; names of the GPU's work as gpu_by_name's */
	XSP_GPU_PATH_COMPUTE,
	XSP_GPU_PATH_COMMUNICATION,
	XSP_GPU_PATH_MEMORY,
	XSP_GPU_PATH_GAP, /* between two on the device */
	XSP_GPU_PATH_SYNC, /* until the call returned; name: struct xsp_gpu_sync.what, 0: a copy */
	XSP_GPU_PATH_OFF, /* off its CPU; name: enum xsp_wait_class */
	XSP_GPU_PATH_UNKNOWN, /* before work whose launch is not known */
	XSP_GPU_PATH_KINDS,
};

/* What was on the paths of all steps. */
struct xsp_gpu_path_use {
	enum xsp_gpu_path_kind kind;
	uint32_t name;
	uint64_t ns, steps;
};

struct xsp_gpu_path_step {
	uint32_t tid;
	uint64_t number, start_ns, end_ns;
	uint64_t ns[XSP_GPU_PATH_KINDS]; /* they add up to end_ns - start_ns */
};

struct xsp_gpu_path_counts {
	uint64_t steps, total_ns, ns[XSP_GPU_PATH_KINDS], most_ns[XSP_GPU_PATH_KINDS];
	uint64_t warm_up; /* in no figure, as the others: */
	uint64_t too_large, unrecorded;
	uint64_t late; /* activities that came when the paths at their time were told */
	uint64_t guessed; /* times that an event's work is not known, and the last one was taken */
};

/* ---- what paths are made of ---- */

struct path_span {
	uint64_t start_ns, end_ns;
	xsp_name_id name; /* a row */
	uint32_t parent; /* index, while a path is made; XSP_GPU_NOWHERE: none */
};

/* Off its CPU. */
struct path_off {
	uint64_t left_ns, woken_ns, back_ns;
	uint32_t why, waker;
};

struct path_thread {
	uint32_t tid;
	bool unordered; /* a span came out of order */
	struct path_span *spans; /* by end, children first */
	size_t span_count, span_capacity;
	struct path_off *offs; /* by time */
	size_t off_count, off_capacity;
};

/* Sorted by stream and start, when a path is made. */
struct path_work {
	uint64_t start_ns, end_ns;
	uint64_t call_ns; /* 0: its launch is not known */
	uint32_t call_tid, stream, name; /* stream: the sweep's index */
	enum xsp_gpu_path_kind kind;
};

/* Calls by key and time: those that wait for the device (key: the thread), that put an event into a stream (key: the
 * event), that make a stream wait for one (key: the stream). */
struct path_call {
	uint64_t key, call_ns, call_end_ns;
	uint64_t until_ns; /* work that ended later is not what was waited for */
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

/* A step, and its path when that is made. */
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
	bool has_steps; /* there may be some; else nothing is held */
	XSP_TALLY(struct path_thread) threads; /* by tid */
	struct path_work *works;
	size_t work_count, work_capacity;
	struct path_calls calls[CALL_LISTS];
	bool events; /* their records are in the capture */
	size_t held;
	uint64_t latest_ns;
	uint64_t settled_ns; /* up to here paths have been made */
	uint64_t forgotten_ns; /* what ended before is not held */
	struct path_results pending, firsts; /* without their path; with it, perhaps warm-up */
	XSP_TALLY(struct xsp_gpu_path_use) uses; /* by kind and name */
	struct xsp_gpu_path_step slowest[XSP_GPU_PATH_SLOWEST];
	size_t slowest_count;
	struct xsp_gpu_path_counts counts;
};

/* ---- */

/* 0 or -ENOMEM, as all of them. */
int xsp_gpu_path_new(struct xsp_timeline *t, struct xsp_gpu_sweep *sweep, struct xsp_gpu_host *host,
		     struct xsp_gpu_path **out);
void xsp_gpu_path_free(struct xsp_gpu_path *p);

int xsp_gpu_path_step(struct xsp_gpu_path *p, const struct xsp_step *step);
int xsp_gpu_path_span(struct xsp_gpu_path *p, const struct xsp_span *span);
int xsp_gpu_path_wait(struct xsp_gpu_path *p, const struct xsp_wait *wait);
/* The activity of which the sweep made `work`. */
int xsp_gpu_path_work(struct xsp_gpu_path *p, const struct xsp_gpu_activity *a,
		      const struct xsp_gpu_work *work);
/* A SYNC or an EVENT. */
int xsp_gpu_path_sync(struct xsp_gpu_path *p, const struct xsp_gpu_activity *a);
/* Behind the run. */
int xsp_gpu_path_end(struct xsp_gpu_path *p);

/* gpu_path_walk.c: all lists are in order. 0 or -ENOMEM. */
int xsp_gpu_path_walk(struct xsp_gpu_path *p, struct path_result *result);

/* The last one of the key before that moment; NULL: none. */
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
