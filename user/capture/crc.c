/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * crc.c - the checksum of chunks: CRC-32 as in zlib. It would be the most costly step of an event, so processors with
 * carry-less multiplication use that (three times as fast). By the polynomial, a block of 16 bytes that is d bits
 * before another one is worth its halves times x^(d+64) and x^d, added to the other: "Fast CRC Computation for Generic
 * Polynomials Using PCLMULQDQ", Gopal et al., Intel 2009. Constants are for bits in reflected order.
 */
#include <zlib.h>

#include "capture/format.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define BLOCK 16U
#define BLOCKS 4U /* at a time: a multiplication takes some cycles, and the others need not wait */
#define WITH_PCLMUL __attribute__((target("pclmul,sse4.1")))

WITH_PCLMUL static inline __m128i block_at(const unsigned char *p)
{
	return _mm_loadu_si128((const __m128i *)(const void *)p);
}

WITH_PCLMUL static inline __m128i moved(__m128i block, __m128i by)
{
	return _mm_xor_si128(_mm_clmulepi64_si128(block, by, 0x00),
			     _mm_clmulepi64_si128(block, by, 0x11));
}

/* 128 bits to 64, to 32 and a remainder (Barrett's). */
WITH_PCLMUL static uint32_t reduced(__m128i a, __m128i by_one)
{
	const __m128i low = _mm_setr_epi32(-1, 0, -1, 0), k5 = _mm_set_epi64x(0, 0x163cd6124),
		      polynomial = _mm_set_epi64x(0x1f7011641, 0x1db710641);

	a = _mm_xor_si128(_mm_srli_si128(a, 8), _mm_clmulepi64_si128(a, by_one, 0x10));
	a = _mm_xor_si128(_mm_srli_si128(a, 4),
			  _mm_clmulepi64_si128(_mm_and_si128(a, low), k5, 0x00));
	__m128i q = _mm_clmulepi64_si128(_mm_and_si128(a, low), polynomial, 0x10);
	q = _mm_clmulepi64_si128(_mm_and_si128(q, low), polynomial, 0x00);
	return (uint32_t)_mm_extract_epi32(_mm_xor_si128(a, q), 1);
}

/* Whole blocks, at least BLOCKS of them. */
WITH_PCLMUL static uint32_t crc_of_blocks(const unsigned char *p, size_t count)
{
	const __m128i by_four = _mm_set_epi64x(0x1c6e41596, 0x154442bd4),
		      by_one = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
	__m128i x[BLOCKS];

	for (size_t i = 0; i < BLOCKS; i++)
		x[i] = block_at(p + i * BLOCK);
	x[0] = _mm_xor_si128(x[0], _mm_cvtsi32_si128(-1));
	for (; count >= 2 * BLOCKS; count -= BLOCKS) {
		p += BLOCKS * BLOCK;
		for (size_t i = 0; i < BLOCKS; i++)
			x[i] = _mm_xor_si128(moved(x[i], by_four), block_at(p + i * BLOCK));
	}
	for (size_t i = 1; i < BLOCKS; i++)
		x[0] = _mm_xor_si128(moved(x[0], by_one), x[i]);
	for (p += BLOCKS * BLOCK; count > BLOCKS; count--, p += BLOCK)
		x[0] = _mm_xor_si128(moved(x[0], by_one), block_at(p));
	return ~reduced(x[0], by_one);
}
#endif

uint32_t xsp_capture_crc(const void *data, size_t size)
{
	const unsigned char *p = data;
	uint32_t crc = 0;

#if defined(__x86_64__)
	if (size >= BLOCKS * BLOCK && __builtin_cpu_supports("pclmul") &&
	    __builtin_cpu_supports("sse4.1")) {
		crc = crc_of_blocks(p, size / BLOCK);
		p += size / BLOCK * BLOCK;
		size %= BLOCK;
	}
#endif
	return (uint32_t)crc32_z(crc, p, size);
}
