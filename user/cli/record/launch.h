/* SPDX-License-Identifier: BSD-2-Clause */
/* launch.h - `xsptrace -- COMMAND`: starts a program stopped, so that probes are in place before it
 * runs. */
#ifndef XSP_CLI_LAUNCH_H
#define XSP_CLI_LAUNCH_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "procfs/opener.h"

struct xsp_launch;

/*
 * Starts the command as user `uid` with that user's groups, and stops it at its exec, before its
 * first instruction. Not found: XSP_STATUS_NOT_FOUND; not executable: XSP_STATUS_CANNOT_RUN.
 */
int xsp_launch_start(char *const argv[], uid_t uid, gid_t gid, struct xsp_launch **out,
		     struct xsp_error *err);
pid_t xsp_launch_pid(const struct xsp_launch *l);

/*
 * Runs the program until the loader has mapped libraries again (ld.so keeps a breakpoint function
 * for debuggers), and stops it there. Call this, attach, and call it again. 1: stopped so. 0: the
 * program now runs freely: it has no loader, loading is over, or it has ended. A negative errno on
 * failure: the program runs freely then, too.
 */
int xsp_launch_next(struct xsp_launch *l, const struct xsp_opener *o);
/* After a SIGSTOP at a later exec of the program: takes it over from that stop, for
 * xsp_launch_next() again. End the stop by SIGCONT, which has no effect on it now. 0 or a negative
 * errno. */
int xsp_launch_again(struct xsp_launch *l);
/* Stops tracing it: it runs on. */
void xsp_launch_release(struct xsp_launch *l);

/* Has it ended? Then *status is that of waitpid(). Does not block. */
bool xsp_launch_ended(struct xsp_launch *l, int *status);
void xsp_launch_signal(struct xsp_launch *l, int signal);
/* Kills the program if it is still in its loader, and never otherwise. */
void xsp_launch_free(struct xsp_launch *l);
bool xsp_launch_has_run(const struct xsp_launch *l);

/* The exit status that xsptrace passes on: 128 + signal for a killed program, as shells do. */
int xsp_launch_exit_status(int wait_status);

#endif
