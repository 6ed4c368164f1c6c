// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * symbol.bpf.c - the name of a function of the kernel. Reading /proc/kallsyms for it takes 60 ms, and kernels with
 * kernel.kptr_restrict hide it; this hands out a name and no address.
 */
#include "common.h"

char xsp_symbol_name[XSP_SYMBOL_BYTES];

SEC("syscall")
int xsp_symbol(__u64 *address)
{
	__u64 at = *address;

	BPF_SNPRINTF(xsp_symbol_name, sizeof(xsp_symbol_name), "%ps", at);
	return 0;
}

char _license[] SEC("license") __weak = "Dual BSD/GPL";
