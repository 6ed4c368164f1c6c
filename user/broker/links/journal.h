/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * journal.h - the links that are being made or closed right now, in memory that the broker shares with its guardian. A
 * SIGKILL in the middle of such a call leaves breakpoints in the targets: the kernel's undo fails with the signal
 * pending. If the same sites are registered again and closed in peace, they go. The guardian (guardian.c) waits for the
 * broker's death and does that.
 */
#ifndef XSP_BROKER_LINKS_JOURNAL_H
#define XSP_BROKER_LINKS_JOURNAL_H

#include <stdint.h>

#include "broker/links/links.h"

#define XSP_JOURNAL_SLOTS 80 /* one call that links, and the threads that close */

struct xsp_journal_slot {
	uint32_t in_use;
	uint32_t active; /* set last, cleared first */
	uint32_t count;
	uint32_t pid, attach_type, multi_flags;
	int32_t program, file; /* descriptors of the broker; the guardian shares them */
	uint64_t offsets[XSP_LINK_SITES], semaphores[XSP_LINK_SITES];
};

/* A file in whose mapping in a process there are, or were, breakpoints. */
struct xsp_journal_probed {
	uint32_t used; /* 0, 1: being filled, 2 */
	int32_t pid;
	struct xsp_verified_file file;
};
#define XSP_JOURNAL_PROBED 32768 /* files of processes; of more the slots alone are mended */
#define XSP_JOURNAL_SEMAPHORES 256
#define XSP_JOURNAL_FDS (1 << 20)

struct xsp_journal {
	uint32_t top; /* the highest descriptor of a link */
	uint32_t over; /* everything is out: nothing is to be repaired */
	struct xsp_journal_slot slots[XSP_JOURNAL_SLOTS];
	struct xsp_journal_slot semaphores[XSP_JOURNAL_SEMAPHORES]; /* links that have some */
	struct xsp_journal_probed probed[XSP_JOURNAL_PROBED];
	uint8_t kept[XSP_JOURNAL_FDS]; /* by descriptor: the guardian needs it */
};

struct xsp_link_create_uprobe_multi;

/* Note a call that makes or closes the links in `attr`, before and after it. Without a journal (NULL) nothing is noted.
 * Returns the slot for end(). */
int xsp_journal_begin(struct xsp_journal *j, const struct xsp_link_create_uprobe_multi *attr,
		      int file);
void xsp_journal_end(struct xsp_journal *j, int slot);
/* The guardian closes all other descriptors. */
void xsp_journal_keep(struct xsp_journal *j, int fd);
/* Before breakpoints are put in. The file's descriptor stays open. */
void xsp_journal_probed(struct xsp_journal *j, pid_t pid, const struct xsp_verified_file *file);

/* Starts the guardian as a child that shares our descriptors, and reports at `socket` what it has done
 * (XSP_GUARDIAN_REPORTS). 0, or a negative errno and no journal. */
int xsp_guardian_start(int socket, struct xsp_journal **out);
/* Everything is out: the guardian may end. */
void xsp_guardian_end(struct xsp_journal *j);

#endif
