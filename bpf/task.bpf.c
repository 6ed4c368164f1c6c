// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * task.bpf.c - the life of the recorded processes and their threads: fork, exec, exit, rename. The
 * events use the same ring as the thread's spans, so that their order is certain.
 */
#include "filter.h"
#include "mappings.h"

#define XSP_SIGSTOP 19
#define VM_EXEC 4 /* include/linux/mm.h */

/* include/uapi/asm-generic/mman-common.h, include/uapi/linux/mman.h */
#define MAP_FIXED 0x10
#define MREMAP_FIXED 2

#if defined(__TARGET_ARCH_x86)
#define SYSCALL_NUMBER(regs) ((regs)->orig_ax)
#define ARG1(regs) ((regs)->di)
#define ARG2(regs) ((regs)->si)
#define ARG3(regs) ((regs)->dx)
#define ARG4(regs) ((regs)->r10)
#define ARG5(regs) ((regs)->r8)
#define MMAP_NUMBER 9
#define MUNMAP_NUMBER 11
#define MREMAP_NUMBER 25
#else
#define SYSCALL_NUMBER(regs) ((regs)->syscallno)
#define ARG1(regs) ((regs)->orig_x0)
#define ARG2(regs) ((regs)->user_regs.regs[1])
#define ARG3(regs) ((regs)->user_regs.regs[2])
#define ARG4(regs) ((regs)->user_regs.regs[3])
#define ARG5(regs) ((regs)->user_regs.regs[4])
#define MMAP_NUMBER 222
#define MUNMAP_NUMBER 215
#define MREMAP_NUMBER 216
#endif

enum pid_type { /* include/linux/pid_types.h */
		PIDTYPE_PID,
		PIDTYPE_TGID,
};

__weak const volatile bool xsp_follow = false; /* children are recorded too */
__weak const volatile bool xsp_follow_stop = false; /* and stopped until they have their probes */

/* Processes that were stopped here and not yet resumed: enum xsp_stopped_why. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u32);
} xsp_stopped __weak SEC(".maps");

/* XSP_MOVE_KEY → what was there. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, __u64);
	__type(value, struct xsp_move);
} xsp_moves __weak SEC(".maps");

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
static __always_inline bool note_stopped(struct task_struct *task, __u32 why)
{
	__u32 tgid = BPF_CORE_READ(task, tgid);

	if (!xsp_active)
		return false;
	if (!bpf_map_update_elem(&xsp_stopped, &tgid, &why, BPF_ANY))
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
	if (bpf_send_signal_task && note_stopped(child, XSP_STOPPED_NEW))
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
	if ((flags & XSP_TGID_STOP_AT_EXEC) && note_stopped(task, XSP_STOPPED_NEW))
		bpf_send_signal(XSP_SIGSTOP);
	return 0;
}

/* What a system call is about to map something over, or to unmap. */
struct replaced {
	struct xsp_move move; /* start and end: of the call, until code is found there */
	bool unmapped, found;
};

/* Only code with breakpoints has anonymous pages. Libraries are unmapped when they are closed; the
 * program itself is only to move it. */
static __noinline void look_at_replaced(struct replaced *r, struct mm_struct *mm, __u64 at)
{
	struct vm_area_struct *vma = mapping_at(mm, at);
	struct file *file = BPF_CORE_READ(vma, vm_file);

	if (!vma || !(BPF_CORE_READ(vma, vm_flags) & VM_EXEC) || !file ||
	    !BPF_CORE_READ(vma, anon_vma))
		return;
	if (r->unmapped && BPF_CORE_READ(file, f_inode) != BPF_CORE_READ(mm, exe_file, f_inode))
		return;
	const __u64 first = BPF_CORE_READ(vma, vm_start), last = BPF_CORE_READ(vma, vm_end);
	r->move.start = r->move.start > first ? r->move.start : first;
	r->move.end = r->move.end < last ? r->move.end : last;
	r->move.offset = (BPF_CORE_READ(vma, vm_pgoff) << 12) + r->move.start - first;
	r->move.inode = BPF_CORE_READ(file, f_inode, i_ino);
	r->found = true;
}

static __always_inline bool reads_replaced(struct pt_regs *regs, struct replaced *r)
{
	__u64 number = SYSCALL_NUMBER(regs), length = ARG2(regs);

	r->move.start = ARG1(regs);
	r->unmapped = number == MUNMAP_NUMBER;
	if (number == MREMAP_NUMBER) {
		r->move.start = ARG5(regs);
		length = ARG3(regs);
	}
	r->move.end = r->move.start + length;
	return r->move.end > r->move.start &&
	       (r->unmapped || (number == MMAP_NUMBER && (ARG4(regs) & MAP_FIXED)) ||
		(number == MREMAP_NUMBER && (ARG4(regs) & MREMAP_FIXED)));
}

static __noinline void stop_to_mend(struct task_struct *task, __u32 tgid,
				    const struct xsp_move *move)
{
	__u64 key = XSP_MOVE_KEY(tgid, move->start);

	if (bpf_map_update_elem(&xsp_moves, &key, move, BPF_ANY))
		return;
	if (!note_stopped(task, XSP_STOPPED_MOVES)) {
		bpf_map_delete_elem(&xsp_moves, &key);
		return;
	}
	bpf_send_signal(XSP_SIGSTOP);
	/* wakes the recorder, and says nothing */
	void *e = xsp_reserve(BPF_CORE_READ(task, pid), 8);
	if (e)
		bpf_ringbuf_discard(e, BPF_RB_FORCE_WAKEUP);
}

/*
 * A process moves its code to large pages: it copies it, and maps other memory over it. The copy has
 * our breakpoints, which nobody serves there: the first one would kill the process. So it is stopped
 * before it runs the copy, which is mended (user/broker/links/moved.c). Whoever changes mappings
 * takes this lock.
 */
SEC("?raw_tp/mmap_lock_start_locking")
int xsp_code_moves(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	__u32 *flags = bpf_map_lookup_elem(&xsp_tgids, &tgid);
	struct replaced r = {};

	/* the lock of any process: be quick */
	if (!flags || !(*flags & XSP_TGID_STOP_AT_EXEC))
		return 0;
	struct task_struct *task = bpf_get_current_task_btf();
	if (!reads_replaced((struct pt_regs *)bpf_task_pt_regs(task), &r))
		return 0;
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	look_at_replaced(&r, mm, r.move.start);
	if (!r.found)
		look_at_replaced(&r, mm, r.move.end - 1);
	if (r.found)
		stop_to_mend(task, tgid, &r.move);
	return 0;
}

SEC("raw_tp/sched_process_exit")
int xsp_task_exit(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];

	if (!is_told() || !flags_of(task))
		return 0;
	int code = BPF_CORE_READ(task, exit_code);

	end_frames(BPF_CORE_READ(task, pid));
	emit_task(task, XSP_TASK_EXIT, code >> 8 & 0xff, code & 0x7f, 0, 0);
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
