/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * walk.c - the frames of Python that this thread runs, as bpf/python.h reads them for probes: the same frames, flags and limits.
 *
 * Nobody else changes them while the thread is in a call; but when the interpreter ends, it frees those of threads that go on.
 * It says so first. So a thread must not be held up between looking at that and its last read: all of this file is code of a
 * restartable sequence, in a section of its own. It reads only pages that are known to be there, and writes only to *w.
 */
#ifdef __x86_64__
#include "agent/kept/known.h"
#include "agent/kept/walk.h"
#include "agent/put.h"

#define WALK __attribute__((noinline, section("xsp_walk")))
#define UNREAD (~0ULL) /* a word that could not be read */

enum {
	/* struct pthread of glibc (bpf/python.h) */
	SPECIFIC_FIRST = 0x310,
	SPECIFIC_COUNT = 32,
	SPECIFIC_BLOCKS = SPECIFIC_FIRST + SPECIFIC_COUNT * 16,
};

struct walk_how walk_how;

static inline uint64_t load(uint64_t at)
{
	return *(const volatile uint64_t *)at;
}

/* *good: a page that was found good last. */
static inline bool may_load(struct walk *w, uint64_t *good, uint64_t at)
{
	const uint64_t page = at & -(uint64_t)READABLE_PAGE;

	if (LIKELY(page == *good))
		return true;
	if (page != 0 && (__atomic_load_n(&readable_pages[page / READABLE_PAGE % READABLE_PAGES],
					  __ATOMIC_RELAXED) == page ||
			  page == w->learned)) {
		*good = page;
		return true;
	}
	if (page != 0 && page != w->unreadable)
		w->unknown = page;
	return false;
}

static inline uint64_t read_word(struct walk *w, uint64_t *good, uint64_t at)
{
	return at % sizeof(uint64_t) == 0 && may_load(w, good, at) ? load(at) : UNREAD;
}

/* The state under the thread's key. 0: none; UNREAD: it could not be read, or is another thread's. */
static inline uint64_t own_state(struct walk *w, uint64_t *good, uint64_t thread)
{
	const struct xsp_python_spec *s = &walk_how.spec;
	uint64_t key = s->key, slot = thread + (uint64_t)(int64_t)s->variable, state;

	if (s->variable == 0) {
		if (s->key_address != 0) {
			const uint64_t word = read_word(w, good, s->key_address);
			if (word == UNREAD || (uint32_t)word == 0) /* not made yet */
				return word == UNREAD ? word : 0;
			key = word >> 32;
		}
		if (key >= SPECIFIC_COUNT * SPECIFIC_COUNT)
			return UNREAD;
		slot = thread + SPECIFIC_FIRST;
		if (key >= SPECIFIC_COUNT)
			slot = read_word(w, good,
					 thread + SPECIFIC_BLOCKS + key / SPECIFIC_COUNT * 8);
		if (slot == 0 || slot == UNREAD)
			return slot;
		slot += key % SPECIFIC_COUNT * 16 + 8;
	}
	state = read_word(w, good, slot);
	if (state == 0 || state == UNREAD || s->current)
		return state;
	return read_word(w, good, state + s->thread_id) == thread ? state : UNREAD;
}

/* Which of several interpreters a thread runs in is not looked for here. */
static inline bool is_several(struct walk *w, uint64_t *good)
{
	const uint64_t at = walk_how.spec.interpreters;

	if (at == 0)
		return false;
	const uint64_t newest = read_word(w, good, at), first = read_word(w, good, at + 8);
	return first != 0 && newest != first;
}

/* The innermost frame. 0: none; UNREAD: it could not be read. */
static inline uint64_t first_frame(struct walk *w, uint64_t *good, uint64_t thread)
{
	const struct xsp_python_spec *s = &walk_how.spec;
	const uint64_t state = own_state(w, good, thread);

	if (state == 0 || state == UNREAD)
		return state;
	if (walk_how.finalizing != 0) {
		/* a word that is 0, or whoever ends the interpreter: that thread's frames stay */
		const uint64_t ends = read_word(w, good, walk_how.finalizing);
		if (ends != 0 && ends != state)
			return 0;
	}
	if (is_several(w, good))
		return UNREAD;
	uint64_t frame = read_word(w, good, state + s->thread_frame);
	if (frame != 0 && frame != UNREAD && s->cframe_frame != XSP_PYTHON_NO_CFRAME)
		frame = read_word(w, good, frame + s->cframe_frame);
	return frame;
}

WALK void walk(struct walk *w)
{
	const struct xsp_python_spec *s = &walk_how.spec;
	const uint64_t numbers = s->number_bits == 32 ? UINT32_MAX : UINT64_MAX;
	const uint32_t frames = walk_how.frames, most = 2 * frames + 1;
	uint64_t thread, good = 0, seen = 0, mix = 0, *to = &w->word[1];
	uint32_t count = 0, flags = XSP_PYTHON_CUT;

	w->unknown = 0;
	__asm__("movq %%fs:0, %0" : "=r"(thread));
	uint64_t frame = first_frame(w, &good, thread);
	w->end = frame != 0 ? WALK_STACK : WALK_NONE;
	for (uint32_t i = 1; i <= most; i++) {
		const uint64_t at = frame + s->read_from;
		if (frame == 0) {
			flags = 0;
			break;
		}
		if (frame % sizeof(uint64_t) != 0 || !may_load(w, &good, at) ||
		    !may_load(w, &good, at + s->read_bytes - 1)) {
			flags = XSP_PYTHON_TORN;
			break;
		}
		if (s->owner == 0 || *(const volatile uint8_t *)(at + s->owner) < s->owners) {
			const uint64_t code = load(at + s->code * 8) & ~7ULL,
				       self = code != 0 && code == s->method ? XSP_RING_SELF : 0;
			if (count == frames) /* there are more */
				break;
			count++;
			to[0] = code | self;
			to[1] = load(at + s->instruction * 8) & numbers;
			mix = known_mix(known_mix(mix, to[0]), to[1]);
			to += 2;
			if (self != 0) {
				to[0] = read_word(w, &good, frame + s->first_local);
				to[0] = to[0] == UNREAD ? 0 : to[0] & ~7ULL;
				to[1] = to[0] ? read_word(w, &good, to[0] + s->object_type) : 0;
				mix = known_mix(known_mix(mix, to[0]), to[1]);
				to += 2;
			}
		}
		frame = load(at + s->previous * 8);
		if ((i & (i - 1)) == 0) {
			seen = frame;
		} else if (frame != 0 && frame == seen) { /* a circle */
			flags = XSP_PYTHON_TORN;
			count = 0;
			to = &w->word[1];
			break;
		}
	}
	w->used = (uint32_t)(to - w->word);
	w->word[0] = XSP_SECTION_PYTHON | w->used * sizeof(uint64_t) << 16 |
		     (uint64_t)(count | flags) << 32;
	w->mix = known_mix(mix, w->word[0]);
	if (w->unknown != 0)
		w->end = WALK_UNKNOWN;
}
#endif
