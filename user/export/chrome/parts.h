/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * parts.h - the parts of the Chrome trace, a file each. Functions that can fail return 0 or a
 * negative errno.
 *
 * A section of a span becomes arguments of its slice: pairs `,"key":value`.
 */
#ifndef XSP_EXPORT_CHROME_PARTS_H
#define XSP_EXPORT_CHROME_PARTS_H

#include "export/export_private.h"
#include "model/rows/states.h"
#include "model/run_stats.h"

/* ---- metadata.c: top-level keys, those of PyTorch and Kineto under their names ---- */

/* Writes what is known of the capture before its events are read; and what is known after. */
void xsp_chrome_recorded(struct xsp_export *x);
void xsp_chrome_read(struct xsp_export *x);

/* ---- details.c: a table by section type, and the sections without a file of their own ---- */

int xsp_chrome_detail(struct xsp_export *x, const struct xsp_span *span,
		      const struct xsp_section *section);
/* Writes everything that is known of the span. */
int xsp_chrome_details(struct xsp_export *x, const struct xsp_span *span);
/* The native stack as Kineto's "Call stack": "inner;outer;...". */
int xsp_chrome_stack(struct xsp_export *x, const struct xsp_span *span,
		     const struct xsp_section *section);

/*
 * ---- args.c: the sections ARGS and OUTPUTS, arguments and results of PyTorch's operators. Keys
 * and spelling are those of PyTorch's profiler with record_shapes
 * (torch/csrc/profiler/kineto_shim.cpp, profiler_kineto.cpp): "Input Dims", "Input Strides", "Input
 * type", "Concrete Inputs" ----
 */
int xsp_chrome_args(struct xsp_export *x, const struct xsp_span *span,
		    const struct xsp_section *section);

/* ---- collectives.c: arguments of a collective, under Kineto's keys where it has them ---- */

/* Writes nothing for the words of other probes. */
int xsp_chrome_collective_arguments(struct xsp_export *x, const struct xsp_span *span,
				    const struct xsp_section *section);

/* ---- cuda.c: the sections of a CUDA call ---- */

int xsp_chrome_cuda_arguments(struct xsp_export *x, const struct xsp_span *span,
			      const struct xsp_section *section);
int xsp_chrome_cuda_result(struct xsp_export *x, const struct xsp_span *span,
			   const struct xsp_section *section);
int xsp_chrome_cuda_written(struct xsp_export *x, const struct xsp_span *span,
			    const struct xsp_section *section);
/* Writes what a failed call returned. */
void xsp_chrome_cuda_error(struct xsp_export *x, enum xsp_cuda_api api, uint32_t code);

/* ---- calls.c: CUDA API calls as slices: cuda_runtime and cuda_driver ---- */

int xsp_chrome_call(struct xsp_export *x, const struct xsp_gpu_call *call);
/* Is the span a CUDA API call? Then it is written here, now or when CUPTI's record has come. */
bool xsp_chrome_is_call(const struct xsp_export *x, const struct xsp_span *span);
int xsp_chrome_call_span(struct xsp_export *x, const struct xsp_span *span);

/* ---- gpu.c: activities on streams, arrows to them, rows, device properties ---- */

struct xsp_chrome_gpu;
int xsp_chrome_gpu_new(struct xsp_chrome_gpu **out);
void xsp_chrome_gpu_free(struct xsp_chrome_gpu *g); /* NULL is allowed */
/* Writes an activity's arguments, less than 2 KiB; returns the end. */
char *xsp_chrome_gpu_arguments(char *p, const struct xsp_gpu_activity *a);
int xsp_chrome_activity(struct xsp_export *x, const struct xsp_gpu_activity *a);
/* Call it after the last activity: writes names and order of the rows. */
void xsp_chrome_gpu_rows(struct xsp_export *x);
/* Top-level keys: devices, versions, counts, clock. */
void xsp_chrome_gpu_tail(struct xsp_export *x);

/* ---- python.c: the Python lines that called a span ---- */

int xsp_chrome_python(struct xsp_export *x, const struct xsp_span *span,
		      const struct xsp_section *section);
/* "FILE(LINE): FUNCTION", escaped. */
void xsp_chrome_python_line(struct xsp_export *x, const struct xsp_capture_python_frame *frame);

/*
 * ---- python_rows.c: Python lines as slices on a row of their own (--python=rows). A slice lasts
 * from the first to the last of successive spans that the line called. It shows what was seen at
 * spans, not what was measured ----
 */

/* The number of this row (struct xsp_thread_row). */
#define XSP_PYTHON_ROW (UINT32_MAX - 1)
struct xsp_python_rows;
void xsp_python_rows_free(struct xsp_python_rows *p); /* NULL is allowed */
/* *p is NULL at first. */
int xsp_python_rows_span(struct xsp_export *x, struct xsp_python_rows **p,
			 const struct xsp_span *span);
/* Call it after the last span: writes the lines that are still open. */
void xsp_python_rows_end(struct xsp_export *x, struct xsp_python_rows *p);

/* ---- counters.c: memory, allocations as PyTorch's profiler shows them, values of programs ---- */

int xsp_chrome_process_memory(struct xsp_export *x, const struct xsp_process_memory_at *at);
int xsp_chrome_memory(struct xsp_export *x, const struct xsp_memory_event *e);
int xsp_chrome_value(struct xsp_export *x, const struct xsp_value *v);

/* ---- waits.c: --waits as a row of states under each thread, and arrows from the thread that wakes
 * to the one that it wakes ---- */

int xsp_chrome_wait(struct xsp_export *x, const struct xsp_wait *wait);
/* Writes the arguments of a state: `"key":value` pairs. */
int xsp_chrome_state_arguments(struct xsp_export *x, const struct xsp_state_slice *s);
/* Call it after the last wait: the threads run on. */
int xsp_chrome_last_states(struct xsp_export *x);
/* Writes the top-level key that says where each thread's time went. */
void xsp_chrome_threads(struct xsp_export *x);

#endif
