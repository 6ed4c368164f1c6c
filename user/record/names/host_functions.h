/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * host_functions.h - names of kernels without CUPTI. The runtime API knows a kernel by a host function whose symbol is
 * the kernel's. An address means nothing once its process is gone, so the name goes into the capture, once, like a
 * range's.
 */
#ifndef XSP_RECORD_HOST_FUNCTIONS_H
#define XSP_RECORD_HOST_FUNCTIONS_H

#include "attach/plan.h"
#include "capture/capture.h"
#include "target/resolve.h"

struct xsp_host_functions;

int xsp_host_functions_new(struct xsp_capture_writer *writer, struct xsp_resolver *resolver,
			   struct xsp_host_functions **out);
void xsp_host_functions_free(struct xsp_host_functions *s); /* NULL is allowed */

/* Remembers a module's probes whose calls name a host function. 0 or -ENOMEM. */
int xsp_host_functions_learn(struct xsp_host_functions *s, const struct xsp_planned_module *m);
bool xsp_host_functions_any(const struct xsp_host_functions *s);
/* Do this probe's calls name a host function? */
bool xsp_host_functions_wants(const struct xsp_host_functions *s, uint32_t probe);

/* Writes the name of an event's host function, if it is new and has a symbol. `p`: its process. 0 or a negative errno.
 * The hot path. */
int xsp_host_functions_see(struct xsp_host_functions *s, const struct xsp_process *p,
			   const struct xsp_event *e);

#endif
