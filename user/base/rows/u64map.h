/* SPDX-License-Identifier: BSD-2-Clause */
/* u64map.h - 64-bit key to 32-bit value; flat, open addressing. Zero-initialise to begin. */
#ifndef XSP_BASE_U64MAP_H
#define XSP_BASE_U64MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xsp_u64map_slot {
	uint64_t key;
	uint32_t value;
	uint32_t used;
};

struct xsp_u64map {
	struct xsp_u64map_slot *slots;
	/* mask: slots - 1, where slots is a power of two. 0 with slots NULL: empty */
	size_t count, mask;
};

/* A full 64-bit mix. */
static inline uint64_t xsp_u64_mix(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ULL;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ULL;
	return x ^ (x >> 32);
}

/* Two ids as one key. */
static inline uint64_t xsp_u64_pair(uint32_t high, uint32_t low)
{
	return (uint64_t)high << 32 | low;
}

/* Where a key's run begins. Hostile keys must not be able to make long runs: where our memory lies is not known to them. */
static inline size_t xsp_u64map_home(const struct xsp_u64map *m, uint64_t key)
{
	return (size_t)xsp_u64_mix(key ^ (uintptr_t)m->slots) & m->mask;
}

/* The address of the value (valid until the next set), or NULL. */
static inline uint32_t *xsp_u64map_get(const struct xsp_u64map *m, uint64_t key)
{
	if (m->slots == NULL)
		return NULL;
	for (size_t i = xsp_u64map_home(m, key);; i = (i + 1) & m->mask) {
		struct xsp_u64map_slot *s = &m->slots[i];
		if (!s->used)
			return NULL;
		if (s->key == key)
			return &s->value;
	}
}

/* Sets or replaces. 0 or -ENOMEM. */
int xsp_u64map_set(struct xsp_u64map *m, uint64_t key, uint32_t value);
/* False if it was not there. */
bool xsp_u64map_remove(struct xsp_u64map *m, uint64_t key);
void xsp_u64map_free(struct xsp_u64map *m);
void xsp_u64map_clear(struct xsp_u64map *m); /* the memory stays */

#endif
