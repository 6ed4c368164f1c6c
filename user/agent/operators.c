/* SPDX-License-Identifier: BSD-2-Clause */
/* operators.c - recording PyTorch's operators, on and off. */
#include "agent.h"
#ifdef __x86_64__
#include <dlfcn.h>
#include "calls.h"

static struct {
	enum operators_by by; /* they are recorded so */
	bool failed; /* also: a fork came in the middle of a change, and this is the child */
	_Atomic bool changing;
} operators;

/* For exceptions that pass a thunk. */
static void find_unwinder(void)
{
	void *library = dlopen("libgcc_s.so.1", RTLD_NOLOAD | RTLD_LAZY);
	void *function = library ? dlsym(library, "_Unwind_GetGR") : NULL;

	if (function)
		slots_unwinder((uint64_t)function);
	if (library)
		dlclose(library);
}

/* What has come since. False: nothing more can be done. */
static bool look(enum operators_by by)
{
	if (by == BY_CALLBACKS ? !slots_refresh() : !slots_look())
		return false;
	if (by == BY_CALLBACKS) {
		callbacks_begin_all();
		return true;
	}
	find_unwinder();
	callbacks_begin_ranges();
	return true;
}

static void begin(enum operators_by by)
{
	if (operators.failed || !rings_make())
		return;
	rings_file()->args = 0; /* of the recording before */
	if (look(by)) {
		if (by == BY_SLOTS)
			rings_activate(RINGS_ACTIVE, true);
		operators.by = by;
		return;
	}
	operators.failed = true;
	slots_undo();
}

static void end(void)
{
	if (operators.by != BY_NOTHING)
		rings_activate(RINGS_ACTIVE | RINGS_ARGS, false);
	callbacks_end();
	operators.by = BY_NOTHING;
	slots_undo();
}

static void tick(void)
{
	if (slots_changed() && !look(operators.by)) {
		operators.failed = true;
		end();
		return;
	}
	if (operators.by == BY_CALLBACKS) /* if the recorder has said what they need to know */
		callbacks_begin_all();
	if (callbacks_are_strange())
		callbacks_end();
	rings_activate(RINGS_ARGS, rings_file()->args != 0);
}

bool operators_turn(enum operators_by wanted)
{
	bool begins = wanted != BY_NOTHING && operators.by == BY_NOTHING && !operators.failed;
	/* in the child of a fork, slots may be left of the parent's */
	bool ends = wanted != operators.by &&
		    (operators.by != BY_NOTHING || (wanted != BY_SLOTS && slots_any()));

	if (!begins && !ends && operators.by == BY_NOTHING)
		return false;
	atomic_store(&operators.changing, true);
	if (ends) /* what is wanted in its place begins at the next turn */
		end();
	else if (begins)
		begin(wanted);
	else
		tick();
	atomic_store(&operators.changing, false);
	return operators.by != BY_NOTHING;
}

void operators_before_fork(void)
{
	images_wait();
}

void operators_in_child(void)
{
	operators.by = BY_NOTHING;
	if (atomic_exchange(&operators.changing, false))
		operators.failed = true;
	rings_reset();
}
#endif
