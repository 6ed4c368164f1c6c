/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * image.h - the tests' own view of an ELF file: mapped whole, with .eh_frame_hdr's table (or
 * .eh_frame) and the landing pads of .gcc_except_table. It shares no code with user/target on
 * purpose.
 */
#ifndef XSP_TEST_IMAGE_H
#define XSP_TEST_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image {
	const uint8_t *data;
	size_t size;
	const void *headers; /* Elf64_Phdr */
	unsigned header_count;
	const uint8_t *table; /* pairs of int32: pc, FDE; relative to table_addr */
	int32_t (*own_table)[2]; /* where the file has no such table */
	uint64_t table_addr;
	size_t fde_count;
	struct import *imports; /* GOT slots by address */
	size_t import_count;
	struct fde *symbols; /* of functions, by address */
	size_t symbol_count;
};

struct import {
	uint64_t slot;
	const char *name;
};

struct fde {
	uint64_t addr, size;
	uint64_t lsda; /* 0 none */
};

bool image_open(struct image *im, const char *path);
void image_close(struct image *im);
/* File bytes at a virtual address; *left bytes follow. NULL if none. */
const uint8_t *image_at(const struct image *im, uint64_t addr, size_t *left);
bool image_is_code(const struct image *im, uint64_t addr);
uint64_t image_fde_start(const struct image *im, size_t index);
bool image_fde(const struct image *im, uint64_t addr, struct fde *out);
/* addr holds a PLT stub: [endbr64] [bnd] jmp *slot(%rip). */
bool image_is_stub(const struct image *im, uint64_t addr);
/* The name that a PLT stub at addr jumps to, or NULL. */
const char *image_import(const struct image *im, uint64_t addr);
/* The landing pad of a call whose last byte is at pc; 0 none. */
uint64_t image_landing_pad(const struct image *im, const struct fde *fde, uint64_t pc);

#endif
