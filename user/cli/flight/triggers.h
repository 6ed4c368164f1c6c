/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * triggers.h - the flight recorder's triggers. A thread reads the recording as it grows, as `top` does, with a share of a
 * processor at most; what it cannot look at in that time it passes over, and says so.
 */
#ifndef XSP_CLI_TRIGGERS_H
#define XSP_CLI_TRIGGERS_H

#include "cli/options/options.h"
#include "cli/flight/supervised.h"
#include "record/recorder.h"

struct xsp_triggers;

/* *out: NULL: there are none, and no service wants figures. The recording has begun. 0 or a negative errno. */
int xsp_triggers_start(const struct xsp_options *o, struct xsp_recorder *r,
		       struct xsp_supervised *supervised, struct xsp_triggers **out,
		       struct xsp_error *err);
/* In each turn of the recorder, which began then. 1: the recording is to end; 0, or a negative errno. NULL: does nothing.
 * The same for the others. */
int xsp_triggers_turn(struct xsp_triggers *t, uint64_t turn_ns, struct xsp_error *err);
/* The recording ends. The reason of the last snapshot, if something fired that has none so far, or NULL. */
const char *xsp_triggers_end(struct xsp_triggers *t);
void xsp_triggers_free(struct xsp_triggers *t);
/* A snapshot was written: throws one away if these are too many. */
void xsp_triggers_written(struct xsp_triggers *t, const char *path, const char *reason);
/* "step>1.5x, rss>20G", or "". */
void xsp_triggers_describe(const struct xsp_options *o, char *text, size_t size);

#endif
