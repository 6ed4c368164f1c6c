/* SPDX-License-Identifier: BSD-2-Clause */
/* vmlinux.h (aarch64) - see the x86_64 one. */
#ifndef XSP_VMLINUX_H
#define XSP_VMLINUX_H

#include "../common.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct thread_struct {
	struct {
		unsigned long tp_value;
	} uw;
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

struct task_struct {
	struct mm_struct *mm;
	struct sched_entity se;
	unsigned int __state, flags;
	void *stack;
	int on_cpu, on_rq, exit_state, exit_code;
	unsigned in_iowait : 1;
	struct files_struct *files;
	unsigned long long start_time, self_exec_id;
	unsigned long nvcsw, nivcsw, min_flt, maj_flt;
	struct task_io_accounting ioac;
	pid_t pid;
	pid_t tgid;
	char comm[16];
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct uprobe_task *utask;
	struct thread_struct thread;
};

#pragma clang attribute pop

/* arch/arm64/include/uapi/asm/ptrace.h */
struct user_pt_regs {
	__u64 regs[31];
	__u64 sp;
	__u64 pc;
	__u64 pstate;
};

struct pt_regs {
	struct user_pt_regs user_regs;
	__u64 orig_x0;
	__s32 syscallno;
};

#endif
