/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stack.h - the section STACK: the callers, by frame pointers.
 *
 * The return address is at the entry stack pointer, so it needs no frame pointer. From there on,
 * each frame that keeps one leads to the next. bpf_get_stack() will not do. It begins at the site,
 * where the frame pointer may be the function's or its caller's, and kernels differ in what they
 * make of it. It also returns a buffer of the CPU, which a preempting thread may overwrite.
 */
#ifndef XSP_BPF_STACK_H
#define XSP_BPF_STACK_H

#include "words.h"

/* The next frame is at most this far away: the most that XSP_FRAME_WORDS can hold. Otherwise the
 * register was no frame pointer, or a function has half a megabyte of variables. */
#define XSP_FRAME_REACH (0xffffULL * 8 - 16)

/* Most addresses of a stack; 0: no stacks. Set before loading, with room for them in
 * xsp_detail_bytes. */
__weak const volatile __u32 xsp_stack_frames = 0;
#define XSP_STACK_ROOM XSP_STACK_BYTES(xsp_stack_frames)

/* The registers that call frame information needs. Of arm64 only those that code is seen to start from. */
static __always_inline void xsp_copy_registers(struct xsp_stack_copy *copy,
					       const struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	copy->rbx = regs->bx;
	copy->rbp = regs->bp;
	copy->r12 = regs->r12;
	copy->r13 = regs->r13;
	copy->r14 = regs->r14;
	copy->r15 = regs->r15;
#else
	copy->rbp = XSP_REG_FP(regs);
	copy->rbx = XSP_REG_LINK(regs);
#endif
}

struct stack_walk {
	__u64 *slot;
	volatile __u16 *size;
	__u64 frame, above;
};

/* One frame; 1: it was the last. */
static __noinline long xsp_step(__u32 index, void *at)
{
	struct stack_walk *w = at;
	__u64 distance = w->frame - w->above, *slot = w->slot;
	__u32 i = index + 1;

	barrier_var(i); /* the verifier sees the bound of the register that is used */
	/* within reach and a multiple of 8, in one comparison: each comparison doubles the paths */
	if (i >= xsp_stack_frames || (distance >> 3 | distance << 61) > XSP_FRAME_REACH / 8)
		return 1;
	/* {the caller's frame pointer, the return address}; zeros if they cannot be read */
	bpf_probe_read_user(slot + i, 16, (void *)w->frame);
	w->above = w->frame + 16;
	w->frame = slot[i];
	slot[i + 1] = XSP_CODE_ADDRESS(slot[i + 1]);
	if (slot[i + 1] - 1 >= (1ULL << XSP_FRAME_SHIFT) - 1)
		return 1;
	slot[i] = slot[i + 1] | (distance + 16) / 8 << XSP_FRAME_SHIFT;
	*w->size += 8;
	return 0;
}

/* The size is kept in the reservation, not in a register. So the verifier sees one path after the
 * loop, not one for each frame. */
static __noinline void xsp_walk(__u64 *slot, volatile __u16 *size, __u64 frame, __u64 above)
{
	struct stack_walk walk = {.slot = slot, .size = size, .frame = frame, .above = above};

	if (xsp_stack_frames > 1)
		XSP_LOOP(xsp_stack_frames - 1, XSP_STACK_MAX - 1, xsp_step, &walk);
}

static __noinline __u32 xsp_put_stack(struct pt_regs *ctx, char *e, __u32 at)
{
	__u64 above = ((struct xsp_event *)e)->sp + XSP_RETURN_SLOT, frame = XSP_REG_FP(ctx);

	/* through the reservation: whatever was put before, the verifier walks through this once */
	*(volatile __u16 *)&((struct xsp_event *)e)->size = at;
	at = *(volatile __u16 *)&((struct xsp_event *)e)->size;
	if (xsp_detail_bytes < XSP_STACK_ROOM || at > xsp_detail_bytes - XSP_STACK_ROOM)
		return at;
	struct xsp_section *s = (struct xsp_section *)(e + at);
	__u64 *slot = (__u64 *)(s + 1);
	*slot = XSP_REG_LINK(ctx);
#if defined(__TARGET_ARCH_x86)
	if (bpf_probe_read_user(slot, 8, (void *)(above - XSP_RETURN_SLOT)))
		*slot = 0;
	/* the function has made its frame already, and its return address is in the list */
	if (frame == above - 2 * XSP_RETURN_SLOT &&
	    bpf_probe_read_user(&frame, sizeof(frame), (void *)frame))
		frame = 0;
#endif
	xsp_put_section_head(e, at, XSP_SECTION_STACK, sizeof(*s) + 8, 0);
	xsp_walk(slot, &s->size, frame, above);
	__u32 size = *(volatile __u16 *)&s->size;
	if (size > XSP_STACK_ROOM)
		return at;
	return at + size;
}

#endif
