/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys that a program chooses so that all have the same hash: its allocator's addresses are
 * keys. */
#include <criterion/criterion.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/rows/u64map.h"

#define KEYS 200000U
#define FACTOR 0xd6e8feb86659fd93ULL

/* The number that xsp_u64_mix() turns into `hash`. */
static uint64_t unmixed(uint64_t hash)
{
	uint64_t inverse = FACTOR;

	for (unsigned i = 0; i < 6; i++) /* each step doubles the bits that are right */
		inverse *= 2 - FACTOR * inverse;
	for (unsigned i = 0; i < 2; i++)
		hash = (hash ^ hash >> 32) * inverse;
	return hash ^ hash >> 32;
}

Test(u64map, keys_that_collide)
{
	struct xsp_u64map m = {0};
	const uint64_t begun = xsp_now_ns();

	cr_assert_eq(xsp_u64_mix(unmixed(42)), 42);
	for (uint32_t i = 0; i < KEYS; i++)
		cr_assert_eq(xsp_u64map_set(&m, unmixed((uint64_t)i << 32), i), 0);
	for (uint32_t i = 0; i < KEYS; i++)
		cr_assert_eq(*xsp_u64map_get(&m, unmixed((uint64_t)i << 32)), i);
	for (uint32_t i = 0; i < KEYS; i++)
		cr_assert(xsp_u64map_remove(&m, unmixed((uint64_t)i << 32)));
	cr_expect_eq(m.count, 0);
	/* 20 ms, where each takes as long as the others; else minutes */
	cr_expect_lt(xsp_now_ns() - begun, 5000000000ULL);
	xsp_u64map_free(&m);
}

/* Pairs with the same 64-bit FNV-1a hash; and pairs that differ in bits which cancel out in
 * products by a known number. */
Test(u64map, texts_that_collide)
{
	static const char *const pairs[][2] = {
		{"7mohtcOFVz", "c1E51sSEyx"},
		{"8yn0iYCKYHlIj4-BwPqk", "GReLUrM4wMqfg9yzV3KQ"},
		{"gMPflVXtwGDXbIhP73TX", "LtHf1prlU1bCeYZEdqWf"},
		{"", "\0"},
		{"aaaaaaaabbbbbbbb", "bbbbbbbbaaaaaaaa"},
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		const size_t length = strlen(pairs[i][0]);
		cr_expect_neq(xsp_text_hash(pairs[i][0], length),
			      xsp_text_hash(pairs[i][1], length + (length == 0)), "%s",
			      pairs[i][0]);
	}
}
