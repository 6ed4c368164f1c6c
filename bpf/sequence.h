/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sequence.h - the sections SEQUENCE (this thread's counter of autograd) and NODE (the number of a
 * node of the graph).
 */
#ifndef XSP_BPF_SEQUENCE_H
#define XSP_BPF_SEQUENCE_H

#include "words.h"

/* By process; the recorder fills it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct xsp_sequence_spec);
} xsp_sequences __weak SEC(".maps");

#define UNKNOWN ~0ULL /* a value that could not be read */

static __always_inline __u64 read_word(__u64 address)
{
	__u64 word;

	return bpf_probe_read_user(&word, sizeof(word), (void *)address) ? UNKNOWN : word;
}

#if defined(__TARGET_ARCH_x86)
static __always_inline __u64 thread_pointer(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	return BPF_CORE_READ(task, thread.fsbase);
}

/*
 * The address of a module's variables in this thread; 0: it has not used any. glibc: the second
 * word of the thread's control block (tcbhead_t.dtv, sysdeps/x86_64/nptl/tls.h) points to a table
 * of pairs of words, by module from 1 (dtv_t, sysdeps/generic/dl-dtv.h). The pair before it holds
 * their number. A block that is made on first use is ~0 until then (TLS_DTV_UNALLOCATED).
 */
XSP_VERIFIED_ONCE __u64 module_block(__u64 thread, __u64 module)
{
	__u64 table = read_word(thread + 8), modules, block;

	if (table == UNKNOWN || module == 0 || module == UNKNOWN)
		return UNKNOWN;
	modules = read_word(table - 16);
	if (modules == UNKNOWN || module > modules)
		return modules == UNKNOWN ? UNKNOWN : 0;
	if (bpf_probe_read_user(&block, sizeof(block), (void *)(table + module * 16)))
		return UNKNOWN;
	return block == ~0ULL ? 0 : block;
}
#else
/* The kernel notes it as the thread leaves its CPU; 0 before the first time. */
static __always_inline __u64 thread_pointer(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u64 pointer = BPF_CORE_READ(task, thread.uw.tp_value);

	return pointer ? pointer : UNKNOWN;
}

/* The provider finds no variables on other machines. */
static __always_inline __u64 module_block(__u64 thread, __u64 module)
{
	return UNKNOWN;
}
#endif

/* The address of the variable in this thread; 0: it was never used, so its value is 0. */
static __noinline __u64 variable_address(const struct xsp_tls_place *p)
{
	__u64 base = thread_pointer(), offset = p->displacement, word = 0;

	if (p->kind != XSP_TLS_CONSTANT) {
		word = read_word(p->slot + (p->kind == XSP_TLS_DYNAMIC ? 8 : 0));
		offset += word;
	}
	if (p->kind == XSP_TLS_DYNAMIC)
		base = module_block(base, read_word(p->slot));
	if (word == UNKNOWN || base == UNKNOWN || base == 0)
		return base == 0 ? 0 : UNKNOWN;
	return base + offset;
}

/* What was found out about a thread. It is valid only if the thread's start and the process's
 * generation are the same: else it is that of another thread or program. */
struct thread_place {
	__u64 start, counter;
	__u32 generation, thread;
};
/* LRU: a thread that ends deletes nothing. What was evicted is found out again at the thread's next
 * hit. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct thread_place);
} xsp_thread_places __weak SEC(".maps");

/* The thread's entry, made now if it is missing; 0: there is no room. */
static __noinline struct thread_place *place_of(const struct xsp_sequence_spec *spec)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct task_struct *task = (void *)bpf_get_current_task();
	struct thread_place *known = bpf_map_lookup_elem(&xsp_thread_places, &tid);
	struct thread_place place = {.start = BPF_CORE_READ(task, start_time),
				     .generation = spec->counter.generation};

	if (known && known->start == place.start && known->generation == place.generation)
		return known;
	bpf_map_update_elem(&xsp_thread_places, &tid, &place, BPF_ANY);
	return bpf_map_lookup_elem(&xsp_thread_places, &tid);
}

/* Searched for again until it is found. */
static __always_inline __u64 read_counter(const struct xsp_sequence_spec *spec,
					  struct thread_place *place)
{
	volatile __u64 *known = &place->counter;

	/* read again: one path for the verifier, not one for each way to find it */
	if (*known == 0 || *known == UNKNOWN)
		*known = variable_address(&spec->counter);
	__u64 address = *known;
	return address == 0 || address == UNKNOWN ? address : read_word(address);
}

/* Torch's number of the thread, which it gets with its first node. */
static __noinline __u32 thread_number(const struct xsp_sequence_spec *spec,
				      struct thread_place *place)
{
	volatile __u32 *known = &place->thread;
	__u64 address;

	if (*known == 0) {
		address = variable_address(&spec->thread);
		if (address != 0 && address != UNKNOWN)
			*known = (__u32)read_word(address);
	}
	return *known;
}

/* The thread's number is needed at exit only. */
static __noinline __u32 xsp_put_sequence(char *e, __u32 at)
{
	__u32 tgid = ((struct xsp_event *)e)->tgid;
	const struct xsp_sequence_spec *spec = bpf_map_lookup_elem(&xsp_sequences, &tgid);
	struct thread_place *place = spec ? place_of(spec) : 0;
	__u64 counter;

	if (!place || at > XSP_DETAIL_LEAST - sizeof(struct xsp_section) - 8)
		return at;
	counter = read_counter(spec, place);
	if (counter == UNKNOWN)
		return at;
	*(__u64 *)(e + at + sizeof(struct xsp_section)) = counter;
	xsp_put_section_head(e, at, XSP_SECTION_SEQUENCE, sizeof(struct xsp_section) + 8,
			     ((struct xsp_event *)e)->kind == XSP_EVENT_EXIT && counter
				     ? thread_number(spec, place)
				     : 0);
	return at + sizeof(struct xsp_section) + 8;
}

/* The number of the node and the thread that made it: the first two operands. */
static __noinline __u32 xsp_put_node(struct pt_regs *ctx, const struct xsp_detail_spec *spec,
				     char *e, __u32 at)
{
	if (at > XSP_DETAIL_LEAST - sizeof(struct xsp_section) - 16)
		return at;
	*(__u64 *)(e + at + sizeof(struct xsp_section)) = xsp_operand(ctx, &spec->word[0]);
	*(__u64 *)(e + at + sizeof(struct xsp_section) + 8) = xsp_operand(ctx, &spec->word[1]);
	xsp_put_section_head(e, at, XSP_SECTION_NODE, sizeof(struct xsp_section) + 16, 0);
	return at + sizeof(struct xsp_section) + 16;
}

#endif
