/* SPDX-License-Identifier: BSD-2-Clause */
#include "service/match.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "procfs/procfs.h"
#include "target/patterns/glob.h"

#define TEXT_MAX 65536
#define MAPS_MAX (16U << 20) /* bytes: more than a kernel's default number of mappings takes */

/* ---- texts ---- */

bool xsp_match_cgroup(const char *pattern, const char *list)
{
	char part[NAME_MAX + 1];

	for (const char *line = list, *next; *line != '\0'; line = next) {
		const size_t length = strcspn(line, "\n");
		const char *at = memchr(line, '/', length); /* "4:cpu,cpuacct:/group" */
		char path[PATH_MAX];

		next = line + length + (line[length] == '\n');
		if (at == NULL)
			continue;
		snprintf(path, sizeof(path), "%.*s", (int)(line + length - at), at);
		if (xsp_glob_match(pattern, path))
			return true;
		for (const char *p = path; *p != '\0'; p += strcspn(p, "/")) {
			p += strspn(p, "/");
			snprintf(part, sizeof(part), "%.*s", (int)strcspn(p, "/"), p);
			if (part[0] != '\0' && xsp_glob_match(pattern, part))
				return true;
		}
	}
	return false;
}

static bool match_line(const char *pattern, char *line)
{
	char *path = strchr(line, '/');

	if (path == NULL)
		return false;
	xsp_procfs_cut_deleted(path);
	return xsp_glob_match(pattern, xsp_base_name(path));
}

/* Piece by piece: the text may be as long as the process likes. */
bool xsp_match_maps(const char *pattern, int maps)
{
	char text[PATH_MAX + 256];
	size_t have = 0, all = 0;
	ssize_t n;

	while (all < MAPS_MAX && (n = read(maps, text + have, sizeof(text) - 1 - have)) > 0) {
		char *line = text, *end;

		have += (size_t)n;
		all += (size_t)n;
		text[have] = '\0';
		for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
			*end = '\0';
			if (match_line(pattern, line))
				return true;
		}
		have = strlen(line);
		if (have == sizeof(text) - 1) /* no path is so long */
			have = 0;
		memmove(text, line, have);
	}
	return false;
}

/* ---- a process ---- */

static bool match_file(const char *pattern, pid_t pid, const char *name,
		       bool (*matches)(const char *pattern, const char *text))
{
	char *text = NULL;

	if (pattern == NULL)
		return true;
	if (xsp_procfs_read(&xsp_open_directly, pid, name, TEXT_MAX, &text, NULL) < 0)
		return false;
	text[strcspn(text, strcmp(name, "comm") == 0 ? "\n" : "")] = '\0';
	const bool is = matches(pattern, text);
	free(text);
	return is;
}

static bool match_path(const char *pattern, pid_t pid)
{
	char *path = NULL;

	if (pattern == NULL)
		return true;
	if (xsp_procfs_link(&xsp_open_directly, pid, "exe", &path) < 0)
		return false;
	xsp_procfs_cut_deleted(path);
	const bool is = xsp_glob_match(pattern, path);
	free(path);
	return is;
}

static bool match_command(const char *pattern, pid_t pid)
{
	char *text = NULL;
	size_t length;

	if (pattern == NULL)
		return true;
	if (xsp_procfs_command(&xsp_open_directly, pid, TEXT_MAX, &text, &length) < 0)
		return false;
	const bool is = xsp_glob_match(pattern, text);
	free(text);
	return is;
}

static bool match_uses(const char *pattern, pid_t pid)
{
	if (pattern == NULL)
		return true;
	const int maps = xsp_open_directly.file(&xsp_open_directly, pid, "maps");
	const bool is = maps >= 0 && xsp_match_maps(pattern, maps);
	xsp_close(maps);
	return is;
}

/* What costs most comes last. */
static bool match(const struct xsp_watch_rule *w, pid_t pid, uid_t uid)
{
	return (w->user == NULL || w->uid == uid) &&
	       match_file(w->comm, pid, "comm", xsp_glob_match) && match_path(w->path, pid) &&
	       match_file(w->cgroup, pid, "cgroup", xsp_match_cgroup) &&
	       match_command(w->command, pid) && match_uses(w->uses, pid);
}

int xsp_match(const struct xsp_service_config *c, pid_t pid, uid_t uid)
{
	for (size_t i = 0; i < c->watch_count; i++)
		if (match(&c->watches[i], pid, uid))
			return (int)i;
	return -1;
}
