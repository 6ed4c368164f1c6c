/* SPDX-License-Identifier: BSD-2-Clause */
/* options.h - the options of record and list. */
#ifndef XSP_CLI_OPTIONS_H
#define XSP_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "broker/attachment.h"
#include "broker/kernel/perf_counters.h"
#include "base/error.h"
#include "export/export.h"
#include "probes/probe.h"

#define XSP_SAMPLE_HZ 99 /* by default: in step with nothing that ticks */

struct xsp_options {
	pid_t *pids;
	size_t pid_count;
	char **command; /* NULL without one; points into argv */
	const char **outputs;
	size_t output_count;
	struct xsp_pattern *patterns;
	size_t pattern_count;
	struct xsp_pattern *provider_patterns; /* PROVIDER:GLOB */
	size_t provider_pattern_count;
	uint64_t providers; /* bit n: row n of xsp_providers was named */
	uint64_t providers_off; /* bit n: as !PROVIDER */
	uint64_t duration_ns; /* 0: until stopped */
	uint64_t min_duration_ns;
	uint32_t max_depth;
	double max_overhead; /* 0.2: 20 %; 0: off */
	bool max_overhead_said;
	pid_t *tids;
	size_t tid_count;
	const char **comms;
	size_t comm_count;
	size_t buffer_bytes;
	unsigned rings; /* hidden: --rings */
	bool follow, follow_stop; /* --follow[=stop] */
	bool verbose, quiet, dry_run, no_summary;
	bool exit_by_return; /* --exit=return */
	bool exit_by_site; /* --exit=site: no return probes, not even where no exception passes */
	enum xsp_attach_method method; /* hidden: --attach=perf-event, tracefs */
	unsigned details; /* enum xsp_detail */
	unsigned cuda_apis; /* bit n: enum xsp_cuda_api n; 0: all */
	unsigned gpu; /* enum xsp_gpu_request, beside the default */
	bool gpu_off, gpu_only;
	bool user_given; /* --user */
	uid_t uid;
	gid_t gid;
	bool inject; /* the agent, into running processes */
	uint32_t stack_frames; /* --stacks */
	uint32_t python_frames; /* --python */
	struct xsp_counter counters[XSP_COUNTERS_MAX]; /* --counters */
	size_t counter_count;
	unsigned said; /* enum xsp_default: of which it was said whether they are to be on */
	unsigned defaults; /* ... and those that are on as nothing was said */
	bool waits; /* --waits */
	uint64_t wait_least_ns;
	uint32_t sample_hz; /* --sample; 0: none */
	bool profile; /* --profile: no probes */
	bool may_profile; /* ... where nothing is found that has any: nothing else was asked for */
	bool nothing_else; /* ... but what it is was declined */
	bool wait_stacks; /* --wait-stacks */
	bool wait_stacks_said; /* whether they are to be on */
	bool wait_stacks_thinned; /* nobody asked for them: as many as cost little */
	bool wait_stack_least_said;
	uint64_t wait_stack_least_ns;
	uint32_t heap_period; /* --memory=malloc:BYTES */
	unsigned scopes; /* bit n: enum xsp_scope n; 0: all */
	size_t limit; /* rows of the summary */
	uint64_t interval_ns; /* top: -d */
	uint64_t iterations; /* top: -n; 0: until it is told to end */
	const char *sort; /* top: --sort; NULL: as it likes */
	bool probes_wanted; /* top: waits, which are on by themselves, are not enough */
	enum xsp_weight weight; /* of stacks: --weight */
	unsigned by; /* --by: enum xsp_by */
	bool summary_json; /* --summary json */
	const char *step; /* --step */
};

/* What --profile stands for, and what samples take with them. */
void xsp_options_apply_profile(struct xsp_options *o);

/* Samples and waits, if they were asked for, tell something whatever the program is. */
bool xsp_options_need_no_probes(const struct xsp_options *o);

enum xsp_options_result { XSP_OPTIONS_RUN, XSP_OPTIONS_DONE, XSP_OPTIONS_BAD };

enum xsp_verb { XSP_VERB_RECORD, XSP_VERB_LIST, XSP_VERB_TOP };

/* Parses the arguments of the verb. DONE: --help or --version has been printed; BAD: *err says
 * why. */
enum xsp_options_result xsp_options_parse(int argc, char **argv, enum xsp_verb verb,
					  struct xsp_options *o, struct xsp_error *err);
void xsp_options_clear(struct xsp_options *o);

/* The selection that the options stand for: patterns and providers. */
struct xsp_selection xsp_options_selection(const struct xsp_options *o);

#endif
