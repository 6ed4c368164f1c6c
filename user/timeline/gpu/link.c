/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link.c - joins activities to their calls by correlation id, and makes the ranges on the GPU's
 * streams. Either side may come first; a graph's launch has many activities.
 */
#include "timeline/gpu/gpu_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "timeline/gpu_category.h"

/* ---- pools: elements by index, a free list, and the order in which they came ---- */

static uint32_t *next_call(struct xsp_gpu *g, uint32_t i)
{
	return &g->calls[i].next;
}

static uint32_t *next_waiting(struct xsp_gpu *g, uint32_t i)
{
	return &g->waiting[i].younger;
}

typedef uint32_t *(*next_fn)(struct xsp_gpu *g, uint32_t i);

static void pool_begin(struct pool *p)
{
	p->free = p->oldest = p->youngest = XSP_NOWHERE;
}

/* Takes an element for the young end; the array has room for one more. */
static uint32_t pool_allocate(struct xsp_gpu *g, struct pool *p, next_fn next)
{
	uint32_t i = p->free;

	if (i != XSP_NOWHERE)
		p->free = *next(g, i);
	else
		i = (uint32_t)p->count++;
	*next(g, i) = XSP_NOWHERE;
	if (p->youngest != XSP_NOWHERE)
		*next(g, p->youngest) = i;
	else
		p->oldest = i;
	p->youngest = i;
	p->used++;
	return i;
}

static void pool_drop_oldest(struct xsp_gpu *g, struct pool *p, next_fn next)
{
	uint32_t i = p->oldest;

	p->oldest = *next(g, i);
	if (p->oldest == XSP_NOWHERE)
		p->youngest = XSP_NOWHERE;
	*next(g, i) = p->free;
	p->free = i;
	p->used--;
}

/* ---- what activities share ---- */

/* Offsets of a record's fields. */
static const struct shape {
	uint16_t size, start, device, stream; /* 0: none */
} shapes[XSP_GPU_KINDS] = {
	[XSP_GPU_IS_KERNEL] = {sizeof(struct xsp_gpu_kernel),
			       offsetof(struct xsp_gpu_kernel, start_ns),
			       offsetof(struct xsp_gpu_kernel, device),
			       offsetof(struct xsp_gpu_kernel, stream)},
	[XSP_GPU_IS_MEMCPY] = {sizeof(struct xsp_gpu_memcpy),
			       offsetof(struct xsp_gpu_memcpy, start_ns),
			       offsetof(struct xsp_gpu_memcpy, device),
			       offsetof(struct xsp_gpu_memcpy, stream)},
	[XSP_GPU_IS_MEMSET] = {sizeof(struct xsp_gpu_memset),
			       offsetof(struct xsp_gpu_memset, start_ns),
			       offsetof(struct xsp_gpu_memset, device),
			       offsetof(struct xsp_gpu_memset, stream)},
	[XSP_GPU_IS_SYNC] = {sizeof(struct xsp_gpu_sync), offsetof(struct xsp_gpu_sync, start_ns),
			     0, 0},
	[XSP_GPU_IS_GRAPH] = {sizeof(struct xsp_gpu_graph),
			      offsetof(struct xsp_gpu_graph, start_ns),
			      offsetof(struct xsp_gpu_graph, device),
			      offsetof(struct xsp_gpu_graph, stream)},
	[XSP_GPU_IS_EVENT] = {sizeof(struct xsp_gpu_cuda_event), 0, 0, 0},
	[XSP_GPU_IS_OVERHEAD] = {sizeof(struct xsp_gpu_overhead),
				 offsetof(struct xsp_gpu_overhead, start_ns), 0, 0},
};

static const uint8_t kind_of[] = {
	[XSP_GPU_KERNEL] = XSP_GPU_IS_KERNEL,	  [XSP_GPU_MEMCPY] = XSP_GPU_IS_MEMCPY,
	[XSP_GPU_MEMCPY_P2P] = XSP_GPU_IS_MEMCPY, [XSP_GPU_MEMSET] = XSP_GPU_IS_MEMSET,
	[XSP_GPU_SYNC] = XSP_GPU_IS_SYNC,	  [XSP_GPU_GRAPH] = XSP_GPU_IS_GRAPH,
	[XSP_GPU_CUDA_EVENT] = XSP_GPU_IS_EVENT,  [XSP_GPU_OVERHEAD] = XSP_GPU_IS_OVERHEAD,
};

static uint64_t word_at(const union activity_record *r, uint16_t at)
{
	uint64_t v;

	memcpy(&v, (const char *)r + at, sizeof(v));
	return v;
}

static uint32_t half_at(const union activity_record *r, uint16_t at)
{
	uint32_t v;

	memcpy(&v, (const char *)r + at, sizeof(v));
	return v;
}

static void place(const struct xsp_gpu *g, const struct waiting *w, struct xsp_gpu_activity *a)
{
	const struct shape *s = &shapes[w->kind];
	const union activity_record *r = &w->record;

	a->stream = XSP_GPU_NO_ID;
	if (s->start != 0) {
		a->start_ns = word_at(r, s->start);
		a->end_ns = word_at(r, (uint16_t)(s->start + 8));
	}
	if (s->device != 0) {
		a->device = half_at(r, s->device);
		a->context = half_at(r, (uint16_t)(s->device + 4));
		a->stream = half_at(r, s->stream);
	} else if (w->kind == XSP_GPU_IS_SYNC || w->kind == XSP_GPU_IS_EVENT) {
		a->context = w->kind == XSP_GPU_IS_SYNC ? r->sync.context : r->event.context;
		a->stream = w->kind == XSP_GPU_IS_SYNC ? r->sync.stream : r->event.stream;
		const struct gpu_context *c = xsp_gpu_context(g, w->pid, a->context);
		a->device = c != NULL ? c->device : 0;
	}
	if (w->kind == XSP_GPU_IS_EVENT)
		a->start_ns = a->end_ns = r->event.device_ns;
}

/* Counts it, and takes its times away, if they cannot be true: its call says whether it lies in the
 * cut, or the time when its record came. An event that was not timed has no times. */
static void judge(struct xsp_gpu *g, const struct waiting *w, const struct call *c,
		  struct xsp_gpu_activity *a)
{
	if (a->kind == XSP_GPU_IS_EVENT && a->start_ns == 0)
		return;
	a->bad = xsp_gpu_bad_activity(g, w, c, a);
	if (a->bad == XSP_GPU_TIMED)
		return;
	g->counts.bad[a->bad]++;
	a->start_ns = a->end_ns = 0;
	a->left_out |= c == NULL && xsp_cut_time(g->t, w->came_ns, w->came_ns + 1) != 0;
}

/* ---- handing on ---- */

static int hand_on(struct xsp_gpu *g, const struct xsp_gpu_activity *a)
{
	bool reported;
	int rc = xsp_notify_activity(g->t, a, &reported);

	g->counts.activities[a->kind] += reported;
	return rc;
}

/* Arrows have correlation ids, as in Kineto; those of further processes are above 2^32. */
static uint64_t arrow_id(const struct xsp_gpu *g, uint32_t pid, uint32_t correlation)
{
	size_t i = 0;

	while (i < g->process_count && g->processes[i].pid != pid)
		i++;
	return (uint64_t)(i & 0xfffff) << 32 | correlation;
}

/* ---- users' ranges ---- */

static int end_range(struct xsp_gpu *g, const struct user_range *r)
{
	/* 1 ns around what was launched in it, as Kineto has it: else viewers cannot nest the two */
	const struct xsp_gpu_activity a = {
		.kind = XSP_GPU_IS_ANNOTATION,
		.pid = r->pid,
		.start_ns = r->start_ns - (r->start_ns > 0),
		.end_ns = r->end_ns + 1,
		.device = r->device,
		.context = r->context,
		.stream = r->stream,
		.external = r->user,
		.name = xsp_timeline_name(g->t, r->name),
		.on = xsp_gpu_device(g, r->device),
	};

	return hand_on(g, &a);
}

static uint64_t range_key(uint64_t user, const struct xsp_gpu_activity *a)
{
	return xsp_u64_mix(user ^ (uint64_t)a->device << 56) + a->stream;
}

static bool same_range(const struct user_range *r, uint64_t user, const struct xsp_gpu_activity *a)
{
	return r->user == user && r->device == a->device && r->stream == a->stream &&
	       r->pid == a->pid;
}

static int sweep_ranges(struct xsp_gpu *g, uint64_t age);

static int widen_range(struct xsp_gpu *g, const struct call *c, const struct xsp_gpu_activity *a)
{
	const uint64_t user = c->around.user;
	uint64_t key = range_key(user, a);
	struct user_range *r;

	while ((r = xsp_tally_find(&g->ranges, key)) != NULL && !same_range(r, user, a))
		key++;
	if (r != NULL) {
		if (a->start_ns < r->start_ns)
			r->start_ns = a->start_ns;
		r->end_ns = xsp_max_u64(r->end_ns, a->end_ns);
		r->touched_ns = g->now;
		return 0;
	}
	if (g->ranges.count >= XSP_MAX_USER_RANGES) { /* some ranges may come in two pieces then */
		int rc = sweep_ranges(g, XSP_RANGE_NS / 10);
		if (rc == 0 && g->ranges.count >= XSP_MAX_USER_RANGES)
			rc = sweep_ranges(g, 0);
		if (rc < 0)
			return rc;
		return widen_range(g, c, a);
	}
	const struct user_range fresh = {.user = user,
					 .start_ns = a->start_ns,
					 .end_ns = a->end_ns,
					 .touched_ns = g->now,
					 .name = c->around.user_name,
					 .pid = a->pid,
					 .device = a->device,
					 .context = a->context,
					 .stream = a->stream};
	return xsp_tally_row(&g->ranges, key, &fresh) == NULL ? -ENOMEM : 0;
}

/* Hands on those without news for `age` ns (0: all) and renews the map. */
static int sweep_ranges(struct xsp_gpu *g, uint64_t age)
{
	size_t kept = 0;
	int rc = 0;

	for (size_t i = 0; i < g->ranges.count && rc == 0; i++) {
		const struct user_range r = g->ranges.rows[i];
		if (age == 0 || g->now - r.touched_ns > age)
			rc = end_range(g, &r);
		else
			g->ranges.rows[kept++] = r;
	}
	if (kept == g->ranges.count)
		return rc;
	xsp_tally_begin_anew(&g->ranges);
	g->ranges.count = kept;
	for (size_t i = 0; i < kept && rc == 0; i++) {
		const struct user_range *r = &g->ranges.rows[i];
		const struct xsp_gpu_activity a = {.device = r->device, .stream = r->stream};
		uint64_t key = range_key(r->user, &a);
		while (xsp_tally_find(&g->ranges, key) != NULL)
			key++;
		rc = xsp_tally_alias(&g->ranges, key, r);
	}
	return rc;
}

/* ---- joining ---- */

/* A dropped call gives its activity nothing. Chosen threads or names are those of calls. */
static void join(const struct xsp_gpu *g, struct call *c, struct xsp_gpu_activity *a)
{
	a->left_out = (c->left_out & (XSP_LEFT_OUT_THREAD | XSP_LEFT_OUT_NAME)) != 0 ||
		      (a->bad && c->left_out != 0);
	if (c->left_out != 0 || a->bad)
		return;
	a->external = xsp_gpu_launcher(&c->around);
	if (a->external != 0)
		a->launcher = 1 + (c->around.op != 0 ? c->around.op_name : c->around.user_name);
	const bool event = a->kind == XSP_GPU_IS_EVENT; /* it has no times of its own */
	if (!event && xsp_cut_time(g->t, a->start_ns, a->end_ns) != 0)
		return;
	a->call_tid = c->tid;
	a->call_row = c->row;
	a->call_ns = xsp_timeline_clip(g->t, c->start_ns);
	a->call_end_ns = xsp_max_u64(a->call_ns, xsp_timeline_clip(g->t, c->end_ns));
	a->call_cut = a->call_ns != c->start_ns || a->call_end_ns != c->end_ns;
	if (event)
		return;
	a->arrow = arrow_id(g, c->pid, c->correlation);
	a->arrow_begins = !c->arrow;
	c->arrow = true;
}

/* `c` NULL: its call is not known. */
static int emit(struct xsp_gpu *g, const struct waiting *w, struct call *c)
{
	struct xsp_gpu_activity a = {
		.kind = (enum xsp_gpu_kind)w->kind,
		.pid = w->pid,
		.correlation = w->record.head.correlation,
		.name = "",
		.record = &w->record,
		.left_out = xsp_cut_chooses(g->t),
	};
	int rc = 0;

	place(g, w, &a);
	a.on = xsp_gpu_device(g, a.device);
	judge(g, w, c, &a);
	if (w->kind == XSP_GPU_IS_KERNEL) {
		a.name = xsp_gpu_name(g, XSP_GPU_NAME_STRING, w->record.kernel.name);
		g->counts.unnamed += a.name == NULL;
		if (a.name == NULL)
			a.name = "[kernel without a name]";
	}
	if (c != NULL) {
		join(g, c, &a);
		g->counts.linked++;
	} else if (a.correlation != 0 &&
		   (w->kind != XSP_GPU_IS_EVENT || w->record.event.device_ns != 0)) {
		g->counts.unlinked++;
	}
	if (c != NULL && c->around.user != 0 && xsp_gpu_is_work((enum xsp_gpu_kind)w->kind) &&
	    !a.left_out && !a.bad)
		rc = widen_range(g, c, &a);
	return rc < 0 ? rc : hand_on(g, &a);
}

static bool is_named(const struct xsp_gpu *g, const struct waiting *w)
{
	return w->kind != XSP_GPU_IS_KERNEL || w->record.kernel.name == 0 ||
	       xsp_gpu_name(g, XSP_GPU_NAME_STRING, w->record.kernel.name) != NULL;
}

/* ---- calls ---- */

static void forget_oldest_call(struct xsp_gpu *g)
{
	const struct call *c = &g->calls[g->call_pool.oldest];
	uint32_t *at = xsp_u64map_get(&g->call_of, xsp_u64_pair(c->pid, c->correlation));

	if (at != NULL && *at == g->call_pool.oldest)
		xsp_u64map_remove(&g->call_of, xsp_u64_pair(c->pid, c->correlation));
	pool_drop_oldest(g, &g->call_pool, next_call);
}

/* The call with the id, made if needed (then not known yet). */
static int call_at(struct xsp_gpu *g, uint32_t pid, uint32_t correlation, struct call **out)
{
	const uint32_t *at = xsp_u64map_get(&g->call_of, xsp_u64_pair(pid, correlation));

	if (at != NULL) {
		*out = &g->calls[*at];
		return 0;
	}
	struct pool *p = &g->call_pool;
	while (p->used >= XSP_MAX_CALLS && g->calls[p->oldest].waiting == XSP_NOWHERE)
		forget_oldest_call(g);
	if (xsp_grow(&g->calls, &p->capacity, p->count + 1) < 0)
		return -ENOMEM;
	uint32_t i = pool_allocate(g, p, next_call);
	uint32_t next = g->calls[i].next;
	g->calls[i] = (struct call){.pid = pid,
				    .correlation = correlation,
				    .came_ns = g->now,
				    .waiting = XSP_NOWHERE,
				    .next = next};
	*out = &g->calls[i];
	return xsp_u64map_set(&g->call_of, xsp_u64_pair(pid, correlation), i);
}

static int release(struct xsp_gpu *g, struct call *c)
{
	uint32_t i = c->waiting;
	int rc = 0;

	c->waiting = XSP_NOWHERE;
	while (i != XSP_NOWHERE && rc == 0) {
		struct waiting *w = &g->waiting[i];
		uint32_t next = w->next;
		if (!w->gone && is_named(g, w)) {
			w->gone = true;
			rc = emit(g, w, c);
		} else if (!w->gone) {
			w->next = c->waiting;
			c->waiting = i;
		}
		i = next;
	}
	return rc;
}

int xsp_gpu_call_known(struct xsp_gpu *g, const struct call *found)
{
	struct call *c;
	int rc = call_at(g, found->pid, found->correlation, &c);

	if (rc < 0)
		return rc;
	/* a runtime call and the driver call inside it may share an id: the outer one has the
	 * arrow, unless it exists already */
	if (!c->known || (!c->arrow && found->end_ns - found->start_ns > c->end_ns - c->start_ns)) {
		c->tid = found->tid;
		c->row = found->row;
		c->start_ns = found->start_ns;
		c->end_ns = found->end_ns;
		c->left_out = found->left_out;
	}
	if (c->around.op == 0) {
		c->around.op = found->around.op;
		c->around.op_name = found->around.op_name;
	}
	if (c->around.user == 0) {
		c->around.user = found->around.user;
		c->around.user_name = found->around.user_name;
	}
	c->known = true;
	return release(g, c);
}

/* ---- activities ---- */

static void remove_from_list(struct xsp_gpu *g, struct call *c, uint32_t which)
{
	uint32_t *at = &c->waiting;

	while (*at != XSP_NOWHERE && *at != which)
		at = &g->waiting[*at].next;
	if (*at == which)
		*at = g->waiting[which].next;
}

/* The oldest one stops waiting. */
static int drop_oldest_waiting(struct xsp_gpu *g)
{
	uint32_t i = g->waiting_pool.oldest;
	struct waiting *w = &g->waiting[i];
	const uint32_t *at =
		xsp_u64map_get(&g->call_of, xsp_u64_pair(w->pid, w->record.head.correlation));
	struct call *c = at != NULL ? &g->calls[*at] : NULL;
	int rc = 0;

	if (!w->gone) {
		if (c != NULL)
			remove_from_list(g, c, i);
		rc = emit(g, w, c != NULL && c->known ? c : NULL);
	}
	pool_drop_oldest(g, &g->waiting_pool, next_waiting);
	return rc;
}

static int wait_for_call(struct xsp_gpu *g, struct call *c, const struct waiting *new)
{
	struct pool *p = &g->waiting_pool;
	int rc = 0;

	while (p->used >= XSP_MAX_WAITING && rc == 0)
		rc = drop_oldest_waiting(g);
	if (rc < 0)
		return rc;
	if (xsp_grow(&g->waiting, &p->capacity, p->count + 1) < 0)
		return -ENOMEM;
	uint32_t i = pool_allocate(g, p, next_waiting);
	uint32_t younger = g->waiting[i].younger;
	g->waiting[i] = *new;
	g->waiting[i].younger = younger;
	g->waiting[i].next = c->waiting;
	c->waiting = i;
	return 0;
}

int xsp_gpu_activity_record(struct xsp_gpu *g, uint32_t pid, const struct xsp_gpu_record *record)
{
	struct waiting w = {.pid = pid, .came_ns = g->now, .kind = kind_of[record->type]};
	struct call *c;

	xsp_gpu_record_read(record, &w.record, sizeof(w.record));
	if (record->correlation == 0)
		return emit(g, &w, NULL);
	int rc = call_at(g, pid, record->correlation, &c);
	if (rc < 0)
		return rc;
	if (c->known && is_named(g, &w))
		return emit(g, &w, c);
	return wait_for_call(g, c, &w);
}

/* ---- ages ---- */

/* Hands on the activities that need not wait any longer. */
static int sweep_call(struct xsp_gpu *g, struct call *c, bool all)
{
	uint32_t i = c->waiting, kept = XSP_NOWHERE;
	int rc = 0;

	while (i != XSP_NOWHERE && rc == 0) {
		struct waiting *w = &g->waiting[i];
		uint32_t next = w->next;
		bool due = all || g->now - w->came_ns > XSP_WAIT_NS;
		if (!w->gone && (due || (c->known && is_named(g, w)))) {
			w->gone = true;
			rc = emit(g, w, c->known ? c : NULL);
		}
		if (!w->gone) {
			w->next = kept;
			kept = i;
		}
		i = next;
	}
	c->waiting = kept;
	return rc;
}

static int sweep_all_calls(struct xsp_gpu *g, bool all)
{
	int rc = 0;

	for (uint32_t i = g->call_pool.oldest; i != XSP_NOWHERE && rc == 0; i = g->calls[i].next)
		if (g->calls[i].waiting != XSP_NOWHERE)
			rc = sweep_call(g, &g->calls[i], all);
	return rc;
}

int xsp_gpu_sweep_activities(struct xsp_gpu *g, bool all)
{
	struct pool *calls = &g->call_pool, *waiting = &g->waiting_pool;
	int rc = 0;

	if (waiting->used > 0)
		rc = sweep_all_calls(g, all);
	while (rc == 0 && waiting->oldest != XSP_NOWHERE && g->waiting[waiting->oldest].gone)
		pool_drop_oldest(g, waiting, next_waiting);
	while (rc == 0 && calls->oldest != XSP_NOWHERE &&
	       g->calls[calls->oldest].waiting == XSP_NOWHERE &&
	       (all || g->now - g->calls[calls->oldest].came_ns > XSP_CALL_NS))
		forget_oldest_call(g);
	return rc < 0 ? rc : sweep_ranges(g, all ? 0 : XSP_RANGE_NS);
}

void xsp_gpu_link_begin(struct xsp_gpu *g)
{
	pool_begin(&g->call_pool);
	pool_begin(&g->waiting_pool);
}

void xsp_gpu_link_free(struct xsp_gpu *g)
{
	free(g->calls);
	free(g->waiting);
	xsp_tally_free(&g->ranges);
	xsp_u64map_free(&g->call_of);
}
