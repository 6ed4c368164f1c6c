/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libsignal_malloc.c - an allocator that signal handlers may call, in a library of jemalloc's name: the ends of its calls
 * are seen by return probes.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#define POOL (64UL << 20)

static char pool[POOL];
static atomic_ulong used, kept;
_Thread_local volatile int inside_malloc;

/* the names are the C library's */
__attribute__((noinline)) void *malloc(size_t bytes)
{
	inside_malloc++;
	for (volatile int i = 0; i < 200; i++)
		;
	/* the blocks of these two loops are used for a moment; others, of the C library, stay */
	const unsigned long at =
		bytes == 64 || bytes == 100
			? atomic_fetch_add(&used, 112) % (POOL / 2)
			: POOL / 2 + 128 + atomic_fetch_add(&kept, (bytes + 15) & ~15UL);
	inside_malloc--;
	return pool + at;
}

__attribute__((noinline)) void free(void *block)
{
	__asm__ volatile("" ::"r"(block) : "memory");
}

void *calloc(size_t count, size_t bytes)
{
	return memset(malloc(count * bytes), 0, count * bytes);
}
