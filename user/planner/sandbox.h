/* SPDX-License-Identifier: BSD-2-Clause */
/* sandbox.h - gives up rights before bytes of a target are read. None can be taken back. */
#ifndef XSP_PLANNER_SANDBOX_H
#define XSP_PLANNER_SANDBOX_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Becomes the user, with the groups that /etc/group gives him (needs CAP_SETUID). Does nothing if we are that user. 0
 * or a negative errno. */
int xsp_sandbox_user(uid_t uid, gid_t gid);

/* Gives up all capabilities and all ways to get some, such as exec. No other process of the user may look into this one
 * or steer it. 0 or a negative errno. */
int xsp_sandbox_powerless(void);

/* Only files below these folders can be opened from now on (Linux 5.13; before, and without landlock, this does
 * nothing). Passes over folders that cannot be opened. 0 or a negative errno. */
int xsp_sandbox_folders(const char *const *folders, size_t count);

/* Allows only what computing takes: memory, and reading and writing open descriptors; other calls fail with EPERM. At
 * most `memory` bytes more than now, at most `seconds` of CPU time. 0 or a negative errno. */
int xsp_sandbox_compute_only(uint64_t memory, unsigned seconds);

#endif
