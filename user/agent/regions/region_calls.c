/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * region_calls.c - what the functions of record_function.h do in the agent: records of regions and values, and their
 * names.
 *
 * A name may be anywhere, and be another one at the same address the next time. So it is read at each call, by as many
 * bytes as it has, and its place in the table is found by a hash. Only a new one is copied. A program that nobody
 * traces never reads its names: one that is not in readable memory must not crash it here either.
 */
#ifdef __x86_64__
#include <emmintrin.h>
#include <string.h>
#include "agent/kept/names.h"
#include "agent/kept/python.h"
#include "agent/put.h"
#include "agent/regions/regions.h"

enum {
	PAGE = 4096,
};

/* ---- names ---- */

/* The length of a C string, at most `most`; SIZE_MAX: it is not in readable memory. */
static __attribute__((noinline)) size_t length_over_pages(const char *text, size_t most)
{
	const size_t here = PAGE - (uint64_t)text % PAGE,
		     length = strnlen(text, here < most ? here : most);

	if (length < here || length == most)
		return length;
	return may_read((uint64_t)text + here) ? here + strnlen(text + here, most - here)
					       : SIZE_MAX;
}

static inline size_t length_of(const char *text)
{
	enum { STEP = sizeof(__m128i), MOST = XSP_NAME_MAX + 1 };
	const __m128i zero = _mm_setzero_si128();

	if (!may_read((uint64_t)text))
		return SIZE_MAX;
	if (PAGE - (uint64_t)text % PAGE < MOST + STEP)
		return length_over_pages(text, MOST);
	for (size_t at = 0; at < MOST; at += STEP) {
		const __m128i bytes = _mm_loadu_si128((const __m128i *)(text + at));
		const int zeros = _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, zero));
		if (zeros)
			return at + (unsigned)__builtin_ctz((unsigned)zeros);
	}
	return MOST;
}

static inline uint64_t place_of(const char *text, size_t length)
{
	if (length == SIZE_MAX)
		length = length_of(text);
	else if (length > 0 &&
		 (!may_read((uint64_t)text) ||
		  !may_read((uint64_t)text + (length > XSP_NAME_MAX ? XSP_NAME_MAX : length) - 1)))
		length = SIZE_MAX;
	if (length == SIZE_MAX)
		return XSP_RING_NO_NAME;
	return kept_place(text, length);
}

/* ---- records ---- */

static inline bool may_put(struct thread_calls *t, uint64_t more, uint64_t spare)
{
	return LIKELY(t->limit != 0 && t->ring->head + more <= t->limit + spare) ||
	       has_room(t, more, spare);
}

static inline bool is_recorded(void)
{
	return rings_state[0] & RINGS_REGIONS;
}

/* From the first region that found no room to its end, none is recorded: an end does not say which one it ends. */
static inline bool is_dropped(struct xsp_ring *ring)
{
	if (LIKELY(ring->dropped == 0))
		return false;
	if (ring->dropped_in != rings_recording)
		ring->dropped = 0;
	return ring->dropped != 0;
}

static __attribute__((noinline)) void drop(struct xsp_ring *ring)
{
	ring->dropped_in = rings_recording;
	ring->dropped++;
	count_lost(ring);
}

/* The thread's part; NULL: it records nothing. */
static inline struct thread_calls *recording(void)
{
	struct thread_calls *t = this_thread();

	return is_recorded() && (t->ring != NULL || calls_take_ring(t)) ? t : NULL;
}

static inline void begin(const char *name, size_t length, uint64_t row, uint64_t sp)
{
	struct thread_calls *t = recording();

	if (t == NULL)
		return;
	if (is_dropped(t->ring) || !may_put(t, t->depth + 3ULL, 0)) {
		drop(t->ring);
		return;
	}
	/* the room of its end is kept; calls.c knows of it by `regions` */
	t->ring->regions++;
	t->limit -= t->limit != 0;
	if (rings_state[0] & RINGS_PYTHON)
		python_put(t, row, sp);
	put_record(t, XSP_RING_WORD(0, XSP_EVENT_BEGIN, 0, row), sp, place_of(name, length));
}

static void enter(const char *name, size_t length, const struct region_table *table)
{
	begin(name, length, table->row[REGION_ENTER],
	      (uint64_t)__builtin_frame_address(0) + sizeof(uint64_t));
}

static inline void end(uint64_t row, uint64_t sp)
{
	struct thread_calls *t;
	struct xsp_ring *ring;

	if (!is_recorded())
		return;
	t = this_thread();
	ring = t->ring;
	if (ring == NULL) /* nor had its beginning one */
		return;
	if (is_dropped(ring)) {
		ring->dropped--;
		return;
	}
	if (ring->regions > 0) {
		ring->regions--;
		t->limit += t->limit != 0;
	}
	if (may_put(t, 1, RING_SPARE))
		put_record(t, XSP_RING_WORD(0, XSP_EVENT_END, 0, row), sp, 0);
	else
		count_lost(ring);
}

static void leave(const struct region_table *table)
{
	end(table->row[REGION_EXIT], (uint64_t)__builtin_frame_address(0) + sizeof(uint64_t));
}

static void value(const char *name, size_t length, uint64_t bits, const struct region_table *table)
{
	struct thread_calls *t = recording();

	if (t == NULL)
		return;
	if (may_put(t, t->depth + 1ULL, 0))
		put_record(t, XSP_RING_WORD(0, XSP_EVENT_VALUE, 0, table->row[REGION_VALUE]),
			   place_of(name, length), bits);
	else
		count_lost(t->ring);
}

/* ---- scopes ---- */

/* False: it is in memory that cannot be read. */
static inline bool read_word(const struct call *call, const struct scope_word *w, uint64_t *value)
{
	const uint64_t from = call->registers[w->number];

	*value = from;
	if (w->at == SCOPE_REGISTER)
		return true;
	if (!may_read(from + (uint64_t)w->at) ||
	    !may_read(from + (uint64_t)w->at + sizeof(*value) - 1))
		return false;
	memcpy(value, (const void *)(from + (uint64_t)w->at), sizeof(*value));
	return true;
}

struct name {
	const char *text;
	size_t length; /* SIZE_MAX: it is a C string, or, without a text, cannot be read */
};

static struct name read_name(const struct call *call, const struct scope_shape *s)
{
	uint64_t text, length = SIZE_MAX;

	if (!read_word(call, &s->text, &text) ||
	    (s->length.number != SCOPE_NONE && !read_word(call, &s->length, &length)))
		return (struct name){.length = SIZE_MAX};
	return (struct name){.text = (const char *)text, .length = length};
}

/* Of an object's scope: it may end on another thread, so nothing is kept for its end, and what found no room says nothing
 * of others. */
static void put_guard(const struct call *call, const struct scope_shape *s, bool begins,
		      uint64_t sp)
{
	struct thread_calls *t = recording();
	uint64_t place = XSP_RING_NO_NAME;

	if (t == NULL)
		return;
	if (!may_put(t, t->depth + 1ULL, 0)) {
		count_lost(t->ring);
		return;
	}
	if (begins) {
		const struct name name = read_name(call, s);
		place = place_of(name.text, name.length);
	}
	put_record(t, XSP_RING_WORD(0, begins ? XSP_EVENT_BEGIN : XSP_EVENT_END, 0, call->function),
		   sp, xsp_ring_guard(place, call->registers[0]));
}

/* None of these functions has an argument in a vector register. */
void calls_enter_scope(struct call *call)
{
	const uint32_t part = thunk_functions[call->function].part;
	const struct scope_shape *s = scopes_shape(part);
	const uint64_t sp = (uint64_t)(call + 1) + sizeof(uint64_t); /* at the function's entry */
	const bool begins = part & 1;

	call->ring = NULL;
	if (s->guard) {
		put_guard(call, s, begins, sp);
	} else if (begins) {
		const struct name name = read_name(call, s);
		begin(name.text, name.length, call->function, sp);
	} else {
		end(call->function, sp);
	}
}

void (*const region_functions[REGION_PARTS])(void) = {
	[REGION_ENTER] = (void (*)(void))enter,
	[REGION_EXIT] = (void (*)(void))leave,
	[REGION_VALUE] = (void (*)(void))value,
};
#endif
