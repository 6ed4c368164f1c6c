/* SPDX-License-Identifier: BSD-2-Clause */
/* expression.h - when a flight recorder writes a snapshot by itself: --trigger. */
#ifndef XSP_TRIGGER_EXPRESSION_H
#define XSP_TRIGGER_EXPRESSION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum xsp_trigger_kind {
	XSP_TRIGGER_SPAN, /* NAME>50ms: a call takes longer */
	XSP_TRIGGER_RATE, /* NAME/s>100: more calls in a second */
	XSP_TRIGGER_STEP, /* step>200ms */
	XSP_TRIGGER_SLOW_STEP, /* step>1.5x: the thread's running median */
	XSP_TRIGGER_WAIT, /* wait:lock>1s */
	XSP_TRIGGER_RSS, /* rss>20G: all processes together */
	XSP_TRIGGER_GROWTH, /* rss+100M/min */
	XSP_TRIGGER_GPU_IDLE, /* gpu-idle>2s: after it has done something */
	XSP_TRIGGER_LOST, /* lost>0: events */
	XSP_TRIGGER_EXIT, /* exit!=0 */
	XSP_TRIGGER_KINDS,
};

struct xsp_trigger {
	enum xsp_trigger_kind kind;
	const char *text; /* as it was given; the caller's */
	char *name; /* of spans: a glob; malloc'd, or NULL */
	unsigned wait; /* enum xsp_wait_class */
	double most; /* ns, calls a second, a factor, bytes, or events */
	double per_ns; /* bytes in so long */
};

/* 0, or a negative errno and one line, with XSP_STATUS_TRIGGER. xsp_trigger_clear() in either case. */
int xsp_trigger_parse(const char *text, struct xsp_trigger *out, struct xsp_error *err);
void xsp_trigger_clear(struct xsp_trigger *t);
/* Is any of the triggers of these kinds? `kinds`: bit n for enum xsp_trigger_kind n. */
bool xsp_trigger_any(const struct xsp_trigger *triggers, size_t count, unsigned kinds);
/* A word for the name of its snapshots: "span", "step", "rss". */
const char *xsp_trigger_word(const struct xsp_trigger *t);

#endif
