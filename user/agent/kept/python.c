/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * python.c - the stacks of Python that calls are made from: equal ones are kept once. How to read them is the recorder's to
 * say, and may be wrong: nothing is read that is not known to be readable.
 *
 * Runs in a thunk (calls.h), with general registers only; python_turn() on the agent's thread.
 */
#ifdef __x86_64__
#include <dlfcn.h>
#include <unistd.h>
#include "agent/agent.h"
#include "agent/kept/known.h"
#include "agent/kept/python.h"
#include "agent/kept/walk.h"
#include "agent/put.h"

enum {
	TRIES = 64, /* a page that nobody knows, or an interruption, each */
};

/* struct rseq_cs of <linux/rseq.h> */
extern __attribute__((visibility("hidden"))) char __start_xsp_walk[], __stop_xsp_walk[],
	walk_interrupted[];
__attribute__((aligned(32), visibility("hidden"))) struct {
	uint32_t version, flags;
	uint64_t start, bytes, interrupted;
} walk_sequence;

static struct {
	uint32_t stamp;
	int64_t rseq; /* from the thread pointer to what the C library has registered; 0: nothing */
} python;

/* ---- in a thunk ---- */

/* Without the C library's help only the main thread is sure to keep its frames: whoever ends the interpreter is this one. */
static bool walk_once(struct walk *w, const struct thread_calls *t)
{
	if (LIKELY(python.rseq != 0))
		return thunk_in_one_go(w, python.rseq);
	if (t->ring->tid != walk_how.main)
		return false;
	walk(w);
	return true;
}

__attribute__((noinline)) bool python_place(struct thread_calls *t, uint64_t *place)
{
	struct walk w;

	w.unreadable = w.learned = 0;
	for (uint32_t n = 0;; n++) {
		const bool done = walk_once(&w, t);
		if (LIKELY(done && w.end != WALK_UNKNOWN))
			break;
		if (n == TRIES) {
			w.end = WALK_STACK;
			w.used = 1;
			w.word[0] = w.mix = XSP_SECTION_PYTHON | sizeof(w.word[0]) << 16 |
					    (uint64_t)XSP_PYTHON_TORN << 32;
			break;
		}
		if (!done)
			continue;
		if (readable_learn(w.unknown))
			w.learned = w.unknown;
		else
			w.unreadable = w.unknown;
	}
	if (w.end == WALK_NONE)
		return false;
	struct kept_words words = {.word = w.word, .used = w.used, .mix = w.mix};
	known_find(&words);
	*place = words.place;
	return true;
}

__attribute__((noinline)) void python_put(struct thread_calls *t, uint64_t function, uint64_t sp)
{
	uint64_t place;

	if (python_place(t, &place))
		put_record(t, XSP_RING_WORD(0, XSP_EVENT_PYTHON, 0, function), sp, place);
}

/* ---- on the agent's thread ---- */

static int64_t find_rseq(void)
{
	const int64_t *offset = dlsym(RTLD_DEFAULT, "__rseq_offset");
	const uint32_t *size = dlsym(RTLD_DEFAULT, "__rseq_size");

	return offset && size && *size >= 16 ? *offset : 0;
}

/* Do its offsets lie in what is read? */
static bool is_sound(const struct xsp_python_spec *s)
{
	const uint32_t words = s->read_bytes / 8U;

	return s->read_bytes % 8 == 0 && s->read_bytes <= XSP_PYTHON_READ && s->code < words &&
	       s->previous < words && s->instruction < words && s->owner < s->read_bytes &&
	       s->read_from % 8 == 0 && s->first_local % 8 == 0;
}

static void take(const struct xsp_ring_python *from)
{
	walk_how.spec = from->spec;
	walk_how.finalizing = from->finalizing;
	walk_how.frames = from->frames < XSP_PYTHON_MAX ? from->frames : XSP_PYTHON_MAX;
	walk_how.main = (uint32_t)getpid();
	walk_sequence.start = (uint64_t)__start_xsp_walk;
	walk_sequence.bytes = (uint64_t)(__stop_xsp_walk - __start_xsp_walk);
	walk_sequence.interrupted = (uint64_t)walk_interrupted;
	python.rseq = find_rseq();
}

static bool is_wanted(void)
{
	const struct xsp_ring_python *from = &rings_file()->python;
	const uint32_t stamp = __atomic_load_n(&from->stamp, __ATOMIC_ACQUIRE);

	if (stamp == 0 || !is_sound(&from->spec) || from->frames == 0)
		return false;
	if (stamp != python.stamp) /* threads that read now may meet both: each read is checked */
		take(from);
	python.stamp = stamp;
	return true;
}

void python_turn(void)
{
	if (rings_state[0] & RINGS_THERE)
		rings_activate(RINGS_PYTHON, (rings_state[0] & RINGS_RECORDING) && is_wanted());
}
#endif
