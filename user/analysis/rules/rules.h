/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rules.h - what is slow, and why: a rule is a row in the table of analysis/rules/rules.c.
 *
 * Rules run after all analyses and read their figures. A wrong finding is worse than none: a rule
 * drops what its figures cannot prove. Where losses could falsify a finding, it says so
 * (finding.uncertain).
 */
#ifndef XSP_ANALYSIS_RULES_H
#define XSP_ANALYSIS_RULES_H

#include "analysis/analysis.h"
#include "report/report.h"
#include "analysis/names/steps.h"
#include "timeline/timeline.h"

/* Severities by share, unless a rule has other reasons. */
#define XSP_SHARE_HIGH 0.30
#define XSP_SHARE_MEDIUM 0.10

struct xsp_rule_context {
	const struct xsp_rule *rule;
	double threshold; /* the rule's, from --threshold or its default */
	struct xsp_timeline *timeline;
	struct xsp_capture_reader *reader;
	struct xsp_report *report;
	uint64_t start_ns; /* of the capture */
	uint64_t recorded_ns; /* time in the range during which everything was recorded */
	uint64_t time_ns; /* the whole that shares refer to: see xsp_rule_part() */
	const char *time_of;
	struct xsp_steps_figures steps;
	double ready; /* the share of the account's time that its threads were ready, without a CPU */
	const struct xsp_analysis *const *analyses; /* all that exist, then NULL */
	void *const *states; /* states of the analyses, in the same order */
	/* what the rule needs where XSP_RULE_NO_DATA has a reason of its own: a literal, valid
	 * while the rule runs */
	const char **needs;
};

#define XSP_RULE_NO_DATA 1 /* the capture does not hold the rule's data */

/*
 * A rule, and the layout of its findings. A sentence names figures by key: "{key}". "{key:3g}" and
 * "{key:2f}" set the digits, "{key:d}" has no separators, "{key:400}" limits a text's bytes.
 * {subject}, {share} and {of} are the finding's own.
 *
 * "[text]" is omitted where a figure in it is not known. "[key|text]" stands where that figure is
 * known and not false, "[!key|text]" where it is not.
 */
struct xsp_rule {
	const char *key; /* part of the format: docs/analyze.md */
	double threshold; /* the rule finds something from here on */
	enum xsp_unit unit; /* unit of the threshold; XSP_UNIT_SHARE is given in % */
	const char *what; /* one line: what the rule finds, and what the threshold measures */
	const char *needs; /* the option that records the rule's data: "--waits" */
	/* Calls xsp_rule_found() where the condition holds. 0, XSP_RULE_NO_DATA or a negative
	 * errno. */
	int (*find)(const struct xsp_rule_context *c);
	bool machine; /* other work on the machine causes it as well */
	enum xsp_rule_grade {
		XSP_RULE_BY_SHARE, /* see xsp_rule_severity() */
		XSP_RULE_HOT, /* it is none: only where the time goes */
		XSP_RULE_NOTE, /* it is none: it need not be a fault */
		XSP_RULE_LOW, /* it need not be a fault */
		XSP_RULE_BY_FINDING,
	} grade;
	unsigned doubts; /* which caveats apply: enum xsp_rule_doubt */
	const char *title; /* what is slow, and by how much */
	const char *advice; /* what to do */
};
extern const struct xsp_rule xsp_rules[];
extern const size_t xsp_rule_count;
const char *xsp_rule_key(size_t index); /* NULL: there is no such rule */
/* -1: there is no such rule. */
long xsp_rule_index(const char *key, size_t length);

/* A threshold as text: "10 %", "64.0 KiB". */
#define XSP_RULE_VALUE 40
void xsp_rule_value(const struct xsp_rule *rule, double value, char out[XSP_RULE_VALUE]);

/* Runs all rules. Adds the section "rules": its column "needs" says what a rule without data needs.
 * 0 or a negative errno. */
int xsp_rules_run(struct xsp_rule_context *c, const double *thresholds);

/* ---- for rules ---- */

/* Runs before the first rule and prepares what all of them need. */
void xsp_rules_prepare(struct xsp_rule_context *c);

/* For how long waits or samples were recorded: windows of --max-overhead do not interrupt them. */
uint64_t xsp_rule_waits_ns(const struct xsp_rule_context *c);
uint64_t xsp_rule_samples_ns(const struct xsp_rule_context *c);
/* Did the thread live for most of the time in which waits were recorded? If so, its waits are a
 * share of its own time. */
bool xsp_rule_was_there(const struct xsp_rule_context *c, uint64_t there_ns);
/* How long the process's threads ran, and how long they were runnable without a CPU; 0 without
 * --waits. */
void xsp_rule_cpu_of(const struct xsp_rule_context *c, uint32_t pid, uint64_t *running_ns,
		     uint64_t *runnable_ns);

/* The state of the named analysis; NULL: there is none. */
void *xsp_rule_state(const struct xsp_rule_context *c, const char *analysis);

enum xsp_severity xsp_rule_severity(double share); /* severity of a share */

static inline double xsp_rule_share(uint64_t part, uint64_t all)
{
	return all > 0 ? (double)part / (double)all : 0;
}

/*
 * Which share of the time something takes. The whole is the recorded time, or the time in calls if
 * several threads make that longer. Where steps are known and take a greater share, it is their
 * time: setup and shutdown do not count.
 */
struct xsp_rule_part {
	double share;
	const char *of; /* the whole, in words */
};
struct xsp_rule_part xsp_rule_part(const struct xsp_rule_context *c, uint64_t ns,
				   uint64_t in_steps_ns);

/* Writes the caveats as one text to `out` and returns it; NULL: there are none. */
enum xsp_rule_doubt {
	XSP_DOUBT_LOST = 1 << 0, /* events were lost: counts are lower bounds */
	XSP_DOUBT_ENDS = 1 << 1, /* ends were not seen: enclosing calls look too long */
	XSP_DOUBT_WINDOWS = 1 << 2, /* recorded only in windows */
	XSP_DOUBT_FILTERED = 1 << 3, /* --min-duration, --max-depth: parents have children's time */
	XSP_DOUBT_SITES = 1 << 4, /* more call sites than are followed */
	/* Calls before a library's probes were in place are missing. Their time counts as time
	 * in nothing, and their callees have no caller. */
	XSP_DOUBT_LATE = 1 << 5,
	XSP_DOUBT_WAITS = 1 << 6, /* on by default, and released during the recording */
	XSP_DOUBT_SAMPLES = 1 << 7,
	XSP_DOUBT_MEANWHILE = 1 << 8, /* what the GPU did during waits is a lower bound */
	XSP_DOUBT_GPU = 1 << 10, /* GPU records are missing: replaces all other caveats */
	XSP_DOUBT_LOCKS = 1 << 9, /* more locks, or threads at locks, than are followed */
};
#define XSP_DOUBT_SIZE 1024
const char *xsp_rule_doubt(const struct xsp_rule_context *c, unsigned about,
			   char out[XSP_DOUBT_SIZE]);

/* ---- findings ---- */

/* One finding; xsp_rule_found() copies what it holds. */
#define XSP_RULE_FIGURES 20U
struct xsp_rule_finding {
	const char *subject; /* see struct xsp_report_finding */
	struct xsp_rule_part part; /* the share that it takes, and of what */
	bool note; /* no finding: only a note */
	double sure; /* the share that sets the severity: of the time less ready; 0: from the share above */
	enum xsp_severity severity; /* of XSP_RULE_BY_FINDING */
	const char *uncertain; /* replaces the rule's caveats; or NULL */
	uint64_t at_ns, for_ns; /* a time to look at, CLOCK_MONOTONIC; 0, 0: none */
	/* replace the rule's own sentences: constants, never the target's text */
	const char *title, *advice;
	struct xsp_report_figure figures[XSP_RULE_FIGURES];
	size_t count;
};
/* Adds a figure: for sentences by its key, and as evidence if it has a title. Sentences omit
 * absent figures and false flags. */
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
/* `text` NULL: it is not known and adds no evidence. */
static inline void xsp_finding_text(struct xsp_rule_finding *f, const char *key, const char *title,
				    const char *text)
{
	xsp_finding_figure(f, key, text != NULL ? title : NULL, XSP_UNIT_TEXT, xsp_cell_text(text));
}
static inline void xsp_finding_flag(struct xsp_rule_finding *f, const char *key, bool holds)
{
	xsp_finding_figure(f, key, NULL, XSP_UNIT_TEXT, xsp_cell_bool(holds));
}
/* How often something is called, in all and in a step; 0: not known. */
void xsp_finding_calls(struct xsp_rule_finding *f, uint64_t calls, double per_step);
void xsp_rule_found(const struct xsp_rule_context *c, const struct xsp_rule_finding *f);
/* Is there such a finding? `subject` NULL: about the whole run. Without a report there is none. */
bool xsp_rule_has_found(const struct xsp_report *r, const char *rule, const char *subject);
/* Fills "{time_ns} in calls[, of {place}]": "1.20 s in calls, of train.py". Returns out. */
#define XSP_RULE_SENTENCE 4096
const char *xsp_rule_sentence(const struct xsp_rule_finding *f, const char *sentence,
			      char out[XSP_RULE_SENTENCE]);

#endif
