/* SPDX-License-Identifier: BSD-2-Clause */
/* known.c - where words are kept that were met, by their mix. Runs in a thunk (calls.h), with general registers only. */
#ifdef __x86_64__
#include "agent/kept/known.h"
#include "agent/kept/names.h"

enum { KNOWN = 4096 };
static uint64_t known[KNOWN];

static uint64_t pack(const struct kept_words *w)
{
	const uint32_t what = __atomic_load_n(&rings_file()->name[w->place].what, __ATOMIC_ACQUIRE);

	/* another thread may be about to write it, or there was no room */
	if (what != (XSP_RING_NAME_THERE | (uint32_t)(w->used * sizeof(uint64_t))))
		return 0;
	return w->used | (uint64_t)(rings_file()->name[w->place].text_at / 8) << 16 |
	       w->place << 40;
}

static uint64_t keep(void *words)
{
	struct kept_words *w = words;
	const size_t bytes = w->used * sizeof(uint64_t);

	w->place = names_place(hash_of((const char *)w->word, bytes), (const char *)w->word, bytes,
			       XSP_RING_NAME_THERE);
	return 0;
}

uint64_t known_find(struct kept_words *w)
{
	uint64_t *slot = &known[(w->mix * 0x9e3779b97f4a7c15ULL >> 32) % KNOWN];
	uint64_t at = __atomic_load_n(slot, __ATOMIC_RELAXED);

	if (__builtin_expect(known_is(at, w), 1)) {
		w->place = known_place(at);
		return at;
	}
	thunk_keep_vectors(keep, w);
	at = w->place < XSP_RING_NAMES ? pack(w) : 0;
	if (at != 0)
		__atomic_store_n(slot, at, __ATOMIC_RELAXED);
	return at;
}
#endif
