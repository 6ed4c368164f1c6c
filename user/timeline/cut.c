/* SPDX-License-Identifier: BSD-2-Clause */
#include "timeline/cut.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "base/rows/search.h"
#include "catalog/providers.h"
#include "timeline/timeline_private.h"

/* ---- names ---- */

/* Does a function have a symbol? In an imported trace its category stands there
 * (catalog/providers.h), and is no name. */
static bool has_symbol(const struct xsp_capture_probe *probe)
{
	const unsigned traits = xsp_provider_traits(probe->provider);
	const bool category = (traits & XSP_PROVIDER_READ) && !(traits & XSP_PROVIDER_CUDA_CALLS);

	return probe->kind == XSP_PROBE_FUNCTION && !category && probe->symbol[0] != '\0';
}

static bool names(const struct xsp_timeline *t, const struct xsp_cut_pattern *p,
		  const struct xsp_capture_probe *probe, const char *display_name)
{
	const struct xsp_capture_module *modules;
	const size_t count = xsp_capture_modules(t->reader, &modules);
	const bool function = probe->kind == XSP_PROBE_FUNCTION;

	if (p->provider)
		return strcmp(p->pattern.library, probe->provider) == 0 &&
		       xsp_glob_match(p->pattern.glob, display_name);
	if (p->pattern.library != NULL &&
	    (!function || probe->module >= count ||
	     !xsp_pattern_names_library(&p->pattern, modules[probe->module].path)))
		return false;
	if (p->pattern.glob == NULL)
		return function && probe->addr == p->pattern.address;
	return xsp_glob_match(p->pattern.glob, display_name) ||
	       (has_symbol(probe) && xsp_pattern_matches_name(&p->pattern, probe->symbol));
}

/* As while recording: yes if no pattern names it (unless all patterns are '!'), or if a '!' pattern
 * does. */
static bool leaves_out(const struct xsp_timeline *t, const struct xsp_capture_probe *probe,
		       const char *display_name)
{
	bool chosen = false, chooses = false;

	for (size_t i = 0; i < t->cut.pattern_count; i++) {
		const struct xsp_cut_pattern *p = &t->cut.patterns[i];
		const bool named = names(t, p, probe, display_name);
		if (p->pattern.exclude && named)
			return true;
		chooses = chooses || !p->pattern.exclude;
		chosen = chosen || (named && !p->pattern.exclude);
	}
	return chooses && !chosen;
}

bool xsp_cut_leaves_call_out(const struct xsp_timeline *t, const char *name)
{
	const struct xsp_capture_probe as = {
		.provider = "cuda", .symbol = name, .name = name, .module = UINT32_MAX};

	return t->cut.pattern_count > 0 && leaves_out(t, &as, name);
}

xsp_name_id xsp_cut_name(struct xsp_timeline *t, uint32_t probe, xsp_name_id name)
{
	if (t->probe_left_out == NULL || probe >= t->probe_count)
		return name;
	if (name == t->probe_names[probe])
		return name | (t->probe_left_out[probe] ? XSP_NAME_LEFT_OUT : 0);
	const uint64_t key = xsp_u64_pair(probe, name);
	const uint32_t *at = xsp_u64map_get(&t->range_left_out, key);
	if (at != NULL)
		return name | *at;
	const char *display_name = xsp_timeline_name(t, name);
	const uint32_t bit = leaves_out(t, &t->probes[probe], display_name) ? XSP_NAME_LEFT_OUT : 0;
	/* if it could not be stored, each call works it out again */
	if (t->names[name] != NULL)
		(void)xsp_u64map_set(&t->range_left_out, key, bit);
	return name | bit;
}

/* ---- spans ---- */

static size_t kept_depth(const struct xsp_timeline *t, const xsp_name_id *ancestors, size_t depth)
{
	size_t n = 0;

	if (t->probe_left_out == NULL)
		return depth;
	for (size_t i = 0; i < depth; i++)
		n += !(ancestors[i] & XSP_NAME_LEFT_OUT);
	return n;
}

unsigned xsp_cut_span(struct xsp_timeline *t, const struct open_span *s, uint64_t duration,
		      const xsp_name_id *ancestors, size_t depth)
{
	unsigned out = 0;

	if (xsp_cut_name(t, s->probe, s->name) & XSP_NAME_LEFT_OUT)
		out |= XSP_LEFT_OUT_NAME;
	if (duration < t->cut.min_duration_ns)
		out |= XSP_LEFT_OUT_SHORT;
	if (t->cut.max_depth > 0 && kept_depth(t, ancestors, depth) >= t->cut.max_depth)
		out |= XSP_LEFT_OUT_DEEP;
	return out;
}

int xsp_cut_ancestors(struct xsp_timeline *t, struct xsp_span *span, bool kept_only)
{
	uint32_t n = 0;

	if (xsp_grow(&t->ancestors, &t->ancestors_capacity, (size_t)span->depth + 1) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < span->depth; i++)
		if (!kept_only || !(span->ancestors[i] & XSP_NAME_LEFT_OUT))
			t->ancestors[n++] = span->ancestors[i] & ~XSP_NAME_LEFT_OUT;
	span->ancestors = t->ancestors;
	span->depth = n;
	return 0;
}

/* ---- time and threads ---- */

unsigned xsp_cut_time(const struct xsp_timeline *t, uint64_t start_ns, uint64_t end_ns)
{
	const bool before = start_ns < t->cut.from_ns && end_ns <= t->cut.from_ns;

	return before || start_ns >= t->cut.to_ns ? XSP_LEFT_OUT_TIME : 0;
}

uint64_t xsp_timeline_clip(const struct xsp_timeline *t, uint64_t ns)
{
	return xsp_cut_clip(t, ns);
}

static bool is_comm(const char *wanted, const char *comm)
{
	const size_t length = strlen(wanted);

	/* the kernel keeps 15 bytes of a name */
	if (length > 0 && wanted[length - 1] == '*')
		return strncmp(wanted, comm, length - 1) == 0;
	return strncmp(wanted, comm, 15) == 0;
}

unsigned xsp_cut_thread(const struct xsp_timeline *t, uint32_t tid)
{
	const struct xsp_cut *cut = &t->cut;

	if (cut->tid_count + cut->comm_count == 0)
		return 0;
	const uint32_t *at = xsp_u64map_get(&t->record_of, tid);
	const struct xsp_timeline_thread *th = at != NULL ? &t->records[*at]->thread_info : NULL;
	bool id = cut->tid_count == 0, comm = cut->comm_count == 0;

	for (size_t i = 0; i < cut->tid_count; i++)
		id = id || (uint32_t)cut->tids[i] == tid ||
		     (th != NULL && (uint32_t)cut->tids[i] == th->ns_tid);
	for (size_t i = 0; i < cut->comm_count; i++)
		comm = comm || (th != NULL && is_comm(cut->comms[i], th->comm));
	return id && comm ? 0 : XSP_LEFT_OUT_THREAD;
}

bool xsp_cut_chooses(const struct xsp_timeline *t)
{
	return t->cut.pattern_count + t->cut.tid_count + t->cut.comm_count > 0;
}

bool xsp_timeline_cut_hides(const struct xsp_timeline *t)
{
	return t->cut.pattern_count > 0 || t->cut.min_duration_ns > 0 || t->cut.max_depth > 0;
}

/* ---- the whole ---- */

int xsp_timeline_cut(struct xsp_timeline *t, const struct xsp_cut *cut)
{
	t->cut = *cut;
	t->is_cut = true;
	if (t->cut.to_ns < t->cut.from_ns)
		t->cut.to_ns = t->cut.from_ns;
	if (cut->pattern_count == 0)
		return 0;
	t->probe_left_out = calloc(t->probe_count + 1, sizeof(*t->probe_left_out));
	if (t->probe_left_out == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < t->probe_count; i++)
		t->probe_left_out[i] = leaves_out(t, &t->probes[i], t->probes[i].name);
	return 0;
}

void xsp_cut_free(struct xsp_timeline *t)
{
	xsp_u64map_free(&t->range_left_out);
	free(t->probe_left_out);
	free(t->ancestors);
}

const char *xsp_timeline_cut_text(const struct xsp_timeline *t)
{
	return t->cut.text != NULL ? t->cut.text : xsp_capture_info(t->reader, "cut");
}

void xsp_timeline_window(const struct xsp_timeline *t, uint64_t *start_ns, uint64_t *end_ns)
{
	*start_ns = xsp_timeline_clip(t, t->start_ns);
	*end_ns = xsp_timeline_clip(t, t->end_ns);
}

uint64_t xsp_timeline_watched_ns(const struct xsp_timeline *t, uint64_t until_ns)
{
	uint64_t start, end;

	xsp_timeline_window(t, &start, &end);
	if (until_ns != 0 && until_ns < end)
		end = until_ns;
	return end > start ? end - start : 0;
}

uint64_t xsp_timeline_first_ns(const struct xsp_timeline *t, uint64_t until_ns)
{
	const uint64_t watched = xsp_timeline_watched_ns(t, until_ns);

	return watched < xsp_timeline_watched_ns(t, 0) ? watched : 0;
}

bool xsp_timeline_recorded(const struct xsp_timeline *t, uint64_t from_ns, uint64_t to_ns)
{
	size_t low = 0;

	XSP_LOWER_BOUND(low, t->window_count, i, t->windows[i].end_ns < from_ns);
	return t->window_count == 0 ||
	       (low < t->window_count && t->windows[low].start_ns <= from_ns &&
		to_ns <= t->windows[low].end_ns);
}

uint64_t xsp_timeline_recorded_between(const struct xsp_timeline *t, uint64_t from_ns,
				       uint64_t to_ns)
{
	uint64_t sum = 0;
	size_t low = 0;

	if (t->window_count == 0)
		return to_ns > from_ns ? to_ns - from_ns : 0;
	XSP_LOWER_BOUND(low, t->window_count, i, t->windows[i].end_ns <= from_ns);
	for (; low < t->window_count && t->windows[low].start_ns < to_ns; low++) {
		const struct xsp_capture_window *w = &t->windows[low];
		const uint64_t from = w->start_ns > from_ns ? w->start_ns : from_ns;
		const uint64_t to = w->end_ns < to_ns ? w->end_ns : to_ns;
		sum += to > from ? to - from : 0;
	}
	return sum;
}

uint64_t xsp_timeline_recorded_ns(const struct xsp_timeline *t)
{
	uint64_t start, end;

	xsp_timeline_window(t, &start, &end);
	return xsp_timeline_recorded_between(t, start, end);
}
