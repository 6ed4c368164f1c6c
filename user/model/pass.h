/* SPDX-License-Identifier: BSD-2-Clause */
/* pass.h - one pass over a capture: a timeline, cut as asked, and its listeners. */
#ifndef XSP_MODEL_PASS_H
#define XSP_MODEL_PASS_H

#include "timeline/timeline.h"

struct xsp_sinks {
	struct xsp_timeline_sink *list;
	size_t count, capacity;
};
/* 0 or -ENOMEM. */
int xsp_sinks_add(struct xsp_sinks *sinks, struct xsp_timeline_sink sink);

/* Hooks return 0, or a negative errno and *err; -ENOMEM alone is enough. Each may be NULL. All of them may use the
 * timeline. */
struct xsp_pass_listener {
	void *ctx;
	/* Before the run: adds its sinks. */
	int (*begin)(void *ctx, struct xsp_capture_reader *r, struct xsp_timeline *t,
		     struct xsp_sinks *sinks, struct xsp_error *err);
	/* After a run without error. The last to begin ends first. */
	int (*end)(void *ctx, struct xsp_timeline *t, struct xsp_error *err);
	/* Always the last call, if begin() was called. */
	void (*clear)(void *ctx);
};

struct xsp_pass {
	struct xsp_capture_reader *reader;
	const struct xsp_cut *cut; /* NULL: all of it */
	const char *step; /* what marks a step (timeline/steps.h); NULL: the known names */
	const struct xsp_pass_listener *listeners;
	size_t count;
};

/* Does not read the events if nobody adds a sink. 0, or a negative errno and *err. */
int xsp_pass_run(const struct xsp_pass *pass, struct xsp_error *err);

#endif
