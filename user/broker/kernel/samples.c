/* SPDX-License-Identifier: BSD-2-Clause */
/* samples.c - --sample: one event on each CPU runs our program so many times a second (bpf/sample.bpf.c). The kernel
 * takes the events out with their descriptors. */
#include "broker/kernel/attach_private.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <unistd.h>

/* Neither counts the idle loop: the clock is asked not to, cycles stop there. */
static int open_event(int cpu, bool cycles, uint32_t hz)
{
	struct perf_event_attr attr = {
		.type = cycles ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE,
		.config = cycles ? PERF_COUNT_HW_CPU_CYCLES : PERF_COUNT_SW_CPU_CLOCK,
		.freq = 1,
		.sample_freq = hz,
		.exclude_idle = 1,
		.exclude_hv = cycles,
	};

	return xsp_perf_event_open(&attr, -1, cpu);
}

bool xsp_samples_count_cycles(void)
{
	int fd = open_event(0, true, 1);

	xsp_close(fd);
	return fd >= 0;
}

static int open_one(struct xsp_attach *a, int cpu)
{
	int fd = open_event(cpu, a->sample_cycles, a->sample_hz);

	if (fd < 0)
		return fd == -ENODEV ? 0 : fd; /* that CPU is offline */
	struct bpf_link *link = bpf_program__attach_perf_event(a->bpf->progs.xsp_sample, fd);
	if (link == NULL) {
		int rc = -errno;
		close(fd);
		return rc;
	}
	a->sample_links[a->sample_count++] = link; /* it owns the event */
	return 0;
}

int xsp_samples_open(struct xsp_attach *a)
{
	int rc = 0;

	if (a->sample_hz == 0)
		return 0;
	a->sample_links = calloc((size_t)a->cpus, sizeof(struct bpf_link *));
	if (a->sample_links == NULL)
		return -ENOMEM;
	for (int cpu = 0; cpu < a->cpus && rc == 0; cpu++)
		rc = open_one(a, cpu);
	return rc;
}

void xsp_samples_close(struct xsp_attach *a)
{
	for (size_t i = 0; i < a->sample_count; i++)
		bpf_link__destroy(a->sample_links[i]);
	a->sample_count = 0;
	free(a->sample_links);
	a->sample_links = NULL;
}

void xsp_attach_samples(struct xsp_attach *a, bool on)
{
	if (a->sample_hz > 0)
		__atomic_store_n(&a->bpf->bss->xsp_sampling, on, __ATOMIC_RELEASE);
}
