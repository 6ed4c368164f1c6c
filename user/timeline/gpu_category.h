/* SPDX-License-Identifier: BSD-2-Clause */
/* gpu_category.h - what the GPU did, in Kineto's words: the same in every format. */
#ifndef XSP_TIMELINE_GPU_CATEGORY_H
#define XSP_TIMELINE_GPU_CATEGORY_H

#include "timeline/gpu.h"

#define XSP_GPU_NAME_SIZE 80

/* The kernel's name, "Memcpy HtoD (Pinned -> Device)", ...; in `buffer`, static, or the activity's
 * own. */
const char *xsp_gpu_activity_name(const struct xsp_gpu_activity *a, char buffer[XSP_GPU_NAME_SIZE]);
/* "kernel", "gpu_memcpy", ... */
const char *xsp_gpu_category(enum xsp_gpu_kind kind);
/* Work on a stream: a kernel, a copy, a graph; not a remark about it. */
bool xsp_gpu_is_work(enum xsp_gpu_kind kind);
/* Does a thread wait for the stream while it works? Such waits have rows of their own. */
bool xsp_gpu_is_wait(const struct xsp_gpu_activity *a);
/* The name of xsp_gpu_sync.what. */
const char *xsp_gpu_sync_name(uint32_t what);

#endif
