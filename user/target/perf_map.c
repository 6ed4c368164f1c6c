/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/perf_map.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/rows/grow.h"
#include "base/rows/u64map.h"
#include "procfs/map_line.h"
#include "procfs/procfs.h"

#define PIECE ((size_t)65536)
#define PAGE_BITS 12
#define PAGES_MOST 1024 /* of one entry */
/* the cost of a page's first entry, beside the link */
#define PAGE_BYTES (4 * sizeof(struct xsp_u64map_slot))
#define STEPS_MOST 256 /* a search tries this many of the latest entries of a page */
/* the last bytes that were read: they are still there unless the file was rewritten */
#define TAIL 64

/* ---- what was read ---- */

struct entry {
	uint64_t start;
	uint64_t size;
	const char *name;
};

/* The entries that lie in a page, the latest first. */
struct link {
	uint32_t entry, next; /* 1 + index; 0: none */
};

struct xsp_perf_map {
	const struct xsp_opener *opener;
	pid_t pid;
	int fd; /* negative: not open yet */
	size_t *left;
	bool dump; /* of records, not of lines */
	uint64_t offset; /* of the next read */
	char tail[TAIL];
	char *piece; /* an unfinished line, and room for what follows */
	size_t held;
	bool skips; /* it is in the rest of a line that is too long */
	bool looked;
	size_t old; /* number of entries at the first look */
	struct entry *entries;
	size_t count, room;
	struct link *links;
	size_t link_count, link_room;
	struct xsp_u64map pages; /* page → 1 + index of its latest link */
	struct xsp_arena names;
};

struct xsp_perf_map *xsp_perf_map_new(const struct xsp_opener *o, pid_t pid, size_t *left)
{
	struct xsp_perf_map *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return NULL;
	m->opener = o;
	m->pid = pid;
	m->fd = -1;
	m->left = left;
	return m;
}

void xsp_perf_map_free(struct xsp_perf_map *m)
{
	if (m == NULL)
		return;
	xsp_close(m->fd);
	xsp_u64map_free(&m->pages);
	xsp_arena_free(&m->names);
	free(m->piece);
	free(m->entries);
	free(m->links);
	free(m);
}

pid_t xsp_perf_map_pid(const struct xsp_perf_map *m)
{
	return m->pid;
}

bool xsp_perf_map_is_open(const struct xsp_perf_map *m)
{
	return m->fd >= 0;
}

size_t xsp_perf_map_names(const struct xsp_perf_map *m)
{
	return m->count;
}

bool xsp_perf_map_find(const struct xsp_perf_map *m, uint64_t address, struct xsp_perf_name *out)
{
	const uint32_t *last = xsp_u64map_get(&m->pages, address >> PAGE_BITS);
	uint32_t at = last != NULL ? *last : 0;

	*out = (struct xsp_perf_name){0};
	for (int steps = 0; at != 0 && steps < STEPS_MOST; steps++) {
		const struct link *l = &m->links[at - 1];
		const struct entry *e = &m->entries[l->entry];
		at = l->next;
		if (address < e->start || address - e->start >= e->size)
			continue;
		if (out->name == NULL) {
			out->name = e->name;
			out->start = e->start;
			out->size = e->size;
		} else if (strcmp(out->name, e->name) != 0) {
			out->earlier = e->name;
			break;
		}
		if (l->entry < m->old)
			break;
	}
	return out->name != NULL;
}

/* ---- reading ---- */

/* Nothing is read beyond the limit. */
static bool charge(struct xsp_perf_map *m, size_t bytes)
{
	const bool fits = bytes <= *m->left;

	*m->left = fits ? *m->left - bytes : 0;
	return fits;
}

static bool is_known(const struct xsp_perf_map *m, const struct entry *e)
{
	struct xsp_perf_name known;

	return xsp_perf_map_find(m, e->start, &known) && known.start == e->start &&
	       known.size == e->size && strcmp(known.name, e->name) == 0;
}

static int link_pages(struct xsp_perf_map *m, uint64_t first, uint64_t last)
{
	int rc = xsp_grow(&m->links, &m->link_room, m->link_count + (size_t)(last - first + 1));

	for (uint64_t page = first; page <= last && rc == 0; page++) {
		const uint32_t *before = xsp_u64map_get(&m->pages, page);
		if (before == NULL && !charge(m, PAGE_BYTES))
			return -ENOMEM;
		m->links[m->link_count] =
			(struct link){(uint32_t)m->count, before != NULL ? *before : 0};
		rc = xsp_u64map_set(&m->pages, page, (uint32_t)++m->link_count);
	}
	return rc;
}

/* A lack of memory is treated as the limit. */
static void add(struct xsp_perf_map *m, struct entry e)
{
	const uint64_t first = e.start >> PAGE_BITS, last = (e.start + e.size - 1) >> PAGE_BITS;

	if (last - first >= PAGES_MOST || is_known(m, &e) ||
	    !charge(m, sizeof(e) + sizeof(struct link) * (size_t)(last - first + 2)))
		return;
	e.name = xsp_arena_copy(&m->names, e.name, strlen(e.name));
	if (e.name == NULL || xsp_grow(&m->entries, &m->room, m->count + 1) < 0) {
		*m->left = 0;
		return;
	}
	m->entries[m->count] = e;
	if (link_pages(m, first, last) < 0)
		*m->left = 0;
	m->count++;
}

static void parse_line(struct xsp_perf_map *m, char *line)
{
	struct entry e = {0};
	char *at;

	e.start = strtoull(line, &at, 16);
	if (at == line || *at != ' ')
		return;
	e.size = strtoull(at, &at, 16);
	if (*at != ' ' || e.size == 0 || e.size > UINT64_MAX - e.start)
		return;
	e.name = at + 1;
	xsp_text_clean(at + 1);
	if (e.name[0] != '\0')
		add(m, e);
}

/* Takes the complete lines out of the buffer. A line that fills it is ignored. */
static void parse_lines(struct xsp_perf_map *m)
{
	char *line = m->piece, *end = m->piece + m->held, *newline;

	while ((newline = memchr(line, '\n', (size_t)(end - line))) != NULL) {
		*newline = '\0';
		if (!m->skips)
			parse_line(m, line);
		m->skips = false;
		line = newline + 1;
	}
	m->held = (size_t)(end - line);
	memmove(m->piece, line, m->held);
	if (m->held == PIECE) {
		m->skips = true;
		m->held = 0;
	}
}

/* Was the file rewritten since it was read? Then reading starts again. */
static bool is_another(const struct xsp_perf_map *m, const struct stat *st)
{
	const size_t length = m->offset < TAIL ? (size_t)m->offset : TAIL;
	char tail[TAIL];

	if (m->dump)
		return (uint64_t)st->st_size < m->offset;
	return (uint64_t)st->st_size < m->offset ||
	       pread(m->fd, tail, length, (off_t)(m->offset - length)) != (ssize_t)length ||
	       memcmp(tail, m->tail + TAIL - length, length) != 0;
}

static void keep_tail(struct xsp_perf_map *m, const char *bytes, size_t count)
{
	const size_t length = count < TAIL ? count : TAIL;

	memmove(m->tail, m->tail + length, TAIL - length);
	memcpy(m->tail + TAIL - length, bytes + count - length, length);
}

/* The number of bytes, 0 at the end, or a negative errno. */
static ssize_t read_piece(struct xsp_perf_map *m)
{
	size_t room = PIECE - m->held;

	if (room > *m->left)
		room = *m->left;
	ssize_t n = pread(m->fd, m->piece + m->held, room, (off_t)m->offset);
	if (n <= 0)
		return n;
	keep_tail(m, m->piece + m->held, (size_t)n);
	m->offset += (size_t)n;
	m->held += (size_t)n;
	charge(m, (size_t)n);
	parse_lines(m);
	return n;
}

/* Opens the file if needed; false: there is none. */
static bool is_open(struct xsp_perf_map *m)
{
	struct stat st;

	if (m->fd >= 0 && fstat(m->fd, &st) == 0 && st.st_nlink == 0) {
		/* another file may have replaced it */
		int fd = m->opener->perf_map(m->opener, m->pid);
		if (fd >= 0) {
			close(m->fd);
			m->fd = fd;
			m->offset = m->dump ? 0 : m->offset;
		}
	}
	if (m->fd < 0)
		m->fd = m->opener->perf_map(m->opener, m->pid);
	if (m->fd < 0 || fstat(m->fd, &st) != 0 ||
	    (m->piece == NULL && (m->piece = malloc(PIECE)) == NULL))
		return false;
	if (is_another(m, &st)) {
		m->offset = 0;
		m->held = 0;
		m->skips = false;
	}
	return true;
}

/* ---- a dump ---- */

/* All numbers are in this machine's byte order; a file from another machine is no dump. */
struct dump_header {
	uint32_t magic, version, size, machine, pad, pid;
	uint64_t time_ns, flags;
};
#define DUMP_MAGIC 0x4A695444U
enum { DUMP_LOAD = 0, DUMP_MOVE = 1 };
struct dump_record {
	uint32_t id, size;
	uint64_t time_ns;
};
struct dump_load {
	uint32_t pid, tid;
	uint64_t vma, start, size, index; /* the name, terminated, and the code follow */
};
struct dump_move {
	uint32_t pid, tid;
	uint64_t vma, from, to, size, index;
};
#define DUMP_NAME 1024U /* of longer names, the beginning is kept */

static void add_moved(struct xsp_perf_map *m, const struct dump_move *moved)
{
	struct xsp_perf_name known;

	if (moved->size > 0 && moved->size <= UINT64_MAX - moved->to &&
	    xsp_perf_map_find(m, moved->from, &known))
		add(m, (struct entry){moved->to, moved->size, known.name});
}

/* `size`: of what follows the head of the record. */
static void add_loaded(struct xsp_perf_map *m, const struct dump_load *loaded, char *name,
		       size_t size)
{
	name[size < DUMP_NAME ? size : DUMP_NAME] = '\0';
	xsp_text_clean(name);
	if (name[0] != '\0' && loaded->size > 0 && loaded->size <= UINT64_MAX - loaded->start)
		add(m, (struct entry){loaded->start, loaded->size, name});
}

/* The number of bytes; 0: the next record is incomplete; or a negative errno. */
static ssize_t read_record(struct xsp_perf_map *m, uint64_t file_size)
{
	struct {
		struct dump_record head;
		union {
			struct dump_load loaded;
			struct dump_move moved;
			char bytes[sizeof(struct dump_load) + DUMP_NAME + 1];
		};
	} r;
	const size_t room = sizeof(r.head) + sizeof(struct dump_load) + DUMP_NAME;
	ssize_t n = pread(m->fd, &r, room, (off_t)m->offset);

	if (n < (ssize_t)sizeof(r.head))
		return n < 0 ? -errno : 0;
	if (r.head.size < sizeof(r.head) || r.head.size > file_size ||
	    m->offset > file_size - r.head.size || !charge(m, (size_t)n))
		return 0;
	const size_t size = ((size_t)n < r.head.size ? (size_t)n : r.head.size) - sizeof(r.head);
	if (r.head.id == DUMP_LOAD && size > sizeof(r.loaded))
		add_loaded(m, &r.loaded, r.bytes + sizeof(r.loaded), size - sizeof(r.loaded));
	if (r.head.id == DUMP_MOVE && size >= sizeof(r.moved))
		add_moved(m, &r.moved);
	m->offset += r.head.size;
	return r.head.size;
}

/* Reads the header of a dump; of a map of lines, nothing. */
static void begin_dump(struct xsp_perf_map *m)
{
	struct dump_header h;

	m->dump = pread(m->fd, &h, sizeof(h), 0) == (ssize_t)sizeof(h) && h.magic == DUMP_MAGIC;
	if (m->dump)
		m->offset = h.size < sizeof(h) ? sizeof(h) : h.size;
}

/* ---- the file ---- */

static ssize_t read_some(struct xsp_perf_map *m)
{
	struct stat st;

	if (m->offset == 0)
		begin_dump(m);
	if (!m->dump)
		return read_piece(m);
	return fstat(m->fd, &st) != 0 ? -errno : read_record(m, (uint64_t)st.st_size);
}

void xsp_perf_map_read(struct xsp_perf_map *m, uint64_t until_ns)
{
	if (m->opener->perf_map != NULL && *m->left > 0 && is_open(m))
		while (*m->left > 0 && read_some(m) > 0 && xsp_now_ns() < until_ns)
			;
	if (!m->looked)
		m->old = m->count;
	m->looked = true;
}
