/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * links.h - the links of a recording: each a batch of sites, so that what a call in progress leaves
 * behind when its process is killed is little and known.
 */
#ifndef XSP_BROKER_LINKS_LINKS_H
#define XSP_BROKER_LINKS_LINKS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "broker/kernel/attach.h"
#include "broker/links/verify.h"

/* Sites of one uprobe_multi link, at most. 7,005 sites in a library of 8 processes: one link takes 34 to
 * 47 ms, batches of 256 together 28 to 37. */
#define XSP_LINK_SITES 256

struct bpf_link;

struct xsp_link {
	enum xsp_program program;
	bool returns; /* return probes */
	int fd; /* uprobe_multi; -1: taken out, or perf */
	struct bpf_link *perf; /* perf events; else NULL */
	pid_t pid;
	struct xsp_verified_file file; /* its descriptor is the caller's */
	size_t count;
	const struct xsp_attach_site
		*sites; /* owned once added; NULL: a perf event of many sites */
};

/* Makes a uprobe_multi link as described (fd and perf are ignored) and keeps it with a copy of its
 * sites; while everything is paused it is only kept. With the lock. 0 or a negative errno. */
int xsp_links_add(struct xsp_attach *a, const struct xsp_link *link);
/* Makes the uprobe_multi link that is described. Its descriptor or a negative errno. */
int xsp_links_make(struct xsp_attach *a, const struct xsp_link *link);
/* Takes the link over, also on failure. `site`: the only one it serves, or NULL. */
int xsp_links_keep_perf(struct xsp_attach *a, struct bpf_link *link, enum xsp_program program,
			pid_t pid, const struct xsp_attach_site *site);

/* Takes out the chosen ones (all: NULL) at the same time, as each waits for the kernel's grace periods,
 * and forgets them. Returns when no program of theirs runs any more. */
void xsp_links_close(struct xsp_attach *a,
		     bool (*chosen)(const struct xsp_link *link, const void *ctx), const void *ctx);
/* Takes out those of one process in the background. */
void xsp_links_retire(struct xsp_attach *a, pid_t pid);
/* Returns when those are out. */
void xsp_links_wait(struct xsp_attach *a);
/* How many there may be: of the descriptors that the process may have, a part is for other things. */
size_t xsp_links_most(void);
/* The same for links that nobody else knows any more. */
void xsp_links_close_these(struct xsp_attach *a, struct xsp_link *links, size_t count);
/* Starts a thread that blocks all signals: they are for the thread that waits for them. */
bool xsp_links_thread(pthread_t *thread, void *(*run)(void *argument), void *argument);
/* Closes what is left. */
void xsp_links_free(struct xsp_attach *a);

#endif
