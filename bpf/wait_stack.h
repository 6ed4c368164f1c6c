/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * wait_stack.h - --wait-stacks: where a thread was when it left its CPU.
 *
 * The stack is read as the thread leaves, since its memory cannot be reached later. It is kept
 * until the length of the wait is known. Waits begin in the C library, which often keeps no frame
 * pointers. So the registers and the words at the stack pointer are copied, too: the recorder finds
 * the missing frames with call frame information.
 */
#ifndef XSP_BPF_WAIT_STACK_H
#define XSP_BPF_WAIT_STACK_H

/* of what these headers do for spans, nothing is used here */
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wunused-function"
#include "kernel_stack.h"
#include "python.h"
#include "stack.h"
#pragma clang diagnostic pop

/* Set before loading. */
__weak const volatile bool xsp_wait_stacks_on = false;
__weak const volatile bool xsp_wait_stacks_thinned = false; /* else each stack is read */
__weak const volatile __u64 xsp_wait_stack_least_ns = 0;

struct wait_stack {
	__u64 sp; /* the entry stack pointer of what it would call next; 0: no stack */
	__u64 python; /* the id of its stack */
	__u32 python_value;
	__u32 has_python;
	__u32 words; /* the number of bytes copied */
	__u16 size; /* the number of bytes in `frame` */
	__u16 torn;
	__s64 kernel; /* the number of the kernel's own stack; negative: none */
	__u64 frame[XSP_WAIT_FRAMES];
	struct xsp_stack_copy registers; /* the callers follow, as in XSP_SECTION_COPY */
	__u64 word[XSP_WAIT_WORDS];
};

/* The same threads as in xsp_thread_waits; resized before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, struct wait_stack);
} xsp_wait_stacks __weak SEC(".maps");

static const struct wait_stack no_stack;

/* What follows the words of a stack, of the threads of few processes. */
struct deep_stack {
	__u64 sp; /* the stack pointer of the wait */
	__u64 word[XSP_WAIT_DEEP_WORDS];
};
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, struct deep_stack);
} xsp_deep_stacks __weak SEC(".maps");

static const struct deep_stack no_deep_stack;

#define PAGE 4096

/* The last page of a stack may end sooner. */
static __always_inline void copy_words(struct wait_stack *s, __u64 sp)
{
	__u32 left = PAGE - (sp & (PAGE - 1));

	s->words = sizeof(s->word);
	if (!bpf_probe_read_user(s->word, sizeof(s->word), (void *)sp))
		return;
	if (left > sizeof(s->word))
		left = sizeof(s->word);
	left &= ~7U;
	s->words = left;
	if (bpf_probe_read_user(s->word, left, (void *)sp)) {
		s->words = 0;
		s->torn = 1;
	}
}

/* {the caller's frame pointer, the return address}: most were copied already. */
static __always_inline bool frame_at(struct wait_stack *s, __u64 sp, __u64 frame, __u64 *pair)
{
	__u64 word = (frame - sp) / 8;

	if (word + 1 >= s->words / 8)
		return bpf_probe_read_user(pair, 16, (void *)frame) == 0;
	pair[0] = s->word[word & (XSP_WAIT_WORDS - 1)];
	pair[1] = s->word[(word + 1) & (XSP_WAIT_WORDS - 1)];
	return true;
}

struct wait_walk {
	struct wait_stack *stack;
	__u64 sp, frame, above;
};

/* As xsp_step(). */
static __noinline long step_from(__u32 index, void *at)
{
	struct wait_walk *w = at;
	struct wait_stack *s = w->stack;
	__u64 distance = w->frame - w->above, pair[2];
	__u32 i = index + 1;

	if ((distance >> 3 | distance << 61) > XSP_FRAME_REACH / 8)
		return 1;
	if (!frame_at(s, w->sp, w->frame, pair)) {
		s->torn = 1;
		return 1;
	}
	w->above = w->frame + 16;
	w->frame = pair[0];
	pair[1] = XSP_CODE_ADDRESS(pair[1]);
	if (pair[1] - 1 >= (1ULL << XSP_FRAME_SHIFT) - 1)
		return 1;
	s->frame[i & (XSP_WAIT_FRAMES - 1)] = pair[1] | (distance + 16) / 8 << XSP_FRAME_SHIFT;
	s->size = 8 * (i + 1);
	return 0;
}

static __noinline void walk_from(struct wait_stack *s, __u64 sp, __u64 frame)
{
	struct wait_walk walk = {.stack = s, .sp = sp, .frame = frame, .above = sp};

	XSP_LOOP(XSP_WAIT_FRAMES - 1, XSP_WAIT_FRAMES - 1, step_from, &walk);
}

/* Those of the current task, whose first words are in `s`. */
static __noinline void copy_deep(const struct wait_stack *s, __u64 key, __u64 sp)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	__u32 *flags = bpf_map_lookup_elem(&xsp_tgids, &tgid);

	if (!flags || !(*flags & XSP_TGID_DEEP_STACKS) || s->words != sizeof(s->word))
		return;
	struct deep_stack *d = bpf_map_lookup_elem(&xsp_deep_stacks, &key);
	if (!d) {
		bpf_map_update_elem(&xsp_deep_stacks, &key, &no_deep_stack, BPF_ANY);
		d = bpf_map_lookup_elem(&xsp_deep_stacks, &key);
	}
	if (!d)
		return;
	d->sp = bpf_probe_read_user(d->word, sizeof(d->word), (void *)(sp + sizeof(s->word)))
			? 0
			: s->sp;
}

/* The stack of the current task. */
XSP_VERIFIED_ONCE int copy_stack(__u64 now, __s64 kernel)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	__u64 key = (__u64)task;
	struct wait_stack *s = bpf_map_lookup_elem(&xsp_wait_stacks, &key);
	__u64 sp = XSP_REG_SP(regs), ip = XSP_REG_IP(regs);

	if (!s)
		return 0;
	s->sp = 0;
	s->has_python = 0;
	s->torn = 0;
	s->kernel = kernel;
	if (!ip || ip >> XSP_FRAME_SHIFT) /* a kernel thread */
		return 0;
	s->frame[0] = ip;
	s->size = 8;
	xsp_copy_registers(&s->registers, regs);
	copy_words(s, sp);
	walk_from(s, sp, XSP_REG_FP(regs));
	if (xsp_python_frames)
		s->has_python = python_stack_id(bpf_get_current_pid_tgid() >> 32, now, &s->python,
						&s->python_value);
	s->sp = sp - XSP_RETURN_SLOT;
	copy_deep(s, key, sp);
	return 0;
}

/* The most that an event with a stack takes. */
#define WAIT_STACK_BYTES                                                                           \
	(4 * sizeof(struct xsp_section) + 8 + sizeof(struct xsp_stack_copy) +                      \
	 8 * (XSP_WAIT_FRAMES + XSP_WAIT_WORDS))

/* Puts the sections into the event, from `at` on; returns their end. */
static __noinline __u32 put_wait_stack(struct xsp_event_wait *e, const struct wait_stack *s,
				       __u32 at)
{
	__u32 bytes = s->size, words = s->words;

	xsp_put_section_head((char *)e, at, XSP_SECTION_PYTHON, sizeof(struct xsp_section) + 8,
			     s->python_value);
	*(__u64 *)((char *)e + at + sizeof(struct xsp_section)) = s->python;
	if (s->has_python)
		at += sizeof(struct xsp_section) + 8;
	xsp_put_section_head((char *)e, at, XSP_SECTION_KERNEL, sizeof(struct xsp_section),
			     (__u32)s->kernel);
	if (s->kernel >= 0)
		at += sizeof(struct xsp_section);
	if (bytes > 8 * XSP_WAIT_FRAMES)
		return at;
	bpf_probe_read_kernel((char *)e + at + sizeof(struct xsp_section), bytes, s->frame);
	xsp_put_section_head((char *)e, at, XSP_SECTION_STACK, sizeof(struct xsp_section) + bytes,
			     0);
	at += sizeof(struct xsp_section) + bytes;
	words += sizeof(s->registers);
	if (words > sizeof(s->registers) + sizeof(s->word))
		return at;
	bpf_probe_read_kernel((char *)e + at + sizeof(struct xsp_section), words, &s->registers);
	xsp_put_section_head((char *)e, at, XSP_SECTION_COPY, sizeof(struct xsp_section) + words,
			     0);
	at += sizeof(struct xsp_section) + words;
	return at;
}

#endif
