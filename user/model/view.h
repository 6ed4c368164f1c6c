/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * view.h - what formats and the page need of the capture that they show: its reader, its timeline, its job, and the
 * numbers that outputs show for processes and GPUs.
 */
#ifndef XSP_MODEL_VIEW_H
#define XSP_MODEL_VIEW_H

#include "base/rows/u64map.h"
#include "timeline/timeline.h"

/* The weight of stacks. */
enum xsp_weight {
	XSP_WEIGHT_USUAL, /* no choice: samples if there are any, else wall time */
	XSP_WEIGHT_WALL, /* of spans */
	XSP_WEIGHT_CPU, /* of spans, with --waits */
	XSP_WEIGHT_OFF_CPU, /* waits */
	XSP_WEIGHT_SAMPLES,
	XSP_WEIGHT_ALL, /* all time of the threads that are not idle, as in the account: waits, spans on a CPU, samples */
	XSP_WEIGHTS
};
/* "wall", "cpu", "off-cpu", "samples", "all". */
const char *xsp_weight_name(enum xsp_weight weight);
/* XSP_WEIGHTS: no such weight. */
enum xsp_weight xsp_weight_of(const char *name);
/* The weight itself, or what XSP_WEIGHT_USUAL means here. */
enum xsp_weight xsp_weight_chosen(enum xsp_weight weight, const struct xsp_timeline *t);
/* Does the capture have what this weight needs? */
bool xsp_weight_recorded(enum xsp_weight weight, const struct xsp_timeline *t);

/* Several captures that become one output, one after the other. All times are real time. */
struct xsp_view_named {
	size_t capture;
	uint32_t pid; /* root namespace */
	uint32_t order; /* the position of its rows */
	const char *name; /* "rank 3 (host)" */
};
struct xsp_view_job {
	size_t captures;
	const int64_t *shift_ns; /* by capture: added to its times */
	const struct xsp_view_named *names;
	size_t name_count;
};

/* Zero-initialise, then set what is known. Numbers stay valid from one capture of a job to the next. */
struct xsp_view {
	struct xsp_capture_reader *reader;
	struct xsp_timeline *timeline;
	const struct xsp_view_job *job; /* NULL: one capture */
	size_t part; /* of a job: the capture at hand */
	enum xsp_weight weight; /* of stacks */
	bool by_thread; /* their outermost frame is the thread, not all threads of a name */
	bool by_step; /* names that only count ("ProfilerStep#17") stay apart */
	int error; /* -ENOMEM: there was no memory for a number; 0: there was */
	struct xsp_u64map pids, pids_used, gpu_users; /* of xsp_view_pid() and xsp_view_gpu() */
	uint32_t next_pid;
};

void xsp_view_clear(struct xsp_view *v);

/* Is the capture at hand the last one? */
static inline bool xsp_view_is_last(const struct xsp_view *v)
{
	return v->job == NULL || v->part + 1 >= v->job->captures;
}

/* The number that outputs show for a process: its own, unless a GPU or a process of another capture has it. */
uint32_t xsp_view_pid(struct xsp_view *v, uint32_t number);
/* As a device: CUPTI's own time, Kineto's device -1. */
#define XSP_VIEW_OVERHEAD 0x10000001U
/* The same for a GPU's rows. Each process (root pid) has its own, as the streams of two processes have the same
 * numbers; the first process gets the device's. pid 0: any process. */
uint32_t xsp_view_gpu(struct xsp_view *v, uint32_t device, uint32_t pid);
/* The first process that used it; 0: none so far. */
uint32_t xsp_view_gpu_user(const struct xsp_view *v, uint32_t device);
/* The job's name for a process (root pid); NULL: none. */
const struct xsp_view_named *xsp_view_name(const struct xsp_view *v, uint32_t pid);

/* The span's own part of the weight: 0 if not known. */
static inline uint64_t xsp_view_self_ns(const struct xsp_view *v, const struct xsp_span *span)
{
	if (!xsp_span_has_duration(span))
		return 0;
	if (v->weight != XSP_WEIGHT_CPU && v->weight != XSP_WEIGHT_ALL)
		return span->self_ns;
	return span->self_cpu_ns != XSP_CPU_UNKNOWN ? span->self_cpu_ns : 0;
}

#endif
