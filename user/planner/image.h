/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * image.h - what a target has mapped, as far as an injection must know it: which code belongs to the
 * loader, to libc and to allocators, where libc's functions are, and where bytes of code are unused.
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
	XSP_IMAGE_LOADER = 1 << 0, /* ld.so: running it means holding its locks, or resolving */
	XSP_IMAGE_LIBC = 1 << 1, /* libc, and libpthread before glibc 2.34; musl's is both */
	XSP_IMAGE_ALLOCATOR = 1 << 2, /* replaces malloc */
	XSP_IMAGE_STAYS = 1 << 3, /* never unmapped while the process lives */
};

/* A mapped file with code. */
struct xsp_image_file {
	uint64_t dev, inode;
	char *path; /* as the target sees it */
	struct xsp_module *module; /* NULL: cannot be read */
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

/* Reads the maps and the files of the source (borrowed), whose descriptors of files it takes over. 0 or a negative errno. */
int xsp_image_read(struct xsp_image *image, const struct xsp_image_source *source);
int xsp_image_load(const struct xsp_image *image, uint64_t address, void *to, size_t size);
/* Reads the maps again; files that are known are not read again. Fast: a thread is waiting. */
int xsp_image_refresh(struct xsp_image *image);
void xsp_image_clear(struct xsp_image *image);

/* The library that is to be loaded; its descriptor is taken over. 0 or a negative errno. */
int xsp_image_library(const struct xsp_image_source *source, struct xsp_module **out,
		      struct xsp_error *err);

/* The mapping that holds the address; NULL: none. */
const struct xsp_image_map *xsp_image_map(const struct xsp_image *image, uint64_t address);
/* The file's own address for one in a mapping of it. -ENOENT */
int xsp_image_file_address(const struct xsp_image *image, const struct xsp_image_map *map,
			   uint64_t address, uint64_t *addr);
/* True if the code at this address is in a function in which a thread must not be diverted. */
bool xsp_image_banned(const struct xsp_image *image, const struct xsp_image_map *map,
		      uint64_t address);

/* Where a function of libc (or of the libraries that were part of it) is; 0: nowhere. */
uint64_t xsp_image_function(const struct xsp_image *image, const char *name);

/* `size` bytes of code that nothing uses, in a file that stays; 0: none. */
uint64_t xsp_image_room(const struct xsp_image *image, size_t size);
/* A free range of addresses, page aligned; 0: none. */
uint64_t xsp_image_gap(const struct xsp_image *image, uint64_t size);

#endif
