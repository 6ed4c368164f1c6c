/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* mappings.h - what a process has mapped at an address, without the lock of its mappings. */
#ifndef XSP_BPF_MAPPINGS_H
#define XSP_BPF_MAPPINGS_H

#include "common.h"

/* lib/maple_tree.c (Linux 6.1): the lower bits of a pointer to a node, and what they say of it */
#define MAPLE_NODE_BITS 255UL
#define MAPLE_ROOT_IS_NODE(entry) (((entry)&3) == 2 && (entry) > 4096)
#define MAPLE_TYPE(entry) ((entry) >> 3 & 15)
enum { MAPLE_LEAF_64 = 1, MAPLE_RANGE_64 = 2, MAPLE_ARANGE_64 = 3 };
#define MAPLE_DEPTH 8 /* of 10 and more entries each */
#define MAPLE_PIVOTS 15
#define MAPLE_ARANGE_PIVOTS 9

/* Where the pivots and slots of such a node are. */
static __always_inline void maple_parts(__u64 entry, __u64 *pivots, __u64 *slots)
{
	const __u64 node = entry & ~MAPLE_NODE_BITS;

	if (MAPLE_TYPE(entry) == MAPLE_ARANGE_64) {
		*pivots = node + bpf_core_field_offset(struct maple_arange_64, pivot);
		*slots = node + bpf_core_field_offset(struct maple_arange_64, slot);
	} else {
		*pivots = node + bpf_core_field_offset(struct maple_range_64, pivot);
		*slots = node + bpf_core_field_offset(struct maple_range_64, slot);
	}
}

static __always_inline __u64 maple_word(__u64 words, __u32 i)
{
	__u64 word = 0;

	bpf_probe_read_kernel(&word, sizeof(word), (void *)(words + 8 * i));
	return word;
}

/* The entry for `at`: another node, or what is mapped there. Pivot i is the last address of slot i, and the one of the
 * last slot may be 0 or missing. */
static __noinline __u64 maple_step(__u64 entry, __u64 at)
{
	const __u32 n = MAPLE_TYPE(entry) == MAPLE_ARANGE_64 ? MAPLE_ARANGE_PIVOTS : MAPLE_PIVOTS;
	__u64 pivots, slots;
	__u32 i;

	maple_parts(entry, &pivots, &slots);
	for (i = 0; i < MAPLE_PIVOTS && i < n; i++) {
		const __u64 last = maple_word(pivots, i);
		if (last >= at || (last == 0 && i > 0))
			break;
	}
	return maple_word(slots, i);
}

/* 0: nothing is mapped there. If another thread changes the mappings meanwhile, the answer may be wrong; looking harms nothing. */
static __always_inline struct vm_area_struct *mapping_at(struct mm_struct *mm, __u64 at)
{
	__u64 entry = (__u64)BPF_CORE_READ(mm, mm_mt.ma_root);

	if (!MAPLE_ROOT_IS_NODE(entry))
		return 0;
	for (int i = 0; i < MAPLE_DEPTH && entry != 0; i++) {
		const bool leaf = MAPLE_TYPE(entry) == MAPLE_LEAF_64;
		entry = maple_step(entry, at);
		if (leaf)
			return (struct vm_area_struct *)entry;
	}
	return 0;
}

#endif
