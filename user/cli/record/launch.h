/* SPDX-License-Identifier: BSD-2-Clause */
/* launch.h - `xsptrace -- COMMAND`: a program started stopped, probes in place before it runs. */
#ifndef XSP_CLI_LAUNCH_H
#define XSP_CLI_LAUNCH_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "procfs/opener.h"

struct xsp_launch;

/*
 * Starts the command and stops it at its exec, before its first instruction, as the user `uid`
 * with the user's groups. Not found: XSP_STATUS_NOT_FOUND; not executable: XSP_STATUS_CANNOT_RUN.
 */
int xsp_launch_start(char *const argv[], uid_t uid, gid_t gid, struct xsp_launch **out,
		     struct xsp_error *err);
pid_t xsp_launch_pid(const struct xsp_launch *l);

/*
 * Runs it on to the next moment at which the loader has mapped libraries (the breakpoint
 * function that ld.so keeps for debuggers), and stops it there: call, attach, call again.
 * Returns 1 when stopped so, 0 when the program now runs freely (no loader, loading is over, or
 * it has ended), negative errno on failure (the program runs freely then too).
 */
int xsp_launch_next(struct xsp_launch *l, const struct xsp_opener *o);
/* After SIGSTOP at a later exec of its: takes it over from that stop (which is to be ended by SIGCONT, now
 * without effect), for xsp_launch_next() again. 0 or a negative errno. */
int xsp_launch_again(struct xsp_launch *l);
/* Lets go of it. */
void xsp_launch_release(struct xsp_launch *l);

/* If it has ended: true, and *status as from waitpid(). Does not block. */
bool xsp_launch_ended(struct xsp_launch *l, int *status);
/* Sends a signal to it. */
void xsp_launch_signal(struct xsp_launch *l, int signal);
/* Kills a program that is not beyond its loader yet, and no other. */
void xsp_launch_free(struct xsp_launch *l);
bool xsp_launch_has_run(const struct xsp_launch *l);

/* The exit status that xsptrace passes on: 128 + signal for a killed one, as the shell. */
int xsp_launch_exit_status(int wait_status);

#endif
