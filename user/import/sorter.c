/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/sorter.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file_io.h"
#include "base/rows/grow.h"
#include "base/files/new_file.h"

#define UNIT 8U /* records are at multiples of it */
#define OUT_SIZE ((size_t)1 << 20)
#define WINDOW_LEAST (4 * (size_t)XSP_SORTED_MAX)

struct entry {
	int64_t time_ns;
	uint32_t at; /* in units */
};

/* A sorted run in the file. */
struct run {
	uint64_t at, end; /* bytes that have not been read yet */
	unsigned char *window;
	size_t from, filled;
};

struct xsp_sorter {
	xsp_sorter_compare_fn compare;
	char *path; /* a name in the folder, which the file never gets */
	unsigned char *memory;
	size_t capacity, used;
	struct entry *entries;
	size_t count, entry_capacity;
	bool rising; /* the entries are in order already */
	/* on disk */
	struct xsp_new_file *file;
	uint64_t written;
	unsigned char *out;
	size_t out_used;
	struct run *runs;
	size_t run_count, run_capacity;
	/* while they are delivered */
	bool begun;
	size_t next;
	uint32_t *heap; /* runs, the one with the earliest record first */
	size_t heap_count;
	uint32_t delivered; /* run of the last one + 1; 0: none */
};

int xsp_sorter_new(size_t memory, const char *folder, xsp_sorter_compare_fn compare,
		   struct xsp_sorter **out)
{
	struct xsp_sorter *s = calloc(1, sizeof(*s));

	*out = s;
	if (s == NULL)
		return -ENOMEM;
	s->compare = compare;
	s->capacity = memory;
	s->rising = true;
	s->memory = malloc(memory);
	if (s->memory != NULL && asprintf(&s->path, "%s/xsptrace", folder) >= 0)
		return 0;
	s->path = NULL;
	xsp_sorter_free(s);
	*out = NULL;
	return -ENOMEM;
}

void xsp_sorter_free(struct xsp_sorter *s)
{
	if (s == NULL)
		return;
	xsp_new_file_free(s->file);
	free(s->path);
	free(s->memory);
	free(s->entries);
	free(s->out);
	free(s->runs);
	free(s->heap);
	free(s);
}

static const struct xsp_sorted *record_at(const struct xsp_sorter *s, uint32_t at)
{
	return (const void *)(s->memory + (size_t)at * UNIT);
}

static int compare_entries(const void *x, const void *y, void *ctx)
{
	const struct entry *a = x, *b = y;
	const struct xsp_sorter *s = ctx;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	const int order = s->compare(record_at(s, a->at), record_at(s, b->at));
	return order != 0 ? order : a->at < b->at ? -1 : a->at > b->at;
}

/* Traces are nearly in the order of begins or of ends: then few entries move, and not far. False:
 * too many do. */
static bool insert_all(struct xsp_sorter *s)
{
	struct entry *e = s->entries;
	size_t moves = 4 * s->count;

	for (size_t i = 1; i < s->count && moves > 0; i++) {
		const struct entry moved = e[i];
		size_t k = i;
		for (; k > 0 && moves > 0 && compare_entries(&moved, &e[k - 1], s) < 0; k--) {
			e[k] = e[k - 1];
			moves--;
		}
		e[k] = moved;
	}
	return moves > 0;
}

static void sort_memory(struct xsp_sorter *s)
{
	if (!s->rising && !insert_all(s))
		qsort_r(s->entries, s->count, sizeof(*s->entries), compare_entries, s);
}

/* ---- to disk ---- */

static int flush_out(struct xsp_sorter *s)
{
	int rc = xsp_write_at(xsp_new_file_descriptor(s->file), s->out, s->out_used, s->written);

	s->written += s->out_used;
	s->out_used = 0;
	return rc;
}

static int begin_disk(struct xsp_sorter *s)
{
	if (s->file != NULL)
		return 0;
	s->out = malloc(OUT_SIZE);
	return s->out == NULL ? -ENOMEM : xsp_new_file_open(s->path, NULL, &s->file);
}

static int spill(struct xsp_sorter *s)
{
	int rc = begin_disk(s);

	if (rc == 0 && xsp_grow(&s->runs, &s->run_capacity, s->run_count + 1) < 0)
		rc = -ENOMEM;
	if (rc < 0)
		return rc;
	struct run *run = &s->runs[s->run_count];
	*run = (struct run){.at = s->written};
	sort_memory(s);
	for (size_t i = 0; i < s->count && rc == 0; i++) {
		const struct xsp_sorted *r = record_at(s, s->entries[i].at);
		if (r->size > OUT_SIZE - s->out_used)
			rc = flush_out(s);
		memcpy(s->out + s->out_used, r, r->size);
		s->out_used += r->size;
	}
	if (rc == 0)
		rc = flush_out(s);
	run->end = s->written;
	s->run_count++;
	s->used = s->count = 0;
	s->rising = true;
	return rc;
}

int xsp_sorter_add(struct xsp_sorter *s, const struct xsp_sorted *record)
{
	if (record->size > s->capacity - s->used) {
		int rc = spill(s);
		if (rc < 0)
			return rc;
	}
	if (xsp_grow(&s->entries, &s->entry_capacity, s->count + 1) < 0)
		return -ENOMEM;
	memcpy(s->memory + s->used, record, record->size);
	s->entries[s->count] = (struct entry){record->time_ns, (uint32_t)(s->used / UNIT)};
	s->rising = s->rising && (s->count == 0 || compare_entries(&s->entries[s->count - 1],
								   &s->entries[s->count], s) < 0);
	s->count++;
	s->used += record->size;
	return 0;
}

/* ---- merging ---- */

static const struct xsp_sorted *first_of(const struct run *r)
{
	return (const void *)(r->window + r->from);
}

/* At equal times, earlier runs come first: so records keep their order. */
static bool before(const struct xsp_sorter *s, uint32_t x, uint32_t y)
{
	const struct xsp_sorted *a = first_of(&s->runs[x]), *b = first_of(&s->runs[y]);

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns;
	const int order = s->compare(a, b);
	return order != 0 ? order < 0 : x < y;
}

static void sift_down(struct xsp_sorter *s, size_t i)
{
	for (;;) {
		size_t least = i;
		for (size_t k = 2 * i + 1; k < 2 * i + 3 && k < s->heap_count; k++)
			if (before(s, s->heap[k], s->heap[least]))
				least = k;
		if (least == i)
			return;
		const uint32_t moved = s->heap[i];
		s->heap[i] = s->heap[least];
		s->heap[least] = moved;
		i = least;
	}
}

/* Makes the run's first record complete in its window. 1; 0: there is none; or a negative errno. */
static int load(const struct xsp_sorter *s, struct run *r, size_t window)
{
	const size_t left = r->filled - r->from;

	if (left >= sizeof(struct xsp_sorted) && left >= first_of(r)->size)
		return 1;
	memmove(r->window, r->window + r->from, left);
	r->from = 0;
	r->filled = left;
	const uint64_t there = r->end - r->at;
	const size_t room = window - left, wanted = there < room ? (size_t)there : room;
	long n = xsp_read_at(xsp_new_file_descriptor(s->file), r->window + left, wanted, r->at);
	if (n < 0 || (size_t)n < wanted)
		return n < 0 ? (int)n : -EIO;
	r->at += wanted;
	r->filled += wanted;
	return r->filled > 0;
}

static size_t window_of(const struct xsp_sorter *s)
{
	return s->capacity / s->run_count / UNIT * UNIT;
}

static int begin_merge(struct xsp_sorter *s)
{
	int rc = spill(s);
	if (rc < 0)
		return rc;
	const size_t window = window_of(s);
	if (window < WINDOW_LEAST)
		return -EFBIG;
	s->heap = calloc(s->run_count, sizeof(*s->heap));
	if (s->heap == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < s->run_count && rc >= 0; i++) {
		s->runs[i].window = s->memory + i * window;
		rc = load(s, &s->runs[i], window);
		if (rc > 0)
			s->heap[s->heap_count++] = (uint32_t)i;
	}
	for (size_t i = s->heap_count / 2; i > 0 && rc >= 0; i--)
		sift_down(s, i - 1);
	return rc < 0 ? rc : 0;
}

static int next_merged(struct xsp_sorter *s, const struct xsp_sorted **record)
{
	if (s->delivered > 0) {
		struct run *r = &s->runs[s->delivered - 1];
		r->from += first_of(r)->size;
		int rc = load(s, r, window_of(s));
		if (rc < 0)
			return rc;
		if (rc == 0)
			s->heap[0] = s->heap[--s->heap_count];
		sift_down(s, 0);
		s->delivered = 0;
	}
	if (s->heap_count == 0)
		return 0;
	s->delivered = s->heap[0] + 1;
	*record = first_of(&s->runs[s->heap[0]]);
	return 1;
}

int xsp_sorter_next(struct xsp_sorter *s, const struct xsp_sorted **record)
{
	if (!s->begun) {
		s->begun = true;
		if (s->run_count == 0)
			sort_memory(s);
		int rc = s->run_count > 0 ? begin_merge(s) : 0;
		if (rc < 0)
			return rc;
	}
	if (s->run_count > 0)
		return next_merged(s, record);
	if (s->next == s->count)
		return 0;
	*record = record_at(s, s->entries[s->next++].at);
	return 1;
}
