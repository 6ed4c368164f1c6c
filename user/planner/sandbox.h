/* SPDX-License-Identifier: BSD-2-Clause */
/* sandbox.h - giving up rights before bytes of a target are read. None of it can be taken back. */
#ifndef XSP_PLANNER_SANDBOX_H
#define XSP_PLANNER_SANDBOX_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* This process becomes the user's, with the groups that /etc/group gives it (needs CAP_SETUID); does
 * nothing if it is already. 0 or a negative errno. */
int xsp_sandbox_user(uid_t uid, gid_t gid);

/* No capabilities, none to be had by exec or otherwise, and nobody of the same user may look into this
 * process or steer it. 0 or a negative errno. */
int xsp_sandbox_powerless(void);

/* Files can be opened below these folders only (Linux 5.13; before, and without landlock, this does
 * nothing). Those that cannot be opened are left out. 0 or a negative errno. */
int xsp_sandbox_folders(const char *const *folders, size_t count);

/* Only what computing takes: memory, reading and writing descriptors that are there. Everything else
 * fails with EPERM. At most `memory` bytes more than now, at most `seconds` of CPU time. 0 or a negative
 * errno. */
int xsp_sandbox_compute_only(uint64_t memory, unsigned seconds);

#endif
