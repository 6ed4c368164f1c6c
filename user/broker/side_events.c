/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/side_events.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/rows/grow.h"
#include "broker/kernel/kernel.h"

#define CPUS_MAX 8192

static int open_event(int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.sample_id_all = 1,
		.mmap = 1, /* only executable mappings; mmap_data would add the others */
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = UINT32_MAX, /* nobody waits for it */
		.exclude_kernel = 1,
	};

	return xsp_perf_event_open(&attr, -1, cpu);
}

/* Opens an event for each CPU of a list like "0-3,7". */
static int open_all(const char *list, int **fds, size_t *count)
{
	size_t room = 0;

	while (*list >= '0' && *list <= '9') {
		char *end;
		long first = strtol(list, &end, 10), last = first;
		if (*end == '-')
			last = strtol(end + 1, &end, 10);
		for (long cpu = first; cpu <= last && cpu < CPUS_MAX; cpu++) {
			int fd = open_event((int)cpu);
			if (fd == -ENODEV) /* the CPU has gone offline since */
				continue;
			if (fd < 0)
				return fd;
			if (XSP_APPEND(*fds, room, *count, fd) < 0) {
				close(fd);
				return -ENOMEM;
			}
		}
		list = end + (*end == ',');
	}
	return *count > 0 ? 0 : -ENODEV;
}

int xsp_side_events_open(int **fds, size_t *count)
{
	char list[4096] = "";

	*fds = NULL;
	*count = 0;
	FILE *f = fopen("/sys/devices/system/cpu/online", "re");
	if (f == NULL || fgets(list, sizeof(list), f) == NULL)
		snprintf(list, sizeof(list), "0-%ld", sysconf(_SC_NPROCESSORS_ONLN) - 1);
	if (f != NULL)
		fclose(f);
	int rc = open_all(list, fds, count);
	for (size_t i = 0; rc < 0 && i < *count; i++)
		close((*fds)[i]);
	if (rc < 0) {
		free(*fds);
		*fds = NULL;
		*count = 0;
	}
	return rc;
}
