/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/rings/rings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rows/grow.h"
#include "record/rings/hand_over.h"

/* Of a ring whose thread we do not know, as its birth may be in a ring of the kernel side. */
#define UNKNOWN_NS 1000000000ULL
#define THREADS_MAX (1U << 20)

/* ---- life ---- */

struct xsp_agent_rings *xsp_agent_rings_new(const struct xsp_agent_rings_options *options)
{
	struct xsp_agent_rings *a = calloc(1, sizeof(*a));

	if (a == NULL)
		return NULL;
	a->options = *options;
	a->to_ns = UINT64_MAX;
	xsp_node_names_begin(&a->names);
	return a;
}

void xsp_agent_rings_put_to(struct xsp_agent_rings *a,
			    int (*put)(void *ctx, const struct xsp_event *e), void *ctx)
{
	a->put = put;
	a->put_ctx = ctx;
}

static void free_agent(struct agent *g)
{
	xsp_ring_memory_free(g->memory);
	xsp_ring_functions_free(&g->functions);
	xsp_open_ranges_free(&g->open);
	xsp_ring_names_free(&g->names);
	xsp_ring_stacks_free(&g->stacks);
	free(g);
}

void xsp_agent_rings_free(struct xsp_agent_rings *a)
{
	if (a == NULL)
		return;
	for (size_t i = 0; i < a->count; i++)
		free_agent(a->agents[i]);
	free(a->agents);
	xsp_u64map_free(&a->threads);
	xsp_u64map_free(&a->by_tid);
	xsp_node_names_end(&a->names);
	free(a);
}

static struct agent *find(const struct xsp_agent_rings *a, pid_t pid, size_t *index)
{
	for (size_t i = 0; i < a->count; i++) {
		if (a->agents[i]->pid != pid)
			continue;
		if (index != NULL)
			*index = i;
		return a->agents[i];
	}
	return NULL;
}

bool xsp_agent_rings_has(const struct xsp_agent_rings *a, pid_t pid)
{
	return find(a, pid, NULL) != NULL;
}

bool xsp_agent_rings_any(const struct xsp_agent_rings *a)
{
	return a->count > 0;
}

bool xsp_agent_rings_reads(const struct xsp_agent_rings *a, uint64_t inode)
{
	for (size_t i = 0; i < a->count; i++)
		if (xsp_ring_memory_is(a->agents[i]->memory, inode))
			return true;
	return false;
}

void xsp_agent_rings_look(struct xsp_agent_rings *a, pid_t pid)
{
	struct agent *g = find(a, pid, NULL);

	if (g != NULL)
		xsp_ring_functions_look(&g->functions, &a->options, pid, g->memory);
}

void xsp_agent_rings_read_args(struct xsp_agent_rings *a)
{
	for (size_t i = 0; i < a->count; i++)
		xsp_ring_functions_read_args(&a->agents[i]->functions, &a->options,
					     a->agents[i]->memory);
}

void xsp_agent_rings_read_python(struct xsp_agent_rings *a, pid_t pid,
				 const struct xsp_ring_python *how)
{
	struct agent *g = find(a, pid, NULL);

	if (g == NULL)
		return;
	xsp_ring_memory_read_python(g->memory, how);
	g->stacks.generation = how->spec.generation;
}

/* A ring whose thread has ended, and which nobody read, is another thread's again. */
static void begin_ring(struct agent *g, unsigned i)
{
	const struct xsp_ring_state_now now = xsp_ring_look(g->memory, i);

	g->ring[i] = (struct reader){.tail = now.head, .mark = now.head, .lost = now.lost};
	xsp_ring_read_up_to(g->memory, i, now.head);
	if (now.state == XSP_RING_ENDED)
		xsp_ring_give_back(g->memory, i);
}

static void take_clock(struct xsp_agent_rings *a)
{
	const struct xsp_tsc_pair pair = xsp_tsc_read();

	xsp_tsc_add(&a->tsc, &pair);
}

int xsp_agent_rings_add(struct xsp_agent_rings *a, pid_t pid, struct xsp_ring_memory *memory)
{
	struct agent *g = calloc(1, sizeof(*g));

	if (g == NULL || xsp_ring_functions_new(&g->functions) < 0 ||
	    xsp_grow(&a->agents, &a->room, a->count + 1) < 0) {
		if (g != NULL)
			xsp_ring_functions_free(&g->functions);
		free(g);
		xsp_ring_memory_free(memory);
		return -ENOMEM;
	}
	g->pid = pid;
	g->memory = memory;
	g->tsc = xsp_ring_memory_clock(memory) == XSP_RING_TSC;
	xsp_ring_memory_counts(memory, &g->homeless, &g->refused);
	xsp_ring_functions_look(&g->functions, &a->options, pid, memory);
	xsp_ring_memory_want_args(memory, a->options.arguments != NULL);
	xsp_ring_memory_want_numbers(memory, a->options.numbers);
	for (unsigned i = 0; i < XSP_RINGS_COUNT; i++)
		begin_ring(g, i);
	if (g->tsc)
		take_clock(a);
	a->agents[a->count++] = g;
	return 0;
}

/* ---- which functions ---- */
bool xsp_agent_rings_serves(const struct xsp_agent_rings *a, pid_t pid, uint32_t probe)
{
	const struct agent *g = find(a, pid, NULL);

	return g != NULL && xsp_u64map_get(&g->functions.served, probe) != NULL;
}

uint32_t xsp_agent_rings_active(const struct xsp_agent_rings *a, pid_t pid)
{
	const struct agent *g = find(a, pid, NULL);

	return g != NULL ? xsp_ring_memory_active(g->memory) : 0;
}

bool xsp_agent_rings_has_ranges(const struct xsp_agent_rings *a, pid_t pid)
{
	const struct agent *g = find(a, pid, NULL);

	return g != NULL && g->functions.ranges;
}

bool xsp_agent_rings_has_callbacks(const struct xsp_agent_rings *a, pid_t pid)
{
	const struct agent *g = find(a, pid, NULL);

	return g != NULL && g->functions.callbacks;
}

bool xsp_agent_rings_lose_callbacks(struct xsp_agent_rings *a, pid_t pid)
{
	struct agent *g = find(a, pid, NULL);

	return g != NULL && xsp_ring_functions_lose_callbacks(&g->functions, g->memory);
}

bool xsp_agent_rings_serves_any(const struct xsp_agent_rings *a, uint32_t probe)
{
	for (size_t i = 0; i < a->count; i++)
		if (xsp_u64map_get(&a->agents[i]->functions.served, probe) != NULL)
			return true;
	return false;
}

size_t xsp_agent_rings_functions(const struct xsp_agent_rings *a, pid_t pid, size_t *regions)
{
	const struct agent *g = find(a, pid, NULL);

	*regions = g != NULL ? g->functions.regions : 0;
	return g != NULL ? g->functions.served.count - *regions - g->functions.named : 0;
}

/* ---- whose rings ---- */

void xsp_agent_rings_thread(struct xsp_agent_rings *a, pid_t pid, uint32_t ns_tid, uint32_t tid)
{
	if (!xsp_agent_rings_has(a, pid))
		return;
	if (a->threads.count >= THREADS_MAX)
		xsp_u64map_free(&a->threads);
	/* without memory its ring is one of an unknown thread */
	xsp_u64map_set(&a->threads, xsp_u64_pair((uint32_t)pid, ns_tid), tid);
}

static uint32_t *thread_of(struct xsp_agent_rings *a, pid_t pid, uint32_t ns_tid)
{
	const uint64_t key = xsp_u64_pair((uint32_t)pid, ns_tid);
	uint32_t *tid = xsp_u64map_get(&a->threads, key);

	if (tid != NULL || a->options.threads == NULL || a->now_ns - a->asked_ns < UNKNOWN_NS / 10)
		return tid;
	a->asked_ns = a->now_ns;
	a->options.threads(a->options.ctx, pid);
	return xsp_u64map_get(&a->threads, key);
}

static struct reader *reader_of(struct xsp_agent_rings *a, uint32_t tid, struct agent **g,
				unsigned *ring)
{
	const uint32_t *at = a->by_tid.count > 0 ? xsp_u64map_get(&a->by_tid, tid) : NULL;

	if (at == NULL)
		return NULL;
	*g = a->agents[*at / XSP_RINGS_COUNT];
	*ring = *at % XSP_RINGS_COUNT;
	return &(*g)->ring[*ring];
}

/* Were its next records written before those of the other ring, by the same thread? */
static bool is_older(const struct agent *g, unsigned i, unsigned than, uint32_t ns_tid)
{
	const struct xsp_ring_state_now now = xsp_ring_look(g->memory, i);
	struct xsp_ring_record ours, theirs;

	return now.state != XSP_RING_FREE && now.tid == ns_tid && now.head != g->ring[i].tail &&
	       xsp_ring_copy(g->memory, i, g->ring[i].tail, &ours) &&
	       xsp_ring_copy(g->memory, than, g->ring[than].tail, &theirs) &&
	       ours.time < theirs.time;
}

/* A thread that ends may take a second ring, and a third one: each comes when those before it are empty. */
static bool has_another(struct xsp_agent_rings *a, const struct agent *of, unsigned i, uint32_t tid,
			uint32_t ns_tid)
{
	struct agent *g;
	unsigned ring;
	const struct reader *other = reader_of(a, tid, &g, &ring);

	if (other != NULL && other != &of->ring[i] && other->tail != xsp_ring_head(g->memory, ring))
		return true;
	for (unsigned k = 0; k < XSP_RINGS_COUNT; k++)
		if (k != i && is_older(of, k, i, ns_tid))
			return true;
	return false;
}

static void forget_thread(struct xsp_agent_rings *a, struct reader *r)
{
	struct agent *g;
	unsigned ring;

	if (r->tid != 0 && reader_of(a, r->tid, &g, &ring) == r)
		xsp_u64map_remove(&a->by_tid, r->tid);
	r->tid = 0;
}

/* The thread that writes the ring. False: it is not known. */
static bool know_thread(struct xsp_agent_rings *a, size_t index, unsigned i,
			const struct xsp_ring_state_now *now)
{
	struct agent *g = a->agents[index];
	struct reader *r = &g->ring[i];

	if (now->tid != r->ns_tid) {
		forget_thread(a, r);
		*r = (struct reader){
			.ns_tid = now->tid, .tail = r->tail, .mark = r->tail, .lost = r->lost};
	}
	if (r->tid != 0)
		return true;
	const uint32_t *tid = now->tid != 0 ? thread_of(a, g->pid, now->tid) : NULL;
	if (tid != NULL && !has_another(a, g, i, *tid, now->tid) &&
	    xsp_u64map_set(&a->by_tid, *tid, (uint32_t)(index * XSP_RINGS_COUNT + i)) == 0) {
		r->tid = *tid;
		r->since_ns = 0;
		return true;
	}
	if (now->head != r->tail && xsp_ring_has_waited(a, r, UNKNOWN_NS))
		xsp_ring_pass_over(a, g, i, now->head);
	return false;
}

/* ---- from when to when ---- */

void xsp_agent_rings_start(struct xsp_agent_rings *a, uint64_t from_ns)
{
	a->from_ns = from_ns;
	for (size_t k = 0; k < a->count; k++) {
		struct agent *g = a->agents[k];
		xsp_ring_memory_counts(g->memory, &g->homeless, &g->refused);
		for (unsigned i = 0; i < XSP_RINGS_COUNT; i++) {
			forget_thread(a, &g->ring[i]);
			begin_ring(g, i);
		}
	}
}

void xsp_agent_rings_stop(struct xsp_agent_rings *a, uint64_t to_ns)
{
	if (a->to_ns != UINT64_MAX)
		return;
	xsp_agent_rings_totals(a);
	a->to_ns = to_ns; /* from here on nothing is counted as lost */
}

/* ---- a turn ---- */

static void count_lost(struct xsp_agent_rings *a, struct reader *r, uint64_t lost)
{
	if (a->to_ns == UINT64_MAX && lost > r->lost)
		a->totals.lost += lost - r->lost;
	r->lost = lost;
}

static bool is_in(const struct xsp_agent_rings *a, const struct reader *r, uint64_t streams)
{
	return r->tid != 0 && (streams >> (r->tid & a->options.mask) & 1) != 0;
}

static void mark_ring(struct xsp_agent_rings *a, size_t index, unsigned i, uint64_t streams)
{
	struct agent *g = a->agents[index];
	struct reader *r = &g->ring[i];
	const struct xsp_ring_state_now now = xsp_ring_look(g->memory, i);

	count_lost(a, r, now.lost);
	if (now.state == XSP_RING_ENDED && now.head == r->tail) {
		/* whoever takes it next is not this thread */
		forget_thread(a, r);
		r->ns_tid = 0;
		xsp_ring_give_back(g->memory, i);
	}
	if (now.head == r->tail && now.state != XSP_RING_USED)
		return;
	if (!know_thread(a, index, i, &now) || !is_in(a, r, streams))
		return;
	if (!xsp_ring_is_plausible(r, now.head)) {
		xsp_ring_pass_over(a, g, i, now.head);
		return;
	}
	r->mark = now.head;
	if (now.head - r->tail > a->fullest)
		a->fullest = now.head - r->tail;
}

void xsp_agent_rings_mark(struct xsp_agent_rings *a, uint64_t streams)
{
	bool tsc = false;

	a->now_ns = xsp_now_ns();
	a->turn_ns = a->now_ns - a->marked_ns;
	a->marked_ns = a->now_ns;
	a->fullest = 0;
	for (size_t k = 0; k < a->count; k++) {
		tsc = tsc || a->agents[k]->tsc;
		for (unsigned i = 0; i < XSP_RINGS_COUNT; i++)
			mark_ring(a, k, i, streams);
	}
	if (tsc)
		take_clock(a);
}

int xsp_agent_rings_nap_ms(const struct xsp_agent_rings *a, int wait_ms)
{
	const double most_ms = a->fullest == 0 ? wait_ms
					       : (double)a->turn_ns * 1e-6 * (XSP_RING_SLOTS / 8) /
							 (double)a->fullest;

	return most_ms < wait_ms ? (int)most_ms : wait_ms;
}

static bool has_own_ids(const struct xsp_agent_rings *a, pid_t pid)
{
	const uint32_t *tid =
		xsp_u64map_get(&a->threads, xsp_u64_pair((uint32_t)pid, (uint32_t)pid));

	return tid != NULL && *tid == (uint32_t)pid;
}

/* The ring that a thread of the process has taken since the last mark, after which its first events of the kernel side may have
 * come. NULL: it has none, or it is not known whose a new one is. */
static struct reader *find_taken(struct xsp_agent_rings *a, pid_t pid, uint32_t tid,
				 struct agent **g, unsigned *ring)
{
	struct reader *found = NULL;
	bool all_known = true;
	size_t index;

	*g = find(a, pid, &index);
	const uint64_t taken = *g != NULL ? xsp_ring_memory_taken((*g)->memory) : 0;
	if (*g == NULL || taken == (*g)->taken)
		return NULL;
	for (unsigned i = 0; i < XSP_RINGS_COUNT; i++) {
		const struct xsp_ring_state_now now = xsp_ring_look((*g)->memory, i);
		struct reader *r = &(*g)->ring[i];
		if (now.state == XSP_RING_FREE || (r->tid != 0 && r->ns_tid == now.tid))
			continue;
		if (now.tid == tid &&
		    has_own_ids(a, pid)) /* its event says that it is the process's */
			xsp_agent_rings_thread(a, pid, tid, tid);
		if (!know_thread(a, index, i, &now))
			all_known = false;
		if (r->tid == tid) {
			found = r;
			*ring = i;
		}
	}
	if (all_known)
		(*g)->taken = taken;
	return found;
}

int xsp_agent_rings_before(struct xsp_agent_rings *a, pid_t pid, uint32_t tid, uint64_t time_ns)
{
	struct agent *g;
	unsigned ring = 0;
	struct reader *r = reader_of(a, tid, &g, &ring);

	if (r == NULL)
		r = find_taken(a, pid, tid, &g, &ring);
	if (r == NULL)
		return 0;
	const int rc =
		xsp_ring_hand_over(a, g, ring, xsp_ring_head(g->memory, ring), time_ns, false);
	if ((int64_t)(r->mark - r->tail) < 0)
		r->mark = r->tail;
	return rc;
}

int xsp_agent_rings_flush(struct xsp_agent_rings *a, uint64_t streams)
{
	int rc = 0;

	for (size_t k = 0; k < a->count; k++)
		for (unsigned i = 0; i < XSP_RINGS_COUNT && rc == 0; i++)
			if (is_in(a, &a->agents[k]->ring[i], streams))
				rc = xsp_ring_hand_over(a, a->agents[k], i,
							a->agents[k]->ring[i].mark, UINT64_MAX,
							false);
	return rc;
}

/* The counters of the file, and of rings that nobody has looked at since. */
static void count_at_end(struct xsp_agent_rings *a, struct agent *g)
{
	uint64_t homeless, refused;

	xsp_ring_memory_counts(g->memory, &homeless, &refused);
	if (a->to_ns == UINT64_MAX && homeless > g->homeless)
		a->totals.homeless += homeless - g->homeless;
	if (refused > g->refused)
		a->totals.refused += refused - g->refused;
	g->homeless = homeless;
	g->refused = refused;
	a->totals.names += g->names.lost + g->stacks.lost;
	a->totals.torn += g->stacks.torn;
	g->names.lost = g->stacks.lost = g->stacks.torn = 0;
}

#define RINGS_OF_A_THREAD 4

/* What is in the rings whose threads are known. */
static int hand_over_rest(struct xsp_agent_rings *a, struct agent *g)
{
	int rc = 0;

	xsp_agent_rings_mark(a, 0);
	for (unsigned i = 0; i < XSP_RINGS_COUNT && rc == 0; i++)
		if (g->ring[i].tid != 0)
			rc = xsp_ring_hand_over(a, g, i, xsp_ring_head(g->memory, i), UINT64_MAX,
						true);
	return rc;
}

int xsp_agent_rings_end(struct xsp_agent_rings *a, pid_t pid)
{
	size_t index;
	struct agent *g = find(a, pid, &index);
	int rc = 0;

	if (g == NULL)
		return 0;
	for (int i = 0; i < RINGS_OF_A_THREAD && rc == 0; i++)
		rc = hand_over_rest(a, g);
	for (unsigned i = 0; i < XSP_RINGS_COUNT; i++) {
		const uint64_t head = xsp_ring_head(g->memory, i);
		if (rc == 0 && g->ring[i].tail != head)
			xsp_ring_pass_over(a, g, i, head);
	}
	count_at_end(a, g);
	free_agent(g);
	memmove(a->agents + index, a->agents + index + 1,
		(--a->count - index) * sizeof(struct agent *));
	/* their places have moved: each ring is looked up again */
	xsp_u64map_free(&a->by_tid);
	for (size_t k = 0; k < a->count; k++)
		for (unsigned i = 0; i < XSP_RINGS_COUNT; i++)
			a->agents[k]->ring[i].tid = 0;
	return rc;
}

struct xsp_agent_rings_totals xsp_agent_rings_totals(struct xsp_agent_rings *a)
{
	for (size_t k = 0; k < a->count; k++) {
		struct agent *g = a->agents[k];
		for (unsigned i = 0; i < XSP_RINGS_COUNT; i++)
			count_lost(a, &g->ring[i], xsp_ring_look(g->memory, i).lost);
		count_at_end(a, g);
	}
	a->totals.uneven = a->tsc.uneven;
	a->totals.bad += a->names.bad;
	a->names.bad = 0;
	return a->totals;
}
