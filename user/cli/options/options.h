/* SPDX-License-Identifier: BSD-2-Clause */
/* options.h - what the command line asks of the verbs. */
#ifndef XSP_CLI_OPTIONS_H
#define XSP_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "broker/kernel/perf_counters.h"
#include "cli/options/part.h"
#include "cli/report_output.h"
#include "model/view.h"
#include "probes/probe.h"
#include "record/brake/schedule.h"
#include "record/recording.h"
#include "trigger/expression.h"

enum xsp_verb {
	XSP_VERB_RECORD,
	XSP_VERB_TOP,
	XSP_VERB_LIST,
	XSP_VERB_DUMP,
	XSP_VERB_EXPORT,
	XSP_VERB_ANALYZE,
	XSP_VERB_COMPARE,
	XSP_VERB_VIEW,
	XSP_VERB_INFO,
	XSP_VERB_DOCTOR,
	XSP_VERB_SERVICE,
	XSP_VERB_CTL,
	XSP_VERBS,
};

/* Values of an option that may be given several times; they point into argv. */
struct xsp_words {
	const char **words;
	size_t count;
};

enum { XSP_FOLLOW = 1, XSP_FOLLOW_STOP = 2 };
enum { XSP_EXIT_BY_RETURN = 1, XSP_EXIT_BY_SITE = 2 };

/* The options of all verbs. The rows in table.c say which option sets which field. */
struct xsp_options {
	/* the words after the options (a command, or captures); they point into argv */
	char **rest;
	size_t rest_count;
	bool help, version;
	bool quiet, verbose;
	bool progress; /* show progress on a terminal */
	struct xsp_words outputs; /* -o */
	/* -F: what stays in memory (0: no limit), and the folder of its snapshots (NULL: here) */
	bool flight;
	uint64_t flight_age_ns, flight_bytes;
	const char *folder;
	const char *on_snapshot; /* a command; NULL: none */
	struct xsp_trigger *triggers;
	size_t trigger_count;
	uint64_t trigger_delay_ns, trigger_timeout_ns; /* 0: none */
	uint64_t max_snapshots; /* by triggers */
	uint64_t supervisor; /* hidden: the descriptor of the service that started it; 0: none */
	bool only_crashes; /* hidden: a target that ends by itself, or is asked to, leaves no snapshot */
	/* which threads, spans and steps are wanted; for captures also which times */
	struct xsp_cut_options part;
	uint64_t limit; /* --rows of the summary or of tables; 0: all */
	enum xsp_weight weight; /* of stacks */
	unsigned by; /* --by: enum xsp_by */
	bool summary, summary_json, no_summary;

	/* ---- verbs that look at processes: record, top, list, dump ---- */
	pid_t *pids;
	size_t pid_count;
	struct xsp_pattern *patterns;
	size_t pattern_count;
	struct xsp_pattern *provider_patterns; /* PROVIDER:GLOB */
	size_t provider_pattern_count;
	uint64_t providers; /* bit n: row n of xsp_providers is asked for */
	uint64_t providers_off; /* bit n: !PROVIDER, row n of xsp_providers is excluded */
	struct xsp_wishes wishes; /* what the user asked to record; record/recording.h decides */
	double max_overhead; /* 0.2: 20 %; 0: off */
	struct xsp_counter counters[XSP_COUNTERS_MAX];
	size_t counter_count;
	unsigned cuda_apis; /* bit n: enum xsp_cuda_api n; 0: all */
	unsigned scopes; /* bit n: enum xsp_scope n; 0: all */
	unsigned gpu; /* enum xsp_gpu_request, in addition to the default */
	bool gpu_off;
	bool inject; /* load the agent into running processes */
	bool dry_run;
	unsigned follow, exit,
		method; /* --follow; --exit; hidden: --attach (enum xsp_attach_method) */
	uint64_t duration_ns; /* 0: until stopped */
	uint64_t start_at_ns; /* CLOCK_REALTIME; 0: now */
	uint64_t start_each_ns; /* it is the next multiple of that; 0: it is that moment alone */
	struct xsp_schedule schedule; /* --windows, --every; its origin is start_at_ns */
	uint64_t attach_limit_ns; /* for reading files and attaching to them */
	size_t buffer_bytes;
	size_t max_size, min_free, split_bytes; /* of the capture; 0: no limit */
	uint64_t split_ns;
	uint64_t rings; /* hidden */
	bool user_given; /* --user */
	uid_t uid;
	gid_t gid;
	uint64_t interval_ns, iterations; /* top: -d and -n; 0 tables: until the user ends it */
	const char *sort; /* top; NULL: its default */
	bool no_stop, json; /* dump */

	/* ---- verbs that read captures ---- */
	bool schema; /* --json-schema */
	struct xsp_report_output report; /* analyze, compare */
	char *folded; /* parts of one recording as one word, which `rest` then points to */
	const char *keep; /* export: -o NAME.xspt; NULL: none */
	struct xsp_words thresholds; /* analyze */
	double threshold; /* compare: 0.05 is 5 % */
	/* analyze: enum xsp_severity + 1; compare: enum xsp_compare_found; 0: never */
	unsigned fail_on;
	const char *batch; /* analyze: --batch-size; NULL: the usual name */
	uint64_t port; /* view; 0: not given */
	bool no_browser, perfetto;

	/* ---- service, ctl ---- */
	bool check;
	const char *socket; /* NULL: the usual one */
};

/* Parses the verb's arguments and checks how they go together. 0, or a negative errno and *err. Call xsp_options_clear() in
 * either case. */
int xsp_options_parse(int argc, char **argv, enum xsp_verb verb, struct xsp_options *o,
		      struct xsp_error *err);
/*
 * The same for a verb: what is wrong is said. False: nothing is left to do, since --help was asked for or an error
 * was said; *status is the exit status. Call xsp_options_clear() in either case.
 */
bool xsp_options_take(int argc, char **argv, enum xsp_verb verb, struct xsp_options *o,
		      int *status);
void xsp_options_clear(struct xsp_options *o);

/* What to trace. With NULL: as far as that does not depend on what is recorded. */
struct xsp_selection xsp_options_selection(const struct xsp_options *o,
					   const struct xsp_recording *r);

#endif
