/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/resolve.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/maps.h"
#include "target/module.h"

struct known_file {
	uint64_t dev, inode;
	struct xsp_module *module; /* NULL: cannot be read */
};

struct xsp_resolver {
	struct known_file *files;
	size_t count;
};

/* Where an address lies. */
struct place {
	bool mapped;
	uint64_t dev, inode, file_offset;
	char path[512];
	struct xsp_module *module;
	uint64_t addr; /* in the module */
};

int xsp_resolver_new(struct xsp_resolver **out)
{
	*out = calloc(1, sizeof(**out));
	return *out == NULL ? -ENOMEM : 0;
}

void xsp_resolver_free(struct xsp_resolver *r)
{
	if (r == NULL)
		return;
	for (size_t i = 0; i < r->count; i++)
		xsp_module_free(r->files[i].module);
	free(r->files);
	free(r);
}

/* The mapping of a file, executable or not: vtables lie in data. */
static void find_mapping(const struct xsp_process *p, uint64_t address, struct place *at)
{
	char path[64], line[4352];
	struct xsp_map_line map;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)xsp_process_pid(p));
	FILE *f = fopen(path, "re");
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		if (!xsp_map_line_parse(line, &map) || address < map.start || address >= map.end)
			continue;
		if (map.inode != 0 && map.path_length > 0) {
			at->mapped = true;
			at->dev = map.dev;
			at->inode = map.inode;
			at->file_offset = address - map.start + map.offset;
			snprintf(at->path, sizeof(at->path), "%.*s", (int)map.path_length,
				 map.path);
		}
		break;
	}
	if (f != NULL)
		fclose(f);
}

static int find_module(struct xsp_resolver *r, const struct xsp_process *p, struct place *at)
{
	struct xsp_mapped_files *mapped = NULL;

	for (size_t i = 0; i < r->count; i++) {
		if (r->files[i].inode == at->inode && r->files[i].dev == at->dev) {
			at->module = r->files[i].module;
			return 0;
		}
	}
	struct known_file *grown = reallocarray(r->files, r->count + 1, sizeof(*grown));
	if (grown == NULL)
		return -ENOMEM;
	r->files = grown;
	struct known_file *k = &r->files[r->count++];
	*k = (struct known_file){.dev = at->dev, .inode = at->inode};
	if (xsp_process_mapped_files(p, &mapped, NULL) < 0)
		return 0;
	for (size_t i = 0; i < mapped->count; i++) {
		const struct xsp_mapped_file *f = &mapped->files[i];
		if (f->inode == at->inode && f->dev == at->dev &&
		    xsp_module_open(f->open_path, f->shown, &k->module, NULL) < 0)
			k->module = NULL;
	}
	xsp_mapped_files_free(mapped);
	at->module = k->module;
	return 0;
}

static int find_place(struct xsp_resolver *r, const struct xsp_process *p, uint64_t address,
		      struct place *at)
{
	*at = (struct place){0};
	find_mapping(p, address, at);
	int rc = at->mapped ? find_module(r, p, at) : 0;
	if (rc == 0 && at->module != NULL &&
	    xsp_module_offset_to_addr(at->module, at->file_offset, &at->addr) < 0)
		at->module = NULL;
	return rc;
}

static void module_and_offset(const struct place *at, uint64_t address, char *text, size_t size)
{
	const char *slash = strrchr(at->path, '/');

	if (!at->mapped)
		snprintf(text, size, "0x%" PRIx64, address);
	else
		snprintf(text, size, "%s+0x%" PRIx64, slash ? slash + 1 : at->path,
			 at->module ? at->addr : at->file_offset);
}

static const struct xsp_symbol *covering(struct xsp_module *m, uint64_t addr)
{
	const struct xsp_symbol *symbols;
	size_t count, low = 0;

	if (xsp_module_symbols(m, &symbols, &count, NULL) < 0)
		return NULL;
	while (low < count) { /* the last one at or below addr, minus one */
		size_t middle = low + (count - low) / 2;
		if (symbols[middle].addr <= addr)
			low = middle + 1;
		else
			count = middle;
	}
	if (low == 0 || addr - symbols[low - 1].addr >= symbols[low - 1].size)
		return NULL;
	return &symbols[low - 1];
}

int xsp_resolve_code(struct xsp_resolver *r, const struct xsp_process *p, uint64_t address,
		     char *text, size_t size)
{
	struct place at;
	int rc = find_place(r, p, address, &at);

	if (rc < 0)
		return rc;
	const struct xsp_symbol *s = at.module != NULL ? covering(at.module, at.addr) : NULL;
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

int xsp_resolve_module(struct xsp_resolver *r, const struct xsp_process *p, uint64_t address,
		       struct xsp_module **module, uint64_t *addr)
{
	struct place at;
	int rc = find_place(r, p, address, &at);

	*module = at.module;
	*addr = at.addr;
	return rc == 0 && at.module == NULL ? -ENOENT : rc;
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
	if (at.module == NULL || xsp_module_find_at(at.module, at.addr - 16, "_ZTV", &s) < 0) {
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
