/* SPDX-License-Identifier: BSD-2-Clause */
/* rules_hot.c - functions that take the time on CPUs, by --sample. */
#include "analysis/rules/rules_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/names/hot_code.h"
#include "base/share_interval.h"
#include "base/path.h"
#include "base/rows/order.h"
#include "base/text.h"
#include "timeline/python.h"

#define HAD_SAID 0.9

/* ---- shares ---- */

struct share {
	double cpu, low, high; /* share of the process's samples, and its interval */
	double whole; /* share of the recorded time, or of all CPU time if that is shorter */
	double least; /* lower end, as if the process had always had a CPU when it could run */
	double had; /* share of the runnable time in which its threads had a CPU */
	bool many; /* more than one CPU on average */
};

/* Threads that run at the same time are in one place together, so samples of one moment count as
 * one. A function that is hot stays hot on a busy machine, where it only gets slower. */
static bool share_of(const struct xsp_rule_context *c, const struct xsp_hot_function *f,
		     struct share *out)
{
	const struct xsp_hot_process *p = xsp_hot_process(xsp_rule_state(c, "hot_code"), f);
	const uint64_t time_ns = xsp_rule_samples_ns(c);
	const bool many = p->ns > time_ns;
	const double whole = many ? 1 : xsp_rule_share(p->ns, time_ns);
	const double moments = (double)p->samples * (many ? xsp_rule_share(time_ns, p->ns) : 1);
	uint64_t running, runnable;

	if (moments < XSP_SAMPLES_LEAST)
		return false;
	xsp_rule_cpu_of(c, p->pid, &running, &runnable);
	*out = (struct share){.cpu = xsp_rule_share(f->ns, p->ns),
			      .had = running > 0 ? xsp_rule_share(running, running + runnable) : 1,
			      .many = many};
	xsp_share_interval(out->cpu, moments, &out->low, &out->high);
	out->whole = out->cpu * whole;
	out->least = out->low * (whole < out->had ? whole / out->had : 1);
	return out->least > 0 && out->least >= c->threshold;
}

/* ---- what another finding covers ---- */

/* Are most of its samples in hot operations or, for a Python function, in hot native functions? */
static bool is_reported(const struct xsp_rule_context *c, const struct xsp_hot_function *f,
			const bool *found)
{
	const struct xsp_hot_code *h = xsp_rule_state(c, "hot_code");
	const struct xsp_hot_function *all;
	const struct xsp_hot_detail *d;
	const size_t count = xsp_hot_details(h, &d);
	uint64_t in_operations = 0, in_functions = 0, in_python = 0;

	xsp_hot_functions(h, &all);
	for (size_t i = 0; i < count; i++, d++) {
		if (d->function != (size_t)(f - all))
			continue;
		if (d->what == XSP_HOT_SPAN &&
		    xsp_rule_has_found(c->report, "hot-operation",
				       xsp_timeline_name(c->timeline, d->value)))
			in_operations += d->samples;
		if (d->what == XSP_HOT_INSIDE && found[d->value])
			in_functions += d->samples;
		if (d->what == XSP_HOT_INSIDE_PYTHON && found[d->value])
			in_python += d->samples;
	}
	return 2 * in_operations >= f->samples || 2 * in_functions >= f->samples ||
	       2 * in_python >= f->samples;
}

bool xsp_rule_inside(const struct xsp_rule_context *c, xsp_name_id span, char out[XSP_RULE_INSIDE])
{
	const struct xsp_hot_code *h = xsp_rule_state(c, "hot_code");
	const struct xsp_hot_function *functions;
	const struct xsp_hot_detail *d, *most = NULL;
	const size_t count = h != NULL ? xsp_hot_details(h, &d) : 0;
	uint64_t all = 0;

	if (count > 0)
		xsp_hot_functions(h, &functions);
	for (size_t i = 0; i < count; i++, d++) {
		if (d->what != XSP_HOT_SPAN || d->value != span || functions[d->function].python)
			continue;
		all += d->samples;
		if (most == NULL || d->samples > most->samples)
			most = d;
	}
	if (all < XSP_SAMPLES_LEAST)
		return false;
	const struct xsp_hot_function *f = &functions[most->function];
	snprintf(out, XSP_RULE_INSIDE, "%.200s (%.100s) in %.0f %% of its samples",
		 xsp_timeline_name(c->timeline, f->name),
		 f->file != 0 ? xsp_timeline_name(c->timeline, f->file) : "kernel",
		 100 * xsp_rule_share(most->samples, all));
	return true;
}

/* ---- names ---- */

#define NAME 300
/* "sgemm_ (libblas.so.3)", "Net.forward (train.py)" */
static void name_of(const struct xsp_rule_context *c, const struct xsp_hot_function *f,
		    char out[NAME])
{
	const char *name = xsp_timeline_name(c->timeline, f->name), *function;
	size_t file;

	if (!f->with_packages && f->python && xsp_python_line_split(name, &file, &function))
		snprintf(out, NAME, "%.180s (%.*s)", function, (int)(file < 100 ? file : 100),
			 name);
	else if (!f->with_packages && f->file != 0)
		snprintf(out, NAME, "%.180s (%.100s)", name,
			 xsp_timeline_name(c->timeline, f->file));
	else
		snprintf(out, NAME, "%.280s", name);
}

/* "python3 (4242)" */
static const char *process_name(const struct xsp_rule_context *c, uint32_t pid, char out[NAME])
{
	const struct xsp_capture_process *p = xsp_capture_process_of(c->reader, pid);

	if (p != NULL)
		snprintf(out, NAME, "%.200s (%" PRIu32 ")", xsp_base_name(p->exe), p->ns_pid);
	else
		snprintf(out, NAME, "process %" PRIu32, pid);
	return out;
}

/* Does the name look like a function that waits but keeps its CPU? */
static bool waits_by_spinning(const char *name)
{
	static const char *const parts[] = {"spin",	 "sched_yield",	       "barrier_wait",
					    "cpu_relax", "blas_thread_server", "__kmp_"};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strstr(name, parts[i]) != NULL)
			return true;
	return false;
}

static const char *advice_of(const struct xsp_rule_context *c, const struct xsp_hot_function *f)
{
	const char *name = xsp_timeline_name(c->timeline, f->name);

	if (f->with_packages)
		return "no function of the packages has most of it: call them less often, or others. Logging: format what is written only (logger.debug('%s', x)), or fewer lines";
	if (f->python)
		return "make that line cheaper or run it less often: another algorithm, results that are kept, work on whole arrays (NumPy, PyTorch), or native code";
	if (waits_by_spinning(name))
		return "by its name it waits, and keeps its CPU meanwhile: see what it waits for, let it sleep (OMP_WAIT_POLICY=passive), or start fewer threads";
	if (strncmp(name, "[kernel]", 8) == 0)
		return "the kernel works for it: make fewer and larger system calls, or keep their results";
	return "make it cheaper or call it less often: another algorithm or data layout, the compiler's optimisation, vector instructions, more threads. What the compiler has "
	       "put into it (inlined) counts as its own";
}

/* ---- the finding ---- */

/* "worker (4243), 26 % of it; 4 threads" */
static const char *threads_of(const struct xsp_rule_context *c, const struct xsp_hot_function *f,
			      char out[NAME])
{
	size_t count;
	const struct xsp_hot_detail *d =
		xsp_hot_most(xsp_rule_state(c, "hot_code"), f, XSP_HOT_THREAD, &count);
	const struct xsp_timeline_thread *t =
		d != NULL ? xsp_timeline_thread(c->timeline, d->value) : NULL;

	snprintf(out, NAME, "%.64s (%" PRIu32 ")", t != NULL ? t->comm : "thread",
		 t != NULL   ? t->ns_tid
		 : d != NULL ? d->value
			     : 0);
	if (count > 1)
		xsp_join(out, NAME, ", ", "%.0f %% of it; %zu threads",
			 100 * xsp_rule_share(d->samples, f->samples), count);
	return out;
}

/* The detail of most samples, with its share; NULL: none is known. */
static const char *most_of(const struct xsp_rule_context *c, const struct xsp_hot_function *f,
			   enum xsp_hot_what what, char out[NAME])
{
	const struct xsp_hot_detail *d = xsp_hot_most(xsp_rule_state(c, "hot_code"), f, what, NULL);

	if (d == NULL)
		return NULL;
	snprintf(out, NAME, "%.250s, %.0f %% of it", xsp_timeline_name(c->timeline, d->value),
		 100 * xsp_rule_share(d->samples, f->samples));
	return out;
}

static void find_function(const struct xsp_rule_context *c, const struct xsp_hot_function *f,
			  const struct share *share, const char *name)
{
	const struct xsp_hot_code *h = xsp_rule_state(c, "hot_code");
	const struct xsp_hot_detail *at =
		f->with_packages ? NULL : xsp_hot_most(h, f, XSP_HOT_LINE, NULL);
	const char *of = share->many ? "the process's time on CPUs" : "the recorded time";
	char process[NAME], threads[NAME], line[NAME], caller[NAME];
	struct xsp_rule_finding g = {.subject = name,
				     .part = {share->whole, of},
				     .sure = share->least,
				     .advice = advice_of(c, f),
				     .at_ns = f->from_ns,
				     .for_ns = f->to_ns - f->from_ns};

	xsp_finding_share(&g, "cpu_share", "of its process's time on CPUs", share->cpu);
	xsp_finding_share(&g, "cpu_share_low", "at least (95 %)", share->low);
	xsp_finding_share(&g, "cpu_share_high", "at most", share->high);
	xsp_finding_count(&g, "samples", "samples", f->samples);
	xsp_finding_ns(&g, "cpu_ns", "on CPU", f->ns);
	xsp_finding_text(&g, "thread", "thread", threads_of(c, f, threads));
	xsp_finding_text(&g, "line", "line", most_of(c, f, XSP_HOT_LINE, line));
	xsp_finding_text(&g, "caller", "called by", most_of(c, f, XSP_HOT_CALLER, caller));
	xsp_finding_text(&g, "process", NULL, process_name(c, xsp_hot_process(h, f)->pid, process));
	xsp_finding_text(&g, "at", NULL,
			 at != NULL ? xsp_timeline_name(c->timeline, at->value) : NULL);
	xsp_finding_flag(&g, "packages", f->with_packages);
	xsp_finding_flag(&g, "had_less", share->had < HAD_SAID && !share->many);
	xsp_finding_share(&g, "had", NULL, share->had);
	xsp_rule_found(c, &g);
}

/* Native functions first, because their findings may cover Python's; packages' work last. In
 * each group the longest first. */
static XSP_ORDER_POINTERS(by_time, struct xsp_hot_function,
			  XSP_RISING(python) ?: XSP_RISING(with_packages)
					     ?: XSP_FALLING(ns) ?: XSP_COMPARE(x, y));

int xsp_rule_hot_function(const struct xsp_rule_context *c)
{
	const struct xsp_hot_code *h = xsp_rule_state(c, "hot_code");
	const struct xsp_hot_function *all = NULL;
	const size_t count = h != NULL ? xsp_hot_functions(h, &all) : 0;
	const struct xsp_hot_function **sorted = xsp_sorted(all, count, by_time);
	bool *found = calloc(count + 1, sizeof(*found));
	size_t findings = 0;

	for (size_t i = 0;
	     sorted != NULL && found != NULL && i < count && findings < XSP_FINDINGS_MAX; i++) {
		struct share share;
		char name[NAME];
		if (!share_of(c, sorted[i], &share) || is_reported(c, sorted[i], found))
			continue;
		name_of(c, sorted[i], name);
		found[sorted[i] - all] = true;
		if (xsp_rule_has_found(c->report, c->rule->key, name)) /* for another process */
			continue;
		find_function(c, sorted[i], &share, name);
		findings++;
	}
	const int rc = sorted == NULL || found == NULL ? -ENOMEM : 0;
	free(sorted);
	free(found);
	return rc == 0 && h == NULL ? XSP_RULE_NO_DATA : rc;
}
