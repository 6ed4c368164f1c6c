/* SPDX-License-Identifier: BSD-2-Clause */
/* series_calls.c - a row's calls in each piece of time, in a few classes of duration. */
#include "analysis/compare/series_calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"

#define CLASSES_LOG2 2 /* classes of duration, per doubling */
#define KEPT_SHARE 0.95 /* of a piece's calls */
#define WAITS_SHARE 0.05 /* of its own time: what waits less computes; of the calls: unknown */

/* Calls of similar duration. */
struct about {
	uint32_t at, calls;
	uint64_t ns, cpu_ns;
};

struct xsp_series_calls {
	struct about *classes; /* by duration */
	size_t count, capacity;
};

static uint32_t about_of(uint64_t ns)
{
	const unsigned log2 = ns > 1 ? 63U - (unsigned)__builtin_clzll(ns) : 0;
	const unsigned shift = log2 > CLASSES_LOG2 ? log2 - CLASSES_LOG2 : 0;

	return (log2 << CLASSES_LOG2) + (uint32_t)((ns >> shift) & ((1U << CLASSES_LOG2) - 1));
}

int xsp_series_calls_add(struct xsp_series_row *row, unsigned piece, uint64_t ns, uint64_t cpu_ns)
{
	struct xsp_series_calls *calls = row->pieces[piece];
	const uint32_t about = about_of(ns);
	size_t i = 0;

	row->timed++;
	row->self_ns += ns;
	row->cpu_unknown += cpu_ns == XSP_CPU_UNKNOWN;
	cpu_ns = cpu_ns == XSP_CPU_UNKNOWN ? ns : cpu_ns;
	row->cpu_ns += cpu_ns;
	if (calls == NULL)
		calls = row->pieces[piece] = calloc(1, sizeof(*calls));
	if (calls == NULL)
		return -ENOMEM;
	while (i < calls->count && calls->classes[i].at < about)
		i++;
	if (i == calls->count || calls->classes[i].at != about) {
		if (xsp_grow(&calls->classes, &calls->capacity, calls->count + 1) < 0)
			return -ENOMEM;
		memmove(&calls->classes[i + 1], &calls->classes[i],
			(calls->count - i) * sizeof(*calls->classes));
		calls->classes[i] = (struct about){.at = about};
		calls->count++;
	}
	calls->classes[i].calls += calls->classes[i].calls < UINT32_MAX;
	calls->classes[i].ns += ns;
	calls->classes[i].cpu_ns += cpu_ns;
	return 0;
}

bool xsp_series_computes(const struct xsp_series_row *row)
{
	const double waited = (double)row->self_ns - (double)row->cpu_ns - (double)row->ready_ns;

	return row->cpu_ns > 0 && (double)row->cpu_unknown <= WAITS_SHARE * (double)row->timed &&
	       waited <= WAITS_SHARE * (double)row->self_ns;
}

bool xsp_series_call(const struct xsp_series_row *row, unsigned piece, bool on_cpu, double *ns)
{
	const struct xsp_series_calls *calls = row->pieces[piece];
	double all = 0, sum = 0, kept = 0;

	if (calls == NULL)
		return false;
	for (size_t i = 0; i < calls->count; i++)
		all += calls->classes[i].calls;
	for (size_t i = 0; i < calls->count && kept < KEPT_SHARE * all; i++) {
		const struct about *c = &calls->classes[i];
		const double room = KEPT_SHARE * all - kept;
		const double part = c->calls < room ? c->calls : room;
		sum += (double)(on_cpu ? c->cpu_ns : c->ns) * part / c->calls;
		kept += part;
	}
	*ns = sum / kept;
	return true;
}

void xsp_series_calls_free(struct xsp_series_row *row)
{
	for (size_t i = 0; i < XSP_SERIES_PIECES; i++) {
		if (row->pieces[i] != NULL)
			free(row->pieces[i]->classes);
		free(row->pieces[i]);
	}
}
