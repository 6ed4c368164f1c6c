/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/names/hot_code.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/rows/tally.h"
#include "catalog/compilers.h"
#include "catalog/wait_reasons.h"
#include "timeline/python.h"

#define SECOND_NS 1000000000ULL
#define DETAILS_MAX (1U << 18) /* bounds programs that start threads without end */
#define NOBODY UINT32_MAX

struct xsp_hot_code {
	struct xsp_timeline *timeline;
	XSP_TALLY(struct xsp_hot_process) processes; /* by pid */
	XSP_TALLY(struct xsp_hot_function) functions; /* by process and name */
	XSP_TALLY(struct xsp_hot_detail) details; /* by function, what, value */
};

static int begin(struct xsp_timeline *t, struct xsp_capture_reader *r, void **state)
{
	(void)r;
	*state = NULL;
	if (!xsp_timeline_has_samples(t))
		return 0;
	struct xsp_hot_code *h = calloc(1, sizeof(*h));
	if (h == NULL)
		return -ENOMEM;
	h->timeline = t;
	h->details.tally.most = DETAILS_MAX;
	*state = h;
	return 0;
}

static void end(void *state)
{
	struct xsp_hot_code *h = state;

	xsp_tally_free(&h->processes);
	xsp_tally_free(&h->functions);
	xsp_tally_free(&h->details);
	free(h);
}

/* ---- names ---- */

/* Equal for all lines of a function. */
static uint64_t python_key(const char *text)
{
	size_t length;
	const char *function;

	if (!xsp_python_line_split(text, &length, &function))
		return xsp_text_hash(text, strlen(text));
	return xsp_u64_mix(xsp_text_hash(text, length)) ^ xsp_text_hash(function, strlen(function));
}

/* The interpreter's own work counts as that of the Python function. */
static bool is_interpreter(const char *file)
{
	return strncmp(file, "python", 6) == 0 || strncmp(file, "libpython", 9) == 0;
}

static bool has_name(const char *function)
{
	return strcmp(function, "[unknown]") != 0 && strcmp(function, "[kernel]") != 0 &&
	       strncmp(function, "0x", 2) != 0 && !xsp_is_generated(function);
}

/* ---- counting ---- */

static void count_second(struct xsp_hot_function *f, const struct xsp_sample *s)
{
	if (f->in_second == 0 || s->time_ns - f->second_ns >= SECOND_NS) {
		f->second_ns = s->time_ns;
		f->in_second = 0;
	}
	if (++f->in_second <= f->most_in_second)
		return;
	f->most_in_second = f->in_second;
	f->from_ns = f->second_ns - (f->second_ns > s->period_ns ? s->period_ns : 0);
	f->to_ns = s->time_ns;
}

/* -ENOMEM, or the function's index. */
static long count_function(struct xsp_hot_code *h, uint64_t key, struct xsp_hot_function first,
			   const struct xsp_sample *s)
{
	struct xsp_hot_function *f =
		xsp_tally_row(&h->functions, xsp_u64_mix(key + first.process), &first);

	if (f == NULL)
		return -ENOMEM;
	f->samples++;
	f->ns += s->period_ns;
	count_second(f, s);
	return xsp_tally_index(&h->functions, f);
}

static int count_detail(struct xsp_hot_code *h, long function, enum xsp_hot_what what,
			uint32_t value)
{
	const uint64_t key = (uint64_t)function << 35 | (uint64_t)what << 32 | value;
	const struct xsp_hot_detail first = {(uint32_t)function, what, value, 0};

	if (value == NOBODY)
		return 0;
	struct xsp_hot_detail *d = xsp_tally_row(&h->details, key, &first);
	if (d == NULL)
		return h->details.tally.error;
	d->samples++;
	return 0;
}

static const char *name_at(const struct xsp_hot_code *h, const struct xsp_sample *s, size_t i)
{
	return xsp_timeline_name(h->timeline, s->path[i] & ~XSP_PATH_FRAME);
}

/* The first other function outside of `at`; a function may call itself. */
static uint32_t caller_of(const struct xsp_hot_code *h, const struct xsp_sample *s, size_t at,
			  bool python)
{
	const uint64_t own = python ? python_key(name_at(h, s, at)) : 0;

	for (size_t i = at; i > 0; i--) {
		const char *name = name_at(h, s, i - 1);
		const bool same = python ? python_key(name) == own
					 : ((s->path[i - 1] ^ s->path[at]) & ~XSP_PATH_FRAME) == 0;
		if (!same && (python || !xsp_wait_is_primitive(name)))
			return s->path[i - 1] & ~XSP_PATH_FRAME;
	}
	return NOBODY;
}

static uint32_t span_of(const struct xsp_sample *s)
{
	for (size_t i = s->path_length; i > 0; i--)
		if ((s->path[i - 1] & XSP_PATH_FRAME) == 0)
			return s->path[i - 1];
	return NOBODY;
}

static int count_details(struct xsp_hot_code *h, long function, const struct xsp_sample *s,
			 size_t at)
{
	const bool python = h->functions.rows[function].python;
	const uint32_t line = s->line != 0 ? s->line - 1 : NOBODY;
	int rc = count_detail(h, function, XSP_HOT_THREAD, s->tid);

	if (rc == 0)
		rc = count_detail(h, function, XSP_HOT_CALLER, caller_of(h, s, at, python));
	if (rc == 0)
		rc = count_detail(h, function, XSP_HOT_LINE, line);
	return rc < 0 ? rc : count_detail(h, function, XSP_HOT_SPAN, span_of(s));
}

/* *index: the native function. It stays unchanged if the function has no name, or is the
 * interpreter at work for Python. */
static int count_native(struct xsp_hot_code *h, uint32_t process, const struct xsp_sample *s,
			uint32_t *index)
{
	const size_t at = s->path_length - 1 - s->kernel_length;
	const xsp_name_id name = xsp_sample_place(s), file = s->kernel ? 0 : s->file;

	if (!has_name(name_at(h, s, at)) ||
	    (s->line != 0 && file != 0 && is_interpreter(xsp_timeline_name(h->timeline, file))))
		return 0;
	const long f = count_function(
		h, xsp_u64_mix((uint64_t)file << 32 | name),
		(struct xsp_hot_function){.process = process, .name = name, .file = file}, s);
	if (f < 0)
		return -ENOMEM;
	*index = (uint32_t)f;
	return count_details(h, f, s, at);
}

static int count_python(struct xsp_hot_code *h, uint32_t process, const struct xsp_sample *s,
			uint32_t inside, uint32_t *index)
{
	const xsp_name_id name = s->line - 1;
	size_t at = s->path_length;

	while (at > 0 && (s->path[at - 1] & ~XSP_PATH_FRAME) != name)
		at--;
	if (at == 0)
		return 0;
	const long f = count_function(
		h, ~xsp_u64_mix(python_key(xsp_timeline_name(h->timeline, name))),
		(struct xsp_hot_function){.process = process, .python = true, .name = name}, s);
	int rc = f < 0 ? -ENOMEM : count_details(h, f, s, at - 1);
	*index = f < 0 ? NOBODY : (uint32_t)f;
	return rc < 0 ? rc : count_detail(h, f, XSP_HOT_INSIDE, inside);
}

/* Packages (logging, json) spread their work over many functions, so the program's line that
 * calls them counts. Operators have findings of their own. */
static int count_packages(struct xsp_hot_code *h, uint32_t process, const struct xsp_sample *s,
			  uint32_t native, uint32_t python)
{
	const xsp_name_id name = s->own_line - 1;
	const char *line = xsp_timeline_name(h->timeline, name);

	if (s->own_line == 0 || s->own_line == s->line || span_of(s) != NOBODY)
		return 0;
	const long f = count_function(
		h, ~xsp_text_hash(line, strlen(line)),
		(struct xsp_hot_function){
			.process = process, .python = true, .with_packages = true, .name = name},
		s);
	int rc = f < 0 ? -ENOMEM : count_detail(h, f, XSP_HOT_THREAD, s->tid);

	if (rc == 0)
		rc = count_detail(h, f, XSP_HOT_LINE, name);
	if (rc == 0)
		rc = count_detail(h, f, XSP_HOT_INSIDE_PYTHON, python);
	return rc < 0 ? rc : count_detail(h, f, XSP_HOT_INSIDE, native);
}

/* Page faults have a rule of their own. */
static int on_sample(void *ctx, const struct xsp_sample *s)
{
	struct xsp_hot_code *h = ctx;
	struct xsp_hot_process *p =
		xsp_tally_row(&h->processes, s->pid, &(struct xsp_hot_process){.pid = s->pid});
	uint32_t native = NOBODY, python = NOBODY;

	if (p == NULL)
		return -ENOMEM;
	p->samples++;
	p->ns += s->period_ns;
	if (s->page_fault)
		return 0;
	const uint32_t process = xsp_tally_index(&h->processes, p);
	int rc = count_native(h, process, s, &native);
	if (rc == 0 && s->line != 0)
		rc = count_python(h, process, s, native, &python);
	return rc < 0 ? rc : count_packages(h, process, s, native, python);
}

static struct xsp_timeline_sink sink(void *state)
{
	return (struct xsp_timeline_sink){.ctx = state, .sample = on_sample};
}

/* ---- for rules ---- */

XSP_TALLY_ROWS(xsp_hot_functions, xsp_hot_code, xsp_hot_function, functions);

const struct xsp_hot_process *xsp_hot_process(const struct xsp_hot_code *h,
					      const struct xsp_hot_function *f)
{
	return &h->processes.rows[f->process];
}

XSP_TALLY_ROWS(xsp_hot_details, xsp_hot_code, xsp_hot_detail, details);

const struct xsp_hot_detail *xsp_hot_most(const struct xsp_hot_code *h,
					  const struct xsp_hot_function *f, enum xsp_hot_what what,
					  size_t *count)
{
	const struct xsp_hot_detail *most = NULL;
	size_t n = 0;

	for (size_t i = 0; i < h->details.count; i++) {
		const struct xsp_hot_detail *d = &h->details.rows[i];
		if (d->function != xsp_tally_index(&h->functions, f) || d->what != what)
			continue;
		n++;
		if (most == NULL || d->samples > most->samples)
			most = d;
	}
	if (count != NULL)
		*count = n;
	return most;
}

const char *xsp_hot_line_of(const struct xsp_hot_code *h, uint32_t tid)
{
	const struct xsp_hot_detail *most = NULL, *line = NULL;

	for (size_t i = 0; i < h->details.count; i++) {
		const struct xsp_hot_detail *d = &h->details.rows[i];
		const struct xsp_hot_function *f = &h->functions.rows[d->function];
		if (d->what == XSP_HOT_THREAD && d->value == tid && f->python &&
		    !f->with_packages && (most == NULL || d->samples > most->samples))
			most = d;
	}
	if (most != NULL)
		line = xsp_hot_most(h, &h->functions.rows[most->function], XSP_HOT_LINE, NULL);
	return line != NULL ? xsp_timeline_name(h->timeline, line->value) : NULL;
}

const struct xsp_analysis xsp_analysis_hot_code = {
	.name = "hot_code",
	.begin = begin,
	.sink = sink,
	/* no report: rules report it */
	.end = end,
};
