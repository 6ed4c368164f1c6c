/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * frames.c - stacks: the functions between a span and the one around it. Python's functions come
 * before the native ones, as nobody knows which called which. Each row keeps its path; a change
 * renews only what follows it.
 */
#include "timeline/timeline_private.h"

#include <errno.h>
#include <string.h>

#include "base/rows/grow.h"
#include "catalog/own_code.h"

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
	return xsp_names_text(t, xsp_timeline_address_hash(t, XSP_NAME_OF_RETURN, pid, address));
}

size_t xsp_inlined_at(const struct xsp_timeline *t, enum xsp_address_name what, uint32_t pid,
		      uint64_t address, xsp_name_id ids[XSP_INLINED_DEPTH])
{
	const uint64_t key = xsp_capture_address_key(t->reader);
	const uint32_t *id;
	unsigned n = 0;

	while (t->inlined && n < XSP_INLINED_DEPTH &&
	       (id = xsp_u64map_get(&t->range_names,
				    xsp_inlined_name_hash(key, what, pid, address, n))) != NULL)
		ids[n++] = *id;
	return n;
}

size_t xsp_inlined_helpers(const struct xsp_timeline *t, enum xsp_address_name what, uint32_t pid,
			   uint64_t address, size_t count)
{
	const uint64_t key = xsp_capture_address_key(t->reader);
	const char *text =
		count > 0 ? xsp_names_text(t, xsp_inlined_name_hash(key, what, pid, address,
								    XSP_INLINED_HELPERS))
			  : NULL;
	const size_t helpers = text != NULL ? strtoul(text, NULL, 10) : 0;

	return helpers < count ? helpers : count;
}

/* The innermost one that is no helper, or else of the helpers. */
size_t xsp_own_place(const struct xsp_timeline *t, const xsp_name_id *ids, size_t count,
		     size_t helpers)
{
	for (size_t i = helpers; i < count; i++)
		if (xsp_is_own_function(xsp_timeline_name(t, ids[i] & ~XSP_PATH_FRAME)))
			return i;
	for (size_t i = 0; i < helpers; i++)
		if (xsp_is_own_function(xsp_timeline_name(t, ids[i] & ~XSP_PATH_FRAME)))
			return i;
	return count;
}

void xsp_own_callers_add(const struct xsp_timeline *t, const xsp_name_id *ids, size_t count,
			 size_t from, struct xsp_own_callers *callers)
{
	for (size_t i = from; i < count && callers->count < XSP_OWN_CALLERS; i++)
		if (xsp_is_own_function(xsp_timeline_name(t, ids[i] & ~XSP_PATH_FRAME)))
			callers->names[callers->count++] = ids[i] & ~XSP_PATH_FRAME;
}

size_t xsp_timeline_functions(const struct xsp_timeline *t, uint32_t pid, uint64_t address,
			      xsp_name_id ids[XSP_FRAME_FUNCTIONS])
{
	const uint32_t *around = xsp_u64map_get(
		&t->range_names, xsp_timeline_address_hash(t, XSP_NAME_OF_RETURN, pid, address));
	xsp_name_id inlined[XSP_INLINED_DEPTH];

	if (around == NULL || t->names[*around] == NULL || t->names[*around][0] == '\0')
		return 0;
	const size_t n = xsp_inlined_at(t, XSP_NAME_OF_INLINED, pid, address, inlined);
	for (size_t i = 0; i < n; i++)
		ids[i] = inlined[n - 1 - i];
	ids[n] = *around;
	return n + 1;
}

bool xsp_frame_is_own(const struct xsp_timeline *t, uint32_t pid, uint64_t address)
{
	const char *path =
		xsp_names_text(t, xsp_timeline_address_hash(t, XSP_NAME_OF_FILE, pid, address));

	return path != NULL && xsp_is_own_file(path, strlen(path));
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
 * addresses below that span's entry stack pointer. The outermost of them returns into the function
 * around, which is a span already. That is certain if the next frame is at that stack pointer, as
 * the function's own; otherwise its name decides. Without frame pointers some are missing. What is
 * no return address ends the stack.
 */
struct frames_between xsp_frames_between(const struct xsp_timeline *t, uint32_t pid,
					 const struct open_span *s, const struct open_span *around)
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
		return (struct frames_between){n, false};
	const bool own = (n < stack->count && at == around->sp) ||
			 strcmp(last, t->names[t->probe_names[around->probe]]) == 0;
	return (struct frames_between){own ? n - 1 : n, own};
}

/* ---- paths ---- */

int xsp_path_push(struct name_path *path, const xsp_name_id *functions, size_t count)
{
	if (xsp_grow(&path->ids, &path->capacity, path->length + count) < 0)
		return -ENOMEM;
	for (size_t i = count; i > 0; i--)
		path->ids[path->length++] = functions[i - 1] | XSP_PATH_FRAME;
	return 0;
}

int xsp_path_push_python(struct xsp_timeline *t, struct name_path *path,
			 const struct xsp_capture_python_frame *frames, uint32_t count)
{
	xsp_name_id id;
	int rc = 0;

	for (uint32_t i = count; i > 0 && rc == 0; i--) {
		rc = xsp_python_name(t, &frames[i - 1], &id);
		if (rc == 0)
			rc = xsp_path_push(path, &id, 1);
	}
	return rc;
}

static int push_inlined(struct xsp_timeline *t, struct name_path *path, uint32_t pid,
			uint64_t address)
{
	xsp_name_id ids[XSP_INLINED_DEPTH];
	const size_t n = xsp_inlined_at(t, XSP_NAME_OF_INLINED, pid, address, ids);
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++)
		rc = xsp_path_push(path, &ids[i], 1);
	return rc;
}

int xsp_path_push_frames(struct xsp_timeline *t, struct name_path *path, uint32_t pid,
			 const uint64_t *frames, size_t count, bool own)
{
	xsp_name_id id;
	int rc = own ? push_inlined(t, path, pid, XSP_FRAME_ADDRESS(frames[count])) : 0;

	for (size_t i = count; i > 0 && rc == 0; i--) {
		const uint64_t address = XSP_FRAME_ADDRESS(frames[i - 1]);
		rc = xsp_names_of_hash(
			t, xsp_timeline_address_hash(t, XSP_NAME_OF_RETURN, pid, address), &id);
		if (rc == 0)
			rc = xsp_path_push(path, &id, 1);
		if (rc == 0)
			rc = push_inlined(t, path, pid, address);
	}
	return rc;
}

/* Appends what lies between `s`, at that depth of the row, and the span around it. */
static int append(struct xsp_timeline *t, struct row *row, uint32_t pid, size_t depth,
		  const struct open_span *s)
{
	const struct open_span *around = depth > 0 ? &row->spans[depth - 1] : NULL;
	const struct xsp_capture_python_frame *python;
	const uint32_t n = xsp_python_between(t, row, depth, s, &python);
	int rc = xsp_path_push_python(t, &row->path, python, n);
	const struct frames_between between = xsp_frames_between(t, pid, s, around);

	return rc < 0 ? rc
		      : xsp_path_push_frames(t, &row->path, pid, xsp_stack_frames_of(s).frames,
					     between.count, between.own);
}

int xsp_path_to(struct xsp_timeline *t, uint32_t pid, struct row *row, size_t depth,
		const struct open_span *s)
{
	struct name_path *path = &row->path;

	if (xsp_grow(&row->path_ends, &row->ends_capacity, depth + 1) < 0)
		return -ENOMEM;
	if (row->path_levels > depth)
		row->path_levels = depth;
	path->length = row->path_levels > 0 ? row->path_ends[row->path_levels - 1] : 0;
	for (; row->path_levels < depth; row->path_levels++) {
		const size_t i = row->path_levels;
		const xsp_name_id name = row->names[i];
		int rc = append(t, row, pid, i, &row->spans[i]);
		if (rc == 0 && !(name & XSP_NAME_LEFT_OUT))
			rc = XSP_APPEND(path->ids, path->capacity, path->length, name);
		else if (rc == 0 && !row->spans[i].range) /* still a function that was called */
			rc = xsp_path_push(path, &(xsp_name_id){name & ~XSP_NAME_LEFT_OUT}, 1);
		if (rc < 0)
			return rc;
		row->path_ends[i] = path->length;
	}
	return append(t, row, pid, depth, s);
}
