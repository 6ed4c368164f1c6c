/* SPDX-License-Identifier: BSD-2-Clause */
/* names.c - texts in the memory file, each once: names of regions, and arguments of calls. */
#ifdef __x86_64__
#include <string.h>
#include "agent/calls.h"

enum { TRIES = 64 }; /* places of a hash */

/* Copies a name into the place that is its own by now. */
static uint64_t keep(struct xsp_rings *file, uint64_t place, const char *text, size_t length,
		     uint32_t flags)
{
	struct xsp_ring_name *name = &file->name[place];
	const uint32_t at = __atomic_fetch_add(&file->names_bytes, (uint32_t)((length + 7) & ~7UL),
					       __ATOMIC_RELAXED);

	if (at > XSP_RING_NAMES_TEXT - length) {
		__atomic_store_n(&file->names_bytes, XSP_RING_NAMES_TEXT, __ATOMIC_RELAXED);
		return XSP_RING_NO_NAME;
	}
	memcpy(file->names_text + at, text, length);
	name->text_at = at;
	__atomic_store_n(&name->what, flags | (uint32_t)length, __ATOMIC_RELEASE);
	return place;
}

/* Another thread, or whoever this signal handler interrupted, may be copying the name: it is there when that is done. */
uint64_t names_place(uint64_t hash, const char *text, size_t length, uint32_t flags)
{
	struct xsp_rings *file = rings_file();

	for (uint64_t n = 0; n < TRIES; n++) {
		const uint64_t place = (hash + n) % XSP_RING_NAMES;
		uint64_t is = __atomic_load_n(&file->name[place].hash, __ATOMIC_RELAXED);
		if (is == 0 &&
		    __atomic_compare_exchange_n(&file->name[place].hash, &is, hash, false,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return keep(file, place, text, length, flags);
		if (is == hash)
			return place;
	}
	return XSP_RING_NO_NAME;
}
#endif
