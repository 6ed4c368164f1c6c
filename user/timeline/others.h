/* SPDX-License-Identifier: BSD-2-Clause */
/* others.h - the threads beyond a bound, which have a few rows together: memory does not grow with the input. */
#ifndef XSP_TIMELINE_OTHERS_H
#define XSP_TIMELINE_OTHERS_H

#define XSP_THREADS_MOST 32768U /* threads with rows of their own */
#define XSP_OTHER_ROWS_MOST 1024U
#define XSP_OTHERS_NAME "other threads"
#define XSP_OTHERS_SAID                                                                            \
	"32,768 threads have rows of their own; the others share the rows '" XSP_OTHERS_NAME "'"
/* Their process, and the first of their numbers: above all of Linux's. */
#define XSP_OTHERS_PID 0x10000000U

#endif
