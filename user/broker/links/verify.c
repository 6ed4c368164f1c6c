/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/links/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "broker/kernel/kernel.h"
#include "broker/links/links.h"
#include "base/rows/grow.h"
#include "procfs/map_line.h"
#include "procfs/procfs.h"

#define PAGE 4096U /* what is compared at a time: one of the kernel's pages, or a part of it */
#define ENTRIES 512U /* of pagemap, read at a time */

struct range {
	uint64_t start, end, offset; /* offset in the file */
};

struct memory {
	int mem, pagemap, file;
	uint64_t page_bytes; /* of pagemap's entries */
	struct range *ranges;
	size_t count, room;
	/* other code, which may have taken the place of the file's */
	struct range *others;
	size_t other_count, other_room;
	struct range data; /* of the file, if none of its code is mapped; else empty */
	/* where the kernel's 5-byte calls lead to */
	struct range trampolines[8];
	size_t trampoline_count;
	/* the last page that was looked at: functions come sorted by address */
	uint64_t page; /* its address; 0: none yet */
	bool private, readable;
	ssize_t file_bytes;
	uint8_t of_file[PAGE], of_memory[PAGE];
};

/* ---- the file ---- */

int xsp_verified_file_note(struct xsp_verified_file *file)
{
	struct stat st;

	if (fstat(file->fd, &st) != 0)
		return -errno;
	file->size = (uint64_t)st.st_size;
	file->changed = st.st_ctim;
	return 0;
}

int xsp_verified_file_check(const struct xsp_verified_file *file)
{
	struct xsp_verified_file now = *file;
	int rc = xsp_verified_file_note(&now);

	if (rc < 0)
		return rc;
	return now.size == file->size && now.changed.tv_sec == file->changed.tv_sec &&
			       now.changed.tv_nsec == file->changed.tv_nsec
		       ? 0
		       : -ESTALE;
}

/* ---- what the process maps ---- */

static int add_mapping(struct memory *m, const struct xsp_verified_file *file,
		       const struct xsp_map_line *map)
{
	static const char trampoline[] = "[uprobes-trampoline]";

	if (map->path_length == sizeof(trampoline) - 1 &&
	    strncmp(map->path, trampoline, map->path_length) == 0 && m->trampoline_count < 8)
		m->trampolines[m->trampoline_count++] = (struct range){map->start, map->end, 0};
	const struct range r = {map->start, map->end, map->offset};
	const bool of_file = map->inode == file->inode && map->dev == file->dev;
	if (!map->executable && of_file && m->data.end == 0)
		m->data = r;
	if (!map->executable)
		return 0;
	return of_file ? XSP_APPEND(m->ranges, m->room, m->count, r)
		       : XSP_APPEND(m->others, m->other_room, m->other_count, r);
}

int xsp_verify_open(pid_t pid, const char *name, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)xsp_living_thread(pid), name);
	int fd = open(path, flags | O_CLOEXEC);
	return fd >= 0 ? fd : errno == ENOENT ? -ESRCH : -errno;
}

static void close_memory(struct memory *m)
{
	xsp_close(m->mem);
	xsp_close(m->pagemap);
	free(m->ranges);
	free(m->others);
}

/* Asks the kernel: the text of maps takes 2 ms where 300 libraries are mapped, and is needed several times a library.
 * The name matters only for mappings without a file. -ENOTTY: before Linux 6.11. */
static int query_mappings(int maps, const struct xsp_verified_file *file, bool code,
			  struct memory *m)
{
	struct xsp_procmap_query q = {.size = sizeof(q)};
	char name[64];
	int rc = 0;

	while (rc == 0) {
		q.query_flags = XSP_PROCMAP_COVERING_OR_NEXT | (code ? XSP_PROCMAP_EXECUTABLE : 0);
		q.query_addr = q.vma_end;
		q.vma_name_addr = 0; /* together with its size */
		q.vma_name_size = 0;
		if (ioctl(maps, XSP_PROCMAP_QUERY, &q) != 0)
			return errno == ENOENT ? 0 : -errno;
		if (q.inode == 0) {
			q.vma_name_addr = (uintptr_t)name;
			q.vma_name_size = sizeof(name);
		}
		if (q.inode == 0 && ioctl(maps, XSP_PROCMAP_QUERY, &q) != 0)
			q.vma_name_size = 0; /* the name is longer, or the mapping is gone */
		rc = add_mapping(m, file,
				 &(struct xsp_map_line){
					 .start = q.vma_start,
					 .end = q.vma_end,
					 .offset = q.vma_offset,
					 .dev = makedev(q.dev_major, q.dev_minor),
					 .inode = q.inode,
					 .executable = code,
					 .path = name,
					 .path_length = q.vma_name_size > 0 ? strlen(name) : 0});
	}
	return rc;
}

static int read_mappings(pid_t pid, const struct xsp_verified_file *file, struct memory *m)
{
	char *text = NULL;
	int rc = xsp_procfs_read(&xsp_open_directly, pid, "maps", XSP_MAPS_MAX, &text, NULL);

	const char *at = text;
	for (struct xsp_map_line line; rc == 0 && xsp_map_line_next(&at, &line);)
		rc = add_mapping(m, file, &line);
	free(text);
	return rc;
}

static int find_mappings(pid_t pid, const struct xsp_verified_file *file, struct memory *m)
{
	int maps = xsp_verify_open(pid, "maps", O_RDONLY);

	if (maps < 0)
		return maps;
	int rc = query_mappings(maps, file, true, m);
	if (rc == 0 && m->count == 0) /* where would its code be? */
		rc = query_mappings(maps, file, false, m);
	close(maps);
	return rc == -ENOTTY ? read_mappings(pid, file, m) : rc;
}

static int open_memory(pid_t pid, const struct xsp_verified_file *file, struct memory *m)
{
	*m = (struct memory){.mem = -1,
			     .pagemap = -1,
			     .file = file->fd,
			     .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE)};
	int rc = xsp_verified_file_check(file);
	if (rc == 0)
		rc = find_mappings(pid, file, m);
	if (rc == 0)
		rc = m->mem = xsp_verify_open(pid, "mem", O_RDONLY);
	if (rc >= 0)
		rc = m->pagemap = xsp_verify_open(pid, "pagemap", O_RDONLY);
	if (rc < 0)
		close_memory(m);
	return rc < 0 ? rc : 0;
}

/* ---- pages that are the process's own ---- */

/* Documentation/admin-guide/mm/pagemap.rst */
#define PRESENT (1ULL << 63)
#define SWAPPED (1ULL << 62)
#define OF_FILE (1ULL << 61) /* file-mapped, or shared anonymous */

/* Only a private copy can differ from the file. */
static bool is_private(uint64_t entry)
{
	return (entry & SWAPPED) != 0 || (entry & (PRESENT | OF_FILE)) == PRESENT;
}

static bool is_private_at(const struct memory *m, uint64_t address)
{
	uint64_t entry;

	return pread(m->pagemap, &entry, sizeof(entry), (off_t)(address / m->page_bytes * 8)) !=
		       sizeof(entry) ||
	       is_private(entry);
}

/* `offset`: the page's in the file. */
static void look_at_page(struct memory *m, uint64_t page, uint64_t offset)
{
	if (m->page == page)
		return;
	m->page = page;
	m->private = is_private_at(m, page);
	if (!m->private)
		return;
	m->file_bytes = pread(m->file, m->of_file, PAGE, (off_t)offset);
	/* what cannot be read any more cannot run either */
	m->readable = pread(m->mem, m->of_memory, PAGE, (off_t)page) == PAGE;
}

/* ---- sites ---- */

static bool is_kernels_call(const struct memory *m, const uint8_t *code, uint64_t address)
{
	int32_t distance;

	memcpy(&distance, code + 1, sizeof(distance));
	uint64_t to = address + 5 + (uint64_t)(int64_t)distance;
	for (size_t i = 0; code[0] == 0xe8 && i < m->trampoline_count; i++)
		if (to >= m->trampolines[i].start && to < m->trampolines[i].end)
			return true;
	return false;
}

#if defined(__x86_64__)
#define BREAKPOINT_BYTES 1U

static bool is_breakpoint(const uint8_t *code)
{
	return code[0] == 0xcc;
}

static bool is_nop5(const uint8_t *code)
{
	static const uint8_t nop5[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};

	return memcmp(code, nop5, sizeof(nop5)) == 0;
}
#else
#define BREAKPOINT_BYTES 4U

/* arch/arm64/include/asm/brk-imm.h: UPROBES_BRK_IMM 5 */
static bool is_breakpoint(const uint8_t *code)
{
	uint32_t word;

	memcpy(&word, code, sizeof(word));
	return word == (0xd4200000U | 5U << 5);
}

static bool is_nop5(const uint8_t *code)
{
	(void)code;
	return false;
}
#endif

/* Do the bytes differ, other than by a breakpoint of the kernel? */
static bool is_other_code(const struct memory *m, const uint8_t *file, const uint8_t *memory,
			  size_t length, uint64_t address, bool linked)
{
	for (size_t i = 0; i < length; i++) {
		const size_t left = length - i;
		if (file[i] == memory[i])
			continue;
		if (left >= 5 && is_nop5(file + i) && memory[i] == 0xe8 &&
		    (linked || is_kernels_call(m, memory + i, address + i)))
			i += 4;
		else if (left >= BREAKPOINT_BYTES && is_breakpoint(memory + i))
			i += BREAKPOINT_BYTES - 1;
		else
			return true;
	}
	return false;
}

/* `room`: bytes of the mapping from there on, as the length may be wrong by gigabytes. */
static bool is_changed(struct memory *m, const struct xsp_attach_site *s, uint64_t address,
		       uint64_t room, bool linked)
{
	const uint64_t length = s->length < room ? s->length : room;

	for (uint64_t at = 0, n; at < length; at += n) {
		/* page by page: only private ones can differ */
		const uint64_t in_page = (address + at) % PAGE;
		n = PAGE - in_page < length - at ? PAGE - in_page : length - at;
		look_at_page(m, address + at - in_page, s->offset + at - in_page);
		if (!m->private || !m->readable)
			continue;
		if (m->file_bytes < (ssize_t)(in_page + n) ||
		    is_other_code(m, m->of_file + in_page, m->of_memory + in_page, n, address + at,
				  linked))
			return true;
	}
	return false;
}

/* The file's code is not mapped where it was: does other code lie there? Programs move theirs to large pages. */
static bool is_replaced(const struct memory *m, const struct xsp_attach_site *s)
{
	const struct range *near = m->count > 0 ? &m->ranges[0] : &m->data;
	const uint64_t address = near->start + (s->offset - near->offset);

	for (size_t i = 0; i < m->other_count && near->end != 0; i++)
		if (address >= m->others[i].start && address < m->others[i].end)
			return true;
	return false;
}

static bool is_unprobed(struct memory *m, const struct xsp_attach_site *s, uint64_t address)
{
	const uint64_t in_page = address % PAGE;

	look_at_page(m, address - in_page, s->offset - in_page);
	if (!m->private || !m->readable)
		return !m->private;
	const uint8_t *code = m->of_memory + in_page;
	if (PAGE - in_page < BREAKPOINT_BYTES || is_breakpoint(code))
		return false;
	if (PAGE - in_page < 5 || code[0] != 0xe8)
		return true;
	/* its trampoline may be newer than our list */
	return !is_kernels_call(m, code, address) &&
	       (m->file_bytes < (ssize_t)(in_page + 5) || !is_nop5(m->of_file + in_page));
}

static bool differs(struct memory *m, const struct xsp_attach_site *s, enum xsp_verify question)
{
	bool unprobed = false, mapped = false;

	for (size_t i = 0; i < m->count; i++) {
		const struct range *r = &m->ranges[i];
		if (s->offset < r->offset || s->offset - r->offset >= r->end - r->start)
			continue;
		const uint64_t address = r->start + (s->offset - r->offset);
		mapped = true;
		if (question == XSP_VERIFY_UNPROBED) {
			unprobed = is_unprobed(m, s, address);
			if (!unprobed)
				return false;
		} else if (is_changed(m, s, address, r->end - address,
				      question == XSP_VERIFY_LINKED)) {
			return true;
		}
	}
	return mapped ? unprobed : is_replaced(m, s);
}

int xsp_verify_sites(pid_t pid, const struct xsp_verified_file *file,
		     const struct xsp_attach_site *sites, size_t count, enum xsp_verify question,
		     uint8_t *answers)
{
	struct memory m;
	int rc = open_memory(pid, file, &m);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < count; i++)
		answers[i] = differs(&m, &sites[i], question);
	close_memory(&m);
	return 0;
}

/* ---- leftovers ---- */

struct leftovers {
	uint64_t *offsets;
	size_t count, room;
};

#define AROUND 8

/* Does nothing but breakpoints differ from the file around there? Otherwise somebody has written other code there, and
 * this byte may be an operand. */
static bool stands_alone(const uint8_t *memory, const uint8_t *file, size_t i, size_t n)
{
	const size_t from = i > AROUND ? i - AROUND : 0, to = n - i > AROUND ? i + AROUND : n;

	for (size_t k = from; k < to; k += BREAKPOINT_BYTES)
		if (memcmp(memory + k, file + k, BREAKPOINT_BYTES) != 0 &&
		    !is_breakpoint(memory + k))
			return false;
	return true;
}

/* Finds breakpoints on a private page where the file has another instruction. */
static int find_on_page(const struct memory *m, const struct range *r, uint64_t address,
			struct leftovers *l)
{
	uint8_t file[PAGE], memory[PAGE];
	uint64_t offset = address - r->start + r->offset;
	ssize_t n = pread(m->file, file, PAGE, (off_t)offset);

	if (n <= 0 || pread(m->mem, memory, (size_t)n, (off_t)address) != n)
		return 0;
	for (size_t i = 0; i + BREAKPOINT_BYTES <= (size_t)n; i += BREAKPOINT_BYTES) {
		if (!is_breakpoint(memory + i) || is_breakpoint(file + i) ||
		    !stands_alone(memory, file, i, (size_t)n))
			continue;
		if (XSP_APPEND(l->offsets, l->room, l->count, offset + i) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int find_in_range(const struct memory *m, const struct range *r, struct leftovers *l)
{
	uint64_t entries[ENTRIES];
	int rc = 0;

	for (uint64_t at = r->start; at < r->end && rc == 0; at += ENTRIES * m->page_bytes) {
		ssize_t n = pread(m->pagemap, entries, sizeof(entries),
				  (off_t)(at / m->page_bytes * 8));
		for (uint64_t to = at; n > 0 && rc == 0 && to < r->end; to += PAGE) {
			const uint64_t i = (to - at) / m->page_bytes;
			if (i >= (uint64_t)n / 8)
				break;
			if (is_private(entries[i]))
				rc = find_on_page(m, r, to, l);
		}
	}
	return rc;
}

static int find_all(const struct memory *m, struct leftovers *l)
{
	int rc = 0;

	l->count = 0;
	for (size_t i = 0; i < m->count && rc == 0; i++)
		rc = find_in_range(m, &m->ranges[i], l);
	return rc;
}

/* Registers these sites and closes them in peace. The kernel refuses all of them for one that is no breakpoint of its
 * own: halves them until that one is alone. */
static void register_and_close(pid_t pid, int file, int prog, const uint64_t *offsets, size_t count)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	struct xsp_link_create_uprobe_multi attr = {
		.prog_fd = (uint32_t)prog,
		.attach_type = XSP_BPF_TRACE_UPROBE_MULTI,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)offsets,
		.count = (uint32_t)count,
		.pid = (uint32_t)pid,
	};
	int link = xsp_link_create_uprobe_multi(&attr);
	if (link >= 0) {
		close(link);
	} else if (count > 1) {
		register_and_close(pid, file, prog, offsets, count / 2);
		register_and_close(pid, file, prog, offsets + count / 2, count - count / 2);
	}
}

long xsp_verify_repair(pid_t pid, const struct xsp_verified_file *file, int prog, size_t *stay)
{
	struct leftovers found = {0}, left = {0};
	struct memory m;
	int rc = open_memory(pid, file, &m);

	if (rc < 0)
		return rc;
	rc = find_all(&m, &found);
	left.count = found.count;
	for (size_t at = 0; rc == 0 && at < found.count &&
			    xsp_procfs_status_id(&xsp_open_directly, pid, "TracerPid") == 0;
	     at += XSP_LINK_SITES) {
		size_t before = left.count, rest = found.count - at;
		register_and_close(pid, file->fd, prog, found.offsets + at,
				   rest < XSP_LINK_SITES ? rest : XSP_LINK_SITES);
		rc = find_all(&m, &left);
		if (left.count == before)
			break; /* a living tracer holds them: each close takes tens of ms */
	}
	long gone = (long)found.count - (long)left.count;
	if (stay != NULL)
		*stay = left.count;
	free(found.offsets);
	free(left.offsets);
	close_memory(&m);
	return rc < 0 ? rc : gone;
}
