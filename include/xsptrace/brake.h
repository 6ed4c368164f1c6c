/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * brake.h - what the kernel side and the tool share to release some functions of a link, while the
 * others go on without a gap.
 */
#ifndef XSPTRACE_BRAKE_H
#define XSPTRACE_BRAKE_H

#include "xsptrace/event.h"

/*
 * Single sites of a link cannot be taken out. So the sites that stay get a new link, whose cookies
 * have the other phase, and the old link is closed. While a site is in both, each hit runs both
 * programs on the thread, one after the other. The kernel inserts a consumer at the head of its
 * list (kernel/events/uprobes.c, consumer_add), so the new link's program runs first. While SWAP is
 * set, that one reports and leaves a note under the thread's id. The old one reports if it finds no
 * note. If SWAP is set in the middle of a hit, after the first program stayed silent, the second
 * one reports.
 */
enum xsp_probe_flag {
	XSP_PROBE_PHASE = 1 << 0, /* sites whose cookies have this phase report */
	XSP_PROBE_SWAP = 1 << 1, /* and those of the other phase are taking over */
	XSP_PROBE_RELEASED = 1 << 2, /* nothing is reported any more */
};

/* By probe id. The prices are those of hits that write no event. */
struct xsp_probe_state {
	__u32 flags; /* enum xsp_probe_flag */
	__u32 entry_ns, exit_ns;
	__u32 reserved;
};

/* The time spent in hits that write no event, by thread and probe. What does not fit counts as
 * XSP_COUNT_UNSEEN_NS, for no thread. */
#define XSP_UNSEEN_MAX 8192
#define XSP_UNSEEN_KEY(tid, probe) ((__u64)(tid) << 32 | (probe))

#define XSP_SWAPS_MAX 32768 /* most threads that are in a hit at the same time */

#endif
