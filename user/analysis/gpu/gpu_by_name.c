/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/gpu/gpu_by_name.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/rows/grow.h"
#include "base/saturate.h"
#include "base/text.h"
#include "base/rows/tally.h"
#include "catalog/gpu/kernels.h"
#include "catalog/gpu/occupancy.h"
#include "timeline/gpu_category.h"

struct xsp_gpu_by_name {
	/* Keys: the address of a kernel's name; the hash of other names. */
	XSP_TALLY(struct xsp_gpu_name_use) uses;
	struct xsp_arena texts;
	struct xsp_gpu_launch_use *launches; /* XSP_GPU_LAUNCH_KINDS for each device */
	size_t launch_capacity;
};

int xsp_gpu_by_name_new(struct xsp_gpu_by_name **out)
{
	*out = calloc(1, sizeof(**out));
	return *out != NULL ? 0 : -ENOMEM;
}

void xsp_gpu_by_name_free(struct xsp_gpu_by_name *n)
{
	if (n == NULL)
		return;
	for (size_t i = 0; i < n->uses.count; i++)
		xsp_histogram_clear(&n->uses.rows[i].durations);
	for (size_t i = 0; i < n->launch_capacity; i++)
		xsp_histogram_clear(&n->launches[i].delays);
	xsp_tally_free(&n->uses);
	free(n->launches);
	xsp_arena_free(&n->texts);
	free(n);
}

/* ---- by name ---- */

/* Returns NULL if out of memory. */
static struct xsp_gpu_name_use *use_of(struct xsp_gpu_by_name *n, const struct xsp_gpu_activity *a)
{
	char buffer[XSP_GPU_NAME_SIZE];
	const char *name = xsp_gpu_activity_name(a, buffer);
	const bool kernel = a->kind == XSP_GPU_IS_KERNEL;
	const uint64_t key =
		kernel ? (uintptr_t)name : xsp_text_hash(name, strlen(name)) | 1ULL << 63;
	struct xsp_gpu_name_use *known = xsp_tally_find(&n->uses, key);

	if (known != NULL)
		return known;
	struct xsp_gpu_name_use first = {.kind = a->kind, .name = name};
	if (name == buffer)
		first.name = xsp_arena_copy(&n->texts, buffer, strlen(buffer));
	if (a->kind == XSP_GPU_IS_MEMCPY || a->kind == XSP_GPU_IS_MEMSET)
		first.class = XSP_GPU_FOR_MEMORY;
	else if (kernel && xsp_kernel_communicates(name))
		first.class = XSP_GPU_FOR_COMMUNICATION;
	return first.name != NULL ? xsp_tally_row(&n->uses, key, &first) : NULL;
}

static int add_duration(struct xsp_gpu_name_use *u, uint64_t ns)
{
	u->least_ns = u->whole == 0 || ns < u->least_ns ? ns : u->least_ns;
	u->most_ns = ns > u->most_ns ? ns : u->most_ns;
	u->whole++;
	xsp_add_saturated(&u->whole_ns, ns);
	u->squares += (double)ns * (double)ns;
	return xsp_histogram_add(&u->durations, ns);
}

static void add_occupancy(struct xsp_gpu_name_use *u, const struct xsp_gpu_activity *a)
{
	const struct xsp_gpu_kernel *k = a->record;
	struct xsp_occupancy o;

	if (a->on == NULL || k == NULL || a->on->device.multiprocessors == 0 ||
	    !xsp_occupancy(&a->on->device, k, &o))
		return;
	u->occupied++;
	u->occupancy += xsp_occupancy_share(&a->on->device, k, &o);
	u->limit = o.factors;
}

static void add_bytes(struct xsp_gpu_name_use *u, const struct xsp_gpu_activity *a)
{
	const struct xsp_gpu_memcpy *c = a->record;
	const struct xsp_gpu_memset *m = a->record;
	const bool copy = a->kind == XSP_GPU_IS_MEMCPY;
	const uint64_t ns = a->end_ns - a->start_ns;

	if (a->record == NULL)
		return;
	const uint64_t bytes = copy ? c->bytes : m->bytes;
	u->asynchronous += ((copy ? c->flags : m->flags) & 1) != 0;
	xsp_add_saturated(&u->bytes, bytes);
	xsp_add_saturated(&u->whole_bytes, a->cut ? 0 : bytes);
	if (ns == 0 || a->cut)
		return;
	const double bandwidth = (double)bytes * 1e9 / (double)ns;
	u->bandwidth += bandwidth;
	u->least_bandwidth =
		u->timed == 0 || bandwidth < u->least_bandwidth ? bandwidth : u->least_bandwidth;
	u->most_bandwidth = bandwidth > u->most_bandwidth ? bandwidth : u->most_bandwidth;
	u->timed++;
}

/* Durations can be compared only if the launch is known, comes first, and both lie within the
 * range. */
static bool is_whole_launch(const struct xsp_gpu_activity *a)
{
	return a->arrow != 0 && !a->cut && !a->call_cut && a->start_ns >= a->call_ns &&
	       xsp_gpu_is_launched(a);
}

int xsp_gpu_by_name_add(struct xsp_gpu_by_name *n, const struct xsp_gpu_activity *a,
			uint32_t *index)
{
	const uint64_t ns = a->end_ns - a->start_ns;
	struct xsp_gpu_name_use *u = use_of(n, a);
	int rc = 0;

	if (u == NULL)
		return -ENOMEM;
	*index = xsp_tally_index(&n->uses, u);
	u->count++;
	xsp_add_saturated(&u->total_ns, ns);
	if (!a->cut)
		rc = add_duration(u, ns);
	if (a->kind == XSP_GPU_IS_KERNEL)
		add_occupancy(u, a);
	else if (u->class == XSP_GPU_FOR_MEMORY)
		add_bytes(u, a);
	if (is_whole_launch(a)) {
		u->launched++;
		u->shorter += ns < a->call_end_ns - a->call_ns;
	}
	return rc;
}

/* ---- launches ---- */

bool xsp_gpu_is_launched(const struct xsp_gpu_activity *a)
{
	const struct xsp_gpu_kernel *k = a->record;
	const struct xsp_gpu_memcpy *c = a->record;
	const struct xsp_gpu_memset *m = a->record;

	if (a->record == NULL)
		return a->kind == XSP_GPU_IS_KERNEL;
	switch (a->kind) {
	case XSP_GPU_IS_KERNEL:
		return k->graph == 0;
	case XSP_GPU_IS_MEMCPY:
		return c->graph == 0 && (c->flags & 1) != 0;
	case XSP_GPU_IS_MEMSET:
		return m->graph == 0 && (m->flags & 1) != 0;
	default:
		return false;
	}
}

int xsp_gpu_by_name_launch(struct xsp_gpu_by_name *n, const struct xsp_gpu_activity *a,
			   uint32_t device)
{
	const size_t at = (size_t)device * XSP_GPU_LAUNCH_KINDS + a->kind;
	const uint64_t call = a->call_end_ns - a->call_ns;
	const uint64_t delay = a->start_ns > a->call_end_ns ? a->start_ns - a->call_end_ns : 0;

	if (!is_whole_launch(a))
		return 0;
	if (xsp_grow_zeroed(&n->launches, &n->launch_capacity, at + 1) < 0)
		return -ENOMEM;
	struct xsp_gpu_launch_use *l = &n->launches[at];
	l->count++;
	xsp_add_saturated(&l->call_ns, call);
	l->most_call_ns = call > l->most_call_ns ? call : l->most_call_ns;
	l->long_calls += call > XSP_GPU_LONG_CALL_NS;
	xsp_add_saturated(&l->delay_ns, delay);
	l->most_delay_ns = delay > l->most_delay_ns ? delay : l->most_delay_ns;
	l->long_delays += delay > XSP_GPU_LONG_DELAY_NS;
	l->shorter += a->end_ns - a->start_ns < call;
	return xsp_histogram_add(&l->delays, delay);
}

/* ---- results ---- */

XSP_TALLY_ROWS(xsp_gpu_by_name_uses, xsp_gpu_by_name, xsp_gpu_name_use, uses);

const struct xsp_gpu_launch_use *xsp_gpu_by_name_launches(const struct xsp_gpu_by_name *n,
							  uint32_t device, enum xsp_gpu_kind kind)
{
	const size_t at = (size_t)device * XSP_GPU_LAUNCH_KINDS + kind;

	return at < n->launch_capacity && n->launches[at].count > 0 ? &n->launches[at] : NULL;
}
