/* SPDX-License-Identifier: BSD-2-Clause */
/* sideband_poll.c - the same news from /proc, for kernels that refuse perf events. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/maps.h"
#include "base/clock.h"
#include "target/procfs.h"
#include "record/sideband_private.h"

#define POLL_NS 100000000U
#define MAPS_MAX (64U << 20)
#define CHILDREN_MAX 65536U

void xsp_sideband_poll_clear(struct xsp_watch *w)
{
	free(w->maps);
	free(w->children);
	*w = (struct xsp_watch){.pid = w->pid};
}

/* Appends to an array that grows at powers of two; NULL: no memory (the array stays). */
static void *append(void **array, size_t *count, size_t size)
{
	if ((*count & (*count - 1)) == 0) {
		void *grown = reallocarray(*array, *count == 0 ? 1 : *count * 2, size);
		if (grown == NULL)
			return NULL;
		*array = grown;
	}
	return (char *)*array + size * (*count)++;
}

static bool had_map(const struct xsp_watch *w, const struct xsp_seen_map *map)
{
	for (size_t i = 0; w != NULL && i < w->map_count; i++) {
		if (memcmp(&w->maps[i], map, sizeof(*map)) == 0)
			return true;
	}
	return false;
}

/* What one look at a process needs to tell its news. */
struct look {
	const struct xsp_opener *opener;
	const struct xsp_watch *before; /* NULL: a baseline, nothing is told */
	struct xsp_watch now;
	bool is_exec;
	uint64_t time_ns;
	xsp_sideband_callback record;
	void *ctx;
	long delivered;
	int stopped; /* what the callback returned, if not 0 */
};

static int tell(struct look *l, struct xsp_sideband_record *r)
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

static int look_at_exe(struct look *l)
{
	struct stat st;
	char *comm;

	int fd = l->opener->file(l->opener, l->now.pid, "exe");
	if (fd < 0)
		return fd;
	int failed = fstat(fd, &st) < 0 ? -errno : 0;
	close(fd);
	if (failed < 0)
		return failed;
	l->now.exe_dev = st.st_dev;
	l->now.exe_inode = st.st_ino;
	int ret = xsp_procfs_read(l->opener, l->now.pid, "comm", 64, &comm, NULL);
	if (ret < 0)
		return ret;
	comm[strcspn(comm, "\n")] = '\0';
	snprintf(l->now.comm, sizeof(l->now.comm), "%.15s", comm);
	free(comm);
	if (l->before == NULL)
		return 0;
	l->is_exec = st.st_dev != l->before->exe_dev || st.st_ino != l->before->exe_inode;
	if (!l->is_exec && strcmp(l->now.comm, l->before->comm) == 0)
		return 0;
	struct xsp_sideband_record r = {
		.kind = l->is_exec ? XSP_SIDEBAND_EXEC : XSP_SIDEBAND_RENAME,
		.text = l->now.comm,
	};
	return tell(l, &r);
}

static int look_at_map(struct look *l, const struct xsp_map_line *line)
{
	struct xsp_seen_map map = {
		.start = line->start,
		.length = line->end - line->start,
		.offset = line->offset,
		.dev = line->dev,
		.inode = line->inode,
	};
	struct xsp_seen_map *slot =
		append((void **)&l->now.maps, &l->now.map_count, sizeof(*l->now.maps));

	if (slot == NULL)
		return -ENOMEM;
	*slot = map;
	if (!l->is_exec && had_map(l->before, &map))
		return 0;
	char *path = strndup(line->path, line->path_length);
	if (path == NULL)
		return -ENOMEM;
	struct xsp_sideband_record r = {
		.kind = XSP_SIDEBAND_MMAP,
		.start = map.start,
		.length = map.length,
		.offset = map.offset,
		.dev = map.dev,
		.inode = map.inode,
		.text = path,
	};
	int ret = tell(l, &r);
	free(path);
	return ret;
}

static int look_at_maps(struct look *l)
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

static int look_at_children_of(struct look *l, pid_t tid)
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
		pid_t *slot = append((void **)&l->now.children, &l->now.child_count, sizeof(*slot));
		if (slot == NULL) {
			ret = -ENOMEM;
			break;
		}
		*slot = child;
		struct xsp_sideband_record r = {
			.kind = XSP_SIDEBAND_FORK,
			.pid = child,
			.tid = child,
			.parent_pid = l->now.pid,
			.parent_tid = tid,
		};
		if (!had_child(l->before, child))
			ret = tell(l, &r);
	}
	free(text);
	return ret;
}

static int look_at_children(struct look *l)
{
	int ret = 0;

	int fd = l->opener->file(l->opener, l->now.pid, "task");
	if (fd < 0)
		return fd;
	DIR *dir = fdopendir(fd);
	if (dir == NULL) {
		ret = -errno;
		close(fd);
		return ret;
	}
	for (struct dirent *e; ret == 0 && (e = readdir(dir)) != NULL;) {
		pid_t tid = (pid_t)strtol(e->d_name, NULL, 10);
		if (tid > 0)
			ret = look_at_children_of(l, tid);
	}
	closedir(dir);
	return ret;
}

static int look_at_all(struct look *l)
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

int xsp_sideband_poll_baseline(const struct xsp_sideband *s, struct xsp_watch *w)
{
	struct look l = {.opener = s->options.opener, .now = {.pid = w->pid}};
	int ret = look_at_all(&l);

	if (ret < 0)
		xsp_sideband_poll_clear(&l.now);
	*w = l.now;
	return ret;
}

/* One watched process. The callback may change the set, so only copies are held across it. */
static int poll_one(struct xsp_sideband *s, pid_t pid, struct look *l)
{
	struct xsp_watch *w = xsp_sideband_find(s, pid);

	if (w == NULL)
		return 0;
	struct xsp_watch before = *w; /* takes over the arrays */
	*w = (struct xsp_watch){.pid = pid};
	/* cppcheck-suppress autoVariables ; taken back below */
	l->before = &before;
	l->now = (struct xsp_watch){.pid = pid};
	l->is_exec = false;
	int ret = look_at_all(l);
	bool gone = l->stopped == 0 && (ret == -ESRCH || ret == -ENOENT);
	if (gone) {
		struct xsp_sideband_record r = {.kind = XSP_SIDEBAND_EXIT};
		ret = tell(l, &r);
		xsp_sideband_unwatch(s, pid);
	}
	/* children come into the set behind the report, with what they have mapped by then */
	for (size_t i = 0; ret == 0 && s->options.follow && i < l->now.child_count; i++)
		ret = xsp_sideband_watch(s, l->now.children[i]);
	w = xsp_sideband_find(s, pid);
	if (w != NULL && !gone) {
		xsp_sideband_poll_clear(w);
		*w = l->now;
	} else {
		xsp_sideband_poll_clear(&l->now);
	}
	xsp_sideband_poll_clear(&before);
	l->before = NULL;
	if (l->stopped == 0 && (ret == -EACCES || ret == -EPERM))
		ret = 0; /* a set-user-id program: keep looking */
	return ret;
}

long xsp_sideband_poll_drain(struct xsp_sideband *s, uint64_t until_ns,
			     xsp_sideband_callback record, void *ctx)
{
	struct look l = {
		.opener = s->options.opener, .time_ns = xsp_now_ns(), .record = record, .ctx = ctx};
	size_t count = s->watch_count;
	int ret = 0;

	if (count == 0 || (until_ns != XSP_SIDEBAND_ALL && l.time_ns < s->next_poll_ns))
		return 0;
	s->next_poll_ns = l.time_ns + POLL_NS;
	pid_t *pids = reallocarray(NULL, count, sizeof(*pids));
	if (pids == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		pids[i] = s->watches[i].pid;
	for (size_t i = 0; i < count && ret == 0; i++)
		ret = poll_one(s, pids[i], &l);
	free(pids);
	return ret < 0 ? ret : l.delivered;
}
