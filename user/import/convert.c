/* SPDX-License-Identifier: BSD-2-Clause */
/* convert.c - turns an event of the trace into what is sorted. */
#include "import/import_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "catalog/allocators.h"
#include "catalog/gpu/cuda_table.h"

/* A span, or the begin (B) or end (E) of one. */
struct pair {
	struct xsp_import_span span;
	uint64_t name; /* hash of its text; 0: none */
	uint64_t ends;
};

#define INNER_MOST 256U /* spans without an end, in one that ends */

/* Categories of spans on threads; others are functions of that category. */
static const struct category {
	const char *name;
	enum xsp_import_class class;
	/* of two that begin and end together, the one with the lower rank is outside */
	uint8_t rank;
	uint8_t id; /* enum xsp_import_key of a number that rises in the order of begins; 0: none */
} categories[] = {
	{"cpu_op", XSP_IMPORT_FUNCTION, 2, XSP_ARG_EXTERNAL_ID},
	{"cuda_runtime", XSP_IMPORT_CALL, 4, 0},
	{"python_function", XSP_IMPORT_FUNCTION, XSP_IMPORT_PYTHON, XSP_ARG_PYTHON_ID},
	{"user_annotation", XSP_IMPORT_ANNOTATION, 2, XSP_ARG_EXTERNAL_ID},
	{"cuda_driver", XSP_IMPORT_CALL, 5, 0},
	{"hip_runtime", XSP_IMPORT_CALL, 4, 0},
	{"xpu_runtime", XSP_IMPORT_CALL, 4, 0},
	{"xpu_driver", XSP_IMPORT_CALL, 5, 0},
	{"privateuse1_runtime", XSP_IMPORT_CALL, 4, 0},
	{"privateuse1_driver", XSP_IMPORT_CALL, 5, 0},
	{"mtia_runtime", XSP_IMPORT_CALL, 4, 0},
	/* before PyTorch 1.12 */
	{"Operator", XSP_IMPORT_FUNCTION, 2, XSP_ARG_OLD_EXTERNAL_ID},
	{"Runtime", XSP_IMPORT_CALL, 4, 0},
};
#define CATEGORIES (sizeof(categories) / sizeof(categories[0]))
static const struct category any_category = {"", XSP_IMPORT_FUNCTION, 3, 0};

static const struct category *category_of(const struct xsp_import_event *e)
{
	for (size_t i = 0; i < CATEGORIES; i++)
		if (xsp_import_is(e, XSP_TRACE_CAT, categories[i].name))
			return &categories[i];
	return &any_category;
}

static void cover(struct xsp_import *m, int64_t start_ns, int64_t end_ns)
{
	if (!m->any || start_ns < m->first_ns)
		m->first_ns = start_ns;
	if (!m->any || end_ns > m->last_ns)
		m->last_ns = end_ns;
	m->any = true;
}

static int need_gpu(struct xsp_import *m)
{
	static const struct xsp_capture_probe probe = {
		.kind = XSP_PROBE_MARK, .provider = "gpu", .symbol = "", .name = "GPU records"};
	uint32_t id;

	if (m->gpu_probe != 0)
		return 0;
	int rc = xsp_import_other_probe(m, &probe, &id);
	if (rc == 0)
		m->gpu_probe = id + 1;
	return rc;
}

/* Microseconds with decimals, exact to the nanosecond. */
static bool time_of(const struct xsp_import_event *e, enum xsp_import_key key, int64_t *ns)
{
	return xsp_import_has(e, key) && xsp_json_to_number(e->value[key], 3, ns) &&
	       *ns <= XSP_IMPORT_TIME_MAX && *ns >= -XSP_IMPORT_TIME_MAX;
}

/* A range that is near, else a new one; of too many, the last one is widened. Ranges that meet are
 * joined when they are read. */
static void cover_gpu(struct xsp_import *m, int64_t ns)
{
	struct xsp_import_range *r = m->gpu_ranges;
	size_t i = 0;

	while (i < m->gpu_range_count &&
	       (ns < r[i].first_ns - XSP_IMPORT_NEAR_NS || ns > r[i].last_ns + XSP_IMPORT_NEAR_NS))
		i++;
	if (i == m->gpu_range_count && i < XSP_IMPORT_RANGES)
		r[m->gpu_range_count++] = (struct xsp_import_range){ns, ns};
	else if (i == XSP_IMPORT_RANGES)
		i--;
	r[i].first_ns = ns < r[i].first_ns ? ns : r[i].first_ns;
	r[i].last_ns = ns > r[i].last_ns ? ns : r[i].last_ns;
}

void xsp_import_settle(struct xsp_import *m)
{
	const bool host = m->any;

	for (size_t round = 0; round < m->gpu_range_count; round++)
		for (size_t i = 0; i < m->gpu_range_count; i++) {
			const struct xsp_import_range *r = &m->gpu_ranges[i];
			if (!host || (r->last_ns >= m->first_ns - XSP_IMPORT_NEAR_NS &&
				      r->first_ns <= m->last_ns + XSP_IMPORT_NEAR_NS))
				cover(m, r->first_ns, r->last_ns);
		}
}

static bool begin_of(struct xsp_import *m, const struct xsp_import_event *e, int64_t *ns)
{
	if (time_of(e, XSP_TRACE_TS, ns))
		return true;
	xsp_import_counted(m, XSP_IMPORT_NO_TIME);
	return false;
}

/* Begin and end. False, and counted: they are unknown or impossible. */
static bool interval_of(struct xsp_import *m, const struct xsp_import_event *e, int64_t *begin,
			int64_t *end)
{
	int64_t duration;

	if (!begin_of(m, e, begin))
		return false;
	if (!time_of(e, XSP_TRACE_DUR, &duration)) {
		xsp_import_counted(m, XSP_IMPORT_NO_TIME);
		return false;
	}
	*end = *begin + duration;
	const bool negative =
		duration < 0 && !xsp_import_is_activity(e); /* those are bad records */
	if (negative)
		xsp_import_counted(m, XSP_IMPORT_NEGATIVE);
	else if (*end > XSP_IMPORT_TIME_MAX)
		xsp_import_counted(m, XSP_IMPORT_NO_TIME);
	return !negative && *end <= XSP_IMPORT_TIME_MAX;
}

/* ---- spans ---- */

/* A number for the call in its API: the trace's, if no other name has it; else a new one. */
static int cbid_of(struct xsp_import *m, const struct xsp_import_event *e, unsigned api,
		   uint32_t probe, uint32_t *cbid)
{
	*cbid = xsp_import_id(e, XSP_ARG_CBID, 0x1000000U + probe);
	const uint64_t key = (uint64_t)api << 32 | *cbid;
	const uint32_t *known = xsp_u64map_get(&m->cbids, key);

	if (known == NULL)
		return xsp_u64map_set(&m->cbids, key, probe);
	if (*known != probe)
		*cbid = 0x1000000U + probe;
	return 0;
}

static int convert_call(struct xsp_import *m, const struct xsp_import_event *e,
			struct xsp_import_span *s)
{
	const uint32_t *api = xsp_u64map_get(&m->apis, s->probe);
	char text[256] = "";

	if (api == NULL) {
		if (xsp_import_has(e, XSP_TRACE_NAME))
			xsp_json_to_text(e->value[XSP_TRACE_NAME], text, sizeof(text));
		const bool beside = strstr(text, "Async") != NULL;
		if (xsp_u64map_set(&m->apis, s->probe,
				   (1U + xsp_cuda_api_of(text)) |
					   (beside ? XSP_IMPORT_BESIDE : 0)) < 0)
			return -ENOMEM;
		api = xsp_u64map_get(&m->apis, s->probe);
	}
	s->head.api = (uint8_t)*api;
	s->correlation = xsp_import_id(e, XSP_ARG_CORRELATION, 0);
	m->processes.rows[m->threads.rows[s->thread].process].calls++;
	int rc = cbid_of(m, e, s->head.api, s->probe, &s->cbid);
	return rc == 0 && s->correlation != 0 ? need_gpu(m) : rc;
}

/* Everything but its end. */
static int fill_span(struct xsp_import *m, const struct xsp_import_event *e, int64_t begin,
		     struct xsp_import_span *s)
{
	const struct category *c = category_of(e);

	*s = (struct xsp_import_span){.head = {.time_ns = begin,
					       .size = sizeof(*s),
					       .kind = XSP_IMPORT_SPAN,
					       .rank = c->rank}};
	if (c->id != 0)
		s->id = (uint64_t)xsp_import_number(e, c->id, 0);
	if (c->rank == XSP_IMPORT_PYTHON)
		s->caller = (uint64_t)xsp_import_number(e, XSP_ARG_PYTHON_PARENT, 0);
	if (xsp_import_is_literal(e, XSP_ARG_FINISHED, "false") ||
	    xsp_import_is_literal(e, XSP_ARG_EXIT_LOST, "true"))
		s->head.ending = XSP_IMPORT_NOT_SEEN;
	else if (xsp_import_is_literal(e, XSP_ARG_UNWOUND, "true"))
		s->head.ending = XSP_IMPORT_UNWOUND;
	else if (xsp_import_is_literal(e, XSP_ARG_NO_DURATION, "true"))
		s->head.ending = XSP_IMPORT_POINT;
	else if (xsp_import_is_literal(e, XSP_ARG_CUT, "true"))
		s->head.ending = XSP_IMPORT_CUT;
	int rc = xsp_import_thread(m, e, &s->thread);
	if (rc == 0)
		rc = xsp_import_probe(m, e, c->class, &s->probe);
	return rc == 0 && c->class == XSP_IMPORT_CALL ? convert_call(m, e, s) : rc;
}

/* Something of a thread's, as it is sorted. */
static int add(struct xsp_import *m, uint32_t thread, enum xsp_import_count what,
	       const struct xsp_import_head *head, int64_t end_ns)
{
	struct xsp_import_thread *th = &m->threads.rows[thread];

	th->used = m->processes.rows[th->process].used = true;
	xsp_import_counted(m, what);
	cover(m, head->time_ns, end_ns);
	return xsp_sorter_add(m->sorter, (const void *)head);
}

static int add_span(struct xsp_import *m, const struct xsp_import_span *s)
{
	const bool ends = s->end_ns < XSP_IMPORT_TIME_MAX;

	if (s->head.rank == XSP_IMPORT_PYTHON && ends && s->end_ns > m->python_ns)
		m->python_ns = s->end_ns;
	return add(m, s->thread, XSP_IMPORT_SPANS, &s->head, ends ? s->end_ns : s->head.time_ns);
}

/* Waits and copies may be as long as their call, whose record comes at its end. The timeline keeps
 * earlier records only for seconds. */
static bool told_at_end(const struct xsp_import_activity *a)
{
	const struct xsp_gpu_record *record = (const void *)a->record;

	return record->type == XSP_GPU_SYNC || record->type == XSP_GPU_MEMCPY ||
	       record->type == XSP_GPU_MEMCPY_P2P;
}

static int convert_complete(struct xsp_import *m, const struct xsp_import_event *e)
{
	struct xsp_import_activity a;
	struct xsp_import_span s;
	int64_t begin, end;
	bool known;

	if (!interval_of(m, e, &begin, &end))
		return 0;
	if (xsp_import_is(e, XSP_TRACE_CAT, "Trace")) { /* the profiler's own time */
		cover(m, begin, end);
		return 0;
	}
	if (xsp_import_is(e, XSP_TRACE_CAT, "thread_state")) {
		xsp_import_counted(m, XSP_IMPORT_STATES);
		return 0;
	}
	if (xsp_import_is_literal(e, XSP_ARG_SEEN_AT_SPANS, "true")) { /* ours: not calls */
		xsp_import_counted(m, XSP_IMPORT_LINES);
		return 0;
	}
	int rc = xsp_import_activity_of(m, e, &a, &known);
	if (rc < 0)
		return rc;
	if (!known) {
		rc = fill_span(m, e, begin, &s);
		s.end_ns = end;
		return rc < 0 ? rc : add_span(m, &s);
	}
	if (a.head.size == 0) /* derived from what else is imported */
		return 0;
	a.head.time_ns = told_at_end(&a) && end > begin ? end : begin;
	a.begin_ns = begin;
	a.end_ns = end;
	xsp_import_counted(m, XSP_IMPORT_GPU);
	if (xsp_import_is_literal(e, XSP_ARG_CUT, "true"))
		xsp_import_counted(m, XSP_IMPORT_PARTS);
	cover_gpu(m, begin);
	cover_gpu(m, end);
	rc = need_gpu(m);
	if (rc == 0)
		rc = xsp_sorter_add(m->sorter, (const void *)&a);
	if (rc < 0 || !xsp_import_waited_record(e, &a))
		return rc;
	a.head.time_ns = begin;
	return xsp_sorter_add(m->sorter, (const void *)&a);
}

/* ---- B and E ---- */

static int convert_edge(struct xsp_import *m, const struct xsp_import_event *e, bool ends)
{
	struct pair p = {.name = xsp_import_name_hash(e), .ends = ends};
	int64_t ns;
	int rc;

	if (!begin_of(m, e, &ns))
		return 0;
	if (ends) { /* its name is optional */
		p.span = (struct xsp_import_span){.head = {.time_ns = ns}};
		rc = xsp_import_thread(m, e, &p.span.thread);
	} else {
		rc = fill_span(m, e, ns, &p.span);
	}
	p.span.head.size = sizeof(p);
	return rc < 0 ? rc : xsp_sorter_add(m->pairs, (const void *)&p);
}

/* The open spans of a thread, innermost first. */
struct opened {
	struct xsp_import_span span;
	uint64_t name;
	uint32_t around; /* 1 + index; 0: none */
};
struct opens {
	struct opened *list;
	size_t count, capacity;
	uint64_t begins; /* so far */
	uint32_t free; /* 1 + index of an unused one */
	struct xsp_u64map innermost; /* thread → 1 + index */
};

static int open_pair(struct opens *o, const struct pair *p)
{
	const struct xsp_import_span *s = &p->span;
	const uint32_t *innermost = xsp_u64map_get(&o->innermost, s->thread);
	const uint32_t around = innermost != NULL ? *innermost : 0;
	uint32_t at = o->free;

	if (at != 0) {
		o->free = o->list[at - 1].around;
	} else {
		if (o->count >= UINT32_MAX - 1 ||
		    xsp_grow(&o->list, &o->capacity, o->count + 1) < 0)
			return -ENOMEM;
		at = (uint32_t)++o->count;
	}
	o->list[at - 1] = (struct opened){.span = *s, .name = p->name, .around = around};
	o->list[at - 1].span.head.size = sizeof(*s);
	o->begins++;
	if (s->id == 0) /* those that begin and end together keep their order */
		o->list[at - 1].span.id = o->begins;
	return xsp_u64map_set(&o->innermost, s->thread, at);
}

static int close_innermost(struct xsp_import *m, struct opens *o, uint32_t thread, int64_t end_ns,
			   enum xsp_import_ending ending)
{
	const uint32_t *innermost = xsp_u64map_get(&o->innermost, thread);
	const uint32_t at = innermost != NULL ? *innermost : 0;

	if (at == 0) {
		xsp_import_counted(m, XSP_IMPORT_UNPAIRED);
		return 0;
	}
	struct xsp_import_span s = o->list[at - 1].span;
	int rc = xsp_u64map_set(&o->innermost, thread, o->list[at - 1].around);
	o->list[at - 1].around = o->free;
	o->free = at;
	s.end_ns = end_ns;
	if (ending != XSP_IMPORT_RETURNED)
		s.head.ending = (uint8_t)ending;
	return rc < 0 ? rc : add_span(m, &s);
}

/* How many spans inside the one of that name have not ended, so that an E is its own. 0: it is the
 * innermost one, or none is near. */
static unsigned count_inner(const struct opens *o, uint32_t thread, uint64_t name)
{
	const uint32_t *innermost = xsp_u64map_get(&o->innermost, thread);
	unsigned inner = 0;

	for (uint32_t at = innermost != NULL ? *innermost : 0;
	     name != 0 && at != 0 && inner < INNER_MOST; at = o->list[at - 1].around, inner++)
		if (o->list[at - 1].name == name)
			return inner;
	return 0;
}

static int close_pair(struct xsp_import *m, struct opens *o, const struct pair *p)
{
	const int64_t end_ns = p->span.head.time_ns;
	int rc = 0;

	for (unsigned n = count_inner(o, p->span.thread, p->name); n > 0 && rc == 0; n--) {
		xsp_import_counted(m, XSP_IMPORT_OPEN);
		rc = close_innermost(m, o, p->span.thread, end_ns, XSP_IMPORT_NOT_SEEN);
	}
	return rc == 0 ? close_innermost(m, o, p->span.thread, end_ns, XSP_IMPORT_RETURNED) : rc;
}

/* What has not ended is open when the trace ends, and nothing follows it on its stack. */
static int close_rest(struct xsp_import *m, struct opens *o)
{
	int rc = 0;

	for (uint32_t thread = 0; thread < m->threads.count && rc == 0; thread++) {
		const uint32_t *at;
		while (rc == 0 && (at = xsp_u64map_get(&o->innermost, thread)) != NULL &&
		       *at != 0) {
			xsp_import_counted(m, XSP_IMPORT_OPEN);
			rc = close_innermost(m, o, thread, XSP_IMPORT_TIME_MAX,
					     XSP_IMPORT_NOT_SEEN);
		}
	}
	return rc;
}

int xsp_import_convert_pairs(struct xsp_import *m)
{
	struct opens o = {.list = NULL};
	const struct xsp_sorted *record;
	int rc = 0;

	while (rc == 0 && (rc = xsp_sorter_next(m->pairs, &record)) > 0) {
		const struct pair *p = (const void *)record;
		cover(m, record->time_ns, record->time_ns);
		rc = p->ends ? close_pair(m, &o, p) : open_pair(&o, p);
	}
	if (rc == 0)
		rc = close_rest(m, &o);
	xsp_u64map_free(&o.innermost);
	free(o.list);
	return rc;
}

/* ---- [memory] ---- */

static int allocator_probe(struct xsp_import *m, enum xsp_allocator_call call, uint32_t *probe)
{
	size_t i = 0;

	while (xsp_allocator_functions[i].call != call)
		i++;
	const struct xsp_allocator_function *f = &xsp_allocator_functions[i];
	if (m->allocator_probes[call] == 0) {
		int rc = xsp_import_other_probe(m,
						&(struct xsp_capture_probe){.kind = XSP_PROBE_MARK,
									    .provider = "memory",
									    .symbol = f->symbol,
									    .name = f->name},
						probe);
		if (rc < 0)
			return rc;
		m->allocator_probes[call] = *probe + 1;
	}
	*probe = m->allocator_probes[call] - 1;
	return 0;
}

/* As the functions of PyTorch's allocators report it (catalog/allocators.h). */
static int convert_allocation(struct xsp_import *m, const struct xsp_import_event *e)
{
	const int64_t bytes = xsp_import_number(e, XSP_ARG_MEMORY_BYTES, 0);
	const uint64_t type = (uint64_t)xsp_import_number(e, XSP_ARG_DEVICE_TYPE, 0) & 0xff;
	const uint64_t device = (uint64_t)xsp_import_number(e, XSP_ARG_DEVICE_ID, -1) & 0xff;
	const enum xsp_allocator_call call = type != XSP_C10_CPU ? XSP_ALLOCATOR_REPORTS
					     : bytes > 0	 ? XSP_ALLOCATOR_ALLOCATES
								 : XSP_ALLOCATOR_FREES;
	static const uint32_t words[] = {[XSP_ALLOCATOR_ALLOCATES] = 2,
					 [XSP_ALLOCATOR_FREES] = 1,
					 [XSP_ALLOCATOR_REPORTS] = 5};
	struct xsp_import_allocation a = {
		.head = {.size = sizeof(a), .kind = XSP_IMPORT_ALLOCATION},
		.words = words[call],
		.word = {(uint64_t)xsp_import_number(e, XSP_ARG_ADDRESS, 0), (uint64_t)bytes,
			 (uint64_t)xsp_import_number(e, XSP_ARG_ALLOCATED, 0),
			 (uint64_t)xsp_import_number(e, XSP_ARG_RESERVED, 0), device << 8 | type},
	};

	/* our traces report allocations of CUDA's API as PyTorch's do those of its allocators, but
	 * mark them */
	if (xsp_import_is_literal(e, XSP_ARG_CUDA_API, "true")) {
		xsp_import_counted(m, XSP_IMPORT_INSTANTS);
		return 0;
	}
	if (!begin_of(m, e, &a.head.time_ns))
		return 0;
	int rc = xsp_import_thread(m, e, &a.thread);
	if (rc == 0)
		rc = allocator_probe(m, call, &a.probe);
	return rc < 0 ? rc : add(m, a.thread, XSP_IMPORT_MEMORY, &a.head, a.head.time_ns);
}

/* ---- counters ---- */

struct counter {
	struct xsp_import *m;
	const struct xsp_import_event *e;
	struct xsp_import_value value; /* the current value */
	int rc;
};

static int add_value(struct counter *c, const char *key, size_t length)
{
	const int rc = xsp_import_series(c->m, c->e, key, length, &c->value.probe);

	return rc < 0 ? rc
		      : add(c->m, c->value.thread, XSP_IMPORT_VALUES, &c->value.head,
			    c->value.head.time_ns);
}

static const char *convert_series(void *ctx, const char *key, size_t length, const char *value,
				  const char **stopped, bool *deep)
{
	struct counter *c = ctx;

	if (c->rc == 0 && xsp_json_to_real(value, c->m->locale, &c->value.value))
		c->rc = add_value(c, key, length);
	else
		xsp_import_counted(c->m, XSP_IMPORT_COUNTERS);
	return xsp_json_value(value, stopped, deep);
}

/* Each number in it is a series. */
static int convert_counter(struct xsp_import *m, const struct xsp_import_event *e)
{
	struct counter c = {.m = m,
			    .e = e,
			    .value = {.head = {.size = sizeof(c.value), .kind = XSP_IMPORT_VALUE}}};
	const char *stopped;
	bool deep = false;

	if (!xsp_import_has(e, XSP_TRACE_ARGUMENTS) || e->value[XSP_TRACE_ARGUMENTS][0] != '{') {
		xsp_import_counted(m, XSP_IMPORT_COUNTERS);
		return 0;
	}
	if (!begin_of(m, e, &c.value.head.time_ns))
		return 0;
	c.rc = xsp_import_thread(m, e, &c.value.thread);
	if (c.rc == 0)
		xsp_json_members(e->value[XSP_TRACE_ARGUMENTS], convert_series, &c, &stopped,
				 &deep);
	return c.rc;
}

/* ---- all of them ---- */

static int convert_instant(struct xsp_import *m, const struct xsp_import_event *e)
{
	int64_t ns;

	if (xsp_import_is(e, XSP_TRACE_NAME, "[memory]") && xsp_import_has(e, XSP_ARG_MEMORY_BYTES))
		return convert_allocation(m, e);
	if (xsp_import_is(e, XSP_TRACE_NAME, "Record Window End")) {
		if (time_of(e, XSP_TRACE_TS, &ns))
			cover(m, ns, ns);
		return 0;
	}
	if (!xsp_import_is(e, XSP_TRACE_PID, "Traces")) /* "Iteration Start" */
		xsp_import_counted(m, XSP_IMPORT_INSTANTS);
	return 0;
}

/* Arrows from calls to what they caused are derived from correlation ids. */
static int convert_flow(struct xsp_import *m, const struct xsp_import_event *e)
{
	if (!xsp_import_is(e, XSP_TRACE_CAT, "ac2g") &&
	    !xsp_import_is(e, XSP_TRACE_CAT, "async_cpu_to_gpu") &&
	    !xsp_import_is(e, XSP_TRACE_CAT, "async_gpu") && xsp_import_is(e, XSP_TRACE_PH, "s"))
		xsp_import_counted(m, XSP_IMPORT_FLOWS);
	return 0;
}

int xsp_import_convert(struct xsp_import *m, const struct xsp_import_event *e)
{
	const char *phase = xsp_import_has(e, XSP_TRACE_PH) ? e->value[XSP_TRACE_PH] : "";

	xsp_import_counted(m, XSP_IMPORT_EVENTS);
	switch (phase[0] == '"' && phase[1] != '"' && phase[2] == '"' ? phase[1] : '\0') {
	case 'X':
		return convert_complete(m, e);
	case 'B':
	case 'E':
		return convert_edge(m, e, phase[1] == 'E');
	case 'M':
		return xsp_import_convert_metadata(m, e);
	case 'i':
	case 'I':
	case 'R':
		return convert_instant(m, e);
	case 's':
	case 't':
	case 'f':
		return convert_flow(m, e);
	case 'C':
		return convert_counter(m, e);
	case 'b':
	case 'n':
	case 'e':
	case 'S':
	case 'T':
	case 'p':
	case 'F':
		xsp_import_counted(m, XSP_IMPORT_ASYNC);
		return 0;
	default:
		xsp_import_counted(m, XSP_IMPORT_OTHER);
		return 0;
	}
}

/* Of two that begin together, the longer one is outside. */
int xsp_import_compare(const struct xsp_sorted *a, const struct xsp_sorted *b)
{
	const struct xsp_import_span *x = (const void *)a, *y = (const void *)b;

	if (x->head.kind != y->head.kind)
		return x->head.kind < y->head.kind ? -1 : 1;
	if (x->head.kind != XSP_IMPORT_SPAN)
		return 0;
	if (x->end_ns != y->end_ns)
		return x->end_ns > y->end_ns ? -1 : 1;
	if (x->head.rank != y->head.rank)
		return x->head.rank < y->head.rank ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}
