/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session.h - how a command that looks at targets gives up its rights. It forks the broker, which
 * keeps them. Then it becomes the user's process, without capabilities, and can open files only
 * where it is to write.
 */
#ifndef XSP_CLI_SESSION_H
#define XSP_CLI_SESSION_H

#include "attach/broker.h"
#include "cli/options/options.h"

/* The user for whom the command runs: --user, else who called sudo, else who we are. */
struct xsp_user {
	uid_t uid;
	gid_t gid;
};
struct xsp_user xsp_session_user(const struct xsp_options *o);

struct xsp_session {
	const struct xsp_options *options;
	const struct xsp_attach_options *attach;
	const pid_t *pids; /* the processes that it may look at */
	size_t pid_count;
	const char *agent; /* the library that --inject loads; NULL: none */
	bool stop_threads; /* may stop threads for a moment each, to look at them */
	const char *const *outputs; /* the files to write: their folders stay open */
	size_t output_count;
	const char *work; /* one more folder that stays open; NULL: none */
};

/* Call it before anything of a target is read. 0 or a negative errno. */
int xsp_session_start(const struct xsp_session *s, struct xsp_broker **out, struct xsp_error *err);

#endif
