/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slots.h - memory in which a program gathers what has no room on its stack. With 64 bytes and more Linux 6.13
 * gives a uprobe program one private stack a CPU (PRIV_STACK_ADAPTIVE, kernel/bpf/verifier.c), and
 * nothing keeps two threads from running it there at once when the kernel preempts. For that reason a CPU has a
 * few of these as well, and each is taken before it is used.
 */
#ifndef XSP_BPF_SLOTS_H
#define XSP_BPF_SLOTS_H

#include "common.h"

#define XSP_SLOTS 4

/* A map of them; what is in a slot begins with a __u32, in which it is noted that it is taken. */
#define XSP_SLOTS_MAP(name, slot)                                                                  \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);                                           \
		__uint(max_entries, XSP_SLOTS);                                                    \
		__type(key, __u32);                                                                \
		__type(value, slot);                                                               \
	} name __weak SEC(".maps")

/* 0: all are taken. */
static __always_inline void *xsp_acquire_slot(void *map)
{
	for (__u32 i = 0; i < XSP_SLOTS; i++) {
		__u32 key = i;
		__u32 *slot = bpf_map_lookup_elem(map, &key);
		if (slot && __sync_lock_test_and_set(slot, 1) == 0)
			return slot;
	}
	return 0;
}

/* Who waits for it runs on the same CPU. */
static __always_inline void xsp_give_slot_back(void *slot)
{
	barrier();
	*(volatile __u32 *)slot = 0;
}

#endif
