/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* hash.h - under what names and stacks are known. */
#ifndef XSP_BPF_HASH_H
#define XSP_BPF_HASH_H

#include "common.h"

/* Of each recording its own, and odd: else a program could give its names the ids of another's. Set before loading. */
__weak const volatile __u64 xsp_hash_key[2] = {1, 1};

/* The length goes in first, the tail is zero-padded. Never 0. */
static __always_inline __u64 hash_begin(__u32 length)
{
	return 0xcbf29ce484222325ULL ^ length;
}

/* What is not a text; no text is so long. */
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
