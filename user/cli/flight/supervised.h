/* SPDX-License-Identifier: BSD-2-Clause */
/* supervised.h - a recording that `xsptrace service` has started: figures go there, and it says when to end. */
#ifndef XSP_CLI_SUPERVISED_H
#define XSP_CLI_SUPERVISED_H

#include <stdbool.h>

#include "cli/options/options.h"
#include "record/recorder.h"
#include "timeline/timeline.h"

struct xsp_supervised;

/* `socket`: service/figures.h says what is said over it. *out: NULL: 0 is none. 0 or a negative errno. NULL does nothing in
 * all others. */
int xsp_supervised_new(uint64_t socket, struct xsp_supervised **out);
void xsp_supervised_free(struct xsp_supervised *s);
/* Looks at what the service has said: is the recording to end? */
bool xsp_supervised_ends(struct xsp_supervised *s);
/* In each turn: sends figures when they are due, and asks for snapshots that the service wants. */
int xsp_supervised_turn(struct xsp_supervised *s, const struct xsp_options *o,
			struct xsp_recorder *r);
void xsp_supervised_written(struct xsp_supervised *s, const char *path, const char *why,
			    int status);

/* Of the thread that follows the recording: steps and values. False: nobody wants them. */
bool xsp_supervised_sink(struct xsp_supervised *s, struct xsp_timeline_sink *sink);
/* The timeline that calls come from; NULL: time has passed that it has not seen. */
void xsp_supervised_begin(struct xsp_supervised *s, const struct xsp_timeline *t);
void xsp_supervised_passed(struct xsp_supervised *s, uint64_t passed_ns);

#endif
