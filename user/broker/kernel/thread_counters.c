/* SPDX-License-Identifier: BSD-2-Clause */
/* thread_counters.c - the perf events of --counters: a set for each thread. */
#include "broker/kernel/attach_private.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* At most so many threads have events at a time; the map keeps a descriptor for each event. */
#define THREADS_MAX 4096U

size_t xsp_attach_counter_threads(const struct xsp_attach_options *o)
{
	return xsp_counter_events(o->counters, o->counter_count) > 0 ? THREADS_MAX : 0;
}

static uint32_t free_slot(const struct xsp_attach *a)
{
	for (uint32_t i = 0; i < THREADS_MAX; i++)
		if (a->counter_tids[i] == 0)
			return i;
	return THREADS_MAX;
}

static void drop_events(const struct xsp_attach *a, uint32_t first, size_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t key = first + i;
		bpf_map_delete_elem(bpf_map__fd(a->bpf->maps.xsp_counter_events), &key);
	}
}

/* The map keeps the event, so its descriptor can be closed. */
static int put_event(const struct xsp_attach *a, const struct xsp_counter *c, pid_t tid,
		     uint32_t key)
{
	int fd = xsp_counter_open(c, tid);

	if (fd < 0)
		return fd;
	int rc = xsp_map_put(a->bpf->maps.xsp_counter_events, &key, &fd);
	close(fd);
	return rc;
}

int xsp_attach_thread(struct xsp_attach *a, pid_t tid)
{
	uint32_t slot, key = (uint32_t)tid, first;
	size_t events = xsp_counter_events(a->counters, a->counter_count), n = 0;

	if (events == 0)
		return 0;
	if (a->counter_tids == NULL)
		a->counter_tids = calloc(THREADS_MAX, sizeof(*a->counter_tids));
	if (a->counter_tids == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < THREADS_MAX; i++)
		if (a->counter_tids[i] == tid)
			return 0;
	slot = free_slot(a);
	if (slot == THREADS_MAX)
		return -E2BIG;
	first = slot * (uint32_t)events;
	for (size_t i = 0; i < a->counter_count; i++) {
		if (a->counters[i].kind != XSP_COUNTER_PERF)
			continue;
		int rc = put_event(a, &a->counters[i], tid, first + (uint32_t)n++);
		if (rc < 0) {
			drop_events(a, first, n);
			return rc;
		}
	}
	int rc = xsp_map_put(a->bpf->maps.xsp_counter_slots, &key, &first);
	if (rc < 0)
		drop_events(a, first, events);
	else
		a->counter_tids[slot] = tid;
	return rc;
}

void xsp_attach_forget_counters(struct xsp_attach *a, pid_t tid)
{
	uint32_t key = (uint32_t)tid;
	size_t events = xsp_counter_events(a->counters, a->counter_count);

	for (uint32_t i = 0; a->counter_tids != NULL && i < THREADS_MAX; i++) {
		if (a->counter_tids[i] != tid)
			continue;
		bpf_map_delete_elem(bpf_map__fd(a->bpf->maps.xsp_counter_slots), &key);
		drop_events(a, i * (uint32_t)events, events);
		a->counter_tids[i] = 0;
	}
}
