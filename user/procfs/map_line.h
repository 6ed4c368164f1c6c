/* SPDX-License-Identifier: BSD-2-Clause */
/* map_line.h - one line of /proc/PID/maps. */
#ifndef XSP_PROCFS_MAP_LINE_H
#define XSP_PROCFS_MAP_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rows/u64map.h"

/* vm.max_map_count is 65530 by default; a line is at most about 4.2 KiB. */
#define XSP_MAPS_MAX (256U << 20)

struct xsp_map_line {
	uint64_t start, end, offset, dev, inode; /* dev as makedev(3) packs it */
	bool writable, executable, shared;
	const char *path; /* within the line, not terminated; " (deleted)" is still at its end */
	size_t path_length;
};

/* Parses the line at `text`, up to the newline or the end. False if it is malformed. The layout is
 * that of proc_pid_maps(5); all numbers but the inode are hexadecimal. */
bool xsp_map_line_parse(const char *text, struct xsp_map_line *out);
/* The next well-formed line from *at on, which then points past it. False: there is none. */
bool xsp_map_line_next(const char **at, struct xsp_map_line *out);

bool xsp_map_line_is_of_file(const struct xsp_map_line *line);
/* Is it an agent's memory (xsptrace/ring.h), shared and to be written? By its name, which anybody may have given it. */
bool xsp_map_line_is_of_rings(const struct xsp_map_line *line);
/* Programs move their code to large pages. Is the code at `line` in the middle of the file that is mapped before it?
 * Then *line becomes that of the part of the file that had this place. `rest`: the lines after it. */
bool xsp_map_line_restore(const struct xsp_map_line *before, struct xsp_map_line *line,
			  const char *rest);

/* The key of a file in an xsp_u64map. If another file has it (file systems in user space choose
 * their inodes), try the next key. */
static inline uint64_t xsp_file_key(uint64_t dev, uint64_t inode)
{
	return xsp_u64_mix(inode ^ xsp_u64_mix(dev));
}

#endif
