/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/kernel/attach_private.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rows/grow.h"

/* ---- making ---- */

/* What the kernel is asked for; `attr` points into it. */
struct request {
	uint64_t offsets[XSP_LINK_SITES], semaphores[XSP_LINK_SITES], cookies[XSP_LINK_SITES];
	char path[32];
	struct xsp_link_create_uprobe_multi attr;
};

static void describe(struct xsp_attach *a, const struct xsp_link *link, struct request *r)
{
	bool any_semaphore = false;

	const size_t count = link->grouped ? 0 : link->count;

	for (size_t i = 0; i < count; i++) {
		r->offsets[i] = link->sites[i].offset;
		r->semaphores[i] = link->sites[i].ref_ctr_offset;
		r->cookies[i] = link->sites[i].cookie;
		any_semaphore |= r->semaphores[i] != 0;
	}
	/* by descriptor: we probe the very file that was read */
	snprintf(r->path, sizeof(r->path), "/proc/self/fd/%d", link->file.fd);
	r->attr = (struct xsp_link_create_uprobe_multi){
		.prog_fd = (uint32_t)bpf_program__fd(xsp_attach_program(a, link->program)),
		.attach_type = xsp_attach_type(a, link->program),
		.path = (uintptr_t)r->path,
		.offsets = (uintptr_t)r->offsets,
		.ref_ctr_offsets = any_semaphore ? (uintptr_t)r->semaphores : 0,
		.cookies = (uintptr_t)r->cookies,
		.count = (uint32_t)count,
		.multi_flags = link->returns && !xsp_attach_is_session(a, link->program)
				       ? XSP_UPROBE_MULTI_RETURN
				       : 0,
		.pid = (uint32_t)link->pid,
	};
}

int xsp_links_make(struct xsp_attach *a, const struct xsp_link *link)
{
	struct request r;

	if (link->count > XSP_LINK_SITES)
		return -E2BIG;
	describe(a, link, &r);
	xsp_journal_probed(a->journal, link->pid, &link->file);
	int slot = xsp_journal_begin(a->journal, &r.attr, link->file.fd);
	int fd = xsp_link_create_uprobe_multi(&r.attr);
	xsp_journal_end(a->journal, slot);
	if (fd >= 0 && a->journal != NULL && (uint32_t)fd > a->journal->top)
		a->journal->top = (uint32_t)fd;
	return fd;
}

int xsp_links_add(struct xsp_attach *a, const struct xsp_link *link)
{
	struct xsp_attach_site *sites = malloc(link->count * sizeof(*sites));

	if (__atomic_load_n(&a->open_links, __ATOMIC_RELAXED) >= a->most_links) {
		free(sites);
		return -EMFILE;
	}
	if (sites == NULL || xsp_grow(&a->links, &a->link_room, a->link_count + 1) < 0) {
		free(sites);
		return -ENOMEM;
	}
	int fd = a->paused ? -1 : xsp_links_make(a, link);
	if (fd < 0 && !a->paused) {
		free(sites);
		return fd;
	}
	memcpy(sites, link->sites, link->count * sizeof(*sites));
	a->links[a->link_count] = *link;
	a->links[a->link_count].fd = fd;
	a->links[a->link_count].perf = NULL;
	a->links[a->link_count].sites = sites;
	a->link_count++;
	__atomic_fetch_add(&a->open_links, fd >= 0, __ATOMIC_RELAXED);
	return 0;
}

size_t xsp_links_most(void)
{
	struct rlimit files;

	return getrlimit(RLIMIT_NOFILE, &files) == 0 ? (size_t)files.rlim_cur / 4 * 3 : 512;
}

int xsp_links_keep_perf(struct xsp_attach *a, struct bpf_link *perf, const struct xsp_link *link)
{
	struct xsp_attach_site *copy = malloc(link->count * sizeof(*copy));

	if (copy == NULL || xsp_grow(&a->links, &a->link_room, a->link_count + 1) < 0) {
		bpf_link__destroy(perf);
		free(copy);
		return -ENOMEM;
	}
	memcpy(copy, link->sites, link->count * sizeof(*copy));
	a->links[a->link_count] = *link;
	a->links[a->link_count].fd = -1;
	a->links[a->link_count].perf = perf;
	a->links[a->link_count].sites = copy;
	a->link_count++;
	return 0;
}

/* ---- closing ---- */

#define CLOSERS 32

struct closing {
	struct xsp_attach *a;
	struct xsp_link *links;
	size_t count;
	size_t next; /* index of the next link; the threads share it */
};

static void close_link(struct xsp_attach *a, struct xsp_link *link)
{
	struct request r;

	if (link->fd >= 0) {
		describe(a, link, &r);
		int slot = xsp_journal_begin(a->journal, &r.attr, link->file.fd);
		close(link->fd);
		xsp_journal_end(a->journal, slot);
		__atomic_fetch_sub(&a->open_links, 1, __ATOMIC_RELAXED);
	}
	if (link->perf != NULL)
		bpf_link__destroy(link->perf);
	free((void *)(uintptr_t)link->sites);
}

static void *close_some(void *argument)
{
	struct closing *c = argument;
	size_t i;

	while ((i = __atomic_fetch_add(&c->next, 1, __ATOMIC_RELAXED)) < c->count)
		close_link(c->a, &c->links[i]);
	return NULL;
}

void xsp_links_close_these(struct xsp_attach *a, struct xsp_link *links, size_t count)
{
	pthread_t threads[CLOSERS];
	size_t started = 0;
	struct closing c = {a, links, count, 0};

	while (started < CLOSERS && started + 1 < c.count &&
	       pthread_create(&threads[started], NULL, close_some, &c) == 0)
		started++;
	close_some(&c); /* all of them, if no thread could be started */
	for (size_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
}

/* Moves the chosen links (NULL: all) to the end; returns how many stay. */
static size_t part(struct xsp_attach *a,
		   bool (*chosen)(const struct xsp_link *link, const void *ctx), const void *ctx)
{
	size_t stay = 0;

	for (size_t i = 0; i < a->link_count; i++) {
		struct xsp_link link = a->links[i];
		if (chosen == NULL || chosen(&link, ctx))
			continue;
		a->links[i] = a->links[stay];
		a->links[stay++] = link;
	}
	return stay;
}

/* ---- closing in the background ---- */

struct xsp_closer {
	struct xsp_attach *a;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct xsp_link *links; /* waiting to be closed */
	size_t count, room;
	bool busy; /* some are being closed */
	bool last; /* no more will come */
};

static void *close_waiting(void *argument)
{
	struct xsp_closer *c = argument;

	pthread_mutex_lock(&c->lock);
	while (c->count > 0 || !c->last) {
		if (c->count == 0) {
			pthread_cond_wait(&c->changed, &c->lock);
			continue;
		}
		struct xsp_link *links = c->links;
		size_t count = c->count;
		c->links = NULL;
		c->count = c->room = 0;
		c->busy = true;
		pthread_mutex_unlock(&c->lock);
		xsp_links_close_these(c->a, links, count);
		free(links);
		pthread_mutex_lock(&c->lock);
		c->busy = false;
		pthread_cond_broadcast(&c->changed);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

bool xsp_links_thread(pthread_t *thread, void *(*run)(void *argument), void *argument)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	const int rc = pthread_create(thread, NULL, run, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc == 0;
}

static struct xsp_closer *start_closer(struct xsp_attach *a)
{
	struct xsp_closer *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->a = a;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->changed, NULL);
	if (xsp_links_thread(&c->thread, close_waiting, c))
		return c;
	free(c);
	return NULL;
}

static void finish_closer(struct xsp_attach *a)
{
	struct xsp_closer *c = a->closer;

	if (c == NULL)
		return;
	pthread_mutex_lock(&c->lock);
	c->last = true;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	pthread_join(c->thread, NULL);
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->lock);
	free(c);
	a->closer = NULL;
}

static bool is_of_process(const struct xsp_link *link, const void *pid)
{
	return link->pid == *(const pid_t *)pid;
}

void xsp_links_retire(struct xsp_attach *a, pid_t pid)
{
	pthread_mutex_lock(&a->lock);
	size_t stay = part(a, is_of_process, &pid), count = a->link_count - stay;
	struct xsp_closer *c = a->closer;

	if (count > 0 && c == NULL)
		c = a->closer = start_closer(a);
	/* no thread: the links stay until the end, and nobody hits them */
	if (count == 0 || c == NULL) {
		pthread_mutex_unlock(&a->lock);
		return;
	}
	pthread_mutex_lock(&c->lock);
	if (xsp_grow(&c->links, &c->room, c->count + count) == 0) {
		memcpy(c->links + c->count, a->links + stay, count * sizeof(*c->links));
		c->count += count;
		a->link_count = stay;
		pthread_cond_broadcast(&c->changed);
	}
	pthread_mutex_unlock(&c->lock);
	pthread_mutex_unlock(&a->lock);
}

void xsp_links_wait(struct xsp_attach *a)
{
	struct xsp_closer *c = a->closer;

	if (c == NULL)
		return;
	pthread_mutex_lock(&c->lock);
	while (c->count > 0 || c->busy)
		pthread_cond_wait(&c->changed, &c->lock);
	pthread_mutex_unlock(&c->lock);
}

void xsp_links_close(struct xsp_attach *a,
		     bool (*chosen)(const struct xsp_link *link, const void *ctx), const void *ctx)
{
	if (chosen == NULL)
		finish_closer(a);
	pthread_mutex_lock(&a->lock);
	size_t stay = part(a, chosen, ctx);
	xsp_links_close_these(a, a->links + stay, a->link_count - stay);
	a->link_count = stay;
	pthread_mutex_unlock(&a->lock);
}

void xsp_links_free(struct xsp_attach *a)
{
	xsp_links_close(a, NULL, NULL);
	free(a->links);
}

/* ---- reporting ---- */

void xsp_attach_activate(struct xsp_attach *a, bool on)
{
	/* While perf events are closed the kernel holds event_mutex for 200 ms and more. A library that is loaded
	 * meanwhile would wait for it, and be traced late. */
	if (on && a->method != XSP_ATTACH_UPROBE_MULTI)
		xsp_links_wait(a);
	__atomic_store_n(&a->bpf->bss->xsp_active, on, __ATOMIC_RELEASE);
	__atomic_store_n(&a->bpf->bss->xsp_paused, 0, __ATOMIC_RELEASE);
	if (on)
		__atomic_store_n(&a->bpf->bss->xsp_gpu_active, on, __ATOMIC_RELEASE);
}

int xsp_attach_ready(struct xsp_attach *a, uint32_t probes)
{
	__atomic_store_n(&a->bpf->data->xsp_ready, probes, __ATOMIC_RELEASE);
	return 0;
}
