/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/kept.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"

void xsp_kept_free(struct xsp_kept *k)
{
	for (size_t t = 0; t < XSP_RECORD_TYPES; t++) {
		for (size_t i = 0; i < k->of[t].count; i++)
			free(k->of[t].rows[i].record);
		xsp_tally_free(&k->of[t]);
	}
}

/* The record's number `index` of strings. */
static const char *text_of(const struct xsp_record *r, unsigned index, size_t *length)
{
	const char *p = (const char *)r + r->fixed;
	uint32_t size;

	for (;; index--) {
		memcpy(&size, p, sizeof(size));
		p += sizeof(size);
		*length = size;
		if (index == 0)
			return p;
		p += size + 1;
	}
}

static uint64_t mapping_key(const struct xsp_capture_mapping *m)
{
	uint64_t key = xsp_u64_mix(xsp_u64_pair(m->pid, m->module) ^ xsp_u64_mix(m->start));

	key = xsp_u64_mix(key ^ m->end);
	return xsp_u64_mix(key ^ m->offset);
}

uint64_t xsp_kept_key(const struct xsp_record *r)
{
	const void *plain = r + 1;
	const uint32_t *ids = plain; /* most begin with one */
	size_t length;

	switch (r->type) {
	case XSP_RECORD_INFO: {
		const char *key = text_of(r, 0, &length);
		return xsp_text_hash(key, length);
	}
	case XSP_RECORD_THREAD:
		return xsp_u64_pair(ids[0], ids[1]);
	case XSP_RECORD_MAPPING:
		return mapping_key(plain);
	case XSP_RECORD_CLOCK:
		return ((const struct xsp_capture_clock *)plain)->monotonic_ns;
	case XSP_RECORD_WINDOW:
		return ((const struct xsp_capture_window *)plain)->start_ns;
	case XSP_RECORD_STATS:
		return 0;
	case XSP_RECORD_NAME:
		return ((const struct xsp_disk_name *)r)->hash;
	case XSP_RECORD_PYTHON:
		return ((const struct xsp_disk_python *)r)->id;
	default:
		return ids[0];
	}
}

struct kept *xsp_kept_find(const struct xsp_kept *k, enum xsp_record_type type, uint64_t key)
{
	return xsp_tally_find(&k->of[type], key);
}

/* An empty name of a process or thread leaves the one before. */
static bool says_nothing(const struct xsp_record *r)
{
	size_t length;

	if (r->type != XSP_RECORD_PROCESS && r->type != XSP_RECORD_THREAD)
		return false;
	text_of(r, 0, &length);
	return length == 0;
}

static bool is_same(const struct xsp_record *a, const struct xsp_record *b)
{
	return a->size == b->size && memcmp(a, b, a->size) == 0;
}

static int replace(struct xsp_kept *k, uint64_t key, const struct xsp_record *record,
		   uint32_t now_s)
{
	struct xsp_record *copy = malloc(record->size);
	struct kept *one =
		copy != NULL ? xsp_tally_row(&k->of[record->type], key, &(struct kept){.key = key})
			     : NULL;

	if (one == NULL) {
		free(copy);
		return -ENOMEM;
	}
	memcpy(copy, record, record->size);
	if (one->record != NULL)
		k->bytes -= one->record->size;
	else
		k->count++;
	free(one->record);
	one->record = copy;
	one->put_s = now_s;
	k->bytes += copy->size;
	return 0;
}

int xsp_kept_put(struct xsp_kept *k, const struct xsp_record *record)
{
	if (record->type >= XSP_RECORD_TYPES)
		return 0;
	const uint64_t key = xsp_kept_key(record);
	struct kept *one = xsp_kept_find(k, record->type, key);
	const uint32_t now_s = (uint32_t)(xsp_now_ns() / 1000000000);

	if (one == NULL)
		return replace(k, key, record, now_s);
	one->put_s = now_s;
	one->over = false;
	return says_nothing(record) || is_same(one->record, record)
		       ? 0
		       : replace(k, key, record, now_s);
}

void xsp_kept_drop(struct xsp_kept *k, enum xsp_record_type type, struct kept *one)
{
	struct kept *last = &k->of[type].rows[--k->of[type].count];

	xsp_tally_forget(&k->of[type], one->key);
	k->bytes -= one->record->size;
	k->count--;
	free(one->record);
	if (one == last)
		return;
	*one = *last;
	/* a key that is there: takes no memory */
	xsp_tally_alias(&k->of[type], one->key, one);
}

/* ---- what events define ---- */

static int put_thread(struct xsp_kept *k, const struct xsp_event_task *e)
{
	struct {
		struct xsp_disk_thread thread;
		uint32_t length;
		char comm[sizeof(e->comm) + 4];
	} r = {.thread = {.head = {.type = XSP_RECORD_THREAD,
				   .fixed = sizeof(r.thread),
				   .size = sizeof(r)},
			  .pid = e->head.tgid,
			  .tid = e->head.tid,
			  .ns_tid = e->ns_tid},
	       .length = (uint32_t)strnlen(e->comm, sizeof(e->comm))};

	memcpy(r.comm, e->comm, r.length);
	return xsp_kept_put(k, &r.thread.head);
}

int xsp_kept_task(struct xsp_kept *k, const struct xsp_event_task *e)
{
	struct kept *thread;

	if (e->head.size < sizeof(*e))
		return 0;
	if (e->what != XSP_TASK_EXIT)
		return put_thread(k, e);
	thread = xsp_kept_find(k, XSP_RECORD_THREAD, xsp_u64_pair(e->head.tgid, e->head.tid));
	if (thread != NULL)
		thread->over = true;
	return 0;
}

/* ---- time ---- */

void xsp_kept_begin_at(struct xsp_kept *k, uint64_t start_ns)
{
	uint64_t before = 0;

	for (size_t i = 0; i < k->of[XSP_RECORD_CLOCK].count; i++) {
		const uint64_t at = k->of[XSP_RECORD_CLOCK].rows[i].key;
		before = at <= start_ns && at > before ? at : before;
	}
	for (size_t i = k->of[XSP_RECORD_CLOCK].count; i > 0; i--)
		if (k->of[XSP_RECORD_CLOCK].rows[i - 1].key < before)
			xsp_kept_drop(k, XSP_RECORD_CLOCK, &k->of[XSP_RECORD_CLOCK].rows[i - 1]);
	for (size_t i = k->of[XSP_RECORD_WINDOW].count; i > 0; i--) {
		struct kept *one = &k->of[XSP_RECORD_WINDOW].rows[i - 1];
		const struct xsp_capture_window *w = (const void *)(one->record + 1);
		if (w->end_ns <= start_ns)
			xsp_kept_drop(k, XSP_RECORD_WINDOW, one);
	}
}
