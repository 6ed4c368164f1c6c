/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * on_snapshot.h - runs the user's command for each snapshot. A recording gives up the right to open other files than its
 * own, so the command needs a process that was made before.
 */
#ifndef XSP_CLI_ON_SNAPSHOT_H
#define XSP_CLI_ON_SNAPSHOT_H

#include <sys/types.h>

/* Call it before any rights are given up. A descriptor, or a negative errno. It ends when all copies of that are closed. */
int xsp_on_snapshot_start(const char *command, uid_t uid, gid_t gid);
/* Has `command PATH` run, and does not wait for it. 0 or a negative errno. */
int xsp_on_snapshot_run(int descriptor, const char *path);

#endif
