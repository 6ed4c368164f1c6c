/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slots.h - memory for what does not fit on a program's stack. A program that uses 64 bytes or more
 * gets one private stack a CPU from Linux 6.13 (PRIV_STACK_ADAPTIVE, kernel/bpf/verifier.c).
 * Nothing keeps two threads from running it there at once when the kernel preempts one. For the
 * same reason each CPU has a few of these slots, and a program acquires one before it uses it.
 */
#ifndef XSP_BPF_SLOTS_H
#define XSP_BPF_SLOTS_H

#include "common.h"

#define XSP_SLOTS 4

/* A map of slots. Each slot begins with a __u32 that says whether it is taken. */
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

/* The waiter runs on the same CPU. */
static __always_inline void xsp_give_slot_back(void *slot)
{
	barrier();
	*(volatile __u32 *)slot = 0;
}

#endif
