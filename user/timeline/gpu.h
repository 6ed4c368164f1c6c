/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gpu.h - what the GPU did, joined to the calls that caused it (records of the agent,
 * xsptrace/gpu.h). CUPTI's records come up to seconds later than the spans and in no order. So CUDA
 * calls wait until the record of the same call has come (same thread, overlapping time), which has
 * their correlation id. Activities wait for the call with their correlation id. Age and number
 * bound both.
 */
#ifndef XSP_TIMELINE_GPU_H
#define XSP_TIMELINE_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "catalog/gpu/cuda_table.h"
#include "xsptrace/gpu.h"

struct xsp_span;
struct xsp_timeline;

/* A CUDA call: once for each span of the cuda provider with xsp_span.call_follows, and for each
 * call that only CUPTI saw. */
struct xsp_gpu_call {
	const struct xsp_span *span; /* without its ancestors; NULL: no probe was hit */
	uint32_t pid, tid, row; /* root namespace */
	uint64_t start_ns, end_ns;
	enum xsp_cuda_api api;
	const char *name; /* for a call without a span; "" if not known */
	uint32_t correlation; /* 0: CUPTI had no record of it */
	uint32_t cbid; /* with a correlation */
	uint32_t result;
	uint64_t external; /* id of its operator; 0: none */
	bool cut; /* it reaches beyond the cut: its times are the part inside */
};

enum xsp_gpu_kind {
	XSP_GPU_IS_KERNEL = 0,
	XSP_GPU_IS_MEMCPY,
	XSP_GPU_IS_MEMSET,
	XSP_GPU_IS_SYNC,
	XSP_GPU_IS_GRAPH,
	XSP_GPU_IS_EVENT,
	XSP_GPU_IS_OVERHEAD,
	/* from the first to the last activity launched inside a user's range */
	XSP_GPU_IS_ANNOTATION,
	XSP_GPU_KINDS,
};

/* Why a record's times cannot be true. */
enum xsp_gpu_bad {
	XSP_GPU_TIMED, /* they can be */
	XSP_GPU_NO_TIME, /* 0: CUPTI could not time it */
	XSP_GPU_BACKWARDS, /* it ends before it begins */
	XSP_GPU_OTHER_CLOCK, /* it lies outside of the recording */
	XSP_GPU_BEFORE_CALL, /* it begins before the call that asked for it */
	/* it overlaps another activity of its stream, which runs one after the other */
	XSP_GPU_AT_ONCE,
	XSP_GPU_BADS,
};

struct xsp_gpu_device_info {
	struct xsp_gpu_device device;
	const char *name;
};

struct xsp_gpu_activity {
	enum xsp_gpu_kind kind;
	uint32_t pid; /* root namespace */
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC */
	uint32_t device, context, stream; /* stream XSP_GPU_NO_ID: none */
	uint32_t correlation; /* 0: none */
	uint64_t external; /* id of the operator, for an ANNOTATION its own; 0: none */
	/* 1 + xsp_name_id of the operator (or range) that launched it; 0: not known */
	uint32_t launcher;
	const char *name; /* KERNEL: demangled; ANNOTATION; else "" */
	/* the arrow from the call; 0: none. `arrow_begins`: the first activity of its call, which
	 * is at call_ns on call_row of call_tid. These are the outermost call's, as far as it is
	 * known by then. An EVENT may have a call, but has no arrow */
	uint64_t arrow;
	bool arrow_begins;
	uint32_t call_tid, call_row;
	uint64_t call_ns, call_end_ns;
	const void *record; /* struct xsp_gpu_kernel, ..., by kind; ANNOTATION: NULL */
	const struct xsp_gpu_device_info *on; /* NULL: not known */
	bool cut; /* it reaches beyond the cut: its times are the part inside */
	bool call_cut; /* the call does */
	bool left_out; /* dropped with its call; private to the timeline */
	/* if they cannot be true, its times are 0, and only the sink's `untimed` gets it */
	enum xsp_gpu_bad bad;
};

struct xsp_gpu_counts {
	uint64_t records; /* records of all kinds */
	uint64_t activities[XSP_GPU_KINDS];
	uint64_t api_records, api_matched; /* matched to a span */
	uint64_t linked, unlinked; /* activities with a correlation id: joined to a call or not */
	uint64_t unnamed; /* kernels whose name never came */
	uint64_t lost; /* the agent handed them over, but the capture lacks them */
	uint64_t dropped; /* by CUPTI or the agent */
	uint64_t malformed;
	uint64_t bad[XSP_GPU_BADS]; /* activities and calls, by enum xsp_gpu_bad */
	/* activities that begin before their call by less than clocks may disagree */
	uint64_t early;
	uint64_t windows; /* windows of collection, over all processes */
	uint64_t unfinished; /* windows whose end was not seen */
	uint64_t errors;
	/* how far inside its span a call's record begins and ends, ns; negative: how much the
	 * clocks disagree */
	int64_t start_least, end_least;
	uint64_t start_sum, end_sum; /* sums over api_matched, without the negative ones */
	uint32_t api_version, driver_version, runtime_version;
	char error[160]; /* the agent's last error, "" if none */
};

/* Does the capture hold GPU activity, or might it? */
bool xsp_timeline_has_gpu(const struct xsp_timeline *t);
/* Complete after the run. NULL without GPU activity. */
const struct xsp_gpu_counts *xsp_timeline_gpu(const struct xsp_timeline *t);
/* Records whose times cannot be true, of all kinds. */
uint64_t xsp_gpu_bad_count(const struct xsp_gpu_counts *c);
#define XSP_GPU_BAD_TEXT 400
/* "3 GPU records have times that cannot be true, and are in no total: 2 ..., 1 ..."; NULL: none. */
const char *xsp_gpu_bad_text(const struct xsp_gpu_counts *c, char out[XSP_GPU_BAD_TEXT]);
/* Known devices, by id; valid until the run goes on. */
size_t xsp_timeline_gpu_devices(const struct xsp_timeline *t,
				const struct xsp_gpu_device_info **devices);

/* Names of kernels without CUPTI: host functions have symbols, and calls that return handles name
 * them. Returns the kernel that a launch of process `pid` names by `function`; NULL: it is not
 * known. */
const char *xsp_timeline_kernel(const struct xsp_timeline *t, uint32_t pid, uint64_t function);

/* The table's row for a probe of the cuda provider; NULL: another provider's probe. */
const struct xsp_cuda_entry *xsp_timeline_cuda(const struct xsp_timeline *t, uint32_t probe);

#endif
