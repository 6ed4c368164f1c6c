/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * callback_calls.c - what PyTorch calls at the beginning and the end of each operator, node of the backward pass, and range
 * of the user. Only the last ones are told of where operators and nodes come through slots.
 *
 * A call is known by the address of its RecordFunction, which nobody moves: it is where a call lies in its thread's stack,
 * and pairs an end with its beginning in whatever order they come. What an end must know beside that is which of the
 * contexts below the beginning has given it. PyTorch deletes a context, which does nothing.
 *
 * The rules of calls.h but one: these are ordinary functions, and may use all registers.
 */
#ifdef __x86_64__
#include <string.h>
#include "agent/callbacks/callbacks.h"
#include "agent/kept/names.h"
#include "agent/put.h"

enum {
	CHECKS = 4096, /* so many calls' names are read both ways */
	STACK_REACH = 16384, /* a RecordFunction is so near to us if it is on the stack */
	EXCEPTIONS = 4, /* under way at a beginning, and told apart */
};

struct callback_calls callback_calls;

/* ---- contexts ---- */

enum context_kind { CONTEXT_OPERATOR, CONTEXT_NODE, CONTEXT_RANGE, CONTEXTS };

static void stay(void *context)
{
	(void)context;
}

/* Of at::ObserverContext: its destructor, and the one that deletes. */
static void (*const destructors[])(void *) = {stay, stay};
struct context {
	void (*const *vtable)(void *);
};
static struct context contexts[CONTEXTS * EXCEPTIONS] = {
	[0 ... CONTEXTS * EXCEPTIONS - 1] = {destructors}};

/* Exceptions that were thrown on this thread, and are not caught yet. */
static inline uint32_t exceptions_now(void)
{
	struct {
		void *caught;
		uint32_t uncaught;
	} *globals = callback_calls.exceptions ? callback_calls.exceptions() : NULL;

	return globals ? globals->uncaught : 0;
}

static inline struct context *context_of(enum context_kind kind)
{
	const uint32_t n = exceptions_now();

	return &contexts[kind * EXCEPTIONS + (n < EXCEPTIONS ? n : EXCEPTIONS - 1)];
}

static inline size_t number_of(const struct context *context)
{
	return (size_t)(context - contexts);
}

/* ---- names ---- */

struct text {
	const char *text;
	size_t length;
};

/* Of a std::string. */
static inline struct text text_of(const char *const *string)
{
	const uint64_t *old = (const uint64_t *)(const void *)string[0] - 3;

	return (struct text){string[0], callback_calls.layout.old_string
						? old[0]
						: ((const uint64_t *)(const void *)string)[1]};
}

static inline const char *const *string_of(const char *function)
{
	const char *at = function + callback_calls.layout.name;

	return function[callback_calls.layout.which] == 0
		       ? (const char *const *)(const void *)at
		       : *(const char *const *const *)(const void *)at;
}

/* Is what we would read what PyTorch says? Nothing is read that may not be there. */
static __attribute__((noinline)) bool is_right(const char *function)
{
	const uint8_t which = (uint8_t)function[callback_calls.layout.which];
	const char *const *string = which <= 1 ? string_of(function) : NULL;
	const char *text = callback_calls.name(function);

	if (!text || !string || (uint64_t)string % sizeof(*string) || !may_read((uint64_t)string) ||
	    !may_read((uint64_t)(string + 1)) || string[0] != text ||
	    text_of(string).length != strlen(text))
		return false;
	callback_calls.checked++;
	return true;
}

/* False: it cannot be told. */
static inline bool find_name(const char *function, struct text *name)
{
	if (__builtin_expect(callback_calls.checked < CHECKS, 0) && !is_right(function)) {
		callback_calls.strange = true;
		return false;
	}
	*name = text_of(string_of(function));
	return true;
}

/* ---- ranges of the user ---- */

static void put_range(uint8_t kind, const char *function, const char *text)
{
	struct node_name name = {.text = text};

	while (text && name.length < XSP_RING_PART * XSP_RING_PARTS && text[name.length])
		name.length++;
	calls_note(
		XSP_RING_WORD(0, kind, name.length > 0 ? XSP_RING_NAMED : 0, callback_calls.ranges),
		(uint64_t)__builtin_frame_address(0), (uint64_t)function, &name);
}

void *callback_range(void **context, const char *function)
{
	*context = NULL;
	if (function[SCOPE_AT] == SCOPE_USER)
		put_range(XSP_EVENT_BEGIN, function, callback_calls.name(function));
	else
		callback_calls.strange = true;
	return context;
}

void callback_range_end(const char *function, void *context)
{
	(void)context;
	put_range(XSP_EVENT_END, function, NULL);
}

/* ---- operators and nodes ---- */

static inline bool is_recorded(struct thread_calls *t)
{
	return (rings_state[0] & RINGS_CALLBACKS) && (t->ring || calls_take_ring(t));
}

static inline bool is_node(const char *function, const struct text *name)
{
	enum { LENGTH = sizeof(XSP_RING_NODE_PREFIX) - 1 };

	return function[callback_calls.layout.which] == 0 && name->length > LENGTH &&
	       memcmp(name->text, XSP_RING_NODE_PREFIX, LENGTH) == 0;
}

/* One more than the next node's number; 0: nobody wants it. */
static inline uint64_t next_number(void)
{
	return rings_file()->numbers ? callback_calls.next() + 1 : 0;
}

static struct context *begin(struct thread_calls *t, const char *function)
{
	const uint64_t sp = (uint64_t)function;
	struct text name;

	if (!find_name(function, &name))
		return NULL;
	if (sp - (uint64_t)__builtin_frame_address(0) > STACK_REACH) {
		put_range(XSP_EVENT_BEGIN, function, name.text); /* its object lives elsewhere */
		return &contexts[CONTEXT_RANGE * EXCEPTIONS];
	}
	/* calls may have been left by longjmp(), and have lain below */
	uint32_t depth = sp >= t->outermost ? 0 : t->depth;
	if (depth == 0)
		t->outermost = sp;
	if (!has_room(t, depth + 2ULL, 0)) { /* its end, and those of the open ones */
		count_lost(t->ring);
		return NULL;
	}
	t->depth = depth + 1;
	BARRIER();
	const bool node = is_node(function, &name);
	const uint64_t place = kept_place(name.text, name.length);
	put_record(t,
		   XSP_RING_WORD(0, XSP_EVENT_ENTRY, XSP_RING_PLACED,
				 node ? callback_calls.nodes : callback_calls.operators),
		   sp,
		   XSP_RING_NUMBERED(place < XSP_RING_NAMES ? place : XSP_RING_NUMBER_MAX,
				     next_number()));
	return context_of(node ? CONTEXT_NODE : CONTEXT_OPERATOR);
}

/* A node's own range lies in that of its evaluation, and knows what that does not: whose backward it is. */
static void tell_of_node(struct thread_calls *t, const char *function)
{
	const struct xsp_record_layout *l = &callback_calls.layout;
	uint64_t number, thread;

	if (!rings_file()->numbers)
		return;
	memcpy(&number, function + l->sequence, sizeof(number));
	memcpy(&thread, function + l->thread, sizeof(thread));
	if (has_room(t, t->depth + 1ULL, 0))
		put_record(
			t,
			XSP_RING_WORD(0, XSP_EVENT_LABEL, XSP_RING_NUMBERS, callback_calls.nodes),
			(uint64_t)function,
			XSP_RING_NUMBERED(thread < XSP_RING_NUMBER_MAX ? thread
								       : XSP_RING_NUMBER_MAX,
					  number + 1));
	else
		count_lost(t->ring);
}

void *callback_start(void **context, const char *function)
{
	struct thread_calls *t = this_thread();

	*context = NULL;
	if (!is_recorded(t))
		return context;
	switch (function[SCOPE_AT]) {
	case SCOPE_OPERATOR:
		*context = begin(t, function);
		break;
	case SCOPE_NODE:
		tell_of_node(t, function);
		break;
	case SCOPE_USER:
		put_range(XSP_EVENT_BEGIN, function, callback_calls.name(function));
		break;
	default:
		callback_calls.strange = true;
	}
	return context;
}

static void leave(const char *function, const struct context *context)
{
	const size_t n = number_of(context);
	const bool unwound = exceptions_now() > n % EXCEPTIONS;
	struct thread_calls *t = this_thread();

	/* not in a forked child */
	if (!(rings_state[0] & RINGS_THERE) || !t->ring)
		return;
	const uint64_t number = next_number(), thread = number ? callback_calls.thread() : 0;
	t->depth -= t->depth > 0;
	BARRIER();
	if (has_room(t, 1, RING_SPARE))
		put_record(t,
			   XSP_RING_WORD(0, XSP_EVENT_EXIT,
					 (unwound ? XSP_RING_UNWOUND : 0) |
						 (number ? XSP_RING_NUMBERS : 0),
					 n / EXCEPTIONS == CONTEXT_NODE ? callback_calls.nodes
									: callback_calls.operators),
			   (uint64_t)function,
			   number ? XSP_RING_NUMBERED(thread < XSP_RING_NUMBER_MAX
							      ? thread
							      : XSP_RING_NUMBER_MAX,
						      number)
				  : 0);
	else /* only if ends came in another order than beginnings, or on another thread */
		count_lost(t->ring);
}

void callback_end(const char *function, void *context)
{
	const struct context *c = context;

	if (function[SCOPE_AT] == SCOPE_USER || (c && number_of(c) / EXCEPTIONS == CONTEXT_RANGE))
		put_range(XSP_EVENT_END, function, NULL);
	else if (c)
		leave(function, c);
}
#endif
