/* SPDX-License-Identifier: BSD-2-Clause */
/* private.h - a recording in progress, which the files of this folder pass on. */
#ifndef XSP_CLI_RECORD_PRIVATE_H
#define XSP_CLI_RECORD_PRIVATE_H

#include "cli/record/launch.h"
#include "cli/record/live_view.h"
#include "cli/options/options.h"
#include "cli/screen/status_line.h"
#include "cli/record/switches.h"
#include "cli/flight/triggers.h"
#include "cli/flight/supervised.h"
#include "export/export.h"
#include "record/flight/flight.h"
#include "record/recorder.h"

/* CPU time of the processes that -p names, and of their other descendants. */
struct xsp_target_cpu {
	uint64_t own_ns, children_ns;
	size_t children;
};

struct recording {
	struct xsp_options o;
	struct xsp_facts facts; /* what is known so far */
	struct xsp_recording what; /* decided from the wishes and the facts */
	struct xsp_attach_options attach; /* the same decision, for the broker */
	const struct xsp_live_view *view; /* shows it instead of outputs; NULL: none */
	struct xsp_broker *broker;
	struct xsp_recorder *recorder;
	struct xsp_launch *launch;
	struct xsp_switches switches;
	unsigned busy; /* checks in a row that found that other programs pay too much */
	char *arguments;
	char idle[900]; /* why no call began, if none did */
	char time[32]; /* when it started, for default names */
	char *work; /* the capture's folder if the outputs have none; NULL: the current one */
	char *capture; /* the name that it has or would get; of a flight recorder the beginning of its snapshots' */
	/* --split: the name without a number; the files that are complete, "A,B"; the number of the one at hand */
	char *whole, *parts;
	unsigned part;
	uint64_t part_began_ns, limits_ns; /* limits.c: when it last looked */
	char full[160]; /* why the recording ends; "": it has no reason to */
	struct xsp_flight_options flight;
	int on_snapshot; /* runs the user's command; -1: none */
	struct xsp_triggers *triggers; /* NULL: none */
	struct xsp_supervised *supervised; /* NULL: no service has started it */
	const char *fired; /* the reason of the last snapshot, if a trigger gave it; or NULL */
	bool keep_capture; /* the user asked for it, or nobody said otherwise */
	/* keep it if the outputs fail; not if they go to a pipe or device, which keeps nothing */
	bool may_keep;
	char *default_json; /* the other default output */
	const char *default_outputs[1];
	struct xsp_standing *before; /* each output's state before the recording */
	struct xsp_status_line starting; /* says what we do until the probes are in */
	char doing[256];
	struct xsp_target_cpu cpu; /* at the start */
	bool looked; /* whether the target does anything */
};

static inline bool xsp_record_is_over(const struct recording *r)
{
	return r->recorder != NULL &&
	       ((r->o.duration_ns != 0 &&
		 xsp_recorder_seconds(r->recorder) * 1e9 >= (double)r->o.duration_ns) ||
		xsp_recorder_schedule_is_over(r->recorder));
}

/* Providers that the user named with -e: the recording waits for them. */
static inline uint64_t xsp_record_named_providers(const struct recording *r)
{
	return r->o.providers & ~r->o.providers_off;
}

/* signals.c */
void xsp_record_catch_signals(void);
int xsp_record_stop_signal(void); /* 0: none has come */
void xsp_record_catch_snapshots(void);
bool xsp_record_snapshot_signal(void); /* has one come since the last call? */
/* The capture that a second signal keeps, under its name if the user asked for it; NULL:
 * nothing. */
void xsp_record_put_at_stake(struct xsp_new_file *capture, bool asked_for);
bool xsp_record_is_at_stake(void);
/* From now on a second signal has nothing to keep. complete: the outputs are written. */
void xsp_record_done(bool complete);
/* Until --start-at, less `lead_ns`. False: a signal came. */
bool xsp_record_wait_for_start(const struct recording *r, uint64_t lead_ns);

/* names.c */
/* Call it before we give up our rights: without them we cannot read the time zone's file. */
int xsp_record_prepare_names(struct recording *r, struct xsp_error *err);
int xsp_record_choose_names(struct recording *r, pid_t pid, struct xsp_error *err);
const char *xsp_record_first_file(const struct xsp_options *o); /* one of the outputs, or NULL */

/* start.c */
int xsp_record_start_session(struct recording *r, const char *agent, struct xsp_error *err);
int xsp_record_check_targets(const struct recording *r, struct xsp_error *err);
/* `again`: replaces a recorder that found nothing. */
int xsp_record_make_recorder(struct recording *r, bool again, struct xsp_error *err);
int xsp_record_start_attached(struct recording *r, struct xsp_error *err);
int xsp_record_start_launched(struct recording *r, struct xsp_error *err);
void xsp_record_start_again(struct recording *r);

/* say.c */
void xsp_record_note(void *ctx, const char *text); /* ctx is the recording */
void xsp_record_say_unmatched(struct recording *r);
/* Says what other programs would pay for, and what we do instead. */
void xsp_record_say_busy(struct recording *r, const char *of, const char *instead);
void xsp_record_say_start(const struct recording *r);
/* Before the answer, which is the last that is said. */
void xsp_record_say_goes_on(const struct recording *r);

/* limits.c */
int xsp_record_check_room(const struct recording *r, struct xsp_error *err); /* at the start */
/* In each turn: 1: the recording is to end; 0, or a negative errno. */
int xsp_record_keep_limits(struct recording *r, struct xsp_error *err);
void xsp_record_say_full(const struct recording *r);
char *xsp_record_part_name(const char *name, unsigned number); /* malloc'd */
int xsp_record_open_parts(const struct recording *r, struct xsp_capture_reader **out,
			  struct xsp_error *err);
/* "run.001.xspt to run.012.xspt", or the only file's name; malloc'd. */
char *xsp_record_all_parts(const struct recording *r, const char *last);

/* flight.c: -F */
int xsp_record_prepare_flight(struct recording *r, const char *name, struct xsp_error *err);
void xsp_record_say_armed(const struct recording *r);
void xsp_record_look_at_requests(struct recording *r);
int xsp_record_end_flight(struct recording *r, bool failed); /* the exit status */

/* quiet.c */
void xsp_record_look_at_children(struct recording *r); /* once, before the start */
/* Some seconds later: says so if the target does nothing. */
void xsp_record_look_if_quiet(struct recording *r);

/* files.c */
int xsp_record_check_outputs(struct recording *r, struct xsp_error *err);
/* Was there ever anything to trace? A launched program may have had nothing. */
bool xsp_record_is_traced(const struct recording *r);
int xsp_record_keep_events(const struct recording *r, bool flush, struct xsp_error *err);
bool xsp_record_says_why_nothing(const struct recording *r); /* was it meant to have spans? */
int xsp_record_write_outputs(struct recording *r); /* the exit status */

#endif
