/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watcher.h - the process that looks for targets, and keeps of root's rights only those of reading /proc. A look at a process
 * may hang for as long as that one likes: then the service ends this process, passes over the one at fault, and starts another.
 */
#ifndef XSP_SERVICE_WATCHER_H
#define XSP_SERVICE_WATCHER_H

#include "service/config.h"

#define XSP_WATCHER_SKIPS 256U

/* Shared memory: what it looks at. */
struct xsp_watcher_state {
	_Atomic pid_t at; /* 0: nothing */
	_Atomic uint64_t since_ns;
	pid_t skips[XSP_WATCHER_SKIPS]; /* processes that a look hung at; the oldest are replaced */
	unsigned skip_count;
};

/* A process that meets a watch. It comes again from time to time while it does. */
struct xsp_watcher_found {
	pid_t pid;
	uint32_t watch;
	uint64_t start_ticks; /* tells it from a later one with its number */
	uid_t uid;
	char comm[16]; /* printable */
};

struct xsp_watcher {
	const struct xsp_service_config *config;
	struct xsp_watcher_state *state;
	pid_t pid;
	int socket; /* messages: struct xsp_watcher_found */
};

/* Starts it, again if it was stopped. 0 or a negative errno. */
int xsp_watcher_start(struct xsp_watcher *w);
void xsp_watcher_stop(struct xsp_watcher *w);
/* The process that it has been looking at for too long, or 0. It is passed over from then on. */
pid_t xsp_watcher_hangs(struct xsp_watcher *w, uint64_t now_ns);
/* The next one. False: there is none, or the process has ended: *gone. */
bool xsp_watcher_next(struct xsp_watcher *w, struct xsp_watcher_found *found, bool *gone);

/* Of a living process: when it began. 0: there is none. */
uint64_t xsp_process_start(pid_t pid);

#endif
