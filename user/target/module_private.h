/* SPDX-License-Identifier: BSD-2-Clause */
/* module_private.h - what the files that implement module.h share. */
#ifndef XSP_TARGET_MODULE_PRIVATE_H
#define XSP_TARGET_MODULE_PRIVATE_H

#include "target/elf/eh_frame.h"
#include "target/elf/file.h"
#include "target/module.h"

/* Code is read through direct-mapped blocks. Functions are small and come in address order, so one
 * pread serves many. 1 MiB in all. */
#define XSP_BLOCK_SIZE 16384U
#define XSP_BLOCK_SLOTS 64U

struct xsp_block {
	uint64_t number; /* file offset / XSP_BLOCK_SIZE + 1; 0: empty */
	uint32_t length; /* less than XSP_BLOCK_SIZE at the end of the file */
	uint8_t *data; /* allocated on first use */
};

/* A symbol table and its strings, in memory. */
struct xsp_symbol_table {
	Elf64_Sym *symbols;
	size_t count;
	char *strings; /* zero-terminated as a whole */
	size_t strings_size;
};

enum { XSP_TABLE_DYNAMIC, XSP_TABLE_STATIC, XSP_TABLE_DEBUG, XSP_TABLES };

struct xsp_symbol_slot {
	uint32_t position; /* 0: empty; else 1 + its number, counted over the tables in order */
	uint32_t tag; /* bits of the name's hash: symbols with another tag need not be read */
};

struct xsp_symbol_cache {
	bool tables_loaded, too_large;
	enum xsp_lacks lacks;
	struct xsp_symbol_table tables[XSP_TABLES];
	bool all_ready, unique_ready;
	struct xsp_symbol *all, *unique;
	size_t all_count, unique_count;
	/* name lookup: open addressing */
	struct xsp_symbol_slot *hash;
	size_t hash_size;
	uint32_t *gnu_hash; /* the section, followed by zero words */
	size_t gnu_hash_size; /* words */
	/* versions.c: the number of each dynamic symbol's version, and what the numbers mean */
	bool versions_loaded;
	uint16_t *versions;
	size_t version_count;
	struct xsp_symbol_version *named;
	size_t named_count;
};

/* Its texts are in the dynamic table's strings. */
struct xsp_symbol_version {
	const char *name; /* NULL: none */
	const char *file; /* which has to have it; NULL: this one */
};

struct xsp_inbound_list {
	struct xsp_inbound *list;
	size_t count, capacity;
};

/* inbound.c: the first request fills it. */
struct xsp_inbound_index {
	int state; /* 0: not searched yet; 1: ready; negative errno: unknown */
	struct xsp_inbound_list found; /* in all of the code, by target */
	struct xsp_inbound_list answer; /* to the last request, by target */
	uint64_t searched; /* in bytes, for single functions */
};

struct xsp_module {
	const struct xsp_opener *opener; /* of debug files */
	char *display_path;
	pid_t pid; /* a process that maps it; 0: unknown */
	struct xsp_elf elf;
	bool is_static;
	uint8_t build_id[XSP_BUILD_ID_MAX];
	size_t build_id_length;
	struct xsp_block blocks[XSP_BLOCK_SLOTS];
	struct xsp_symbol_cache symbols;
	struct xsp_eh_frame eh;
	struct xsp_inbound_index inbound;
};

/* Frees the symbols; module.c. */
void xsp_symbol_cache_clear(struct xsp_symbol_cache *c);
/* Reads the tables if they are not yet; symbols.c. 0 or a negative errno. */
int xsp_symbol_tables_load(struct xsp_module *m, struct xsp_error *err);

/* A malloc'd copy of the file with its debug sections alone, without zstd (expand.c). NULL: none is
 * packed with that, or it would take more than `most` bytes. */
uint8_t *xsp_elf_expand(const struct xsp_elf *elf, uint64_t most, size_t *size);

/* Opens the separate debug file of exactly this module, if there is one. */
bool xsp_module_debug_file(const struct xsp_module *m, struct xsp_elf *elf);
/* Opens the file with symbols that the module contains (.gnu_debugdata). False: none, or *lacks says
 * why not. */
bool xsp_module_debug_data(const struct xsp_module *m, struct xsp_elf *elf, enum xsp_lacks *lacks);

#endif
