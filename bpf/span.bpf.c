// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * span.bpf.c - entries and exits of functions. One program serves all sites of all functions: the
 * attach cookie says which probe it is, entry or exit, and under which condition.
 */
#include "filter.h"
#include "heap.h"
#include "site.h"

/* --- --min-duration and --max-depth --- */

static __noinline void filtered_entry(__u64 time, __u64 sp, __u32 probe)
{
	struct xsp_thread_state *s = thread_state();

	struct xsp_frame *f = s ? push_frame(s, time, sp, probe) : 0;

	if (!s)
		left_out(XSP_COUNT_UNTRACKED, probe);
	else if (f && !xsp_min_duration_ns)
		f->emitted = emit_apart(time, sp, probe, XSP_EVENT_ENTRY, XSP_EVENT_SP_EXACT);
}

static __noinline void filtered_exit(__u64 time, __u64 sp, __u32 probe, __u8 flags)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct xsp_thread_state *s = bpf_map_lookup_elem(&xsp_thread_states, &tid);

	if (!s)
		goto unseen;
	pop_below(s, sp);
	__u32 top = s->depth - 1;
	struct xsp_frame *f = frame_at(s, top);
	if (!f || f->probe != probe || ((flags & XSP_EVENT_SP_EXACT) && f->sp != sp))
		goto unseen; /* its entry was filtered, or came before the recording */
	s->depth = top;
	if (!f->emitted) {
		if (time - f->time_ns < xsp_min_duration_ns) {
			left_out(XSP_COUNT_FILTERED, probe); /* and so was its entry */
			goto unseen;
		}
		emit_held_back(s, top + 1);
	}
	emit_apart(time, sp, probe, XSP_EVENT_EXIT, flags);
	return;
unseen:
	xsp_count_unseen(probe, true);
}

/* It has no duration, so it is shorter than any. */
static __noinline void filtered_point(__u64 time, __u64 sp, __u32 probe, __u8 flags)
{
	struct xsp_thread_state *s = xsp_min_duration_ns ? 0 : thread_state();

	if (s)
		pop_below(s, sp + 1);
	if (!s)
		left_out(xsp_min_duration_ns ? XSP_COUNT_FILTERED : XSP_COUNT_UNTRACKED, probe);
	else if (s->depth >= xsp_max_depth)
		left_out(XSP_COUNT_FILTERED, probe);
	else
		emit_apart(time, sp, probe, XSP_EVENT_POINT, flags);
}

/* MAX_URETPROBE_DEPTH, kernel/events/uprobes.c: deeper calls are not probed */
#define RETURNS_MOST 64

/* At an entry whose exit is seen by a return probe: will the kernel probe the return? It may have
 * noted this call already, or be about to. */
static __noinline void count_missed_return(__u64 sp)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct uprobe_task *u = BPF_CORE_READ(task, utask);

	if (u && BPF_CORE_READ(u, depth) >= RETURNS_MOST &&
	    BPF_CORE_READ(u, return_instances, stack) != sp)
		xsp_count(XSP_COUNT_MISSED);
}

static __always_inline void look_at_return(__u64 cookie, __u64 sp)
{
	if (XSP_COOKIE_KIND(cookie) == XSP_EVENT_ENTRY &&
	    XSP_COOKIE_RESULT(cookie) == XSP_RESULT_NONE)
		count_missed_return(sp);
}

SEC("uprobe")
int xsp_span(struct pt_regs *ctx)
{
	__u64 time = bpf_ktime_get_ns();

	if (!xsp_is_active(ctx))
		return 0;
	__u64 cookie = xsp_cookie(ctx);
	if (!xsp_counts(ctx, cookie))
		return 0;
	__u64 sp = xsp_entry_sp(ctx, cookie);
	emit(bpf_get_current_pid_tgid(), time, sp, XSP_COOKIE_PROBE(cookie),
	     XSP_COOKIE_KIND(cookie), xsp_event_flags(cookie));
	look_at_return(cookie, sp);
	return 0;
}

/* The same with --min-duration or --max-depth. A program of its own, in functions with little stack
 * each: see slots.h on private stacks. */
SEC("uprobe")
int xsp_span_filtered(struct pt_regs *ctx)
{
	__u64 time = bpf_ktime_get_ns();

	if (!xsp_is_active(ctx))
		return 0;
	__u64 cookie = xsp_cookie(ctx);
	if (!xsp_counts(ctx, cookie))
		return 0;
	__u64 sp = xsp_entry_sp(ctx, cookie);
	__u32 probe = XSP_COOKIE_PROBE(cookie);
	look_at_return(cookie, sp);
	switch (XSP_COOKIE_KIND(cookie)) {
	case XSP_EVENT_ENTRY:
		filtered_entry(time, sp, probe);
		break;
	case XSP_EVENT_EXIT:
		filtered_exit(time, sp, probe, xsp_event_flags(cookie));
		break;
	default:
		filtered_point(time, sp, probe, xsp_event_flags(cookie));
	}
	return 0;
}

/* --- landings of exceptions and longjmps --- */

static __always_inline void unwound_to(__u64 sp, __u64 cookie, __u8 flags)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	__u64 time = bpf_ktime_get_ns();
	__u32 tid = (__u32)pid_tgid;

	if (!xsp_wanted(pid_tgid, false))
		return;
	xsp_flush_short_waits();
	if (xsp_min_duration_ns || xsp_max_depth) {
		struct xsp_thread_state *s = bpf_map_lookup_elem(&xsp_thread_states, &tid);
		if (s)
			pop_unwound(s, sp, time, pid_tgid);
	}
	xsp_heap_unwound(tid, sp);
	struct xsp_event *e = xsp_reserve_or_count(tid, sizeof(*e));
	if (!e)
		return;
	xsp_fill_head(e, time, sp, pid_tgid, XSP_COOKIE_PROBE(cookie), XSP_EVENT_UNWIND, flags,
		      sizeof(*e));
	xsp_submit(e);
}

/* At the first instruction of a function that the landing frame calls (__cxa_begin_catch,
 * _Unwind_Resume): every frame below the landing frame is gone. */
SEC("uprobe")
int xsp_unwind(struct pt_regs *ctx)
{
	if (!xsp_active)
		return 0;
	__u64 cookie = xsp_cookie(ctx);
	/* the stack pointer of the landing frame before it pushed the return address */
	unwound_to(xsp_entry_sp(ctx, cookie) + XSP_RETURN_SLOT, cookie, 0);
	return 0;
}

#if defined(__TARGET_ARCH_x86)
/* Only upwards on the same stack: some libraries use longjmp to switch stacks. */
static __always_inline bool is_jump_up(__u64 sp, __u64 to)
{
	return to > sp && to - sp <= 8 << 20;
}

/* At the entry of longjmp(jmp_buf). The stack pointer that it will jump to is in jmp_buf: plain in
 * musl, mangled in glibc as rol(sp ^ fs:0x30, 17), sysdeps/unix/sysv/linux/x86_64/pointer_guard.h.
 * The slot is JB_RSP, 6, sysdeps/x86_64/jmpbuf-offsets.h, and the same in musl,
 * src/setjmp/x86_64/setjmp.s. */
SEC("uprobe")
int xsp_longjmp(struct pt_regs *ctx)
{
	__u64 saved = 0, guard = 0;

	if (!xsp_active)
		return 0;
	if (bpf_probe_read_user(&saved, sizeof(saved),
				(void *)(XSP_REG_ARG1(ctx) + xsp_jmpbuf_sp_offset)))
		return 0;
	__u64 sp = XSP_REG_SP(ctx);
	if (!is_jump_up(sp, saved)) {
		struct task_struct *task = (void *)bpf_get_current_task();
		__u64 fs = BPF_CORE_READ(task, thread.fsbase);
		if (bpf_probe_read_user(&guard, sizeof(guard), (void *)(fs + 0x30)))
			return 0;
		saved = (saved >> 17 | saved << 47) ^ guard;
	}
	if (!is_jump_up(sp, saved))
		return 0;
	unwound_to(saved, xsp_cookie(ctx), XSP_EVENT_JUMP);
	return 0;
}
#endif

char _license[] SEC("license") __weak = "Dual BSD/GPL";
