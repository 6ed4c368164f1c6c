/* SPDX-License-Identifier: BSD-2-Clause */
/* samples.h - --sample: what threads do on their CPUs, some number of times a second. */
#ifndef XSP_TIMELINE_SAMPLES_H
#define XSP_TIMELINE_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#include "timeline/callers.h"

struct xsp_timeline;

struct xsp_sample {
	uint64_t time_ns;
	uint64_t period_ns; /* the CPU time that it stands for */
	uint32_t pid, tid; /* root namespace */
	/* Name ids, outermost first: open spans, Python and native functions; at least one. The
	 * last one is where the thread was. Names of other things than spans have XSP_PATH_FRAME
	 * added. Valid during the call */
	const uint32_t *path;
	uint32_t path_length;
	/* how many of the last ones are the kernel's functions, below the system call */
	uint32_t kernel_length;
	/* name id of the native function that it was in, or that called the kernel */
	uint32_t function;
	uint32_t file; /* of the file with that function; 0: not known */
	uint32_t line; /* 1 + name id of the innermost Python function; 0: none */
	uint32_t own_line; /* the same for the program's own innermost one, not a package's */
	/* only if a sink wants charges: own_line of the thread's whole stack, also around the spans; and 1 + index in the path
	 * of the program's own innermost native function, neither the system's nor a package's. 0: none, or not known */
	uint32_t own_place, own_function;
	struct xsp_own_callers callers; /* of that place, likewise */
	bool in_span, in_step; /* as in struct xsp_charge */
	uint32_t
		span; /* 1 + name id of that span, if no line of Python around it is known; else 0 */
	bool kernel; /* it was in the kernel */
	bool page_fault; /* the kernel was handling a page fault, by its functions */
	bool ends_early; /* no caller is known: the frame pointers ended */
	bool beyond; /* it has further callers beyond the part of the stack that was read */
};

/* The function to which the sample counts. In the path this may be the span of that name; in the
 * kernel it is the system call. */
uint32_t xsp_sample_place(const struct xsp_sample *s);

/* Does the capture hold samples? */
bool xsp_timeline_has_samples(const struct xsp_timeline *t);
/* Did the user ask for them, or was nothing traced? Then samples make the stacks by default. */
bool xsp_timeline_samples_asked(const struct xsp_timeline *t);
/* Samples were on by default, cost too much, and were dropped at this time (CLOCK_MONOTONIC); 0:
 * they were not dropped. */
uint64_t xsp_timeline_samples_until_ns(const struct xsp_timeline *t);
/* What triggers a sample ("cpu-clock", "cycles"); and how many a second were asked for. */
const char *xsp_timeline_sample_clock(const struct xsp_timeline *t);
uint64_t xsp_timeline_sample_hz(const struct xsp_timeline *t);

#endif
