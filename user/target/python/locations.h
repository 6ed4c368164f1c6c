/* SPDX-License-Identifier: BSD-2-Clause */
/* locations.h - the numbers in CPython's tables of locations: Objects/locations.md of 3.11. */
#ifndef XSP_TARGET_PYTHON_LOCATIONS_H
#define XSP_TARGET_PYTHON_LOCATIONS_H

#include <stdint.h>

struct cursor {
	const uint8_t *at, *end;
};

static inline unsigned next_byte(struct cursor *c)
{
	return c->at < c->end ? *c->at++ : 0;
}

/* Six bits a byte, the lowest first; bit 6: more follow. */
static inline uint32_t next_varint(struct cursor *c)
{
	unsigned byte = next_byte(c), shift = 0;
	uint32_t value = byte & 63;

	while ((byte & 64) != 0 && shift < 24) {
		byte = next_byte(c);
		shift += 6;
		value |= (byte & 63) << shift;
	}
	return value;
}

static inline int32_t next_signed(struct cursor *c)
{
	uint32_t value = next_varint(c);

	return value & 1 ? -(int32_t)(value >> 1) : (int32_t)(value >> 1);
}

#endif
