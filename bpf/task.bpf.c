// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * task.bpf.c - the life of the recorded processes and their threads: fork, exec, exit,
 * rename. In the same ring as the thread's spans, so that their order is certain.
 */
#include "common.h"

__weak const volatile bool xsp_follow = false; /* children are recorded too */

static __always_inline __u32 task_ns_tid(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	unsigned int level = BPF_CORE_READ(pid, level);
	struct upid upid = {};

	/* numbers[] holds one upid a level, the task's own namespace last (kernel/pid.c) */
	bpf_core_read(&upid, bpf_core_type_size(struct upid),
		      (void *)pid + bpf_core_field_offset(struct pid, numbers) +
			      level * bpf_core_type_size(struct upid));
	return upid.nr;
}

static __always_inline void emit_task(struct task_struct *task, __u32 what, __u32 other_tgid,
				      __u32 other_tid, const char *comm)
{
	__u64 tgid = BPF_CORE_READ(task, tgid);
	__u32 tid = BPF_CORE_READ(task, pid);
	struct xsp_event_task *e = xsp_reserve(tid, sizeof(*e));

	if (!e) {
		xsp_count(XSP_COUNT_LOST_OTHER);
		return;
	}
	xsp_fill_head(&e->head, bpf_ktime_get_ns(), 0, tgid << 32 | tid, 0, XSP_EVENT_TASK, 0,
		      sizeof(*e));
	e->what = what;
	e->other_tgid = other_tgid;
	e->other_tid = other_tid;
	e->ns_tid = task_ns_tid(task);
	__builtin_memset(e->comm, 0, sizeof(e->comm));
	if (comm)
		bpf_probe_read_kernel_str(e->comm, sizeof(e->comm), comm);
	else
		BPF_CORE_READ_STR_INTO(&e->comm, task, comm);
	xsp_submit(e);
}

static __always_inline bool is_recorded(struct task_struct *task)
{
	__u32 tgid = BPF_CORE_READ(task, tgid);

	return bpf_map_lookup_elem(&xsp_tgids, &tgid) != 0;
}

SEC("raw_tp/sched_process_fork")
int xsp_task_fork(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *parent = (void *)ctx->args[0], *child = (void *)ctx->args[1];
	__u32 parent_tgid = BPF_CORE_READ(parent, tgid), child_tgid = BPF_CORE_READ(child, tgid);
	__u32 one = 1;

	if (!is_recorded(parent))
		return 0;
	if (child_tgid != parent_tgid) {
		if (!xsp_follow)
			return 0;
		if (bpf_map_update_elem(&xsp_tgids, &child_tgid, &one, BPF_ANY))
			xsp_count(XSP_COUNT_UNTRACKED);
	}
	if (xsp_active)
		emit_task(child, XSP_TASK_FORK, parent_tgid, BPF_CORE_READ(parent, pid), 0);
	return 0;
}

SEC("raw_tp/sched_process_exec")
int xsp_task_exec(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];

	if (xsp_active && is_recorded(task))
		emit_task(task, XSP_TASK_EXEC, 0, (__u32)ctx->args[1], 0);
	return 0;
}

SEC("raw_tp/sched_process_exit")
int xsp_task_exit(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];

	if (xsp_active && is_recorded(task))
		emit_task(task, XSP_TASK_EXIT, 0, 0, 0);
	return 0;
}

SEC("raw_tp/task_rename")
int xsp_task_rename(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];

	if (xsp_active && is_recorded(task))
		emit_task(task, XSP_TASK_RENAME, 0, 0, (const char *)ctx->args[1]);
	return 0;
}

char _license[] SEC("license") __weak = "Dual BSD/GPL";
