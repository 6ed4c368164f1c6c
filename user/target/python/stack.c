/* SPDX-License-Identifier: BSD-2-Clause */
/* stack.c - the threads of an interpreter, and the frames of each. Inside the kernel,
 * bpf/python.h does the same for the thread that runs. */
#include <errno.h>
#include <string.h>

#include "target/pthread.h"
#include "target/python/python.h"

#define INTERPRETERS_MAX 256
#define UNKNOWN_MAX 4096 /* states of threads that are gone, or not there yet */

bool xsp_python_is_several(const struct xsp_python *p)
{
	uint64_t newest_main[2];

	return xsp_python_read(p, p->runtime + p->layout.interpreters_head, newest_main,
			       sizeof(newest_main)) == 0 &&
	       newest_main[1] != 0 && newest_main[0] != newest_main[1];
}

static bool read_thread(const struct xsp_python *p, uint64_t state, struct xsp_python_thread *out)
{
	uint64_t words[XSP_PTHREAD_WORDS];

	*out = (struct xsp_python_thread){.state = state};
	return xsp_python_read(p, state + p->layout.frames.thread_id, &out->pointer, 8) == 0 &&
	       xsp_python_read(p, out->pointer + XSP_PTHREAD_KNOWN, words, sizeof(words)) == 0 &&
	       xsp_is_pthread(out->pointer, words) &&
	       xsp_python_read(p, out->pointer + XSP_PTHREAD_TID, &out->tid, sizeof(out->tid)) == 0;
}

static size_t threads_of(const struct xsp_python *p, uint64_t interpreter,
			 struct xsp_python_thread *out, size_t room)
{
	const bool several = xsp_python_is_several(p);
	uint64_t state = 0;
	size_t n = 0;

	if (xsp_python_read(p, interpreter + p->layout.threads_head, &state, 8) < 0)
		return 0;
	for (size_t seen = 0; state != 0 && n < room && seen < room + UNKNOWN_MAX; seen++) {
		n += read_thread(p, state, &out[n]) || several;
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
#define SPECIFIC_COUNT 32

/* The number of the thread's slot that has the state; SPECIFIC_COUNT: none has. */
static uint32_t slot_of(const struct xsp_python *p, const struct xsp_python_thread *t)
{
	uint64_t slots[2 * SPECIFIC_COUNT];
	uint32_t i = 0;

	if (xsp_python_read(p, t->pointer + XSP_PTHREAD_VALUES, slots, sizeof(slots)) < 0)
		return SPECIFIC_COUNT;
	while (i < SPECIFIC_COUNT && slots[2 * i + 1] != t->state)
		i++;
	return i;
}

/* The key under which glibc keeps a thread's state: found by searching the slots of threads. Some
 * run with another state than the one that names them. */
static int find_key(const struct xsp_python *p, uint32_t *key)
{
	struct xsp_python_thread threads[THREADS_MOST];
	const long count = xsp_python_threads(p, threads, THREADS_MOST);

	*key = SPECIFIC_COUNT;
	for (long i = count; *key == SPECIFIC_COUNT && i > 0; i--)
		*key = slot_of(p, &threads[i - 1]);
	return *key < SPECIFIC_COUNT ? 0 : -EAGAIN;
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

#if defined(__aarch64__)
#define SIZE_LEAST 0x400
#define SIZE_MOST 0xc00

/*
 * The thread pointer is at the end of struct pthread, whose size differs from glibc to glibc: {dtv, 0}. Of dtv's pairs
 * the second is the variables of the first module, which follow (sysdeps/aarch64/nptl/tls.h, _dl_allocate_tls_init).
 */
static int thread_pointer_of(const struct xsp_python *p, uint64_t self, uint64_t *out)
{
	uint64_t words[(SIZE_MOST - SIZE_LEAST) / 8], block;

	if (xsp_python_read(p, self + SIZE_LEAST, words, sizeof(words)) < 0)
		return -EAGAIN;
	for (size_t i = 0; i + 1 < sizeof(words) / 8; i += 2) {
		*out = self + SIZE_LEAST + 8 * i;
		if (words[i] != 0 && words[i] % 8 == 0 && words[i + 1] == 0 &&
		    xsp_python_read(p, words[i] + 16, &block, 8) == 0 && block - (*out + 16) < 4096)
			return 0;
	}
	return -EAGAIN;
}

/* The kernel side knows no key, but where its value is from the thread pointer on. */
static int find_value(const struct xsp_python *p, struct xsp_python_spec *s)
{
	struct xsp_python_thread threads[THREADS_MOST];
	const long count = xsp_python_threads(p, threads, THREADS_MOST);
	uint64_t key = (uint64_t)s->key << 32 | 1, pointer;

	if (count <= 0 ||
	    (s->key_address != 0 && xsp_python_read(p, s->key_address, &key, 8) < 0) ||
	    (uint32_t)key == 0 || key >> 32 >= SPECIFIC_COUNT ||
	    thread_pointer_of(p, threads[count - 1].pointer, &pointer) < 0)
		return -EAGAIN;
	s->key = (uint32_t)(key >> 32);
	s->key_address = 0;
	s->variable = (int32_t)(XSP_PTHREAD_VALUES + 16 * s->key + 8) -
		      (int32_t)(pointer - threads[count - 1].pointer);
	return 0;
}
#endif

int xsp_python_frames(const struct xsp_python *p, struct xsp_python_spec *out)
{
	*out = p->layout.frames;
	out->current = p->layout.current;
	out->interpreters = p->layout.current ? 0 : p->runtime + p->layout.interpreters_head;
	out->threads_head = p->layout.threads_head;
	out->thread_next = p->layout.thread_next;
	out->on_stack = p->layout.on_stack;
	out->object_type = p->layout.object_type;
	if (p->layout.variable)
		return find_variable(p, &out->variable);
	out->key_address = p->layout.key != 0 ? p->runtime + p->layout.key : 0;
	int rc = p->layout.key != 0 ? 0 : find_key(p, &out->key);
#if defined(__aarch64__)
	rc = rc < 0 ? rc : find_value(p, out);
#endif
	return rc;
}

uint64_t xsp_python_finalizing(const struct xsp_python *p)
{
	return p->runtime + p->layout.finalizing;
}

/* ---- several interpreters ---- */

#define STACK_MOST (8ULL << 20) /* from there on, the stack is another thread's */

/* bpf/python.h does the same. */
static const struct xsp_python_thread *nearest_on_stack(const struct xsp_python *p,
							const struct xsp_python_thread *all,
							size_t count, uint64_t pointer, uint64_t sp)
{
	const struct xsp_python_thread *found = NULL;
	uint64_t room = pointer - sp < STACK_MOST ? pointer - sp : STACK_MOST, place;

	for (size_t i = 0; i < count; i++)
		if (xsp_python_read(p, all[i].state + p->layout.on_stack, &place, 8) == 0 &&
		    place - sp < room) {
			room = place - sp;
			found = &all[i];
		}
	return found;
}

static int read_slot(const struct xsp_python *p, uint64_t pointer, uint64_t *state)
{
	struct xsp_python_spec s;
	uint64_t word;

	if (xsp_python_frames(p, &s) < 0)
		return -EIO;
	if (p->layout.variable)
		return xsp_python_read(p, pointer + (uint64_t)(int64_t)s.variable, state, 8);
	if (s.key_address != 0) {
		if (xsp_python_read(p, s.key_address, &word, 8) < 0)
			return -EIO;
		s.key = (uint32_t)(word >> 32);
	}
	if (s.key >= SPECIFIC_COUNT)
		return -EIO;
	return xsp_python_read(p, pointer + XSP_PTHREAD_VALUES + 16 * s.key + 8, state, 8);
}

int xsp_python_thread_of(const struct xsp_python *p, const struct xsp_python_thread *all,
			 size_t count, uint32_t tid, uint64_t sp,
			 const struct xsp_python_thread **out)
{
	const struct xsp_python_thread *own = NULL;
	uint64_t state = 0;

	*out = NULL;
	for (size_t i = 0; i < count && own == NULL; i++)
		if (all[i].tid == tid)
			own = &all[i];
	if (own == NULL || !xsp_python_is_several(p)) {
		*out = own;
		return 0;
	}
	if (p->layout.current) {
		if (read_slot(p, own->pointer, &state) < 0)
			return -ENOTSUP;
		for (size_t i = 0; i < count; i++)
			if (all[i].state == state)
				*out = &all[i];
		return 0;
	}
	if (p->layout.on_stack == 0 || sp == 0)
		return -ENOTSUP;
	*out = nearest_on_stack(p, all, count, own->pointer, sp);
	return 0;
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

int xsp_python_frame(const struct xsp_python *p, uint64_t *frame, struct xsp_python_frame *out)
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
		int rc = xsp_python_frame(p, &frame, &out[n]);
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
