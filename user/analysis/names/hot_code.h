/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hot_code.h - of samples: which functions the processes were in on their CPUs, native ones and Python's, and of each
 * who called it, on which threads and in which spans. For rules.
 */
#ifndef XSP_ANALYSIS_HOT_CODE_H
#define XSP_ANALYSIS_HOT_CODE_H

#include "analysis/analysis.h"

struct xsp_hot_code;

struct xsp_hot_process {
	uint32_t pid;
	uint64_t samples, ns; /* of time on CPUs */
};

/* A native function that threads were in, whoever called it; or, with all that it calls but Python, one of Python's; or what
 * Python's packages do for one line of the program. */
struct xsp_hot_function {
	uint32_t process; /* index */
	bool python;
	bool with_packages;
	xsp_name_id name; /* of Python one of its lines; in the kernel the system call */
	xsp_name_id file; /* 0: not known, or the kernel */
	uint64_t samples, ns;
	uint64_t from_ns, to_ns; /* of a second in which there are most of them */
	uint64_t second_ns; /* while they are counted: where the last second began, and */
	uint64_t in_second, most_in_second;
};
size_t xsp_hot_functions(const struct xsp_hot_code *o, const struct xsp_hot_function **rows);
const struct xsp_hot_process *xsp_hot_process(const struct xsp_hot_code *h,
					      const struct xsp_hot_function *f);

/* What its samples have beside it, one at most of each. */
enum xsp_hot_what {
	XSP_HOT_THREAD, /* tid, root namespace */
	XSP_HOT_CALLER, /* name: the next function out that is another one, and not the C library's */
	XSP_HOT_LINE, /* name: "train.py:5 multiplies" */
	XSP_HOT_SPAN, /* name: the innermost that is open */
	XSP_HOT_INSIDE, /* the index: of one of Python's of the native function */
	XSP_HOT_INSIDE_PYTHON, /* ... of packages' work of Python's as well */
};
struct xsp_hot_detail {
	uint32_t function; /* index */
	uint32_t what;
	uint32_t value;
	uint64_t samples;
};
size_t xsp_hot_details(const struct xsp_hot_code *o, const struct xsp_hot_detail **rows);
/* That of most of the function's samples, or NULL; *count (may be NULL): how many there are. */
const struct xsp_hot_detail *xsp_hot_most(const struct xsp_hot_code *h,
					  const struct xsp_hot_function *f, enum xsp_hot_what what,
					  size_t *count);

/* The line of Python's that the thread was at in most of its samples; NULL: none is known. */
const char *xsp_hot_line_of(const struct xsp_hot_code *h, uint32_t tid);

/* "train.py:21 Net.forward" is a line of that function; *function: its name's place in the text, *file: the length of
 * that of the file. False: it is none. */
bool xsp_hot_is_line(const char *text, size_t *file, const char **function);

#endif
