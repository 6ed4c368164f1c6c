/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/rows/u64map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"

static void insert(struct xsp_u64map *m, uint64_t key, uint32_t value)
{
	size_t i = xsp_u64map_home(m, key);
	while (m->slots[i].used)
		i = (i + 1) & m->mask;
	m->slots[i] = (struct xsp_u64map_slot){.key = key, .value = value, .used = 1};
}

static int enlarge(struct xsp_u64map *m)
{
	size_t size = m->slots == NULL ? 64 : (m->mask + 1) * 2;
	struct xsp_u64map bigger = {.count = m->count, .mask = size - 1};
	bigger.slots = calloc(size, sizeof(*bigger.slots));
	if (bigger.slots == NULL)
		return -ENOMEM;
	for (size_t i = 0; m->slots != NULL && i <= m->mask; i++) {
		if (m->slots[i].used)
			insert(&bigger, m->slots[i].key, m->slots[i].value);
	}
	free(m->slots);
	*m = bigger;
	return 0;
}

int xsp_u64map_set(struct xsp_u64map *m, uint64_t key, uint32_t value)
{
	uint32_t *there = xsp_u64map_get(m, key);
	if (there != NULL) {
		*there = value;
		return 0;
	}
	if (m->slots == NULL || m->count + 1 > (m->mask + 1) / 2) {
		int err = enlarge(m);
		if (err < 0)
			return err;
	}
	insert(m, key, value);
	m->count++;
	return 0;
}

bool xsp_u64map_remove(struct xsp_u64map *m, uint64_t key)
{
	if (m->slots == NULL)
		return false;
	size_t hole = xsp_u64map_home(m, key);
	for (; m->slots[hole].key != key || !m->slots[hole].used; hole = (hole + 1) & m->mask) {
		if (!m->slots[hole].used)
			return false;
	}
	/* close the gap: move back the entries that a search would no longer find */
	for (size_t i = (hole + 1) & m->mask; m->slots[i].used; i = (i + 1) & m->mask) {
		size_t home = xsp_u64map_home(m, m->slots[i].key);
		if (((i - home) & m->mask) >= ((i - hole) & m->mask)) {
			m->slots[hole] = m->slots[i];
			hole = i;
		}
	}
	m->slots[hole].used = 0;
	m->count--;
	return true;
}

void xsp_u64map_clear(struct xsp_u64map *m)
{
	if (m->slots != NULL)
		memset(m->slots, 0, (m->mask + 1) * sizeof(*m->slots));
	m->count = 0;
}

void xsp_u64map_free(struct xsp_u64map *m)
{
	free(m->slots);
	*m = (struct xsp_u64map){0};
}
