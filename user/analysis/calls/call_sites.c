/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/calls/call_sites_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "catalog/scope.h"
#include "timeline/python.h"

#define MAX_SITES 65536U
#define MAX_STACKS (8 * MAX_SITES) /* beyond this, the lines of a stack are looked up each time */

/* The sums of sites include the step in which lines were released: keeps its calls for
 * subtraction. */
static int cut_off(struct xsp_call_sites *s, const struct xsp_step_share *shares, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (xsp_grow_zeroed(&s->cut, &s->cut_capacity, (size_t)shares[i].key + 1) < 0)
			return -ENOMEM;
		s->cut[shares[i].key].calls += shares[i].calls;
		s->cut[shares[i].key].ns += shares[i].ns;
	}
	return 0;
}

static int on_step(void *ctx, const struct xsp_step *step)
{
	struct xsp_call_sites *s = ctx;
	const struct xsp_step_share *shares;
	size_t count;
	int rc = xsp_step_shares_step(s->in_steps, step, &shares, &count);

	if (step->news == XSP_STEP_FORGET) {
		s->steps_with_lines = s->steps_with_lines_ns = s->steps_with_lines_probe_ns = 0;
		if (s->cut != NULL)
			memset(s->cut, 0, s->cut_capacity * sizeof(*s->cut));
	}
	if (rc < 0 || step->news != XSP_STEP_COUNTS || step->start_ns >= s->lines_until_ns)
		return rc;
	if (step->end_ns > s->lines_until_ns)
		return cut_off(s, shares, count);
	s->steps_with_lines++;
	s->steps_with_lines_ns += step->end_ns - step->start_ns;
	s->steps_with_lines_probe_ns += step->probe_ns;
	return 0;
}

static int begin(struct xsp_timeline *t, struct xsp_capture_reader *r, void **state)
{
	struct xsp_call_sites *s = calloc(1, sizeof(*s));
	int rc = s != NULL ? xsp_step_shares_new(&s->in_steps) : -ENOMEM;

	if (rc < 0) {
		free(s);
		return rc;
	}
	s->timeline = t;
	s->reader = r;
	s->sites.tally.most = MAX_SITES;
	xsp_loader_begin(&s->loader, t);
	xsp_sync_work_begin(&s->sync_work);
	s->lines_until_ns = xsp_timeline_python_until_ns(t);
	*state = s;
	return 0;
}

static void end(void *state)
{
	struct xsp_call_sites *s = state;

	if (s == NULL)
		return;
	xsp_step_shares_free(s->in_steps);
	xsp_sync_work_free(&s->sync_work);
	xsp_loader_free(&s->loader);
	xsp_tally_free(&s->sites);
	free(s->cut);
	free(s);
}

/* ---- sites ---- */

static bool is_followed(uint8_t kind)
{
	return kind == XSP_CUDA_SYNC || kind == XSP_CUDA_MEMCPY || kind == XSP_CUDA_ALLOC ||
	       kind == XSP_CUDA_FREE;
}

/* Is it the user's range around a call? Ranges that mark steps or only number are no places. */
static bool is_place(const struct xsp_call_sites *s, xsp_name_id range)
{
	return !xsp_timeline_marks_steps(s->timeline, range) &&
	       xsp_timeline_step_stem(s->timeline, xsp_timeline_name(s->timeline, range)) == 0;
}

static bool is_backward(const struct xsp_call_sites *s, const struct xsp_span *span)
{
	const struct xsp_capture_probe *probes;

	if (span->probe >= xsp_capture_probes(s->reader, &probes))
		return false;
	const unsigned scope = probes[span->probe].scope;
	const struct xsp_section *own = xsp_details_own_scope(span->details, scope);
	return own != NULL ? own->value == XSP_RECORD_SCOPE_BACKWARD : scope == XSP_SCOPE_BACKWARD;
}

/* Describes a call. Inside another CUDA call only the outer one counts. False: the call is not
 * followed. */
static bool describe(const struct xsp_call_sites *s, const struct xsp_span *span, bool loader,
		     struct xsp_call_site *out)
{
	const struct xsp_cuda_entry *cuda =
		loader ? NULL : xsp_timeline_cuda(s->timeline, span->probe);
	const bool line = span->python != NULL && span->python_first < span->python->count;

	if (cuda != NULL ? !is_followed(cuda->kind) || span->outer_ns != 0
			 : !loader && !(line && span->python_calls))
		return false;
	*out = (struct xsp_call_site){.name = span->name,
				      .kind = loader ? XSP_SITE_LOADER : 0,
				      .backward = is_backward(s, span),
				      .python = line ? span->python : NULL,
				      .first = line ? span->python_first : 0};
	if (cuda == NULL)
		return true;
	out->kind = cuda->kind;
	out->in_op = span->op != 0 || (span->user != 0 && is_place(s, span->user_name));
	out->op = span->op != 0 ? span->op_name : span->user_name;
	return true;
}

static uint64_t key_of(const struct xsp_call_site *site, uint64_t stack)
{
	const uint64_t op = site->in_op ? (uint64_t)site->op + 1 : 0;

	return xsp_u64_mix(stack ^ xsp_u64_mix(op << 32 | site->name));
}

static uint64_t stack_of(const struct xsp_call_site *site)
{
	return site->python != NULL ? xsp_u64_mix(site->python->id) + site->first + 1 : 0;
}

/* Equal for stacks of the same lines: two instructions on one line make two stacks. */
static uint64_t lines_of(const struct xsp_call_site *site)
{
	uint64_t lines = site->first + 1;

	for (uint32_t i = site->first; site->python != NULL && i < site->python->count; i++)
		lines = xsp_u64_mix(lines ^ site->python->frames[i].name);
	return lines;
}

/* Looks up a new stack by its lines, which may be known. */
static int find_lines(struct xsp_call_sites *s, const struct xsp_call_site *site, uint64_t key)
{
	const struct xsp_call_site *its =
		xsp_tally_row(&s->sites, key_of(site, lines_of(site)), site);

	if (its == NULL)
		return s->sites.tally.error;
	s->site = xsp_tally_index(&s->sites, its) + 1;
	return s->sites.tally.index_of.count < MAX_STACKS ? xsp_tally_alias(&s->sites, key, its)
							  : 0;
}

/* Sets s->site to the span's site, which it makes if needed. */
static int find_site(struct xsp_call_sites *s, const struct xsp_span *span)
{
	struct xsp_call_site site;
	bool loader;

	if (s->serial == span->serial + 1)
		return 0;
	s->serial = span->serial + 1;
	s->site = 0;
	const int rc = xsp_loader_look(&s->loader, span->name, &loader);
	if (rc < 0 || !describe(s, span, loader, &site))
		return rc;
	const uint64_t key = key_of(&site, stack_of(&site));
	const struct xsp_call_site *known = xsp_tally_find(&s->sites, key);
	if (known == NULL)
		return find_lines(s, &site, key);
	s->site = xsp_tally_index(&s->sites, known) + 1;
	return 0;
}

/* The time of probes is most of a short operation that is called often. */
static uint64_t probes_in(const struct xsp_span *span)
{
	const uint64_t ns = span->end_ns - span->start_ns;

	return span->probe_ns < ns ? span->probe_ns : ns;
}

static int on_span_in_step(void *ctx, const struct xsp_span *span, uint32_t thread)
{
	struct xsp_call_sites *s = ctx;
	int rc = find_site(s, span);

	if (rc < 0 || s->site == 0)
		return rc;
	/* whole times, not only own ones */
	const uint64_t ns = span->end_ns - span->start_ns;
	const bool python = s->sites.rows[s->site - 1].kind == 0;
	return xsp_step_shares_add(s->in_steps, span, thread, s->site - 1,
				   python ? ns - probes_in(span) : ns);
}

/* ---- spans ---- */

static int on_span(void *ctx, const struct xsp_span *span)
{
	struct xsp_call_sites *s = ctx;
	int rc = find_site(s, span);

	if (rc < 0 || s->site == 0)
		return rc;
	struct xsp_call_site *site = &s->sites.rows[s->site - 1];
	const uint64_t ns = span->end_ns - span->start_ns;
	site->calls++;
	if (!xsp_span_has_duration(span))
		return 0;
	site->total_ns += ns;
	site->probe_ns += probes_in(span);
	if (ns > site->longest_ns) {
		site->longest_ns = ns;
		site->longest_start_ns = span->start_ns;
	}
	return site->kind == XSP_CUDA_SYNC ? xsp_sync_work_call(&s->sync_work, span, s->site - 1)
					   : 0;
}

/* CUPTI goes on while --max-overhead pauses probes: shares refer to the time without pauses. */
static int on_activity(void *ctx, const struct xsp_gpu_activity *a)
{
	struct xsp_call_sites *s = ctx;

	if (a->kind == XSP_GPU_IS_MEMCPY &&
	    xsp_timeline_recorded(s->timeline, a->start_ns, a->end_ns))
		xsp_copies_add(&s->copies, a);
	return xsp_sync_work_activity(&s->sync_work, a);
}

static int on_wait(void *ctx, const struct xsp_wait *wait)
{
	return xsp_loader_wait(&((struct xsp_call_sites *)ctx)->loader, wait);
}

static struct xsp_timeline_sink sink(void *state)
{
	return (struct xsp_timeline_sink){
		.ctx = state,
		.span = on_span,
		.step = on_step,
		.in_step = on_span_in_step,
		.gpu = on_activity,
		.wait = on_wait,
	};
}

/* ---- for rules ---- */

XSP_TALLY_ROWS(xsp_call_sites_list, xsp_call_sites, xsp_call_site, sites);

uint64_t xsp_call_site_in_steps(const struct xsp_call_sites *s, const struct xsp_call_site *site,
				uint64_t *ns)
{
	const uint32_t at = xsp_tally_index(&s->sites, site);
	uint64_t calls = xsp_step_shares_calls(s->in_steps, at, ns);

	if (at < s->cut_capacity) {
		calls -= s->cut[at].calls;
		*ns -= s->cut[at].ns;
	}
	return calls;
}

void xsp_call_sites_steps(const struct xsp_call_sites *s, struct xsp_steps_figures *steps)
{
	if (s->lines_until_ns == 0)
		return;
	steps->steps = s->steps_with_lines;
	steps->sum_ns = s->steps_with_lines_ns;
	steps->probe_ns = s->steps_with_lines_probe_ns;
}

bool xsp_call_sites_is_loader(const struct xsp_call_sites *s, xsp_name_id name)
{
	return name < s->loader.name_count && s->loader.names[name];
}

const struct xsp_loader *xsp_call_sites_loader(const struct xsp_call_sites *s)
{
	return &s->loader;
}

bool xsp_call_sites_overflowed(const struct xsp_call_sites *s)
{
	return s->sites.tally.left_out > 0;
}

uint64_t xsp_call_sites_not_compared(const struct xsp_call_sites *s)
{
	return s->sync_work.not_compared + s->sync_work.waited.tally.left_out;
}

const struct xsp_copies *xsp_call_sites_copies(const struct xsp_call_sites *s)
{
	return &s->copies;
}

const struct xsp_analysis xsp_analysis_call_sites = {
	.name = "call_sites",
	.begin = begin,
	.sink = sink,
	/* no report: rules report it */
	.end = end,
};
