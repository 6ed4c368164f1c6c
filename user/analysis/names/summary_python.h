/* SPDX-License-Identifier: BSD-2-Clause */
/* summary_python.h - --python in the summary: spans by the line of Python that called them, and by torch.nn.Module. */
#ifndef XSP_ANALYSIS_SUMMARY_PYTHON_H
#define XSP_ANALYSIS_SUMMARY_PYTHON_H

#include "report/report.h"
#include "analysis/names/summary.h"

struct xsp_summary_python;

int xsp_summary_python_new(struct xsp_timeline *t, struct xsp_summary_python **out);
void xsp_summary_python_free(struct xsp_summary_python *s);

/* 0 or -ENOMEM. NULL is allowed: nothing is kept. */
int xsp_summary_python_span(struct xsp_summary_python *s, const struct xsp_span *span);

/* Behind the run, each module behind those around it: own time and calls. What `fn` returned that was not 0, 0 or -ENOMEM. */
int xsp_summary_python_modules(struct xsp_summary_python *s,
			       int (*fn)(void *ctx, const char *path, uint64_t ns, uint64_t calls),
			       void *ctx);

/* The tables that are asked for; nothing where no span has a line, which text says. 0 or -ENOMEM. */
int xsp_summary_python_report(struct xsp_summary_python *s, bool by_line, bool by_module,
			      struct xsp_report *report);

#endif
