/* SPDX-License-Identifier: BSD-2-Clause */
/* private.h - the service's own: its targets, and the recorder of each. */
#ifndef XSP_SERVICE_PRIVATE_H
#define XSP_SERVICE_PRIVATE_H

#include "service/config.h"
#include "service/ctl.h"
#include "service/figures.h"
#include "service/journal.h"
#include "service/keep.h"
#include "service/metrics.h"
#include "service/service.h"
#include "service/watcher.h"

#define XSP_TARGETS_MAX 256U /* config.c: the most of max-targets */

enum xsp_target_state {
	XSP_TARGET_WAITS, /* a recorder is to start, at next_ns */
	XSP_TARGET_STARTS, /* it has said nothing so far */
	XSP_TARGET_ARMED,
	XSP_TARGET_ENDS, /* the recorder was told to end */
	XSP_TARGET_DISARMED,
};

struct xsp_target {
	struct xsp_watcher_found is;
	int pidfd; /* of the process */
	bool gone; /* it has ended */
	enum xsp_target_state state;
	uint64_t since_ns; /* in this state */
	uint64_t next_ns,
		back_off_ns; /* when a recorder starts, and how much later the one after that */
	bool disarm; /* when the recorder has ended */
	char why[120]; /* why it waits, or "" */
	pid_t recorder; /* 0: none */
	int socket; /* to it */
	bool killed; /* it did not end in time */
	struct xsp_figures figures; /* the last */
	double steps_per_s, busy, gpu_busy;
	double processors; /* its recorder's and its probes', lately */
	uint64_t recorder_ns, recorder_resident;
	unsigned snapshots;
	uint32_t asked; /* bit n: ctl's client n waits for a snapshot */
};

struct xsp_service {
	const struct xsp_service_options *options;
	struct xsp_service_config config;
	struct xsp_watcher watcher;
	struct xsp_ctl ctl;
	int lock, folder, signals;
	pid_t metrics; /* the process that serves them; 0: none */
	uint64_t metrics_next_ns;
	struct xsp_target targets[XSP_TARGETS_MAX];
	size_t count;
	struct xsp_metrics_service totals;
	bool ends;
	uint64_t now_ns, ends_ns, ticked_ns, kept_ns, judged_ns, told_ns, refused_ns;
	uint64_t watchdog_ns;
};

/* ---- targets.c ---- */

/* A process meets a watch, perhaps not for the first time. */
void xsp_target_found(struct xsp_service *s, const struct xsp_watcher_found *found);
/* Starts recorders that are due, and ends those that take too long. */
void xsp_targets_turn(struct xsp_service *s);
/* Has its recorder said something? */
void xsp_target_listen(struct xsp_service *s, struct xsp_target *t);
/* The process with that number, which has ended, was a recorder. */
bool xsp_target_reap(struct xsp_service *s, pid_t pid, int status);
/* Tells the recorder to end; why: what is said while it waits, or "". */
void xsp_target_end(struct xsp_service *s, struct xsp_target *t, const char *why);
size_t xsp_targets_in(const struct xsp_service *s, enum xsp_target_state state);
const char *xsp_target_watch(const struct xsp_service *s, const struct xsp_target *t);
/* Answers those who wait for its snapshot. */
void xsp_target_answer(struct xsp_service *s, struct xsp_target *t, const char *text, bool written);

/* ---- answers.c: requests of ctl ---- */

extern const struct xsp_ctl_request xsp_service_requests[];
extern const size_t xsp_service_request_count;

#endif
