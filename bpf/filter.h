/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * filter.h - --min-duration and --max-depth: the open functions of each thread, kept in the kernel.
 *
 * An entry is held back until its span turns out to be long enough. Then it is emitted, after those
 * of its ancestors that are still held back, with their original times. So the reader sees a
 * well-nested sequence.
 *
 * Named ranges and spans with names of their own are not held back, since their names are in the target
 * now; what is open around them goes before them. So more is emitted than is asked for: the
 * reader leaves out the rest (timeline/spans/rows.c).
 */
#ifndef XSP_BPF_FILTER_H
#define XSP_BPF_FILTER_H

#include "common.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, struct xsp_thread_state);
} xsp_thread_states __weak SEC(".maps");

static __always_inline bool emit(__u64 pid_tgid, __u64 time, __u64 sp, __u32 probe, __u8 kind,
				 __u8 flags)
{
	struct xsp_event *e = xsp_reserve((__u32)pid_tgid, sizeof(*e));

	if (!e) {
		xsp_count_lost(kind == XSP_EVENT_EXIT ? XSP_COUNT_LOST_EXIT : XSP_COUNT_LOST_ENTRY,
			       probe);
		if (kind == XSP_EVENT_POINT) /* both ends are gone */
			xsp_count_lost(XSP_COUNT_LOST_EXIT, probe);
		return false;
	}
	xsp_fill_head(e, time, sp, pid_tgid, probe, kind, flags, sizeof(*e));
	xsp_submit(e);
	return true;
}

static const struct xsp_thread_state empty_state;

static __always_inline struct xsp_thread_state *thread_state(void)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	__u32 tid = (__u32)pid_tgid;
	struct xsp_thread_state *s = bpf_map_lookup_elem(&xsp_thread_states, &tid);

	if (s)
		return s;
	bpf_map_update_elem(&xsp_thread_states, &tid, &empty_state, BPF_NOEXIST);
	s = bpf_map_lookup_elem(&xsp_thread_states, &tid);
	if (s)
		s->tgid = pid_tgid >> 32;
	return s;
}

/* The verifier wants the mask on every path to the pointer; the barrier keeps the compiler from
 * removing it as redundant. */
static __always_inline struct xsp_frame *frame_at(struct xsp_thread_state *s, __u32 i)
{
	if (i >= XSP_FILTER_FRAMES)
		return 0;
	barrier_var(i);
	return &s->frames[i & (XSP_FILTER_FRAMES - 1)];
}

/* Drops frames that are gone, by the stack pointer: their entry sp is below `sp`. */
static __always_inline void pop_below(struct xsp_thread_state *s, __u64 sp)
{
	for (int i = 0; i < XSP_FILTER_FRAMES; i++) {
		struct xsp_frame *top = frame_at(s, s->depth - 1);
		if (!top || top->sp >= sp)
			break;
		if (xsp_min_duration_ns && !top->emitted)
			xsp_count(XSP_COUNT_FILTERED);
		s->depth--;
	}
}

static __always_inline void left_out(__u32 which, __u32 probe)
{
	xsp_count(which);
	xsp_count_unseen(probe, false);
}

/* A frame for a span that is entered now; NULL: the span is filtered, and counted. */
static __always_inline struct xsp_frame *push_frame(struct xsp_thread_state *s, __u64 time,
						    __u64 sp, __u32 probe)
{
	pop_below(s, sp + 1); /* the same slot is used again: its frame is gone as well */
	__u32 depth = s->depth;
	if (xsp_max_depth && depth >= xsp_max_depth) {
		left_out(XSP_COUNT_FILTERED, probe);
		return 0;
	}
	struct xsp_frame *f = frame_at(s, depth);
	if (!f) {
		left_out(XSP_COUNT_UNTRACKED, probe);
		return 0;
	}
	f->time_ns = time;
	f->sp = sp;
	f->probe = probe;
	f->emitted = 0;
	s->depth = depth + 1;
	return f;
}

/* Not inlined, for programs that are short of stack. */
static __noinline __attribute__((unused)) bool emit_apart(__u64 time, __u64 sp, __u32 probe,
							  __u8 kind, __u8 flags)
{
	return emit(bpf_get_current_pid_tgid(), time, sp, probe, kind, flags);
}

static __noinline void emit_frame(const struct xsp_frame *f, __u64 pid_tgid)
{
	emit(pid_tgid, f->time_ns, f->sp, f->probe, XSP_EVENT_ENTRY,
	     XSP_EVENT_SP_EXACT | XSP_EVENT_REPLAYED);
}

static __always_inline void emit_held_back_of(struct xsp_thread_state *s, __u32 depth,
					      __u64 pid_tgid)
{
	for (__u32 i = 0; i < XSP_FILTER_FRAMES; i++) {
		if (i >= depth)
			break;
		struct xsp_frame *f = frame_at(s, i);
		if (!f || f->emitted)
			continue;
		f->emitted = 1;
		emit_frame(f, pid_tgid);
	}
}

static __always_inline void emit_held_back(struct xsp_thread_state *s, __u32 depth)
{
	emit_held_back_of(s, depth, bpf_get_current_pid_tgid());
}

/* Frames below `sp` have ended now without an exit: emits those that lasted long enough. */
static __noinline __attribute__((unused)) void pop_unwound(struct xsp_thread_state *s, __u64 sp,
							   __u64 now, __u64 pid_tgid)
{
	__u32 held_back = 0;

	for (__u32 i = 1; i <= XSP_FILTER_FRAMES && xsp_min_duration_ns; i++) {
		struct xsp_frame *f = frame_at(s, s->depth - i);
		if (!f || f->sp >= sp)
			break;
		held_back = s->depth - i + 1;
		if (now - f->time_ns >= xsp_min_duration_ns)
			break; /* so did all frames around it */
		held_back = 0;
	}
	emit_held_back_of(s, held_back, pid_tgid);
	pop_below(s, sp);
}

#endif
