/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session.h - how a command that looks at targets gives up its rights: the broker is forked, with them;
 * this process becomes the user's, with no capabilities, and can open files only where it is to write.
 */
#ifndef XSP_CLI_SESSION_H
#define XSP_CLI_SESSION_H

#include "attach/broker.h"
#include "cli/options/options.h"

/* Who the command runs for: --user, else the user behind sudo, else who we are. */
struct xsp_user {
	uid_t uid;
	gid_t gid;
};
struct xsp_user xsp_session_user(const struct xsp_options *o);

struct xsp_session {
	const struct xsp_options *options;
	const struct xsp_attach_options *attach;
	const pid_t *pids; /* what may be looked at */
	size_t pid_count;
	const char *agent; /* the library that --inject loads; NULL: none */
	bool stop_threads; /* for a moment each, to be looked at */
	const char *const *outputs; /* files that will be written: their folders stay open */
	size_t output_count;
	const char *work; /* a folder more that stays open; NULL: none */
};

/* Nothing of a target may have been read before. 0 or a negative errno. */
int xsp_session_start(const struct xsp_session *s, struct xsp_broker **out, struct xsp_error *err);

#endif
