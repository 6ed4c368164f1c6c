/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf.c - side records of perf dummy events, one ring a CPU.
 *
 * Layouts: perf_event_open(2), "MMAP layout" and the PERF_RECORD_* structs. Every record ends in
 * the sample id that sample_id_all adds: {u32 pid, tid; u64 time}.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "broker/side_events.h"
#include "base/clock.h"
#include "procfs/procfs.h"
#include "record/sideband/sideband_private.h"

#define RECORD_MAX 65536U /* perf_event_header.size has 16 bits */
#define DEFAULT_PAGES 64U

/* ---- opening ---- */

/* Owns the descriptor. */
static int add_ring(struct xsp_sideband *s, int fd)
{
	long page = sysconf(_SC_PAGESIZE);
	uint64_t size = (uint64_t)page * (s->options.pages != 0 ? s->options.pages : DEFAULT_PAGES);
	void *grown = reallocarray(s->rings, s->ring_count + 1, sizeof(*s->rings));

	if (grown == NULL) {
		close(fd);
		return -ENOMEM;
	}
	s->rings = grown;
	struct xsp_ring *r = &s->rings[s->ring_count];
	r->fd = fd;
	r->size = size;
	r->map = mmap(NULL, (size_t)page + size, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	if (r->map == MAP_FAILED) {
		int ret = -errno;
		close(r->fd);
		return ret == -ENOMEM ? -EPERM : ret; /* over the limit of locked memory */
	}
	s->ring_count++;
	return 0;
}

static int add_rings(struct xsp_sideband *s, const int *fds, size_t count)
{
	int ret = 0;

	for (size_t i = 0; i < count; i++) {
		if (ret == 0)
			ret = add_ring(s, fds[i]);
		else
			close(fds[i]);
	}
	return ret;
}

static int open_rings(struct xsp_sideband *s)
{
	int *fds = NULL;
	size_t count = 0;
	int ret = xsp_side_events_open(XSP_SIDE_RECORDS, &fds, &count);

	if (ret == 0)
		ret = add_rings(s, fds, count);
	free(fds);
	return ret;
}

int xsp_sideband_perf_open(struct xsp_sideband *s)
{
	s->scratch = malloc(RECORD_MAX);
	int ret = -ENOMEM;
	if (s->scratch != NULL)
		ret = s->options.events != NULL
			      ? add_rings(s, s->options.events, s->options.event_count)
			      : open_rings(s);
	if (ret == 0)
		return 0;
	snprintf(
		s->reason, sizeof(s->reason),
		"the kernel refuses perf events (%s), so new libraries and processes are looked for in /proc every 100 ms",
		strerror(-ret));
	xsp_sideband_perf_close(s);
	return ret;
}

void xsp_sideband_perf_close(struct xsp_sideband *s)
{
	for (size_t i = 0; i < s->ring_count; i++) {
		munmap(s->rings[i].map, (size_t)sysconf(_SC_PAGESIZE) + s->rings[i].size);
		close(s->rings[i].fd);
	}
	free(s->rings);
	free(s->scratch);
	s->rings = NULL;
	s->ring_count = 0;
	s->scratch = NULL;
}

/* ---- records ---- */

/* A record without its header and sample id. */
struct body {
	const uint8_t *data;
	size_t size;
	uint16_t misc;
};

/* Copies a zero-terminated text at `at`; the scratch buffer holds it. */
static const char *text_at(const struct body *b, size_t at)
{
	const char *text = (const char *)b->data + at;

	return at < b->size && memchr(text, '\0', b->size - at) != NULL ? text : NULL;
}

struct ids {
	uint32_t pid, tid;
};

static bool parse_mmap2(const struct body *b, struct xsp_sideband_record *r)
{
	struct {
		struct ids who;
		uint64_t addr, len, pgoff;
		uint32_t major, minor;
		uint64_t inode, generation;
		uint32_t prot, flags;
	} raw;

	if (b->size < sizeof(raw))
		return false;
	memcpy(&raw, b->data, sizeof(raw));
	r->pid = (pid_t)raw.who.pid;
	r->tid = (pid_t)raw.who.tid;
	/* "//anon", "[vdso]" and the like are no files */
	const char *path = text_at(b, sizeof(raw));
	return path != NULL && raw.inode != 0 && path[0] == '/' && path[1] != '/' &&
	       (raw.prot & PROT_EXEC) != 0;
}

static bool parse_comm(const struct body *b, struct xsp_sideband_record *r)
{
	struct ids who;

	if (b->size < sizeof(who))
		return false;
	memcpy(&who, b->data, sizeof(who));
	r->pid = (pid_t)who.pid;
	r->tid = (pid_t)who.tid;
	return b->misc & PERF_RECORD_MISC_COMM_EXEC; /* else a thread has renamed itself */
}

static bool parse_task(const struct body *b, struct xsp_sideband_record *r)
{
	struct {
		uint32_t pid, ppid, tid, ptid;
	} raw;

	if (b->size < sizeof(raw))
		return false;
	memcpy(&raw, b->data, sizeof(raw));
	r->pid = (pid_t)raw.pid;
	r->tid = (pid_t)raw.tid;
	if (r->kind == XSP_SIDEBAND_FORK)
		r->parent_pid = (pid_t)raw.ppid;
	return true;
}

static bool parse_lost(const struct body *b, struct xsp_sideband_record *r)
{
	if (b->size < 16)
		return false;
	memcpy(&r->lost, b->data + 8, 8); /* after the event's id */
	return true;
}

static const struct {
	uint32_t type;
	enum xsp_sideband_kind kind;
	bool (*parse)(const struct body *b, struct xsp_sideband_record *r); /* of that kind */
} parsers[] = {
	{PERF_RECORD_MMAP2, XSP_SIDEBAND_MMAP, parse_mmap2},
	{PERF_RECORD_COMM, XSP_SIDEBAND_EXEC, parse_comm},
	{PERF_RECORD_FORK, XSP_SIDEBAND_FORK, parse_task},
	{PERF_RECORD_EXIT, XSP_SIDEBAND_EXIT, parse_task},
	{PERF_RECORD_LOST, XSP_SIDEBAND_LOST, parse_lost},
};

/* ---- rings ---- */

static void copy_out(const struct xsp_ring *r, uint64_t at, void *to, size_t size)
{
	const uint8_t *data = (const uint8_t *)r->map + sysconf(_SC_PAGESIZE);
	uint64_t start = at & (r->size - 1);
	size_t first = r->size - start < size ? (size_t)(r->size - start) : size;

	memcpy(to, data + start, first);
	memcpy((uint8_t *)to + first, data, size - first);
}

static struct perf_event_mmap_page *control(const struct xsp_ring *r)
{
	return r->map;
}

/* Head of the next record, and its time; false when the ring is empty. */
static bool peek(const struct xsp_ring *r, struct perf_event_header *h, uint64_t *time_ns)
{
	uint64_t tail = control(r)->data_tail, left = r->head - tail;

	if (left < sizeof(*h))
		return false;
	copy_out(r, tail, h, sizeof(*h));
	if (h->size < sizeof(*h) + 16 || h->size > left) {
		/* impossible, unless the kernel is broken: skips everything */
		__atomic_store_n(&control(r)->data_tail, r->head, __ATOMIC_RELEASE);
		return false;
	}
	copy_out(r, tail + h->size - 8, time_ns, 8);
	return true;
}

/* The ring with the oldest next record, unless that is younger than until_ns. */
static struct xsp_ring *oldest(const struct xsp_sideband *s, uint64_t until_ns,
			       struct perf_event_header *header, uint64_t *time_ns)
{
	struct xsp_ring *best = NULL;

	for (size_t i = 0; i < s->ring_count; i++) {
		struct perf_event_header h;
		uint64_t t;
		if (!peek(&s->rings[i], &h, &t) || t > until_ns)
			continue;
		if (best == NULL || t < *time_ns) {
			best = &s->rings[i];
			*header = h;
			*time_ns = t;
		}
	}
	return best;
}

/* Takes the record out of the ring into scratch; false if it is of no interest. */
static bool read_record(struct xsp_sideband *s, struct xsp_ring *ring,
			const struct perf_event_header *h, struct xsp_sideband_record *r)
{
	bool known = false;

	copy_out(ring, control(ring)->data_tail, s->scratch, h->size);
	__atomic_store_n(&control(ring)->data_tail, control(ring)->data_tail + h->size,
			 __ATOMIC_RELEASE);
	struct body b = {
		.data = s->scratch + sizeof(*h),
		.size = h->size - sizeof(*h) - 16U,
		.misc = h->misc,
	};
	for (size_t i = 0; i < sizeof(parsers) / sizeof(parsers[0]) && !known; i++) {
		r->kind = parsers[i].kind;
		known = parsers[i].type == h->type && parsers[i].parse(&b, r);
	}
	if (!known)
		return false;
	return r->kind == XSP_SIDEBAND_LOST || xsp_sideband_watches(s, r->pid) ||
	       (r->kind == XSP_SIDEBAND_FORK && xsp_sideband_watches(s, r->parent_pid));
}

/* Keeps the watched set up to date while it hands on a record. */
static int deliver(struct xsp_sideband *s, const struct xsp_sideband_record *r,
		   xsp_sideband_callback record, void *ctx)
{
	if (r->kind == XSP_SIDEBAND_FORK && s->options.follow) {
		int ret = xsp_sideband_watch(s, r->pid);
		if (ret < 0)
			return ret;
	}
	int ret = record(ctx, r);
	struct xsp_watch *w = xsp_sideband_find(s, r->pid);
	if (w != NULL && r->kind == XSP_SIDEBAND_EXIT && r->tid == r->pid)
		w->main_ended = true;
	else if (w != NULL && r->kind == XSP_SIDEBAND_EXEC)
		w->main_ended = false;
	return ret;
}

/* Drops processes whose last thread has ended, so that a reused pid is not watched. */
static void forget_ended(struct xsp_sideband *s)
{
	for (size_t i = s->watch_count; i > 0; i--) {
		struct xsp_stat st;
		struct xsp_watch *w = &s->watches[i - 1];
		if (w->main_ended && (xsp_procfs_stat(s->options.opener, w->pid, &st) < 0 ||
				      (st.state == 'Z' && st.threads <= 1)))
			xsp_sideband_unwatch(s, w->pid);
	}
}

long xsp_sideband_perf_drain(struct xsp_sideband *s, uint64_t until_ns,
			     xsp_sideband_callback record, void *ctx)
{
	struct perf_event_header header;
	struct xsp_ring *ring;
	uint64_t time_ns = 0;
	long delivered = 0;
	int ret = 0;

	if (until_ns == 0)
		until_ns = xsp_now_ns() - XSP_SIDEBAND_KEPT_NS;
	for (size_t i = 0; i < s->ring_count; i++)
		s->rings[i].head =
			__atomic_load_n(&control(&s->rings[i])->data_head, __ATOMIC_ACQUIRE);
	while (ret == 0 && (ring = oldest(s, until_ns, &header, &time_ns)) != NULL) {
		struct xsp_sideband_record r = {.time_ns = time_ns};
		if (!read_record(s, ring, &header, &r))
			continue;
		ret = deliver(s, &r, record, ctx);
		delivered++;
	}
	forget_ended(s);
	return ret < 0 ? ret : delivered;
}
