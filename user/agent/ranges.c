/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ranges.c - record_function ranges of PyTorch, by its own callbacks: at::addGlobalCallback, for their scope only. Each
 * scope more would make each node of the backward pass slower, and operators and nodes come through slots (slots.c).
 *
 * PyTorch may call back for a moment after the callback was removed, so it stays callable: this library is never unloaded.
 */
#ifdef __x86_64__
#include <dlfcn.h>
#include <string.h>
#include "calls.h"

#define LIBRARY "libtorch_cpu.so"
#define ADD "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE"
#define REMOVE "_ZN2at14removeCallbackEm"
#define NAME "_ZNK2at14RecordFunction4nameEv"
/* Since 1.13: name() returns a plain string, and the callback is made as below. */
#define SINCE "_ZN2at14RecordFunctionC1EONS_13StepCallbacksE"

enum { USER_SCOPE = 7, SCOPES = 10, SCOPE_AT = 96 };

/* at::RecordFunctionCallback, 40 bytes from 1.13 to 2.14, passed by value on the stack. What a later one may have behind
 * it reads as zero. */
struct callback {
	void *(*start)(void **context, const char *function);
	void (*end)(const char *function, void *context);
	double probability;
	uint8_t scopes[SCOPES];
	uint8_t inputs, outputs, ids;
	uint8_t others[89];
};

static struct {
	uint64_t (*add)(struct callback callback);
	void (*remove)(uint64_t handle);
	const char *(*name)(const char *function);
	uint64_t handle;
	bool added;
	_Atomic bool strange; /* it is not made as we think */
	uint32_t row; /* in the table of functions */
} ranges;

static void put(uint8_t kind, const char *function, const char *text)
{
	struct node_name name = {.text = text};

	while (text && name.length < XSP_RING_PART * XSP_RING_PARTS && text[name.length])
		name.length++;
	calls_note(XSP_RING_WORD(0, kind, name.length > 0 ? XSP_RING_NAMED : 0, ranges.row),
		   (uint64_t)__builtin_frame_address(0), (uint64_t)function, &name);
}

/* Returns through `context`, which is a std::unique_ptr: none. */
static void *start(void **context, const char *function)
{
	*context = NULL;
	if (function[SCOPE_AT] == USER_SCOPE)
		put(XSP_EVENT_BEGIN, function, ranges.name(function));
	else
		ranges.strange = true;
	return context;
}

static void end(const char *function, void *context)
{
	(void)context;
	put(XSP_EVENT_END, function, NULL);
}

static bool find(void *library)
{
	*(void **)&ranges.add = dlsym(library, ADD);
	*(void **)&ranges.remove = dlsym(library, REMOVE);
	*(void **)&ranges.name = dlsym(library, NAME);
	return ranges.add && ranges.remove && ranges.name && dlsym(library, SINCE);
}

static void add(void *library)
{
	struct callback callback = {
		.start = start, .end = end, .probability = 1, .scopes = {[USER_SCOPE] = 1}};
	void *begins = dlsym(library, XSP_RING_RANGE);

	rings_activate(RINGS_RANGES, true); /* before the recorder sees the row */
	int row = begins ? slots_row(XSP_RING_RANGE, (uint64_t)begins) : -1;
	if (row < 0) {
		rings_activate(RINGS_RANGES, false);
		return;
	}
	ranges.row = (uint32_t)row;
	ranges.handle = ranges.add(callback);
	ranges.added = true;
}

void ranges_begin(void)
{
	const struct image *image = ranges.added || ranges.strange ? NULL : slots_image(LIBRARY);
	void *library = image ? images_hold(image) : NULL;

	if (ranges.added) /* also by the parent of this process */
		rings_activate(RINGS_RANGES, true);
	if (!library)
		return;
	if (find(library))
		add(library);
	images_release(library);
}

bool ranges_are_strange(void)
{
	return ranges.strange;
}

void ranges_end(void)
{
	if (!ranges.added)
		return;
	ranges.remove(ranges.handle);
	ranges.added = false;
	if (rings_memory)
		rings_activate(RINGS_RANGES, false);
}
#endif
