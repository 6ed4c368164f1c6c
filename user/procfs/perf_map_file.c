/* SPDX-License-Identifier: BSD-2-Clause */
#include "procfs/perf_map_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "procfs/map_line.h"
#include "procfs/procfs.h"

#define START_SLACK_S 2 /* how far the clock of files may lag */

/* When a process began, in seconds of CLOCK_REALTIME. */
static int began_at(const struct xsp_stat *stat, time_t *out)
{
	struct timespec real, boot;
	const long hz = sysconf(_SC_CLK_TCK);

	if (hz <= 0 || clock_gettime(CLOCK_REALTIME, &real) != 0 ||
	    clock_gettime(CLOCK_BOOTTIME, &boot) != 0)
		return -EINVAL;
	*out = real.tv_sec - boot.tv_sec + (time_t)(stat->start_ticks / (uint64_t)hz);
	return 0;
}

static int check_file(int look, uid_t uid, time_t began)
{
	struct stat st;
	struct statfs fs;

	if (fstat(look, &st) != 0 || fstatfs(look, &fs) != 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != uid || fs.f_type == FUSE_SUPER_MAGIC)
		return -EACCES;
	/* an earlier process with the same number wrote it */
	return st.st_mtime + START_SLACK_S < began ? -ESTALE : 0;
}

/* The process that must own the file. */
struct owner {
	pid_t pid;
	int number; /* the number by which the process knows itself */
	uid_t uid;
	time_t began;
};

/* Checks and opens the file of `look`, an O_PATH descriptor, and closes `look`. */
static int open_checked(int look, const struct owner *o)
{
	if (look < 0)
		return look;
	const int rc = check_file(look, o->uid, o->began);
	const int fd = rc < 0 ? rc : xsp_open_looked_at(look);
	close(look);
	return fd;
}

static int open_mapping(const struct owner *o, const struct xsp_map_line *map)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%.*s", (int)map->path_length, map->path);
	const struct xsp_mapping m = {.start = map->start, .end = map->end, .path = path};
	return open_checked(xsp_look_at_mapping(o->pid, &m, O_NOFOLLOW), o);
}

/* A process that writes a jit dump maps its first page as code, so that tools find it. */
static int open_dump(const struct owner *o)
{
	char *maps = NULL, name[32];
	struct xsp_map_line map;
	int rc = xsp_procfs_read(&xsp_open_directly, o->pid, "maps", XSP_MAPS_MAX, &maps, NULL);

	if (rc < 0)
		return rc;
	const size_t length = (size_t)snprintf(name, sizeof(name), "/jit-%d.dump", o->number);
	rc = -ENOENT;
	for (const char *line = maps; rc == -ENOENT && xsp_map_line_next(&line, &map);)
		if (map.executable && map.path_length > length &&
		    memcmp(map.path + map.path_length - length, name, length) == 0)
			rc = open_mapping(o, &map);
	free(maps);
	return rc;
}

int xsp_perf_map_open(pid_t pid)
{
	struct xsp_stat stat;
	struct owner o = {.pid = pid};
	char *status = NULL, path[48];
	unsigned uid = 0;
	int rc = xsp_procfs_read(&xsp_open_directly, pid, "status", 65536, &status, NULL);

	if (rc < 0)
		return rc;
	const char *ids = xsp_procfs_field(status, "Uid");
	if (ids == NULL || sscanf(ids, "%*u %u", &uid) != 1)
		rc = -EINVAL;
	o.uid = uid;
	o.number = (int)xsp_procfs_last_id(status, "NSpid", pid);
	free(status);
	if (rc == 0)
		rc = xsp_procfs_stat(&xsp_open_directly, pid, &stat);
	if (rc == 0)
		rc = began_at(&stat, &o.began);
	if (rc < 0)
		return rc;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", o.number);
	rc = open_checked(xsp_open_in_root(pid, path, O_NOFOLLOW), &o);
	return rc == -ENOENT ? open_dump(&o) : rc;
}
