/* SPDX-License-Identifier: BSD-2-Clause */
/* queue.c - pack.h: the thread that stores chunks, so that who drains the rings need not wait for it. */
#include "capture/pack.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"

#define SLOTS 16U /* of a MiB each at most */

struct slot {
	struct xsp_chunk_header header;
	unsigned char *payload;
	size_t capacity;
};

struct xsp_chunk_queue {
	xsp_chunk_store_fn store;
	void *ctx;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned first, count; /* of those that wait; the first one may be being stored */
	bool ends;
	struct slot slots[SLOTS];
};

static void *store_all(void *arg)
{
	struct xsp_chunk_queue *q = arg;

	pthread_mutex_lock(&q->lock);
	for (;;) {
		while (q->count == 0 && !q->ends)
			pthread_cond_wait(&q->changed, &q->lock);
		if (q->count == 0)
			break;
		struct slot *s = &q->slots[q->first];
		const bool hurry = q->count > SLOTS / 2;
		pthread_mutex_unlock(&q->lock);
		q->store(q->ctx, &s->header, s->payload, hurry);
		pthread_mutex_lock(&q->lock);
		q->first = (q->first + 1) % SLOTS;
		q->count--;
		pthread_cond_broadcast(&q->changed);
	}
	pthread_mutex_unlock(&q->lock);
	return NULL;
}

int xsp_chunk_queue_new(xsp_chunk_store_fn store, void *ctx, struct xsp_chunk_queue **out)
{
	struct xsp_chunk_queue *q = calloc(1, sizeof(*q));
	sigset_t all, before;

	if (q == NULL)
		return -ENOMEM;
	q->store = store;
	q->ctx = ctx;
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->changed, NULL);
	sigfillset(&all); /* signals are for the others */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	const int rc = pthread_create(&q->thread, NULL, store_all, q);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc != 0) {
		free(q);
		return -rc;
	}
	*out = q;
	return 0;
}

/* With the lock held. */
static void wait_until(struct xsp_chunk_queue *q, unsigned most)
{
	while (q->count > most)
		pthread_cond_wait(&q->changed, &q->lock);
}

int xsp_chunk_queue_put(struct xsp_chunk_queue *q, const struct xsp_chunk_header *h,
			const void *payload)
{
	pthread_mutex_lock(&q->lock);
	wait_until(q, SLOTS - 1);
	struct slot *s = &q->slots[(q->first + q->count) % SLOTS];
	pthread_mutex_unlock(&q->lock); /* nobody else puts */
	if (xsp_grow(&s->payload, &s->capacity, (size_t)h->length) < 0)
		return -ENOMEM;
	s->header = *h;
	memcpy(s->payload, payload, h->length);
	pthread_mutex_lock(&q->lock);
	q->count++;
	pthread_cond_broadcast(&q->changed);
	pthread_mutex_unlock(&q->lock);
	return 0;
}

void xsp_chunk_queue_wait(struct xsp_chunk_queue *q)
{
	pthread_mutex_lock(&q->lock);
	wait_until(q, 0);
	pthread_mutex_unlock(&q->lock);
}

void xsp_chunk_queue_free(struct xsp_chunk_queue *q)
{
	if (q == NULL)
		return;
	pthread_mutex_lock(&q->lock);
	q->ends = true;
	pthread_cond_broadcast(&q->changed);
	pthread_mutex_unlock(&q->lock);
	pthread_join(q->thread, NULL);
	for (unsigned i = 0; i < SLOTS; i++)
		free(q->slots[i].payload);
	pthread_cond_destroy(&q->changed);
	pthread_mutex_destroy(&q->lock);
	free(q);
}
