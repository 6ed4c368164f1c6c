/* SPDX-License-Identifier: BSD-2-Clause */
/* operators.c - recording PyTorch's operators, on and off. */
#include "agent.h"
#ifdef __x86_64__
#include <dlfcn.h>
#include "calls.h"

static struct {
	bool active;
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

static void begin(void)
{
	if (operators.failed || !rings_make())
		return;
	rings_file()->args = 0; /* of the recording before */
	if (slots_look()) {
		find_unwinder();
		ranges_begin();
		rings_activate(RINGS_ACTIVE, true);
		operators.active = true;
		return;
	}
	operators.failed = true;
	slots_undo();
}

static void end(void)
{
	if (operators.active)
		rings_activate(RINGS_ACTIVE | RINGS_ARGS, false);
	ranges_end();
	operators.active = false;
	slots_undo();
}

static void tick(void)
{
	if (slots_changed()) {
		if (!slots_look()) {
			operators.failed = true;
			end();
			return;
		}
		find_unwinder();
		ranges_begin();
	}
	if (ranges_are_strange())
		ranges_end();
	rings_activate(RINGS_ARGS, rings_file()->args != 0);
}

bool operators_turn(bool wanted)
{
	bool begins = wanted && !operators.active && !operators.failed;
	/* in the child of a fork, slots may be left of the parent's */
	bool ends = !wanted && (operators.active || slots_any());

	if (!begins && !ends && !operators.active)
		return false;
	atomic_store(&operators.changing, true);
	if (begins)
		begin();
	else if (ends)
		end();
	else
		tick();
	atomic_store(&operators.changing, false);
	return operators.active;
}

void operators_before_fork(void)
{
	images_wait();
}

void operators_in_child(void)
{
	operators.active = false;
	if (atomic_exchange(&operators.changing, false))
		operators.failed = true;
	rings_reset();
}
#endif
