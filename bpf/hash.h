/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* hash.h - the hashes by which names and stacks are known. */
#ifndef XSP_BPF_HASH_H
#define XSP_BPF_HASH_H

#include "common.h"

/* Random for each recording, and odd: else a program could make names whose ids equal those of
 * others. Set before loading. */
__weak const volatile __u64 xsp_hash_key[2] = {1, 1};

/* Hashes the length first, and pads the end with zeros. Never 0. */
static __always_inline __u64 hash_begin(__u32 length)
{
	return 0xcbf29ce484222325ULL ^ length;
}

/* Stands for the length if it is not a text; no text is so long. */
#define HASH_OF_ADDRESS 0x80000000U

static __always_inline __u64 hash_word(__u64 h, __u64 word)
{
	h = (h ^ word) * xsp_hash_key[0];
	h = (h ^ h >> 32) * xsp_hash_key[1];
	return h ^ h >> 32;
}

static __always_inline __u64 hash_end(__u64 h)
{
	return h ? h : 1;
}

#endif
