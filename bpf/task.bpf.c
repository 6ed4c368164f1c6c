// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * task.bpf.c - the life of the recorded processes and their threads: fork, exec, exit, rename. The
 * events use the same ring as the thread's spans, so that their order is certain.
 */
#include "filter.h"

#define XSP_SIGSTOP 19

enum pid_type { /* include/linux/pid_types.h */
		PIDTYPE_PID,
		PIDTYPE_TGID,
};

__weak const volatile bool xsp_follow = false; /* children are recorded too */
__weak const volatile bool xsp_follow_stop = false; /* and stopped until they have their probes */

/* Processes that were stopped here and not yet resumed. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u32);
} xsp_stopped __weak SEC(".maps");

static __always_inline __u32 task_ns_tid(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	unsigned int level = BPF_CORE_READ(pid, level);
	struct upid upid = {};

	/* numbers[] has one upid for each level, the task's own namespace last (kernel/pid.c) */
	bpf_core_read(&upid, bpf_core_type_size(struct upid),
		      (void *)pid + bpf_core_field_offset(struct pid, numbers) +
			      level * bpf_core_type_size(struct upid));
	return upid.nr;
}

/* `wakeup`: 0, or BPF_RB_FORCE_WAKEUP if the recorder should act at once. */
static __always_inline void emit_task(struct task_struct *task, __u32 what, __u32 other_tgid,
				      __u32 other_tid, const char *comm, __u64 wakeup)
{
	__u64 tgid = BPF_CORE_READ(task, tgid);
	__u32 tid = BPF_CORE_READ(task, pid);
	struct xsp_event_task *e = xsp_reserve_or_count(tid, sizeof(*e));

	if (!e)
		return;
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
	bpf_ringbuf_submit(e, wakeup ? wakeup : BPF_RB_NO_WAKEUP);
}

/* Also between two windows: the next window then knows new threads and names. */
static __always_inline bool is_told(void)
{
	return xsp_active || xsp_paused;
}

/* The flags of its process, enum xsp_tgid_flag; 0: not recorded. */
static __always_inline __u32 flags_of(struct task_struct *task)
{
	__u32 tgid = BPF_CORE_READ(task, tgid);
	__u32 *flags = bpf_map_lookup_elem(&xsp_tgids, &tgid);

	return flags ? *flags : 0;
}

SEC("raw_tp/sched_process_fork")
int xsp_task_fork(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *parent = (void *)ctx->args[0], *child = (void *)ctx->args[1];
	__u32 parent_tgid = BPF_CORE_READ(parent, tgid), child_tgid = BPF_CORE_READ(child, tgid);
	__u32 flags = flags_of(parent);
	bool is_process = child_tgid != parent_tgid;

	if (!flags)
		return 0;
	if (is_process) {
		if (!xsp_follow)
			return 0;
		if (!xsp_follow_stop)
			flags = XSP_TGID_RECORDED;
		if (bpf_map_update_elem(&xsp_tgids, &child_tgid, &flags, BPF_ANY))
			xsp_count(XSP_COUNT_UNTRACKED);
	}
	if (is_told())
		emit_task(child, XSP_TASK_FORK, parent_tgid, BPF_CORE_READ(parent, pid), 0,
			  is_process ? BPF_RB_FORCE_WAKEUP : 0);
	return 0;
}

/* A process is listed before it is stopped. So whoever reads the table resumes it, whatever happens
 * to us. */
static __always_inline bool note_stopped(struct task_struct *task)
{
	__u32 tgid = BPF_CORE_READ(task, tgid), one = 1;

	if (!xsp_active)
		return false;
	if (!bpf_map_update_elem(&xsp_stopped, &tgid, &one, BPF_ANY))
		return true;
	xsp_count(XSP_COUNT_UNTRACKED); /* it runs on */
	return false;
}

extern int bpf_send_signal_task(struct task_struct *task, int sig, enum pid_type type,
				__u64 value) __ksym __weak;

/* --follow=stop: the child runs no instruction before its probes are in. Linux 6.13. */
SEC("?tp_btf/sched_process_fork")
int BPF_PROG(xsp_task_stop, struct task_struct *parent, struct task_struct *child)
{
	if (child->tgid == parent->tgid || !(flags_of(parent) & XSP_TGID_STOP_AT_EXEC))
		return 0;
	if (bpf_send_signal_task && note_stopped(child))
		bpf_send_signal_task(child, XSP_SIGSTOP, PIDTYPE_TGID, 0);
	return 0;
}

/* --min-duration: what the thread has open will not return. Emits those that lasted long enough. */
static __always_inline void end_frames(__u32 tid)
{
	struct xsp_thread_state *s;

	/* between two windows, the recorder asks for what is held back */
	if (!xsp_active || (!xsp_min_duration_ns && !xsp_max_depth))
		return;
	s = bpf_map_lookup_elem(&xsp_thread_states, &tid);
	if (!s)
		return;
	pop_unwound(s, ~0ULL, bpf_ktime_get_ns(), (__u64)s->tgid << 32 | tid);
	bpf_map_delete_elem(&xsp_thread_states, &tid);
}

SEC("raw_tp/sched_process_exec")
int xsp_task_exec(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];
	__u32 flags = flags_of(task);

	if (!flags)
		return 0;
	__u32 tgid = BPF_CORE_READ(task, tgid);
	bpf_map_delete_elem(&xsp_pythons, &tgid);
	if (!is_told())
		return 0;
	end_frames((__u32)ctx->args[1]); /* the id that it had until now */
	emit_task(task, XSP_TASK_EXEC, 0, (__u32)ctx->args[1], 0, BPF_RB_FORCE_WAKEUP);
	if ((flags & XSP_TGID_STOP_AT_EXEC) && note_stopped(task))
		bpf_send_signal(XSP_SIGSTOP);
	return 0;
}

SEC("raw_tp/sched_process_exit")
int xsp_task_exit(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];

	if (!is_told() || !flags_of(task))
		return 0;
	end_frames(BPF_CORE_READ(task, pid));
	emit_task(task, XSP_TASK_EXIT, 0, 0, 0, 0);
	return 0;
}

SEC("raw_tp/task_rename")
int xsp_task_rename(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];

	if (is_told() && flags_of(task))
		emit_task(task, XSP_TASK_RENAME, 0, 0, (const char *)ctx->args[1], 0);
	return 0;
}

char _license[] SEC("license") __weak = "Dual BSD/GPL";
