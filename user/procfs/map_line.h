/* SPDX-License-Identifier: BSD-2-Clause */
/* map_line.h - one line of /proc/PID/maps. */
#ifndef XSP_PROCFS_MAP_LINE_H
#define XSP_PROCFS_MAP_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/u64map.h"

/* vm.max_map_count is 65530 by default; a line is at most about 4.2 KiB. */
#define XSP_MAPS_MAX (256U << 20)

struct xsp_map_line {
	uint64_t start, end, offset, dev, inode; /* dev as makedev(3) packs it */
	bool writable, executable;
	const char *path; /* into the line, not terminated; " (deleted)" is still there */
	size_t path_length;
};

/* Parses the line at `text` (up to the newline or the end). False if it is malformed. Layout:
 * proc_pid_maps(5); numbers are hexadecimal but for the inode. */
bool xsp_map_line_parse(const char *text, struct xsp_map_line *out);
/* The next well-formed line from *at on, which then points past it. False: there is none. */
bool xsp_map_line_next(const char **at, struct xsp_map_line *out);

/* Where a file's place in an xsp_u64map is; if another one has it, the next one behind it (whoever serves a file system
 * chooses inodes). */
static inline uint64_t xsp_file_key(uint64_t dev, uint64_t inode)
{
	return xsp_u64_mix(inode ^ xsp_u64_mix(dev));
}

#endif
