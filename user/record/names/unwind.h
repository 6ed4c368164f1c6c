/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind.h - the callers of a function that was sampled, or in which a thread waited, from a copy of its registers and
 * stack: by call frame information where the function's file has it, else by frame pointer.
 */
#ifndef XSP_RECORD_UNWIND_H
#define XSP_RECORD_UNWIND_H

#include "target/resolve.h"
#include "xsptrace/event.h"

struct xsp_unwinder;

int xsp_unwinder_new(struct xsp_resolver *resolver, struct xsp_unwinder **out);
void xsp_unwinder_free(struct xsp_unwinder *u); /* NULL is allowed */

/* The sample or wait with a STACK for its COPY: valid until the next call. Any other event, one that is not well formed,
 * or has no copy, is given back. The hot path. */
const struct xsp_event *xsp_unwind(struct xsp_unwinder *u, const struct xsp_event *e);

#endif
