/* SPDX-License-Identifier: BSD-2-Clause */
/* imports.c - which functions of other files a file calls, and through which slots. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/module_private.h"

struct imports {
	xsp_import_fn fn;
	void *ctx;
};

/* Looks at the relocations of a section. Anything but 0 ends it. */
typedef int visit_fn(struct xsp_module *m, const Elf64_Rela *relocations, size_t count, void *ctx);

static int report(struct xsp_module *m, const Elf64_Rela *relocations, size_t count, void *ctx)
{
	const struct xsp_symbol_table *t = &m->symbols.tables[XSP_TABLE_DYNAMIC];
	const struct imports *imports = ctx;

	for (size_t i = 0; i < count; i++) {
		const Elf64_Rela *r = &relocations[i];
		size_t symbol = ELF64_R_SYM(r->r_info);
		uint32_t type = (uint32_t)ELF64_R_TYPE(r->r_info);
		if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT)
			continue;
		if (symbol == 0 || symbol >= t->count ||
		    t->symbols[symbol].st_name >= t->strings_size)
			continue;
		int rc = imports->fn(imports->ctx, r->r_offset,
				     t->strings + t->symbols[symbol].st_name);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static int visit_relocations(struct xsp_module *m, visit_fn *visit, void *ctx)
{
	const struct xsp_symbol *symbols;
	size_t count;
	int ret = xsp_module_symbols(m, &symbols, &count, NULL);

	if (m->elf.machine != EM_X86_64)
		return 0;
	for (size_t i = 0; ret == 0 && i < m->elf.section_count; i++) {
		const Elf64_Shdr *s = &m->elf.sections[i];
		void *relocations;
		if (s->sh_type != SHT_RELA || !(s->sh_flags & SHF_ALLOC))
			continue;
		ret = xsp_elf_load(&m->elf, s->sh_offset, s->sh_size, &relocations);
		if (ret == -ENOEXEC) {
			ret = 0; /* a broken section counts as none */
			continue;
		}
		if (ret < 0)
			break;
		ret = visit(m, relocations, s->sh_size / sizeof(Elf64_Rela), ctx);
		free(relocations);
	}
	return ret;
}

int xsp_module_imports(struct xsp_module *m, xsp_import_fn fn, void *ctx)
{
	return visit_relocations(m, report, &(struct imports){fn, ctx});
}

struct slot {
	uint64_t at, addr;
};

static int look_for_slot(struct xsp_module *m, const Elf64_Rela *relocations, size_t count,
			 void *ctx)
{
	const struct xsp_symbol_table *t = &m->symbols.tables[XSP_TABLE_DYNAMIC];
	struct slot *slot = ctx;

	for (size_t i = 0; i < count; i++) {
		const Elf64_Rela *r = &relocations[i];
		const size_t symbol = ELF64_R_SYM(r->r_info);
		const uint32_t type = (uint32_t)ELF64_R_TYPE(r->r_info);
		if (r->r_offset != slot->at)
			continue;
		if (type == R_X86_64_RELATIVE)
			slot->addr = (uint64_t)r->r_addend;
		else if ((type == R_X86_64_GLOB_DAT || type == R_X86_64_64) && symbol < t->count &&
			 t->symbols[symbol].st_shndx != SHN_UNDEF)
			slot->addr = t->symbols[symbol].st_value + (uint64_t)r->r_addend;
		else
			return 0;
		return 1;
	}
	return 0;
}

int xsp_module_slot(struct xsp_module *m, uint64_t slot, uint64_t *addr)
{
	struct slot s = {.at = slot};
	const int found = visit_relocations(m, look_for_slot, &s);

	*addr = s.addr;
	return found < 0 ? found : found > 0 ? 0 : -ENOENT;
}
