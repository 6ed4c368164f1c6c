/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * image.h - what an injection must know of a target's mappings: the code of the loader, of libc and of allocators,
 * libc's functions, and unused bytes of code.
 */
#ifndef XSP_PLANNER_IMAGE_H
#define XSP_PLANNER_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "inject/questions.h"
#include "target/module.h"

enum xsp_image_role {
	/* ld.so: whoever runs it holds its locks, or resolves a symbol */
	XSP_IMAGE_LOADER = 1 << 0,
	XSP_IMAGE_LIBC = 1 << 1, /* libc, and libpthread before glibc 2.34; musl has both in one */
	XSP_IMAGE_ALLOCATOR = 1 << 2, /* replaces malloc */
	XSP_IMAGE_STAYS = 1 << 3, /* stays mapped as long as the process lives */
};

/* A mapped file with code. */
struct xsp_image_file {
	uint64_t dev, inode;
	char *path; /* as the target sees it */
	struct xsp_module *module; /* NULL: it cannot be read */
	unsigned roles;
	struct xsp_code_range *banned; /* functions in which no thread may be diverted; sorted */
	size_t banned_count;
};

struct xsp_image_map {
	uint64_t start, end, offset;
	bool executable;
	bool stack_like; /* readable memory without a file: may be a stack */
	int file; /* index, or -1 */
};

struct xsp_image {
	const struct xsp_image_source *source;
	struct xsp_image_map *maps; /* sorted by address */
	size_t map_count;
	struct xsp_image_file *files;
	size_t file_count;
	bool narrow; /* a 32-bit program */
};

/* Reads the maps and the files of `source`, which is borrowed; its files' descriptors are taken over. 0 or a negative
 * errno. */
int xsp_image_read(struct xsp_image *image, const struct xsp_image_source *source);
int xsp_image_load(const struct xsp_image *image, uint64_t address, void *to, size_t size);
/* Reads the maps again, but no files that are known. Fast, as a thread is stopped meanwhile. */
int xsp_image_refresh(struct xsp_image *image);
void xsp_image_clear(struct xsp_image *image);

/* Reads the library that is to be loaded, and takes over its descriptor. 0 or a negative errno. */
int xsp_image_library(const struct xsp_image_source *source, struct xsp_module **out,
		      struct xsp_error *err);

/* The mapping with this address; NULL: there is none. */
const struct xsp_image_map *xsp_image_map(const struct xsp_image *image, uint64_t address);
/* Turns an address in this mapping into one of the file. -ENOENT */
int xsp_image_file_address(const struct xsp_image *image, const struct xsp_image_map *map,
			   uint64_t address, uint64_t *addr);
/* Is the code at this address in a function in which no thread may be diverted? */
bool xsp_image_banned(const struct xsp_image *image, const struct xsp_image_map *map,
		      uint64_t address);

/* The address of a function of libc (or of libraries that are now part of it); 0: it has none. */
uint64_t xsp_image_function(const struct xsp_image *image, const char *name);

/* `size` unused bytes of code, in a file that stays mapped; 0: there are none. */
uint64_t xsp_image_room(const struct xsp_image *image, size_t size);
/* A free range of addresses, page aligned; 0: there is none. */
uint64_t xsp_image_gap(const struct xsp_image *image, uint64_t size);

#endif
