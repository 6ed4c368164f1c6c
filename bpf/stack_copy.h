/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* stack_copy.h - stacks of code that may keep no frame pointers: the callers that frame pointers
 * lead to, and a copy of the stack. */
#ifndef XSP_BPF_STACK_COPY_H
#define XSP_BPF_STACK_COPY_H

#include "stack.h"

/* Puts the return addresses that frame pointers lead to. The section begins where the event ends so
 * far. */
static __noinline __u32 xsp_put_callers(struct pt_regs *regs, char *e, __u32 at)
{
	at = xsp_forget(e, at);
	if (at > XSP_SAMPLE_STACK_AT)
		return at;
	struct xsp_section *s = (struct xsp_section *)(e + at);
	xsp_put_section_head(e, at, XSP_SECTION_STACK, sizeof(*s), 0);
	/* the walk starts with the second slot: here, with the first return address */
	xsp_walk((__u64 *)s, &s->size, XSP_REG_FP(regs), ((struct xsp_event *)e)->sp);
	__u32 size = *(volatile __u16 *)&s->size;
	if (size > XSP_STACK_BYTES(XSP_STACK_MAX))
		return at;
	return at + size;
}

/* Copies the stack, from which the recorder finds callers without frame pointers by call frame
 * information. `pieces`: a constant, at most XSP_STACK_COPY_PIECES. */
static __noinline __u32 xsp_put_copy(struct pt_regs *regs, char *e, __u32 at, __u32 pieces)
{
	const __u64 from = ((struct xsp_event *)e)->sp;

	at = xsp_forget(e, at);
	if (at > XSP_SAMPLE_COPY_AT)
		return at;
	struct xsp_section *s = (struct xsp_section *)(e + at);
	struct xsp_stack_copy *copy = (struct xsp_stack_copy *)(s + 1);
	char *bytes = (char *)(copy + 1);
	xsp_copy_registers(copy, regs);
	xsp_put_section_head(e, at, XSP_SECTION_COPY, sizeof(*s) + sizeof(*copy), 0);
	for (__u32 i = 0; i < pieces; i++) {
		if (bpf_probe_read_user(bytes + i * XSP_STACK_COPY_PIECE, XSP_STACK_COPY_PIECE,
					(void *)(from + i * XSP_STACK_COPY_PIECE)))
			break;
		s->size += XSP_STACK_COPY_PIECE;
	}
	__u32 size = *(volatile __u16 *)&s->size;
	return at + (size & 0x3fff);
}

#endif
