// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* detail.bpf.c - entries and exits of functions whose events carry sections. */
#include "detail.h"
#include "site.h"

/* The time depends on what there is to read. One hit in eight is timed, chosen by the low bits of
 * its time. */
static __always_inline void time_detail(__u64 begun)
{
	if (!(begun & 7))
		xsp_count_timed(XSP_COUNT_DETAIL_HITS, XSP_COUNT_DETAIL_NS, begun, 50000);
}

SEC("uprobe")
int xsp_detail(struct pt_regs *ctx)
{
	__u64 time = bpf_ktime_get_ns();

	if (!xsp_is_active(ctx))
		return 0;
	__u64 cookie = xsp_cookie(ctx);
	if (xsp_counts(ctx, cookie)) {
		xsp_emit_detailed((void *)ctx, time, 0,
				  xsp_detail_what(XSP_COOKIE_PROBE(cookie), XSP_COOKIE_KIND(cookie),
						  xsp_event_flags(cookie)));
		time_detail(time);
	}
	return 0;
}

char _license[] SEC("license") __weak = "Dual BSD/GPL";
