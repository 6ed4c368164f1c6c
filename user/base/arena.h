/* SPDX-License-Identifier: BSD-2-Clause */
/* arena.h - many small strings with one owner, freed together. Pointers stay valid. */
#ifndef XSP_BASE_ARENA_H
#define XSP_BASE_ARENA_H

#include <stddef.h>

struct xsp_arena_block;

/* Zero-initialise to begin. */
struct xsp_arena {
	struct xsp_arena_block *blocks;
	char *at;
	size_t left;
	size_t total; /* bytes handed out */
};

/* `size` uninitialised bytes aligned to 8, or NULL. */
void *xsp_arena_alloc(struct xsp_arena *a, size_t size);
/* A terminated copy of `length` bytes, or NULL. */
char *xsp_arena_copy(struct xsp_arena *a, const char *text, size_t length);
void xsp_arena_free(struct xsp_arena *a);

#endif
