/* SPDX-License-Identifier: BSD-2-Clause */
/* attach_private.h - shared by the files of the attach stage. */
#ifndef XSP_ATTACH_PRIVATE_H
#define XSP_ATTACH_PRIVATE_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "attach/attach.h"
#include "attach/kernel.h"
#include "xsptrace/event.h"
#include "xsptrace.skel.h"

#define XSP_MAX_RINGS 64 /* bpf/common.h */

struct xsp_attach {
	struct xsp_bpf *bpf;
	struct xsp_kernel kernel;
	enum xsp_attach_method method;
	bool sleepable;
	bool follow;
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

	/* uprobe_multi: link descriptors; perf events: libbpf links */
	int *link_fds;
	size_t link_fd_count, link_fd_room;
	struct bpf_link **links; /* closed from several threads: each close waits for the kernel */
	size_t link_count, link_room;
	size_t *wishes; /* positions among them: links of XSP_PROGRAM_GPU_WANT */
	size_t wish_count;
};

/* Takes the link over, also on failure. */
int xsp_attach_keep_link(struct xsp_attach *a, struct bpf_link *link);

struct bpf_program *xsp_attach_program(const struct xsp_attach *a, enum xsp_program program);

/* thread_counters.c */
size_t xsp_attach_counter_threads(const struct xsp_attach_options *o);
void xsp_attach_forget_counters(struct xsp_attach *a, pid_t tid);

#endif
