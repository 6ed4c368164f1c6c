/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * python_rows.h - lines of Python as slices on a row of their own (--python=rows): from the first to the last span
 * in a row that was called by them. What was seen at spans, not measured.
 */
#ifndef XSP_EXPORT_CHROME_PYTHON_ROWS_H
#define XSP_EXPORT_CHROME_PYTHON_ROWS_H

#include "export/export_private.h"

/* The number of such a row (struct xsp_thread_row). */
#define XSP_PYTHON_ROW (UINT32_MAX - 1)

struct xsp_python_rows;

void xsp_python_rows_free(struct xsp_python_rows *p); /* NULL is allowed */
/* *p: NULL at first. 0 or a negative errno, as from the following one. */
int xsp_python_rows_span(struct xsp_export *x, struct xsp_python_rows **p,
			 const struct xsp_span *span);
/* Behind the last span: what is open. */
int xsp_python_rows_end(struct xsp_export *x, struct xsp_python_rows *p);

#endif
