/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * journal.h - what is being linked or closed right now, in memory that the broker shares with its
 * guardian. A SIGKILL in the middle of such a call leaves its breakpoints in the targets (the kernel's
 * undo fails with the signal pending); registering the same sites again and closing them in peace takes
 * them out. So the guardian waits for the broker's death and does that.
 */
#ifndef XSP_BROKER_LINKS_JOURNAL_H
#define XSP_BROKER_LINKS_JOURNAL_H

#include <stdint.h>

#include "broker/links/links.h"

#define XSP_JOURNAL_SLOTS 80 /* calls at a time: one that links, and the threads that close */

struct xsp_journal_slot {
	uint32_t in_use;
	uint32_t active; /* set last, cleared first */
	uint32_t count;
	uint32_t pid, attach_type, multi_flags;
	int32_t program, file; /* descriptors of the broker, which the guardian shares */
	uint64_t offsets[XSP_LINK_SITES], semaphores[XSP_LINK_SITES];
};

struct xsp_journal {
	uint32_t top; /* no link has a higher descriptor */
	uint32_t over; /* the broker has taken everything out: nothing is to be mended */
	struct xsp_journal_slot slots[XSP_JOURNAL_SLOTS];
};

struct xsp_link_create_uprobe_multi;

/* Around a call that links, or closes, what attr says. NULL journal: nothing is noted. Returns the slot for
 * end(). */
int xsp_journal_begin(struct xsp_journal *j, const struct xsp_link_create_uprobe_multi *attr,
		      int file);
void xsp_journal_end(struct xsp_journal *j, int slot);

/* Starts the guardian of the calling process, as its child with the same descriptors. 0 or a negative
 * errno; then there is no journal. */
int xsp_guardian_start(struct xsp_journal **out);
/* Everything is out: the guardian may go. */
void xsp_guardian_end(struct xsp_journal *j);

#endif
