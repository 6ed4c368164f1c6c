/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * samples.h - --sample: what threads were doing on their CPUs, so many times a second.
 */
#ifndef XSP_TIMELINE_SAMPLES_H
#define XSP_TIMELINE_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

struct xsp_timeline;

struct xsp_sample {
	uint64_t time_ns;
	uint64_t period_ns; /* so much of its thread's time on a CPU it stands for */
	uint32_t pid, tid; /* root namespace */
	/* Name ids, outermost first, of spans that were open, Python and native functions, the last one where the
	 * thread was: at least one. Those that are no spans have XSP_PATH_FRAME added. Valid during the call */
	const uint32_t *path;
	uint32_t path_length;
	uint32_t
		kernel_length; /* so many of the last ones are functions of the kernel's, below the system call */
	uint32_t
		function; /* name id of the native function that it was in, or called the kernel from */
	uint32_t file; /* ... of the file that this is in; 0: not known */
	uint32_t line; /* 1 + name id of the innermost Python function; 0: none */
	uint32_t
		own_line; /* the same of the innermost one of the program's own, and not a package's */
	bool kernel; /* it was in the kernel */
	bool page_fault; /* ... for a page of memory, as the kernel's functions say */
	bool ends_early; /* nobody is known to have called the function: no frame pointer led there */
	bool beyond; /* its callers, or theirs, lie further out on the stack than what was read of it */
};

/* What it counts as: the function that it was in, which in the path may be the span of that name; in the kernel the system call. */
uint32_t xsp_sample_place(const struct xsp_sample *s);

/* Does the capture hold samples? */
bool xsp_timeline_has_samples(const struct xsp_timeline *t);
/* ... that were asked for? Then stacks are of them if nobody says otherwise. */
bool xsp_timeline_samples_asked(const struct xsp_timeline *t);
/* They were taken out then (CLOCK_MONOTONIC), as they were on by default and cost too much; 0: they were not. */
uint64_t xsp_timeline_samples_until_ns(const struct xsp_timeline *t);
/* What is counted between two: "cpu-clock", "cycles"; and how many a second were asked for. */
const char *xsp_timeline_sample_clock(const struct xsp_timeline *t);
uint64_t xsp_timeline_sample_hz(const struct xsp_timeline *t);

#endif
