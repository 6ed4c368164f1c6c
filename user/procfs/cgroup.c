/* SPDX-License-Identifier: BSD-2-Clause */
#include "procfs/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "procfs/procfs.h"

#define LIST_MAX 65536
#define FILE_MAX 4096

static int read_file(const char *folder, const char *name, char text[FILE_MAX])
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	const ssize_t n = read(fd, text, FILE_MAX - 1);
	const int rc = n < 0 ? -errno : 0;
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return rc;
}

/* 0: the group has no limit. */
static double limit_of(const char *folder)
{
	char text[FILE_MAX];
	double quota = 0, period = 0;

	if (read_file(folder, "cpu.max", text) == 0) /* "max 100000" */
		return sscanf(text, "%lf %lf", &quota, &period) == 2 && period > 0 ? quota / period
										   : 0;
	if (read_file(folder, "cpu.cfs_quota_us", text) == 0)
		quota = strtod(text, NULL);
	if (read_file(folder, "cpu.cfs_period_us", text) == 0)
		period = strtod(text, NULL);
	return quota > 0 && period > 0 ? quota / period : 0;
}

/* Looks at the group and at all above it. */
static void look_up(const char *root, const char *hierarchy, const char *group,
		    struct xsp_cgroup *out)
{
	char folder[PATH_MAX];
	const int n = snprintf(folder, sizeof(folder), "%s%s%s", root, hierarchy, group);
	char *const top = folder + strlen(root);

	if (n < 0 || (size_t)n >= sizeof(folder))
		return;
	for (char *end = folder + n; end != NULL && end > top; end = strrchr(top, '/')) {
		*end = '\0';
		const double cpus = limit_of(folder);
		if (cpus > 0 && (out->cpus == 0 || cpus < out->cpus)) {
			out->cpus = cpus;
			memcpy(out->folder, folder, sizeof(folder));
		}
	}
}

/* "4:cpu,cpuacct" of "4:cpu,cpuacct:/group" */
static bool is_of_cpu(const char *controllers, size_t length)
{
	const char *at = controllers, *const end = controllers + length;

	while (at < end) {
		const char *comma = memchr(at, ',', (size_t)(end - at));
		const size_t n = (size_t)((comma != NULL ? comma : end) - at);
		if (n == 3 && memcmp(at, "cpu", 3) == 0)
			return true;
		at += n + 1;
	}
	return false;
}

/* "0::/group" (version 2) or "4:cpu,cpuacct:/group" */
static void parse_line(char *line, const char *root, struct xsp_cgroup *out)
{
	char *controllers = strchr(line, ':'), *group;
	char hierarchy[256];

	if (controllers == NULL || (group = strchr(++controllers, ':')) == NULL)
		return;
	const size_t length = (size_t)(group++ - controllers);
	if (group[0] != '/' || strstr(group, "/..") != NULL) /* outside of what we see */
		return;
	if (length == 0) {
		look_up(root, "", group, out);
		look_up(root, "/unified", group, out);
	} else if (length < sizeof(hierarchy) - 1 && is_of_cpu(controllers, length)) {
		snprintf(hierarchy, sizeof(hierarchy), "/%.*s", (int)length, controllers);
		look_up(root, hierarchy, group, out);
		if (length != 3)
			look_up(root, "/cpu", group, out);
	}
}

void xsp_cgroup_parse(const char *list, const char *root, struct xsp_cgroup *out)
{
	char *copy = strdup(list), *rest;

	*out = (struct xsp_cgroup){.cpus = 0};
	for (char *line = copy != NULL ? strtok_r(copy, "\n", &rest) : NULL; line != NULL;
	     line = strtok_r(NULL, "\n", &rest))
		parse_line(line, root, out);
	free(copy);
}

void xsp_cgroup_of(pid_t pid, struct xsp_u64map *seen, struct xsp_cgroup *out)
{
	char *list = NULL;
	size_t length = 0;

	*out = (struct xsp_cgroup){.cpus = 0};
	if (xsp_procfs_read(&xsp_open_directly, pid, "cgroup", LIST_MAX, &list, &length) == 0) {
		const uint64_t hash = xsp_text_hash(list, length);
		if (xsp_u64map_get(seen, hash) == NULL)
			xsp_cgroup_parse(list, XSP_CGROUPS, out);
		xsp_u64map_set(seen, hash, 1);
	}
	free(list);
}

int xsp_cgroup_periods(const struct xsp_cgroup *g, uint64_t *periods, uint64_t *throttled)
{
	char text[FILE_MAX], *line, *rest;
	int rc = read_file(g->folder, "cpu.stat", text);

	*periods = *throttled = 0;
	for (line = rc == 0 ? strtok_r(text, "\n", &rest) : NULL; line != NULL;
	     line = strtok_r(NULL, "\n", &rest))
		if (sscanf(line, "nr_periods %" SCNu64, periods) != 1)
			sscanf(line, "nr_throttled %" SCNu64, throttled);
	return rc;
}
