/* SPDX-License-Identifier: BSD-2-Clause */
/* steps_private.h - what collecting and printing share. */
#ifndef XSP_ANALYSIS_STEPS_PRIVATE_H
#define XSP_ANALYSIS_STEPS_PRIVATE_H

#include "analysis/memory/growth.h"
#include "analysis/names/histogram.h"
#include "analysis/names/steps.h"
#include "analysis/names/steps_guess.h"
#include "base/u64map.h"

#define XSP_STEPS_FIRST 10U /* of a thread, among which warm-up is looked for */
#define XSP_STEPS_SLOWEST 5U

/* How a name marks steps. */
enum mark { MARK_NONE, MARK_IS, MARK_ENDS, MARKS };

struct step {
	uint64_t number, start_ns, end_ns, probe_ns;
	uint32_t track;
	bool warm_up;
	uint64_t calls;
	struct xsp_step_share *shares; /* owned */
	size_t share_count;
};
static inline uint64_t step_length(const struct step *step)
{
	return step->end_ns - step->start_ns;
}

/* Calls of one name on a thread. */
struct entry {
	struct xsp_step_share now; /* in the step at hand */
	uint64_t calls, self_ns; /* in all steps that count */
};

/* The steps of a thread. */
struct track {
	uint32_t pid, tid;
	enum mark mark;
	xsp_name_id name; /* MARK_ENDS: of the marker that was first */
	uint32_t index;
	bool begun; /* MARK_ENDS: the step at hand has a beginning */
	uint64_t begin_ns, markers;
	uint32_t depth; /* of the last marker */
	uint64_t
		probe_ns; /* in the step at hand, of what its markers are beside; of MARK_IS the span tells */
	struct entry *entries;
	size_t entry_count, entry_capacity;
	struct xsp_u64map entry_of;
	uint32_t *touched; /* entries with calls in the step at hand */
	size_t touched_count, touched_capacity;
	struct xsp_histogram all; /* its steps, warm-up as well */
	struct step first[XSP_STEPS_FIRST];
	size_t first_count;
	uint64_t steps, calls, sum_ns, max_ns; /* of those that count */
};

/* Figures of one way of marking. */
struct figures {
	struct xsp_histogram times;
	struct xsp_growth_steps over_time; /* warm-up as well */
	struct xsp_u64map processes; /* that had them, by pid */
	uint64_t whole; /* steps, warm-up as well */
	uint64_t steps, calls, sum_ns, min_ns, max_ns;
	uint64_t probe_ns; /* of sum_ns */
	double mean, squares; /* Welford's */
	uint64_t not_whole; /* begun or ended where it was not recorded */
	uint64_t left_out; /* of more threads than are followed */
	char title[80]; /* the first marker: "ProfilerStep#*" */
	struct step slowest[XSP_STEPS_SLOWEST];
	size_t slowest_count;
};

struct xsp_steps {
	struct xsp_timeline *timeline;
	const char *marker; /* --step, or NULL */
	const struct xsp_steps_guess *guess; /* where nothing marks them, or NULL */
	uint8_t *marks; /* by name id */
	size_t mark_count, mark_capacity;
	size_t names_that[MARKS];
	struct track **tracks;
	size_t track_count, track_capacity;
	struct xsp_u64map track_of; /* thread and way of marking → index */
	struct track *last[MARKS];
	struct figures figures[MARKS];
	bool ended;
	int (*each)(void *ctx, const struct xsp_step *step); /* or NULL */
	void *each_ctx;
	int (*ended_fn)(void *ctx, const struct xsp_step *step, bool first,
			bool by_ends); /* or NULL */
	void *ended_ctx;
	uint64_t want_first, want_last, want_start_ns, want_end_ns, least, most;
};

enum mark xsp_steps_how(const struct xsp_steps *s);

/* What took more in a step than it does in the mean. */
struct longer {
	struct xsp_step_share share; /* name NO_SPAN: all that is in no span */
	double mean_ns, mean_calls;
};
#define NO_SPAN UINT32_MAX
#define LONGER_SHOWN 3
/* The most first; how many there are. */
size_t xsp_steps_longer(const struct xsp_steps *s, const struct step *step,
			struct longer list[LONGER_SHOWN]);
/* Is so much of their time that of probes that it is to be said? */
bool xsp_steps_have_probes(const struct figures *f);
double xsp_steps_deviation(const struct figures *f);
uint64_t xsp_steps_quantile(const struct figures *f, double share);
/* "python (4242)" */
void xsp_steps_thread(const struct xsp_steps *s, const struct track *k, char *out, size_t size);

#endif
