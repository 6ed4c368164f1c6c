/* SPDX-License-Identifier: BSD-2-Clause */
/* expand.c - debug sections that are packed with zstd (gABI, "Section Compression"): libelf before
 * 0.189, or built without it, cannot read them. */
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "target/elf/debug_info.h"
#include "target/module_private.h"

#define ZSTD 2 /* ELFCOMPRESS_ZSTD; glibc has the name since 2.36 */
#define ALIGNED(size) (((size) + 15) & ~(uint64_t)15)

/* Bytes of the section as debuggers want it; 0: it is not one of theirs, or broken. *zstd: packed so. */
static uint64_t unpacked_size(const struct xsp_elf *elf, const Elf64_Shdr *s, bool *zstd)
{
	Elf64_Chdr packed;

	*zstd = false;
	if (s->sh_type == SHT_NOBITS || s->sh_offset > elf->size ||
	    s->sh_size > elf->size - s->sh_offset ||
	    strncmp(xsp_elf_section_name(elf, s), ".debug_", 7) != 0)
		return 0;
	if (!(s->sh_flags & SHF_COMPRESSED))
		return s->sh_size;
	if (s->sh_size < sizeof(packed) ||
	    xsp_elf_read(elf, s->sh_offset, &packed, sizeof(packed)) < 0)
		return 0;
	*zstd = packed.ch_type == ZSTD;
	return *zstd ? packed.ch_size : s->sh_size;
}

static bool unpack(const struct xsp_elf *elf, const Elf64_Shdr *s, uint8_t *to, uint64_t size)
{
	void *packed;

	if (xsp_elf_load(elf, s->sh_offset, s->sh_size, &packed) < 0)
		return false;
	const size_t got = ZSTD_decompress(to, size, (uint8_t *)packed + sizeof(Elf64_Chdr),
					   s->sh_size - sizeof(Elf64_Chdr));
	free(packed);
	return got == size;
}

/* Bytes of the copy; 0: nothing is packed with zstd, or it would be more than `most`. */
static uint64_t size_of_copy(const struct xsp_elf *elf, uint64_t most)
{
	uint64_t size = ALIGNED(sizeof(Elf64_Ehdr)) +
			ALIGNED(elf->section_count * sizeof(Elf64_Shdr)) + ALIGNED(elf->names_size);
	bool zstd, any = false;

	for (size_t i = 0; i < elf->section_count; i++) {
		const uint64_t n = unpacked_size(elf, &elf->sections[i], &zstd);
		if (size > most || n > most - size)
			return 0;
		size += ALIGNED(n);
		any |= zstd;
	}
	return any && size <= most ? size : 0;
}

/* Fills the copy: header, sections' headers, their names, the sections. Others have no bytes in it. */
static bool fill(const struct xsp_elf *elf, uint8_t *copy, uint64_t total)
{
	Elf64_Ehdr *header = (void *)copy;
	Elf64_Shdr *sections = (void *)(copy + ALIGNED(sizeof(*header)));
	uint64_t at = ALIGNED(sizeof(*header)) + ALIGNED(elf->section_count * sizeof(*sections));
	bool zstd, whole = xsp_elf_read(elf, 0, header, sizeof(*header)) == 0;

	header->e_phoff = header->e_phnum = 0;
	header->e_shoff = (uint64_t)((uint8_t *)sections - copy);
	memcpy(sections, elf->sections, elf->section_count * sizeof(*sections));
	for (size_t i = 0; i < elf->section_count && whole; i++) {
		Elf64_Shdr *s = &sections[i];
		uint64_t size = unpacked_size(elf, s, &zstd);
		if (i == header->e_shstrndx)
			size = elf->names_size;
		if (size > total - at || ALIGNED(size) > total - at) /* the file has changed */
			return false;
		if (i == header->e_shstrndx) {
			memcpy(copy + at, elf->names, size);
		} else if (size == 0) {
			s->sh_type = i == 0 ? SHT_NULL : SHT_NOBITS;
			continue;
		} else if (zstd) {
			whole = unpack(elf, s, copy + at, size);
			s->sh_flags &= ~(uint64_t)SHF_COMPRESSED;
		} else {
			whole = xsp_elf_read(elf, s->sh_offset, copy + at, size) == 0;
		}
		s->sh_offset = at;
		s->sh_size = size;
		at += ALIGNED(size);
	}
	return whole;
}

uint8_t *xsp_elf_expand(const struct xsp_elf *elf, uint64_t most, size_t *size)
{
	*size = size_of_copy(elf, most);
	uint8_t *copy = *size > 0 ? calloc(1, *size) : NULL;

	if (copy != NULL && !fill(elf, copy, *size)) {
		free(copy);
		copy = NULL;
	}
	return copy;
}
