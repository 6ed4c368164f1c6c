/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hot_code.h - from samples: the native and Python functions in which processes spent CPU time.
 * Each has its callers, threads and spans. For rules.
 */
#ifndef XSP_ANALYSIS_HOT_CODE_H
#define XSP_ANALYSIS_HOT_CODE_H

#include "analysis/analysis.h"

struct xsp_hot_code;

struct xsp_hot_process {
	uint32_t pid;
	uint64_t samples, ns; /* CPU time */
};

/* One of three kinds. A native function, whoever calls it. A Python function with the native
 * code that it calls. A line of the program with the work of packages that it calls. */
struct xsp_hot_function {
	uint32_t process; /* index */
	bool python;
	bool with_packages;
	xsp_name_id name; /* for Python any of its lines; in the kernel the system call */
	xsp_name_id file; /* 0: not known, or the kernel */
	uint64_t samples, ns;
	uint64_t from_ns, to_ns; /* a second with the most samples */
	uint64_t second_ns; /* used while counting: start of the last second */
	uint64_t in_second, most_in_second;
};
size_t xsp_hot_functions(const struct xsp_hot_code *o, const struct xsp_hot_function **rows);
const struct xsp_hot_process *xsp_hot_process(const struct xsp_hot_code *h,
					      const struct xsp_hot_function *f);

/* A detail of a function's samples. Each sample has at most one of each kind. */
enum xsp_hot_what {
	XSP_HOT_THREAD, /* tid, root namespace */
	/* name: the next outer function that is another one and not the C library's */
	XSP_HOT_CALLER,
	XSP_HOT_LINE, /* name: "train.py:5 multiplies" */
	XSP_HOT_SPAN, /* name: the innermost open span */
	XSP_HOT_INSIDE, /* index of the native function inside a Python function */
	XSP_HOT_INSIDE_PYTHON, /* index of the Python function inside packages' work */
};
struct xsp_hot_detail {
	uint32_t function; /* index */
	uint32_t what;
	uint32_t value;
	uint64_t samples;
};
size_t xsp_hot_details(const struct xsp_hot_code *o, const struct xsp_hot_detail **rows);
/* The detail with the most samples, or NULL; *count (may be NULL): how many details there are. */
const struct xsp_hot_detail *xsp_hot_most(const struct xsp_hot_code *h,
					  const struct xsp_hot_function *f, enum xsp_hot_what what,
					  size_t *count);

/* The Python line with the most of the thread's samples; NULL: none is known. */
const char *xsp_hot_line_of(const struct xsp_hot_code *h, uint32_t tid);

#endif
