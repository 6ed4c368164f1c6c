/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * frames.c - stacks: the functions between a span and the one around it, those of Python before the native
 * ones: which of them called which is not known.
 *
 * Paths are kept by row, and made anew only as far as the row has changed.
 */
#include "timeline/timeline_private.h"

#include <errno.h>
#include <string.h>

#include "base/grow.h"

struct stack_frames xsp_stack_frames_of(const struct open_span *s)
{
	const struct xsp_section *section = xsp_details_find(s->details, XSP_SECTION_STACK, NULL);
	struct stack_frames out = {0};

	if (section != NULL) {
		out.frames = xsp_section_data(section);
		out.count = xsp_section_length(section) / sizeof(uint64_t);
		out.more = section->value != 0;
	}
	return out;
}

const char *xsp_timeline_frame(const struct xsp_timeline *t, uint32_t pid, uint64_t address)
{
	const uint32_t *id = xsp_u64map_get(
		&t->range_names, xsp_timeline_address_hash(t, XSP_NAME_OF_RETURN, pid, address));

	return id != NULL ? t->names[*id] : NULL;
}

size_t xsp_kernel_functions(const struct xsp_timeline *t, const struct xsp_details *details,
			    xsp_name_id ids[XSP_KERNEL_FRAMES])
{
	const struct xsp_section *stack = xsp_details_find(details, XSP_SECTION_KERNEL, NULL);
	const uint32_t *id;
	size_t n = 0;

	while (stack != NULL && n < XSP_KERNEL_FRAMES &&
	       (id = xsp_u64map_get(
			&t->range_names,
			xsp_timeline_address_hash(t, XSP_NAME_OF_KERNEL, stack->value, n))) != NULL)
		ids[n++] = *id;
	return n;
}

/*
 * How many frames of `s`, from the innermost on, lie between it and the span around it: the return
 * addresses that stand below that one's entry stack pointer. The outermost of them returns into the function
 * around, which is there as a span: certainly if the next one stands at that stack pointer, as the function's own;
 * else its name tells. Where no frame pointer is kept some are missing; what is no return address ends the
 * stack.
 */
size_t xsp_frames_between(const struct xsp_timeline *t, uint32_t pid, const struct open_span *s,
			  const struct open_span *around)
{
	const struct stack_frames own_frames = xsp_stack_frames_of(s), *stack = &own_frames;
	const char *name = NULL, *last = NULL;
	uint64_t at = s->sp;
	size_t n = 0;

	for (; n < stack->count; n++) {
		at += XSP_FRAME_WORDS(stack->frames[n]) * 8;
		if (around != NULL && at >= around->sp)
			break;
		name = xsp_timeline_frame(t, pid, XSP_FRAME_ADDRESS(stack->frames[n]));
		if (name == NULL || name[0] == '\0')
			break;
		last = name;
	}
	if (n == 0 || around == NULL || around->range)
		return n;
	const bool own = n < stack->count && at == around->sp;
	return own || strcmp(last, t->names[t->probe_names[around->probe]]) == 0 ? n - 1 : n;
}

static int append_python(struct xsp_timeline *t, struct row *row, uint32_t *length, size_t depth,
			 const struct open_span *s)
{
	const struct xsp_capture_python_frame *frames;
	uint32_t n = xsp_python_between(t, row, depth, s, &frames);

	if (xsp_grow(&row->path, &row->path_capacity, *length + n + 1) < 0)
		return -ENOMEM;
	for (uint32_t i = n; i > 0; i--) {
		xsp_name_id id;
		int rc = xsp_python_name(t, &frames[i - 1], &id);
		if (rc < 0)
			return rc;
		row->path[(*length)++] = id | XSP_PATH_FRAME;
	}
	return 0;
}

/* `s` at that depth of the row. */
static int append(struct xsp_timeline *t, struct row *row, uint32_t *length, uint32_t pid,
		  size_t depth, const struct open_span *s)
{
	const struct open_span *around = depth > 0 ? &row->spans[depth - 1] : NULL;
	struct stack_frames own = xsp_stack_frames_of(s);
	size_t n = xsp_frames_between(t, pid, s, around);
	int failed = append_python(t, row, length, depth, s);

	if (failed < 0)
		return failed;
	if (xsp_grow(&row->path, &row->path_capacity, *length + n + 1) < 0)
		return -ENOMEM;
	for (size_t i = n; i > 0 && own.frames != NULL; i--) {
		xsp_name_id id;
		uint64_t address = XSP_FRAME_ADDRESS(own.frames[i - 1]);
		int rc = xsp_names_of_hash(
			t, xsp_timeline_address_hash(t, XSP_NAME_OF_RETURN, pid, address), &id);
		if (rc < 0)
			return rc;
		row->path[(*length)++] = id | XSP_PATH_FRAME;
	}
	return 0;
}

int xsp_path_to(struct xsp_timeline *t, uint32_t pid, struct row *row, size_t depth,
		const struct open_span *s, uint32_t *length)
{
	int rc = 0;

	if (xsp_grow(&row->path_ends, &row->ends_capacity, depth + 1) < 0)
		return -ENOMEM;
	if (row->path_levels > depth)
		row->path_levels = depth;
	*length = row->path_levels > 0 ? row->path_ends[row->path_levels - 1] : 0;
	while (row->path_levels < depth) {
		size_t i = row->path_levels;
		rc = append(t, row, length, pid, i, &row->spans[i]);
		if (rc < 0)
			return rc;
		if (!(row->names[i] & XSP_NAME_LEFT_OUT))
			row->path[(*length)++] = row->names[i];
		else if (!row->spans[i].range) /* still a function that was called */
			row->path[(*length)++] =
				(row->names[i] & ~XSP_NAME_LEFT_OUT) | XSP_PATH_FRAME;
		row->path_ends[i] = *length;
		row->path_levels++;
	}
	return append(t, row, length, pid, depth, s);
}
