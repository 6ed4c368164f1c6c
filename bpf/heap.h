/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* heap.h - --memory=malloc: the call that each thread is in, and the sampled blocks that are
 * alive. */
#ifndef XSP_BPF_HEAP_H
#define XSP_BPF_HEAP_H

#include "common.h"

/* Set before loading. */
__weak const volatile __u32 xsp_heap_period = 0; /* bytes; 0: nothing of this is loaded */

struct heap_block {
	__u64 address;
	__u64 tgid;
};
/* Value: bytes. Resized before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct heap_block);
	__type(value, __u64);
} xsp_heap_blocks __weak SEC(".maps");

/* The call that a thread is in. Only this thread writes here. */
struct heap_call {
	__u64 sp; /* at entry; 0: in no call */
	__u64 time_ns;
	__u64 bytes; /* asked for */
	__u64 result; /* where the address is written to; 0: it is returned */
	__u64 old, old_bytes; /* the block that realloc() takes back, if the table had it */
	__u64 sampled; /* 1: in the sample */
	__u64 handed; /* 1 + the probe that passed it on by a jump to unknown code; 0: none */
	__u64 returns_to; /* then: the return address */
	/* The outermost call whose return address the kernel has swapped: sp at entry, and the
	 * time. 0: none. */
	__u64 swapped, swapped_ns;
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct heap_call);
} xsp_heap_calls __weak SEC(".maps");

/* Adds a block to the table, before any thread can free it. */
static __noinline __attribute__((unused)) bool xsp_heap_put(__u64 address, __u64 bytes)
{
	struct heap_block key = {.address = address, .tgid = bpf_get_current_pid_tgid() >> 32};

	if (!bpf_map_update_elem(&xsp_heap_blocks, &key, &bytes, BPF_ANY))
		return true;
	xsp_count(XSP_COUNT_UNTRACKED);
	return false;
}

/* An exception or a longjmp has landed where the stack pointer is `sp`: a call below it is gone,
 * and returned nothing. */
static __always_inline void xsp_heap_unwound(__u32 tid, __u64 sp)
{
	struct heap_call *c = xsp_heap_period ? bpf_map_lookup_elem(&xsp_heap_calls, &tid) : 0;

	if (!c || !c->sp || c->sp >= sp)
		return;
	if (c->old_bytes)
		xsp_heap_put(c->old, c->old_bytes);
	c->sp = c->old_bytes = c->handed = 0;
}

#endif
