// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * dispatch.bpf.c - which processes have Syscall User Dispatch on (Wine). Reading the iterator gives
 * the process id of each such thread. No file of /proc says so, and ptrace would stop the thread.
 */
#include "common.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* kernels without the dispatch lack the member */
struct thread_info___dispatch {
	unsigned long syscall_work;
};
struct task_struct___dispatch {
	struct thread_info___dispatch thread_info;
	pid_t tgid;
};

#pragma clang attribute pop

enum syscall_work_bit___dispatch {
	SYSCALL_WORK_BIT_SYSCALL_USER_DISPATCH___dispatch = 5,
};

SEC("iter/task")
int xsp_dispatch_users(struct bpf_iter__task *ctx)
{
	struct task_struct___dispatch *task = (void *)ctx->task;

	if (!task || !bpf_core_field_exists(task->thread_info.syscall_work) ||
	    !bpf_core_enum_value_exists(enum syscall_work_bit___dispatch,
					SYSCALL_WORK_BIT_SYSCALL_USER_DISPATCH___dispatch))
		return 0;
	__u64 work = BPF_CORE_READ(task, thread_info.syscall_work);
	__u32 tgid = BPF_CORE_READ(task, tgid);
	if (work >> bpf_core_enum_value(enum syscall_work_bit___dispatch,
					SYSCALL_WORK_BIT_SYSCALL_USER_DISPATCH___dispatch) &
	    1)
		bpf_seq_write(ctx->meta->seq, &tgid, sizeof(tgid));
	return 0;
}

char _license[] SEC("license") __weak = "Dual BSD/GPL";
