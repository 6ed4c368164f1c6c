/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gpu.h - what the GPU did in the Chrome trace, as Kineto writes it: activities on streams,
 * arrows between them, rows, device properties.
 */
#ifndef XSP_EXPORT_CHROME_GPU_H
#define XSP_EXPORT_CHROME_GPU_H

#include "export/export_private.h"

struct xsp_chrome_gpu;

int xsp_chrome_gpu_new(struct xsp_chrome_gpu **out);
void xsp_chrome_gpu_free(struct xsp_chrome_gpu *g); /* NULL is allowed */

/* Its arguments as `,"key":value`, less than 2 KiB: the end. */
char *xsp_chrome_gpu_arguments(char *p, const struct xsp_gpu_activity *a);
int xsp_chrome_activity(struct xsp_export *x, const struct xsp_gpu_activity *a);

/* After the last activity: names and order of the rows. */
void xsp_chrome_gpu_rows(struct xsp_export *x);
/* Top-level keys behind the events: devices, versions, counts, clock. */
void xsp_chrome_gpu_tail(struct xsp_export *x);

#endif
