/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dwarf_cursor.h - bounded reads of DWARF's encodings. Reading past the end gives zero and sets
 * `bad`, so a parser checks only once, at the end.
 */
#ifndef XSP_TARGET_DWARF_CURSOR_H
#define XSP_TARGET_DWARF_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct xsp_cursor {
	const uint8_t *at, *end;
	bool bad;
};

static inline bool xsp_cursor_need(struct xsp_cursor *c, uint64_t size)
{
	if (size <= (uint64_t)(c->end - c->at))
		return true;
	c->at = c->end;
	c->bad = true;
	return false;
}

/* Little-endian integer of 1, 2, 4 or 8 bytes (the hosts are little-endian too). */
static inline uint64_t xsp_cursor_uint(struct xsp_cursor *c, size_t size)
{
	uint64_t value = 0;

	if (!xsp_cursor_need(c, size))
		return 0;
	memcpy(&value, c->at, size);
	c->at += size;
	return value;
}

static inline int64_t xsp_cursor_int(struct xsp_cursor *c, size_t size)
{
	uint64_t sign = 1ULL << (size * 8 - 1);

	return (int64_t)((xsp_cursor_uint(c, size) ^ sign) - sign);
}

static inline uint64_t xsp_cursor_leb(struct xsp_cursor *c, bool is_signed)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = (uint8_t)xsp_cursor_uint(c, 1);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (is_signed && shift < 64 && (byte & 0x40))
		value |= ~0ULL << shift;
	return value;
}

static inline uint64_t xsp_cursor_uleb(struct xsp_cursor *c)
{
	return xsp_cursor_leb(c, false);
}

static inline int64_t xsp_cursor_sleb(struct xsp_cursor *c)
{
	return (int64_t)xsp_cursor_leb(c, true);
}

static inline void xsp_cursor_skip(struct xsp_cursor *c, uint64_t size)
{
	if (xsp_cursor_need(c, size))
		c->at += size;
}

#endif
