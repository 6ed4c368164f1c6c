/* SPDX-License-Identifier: BSD-2-Clause */
/* attach_private.h - shared by the files of the attach stage. */
#ifndef XSP_ATTACH_PRIVATE_H
#define XSP_ATTACH_PRIVATE_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <pthread.h>

#include "attach/attach.h"
#include "attach/journal.h"
#include "attach/kernel.h"
#include "attach/links.h"
#include "xsptrace/brake.h"
#include "xsptrace/programs.h"
#include "xsptrace.skel.h"

struct xsp_attach {
	struct xsp_bpf *bpf;
	struct xsp_kernel kernel;
	enum xsp_attach_method method;
	bool stop; /* children and what they exec */
	struct xsp_stopper *stopper; /* stop.c; NULL: nothing was ever to be stopped */
	bool filtered; /* --min-duration, --max-depth */
	bool held_back; /* --min-duration */
	bool details; /* events may carry sections */
	bool arguments; /* ... ARGS and OUTPUTS */
	bool many_details; /* ... and most do */
	const struct xsp_counter *counters; /* borrowed */
	size_t counter_count;
	uint32_t generation; /* of what the kernel was told of processes */
	pid_t *counter_tids; /* by slot of the threads' events; 0: free. NULL: none yet */
	int cpus;
	const char *tracefs; /* XSP_ATTACH_TRACEFS: its folder */
	unsigned tracefs_events; /* defined there */

	int ring_fds[XSP_MAX_RINGS]; /* rings 1.. ; ring 0 of a single-ring set is the map's own */
	size_t rings;
	size_t ring_bytes;
	struct xsp_attach_counters before; /* counted by the calibration: taken off */

	int self; /* our own program, for the calibration; -1: not opened */
	struct xsp_attach_site own_site; /* a function of it, which nobody calls meanwhile */
	struct xsp_journal *journal; /* NULL: no guardian */
	pthread_mutex_t lock; /* of what follows */
	struct xsp_link *links;
	size_t link_count, link_room;
	bool paused; /* links are kept, but not made */
	struct xsp_probe_state *states; /* what the kernel has; NULL: no brake */
	uint32_t state_count;
	struct xsp_release *release; /* release.c */
	struct xsp_closer *closer; /* of links of processes that have ended; NULL: none yet */
	size_t open_links, most_links; /* uprobe_multi: a descriptor each */
};

/* programs.c; NULL: not loaded */
struct bpf_program *xsp_attach_program(const struct xsp_attach *a, enum xsp_program program);

/* stop.c: begun before the first process may be stopped, ended when none will be any more. */
int xsp_stopper_start(struct xsp_attach *a);
void xsp_stopper_end(struct xsp_attach *a);

/* release.c. finish: waits for a change under way. */
int xsp_release_new(struct xsp_attach *a, uint32_t probes);
void xsp_release_finish(struct xsp_attach *a);
void xsp_release_free(struct xsp_attach *a);
/* The cookies as they must be now, without the probes that were let go: changes `sites` and returns how
 * many are left. With the lock. */
size_t xsp_release_sites(const struct xsp_attach *a, struct xsp_attach_site *sites, size_t count);

/* thread_counters.c */
size_t xsp_attach_counter_threads(const struct xsp_attach_options *o);

#endif
