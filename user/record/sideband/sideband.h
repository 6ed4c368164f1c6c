/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sideband.h - what happens to the watched processes beside their events: libraries mapped, exec,
 * fork, threads, exit.
 *
 * The kernel tells: one perf "dummy" software event a CPU, which counts nothing and only carries
 * the side records of perf_event_open(2), so a target pays for no stop and no probe. Where the
 * kernel refuses it, /proc is polled every 100 ms instead; that costs the target nothing either,
 * but sees only what still holds when it looks.
 */
#ifndef XSP_RECORD_SIDEBAND_H
#define XSP_RECORD_SIDEBAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "procfs/opener.h"

struct xsp_sideband;

enum xsp_sideband_mode {
	XSP_SIDEBAND_PERF, /* records of the kernel, complete unless LOST says otherwise */
	XSP_SIDEBAND_POLL, /* /proc: no threads' starts or ends, no short-lived children */
};

enum xsp_sideband_kind {
	XSP_SIDEBAND_MMAP, /* a file was mapped executable */
	XSP_SIDEBAND_EXEC, /* the process runs another program now */
	XSP_SIDEBAND_FORK, /* a process (pid != parent_pid) or a thread (equal) was born */
	XSP_SIDEBAND_EXIT, /* a thread ended; the process with its last one */
	/* the kernel dropped `lost` records, of any process: look at /proc again. pid and tid are 0 */
	XSP_SIDEBAND_LOST,
	XSP_SIDEBAND_KINDS,
};

/* Ids are those of the pid namespace that xsptrace lives in. */
struct xsp_sideband_record {
	enum xsp_sideband_kind kind;
	uint64_t time_ns; /* CLOCK_MONOTONIC; POLL: when we noticed */
	pid_t pid, tid;
	pid_t parent_pid; /* FORK */
	uint64_t lost;
};

struct xsp_sideband_options {
	const struct xsp_opener *opener; /* borrowed; NULL: opens by itself */
	const int *events; /* of broker/side_events.h, owned. NULL: opens its own */
	size_t event_count;
	bool follow; /* watch the children of watched processes too */
	bool force_poll; /* do not try perf (tests) */
	unsigned pages; /* of each CPU's ring, a power of two; 0: 64 */
};

/*
 * Begins to listen; nothing is watched yet. Falls back to polling. Sets `err` and returns a negative errno (-ENOMEM)
 * only if that fails, too. options may be NULL.
 */
int xsp_sideband_new(const struct xsp_sideband_options *options, struct xsp_sideband **out,
		     struct xsp_error *err);
void xsp_sideband_free(struct xsp_sideband *s);
enum xsp_sideband_mode xsp_sideband_mode(const struct xsp_sideband *s);
/* Why it is polling: one line for the user; "" in PERF mode. Owned by s. */
const char *xsp_sideband_reason(const struct xsp_sideband *s);

/*
 * Watches a process. Look at its maps after this call, not before: then nothing falls between. Watching twice is no
 * error. -ENOMEM. It ends by itself after the process's last EXIT.
 */
int xsp_sideband_watch(struct xsp_sideband *s, pid_t pid);
void xsp_sideband_unwatch(struct xsp_sideband *s, pid_t pid);
bool xsp_sideband_watches(const struct xsp_sideband *s, pid_t pid);

#define XSP_SIDEBAND_ALL UINT64_MAX
/* A record becomes visible a little later than its time says. Waiting so long lets earlier records of other CPUs
 * come. */
#define XSP_SIDEBAND_KEPT_NS 1000000U
/*
 * Hands over what has come since the last call, in order of time over all CPUs. Call it about every 20 ms; there is no
 * thread inside. Keeps records younger than `until_ns` for the next call; 0: than XSP_SIDEBAND_KEPT_NS, which keeps the
 * order right; XSP_SIDEBAND_ALL at the end. The callback may watch and unwatch. It returns 0 or a negative errno, which
 * ends the call (the record counts as delivered). Returns the number of delivered records or that errno.
 */
long xsp_sideband_drain(struct xsp_sideband *s, uint64_t until_ns,
			int (*record)(void *ctx, const struct xsp_sideband_record *r), void *ctx);

#endif
