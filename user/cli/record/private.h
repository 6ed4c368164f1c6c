/* SPDX-License-Identifier: BSD-2-Clause */
/* private.h - a recording on its way, for the files that take it from step to step. */
#ifndef XSP_CLI_RECORD_PRIVATE_H
#define XSP_CLI_RECORD_PRIVATE_H

#include "cli/record/launch.h"
#include "cli/record/live_view.h"
#include "cli/options/options.h"
#include "cli/screen/status_line.h"
#include "cli/record/switches.h"
#include "export/export.h"
#include "record/recorder.h"

struct recording {
	struct xsp_options o;
	struct xsp_facts facts; /* as far as they are known */
	struct xsp_recording what; /* decided from the wishes and them */
	struct xsp_attach_options attach; /* the same, for the broker */
	const struct xsp_live_view *view; /* instead of outputs; NULL: none */
	struct xsp_broker *broker;
	struct xsp_recorder *recorder;
	struct xsp_launch *launch;
	struct xsp_switches switches;
	unsigned busy; /* looks in a row at which others paid too much */
	char *arguments;
	char idle[900]; /* why no call began, if none did */
	char time[32]; /* of the start, for default names */
	char *work; /* the capture's folder if the outputs have none; NULL: here */
	char *capture; /* the name it has or would have */
	bool keep_capture; /* asked for, or the default */
	bool may_keep; /* if the outputs fail: not where they go to a pipe or device, which keeps nothing */
	char *default_json; /* the other default output */
	const char *default_outputs[1];
	struct xsp_standing *before; /* at each output, before the recording */
	struct xsp_status_line starting; /* what is being done until the probes are in */
	char doing[256];
};

/* -d is over. */
static inline bool xsp_record_is_over(const struct recording *r)
{
	return r->o.duration_ns != 0 && r->recorder != NULL &&
	       xsp_recorder_seconds(r->recorder) * 1e9 >= (double)r->o.duration_ns;
}

/* Providers that the user named with -e: they are waited for. */
static inline uint64_t xsp_record_named_providers(const struct recording *r)
{
	return r->o.providers & ~r->o.providers_off;
}

/* record_signals.c */
void xsp_record_catch_signals(void);
int xsp_record_stop_signal(void); /* 0: none has come */
/* What a second signal keeps, under its name if that was asked for; NULL: nothing. */
void xsp_record_put_at_stake(struct xsp_new_file *capture, bool asked_for);
bool xsp_record_is_at_stake(void);
/* Nothing is at stake any more; complete: as the outputs are there. */
void xsp_record_done(bool complete);

/* record_names.c */
/* Before the rights are given up, and with them the file that knows the time zone. */
int xsp_record_prepare_names(struct recording *r, struct xsp_error *err);
int xsp_record_choose_names(struct recording *r, pid_t pid, struct xsp_error *err);
const char *xsp_record_first_file(const struct xsp_options *o); /* among the outputs, or NULL */

/* record_start.c */
int xsp_record_start_session(struct recording *r, const char *agent, struct xsp_error *err);
int xsp_record_check_targets(const struct recording *r, struct xsp_error *err);
/* `again`: instead of one that has found nothing. */
int xsp_record_make_recorder(struct recording *r, bool again, struct xsp_error *err);
int xsp_record_start_attached(struct recording *r, struct xsp_error *err);
int xsp_record_start_launched(struct recording *r, struct xsp_error *err);
void xsp_record_start_again(struct recording *r);

/* record_say.c */
void xsp_record_note(void *ctx, const char *text); /* ctx is the recording */
void xsp_record_say_unmatched(struct recording *r);
/* Bystanders would pay: for what, and what is done instead. */
void xsp_record_say_busy(struct recording *r, const char *of, const char *instead);
void xsp_record_say_children(struct recording *r);
void xsp_record_say_start(const struct recording *r);

/* files.c */
int xsp_record_check_outputs(struct recording *r, struct xsp_error *err);
/* Has anything been there to trace? A launched program may not have had it. */
bool xsp_record_is_traced(const struct recording *r);
int xsp_record_keep_events(const struct recording *r, bool flush, struct xsp_error *err);
bool xsp_record_says_why_nothing(const struct recording *r); /* were there to be spans? */
int xsp_record_write_outputs(struct recording *r); /* the exit status */

#endif
