/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * told.c - what a trace of xsptrace's own tells of its recording: window, losses, what the brake did. That of a job tells it for each
 * capture that is in it, in an event.
 */
#include "import/import_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "catalog/allocators.h"

#define CAPTURES_MAX 65536U
#define FACT_MAX 1000U /* bytes of what several captures say together */
#define NOT_TOLD UINT64_MAX /* of lost entries: the other counters are not known either */

/* ---- numbers ---- */

#define TOLD(object, key, member)                                                                  \
	{                                                                                          \
		object,                                                                            \
		{                                                                                  \
			key, offsetof(struct xsp_import_told, member), false                       \
		}                                                                                  \
	}
#define STATS(object, name) TOLD(object, #name, stats.name)
static const struct {
	const char *object;
	struct xsp_import_field field;
} numbers[] = {
	TOLD("xsptrace_window", "start_ns", window_start),
	TOLD("xsptrace_window", "duration_ns", window_duration),
	TOLD("xsptrace_window", "monotonic_start_ns", monotonic_start),
	TOLD("xsptrace_window", "clock_uncertainty_ns", uncertainty),
	TOLD("xsptrace_windows", "windows", windows),
	STATS("xsptrace_losses", events),
	STATS("xsptrace_losses", lost_entries),
	STATS("xsptrace_losses", lost_exits),
	STATS("xsptrace_losses", lost_other),
	STATS("xsptrace_losses", lost_names),
	STATS("xsptrace_losses", missed_hits),
	STATS("xsptrace_losses", untracked),
	STATS("xsptrace_losses", filtered),
	STATS("xsptrace_losses", silent_hits),
	STATS("xsptrace_overhead", probes_cost_ns),
	STATS("xsptrace_overhead", recorder_cpu_ns),
	TOLD("xsptrace_timeline", "filtered", filtered),
	TOLD("xsptrace_timeline", "bad_chunks", bad_chunks),
	TOLD("xsptrace_timeline", "bad_events", bad_events),
	TOLD("xsptrace_gpu", "lost_records", gpu_lost),
	TOLD("xsptrace_gpu", "dropped_records", gpu_dropped),
};

void xsp_import_take_number(const struct xsp_import_field *field, const char *value, void *into)
{
	int64_t number;

	if (!xsp_json_to_number(value, 0, &number) || number < 0)
		return;
	const uint32_t half = number <= UINT32_MAX ? (uint32_t)number : 0;
	if (field->half)
		memcpy((char *)into + field->offset, &half, sizeof(half));
	else
		memcpy((char *)into + field->offset, &number, sizeof(number));
}

static bool is_word(const char *word, const char *key, size_t length)
{
	return strlen(word) == length && memcmp(word, key, length) == 0;
}

/* What the value is that stands at hand. */
struct reading {
	struct xsp_import *m;
	struct xsp_import_told *to;
	const char *object;
	struct xsp_import_told_function function;
	bool let_go;
};

static const char *read_number(void *ctx, const char *key, size_t length, const char *value,
			       const char **stopped, bool *deep)
{
	const struct reading *r = ctx;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (r->object != NULL && strcmp(numbers[i].object, r->object) == 0 &&
		    is_word(numbers[i].field.name, key, length))
			xsp_import_take_number(&numbers[i].field, value, r->to);
	return xsp_json_value(value, stopped, deep);
}

/* ---- facts, in words: what is said of the rest depends on them ---- */

/* Behind the gaps and what came late. */
static const char *const more_facts[XSP_IMPORT_MORE_FACTS] = {
	"calls unseen", "libraries late ns", "unnamed call sites", "filters",
	"version",	"max overhead",	     "worst slowdown",	   "cut",
	"end",
};
#define LATES XSP_GAPS
#define MORE (XSP_GAPS + XSP_CAPTURE_LATES)
#define LATE_NS (MORE + 1)
#define END (MORE + 8)
_Static_assert(END == XSP_IMPORT_FACTS - 1, "the last one");

static const char *fact_key(unsigned i)
{
	return i < LATES  ? xsp_capture_gap_key(i)
	       : i < MORE ? xsp_capture_late_key(i - LATES)
			  : more_facts[i - MORE];
}

static const char *read_fact(void *ctx, const char *key, size_t length, const char *value,
			     const char **stopped, bool *deep)
{
	const struct reading *r = ctx;
	const char *end = xsp_json_value(value, stopped, deep);

	for (unsigned i = 0; i < XSP_IMPORT_FACTS && end != NULL && *value == '"'; i++) {
		if (!is_word(fact_key(i), key, length))
			continue;
		r->to->facts[i] = xsp_import_keep(r->m, value);
		if (r->to->facts[i] == NULL)
			r->m->error = -ENOMEM;
	}
	return end;
}

/* ---- functions: let go of, or with losses ---- */

static const char *read_function_field(void *ctx, const char *key, size_t length, const char *value,
				       const char **stopped, bool *deep)
{
	static const struct xsp_import_field fields[] = {
		{"after_ns", offsetof(struct xsp_import_told_function, first), false},
		{"entries", offsetof(struct xsp_import_told_function, first), false},
		{"calls_per_second", offsetof(struct xsp_import_told_function, second), false},
		{"exits", offsetof(struct xsp_import_told_function, second), false},
	};
	struct reading *r = ctx;
	const char *end = xsp_json_value(value, stopped, deep);

	if (end != NULL && is_word("name", key, length) &&
	    (r->function.name = xsp_import_keep(r->m, value)) == NULL)
		r->m->error = -ENOMEM;
	for (size_t i = 0; end != NULL && i < sizeof(fields) / sizeof(fields[0]); i++)
		if (is_word(fields[i].name, key, length))
			xsp_import_take_number(&fields[i], value, &r->function);
	return end;
}

static const char *read_function(struct reading *r, const char *text, const char **stopped,
				 bool *deep)
{
	struct xsp_import_told_functions *to = r->let_go ? &r->to->let_go : &r->to->lost;

	if (*text != '{')
		return xsp_json_value(text, stopped, deep);
	r->function = (struct xsp_import_told_function){.name = NULL};
	const char *end = xsp_json_members(text, read_function_field, r, stopped, deep);
	if (end != NULL && r->function.name != NULL &&
	    XSP_APPEND(to->list, to->capacity, to->count, r->function) < 0)
		r->m->error = -ENOMEM;
	return end;
}

/* A text that is not there as a whole is read again, from its beginning. */
static const char *read_functions(struct reading *r, const char *text, const char **stopped,
				  bool *deep)
{
	(r->let_go ? &r->to->let_go : &r->to->lost)->count = 0;
	text = xsp_json_blanks(text + 1);
	if (*text == ']')
		return text + 1;
	while ((text = read_function(r, text, stopped, deep)) != NULL) {
		text = xsp_json_blanks(text);
		*stopped = text;
		if (*text == ']')
			return text + 1;
		if (*text != ',')
			return NULL;
		text = xsp_json_blanks(text + 1);
	}
	return NULL;
}

/* ---- all of it ---- */

static const char *read_value(struct reading *r, const char *text, const char **stopped, bool *deep)
{
	const bool lost = strcmp(r->object, "xsptrace_lost_by_function") == 0;

	r->let_go = strcmp(r->object, "xsptrace_let_go") == 0;
	if (*text == '[' && (r->let_go || lost))
		return read_functions(r, text, stopped, deep);
	if (*text != '{')
		return xsp_json_value(text, stopped, deep);
	return xsp_json_members(
		text, strcmp(r->object, "xsptrace_capture") == 0 ? read_fact : read_number, r,
		stopped, deep);
}

/* The key as it stands here; NULL: it is none of these. */
static const char *object_of(const char *key, size_t length)
{
	static const char *const others[] = {"xsptrace_capture", "xsptrace_let_go",
					     "xsptrace_lost_by_function"};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (is_word(numbers[i].object, key, length))
			return numbers[i].object;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (is_word(others[i], key, length))
			return others[i];
	return NULL;
}

static const char *parse_value(void *ctx, const char *text, const char **stopped, bool *deep)
{
	return read_value(ctx, text, stopped, deep);
}

bool xsp_import_told_key(struct xsp_import *m, const char *key, struct xsp_json_stream *s,
			 enum xsp_json_state *state)
{
	struct reading r = {.m = m, .to = &m->own, .object = object_of(key, strlen(key))};

	if (strcmp(key, "xsptrace_version") == 0 || strcmp(key, "xsptrace_window") == 0)
		m->ours = true;
	if (r.object == NULL)
		return false;
	if (xsp_json_peek(s, state) != '\0')
		*state = xsp_json_parse(s, parse_value, &r);
	if (m->error < 0)
		*state = XSP_JSON_FAILED;
	return true;
}

static const char *read_member(void *ctx, const char *key, size_t length, const char *value,
			       const char **stopped, bool *deep)
{
	struct reading *r = ctx;

	r->object = object_of(key, length);
	return r->object != NULL ? read_value(r, value, stopped, deep)
				 : xsp_json_value(value, stopped, deep);
}

void xsp_import_told_init(struct xsp_import_told *t)
{
	*t = (struct xsp_import_told){.window_start = -1,
				      .window_duration = -1,
				      .monotonic_start = -1,
				      .uncertainty = -1,
				      .stats = {.lost_entries = NOT_TOLD}};
}

int xsp_import_told_event(struct xsp_import *m, const struct xsp_import_event *e)
{
	struct reading r = {.m = m};
	struct xsp_import_told told;
	const char *stopped;
	bool deep = false;

	if (m->merged_count >= CAPTURES_MAX || !xsp_import_has(e, XSP_TRACE_ARGUMENTS) ||
	    e->value[XSP_TRACE_ARGUMENTS][0] != '{')
		return 0;
	m->ours = true;
	xsp_import_told_init(&told);
	r.to = &told;
	xsp_json_members(e->value[XSP_TRACE_ARGUMENTS], read_member, &r, &stopped, &deep);
	xsp_import_counted(m, XSP_IMPORT_CAPTURES);
	if (XSP_APPEND(m->merged, m->merged_capacity, m->merged_count, told) == 0)
		return m->error;
	xsp_import_told_clear(&told);
	return -ENOMEM;
}

void xsp_import_told_clear(struct xsp_import_told *t)
{
	free(t->let_go.list);
	free(t->lost.list);
}

/* ---- into the capture ---- */

static size_t captures(const struct xsp_import *m)
{
	return m->merged_count > 0 ? m->merged_count : 1;
}

static const struct xsp_import_told *capture_at(const struct xsp_import *m, size_t i)
{
	return m->merged_count > 0 ? &m->merged[i] : &m->own;
}

/* Of several captures the brake left out time of some only: the others recorded all of theirs. */
int xsp_import_told_windows(struct xsp_import *m)
{
	int rc = 0;

	for (size_t i = 0; i < m->merged_count && m->window_count > 0 && rc == 0; i++) {
		const struct xsp_import_told *t = &m->merged[i];
		const int64_t begin = t->window_start - m->base_ns;
		if (t->windows == 0 && t->window_start >= 0 && t->window_duration > 0 &&
		    t->window_start <= XSP_IMPORT_TIME_MAX &&
		    t->window_duration <= XSP_IMPORT_TIME_MAX)
			rc = XSP_APPEND(
				m->windows, m->window_capacity, m->window_count,
				((struct xsp_import_window){begin, begin + t->window_duration}));
	}
	return rc;
}

static int put_let_go(struct xsp_import *m, uint32_t probe,
		      const struct xsp_import_told_function *f, uint64_t start_ns)
{
	const uint64_t after = f->first <= XSP_IMPORT_TIME_MAX ? (uint64_t)f->first : 0;

	return xsp_capture_put_let_go(
		m->w, &(struct xsp_capture_let_go){probe, start_ns + after, (uint64_t)f->second});
}

static int put_lost(struct xsp_import *m, uint32_t probe, const struct xsp_import_told_function *f)
{
	return xsp_capture_put_lost(
		m->w, &(struct xsp_capture_lost){probe, (uint64_t)f->first, (uint64_t)f->second});
}

/*
 * Each is a function of its own, without calls: names may be those of several functions, and those of the others were
 * recorded on.
 */
static int define(struct xsp_import *m, const char *name, uint32_t *probe)
{
	struct xsp_capture_probe p = {
		.kind = XSP_PROBE_FUNCTION, .provider = "trace", .symbol = "cpu_op", .name = name};

	/* what is alive is not known where these lost any */
	for (size_t i = 0; i < xsp_allocator_function_count; i++)
		if (strcmp(xsp_allocator_functions[i].name, name) == 0)
			p = (struct xsp_capture_probe){.kind = XSP_PROBE_MARK,
						       .provider = "memory",
						       .symbol = xsp_allocator_functions[i].symbol,
						       .name = name};
	return xsp_import_other_probe(m, &p, probe);
}

int xsp_import_told_functions(struct xsp_import *m, int64_t offset, uint64_t start_ns)
{
	uint32_t probe;
	int rc = 0;

	for (size_t i = 0; i < captures(m) && rc == 0; i++) {
		const struct xsp_import_told *t = capture_at(m, i);
		const bool known = t->window_start >= 0 && t->window_start <= XSP_IMPORT_TIME_MAX;
		const int64_t own = known ? t->window_start - m->base_ns + offset : 0;
		for (size_t k = 0; k < t->let_go.count && rc == 0; k++) {
			rc = define(m, t->let_go.list[k].name, &probe);
			if (rc == 0)
				rc = put_let_go(m, probe, &t->let_go.list[k],
						own > 0 ? (uint64_t)own : start_ns);
		}
		for (size_t k = 0; k < t->lost.count && rc == 0; k++) {
			rc = define(m, t->lost.list[k].name, &probe);
			if (rc == 0)
				rc = put_lost(m, probe, &t->lost.list[k]);
		}
	}
	return rc;
}

/* What two captures say of the same: numbers of gaps are added up. NULL: no memory. */
static const char *joined(struct xsp_import *m, unsigned fact, const char *a, const char *b)
{
	char *rest, text[2 * FACT_MAX];
	const uint64_t x = strtoull(a, &rest, 10), y = strtoull(b, NULL, 10);

	if (fact == LATE_NS)
		return x > y ? a : b;
	if (fact < LATES && x > 0 && y > 0)
		snprintf(text, sizeof(text), "%" PRIu64 "%.*s", x + y, (int)FACT_MAX, rest);
	else if (strcmp(a, b) == 0 || strlen(a) >= FACT_MAX)
		return a;
	else
		snprintf(text, sizeof(text), "%s; %.*s", a, (int)FACT_MAX - 2, b);
	return xsp_arena_copy(&m->texts, text, strlen(text));
}

static int put_fact(struct xsp_import *m, unsigned fact, const char *text)
{
	if (fact != END)
		return xsp_capture_put_info(m->w, fact_key(fact), text);
	return strcmp(text, "complete") == 0
		       ? 0
		       : xsp_capture_put_info(m->w, xsp_capture_gap_key(XSP_GAP_END),
					      "the capture that the trace was made of had no end, "
					      "or was torn");
}

static int put_facts(struct xsp_import *m)
{
	int rc = 0;

	for (unsigned fact = 0; fact < XSP_IMPORT_FACTS && rc == 0; fact++) {
		const char *text = NULL;
		for (size_t i = 0; i < captures(m) && rc == 0; i++) {
			const char *more = capture_at(m, i)->facts[fact];
			if (more == NULL)
				continue;
			text = text != NULL ? joined(m, fact, text, more) : more;
			rc = text != NULL ? 0 : -ENOMEM;
		}
		if (rc == 0 && text != NULL)
			rc = put_fact(m, fact, text);
	}
	return rc;
}

/* Events that could not be read are lost: the capture that is made is not damaged itself. */
static void add_stats(struct xsp_capture_stats *to, const struct xsp_import_told *t)
{
	uint64_t *sums = (uint64_t *)(void *)to;
	const uint64_t *more = (const uint64_t *)(const void *)&t->stats;

	for (size_t i = 0; i < sizeof(*to) / sizeof(*sums); i++)
		sums[i] += more[i];
	to->lost_other += (uint64_t)t->bad_chunks + (uint64_t)t->bad_events;
	to->filtered += (uint64_t)t->filtered;
}
_Static_assert(sizeof(struct xsp_capture_stats) % sizeof(uint64_t) == 0, "all are numbers");

int xsp_import_told_put(struct xsp_import *m)
{
	struct xsp_capture_stats stats = {0};
	uint64_t lost = 0;
	bool known = true;
	char number[24];
	int rc = put_facts(m);

	for (size_t i = 0; i < captures(m); i++) {
		const struct xsp_import_told *t = capture_at(m, i);
		known = known && t->stats.lost_entries != NOT_TOLD;
		lost += (uint64_t)t->gpu_lost + (uint64_t)t->gpu_dropped;
		add_stats(&stats, t);
	}
	snprintf(number, sizeof(number), "%" PRIu64, lost);
	if (rc == 0 && lost > 0)
		rc = xsp_capture_put_info(m->w, "gpu records lost", number);
	/* the sum of all is told, not what of it lies in which span */
	if (stats.probes_cost_ns > 0)
		m->report->counts[XSP_IMPORT_PROBE_TIME] = m->report->counts[XSP_IMPORT_SPANS];
	return rc == 0 && known ? xsp_capture_put_stats(m->w, &stats) : rc;
}
