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

/*
 * A rule, and the layout of its findings. Sentences hold figures by their keys: "{key}"; "{key:3g}" and "{key:2f}" with so many
 * digits, "{key:d}" without separators, "{key:400}" so many bytes of a text. {subject}, {share} and {of} are the finding's own. "[text]" is
 * left out where a figure in it is not known; "[key|text]" stands where that one is known and not false, "[!key|text]" where
 * it is not.
 */
struct xsp_rule {
	const char *key; /* part of the format: docs/analyze.md */
	double threshold; /* from where on it finds something */
	enum xsp_unit unit; /* ... of what: XSP_UNIT_SHARE is given in % */
	const char *what; /* one line: what it finds, of what the threshold is */
	const char *needs; /* how to record what it is about: "--waits" */
	/* The condition: calls xsp_rule_found() where it holds. 0, XSP_RULE_NO_DATA, or a negative errno. */
	int (*find)(const struct xsp_rule_context *c);
	bool machine; /* what else runs on the machine brings it about as well */
	enum xsp_rule_grade {
		XSP_RULE_BY_SHARE, /* see xsp_rule_severity() */
		XSP_RULE_LOW, /* it need not be a fault */
		XSP_RULE_BY_FINDING,
	} grade;
	unsigned doubts; /* what makes it uncertain: enum xsp_rule_doubt */
	const char *title; /* what is slow, by how much */
	const char *advice; /* what to do */
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

enum xsp_severity xsp_rule_severity(double share); /* what such a share makes of a finding */

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
	XSP_DOUBT_GPU =
		1 << 10, /* records of the GPU's that are missing: said instead of all others */
	XSP_DOUBT_LOCKS = 1 << 9, /* more locks, or threads at them, than are followed */
};
#define XSP_DOUBT_SIZE 1024
const char *xsp_rule_doubt(const struct xsp_rule_context *c, unsigned about,
			   char out[XSP_DOUBT_SIZE]);

/* ---- findings ---- */

/* One thing that a rule has found: what it is filled with is copied by xsp_rule_found(). */
#define XSP_RULE_FIGURES 20U
struct xsp_rule_finding {
	const char *subject; /* see struct xsp_report_finding */
	struct xsp_rule_part part; /* which share it takes, of what */
	double sure; /* the share that its severity is of, where that is another; else 0 */
	enum xsp_severity severity; /* of XSP_RULE_BY_FINDING */
	const char *uncertain; /* a reason that stands for all of the rule's doubts; or NULL */
	uint64_t at_ns, for_ns; /* a time to look at, by CLOCK_MONOTONIC; both 0: none */
	const char *title,
		*advice; /* sentences in the place of the rule's: constants, never a text of the target's */
	struct xsp_report_figure figures[XSP_RULE_FIGURES];
	size_t count;
};
/* Adds a figure: for sentences by its key, and as evidence if it has a title. Of what is absent, and of flags that are
 * false, sentences say nothing. */
void xsp_finding_figure(struct xsp_rule_finding *f, const char *key, const char *title,
			enum xsp_unit unit, struct xsp_cell value);
#define XSP_FINDING_ADDS(kind, type, unit, cell)                                                   \
	static inline void xsp_finding_##kind(struct xsp_rule_finding *f, const char *key,         \
					      const char *title, type value)                       \
	{                                                                                          \
		xsp_finding_figure(f, key, title, unit, cell(value));                              \
	}
XSP_FINDING_ADDS(ns, uint64_t, XSP_UNIT_NS, xsp_cell_integer)
XSP_FINDING_ADDS(count, uint64_t, XSP_UNIT_COUNT, xsp_cell_integer)
XSP_FINDING_ADDS(bytes, uint64_t, XSP_UNIT_BYTES, xsp_cell_integer)
XSP_FINDING_ADDS(share, double, XSP_UNIT_SHARE, xsp_cell_real)
XSP_FINDING_ADDS(number, double, XSP_UNIT_NUMBER, xsp_cell_real)
/* NULL: it is not known, and no evidence. */
static inline void xsp_finding_text(struct xsp_rule_finding *f, const char *key, const char *title,
				    const char *text)
{
	xsp_finding_figure(f, key, text != NULL ? title : NULL, XSP_UNIT_TEXT, xsp_cell_text(text));
}
static inline void xsp_finding_flag(struct xsp_rule_finding *f, const char *key, bool holds)
{
	xsp_finding_figure(f, key, NULL, XSP_UNIT_TEXT, xsp_cell_bool(holds));
}
/* How often something is called, in all and a step; 0: that is not known. */
void xsp_finding_calls(struct xsp_rule_finding *f, uint64_t calls, double per_step);
void xsp_rule_found(const struct xsp_rule_context *c, const struct xsp_rule_finding *f);
/* Is there such a finding? NULL: of the whole run; no report: none. */
bool xsp_rule_has_found(const struct xsp_report *r, const char *rule, const char *subject);
/* "1.20 s in calls, of train.py" of "{time_ns} in calls[, of {place}]". Returns out. */
#define XSP_RULE_SENTENCE 4096
const char *xsp_rule_sentence(const struct xsp_rule_finding *f, const char *sentence,
			      char out[XSP_RULE_SENTENCE]);

#endif
