/* SPDX-License-Identifier: BSD-2-Clause */
/* maps.h - all mappings of a process. */
#ifndef XSP_PROCFS_MAPS_H
#define XSP_PROCFS_MAPS_H

#include "base/rows/array.h"
#include "procfs/map_line.h"
#include "procfs/opener.h"

struct xsp_map {
	uint64_t start, end, offset, dev, inode;
	bool writable, executable;
	char name[24]; /* of memory without a file, as "[vdso]", maybe cut; else "" */
};

struct xsp_maps {
	struct xsp_map *rows; /* by address */
	size_t count, capacity;
};

/* Replaces what is there, also on failure. `restored`: each by xsp_map_line_restore(). 0 or a negative errno. */
int xsp_maps_read(const struct xsp_opener *o, pid_t pid, bool restored, struct xsp_maps *out);
/* NULL: there is none at this address. */
const struct xsp_map *xsp_maps_find(const struct xsp_maps *m, uint64_t address);

#endif
