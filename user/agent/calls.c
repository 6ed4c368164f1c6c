/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * calls.c - what a thunk does before and after the real function. thunks.S does what is usual by itself, in the same
 * order: the ring has room as far as is known, and the clock is the time stamp counter.
 *
 * Compiled with general registers only: vector registers hold arguments and results. A signal handler may interrupt any
 * instruction here and call operators itself, so a record's place is taken by one instruction, and the time is read
 * again if a handler was faster: the times of a ring never run backwards.
 */
#ifdef __x86_64__
#include <errno.h>
#include <sys/syscall.h>
#include "kept/python.h"
#include "put.h"

_Static_assert(sizeof(struct call) == 112, "as in thunks.S");
_Static_assert(sizeof(struct thread_calls) == 64, "as in thunks.S");

enum {
	PAGE = 4096,
	RETRY = 1024, /* calls of a thread without a ring */
	RBP = 6, /* DWARF's number */
	/* of the C++ ABI's unwinder */
	ACTION_CLEANUP = 2,
	CONTINUE_UNWIND = 8,
};

static struct {
	uint64_t start, end; /* its code */
	uint64_t (*get_register)(void *context, int number);
} unwinder;

/* The stack pointer at the function's entry. */
static inline uint64_t entry_sp(const struct call *call)
{
	return (uint64_t)(call + 1) + 8;
}

static inline void put(const struct thread_calls *t, const struct call *call, uint64_t kind,
		       uint64_t flags, uint64_t value)
{
	put_record(t, XSP_RING_WORD(0, kind, flags, call->function), entry_sp(call), value);
}

/* The text of a name, in records of its own. */
static void put_text(const struct thread_calls *t, uint64_t function, const struct node_name *name)
{
	for (uint32_t part = 0; part * XSP_RING_PART < name->length; part++) {
		const char *from = name->text + part * XSP_RING_PART;
		uint32_t left = name->length - part * XSP_RING_PART;
		uint64_t words[2] = {0, 0};
		for (uint32_t i = 0; i < left && i < XSP_RING_PART; i++)
			words[i / 8] |= (uint64_t)(uint8_t)from[i] << i % 8 * 8;
		put_record(t, XSP_RING_WORD(0, XSP_EVENT_NAME, part, function), words[0], words[1]);
	}
}

/* An operator's entry, with what is to be read of it. */
static inline void put_entry(struct thread_calls *t, const struct call *call)
{
	uint64_t flags = 0, value = 0, stack;

	if (rings_state[0] & RINGS_ARGS) {
		struct xsp_ring_args *how = args_wanted(call);
		flags = how ? XSP_RING_ARGS : 0;
		value = how ? (uint32_t)args_place(call, how) : 0;
	}
	if ((rings_state[0] & RINGS_PYTHON) && python_place(t, &stack)) {
		flags |= XSP_RING_STACK;
		value |= stack << 32;
	}
	put(t, call, XSP_EVENT_ENTRY, flags, value);
}

bool calls_take_ring(struct thread_calls *t)
{
	if (t->wait == 0 && thunk_keep_vectors(rings_take, t) != 0)
		return true;
	if (t->wait == 0)
		t->wait = RETRY;
	else if (t->wait != UINT32_MAX)
		t->wait--;
	__atomic_fetch_add(&rings_file()->homeless, 1, __ATOMIC_RELAXED);
	return false;
}

/* `node`: what is to be evaluated, or NULL. */
static inline void enter(struct call *call, const void *node)
{
	struct node_name name = {0};
	struct thread_calls *t = this_thread();
	uint64_t sp = entry_sp(call);
	uint32_t depth;

	if (!node && (rings_state[0] & RINGS_ARGS))
		__builtin_prefetch(&rings_file()->argument[call->function]);
	call->ring = NULL;
	if (!(rings_state[0] & RINGS_ACTIVE) || (t->ring == NULL && !calls_take_ring(t)))
		return;
	depth = t->depth;
	/* longjmp() may have left calls open: they lay below */
	if (depth == 0 || sp >= t->outermost) {
		depth = 0;
		t->outermost = sp;
	}
	call->depth = depth;
	t->depth = depth + 1;
	BARRIER();
	if (node)
		node_name(node, &name);
	if (!has_room(t, depth + 2ULL + (node ? 1 + (name.length > 0 ? XSP_RING_PARTS : 0) : 0),
		      0)) {
		count_lost(t->ring);
		t->depth = depth;
		return;
	}
	if (node) {
		if (rings_state[0] & RINGS_PYTHON)
			python_put(t, call->function, sp);
		put_text(t, call->function, &name);
		put(t, call, XSP_EVENT_ENTRY, name.length > 0 ? XSP_RING_NAMED : 0, name.value);
	} else {
		put_entry(t, call);
	}
	call->ring = t->ring;
}

void calls_enter(struct call *call)
{
	enter(call, NULL);
}

/* The node is the third of the registers for arguments: after `this` and the graph task. */
void calls_enter_node(struct call *call)
{
	enter(call, (const void *)call->registers[2]);
}

void calls_note(uint64_t word, uint64_t sp, uint64_t value, const struct node_name *name)
{
	struct thread_calls *t = this_thread();

	if (!(rings_state[0] & (RINGS_ACTIVE | RINGS_CALLBACKS)) ||
	    (t->ring == NULL && !calls_take_ring(t)))
		return;
	/* calls that are open need one each */
	if (!has_room(t, t->depth + 2ULL + (name->length > 0 ? XSP_RING_PARTS : 0), 0)) {
		count_lost(t->ring);
		return;
	}
	if ((uint8_t)(word >> 32) == XSP_EVENT_BEGIN && (rings_state[0] & RINGS_PYTHON))
		python_put(t, word >> 48, sp);
	put_text(t, word >> 48, name);
	put_record(t, word, sp, value);
}

static inline void leave(struct call *call, uint64_t flags)
{
	struct thread_calls *t = this_thread();
	struct xsp_ring *ring = call->ring;

	if (ring == NULL)
		return;
	call->ring = NULL;
	/* not in a forked child, nor on another thread (of a coroutine that moved) */
	if (!(rings_state[0] & RINGS_THERE) || t->ring != ring)
		return;
	t->depth = (uint32_t)call->depth;
	BARRIER();
	if (has_room(t, 1, RING_SPARE))
		put(t, call, XSP_EVENT_EXIT, flags, 0);
	else /* only if coroutines or longjmp() have spoilt the depth */
		count_lost(ring);
}

void calls_leave(struct call *call)
{
	leave(call, 0);
}

/* ---- exceptions ---- */

void calls_unwinder(uint64_t start, uint64_t end, uint64_t (*get_register)(void *, int))
{
	unwinder.get_register = get_register;
	__atomic_store_n(&unwinder.end, end, __ATOMIC_RELAXED);
	__atomic_store_n(&unwinder.start, start, __ATOMIC_RELEASE);
}

/* An exception, or the end of a thread, passes. There is nothing to run here but the exit. A context of another
 * unwinder than ours (linked statically somewhere) is not understood: the reader closes such a span by the stack. */
int calls_personality(int version, int actions, uint64_t exception_class, void *exception,
		      void *context)
{
	uint64_t caller = (uint64_t)__builtin_return_address(0);
	uint64_t start = __atomic_load_n(&unwinder.start, __ATOMIC_ACQUIRE);

	(void)version, (void)exception_class, (void)exception;
	if ((actions & ACTION_CLEANUP) && start != 0 && caller - start < unwinder.end - start) {
		uint64_t rbp = unwinder.get_register(context, RBP);
		leave((struct call *)rbp - 1, XSP_RING_UNWOUND);
	}
	return CONTINUE_UNWIND;
}

/* ---- arguments on the stack ---- */

/* A coroutine's stack may end within the bytes that are copied, the arguments themselves do not. What was found
 * readable is remembered, and grows, as a thread's calls come from the same depths again and again. */
size_t calls_readable(struct call *call, size_t bytes)
{
	enum { GAP = 64 * PAGE };
	struct thread_calls *t = this_thread();
	uint64_t start = entry_sp(call) + 8;
	/* that of the return address */
	uint64_t page = (start - 8) & -(uint64_t)PAGE,
		 end = (start + bytes + PAGE - 1) & -(uint64_t)PAGE;

	if (page >= t->readable && end <= t->readable_end)
		return bytes;
	for (uint64_t at = page + PAGE; at < end; at += PAGE)
		if (!calls_is_readable(at))
			return at - start < bytes ? at - start : bytes;
	/* join it with what is known */
	while (t->readable_end < page && page - t->readable_end < GAP &&
	       calls_is_readable(t->readable_end))
		t->readable_end += PAGE;
	for (uint64_t at = t->readable - PAGE; end <= at && at - end < GAP && calls_is_readable(at);
	     at -= PAGE)
		t->readable = at;
	if (page > t->readable_end || end < t->readable) {
		t->readable = page;
		t->readable_end = end;
	}
	if (page < t->readable)
		t->readable = page;
	if (end > t->readable_end)
		t->readable_end = end;
	return bytes;
}
#endif
