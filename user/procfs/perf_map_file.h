/* SPDX-License-Identifier: BSD-2-Clause */
/* perf_map_file.h - where a compiler in a process says what it calls its code: the file, which is only opened here. */
#ifndef XSP_PROCFS_PERF_MAP_FILE_H
#define XSP_PROCFS_PERF_MAP_FILE_H

#include <sys/types.h>

/*
 * With this process's rights: the map, or the dump, of a process where that sees it, under the number that it has for
 * itself. A regular file of the process's effective user, last written since the process began, no link, not of FUSE,
 * where reading could take for ever. A descriptor or -errno; -ENOENT: it has none.
 */
int xsp_perf_map_open(pid_t pid);

#endif
