/* SPDX-License-Identifier: BSD-2-Clause */
/* sideband_private.h - shared by sideband.c (watched set), sideband_perf.c, sideband_poll.c. */
#ifndef XSP_RECORD_SIDEBAND_PRIVATE_H
#define XSP_RECORD_SIDEBAND_PRIVATE_H

#include "record/sideband.h"

typedef int (*xsp_sideband_callback)(void *ctx, const struct xsp_sideband_record *r);

/* An executable mapping that was seen (POLL). */
struct xsp_seen_map {
	uint64_t start, length, offset, dev, inode;
};

struct xsp_watch {
	pid_t pid;
	bool main_ended; /* PERF: its main thread has; the process may live on without, or be
			  * in the middle of an exec by another thread */
	/* POLL only: what it looked like the last time */
	struct xsp_seen_map *maps;
	size_t map_count;
	pid_t *children;
	size_t child_count;
	uint64_t exe_dev, exe_inode;
	char comm[16];
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

struct xsp_watch *xsp_sideband_find(const struct xsp_sideband *s, pid_t pid);

/* sideband_perf.c. open: -errno and `reason` when the kernel refuses. */
int xsp_sideband_perf_open(struct xsp_sideband *s);
void xsp_sideband_perf_close(struct xsp_sideband *s);
long xsp_sideband_perf_drain(struct xsp_sideband *s, uint64_t until_ns,
			     xsp_sideband_callback record, void *ctx);

/* sideband_poll.c. baseline: remembers what the process looks like now. */
int xsp_sideband_poll_baseline(const struct xsp_sideband *s, struct xsp_watch *w);
void xsp_sideband_poll_clear(struct xsp_watch *w);
long xsp_sideband_poll_drain(struct xsp_sideband *s, uint64_t until_ns,
			     xsp_sideband_callback record, void *ctx);

#endif
