/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * parts.h - what each part of the Chrome trace writes, a file each. All that can fail return 0 or a negative errno.
 *
 * A section of a span becomes arguments of its slice: pairs `,"key":value`.
 */
#ifndef XSP_EXPORT_CHROME_PARTS_H
#define XSP_EXPORT_CHROME_PARTS_H

#include "export/export_private.h"
#include "model/rows/states.h"
#include "model/run_stats.h"

/* ---- metadata.c: top-level keys, as PyTorch and Kineto have them where they do ---- */

/* What is known of the capture before its events are read, and after that. */
void xsp_chrome_recorded(struct xsp_export *x);
void xsp_chrome_read(struct xsp_export *x);

/* ---- details.c: a table by section type, with the sections that have no file of their own ---- */

int xsp_chrome_detail(struct xsp_export *x, const struct xsp_span *span,
		      const struct xsp_section *section);
/* The same for all that is known of the span. */
int xsp_chrome_details(struct xsp_export *x, const struct xsp_span *span);
/* The native stack as Kineto's "Call stack": "inner;outer;...". */
int xsp_chrome_stack(struct xsp_export *x, const struct xsp_span *span,
		     const struct xsp_section *section);

/*
 * ---- args.c: the sections ARGS and OUTPUTS: arguments and results of PyTorch's operators under the keys and in the
 * spelling of PyTorch's own profiler with record_shapes (torch/csrc/profiler/kineto_shim.cpp, profiler_kineto.cpp):
 * "Input Dims", "Input Strides", "Input type", "Concrete Inputs" ----
 */
int xsp_chrome_args(struct xsp_export *x, const struct xsp_span *span,
		    const struct xsp_section *section);

/* ---- collectives.c: what a collective was called with, under Kineto's keys where it has them ---- */

/* Nothing for the words of other probes. */
int xsp_chrome_collective_arguments(struct xsp_export *x, const struct xsp_span *span,
				    const struct xsp_section *section);

/* ---- cuda.c: the sections of a CUDA call ---- */

int xsp_chrome_cuda_arguments(struct xsp_export *x, const struct xsp_span *span,
			      const struct xsp_section *section);
int xsp_chrome_cuda_result(struct xsp_export *x, const struct xsp_span *span,
			   const struct xsp_section *section);
int xsp_chrome_cuda_written(struct xsp_export *x, const struct xsp_span *span,
			    const struct xsp_section *section);
/* What a call returned that failed. */
void xsp_chrome_cuda_error(struct xsp_export *x, enum xsp_cuda_api api, uint32_t code);

/* ---- calls.c: calls of CUDA's API as slices: cuda_runtime and cuda_driver ---- */

int xsp_chrome_call(struct xsp_export *x, const struct xsp_gpu_call *call);
/* Is the span a call of CUDA's API? Then it is written here, now or when CUPTI's record has come. */
bool xsp_chrome_is_call(const struct xsp_export *x, const struct xsp_span *span);
int xsp_chrome_call_span(struct xsp_export *x, const struct xsp_span *span);

/* ---- gpu.c: activities on streams, arrows to them, rows, device properties ---- */

struct xsp_chrome_gpu;
int xsp_chrome_gpu_new(struct xsp_chrome_gpu **out);
void xsp_chrome_gpu_free(struct xsp_chrome_gpu *g); /* NULL is allowed */
/* An activity's arguments, less than 2 KiB: the end. */
char *xsp_chrome_gpu_arguments(char *p, const struct xsp_gpu_activity *a);
int xsp_chrome_activity(struct xsp_export *x, const struct xsp_gpu_activity *a);
/* After the last activity: names and order of the rows. */
void xsp_chrome_gpu_rows(struct xsp_export *x);
/* Top-level keys: devices, versions, counts, clock. */
void xsp_chrome_gpu_tail(struct xsp_export *x);

/* ---- python.c: the Python lines that a span was called from ---- */

int xsp_chrome_python(struct xsp_export *x, const struct xsp_span *span,
		      const struct xsp_section *section);
/* "FILE(LINE): FUNCTION", escaped. */
void xsp_chrome_python_line(struct xsp_export *x, const struct xsp_capture_python_frame *frame);

/*
 * ---- python_rows.c: lines of Python as slices on a row of their own (--python=rows): from the first to the last span
 * in a row that was called by them. What was seen at spans, not measured ----
 */

/* The number of such a row (struct xsp_thread_row). */
#define XSP_PYTHON_ROW (UINT32_MAX - 1)
struct xsp_python_rows;
void xsp_python_rows_free(struct xsp_python_rows *p); /* NULL is allowed */
/* *p: NULL at first. */
int xsp_python_rows_span(struct xsp_export *x, struct xsp_python_rows **p,
			 const struct xsp_span *span);
/* After the last span: what is open. */
void xsp_python_rows_end(struct xsp_export *x, struct xsp_python_rows *p);

/* ---- counters.c: memory, each allocation as PyTorch's profiler shows it, values of programs ---- */

int xsp_chrome_process_memory(struct xsp_export *x, const struct xsp_process_memory_at *at);
int xsp_chrome_memory(struct xsp_export *x, const struct xsp_memory_event *e);
int xsp_chrome_value(struct xsp_export *x, const struct xsp_value *v);

/* ---- waits.c: --waits as a row of states under each thread, arrows from who wakes to who is woken ---- */

int xsp_chrome_wait(struct xsp_export *x, const struct xsp_wait *wait);
/* The arguments of a state: `"key":value` pairs. */
int xsp_chrome_state_arguments(struct xsp_export *x, const struct xsp_state_slice *s);
/* After the last wait: that threads run on. */
int xsp_chrome_last_states(struct xsp_export *x);
/* The top-level key: where all of each thread's time went. */
void xsp_chrome_threads(struct xsp_export *x);

#endif
