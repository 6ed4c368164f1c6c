/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/names/call_sites.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analyses.h"
#include "analysis/names/step_shares.h"
#include "base/grow.h"
#include "base/saturate.h"
#include "base/search.h"
#include "base/u64map.h"
#include "catalog/scope.h"
#include "timeline/python.h"

#define LOADER "enumerate(DataLoader)#" /* torch.utils.data.DataLoader's range around __next__ */
#define LOADER_PLACES 16 /* in which it waits */
#define MAX_SITES 65536U
#define MAX_STACKS (8 * MAX_SITES) /* beyond, the lines of a stack are looked up each time */
#define SYNCS 8192U /* of the last ones it is known what the GPU did meanwhile */
#define SYNCS_LOOKED_AT 16 /* beside an activity: calls of several threads overlap */
#define CHUNK 64U /* activities that are passed over together */
#define CHUNKS                                                                                     \
	1024U /* of the last ones: a call may end when what it waited for has long been told */
#define MAX_WAITED 65536U
#define CUPTI_PAGEABLE 1 /* CUpti_ActivityMemoryKind */
#define CUPTI_TO_DEVICE 1 /* CUpti_ActivityMemcpyKind */
#define CUPTI_FROM_DEVICE 2

/* A call that waited for the GPU. */
struct sync {
	uint64_t start_ns, end_ns;
	uint32_t pid, site;
};

/* What the GPU did. */
struct ran {
	uint64_t start_ns, end_ns;
	const char *name;
	uint32_t pid;
};

struct chunk {
	uint64_t start_ns, end_ns; /* of all in it */
	struct ran ran[CHUNK];
};

struct waited {
	uint32_t site;
	const char *name; /* a kernel's (the timeline's), or what else it was */
	uint64_t ns;
};

struct xsp_call_sites {
	struct xsp_timeline *timeline;
	struct xsp_capture_reader *reader;
	struct xsp_call_site *sites;
	size_t count, capacity;
	struct xsp_u64map site_of;
	bool overflowed;
	struct xsp_step_shares *in_steps; /* calls by site */
	uint64_t serial; /* 1 + that of the span that was looked at last */
	uint32_t site; /* ... and 1 + its site; 0: none */
	struct sync *syncs; /* by end */
	size_t sync_count, sync_capacity;
	uint64_t syncs_gone_ns; /* the end of the last one that is not held any more */
	struct chunk *chunks; /* a ring, once it is full */
	uint64_t ran_count; /* all that came */
	uint64_t ran_gone_ns; /* the latest end among those that are not held any more */
	uint64_t not_compared; /* calls and activities that may have met what was not held */
	struct waited *waited;
	size_t waited_count, waited_capacity;
	struct xsp_u64map waited_of;
	struct xsp_copies copies;
	uint8_t *loaders; /* by name id: is it the DataLoader's? */
	size_t loader_count, loader_capacity;
	uint64_t loader_waits[XSP_WAIT_CLASSES], loader_runnable_ns;
	struct {
		uint32_t place; /* xsp_wait.place */
		uint64_t ns;
	} loader_places[LOADER_PLACES]; /* the first ones */
	uint64_t lines_until_ns; /* they were on by default, and taken out then; 0: they were not */
	/* ... steps until then; what was called in the one in which they ended, which is none of them, by site */
	uint64_t steps_with_lines, steps_with_lines_ns, steps_with_lines_probe_ns;
	struct cut_calls {
		uint64_t calls, ns;
	} * cut;
	size_t cut_capacity;
};

/* Calls of a step in which lines ended are in the sums of their sites. */
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
	free(s->cut);
	xsp_u64map_free(&s->site_of);
	xsp_u64map_free(&s->waited_of);
	free(s->sites);
	free(s->syncs);
	free(s->chunks);
	free(s->waited);
	free(s->loaders);
	free(s);
}

/* ---- sites ---- */

static bool is_followed(uint8_t kind)
{
	return kind == XSP_CUDA_SYNC || kind == XSP_CUDA_MEMCPY || kind == XSP_CUDA_ALLOC ||
	       kind == XSP_CUDA_FREE;
}

/* Names come as the run goes. */
static int learn_loaders(struct xsp_call_sites *s, xsp_name_id name)
{
	if (name >= s->loader_count) {
		const size_t count = xsp_timeline_name_count(s->timeline);
		if (xsp_grow(&s->loaders, &s->loader_capacity, count) < 0)
			return -ENOMEM;
		for (; s->loader_count < count; s->loader_count++)
			s->loaders[s->loader_count] =
				strncmp(xsp_timeline_name(s->timeline,
							  (xsp_name_id)s->loader_count),
					LOADER, strlen(LOADER)) == 0;
	}
	return 0;
}

/* The user's range around a call; not the step, nor one that numbers as well: that is no place. */
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

/* Of a call inside another one of CUDA's API that one counts. False: it is none that is followed. */
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

/* The same for stacks of the same lines: two instructions of one line are two stacks. */
static uint64_t lines_of(const struct xsp_call_site *site)
{
	uint64_t lines = site->first + 1;

	for (uint32_t i = site->first; site->python != NULL && i < site->python->count; i++)
		lines = xsp_u64_mix(lines ^ site->python->frames[i].name);
	return lines;
}

/* A stack that was not met before: its lines may have been. */
static int find_lines(struct xsp_call_sites *s, const struct xsp_call_site *site, uint64_t key)
{
	const uint64_t lines = key_of(site, lines_of(site));
	const uint32_t *known = xsp_u64map_get(&s->site_of, lines);
	uint32_t at = known != NULL ? *known : (uint32_t)s->count;

	if (known == NULL && s->count >= MAX_SITES) {
		s->overflowed = true;
		return 0;
	}
	if (known == NULL && (XSP_APPEND(s->sites, s->capacity, s->count, *site) < 0 ||
			      xsp_u64map_set(&s->site_of, lines, at) < 0))
		return -ENOMEM;
	s->site = at + 1;
	return s->site_of.count < MAX_STACKS ? xsp_u64map_set(&s->site_of, key, at) : 0;
}

/* The span's, made if need be: s->site. */
static int find_site(struct xsp_call_sites *s, const struct xsp_span *span)
{
	struct xsp_call_site site;

	if (s->serial == span->serial + 1)
		return 0;
	s->serial = span->serial + 1;
	s->site = 0;
	int rc = span->name < s->loader_count ? 0 : learn_loaders(s, span->name);
	if (rc < 0 || !describe(s, span, s->loaders[span->name], &site))
		return rc;
	const uint64_t key = key_of(&site, stack_of(&site));
	const uint32_t *known = xsp_u64map_get(&s->site_of, key);
	if (known == NULL)
		return find_lines(s, &site, key);
	s->site = *known + 1;
	return 0;
}

/* Of an operation that takes a few us, called often, they are most of the time. */
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
	/* their whole times are added up, not only their own */
	const uint64_t ns = span->end_ns - span->start_ns;
	const bool python = s->sites[s->site - 1].kind == 0;
	return xsp_step_shares_add(s->in_steps, span, thread, s->site - 1,
				   python ? ns - probes_in(span) : ns);
}

/* ---- what calls waited for ---- */

static int add_waited(struct xsp_call_sites *s, uint32_t site, const char *name, uint64_t ns)
{
	const uint64_t key = xsp_u64_mix((uintptr_t)name) ^ site;

	if (xsp_u64map_get(&s->waited_of, key) == NULL && s->waited_count >= MAX_WAITED) {
		s->not_compared++;
		return 0;
	}
	struct waited *w = xsp_u64map_element(&s->waited_of, key, &s->waited, &s->waited_capacity,
					      &s->waited_count, &(struct waited){site, name, 0});
	if (w == NULL)
		return -ENOMEM;
	w->ns += ns;
	return 0;
}

static size_t first_that_ends_after(const struct xsp_call_sites *s, uint64_t ns)
{
	size_t low = 0;

	XSP_LOWER_BOUND(low, s->sync_count, i, s->syncs[i].end_ns <= ns);
	return low;
}

static int add_overlap(struct xsp_call_sites *s, const struct sync *y, const struct ran *a)
{
	const uint64_t from = y->start_ns > a->start_ns ? y->start_ns : a->start_ns;
	const uint64_t to = y->end_ns < a->end_ns ? y->end_ns : a->end_ns;

	return y->pid == a->pid && from < to ? add_waited(s, y->site, a->name, to - from) : 0;
}

static void hold_ran(struct xsp_call_sites *s, const struct ran *a)
{
	struct chunk *c = &s->chunks[s->ran_count / CHUNK % CHUNKS];
	const size_t at = s->ran_count++ % CHUNK;

	if (at == 0) {
		if (c->end_ns > s->ran_gone_ns) /* 0: there was none */
			s->ran_gone_ns = c->end_ns;
		c->start_ns = UINT64_MAX;
		c->end_ns = 0;
	}
	c->ran[at] = *a;
	c->start_ns = a->start_ns < c->start_ns ? a->start_ns : c->start_ns;
	c->end_ns = a->end_ns > c->end_ns ? a->end_ns : c->end_ns;
}

static int add_ran(struct xsp_call_sites *s, const struct xsp_gpu_activity *activity,
		   const char *name)
{
	const struct ran a = {activity->start_ns, activity->end_ns, name, activity->pid};
	size_t i = first_that_ends_after(s, a.start_ns), n = 0;
	int rc = 0;

	if (s->chunks == NULL) {
		s->chunks = calloc(CHUNKS, sizeof(*s->chunks));
		if (s->chunks == NULL)
			return -ENOMEM;
	}
	for (; i < s->sync_count && n < SYNCS_LOOKED_AT && rc == 0; i++, n++)
		rc = add_overlap(s, &s->syncs[i], &a);
	s->not_compared += a.start_ns < s->syncs_gone_ns ||
			   (i < s->sync_count && s->syncs[i].start_ns < a.end_ns);
	hold_ran(s, &a);
	return rc;
}

/* With all that the GPU is known to have done by then; the rest comes later. */
static int add_what_ran(struct xsp_call_sites *s, const struct sync *y)
{
	const uint64_t held = CHUNK * CHUNKS;
	int rc = 0;

	s->not_compared += y->start_ns < s->ran_gone_ns;
	for (uint64_t i = 0; i < s->ran_count && i < held && rc == 0; i += CHUNK) {
		const struct chunk *c = &s->chunks[i / CHUNK];
		if (c->end_ns <= y->start_ns || c->start_ns >= y->end_ns)
			continue;
		const uint64_t last = s->ran_count - 1;
		const bool filling = last / CHUNK % CHUNKS == i / CHUNK;
		for (size_t k = 0; k < (filling ? last % CHUNK + 1 : CHUNK) && rc == 0; k++)
			rc = add_overlap(s, y, &c->ran[k]);
	}
	return rc;
}

static int add_sync(struct xsp_call_sites *s, const struct xsp_span *span)
{
	const struct sync sync = {span->start_ns, span->end_ns, span->pid, s->site - 1};

	if (s->sync_count == 2 * SYNCS) {
		s->syncs_gone_ns = s->syncs[SYNCS - 1].end_ns;
		memmove(s->syncs, s->syncs + SYNCS, SYNCS * sizeof(*s->syncs));
		s->sync_count = SYNCS;
	}
	if (xsp_grow(&s->syncs, &s->sync_capacity, s->sync_count + 1) < 0)
		return -ENOMEM;
	size_t at = s->sync_count++;
	for (; at > 0 && s->syncs[at - 1].end_ns > sync.end_ns; at--)
		s->syncs[at] = s->syncs[at - 1];
	s->syncs[at] = sync;
	return add_what_ran(s, &sync);
}

/* ---- copies ---- */

/* In pauses of --max-overhead the agent goes on: shares are of the time without them. */
static void add_copy(struct xsp_copies *c, const struct xsp_gpu_activity *a)
{
	const struct xsp_gpu_memcpy *copy = a->record;
	const uint64_t ns = a->end_ns - a->start_ns;
	const unsigned size = copy->bytes == 0 ? 0 : 64 - (unsigned)__builtin_clzll(copy->bytes);

	if (copy->copy_kind != CUPTI_TO_DEVICE && copy->copy_kind != CUPTI_FROM_DEVICE)
		return;
	c->count++;
	c->cut += a->cut;
	xsp_add_saturated(&c->bytes, copy->bytes);
	xsp_add_saturated(&c->ns, ns);
	c->count_below[size < 64 ? size : 63]++;
	c->ns_below[size < 64 ? size : 63] += ns;
	if (copy->source_kind != CUPTI_PAGEABLE && copy->destination_kind != CUPTI_PAGEABLE)
		return;
	c->pageable++;
	c->pageable_cut += a->cut;
	xsp_add_saturated(&c->pageable_bytes, copy->bytes);
	xsp_add_saturated(&c->pageable_ns, ns);
	if (ns > c->pageable_longest_ns) {
		c->pageable_longest_ns = ns;
		c->pageable_longest_start_ns = a->start_ns;
	}
}

static int on_activity(void *ctx, const struct xsp_gpu_activity *a)
{
	struct xsp_call_sites *s = ctx;

	if (a->kind == XSP_GPU_IS_MEMCPY &&
	    xsp_timeline_recorded(s->timeline, a->start_ns, a->end_ns))
		add_copy(&s->copies, a);
	if (a->kind == XSP_GPU_IS_KERNEL)
		return add_ran(s, a, a->name);
	if (a->kind == XSP_GPU_IS_MEMCPY)
		return add_ran(s, a, "copies");
	return a->kind == XSP_GPU_IS_MEMSET ? add_ran(s, a, "sets of memory") : 0;
}

/* ---- spans ---- */

static int on_span(void *ctx, const struct xsp_span *span)
{
	struct xsp_call_sites *s = ctx;
	int rc = find_site(s, span);

	if (rc < 0 || s->site == 0)
		return rc;
	struct xsp_call_site *site = &s->sites[s->site - 1];
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
	return site->kind == XSP_CUDA_SYNC ? add_sync(s, span) : 0;
}

static void add_loader_wait(struct xsp_call_sites *s, const struct xsp_wait *wait)
{
	const uint64_t ns = wait->woken_ns - wait->left_ns;
	size_t i = 0;

	s->loader_waits[wait->why] += ns;
	s->loader_runnable_ns += wait->back_ns - wait->woken_ns;
	while (i < LOADER_PLACES && s->loader_places[i].place != 0 &&
	       s->loader_places[i].place != wait->place)
		i++;
	if (i == LOADER_PLACES || wait->place == 0)
		return;
	s->loader_places[i].place = wait->place;
	s->loader_places[i].ns += ns;
}

static int on_wait(void *ctx, const struct xsp_wait *wait)
{
	struct xsp_call_sites *s = ctx;
	const bool told = wait->in_span && !(wait->flags & XSP_WAIT_SHORT);
	int rc = told ? learn_loaders(s, wait->span) : 0;

	if (rc == 0 && told && xsp_call_sites_is_loader(s, wait->span))
		add_loader_wait(s, wait);
	return rc;
}

static struct xsp_timeline_sink sink(void *state)
{
	struct xsp_call_sites *s = state;

	return (struct xsp_timeline_sink){
		.ctx = s,
		.span = on_span,
		.step = on_step,
		.in_step = on_span_in_step,
		.gpu = on_activity,
		.wait = on_wait,
	};
}

/* ---- for rules ---- */

size_t xsp_call_sites_list(const struct xsp_call_sites *s, const struct xsp_call_site **out)
{
	*out = s->sites;
	return s->count;
}

uint64_t xsp_call_site_in_steps(const struct xsp_call_sites *s, const struct xsp_call_site *site,
				uint64_t *ns)
{
	const size_t at = (size_t)(site - s->sites);
	uint64_t calls = xsp_step_shares_calls(s->in_steps, (uint32_t)at, ns);

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
	return name < s->loader_count && s->loaders[name];
}

const uint64_t *xsp_call_sites_loader_waits(const struct xsp_call_sites *s)
{
	return s->loader_waits;
}

uint64_t xsp_call_sites_loader_runnable_ns(const struct xsp_call_sites *s)
{
	return s->loader_runnable_ns;
}

uint32_t xsp_call_sites_loader_place(const struct xsp_call_sites *s)
{
	size_t most = 0;

	for (size_t i = 1; i < LOADER_PLACES; i++)
		if (s->loader_places[i].ns > s->loader_places[most].ns)
			most = i;
	return s->loader_places[most].place;
}

bool xsp_call_sites_overflowed(const struct xsp_call_sites *s)
{
	return s->overflowed;
}

uint64_t xsp_call_sites_not_compared(const struct xsp_call_sites *s)
{
	return s->not_compared;
}

bool xsp_call_site_line(const struct xsp_call_sites *s, const struct xsp_call_site *site,
			char out[XSP_CALL_SITE_TEXT])
{
	char text[XSP_PYTHON_LINE_MAX], inside[XSP_PYTHON_LINE_MAX];
	struct xsp_python_line line;

	if (site->python == NULL ||
	    !xsp_timeline_python_line(s->timeline, &site->python->frames[site->first], &line))
		return false;
	xsp_python_line_show(&line, inside);
	const uint32_t own = xsp_timeline_python_own(s->timeline, site->python, site->first);
	if (own == site->first ||
	    !xsp_timeline_python_line(s->timeline, &site->python->frames[own], &line)) {
		snprintf(out, XSP_CALL_SITE_TEXT, "%.*s", XSP_CALL_SITE_TEXT - 1, inside);
		return true;
	}
	xsp_python_line_show(&line, text);
	snprintf(out, XSP_CALL_SITE_TEXT, "%.500s (in %.500s)", text, inside);
	return true;
}

void xsp_call_site_text(const struct xsp_call_sites *s, const struct xsp_call_site *site,
			char out[XSP_CALL_SITE_TEXT])
{
	char line[XSP_CALL_SITE_TEXT];
	const bool at = xsp_call_site_line(s, site, line);

	snprintf(out, XSP_CALL_SITE_TEXT, "%.300s%s%.300s%s%.400s",
		 xsp_timeline_name(s->timeline, site->name), site->in_op ? " in " : "",
		 site->in_op ? xsp_timeline_name(s->timeline, site->op) : "", at ? " at " : "",
		 at ? line : "");
}

uint64_t xsp_call_site_own_line(const struct xsp_call_sites *s, const struct xsp_call_site *site)
{
	return site->python == NULL ? 0
				    : site->python
					      ->frames[xsp_timeline_python_own(
						      s->timeline, site->python, site->first)]
					      .name;
}

/* Functions of PyTorch's that run the engine, which calls what is inside. */
static bool is_engine(const struct xsp_python_line *line)
{
	static const struct {
		const char *file, *function;
	} engines[] = {
		{"/torch/autograd/graph.py", "_engine_run_backward"},
		{"/torch/autograd/__init__.py", "backward"}, /* PyTorch before 2.3 */
		{"/torch/autograd/__init__.py", "grad"},
	};

	for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++) {
		const size_t length = strlen(engines[i].file);
		if (line->path_length >= length &&
		    strncmp(line->path + line->path_length - length, engines[i].file, length) ==
			    0 &&
		    strcmp(line->function, engines[i].function) == 0)
			return true;
	}
	return false;
}

bool xsp_call_site_of_backward(const struct xsp_call_sites *s, const struct xsp_call_site *site)
{
	struct xsp_python_line line;

	if (site->backward || site->python == NULL)
		return site->backward;
	const uint32_t own = xsp_timeline_python_own(s->timeline, site->python, site->first);
	for (uint32_t i = site->first; i <= own; i++)
		if (xsp_timeline_python_line(s->timeline, &site->python->frames[i], &line) &&
		    is_engine(&line))
			return true;
	return false;
}

const struct xsp_call_site *xsp_call_sites_of(const struct xsp_call_sites *s, xsp_name_id name)
{
	const struct xsp_call_site *most = NULL;

	for (size_t i = 0; i < s->count; i++)
		if (s->sites[i].name == name && s->sites[i].python != NULL &&
		    (most == NULL || s->sites[i].total_ns > most->total_ns))
			most = &s->sites[i];
	return most;
}

/* ---- places ---- */

static uint64_t frame_of(const struct xsp_call_site *site)
{
	return site->python != NULL ? site->python->frames[site->first].name : 0;
}

static int compare(uint64_t x, uint64_t y)
{
	return x < y ? -1 : x > y;
}

/* By what makes them one place. */
static int by_place(const void *a, const void *b)
{
	const struct xsp_call_site *x = a, *y = b;
	const int name = compare(x->name, y->name), line = compare(frame_of(x), frame_of(y));
	const uint64_t op_x = x->in_op ? (uint64_t)x->op + 1 : 0,
		       op_y = y->in_op ? (uint64_t)y->op + 1 : 0;

	return name != 0 ? name : line != 0 ? line : compare(op_x, op_y);
}

static int by_total(const void *a, const void *b)
{
	const struct xsp_call_site *x = a, *y = b;

	return x->total_ns != y->total_ns ? compare(y->total_ns, x->total_ns) : by_place(a, b);
}

void xsp_call_place_add(struct xsp_call_place *to, const struct xsp_call_place *more)
{
	to->site.calls += more->site.calls;
	to->site.total_ns += more->site.total_ns;
	to->in_steps += more->in_steps;
	to->in_steps_ns += more->in_steps_ns;
	if (more->site.longest_ns > to->site.longest_ns) {
		to->site.longest_ns = more->site.longest_ns;
		to->site.longest_start_ns = more->site.longest_start_ns;
	}
}

struct xsp_call_place *xsp_call_sites_places(const struct xsp_call_sites *s, uint32_t kinds,
					     size_t *count)
{
	struct xsp_call_place *all = calloc(s->count + 1, sizeof(*all));
	size_t n = 0;

	*count = 0;
	for (size_t i = 0; all != NULL && i < s->count; i++) {
		if (!(kinds >> s->sites[i].kind & 1))
			continue;
		all[n].site = s->sites[i];
		all[n].in_steps = xsp_call_site_in_steps(s, &s->sites[i], &all[n].in_steps_ns);
		n++;
	}
	if (n == 0)
		return all;
	qsort(all, n, sizeof(*all), by_place);
	for (size_t i = 0; i < n; i++) {
		if (*count > 0 && by_place(&all[*count - 1], &all[i]) == 0)
			xsp_call_place_add(&all[*count - 1], &all[i]);
		else
			all[(*count)++] = all[i];
	}
	qsort(all, *count, sizeof(*all), by_total);
	return all;
}

static int by_name(const void *a, const void *b)
{
	const struct xsp_waited_for *x = a, *y = b;

	return compare((uintptr_t)x->name, (uintptr_t)y->name);
}

static int by_ns(const void *a, const void *b)
{
	const struct xsp_waited_for *x = a, *y = b;

	return x->ns != y->ns ? compare(y->ns, x->ns) : by_name(a, b);
}

struct xsp_waited_for *xsp_call_sites_waited_for(const struct xsp_call_sites *s,
						 const struct xsp_call_site *place, size_t *count)
{
	struct xsp_waited_for *all = calloc(s->waited_count + 1, sizeof(*all));
	size_t n = 0;

	*count = 0;
	for (size_t i = 0; all != NULL && i < s->waited_count; i++)
		if (by_place(&s->sites[s->waited[i].site], place) == 0)
			all[n++] = (struct xsp_waited_for){s->waited[i].name, s->waited[i].ns};
	if (n == 0)
		return all;
	qsort(all, n, sizeof(*all), by_name);
	for (size_t i = 0; i < n; i++) {
		if (*count > 0 && all[*count - 1].name == all[i].name)
			all[*count - 1].ns += all[i].ns;
		else
			all[(*count)++] = all[i];
	}
	qsort(all, *count, sizeof(*all), by_ns);
	return all;
}

const struct xsp_copies *xsp_call_sites_copies(const struct xsp_call_sites *s)
{
	return &s->copies;
}

const struct xsp_analysis xsp_analysis_call_sites = {
	.name = "call_sites",
	.begin = begin,
	.sink = sink,
	/* no report: rules name what is in it */
	.end = end,
};
