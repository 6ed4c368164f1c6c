/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * callbacks.c - PyTorch's own callbacks: at::addGlobalCallback. For ranges of the user alone, where operators and nodes come
 * through slots (slots.c): each scope more would make each node of the backward pass slower. Or for all three.
 *
 * For all of them a RecordFunction is read, whose layout differs between versions. Nobody asks for a version: one is made
 * and looked at, whole, before anything is added; and the first names are compared with what PyTorch itself says.
 *
 * PyTorch may call back for a moment after the callback was removed, so it stays callable: this library is never unloaded.
 */
#ifdef __x86_64__
#include <dlfcn.h>
#include <string.h>
#include "agent/callbacks/callbacks.h"

#define LIBRARY "libtorch_cpu.so"
#define ADD "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE"
#define REMOVE "_ZN2at14removeCallbackEm"
#define NAME "_ZNK2at14RecordFunction4nameEv"
/* Since 1.13: name() returns a plain string, and the callback is made as below. */
#define SINCE XSP_RING_OPERATOR
#define MAKE XSP_RING_RANGE /* a RecordFunction of a scope */
#define DESTROY "_ZN2at14RecordFunctionD1Ev"
#define NEXT_NUMBER "_ZN2at15sequence_number4peekEv"
#define THREAD_NUMBER "_ZN2at14RecordFunction15currentThreadIdEv"
#define EXCEPTIONS "__cxa_get_globals"

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

static const struct callback of_ranges = {.start = callback_range,
					  .end = callback_range_end,
					  .probability = 1,
					  .scopes = {[SCOPE_USER] = 1}};
static const struct callback of_all = {
	.start = callback_start,
	.end = callback_end,
	.probability = 1,
	.scopes = {[SCOPE_OPERATOR] = 1, [SCOPE_NODE] = 1, [SCOPE_USER] = 1}};

static struct {
	uint64_t (*add)(struct callback callback);
	void (*remove)(uint64_t handle);
	uint64_t handle;
	bool added;
	uint32_t active; /* what the recorder may count on while it is */
	bool unknown; /* its layout is, to this recorder */
} callbacks;

/* ---- layouts ---- */

enum {
	MADE_MAX = 4096, /* bytes, more than any RecordFunction has */
	UNWRITTEN = 0xa5,
	LOCAL = 16, /* a std::string's own room, from its beginning */
};

static bool has(const char *made, uint16_t at, uint64_t value)
{
	return memcmp(made + at, &value, sizeof(value)) == 0;
}

static bool is_empty_string(const char *made, const struct xsp_record_layout *l)
{
	if (l->old_string) /* an address that is the same for all of them */
		return !has(made, l->name, 0x0101010101010101ULL * UNWRITTEN);
	return has(made, l->name, (uint64_t)made + l->name + LOCAL) &&
	       has(made, l->name + sizeof(uint64_t), 0);
}

static bool is_made_so(const char *made, const struct xsp_record_layout *l)
{
	const uint16_t fields[] = {l->name, l->which, l->sequence, l->thread, l->handle};

	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		if (fields[i] < SCOPE_AT || fields[i] % sizeof(uint64_t) ||
		    fields[i] + 2 * sizeof(uint64_t) > MADE_MAX)
			return false;
	for (size_t i = l->size; i < MADE_MAX; i++)
		if ((uint8_t)made[i] != UNWRITTEN)
			return false;
	return l->size > l->handle && l->size <= MADE_MAX &&
	       (uint8_t)made[l->size - 1] != UNWRITTEN && made[SCOPE_AT] == SCOPE_USER &&
	       is_empty_string(made, l) && made[l->which] == 0 &&
	       has(made, l->sequence, UINT64_MAX) && has(made, l->thread, 0) &&
	       has(made, l->handle, UINT64_MAX);
}

/* Makes a RecordFunction, of which nobody is told, and sees which layout it has. False: none that is known. */
static bool find_layout(void *library)
{
	static _Alignas(64) char made[MADE_MAX];
	const struct xsp_rings *file = rings_file();
	const uint32_t count = __atomic_load_n(&file->layouts, __ATOMIC_ACQUIRE);
	void (*make)(void *, uint8_t), (*destroy)(void *);
	bool found = false;

	*(void **)&make = dlsym(library, MAKE);
	*(void **)&destroy = dlsym(library, DESTROY);
	if (!make || !destroy)
		return false;
	memset(made, UNWRITTEN, sizeof(made));
	make(made, SCOPE_USER);
	for (uint32_t n = 0; n < count && n < XSP_RECORD_LAYOUTS && !found; n++) {
		const struct xsp_record_layout l = file->layout[n];
		found = is_made_so(made, &l);
		if (found)
			callback_calls.layout = l;
	}
	destroy(made);
	return found;
}

/* ---- on and off ---- */

static bool find(void *library)
{
	*(void **)&callbacks.add = dlsym(library, ADD);
	*(void **)&callbacks.remove = dlsym(library, REMOVE);
	*(void **)&callback_calls.name = dlsym(library, NAME);
	return callbacks.add && callbacks.remove && callback_calls.name && dlsym(library, SINCE);
}

static bool find_all(void *library)
{
	*(void **)&callback_calls.next = dlsym(library, NEXT_NUMBER);
	*(void **)&callback_calls.thread = dlsym(library, THREAD_NUMBER);
	*(void **)&callback_calls.exceptions = dlsym(library, EXCEPTIONS);
	return callback_calls.next && callback_calls.thread;
}

static bool add_row(const char *symbol, const void *function, uint32_t *to)
{
	const int row = function ? slots_row(symbol, (uint64_t)function) : -1;

	*to = (uint32_t)row;
	return row >= 0;
}

static void add(const struct callback *callback, uint32_t active)
{
	callbacks.handle = callbacks.add(*callback);
	callbacks.added = true;
	callbacks.active = active;
}

static void add_ranges(void *library)
{
	rings_activate(RINGS_RANGES, true); /* before the recorder sees the row */
	if (add_row(XSP_RING_RANGE, dlsym(library, XSP_RING_RANGE), &callback_calls.ranges))
		add(&of_ranges, RINGS_RANGES);
	else
		rings_activate(RINGS_RANGES, false);
}

static void take_node(void *symbol, const struct image_symbol *s)
{
	struct image_symbol *found = symbol;

	if (s->address && signature_is_node(s->name) && !found->name)
		*found = *s;
}

static bool add_rows(const struct image *image, void *library)
{
	struct image_symbol node = {0};

	images_symbols(image, take_node, &node);
	return node.name && add_row(node.name, (const void *)node.address, &callback_calls.nodes) &&
	       add_row(XSP_RING_RANGE, dlsym(library, XSP_RING_RANGE), &callback_calls.ranges) &&
	       add_row(XSP_RING_OPERATOR, dlsym(library, XSP_RING_OPERATOR),
		       &callback_calls.operators);
}

static void take_out(void)
{
	if (callbacks.added)
		callbacks.remove(callbacks.handle);
	callbacks.added = false;
}

/* Is this one to be added? It may be there, also by the parent of this process: then the recorder may count on it. */
static bool is_missing(uint32_t active)
{
	if (callbacks.added && callbacks.active != active)
		take_out(); /* the parent's recording was of another kind */
	if (callbacks.added && !(rings_state[0] & active)) {
		slots_publish();
		rings_activate(active, true);
	}
	return !callbacks.added && !callback_calls.strange && !callbacks.unknown;
}

static const struct image *hold(void **library)
{
	const struct image *image = slots_image(LIBRARY);

	*library = image ? images_hold(image) : NULL;
	return *library ? image : NULL;
}

void callbacks_begin_ranges(void)
{
	void *library;

	if (!is_missing(RINGS_RANGES) || !hold(&library))
		return;
	if (find(library))
		add_ranges(library);
	images_release(library);
}

void callbacks_begin_all(void)
{
	void *library;
	const struct image *image;

	const bool missing = is_missing(RINGS_CALLBACKS);
	if (callback_calls.strange)
		rings_activate(RINGS_UNKNOWN, true);
	/* the recorder is to say the layouts, and PyTorch is to come */
	if (!missing || __atomic_load_n(&rings_file()->layouts, __ATOMIC_ACQUIRE) == 0 ||
	    !(image = hold(&library)))
		return;
	if (find(library) && find_all(library) && find_layout(library) &&
	    add_rows(image, library)) {
		rings_activate(RINGS_CALLBACKS, true); /* none is missed */
		add(&of_all, RINGS_CALLBACKS);
	} else {
		callbacks.unknown = true;
		rings_activate(RINGS_UNKNOWN, true);
	}
	images_release(library);
}

bool callbacks_are_strange(void)
{
	return callbacks.added && callback_calls.strange;
}

void callbacks_end(void)
{
	if (rings_memory)
		rings_activate(RINGS_RANGES | RINGS_CALLBACKS | RINGS_UNKNOWN, false);
	take_out();
	callbacks.unknown = false;
}
#endif
