/* SPDX-License-Identifier: BSD-2-Clause */
/* place.c - --wait-stacks: the stack of a wait, and which of its frames answers "where does it
 * wait?". */
#include "timeline/timeline_private.h"

#include <string.h>

#include "catalog/own_code.h"
#include "catalog/wait_reasons.h"
#include "timeline/python.h"

/* Code without a file, "<string>", is a package's, made by exec(), if a file of the program's own is around it. */
uint32_t xsp_python_own(const struct xsp_timeline *t, const struct xsp_capture_python_frame *frames,
			uint32_t count)
{
	struct xsp_python_line l;
	uint32_t made = count;

	for (uint32_t i = 0; i < count; i++) {
		if (!xsp_timeline_python_line(t, &frames[i], &l) ||
		    !xsp_is_own_source(l.path, l.path_length))
			continue;
		if (l.path_length == 0 || l.path[0] != '<')
			return i;
		made = made < count ? made : i;
	}
	return made;
}

uint32_t xsp_timeline_python_own(const struct xsp_timeline *t,
				 const struct xsp_capture_python *stack, uint32_t first)
{
	const uint32_t own = first + xsp_python_own(t, stack->frames + first, stack->count - first);

	return own < stack->count ? own : first;
}

int xsp_python_place(struct xsp_timeline *t, const struct xsp_capture_python *stack,
		     uint32_t *inside, uint32_t *place)
{
	xsp_name_id id;
	int rc = xsp_python_name(t, &stack->frames[0], &id);

	if (rc < 0)
		return rc;
	*inside = *place = id + 1;
	const uint32_t own = xsp_timeline_python_own(t, stack, 0);
	if (own > 0 && (rc = xsp_python_name(t, &stack->frames[own], &id)) == 0)
		*place = id + 1;
	return rc;
}

/* The program's own innermost function if that is known, else the innermost beyond the C library. */
static int native_place(struct xsp_timeline *t, const struct xsp_section *section,
			struct xsp_wait *w)
{
	const uint64_t *frame = xsp_section_data(section);
	const size_t count = xsp_section_length(section) / sizeof(*frame);
	size_t place = 0, i = 0;
	bool beyond = false, own = false;
	xsp_name_id id;

	for (; i < count && !own; i++) {
		const uint64_t address = XSP_FRAME_ADDRESS(frame[i]);
		const char *name = xsp_timeline_frame(t, w->pid, address);
		if (name == NULL || name[0] == '\0')
			break;
		w->for_lock |= w->why == XSP_WAIT_LOCK && xsp_wait_is_for_lock(name);
		own = xsp_frame_is_own(t, w->pid, address, name);
		if (own || (!beyond && !xsp_wait_is_primitive(name))) {
			place = i;
			beyond = true;
		}
	}
	if (i == 0)
		return 0;
	int rc = xsp_frame_name(t, w->pid, frame[0], &id);
	if (rc == 0)
		w->inside = w->place = id + 1;
	if (rc == 0 && place > 0 && (rc = xsp_frame_name(t, w->pid, frame[place], &id)) == 0)
		w->place = id + 1;
	return rc;
}

#define LOCK_FRAMES 8
/* All of the interpreter's locks except its own (GIL) wait in this function, which CPython 3.9 to
 * 3.13 exports. */
static bool takes_lock(const struct xsp_timeline *t, const struct xsp_section *section,
		       uint32_t pid)
{
	const uint64_t *frame = xsp_section_data(section);
	const size_t count = xsp_section_length(section) / sizeof(*frame);

	for (size_t i = 0; i < count && i < LOCK_FRAMES; i++) {
		const char *name = xsp_timeline_frame(t, pid, XSP_FRAME_ADDRESS(frame[i]));
		if (name != NULL && strcmp(name, "PyThread_acquire_lock_timed") == 0)
			return true;
	}
	return false;
}

/* Its conditions, events and joins are locks that another thread releases. */
static bool in_threading(const struct xsp_timeline *t, uint32_t place)
{
	static const char file[] = "threading.py:";

	return strncmp(xsp_timeline_name(t, place - 1), file, strlen(file)) == 0;
}

int xsp_wait_place(struct xsp_timeline *t, struct xsp_wait *w)
{
	const struct xsp_section *native = xsp_details_find(w->details, XSP_SECTION_STACK, NULL);
	const struct xsp_capture_python *python =
		xsp_timeline_python(t, xsp_details_find(w->details, XSP_SECTION_PYTHON, NULL));

	if (python == NULL || python->count == 0)
		return native != NULL ? native_place(t, native, w) : 0;
	const int rc = xsp_python_place(t, python, &w->inside, &w->place);
	if (rc == 0 && w->why == XSP_WAIT_LOCK && native != NULL)
		w->python_lock = !in_threading(t, w->inside) && takes_lock(t, native, w->pid);
	return rc;
}
