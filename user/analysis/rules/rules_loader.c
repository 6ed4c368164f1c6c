/* SPDX-License-Identifier: BSD-2-Clause */
/* rules_loader.c - steps that wait for PyTorch's DataLoader: either its workers are too slow, or
 * it has none. */
#include "analysis/rules/rules_private.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/calls/call_sites.h"
#include "analysis/calls/loader.h"
#include "catalog/wait_reasons.h"

/* All DataLoader ranges. A process has one name for them, by the loader's class. */
struct loader {
	struct xsp_call_place sum;
	const char *name; /* the name that takes the most time */
	uint64_t cpu_ns;
	bool cpu_known;
	bool waits_known; /* from --waits; else these are 0 */
	uint64_t workers_ns, files_ns; /* waits for workers and for files */
	uint64_t runnable_ns; /* runnable without a CPU */
	const char *most; /* its longest kind of wait; NULL: it did not wait */
	const char *place; /* where it waited longest; NULL: not known */
	uint64_t anew; /* processes started during the recording */
};

static const uint8_t of_workers[] = {XSP_WAIT_LOCK, XSP_WAIT_POLL, XSP_WAIT_PIPE, XSP_WAIT_NETWORK};

/* Workers send their batches through pipes and queues, which the loader polls with a timeout.
 * With pin_memory a thread of its own receives them first. */
static void add_waits(const struct xsp_loader *of, struct loader *l)
{
	static const uint8_t of_files[] = {XSP_WAIT_FILE, XSP_WAIT_DISK, XSP_WAIT_FAULT};
	const uint64_t *waits = of->waits;

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
	const size_t row_count = xsp_summary_rows(xsp_rule_summary(c), &rows);
	size_t count;
	struct xsp_call_place *places = xsp_call_sites_places(sites, 1U << XSP_SITE_LOADER, &count);
	const struct xsp_loader *of = xsp_call_sites_loader(sites);
	const uint32_t place = xsp_loader_longest_at(of);

	*l = (struct loader){.cpu_known = true,
			     .waits_known = xsp_timeline_has_waits(c->timeline),
			     .runnable_ns = of->runnable_ns};
	add_waits(of, l);
	if (place != 0)
		l->place = xsp_timeline_name(c->timeline, place - 1);
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

/* Spans may have been recorded for a part of the time only. */
#define RECORDED_LEAST 4U

bool xsp_rule_is_of_loader(const struct xsp_rule_context *c, unsigned why, int64_t ns)
{
	struct loader l = {0};
	bool of_worker = false;

	for (size_t i = 0; i < sizeof(of_workers); i++)
		of_worker = of_worker || of_workers[i] == why;
	if (of_worker)
		add_waits(xsp_call_sites_loader(xsp_rule_state(c, "call_sites")), &l);
	return l.workers_ns > 0 && (int64_t)(RECORDED_LEAST * l.workers_ns) >= ns;
}

#define COMPUTES                                                                                   \
	"the DataLoader computes in the training thread itself: give it workers (num_workers), "   \
	"or make its __getitem__ and collate_fn cheaper"
#define HAS_NO_CPU                                                                                 \
	"the training thread could run in the DataLoader but had no CPU: run fewer threads and "   \
	"processes beside it (num_workers, torch.set_num_threads, other programs), or give it "    \
	"more CPUs"

/* No wait of a known kind was seen. */
static const char *advice_without_waits(const struct loader *l)
{
	const uint64_t known_ns = l->cpu_ns + l->runnable_ns, total_ns = l->sum.site.total_ns;
	const uint64_t rest_ns = total_ns > known_ns ? total_ns - known_ns : 0;

	if (!l->waits_known)
		return "give the DataLoader (more) workers (num_workers), persistent_workers and prefetch_factor, or make its __getitem__ and collate_fn cheaper; --waits "
		       "shows whether it waits or computes";
	if (!l->cpu_known)
		return "give the DataLoader (more) workers (num_workers), or make its __getitem__ and collate_fn cheaper: no wait was seen in it, and for how long it had a CPU is not known";
	if (l->runnable_ns >= l->cpu_ns && l->runnable_ns >= rest_ns)
		return HAS_NO_CPU;
	if (l->cpu_ns >= rest_ns)
		return COMPUTES;
	return "give the DataLoader (more) workers (num_workers), or make its __getitem__ and collate_fn cheaper: what it waits for is not told, as each wait is shorter than those of --waits=LEAST";
}

#define ANEW_LEAST 3U

/* So many processes did a process start during the recording, at most. */
static uint64_t started_anew(const struct xsp_rule_context *c)
{
	const struct xsp_capture_process *processes;
	const size_t count = xsp_capture_processes(c->reader, &processes);
	const struct xsp_thread_times *t;
	const size_t threads = xsp_timeline_times(c->timeline, &t);
	uint64_t most = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t started = 0;
		for (size_t k = 0; k < threads; k++) {
			const struct xsp_capture_process *p =
				t[k].thread->tid == t[k].thread->pid && t[k].since_ns > c->start_ns
					? xsp_capture_process_of(c->reader, t[k].thread->pid)
					: NULL;
			started += p != NULL && p->parent == processes[i].pid && p->parent != 0;
		}
		most = started > most ? started : most;
	}
	return most;
}

/* A loader that waits has slow workers; one that computes has none. */
static const char *advice_of(const struct loader *l)
{
	const uint64_t total_ns = l->sum.site.total_ns;

	if (2 * l->workers_ns > total_ns && l->anew >= ANEW_LEAST)
		return "its workers were started anew {anew:d} times during the recording: keep them from epoch to epoch (persistent_workers=True), or make epochs longer; each new one opens and reads the data set again";
	if (l->cpu_known && 2 * l->cpu_ns > total_ns)
		return COMPUTES;
	if (2 * l->workers_ns > total_ns)
		return "the training thread waits for the DataLoader's workers: give it more of them (num_workers), a larger prefetch_factor, or make its __getitem__ and collate_fn cheaper";
	if (2 * l->files_ns > total_ns)
		return "the DataLoader reads files in the training thread itself: give it workers (num_workers), or faster storage";
	if (2 * l->runnable_ns > total_ns)
		return HAS_NO_CPU;
	if (l->most == NULL)
		return advice_without_waits(l);
	if (l->workers_ns > 0)
		return "the DataLoader waits for its workers or for files: give it more workers (num_workers), a larger prefetch_factor, faster storage, or make its __getitem__ cheaper";
	return "the training thread itself waits in the DataLoader, most for: {most}[, longest at {place:150}: shorten that][!place|. See what its __getitem__ and collate_fn wait for "
	       "(--wait-stacks names the line)], or give it workers (num_workers)";
}

#define STARVES                                                                                    \
	0.4 /* of the time; a loader with less may be one that has no more to give, and is a note */

int xsp_rule_loader(const struct xsp_rule_context *c)
{
	struct loader l;
	int rc = loader_of(c, &l);
	const struct xsp_call_site *sum = &l.sum.site;

	if (rc < 0 || sum->calls == 0)
		return rc < 0 ? rc : XSP_RULE_NO_DATA;
	l.anew = started_anew(c);
	struct xsp_rule_finding f = {.subject = l.name,
				     .part = xsp_rule_part(c, sum->total_ns, l.sum.in_steps_ns),
				     .advice = advice_of(&l),
				     .at_ns = sum->longest_start_ns,
				     .for_ns = sum->longest_ns};
	const bool waits = l.waits_known;

	/* others have the CPUs: its workers would have none */
	f.sure = f.part.share *
		 (1 - xsp_rule_share(l.runnable_ns < sum->total_ns ? l.runnable_ns : sum->total_ns,
				     sum->total_ns));
	f.note = f.sure < STARVES;
	xsp_finding_ns(&f, "total_ns", "in all", sum->total_ns);
	xsp_finding_count(&f, "calls", "batches", sum->calls);
	xsp_finding_figure(&f, "cpu_ns", "of it on CPU", XSP_UNIT_NS,
			   xsp_cell_if(l.cpu_known, l.cpu_ns));
	xsp_finding_ns(&f, "max_ns", "longest", sum->longest_ns);
	xsp_finding_ns(&f, "workers_ns", waits ? "of it waiting for its workers" : NULL,
		       l.workers_ns);
	xsp_finding_ns(&f, "files_ns", waits ? "of it waiting for files" : NULL, l.files_ns);
	xsp_finding_ns(&f, "runnable_ns", waits ? "of it without a CPU" : NULL, l.runnable_ns);
	xsp_finding_text(&f, "place", waits ? "longest at" : NULL, l.place);
	xsp_finding_text(&f, "most", NULL, l.most);
	xsp_finding_count(&f, "anew", l.anew > 0 ? "processes started" : NULL, l.anew);
	if (f.part.share > 0 && f.part.share >= c->threshold)
		xsp_rule_found(c, &f);
	return 0;
}
