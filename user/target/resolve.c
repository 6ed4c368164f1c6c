/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/resolve.h"
#include "base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <Zydis/Zydis.h>

#include "base/grow.h"
#include "base/path.h"
#include "base/search.h"
#include "base/u64map.h"
#include "catalog/compilers.h"
#include "target/elf/file.h"
#include "procfs/map_line.h"
#include "target/module.h"
#include "target/perf_map.h"
#include "procfs/procfs.h"

struct known_file {
	uint64_t dev, inode;
	struct xsp_module *module; /* NULL: cannot be read */
	bool prompt; /* reading does not wait for another process */
};

/* A mapping of code of a process, remembered while it lived. */
struct remembered {
	pid_t pid;
	uint32_t before; /* 1 + index of the process's previous one; 0: none */
	uint64_t dev, inode, start, end, offset;
	char *path;
	bool covered; /* another mapping was there since */
};

/* A mapping of a file that may not be written. */
struct constant {
	uint64_t dev, inode, start, end, offset;
};

/* Those of a process, by address. */
struct constants {
	pid_t pid;
	uint64_t time_ns; /* they are at least as new as this */
	bool alive;
	struct constant *maps;
	size_t count, room;
};

/* Code that no file holds, such as that of a compiler in the process. It may appear at any time.
 * Each look reads /proc/PID/maps, which takes milliseconds for a process with thousands of
 * mappings. */
#define GENERATED_NS 20000000ULL
struct generated {
	pid_t pid;
	uint64_t time_ns; /* of the last look */
	struct {
		uint64_t start, end;
		char name[24];
	} * maps;
	size_t count, room;
};

/* The perf map of a process. */
#define MAP_FIRST_NS 1000000000ULL /* the most time for its first read */
#define MAP_AGAIN_NS 2000000ULL /* the same for reads that look for an address */
struct named_code {
	struct xsp_perf_map *map;
	uint64_t time_ns; /* of the last look */
	bool wanted; /* the process has run code of no file */
};

struct xsp_resolver {
	const struct xsp_opener *opener;
	struct known_file *files;
	size_t count, file_room, open, open_most;
	struct xsp_u64map by_file; /* xsp_file_key() → index in files */
	struct remembered *maps;
	size_t map_count, map_room;
	struct xsp_u64map remembered; /* key → 1 + index of the latest of it */
	struct xsp_u64map latest; /* process → 1 + index of its latest */
	struct constants constants; /* of the process that was asked about last */
	struct generated generated; /* likewise */
	struct named_code *named;
	size_t named_count, named_room;
	size_t named_left; /* bytes that may still be read of all of them */
	bool left_mappings, left_processes; /* there was no room for more */
	/* for the tables of files, whose owners may have made them large */
	struct xsp_elf_budget tables;
};

/* Where an address lies. */
struct place {
	bool mapped;
	uint64_t dev, inode, file_offset;
	char path[512];
	struct xsp_module *module;
	uint64_t addr; /* in the module */
};

int xsp_resolver_new(const struct xsp_opener *o, struct xsp_resolver **out)
{
	struct rlimit files;

	*out = calloc(1, sizeof(**out));
	if (*out == NULL)
		return -ENOMEM;
	(*out)->opener = o;
	(*out)->named_left = XSP_PERF_MAP_BYTES;
	(*out)->tables.left = XSP_RESOLVER_TABLES_BYTES;
	(*out)->open_most =
		getrlimit(RLIMIT_NOFILE, &files) == 0 ? (size_t)files.rlim_cur / 2 : 512;
	return 0;
}

void xsp_resolver_free(struct xsp_resolver *r)
{
	if (r == NULL)
		return;
	for (size_t i = 0; i < r->count; i++)
		xsp_module_free(r->files[i].module);
	for (size_t i = 0; i < r->map_count; i++)
		free(r->maps[i].path);
	for (size_t i = 0; i < r->named_count; i++)
		xsp_perf_map_free(r->named[i].map);
	free(r->named);
	free(r->constants.maps);
	free(r->generated.maps);
	xsp_u64map_free(&r->remembered);
	xsp_u64map_free(&r->latest);
	xsp_u64map_free(&r->by_file);
	free(r->maps);
	free(r->files);
	free(r);
}

/* The line of /proc/PID/maps that covers an address; *line holds its text. False: there is none. */
static bool find_line(const struct xsp_opener *o, pid_t pid, uint64_t address, char *line,
		      size_t size, struct xsp_map_line *map)
{
	int fd = o->file(o, pid, "maps");
	FILE *f = fd >= 0 ? fdopen(fd, "re") : NULL;
	bool found = false;

	if (f == NULL && fd >= 0)
		close(fd);
	while (f != NULL && !found && fgets(line, (int)size, f) != NULL)
		found = xsp_map_line_parse(line, map) && address >= map->start &&
			address < map->end;
	if (f != NULL)
		fclose(f);
	return found;
}

/* The mapping of a file, executable or not: vtables are in data. */
static void find_mapping(const struct xsp_process *p, uint64_t address, struct place *at)
{
	char line[4352];
	struct xsp_map_line map;

	if (!find_line(xsp_process_opener(p), xsp_process_pid(p), address, line, sizeof(line),
		       &map) ||
	    map.inode == 0 || map.path_length == 0)
		return;
	at->mapped = true;
	at->dev = map.dev;
	at->inode = map.inode;
	at->file_offset = address - map.start + map.offset;
	snprintf(at->path, sizeof(at->path), "%.*s", (int)map.path_length, map.path);
}

static struct known_file *known(const struct xsp_resolver *r, uint64_t dev, uint64_t inode)
{
	const uint32_t *at;

	for (uint64_t key = xsp_file_key(dev, inode);
	     (at = xsp_u64map_get(&r->by_file, key)) != NULL; key++)
		if (r->files[*at].inode == inode && r->files[*at].dev == dev)
			return &r->files[*at];
	return NULL;
}

static struct known_file *add_file(struct xsp_resolver *r, uint64_t dev, uint64_t inode)
{
	uint64_t key = xsp_file_key(dev, inode);

	while (xsp_u64map_get(&r->by_file, key) != NULL)
		key++;
	if (xsp_grow(&r->files, &r->file_room, r->count + 1) < 0 ||
	    xsp_u64map_set(&r->by_file, key, (uint32_t)r->count) < 0)
		return NULL;
	r->files[r->count] = (struct known_file){.dev = dev, .inode = inode};
	return &r->files[r->count++];
}

static void open_file(struct xsp_resolver *r, struct known_file *k, const struct xsp_process *p,
		      const struct xsp_mapped_file *f)
{
	struct statfs fs;

	/* each needs a descriptor for the whole recording */
	if (r->open == r->open_most) {
		r->tables.refused = true;
		return;
	}
	int fd = xsp_mapped_file_open(p, f, NULL);
	if (fd < 0)
		return;
	k->prompt = fstatfs(fd, &fs) == 0 && fs.f_type != FUSE_SUPER_MAGIC;
	if (xsp_module_adopt_within(xsp_process_opener(p), fd, f->display_path, &r->tables,
				    &k->module, NULL) < 0)
		k->module = NULL;
	r->open += k->module != NULL;
}

static int find_module(struct xsp_resolver *r, const struct xsp_process *p, struct place *at)
{
	struct xsp_mapped_files *mapped = NULL;
	struct known_file *k = known(r, at->dev, at->inode);

	if (k == NULL) {
		k = add_file(r, at->dev, at->inode);
		if (k == NULL)
			return -ENOMEM;
		if (xsp_process_mapped_files(p, &mapped, NULL) < 0)
			return 0;
		for (size_t i = 0; i < mapped->count && k->module == NULL; i++)
			if (mapped->files[i].inode == at->inode && mapped->files[i].dev == at->dev)
				open_file(r, k, p, &mapped->files[i]);
		xsp_mapped_files_free(mapped);
	}
	at->module = k->module;
	return 0;
}

/* A process may have tens of thousands. */
static uint64_t key_of(pid_t pid, const struct xsp_mapped_file *f)
{
	return xsp_u64_mix(f->start ^
			   xsp_u64_mix(f->inode ^ xsp_u64_mix(f->dev ^ (uint64_t)pid << 32)));
}

/* The process's latest mapping, or the one before `m`. NULL: there are no more. */
static const struct remembered *before(const struct xsp_resolver *r, pid_t pid,
				       const struct remembered *m)
{
	const uint32_t *latest = m == NULL ? xsp_u64map_get(&r->latest, (uint64_t)pid) : NULL;
	const uint32_t at = m != NULL ? m->before : latest != NULL ? *latest : 0;

	return at != 0 ? &r->maps[at - 1] : NULL;
}

static int remember(struct xsp_resolver *r, pid_t pid, const struct xsp_mapped_file *f)
{
	if (xsp_grow(&r->maps, &r->map_room, r->map_count + 1) < 0)
		return -ENOMEM;
	struct remembered *m = &r->maps[r->map_count];
	const struct remembered *last = before(r, pid, NULL);
	*m = (struct remembered){.pid = pid,
				 .before = last != NULL ? (uint32_t)(last - r->maps) + 1 : 0,
				 .dev = f->dev,
				 .inode = f->inode,
				 .start = f->start,
				 .end = f->end,
				 .offset = f->offset,
				 .path = strdup(f->display_path)};
	if (m->path == NULL ||
	    xsp_u64map_set(&r->remembered, key_of(pid, f), (uint32_t)r->map_count + 1) < 0 ||
	    xsp_u64map_set(&r->latest, (uint64_t)pid, (uint32_t)r->map_count + 1) < 0) {
		free(m->path);
		return -ENOMEM;
	}
	r->map_count++;
	return 0;
}

/* Does another mapping cover it now? `f` is sorted by address, as /proc/PID/maps is. */
static bool is_covered(const struct remembered *m, const struct xsp_mapped_file *f, size_t count)
{
	size_t low = 0;

	XSP_LOWER_BOUND(low, count, i, f[i].end <= m->start);
	return low < count && f[low].start < m->end &&
	       (f[low].start != m->start || f[low].inode != m->inode || f[low].dev != m->dev);
}

static void cover_remembered(struct xsp_resolver *r, pid_t pid,
			     const struct xsp_mapped_files *mapped)
{
	const struct remembered *last = before(r, pid, NULL);

	for (uint32_t at = last != NULL ? (uint32_t)(last - r->maps) + 1 : 0; at != 0;) {
		struct remembered *m = &r->maps[at - 1];
		m->covered |= is_covered(m, mapped->files, mapped->count) ||
			      is_covered(m, mapped->further, mapped->further_count);
		at = m->before;
	}
}

/* Is the latest mapping there this one? What came back to its address is remembered again. */
static bool is_remembered(const struct xsp_resolver *r, pid_t pid, const struct xsp_mapped_file *f)
{
	const uint32_t *at = xsp_u64map_get(&r->remembered, key_of(pid, f));

	return at != NULL && !r->maps[*at - 1].covered;
}

static bool is_unknown(const void *ctx, const struct xsp_mapped_file *f)
{
	return known(ctx, f->dev, f->inode) == NULL;
}

/* ---- perf maps ---- */

static struct named_code *named_code(const struct xsp_resolver *r, pid_t pid)
{
	for (size_t i = r->named_count; i > 0; i--)
		if (xsp_perf_map_pid(r->named[i - 1].map) == pid)
			return &r->named[i - 1];
	return NULL;
}

static void read_map(struct named_code *n, uint64_t for_ns)
{
	n->time_ns = xsp_now_ns();
	xsp_perf_map_read(n->map, n->time_ns + for_ns);
}

/* The map that is known longest makes room, if its process has none: most have none. */
static bool make_room(struct xsp_resolver *r)
{
	for (size_t i = 0; i < r->named_count; i++) {
		struct named_code *n = &r->named[i];
		if (n->wanted || xsp_perf_map_is_open(n->map))
			continue;
		xsp_perf_map_free(n->map);
		memmove(n, n + 1, (--r->named_count - i) * sizeof(*n));
		return true;
	}
	return false;
}

static int learn_map(struct xsp_resolver *r, pid_t pid)
{
	if (named_code(r, pid) != NULL)
		return 0;
	if (r->named_count == XSP_RESOLVER_MAPS && !make_room(r)) {
		r->left_processes = true;
		return 0;
	}
	if (xsp_grow(&r->named, &r->named_room, r->named_count + 1) < 0)
		return -ENOMEM;
	struct named_code *n = &r->named[r->named_count];
	*n = (struct named_code){0};
	n->map = xsp_perf_map_new(r->opener, pid, &r->named_left);
	if (n->map == NULL)
		return -ENOMEM;
	r->named_count++;
	read_map(n, MAP_FIRST_NS);
	return 0;
}

size_t xsp_resolver_read_maps(struct xsp_resolver *r, uint64_t until_ns)
{
	size_t names = 0;

	for (size_t i = 0; i < r->named_count; i++) {
		if (r->named[i].wanted)
			xsp_perf_map_read(r->named[i].map, until_ns);
		names += xsp_perf_map_names(r->named[i].map);
	}
	return names;
}

bool xsp_resolver_left_maps(const struct xsp_resolver *r)
{
	return r->named_left == 0;
}

bool xsp_resolver_left_processes(const struct xsp_resolver *r)
{
	return r->left_processes;
}

bool xsp_resolver_left_mappings(const struct xsp_resolver *r)
{
	return r->left_mappings;
}

bool xsp_resolver_left_tables(const struct xsp_resolver *r)
{
	return r->tables.refused;
}

/* `compiled`: it is code that the map may name, so the map is read further if needed. */
static bool name_by_map(const struct xsp_resolver *r, pid_t pid, uint64_t address, bool compiled,
			char *text, size_t size)
{
	struct named_code *n = named_code(r, pid);
	struct xsp_perf_name found;

	if (n == NULL)
		return false;
	n->wanted |= compiled;
	bool named = xsp_perf_map_find(n->map, address, &found);
	if (!named && compiled && xsp_now_ns() - n->time_ns >= GENERATED_NS) {
		read_map(n, MAP_AGAIN_NS);
		named = xsp_perf_map_find(n->map, address, &found);
	}
	if (named)
		snprintf(text, size, "%s%s%s%s", found.name,
			 found.earlier != NULL ? " [earlier: " : "",
			 found.earlier != NULL ? found.earlier : "",
			 found.earlier != NULL ? "]" : "");
	return named;
}

int xsp_resolver_learn(struct xsp_resolver *r, const struct xsp_process *p,
		       const struct xsp_mapped_files *mapped)
{
	pid_t pid = xsp_process_pid(p);
	int rc = learn_map(r, pid);

	cover_remembered(r, pid, mapped);
	for (size_t i = 0; i < mapped->count + mapped->further_count && rc == 0; i++) {
		const struct xsp_mapped_file *f =
			i < mapped->count ? &mapped->files[i] : &mapped->further[i - mapped->count];
		if (r->map_count == XSP_RESOLVER_MAPPINGS) {
			r->left_mappings |= !is_remembered(r, pid, f);
			continue;
		}
		if (i < mapped->count)
			xsp_mapped_files_open_ahead(p, mapped, i, is_unknown, r);
		if (is_remembered(r, pid, f))
			continue;
		struct known_file *k = known(r, f->dev, f->inode);
		if (k == NULL && (k = add_file(r, f->dev, f->inode)) != NULL)
			open_file(r, k, p, f);
		rc = k != NULL ? remember(r, pid, f) : -ENOMEM;
	}
	return rc;
}

/* The process is gone, or has unmapped it: finds the latest mapping that was there. */
static void find_remembered(const struct xsp_resolver *r, pid_t pid, uint64_t address,
			    struct place *at)
{
	const struct remembered *m = NULL;

	while (!at->mapped && (m = before(r, pid, m)) != NULL) {
		if (address < m->start || address >= m->end)
			continue;
		at->mapped = true;
		at->dev = m->dev;
		at->inode = m->inode;
		at->file_offset = address - m->start + m->offset;
		snprintf(at->path, sizeof(at->path), "%s", m->path);
	}
}

static int find_place(struct xsp_resolver *r, const struct xsp_process *p, uint64_t address,
		      struct place *at)
{
	*at = (struct place){0};
	find_mapping(p, address, at);
	if (!at->mapped)
		find_remembered(r, xsp_process_pid(p), address, at);
	int rc = at->mapped ? find_module(r, p, at) : 0;
	if (rc == 0 && at->module != NULL &&
	    xsp_module_offset_to_addr(at->module, at->file_offset, &at->addr) < 0)
		at->module = NULL;
	return rc;
}

static void module_and_offset(const struct place *at, uint64_t address, char *text, size_t size)
{
	if (!at->mapped)
		snprintf(text, size, "0x%" PRIx64, address);
	else
		snprintf(text, size, "%s+0x%" PRIx64, xsp_base_name(at->path),
			 at->module ? at->addr : at->file_offset);
}

int xsp_resolve_code(struct xsp_resolver *r, const struct xsp_process *p, uint64_t address,
		     char *text, size_t size)
{
	struct place at;
	int rc = find_place(r, p, address, &at);

	if (rc < 0)
		return rc;
	const struct xsp_symbol *s =
		at.module != NULL ? xsp_module_covering(at.module, at.addr) : NULL;
	if (s == NULL) {
		module_and_offset(&at, address, text, size);
		return 0;
	}
	char *name = xsp_demangle(s->name, false);
	snprintf(text, size, "%.*s+0x%" PRIx64, (int)size - 20, name != NULL ? name : s->name,
		 at.addr - s->addr);
	free(name);
	return 0;
}

/* ---- return addresses ---- */

/* Does a call end right before `addr`? x86-64: e8 rel32, or ff /2 in any of its lengths. */
static bool follows_call(struct xsp_module *m, uint64_t addr)
{
	uint8_t code[8];

	if (xsp_module_arch(m) == XSP_ARCH_AARCH64) {
		uint32_t insn;
		if (xsp_module_read(m, addr - 4, &insn, sizeof(insn)) != sizeof(insn))
			return false;
		return (insn & 0xfc000000U) == 0x94000000U || (insn & 0xfffffc1fU) == 0xd63f0000U;
	}
	if (xsp_module_read(m, addr - sizeof(code), code, sizeof(code)) != sizeof(code))
		return false;
	if (code[3] == 0xe8)
		return true;
	ZydisDecoder decoder;
	ZydisDecodedInstruction d;
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (size_t length = 2; length <= sizeof(code); length++) {
		const uint8_t *at = code + sizeof(code) - length;
		if (ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, at, length, &d)) &&
		    d.length == length && d.mnemonic == ZYDIS_MNEMONIC_CALL)
			return true;
	}
	return false;
}

static const char *name_in(const struct generated *g, uint64_t address)
{
	for (size_t i = 0; i < g->count; i++)
		if (address >= g->maps[i].start && address < g->maps[i].end)
			return g->maps[i].name;
	return NULL;
}

/* "[vdso]", or code that a compiler made in the process. */
static void add_generated(struct generated *g, const struct xsp_map_line *map)
{
	const bool named = map->path_length > 0 && map->path[0] == '[';

	if (!map->executable || map->inode != 0 || xsp_grow(&g->maps, &g->room, g->count + 1) < 0)
		return;
	g->maps[g->count].start = map->start;
	g->maps[g->count].end = map->end;
	snprintf(g->maps[g->count].name, sizeof(g->maps[0].name), "%.*s",
		 named ? (int)map->path_length : (int)strlen(XSP_GENERATED),
		 named ? map->path : XSP_GENERATED);
	g->count++;
}

/* A process that cannot be read has none. */
static void look_for_generated(struct xsp_resolver *r, pid_t pid)
{
	struct generated *g = &r->generated;
	char line[4352];
	struct xsp_map_line map;
	int fd = r->opener->file(r->opener, pid, "maps");
	FILE *f = fd >= 0 ? fdopen(fd, "re") : NULL;

	if (f == NULL && fd >= 0)
		close(fd);
	g->count = 0;
	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (xsp_map_line_parse(line, &map))
			add_generated(g, &map);
	if (f != NULL)
		fclose(f);
	g->pid = pid;
	g->time_ns = xsp_now_ns();
}

/* Code that no file holds; "": there is no code. */
static void name_generated(struct xsp_resolver *r, pid_t pid, uint64_t address, char *text,
			   size_t size)
{
	struct generated *g = &r->generated;
	const char *name = g->pid == pid ? name_in(g, address) : NULL;

	if (address <= 4096)
		return;
	if (name == NULL && (g->pid != pid || xsp_now_ns() - g->time_ns >= GENERATED_NS)) {
		look_for_generated(r, pid);
		name = name_in(g, address);
	}
	if (name != NULL)
		snprintf(text, size, "%s", name);
}

/* Where the address lies in code that was learned. */
static void find_remembered_code(const struct xsp_resolver *r, pid_t pid, uint64_t address,
				 struct place *at)
{
	*at = (struct place){0};
	find_remembered(r, pid, address, at);
	const struct known_file *k = at->mapped ? known(r, at->dev, at->inode) : NULL;
	if (k != NULL && k->module != NULL &&
	    xsp_module_offset_to_addr(k->module, at->file_offset, &at->addr) == 0)
		at->module = k->module;
}

/* 0; XSP_RESOLVED_GENERATED with the name of code that a compiler made; or else -ENOENT with the
 * text for the kernel's own code. */
static int find_code(struct xsp_resolver *r, pid_t pid, uint64_t address, struct place *at,
		     char *text, size_t size)
{
	text[0] = '\0';
	find_remembered_code(r, pid, address, at);
	if (at->module != NULL)
		return 0;
	if (name_by_map(r, pid, address, false, text, size))
		return XSP_RESOLVED_GENERATED;
	if (!at->mapped)
		name_generated(r, pid, address, text, size);
	if (!at->mapped && !xsp_is_generated(text))
		return -ENOENT;
	name_by_map(r, pid, address, true, text, size);
	return XSP_RESOLVED_GENERATED;
}

int xsp_resolve_learned(const struct xsp_resolver *r, pid_t pid, uint64_t address,
			struct xsp_module **module, uint64_t *addr)
{
	struct place at;

	find_remembered_code(r, pid, address, &at);
	*module = at.module;
	*addr = at.addr;
	return at.module != NULL ? 0 : -ENOENT;
}

/* The function around `addr`, which is `address` or right before it. One without a symbol is named
 * by its start, which .eh_frame says. */
static void name_code(const struct place *at, uint64_t addr, uint64_t address, char *text,
		      size_t size)
{
	const struct xsp_symbol *s = xsp_module_covering(at->module, addr);
	struct xsp_code_range range;

	if (s == NULL && xsp_module_code_range(at->module, addr, &range) == 0) {
		snprintf(text, size, "%s+0x%" PRIx64, xsp_base_name(at->path), range.addr);
		return;
	}
	if (s == NULL) {
		module_and_offset(at, address, text, size);
		return;
	}
	char *name = xsp_demangle(s->name, false);
	snprintf(text, size, "%s", name != NULL ? name : s->name);
	free(name);
}

int xsp_resolve_return(struct xsp_resolver *r, pid_t pid, uint64_t address, char *text, size_t size)
{
	struct place at;

	int rc = find_code(r, pid, address, &at, text, size);

	if (rc != 0 || !follows_call(at.module, at.addr))
		return rc > 0 ? rc : 0;
	/* look at the call itself: if it never returns, it may end the function */
	name_code(&at, at.addr - 1, address, text, size);
	return 0;
}

int xsp_resolve_standing(struct xsp_resolver *r, pid_t pid, uint64_t address, char *text,
			 size_t size)
{
	struct place at;
	int rc = find_code(r, pid, address, &at, text, size);

	if (rc == 0)
		name_code(&at, at.addr, address, text, size);
	return rc > 0 ? rc : 0;
}

int xsp_resolve_instruction(struct xsp_resolver *r, pid_t pid, uint64_t address, char *text,
			    size_t size)
{
	struct place at;
	char function[1024];
	int rc = find_code(r, pid, address, &at, function, sizeof(function));

	if (rc == 0)
		name_code(&at, at.addr, address, function, sizeof(function));
	else if (at.mapped && function[0] == '\0')
		module_and_offset(&at, address, function, sizeof(function));
	snprintf(text, size, "%.64s", at.mapped ? xsp_base_name(at.path) : "");
	text[strcspn(text, "\n")] = '\0';
	size_t length = strlen(text);
	snprintf(text + length, size - length, "\n%s", function);
	return rc > 0 ? rc : 0;
}

int xsp_resolve_module(struct xsp_resolver *r, const struct xsp_process *p, uint64_t address,
		       struct xsp_module **module, uint64_t *addr)
{
	struct place at;
	int rc = find_place(r, p, address, &at);

	*module = at.module;
	*addr = at.addr;
	return rc == 0 && at.module == NULL ? -ENOENT : rc;
}

/* The process is gone: finds the vtable of a module that it had. The remembered mappings are of
 * code; they show how far the loader has moved the file. */
static bool find_remembered_vtable(const struct xsp_resolver *r, pid_t pid, uint64_t pointer,
				   struct xsp_symbol *out)
{
	const struct remembered *m = NULL;

	while ((m = before(r, pid, m)) != NULL) {
		const struct known_file *k = known(r, m->dev, m->inode);
		uint64_t code;
		if (k == NULL || k->module == NULL ||
		    xsp_module_offset_to_addr(k->module, m->offset, &code) < 0)
			continue;
		if (xsp_module_find_at(k->module, pointer - (m->start - code) - 16, "_ZTV", out) ==
		    0)
			return true;
	}
	return false;
}

/* ---- texts ---- */

static int add_constant(struct constants *c, const struct xsp_map_line *line)
{
	if (line->writable || line->inode == 0)
		return 0;
	return XSP_APPEND(c->maps, c->room, c->count,
			  (struct constant){.dev = line->dev,
					    .inode = line->inode,
					    .start = line->start,
					    .end = line->end,
					    .offset = line->offset});
}

static int look_for_constants(struct constants *c, const struct xsp_process *p)
{
	char *text = NULL;
	size_t length = 0;
	int rc = 0;

	c->pid = xsp_process_pid(p);
	c->time_ns = xsp_now_ns();
	c->count = 0;
	/* checked afterwards: another process may have got its id */
	if (xsp_procfs_read(xsp_process_opener(p), c->pid, "maps", XSP_MAPS_MAX, &text, &length) <
		    0 ||
	    !xsp_process_alive(p))
		length = 0;
	c->alive = length > 0;
	for (const char *line = text; length > 0 && *line != '\0' && rc == 0;) {
		struct xsp_map_line map;
		if (xsp_map_line_parse(line, &map))
			rc = add_constant(c, &map);
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
	free(text);
	return rc;
}

static void find_constant(const struct constants *c, uint64_t address, struct place *at)
{
	size_t low = 0;

	XSP_LOWER_BOUND(low, c->count, i, c->maps[i].end <= address);
	if (low == c->count || address < c->maps[low].start)
		return;
	const struct constant *m = &c->maps[low];
	*at = (struct place){.mapped = true,
			     .dev = m->dev,
			     .inode = m->inode,
			     .file_offset = address - m->start + m->offset};
}

static bool is_constant(const struct xsp_module *m, uint64_t addr)
{
	struct xsp_load load;

	for (size_t i = 0; xsp_module_load(m, i, &load) == 0; i++)
		if (addr >= load.addr && addr - load.addr < load.size)
			return !load.writable;
	return false;
}

/* The process is gone: the latest mapping that was there. See find_remembered_vtable(). */
static void find_remembered_constant(const struct xsp_resolver *r, pid_t pid, uint64_t address,
				     struct place *at)
{
	const struct remembered *m = NULL;

	while ((m = before(r, pid, m)) != NULL) {
		const struct known_file *k = known(r, m->dev, m->inode);
		uint64_t code;
		if (k == NULL || k->module == NULL ||
		    xsp_module_offset_to_addr(k->module, m->offset, &code) < 0 ||
		    !is_constant(k->module, address - (m->start - code)))
			continue;
		*at = (struct place){.dev = m->dev,
				     .inode = m->inode,
				     .module = k->module,
				     .addr = address - (m->start - code)};
		return;
	}
}

int xsp_resolve_text(struct xsp_resolver *r, const struct xsp_process *p, uint64_t time_ns,
		     uint64_t address, uint64_t length, char *text, size_t size)
{
	pid_t pid = xsp_process_pid(p);
	struct constants *c = &r->constants;
	struct place at = {0};
	int rc = 0;

	if (c->pid != pid || c->time_ns <= time_ns)
		rc = look_for_constants(c, p);
	find_constant(c, address, &at);
	if (rc == 0 && at.mapped)
		rc = find_module(r, p, &at);
	if (rc < 0)
		return rc;
	if (!c->alive)
		find_remembered_constant(r, pid, address, &at);
	else if (at.module != NULL &&
		 xsp_module_offset_to_addr(at.module, at.file_offset, &at.addr) < 0)
		at.module = NULL;
	const struct known_file *k = at.module != NULL ? known(r, at.dev, at.inode) : NULL;
	if (k == NULL || !k->prompt || !is_constant(at.module, at.addr))
		return -ENOENT;
	bool ends = length != UINT64_MAX;
	size_t want = ends && length < size - 1 ? (size_t)length : size - 1;
	long n = xsp_module_read(at.module, at.addr, text, want);
	if (n < 0 || (ends && (size_t)n < want))
		return -ENOENT;
	text[n] = '\0';
	return ends || (size_t)n == size - 1 || strlen(text) < (size_t)n ? 0 : -ENOENT;
}

int xsp_resolve_vtable(struct xsp_resolver *r, const struct xsp_process *p, uint64_t pointer,
		       char *text, size_t size)
{
	static const char prefix[] = "vtable for ";
	struct place at;
	struct xsp_symbol s;
	int rc = find_place(r, p, pointer, &at);

	if (rc < 0)
		return rc;
	if (at.module == NULL || xsp_module_find_at(at.module, at.addr - 16, "_ZTV", &s) < 0)
		rc = at.mapped || !find_remembered_vtable(r, xsp_process_pid(p), pointer, &s)
			     ? -ENOENT
			     : 0;
	if (rc < 0) {
		module_and_offset(&at, pointer, text, size);
		return -ENOENT;
	}
	char *name = xsp_demangle(s.name, true);
	if (name == NULL || strncmp(name, prefix, sizeof(prefix) - 1) != 0)
		module_and_offset(&at, pointer, text, size);
	else
		snprintf(text, size, "%s", name + sizeof(prefix) - 1);
	free(name);
	return 0;
}
