/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind.h - the callers of a sampled or waiting function, from a copy of its registers and stack: by call frame
 * information if the function's file has it, else by frame pointer.
 */
#ifndef XSP_RECORD_UNWIND_H
#define XSP_RECORD_UNWIND_H

#include "record/names/java.h"
#include "record/names/javascript.h"
#include "target/resolve.h"
#include "xsptrace/event.h"

struct xsp_unwinder;

/* All are borrowed; `javascript` and `java` may be NULL. */
int xsp_unwinder_new(struct xsp_resolver *resolver, struct xsp_javascript *javascript,
		     struct xsp_java *java, struct xsp_unwinder **out);
void xsp_unwinder_free(struct xsp_unwinder *u); /* NULL is allowed */

/* The sample or wait with a STACK instead of its COPY: valid until the next call. Returns any other event (malformed,
 * or without a copy) unchanged. The hot path. */
const struct xsp_event *xsp_unwind(struct xsp_unwinder *u, const struct xsp_event *e);

#endif
