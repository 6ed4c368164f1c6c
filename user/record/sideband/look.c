/* SPDX-License-Identifier: BSD-2-Clause */
/* look.c - what /proc shows of a process, and what of it is new. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rows/grow.h"
#include "procfs/map_line.h"
#include "procfs/procfs.h"
#include "record/sideband/sideband_private.h"

#define MAPS_MAX (64U << 20)
#define CHILDREN_MAX 65536U

void xsp_sideband_forget_look(struct xsp_watch *w)
{
	free(w->maps);
	free(w->children);
	*w = (struct xsp_watch){.pid = w->pid};
}

static bool had_map(const struct xsp_watch *w, const struct xsp_seen_map *map)
{
	for (size_t i = 0; w != NULL && i < w->map_count; i++) {
		if (memcmp(&w->maps[i], map, sizeof(*map)) == 0)
			return true;
	}
	return false;
}

int xsp_sideband_deliver(struct xsp_look *l, struct xsp_sideband_record *r)
{
	if (l->before == NULL)
		return 0;
	r->time_ns = l->time_ns;
	if (r->pid == 0)
		r->pid = r->tid = l->now.pid;
	l->delivered++;
	l->stopped = l->record(l->ctx, r);
	return l->stopped;
}

static int look_at_exe(struct xsp_look *l)
{
	struct stat st;

	int fd = l->opener->file(l->opener, l->now.pid, "exe");
	if (fd < 0)
		return fd;
	int failed = fstat(fd, &st) < 0 ? -errno : 0;
	close(fd);
	if (failed < 0)
		return failed;
	l->now.exe_dev = st.st_dev;
	l->now.exe_inode = st.st_ino;
	l->is_exec = l->before != NULL &&
		     (st.st_dev != l->before->exe_dev || st.st_ino != l->before->exe_inode);
	struct xsp_sideband_record r = {.kind = XSP_SIDEBAND_EXEC};
	return l->is_exec ? xsp_sideband_deliver(l, &r) : 0;
}

static int look_at_map(struct xsp_look *l, const struct xsp_map_line *line)
{
	struct xsp_seen_map map = {
		.start = line->start,
		.length = line->end - line->start,
		.offset = line->offset,
		.dev = line->dev,
		.inode = line->inode,
	};

	if (XSP_APPEND(l->now.maps, l->now.map_room, l->now.map_count, map) < 0)
		return -ENOMEM;
	if (!l->is_exec && had_map(l->before, &map))
		return 0;
	struct xsp_sideband_record r = {.kind = XSP_SIDEBAND_MMAP};
	return xsp_sideband_deliver(l, &r);
}

static int look_at_maps(struct xsp_look *l)
{
	char *text;
	int ret = xsp_procfs_read(l->opener, l->now.pid, "maps", MAPS_MAX, &text, NULL);

	if (ret < 0)
		return ret;
	for (const char *p = text; ret == 0 && *p != '\0';) {
		struct xsp_map_line line;
		if (xsp_map_line_parse(p, &line) && line.executable && line.inode != 0 &&
		    line.path_length > 0 && line.path[0] == '/')
			ret = look_at_map(l, &line);
		p += strcspn(p, "\n");
		p += *p == '\n';
	}
	free(text);
	return ret;
}

static bool had_child(const struct xsp_watch *w, pid_t pid)
{
	for (size_t i = 0; w != NULL && i < w->child_count; i++) {
		if (w->children[i] == pid)
			return true;
	}
	return false;
}

static int look_at_children_of(struct xsp_look *l, pid_t tid)
{
	char name[64], *text;

	snprintf(name, sizeof(name), "task/%d/children", tid);
	if (xsp_procfs_read(l->opener, l->now.pid, name, CHILDREN_MAX, &text, NULL) < 0)
		return 0; /* the thread ended, or a kernel without CONFIG_PROC_CHILDREN */
	int ret = 0;
	for (char *p = text, *end; ret == 0; p = end) {
		pid_t child = (pid_t)strtol(p, &end, 10);
		if (end == p)
			break;
		ret = XSP_APPEND(l->now.children, l->now.child_room, l->now.child_count, child);
		struct xsp_sideband_record r = {
			.kind = XSP_SIDEBAND_FORK,
			.pid = child,
			.tid = child,
			.parent_pid = l->now.pid,
		};
		if (ret == 0 && !had_child(l->before, child))
			ret = xsp_sideband_deliver(l, &r);
	}
	free(text);
	return ret;
}

static int look_at_children(struct xsp_look *l)
{
	pid_t *tids;
	size_t count;
	int ret = xsp_procfs_threads(l->opener, l->now.pid, &tids, &count);

	for (size_t i = 0; i < count && ret == 0; i++)
		ret = look_at_children_of(l, tids[i]);
	free(tids);
	return ret;
}

int xsp_sideband_look(struct xsp_look *l)
{
	struct xsp_stat st;
	int ret = xsp_procfs_stat(l->opener, l->now.pid, &st);

	if (ret == 0 && (st.state == 'Z' || st.state == 'X'))
		ret = -ESRCH;
	if (ret == 0)
		ret = look_at_exe(l);
	if (ret == 0)
		ret = look_at_maps(l);
	return ret == 0 ? look_at_children(l) : ret;
}

int xsp_sideband_baseline(const struct xsp_sideband *s, struct xsp_watch *w)
{
	struct xsp_look l = {.opener = s->options.opener, .now = {.pid = w->pid}};
	int ret = xsp_sideband_look(&l);

	if (ret < 0)
		xsp_sideband_forget_look(&l.now);
	*w = l.now;
	return ret;
}
