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

static void enter(const char *name, size_t length, const struct region_table *table)
{
	const uint64_t sp = (uint64_t)__builtin_frame_address(0) + sizeof(uint64_t);
	struct thread_calls *t;

	if (!is_recorded())
		return;
	t = this_thread();
	if (t->ring == NULL && !calls_take_ring(t))
		return;
	if (is_dropped(t->ring) || !may_put(t, t->depth + 2ULL, 0)) {
		drop(t->ring);
		return;
	}
	/* the room of its end is kept; calls.c knows of it by `regions` */
	t->ring->regions++;
	t->limit -= t->limit != 0;
	put_record(t, XSP_RING_WORD(0, XSP_EVENT_BEGIN, 0, table->row[REGION_ENTER]), sp,
		   place_of(name, length));
}

static void leave(const struct region_table *table)
{
	const uint64_t sp = (uint64_t)__builtin_frame_address(0) + sizeof(uint64_t);
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
		put_record(t, XSP_RING_WORD(0, XSP_EVENT_END, 0, table->row[REGION_EXIT]), sp, 0);
	else
		count_lost(ring);
}

static void value(const char *name, size_t length, uint64_t bits, const struct region_table *table)
{
	struct thread_calls *t;

	if (!is_recorded())
		return;
	t = this_thread();
	if (t->ring == NULL && !calls_take_ring(t))
		return;
	if (may_put(t, t->depth + 1ULL, 0))
		put_record(t, XSP_RING_WORD(0, XSP_EVENT_VALUE, 0, table->row[REGION_VALUE]),
			   place_of(name, length), bits);
	else
		count_lost(t->ring);
}

void (*const region_functions[REGION_PARTS])(void) = {
	[REGION_ENTER] = (void (*)(void))enter,
	[REGION_EXIT] = (void (*)(void))leave,
	[REGION_VALUE] = (void (*)(void))value,
};
#endif
