/* SPDX-License-Identifier: BSD-2-Clause */
/* names.h - a text that is kept once in the memory file: its hash, and its place. */
#ifndef XSP_AGENT_NAMES_H
#define XSP_AGENT_NAMES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "agent/calls.h"

static inline uint64_t word_at(const char *text, size_t bytes)
{
	uint64_t word = 0;

	memcpy(&word, text, bytes);
	return word;
}

static inline uint64_t mix(uint64_t a, uint64_t b)
{
	const unsigned __int128 product =
		(unsigned __int128)(a ^ 0xa0761d6478bd642fULL) * (b ^ 0xe7037ed1a0b428dbULL);

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t hash_of(const char *text, size_t length)
{
	uint64_t h = length, a = 0, b = 0;

	for (size_t at = 16; at < length; at += 16)
		h ^= mix(word_at(text + at - 16, 8) ^ h, word_at(text + at - 8, 8));
	if (length >= 8) { /* the last sixteen, or the first and the last eight */
		a = word_at(text + (length < 16 ? 0 : length - 16), 8);
		b = word_at(text + length - 8, 8);
	} else if (length >= 4) {
		a = word_at(text, 4);
		b = word_at(text + length - 4, 4);
	} else if (length > 0) {
		a = (uint8_t)text[0];
		b = (uint64_t)(uint8_t)text[length / 2] << 8 | (uint8_t)text[length - 1];
	}
	h = mix(a ^ h, b);
	return h ? h : 1;
}

/* Of the text of a name, whatever its length. */
static inline uint64_t kept_place(const char *text, size_t length)
{
	const bool cut = length > XSP_NAME_MAX;
	const uint32_t flags = XSP_RING_NAME_THERE | (cut ? XSP_RING_NAME_CUT : 0);

	length = cut ? XSP_NAME_MAX : length;
	const uint64_t hash = hash_of(text, length) ^ (flags & XSP_RING_NAME_CUT),
		       place = hash % XSP_RING_NAMES;
	if (__builtin_expect(
		    __atomic_load_n(&rings_file()->name[place].hash, __ATOMIC_RELAXED) == hash, 1))
		return place;
	return names_place(hash, text, length, flags);
}

#endif
