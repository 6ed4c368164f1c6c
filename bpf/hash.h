/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* hash.h - under what names and stacks are known. */
#ifndef XSP_BPF_HASH_H
#define XSP_BPF_HASH_H

#include "common.h"

/* FNV-1a over 64-bit words; the length goes in first, the tail is zero-padded. Never 0. */
static __always_inline __u64 hash_begin(__u32 length)
{
	return 0xcbf29ce484222325ULL ^ length;
}

static __always_inline __u64 hash_word(__u64 h, __u64 word)
{
	h ^= word;
	h *= 0x100000001b3ULL;
	return h ^ h >> 29;
}

static __always_inline __u64 hash_end(__u64 h)
{
	return h ? h : 1;
}

#endif
