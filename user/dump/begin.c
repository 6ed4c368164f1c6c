/* SPDX-License-Identifier: BSD-2-Clause */
/* begin.c - takes what it needs of this machine before it reads a target. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "dump/dump.h"
#include "dump/look.h"

static bool find_vdso(unsigned long *start, unsigned long *end)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[4352];
	bool found = false;

	while (f != NULL && !found && fgets(line, sizeof(line), f) != NULL)
		found = strstr(line, "[vdso]") != NULL && sscanf(line, "%lx-%lx", start, end) == 2;
	if (f != NULL)
		fclose(f);
	return found;
}

int xsp_dump_vdso(void)
{
	unsigned long start, end;
	int fd = find_vdso(&start, &end) ? memfd_create("vdso", MFD_CLOEXEC) : -1;

	if (fd >= 0 && pwrite(fd, (const void *)start, end - start, 0) != (ssize_t)(end - start)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* When we got our CPU, by the scheduler's clock. */
static int64_t scheduled_ns(int file)
{
	char text[4096];
	ssize_t n = pread(file, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	return xsp_sched_start_ns(text);
}

int64_t *xsp_dump_lags(size_t *count)
{
	const long cpus = sysconf(_SC_NPROCESSORS_CONF);
	int64_t *lags = cpus > 0 ? calloc((size_t)cpus, sizeof(*lags)) : NULL;
	int file = open("/proc/self/sched", O_RDONLY | O_CLOEXEC);
	cpu_set_t before;

	*count = lags != NULL ? (size_t)cpus : 0;
	bool known = lags != NULL && sched_getaffinity(0, sizeof(before), &before) == 0;
	for (size_t i = 0; i < *count; i++) {
		cpu_set_t one;
		CPU_ZERO(&one);
		CPU_SET(i, &one);
		lags[i] = INT64_MIN;
		if (!known || file < 0 || i >= CPU_SETSIZE || !CPU_ISSET(i, &before) ||
		    sched_setaffinity(0, sizeof(one), &one) != 0)
			continue;
		sched_yield(); /* brings its clock up to date */
		int64_t at = scheduled_ns(file);
		if (at >= 0)
			lags[i] = (int64_t)xsp_now_ns() - at;
	}
	if (known)
		sched_setaffinity(0, sizeof(before), &before);
	xsp_close(file);
	return lags;
}
