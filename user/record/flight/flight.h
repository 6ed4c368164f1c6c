/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * flight.h - the flight recorder (-F): the latest events stay in memory, and a snapshot of them is written on request
 * while the recording goes on.
 *
 * A snapshot is written by a copy of this process (fork), which has the memory as it was at that moment. The recording
 * goes on meanwhile, and loses nothing but the time of the fork.
 */
#ifndef XSP_RECORD_FLIGHT_H
#define XSP_RECORD_FLIGHT_H

#include "record/recorder.h"

struct xsp_flight_snapshot {
	const char *path; /* where it is to be */
	const char *reason; /* a word of its name */
	const char *why; /* a line, or "" */
	bool last; /* the recording has ended */
};

struct xsp_flight_options {
	uint64_t age_ns, bytes; /* what is kept; 0: no limit */
	bool live; /* events also go to a file in memory, xsp_recorder_file(), for a reader that follows */
	const char *prefix; /* of the names: "FOLDER/xsptrace.NAME.PID" */
	/* Writes the file (xsp_flight_write()) and does what else is wanted with it: the exit status. In a process of
	 * its own, which has no descriptors but the standard ones and `kept`; the last one in this process. */
	int (*write)(void *ctx, struct xsp_recorder *r, const struct xsp_flight_snapshot *s);
	/* That process has ended. May be NULL */
	void (*written)(void *ctx, const struct xsp_flight_snapshot *s, int status);
	void *ctx;
	int kept; /* -1: none */
};

/*
 * Asks for a snapshot. `reason`: one word for its file's name ("sigusr2", "step"; other bytes than letters, digits and
 * '-' become '-'). `why`: a line for its first screen and its info "snapshot" ("step of 812 ms, 9.9 times the median"),
 * or NULL. One of the next turns writes it, once the addresses seen so far have names; what was asked for in between is
 * joined: the first reason names it, and it has all lines. False: this recording is no flight recorder, or has ended.
 */
bool xsp_flight_snapshot(struct xsp_recorder *r, const char *reason, const char *why);

/* The one that was asked for is about that time, and that thread (0: no one). end_ns 0: about no time. What was asked for first
 * stays. */
void xsp_flight_about(struct xsp_recorder *r, uint64_t start_ns, uint64_t end_ns, uint32_t tid);

/* A snapshot that is asked for or is being written: another one would be joined, or wait. */
bool xsp_flight_is_busy(const struct xsp_recorder *r);

/* For options.write: the capture itself. 0 or a negative errno; `fd` is closed in any case. */
int xsp_flight_write(struct xsp_recorder *r, int fd, const struct xsp_flight_snapshot *s,
		     struct xsp_error *err);

/* Why the recorded processes are gone: "end", "sigsegv". NULL: they are not. */
const char *xsp_flight_end_reason(const struct xsp_recorder *r);
/* The recording is finished: waits for the snapshot that is being written, and writes the last one if there is a
 * reason. The exit status. */
int xsp_flight_last(struct xsp_recorder *r, const char *reason, const char *why);

/* What is kept at the moment. */
struct xsp_flight_status {
	uint64_t bytes, definition_bytes;
	uint64_t definitions, pruned;
	uint64_t dropped; /* events that were the oldest */
	double seconds;
	unsigned snapshots; /* asked for so far */
};
struct xsp_flight_status xsp_flight_status(const struct xsp_recorder *r);

/* ---- for the recorder; without a flight recorder these do nothing ---- */

int xsp_flight_new(struct xsp_recorder *r); /* 0 or -ENOMEM */
void xsp_flight_free(struct xsp_recorder *r);
struct xsp_recent *xsp_flight_recent(const struct xsp_recorder *r);
int xsp_flight_turn(struct xsp_recorder *r); /* 0 or a negative errno */
/* A thread of the process was ended by that signal. */
void xsp_flight_ended(struct xsp_recorder *r, pid_t pid, int signal);
/* A sample that stands for no time: the first of a process is the thread at fault. */
void xsp_flight_fatal(struct xsp_recorder *r, const struct xsp_event_sample *e);
void xsp_flight_gone(struct xsp_recorder *r,
		     pid_t pid); /* the process, and all of its events are there */
/* One that is no other recorded process's child. */
void xsp_flight_exec(struct xsp_recorder *r, pid_t pid, const char *comm);

#endif
