/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tracefs.h - many uprobes in one perf event, for kernels without uprobe_multi (before 6.6).
 *
 * Closing a perf event waits for a grace period of the kernel: 20 to 90 ms for each site, if each has its own. A uprobe
 * event of tracefs takes any number of sites (kernel/trace/trace_uprobe.c, since 5.5, commit 41af3cf587a0), so a few
 * dozen events serve thousands of sites. Such an event has one cookie, not one a site. But code is mapped in pages: the
 * lowest 12 bits of a site's address are those of its file offset in every process. So an event gets only sites that
 * differ in these bits, its cookie is its number, and both together find the site's cookie in a table.
 */
#ifndef XSP_BROKER_LINKS_TRACEFS_H
#define XSP_BROKER_LINKS_TRACEFS_H

#include "broker/kernel/attach_private.h"

/* Events of a recording, at most. The table of cookies has XSP_PAGE_SLOTS entries for each. */
#define XSP_TRACEFS_EVENTS 256U

/* Finds tracefs, and removes what killed recorders have left there. False: it cannot be used. */
bool xsp_tracefs_usable(struct xsp_attach *a);

/*
 * Attaches the link's sites to its program, for its process (0: all). `path`: of its file. Sets done[i] for each site that
 * it took; the caller attaches the others. 0, or a negative errno that another way of attaching would meet too.
 */
int xsp_tracefs_attach(struct xsp_attach *a, const char *path, const struct xsp_link *link,
		       bool *done);

/* Removes the definitions. Call it after the links are closed. */
void xsp_tracefs_remove(struct xsp_attach *a);

#endif
