/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sources.h - what debug information knows of addresses in stacks and samples: the functions that the compiler put
 * into others instead of calling them, and the lines of allocating code. A planner reads it beside the recording, which
 * never waits for it before its end.
 */
#ifndef XSP_RECORD_SOURCES_H
#define XSP_RECORD_SOURCES_H

#include "attach/planner.h"
#include "capture/capture.h"
#include "target/resolve.h"

struct xsp_sources;

enum xsp_sources_when {
	XSP_SOURCES_AT_END,
	XSP_SOURCES_ON_DEMAND, /* and before; addresses are forgotten where there are very many */
	XSP_SOURCES_NOW_AND_THEN, /* somebody reads the capture meanwhile */
};

/* All are borrowed. 0 or -ENOMEM. */
int xsp_sources_new(struct xsp_capture_writer *writer, const struct xsp_resolver *resolver,
		    enum xsp_sources_when when, struct xsp_sources **out);
void xsp_sources_free(struct xsp_sources *s); /* NULL is allowed */

/* Will ask about that address: for its line (XSP_NAME_OF_LINE), or else for the functions inlined there. `stood`: its
 * thread was there, so it is no return address. 0 or -ENOMEM. */
int xsp_sources_want(struct xsp_sources *s, enum xsp_address_name what, uint32_t pid,
		     uint64_t address, bool stood);

/* Writes what has been answered, and asks on: if it is time to, or `now`. 0 or a negative errno. */
int xsp_sources_turn(struct xsp_sources *s, struct xsp_planner *planner, bool now);
bool xsp_sources_pending(const struct xsp_sources *s); /* is there anything without an answer? */
/* The end: asks about the rest, and waits for some seconds at most. 0 or a negative errno. */
int xsp_sources_finish(struct xsp_sources *s, struct xsp_planner *planner);

/* A name of that hash will be written again when its address is met again. False: it is none of these. */
bool xsp_sources_forget(struct xsp_sources *s, uint64_t hash);
/* So many addresses found no time. */
size_t xsp_sources_missed(const struct xsp_sources *s);
/* The first file whose debug information is too large to be read, or NULL; *others: how many more. */
const char *xsp_sources_too_large(const struct xsp_sources *s, size_t *others);

#endif
