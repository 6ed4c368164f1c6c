/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memory.c - orders the allocations of all threads by time: each waits until nothing earlier can
 * come. If a CUDA runtime call encloses the driver call for the same address, both are one
 * allocation.
 */
#include "timeline/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "timeline/timeline_private.h"

/* Rings are written to the capture a second apart at most. */
#define ORDER_NS (2 * 1000000000ULL)
#define MAX_PENDING (1U << 20)
#define MAX_LIVE (1U << 22)
#define MAX_USES 65536U

struct pending {
	struct xsp_memory_event e;
	uint64_t order; /* order of arrival, among equal times */
};

struct live {
	uint64_t address, bytes;
	double blocks, variance;
	uint32_t use; /* index */
	uint32_t pid;
	uint32_t site;
	bool allocator;
};

/* A thread's last action. */
struct last {
	uint64_t address, time_ns;
	uint32_t device;
	bool free, any;
};

struct xsp_memory {
	struct xsp_timeline *t;
	struct pending *heap; /* the earliest first */
	size_t count, capacity;
	uint64_t order, now;
	XSP_TALLY(struct live) live;
	XSP_TALLY(struct xsp_memory_use) uses; /* by process, device and pool */
	XSP_TALLY(struct last) threads;
	size_t window; /* the first window that has not ended */
	uint64_t untracked; /* allocations of --memory for which there was no room */
};

/* ---- order: a heap ---- */

static bool before(const struct pending *a, const struct pending *b)
{
	return a->e.time_ns != b->e.time_ns ? a->e.time_ns < b->e.time_ns : a->order < b->order;
}

static void swap(struct pending *a, struct pending *b)
{
	struct pending c = *a;

	*a = *b;
	*b = c;
}

static int put(struct xsp_memory *m, const struct xsp_memory_event *e)
{
	if (xsp_grow(&m->heap, &m->capacity, m->count + 1) < 0)
		return -ENOMEM;
	size_t i = m->count++;
	m->heap[i] = (struct pending){*e, m->order++};
	while (i > 0 && before(&m->heap[i], &m->heap[(i - 1) / 2])) {
		swap(&m->heap[i], &m->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	return 0;
}

static struct xsp_memory_event pop_first(struct xsp_memory *m)
{
	struct xsp_memory_event e = m->heap[0].e;
	size_t i = 0;

	m->heap[0] = m->heap[--m->count];
	for (;;) {
		size_t least = i, child = 2 * i + 1;
		for (size_t k = child; k < child + 2 && k < m->count; k++)
			if (before(&m->heap[k], &m->heap[least]))
				least = k;
		if (least == i)
			return e;
		swap(&m->heap[i], &m->heap[least]);
		i = least;
	}
}

/* ---- what is in use ---- */

static bool of_allocator(const struct xsp_memory_event *e)
{
	return xsp_memory_is_allocator(e->pool);
}

/* 1: too many processes; this one is not followed. */
static int use_of(struct xsp_memory *m, const struct xsp_memory_event *e, uint32_t *out)
{
	const uint64_t key = xsp_u64_mix(xsp_u64_pair(e->pid, e->device)) +
			     ((uint64_t)e->pool << 8 | e->device_type);

	const struct xsp_memory_use *use =
		xsp_tally_row(&m->uses, key,
			      &(struct xsp_memory_use){.pid = e->pid,
						       .device = e->device,
						       .pool = e->pool,
						       .device_type = e->device_type});
	if (use == NULL && m->uses.tally.error < 0)
		return -ENOMEM;
	if (use == NULL) {
		m->untracked += e->bytes > 0 && of_allocator(e);
		return 1;
	}
	*out = xsp_tally_index(&m->uses, use);
	return 0;
}

/* PyTorch hands out pieces of CUDA's memory; the first has the same address. */
static uint64_t live_key(uint32_t pid, uint64_t address, bool allocator)
{
	return xsp_u64_mix(address) ^ ((uint64_t)pid << 1 | allocator);
}

static const struct live *with_key_of(const struct xsp_memory *m, const struct xsp_memory_event *e)
{
	return xsp_tally_find(&m->live, live_key(e->pid, e->address, of_allocator(e)));
}

/* NULL: not known, or another one has its key: a program chooses its allocator's addresses. */
static const struct live *live_at(const struct xsp_memory *m, const struct xsp_memory_event *e)
{
	const struct live *l = with_key_of(m, e);

	return l != NULL && l->pid == e->pid && l->address == e->address &&
			       l->allocator == of_allocator(e)
		       ? l
		       : NULL;
}

/* Does the event lie before the cut? The peak is at least what is in use when the cut begins. */
static bool is_before(const struct xsp_memory *m, const struct xsp_memory_event *e,
		      struct xsp_memory_use *u)
{
	const bool before = e->time_ns < m->t->cut.from_ns;

	if (before) {
		u->peak = u->now;
		u->peak_variance = u->now_variance;
	}
	return before;
}

static void forget(struct xsp_memory *m, uint32_t at)
{
	struct live *moved = &m->live.rows[--m->live.count], *gone = &m->live.rows[at];

	xsp_tally_forget(&m->live, live_key(gone->pid, gone->address, gone->allocator));
	if (moved == gone)
		return;
	*gone = *moved;
	xsp_tally_alias(&m->live, live_key(gone->pid, gone->address, gone->allocator), gone);
}

static void give_back(struct xsp_memory_use *u, const struct live *l)
{
	u->now -= l->bytes <= u->now ? l->bytes : u->now;
	u->now_variance -= l->variance <= u->now_variance ? l->variance : u->now_variance;
}

static int release(struct xsp_memory *m, struct xsp_memory_event *e)
{
	const struct live *known = live_at(m, e);
	uint32_t use;

	if (known == NULL) {
		int rc = use_of(m, e, &use);
		if (rc == 0)
			m->uses.rows[use].unknown_frees += !is_before(m, e, &m->uses.rows[use]);
		return rc < 0 ? rc : 0;
	}
	const struct live l = *known;
	struct xsp_memory_use *u = &m->uses.rows[l.use];
	forget(m, xsp_tally_index(&m->live, known));
	give_back(u, &l);
	if (!e->unseen && !is_before(m, e, u))
		u->frees += l.blocks;
	e->bytes = -(int64_t)l.bytes;
	e->blocks = l.blocks;
	e->variance = l.variance;
	e->device = u->device;
	e->device_type = u->device_type;
	e->pool = u->pool;
	e->site = l.site;
	if (e->total == 0)
		e->total = u->now;
	return xsp_notify_memory(m->t, e);
}

static int keep(struct xsp_memory *m, const struct xsp_memory_event *e, uint32_t use)
{
	if (with_key_of(m, e) != NULL || m->live.count >= MAX_LIVE) {
		m->untracked += of_allocator(e);
		return 0;
	}
	const struct live l = {.address = e->address,
			       .bytes = (uint64_t)e->bytes,
			       .blocks = e->blocks,
			       .variance = e->variance,
			       .use = use,
			       .pid = e->pid,
			       .site = e->site,
			       .allocator = of_allocator(e)};
	return xsp_tally_row(&m->live, live_key(e->pid, e->address, l.allocator), &l) == NULL
		       ? -ENOMEM
		       : 0;
}

static int allocate(struct xsp_memory *m, struct xsp_memory_event *e)
{
	uint32_t use;
	int rc = use_of(m, e, &use);

	if (rc > 0)
		return 0;
	if (rc == 0 && live_at(m, e) != NULL) {
		/* nobody knows which thread freed it, and when */
		struct xsp_memory_event freed = *e;
		freed.unseen = true;
		freed.op = freed.total = 0;
		rc = release(m, &freed);
	}
	if (rc == 0)
		rc = keep(m, e, use);
	if (rc < 0)
		return rc;
	struct xsp_memory_use *u = &m->uses.rows[use];
	if (!is_before(m, e, u)) {
		u->allocated += (uint64_t)e->bytes;
		u->allocated_variance += e->variance;
		u->allocations += e->blocks;
	}
	u->now += (uint64_t)e->bytes;
	u->now_variance += e->variance;
	if (u->now > u->peak) {
		u->peak = u->now;
		u->peak_variance = u->now_variance;
		u->peak_ns = e->time_ns;
	}
	if (e->total == 0)
		e->total = u->now;
	return xsp_notify_memory(m->t, e);
}

/* Another program has replaced the process's: releases all that it had. */
static int release_all(struct xsp_memory *m, const struct xsp_memory_event *exec)
{
	bool any = false;
	int rc = 0;

	for (size_t i = 0; i < m->uses.count; i++)
		any = any || (m->uses.rows[i].pid == exec->pid && m->uses.rows[i].now > 0);
	/* from the end: the last one moves to a released place */
	for (size_t i = any ? m->live.count : 0; i > 0 && rc == 0; i--) {
		const struct live *l = &m->live.rows[i - 1];
		if (l->pid != exec->pid)
			continue;
		struct xsp_memory_event freed = *exec;
		freed.address = l->address;
		freed.pool = m->uses.rows[l->use].pool;
		rc = release(m, &freed);
	}
	return rc;
}

int xsp_memory_exec(struct xsp_timeline *t, const struct xsp_event *e)
{
	const struct xsp_memory_event exec = {
		.time_ns = e->time_ns, .pid = e->tgid, .tid = e->tid, .unseen = true, .exec = true};

	return t->memory != NULL ? put(t->memory, &exec) : 0;
}

/* Frees between two windows were not seen, so the next one does not know what is alive. */
static void pass_windows(struct xsp_memory *m, uint64_t now)
{
	const struct xsp_timeline *t = m->t;
	const size_t before = m->window;

	while (m->window < t->window_count && t->windows[m->window].end_ns < now)
		m->window++;
	if (m->window == before)
		return;
	for (size_t i = m->live.count; i > 0; i--) {
		if (!m->live.rows[i - 1].allocator)
			continue;
		give_back(&m->uses.rows[m->live.rows[i - 1].use], &m->live.rows[i - 1]);
		forget(m, (uint32_t)i - 1);
	}
}

static int settle(struct xsp_memory *m, bool all)
{
	int rc = 0;

	while (rc == 0 && m->count > 0 &&
	       (all || m->count > MAX_PENDING || m->now - m->heap[0].e.time_ns > ORDER_NS)) {
		struct xsp_memory_event e = pop_first(m);
		if (e.time_ns >= m->t->cut.to_ns)
			continue;
		pass_windows(m, e.time_ns);
		rc = e.exec ? release_all(m, &e) : e.bytes < 0 ? release(m, &e) : allocate(m, &e);
	}
	return rc;
}

int xsp_memory_put(struct xsp_timeline *t, const struct xsp_memory_event *e)
{
	return put(t->memory, e);
}

/* ---- calls ---- */

/* Reads what the call did, if it succeeded. False: nothing, or not known. */
static bool read_call(const struct xsp_cuda_entry *e, const struct xsp_span *span,
		      struct xsp_cuda_call *c, uint64_t *address)
{
	const struct xsp_section *s = xsp_details_find(span->details, XSP_SECTION_WORDS, NULL);

	if (s == NULL || !xsp_cuda_succeeded(span->details))
		return false;
	xsp_cuda_decode(e, xsp_section_data(s), xsp_section_length(s) / 8, s->value, c);
	*address = c->address;
	if (e->kind == XSP_CUDA_ALLOC && XSP_CUDA_HAS(c, XSP_CUDA_OUT) &&
	    !xsp_cuda_written(span->details, address))
		return false;
	return true;
}

/* Is it the call around the last one, which has reported the same? */
static bool is_repeated(const struct last *last, const struct xsp_span *span, uint64_t address,
			bool free)
{
	return last->any && last->address == address && last->free == free &&
	       last->time_ns >= span->start_ns;
}

static int follow(struct xsp_memory *m, const struct xsp_cuda_entry *e, const struct xsp_span *span)
{
	bool free = e->kind == XSP_CUDA_FREE;
	struct xsp_cuda_call c;
	uint64_t address;

	if (e->kind != XSP_CUDA_ALLOC && !free && e->kind != XSP_CUDA_CONTEXT)
		return 0;
	if (!read_call(e, span, &c, &address))
		return 0;
	struct last *last = xsp_tally_row(&m->threads, xsp_u64_pair(span->pid, span->tid),
					  &(struct last){.device = XSP_GPU_NO_ID});
	if (last == NULL)
		return -ENOMEM;
	if (strcmp(e->name, "cudaSetDevice") == 0 && XSP_CUDA_HAS(&c, XSP_CUDA_DEVICE_NUMBER))
		last->device = (uint32_t)c.device;
	if (e->kind == XSP_CUDA_CONTEXT || address == 0 || is_repeated(last, span, address, free) ||
	    (!free && (!XSP_CUDA_HAS(&c, XSP_CUDA_BYTES) || c.bytes > INT64_MAX)))
		return 0;
	last->address = address;
	last->time_ns = span->end_ns;
	last->free = free;
	last->any = true;
	bool host = e->space == XSP_CUDA_PINNED;
	return put(m, &(struct xsp_memory_event){
			      .time_ns = span->end_ns,
			      .pid = span->pid,
			      .tid = span->tid,
			      .row = span->row,
			      .address = address,
			      .bytes = free ? -1 : (int64_t)c.bytes,
			      .blocks = 1,
			      .device = host ? XSP_GPU_NO_ID : last->device,
			      .pool = host ? XSP_MEMORY_PINNED : XSP_MEMORY_GPU,
			      .op = span->op != 0 ? span->op : span->user,
			      .op_name = span->op != 0 ? span->op_name : span->user_name,
			      .left_out = (span->left_out & ~(unsigned)XSP_LEFT_OUT_TIME) != 0,
		      });
}

static int on_call(struct xsp_timeline *t, const struct xsp_span *span)
{
	const struct xsp_cuda_entry *e = xsp_timeline_cuda(t, span->probe);

	return e != NULL ? follow(t->memory, e, span) : 0;
}

static int on_time(struct xsp_timeline *t, uint64_t ns)
{
	struct xsp_memory *m = t->memory;

	if (ns > m->now)
		m->now = ns;
	return m->count > 0 ? settle(m, false) : 0;
}

static int end(struct xsp_timeline *t)
{
	return settle(t->memory, true);
}

static int begin(struct xsp_timeline *t)
{
	if (t->cuda_probes == NULL && t->allocators == NULL)
		return 0;
	t->memory = calloc(1, sizeof(*t->memory));
	if (t->memory == NULL)
		return -ENOMEM;
	t->memory->t = t;
	t->memory->uses.tally.most = MAX_USES;
	return 1;
}

static void free_memory(struct xsp_timeline *t)
{
	struct xsp_memory *m = t->memory;

	if (m == NULL)
		return;
	free(m->heap);
	xsp_tally_free(&m->live);
	xsp_tally_free(&m->uses);
	xsp_tally_free(&m->threads);
	free(m);
}

const struct xsp_listener xsp_listener_memory = {
	.name = "memory",
	.begin = begin,
	.time = on_time,
	.listen = on_call,
	.end = end,
	.free = free_memory,
};

size_t xsp_timeline_memory(const struct xsp_timeline *t, const struct xsp_memory_use **uses)
{
	*uses = t->memory != NULL ? t->memory->uses.rows : NULL;
	return t->memory != NULL ? t->memory->uses.count : 0;
}

uint64_t xsp_memory_untracked(const struct xsp_timeline *t)
{
	return t->memory != NULL ? t->memory->untracked : 0;
}
