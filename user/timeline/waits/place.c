/* SPDX-License-Identifier: BSD-2-Clause */
/* place.c - --wait-stacks: the stack of a wait, and which of its frames answers "where does it
 * wait?". */
#include "timeline/timeline_private.h"

#include <string.h>

#include "catalog/own_code.h"
#include "catalog/wait_reasons.h"
#include "timeline/python.h"

static bool is_own(const struct xsp_python_line *l)
{
	return xsp_is_own_source(l->path, l->path_length) &&
	       !xsp_is_starter(l->path, l->path_length, l->function);
}

/* Code without a file, "<string>", is a package's, made by exec(), if a file of the program's own is around it. */
uint32_t xsp_python_own(const struct xsp_timeline *t, const struct xsp_capture_python_frame *frames,
			uint32_t count)
{
	struct xsp_python_line l;
	uint32_t made = count;

	for (uint32_t i = 0; i < count; i++) {
		if (!xsp_timeline_python_line(t, &frames[i], &l) || !is_own(&l))
			continue;
		if (l.path_length == 0 || l.path[0] != '<')
			return i;
		made = made < count ? made : i;
	}
	return made;
}

/* Of made code only if the place is such code, too. */
int xsp_python_callers(struct xsp_timeline *t, const struct xsp_capture_python *stack, uint32_t own,
		       struct xsp_own_callers *callers)
{
	struct xsp_python_line l;
	const bool made = own < stack->count &&
			  xsp_timeline_python_line(t, &stack->frames[own], &l) && l.path[0] == '<';
	xsp_name_id id;
	int rc = 0;

	for (uint32_t i = own + 1; i < stack->count && callers->count < XSP_OWN_CALLERS; i++) {
		if (!xsp_timeline_python_line(t, &stack->frames[i], &l) || !is_own(&l) ||
		    (l.path[0] == '<' && !made))
			continue;
		rc = xsp_python_name(t, &stack->frames[i], &id);
		if (rc < 0)
			break;
		callers->names[callers->count++] = id;
	}
	return rc;
}

uint32_t xsp_timeline_python_own(const struct xsp_timeline *t,
				 const struct xsp_capture_python *stack, uint32_t first)
{
	const uint32_t own = first + xsp_python_own(t, stack->frames + first, stack->count - first);

	return own < stack->count ? own : first;
}

int xsp_python_place(struct xsp_timeline *t, const struct xsp_capture_python *stack,
		     uint32_t *inside, uint32_t *place, struct xsp_own_callers *callers)
{
	xsp_name_id id;
	int rc = xsp_python_name(t, &stack->frames[0], &id);

	if (rc < 0)
		return rc;
	*inside = *place = id + 1;
	const uint32_t own = xsp_timeline_python_own(t, stack, 0);
	if (own > 0 && (rc = xsp_python_name(t, &stack->frames[own], &id)) == 0)
		*place = id + 1;
	return rc == 0 && callers != NULL ? xsp_python_callers(t, stack, own, callers) : rc;
}

static bool is_for_lock(const struct xsp_timeline *t, const xsp_name_id *ids, size_t count)
{
	size_t i = 0;

	while (i < count && !xsp_wait_is_for_lock(xsp_timeline_name(t, ids[i])))
		i++;
	return i < count;
}

/* Looks among the functions at an address for the program's own place, or for its callers once it was found. Is it there? */
static bool find_own(const struct xsp_timeline *t, uint64_t address, const xsp_name_id *ids,
		     size_t count, bool found, struct xsp_wait *w)
{
	if (!xsp_frame_is_own(t, w->pid, address))
		return found;
	const size_t helpers =
		xsp_inlined_helpers(t, XSP_NAME_OF_INLINED, w->pid, address, count - 1);
	const size_t own = found ? helpers : xsp_own_place(t, ids, count, helpers);
	if (!found && own < count)
		w->place = ids[own] + 1;
	xsp_own_callers_add(t, ids, count, own + !found, &w->callers);
	return found || own < count;
}

/* The program's own innermost function if that is known, else the innermost beyond the C library. */
static void native_place(const struct xsp_timeline *t, const struct xsp_section *section,
			 struct xsp_wait *w)
{
	const uint64_t *frame = xsp_section_data(section);
	const size_t count = xsp_section_length(section) / sizeof(*frame);
	xsp_name_id ids[XSP_FRAME_FUNCTIONS];
	bool beyond = false, found = false;
	size_t n;

	for (size_t i = 0; i < count && w->callers.count < XSP_OWN_CALLERS; i++) {
		const uint64_t address = XSP_FRAME_ADDRESS(frame[i]);
		if ((n = xsp_timeline_functions(t, w->pid, address, ids)) == 0)
			return;
		if (i == 0)
			w->inside = w->place = ids[0] + 1;
		if (!found)
			w->for_lock |= w->why == XSP_WAIT_LOCK && is_for_lock(t, ids, n);
		found = find_own(t, address, ids, n, found, w);
		if (found && !t->places_wanted)
			return;
		beyond |= found;
		for (size_t k = 0; k < n && !beyond; k++) {
			beyond = !xsp_wait_is_primitive(xsp_timeline_name(t, ids[k]));
			if (beyond)
				w->place = ids[k] + 1;
		}
	}
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

	if (python == NULL || python->count == 0) {
		if (native != NULL)
			native_place(t, native, w);
		return 0;
	}
	const int rc = xsp_python_place(t, python, &w->inside, &w->place,
					t->places_wanted ? &w->callers : NULL);
	if (rc == 0 && w->why == XSP_WAIT_LOCK && native != NULL)
		w->python_lock = !in_threading(t, w->inside) && takes_lock(t, native, w->pid);
	return rc;
}
