/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/ranks/ranks.h"
#include "analysis/rules/rules_private.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"

const struct xsp_rule xsp_rules[] = {
	{"hot-operation", 0.10, XSP_UNIT_SHARE,
	 "an operation whose own time is at least that share of the time", "a capture with spans",
	 xsp_rule_hot_operation, false},
	{"hot-function", 0.20, XSP_UNIT_SHARE,
	 "a function, native or Python's, that a process is in on its CPUs for at least that share "
	 "of the time",
	 "--sample", xsp_rule_hot_function, false},
	{"python-loop", 100, XSP_UNIT_COUNT,
	 "an operation called so many times a step from one place in Python",
	 "--python, and steps (--step)", xsp_rule_python_loop, false},
	{"loader", 0.10, XSP_UNIT_SHARE,
	 "steps wait for PyTorch's DataLoader for at least that share of the time",
	 "PyTorch's DataLoader", xsp_rule_loader, false},
	{"warm-up", 0.10, XSP_UNIT_SHARE,
	 "first steps take longer: at least that share of the time is lost in them",
	 "steps (--step)", xsp_rule_warm_up, true},
	{"overhead", 0.10, XSP_UNIT_SHARE,
	 "the probes of this recording took at least that share of the time",
	 "the whole of a recording of xsptrace's", xsp_rule_overhead, true},
	{"lock", 0.10, XSP_UNIT_SHARE,
	 "a thread waits for a lock that another one holds for at least that share of the time",
	 "--waits", xsp_rule_lock, false},
	{"gil", 0.10, XSP_UNIT_SHARE,
	 "threads of Python wait for its lock (GIL) for at least that share of their time",
	 "--waits and --sample (or --python), of CPython", xsp_rule_gil, false},
	{"runnable", 0.10, XSP_UNIT_SHARE,
	 "a thread could run and had no CPU for at least that share of the time", "--waits",
	 xsp_rule_runnable, true},
	{"disk", 0.10, XSP_UNIT_SHARE,
	 "threads wait for files on a disk for at least that share of the time", "--waits",
	 xsp_rule_disk, true},
	{"waiting", 0.10, XSP_UNIT_SHARE,
	 "a thread waits for the network, a program, a pipe, or sleeps, for at least that share of "
	 "the time, at one place",
	 "--waits", xsp_rule_waiting, false},
	{"page-faults", 0.05, XSP_UNIT_SHARE,
	 "a thread waits for pages of memory, or the kernel makes them, for at least that share of "
	 "the time",
	 "--waits or --sample", xsp_rule_page_faults, true},
	{"leak", 64 * 1024, XSP_UNIT_BYTES,
	 "memory of one place that only grows, by so many bytes a step (without steps: a second)",
	 "--memory, without losses", xsp_rule_leak, false},
	{"sync", 0.10, XSP_UNIT_SHARE,
	 "calls of CUDA that wait for the GPU take at least that share of the time",
	 "calls of CUDA (-e cuda)", xsp_rule_sync, false},
	{"allocation", 1, XSP_UNIT_COUNT,
	 "so many calls a step that allocate or free memory of CUDA's",
	 "calls of CUDA (-e cuda), and steps (--step)", xsp_rule_allocation, false},
	{"pageable-copy", 0.05, XSP_UNIT_SHARE,
	 "copies from or to memory that is not pinned take at least that share of the time",
	 "GPU activity", xsp_rule_pageable_copy, false},
	{"small-copies", 64 * 1024, XSP_UNIT_BYTES,
	 "most copies are smaller than that, and calls that copy take 5 % of the time",
	 "GPU activity, and calls of CUDA (-e cuda)", xsp_rule_small_copies, false},
	{XSP_RULE_STRAGGLER, 0.02, XSP_UNIT_SHARE,
	 "a rank of a job is slower in an operator than others, and comes late to collectives",
	 "captures of several ranks", xsp_rule_ranks, false},
	{XSP_RULE_LATE_RANK, 0.02, XSP_UNIT_SHARE,
	 "a rank of a job comes late to collectives, and no operator says why",
	 "captures of several ranks", xsp_rule_ranks, false},
	{"gpu-idle", 0.10, XSP_UNIT_SHARE,
	 "a GPU is idle for at least that share of the time from its first to its last work",
	 "GPU activity", xsp_rule_gpu_idle, false},
	{"launch-bound", 0.10, XSP_UNIT_SHARE,
	 "a GPU waits for late launches of short kernels for at least that share of its time",
	 "GPU activity, and calls of CUDA (-e cuda)", xsp_rule_launch_bound, false},
	{"short-kernels", 0.10, XSP_UNIT_SHARE,
	 "a kernel that is shorter than its launch makes at least that share of all launches",
	 "GPU activity, and calls of CUDA (-e cuda)", xsp_rule_short_kernels, false},
	{"serial-streams", 0.05, XSP_UNIT_SHARE,
	 "of a second stream's work less than that share runs beside other work", "GPU activity",
	 xsp_rule_serial_streams, false},
	{"memory-bound", 0.10, XSP_UNIT_SHARE,
	 "an operator with fewer FLOPs per byte than the GPU can do takes that share of its time",
	 "GPU activity, and shapes of PyTorch's operators (--shapes)", xsp_rule_memory_bound,
	 false},
};
const size_t xsp_rule_count = sizeof(xsp_rules) / sizeof(xsp_rules[0]);

const char *xsp_rule_key(size_t index)
{
	return index < xsp_rule_count ? xsp_rules[index].key : NULL;
}

long xsp_rule_index(const char *key, size_t length)
{
	for (size_t i = 0; i < xsp_rule_count; i++)
		if (strlen(xsp_rules[i].key) == length &&
		    memcmp(xsp_rules[i].key, key, length) == 0)
			return (long)i;
	return -1;
}

void xsp_rule_value(const struct xsp_rule *rule, double value, char out[XSP_RULE_VALUE])
{
	char text[XSP_UNITS_SIZE];

	if (rule->unit == XSP_UNIT_SHARE)
		snprintf(out, XSP_RULE_VALUE, "%g %%", 100 * value);
	else if (rule->unit == XSP_UNIT_BYTES && value < 1e18)
		snprintf(out, XSP_RULE_VALUE, "%s", xsp_format_bytes(text, (uint64_t)value));
	else
		snprintf(out, XSP_RULE_VALUE, "%g", value);
}

/* What became of a rule. */
struct outcome {
	const char *rule;
	char threshold[XSP_RULE_VALUE];
	uint64_t findings;
	const char *needs; /* NULL: it had what it needs */
};

#define OF(member) XSP_FIELD(struct outcome, member)
XSP_REPORT_CELL(outcome_threshold, void, struct outcome, xsp_cell_text(row->threshold));
XSP_REPORT_CELL(outcome_findings, void, struct outcome,
		xsp_cell_if(row->needs == NULL, row->findings));

static const struct xsp_report_column columns[] = {
	[XSP_RULES_KEY] = {"rule", "rule", XSP_UNIT_TEXT, true, OF(rule)},
	{"threshold", "threshold", XSP_UNIT_TEXT, false, XSP_BY(outcome_threshold)},
	{"findings", "findings", XSP_UNIT_COUNT, false, XSP_BY(outcome_findings)},
	[XSP_RULES_NEEDS] = {"needs", "no data: it needs", XSP_UNIT_TEXT, false, OF(needs)},
};
XSP_REPORT_SHAPE(analyze, shape, "rules", "rules", "what was looked for", columns);

int xsp_rules_run(struct xsp_rule_context *c, const double *thresholds)
{
	struct xsp_report_table *t =
		xsp_report_table(xsp_report_section(c->report, "rules", "Rules"), &shape);
	const struct xsp_report_found *all;
	int rc = 0;

	xsp_rules_prepare(c);
	for (size_t i = 0; i < xsp_rule_count && rc >= 0; i++) {
		const size_t before = xsp_report_findings(c->report, &all);
		c->rule = &xsp_rules[i];
		c->threshold = thresholds != NULL ? thresholds[i] : xsp_rules[i].threshold;
		const char *needs = c->rule->needs;
		c->needs = &needs;
		rc = c->rule->find(c);
		c->needs = NULL;
		struct outcome outcome = {.rule = c->rule->key,
					  .findings = xsp_report_findings(c->report, &all) - before,
					  .needs = rc == XSP_RULE_NO_DATA ? needs : NULL};
		xsp_rule_value(c->rule, c->threshold, outcome.threshold);
		xsp_report_add(t, NULL, &outcome);
	}
	return rc < 0 ? rc : 0;
}
