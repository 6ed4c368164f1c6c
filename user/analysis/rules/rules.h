/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rules.h - what is slow, and why: a rule is a row in the table of analysis/rules/rules.c.
 *
 * Rules run behind all analyses and read what these counted. A rule that might invent something is worse than none:
 * what its figures cannot prove it leaves out, and what losses could falsify it says (finding.uncertain).
 */
#ifndef XSP_ANALYSIS_RULES_H
#define XSP_ANALYSIS_RULES_H

#include "analysis/analysis.h"
#include "report/report.h"
#include "analysis/names/steps.h"
#include "timeline/timeline.h"

/* Severities by share, unless a rule has reasons of its own. */
#define XSP_SHARE_HIGH 0.30
#define XSP_SHARE_MEDIUM 0.10

struct xsp_rule_context {
	const struct xsp_rule *rule;
	double threshold; /* of the rule, as --threshold or its default says */
	struct xsp_timeline *timeline;
	struct xsp_capture_reader *reader;
	struct xsp_report *report;
	uint64_t start_ns; /* of the capture */
	uint64_t recorded_ns; /* time in which all was on, of the part that is told */
	uint64_t time_ns; /* what shares are of: see xsp_rule_part() */
	const char *time_of;
	struct xsp_steps_figures steps;
	const struct xsp_analysis *const *analyses; /* those that there are, ended by NULL, and */
	void *const *states; /* ... their states */
	const char **
		needs; /* of the rule, as long as it runs: a reason of its own for XSP_RULE_NO_DATA, a literal */
};

#define XSP_RULE_NO_DATA 1 /* the capture does not hold what the rule is about */

struct xsp_rule {
	const char *key; /* part of the format: docs/analyze.md */
	double threshold; /* from where on it finds something */
	enum xsp_unit unit; /* ... of what: XSP_UNIT_SHARE is given in % */
	const char *what; /* one line: what it finds, of what the threshold is */
	const char *needs; /* how to record what it is about: "--waits" */
	/* 0, XSP_RULE_NO_DATA, or a negative errno */
	int (*find)(const struct xsp_rule_context *c);
	bool machine; /* what else runs on the machine brings it about as well */
};
extern const struct xsp_rule xsp_rules[];
extern const size_t xsp_rule_count;
const char *xsp_rule_key(size_t index); /* NULL: there are not that many */
/* By key; -1: there is no such. */
long xsp_rule_index(const char *key, size_t length);

/* A threshold as people read it: "10 %", "64.0 KiB". */
#define XSP_RULE_VALUE 40
void xsp_rule_value(const struct xsp_rule *rule, double value, char out[XSP_RULE_VALUE]);

/* Runs them all; adds the section "rules" that says which had no data: those with a text in XSP_RULES_NEEDS, what they need.
 * 0 or a negative errno. */
enum { XSP_RULES_KEY = 0, XSP_RULES_NEEDS = 3 }; /* its columns */
int xsp_rules_run(struct xsp_rule_context *c, const double *thresholds);

/* ---- for rules ---- */

/* Before the first of them: what all need. */
void xsp_rules_prepare(struct xsp_rule_context *c);

/* For how long there were waits, samples: no window of --max-overhead interrupts them. */
uint64_t xsp_rule_waits_ns(const struct xsp_rule_context *c);
uint64_t xsp_rule_samples_ns(const struct xsp_rule_context *c);
/* Was a thread there for most of the time in which there were waits? Then what it waited is a share of its own time. */
bool xsp_rule_was_there(const struct xsp_rule_context *c, uint64_t there_ns);
/* What the process's threads had of CPUs, and how long they could run and had none; 0 where --waits was off. */
void xsp_rule_cpu_of(const struct xsp_rule_context *c, uint32_t pid, uint64_t *running_ns,
		     uint64_t *runnable_ns);

/* The state of the analysis of that name; NULL: there is none. */
void *xsp_rule_state(const struct xsp_rule_context *c, const char *analysis);

enum xsp_severity xsp_rule_severity(double share);

static inline double xsp_rule_share(uint64_t part, uint64_t all)
{
	return all > 0 ? (double)part / (double)all : 0;
}

/*
 * Which part of the time something takes. Of the recorded time, or of the time that threads spent in calls if that is
 * more, as it is where several of them work; or, where steps are known and it is more, of the time of those that count:
 * what a program does before and behind them is no part of it.
 */
struct xsp_rule_part {
	double share;
	const char *of; /* in words */
};
struct xsp_rule_part xsp_rule_part(const struct xsp_rule_context *c, uint64_t ns,
				   uint64_t in_steps_ns);

/* Why figures may be wrong, as one text in `out`, which is returned; NULL: they are not. */
enum xsp_rule_doubt {
	XSP_DOUBT_LOST = 1 << 0, /* events that were lost: counts are lower bounds */
	XSP_DOUBT_ENDS = 1 << 1, /* ends that were not seen: time of what is around is too long */
	XSP_DOUBT_WINDOWS = 1 << 2, /* not all of the time was recorded */
	XSP_DOUBT_FILTERED =
		1 << 3, /* --min-duration, --max-depth: time of children is in parents */
	XSP_DOUBT_SITES = 1 << 4, /* more call sites than are followed */
	XSP_DOUBT_LATE = 1 << 5, /* calls before a library's probes were there: they count as time
				  * of nothing, and what they call as called by nobody */
	XSP_DOUBT_WAITS = 1 << 6, /* they were on by default, and taken out */
	XSP_DOUBT_SAMPLES = 1 << 7,
	XSP_DOUBT_MEANWHILE = 1 << 8, /* what the GPU did during waits is a lower bound */
	XSP_DOUBT_LOCKS = 1 << 9, /* more locks, or threads at them, than are followed */
};
#define XSP_DOUBT_SIZE 1024
const char *xsp_rule_doubt(const struct xsp_rule_context *c, unsigned about,
			   char out[XSP_DOUBT_SIZE]);

/*
 * Adds a finding of the rule: finding.rule is set here, finding.severity if `by_share`, and from_ns and to_ns are
 * given as of CLOCK_MONOTONIC, both 0 for none. Texts are copied.
 */
struct xsp_report_section *xsp_rule_found(const struct xsp_rule_context *c,
					  struct xsp_report_finding finding, bool by_share);

#endif
