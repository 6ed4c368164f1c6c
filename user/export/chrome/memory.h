/* SPDX-License-Identifier: BSD-2-Clause */
/* memory.h - memory in the Chrome trace: tracks of counters, and each allocation as PyTorch's profiler shows it. */
#ifndef XSP_EXPORT_CHROME_MEMORY_H
#define XSP_EXPORT_CHROME_MEMORY_H

#include "export/export_private.h"

int xsp_chrome_process_memory(struct xsp_export *x, const struct xsp_process_memory_at *at);
int xsp_chrome_memory(struct xsp_export *x, const struct xsp_memory_event *e);

#endif
