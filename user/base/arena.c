/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_SIZE ((size_t)64 << 10)

struct xsp_arena_block {
	struct xsp_arena_block *next;
	max_align_t data[];
};

void *xsp_arena_alloc(struct xsp_arena *a, size_t size)
{
	if (size > (size_t)-1 / 2)
		return NULL;
	size = (size + 7) & ~(size_t)7;
	if (size > a->left) {
		/* a large piece gets a block of its own, so that the open one is not wasted */
		size_t want = size > BLOCK_SIZE / 4 ? size : BLOCK_SIZE;
		struct xsp_arena_block *b = malloc(sizeof(*b) + want);
		if (b == NULL)
			return NULL;
		b->next = a->blocks;
		a->blocks = b;
		if (want == size) {
			a->total += size;
			return b->data;
		}
		a->at = (char *)b->data;
		a->left = want;
	}
	void *p = a->at;
	a->at += size;
	a->left -= size;
	a->total += size;
	return p;
}

char *xsp_arena_copy(struct xsp_arena *a, const char *text, size_t length)
{
	char *p = xsp_arena_alloc(a, length + 1);
	if (p == NULL)
		return NULL;
	memcpy(p, text, length);
	p[length] = '\0';
	return p;
}

void xsp_arena_free(struct xsp_arena *a)
{
	while (a->blocks != NULL) {
		struct xsp_arena_block *next = a->blocks->next;
		free(a->blocks);
		a->blocks = next;
	}
	*a = (struct xsp_arena){0};
}
