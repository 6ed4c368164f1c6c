/* SPDX-License-Identifier: BSD-2-Clause */
/* match.h - which watch a process meets. It reads /proc, and takes what is there for text. */
#ifndef XSP_SERVICE_MATCH_H
#define XSP_SERVICE_MATCH_H

#include "service/config.h"

/* The index of the first watch that the process meets, or -1. `uid`: its real user. */
int xsp_match(const struct xsp_service_config *c, pid_t pid, uid_t uid);
/* Is that a control group's path, or a whole part of one, that the pattern matches? `list`: the text of a "cgroup" file. */
bool xsp_match_cgroup(const char *pattern, const char *list);
/* Does a maps file's text name a file whose base name the pattern matches? */
bool xsp_match_maps(const char *pattern, int maps);

#endif
