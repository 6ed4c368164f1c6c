/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef XSP_BASE_TEXT_H
#define XSP_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

/* Appends to a text in a buffer of `size` bytes, after `between` if the text is not empty. What has no room is cut off. */
void xsp_join(char *text, size_t size, const char *between, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Both halves of a product. */
static inline uint64_t xsp_text_hash_word(uint64_t word, uint64_t key)
{
	const unsigned __int128 product = (unsigned __int128)word * (key | 1);

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* The hash under which a text is known in this run. It is keyed with a secret that the kernel gives
 * each process (getauxval(3)): else a target could make names whose hashes equal those of others,
 * and be shown in their place. */
static inline uint64_t xsp_text_hash(const char *text, size_t length)
{
	const size_t whole = length & ~(size_t)7;
	uint64_t key[2], word = 0;

	memcpy(key, (const void *)getauxval(AT_RANDOM), sizeof(key));
	uint64_t h = key[0] ^ length;
	for (size_t i = 0; i < whole; i += sizeof(word)) {
		memcpy(&word, text + i, sizeof(word));
		h = xsp_text_hash_word(h ^ word, key[1]);
	}
	word = 0;
	memcpy(&word, text + whole, length - whole);
	return xsp_text_hash_word(h ^ word, key[1]);
}

/* The same for two numbers: an address, and the number of its process. */
static inline uint64_t xsp_pair_hash(uint64_t a, uint64_t b)
{
	const uint64_t pair[2] = {a, b};

	return xsp_text_hash((const char *)pair, sizeof(pair));
}

/* Of a name in C or Python, whatever the locale. */
static inline bool xsp_is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

/* Is it a character that terminals obey, or that moves or hides others? C1 controls, ends of lines
 * and paragraphs, writing directions, interlinear notes, tags. */
static inline bool xsp_is_invisible_control(uint32_t point)
{
	return (point >= 0x80 && point < 0xA0) || point == 0x61C || point == 0x200E ||
	       point == 0x200F || (point >= 0x2028 && point <= 0x202E) ||
	       (point >= 0x2066 && point <= 0x206F) || (point >= 0xFFF9 && point <= 0xFFFB) ||
	       (point >= 0xE0000 && point < 0xE0080);
}

/* The rule for all outputs: no such character of a target stands in one as it is. Where the format
 * can escape it (JSON), it is escaped; elsewhere U+FFFD stands for it, on a terminal '?'. Tabs and
 * line feeds stay where the format can hold them. */
static inline bool xsp_is_control(uint32_t point)
{
	return point < 0x20 || point == 0x7F || xsp_is_invisible_control(point);
}

static inline bool xsp_ends_with(const char *text, size_t length, const char *end)
{
	const size_t n = strlen(end);

	return length >= n && memcmp(text + length - n, end, n) == 0;
}

/* Does a text begin with one of these texts? */
#define XSP_BEGINS_WITH_ANY(text, list)                                                            \
	xsp_begins_with_any_raw(text, list, sizeof(list) / sizeof((list)[0]))
static inline bool xsp_begins_with_any_raw(const char *text, const char *const *list, size_t count)
{
	size_t i = 0;

	while (i < count && strncmp(text, list[i], strlen(list[i])) != 0)
		i++;
	return i < count;
}

/* Is a text of this length one of these? */
#define XSP_IS_AMONG(text, length, list)                                                           \
	xsp_is_among_raw(text, length, list, sizeof(list) / sizeof((list)[0]))
static inline bool xsp_is_among_raw(const char *text, size_t length, const char *const *list,
				    size_t count)
{
	size_t i = 0;

	while (i < count && (strlen(list[i]) != length || memcmp(text, list[i], length) != 0))
		i++;
	return i < count;
}

#endif
