/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/window_shares.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analysis/compare/statistics.h"
#include "base/rows/search.h"
#include "base/rows/tally.h"
#include "capture/capture.h"
#include "timeline/waits.h"
#include "timeline/windows.h"

/* So much may lie between a window's end and the last event in it. */
#define EDGE_NS 1000U
/* The price of a hit may be wrong by that part, where it was not measured in the target. */
#define PRICE_ERROR 0.3
#define WINDOWS_LEAST 3U
/* Fewer calls may all have come by chance. */
#define FEW_CALLS 10U

struct xsp_window_shares {
	const struct xsp_timeline *timeline;
	const struct xsp_capture_window *windows;
	const struct xsp_capture_probe *probes;
	size_t window_count, probe_count;
	uint8_t *group_of; /* 1 + a window's group; 0: it is too short */
	size_t used;
	double price_error;
	double threads_in_probes, stretch; /* 0: not added up yet */
	unsigned groups;
	double length_ns[XSP_SHARE_GROUPS], probe_ns[XSP_SHARE_GROUPS];
	XSP_TALLY(double) threads; /* time in probes of each */
};

static uint64_t length_of(const struct xsp_capture_window *w)
{
	return w->end_ns - w->start_ns;
}

static XSP_ORDER(by_length, uint64_t, XSP_COMPARE(*x, *y));

/* Windows get longer until the longest calls fit in. Those from before, and one that the recording's end has cut, are
 * left out: what is shorter than half of the median. The brake's first one is the recording's beginning, and was over when
 * the target was over its budget: no sample of the rest. */
static int choose_windows(struct xsp_window_shares *s, bool scheduled)
{
	const size_t first = scheduled ? 0 : 1;
	uint64_t *lengths = calloc(s->window_count, sizeof(*lengths));

	if (lengths == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < s->window_count; i++)
		lengths[i] = length_of(&s->windows[i]);
	XSP_SORT(lengths, s->window_count, by_length);
	const uint64_t least = lengths[s->window_count / 2] / 2;
	free(lengths);
	for (size_t i = first; i < s->window_count; i++) {
		if (length_of(&s->windows[i]) < least)
			continue;
		const size_t group = s->used++ % XSP_SHARE_GROUPS;
		s->group_of[i] = (uint8_t)(1 + group);
		s->length_ns[group] += (double)length_of(&s->windows[i]);
	}
	s->groups = s->used < XSP_SHARE_GROUPS ? (unsigned)s->used : XSP_SHARE_GROUPS;
	return 0;
}

int xsp_window_shares_new(const struct xsp_timeline *t, struct xsp_window_shares **out)
{
	const struct xsp_capture_reader *r = xsp_timeline_reader(t);
	const struct xsp_capture_window *windows;
	const size_t count = xsp_capture_windows(r, &windows);

	*out = NULL;
	if (count < WINDOWS_LEAST || xsp_timeline_cut_text(t) != NULL)
		return 0;
	struct xsp_window_shares *s = calloc(1, sizeof(*s));
	if (s == NULL || (s->group_of = calloc(count, 1)) == NULL) {
		free(s);
		return -ENOMEM;
	}
	s->timeline = t;
	s->windows = windows;
	s->window_count = count;
	s->probe_count = xsp_capture_probes(r, &s->probes);
	struct xsp_capture_prices prices;
	s->price_error = xsp_capture_prices(r, &prices) ? prices.error : PRICE_ERROR;
	const int rc = choose_windows(s, xsp_capture_schedule(r) != NULL);
	if (rc == 0 && s->used >= WINDOWS_LEAST)
		*out = s;
	else
		xsp_window_shares_free(s);
	return rc;
}

void xsp_window_shares_free(struct xsp_window_shares *s)
{
	if (s == NULL)
		return;
	xsp_tally_free(&s->threads);
	free(s->group_of);
	free(s);
}

/* The probes of a thread's outermost calls, and of what is in them: also of what is in a call that was cut at the window's
 * beginning. */
static int add_probes(struct xsp_window_shares *s, size_t group, const struct xsp_span *span)
{
	double *thread =
		xsp_tally_row(&s->threads, xsp_u64_pair(span->pid, span->tid), &(double){0});
	const double entry_ns =
		span->probe < s->probe_count ? s->probes[span->probe].entry_cost_ns : 0;
	const double ns = (double)span->probe_ns + entry_ns;

	if (thread == NULL)
		return -ENOMEM;
	*thread += ns;
	s->probe_ns[group] += ns;
	return 0;
}

static bool is_outermost(const struct xsp_span *span)
{
	for (uint32_t i = 0; i < span->depth; i++)
		if (span->ancestors[i] == span->name)
			return false;
	return true;
}

int xsp_window_shares_add(struct xsp_window_shares *s, struct xsp_share_sums **sums,
			  const struct xsp_span *span)
{
	size_t w = 0;

	if (s == NULL)
		return 0;
	XSP_LOWER_BOUND(w, s->window_count, i, s->windows[i].end_ns < span->start_ns);
	if (w == s->window_count || s->group_of[w] == 0 || span->start_ns < s->windows[w].start_ns)
		return 0;
	const size_t group = s->group_of[w] - 1U;
	const bool cut = (span->flags & XSP_SPAN_UNFINISHED) &&
			 span->end_ns + EDGE_NS >= s->windows[w].end_ns;
	if (span->depth == 0 && span->row == 0 && add_probes(s, group, span) < 0)
		return -ENOMEM;
	if (cut ? !is_outermost(span) : !span->in_total || !xsp_span_has_duration(span))
		return 0;
	if (*sums == NULL && (*sums = calloc(1, sizeof(**sums))) == NULL)
		return -ENOMEM;
	const uint64_t all_ns = cut ? span->end_ns - span->start_ns : span->total_ns;
	const double ns = all_ns > span->probe_ns ? (double)(all_ns - span->probe_ns) : 0;
	const double part = cut ? 2 * ns : ns;
	(*sums)->ns[group] += part;
	(*sums)->probes_ns[group] += (cut ? 2 : 1) * ((double)all_ns - ns);
	(*sums)->squares += part * part;
	(*sums)->calls++;
	(*sums)->whole += !cut;
	(*sums)->whole_squares += cut ? 0 : ns * ns;
	return 0;
}

/* How many threads have had the probes: few threads that have nearly all of them count alone. */
static double threads_of(const struct xsp_window_shares *s)
{
	double sum = 0, squares = 0;

	for (size_t i = 0; i < s->threads.count; i++) {
		sum += s->threads.rows[i];
		squares += s->threads.rows[i] * s->threads.rows[i];
	}
	return squares > 0 ? sum * sum / squares : 1;
}

/* The variance of the share by its spread over the windows, with Student's factor. */
static double by_groups(const struct xsp_window_shares *s, const struct xsp_share_sums *sums,
			const double *time_ns, double all_ns, double share)
{
	const double groups = s->groups, t = xsp_student_t(0.025, groups - 1);
	double squares = 0;

	for (unsigned i = 0; i < s->groups; i++) {
		const double off = (sums->ns[i] - share * time_ns[i]) / all_ns;
		squares += off * off;
	}
	return t * t * squares * groups / (groups - 1);
}

/* ... at least, by what is not seen at the edges, and by chance where few calls were seen. */
static double at_least(const struct xsp_window_shares *s, const struct xsp_share_sums *sums,
		       double all_ns, double share)
{
	const double length2 = sums->whole_squares / (double)sums->whole;
	const double edge = share * length2 / 3 - share * share * length2 / 4;
	const double edges = edge > 0 ? 2 * (double)s->used * edge : 0;
	const double few = sums->calls < FEW_CALLS ? sums->squares : 0;

	return 4 * (edges > few ? edges : few) / (all_ns * all_ns);
}

/* The variance by the price of hits: half the difference of the shares with a lower and a higher one. */
static double by_price(double error, double ns, double probe_ns, double all_ns, double all_probe_ns)
{
	const double more = error * probe_ns, all_more = error * all_probe_ns;
	const double low = (ns + more) / (all_ns + all_more);
	const double high = fmax(ns - more, 0) / fmax(all_ns - all_more, all_ns / 100);

	return (high - low) * (high - low) / 4;
}

/* Time on a CPU takes so much longer where others have the CPU in between: with the waits after a wait, which are as long
 * without probes, taken out by their number. */
static double stretch_of(const struct xsp_window_shares *s)
{
	const struct xsp_thread_times *times;
	const size_t count = xsp_timeline_times(s->timeline, &times);
	double running = 0, ready = 0;

	for (size_t i = 0; i < count; i++) {
		const struct xsp_timeline_thread *th = times[i].thread;
		uint64_t waits = 0;
		if (th == NULL ||
		    xsp_tally_find(&s->threads, xsp_u64_pair(th->pid, th->tid)) == NULL)
			continue;
		for (unsigned k = 0; k < XSP_WAIT_CLASSES; k++)
			waits += times[i].waits[k];
		running += (double)times[i].running_ns;
		if (waits > 0)
			ready += (double)times[i].runnable_ns *
				 (double)times[i].waits[XSP_WAIT_RUNNABLE] / (double)waits;
	}
	return running > 0 ? 1 + ready / running : 1;
}

bool xsp_window_shares_of(struct xsp_window_shares *s, const struct xsp_share_sums *sums,
			  double *share, double *error)
{
	double time_ns[XSP_SHARE_GROUPS], all_ns = 0, all_probe_ns = 0, ns = 0, probe_ns = 0;

	if (s == NULL || sums == NULL || sums->whole == 0)
		return false;
	if (s->stretch == 0) {
		s->threads_in_probes = threads_of(s);
		s->stretch = stretch_of(s);
	}
	struct xsp_share_sums net = *sums;
	for (unsigned i = 0; i < s->groups; i++) {
		time_ns[i] = s->length_ns[i] - s->stretch * s->probe_ns[i] / s->threads_in_probes;
		net.ns[i] = fmax(net.ns[i] - (s->stretch - 1) * net.probes_ns[i], 0);
		if (time_ns[i] < s->length_ns[i] / 100) /* the estimate may exceed what there was */
			time_ns[i] = s->length_ns[i] / 100;
		all_ns += time_ns[i];
		all_probe_ns += s->length_ns[i] - time_ns[i];
		ns += net.ns[i];
		probe_ns += s->stretch * net.probes_ns[i];
	}
	*share = fmin(ns / all_ns, fmax((double)s->threads.count, 1));
	*error = sqrt(fmax(by_groups(s, &net, time_ns, all_ns, *share),
			   at_least(s, sums, all_ns, *share)) +
		      by_price(s->price_error, ns, probe_ns, all_ns, all_probe_ns));
	*error = fmin(*error, 1);
	return true;
}
