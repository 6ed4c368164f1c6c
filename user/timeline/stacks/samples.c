/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * samples.c - hands on samples: the thread's open spans, Python functions around or between them,
 * and below them the native functions.
 */
#include "timeline/samples.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "catalog/wait_reasons.h"
#include "timeline/python.h"
#include "timeline/timeline_private.h"

/* The two lines that an instruction becomes. */
struct place {
	xsp_name_id function, file;
};

/* Where a sample found its thread: the function, and what is inlined there, the outermost first. */
struct spot {
	struct place place;
	uint64_t address;
	xsp_name_id inlined[XSP_INLINED_DEPTH];
	size_t count;
};

struct xsp_samples {
	const char *clock; /* "cpu-clock 99" */
	struct name_path path;
	XSP_TALLY(struct place) places; /* by hash of the instruction */
};

static int begin(struct xsp_timeline *t)
{
	const char *text = xsp_capture_info(t->reader, "samples");

	if (text == NULL || strcmp(text, "off") == 0)
		return 0;
	t->samples = calloc(1, sizeof(*t->samples));
	if (t->samples == NULL)
		return -ENOMEM;
	t->samples->clock = text;
	return 1;
}

static void free_samples(struct xsp_timeline *t)
{
	if (t->samples == NULL)
		return;
	xsp_tally_free(&t->samples->places);
	free(t->samples->path.ids);
	free(t->samples);
}

bool xsp_timeline_has_samples(const struct xsp_timeline *t)
{
	return t->samples != NULL;
}

/* Has it functions or ranges, and not only internal probes? */
static bool traces_anything(const struct xsp_timeline *t)
{
	const struct xsp_capture_probe *probes;
	const size_t count = xsp_capture_probes(t->reader, &probes);
	size_t i = 0;

	while (i < count && probes[i].kind == XSP_PROBE_MARK)
		i++;
	return i < count;
}

bool xsp_timeline_samples_asked(const struct xsp_timeline *t)
{
	return t->samples != NULL &&
	       (!xsp_capture_by_default(t->reader, "samples") || !traces_anything(t));
}

uint64_t xsp_timeline_samples_until_ns(const struct xsp_timeline *t)
{
	return xsp_capture_until_ns(t->reader, "samples");
}

const char *xsp_timeline_sample_clock(const struct xsp_timeline *t)
{
	return t->samples != NULL && strncmp(t->samples->clock, "cycles", 6) == 0 ? "cycles"
										  : "cpu-clock";
}

uint64_t xsp_timeline_sample_hz(const struct xsp_timeline *t)
{
	const char *blank = t->samples != NULL ? strchr(t->samples->clock, ' ') : NULL;

	return blank != NULL ? strtoull(blank, NULL, 10) : 0;
}

uint32_t xsp_sample_place(const struct xsp_sample *s)
{
	return s->kernel ? s->path[s->path_length - 1 - s->kernel_length] & ~XSP_PATH_FRAME
			 : s->function;
}

/* ---- names ---- */

static int name_id(struct xsp_timeline *t, const char *text, xsp_name_id *out)
{
	return xsp_names_of_text(t, text, strlen(text), out);
}

static int make_place(struct xsp_timeline *t, uint64_t hash, struct place *out)
{
	const char *known = xsp_names_text(t, hash), *text = known != NULL ? known : "\n";
	const char *function = strchr(text, '\n');
	char file[72];
	int rc = 0;

	if (function == NULL)
		function = "\n"; /* damaged */
	snprintf(file, sizeof(file), "%.*s", (int)(function - text), text);
	rc = name_id(t, function[1] != '\0' ? function + 1 : "[unknown]", &out->function);
	if (rc == 0 && file[0] != '\0')
		rc = name_id(t, file, &out->file);
	return rc;
}

static int place_of(struct xsp_timeline *t, uint32_t pid, uint64_t address, struct place *out)
{
	struct xsp_samples *s = t->samples;
	const uint64_t hash = xsp_timeline_address_hash(t, XSP_NAME_OF_CODE, pid, address);
	const struct place *known = xsp_tally_find(&s->places, hash);

	*out = known != NULL ? *known : (struct place){0};
	if (known != NULL)
		return 0;
	int rc = make_place(t, hash, out);
	if (rc < 0 || s->places.count >= XSP_MAX_RANGE_NAMES)
		return rc;
	return xsp_tally_row(&s->places, hash, out) == NULL ? -ENOMEM : 0;
}

static int spot_of(struct xsp_timeline *t, uint32_t pid, uint64_t address, struct spot *out)
{
	int rc = place_of(t, pid, address, &out->place);

	out->address = address;
	out->count = xsp_inlined_at(t, XSP_NAME_OF_INLINED_CODE, pid, address, out->inlined);
	return rc;
}

/* ---- the path ---- */

static int push(struct xsp_samples *s, xsp_name_id function)
{
	return xsp_path_push(&s->path, &function, 1);
}

static int push_named(struct xsp_timeline *t, const char *text)
{
	xsp_name_id id;
	int rc = name_id(t, text, &id);

	return rc < 0 ? rc : push(t->samples, id);
}

static bool spans_have_python(const struct row *row)
{
	for (size_t i = 0; i < row->count; i++)
		if (xsp_details_find(row->spans[i].details, XSP_SECTION_PYTHON, NULL) != NULL)
			return true;
	return false;
}

static int line_of(struct xsp_timeline *t, const struct xsp_capture_python_frame *frame,
		   uint32_t *line)
{
	int rc = xsp_python_name(t, frame, line);

	*line = rc == 0 ? *line + 1 : 0;
	return rc;
}

static int own_place(struct xsp_timeline *t, const struct open_span *at, struct xsp_sample *s)
{
	const struct xsp_capture_python *stack =
		xsp_timeline_python(t, xsp_details_find(at->details, XSP_SECTION_PYTHON, NULL));
	const uint32_t own = stack != NULL ? xsp_python_own(t, stack->frames, stack->count) : 0;

	if (stack == NULL || own >= stack->count)
		return 0;
	const int rc = line_of(t, &stack->frames[own], &s->own_place);
	return rc == 0 ? xsp_python_callers(t, stack, own, &s->callers) : rc;
}

/* Pushes Python functions between spans if the spans say between which. Otherwise they come before
 * all spans, as operators rarely call Python. *call: hash of the name of what the innermost of them calls; 0: not known. */
static int push_spans(struct xsp_timeline *t, struct thread *th, struct row *row,
		      const struct open_span *at, struct xsp_sample *s, uint64_t *call)
{
	const struct xsp_capture_python *stack =
		xsp_timeline_python(t, xsp_details_find(at->details, XSP_SECTION_PYTHON, NULL));
	const struct xsp_capture_python_frame *frames;
	const uint32_t n = xsp_python_between(t, row, row->count, at, &frames);
	const struct open_span bare = {.sp = at->sp};
	const bool inside = spans_have_python(row);
	struct name_path *path = &t->samples->path;
	int rc = inside ? 0 : xsp_path_push_python(t, path, frames, n);

	*call = n > 0 && frames == stack->frames ? stack->call : 0;

	if (rc == 0)
		rc = xsp_path_to(t, th->pid, row, row->count, &bare);
	for (uint32_t i = 0; rc == 0 && i < row->path.length; i++)
		rc = XSP_APPEND(path->ids, path->capacity, path->length, row->path.ids[i]);
	if (rc == 0 && inside)
		rc = xsp_path_push_python(t, path, frames, n);
	if (rc == 0 && n > 0)
		rc = line_of(t, &frames[0], &s->line);
	const uint32_t own = rc == 0 ? xsp_python_own(t, frames, n) : n;
	if (own < n)
		rc = line_of(t, &frames[own], &s->own_line);
	return rc == 0 && t->places_wanted ? own_place(t, at, s) : rc;
}

/* The interpreter's own function: Python's functions replace its callers. */
static bool is_evaluator(const char *name)
{
	return strncmp(name, "_PyEval_EvalFrameDefault", 24) == 0;
}

/* The callers that are shown. */
struct shown {
	const uint64_t *frames; /* innermost first */
	size_t count;
	bool own; /* of the next one only what is inlined there */
};

/* Up to the span around, or to the interpreter. */
static struct shown callers_of(const struct xsp_timeline *t, uint32_t pid,
			       const struct stack_frames *stack, struct frames_between between,
			       bool python)
{
	size_t n = 0;

	while (n < between.count) {
		const char *name = xsp_timeline_frame(t, pid, XSP_FRAME_ADDRESS(stack->frames[n]));
		if (python && name != NULL && is_evaluator(name))
			break;
		n++;
	}
	return (struct shown){stack->frames, n, between.own && n == between.count};
}

/* The functions that the path has for an address. */
struct part {
	uint32_t end; /* the path ends there, or goes on with other addresses' */
	uint32_t count;
	uint32_t inlined; /* the last ones of these */
};

/* Which of them is the program's own place, and the own ones around it. */
static void own_in(const struct xsp_timeline *t, enum xsp_address_name what, uint64_t address,
		   struct part part, struct xsp_sample *s)
{
	const xsp_name_id *end = t->samples->path.ids + part.end;
	xsp_name_id ids[XSP_FRAME_FUNCTIONS];

	if (!xsp_frame_is_own(t, s->pid, address))
		return;
	for (uint32_t i = 0; i < part.count; i++)
		ids[i] = *--end;
	size_t around = xsp_inlined_helpers(t, what, s->pid, address, part.inlined);
	if (s->own_function == 0) {
		const size_t own = xsp_own_place(t, ids, part.count, around);
		s->own_function = own < part.count ? part.end - (uint32_t)own : 0;
		around = own + 1;
	}
	if (s->own_place == 0)
		xsp_own_callers_add(t, ids, part.count, around, &s->callers);
}

/* The same of where the sample is, with which the path ends, and of its callers. */
static void find_own(const struct xsp_timeline *t, uint64_t address, struct part part,
		     const struct shown *callers, struct xsp_sample *s)
{
	xsp_name_id ids[XSP_INLINED_DEPTH];

	own_in(t, XSP_NAME_OF_INLINED_CODE, address, part, s);
	for (size_t i = 0;
	     i < callers->count + callers->own &&
	     (s->own_function == 0 || (s->own_place == 0 && s->callers.count < XSP_OWN_CALLERS));
	     i++) {
		const uint64_t at = XSP_FRAME_ADDRESS(callers->frames[i]);
		part.end -= part.count;
		part.inlined = (uint32_t)xsp_inlined_at(t, XSP_NAME_OF_INLINED, s->pid, at, ids);
		part.count = part.inlined + (i < callers->count);
		own_in(t, XSP_NAME_OF_INLINED, at, part, s);
	}
}

/* A call of Python's, which its native functions belong to. */
static int push_call(struct xsp_timeline *t, uint64_t call)
{
	const struct xsp_capture_python_frame frame = {.name = call};

	return call != 0 ? xsp_path_push_python(t, &t->samples->path, &frame, 1) : 0;
}

/* Where the sample is. */
static int push_spot(struct xsp_timeline *t, const struct spot *spot,
		     const struct open_span *around, bool called, struct part *out)
{
	const struct place *place = &spot->place;
	/* the span's own function is there already */
	const bool there = !called && around != NULL && !around->range &&
			   strcmp(xsp_timeline_name(t, place->function),
				  xsp_timeline_name(t, t->probe_names[around->probe])) == 0;
	int rc = there ? 0 : push(t->samples, place->function);

	for (size_t i = 0; i < spot->count && rc == 0; i++)
		rc = push(t->samples, spot->inlined[i]);
	out->inlined = (uint32_t)spot->count;
	out->count = out->inlined + !there;
	out->end = t->samples->path.length;
	return rc;
}

static int push_native(struct xsp_timeline *t, struct thread *th, struct row *row,
		       const struct open_span *at, const struct spot *spot, uint64_t call,
		       struct xsp_sample *s)
{
	const bool python = s->line != 0;
	const struct open_span *around = row->count > 0 ? &row->spans[row->count - 1] : NULL;
	const struct stack_frames stack = xsp_stack_frames_of(at);
	const bool leaf = python && is_evaluator(xsp_timeline_name(t, spot->place.function));
	const struct shown shown =
		leaf ? (struct shown){NULL, 0, false}
		     : callers_of(t, th->pid, &stack, xsp_frames_between(t, th->pid, at, around),
				  python);
	int rc = stack.more && shown.count == stack.count
			 ? push_named(t, "[stack beyond what is read of it]")
			 : 0;
	struct part part;

	if (rc == 0 && !leaf)
		rc = push_call(t, call);
	if (rc == 0)
		rc = xsp_path_push_frames(t, &t->samples->path, th->pid, shown.frames, shown.count,
					  shown.own);
	if (rc == 0)
		rc = push_spot(t, spot, around, shown.count > 0, &part);
	if (rc == 0 && t->places_wanted)
		find_own(t, spot->address, part, &shown, s);
	return rc;
}

/* The functions through which x86-64, arm64 or both handle a page fault. */
static bool is_page_fault(const char *function)
{
	static const char *const names[] = {"asm_exc_page_fault_[k]", "do_page_fault_[k]",
					    "handle_mm_fault_[k]"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(function, names[i]) == 0)
			return true;
	return false;
}

/* The kernel's own functions, if known. 0 or a negative errno. */
static int push_kernel_functions(struct xsp_timeline *t, const struct open_span *at,
				 struct xsp_sample *s)
{
	xsp_name_id ids[XSP_KERNEL_FRAMES];
	const size_t n = xsp_kernel_functions(t, at->details, ids);

	for (size_t i = 0; i < n; i++)
		s->page_fault |= is_page_fault(xsp_timeline_name(t, ids[i]));
	s->kernel_length = (uint32_t)n;
	return xsp_path_push(&t->samples->path, ids, n);
}

static int push_kernel(struct xsp_timeline *t, const struct xsp_event_sample *e,
		       const struct open_span *at, struct xsp_sample *s)
{
	const char *call = e->syscall >= 0 ? xsp_wait_syscall((unsigned)e->syscall) : NULL;
	char text[64];

	if (call != NULL)
		snprintf(text, sizeof(text), "[kernel] %s", call);
	else if (e->syscall >= 0)
		snprintf(text, sizeof(text), "[kernel] system call %d", e->syscall);
	else
		snprintf(text, sizeof(text), "[kernel]");
	int rc = push_named(t, text);
	return rc < 0 ? rc : push_kernel_functions(t, at, s);
}

/* ---- events ---- */

static bool ends_early(const struct xsp_timeline *t, uint32_t pid, const struct open_span *at)
{
	const struct stack_frames stack = xsp_stack_frames_of(at);
	const char *name = stack.count > 0
				   ? xsp_timeline_frame(t, pid, XSP_FRAME_ADDRESS(stack.frames[0]))
				   : NULL;

	return name == NULL || name[0] == '\0';
}

static int on_sample(struct xsp_timeline *t, struct thread *th, const struct xsp_event_sample *e,
		     const struct open_span *at)
{
	struct row *row = th->rows[th->current];
	struct spot spot;
	uint64_t call = 0;
	struct xsp_sample s = {.time_ns = e->head.time_ns,
			       .period_ns = e->period_ns,
			       .pid = th->pid,
			       .tid = th->tid,
			       .kernel = e->kernel != 0,
			       .ends_early = ends_early(t, th->pid, at),
			       .beyond = xsp_stack_frames_of(at).more};
	int rc = spot_of(t, th->pid, e->address, &spot);

	t->samples->path.length = 0;
	if (rc == 0)
		rc = push_spans(t, th, row, at, &s, &call);
	if (rc == 0)
		rc = push_native(t, th, row, at, &spot, call, &s);
	if (rc == 0 && s.kernel)
		rc = push_kernel(t, e, at, &s);
	if (rc < 0)
		return rc;
	s.function = spot.count > 0 ? spot.inlined[spot.count - 1] : spot.place.function;
	s.file = spot.place.file;
	const struct open_span *inner = xsp_charge_call(t, row), *any = xsp_row_innermost_kept(row);
	s.in_span = inner != NULL;
	s.span = inner != NULL && any != NULL && any->place == 0 ? inner->name + 1 : 0;
	s.in_step = t->steps_end || (row->count > 0 && row->spans[row->count - 1].in_step);
	s.path = t->samples->path.ids;
	s.path_length = t->samples->path.length;
	return xsp_notify_sample(t, &s);
}

static int on_event(struct xsp_timeline *t, const struct xsp_event *e)
{
	struct open_span at = {.sp = e->sp - 8}; /* as if the return address were there */
	struct thread *th;

	int rc = xsp_threads_get(t, e, &th);
	if (rc == 0)
		rc = xsp_details_add(&at.details, e);
	if (rc == 0)
		rc = on_sample(t, th, (const void *)e, &at);
	xsp_details_unref(at.details);
	return rc;
}

const struct xsp_listener xsp_listener_samples = {
	.name = "samples",
	.live = true,
	.begin = begin,
	.events = 1U << XSP_EVENT_SAMPLE,
	.event = on_event,
	.free = free_samples,
};
