/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits of CPU time, by trees of files as cgroup-v1's cpu controller (sched-bwc.rst) and cgroup-v2.rst describe them. */
#include <criterion/criterion.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "procfs/cgroup.h"

static char root[] = "/tmp/xsptrace-cgroup-XXXXXX";

static void put(const char *folder, const char *name, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "%s%s", root, folder);
	for (char *c = path + sizeof(root); *c != '\0'; c++)
		if (*c == '/') {
			*c = '\0';
			mkdir(path, 0755);
			*c = '/';
		}
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s%s/%s", root, folder, name);
	FILE *f = fopen(path, "w");
	cr_assert_not_null(f);
	fputs(text, f);
	fclose(f);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st;
	(void)type;
	(void)walk;
	return remove(path);
}

static void make(void)
{
	cr_assert_not_null(mkdtemp(root));
}

static void clean(void)
{
	nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static double limit(const char *list)
{
	struct xsp_cgroup g;

	xsp_cgroup_parse(list, root, &g);
	return g.cpus;
}

/* A container of one and a half CPUs, in which a group has no limit of its own. */
Test(cgroup, version_2, .init = make, .fini = clean)
{
	struct xsp_cgroup g;
	uint64_t periods, stopped;

	put("/kubepods/pod1", "cpu.max", "150000 100000\n");
	put("/kubepods/pod1", "cpu.stat",
	    "usage_usec 5\nnr_periods 40\nnr_throttled 30\nthrottled_usec 7\n");
	put("/kubepods/pod1/app", "cpu.max", "max 100000\n");
	put("/kubepods/wide", "cpu.max", "800000 100000\n");
	xsp_cgroup_parse("0::/kubepods/pod1/app\n", root, &g);
	cr_expect_eq(g.cpus, 1.5);
	cr_expect_eq(xsp_cgroup_periods(&g, &periods, &stopped), 0);
	cr_expect_eq(periods, 40);
	cr_expect_eq(stopped, 30);
	cr_expect_eq(limit("0::/kubepods/wide\n"), 8);
	cr_expect_eq(limit("0::/kubepods\n"), 0);
	cr_expect_eq(limit("0::/\n"), 0);
}

/* The smallest limit counts, wherever it is. */
Test(cgroup, limits_inside_each_other, .init = make, .fini = clean)
{
	put("/a", "cpu.max", "50000 100000\n");
	put("/a/b", "cpu.max", "400000 100000\n");
	put("/c", "cpu.max", "400000 100000\n");
	put("/c/d", "cpu.max", "20000 100000\n");
	cr_expect_eq(limit("0::/a/b\n"), 0.5);
	cr_expect_eq(limit("0::/c/d\n"), 0.2);
}

Test(cgroup, version_1, .init = make, .fini = clean)
{
	put("/cpu,cpuacct/docker/x", "cpu.cfs_quota_us", "20000\n");
	put("/cpu,cpuacct/docker/x", "cpu.cfs_period_us", "100000\n");
	put("/cpu,cpuacct/docker/y", "cpu.cfs_quota_us", "-1\n");
	put("/cpu,cpuacct/docker/y", "cpu.cfs_period_us", "100000\n");
	put("/cpu/z", "cpu.cfs_quota_us", "300000\n");
	put("/cpu/z", "cpu.cfs_period_us", "100000\n");
	cr_expect_eq(limit("9:pids:/docker/x\n4:cpu,cpuacct:/docker/x\n1:name=systemd:/\n"), 0.2);
	cr_expect_eq(limit("4:cpu,cpuacct:/docker/y\n"), 0);
	cr_expect_eq(limit("4:cpu:/z\n"), 3);
	cr_expect_eq(limit("4:cpuset:/docker/x\n"), 0);
}

Test(cgroup, lists_that_say_nothing, .init = make, .fini = clean)
{
	static const char *const lists[] = {
		"", "0::", "0", "::", "0::relative\n", "0::/../../x\n", "4:cpu:\n", "\n\n"};
	struct xsp_cgroup none = {.folder = "/nowhere"};
	uint64_t periods, stopped;

	put("/x", "cpu.max", "nonsense\n");
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		cr_expect_eq(limit(lists[i]), 0, "%s", lists[i]);
	cr_expect_eq(limit("0::/x\n"), 0);
	cr_expect_eq(xsp_cgroup_periods(&none, &periods, &stopped), -ENOENT);
}
