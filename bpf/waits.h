/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * waits.h - --waits: waits too short for events of their own, and the events of spans.
 *
 * A span's time off the CPU is complete, because short waits are written before each event of their
 * thread. The scheduler's programs (sched.bpf.c) keep, for each CPU, the sum of the thread that
 * runs there.
 */
#ifndef XSP_BPF_WAITS_H
#define XSP_BPF_WAITS_H

#include "common.h"

__weak const volatile bool xsp_waits = false; /* else nothing of this is loaded */
__weak volatile __u64 xsp_waits_until_ns = 0; /* 0: until it is stopped */

struct xsp_short_waits {
	__u64 ns;
	__u64 back_ns; /* when the last of them ended */
	/* the thread that runs here, if known; 0: unknown; XSP_NOBODY: none that is recorded */
	__u32 tid;
	__u32 stacks; /* stacks of waits that ended here in the second from second_ns on */
	__u64 second_ns;
	__u64 next_ns; /* when the next stack may be read here, if it is to be one of few */
};
#define XSP_NOBODY ~0U
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xsp_short_waits);
} xsp_short_waits __weak SEC(".maps");

static __noinline __attribute__((unused)) bool xsp_emit_short_waits(const struct xsp_short_waits *s,
								    __u64 time, __u8 flags)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct xsp_event_wait *e = xsp_reserve((__u32)pid_tgid, sizeof(*e));

	if (!e)
		return false; /* the next event will report them */
	__builtin_memset(e, 0, sizeof(*e));
	xsp_fill_head(&e->head, time, 0, pid_tgid, ~0U, XSP_EVENT_WAIT, 0, sizeof(*e));
	e->left_ns = time;
	e->short_ns = s->ns;
	e->syscall = -1;
	e->flags = XSP_WAIT_SHORT | flags;
	xsp_submit(e);
	return true;
}

/* If the thread's return to this CPU was not reported (return_late() in sched.bpf.c), the length of
 * its wait is known only later. */
static __noinline __attribute__((unused)) void xsp_submit_waits(struct xsp_short_waits *s)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();

	if (s->tid != tid) {
		if (s->tid && !xsp_emit_short_waits(s, bpf_ktime_get_ns(), XSP_WAIT_UNSEEN_RETURN))
			return;
		s->tid = tid;
		s->ns = 0;
	}
	if (s->ns && xsp_emit_short_waits(s, s->back_ns, 0))
		s->ns = 0;
}

/* Called before each event of a span. Only the running thread uses the CPU's sum. */
static __always_inline void xsp_flush_short_waits(void)
{
	__u32 key = 0;
	struct xsp_short_waits *s;

	if (!xsp_waits || xsp_waits_until_ns)
		return;
	s = bpf_map_lookup_elem(&xsp_short_waits, &key);
	if (s)
		xsp_submit_waits(s);
}

#endif
