/* SPDX-License-Identifier: BSD-2-Clause */
/* summary_python.h - --python in the summary: spans by the line of Python that called them, and by torch.nn.Module. */
#ifndef XSP_ANALYSIS_SUMMARY_PYTHON_H
#define XSP_ANALYSIS_SUMMARY_PYTHON_H

#include <stdio.h>

#include "report/report.h"
#include "analysis/names/summary.h"
#include "base/json_writer.h"

struct xsp_summary_python;

int xsp_summary_python_new(struct xsp_timeline *t, struct xsp_summary_python **out);
void xsp_summary_python_free(struct xsp_summary_python *s);

/* 0 or -ENOMEM. NULL is allowed: nothing is kept. */
int xsp_summary_python_span(struct xsp_summary_python *s, const struct xsp_span *span);

/* The tables that `how` asks for. 0 or -ENOMEM. */
int xsp_summary_python_write(struct xsp_summary_python *s, FILE *f,
			     const struct xsp_summary_print *how);
/* Both of them; nothing if no span had a line. 0 or -ENOMEM. */
int xsp_summary_python_json(struct xsp_summary_python *s, struct xsp_json_writer *j);

/* Behind the run, each module behind those around it: own time and calls. What `fn` returned that was not 0, 0 or -ENOMEM. */
int xsp_summary_python_modules(struct xsp_summary_python *s,
			       int (*fn)(void *ctx, const char *path, uint64_t ns, uint64_t calls),
			       void *ctx);

/* Lines and modules, in a report; nothing where there are none. 0 or -ENOMEM. */
int xsp_summary_python_report(struct xsp_summary_python *s, struct xsp_report *report);

#endif
