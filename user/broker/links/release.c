/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * release.c - releases some probes while the others go on, and pauses all. Closing a link waits for the kernel's grace
 * periods, so a thread of its own does it.
 */
#include "broker/kernel/attach_private.h"
#include "base/clock.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct xsp_release {
	pthread_t thread;
	bool started; /* and not joined */
	int (*work)(struct xsp_attach *a);
	uint32_t *probes; /* to be released */
	size_t count;
	uint64_t began_ns;
	_Atomic uint64_t took_ns;
	uint64_t unasked_ns; /* 0: the recorder asked for the last pause */
	_Atomic int error;
	_Atomic bool busy;
};

/* ---- the state of each probe in the kernel ---- */

static int update_kernel(const struct xsp_attach *a, uint32_t probe)
{
	return xsp_map_put(a->bpf->maps.xsp_probe_states, &probe, &a->states[probe]);
}

static void set_flags(struct xsp_attach *a, uint32_t probe, uint32_t flags)
{
	a->states[probe].flags = flags;
	update_kernel(a, probe);
}

int xsp_attach_prices(struct xsp_attach *a, uint32_t first, const struct xsp_probe_price *prices,
		      size_t count)
{
	int rc = 0;

	if (a->states == NULL)
		return 0;
	if (first > a->state_count || count > a->state_count - first)
		return -E2BIG;
	pthread_mutex_lock(&a->lock);
	for (uint32_t i = 0; i < count && rc == 0; i++) {
		a->states[first + i].entry_ns = prices[i].entry_ns;
		a->states[first + i].exit_ns = prices[i].exit_ns;
		rc = update_kernel(a, first + i);
	}
	pthread_mutex_unlock(&a->lock);
	return rc;
}

size_t xsp_release_sites(const struct xsp_attach *a, struct xsp_attach_site *sites, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		uint32_t probe = XSP_COOKIE_PROBE(sites[i].cookie);
		uint32_t flags = probe < a->state_count ? a->states[probe].flags : 0;
		if (flags & XSP_PROBE_RELEASED)
			continue;
		sites[kept] = sites[i];
		sites[kept].cookie &= ~XSP_COOKIE_PHASE;
		if (flags & XSP_PROBE_PHASE)
			sites[kept].cookie |= XSP_COOKIE_PHASE;
		kept++;
	}
	return kept;
}

void xsp_attach_clear_released(struct xsp_attach *a, const struct xsp_attach_site *sites,
			       size_t count, uint8_t *unprobed)
{
	pthread_mutex_lock(&a->lock);
	for (size_t i = 0; i < count; i++) {
		struct xsp_attach_site site = sites[i];
		if (a->paused || xsp_release_sites(a, &site, 1) == 0)
			unprobed[i] = 0;
	}
	pthread_mutex_unlock(&a->lock);
}

#define BATCH 256U

long xsp_attach_unseen(struct xsp_attach *a, struct xsp_attach_unseen *rows, size_t room)
{
	int fd = bpf_map__fd(a->bpf->maps.xsp_unseen), rc = 0;
	uint64_t keys[BATCH], values[BATCH];
	uint32_t token;
	size_t n = 0;
	void *from = NULL;

	while (rc == 0 && n < room) {
		uint32_t count = room - n < BATCH ? (uint32_t)(room - n) : BATCH;
		rc = bpf_map_lookup_and_delete_batch(fd, from, &token, keys, values, &count, NULL);
		/* ENOSPC: there is too little room for a whole bucket */
		if (rc != 0 && errno != ENOENT)
			return n > 0 ? (long)n : -errno;
		for (uint32_t i = 0; i < count; i++, n++)
			rows[n] = (struct xsp_attach_unseen){.tid = (uint32_t)(keys[i] >> 32),
							     .probe = (uint32_t)keys[i],
							     .ns = values[i]};
		from = &token;
	}
	return (long)n;
}

/* ---- release ---- */

/* Does its program look at the probe's state (xsp_serves() of bpf/brake.h)? */
static bool looks(const struct xsp_link *link)
{
	switch (link->program) {
	case XSP_PROGRAM_SPAN:
	case XSP_PROGRAM_DETAIL:
	case XSP_PROGRAM_DETAIL_LARGE:
	case XSP_PROGRAM_HEAP:
		return !link->grouped;
	default:
		return xsp_program_is_return(link->program) && !link->grouped;
	}
}

static bool any_marked(const struct xsp_attach *a, const struct xsp_link *link, const bool *probes)
{
	for (size_t i = 0; i < link->count; i++) {
		uint32_t probe = XSP_COOKIE_PROBE(link->sites[i].cookie);
		if (probe < a->state_count && probes[probe])
			return true;
	}
	return false;
}

/* A probe has one phase, but its sites may be in several links, which have other probes too. All links that are
 * connected so are swapped together. Marks them and their probes. */
static void mark(const struct xsp_attach *a, bool *links, bool *probes)
{
	for (bool more = true; more;) {
		more = false;
		for (size_t i = 0; i < a->link_count; i++) {
			const struct xsp_link *l = &a->links[i];
			if (links[i] || !looks(l) || !any_marked(a, l, probes))
				continue;
			links[i] = more = true;
			for (size_t j = 0; j < l->count; j++) {
				uint32_t probe = XSP_COOKIE_PROBE(l->sites[j].cookie);
				if (probe < a->state_count)
					probes[probe] = true;
			}
		}
	}
}

/* Adds the link again, with the other phase and without sites that are released or whose code has changed. */
static int add_twin(struct xsp_attach *a, size_t index, const struct xsp_u64map *changed)
{
	struct xsp_attach_site sites[XSP_LINK_SITES];
	struct xsp_link twin = a->links[index];

	if (twin.fd < 0 && twin.perf != NULL) /* a perf event of one site */
		return 0;
	memcpy(sites, twin.sites, twin.count * sizeof(*sites));
	twin.count = xsp_release_sites(a, sites, twin.count);
	twin.count = xsp_changed_code_drop(changed, twin.pid, sites, twin.count);
	for (size_t i = 0; i < twin.count; i++)
		sites[i].cookie ^= XSP_COOKIE_PHASE;
	twin.sites = sites;
	if (twin.count == 0)
		return 0;
	int rc = xsp_links_add(a, &twin);
	return rc == -ESRCH ? 0 : rc; /* its process has ended */
}

/*
 * Waits until every program that runs at a site now has ended. The kernel waits for that before it removes a uprobe, so
 * we put one of our own in and take it out.
 */
static void wait_for_programs(struct xsp_attach *a, const struct xsp_link *own)
{
	int fd = own->count > 0 ? xsp_links_make(a, own) : -ENOENT;

	if (fd >= 0)
		close(fd);
	else
		nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
}

/*
 * Empties a hash and returns how many keys it had. Goes from key to key: the search for a first one starts at the first
 * bucket each time, which takes minutes for hundreds of thousands of keys.
 */
static uint64_t forget_keys(const struct bpf_map *map)
{
	unsigned char key[32], next[sizeof(key)];
	const int fd = bpf_map__fd(map);
	uint64_t n = 0;
	bool more =
		bpf_map__key_size(map) <= sizeof(key) && bpf_map_get_next_key(fd, NULL, next) == 0;

	while (more) {
		memcpy(key, next, sizeof(key));
		more = bpf_map_get_next_key(fd, key, next) == 0;
		n += bpf_map_delete_elem(fd, key) == 0;
	}
	return n;
}

static void flip(struct xsp_attach *a, const bool *probes, bool done)
{
	for (uint32_t p = 0; p < a->state_count; p++) {
		uint32_t flags = a->states[p].flags;
		if (probes[p] && !(flags & XSP_PROBE_RELEASED))
			set_flags(a, p,
				  done ? (flags ^ XSP_PROBE_PHASE) & ~(uint32_t)XSP_PROBE_SWAP
				       : flags | XSP_PROBE_SWAP);
	}
}

/* Every hit of the other probes is reported once: brake.h says how. */
static void swap(struct xsp_attach *a, const bool *probes)
{
	struct xsp_link own = {.program = XSP_PROGRAM_SPAN,
			       .pid = getpid(),
			       .file = {.fd = a->self},
			       .sites = &a->own_site,
			       .count = a->self >= 0};

	flip(a, probes, false);
	wait_for_programs(a, &own); /* nobody leaves it to the old link any more */
	flip(a, probes, true);
}

/* Moves marked links out of the list; the new ones after the first `old` stay. */
static size_t remove_marked(struct xsp_attach *a, const bool *marked, size_t old,
			    struct xsp_link *out)
{
	size_t kept = 0, removed = 0;

	for (size_t i = 0; i < a->link_count; i++) {
		/* a perf event goes only if its site is released */
		bool goes =
			i < old && marked[i] &&
			(a->links[i].perf == NULL ||
			 xsp_release_sites(
				 a, &(struct xsp_attach_site){.cookie = a->links[i].sites->cookie},
				 1) == 0);
		if (goes)
			out[removed++] = a->links[i];
		else
			a->links[kept++] = a->links[i];
	}
	a->link_count = kept;
	return removed;
}

/* Adds the twins of all marked links, except sites whose code has changed. */
static int add_twins(struct xsp_attach *a, const bool *links, size_t count)
{
	struct xsp_u64map changed = {0};
	int rc = 0;

	for (size_t i = 0; i < count && rc == 0; i++)
		if (links[i])
			rc = xsp_changed_code_look(a, &a->links[i],
						   a->paused ? XSP_VERIFY_CODE : XSP_VERIFY_LINKED,
						   &changed);
	for (size_t i = 0; i < count && rc == 0; i++)
		if (links[i])
			rc = add_twin(a, i, &changed);
	xsp_u64map_free(&changed);
	return rc;
}

static int work_release(struct xsp_attach *a)
{
	struct xsp_release *r = a->release;
	int rc = 0;

	pthread_mutex_lock(&a->lock);
	size_t old = a->link_count, removed = 0;
	bool *links = calloc(old + 1, sizeof(*links));
	bool *probes = calloc(a->state_count, sizeof(*probes));
	struct xsp_link *gone = calloc(old + 1, sizeof(*gone));
	if (links == NULL || probes == NULL || gone == NULL) {
		rc = -ENOMEM;
		goto out;
	}
	for (size_t i = 0; i < r->count; i++)
		probes[r->probes[i]] = true;
	mark(a, links, probes);
	rc = add_twins(a, links, old);
	if (rc < 0) { /* all links stay; released probes report nothing */
		xsp_links_close_these(a, a->links + old, a->link_count - old);
		a->link_count = old;
		goto out;
	}
	if (a->link_count > old && !a->paused)
		swap(a, probes);
	else if (a->link_count > old)
		flip(a, probes, true);
	removed = remove_marked(a, links, old, gone);
out:
	pthread_mutex_unlock(&a->lock);
	if (gone != NULL)
		xsp_links_close_these(a, gone, removed);
	forget_keys(a->bpf->maps.xsp_swaps);
	free(links);
	free(probes);
	free(gone);
	if (rc == 0 && a->method == XSP_ATTACH_TRACEFS)
		rc = -EOPNOTSUPP;
	return rc;
}

/* ---- pause and resume ---- */

static bool is_out(const struct xsp_link *l)
{
	return l->fd < 0 && l->perf == NULL;
}

/* NULL: no memory. */
static struct xsp_attach_site *copy_sites(const struct xsp_link *l)
{
	struct xsp_attach_site *sites = calloc(l->count, sizeof(*sites));

	if (sites != NULL)
		memcpy(sites, l->sites, l->count * sizeof(*sites));
	return sites;
}

/* Closes the chosen links but keeps them in the list, to be made again. -EOPNOTSUPP: some cannot be. */
static int detach_links(struct xsp_attach *a,
			bool (*chosen)(const struct xsp_link *link, const void *ctx),
			const void *ctx)
{
	size_t n = 0;
	int rc = 0;

	pthread_mutex_lock(&a->lock);
	struct xsp_link *gone = calloc(a->link_count + 1, sizeof(*gone));
	for (size_t i = 0; i < a->link_count && gone != NULL; i++) {
		struct xsp_link *l = &a->links[i];
		if (is_out(l) || !chosen(l, ctx))
			continue;
		if (l->perf != NULL)
			rc = -EOPNOTSUPP;
		gone[n] = *l;
		gone[n++].sites = copy_sites(l); /* for the journal */
		l->fd = -1;
		l->perf = NULL;
	}
	pthread_mutex_unlock(&a->lock);
	if (gone == NULL)
		return -ENOMEM;
	xsp_links_close_these(a, gone, n);
	free(gone);
	return rc;
}

/* Compares the code of links that are out, of one process or of all (pid 0). Call it with the lock. */
static int look_at_what_is_out(struct xsp_attach *a, pid_t pid, enum xsp_verify question,
			       struct xsp_u64map *changed)
{
	int rc = 0;

	for (size_t i = 0; i < a->link_count && rc == 0; i++)
		if (is_out(&a->links[i]) && (pid == 0 || a->links[i].pid == pid))
			rc = xsp_changed_code_look(a, &a->links[i], question, changed);
	return rc;
}

/* Makes all links that are out. Call it with the lock. */
static int put_in(struct xsp_attach *a, const struct xsp_u64map *changed)
{
	int rc = 0;

	for (size_t i = 0; i < a->link_count; i++) {
		struct xsp_link *l = &a->links[i];
		if (!is_out(l) || l->grouped)
			continue;
		l->count = xsp_changed_code_drop(
			changed, l->pid, (struct xsp_attach_site *)(uintptr_t)l->sites, l->count);
		if (l->count == 0 || a->paused)
			continue;
		l->fd = xsp_links_make(a, l);
		if (l->fd >= 0) {
			__atomic_fetch_add(&a->open_links, 1, __ATOMIC_RELAXED);
			continue;
		}
		if (l->fd != -ESRCH && rc == 0)
			rc = l->fd;
		l->fd = -1;
	}
	return rc;
}

/* ---- release from one process ---- */

struct from_process {
	pid_t pid;
	struct xsp_u64map changed;
};

static bool is_to_go(const struct xsp_link *link, const void *ctx)
{
	const struct from_process *c = ctx;

	return link->pid == c->pid && (link->grouped || xsp_changed_code_any(&c->changed, link));
}

int xsp_attach_release_from(struct xsp_attach *a, pid_t pid, const uint32_t *probes, size_t count,
			    bool again)
{
	struct xsp_u64map changed = {0};
	struct from_process c = {.pid = pid};

	if (again && a->method != XSP_ATTACH_UPROBE_MULTI)
		return -EOPNOTSUPP;
	int rc = xsp_changed_code_set(pid, probes, count, &c.changed);
	xsp_release_finish(a); /* a change works on the same links */
	if (rc == 0 && !again)
		rc = xsp_changed_code_set(pid, probes, count, &changed);
	if (rc == 0)
		rc = detach_links(a, is_to_go, &c);
	if (rc == -EOPNOTSUPP && a->method == XSP_ATTACH_PERF_EVENT)
		rc = 0; /* each event had one site, of a probe that goes */
	pthread_mutex_lock(&a->lock);
	const size_t told =
		a->changed_count; /* the caller compares the code again, and reports it */
	if (rc == 0)
		rc = look_at_what_is_out(a, pid, XSP_VERIFY_LINKED, &changed);
	a->changed_count = told;
	if (rc == 0)
		rc = put_in(a, &changed);
	pthread_mutex_unlock(&a->lock);
	xsp_u64map_free(&c.changed);
	xsp_u64map_free(&changed);
	return rc;
}

/* ---- pause everything ---- */

/* The agent's sites stay. */
static bool is_to_pause(const struct xsp_link *link, const void *ctx)
{
	(void)ctx;
	return link->program != XSP_PROGRAM_GPU_BATCH && link->program != XSP_PROGRAM_GPU_WANT;
}

/* What threads had open is void after a pause, and so is what was allocated: nobody saw whether it was freed. */
static void forget_threads(struct xsp_attach *a)
{
	struct bpf_map *const maps[] = {a->bpf->maps.xsp_thread_states, a->bpf->maps.xsp_pending,
					a->bpf->maps.xsp_pointers, a->bpf->maps.xsp_heap_calls,
					a->bpf->maps.xsp_heap_blocks};

	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++)
		forget_keys(maps[i]);
	a->objects_dropped += forget_keys(a->bpf->maps.xsp_objects);
}

static int work_pause(struct xsp_attach *a)
{
	return detach_links(a, is_to_pause, NULL);
}

/* The agent hands over what it has. */
static bool is_to_suspend(const struct xsp_link *link, const void *ctx)
{
	(void)ctx;
	return link->program != XSP_PROGRAM_GPU_BATCH;
}

static int work_suspend(struct xsp_attach *a)
{
	xsp_profile_suspend(a);
	forget_keys(a->bpf->maps.xsp_thread_waits);
	return detach_links(a, is_to_suspend, NULL);
}

/* Puts nothing in that was not compared: the code may have changed during the pause. */
static int work_resume(struct xsp_attach *a)
{
	struct xsp_u64map changed = {0};

	forget_threads(a);
	pthread_mutex_lock(&a->lock);
	int rc = look_at_what_is_out(a, 0, XSP_VERIFY_CODE, &changed);
	a->paused = rc < 0; /* puts nothing in that was not compared */
	rc = rc < 0 ? rc : put_in(a, &changed);
	pthread_mutex_unlock(&a->lock);
	xsp_u64map_free(&changed);
	if (rc == 0 && a->suspended)
		rc = xsp_profile_resume(a);
	a->suspended = a->suspended && rc < 0;
	return rc;
}

/* ---- on a thread ---- */

static void *run(void *argument)
{
	struct xsp_attach *a = argument;
	struct xsp_release *r = a->release;

	r->error = r->work(a);
	r->took_ns = xsp_now_ns() - r->began_ns;
	r->busy = false;
	return NULL;
}

/* If no thread can be started (RLIMIT_NPROC, pids.max), the caller waits. */
static void begin(struct xsp_attach *a, int (*work)(struct xsp_attach *a))
{
	struct xsp_release *r = a->release;

	xsp_release_finish(a);
	r->work = work;
	r->began_ns = xsp_now_ns();
	r->busy = true;
	r->started = xsp_links_thread(&r->thread, run, a);
	if (!r->started)
		run(a);
}

static bool is_busy(const struct xsp_attach *a)
{
	return a->release == NULL || a->release->busy;
}

int xsp_attach_release(struct xsp_attach *a, const uint32_t *probes, size_t count)
{
	struct xsp_release *r = a->release;

	if (is_busy(a))
		return -EBUSY;
	uint32_t *copy = reallocarray(r->probes, count + 1, sizeof(*copy));
	if (copy == NULL)
		return -ENOMEM;
	r->probes = copy;
	r->count = 0;
	pthread_mutex_lock(&a->lock);
	for (size_t i = 0; i < count; i++) {
		if (probes[i] >= a->state_count)
			continue;
		set_flags(a, probes[i], a->states[probes[i]].flags | XSP_PROBE_RELEASED);
		copy[r->count++] = probes[i];
	}
	pthread_mutex_unlock(&a->lock);
	begin(a, work_release);
	return 0;
}

static int begin_pause(struct xsp_attach *a, int (*work)(struct xsp_attach *a))
{
	if (is_busy(a))
		return -EBUSY;
	a->release->unasked_ns = 0;
	/* one of the two is always set: new processes are reported all the time */
	__atomic_store_n(&a->bpf->bss->xsp_paused, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&a->bpf->bss->xsp_active, 0, __ATOMIC_RELEASE);
	pthread_mutex_lock(&a->lock);
	a->paused = true;
	pthread_mutex_unlock(&a->lock);
	begin(a, work);
	return 0;
}

int xsp_attach_pause(struct xsp_attach *a)
{
	return begin_pause(a, work_pause);
}

int xsp_attach_suspend(struct xsp_attach *a)
{
	if (is_busy(a))
		return -EBUSY;
	a->suspended = true;
	xsp_attach_samples(a, false);
	xsp_attach_waits(a, false);
	return begin_pause(a, work_suspend);
}

void xsp_attach_pause_unasked(struct xsp_attach *a)
{
	const uint32_t probes = a->bpf->data->xsp_ready; /* ~0: the recording has not begun */

	if (is_busy(a) || a->states == NULL || a->paused || probes == 0 || probes == UINT32_MAX ||
	    a->method != XSP_ATTACH_UPROBE_MULTI)
		return;
	if (xsp_attach_pause(a) == 0) /* everything was recorded up to here, and nothing after */
		a->release->unasked_ns = a->release->began_ns;
}

int xsp_attach_resume(struct xsp_attach *a)
{
	if (is_busy(a))
		return -EBUSY;
	begin(a, work_resume);
	return 0;
}

struct xsp_attach_change xsp_attach_change(const struct xsp_attach *a)
{
	const struct xsp_release *r = a->release;

	if (r == NULL)
		return (struct xsp_attach_change){0};
	return (struct xsp_attach_change){.busy = r->busy,
					  .error = r->error,
					  .took_ns = r->took_ns,
					  .unasked_ns = r->unasked_ns,
					  .changed = r->busy ? 0 : a->changed_count};
}

int xsp_release_new(struct xsp_attach *a, uint32_t probes)
{
	a->release = calloc(1, sizeof(*a->release));
	a->states = calloc(probes, sizeof(*a->states));
	a->state_count = a->states != NULL ? probes : 0;
	return a->release != NULL && a->states != NULL ? 0 : -ENOMEM;
}

void xsp_release_finish(struct xsp_attach *a)
{
	if (a->release == NULL || !a->release->started)
		return;
	pthread_join(a->release->thread, NULL);
	a->release->started = false;
}

void xsp_release_free(struct xsp_attach *a)
{
	if (a->release == NULL)
		return;
	free(a->release->probes);
	free(a->release);
	free(a->states);
}
