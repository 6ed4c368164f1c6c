/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * recorder.h - a recording: processes, their libraries as they come and go, probes, and the
 * capture file that everything ends in.
 */
#ifndef XSP_RECORD_RECORDER_H
#define XSP_RECORD_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "broker/attachment.h"
#include "attach/broker.h"
#include "attach/plan.h"
#include "base/error.h"
#include "base/new_file.h"

struct xsp_recorder;

/* Told of things worth a line while it works (a library that cannot be read, refused sites). */
typedef void (*xsp_recorder_note_fn)(void *ctx, const char *text);

struct xsp_recorder_options {
	struct xsp_broker *broker; /* borrowed; not loaded yet */
	const pid_t *pids; /* those that add_process() will be asked for; only while it starts */
	size_t pid_count;
	struct xsp_selection selection; /* borrowed */
	struct xsp_attach_options attach; /* what the broker was started with */
	bool exit_by_return; /* return probes instead of exit sites */
	bool exit_by_site; /* no return probes at all */
	bool profile; /* nothing is attached to code, and */
	bool again; /* the programs of another recording that found nothing are loaded: instead of those */
	double budget; /* how much a thread may be slowed: 0.2 is 20 %. 0: as much as it is */
	/* The user does not want to wait any more: while it starts. May be NULL */
	bool (*stopped)(void *ctx);
	/* What is being done, while it starts: one line. May be NULL */
	void (*progress)(void *ctx, const char *text);
	/* The capture's name, or would be if it were to be kept. NULL: it is in memory, and read as it grows */
	const char *capture_path;
	bool capture_named; /* it is asked for */
	const char *arguments; /* the command line, for the capture's info; may be NULL */
	xsp_recorder_note_fn note;
	void *note_ctx; /* of the three */
};

/* Loads the programs, measures the price of a hit, creates the capture. Nothing is attached. */
int xsp_recorder_new(const struct xsp_recorder_options *options, struct xsp_recorder **out,
		     struct xsp_error *err);
/* Also ends a recording that was not finished; the capture stays readable. NULL is allowed. */
void xsp_recorder_free(struct xsp_recorder *r);

/* Attaches to what the process maps now, with follow to its descendants as well. May be called again
 * after it has mapped more. */
int xsp_recorder_add_process(struct xsp_recorder *r, pid_t pid, struct xsp_error *err);

/* A process of the caller's own stops at each exec, before the new program's first instruction, until
 * the caller has had it attached to and says xsp_recorder_go_on(). */
int xsp_recorder_stop_at_exec(struct xsp_recorder *r, pid_t pid);
bool xsp_recorder_is_stopped(const struct xsp_recorder *r, pid_t pid);
void xsp_recorder_go_on(struct xsp_recorder *r, pid_t pid);

/* Before the start: of what is on by default, these are not to be: enum xsp_default. */
int xsp_recorder_decline(struct xsp_recorder *r, unsigned which);
/* Those of them that are still on end here, with a line that says why: a clause. 0, or the writer's negative errno. */
int xsp_recorder_drop(struct xsp_recorder *r, unsigned which, const char *why);

/* From now on events are recorded. */
int xsp_recorder_start(struct xsp_recorder *r, struct xsp_error *err);

/*
 * One turn: waits up to `wait_ms` (less when events come fast), moves events into the capture,
 * attaches to new libraries and children, writes counters about once a second. Returns the number
 * of processes that are still alive, or a negative errno (the capture could not be written).
 */
int xsp_recorder_turn(struct xsp_recorder *r, int wait_ms, struct xsp_error *err);

/* What has come until now is in the capture's file, with waits also where each thread's time went so far. *until_ns: when
 * that "now" was, CLOCK_MONOTONIC. */
int xsp_recorder_flush(struct xsp_recorder *r, uint64_t *until_ns, struct xsp_error *err);

/* The capture's file, which has no name yet; the recorder's. */
struct xsp_new_file *xsp_recorder_file(const struct xsp_recorder *r);
/* Are events in the file? With `flush`, also those of the last second. Not after the end. */
bool xsp_recorder_has_events(struct xsp_recorder *r, bool flush);
bool xsp_recorder_has_calls(const struct xsp_recorder *r); /* any that began */

/* What happens from now on is not recorded. Nothing, if it has been said before. */
void xsp_recorder_end(struct xsp_recorder *r);
/* Why no call was seen, by what the processes do now: one line. Ends the recording; before it is finished. */
void xsp_recorder_why_idle(struct xsp_recorder *r, char *text, size_t size);

/* Stops, takes the probes out, empties the rings, completes the capture. */
int xsp_recorder_finish(struct xsp_recorder *r, struct xsp_error *err);

/* Processes that descend from those that are recorded, and are not. */
size_t xsp_recorder_children(struct xsp_recorder *r);
size_t xsp_recorder_processes(const struct xsp_recorder *r); /* that are alive */

/* Since start(), until now or the end. */
double xsp_recorder_seconds(const struct xsp_recorder *r);

/* Asks the kernel for its counters: not for every turn. */
struct xsp_recorder_status {
	double seconds;
	uint64_t
		recorded_ns; /* of them, those in which all was on: without what lies between windows */
	uint64_t events, lost, bytes;
	double events_per_second; /* over the last second or so */
	double overhead; /* share of one core that the target spends in probes, lately */
	double slowdown; /* of the thread that is slowed most, lately; 0: not known */
	size_t let_go; /* functions */
	bool paused; /* between two windows */
	size_t processes, functions, sites;
};
void xsp_recorder_status(struct xsp_recorder *r, struct xsp_recorder_status *s);

struct xsp_recorder_times {
	double load_ms, calibrate_ms, read_ms, find_ms, place_ms, attach_ms, detach_ms;
};
const struct xsp_recorder_times *xsp_recorder_times(const struct xsp_recorder *r);
const struct xsp_plan *xsp_recorder_plan(const struct xsp_recorder *r);
/* Which libraries were attached to later than they were loaded, or not looked at: a clause. False: none, and no text. */
bool xsp_recorder_describe_late(const struct xsp_recorder *r, char *text, size_t size);
size_t xsp_recorder_wanted(const struct xsp_recorder *r); /* functions found so far */

#endif
