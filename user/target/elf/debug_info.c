/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/elf/debug_info.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "target/module_private.h"

#define DEBUG_MAX (160ULL << 20) /* of all sections: libdw reads them whole */

uint64_t xsp_thread_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

bool xsp_line_of_call(Dwarf_Die *unit, Dwarf_Die *inlined, const char **path, int *line)
{
	Dwarf_Attribute a;
	Dwarf_Word file, number;
	Dwarf_Files *files;
	size_t count;

	if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &a), &file) != 0 ||
	    dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &a), &number) != 0 ||
	    dwarf_getsrcfiles(unit, &files, &count) != 0 || file >= count || number >= 1U << 30)
		return false;
	*path = dwarf_filesrc(files, file, NULL, NULL);
	*line = (int)number;
	return *path != NULL;
}

/* Is there debug information in the file, and not more than may be read? 0, -ENOENT or -EFBIG */
static int check(const struct xsp_elf *elf)
{
	uint64_t size = 0;
	bool found = false;

	for (size_t i = 0; i < elf->section_count; i++) {
		const Elf64_Shdr *h = &elf->sections[i];
		const char *name = xsp_elf_section_name(elf, h);
		if (h->sh_type == SHT_NOBITS ||
		    (strncmp(name, ".debug_", 7) != 0 && strncmp(name, ".zdebug_", 8) != 0))
			continue;
		found |= strcmp(strchr(name, '_'), "_info") == 0;
		size = h->sh_size > DEBUG_MAX - size ? DEBUG_MAX + 1 : size + h->sh_size;
		if (size > DEBUG_MAX)
			return -EFBIG;
	}
	return found ? 0 : -ENOENT;
}

/* Terminates the last text of each section in our copy: libdw does not check, and would read beyond
 * it. */
static void end_texts(Elf *elf)
{
	size_t names = 0;

	elf_getshdrstrndx(elf, &names);
	for (Elf_Scn *n = elf_nextscn(elf, NULL); n != NULL; n = elf_nextscn(elf, n)) {
		Elf64_Shdr *h = elf64_getshdr(n);
		const char *name = h != NULL ? elf_strptr(elf, names, h->sh_name) : NULL;
		if (name == NULL || h->sh_type == SHT_NOBITS || strstr(name, "debug_") == NULL ||
		    (strstr(name, "_info") == NULL && strstr(name, "str") == NULL))
			continue;
		Elf_Data *data = elf_rawdata(n, NULL);
		if (data != NULL && data->d_buf != NULL && data->d_size > 0)
			((char *)data->d_buf)[data->d_size - 1] = '\0';
	}
}

static int look_at(const struct xsp_elf *file, void (*look)(void *ctx, Dwarf *dwarf), void *ctx)
{
	size_t size;
	uint8_t *copy = xsp_elf_expand(file, DEBUG_MAX, &size);

	elf_version(EV_CURRENT);
	Elf *elf = copy != NULL ? elf_memory((char *)copy, size)
				: elf_begin(file->fd, ELF_C_READ, NULL); /* without mapping it */
	Dwarf *dwarf = elf != NULL ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;

	if (dwarf != NULL) {
		end_texts(elf);
		look(ctx, dwarf);
	}
	const int rc = dwarf != NULL ? 0 : -ENOENT;
	dwarf_end(dwarf);
	elf_end(elf);
	free(copy);
	return rc;
}

int xsp_module_debug_info(struct xsp_module *m, void (*look)(void *ctx, Dwarf *dwarf), void *ctx)
{
	struct xsp_elf separate;
	int rc = check(&m->elf);

	if (rc == 0)
		return look_at(&m->elf, look, ctx);
	if (!xsp_module_debug_file(m, &separate))
		return rc;
	rc = check(&separate);
	if (rc == 0)
		rc = look_at(&separate, look, ctx);
	xsp_elf_close(&separate);
	return rc;
}
