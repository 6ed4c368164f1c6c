/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * brake.h - what the kernel side and the tool share so that functions can be let go of while others,
 * whose sites are in the same link, go on being reported without a gap.
 */
#ifndef XSPTRACE_BRAKE_H
#define XSPTRACE_BRAKE_H

#include "xsptrace/event.h"

/*
 * A link's sites cannot be taken out one by one. So the sites that stay get a new link, whose
 * cookies have the other phase, and the old link is closed. While a site has both, each hit runs
 * both programs on the hitting thread, one after the other: the kernel puts a consumer at the head
 * of the list (kernel/events/uprobes.c, consumer_add), so the new link's program runs first. While
 * SWAP is set it reports and leaves a note under the thread's id; the old one's program
 * reports if there is none. A hit that meets the change half-way, where the first program still
 * held its tongue, is reported by the second.
 */
enum xsp_probe_flag {
	XSP_PROBE_PHASE = 1 << 0, /* sites with this phase in their cookies report */
	XSP_PROBE_SWAP = 1 << 1, /* ... and those of the other one are taking over */
	XSP_PROBE_RELEASED = 1 << 2, /* let go: nothing is reported any more */
};

/* By probe id. The prices are for hits that no event tells of. */
struct xsp_probe_state {
	__u32 flags; /* enum xsp_probe_flag */
	__u32 entry_ns, exit_ns;
	__u32 reserved;
};

/* Hits that no event tells of: time spent in them, by thread and probe. What comes when it is
 * full is XSP_COUNT_UNSEEN_NS: nobody's. */
#define XSP_UNSEEN_MAX 8192
#define XSP_UNSEEN_KEY(tid, probe) ((__u64)(tid) << 32 | (probe))

#define XSP_SWAPS_MAX 32768 /* threads in hits at the same time */

#endif
