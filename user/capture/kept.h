/* SPDX-License-Identifier: BSD-2-Clause */
/* kept.h - definitions, each once: a later one of the same thing replaces it. Private to user/capture/. */
#ifndef XSP_CAPTURE_KEPT_H
#define XSP_CAPTURE_KEPT_H

#include "base/rows/tally.h"
#include "capture/format.h"
#include "capture/recent.h"

struct kept {
	struct xsp_record *record; /* malloc'd */
	uint64_t key;
	uint32_t put_s; /* when it was put last: seconds of CLOCK_MONOTONIC */
	uint32_t seen; /* the last search that found something that needs it */
	bool over; /* a thread that has ended; a Python stack that the last search did not find either */
	/* a name from the kernel side, which knows so many that it has sent, and sends others each time */
	bool sent, sent_again;
};

struct xsp_kept {
	XSP_TALLY(struct kept) of[XSP_RECORD_TYPES];
	uint64_t bytes, count;
};

/* The memory that they take, about: of each beside what it says its row, two slots of the index, malloc's own. */
static inline uint64_t kept_memory(const struct xsp_kept *k)
{
	return k->bytes + k->count * 120;
}

void xsp_kept_free(struct xsp_kept *k);
/* What a definition defines. */
uint64_t xsp_kept_key(const struct xsp_record *record);
int xsp_kept_put(struct xsp_kept *k, const struct xsp_record *record); /* 0 or -ENOMEM */
struct kept *xsp_kept_find(const struct xsp_kept *k, enum xsp_record_type type, uint64_t key);
/* The last one takes its place. */
void xsp_kept_drop(struct xsp_kept *k, enum xsp_record_type type, struct kept *one);
/* Births, new names and ends of threads. */
int xsp_kept_task(struct xsp_kept *k, const struct xsp_event_task *e);
/* Drops clocks and windows before that time, but for the clock just before it. */
void xsp_kept_begin_at(struct xsp_kept *k, uint64_t start_ns);

/* ---- recent.c ---- */

struct recent_mark {
	uint64_t time_ns;
	unsigned char *state; /* malloc'd */
	size_t size;
	struct xsp_capture_stats stats;
};

struct xsp_recent {
	struct xsp_recent_options options;
	struct xsp_kept kept;
	/* chunks in the order in which they were full; those before `first` are dropped */
	struct xsp_recent_chunk *chunks;
	size_t first, count, room;
	unsigned char **empty; /* chunks for reuse */
	size_t empty_count, empty_room;
	size_t made; /* chunks in memory */
	struct recent_mark *marks;
	size_t mark_count, mark_room, mark_bytes;
	uint64_t period_ns; /* between two marks */
	uint64_t last_mark_ns;
	uint64_t dropped_ns; /* the latest event that was dropped */
	uint64_t dropped; /* events */
	bool cut; /* the recording's beginning is gone */
	uint64_t names_sent, names_lost; /* by the kernel side; how many of them found no room */
	struct {
		bool on, looked;
		size_t sent_left; /* looked: names of the kernel side to look at */
		uint32_t number;
		size_t at,
			until; /* the chunks to look at, of `chunks`; later ones are when they come */
		uint64_t key; /* of the hashes of addresses */
		uint64_t needed,
			ended_s; /* definitions that the last one found to be needed; its end */
		uint64_t pruned;
	} search;
};

#endif
