// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* detail.bpf.c - entries and exits of functions whose events carry sections. */
#include "detail.h"
#include "site.h"

/* Nothing that is read takes so long: somebody else had the CPU meanwhile. */
#define INTERRUPTED_NS 50000

/* How long it takes depends on what there is to read; one hit in eight tells, by its time's low bits. */
static __always_inline void time_detail(__u64 begun)
{
	__u64 took;

	if (begun & 7)
		return;
	took = bpf_ktime_get_ns() - begun;
	if (took > INTERRUPTED_NS)
		return;
	xsp_count(XSP_COUNT_DETAIL_HITS);
	xsp_count_some(XSP_COUNT_DETAIL_NS, took);
}

SEC("uprobe")
int xsp_detail(struct pt_regs *ctx)
{
	__u64 time = bpf_ktime_get_ns();

	if (!xsp_is_active(ctx))
		return 0;
	__u64 cookie = xsp_cookie(ctx);
	if (xsp_counts(ctx, cookie)) {
		xsp_emit_detailed(ctx, time, 0,
				  xsp_detail_what(XSP_COOKIE_PROBE(cookie), XSP_COOKIE_KIND(cookie),
						  xsp_event_flags(cookie)));
		time_detail(time);
	}
	return 0;
}

char _license[] SEC("license") __weak = "Dual BSD/GPL";
