/* SPDX-License-Identifier: BSD-2-Clause */
/* versions.c - the versions of dynamic symbols (GNU symbol versioning; layouts: the LSB's "Symbol
 * Versioning", <elf.h>). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/module_private.h"

#define NUMBERS 0x8000U /* a number has 15 bits; bit 15: it is not the default */
#define RECORDS_MAX (1U << 20) /* a hostile file may chain endlessly many */

static const char *text_at(const struct xsp_symbol_cache *c, uint64_t at)
{
	const struct xsp_symbol_table *t = &c->tables[XSP_TABLE_DYNAMIC];

	return at < t->strings_size ? t->strings + at : NULL;
}

static void set_name(struct xsp_symbol_cache *c, unsigned number, uint64_t name, const char *file)
{
	if (number > 1 && number < c->named_count) /* 0 and 1: no version */
		c->named[number] = (struct xsp_symbol_version){text_at(c, name), file};
}

/* What the file defines. */
static void read_definitions(struct xsp_symbol_cache *c, const uint8_t *data, size_t size)
{
	size_t at = 0;

	for (unsigned i = 0; i < RECORDS_MAX && size - at >= sizeof(Elf64_Verdef); i++) {
		Elf64_Verdef d;
		Elf64_Verdaux name;
		memcpy(&d, data + at, sizeof(d));
		if (d.vd_aux <= size - at && size - at - d.vd_aux >= sizeof(name)) {
			memcpy(&name, data + at + d.vd_aux, sizeof(name));
			set_name(c, d.vd_ndx, name.vda_name, NULL);
		}
		if (d.vd_next == 0 || d.vd_next > size - at)
			return;
		at += d.vd_next;
	}
}

/* What it wants of other files. */
static void read_needs(struct xsp_symbol_cache *c, const uint8_t *data, size_t size)
{
	unsigned records = 0;
	size_t at = 0;

	while (size - at >= sizeof(Elf64_Verneed)) {
		Elf64_Verneed n;
		Elf64_Vernaux name = {.vna_next = 1};
		memcpy(&n, data + at, sizeof(n));
		uint64_t aux = at + (uint64_t)n.vn_aux;
		for (; name.vna_next > 0 && aux < size && size - aux >= sizeof(name);
		     aux += name.vna_next) {
			memcpy(&name, data + aux, sizeof(name));
			set_name(c, name.vna_other, name.vna_name, text_at(c, n.vn_file));
			if (++records > RECORDS_MAX)
				return;
		}
		if (n.vn_next == 0 || n.vn_next > size - at || ++records > RECORDS_MAX)
			return;
		at += n.vn_next;
	}
}

static void read_section(struct xsp_module *m, uint32_t type,
			 void (*read)(struct xsp_symbol_cache *c, const uint8_t *data, size_t size))
{
	const Elf64_Shdr *s = xsp_elf_section(&m->elf, NULL, type);
	void *data;

	if (s == NULL || xsp_elf_load(&m->elf, s->sh_offset, s->sh_size, &data) < 0)
		return;
	read(&m->symbols, data, s->sh_size);
	free(data);
}

/* NULL: the symbol has no version. */
static const struct xsp_symbol_version *version_of(struct xsp_module *m, size_t symbol)
{
	struct xsp_symbol_cache *c = &m->symbols;
	void *numbers;

	if (!c->versions_loaded) {
		const Elf64_Shdr *s = xsp_elf_section(&m->elf, NULL, SHT_GNU_versym);
		c->versions_loaded = true;
		if (s == NULL || xsp_elf_load(&m->elf, s->sh_offset, s->sh_size, &numbers) < 0)
			return NULL;
		c->versions = numbers;
		c->version_count = s->sh_size / sizeof(*c->versions);
		c->named = calloc(NUMBERS, sizeof(*c->named));
		c->named_count = c->named != NULL ? NUMBERS : 0;
		read_section(m, SHT_GNU_verdef, read_definitions);
		read_section(m, SHT_GNU_verneed, read_needs);
	}
	const unsigned number = symbol < c->version_count ? c->versions[symbol] % NUMBERS : 0;
	return number < c->named_count && c->named[number].name != NULL ? &c->named[number] : NULL;
}

const char *xsp_module_version(struct xsp_module *m, const struct xsp_symbol *s)
{
	const struct xsp_symbol_version *v = s->dynamic > 0 ? version_of(m, s->dynamic - 1) : NULL;

	return v != NULL && v->file == NULL ? v->name : NULL;
}

const char *xsp_module_imported_from(struct xsp_module *m, const char *name)
{
	const struct xsp_symbol_table *t = &m->symbols.tables[XSP_TABLE_DYNAMIC];

	if (xsp_symbol_tables_load(m, NULL) < 0)
		return NULL;
	for (size_t i = 0; i < t->count; i++) {
		const Elf64_Sym *s = &t->symbols[i];
		const unsigned type = ELF64_ST_TYPE(s->st_info);
		if (s->st_shndx != SHN_UNDEF || (type != STT_FUNC && type != STT_NOTYPE) ||
		    s->st_name >= t->strings_size || strcmp(t->strings + s->st_name, name) != 0)
			continue;
		const struct xsp_symbol_version *v = version_of(m, i);
		return v != NULL && v->file != NULL ? v->file : "";
	}
	return NULL;
}
