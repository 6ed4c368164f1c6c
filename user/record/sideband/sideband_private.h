/* SPDX-License-Identifier: BSD-2-Clause */
/* sideband_private.h - shared by the files of the sideband. */
#ifndef XSP_RECORD_SIDEBAND_PRIVATE_H
#define XSP_RECORD_SIDEBAND_PRIVATE_H

#include "record/sideband/sideband.h"

typedef int (*xsp_sideband_callback)(void *ctx, const struct xsp_sideband_record *r);

/* An executable mapping that was seen (POLL). */
struct xsp_seen_map {
	uint64_t start, length, offset, dev, inode;
};

struct xsp_watch {
	pid_t pid;
	/* PERF: its main thread has ended; the process may live on without it, or be in an exec by another thread */
	bool main_ended;
	/* POLL only: the process at the last look */
	struct xsp_seen_map *maps;
	size_t map_count, map_room;
	pid_t *children;
	size_t child_count, child_room;
	uint64_t exe_dev, exe_inode;
};

/* One CPU's ring. */
struct xsp_ring {
	int fd;
	void *map; /* control page, then `size` bytes */
	uint64_t size;
	uint64_t head; /* of this drain */
};

struct xsp_sideband {
	enum xsp_sideband_mode mode;
	struct xsp_sideband_options options;
	char reason[256];
	struct xsp_watch *watches; /* sorted by pid */
	size_t watch_count, watch_room;
	struct xsp_ring *rings;
	size_t ring_count;
	uint8_t *scratch; /* one record, 64 KiB */
	uint64_t next_poll_ns;
};

/* look.c */
/* What one look at a process needs to tell its news. */
struct xsp_look {
	const struct xsp_opener *opener;
	const struct xsp_watch *before; /* NULL: a baseline, without reports */
	struct xsp_watch now;
	bool is_exec;
	uint64_t time_ns;
	xsp_sideband_callback record;
	void *ctx;
	long delivered;
	int stopped; /* the callback's value, if not 0 */
};
/* A whole look: 0, the callback's value, or a negative errno (-ESRCH: it has ended). */
int xsp_sideband_look(struct xsp_look *l);
/* Hands a record over; the callback's value. */
int xsp_sideband_deliver(struct xsp_look *l, struct xsp_sideband_record *r);
/* Remembers the present state of the process. */
int xsp_sideband_baseline(const struct xsp_sideband *s, struct xsp_watch *w);
void xsp_sideband_forget_look(struct xsp_watch *w);

/* watches.c */
struct xsp_watch *xsp_sideband_find(const struct xsp_sideband *s, pid_t pid);

/* perf.c. open: -errno and `reason` when the kernel refuses. */
int xsp_sideband_perf_open(struct xsp_sideband *s);
void xsp_sideband_perf_close(struct xsp_sideband *s);
long xsp_sideband_perf_drain(struct xsp_sideband *s, uint64_t until_ns,
			     xsp_sideband_callback record, void *ctx);

/* poll.c */
long xsp_sideband_poll_drain(struct xsp_sideband *s, uint64_t until_ns,
			     xsp_sideband_callback record, void *ctx);

#endif
