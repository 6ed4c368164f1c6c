/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/calls/sync_work.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "base/rows/search.h"

#define SYNCS 8192U /* the latest calls, which are compared with new activities */
#define SYNCS_LOOKED_AT 16 /* per activity: calls of several threads overlap */
#define CHUNK 64U /* activities that are passed over together */
#define CHUNKS                                                                                     \
	1024U /* the latest ones: records of a long call's work may arrive well before it ends */
#define MAX_WAITED 65536U

/* A call that waited for the GPU. */
struct sync_call {
	uint64_t start_ns, end_ns;
	uint32_t pid, site;
};

/* An activity. */
struct ran {
	uint64_t start_ns, end_ns;
	const char *name;
	uint32_t pid;
};

struct ran_chunk {
	uint64_t start_ns, end_ns; /* of all its activities */
	struct ran ran[CHUNK];
};

void xsp_sync_work_begin(struct xsp_sync_work *w)
{
	*w = (struct xsp_sync_work){.waited.tally.most = MAX_WAITED};
}

void xsp_sync_work_free(struct xsp_sync_work *w)
{
	xsp_tally_free(&w->waited);
	free(w->syncs);
	free(w->chunks);
}

static size_t first_that_ends_after(const struct xsp_sync_work *w, uint64_t ns)
{
	size_t low = 0;

	XSP_LOWER_BOUND(low, w->sync_count, i, w->syncs[i].end_ns <= ns);
	return low;
}

static int add_overlap(struct xsp_sync_work *w, const struct sync_call *y, const struct ran *a)
{
	const uint64_t from = y->start_ns > a->start_ns ? y->start_ns : a->start_ns;
	const uint64_t to = y->end_ns < a->end_ns ? y->end_ns : a->end_ns;

	if (y->pid != a->pid || from >= to)
		return 0;
	struct xsp_sync_waited *waited =
		xsp_tally_row(&w->waited, xsp_u64_mix((uintptr_t)a->name) ^ y->site,
			      &(struct xsp_sync_waited){y->site, a->name, 0});
	if (waited == NULL)
		return w->waited.tally.error;
	waited->ns += to - from;
	return 0;
}

static void hold_ran(struct xsp_sync_work *w, const struct ran *a)
{
	struct ran_chunk *c = &w->chunks[w->ran_count / CHUNK % CHUNKS];
	const size_t at = w->ran_count++ % CHUNK;

	if (at == 0) {
		if (c->end_ns > w->ran_gone_ns) /* 0: the chunk was empty */
			w->ran_gone_ns = c->end_ns;
		c->start_ns = UINT64_MAX;
		c->end_ns = 0;
	}
	c->ran[at] = *a;
	c->start_ns = a->start_ns < c->start_ns ? a->start_ns : c->start_ns;
	c->end_ns = a->end_ns > c->end_ns ? a->end_ns : c->end_ns;
}

static int add_ran(struct xsp_sync_work *w, const struct xsp_gpu_activity *activity,
		   const char *name)
{
	const struct ran a = {activity->start_ns, activity->end_ns, name, activity->pid};
	size_t i = first_that_ends_after(w, a.start_ns), n = 0;
	int rc = 0;

	if (w->chunks == NULL) {
		w->chunks = calloc(CHUNKS, sizeof(*w->chunks));
		if (w->chunks == NULL)
			return -ENOMEM;
	}
	for (; i < w->sync_count && n < SYNCS_LOOKED_AT && rc == 0; i++, n++)
		rc = add_overlap(w, &w->syncs[i], &a);
	w->not_compared += a.start_ns < w->syncs_gone_ns ||
			   (i < w->sync_count && w->syncs[i].start_ns < a.end_ns);
	hold_ran(w, &a);
	return rc;
}

int xsp_sync_work_activity(struct xsp_sync_work *w, const struct xsp_gpu_activity *a)
{
	switch (a->kind) {
	case XSP_GPU_IS_KERNEL:
		return add_ran(w, a, a->name);
	case XSP_GPU_IS_MEMCPY:
		return add_ran(w, a, "copies");
	case XSP_GPU_IS_MEMSET:
		return add_ran(w, a, "sets of memory");
	default:
		return 0;
	}
}

/* Adds the known work of the GPU. Later activities are added as they arrive. */
static int add_what_ran(struct xsp_sync_work *w, const struct sync_call *y)
{
	const uint64_t held = CHUNK * CHUNKS;
	int rc = 0;

	w->not_compared += y->start_ns < w->ran_gone_ns;
	for (uint64_t i = 0; i < w->ran_count && i < held && rc == 0; i += CHUNK) {
		const struct ran_chunk *c = &w->chunks[i / CHUNK];
		if (c->end_ns <= y->start_ns || c->start_ns >= y->end_ns)
			continue;
		const uint64_t last = w->ran_count - 1;
		const bool filling = last / CHUNK % CHUNKS == i / CHUNK;
		for (size_t k = 0; k < (filling ? last % CHUNK + 1 : CHUNK) && rc == 0; k++)
			rc = add_overlap(w, y, &c->ran[k]);
	}
	return rc;
}

int xsp_sync_work_call(struct xsp_sync_work *w, const struct xsp_span *span, uint32_t site)
{
	const struct sync_call sync = {span->start_ns, span->end_ns, span->pid, site};

	if (w->sync_count == 2 * SYNCS) {
		w->syncs_gone_ns = w->syncs[SYNCS - 1].end_ns;
		memmove(w->syncs, w->syncs + SYNCS, SYNCS * sizeof(*w->syncs));
		w->sync_count = SYNCS;
	}
	if (xsp_grow(&w->syncs, &w->sync_capacity, w->sync_count + 1) < 0)
		return -ENOMEM;
	size_t at = w->sync_count++;
	for (; at > 0 && w->syncs[at - 1].end_ns > sync.end_ns; at--)
		w->syncs[at] = w->syncs[at - 1];
	w->syncs[at] = sync;
	return add_what_ran(w, &sync);
}
