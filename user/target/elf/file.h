/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * file.h - the headers of a 64-bit little-endian ELF file, and bounded reads from it.
 *
 * Reads use pread, and nothing is mapped: so a file that shrinks meanwhile gives a short read and
 * never a SIGBUS. Layouts: the ELF gABI, <elf.h>.
 */
#ifndef XSP_TARGET_ELF_FILE_H
#define XSP_TARGET_ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* A PT_LOAD, with its file part shortened to what lies inside the file. */
struct xsp_segment {
	uint64_t addr, memory_size; /* virtual */
	uint64_t offset, file_size; /* in the file */
	bool executable, writable;
};

/* The memory that may still be used for many files. A single file may use half of what is left, so
 * that one made to use it all leaves something for others. */
struct xsp_elf_budget {
	uint64_t left; /* bytes */
	bool refused; /* something was refused because too few were left */
};

struct xsp_elf {
	int fd; /* -1: not open, or in memory */
	uint8_t *memory; /* the whole file, owned; NULL: read it from fd */
	struct xsp_elf_budget *budget; /* NULL: there is none */
	uint64_t size;
	uint16_t type, machine; /* ET_*, EM_* */
	struct xsp_segment *segments;
	size_t segment_count;
	Elf64_Phdr *headers; /* all program headers */
	size_t header_count;
	Elf64_Shdr *sections;
	size_t section_count;
	char *names; /* section names, zero-terminated as a whole */
	size_t names_size;
};

/* The largest section that is read into memory. The string tables of the largest known libraries
 * (GPU builds with debug symbols) are smaller. */
#define XSP_ELF_SECTION_MAX (1ULL << 30)

/*
 * Reads the headers of the file at descriptor `fd`, which it owns from now on, even on failure.
 * `display_path` is the name in messages; `budget` (borrowed) bounds what is loaded. Fails with
 * -ENOEXEC and XSP_STATUS_TARGET for anything but a 64-bit file of this machine's architecture,
 * else with -errno of read(2). On failure `elf` holds nothing to close.
 */
int xsp_elf_open(int fd, const char *display_path, struct xsp_elf_budget *budget,
		 struct xsp_elf *elf, struct xsp_error *err);
/* The same with a file of `size` bytes in malloc'd memory, which it owns. */
int xsp_elf_open_memory(uint8_t *data, size_t size, const char *display_path,
			struct xsp_elf_budget *budget, struct xsp_elf *elf, struct xsp_error *err);
void xsp_elf_close(struct xsp_elf *elf);

/* Reads exactly `size` bytes at `offset`; -EIO if the file ends before. */
int xsp_elf_read(const struct xsp_elf *elf, uint64_t offset, void *buf, size_t size);

/* Takes memory from the budget; false: too little is left. */
bool xsp_elf_may_keep(const struct xsp_elf *elf, uint64_t bytes);

/* The bytes [offset, offset+size) of the file in a malloc'd buffer, followed by a zero byte.
 * -ENOEXEC: outside the file; -EFBIG: more than XSP_ELF_SECTION_MAX or the budget; -ENOMEM. */
int xsp_elf_load(const struct xsp_elf *elf, uint64_t offset, uint64_t size, void **out);

/* The name of a section; "" if it has none; never NULL. */
const char *xsp_elf_section_name(const struct xsp_elf *elf, const Elf64_Shdr *section);
/* The first section with that name (NULL: any) and type (SHT_NULL: any but SHT_NOBITS); NULL:
 * none. */
const Elf64_Shdr *xsp_elf_section(const struct xsp_elf *elf, const char *name, uint32_t type);
/* First program header of that type, or NULL. */
const Elf64_Phdr *xsp_elf_header(const struct xsp_elf *elf, uint32_t type);
/* The PT_LOAD that covers addr in memory, or NULL. */
const struct xsp_segment *xsp_elf_segment(const struct xsp_elf *elf, uint64_t addr);

/* Copies the build id from the notes into `id`; returns its length, 0 if there is none. */
#define XSP_BUILD_ID_MAX 64
size_t xsp_elf_build_id(const struct xsp_elf *elf, uint8_t id[static XSP_BUILD_ID_MAX]);

/* The first value with that tag in the dynamic section. False: there is none. */
bool xsp_elf_dynamic(const struct xsp_elf *elf, int64_t tag, uint64_t *value);

/* True for a PIE (DF_1_PIE), which nothing else distinguishes from a shared library. */
bool xsp_elf_is_pie(const struct xsp_elf *elf);

#endif
