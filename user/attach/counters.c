/* SPDX-License-Identifier: BSD-2-Clause */
/* counters.c - what the programs counted, and what they still hold back. */
#include "attach/attach_private.h"

#include <errno.h>
#include <stdlib.h>

/* enum xsp_counter of bpf/common.h, in its order */
static uint64_t *counter_field(struct xsp_attach_counters *c, unsigned i)
{
	uint64_t *const fields[] = {&c->lost_entries, &c->lost_exits,	   &c->lost_other,
				    &c->lost_names,   &c->filtered,	   &c->silent_hits,
				    &c->untracked,    &c->lost_gpu_records};

	return i < sizeof(fields) / sizeof(fields[0]) ? fields[i] : NULL;
}

static int read_counters(const struct xsp_attach *a, struct xsp_attach_counters *out)
{
	uint64_t *values = calloc((size_t)a->cpus, sizeof(*values));

	if (values == NULL)
		return -ENOMEM;
	*out = (struct xsp_attach_counters){0};
	for (uint32_t i = 0; counter_field(out, i) != NULL; i++) {
		if (bpf_map_lookup_elem(bpf_map__fd(a->bpf->maps.xsp_counters), &i, values) != 0) {
			free(values);
			return -errno;
		}
		for (int cpu = 0; cpu < a->cpus; cpu++)
			*counter_field(out, i) += values[cpu];
	}
	free(values);
	return 0;
}

int xsp_attach_counters(const struct xsp_attach *a, struct xsp_attach_counters *out)
{
	struct xsp_attach_counters before = a->before;
	int rc = read_counters(a, out);

	for (unsigned i = 0; rc == 0 && counter_field(out, i) != NULL; i++)
		*counter_field(out, i) -= *counter_field(&before, i);
	return rc;
}

int xsp_attach_lost(const struct xsp_attach *a, uint32_t probe, uint64_t *entries, uint64_t *exits)
{
	int fd = bpf_map__fd(a->bpf->maps.xsp_lost);
	uint32_t key = probe * 2;

	if (bpf_map_lookup_elem(fd, &key, entries) != 0)
		return -errno;
	key++;
	return bpf_map_lookup_elem(fd, &key, exits) != 0 ? -errno : 0;
}

/* bpf/filter.h */
struct frame {
	uint64_t time_ns, sp;
	uint32_t probe, emitted;
};
struct thread_state {
	uint32_t depth, reserved;
	struct frame frames[64];
};

int xsp_attach_held_back(const struct xsp_attach *a, xsp_attach_held_fn fn, void *ctx)
{
	int fd = bpf_map__fd(a->bpf->maps.xsp_thread_states), rc = 0;
	uint32_t tid, *previous = NULL;
	struct thread_state state;

	if (!a->held_back)
		return 0;
	while (rc == 0 && bpf_map_get_next_key(fd, previous, &tid) == 0) {
		previous = &tid;
		if (bpf_map_lookup_elem(fd, &tid, &state) != 0)
			continue;
		for (uint32_t i = 0; rc == 0 && i < state.depth && i < 64; i++)
			if (!state.frames[i].emitted)
				rc = fn(ctx, state.frames[i].time_ns, state.frames[i].sp, tid,
					state.frames[i].probe);
	}
	return rc;
}

void xsp_attach_forget_thread(struct xsp_attach *a, pid_t tid)
{
	uint32_t key = (uint32_t)tid;

	bpf_map_delete_elem(bpf_map__fd(a->bpf->maps.xsp_thread_states), &key);
	xsp_attach_forget_counters(a, tid);
}
