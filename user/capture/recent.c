/* SPDX-License-Identifier: BSD-2-Clause */
/* recent.c - chunks of events, of which the oldest are dropped, and the marks between them. */
#include "capture/recent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/rows/grow.h"
#include "capture/kept.h"
#include "xsptrace/programs.h"

/* A snapshot may be longer than was asked for by a part of this size. */
#define MARKS_AN_AGE 16
#define PERIOD_NS 250000000ULL /* at least between two marks */
#define MARKS_MOST 128 /* then every other one goes, and they come half as often */
#define NAMES_LEAST (64ULL << 20) /* of definitions there may be so many bytes, or SIZE */
#define EMPTY_MOST 8 /* chunks that are kept for the next burst */

int xsp_recent_new(const struct xsp_recent_options *o, struct xsp_recent **out)
{
	struct xsp_recent *r = *out = calloc(1, sizeof(*r));

	if (r == NULL)
		return -ENOMEM;
	r->options = *o;
	r->period_ns = o->age_ns / MARKS_AN_AGE;
	if (r->period_ns < PERIOD_NS)
		r->period_ns = PERIOD_NS;
	return 0;
}

static void clear_mark(struct xsp_recent *r, struct recent_mark *m)
{
	r->mark_bytes -= m->size;
	free(m->state);
}

void xsp_recent_free(struct xsp_recent *r)
{
	if (r == NULL)
		return;
	for (size_t i = r->first; i < r->count; i++)
		munmap(r->chunks[i].data, XSP_CHUNK_SIZE);
	for (size_t i = 0; i < r->empty_count; i++)
		munmap(r->empty[i], XSP_CHUNK_SIZE);
	for (size_t i = 0; i < r->mark_count; i++)
		clear_mark(r, &r->marks[i]);
	xsp_kept_free(&r->kept);
	free(r->chunks);
	free(r->empty);
	free(r->marks);
	free(r);
}

/* ---- chunks ---- */

unsigned char *xsp_recent_chunk(struct xsp_recent *r)
{
	if (r == NULL)
		return malloc(XSP_CHUNK_SIZE);
	if (r->empty_count > 0)
		return r->empty[--r->empty_count];
	void *p = mmap(NULL, XSP_CHUNK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	r->made++;
	return p;
}

void xsp_recent_give_back(struct xsp_recent *r, unsigned char *chunk)
{
	if (r == NULL) {
		free(chunk);
	} else if (chunk != NULL &&
		   (r->empty_count >= EMPTY_MOST ||
		    XSP_APPEND(r->empty, r->empty_room, r->empty_count, chunk) < 0)) {
		munmap(chunk, XSP_CHUNK_SIZE);
		r->made--;
	}
}

static void drop_marks(struct xsp_recent *r, size_t n)
{
	r->cut = true;
	for (size_t i = 0; i < n; i++)
		clear_mark(r, &r->marks[i]);
	memmove(r->marks, r->marks + n, (r->mark_count - n) * sizeof(*r->marks));
	r->mark_count -= n;
	if (r->mark_count > 0)
		xsp_kept_begin_at(&r->kept, r->marks[0].time_ns);
}

static void drop_chunk(struct xsp_recent *r)
{
	const struct xsp_recent_chunk *c = &r->chunks[r->first++];

	r->cut = true;
	r->dropped += c->events;
	if (c->last_ns > r->dropped_ns)
		r->dropped_ns = c->last_ns;
	xsp_recent_give_back(r, c->data);
	if (r->first < r->count / 2)
		return;
	memmove(r->chunks, r->chunks + r->first, (r->count - r->first) * sizeof(*r->chunks));
	r->search.at -= r->search.at < r->first ? r->search.at : r->first;
	r->search.until -= r->search.until < r->first ? r->search.until : r->first;
	r->count -= r->first;
	r->first = 0;
}

static uint64_t bytes_of(const struct xsp_recent *r)
{
	return (r->made - r->empty_count) * XSP_CHUNK_SIZE + r->mark_bytes;
}

/* Definitions take of the limit, too, but half of it is for events. */
static uint64_t limit_of(const struct xsp_recent *r)
{
	const uint64_t definitions = kept_memory(&r->kept);

	return r->options.bytes -
	       (definitions < r->options.bytes / 2 ? definitions : r->options.bytes / 2);
}

static void keep_size(struct xsp_recent *r)
{
	size_t n = 0;

	/* with the one that is handed out next */
	while (r->options.bytes > 0 && r->first < r->count &&
	       bytes_of(r) + XSP_CHUNK_SIZE > limit_of(r))
		drop_chunk(r);
	while (n < r->mark_count && r->marks[n].time_ns <= r->dropped_ns)
		n++;
	if (n > 0)
		drop_marks(r, n);
}

unsigned char *xsp_recent_take(struct xsp_recent *r, const struct xsp_recent_chunk *c)
{
	struct xsp_recent_chunk counted = *c;
	const struct xsp_event *e;

	counted.events = 0;
	for (size_t at = 0; (e = xsp_chunk_event(c->data, c->used, at)) != NULL; at += e->size) {
		counted.events++;
		if (e->kind == XSP_EVENT_TASK)
			xsp_kept_task(&r->kept, (const void *)e);
	}
	if (XSP_APPEND(r->chunks, r->room, r->count, counted) < 0)
		return c->data; /* its events are lost, and the list of chunks is small */
	if (r->search.on && !r->search.looked)
		xsp_recent_look_at(r, c->data, c->used);
	keep_size(r);
	return xsp_recent_chunk(r);
}

int xsp_recent_take_record(struct xsp_recent *r, const struct xsp_record *record)
{
	return xsp_kept_put(&r->kept, record);
}

bool xsp_recent_is_full(struct xsp_recent *r)
{
	const uint64_t most = r->options.bytes > NAMES_LEAST ? r->options.bytes : NAMES_LEAST;
	const bool full = r->options.bytes > 0 && kept_memory(&r->kept) > most;

	r->names_lost += full;
	return full;
}

void xsp_recent_name_sent(struct xsp_recent *r, uint64_t hash)
{
	struct kept *one = xsp_kept_find(&r->kept, XSP_RECORD_NAME, hash);

	if (one == NULL || one->sent)
		return;
	one->sent = true;
	one->sent_again = r->names_sent++ >= XSP_NAMES_MOST;
}

/* ---- marks ---- */

bool xsp_recent_wants_mark(const struct xsp_recent *r, uint64_t now_ns)
{
	/* at full speed and with little memory, marks may go faster than they come */
	const uint64_t period = r->mark_count < 2 ? PERIOD_NS : r->period_ns;

	return r->last_mark_ns == 0 || now_ns - r->last_mark_ns >= period;
}

static void thin_out(struct xsp_recent *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->mark_count; i++)
		if (i % 2 == 0)
			r->marks[n++] = r->marks[i];
		else
			clear_mark(r, &r->marks[i]);
	r->mark_count = n;
	r->period_ns *= 2;
}

/* A snapshot begins at the last mark that is old enough. */
static void keep_age(struct xsp_recent *r, uint64_t now_ns)
{
	size_t n = 0;

	if (r->options.age_ns == 0 || now_ns < r->options.age_ns)
		return;
	while (n + 1 < r->mark_count && r->marks[n + 1].time_ns <= now_ns - r->options.age_ns)
		n++;
	if (n > 0)
		drop_marks(r, n);
	while (r->first < r->count && r->chunks[r->first].last_ns < r->marks[0].time_ns)
		drop_chunk(r);
}

int xsp_recent_mark(struct xsp_recent *r, uint64_t now_ns, const void *state, size_t size)
{
	const struct kept *stats = xsp_kept_find(&r->kept, XSP_RECORD_STATS, 0);
	struct recent_mark m = {.time_ns = now_ns, .state = malloc(size + 1), .size = size};

	if (m.state == NULL)
		return -ENOMEM;
	if (size > 0)
		memcpy(m.state, state, size);
	if (stats != NULL)
		memcpy(&m.stats, stats->record + 1, sizeof(m.stats));
	if (r->mark_count >= MARKS_MOST)
		thin_out(r);
	if (XSP_APPEND(r->marks, r->mark_room, r->mark_count, m) < 0) {
		free(m.state);
		return -ENOMEM;
	}
	r->mark_bytes += size;
	r->last_mark_ns = now_ns;
	keep_age(r, now_ns);
	return 0;
}

struct xsp_recent_totals xsp_recent_totals(const struct xsp_recent *r)
{
	return (struct xsp_recent_totals){
		.bytes = bytes_of(r),
		.chunks = r->count - r->first,
		.records = r->kept.count,
		.record_bytes = kept_memory(&r->kept),
		.pruned = r->search.pruned,
		.names_lost = r->names_lost,
		.dropped = r->dropped,
		.since_ns = !r->cut		? 0
			    : r->mark_count > 0 ? r->marks[0].time_ns
						: r->dropped_ns,
	};
}
