/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * links.h - the links of a recording. Each is a batch of sites: if a call that makes or closes one is killed, little is
 * left behind, and the journal knows it.
 */
#ifndef XSP_BROKER_LINKS_LINKS_H
#define XSP_BROKER_LINKS_LINKS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "broker/kernel/attach.h"
#include "broker/links/verify.h"

/* Sites of a uprobe_multi link, at most. 7,005 sites of a library in 8 processes take 34 to 47 ms in one link, and 28
 * to 37 in batches of 256. */
#define XSP_LINK_SITES 256

struct bpf_link;

struct xsp_link {
	enum xsp_program program;
	bool returns; /* return probes */
	int fd; /* of uprobe_multi; -1: it is out, or a perf event */
	struct bpf_link *perf; /* NULL: it is a uprobe_multi link */
	pid_t pid;
	struct xsp_verified_file file; /* the caller keeps its descriptor open */
	size_t count;
	const struct xsp_attach_site *sites; /* our own copy once added */
	bool grouped; /* a perf event of many sites, which go together */
};

/* Makes a uprobe_multi link (fd and perf are ignored) and keeps it with a copy of its sites. During a pause it is only
 * kept. Call it with the lock. 0 or a negative errno. */
int xsp_links_add(struct xsp_attach *a, const struct xsp_link *link);
/* Makes the link. Its descriptor or a negative errno. */
int xsp_links_make(struct xsp_attach *a, const struct xsp_link *link);
/* Takes the perf event over, also if it fails. `link`: what it is of; its sites are copied. */
int xsp_links_keep_perf(struct xsp_attach *a, struct bpf_link *perf, const struct xsp_link *link);

/* Closes the chosen links (NULL: all) and drops them from the list. Closes many at a time: each waits for the kernel's
 * grace periods. Returns when none of their programs runs any more. */
void xsp_links_close(struct xsp_attach *a,
		     bool (*chosen)(const struct xsp_link *link, const void *ctx), const void *ctx);
/* Closes the links of one process in the background. */
void xsp_links_retire(struct xsp_attach *a, pid_t pid);
/* Waits until those are closed. */
void xsp_links_wait(struct xsp_attach *a);
/* How many links there may be: the rest of our descriptors is for other work. */
size_t xsp_links_most(void);
/* Closes links that are in no list any more. */
void xsp_links_close_these(struct xsp_attach *a, struct xsp_link *links, size_t count);
/* Starts a thread that blocks all signals: another thread waits for them. */
bool xsp_links_thread(pthread_t *thread, void *(*run)(void *argument), void *argument);
/* Closes what is left. */
void xsp_links_free(struct xsp_attach *a);

#endif
