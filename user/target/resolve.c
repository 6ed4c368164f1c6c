/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/resolve.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <Zydis/Zydis.h>

#include "base/clock.h"
#include "base/rows/grow.h"
#include "base/path.h"
#include "catalog/compilers.h"
#include "procfs/map_line.h"
#include "target/resolve_private.h"

/* Where an address lies. */
struct place {
	bool mapped;
	uint64_t dev, inode, file_offset;
	char path[512];
	struct xsp_module *module;
	uint64_t addr; /* in the module */
};

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

static int find_module(struct xsp_resolver *r, const struct xsp_process *p, struct place *at)
{
	struct xsp_mapped_files *mapped = NULL;
	struct xsp_known_file *k = xsp_resolver_known(r, at->dev, at->inode);

	if (k == NULL) {
		k = xsp_resolver_add_file(r, at->dev, at->inode);
		if (k == NULL)
			return -ENOMEM;
		if (xsp_process_mapped_files(p, &mapped, NULL) < 0)
			return 0;
		for (size_t i = 0; i < mapped->count && k->module == NULL; i++)
			if (mapped->files[i].inode == at->inode && mapped->files[i].dev == at->dev)
				xsp_resolver_open(r, k, p, &mapped->files[i]);
		xsp_mapped_files_free(mapped);
	}
	at->module = k->module;
	return 0;
}

/* The process is gone, or has unmapped it: finds the latest mapping that was there. */
static void find_remembered(const struct xsp_resolver *r, pid_t pid, uint64_t address,
			    struct place *at)
{
	const struct xsp_remembered *m = NULL;

	while (!at->mapped && (m = xsp_resolver_before(r, pid, m)) != NULL) {
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
	char *name = xsp_code_name(s->name);
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

/* Where the address lies in code that was learned. */
static void find_remembered_code(const struct xsp_resolver *r, pid_t pid, uint64_t address,
				 struct place *at)
{
	*at = (struct place){0};
	find_remembered(r, pid, address, at);
	const struct xsp_known_file *k =
		at->mapped ? xsp_resolver_known(r, at->dev, at->inode) : NULL;
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
	if (xsp_resolver_name_by_map(r, pid, address, false, text, size))
		return XSP_RESOLVED_GENERATED;
	if (!at->mapped)
		xsp_resolver_name_generated(r, pid, address, text, size);
	if (!at->mapped && !xsp_is_generated(text))
		return -ENOENT;
	xsp_resolver_name_by_map(r, pid, address, true, text, size);
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
	char *name = xsp_code_name(s->name);
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
	const struct xsp_invented *invented = xsp_resolver_invented(r, address);
	struct place at;

	if (invented != NULL) {
		snprintf(text, size, "%s", invented->text);
		return 0;
	}
	const int rc = find_code(r, pid, address, &at, text, size);
	if (rc == 0)
		name_code(&at, at.addr, address, text, size);
	return rc > 0 ? rc : 0;
}

int xsp_resolve_instruction(struct xsp_resolver *r, pid_t pid, uint64_t address, char *text,
			    size_t size)
{
	const struct xsp_invented *invented = xsp_resolver_invented(r, address);
	struct place at;
	char function[1024];

	if (invented != NULL) {
		snprintf(text, size, "\n%s", invented->text);
		return 0;
	}
	const int rc = find_code(r, pid, address, &at, function, sizeof(function));
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

void xsp_resolve_file(const struct xsp_resolver *r, pid_t pid, uint64_t address, char *text,
		      size_t size)
{
	const struct xsp_invented *invented = xsp_resolver_invented(r, address);
	struct place at = {0};

	find_remembered(r, pid, address, &at);
	snprintf(text, size, "%s", invented != NULL ? invented->file : at.mapped ? at.path : "");
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

struct xsp_module *xsp_resolve_module_that_has(const struct xsp_resolver *r, pid_t pid,
					       const char *name, uint64_t *moved)
{
	const struct xsp_remembered *m = NULL;
	struct xsp_symbol s;
	uint64_t code;

	while ((m = xsp_resolver_before(r, pid, m)) != NULL) {
		const struct xsp_known_file *k = xsp_resolver_known(r, m->dev, m->inode);
		if (k == NULL || k->module == NULL || xsp_module_find(k->module, name, &s) < 0 ||
		    xsp_module_offset_to_addr(k->module, m->offset, &code) < 0)
			continue;
		if (moved != NULL)
			*moved = m->start - code;
		return k->module;
	}
	return NULL;
}

/* The process is gone: the module and address that it had there by this mapping, or NULL. The
 * remembered mappings are of code; they show how far the loader has moved the file. */
static struct xsp_module *moved(const struct xsp_resolver *r, const struct xsp_remembered *m,
				uint64_t address, uint64_t *addr)
{
	const struct xsp_known_file *k = xsp_resolver_known(r, m->dev, m->inode);
	uint64_t code;

	if (k == NULL || k->module == NULL ||
	    xsp_module_offset_to_addr(k->module, m->offset, &code) < 0)
		return NULL;
	*addr = address - (m->start - code);
	return k->module;
}

static bool find_remembered_vtable(const struct xsp_resolver *r, pid_t pid, uint64_t pointer,
				   struct xsp_symbol *out)
{
	const struct xsp_remembered *m = NULL;
	uint64_t addr;

	while ((m = xsp_resolver_before(r, pid, m)) != NULL) {
		struct xsp_module *module = moved(r, m, pointer, &addr);
		if (module != NULL && xsp_module_find_at(module, addr - 16, "_ZTV", out) == 0)
			return true;
	}
	return false;
}

/* ---- texts ---- */

/* In a mapping of a file that may not be written. */
static void find_constant(const struct xsp_maps *maps, uint64_t address, struct place *at)
{
	const struct xsp_map *m = xsp_maps_find(maps, address);

	if (m != NULL && !m->writable && m->inode != 0)
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

/* The process is gone: the latest mapping that was there. */
static void find_remembered_constant(const struct xsp_resolver *r, pid_t pid, uint64_t address,
				     struct place *at)
{
	const struct xsp_remembered *m = NULL;
	uint64_t addr;

	while ((m = xsp_resolver_before(r, pid, m)) != NULL) {
		struct xsp_module *module = moved(r, m, address, &addr);
		if (module == NULL || !is_constant(module, addr))
			continue;
		*at = (struct place){
			.dev = m->dev, .inode = m->inode, .module = module, .addr = addr};
		return;
	}
}

int xsp_resolve_text(struct xsp_resolver *r, const struct xsp_process *p, uint64_t time_ns,
		     uint64_t address, uint64_t length, char *text, size_t size)
{
	pid_t pid = xsp_process_pid(p);
	struct xsp_seen_maps *c = &r->constants;
	struct place at = {0};
	int rc = 0;

	if (c->pid != pid || c->time_ns <= time_ns) {
		rc = xsp_resolver_look(c, xsp_process_opener(p), pid);
		/* only now: another process may have got its id */
		if (!xsp_process_alive(p))
			c->maps.count = 0;
	}
	find_constant(&c->maps, address, &at);
	if (rc == 0 && at.mapped)
		rc = find_module(r, p, &at);
	if (rc < 0)
		return rc;
	if (c->maps.count == 0)
		find_remembered_constant(r, pid, address, &at);
	else if (at.module != NULL &&
		 xsp_module_offset_to_addr(at.module, at.file_offset, &at.addr) < 0)
		at.module = NULL;
	const struct xsp_known_file *k =
		at.module != NULL ? xsp_resolver_known(r, at.dev, at.inode) : NULL;
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
