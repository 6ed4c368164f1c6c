/* SPDX-License-Identifier: BSD-2-Clause */
/* python.c - Python stacks: their frames as names, and the frames between a span and the one around
 * it. */
#include "timeline/python.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "timeline/timeline_private.h"

int xsp_python_begin(struct xsp_timeline *t)
{
	size_t n = xsp_capture_pythons(t->reader, &t->pythons);

	for (size_t i = 0; i < n; i++)
		if (xsp_u64map_set(&t->python_index, t->pythons[i].id, (uint32_t)i) < 0)
			return -ENOMEM;
	return 0;
}

void xsp_python_free(struct xsp_timeline *t)
{
	xsp_u64map_free(&t->python_index);
	xsp_u64map_free(&t->python_names);
}

const struct xsp_capture_python *xsp_timeline_python(const struct xsp_timeline *t,
						     const struct xsp_section *section)
{
	uint64_t id = 0;

	if (section == NULL || xsp_section_length(section) < sizeof(id))
		return NULL;
	memcpy(&id, xsp_section_data(section), sizeof(id));
	const uint32_t *at = xsp_u64map_get(&t->python_index, id);
	return at != NULL ? &t->pythons[*at] : NULL;
}

uint64_t xsp_timeline_python_until_ns(const struct xsp_timeline *t)
{
	return xsp_capture_until_ns(t->reader, "lines of Python");
}

bool xsp_timeline_python_line(const struct xsp_timeline *t,
			      const struct xsp_capture_python_frame *frame,
			      struct xsp_python_line *out)
{
	const char *text = xsp_names_text(t, frame->name);
	const char *number = text != NULL ? strchr(text, '\n') : NULL;
	const char *function = number != NULL ? strchr(number + 1, '\n') : NULL;

	if (function == NULL)
		return false;
	*out = (struct xsp_python_line){.path = text,
					.path_length = (size_t)(number - text),
					.line = (uint32_t)strtoul(number + 1, NULL, 10),
					.function = function + 1};
	return true;
}

static const char *module_name(const struct xsp_timeline *t, uint64_t hash)
{
	const char *text = xsp_names_text(t, hash);

	return text != NULL ? text : "[not known]";
}

/* A name belongs to a child of the module called around it; each dot at its beginning leads one
 * module further out. */
void xsp_timeline_python_module(const struct xsp_timeline *t,
				const struct xsp_capture_python *stack, uint32_t first,
				struct xsp_python_module *out)
{
	const char *names[XSP_PYTHON_MAX];
	int parents[XSP_PYTHON_MAX], count = 0;

	for (uint32_t i = stack->count; i > first && count < XSP_PYTHON_MAX; i--) {
		if (stack->frames[i - 1].module == 0)
			continue;
		const char *name = module_name(t, stack->frames[i - 1].module);
		parents[count] = count - 1;
		for (; *name == '.' && parents[count] >= 0; name++)
			parents[count]--;
		names[count++] = name;
	}
	out->count = 0;
	for (int at = count - 1; at >= 0; at = parents[at])
		out->count++;
	for (int at = count - 1, i = (int)out->count; i > 0; at = parents[at])
		out->names[--i] = names[at];
}

void xsp_python_line_show(const struct xsp_python_line *l, char text[XSP_PYTHON_LINE_MAX])
{
	size_t base = l->path_length;

	while (base > 0 && l->path[base - 1] != '/')
		base--;
	const int length = (int)(l->path_length - base);
	if (l->line > 0)
		snprintf(text, XSP_PYTHON_LINE_MAX, "%.*s:%u %s", length, l->path + base, l->line,
			 l->function);
	else
		snprintf(text, XSP_PYTHON_LINE_MAX, "%.*s%s%s", length, l->path + base,
			 length > 0 ? " " : "", l->function);
}

bool xsp_python_line_split(const char *text, size_t *file, const char **function)
{
	bool found = false;

	for (const char *at = strchr(text, ':'); at != NULL; at = strchr(at + 1, ':')) {
		const size_t digits = strspn(at + 1, "0123456789");
		if (digits == 0 || at[1 + digits] != ' ')
			continue;
		*file = (size_t)(at - text);
		*function = at + 1 + digits + 1;
		found = true;
	}
	return found;
}

static int show(struct xsp_timeline *t, const struct xsp_capture_python_frame *frame,
		xsp_name_id *out)
{
	char text[XSP_PYTHON_LINE_MAX];
	struct xsp_python_line l;

	if (!xsp_timeline_python_line(t, frame, &l))
		return xsp_names_of_hash(t, frame->name, out);
	xsp_python_line_show(&l, text);
	/* a separate hash, as the three lines stay */
	return xsp_names_of_text(t, text, strlen(text), out);
}

int xsp_python_name(struct xsp_timeline *t, const struct xsp_capture_python_frame *frame,
		    xsp_name_id *out)
{
	const uint32_t *known = xsp_u64map_get(&t->python_names, frame->name);
	int rc = 0;

	if (known != NULL) {
		*out = *known;
		return 0;
	}
	rc = show(t, frame, out);
	return rc < 0 ? rc : xsp_u64map_set(&t->python_names, frame->name, *out);
}

static const struct xsp_capture_python *stack_of(const struct xsp_timeline *t,
						 const struct open_span *s)
{
	return xsp_timeline_python(t, xsp_details_find(s->details, XSP_SECTION_PYTHON, NULL));
}

/* How many of the outermost frames of `s` are also those of `around`, if `around` has `without`
 * more outermost ones. */
static uint32_t same(const struct xsp_capture_python *s, const struct xsp_capture_python *around,
		     uint32_t without)
{
	uint32_t n = 0;

	while (n < s->count && n + without < around->count &&
	       s->frames[s->count - 1 - n].name ==
		       around->frames[around->count - 1 - n - without].name)
		n++;
	return n;
}

/*
 * The outermost frames that both share are callers of the span around. If the limit shortened the
 * stacks, the inner one lacks more outermost frames. Then looks for its first frame in the other
 * one, all of which must follow.
 */
static uint32_t shared(const struct xsp_capture_python *s, const struct xsp_capture_python *around)
{
	uint32_t n = same(s, around, 0);

	for (uint32_t without = 1;
	     (s->flags & XSP_PYTHON_CUT) != 0 && n == 0 && without < around->count; without++)
		if (same(s, around, without) == around->count - without)
			n = around->count - without;
	return n;
}

/* Functions of these files open ranges: they return while the range lasts, and call nothing in
 * it. */
static const char *const openers[] = {"torch/autograd/profiler.py", "torch/_ops.py",
				      "torch/cuda/nvtx.py", "nvtx/nvtx.py", "contextlib.py"};

static bool is_opener(const struct xsp_timeline *t, const struct xsp_capture_python_frame *frame)
{
	struct xsp_python_line l;

	if (!xsp_timeline_python_line(t, frame, &l))
		return false;
	for (size_t i = 0; i < sizeof(openers) / sizeof(openers[0]); i++)
		if (xsp_ends_with(l.path, l.path_length, openers[i]))
			return true;
	return false;
}

/* The frames that are not in the spans around it and did not only open it: *first and how many. */
static uint32_t between(const struct xsp_timeline *t, const struct row *row, size_t depth,
			const struct open_span *s, const struct xsp_capture_python *own,
			uint32_t *first, bool *any)
{
	const struct xsp_capture_python *around = NULL;

	while (depth > 0 && around == NULL)
		around = row->spans[--depth].python;
	const uint32_t n = own->count - (around != NULL ? shared(own, around) : 0);
	*any = n > 0;
	for (*first = 0; s->range && *first < own->count && is_opener(t, &own->frames[*first]);)
		++*first;
	return n > *first ? n - *first : 0;
}

uint32_t xsp_python_between(const struct xsp_timeline *t, const struct row *row, size_t depth,
			    const struct open_span *s,
			    const struct xsp_capture_python_frame **frames)
{
	const struct xsp_capture_python *own = stack_of(t, s);
	uint32_t first;
	bool any;

	*frames = NULL;
	if (own == NULL)
		return 0;
	const uint32_t n = between(t, row, depth, s, own, &first, &any);
	*frames = own->frames + first;
	return n;
}

void xsp_python_note(const struct xsp_timeline *t, const struct row *row, struct open_span *s)
{
	s->python = stack_of(t, s);
	if (s->python != NULL)
		between(t, row, row->count, s, s->python, &s->python_first, &s->python_calls);
}
