/* SPDX-License-Identifier: BSD-2-Clause */
/* live_view.h - a recording that is looked at while it goes on, and leaves no file. */
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
	/* It has begun. What is handed over stays the recording's, and as long as that */
	int (*begin)(void *ctx, const struct xsp_options *o, const struct xsp_recording *what,
		     struct xsp_recorder *r, struct xsp_error *err);
	int (*turn)(void *ctx, struct xsp_error *err); /* often; 1: enough has been seen */
	/* It is complete. `gone`: because its processes are. Also when one of the others has failed */
	int (*end)(void *ctx, bool gone, struct xsp_error *err);
	void (*note)(void *ctx, const char *text); /* something worth a line; from the start on */
};

/* The verb `record`, with this instead of its outputs; NULL: with them. Returns the exit status. */
int xsp_record_live(int argc, char **argv, const struct xsp_live_view *view);

#endif
