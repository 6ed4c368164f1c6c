/* SPDX-License-Identifier: BSD-2-Clause */
/* stack.c - the threads of an interpreter, and the frames of each. Inside the kernel,
 * bpf/python.h does the same for the thread that runs. */
#include <errno.h>
#include <string.h>

#include "target/pthread.h"
#include "target/python/python.h"

#define INTERPRETERS_MAX 256
#define UNKNOWN_MAX 4096 /* states of threads that are gone, or not there yet */

static bool read_thread(const struct xsp_python *p, uint64_t state, struct xsp_python_thread *out)
{
	uint64_t words[XSP_PTHREAD_WORDS];

	*out = (struct xsp_python_thread){.state = state};
	return xsp_python_read(p, state + p->layout.frames.thread_id, &out->pointer, 8) == 0 &&
	       xsp_python_read(p, out->pointer, words, sizeof(words)) == 0 &&
	       xsp_is_pthread(out->pointer, words) &&
	       xsp_python_read(p, out->pointer + XSP_PTHREAD_TID, &out->tid, sizeof(out->tid)) == 0;
}

static size_t threads_of(const struct xsp_python *p, uint64_t interpreter,
			 struct xsp_python_thread *out, size_t room)
{
	uint64_t state = 0;
	size_t n = 0;

	if (xsp_python_read(p, interpreter + p->layout.threads_head, &state, 8) < 0)
		return 0;
	for (size_t seen = 0; state != 0 && n < room && seen < room + UNKNOWN_MAX; seen++) {
		n += read_thread(p, state, &out[n]);
		if (xsp_python_read(p, state + p->layout.thread_next, &state, 8) < 0)
			break;
	}
	return n;
}

long xsp_python_threads(const struct xsp_python *p, struct xsp_python_thread *out, size_t room)
{
	uint64_t interpreter;
	size_t n = 0;

	if (xsp_python_read(p, p->runtime + p->layout.interpreters_head, &interpreter, 8) < 0)
		return -EIO;
	for (size_t seen = 0; interpreter != 0 && n < room && seen < INTERPRETERS_MAX; seen++) {
		n += threads_of(p, interpreter, out + n, room - n);
		if (xsp_python_read(p, interpreter + p->layout.interpreter_next, &interpreter, 8) <
		    0)
			break;
	}
	return (long)n;
}

/* ---- for the kernel side ---- */

#define THREADS_MOST 1024

/* bpf/python.h */
#define SPECIFIC_FIRST 0x310
#define SPECIFIC_COUNT 32

/* The key under which glibc keeps a thread's state: found by searching the slots of a thread that
 * has one. */
static int find_key(const struct xsp_python *p, uint32_t *key)
{
	const struct xsp_python_layout *l = &p->layout;
	uint64_t interpreter = 0, state = 0, thread = 0, slots[2 * SPECIFIC_COUNT];

	if (xsp_python_read(p, p->runtime + l->interpreters_head, &interpreter, 8) < 0 ||
	    interpreter == 0 || xsp_python_read(p, interpreter + l->threads_head, &state, 8) < 0 ||
	    state == 0 || xsp_python_read(p, state + l->frames.thread_id, &thread, 8) < 0 ||
	    xsp_python_read(p, thread + SPECIFIC_FIRST, slots, sizeof(slots)) < 0)
		return -EAGAIN;
	for (uint32_t i = 0; i < SPECIFIC_COUNT; i++)
		if (slots[2 * i + 1] == state) {
			*key = i;
			return 0;
		}
	return -EAGAIN;
}

/* The thread-local variables that the linker places are below the thread pointer. */
#define VARIABLES_BYTES 4096

/*
 * From 3.15 on, a thread keeps its state in two variables (Python/pystate.c): in _Py_tss_tstate
 * while it has the lock, and always in _Py_tss_gilstate, the one that is wanted. So if only one
 * holds it, that is the one. The search uses the oldest thread, the main one. Others have their
 * variables at the top of their stacks, where copies of the state are.
 */
static int find_variable(const struct xsp_python *p, int32_t *out)
{
	struct xsp_python_thread threads[THREADS_MOST];
	const long count = xsp_python_threads(p, threads, THREADS_MOST);
	uint64_t words[VARIABLES_BYTES / 8];
	unsigned found = 0;

	if (count <= 0 || count == THREADS_MOST)
		return -EAGAIN;
	const struct xsp_python_thread *t = &threads[count - 1];
	size_t bytes = VARIABLES_BYTES;
	if (xsp_python_read(p, t->pointer - bytes, words, bytes) < 0)
		bytes = t->pointer % VARIABLES_BYTES / 8 * 8; /* to the beginning of the page */
	if (bytes < VARIABLES_BYTES && xsp_python_read(p, t->pointer - bytes, words, bytes) < 0)
		return -EAGAIN;
	for (size_t i = 0; i < bytes / 8; i++)
		if (words[i] == t->state && found++ == 0)
			*out = (int32_t)(8 * i) - (int32_t)bytes;
	return found == 1 ? 0 : -EAGAIN;
}

int xsp_python_frames(const struct xsp_python *p, struct xsp_python_spec *out)
{
	*out = p->layout.frames;
	if (p->layout.variable)
		return find_variable(p, &out->variable);
	out->key_address = p->layout.key != 0 ? p->runtime + p->layout.key : 0;
	return p->layout.key != 0 ? 0 : find_key(p, &out->key);
}

/* ---- the lock ---- */

/* struct _gil_runtime_state (pycore_gil.h; the same from 3.9 to 3.15): interval, last_holder,
 * locked, switch_number, cond. */
enum { GIL_HOLDER = 1, GIL_LOCKED = 2, GIL_CONDITION = 32 };

int xsp_python_gil(const struct xsp_python *p, struct xsp_python_gil *out)
{
	uint64_t gil = p->runtime + p->layout.gil, interpreter, words[3];

	/* interpreters.main follows interpreters.head */
	if (p->layout.gil == 0)
		return -ENOENT;
	if (p->layout.gil_pointer &&
	    (xsp_python_read(p, p->runtime + p->layout.interpreters_head + 8, &interpreter, 8) <
		     0 ||
	     xsp_python_read(p, interpreter + p->layout.gil, &gil, 8) < 0))
		return -EIO;
	if (xsp_python_read(p, gil, words, sizeof(words)) < 0)
		return -EIO;
	out->condition = gil + GIL_CONDITION;
	out->holder = (uint32_t)words[GIL_LOCKED] == 1 ? words[GIL_HOLDER] : 0;
	return 0;
}

/* ---- frames ---- */

/* The innermost frame; 0: there is none. -EIO */
static int first_frame(const struct xsp_python *p, const struct xsp_python_thread *t,
		       uint64_t *frame)
{
	const struct xsp_python_spec *s = &p->layout.frames;
	uint64_t pointer;

	if (xsp_python_read(p, t->state + s->thread_id, &pointer, 8) < 0 || pointer != t->pointer ||
	    xsp_python_read(p, t->state + s->thread_frame, frame, sizeof(*frame)) < 0)
		return -EIO;
	if (*frame == 0 || s->cframe_frame == XSP_PYTHON_NO_CFRAME)
		return 0;
	return xsp_python_read(p, *frame + s->cframe_frame, frame, sizeof(*frame));
}

/* Reads one frame; `frame` becomes the next outer one. 1: it has code; 0: it is one of C's; or
 * -EIO. */
static int read_frame(const struct xsp_python *p, uint64_t *frame, struct xsp_python_frame *out)
{
	const struct xsp_python_spec *s = &p->layout.frames;
	uint64_t words[XSP_PYTHON_READ / 8] = {0};
	uint8_t bytes[sizeof(words)];

	if (s->read_bytes > sizeof(words) || s->owner >= sizeof(words) ||
	    s->code >= XSP_PYTHON_READ / 8 || s->previous >= XSP_PYTHON_READ / 8 ||
	    s->instruction >= XSP_PYTHON_READ / 8 ||
	    xsp_python_read(p, *frame + s->read_from, words, s->read_bytes) < 0)
		return -EIO;
	memcpy(bytes, words, sizeof(words));
	*frame = words[s->previous];
	if (s->owner != 0 && bytes[s->owner] >= s->owners)
		return 0;
	*out = (struct xsp_python_frame){.code = words[s->code] & ~7ULL,
					 .instruction = s->number_bits == 32
								? (uint32_t)words[s->instruction]
								: words[s->instruction]};
	return 1;
}

size_t xsp_python_stack(const struct xsp_python *p, const struct xsp_python_thread *t,
			struct xsp_python_frame *out, size_t room, uint32_t *flags)
{
	uint64_t frame,
		seen = 0; /* reading a frame again that was read a while ago means a circle */
	size_t n = 0;

	*flags = 0;
	if (first_frame(p, t, &frame) < 0) {
		*flags = XSP_PYTHON_TORN;
		return 0;
	}
	for (size_t i = 1; frame != 0; i++) {
		/* each Python frame has at most one C frame */
		if (n == room || i > 2 * room) {
			*flags = XSP_PYTHON_CUT;
			break;
		}
		int rc = read_frame(p, &frame, &out[n]);
		if (rc < 0) {
			*flags = XSP_PYTHON_TORN;
			break;
		}
		n += (size_t)rc;
		if ((i & (i - 1)) == 0) {
			seen = frame;
		} else if (frame != 0 && frame == seen) {
			*flags = XSP_PYTHON_TORN;
			return 0;
		}
	}
	return n;
}
