/* SPDX-License-Identifier: BSD-2-Clause */
/* rules_cpu.c - operations, loops, the data loader, first steps, and the recording itself. */
#include "analysis/rules/rules_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/calls/call_sites.h"
#include "analysis/summary_report.h"
#include "base/u64map.h"
#include "base/units.h"
#include "catalog/collectives.h"
#include "catalog/gpu/cuda_table.h"
#include "catalog/wait_reasons.h"

#define FINDINGS_MAX 20 /* of one rule, with whatever threshold */
#define MANY_CALLS 20
#define LOOP_LEAST_SHARE 0.05 /* of the time: shorter loops are nobody's question */
#define LOADER                                                                                     \
	"enumerate(DataLoader)#" /* torch.utils.data.DataLoader's own range around __next__ */

static const struct xsp_summary_analysis *summary_of(const struct xsp_rule_context *c)
{
	return xsp_rule_state(c, "summary");
}

/* ---- hot operation ---- */

/* What a row's code itself took: where it is known on a CPU, as a call that waits is no hot one. */
static uint64_t own_of(const struct xsp_summary_row *row)
{
	const uint64_t own = row->self_cpu_ns + row->own_cpu_unknown_ns;

	return own < row->own_ns ? own : row->own_ns;
}

/* Which part of that one of many calls took: it may have waited, or been kept from its CPU, and says nothing of the others. */
static double share_of_one(const struct xsp_summary_row *row)
{
	return row->timed >= MANY_CALLS ? xsp_rule_share(row->own_cpu_unknown_max_ns, own_of(row))
					: 0;
}

/* Other rules tell of waiting for the GPU, for other ranks and for data; a step is no operation, and to begin and end
 * CUDA is nothing that a program does often. */
static bool is_operation(const struct xsp_rule_context *c, const struct xsp_summary_row *row)
{
	const struct xsp_summary_analysis *a = summary_of(c);
	const struct xsp_cuda_entry *cuda = xsp_cuda_find(xsp_summary_text(a->summary, row));

	return !xsp_timeline_marks_steps(c->timeline, row->name) &&
	       !xsp_call_sites_is_loader(xsp_rule_state(c, "call_sites"), row->name) &&
	       (cuda == NULL || (cuda->kind != XSP_CUDA_SYNC && cuda->kind != XSP_CUDA_CONTEXT)) &&
	       !xsp_collective_is_waiting(xsp_summary_text(a->summary, row));
}

static void put_calls(struct xsp_report_section *f, uint64_t calls, double per_step)
{
	xsp_report_value(f, "calls", "calls", XSP_UNIT_COUNT, xsp_cell_integer(calls));
	if (per_step > 0)
		xsp_report_value(f, "calls_per_step", "calls a step", XSP_UNIT_COUNT,
				 xsp_cell_real(per_step));
}

/* In steps it is known with the probes and with waiting: as much less as in the whole. */
static struct xsp_rule_part part_of(const struct xsp_rule_context *c,
				    const struct xsp_summary_row *row)
{
	uint64_t in_steps_ns;

	xsp_steps_calls(summary_of(c)->summary->steps, row->name, &in_steps_ns);
	return xsp_rule_part(
		c, own_of(row),
		(uint64_t)((double)in_steps_ns * xsp_rule_share(own_of(row), row->self_ns)));
}

static void find_hot(const struct xsp_rule_context *c, const struct xsp_summary_row *row,
		     struct xsp_rule_part part)
{
	const struct xsp_summary_analysis *a = summary_of(c);
	const struct xsp_call_sites *sites = xsp_rule_state(c, "call_sites");
	const struct xsp_call_site *site = xsp_call_sites_of(sites, row->name);
	const char *name = xsp_summary_text(a->summary, row);
	char title[640], advice[XSP_CALL_SITE_TEXT + 400], line[XSP_CALL_SITE_TEXT];
	char doubt[XSP_DOUBT_SIZE], inside[XSP_RULE_INSIDE];
	const bool sampled = xsp_rule_inside(c, row->name, inside);
	/* sites are of Python's own calls: what other operations call is in none */
	const bool at = site != NULL && 2 * site->total_ns > row->total_ns &&
			xsp_call_site_line(sites, site, line);

	snprintf(title, sizeof(title), "%.400s itself takes %.1f %% of %s", name, 100 * part.share,
		 part.of);
	snprintf(advice, sizeof(advice), "make fewer, larger or cheaper calls of %.200s%s%s%s%s",
		 name, at ? ", most of its time is called from " : "", at ? line : "",
		 sampled ? "" : "; --sample shows where inside it the time goes",
		 a->summary->waits != NULL ? "" : ", and --waits whether it computes or waits");
	const char *uncertain =
		xsp_rule_doubt(c,
			       XSP_DOUBT_LOST | XSP_DOUBT_ENDS | XSP_DOUBT_FILTERED |
				       XSP_DOUBT_WINDOWS | XSP_DOUBT_LATE,
			       doubt);
	if (uncertain == NULL && a->summary->waits != NULL &&
	    2 * row->own_cpu_unknown_ns > own_of(row))
		uncertain = "the time on a CPU of some of its calls is not known: what they waited "
			    "may be in it";
	if (uncertain == NULL && row->mostly_probes)
		uncertain = "most of the time of most of its calls is that of probes inside them";
	struct xsp_report_section *f = xsp_rule_found(
		c,
		(struct xsp_report_finding){
			.subject = name,
			.title = title,
			.advice = advice,
			.uncertain = uncertain,
			.share = part.share,
			.from_ns = row->measured > 0 ? row->max_start_ns : 0,
			.to_ns = row->measured > 0 ? row->max_start_ns + row->max_ns : 0},
		true);
	xsp_report_value(f, "self_ns", "own time", XSP_UNIT_NS, xsp_cell_integer(own_of(row)));
	put_calls(f, row->calls,
		  xsp_rule_share(xsp_steps_calls(a->summary->steps, row->name, NULL),
				 c->steps.steps));
	if (row->measured > 0) {
		xsp_report_value(f, "p50_ns", "p50", XSP_UNIT_NS, xsp_cell_integer(row->p50_ns));
		xsp_report_value(f, "max_ns", "longest", XSP_UNIT_NS,
				 xsp_cell_integer(row->max_ns));
	}
	if (sampled)
		xsp_report_value(f, "inside", "on CPU in", XSP_UNIT_TEXT, xsp_cell_text(inside));
}

int xsp_rule_hot_operation(const struct xsp_rule_context *c)
{
	const struct xsp_summary_analysis *a = summary_of(c);
	const struct xsp_summary_row *rows;
	const size_t count = xsp_summary_rows(a->summary, &rows);
	size_t found = 0;

	for (size_t i = 0; i < count && found < FINDINGS_MAX; i++) {
		const struct xsp_rule_part part = part_of(c, &rows[i]);
		if (part.share <= 0 || part.share * (1 - share_of_one(&rows[i])) < c->threshold ||
		    !is_operation(c, &rows[i]))
			continue;
		find_hot(c, &rows[i], part);
		found++;
	}
	return count > 0 ? 0 : XSP_RULE_NO_DATA;
}

/* ---- operation in a loop of Python's ---- */

/* All that one line calls so often: their time is that of the loop around. */
struct loop {
	const struct xsp_call_site *most; /* the operation that takes most time */
	double per_step; /* ... its calls */
	size_t operations;
	uint64_t calls, total_ns, in_steps_ns;
};

static void find_loop(const struct xsp_rule_context *c, const struct loop *l,
		      struct xsp_rule_part part)
{
	const struct xsp_call_sites *sites = xsp_rule_state(c, "call_sites");
	const char *name = xsp_timeline_name(c->timeline, l->most->name);
	char subject[XSP_CALL_SITE_TEXT], line[XSP_CALL_SITE_TEXT] = "a line that is not known";
	char title[XSP_CALL_SITE_TEXT + 700], advice[XSP_CALL_SITE_TEXT + 400];
	char doubt[XSP_DOUBT_SIZE], others[80] = "";

	const char *uncertain = xsp_rule_doubt(
		c, XSP_DOUBT_SITES | XSP_DOUBT_LOST | XSP_DOUBT_WINDOWS | XSP_DOUBT_FILTERED,
		doubt);

	xsp_call_site_line(sites, l->most, line);
	xsp_call_site_text(sites, l->most, subject);
	if (l->operations > 1)
		snprintf(others, sizeof(others), ", with %zu other operation%s", l->operations - 1,
			 l->operations > 2 ? "s" : "");
	snprintf(title, sizeof(title),
		 "%.400s is called %.4g times a step from one place, %s%s: %.1f %% of %s", name,
		 l->per_step, line, others, 100 * part.share, part.of);
	snprintf(advice, sizeof(advice),
		 "take the loop around %s out of Python: one call on stacked tensors, a batched, "
		 "fused or foreach form, or torch.compile",
		 line);
	struct xsp_report_section *f =
		xsp_rule_found(c,
			       (struct xsp_report_finding){.subject = subject,
							   .title = title,
							   .advice = advice,
							   .uncertain = uncertain,
							   .share = part.share,
							   .from_ns = l->most->longest_start_ns,
							   .to_ns = l->most->longest_start_ns +
								    l->most->longest_ns},
			       true);
	xsp_report_value(f, "total_ns", "in all, without probes", XSP_UNIT_NS,
			 xsp_cell_integer(l->total_ns));
	put_calls(f, l->calls, l->per_step);
}

static void add_to_loop(struct loop *l, const struct xsp_call_site *site, double per_step,
			uint64_t in_steps_ns)
{
	if (l->most == NULL || site->total_ns > l->most->total_ns) {
		l->most = site;
		l->per_step = per_step;
	}
	l->operations++;
	l->calls += site->calls;
	l->total_ns += site->total_ns - site->probe_ns;
	l->in_steps_ns += in_steps_ns;
}

/* What is called so often a step, by the program's own line. The caller's to free; NULL: out of memory. */
static struct loop *loops_of(const struct xsp_rule_context *c, size_t *count, bool *any)
{
	const struct xsp_call_sites *sites = xsp_rule_state(c, "call_sites");
	const struct xsp_call_site *list;
	const size_t n = xsp_call_sites_list(sites, &list);
	struct loop *loops = calloc(n + 1, sizeof(*loops));
	struct xsp_u64map index = {0};
	size_t capacity = n + 1;

	*count = 0;
	*any = false;
	for (size_t i = 0; loops != NULL && i < n && c->steps.steps > 0; i++) {
		uint64_t ns;
		*any = *any || list[i].python != NULL;
		if (list[i].kind != 0 || xsp_call_site_of_backward(sites, &list[i]))
			continue;
		const double per_step = xsp_rule_share(xsp_call_site_in_steps(sites, &list[i], &ns),
						       c->steps.steps);
		if (per_step <= 0 || per_step < c->threshold)
			continue;
		const uint64_t line = xsp_call_site_own_line(sites, &list[i]);
		/* of lines that are not known each operation is its own */
		struct loop *l =
			xsp_u64map_element(&index, xsp_u64_mix(line != 0 ? line : ~(uint64_t)i),
					   &loops, &capacity, count, &(struct loop){0});
		if (l == NULL) {
			free(loops);
			loops = NULL;
			break;
		}
		add_to_loop(l, &list[i], per_step, ns);
	}
	xsp_u64map_free(&index);
	return loops;
}

static int longest_loop(const void *a, const void *b)
{
	const struct loop *x = a, *y = b;

	return x->total_ns != y->total_ns ? x->total_ns > y->total_ns ? -1 : 1
					  : (x->most > y->most) - (x->most < y->most);
}

int xsp_rule_python_loop(const struct xsp_rule_context *c)
{
	struct xsp_rule_context with_lines = *c;
	size_t count, found = 0;
	bool any;

	xsp_call_sites_steps(xsp_rule_state(c, "call_sites"), &with_lines.steps);
	/* what probes take is no time of the program's, neither of the calls nor of the steps */
	with_lines.steps.sum_ns -= with_lines.steps.probe_ns;
	struct loop *loops = loops_of(&with_lines, &count, &any);

	if (loops == NULL)
		return -ENOMEM;
	qsort(loops, count, sizeof(*loops), longest_loop);
	for (size_t i = 0; i < count && found < FINDINGS_MAX; i++) {
		const struct xsp_rule_part part =
			xsp_rule_part(&with_lines, loops[i].total_ns, loops[i].in_steps_ns);
		if (part.share < LOOP_LEAST_SHARE)
			continue;
		find_loop(c, &loops[i], part);
		found++;
	}
	free(loops);
	return any ? 0 : XSP_RULE_NO_DATA;
}

/* ---- starved loader ---- */

/* All ranges of the DataLoader: of one process there is one, by its class. */
struct loader {
	struct xsp_call_place sum;
	const char *name; /* of what took most */
	uint64_t cpu_ns;
	bool cpu_known;
	bool waits_known; /* --waits: else these are 0 */
	uint64_t workers_ns, files_ns; /* of it, waited */
	uint64_t runnable_ns; /* of it, could run and had no CPU */
	const char *most; /* what it waited for longest, whatever that is; NULL: it did not */
	const char *place; /* where it waited longest; NULL: not known */
};

/* What its workers hand on comes through pipes and queues, at which it polls with a timeout; with pin_memory a thread of its own
 * stands between. */
static void add_waits(const struct xsp_call_sites *sites, struct loader *l)
{
	static const uint8_t of_workers[] = {XSP_WAIT_LOCK, XSP_WAIT_POLL, XSP_WAIT_PIPE,
					     XSP_WAIT_NETWORK};
	static const uint8_t of_files[] = {XSP_WAIT_FILE, XSP_WAIT_DISK, XSP_WAIT_FAULT};
	const uint64_t *waits = xsp_call_sites_loader_waits(sites);

	for (size_t i = 0; i < sizeof(of_workers); i++)
		l->workers_ns += waits[of_workers[i]];
	for (size_t i = 0; i < sizeof(of_files); i++)
		l->files_ns += waits[of_files[i]];
	for (size_t i = 0, most = 0; i < XSP_WAIT_CLASSES; i++)
		if (waits[i] > waits[most] || (i == most && waits[i] > 0)) {
			most = i;
			l->most = xsp_wait_class_name((enum xsp_wait_class)i);
		}
}

static int loader_of(const struct xsp_rule_context *c, struct loader *l)
{
	const struct xsp_call_sites *sites = xsp_rule_state(c, "call_sites");
	const struct xsp_summary_row *rows;
	const size_t row_count = xsp_summary_rows(summary_of(c)->summary, &rows);
	size_t count;
	struct xsp_call_place *places = xsp_call_sites_places(sites, 1U << XSP_SITE_LOADER, &count);

	*l = (struct loader){.cpu_known = true,
			     .waits_known = xsp_timeline_has_waits(c->timeline),
			     .runnable_ns = xsp_call_sites_loader_runnable_ns(sites)};
	add_waits(sites, l);
	if (xsp_call_sites_loader_place(sites) != 0)
		l->place = xsp_timeline_name(c->timeline, xsp_call_sites_loader_place(sites) - 1);
	for (size_t i = 0; places != NULL && i < count; i++) {
		xsp_call_place_add(&l->sum, &places[i]);
		if (i == 0)
			l->name = xsp_timeline_name(c->timeline, places[i].site.name);
	}
	for (size_t i = 0; i < row_count; i++)
		if (xsp_call_sites_is_loader(sites, rows[i].name)) {
			l->cpu_ns += rows[i].cpu_ns;
			l->cpu_known = l->cpu_known && rows[i].cpu_known;
		}
	free(places);
	return places == NULL ? -ENOMEM : 0;
}

#define COMPUTES                                                                                   \
	"the DataLoader computes in the training thread itself: give it workers (num_workers), "   \
	"or make its __getitem__ and collate_fn cheaper"
#define HAS_NO_CPU                                                                                 \
	"the training thread could run in the DataLoader but had no CPU: run fewer threads and "   \
	"processes beside it (num_workers, torch.set_num_threads, other programs), or give it "    \
	"more CPUs"

/* It waited for nothing that is told. */
static const char *advice_without_waits(const struct loader *l)
{
	const uint64_t known_ns = l->cpu_ns + l->runnable_ns, total_ns = l->sum.site.total_ns;
	const uint64_t rest_ns = total_ns > known_ns ? total_ns - known_ns : 0;

	if (!l->waits_known)
		return "give the DataLoader (more) workers (num_workers), persistent_workers and "
		       "prefetch_factor, or make its __getitem__ and collate_fn cheaper; --waits "
		       "shows whether it waits or computes";
	if (!l->cpu_known)
		return "give the DataLoader (more) workers (num_workers), or make its __getitem__ "
		       "and collate_fn cheaper: no wait was seen in it, and for how long it had a "
		       "CPU is not known";
	if (l->runnable_ns >= l->cpu_ns && l->runnable_ns >= rest_ns)
		return HAS_NO_CPU;
	if (l->cpu_ns >= rest_ns)
		return COMPUTES;
	return "give the DataLoader (more) workers (num_workers), or make its __getitem__ and "
	       "collate_fn cheaper: what it waits for is not told, as each wait is shorter than "
	       "those of --waits=LEAST";
}

/* Where it waits its workers are too slow; where it computes there are none. */
static const char *loader_advice(const struct loader *l, char own[static 400])
{
	const uint64_t total_ns = l->sum.site.total_ns;

	if (l->cpu_known && 2 * l->cpu_ns > total_ns)
		return COMPUTES;
	if (2 * l->workers_ns > total_ns)
		return "the training thread waits for the DataLoader's workers: give it more of "
		       "them (num_workers), a larger prefetch_factor, or make its __getitem__ "
		       "and collate_fn cheaper";
	if (2 * l->files_ns > total_ns)
		return "the DataLoader reads files in the training thread itself: give it "
		       "workers (num_workers), or faster storage";
	if (2 * l->runnable_ns > total_ns)
		return HAS_NO_CPU;
	if (l->most == NULL)
		return advice_without_waits(l);
	if (l->workers_ns > 0)
		return "the DataLoader waits for its workers or for files: give it more workers "
		       "(num_workers), a larger prefetch_factor, faster storage, or make its "
		       "__getitem__ cheaper";
	snprintf(own, 400,
		 "the training thread itself waits in the DataLoader, most for: %s%s%.150s%s, or "
		 "give it workers (num_workers)",
		 l->most, l->place != NULL ? ", longest at " : "", l->place != NULL ? l->place : "",
		 l->place != NULL ? ": shorten that"
				  : ". See what its __getitem__ and collate_fn wait for "
				    "(--wait-stacks names the line)");
	return own;
}

static void find_loader(const struct xsp_rule_context *c, const struct loader *l,
			struct xsp_rule_part part)
{
	const struct xsp_call_site *sum = &l->sum.site;
	char title[200], advice[400], doubt[XSP_DOUBT_SIZE];

	snprintf(title, sizeof(title), "getting data from the DataLoader takes %.1f %% of %s",
		 100 * part.share, part.of);
	struct xsp_report_section *f = xsp_rule_found(
		c,
		(struct xsp_report_finding){
			.subject = l->name,
			.title = title,
			.advice = loader_advice(l, advice),
			.uncertain = xsp_rule_doubt(
				c, XSP_DOUBT_SITES | XSP_DOUBT_LOST | XSP_DOUBT_WINDOWS, doubt),
			.share = part.share,
			.from_ns = sum->longest_start_ns,
			.to_ns = sum->longest_start_ns + sum->longest_ns},
		true);
	xsp_report_value(f, "total_ns", "in all", XSP_UNIT_NS, xsp_cell_integer(sum->total_ns));
	xsp_report_value(f, "calls", "batches", XSP_UNIT_COUNT, xsp_cell_integer(sum->calls));
	xsp_report_value(f, "cpu_ns", "of it on CPU", XSP_UNIT_NS,
			 l->cpu_known ? xsp_cell_integer(l->cpu_ns) : xsp_cell_text(NULL));
	xsp_report_value(f, "max_ns", "longest", XSP_UNIT_NS, xsp_cell_integer(sum->longest_ns));
	if (!l->waits_known)
		return;
	xsp_report_value(f, "workers_ns", "of it waiting for its workers", XSP_UNIT_NS,
			 xsp_cell_integer(l->workers_ns));
	xsp_report_value(f, "files_ns", "of it waiting for files", XSP_UNIT_NS,
			 xsp_cell_integer(l->files_ns));
	xsp_report_value(f, "runnable_ns", "of it without a CPU", XSP_UNIT_NS,
			 xsp_cell_integer(l->runnable_ns));
	if (l->place != NULL)
		xsp_report_value(f, "place", "longest at", XSP_UNIT_TEXT, xsp_cell_text(l->place));
}

int xsp_rule_loader(const struct xsp_rule_context *c)
{
	struct loader loader;
	int rc = loader_of(c, &loader);

	if (rc < 0 || loader.sum.site.calls == 0)
		return rc < 0 ? rc : XSP_RULE_NO_DATA;
	const struct xsp_rule_part part =
		xsp_rule_part(c, loader.sum.site.total_ns, loader.sum.in_steps_ns);
	if (part.share > 0 && part.share >= c->threshold)
		find_loader(c, &loader, part);
	return 0;
}

/* ---- slow first steps ---- */

/* Every program warms up: it is said, and never more than that. */
int xsp_rule_warm_up(const struct xsp_rule_context *c)
{
	const struct xsp_steps_figures s = c->steps;
	char title[240], time[XSP_UNITS_SIZE], median[XSP_UNITS_SIZE], doubt[XSP_DOUBT_SIZE];

	if (s.steps == 0)
		return XSP_RULE_NO_DATA;
	const uint64_t usual = s.warm_up * s.median_ns;
	const uint64_t lost = s.warm_up_ns > usual ? s.warm_up_ns - usual : 0;
	const double share = xsp_rule_share(lost, c->time_ns); /* several threads have some each */
	if (lost == 0 || share < c->threshold)
		return 0;
	snprintf(title, sizeof(title),
		 "first steps (%" PRIu64 ") took %s longer than as many later ones (median %s): "
		 "%.1f %% of %s",
		 s.warm_up, xsp_format_ns(time, lost), xsp_format_ns(median, s.median_ns),
		 100 * share, c->time_of);
	struct xsp_report_section *f = xsp_rule_found(
		c,
		(struct xsp_report_finding){
			.severity = XSP_SEVERITY_LOW,
			.title = title,
			.advice =
				"they are in no figure of steps, and in those of operations: "
				"--from step:N leaves them out there too. If they matter: compile, "
				"allocate and load ahead",
			.uncertain = xsp_rule_doubt(c, XSP_DOUBT_LOST | XSP_DOUBT_WINDOWS, doubt),
			.share = share,
			.from_ns = s.warm_up_from_ns,
			.to_ns = s.warm_up_to_ns},
		false);
	xsp_report_value(f, "steps", "first steps", XSP_UNIT_COUNT, xsp_cell_integer(s.warm_up));
	xsp_report_value(f, "total_ns", "which took", XSP_UNIT_NS, xsp_cell_integer(s.warm_up_ns));
	xsp_report_value(f, "p50_ns", "the later ones' median", XSP_UNIT_NS,
			 xsp_cell_integer(s.median_ns));
	return 0;
}

/* ---- the recording itself ---- */

int xsp_rule_overhead(const struct xsp_rule_context *c)
{
	const struct xsp_summary_analysis *a = summary_of(c);
	const uint64_t cost = xsp_capture_stats(c->reader)->probes_cost_ns;
	const struct xsp_summary_row *rows, *most = NULL;
	const size_t count = xsp_summary_rows(a->summary, &rows);
	char title[240], advice[640], time[XSP_UNITS_SIZE], calls[XSP_UNITS_SIZE];
	uint64_t start, end;

	/* sites cost on their way in and out, too: between windows of --max-overhead */
	xsp_timeline_window(c->timeline, &start, &end);
	const bool between = end - start > c->time_ns;
	const double share = xsp_rule_share(cost, between ? end - start : c->time_ns);

	if (cost == 0 || xsp_timeline_cut_text(c->timeline) != NULL)
		return XSP_RULE_NO_DATA;
	if (share < c->threshold)
		return 0;
	for (size_t i = 0; i < count; i++)
		if (most == NULL || rows[i].calls > most->calls)
			most = &rows[i];
	snprintf(title, sizeof(title),
		 "the recording itself takes %.1f %% of %s: %s in probes, estimated", 100 * share,
		 between ? "the whole time" : c->time_of, xsp_format_ns(time, cost));
	snprintf(advice, sizeof(advice),
		 "record less: most calls are those of %.300s (%s), which -e '!...' leaves out; or "
		 "keep it small with --max-overhead. Own times here are without the probes",
		 most != NULL ? xsp_summary_text(a->summary, most) : "no name",
		 xsp_format_count(calls, most != NULL ? most->calls : 0));
	struct xsp_report_section *f = xsp_rule_found(
		c, (struct xsp_report_finding){.title = title, .advice = advice, .share = share},
		true);
	xsp_report_value(f, "probes_ns", "in probes", XSP_UNIT_NS, xsp_cell_integer(cost));
	return 0;
}
