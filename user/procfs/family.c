/* SPDX-License-Identifier: BSD-2-Clause */
#include "procfs/family.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#include "base/rows/grow.h"
#include "procfs/procfs.h"

int xsp_each_process(int (*on_process)(void *ctx, pid_t pid), void *ctx)
{
	DIR *dir = opendir("/proc");
	int rc = 0;

	if (dir == NULL)
		return -errno;
	for (struct dirent *e; rc == 0 && (e = readdir(dir)) != NULL;) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);
		if (pid > 0)
			rc = on_process(ctx, pid);
	}
	closedir(dir);
	return rc;
}

struct descendants {
	struct xsp_descendant *rows;
	size_t count, room;
};

static int keep(struct descendants *l, struct xsp_descendant one)
{
	return XSP_APPEND(l->rows, l->room, l->count, one);
}

static int add_parent(void *ctx, pid_t pid)
{
	struct xsp_stat st;

	if (xsp_procfs_stat(&xsp_open_directly, pid, &st) < 0)
		return 0; /* it has ended */
	return keep(ctx, (struct xsp_descendant){pid, st.parent});
}

int xsp_process_descendants(pid_t pid, struct xsp_descendant **out, size_t *count)
{
	struct descendants all = {0}, found = {0};
	int rc = xsp_each_process(add_parent, &all);

	/* first the children of `pid`, then those of each process found */
	for (size_t next = 0; rc == 0 && next <= found.count; next++) {
		pid_t parent = next == 0 ? pid : found.rows[next - 1].pid;
		for (size_t i = 0; i < all.count && rc == 0; i++)
			if (all.rows[i].parent == parent)
				rc = keep(&found, all.rows[i]);
	}
	free(all.rows);
	if (rc < 0) {
		free(found.rows);
		return rc;
	}
	*out = found.rows;
	*count = found.count;
	return 0;
}
