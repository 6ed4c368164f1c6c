/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* kernel_stack.h - stacks of the kernel's own functions, for samples and waits. */
#ifndef XSP_BPF_KERNEL_STACK_H
#define XSP_BPF_KERNEL_STACK_H

#include "common.h"

/* The broker names their functions. The addresses stay in the kernel, as they reveal where its code
 * is. Resized before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, XSP_KERNEL_FRAMES * sizeof(__u64));
} xsp_kernel_stacks __weak SEC(".maps");

#endif
