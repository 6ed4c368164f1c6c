/* SPDX-License-Identifier: BSD-2-Clause */
/* live_view.h - shows a recording while it runs; it leaves no file. */
#ifndef XSP_CLI_LIVE_VIEW_H
#define XSP_CLI_LIVE_VIEW_H

#include <stdbool.h>

#include "attach/broker.h"
#include "base/error.h"
#include "cli/options/options.h"
#include "record/recorder.h"

/* Each returns 0 or a negative errno with *err filled. */
struct xsp_live_view {
	void *ctx;
	/* The options are read, and we still have all rights. May be NULL */
	void (*prepare)(void *ctx, const struct xsp_options *o);
	/* The recording has begun. It owns what it hands over, until it ends */
	int (*begin)(void *ctx, const struct xsp_options *o, const struct xsp_recording *what,
		     struct xsp_recorder *r, struct xsp_error *err);
	/* called often; 1: the user has seen enough */
	int (*turn)(void *ctx, struct xsp_error *err);
	/* The recording is complete; `gone`: its processes have ended. Called after an error of the
	 * others, too */
	int (*end)(void *ctx, bool gone, struct xsp_error *err);
	void (*note)(void *ctx, const char *text); /* shows a line; may come before begin() */
};

/* Runs the verb `record` with this view instead of outputs; NULL: with outputs. Returns the exit
 * status. */
int xsp_record_live(int argc, char **argv, const struct xsp_live_view *view);

#endif
