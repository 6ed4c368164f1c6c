/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* site.h - what a site's cookie says about a hit: whether it counts, and as what. */
#ifndef XSP_BPF_SITE_H
#define XSP_BPF_SITE_H

#include "waits.h"

/* --- conditional exits --- */

#if defined(__TARGET_ARCH_x86)
/* Intel SDM vol. 1, appendix B: condition codes; flags: CF 0, PF 2, ZF 6, SF 7, OF 11. */
static __always_inline bool condition_holds(__u32 cc, __u64 flags)
{
	bool cf = flags & (1 << 0), pf = flags & (1 << 2), zf = flags & (1 << 6);
	bool sf = flags & (1 << 7), of = flags & (1 << 11);
	bool r;

	switch (cc >> 1) {
	case 0:
		r = of;
		break;
	case 1:
		r = cf;
		break;
	case 2:
		r = zf;
		break;
	case 3:
		r = cf | zf;
		break;
	case 4:
		r = sf;
		break;
	case 5:
		r = pf;
		break;
	case 6:
		r = sf != of;
		break;
	default:
		r = zf | (sf != of);
		break;
	}
	return r != (cc & 1);
}

static __always_inline bool passes_condition(struct pt_regs *ctx, __u64 cookie)
{
	__u32 cond = XSP_COOKIE_COND(cookie);

	if (cond == 0)
		return true;
	return condition_holds(cond - 1, ctx->flags) == !!(cookie & XSP_COOKIE_TAKEN);
}
#else
static __always_inline bool passes_condition(struct pt_regs *ctx, __u64 cookie)
{
	return true; /* here the placement chooses no conditional sites */
}
#endif

/* Does the hit count at all? */
static __always_inline bool xsp_counts(struct pt_regs *ctx, __u64 cookie)
{
	__u32 probe = XSP_COOKIE_PROBE(cookie);
	bool is_exit = XSP_COOKIE_KIND(cookie) == XSP_EVENT_EXIT;

	if (!xsp_serves(cookie))
		return false;
	if (!xsp_wanted(bpf_get_current_pid_tgid(), !is_exit)) {
		if (xsp_filter_tid || xsp_comm_filters)
			xsp_count_unseen(probe, is_exit);
		return false;
	}
	if (passes_condition(ctx, cookie)) {
		xsp_flush_short_waits();
		return true;
	}
	xsp_count(XSP_COUNT_SILENT);
	xsp_count_unseen(probe, is_exit);
	return false;
}

static __always_inline __u8 xsp_event_flags(__u64 cookie)
{
	return ((cookie & XSP_COOKIE_SP_EXACT) ? XSP_EVENT_SP_EXACT : 0) |
	       ((cookie & XSP_COOKIE_TAIL) ? XSP_EVENT_TAIL : 0);
}

#endif
