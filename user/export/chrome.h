/* SPDX-License-Identifier: BSD-2-Clause */
/* chrome.h - what the parts of the Chrome trace share: times, rows, names. */
#ifndef XSP_EXPORT_CHROME_H
#define XSP_EXPORT_CHROME_H

#include "export/export_private.h"
#include "export/shown.h"

/* A point in time (CLOCK_MONOTONIC) as the trace has it; 24 bytes at most. Returns the end. */
char *xsp_chrome_put_ts(const struct xsp_export *x, char *p, uint64_t ns);
/* The row of a thread's stack, made at first sight; NULL: no memory. */
struct xsp_shown_row *xsp_chrome_row(struct xsp_export *x, uint32_t pid, uint32_t tid,
				     uint32_t number);
/* `"name":"...` up to the closing quote of a span's name. 0 or -ENOMEM. */
int xsp_chrome_put_name(struct xsp_export *x, xsp_name_id name);
/* Number of the next slice (Ev Idx). */
uint64_t xsp_chrome_next_slice(struct xsp_export *x);
/* Events of phase M. */
void xsp_chrome_put_text_meta(struct xsp_export *x, const char *name, uint32_t pid, uint32_t tid,
			      const char *argument, const char *value);
void xsp_chrome_put_sort_index(struct xsp_export *x, const char *name, uint32_t pid, uint32_t tid,
			       uint32_t index);
struct xsp_chrome_gpu *xsp_chrome_gpu_of(struct xsp_export *x);

/* `,"key":value` and `,"key":[1,2,3]`; keys are our own and need no escape. Each returns the end. */
char *xsp_chrome_put_number(char *p, const char *key, uint64_t value);
char *xsp_chrome_put_triple(char *p, const char *key, const uint32_t v[3]);

#endif
