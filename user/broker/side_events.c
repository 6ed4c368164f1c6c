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

/* Samples a second: so many of all CPUs, within these limits for each. */
#define LOOK_ALL_HZ 8000
#define LOOK_LEAST_HZ 1000
#define LOOK_MOST_HZ 4000

unsigned xsp_side_look_hz(void)
{
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN), hz = LOOK_ALL_HZ / (cpus > 0 ? cpus : 1);

	return hz < LOOK_LEAST_HZ ? LOOK_LEAST_HZ : hz > LOOK_MOST_HZ ? LOOK_MOST_HZ : (unsigned)hz;
}

static int open_event(enum xsp_side_kind kind, int cpu)
{
	struct perf_event_attr attrs[] = {
		[XSP_SIDE_RECORDS] =
			{.config = PERF_COUNT_SW_DUMMY,
			 .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
			 .sample_id_all = 1,
			 .mmap = 1, /* only executable mappings; mmap_data would add the others */
			 .mmap2 = 1,
			 .comm = 1,
			 .comm_exec = 1,
			 .task = 1,
			 .use_clockid = 1,
			 .clockid = CLOCK_MONOTONIC,
			 .exclude_kernel = 1},
		[XSP_SIDE_LOOK] = {.config = PERF_COUNT_SW_CPU_CLOCK,
				   .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID,
				   .freq = 1,
				   .sample_freq = xsp_side_look_hz(),
				   .exclude_idle = 1,
				   .exclude_kernel = 1},
	};
	struct perf_event_attr *attr = &attrs[kind];

	attr->type = PERF_TYPE_SOFTWARE;
	attr->watermark = 1;
	attr->wakeup_watermark = UINT32_MAX; /* nobody waits for it */
	return xsp_perf_event_open(attr, -1, cpu);
}

/* Opens an event for each CPU of a list like "0-3,7". */
static int open_all(enum xsp_side_kind kind, const char *list, int **fds, size_t *count)
{
	size_t room = 0;

	while (*list >= '0' && *list <= '9') {
		char *end;
		long first = strtol(list, &end, 10), last = first;
		if (*end == '-')
			last = strtol(end + 1, &end, 10);
		for (long cpu = first; cpu <= last && cpu < CPUS_MAX; cpu++) {
			int fd = open_event(kind, (int)cpu);
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

int xsp_side_events_open(enum xsp_side_kind kind, int **fds, size_t *count)
{
	char list[4096] = "";

	*fds = NULL;
	*count = 0;
	FILE *f = fopen("/sys/devices/system/cpu/online", "re");
	if (f == NULL || fgets(list, sizeof(list), f) == NULL)
		snprintf(list, sizeof(list), "0-%ld", sysconf(_SC_NPROCESSORS_ONLN) - 1);
	if (f != NULL)
		fclose(f);
	int rc = open_all(kind, list, fds, count);
	for (size_t i = 0; rc < 0 && i < *count; i++)
		close((*fds)[i]);
	if (rc < 0) {
		free(*fds);
		*fds = NULL;
		*count = 0;
	}
	return rc;
}
