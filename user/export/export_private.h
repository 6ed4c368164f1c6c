/* SPDX-License-Identifier: BSD-2-Clause */
/* export_private.h - what the formats share: the open output and its buffered writer. */
#ifndef XSP_EXPORT_PRIVATE_H
#define XSP_EXPORT_PRIVATE_H

#include "base/u64map.h"
#include "export/export.h"

struct xsp_out; /* buffered, optionally gzipping writer: out.h */

struct xsp_export {
	const struct xsp_export_format *format;
	struct xsp_export_options options;
	struct xsp_capture_reader *reader;
	struct xsp_timeline *timeline;
	struct xsp_out *out;
	struct xsp_error why; /* of the first error, where the format can say more than an errno */
	void *state; /* the format's own */
	bool received; /* of anything */
	struct xsp_u64map pids, pids_used, gpu_users; /* xsp_export_pid() */
	uint32_t next_pid;
	/* of a job */
	size_t part; /* the capture at hand */
	uint64_t base_ns; /* the format's: what all of them share */
};

/* Is there no other capture behind the one at hand? */
static inline bool xsp_export_is_last(const struct xsp_export *x)
{
	return x->options.job == NULL || x->part + 1 >= x->options.job->captures;
}
/* job.c: the number that a process of this number is shown under: its own, unless a GPU, or a process of another capture,
 * has it. */
uint32_t xsp_export_pid(struct xsp_export *x, uint32_t number);
#define XSP_EXPORT_OVERHEAD                                                                        \
	0x10000001U /* as a device: CUPTI's own time, which Kineto has under -1 */
/* The same of a GPU's rows. Each process (root pid) has its own, as the streams of two have the same numbers: those of the first
 * are the device's. pid 0: whoever's that is. */
uint32_t xsp_export_gpu(struct xsp_export *x, uint32_t device, uint32_t pid);
uint32_t xsp_export_gpu_user(const struct xsp_export *x,
			     uint32_t device); /* the first; 0: none so far */
void xsp_export_numbers_free(struct xsp_export *x);
/* What the job calls it; NULL: nothing. `pid`: root namespace. */
const struct xsp_export_named *xsp_export_name(const struct xsp_export *x, uint32_t pid);

/* What the span itself took, by the weight that was asked for: 0 where that is not known. */
static inline uint64_t xsp_export_self_ns(const struct xsp_export *x, const struct xsp_span *span)
{
	if (!xsp_span_has_duration(span))
		return 0;
	if (x->options.weight != XSP_WEIGHT_CPU)
		return span->self_ns;
	return span->self_cpu_ns != XSP_CPU_UNKNOWN ? span->self_cpu_ns : 0;
}

#endif
