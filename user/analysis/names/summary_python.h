/* SPDX-License-Identifier: BSD-2-Clause */
/* summary_python.h - --python in the summary: spans by the line of Python that called them, and
 * by torch.nn.Module. */
#ifndef XSP_ANALYSIS_SUMMARY_PYTHON_H
#define XSP_ANALYSIS_SUMMARY_PYTHON_H

#include "report/report.h"
#include "analysis/names/summary.h"

struct xsp_summary_python;

int xsp_summary_python_new(struct xsp_timeline *t, struct xsp_summary_python **out);
void xsp_summary_python_free(struct xsp_summary_python *s);

/* NULL is allowed and keeps nothing. 0 or -ENOMEM. */
int xsp_summary_python_span(struct xsp_summary_python *s, const struct xsp_span *span);

/* After the run: passes each module to `fn`, after the modules around it, with its own time and
 * calls. Returns the first result of `fn` that is not 0; else 0 or -ENOMEM. */
int xsp_summary_python_modules(struct xsp_summary_python *s,
			       int (*fn)(void *ctx, const char *path, uint64_t ns, uint64_t calls),
			       void *ctx);

/* The tables that are asked for. Without any span with a line it adds nothing, or as text says
 * so. 0 or -ENOMEM. */
int xsp_summary_python_report(struct xsp_summary_python *s, bool by_line, bool by_module,
			      struct xsp_report *report);

#endif
