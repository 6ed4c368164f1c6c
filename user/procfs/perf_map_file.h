/* SPDX-License-Identifier: BSD-2-Clause */
/* perf_map_file.h - opens the file in which a compiler inside a process names its code. */
#ifndef XSP_PROCFS_PERF_MAP_FILE_H
#define XSP_PROCFS_PERF_MAP_FILE_H

#include <sys/types.h>

/*
 * Opens the perf map or jit dump of a process, with the rights of this process. It is looked up
 * where the process sees it, under the number by which the process knows itself. It must be a
 * regular file of the process's effective user, written since the process began, and no link. It
 * must not be on FUSE, where reading could take for ever. A descriptor or -errno; -ENOENT: there is
 * none.
 */
int xsp_perf_map_open(pid_t pid);

#endif
