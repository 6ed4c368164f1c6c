/* SPDX-License-Identifier: BSD-2-Clause */
#include "procfs/maps.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/rows/search.h"
#include "procfs/procfs.h"

int xsp_maps_read(const struct xsp_opener *o, pid_t pid, bool restored, struct xsp_maps *out)
{
	struct xsp_map_line before = {0};
	char *text = NULL;
	int rc = xsp_procfs_read(o, pid, "maps", XSP_MAPS_MAX, &text, NULL);

	out->count = 0;
	const char *at = text;
	for (struct xsp_map_line line; rc == 0 && xsp_map_line_next(&at, &line); before = line) {
		if (restored)
			xsp_map_line_restore(&before, &line, at);
		struct xsp_map m = {.start = line.start,
				    .end = line.end,
				    .offset = line.offset,
				    .dev = line.dev,
				    .inode = line.inode,
				    .writable = line.writable,
				    .executable = line.executable};
		if (line.inode == 0)
			snprintf(m.name, sizeof(m.name), "%.*s", (int)line.path_length, line.path);
		rc = XSP_PUT(out, m);
	}
	free(text);
	return rc;
}

const struct xsp_map *xsp_maps_find(const struct xsp_maps *m, uint64_t address)
{
	size_t low = 0;

	XSP_LOWER_BOUND(low, m->count, i, m->rows[i].end <= address);
	return low < m->count && m->rows[low].start <= address ? &m->rows[low] : NULL;
}
