/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * recent.h - the most recent part of a recording, in memory: the flight recorder's. Events are in chunks, the oldest of
 * which are dropped. Definitions are kept apart, by what they define, as later chunks need them, too.
 *
 * A snapshot begins at a mark. That is a moment at which the recorder has reported how things stood: what each thread
 * had done so far, how much memory each process had. What came later is known completely, and sums since the beginning
 * of the recording become sums since the mark.
 */
#ifndef XSP_CAPTURE_RECENT_H
#define XSP_CAPTURE_RECENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/capture.h"

#define XSP_RECENT_RINGS 64U /* at most */

struct xsp_recent;

struct xsp_recent_options {
	uint64_t age_ns, bytes; /* of events; 0: no limit */
	/* Asked of a definition that no event needs any more: will it be put again when it is needed? Then it goes.
	 * `type` and `key`: XSP_RECENT_*. May be NULL: none goes. */
	bool (*forget)(void *ctx, unsigned type, uint64_t key);
	void *ctx;
	uint32_t fresh_s; /* events may come so long after their definitions */
};

/* What may go, and its key. */
enum {
	XSP_RECENT_NAME = 10, /* XSP_RECORD_NAME; the hash */
	XSP_RECENT_PYTHON = 14, /* XSP_RECORD_PYTHON; the id */
	XSP_RECENT_PROCESS = 2, /* XSP_RECORD_PROCESS; its number. With its threads and mappings */
};

int xsp_recent_new(const struct xsp_recent_options *o, struct xsp_recent **out); /* 0 or -ENOMEM */
void xsp_recent_free(struct xsp_recent *r); /* NULL is allowed */

/* Is it time for a mark? */
bool xsp_recent_wants_mark(const struct xsp_recent *r, uint64_t now_ns);
/* `state`: events back to back, TIMES and MEMORY. Drops what has become too old. 0 or -ENOMEM. */
int xsp_recent_mark(struct xsp_recent *r, uint64_t now_ns, const void *state, size_t size);

struct xsp_recent_totals {
	uint64_t bytes, chunks; /* of events */
	uint64_t records, record_bytes; /* definitions */
	uint64_t pruned; /* definitions, so far */
	uint64_t names_lost; /* found no room */
	uint64_t dropped; /* events, so far */
	uint64_t since_ns; /* where a snapshot would begin; 0: where the recording does */
};
struct xsp_recent_totals xsp_recent_totals(const struct xsp_recent *r);

/* How things stand at the end of a snapshot. */
struct xsp_recent_now {
	const void *state; /* events back to back: open WAITs, TIMES */
	size_t size;
	uint64_t start_ns, end_ns; /* of the recording so far */
	bool windows; /* not all of it was on, and */
	uint64_t window_ns; /* the present window began then; 0: it is a pause */
};
/*
 * Writes what is kept by `from` to the new capture `to`, which has the same key. *start_ns: from when on. It may change what
 * is kept: call it in a process of its own, or at the end. 0 or a negative errno.
 */
int xsp_recent_write(struct xsp_recent *r, struct xsp_capture_writer *from,
		     struct xsp_capture_writer *to, const struct xsp_recent_now *now,
		     uint64_t *start_ns);

/* ---- for the writer ---- */

struct xsp_recent_chunk {
	unsigned char *data; /* of xsp_recent_chunk() */
	size_t used;
	unsigned ring;
	uint64_t first_ns, last_ns;
	uint64_t events; /* xsp_recent_take() counts them */
};
/* An empty chunk, or NULL. `r` NULL: one that nobody keeps. */
unsigned char *xsp_recent_chunk(struct xsp_recent *r);
void xsp_recent_give_back(struct xsp_recent *r, unsigned char *chunk);
/* Takes a full chunk, and hands out an empty one, or NULL. */
unsigned char *xsp_recent_take(struct xsp_recent *r, const struct xsp_recent_chunk *c);
/* Looks for definitions that no event needs any more, some milliseconds at most. True: the writer is to look at its chunks
 * that are not full, and then to call xsp_recent_looked(). */
bool xsp_recent_prune(struct xsp_recent *r, uint64_t key);
void xsp_recent_look_at(struct xsp_recent *r, const unsigned char *data, size_t used);
void xsp_recent_looked(struct xsp_recent *r);
int xsp_recent_take_record(struct xsp_recent *r, const struct xsp_record *record);
/* Is there no room for another name, which the kernel side will send again? It counts as lost. */
bool xsp_recent_is_full(struct xsp_recent *r);
/* The name that was taken last came from the kernel side. */
void xsp_recent_name_sent(struct xsp_recent *r, uint64_t hash);

#endif
