/* SPDX-License-Identifier: BSD-2-Clause */
/* operators.c - recording PyTorch's operators, and XSigma's scopes, on and off. */
#include "agent.h"
#ifdef __x86_64__
#include <dlfcn.h>
#include "calls.h"

static struct {
	enum operators_by by; /* they are recorded so */
	bool scopes; /* and these are */
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
static bool look(enum operators_by by, bool scopes)
{
	const bool slots = by == BY_SLOTS || scopes;

	if (slots ? !slots_look(by == BY_SLOTS) : !slots_refresh())
		return false;
	if (slots)
		find_unwinder();
	if (by == BY_CALLBACKS)
		callbacks_begin_all();
	if (by == BY_SLOTS)
		callbacks_begin_ranges();
	return true;
}

static void end_operators(void)
{
	if (operators.by != BY_NOTHING)
		rings_activate(RINGS_ACTIVE | RINGS_ARGS, false);
	callbacks_end();
	operators.by = BY_NOTHING;
}

static void end(void)
{
	end_operators();
	operators.scopes = false;
	slots_undo();
}

/* Both may be wanted at once, or one after the other. */
static void begin(enum operators_by by, bool scopes)
{
	const bool too = by != operators.by;

	if (operators.failed || !rings_make())
		return;
	if (too)
		rings_file()->args = 0; /* of the recording before */
	if (!look(by, scopes)) {
		operators.failed = true;
		end();
		return;
	}
	if (too && by == BY_SLOTS)
		rings_activate(RINGS_ACTIVE, true);
	operators.by = by;
	operators.scopes = scopes;
}

static void tick(void)
{
	if (slots_changed() && !look(operators.by, operators.scopes)) {
		operators.failed = true;
		end();
		return;
	}
	if (operators.by == BY_NOTHING)
		return;
	if (operators.by == BY_CALLBACKS) /* if the recorder has said what they need to know */
		callbacks_begin_all();
	if (callbacks_are_strange())
		callbacks_end();
	rings_activate(RINGS_ARGS, rings_file()->args != 0);
}

/* regions/regions.c turns scopes on, once their thunks are there; those of operators may stay as long. */
bool operators_turn(enum operators_by wanted, bool scopes)
{
	const bool idle = operators.by == BY_NOTHING && !operators.scopes,
		   none = wanted == BY_NOTHING && !scopes;

	/* in the child of a fork, slots may be left of the parent's */
	if (idle && (none ? !slots_any() : operators.failed))
		return false;
	atomic_store(&operators.changing, true);
	if (none)
		end();
	else if (operators.by != BY_NOTHING && wanted == BY_NOTHING)
		end_operators();
	else if (operators.by != BY_NOTHING && wanted != operators.by)
		end(); /* what is wanted in its place begins at the next turn */
	else if (wanted != operators.by || (scopes && !operators.scopes))
		begin(wanted, scopes || operators.scopes);
	else
		tick();
	atomic_store(&operators.changing, false);
	return operators.by != BY_NOTHING || operators.scopes;
}

bool operators_failed(void)
{
	return operators.failed;
}

void operators_before_fork(void)
{
	images_wait();
}

void operators_in_child(void)
{
	operators.by = BY_NOTHING;
	operators.scopes = false;
	if (atomic_exchange(&operators.changing, false))
		operators.failed = true;
	rings_reset();
}
#endif
