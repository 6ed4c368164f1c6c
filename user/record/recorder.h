/* SPDX-License-Identifier: BSD-2-Clause */
/* recorder.h - a recording: processes, their libraries as they come and go, probes, and the capture file. */
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
#include "base/files/new_file.h"
#include "record/brake/schedule.h"

struct xsp_recorder;
struct xsp_flight_options;

/* Gets things worth a line while it works (an unreadable library, refused sites). */
typedef void (*xsp_recorder_note_fn)(void *ctx, const char *text);

struct xsp_recorder_options {
	struct xsp_broker *broker; /* borrowed; not loaded yet */
	const pid_t *pids; /* for which add_process() will come; only while it starts */
	size_t pid_count;
	struct xsp_selection selection; /* borrowed */
	struct xsp_attach_options attach; /* of the broker */
	bool exit_by_return; /* return probes instead of exit sites */
	bool exit_by_site; /* no return probes at all */
	bool operators_by_agent; /* PyTorch's, in processes that have the agent */
	bool operators_by_callbacks; /* the same, by PyTorch's callbacks */
	bool profile; /* nothing is attached to code, and */
	bool again; /* the programs of another recording that found nothing are loaded: instead of those */
	/* Files are read and attached to for so long, when it starts and when it looks again; 0: no limit */
	uint64_t attach_limit_ns;
	double budget; /* how much a thread may be slowed: 0.2 is 20 %. 0: no limit */
	/* When it records; attach.brake is set then. Without an origin_ns the first window begins with the recording */
	struct xsp_schedule schedule;
	/* Does the user want to stop? While it starts. May be NULL */
	bool (*stopped)(void *ctx);
	/* What it does while it starts: one line. May be NULL */
	void (*progress)(void *ctx, const char *text);
	/* The capture's name, even if it will not be kept. NULL: it is in memory, and read as it grows */
	const char *capture_path;
	bool capture_named; /* the user asked for it */
	bool split; /* it is the first of several files */
	/* The capture stays in memory, and snapshots of it are written: flight/flight.h. NULL: it is written as it comes */
	const struct xsp_flight_options *flight;
	const char *arguments; /* the command line, for the capture's info; may be NULL */
	xsp_recorder_note_fn note;
	void *note_ctx; /* of the three */
};

/* Loads the programs, measures the price of a hit, creates the capture. Attaches nothing. */
int xsp_recorder_new(const struct xsp_recorder_options *options, struct xsp_recorder **out,
		     struct xsp_error *err);
/* Also ends an unfinished recording; the capture stays readable. NULL is allowed. */
void xsp_recorder_free(struct xsp_recorder *r);

/* Attaches to what the process maps now, with follow to its descendants as well. May be called again after it has
 * mapped more. */
int xsp_recorder_add_process(struct xsp_recorder *r, pid_t pid, struct xsp_error *err);

/* A process of the caller's own stops at each exec, before the new program's first instruction. It goes on when the
 * caller has attached and calls xsp_recorder_go_on(). */
int xsp_recorder_stop_at_exec(struct xsp_recorder *r, pid_t pid);
bool xsp_recorder_is_stopped(const struct xsp_recorder *r, pid_t pid);
void xsp_recorder_go_on(struct xsp_recorder *r, pid_t pid);

/* Before the start: turns these defaults off (enum xsp_default). */
int xsp_recorder_decline(struct xsp_recorder *r, unsigned which);
/* Ends those of them that are still on, with a line that has the reason `why`: a clause. 0, or the writer's negative
 * errno. */
int xsp_recorder_drop(struct xsp_recorder *r, unsigned which, const char *why);

/* From now on events are recorded. */
int xsp_recorder_start(struct xsp_recorder *r, struct xsp_error *err);

/*
 * One turn: waits up to `wait_ms` (less when events come fast), moves events into the capture, attaches to new
 * libraries and children, writes counters about once a second. Returns the number of live processes, or a negative
 * errno (the capture could not be written).
 */
int xsp_recorder_turn(struct xsp_recorder *r, int wait_ms, struct xsp_error *err);

/* Writes all events up to now to the capture's file, with waits also how each thread spent its time so far. *until_ns:
 * that "now", CLOCK_MONOTONIC. */
int xsp_recorder_flush(struct xsp_recorder *r, uint64_t *until_ns, struct xsp_error *err);

/* For who watches it. Writes what has come to the file. */
int xsp_recorder_show(struct xsp_recorder *r);
/* Calls `fn` for each thread that waits now: its wait, as if that ended now. 0 or a negative errno. */
int xsp_recorder_open_waits(struct xsp_recorder *r,
			    void (*fn)(void *ctx, const struct xsp_event_wait *wait), void *ctx);
/* Calls `fn` for each thread that lives, with its times so far; without waits for none. 0 or a negative errno. */
int xsp_recorder_thread_times(struct xsp_recorder *r,
			      void (*fn)(void *ctx, const struct xsp_event_times *times),
			      void *ctx);
struct xsp_recorder_facts {
	uint64_t resident; /* bytes of memory, of all processes */
	uint64_t gpu_ns; /* the end of the last GPU activity; 0: there was none */
	uint64_t gpu_busy_ns; /* so long some GPU was busy, at least */
	pid_t failed; /* the last process that ended with a status other than 0; 0: none */
	unsigned failed_status;
};
struct xsp_recorder_facts xsp_recorder_facts(const struct xsp_recorder *r);

/* Ends the file of the capture and goes on in the next one, which has the options' `split`. 0 or a negative errno. */
int xsp_recorder_next_part(struct xsp_recorder *r, const char *path, struct xsp_error *err);
uint64_t xsp_recorder_bytes(const struct xsp_recorder *r); /* in all files */
uint64_t xsp_recorder_part_bytes(const struct xsp_recorder *r);

/* The capture's file, without a name so far; the recorder's. */
struct xsp_new_file *xsp_recorder_file(const struct xsp_recorder *r);
/* Does the file have events? With `flush`, also those of the last second. Not after the end. */
bool xsp_recorder_has_events(struct xsp_recorder *r, bool flush);
bool xsp_recorder_has_calls(const struct xsp_recorder *r); /* any that began */

bool xsp_recorder_schedule_is_over(const struct xsp_recorder *r);

/* Stops recording. Repeated calls do nothing. */
void xsp_recorder_end(struct xsp_recorder *r);
/* Why no call was seen, by what the processes do now: one line. Ends the recording; before it is finished. */
void xsp_recorder_why_idle(struct xsp_recorder *r, char *text, size_t size);

/* Stops, removes the probes, empties the rings, completes the capture. */
int xsp_recorder_finish(struct xsp_recorder *r, struct xsp_error *err);

size_t xsp_recorder_processes(const struct xsp_recorder *r); /* that are alive */

/* Since start(), until now or the end. */
double xsp_recorder_seconds(const struct xsp_recorder *r);

/* Asks the kernel for its counters: not for every turn. */
struct xsp_recorder_status {
	double seconds;
	uint64_t recorded_ns; /* the part in which all was on: without pauses */
	uint64_t events, lost, bytes;
	double events_per_second; /* over the last second or so */
	double overhead; /* share of one core that the target spends in probes, lately */
	double slowdown; /* of the thread that is slowed most, lately; 0: not known */
	size_t let_go; /* functions */
	bool paused; /* in a pause */
	size_t processes, functions, sites;
};
void xsp_recorder_status(struct xsp_recorder *r, struct xsp_recorder_status *s);

struct xsp_recorder_times {
	double load_ms, calibrate_ms, read_ms, find_ms, place_ms, attach_ms, detach_ms;
};
const struct xsp_recorder_times *xsp_recorder_times(const struct xsp_recorder *r);
const struct xsp_plan *xsp_recorder_plan(const struct xsp_recorder *r);
/* Libraries that were attached to after they loaded, or never: a clause. False: none, and no text. */
bool xsp_recorder_describe_late(const struct xsp_recorder *r, char *text, size_t size);
size_t xsp_recorder_wanted(const struct xsp_recorder *r); /* functions found so far */

#endif
