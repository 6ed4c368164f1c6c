/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * known.h - words that are kept once in the memory file (names.c), and found again without their hash: for args.c and
 * python.c. In thunks, with general registers only.
 */
#ifndef XSP_AGENT_KNOWN_H
#define XSP_AGENT_KNOWN_H

#include "agent/calls.h"

struct kept_words {
	const uint64_t *word;
	uint32_t used;
	uint64_t mix; /* of the words: others have another one, most often */
	uint64_t place; /* where they are kept; XSP_RING_NO_NAME: there is no room */
};

/* Where words are kept: how many they are, where they begin in the text, and their place. One word, as threads exchange it.
 * 0: nowhere. */
static inline uint64_t known_place(uint64_t known)
{
	return known >> 40;
}
static inline const uint64_t *known_text(uint64_t known)
{
	return (const uint64_t *)(rings_file()->names_text + (known >> 16 & 0x3fffff) * 8);
}
static inline bool known_is(uint64_t known, const struct kept_words *w)
{
	const uint64_t *text = known_text(known);

	if ((uint16_t)known != w->used)
		return false;
	for (uint32_t i = 0; i < w->used; i++)
		if (text[i] != w->word[i])
			return false;
	return true;
}

static inline uint64_t known_mix(uint64_t mix, uint64_t word)
{
	return (mix << 9 | mix >> 55) + word;
}

/* Keeps them if they are new, and sets their place. */
uint64_t known_find(struct kept_words *w);

#endif
