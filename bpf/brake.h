/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* brake.h - released functions, and the price of hits that write no event. */
#ifndef XSP_BPF_BRAKE_H
#define XSP_BPF_BRAKE_H

#include "xsptrace/brake.h"

__weak const volatile bool xsp_brake = false; /* else nothing of this is loaded */

/* By probe id; resized before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xsp_probe_state);
} xsp_probe_states __weak SEC(".maps");

/* The recorder empties it each time it looks. What does not fit is counted without thread and
 * probe. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, XSP_UNSEEN_MAX);
	__type(key, __u64); /* XSP_UNSEEN_KEY */
	__type(value, __u64);
} xsp_unseen __weak SEC(".maps");

/* Hits that the new link has reported: cookies by thread id. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, XSP_SWAPS_MAX);
	__type(key, __u32);
	__type(value, __u64);
} xsp_swaps __weak SEC(".maps");

/* Counts a hit that costs its thread time but writes no event. */
static __always_inline void xsp_count_some(__u32 which, __u64 some);

static __noinline void xsp_count_unseen(__u32 probe, bool is_exit)
{
	const struct xsp_probe_state *state;
	__u64 key, ns, *sum;

	if (!xsp_brake)
		return;
	state = bpf_map_lookup_elem(&xsp_probe_states, &probe);
	if (!state)
		return;
	ns = is_exit ? state->exit_ns : state->entry_ns;
	key = XSP_UNSEEN_KEY((__u32)bpf_get_current_pid_tgid(), probe);
	sum = bpf_map_lookup_elem(&xsp_unseen, &key);
	if (sum)
		*sum += ns; /* only this thread counts here */
	else if (bpf_map_update_elem(&xsp_unseen, &key, &ns, BPF_ANY))
		xsp_count_some(XSP_COUNT_UNSEEN_NS, ns);
}

/* The rare cases of xsp_serves(). */
static __noinline bool xsp_serves_in_swap(__u64 cookie, __u32 flags)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	__u64 *reported;

	if (flags & XSP_PROBE_RELEASED)
		xsp_count_unseen(XSP_COOKIE_PROBE(cookie),
				 XSP_COOKIE_KIND(cookie) == XSP_EVENT_EXIT);
	if ((flags & XSP_PROBE_RELEASED) || !(flags & XSP_PROBE_SWAP))
		return false;
	if (!!(cookie & XSP_COOKIE_PHASE) != !!(flags & XSP_PROBE_PHASE))
		return bpf_map_update_elem(&xsp_swaps, &tid, &cookie, BPF_ANY) == 0;
	reported = bpf_map_lookup_elem(&xsp_swaps, &tid);
	if (!reported || *reported != (cookie ^ XSP_COOKIE_PHASE))
		return true;
	bpf_map_delete_elem(&xsp_swaps, &tid);
	return false;
}

/* Probes of a library that was loaded later report nothing until all of their sites are in. Else
 * entries would come without exits, and exits without entries, for that long. */
__weak volatile __u32 xsp_ready = ~0U;

static __always_inline bool xsp_is_ready(__u64 cookie)
{
	return XSP_COOKIE_PROBE(cookie) < xsp_ready;
}

/* Should the link with this cookie report the hit? */
static __always_inline bool xsp_serves(__u64 cookie)
{
	__u32 probe = XSP_COOKIE_PROBE(cookie), flags;
	const volatile struct xsp_probe_state *state;

	if (!xsp_is_ready(cookie))
		return false;
	if (!xsp_brake)
		return true;
	state = bpf_map_lookup_elem(&xsp_probe_states, &probe);
	if (!state)
		return true; /* calibration uses an id beyond the table */
	flags = state->flags;
	if (flags == !!(cookie & XSP_COOKIE_PHASE))
		return true;
	return xsp_serves_in_swap(cookie, flags);
}

#endif
