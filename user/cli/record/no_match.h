/* SPDX-License-Identifier: BSD-2-Clause */
/* no_match.h - the error when there is nothing to trace: what was searched, and what to try. */
#ifndef XSP_CLI_NO_MATCH_H
#define XSP_CLI_NO_MATCH_H

#include "attach/plan.h"
#include "base/error.h"
#include "record/recording.h"

/* Fills err (XSP_STATUS_NO_MATCH, or XSP_STATUS_TARGET for a program without names) and returns
 * -ENOENT. It names the mapped files of process `pid`. `command` is how it was started, or NULL. */
int xsp_no_match(const struct xsp_recording *r, const struct xsp_plan *plan, struct xsp_broker *b,
		 pid_t pid, const char *command, struct xsp_error *err);

/* Says which patterns, and which providers that the user named (xsp_selection.providers), have
 * found nothing yet. Returns their number. */
size_t xsp_say_unmatched(const struct xsp_plan *plan, struct xsp_broker *b, uint64_t providers,
			 void (*say)(void *ctx, const char *text), void *ctx);

/* The base name of the program among the files that could be read; `otherwise` if it could not. */
const char *xsp_plan_program(const struct xsp_plan *plan, const char *otherwise);

#endif
