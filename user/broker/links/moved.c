/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * moved.c - processes that move their code to other memory, as for large pages. They were stopped as they mapped that
 * over the original (bpf/task.bpf.c). The copy that they had made before has our breakpoints in it: we put back what
 * the file has there.
 */
#include "broker/kernel/attach_private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rows/grow.h"
#include "base/rows/order.h"
#include "procfs/map_line.h"
#include "procfs/procfs.h"

#define STOP_MS 5 /* for the process to stand still; else the next call looks again */
#define OUT_MS 500 /* for breakpoints to be out: a child of ours may have had a copy of the link */
/* bytes of code without a breakpoint, by which a copy is found */
#define ANCHOR_MOST 64U
#define ANCHOR_LEAST 8U
#define CHUNK (1U << 20) /* of memory, looked at together */
#define SCAN_MAX (2ULL << 30)
#define CODE_MAX 16U
#define PAGE 4096U

struct moving {
	struct xsp_attach *a;
	pid_t pid;
	struct xsp_move move;
	struct xsp_verified_file file;
	struct xsp_attach_site *sites; /* all that the file has in the process, by offset */
	size_t count, room;
	uint64_t anchor; /* its offset in the file */
	size_t anchor_bytes;
	uint8_t bytes[ANCHOR_MOST];
	int mem, pagemap;
	uint8_t *chunk;
	uint64_t scanned;
	uint32_t mended;
};

/* ---- what is there ---- */

/* It has been sent SIGSTOP, and needs a CPU to take it: on a busy machine that may be late. */
static enum { MOVES, STANDS_STILL, HAS_ENDED } state_of(pid_t pid)
{
	struct xsp_stat stat;

	for (int ms = 0; ms < STOP_MS; ms++) {
		if (xsp_procfs_stat(&xsp_open_directly, pid, &stat) < 0)
			return HAS_ENDED;
		if (stat.state == 'T' || stat.state == 't')
			return STANDS_STILL;
		poll(NULL, 0, 1);
	}
	return MOVES;
}

static bool is_at(const struct moving *m, const struct xsp_attach_site *s)
{
	return s->offset >= m->move.offset &&
	       s->offset - m->move.offset < m->move.end - m->move.start;
}

static XSP_ORDER(by_offset, struct xsp_attach_site, XSP_RISING(offset));

/* The sites of the file that was there: by its inode, or (some file systems show two) any with a site in that part.
 * Call it with the lock. */
static int collect(struct moving *m, bool any)
{
	int rc = 0;

	m->count = 0;
	for (size_t i = 0; i < m->a->link_count && rc == 0; i++) {
		const struct xsp_link *l = &m->a->links[i];
		if (l->pid != m->pid || l->count == 0 ||
		    (m->count > 0 ? l->file.fd != m->file.fd
				  : (!any && l->file.inode != m->move.inode)))
			continue;
		if (m->count == 0 && any && !is_at(m, &l->sites[0]))
			continue;
		m->file = l->file;
		for (size_t k = 0; k < l->count && rc == 0; k++)
			rc = XSP_APPEND(m->sites, m->room, m->count, l->sites[k]);
	}
	if (m->count > 1)
		XSP_SORT(m->sites, m->count, by_offset);
	return rc;
}

/* Are the bytes code, and not what is between functions? */
static bool is_code(const uint8_t *bytes, size_t n)
{
	bool seen[256] = {false};
	size_t distinct = 0;

	for (size_t i = 0; i < n; i++) {
		distinct += !seen[bytes[i]];
		seen[bytes[i]] = true;
	}
	return distinct > n / 3;
}

/* Is there such code from `from` up to `to`, where no site is? */
static bool take_anchor(struct moving *m, uint64_t from, uint64_t to)
{
	for (m->anchor_bytes = ANCHOR_MOST; m->anchor_bytes >= ANCHOR_LEAST; m->anchor_bytes /= 2) {
		m->anchor = from;
		if (to >= from && to - from >= m->anchor_bytes &&
		    pread(m->file.fd, m->bytes, m->anchor_bytes, (off_t)from) ==
			    (ssize_t)m->anchor_bytes &&
		    is_code(m->bytes, m->anchor_bytes))
			return true;
	}
	return false;
}

/* In the moved part, after one of its sites. */
static bool find_anchor(struct moving *m)
{
	const uint64_t end = m->move.offset + (m->move.end - m->move.start);

	for (size_t i = 0; i < m->count; i++) {
		const struct xsp_attach_site *s = &m->sites[i];
		const uint64_t next = i + 1 < m->count ? s[1].offset : end;
		if (is_at(m, s) &&
		    take_anchor(m, s->offset + (s->length > 0 ? s->length : CODE_MAX),
				next < end ? next : end))
			return true;
	}
	return false;
}

/* ---- copies ---- */

/* Is it the file's instruction but for our breakpoint, or the kernel's call in place of a 5-byte nop? */
static bool is_ours(const uint8_t *file, const uint8_t *memory, size_t n)
{
	static const uint8_t nop5[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};

	if (n == sizeof(nop5) && memory[0] == 0xe8 && memcmp(file, nop5, n) == 0)
		return true;
	return memory[0] == 0xcc && file[0] != 0xcc && memcmp(file + 1, memory + 1, n - 1) == 0;
}

/* `base`: where offset 0 of the file would be. */
static void mend(struct moving *m, uint64_t base, const struct xsp_map_line *map)
{
	uint8_t file[CODE_MAX], memory[CODE_MAX];

	for (size_t i = 0; i < m->count; i++) {
		const struct xsp_attach_site *s = &m->sites[i];
		const size_t n = s->length > 0 && s->length <= CODE_MAX ? s->length : 1;
		const uint64_t at = base + s->offset;
		if (at < map->start || at >= map->end || map->end - at < n ||
		    pread(m->file.fd, file, n, (off_t)s->offset) != (ssize_t)n ||
		    pread(m->mem, memory, n, (off_t)at) != (ssize_t)n || !is_ours(file, memory, n))
			continue;
		m->mended += pwrite(m->mem, file, n, (off_t)at) == (ssize_t)n;
	}
}

static bool has_pages(const struct moving *m, uint64_t at)
{
	uint64_t entries[CHUNK / PAGE];
	ssize_t n = pread(m->pagemap, entries, sizeof(entries), (off_t)(at / PAGE * 8));

	for (ssize_t i = 0; i < n / 8; i++)
		if (entries[i] >> 62 != 0) /* present or swapped */
			return true;
	return n <= 0;
}

static void look_through(struct moving *m, const struct xsp_map_line *map)
{
	for (uint64_t at = map->start; at < map->end && m->scanned < SCAN_MAX; at += CHUNK) {
		if (!has_pages(m, at))
			continue;
		/* an anchor may begin at the end of a chunk */
		uint64_t want =
			map->end - at < CHUNK + ANCHOR_MOST ? map->end - at : CHUNK + ANCHOR_MOST;
		ssize_t n = pread(m->mem, m->chunk, want, (off_t)at);
		m->scanned += CHUNK;
		for (uint8_t *p = m->chunk, *end = p + (n > 0 ? n : 0);
		     p < end &&
		     (p = memmem(p, (size_t)(end - p), m->bytes, m->anchor_bytes)) != NULL;
		     p++)
			if ((uint64_t)(p - m->chunk) < CHUNK)
				mend(m, at + (uint64_t)(p - m->chunk) - m->anchor, map);
	}
}

/* What can be written, and what lies where the code was. The kernel takes breakpoints out of mappings of the file. */
static bool may_hold_a_copy(const struct moving *m, const struct xsp_map_line *map)
{
	if (map->inode == m->file.inode && map->dev == m->file.dev)
		return false;
	return map->writable || map->inode == 0 ||
	       (map->start < m->move.end && map->end > m->move.start);
}

static void mend_copies(struct moving *m)
{
	char *text = NULL;

	m->pagemap = xsp_verify_open(m->pid, "pagemap", O_RDONLY);
	m->chunk = malloc(CHUNK + ANCHOR_MOST);
	if (m->mem >= 0 && m->pagemap >= 0 && m->chunk != NULL && find_anchor(m) &&
	    xsp_procfs_read(&xsp_open_directly, m->pid, "maps", XSP_MAPS_MAX, &text, NULL) == 0) {
		const char *at = text;
		for (struct xsp_map_line map; xsp_map_line_next(&at, &map);)
			if (may_hold_a_copy(m, &map))
				look_through(m, &map);
	}
	free(text);
	free(m->chunk);
	xsp_close(m->pagemap);
}

/* ---- a process ---- */

/* Is a breakpoint in the code of the file around the moved part, as far as that is one mapping? */
static bool has_breakpoint(const struct moving *m)
{
	const uint64_t base = m->move.start - m->move.offset;
	uint8_t file, memory;

	for (size_t i = 0; i < m->count; i++)
		if (!is_at(m, &m->sites[i]) &&
		    pread(m->file.fd, &file, 1, (off_t)m->sites[i].offset) == 1 &&
		    pread(m->mem, &memory, 1, (off_t)(base + m->sites[i].offset)) == 1 &&
		    is_ours(&file, &memory, 1))
			return true;
	return false;
}

static void wait_until_out(const struct moving *m)
{
	for (int ms = 0; ms < OUT_MS && has_breakpoint(m); ms++)
		poll(NULL, 0, 1);
}

/* Takes all probes of the file out of the process: it may go on piece by piece. */
static int take_out(struct moving *m, struct xsp_moved_code *row)
{
	uint32_t *probes = calloc(m->count, sizeof(*probes)), n = 0;
	struct xsp_u64map seen = {0};
	int rc = probes == NULL ? -ENOMEM : 0;

	for (size_t i = 0; i < m->count && rc == 0; i++) {
		const uint32_t probe = XSP_COOKIE_PROBE(m->sites[i].cookie);
		if (is_at(m, &m->sites[i]))
			row->probe = probe;
		if (xsp_u64map_get(&seen, probe) != NULL)
			continue;
		rc = xsp_u64map_set(&seen, probe, 1);
		probes[n++] = probe;
	}
	if (rc == 0)
		rc = xsp_attach_release_from(m->a, m->pid, probes, n, false);
	row->functions += n;
	xsp_u64map_free(&seen);
	free(probes);
	return rc;
}

static void handle(struct xsp_attach *a, pid_t pid, const struct xsp_move *move,
		   struct xsp_moved_code *row)
{
	struct moving m = {.a = a, .pid = pid, .move = *move, .mem = -1, .pagemap = -1};

	pthread_mutex_lock(&a->lock);
	int rc = collect(&m, false);
	if (rc == 0 && m.count == 0)
		rc = collect(&m, true);
	pthread_mutex_unlock(&a->lock);
	if (rc == 0 && m.count > 0) {
		m.mem = xsp_verify_open(pid, "mem", O_RDWR);
		take_out(&m, row);
		wait_until_out(&m);
		mend_copies(&m);
		row->mended += m.mended;
		xsp_close(m.mem);
	}
	free(m.sites);
}

static void handle_all(struct xsp_attach *a, pid_t pid, bool still, struct xsp_moved_code *row)
{
	const int map = bpf_map__fd(a->bpf->maps.xsp_moves);
	uint64_t key, last = 0, *before = NULL;
	struct xsp_move move;

	while (bpf_map_get_next_key(map, before, &key) == 0) {
		const bool its = (pid_t)(key >> 32) == pid;
		if (its && bpf_map_lookup_elem(map, &key, &move) == 0 && still)
			handle(a, pid, &move, row);
		if (its) { /* a deleted key has no next one */
			bpf_map_delete_elem(map, &key);
			continue;
		}
		last = key;
		before = &last;
	}
	xsp_attach_continue(a, pid);
}

long xsp_attach_moved(struct xsp_attach *a, struct xsp_moved_code *rows, size_t room)
{
	pid_t pids[XSP_MOVED_ROWS];
	const size_t n = xsp_stopper_list(a, XSP_STOPPED_MOVES, pids,
					  room < XSP_MOVED_ROWS ? room : XSP_MOVED_ROWS);
	long done = 0;

	for (size_t i = 0; i < n; i++) {
		const int state = state_of(pids[i]);
		if (state == MOVES) /* it must not run on with a copy that is not mended */
			continue;
		rows[done] = (struct xsp_moved_code){.pid = pids[i], .probe = UINT32_MAX};
		handle_all(a, pids[i], state == STANDS_STILL, &rows[done++]);
	}
	return done;
}
