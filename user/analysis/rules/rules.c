/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/ranks/ranks.h"
#include "analysis/rules/rules_private.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"

/* A group: "thread main", "12 threads worker-*". */
#define THREADS "[one|thread ][!one|{threads:d} threads ]{subject:64}"

/* clang-format off */
const struct xsp_rule xsp_rules[] = {
	{"hot-operation", 0.10, XSP_UNIT_SHARE,
	 "an operation whose own time is at least that share of the time", "a capture with spans",
	 xsp_rule_hot_operation, false, .grade = XSP_RULE_HOT,
	 .doubts = XSP_DOUBT_LOST | XSP_DOUBT_ENDS | XSP_DOUBT_FILTERED | XSP_DOUBT_WINDOWS |
		   XSP_DOUBT_LATE,
	 .title = "{subject:400} itself takes {share} of {of}",
	 .advice =
		 "make fewer, larger or cheaper calls of {subject:200}[, most of its time is called from {line}][!inside|; --sample shows where inside it the time "
		 "goes][!waits|, and --waits whether it computes or waits]"},
	{"hot-function", 0.20, XSP_UNIT_SHARE,
	 "a function, native or Python's, that a process is in on its CPUs for at least that share of the time",
	 "--sample", xsp_rule_hot_function, false, .grade = XSP_RULE_HOT,
	 .doubts = XSP_DOUBT_LOST | XSP_DOUBT_SAMPLES,
	 .title =
		 "[packages|what packages do for ]{subject} takes {share} of {of}, in {process}[had_less|, which had a CPU for {had:0f} of the time that it could run][, most of it at {at:250}]"},
	{"python-loop", 100, XSP_UNIT_COUNT,
	 "an operation called so many times a step from one place in Python",
	 "--python, and steps (--step)", xsp_rule_python_loop, false,
	 .doubts = XSP_DOUBT_SITES | XSP_DOUBT_LOST | XSP_DOUBT_WINDOWS | XSP_DOUBT_FILTERED,
	 .title =
		 "{name:400} is called {calls_per_step} times a step from one place, {line}[with_others|, with {others:d} other operation][several|s]: {share} of {of}",
	 .advice =
		 "take the loop around {line} out of Python: one call on stacked tensors, a batched, fused or foreach form, or torch.compile"},
	{"loader", 0.10, XSP_UNIT_SHARE,
	 "steps wait for PyTorch's DataLoader for at least that share of the time",
	 "PyTorch's DataLoader", xsp_rule_loader, false,
	 .doubts = XSP_DOUBT_SITES | XSP_DOUBT_LOST | XSP_DOUBT_WINDOWS,
	 .title = "getting data from the DataLoader takes {share} of {of}"},
	{"warm-up", 0.10, XSP_UNIT_SHARE,
	 "first steps take longer: at least that share of the time is lost in them",
	 "steps (--step)", xsp_rule_warm_up, true, .grade = XSP_RULE_NOTE,
	 .doubts = XSP_DOUBT_LOST | XSP_DOUBT_WINDOWS,
	 .title =
		 "first steps ({steps:d}) took {lost_ns} longer than as many later ones (median {p50_ns}): {share} of {of}",
	 .advice =
		 "they are in no figure of steps, and in those of operations: --from step:N leaves them out there too. If they matter: compile, allocate and load ahead"},
	{"overhead", 0.10, XSP_UNIT_SHARE,
	 "the probes of this recording took at least that share of the time",
	 "the whole of a recording of xsptrace's", xsp_rule_overhead, true, .grade = XSP_RULE_NOTE,
	 .title = "the recording itself takes {share} of {of}: {probes_ns} in probes, estimated",
	 .advice =
		 "record less: most calls are those of {most:300} ({calls}), which -e '!...' leaves out; or keep it small with --max-overhead. Own times here are without the probes"},
	{"lock", 0.10, XSP_UNIT_SHARE,
	 "threads wait for a lock that another one holds for at least that share of their time",
	 "--waits", xsp_rule_lock, false,
	 .doubts = XSP_DOUBT_LOST | XSP_DOUBT_WAITS | XSP_DOUBT_LOCKS,
	 .title =
		 "[subject|{subject:400} waits][!subject|threads wait] for a lock that others hold: {share} of {of}",
	 .advice =
		 "hold that lock for less time, do the work before taking it, split it, or share less[: {holder} [owned|holds][!owned|releases] it most]"},
	{"gil", 0.10, XSP_UNIT_SHARE,
	 "threads of Python wait for its lock (GIL) for at least that share of their time",
	 "--waits and --sample (or --python), of CPython", xsp_rule_gil, false,
	 .doubts = XSP_DOUBT_LOST | XSP_DOUBT_WAITS | XSP_DOUBT_LOCKS,
	 .title =
		 "[subject|{subject:400} waits][!subject|threads wait] for Python's lock (GIL): {share} of {of}",
	 .advice =
		 "one thread at a time runs Python: put the work into processes (multiprocessing, ProcessPoolExecutor), into calls that release the lock "
		 "(NumPy, PyTorch, I/O), or into fewer threads[: {holder} has it most][, at {holds_at:200}]"},
	{"pool", 0.30, XSP_UNIT_SHARE,
	 "threads wait for something that they pass on to each other for at least that share of their time: a pool of connections, a semaphore",
	 "--waits", xsp_rule_pool, false, .doubts = XSP_DOUBT_LOST | XSP_DOUBT_WAITS,
	 .title =
		 "{subject:400} waits for what these threads pass on to each other (a pool, a semaphore): {share} of {of}",
	 .advice =
		 "make the pool larger (connections, permits), or have what it gives for less time: see what those that have it wait for"},
	{"runnable", 0.10, XSP_UNIT_SHARE,
	 "more threads want to run than there are CPUs, for at least that share of the time",
	 "--waits", xsp_rule_runnable, true, .doubts = XSP_DOUBT_WAITS,
	 .title = THREADS " could run and had no CPU for {share} of the time",
	 .advice =
		 "[many|{hungry:d} threads always want to run, on {may_use:d} CPUs: start as many as there are CPUs (OMP_NUM_THREADS, num_workers, pools; torch.set_num_threads)]"
		 "[limited|its control group may use {limit:2g} CPUs, and was stopped in {stopped:d} of "
		 "{periods:d} periods: raise that limit (cpu.max; Kubernetes: limits.cpu), or start "
		 "fewer threads]"
		 "[held_back|all that is recorded took {cpus:2f} CPUs together: other programs had the rest, or it may not use more: keep those off these CPUs, and look at its "
		 "affinity (taskset -pc {first:d}) and the container's CPU limit]"},
	{"stall", 0.05, XSP_UNIT_SHARE,
	 "one of many steps waits, or does what others do not: at least that share of the time of steps",
	 "steps (--step), and --waits", xsp_rule_stall, false, .doubts = XSP_DOUBT_WAITS,
	 .title =
		 "{subject:400} [waits|waits ({why}) for][!waits|takes] {mean_ns} in {in_steps} of {steps} steps[, every {period:d} steps]: {share} of {of}",
	 .advice =
		 "what is done every so many steps holds the step up: leave it to another thread or process, do it less often, or let it not wait for an answer"},
	{"disk", 0.20, XSP_UNIT_SHARE,
	 "threads wait in fsync, or steps for files on a disk, for at least that share of the time",
	 "--waits", xsp_rule_disk, true, .doubts = XSP_DOUBT_WAITS,
	 .title = "[subject|{subject:400}][!subject|a thread] {waits_for}: {share} of {of}"},
	{"waiting", 0.10, XSP_UNIT_SHARE,
	 "steps, or a thread that computes, wait for the network, a program or a pipe for at least that share of the time",
	 "--waits", xsp_rule_waiting, false, .doubts = XSP_DOUBT_WAITS,
	 .title = "[subject|{subject:400}][!subject|a thread] {waits_for}[, {peer:120}][ ({asker:120})]: {share} of {of}"},
	{"page-faults", 0.25, XSP_UNIT_SHARE,
	 "threads wait for pages of memory, or the kernel makes them, for at least that share of the time",
	 "--waits and --sample", xsp_rule_page_faults, true,
	 .doubts = XSP_DOUBT_WAITS | XSP_DOUBT_SAMPLES,
	 .title =
		 "[subject|{subject:400}][!subject|the program] takes page faults: {share} of {of}",
	 .advice =
		 "memory is taken from the kernel and given back again and again, or read in anew: keep and reuse buffers, "
		 "raise malloc's M_MMAP_THRESHOLD and M_TRIM_THRESHOLD, read files ahead, or use huge pages"},
	{"dear-call", 0.10, XSP_UNIT_SHARE,
	 "a call that costs much more than it looks takes at least that share of the time: a regular expression compiled, an exception thrown, a small read or write",
	 "--waits and --sample", xsp_rule_dear_call, false, .doubts = XSP_DOUBT_SAMPLES,
	 .title = "{subject:400} spends {share} of {of} {doing}[ ({asker:120})][, caught in {catcher:200}]"},
	{"growth", 0.05, XSP_UNIT_SHARE,
	 "steps take longer and longer: what one place adds from the first third to the last is at least that share of a step",
	 "steps (--step), --waits and --sample", xsp_rule_growth, false,
	 .doubts = XSP_DOUBT_SAMPLES,
	 .title =
		 "{subject:400} takes longer in each step: {first_ns} in the first third of {steps} steps, {last_ns} in the last ({share} of {of})",
	 .advice =
		 "it works through something that gets longer (a list, a history, a file): keep what is known of it, or bound it"},
	{"uneven", 0.15, XSP_UNIT_SHARE,
	 "one of several threads or ranks that do the same work does twice as much, and even shares would save at least that part of its time",
	 "--waits and --sample", xsp_rule_uneven, false, .doubts = XSP_DOUBT_SAMPLES,
	 .title =
		 "{who} takes {most_ns} in {subject:400}, the others {others_ns} in the mean: even shares would save {share} of its time",
	 .advice =
		 "give all of them the same amount of work: smaller pieces that each takes when it is free (schedule(dynamic), a shared queue), or another split of the data"},
	{"outside", 0.10, XSP_UNIT_SHARE,
	 "steps compute in Python beside their operators for at least that share of the time",
	 "steps (--step), --waits and --sample", xsp_rule_outside, false,
	 .doubts = XSP_DOUBT_SAMPLES,
	 .title = "{subject:400} takes {share} of {of}, and calls no operator",
	 .advice =
		 "run it less often, do it ahead (a DataLoader's workers), or on whole tensors and arrays"},
	{"leak", 64 * 1024, XSP_UNIT_BYTES,
	 "memory of one place that only grows, by so many bytes a step (without steps: a second)",
	 "--memory, without losses", xsp_rule_leak, false, .grade = XSP_RULE_BY_FINDING,
	 .title = "memory of {subject} only grows: by {by} a {period}, at least {least}",
	 .advice =
		 "something keeps what {subject} allocates: [heap|no free follows, or lists and caches only get longer][!heap|results kept with their graph (.detach(), "
		 ".item()), lists or caches that only get longer]"},
	{"sync", 0.10, XSP_UNIT_SHARE,
	 "calls of CUDA that wait for the GPU take at least that share of the time",
	 "calls of CUDA (-e cuda)", xsp_rule_sync, false,
	 .doubts = XSP_DOUBT_LOST | XSP_DOUBT_WINDOWS | XSP_DOUBT_SITES | XSP_DOUBT_LATE |
		   XSP_DOUBT_MEANWHILE,
	 .title = "waiting for the GPU takes {share} of {of}: {subject}",
	 .advice =
		 "[the wait is not the cause, what the GPU did meanwhile is: {waited_for}][idle|the GPU is not known to have run anything "
		 "meanwhile][not_recorded|what the GPU did meanwhile was not recorded]. What {subject} wants of the GPU may be wanted too early or too often: ask for it "
		 "later or every so many steps (.item(), .cpu(), print, a copy without non_blocking), or give the GPU less to do before it[ranks|. A collective's "
		 "kernel waits for the other ranks: analyze of the captures of all ranks says which one comes late]"},
	{"allocation", 1, XSP_UNIT_COUNT,
	 "so many calls a step that allocate or free memory of CUDA's",
	 "calls of CUDA (-e cuda), and steps (--step)", xsp_rule_allocation, false,
	 .doubts = XSP_DOUBT_LOST | XSP_DOUBT_WINDOWS | XSP_DOUBT_SITES,
	 .title = "{subject}: {calls_per_step} times a step, {share} of {of}",
	 .advice =
		 "allocate before the loop and reuse it, or take memory from a caching allocator (PyTorch's, cudaMallocAsync): CUDA's own calls wait for the GPU"},
	{"pageable-copy", 0.05, XSP_UNIT_SHARE,
	 "copies from or to memory that is not pinned take at least that share of the time",
	 "GPU activity", xsp_rule_pageable_copy, false,
	 .doubts = XSP_DOUBT_LOST | XSP_DOUBT_WINDOWS | XSP_DOUBT_SITES,
	 .title =
		 "copies from or to memory that is not pinned take {share} of {of}[several|, in the mean of all GPUs]: {bytes}",
	 .advice =
		 "pin the host's memory (pin_memory=True, cudaHostAlloc) and copy with non_blocking=True: such copies are slower and make their caller wait[. Most "
		 "of the time of calls that copy: {subject}]"},
	{"small-copies", 64 * 1024, XSP_UNIT_BYTES,
	 "most copies are smaller than that, and calls that copy take 5 % of the time",
	 "GPU activity, and calls of CUDA (-e cuda)", xsp_rule_small_copies, false,
	 .doubts = XSP_DOUBT_LOST | XSP_DOUBT_WINDOWS | XSP_DOUBT_SITES,
	 .title =
		 "{small} copies of less than {small_bytes}: the calls for them take {share} of {of}",
	 .advice =
		 "copy once what is copied in pieces, or keep it on the device; most of that time: {subject}"},
	{XSP_RULE_STRAGGLER, 0.05, XSP_UNIT_SHARE,
	 "a rank of a job is slower in an operator than others, and comes late to collectives",
	 "captures of several ranks", xsp_rule_ranks, false,
	 .title =
		 "{who} is slow in {operator:200}[ at {line:200}]: {operator_ns} {unit}, {others_ns} on the others; it comes to collectives {late_ns} late in all",
	 .advice =
		 "[calls_more|it calls {operator:200} {calls:3g} times {unit}, the others {others_calls:3g} times: give the ranks the same "
		 "work][!calls_more|{operator:200} is called as often as on the others ({calls:3g} times {unit}; {others_calls:3g}): look at what it is given "
		 "there, and at that host's ][on_gpu|GPU (clocks, temperature, who else uses it)][on_cpu|processors]"},
	{XSP_RULE_LATE_RANK, 0.05, XSP_UNIT_SHARE,
	 "a rank of a job comes late to collectives, and no operator says why",
	 "captures of several ranks", xsp_rule_ranks, false,
	 .title =
		 "{who} comes last to {late_times:d} of {late_calls:d} collectives: to {collective:200} late by {late_mean_ns} in the mean, {late_max_ns} at most",
	 .advice =
		 "no operator takes so much longer there: look at [!line|what that process does before {collective:200} outside of operators (input, Python, other "
		 "programs on its processors; --waits and --python tell)][line|{line:200}: at least {line_ns} {unit} (where stacks were read), {line_others_ns} on the others]"},
	{"gpu-idle", 0.10, XSP_UNIT_SHARE,
	 "a GPU is idle for at least that share of the time from its first to its last work",
	 "GPU activity", xsp_rule_gpu_idle, false,
	 .doubts = XSP_DOUBT_GPU | XSP_DOUBT_LOST | XSP_DOUBT_WINDOWS,
	 .title = "{subject} is idle for {share:3g} of the time ({idle_ns})",
	 .advice =
		 "launches come too late. Meanwhile the launching thread is in {in}[ at {line}] ({in_ns}[several|, of all GPUs together])[; for {wait_ns} of the time it is "
		 "off its CPU ({why})]: do that elsewhere or earlier, launch ahead, or in fewer and larger pieces"},
	{"launch-bound", 0.10, XSP_UNIT_SHARE,
	 "a GPU waits for late launches of short kernels for at least that share of its time",
	 "GPU activity, and calls of CUDA (-e cuda)", xsp_rule_launch_bound, false,
	 .doubts = XSP_DOUBT_GPU | XSP_DOUBT_LOST | XSP_DOUBT_WINDOWS,
	 .title =
		 "{subject} waits for launches for {share:3g} of the time: {short:3g} of its kernels are shorter than the call that launches them ({call_ns})",
	 .advice =
		 "launch less: larger batches, fused operators (torch.compile), or CUDA graphs for what repeats"},
	{"short-kernels", 0.10, XSP_UNIT_SHARE,
	 "a kernel that is shorter than its launch makes at least that share of all launches",
	 "GPU activity, and calls of CUDA (-e cuda)", xsp_rule_short_kernels, false,
	 .doubts = XSP_DOUBT_GPU | XSP_DOUBT_LOST | XSP_DOUBT_WINDOWS,
	 .title =
		 "{name} is over before its launch is in {short:3g} of its runs, and {share:3g} of all launches (mean {mean})",
	 .advice = "give it more work at a time, or fuse it with what runs before and behind it"},
	{"serial-streams", 0.05, XSP_UNIT_SHARE,
	 "of a second stream's work less than that share runs beside other work", "GPU activity",
	 xsp_rule_serial_streams, false, .doubts = XSP_DOUBT_GPU | XSP_DOUBT_LOST | XSP_DOUBT_WINDOWS, .title = "{subject} has {streams:d} streams that do not run at the same time: of what the second one does ({second_ns}), {beside:3g} is beside other work",
	 .advice =
		 "see what orders them: the default stream, events, copies from memory that is not pinned, or kernels that fill the device; where they depend on each other one stream does"},
	{"memory-bound", 0.10, XSP_UNIT_SHARE,
	 "an operator with fewer FLOPs per byte than the GPU can do takes that share of its time",
	 "GPU activity, and shapes of PyTorch's operators (--shapes)", xsp_rule_memory_bound, false,
	 .doubts = XSP_DOUBT_GPU | XSP_DOUBT_LOST | XSP_DOUBT_WINDOWS,
	 .title =
		 "{name} does {flops_per_byte:3g} FLOPs per byte where the GPU can do {balance:3g}, and moves {bandwidth_share:3g} of what memory can ({share:3g} of busy time)",
	 .advice =
		 "move fewer bytes: fuse it with its neighbours, use a smaller type, or larger batches where it reads weights"},
};
/* clang-format on */
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

/* The outcome of one rule. */
struct outcome {
	const char *rule;
	char threshold[XSP_RULE_VALUE];
	uint64_t findings;
	const char *needs; /* NULL: nothing is missing */
};

#define OF(member) XSP_FIELD(struct outcome, member)
XSP_REPORT_CELL(outcome_threshold, void, struct outcome, xsp_cell_text(row->threshold));
XSP_REPORT_CELL(outcome_findings, void, struct outcome,
		xsp_cell_if(row->needs == NULL, row->findings));

static const struct xsp_report_column columns[] = {
	{"rule", "rule", XSP_UNIT_TEXT, true, OF(rule)},
	{"threshold", "threshold", XSP_UNIT_TEXT, false, XSP_BY(outcome_threshold)},
	{"findings", "findings", XSP_UNIT_COUNT, false, XSP_BY(outcome_findings)},
	{"needs", "no data: it needs", XSP_UNIT_TEXT, false, OF(needs)},
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
