/* SPDX-License-Identifier: BSD-2-Clause */
/* imports.c - which functions of other files a file calls, and through which slots. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/module_private.h"

static int report(struct xsp_module *m, const Elf64_Rela *relocations, size_t count,
		  xsp_import_fn fn, void *ctx)
{
	const struct xsp_symbol_table *t = &m->symbols.tables[XSP_TABLE_DYNAMIC];

	for (size_t i = 0; i < count; i++) {
		const Elf64_Rela *r = &relocations[i];
		size_t symbol = ELF64_R_SYM(r->r_info);
		uint32_t type = (uint32_t)ELF64_R_TYPE(r->r_info);
		if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT)
			continue;
		if (symbol == 0 || symbol >= t->count ||
		    t->symbols[symbol].st_name >= t->strings_size)
			continue;
		int rc = fn(ctx, r->r_offset, t->strings + t->symbols[symbol].st_name);
		if (rc != 0)
			return rc;
	}
	return 0;
}

int xsp_module_imports(struct xsp_module *m, xsp_import_fn fn, void *ctx)
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
		ret = report(m, relocations, s->sh_size / sizeof(Elf64_Rela), fn, ctx);
		free(relocations);
	}
	return ret;
}
