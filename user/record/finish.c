/* SPDX-License-Identifier: BSD-2-Clause */
/* finish.c - the end of a recording, and its counters: removes probes, empties rings, and reports what was missed. */
#include "record/recorder_private.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "attach/planner.h"
#include "base/clock.h"
#include "record/rings/rings.h"
#include "target/perf_map.h"

#define FRAMES_LAST_NS 3000000000ULL /* naming addresses at the end takes at most so long */

/* With the final factors also of the hits that came before these were known. Agents' records are no hits. */
static uint64_t probes_cost_ns(const struct xsp_recorder *r)
{
	const struct xsp_drain_totals *t = xsp_drain_totals(r->drain);
	struct xsp_capture_prices p;

	xsp_recorder_measured_prices(r, false, &p);
	return (uint64_t)(p.of[0].factor * (double)t->parts[0].counted_ns +
			  p.of[1].factor * (double)t->parts[1].counted_ns) +
	       t->agents_ns;
}

int xsp_recorder_put_stats(struct xsp_recorder *r)
{
	struct xsp_attach_counters c;
	struct rusage usage = {0};
	int rc = xsp_broker_counters(r->broker, true, &c);

	if (rc < 0)
		return rc;
	xsp_recorder_update_price(r, &c);
	if (r->pythons != NULL)
		xsp_pythons_count_torn(r->pythons, c.python_torn + xsp_operators_torn(r));
	if (c.stacks_torn > r->gaps[XSP_GAP_STACKS].count)
		xsp_recorder_gap(r, XSP_GAP_STACKS, c.stacks_torn - r->gaps[XSP_GAP_STACKS].count,
				 "as their memory was not there");
	if (c.heap_unseen > r->gaps[XSP_GAP_ALLOCATIONS].count)
		xsp_recorder_gap(
			r, XSP_GAP_ALLOCATIONS, c.heap_unseen - r->gaps[XSP_GAP_ALLOCATIONS].count,
			"of the sample, as their calls ended in a jump to code that is not known");
	getrusage(RUSAGE_SELF, &usage);
	double silent = r->overheads != NULL
				? (double)(xsp_overhead_unseen_ns(r) + c.unseen_ns)
				: (double)c.silent_hits * r->plan.costs.ns[XSP_SITE_EMULATED];
	struct xsp_capture_stats s = {
		.events = xsp_drain_totals(r->drain)->events,
		.lost_entries = c.lost_entries,
		.lost_exits = c.lost_exits,
		.lost_other = c.lost_other,
		.lost_names = c.lost_names + r->unread_names,
		.filtered = c.filtered,
		.silent_hits = c.silent_hits,
		.missed_hits = c.missed,
		.untracked = c.untracked,
		.probes_cost_ns = probes_cost_ns(r) + (uint64_t)silent,
		.recorder_cpu_ns =
			((uint64_t)usage.ru_utime.tv_sec + (uint64_t)usage.ru_stime.tv_sec) *
				1000000000ULL +
			((uint64_t)usage.ru_utime.tv_usec + (uint64_t)usage.ru_stime.tv_usec) *
				1000ULL,
	};
	xsp_operators_count(r, &s);
	return xsp_capture_put_stats(r->writer, &s);
}

static int put_losses(struct xsp_recorder *r)
{
	struct xsp_attach_counters c;
	int rc = xsp_broker_counters(r->broker, false, &c);

	if (rc < 0 || c.lost_entries + c.lost_exits == 0)
		return rc;
	for (uint32_t probe = 0; probe < r->plan.probes && rc == 0; probe++) {
		struct xsp_capture_lost l = {.probe = probe};
		if (xsp_broker_lost(r->broker, probe, &l.entries, &l.exits) == 0 &&
		    l.entries + l.exits > 0)
			rc = xsp_capture_put_lost(r->writer, &l);
	}
	return rc;
}

static int drain_all(struct xsp_recorder *r)
{
	long moved;

	do
		moved = xsp_drain_run(r->drain, SIZE_MAX);
	while (moved > 0);
	return (int)moved;
}

/* The agents hand over their records while the probe that takes them is still there. */
static int stop_agents(struct xsp_recorder *r)
{
	uint64_t asked = xsp_now_ns();
	int rc = 0;

	xsp_broker_gpu_stop(r->broker);
	while (rc == 0 && !xsp_recorder_agents_stopped(r, xsp_now_ns() - asked)) {
		poll(NULL, 0, 5);
		rc = drain_all(r);
	}
	return rc;
}

/* What the kernel side has counted that is not in the stats. */
static int put_counted(struct xsp_recorder *r)
{
	struct xsp_attach_counters c;
	char text[64];
	int rc = xsp_broker_counters(r->broker, false, &c);

	if (rc == 0 && r->options.attach.sample_hz > 0 && r->frames != NULL) {
		snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64, c.samples, c.samples_ns);
		rc = xsp_capture_put_info(r->writer, "sample costs", text);
	}
	struct xsp_capture_prices prices;
	if (rc == 0 && xsp_recorder_measured_prices(r, true, &prices))
		rc = xsp_capture_put_prices(r->writer, &prices);
	if (rc == 0 && c.lost_gpu_records > 0)
		rc = xsp_capture_put_number(r->writer, "gpu records lost", c.lost_gpu_records);
	return rc;
}

void xsp_recorder_end(struct xsp_recorder *r)
{
	if (r->ended)
		return;
	r->ended = true;
	xsp_planner_on_wait(r->planner, NULL, NULL);
	xsp_broker_activate(r->broker, false);
	xsp_recorder_measure(r, true); /* the finish reports write errors */
	r->end_ns = xsp_now_ns();
	if (r->agents != NULL)
		xsp_agent_rings_stop(r->agents, r->end_ns);
}

static int put_pythons(struct xsp_recorder *r)
{
	return r->pythons != NULL ? xsp_pythons_put_info(r->pythons) : 0;
}

/* What debug information was not asked about. */
static void note_unread(struct xsp_recorder *r)
{
	static const char result[] =
		"functions that the compiler inlined there stand as their callers";
	size_t others;

	if (r->sources == NULL)
		return;
	const char *large = xsp_sources_too_large(r->sources, &others);
	if (large != NULL && others > 0)
		xsp_recorder_note(
			r, "%s and %zu other files have more debug information than is read: %s",
			large, others, result);
	else if (large != NULL)
		xsp_recorder_note(r, "%s has more debug information than is read: %s", large,
				  result);
	if (xsp_sources_missed(r->sources) > 0)
		xsp_recorder_note(
			r,
			"there was no time to look up %zu addresses of stacks in debug information: %s",
			xsp_sources_missed(r->sources), result);
}

/* What found no room or no time. */
static void note_unnamed(struct xsp_recorder *r)
{
	struct xsp_resolver_left left = {.maps = false};

	if (r->resolver != NULL)
		left = xsp_resolver_left(r->resolver);
	if (r->frames != NULL && left.maps)
		xsp_recorder_note(
			r,
			"perf maps of the target were not read to their end: at most %zu MiB are; code that is named further on is [generated code]",
			XSP_PERF_MAP_BYTES >> 20);
	if (r->frames != NULL && left.processes)
		xsp_recorder_note(
			r,
			"perf maps of more than %u processes: those of the others were not read; what they name is [generated code]",
			XSP_RESOLVER_MAPS);
	if (left.tables)
		xsp_recorder_note(
			r,
			"symbols and unwind tables of the target's files would take more than %llu MiB, or too many descriptors: those beyond were not "
			"read; their functions are called FILE+0xADDRESS, and stacks may end there",
			XSP_RESOLVER_TABLES_BYTES >> 20);
	if (left.mappings)
		xsp_recorder_note(
			r,
			"the target mapped more than %u libraries: those that came later were not remembered; their functions have no names, and stacks may end there",
			XSP_RESOLVER_MAPPINGS);
	if (r->frames != NULL && xsp_frames_left(r->frames))
		xsp_recorder_note(
			r,
			"stacks hold more than %u different addresses: those that came later have no names",
			XSP_FRAMES_MAX);
	if (r->frames != NULL && xsp_frames_unnamed(r->frames) > 0)
		xsp_recorder_note(
			r,
			"%zu addresses in stacks have no names: at the end these are looked up for %llu s at most",
			xsp_frames_unnamed(r->frames), FRAMES_LAST_NS / 1000000000);
}

/* While its programs are still there. */
static int put_kernel_functions(struct xsp_recorder *r)
{
	return r->options.attach.sample_hz > 0 || r->options.attach.wait_stacks
		       ? xsp_recorder_put_kernel_functions(r)
		       : 0;
}

static int put_all(struct xsp_recorder *r)
{
	static int (*const all[])(struct xsp_recorder * r) = {
		xsp_overhead_finish,
		xsp_recorder_put_stats,
		put_counted,
		xsp_recorder_put_cpu_limit,
		xsp_call_sites_put_info,
		xsp_children_put_infos,
		put_pythons,
		xsp_recorder_put_late,
		xsp_recorder_put_changed,
		xsp_operators_put_info,
		xsp_recorder_put_gaps,
	};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < sizeof(all) / sizeof(all[0]); i++)
		rc = all[i](r);
	return rc < 0 ? rc : xsp_capture_put_clock(r->writer);
}

int xsp_recorder_put_so_far(struct xsp_recorder *r)
{
	int rc = put_kernel_functions(r);

	r->muted = true;
	if (rc == 0)
		rc = put_all(r);
	r->muted = false;
	return rc;
}

/* A flight recorder still has to write its last snapshot. */
static int complete(struct xsp_recorder *r, struct xsp_error *err)
{
	struct xsp_capture_writer *w = r->writer;

	if (r->flight != NULL)
		return 0;
	r->writer = NULL;
	return xsp_capture_finish(w, r->part_ns, r->end_ns, err);
}

int xsp_recorder_finish(struct xsp_recorder *r, struct xsp_error *err)
{
	if (r->finished)
		return 0;
	r->finished = true;
	xsp_recorder_end(r);
	xsp_recorder_look_for_dropped(r);
	int rc = xsp_overhead_stop(r);
	if (rc == 0)
		rc = drain_all(r);
	if (rc == 0)
		rc = stop_agents(r);
	if (rc == 0)
		rc = put_kernel_functions(r);
	uint64_t start = xsp_now_ns();
	xsp_broker_detach(r->broker); /* waits until no program runs any more */
	r->times.detach_ms = (double)(xsp_now_ns() - start) * 1e-6;
	if (rc == 0)
		rc = drain_all(r);
	if (rc == 0 && r->frames != NULL)
		rc = xsp_frames_resolve(r->frames, FRAMES_LAST_NS, true);
	if (rc == 0 && r->frames != NULL)
		rc = xsp_sources_finish(r->sources, r->planner);
	note_unnamed(r);
	note_unread(r);
	if (rc == 0 && xsp_overhead_is_on(r))
		rc = xsp_recorder_put_held_back(r);
	if (rc == 0)
		rc = put_losses(r);
	if (rc == 0)
		rc = put_all(r);
	const int end = complete(r, err);
	if (rc < 0 && xsp_broker_is_gone(r->broker))
		return xsp_broker_gone(r->broker, err);
	if (rc < 0)
		return xsp_error_set(err, rc, XSP_STATUS_OUTPUT,
				     "%s is not complete (%s): what is in it can be read",
				     xsp_recorder_display_path(r), strerror(-rc));
	return end;
}
