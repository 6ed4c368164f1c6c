/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef XSP_BASE_TEXT_H
#define XSP_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* FNV-1a, 64 bits. Its low bits are no good by themselves (xsp_u64_mix). */
static inline uint64_t xsp_text_hash(const char *text, size_t length)
{
	uint64_t h = 0xcbf29ce484222325ULL;

	for (size_t i = 0; i < length; i++)
		h = (h ^ (uint8_t)text[i]) * 0x100000001b3ULL;
	return h;
}

/* A character that terminals obey, or that moves or hides others: C1 controls, ends of lines and paragraphs, directions
 * of writing, tags. */
static inline bool xsp_is_invisible_control(uint32_t point)
{
	return (point >= 0x80 && point < 0xA0) || point == 0x61C || point == 0x200E ||
	       point == 0x200F || (point >= 0x2028 && point <= 0x202E) ||
	       (point >= 0x2066 && point <= 0x2069) || (point >= 0xE0000 && point < 0xE0080);
}

static inline bool xsp_ends_with(const char *text, size_t length, const char *end)
{
	const size_t n = strlen(end);

	return length >= n && memcmp(text + length - n, end, n) == 0;
}

#endif
