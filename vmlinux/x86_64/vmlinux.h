/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vmlinux.h (x86_64) - the few kernel types that the BPF programs touch. CO-RE relocates
 * every field against the running kernel's BTF, so only names and kinds matter here, not
 * offsets. tools/vmlinux prints the full types of a running kernel for comparison.
 */
#ifndef XSP_VMLINUX_H
#define XSP_VMLINUX_H

#include "../common.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* BPF context of a uprobe program: its layout is uapi and is not relocated by libbpf for
 * context accesses; arch/x86/include/uapi/asm/ptrace.h */
struct thread_struct {
	unsigned long fsbase;
};

struct sched_entity {
	unsigned long long sum_exec_runtime, nr_migrations;
};

struct return_instance {
	unsigned long stack;
};

struct uprobe_task {
	struct return_instance *return_instances;
	unsigned int depth;
	unsigned long xol_vaddr;
};

struct thread_info {
	__u32 status;
};

struct task_struct {
	struct mm_struct *mm;
	struct thread_info thread_info;
	struct sched_entity se;
	unsigned int __state, flags;
	void *stack;
	int on_cpu, on_rq, exit_state, exit_code;
	unsigned in_iowait : 1;
	struct files_struct *files;
	unsigned long long start_time, self_exec_id;
	unsigned long nvcsw, nivcsw, min_flt, maj_flt;
	struct thread_struct thread;
	struct task_io_accounting ioac;
	pid_t pid;
	pid_t tgid;
	char comm[16];
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct uprobe_task *utask;
};

#pragma clang attribute pop

struct pt_regs {
	unsigned long r15, r14, r13, r12;
	unsigned long bp, bx;
	unsigned long r11, r10, r9, r8;
	unsigned long ax, cx, dx, si, di;
	unsigned long orig_ax, ip, cs, flags, sp, ss;
};

#endif
