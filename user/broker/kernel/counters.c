/* SPDX-License-Identifier: BSD-2-Clause */
/* counters.c - what the programs counted, and the entries that they hold back. */
#include "broker/kernel/attach_private.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

/* A field that has moved would be read as its neighbour. */
#define SAME_PLACE(field, count)                                                                   \
	_Static_assert(offsetof(struct xsp_attach_counters, field) == (count) * sizeof(uint64_t),  \
		       #field)
SAME_PLACE(lost_gpu_records, XSP_COUNT_LOST_GPU);
SAME_PLACE(objects_closed, XSP_COUNT_OBJECTS_CLOSED);
SAME_PLACE(missed, XSP_COUNT_MISSED);
SAME_PLACE(python_torn, XSP_COUNT_PYTHON_TORN);
SAME_PLACE(samples_ns, XSP_COUNT_SAMPLES_NS);
SAME_PLACE(heap_unseen, XSP_COUNT_HEAP_UNSEEN);

static uint64_t *counter_field(struct xsp_attach_counters *c, enum xsp_count i)
{
	_Static_assert(sizeof(*c) == XSP_COUNTS * sizeof(uint64_t), "every counter");

	return (uint64_t *)c + i;
}

/* How often the kernel skipped one of our programs because it was running on that CPU already (Linux 5.12). It never
 * skips those of uprobes (bpf_prog_run_array_uprobe() of Linux 6.0, uprobe_prog_run()). The one that watches mappings of
 * all processes writes no events. */
static uint64_t recursion_misses(const struct xsp_attach *a)
{
	struct bpf_program *p;
	uint64_t sum = 0;

	bpf_object__for_each_program(p, a->bpf->obj)
	{
		struct bpf_prog_info info = {0};
		uint32_t size = sizeof(info);
		if (p != a->bpf->progs.xsp_code_moves && bpf_program__fd(p) >= 0 &&
		    bpf_obj_get_info_by_fd(bpf_program__fd(p), &info, &size) == 0)
			sum += info.recursion_misses;
	}
	return sum;
}

/* The kernel does not count the ranges that it drops, so we count those that are left, if some may be missing. */
uint64_t xsp_attach_forgotten(const struct xsp_attach *a, const struct xsp_attach_counters *c)
{
	int fd = bpf_map__fd(a->bpf->maps.xsp_objects);
	uint64_t gone = c->objects_closed + a->objects_dropped, open, left = 0;
	unsigned char keys[2][64];
	_Static_assert(sizeof(keys[0]) >= 16, "struct object_key");

	if (c->objects_opened < gone || c->objects_opened < XSP_OBJECTS_MOST / 2)
		return 0;
	open = c->objects_opened - gone;
	while (left < open && bpf_map_get_next_key(fd, left > 0 ? keys[left & 1] : NULL,
						   keys[(left + 1) & 1]) == 0)
		left++;
	return open - left;
}

static int read_counters(const struct xsp_attach *a, struct xsp_attach_counters *out)
{
	uint64_t *values = calloc((size_t)a->cpus, sizeof(*values));

	if (values == NULL)
		return -ENOMEM;
	*out = (struct xsp_attach_counters){0};
	for (uint32_t i = 0; i < XSP_COUNTS; i++) {
		if (bpf_map_lookup_elem(bpf_map__fd(a->bpf->maps.xsp_counters), &i, values) != 0) {
			free(values);
			return -errno;
		}
		for (int cpu = 0; cpu < a->cpus; cpu++)
			*counter_field(out, i) += values[cpu];
	}
	free(values);
	out->missed += recursion_misses(a);
	return 0;
}

int xsp_attach_counters(const struct xsp_attach *a, struct xsp_attach_counters *out)
{
	struct xsp_attach_counters before = a->before;
	int rc = read_counters(a, out);

	for (unsigned i = 0; rc == 0 && i < XSP_COUNTS; i++)
		*counter_field(out, i) -= *counter_field(&before, i);
	return rc;
}

int xsp_attach_lost(const struct xsp_attach *a, uint32_t probe, uint64_t *entries, uint64_t *exits)
{
	int fd = bpf_map__fd(a->bpf->maps.xsp_lost);
	uint32_t key = XSP_LOST_KEY(probe, false);

	if (bpf_map_lookup_elem(fd, &key, entries) != 0)
		return -errno;
	key = XSP_LOST_KEY(probe, true);
	return bpf_map_lookup_elem(fd, &key, exits) != 0 ? -errno : 0;
}

int xsp_attach_held_back(const struct xsp_attach *a, FILE *out)
{
	int fd = bpf_map__fd(a->bpf->maps.xsp_thread_states), rc = 0;
	uint32_t tid, *previous = NULL;
	struct xsp_thread_state state;

	if (!a->held_back)
		return 0;
	if (a->bpf->bss->xsp_active)
		return -EBUSY;
	while (rc == 0 && bpf_map_get_next_key(fd, previous, &tid) == 0) {
		previous = &tid;
		if (bpf_map_lookup_elem(fd, &tid, &state) != 0)
			continue;
		for (uint32_t i = 0; rc == 0 && i < state.depth && i < XSP_FILTER_FRAMES; i++) {
			const struct xsp_frame *f = &state.frames[i];
			const struct xsp_held_back h = {.time_ns = f->time_ns,
							.sp = f->sp,
							.tid = tid,
							.tgid = state.tgid,
							.probe = f->probe};
			if (!f->emitted)
				rc = fwrite(&h, sizeof(h), 1, out) == 1 ? 0 : -EIO;
		}
	}
	return rc;
}

int xsp_attach_forget_thread(struct xsp_attach *a, pid_t tid)
{
	for (size_t i = 0; i < a->writer_count; i++) {
		uint64_t pointer = XSP_POINTER_KEY((uint32_t)tid, a->writers[i]);
		bpf_map_delete_elem(bpf_map__fd(a->bpf->maps.xsp_pointers), &pointer);
	}
	xsp_attach_forget_counters(a, tid);
	return 0;
}
