/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * python.h - the section PYTHON: the Python frames of the thread (xsptrace/python.h).
 *
 * The walk starts from the thread's own state in its thread-specific storage: operators run without
 * the GIL, which another thread holds. Each frame takes one read. Frames are hashed as they come. A
 * stack that was sent before, as nearly every one was, takes 8 bytes in the event.
 *
 * All of it is the target's, and may lie. Reads do not sleep, and their number is bounded. A chain
 * that runs in a circle is dropped.
 */
#ifndef XSP_BPF_PYTHON_H
#define XSP_BPF_PYTHON_H

#include "hash.h"
#include "sequence.h"
#include "slots.h"
#include "words.h"

/* Most frames of a stack; 0: no Python. Set before loading. */
__weak const volatile __u32 xsp_python_frames = 0;

/* Ranges have the section, too. Only if asked for: it takes the verifier long. */
__weak const volatile bool xsp_python_ranges = false;

/* From now on spans have no Python: it was on by default, and cost too much. */
__weak volatile __u32 xsp_python_off = 0;

/* The stacks that were sent. LRU: a stack that was evicted is sent again. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1); /* resized before loading */
	__type(key, __u64);
	__type(value, __u32);
} xsp_python_stacks __weak SEC(".maps");

/* The search for the state that a thread runs with. */
struct python_search {
	__u64 interpreter, state; /* the next ones; 0: none */
	__u64 sp, nearest,
		found; /* the thread's; the nearest place above, and the state it is of */
};

/* Where a stack is gathered. All that changes in the loop is here: so the verifier sees one path
 * after the loop, not one for each frame. */
struct python_slot {
	__u32 in_use;
	__u32 walks; /* there was a frame, and it was not the last */
	__u64 next; /* the next frame to read; 0: none */
	__u64 seen; /* a frame that was read a while ago: reading it again means a circle */
	__u64 raw[XSP_PYTHON_READ / 8];
	struct python_search search;
	struct xsp_event_python event;
	struct xsp_python_frame frame[XSP_PYTHON_MAX];
};
XSP_SLOTS_MAP(xsp_python_slots, struct python_slot);

static __noinline struct python_slot *acquire_python_slot(void)
{
	return xsp_acquire_slot(&xsp_python_slots);
}

/*
 * Where glibc keeps the thread's value of a key (struct pthread, nptl/descr.h; the same since
 * 2.11): 32 pairs of words at 0x310, followed by 32 pointers to more such blocks. The value is the
 * second word of a pair.
 */
#define SPECIFIC_FIRST 0x310
#define SPECIFIC_BLOCKS (SPECIFIC_FIRST + 32 * 16)

static __noinline __u64 python_key_slot(const struct xsp_python_spec *spec)
{
	__u64 thread = thread_pointer(), key = spec->key, block;

	if (spec->variable)
		return thread == UNKNOWN ? UNKNOWN : thread + (__s64)spec->variable;
	if (spec->key_address) {
		__u64 word = read_word(spec->key_address);
		if (word == UNKNOWN)
			return UNKNOWN;
		if ((__u32)word == 0) /* not made yet: no Python runs */
			return 0;
		key = word >> 32;
	}
	if (thread == UNKNOWN || key >= 32 * 32)
		return UNKNOWN;
	block = thread + SPECIFIC_FIRST;
	if (key >= 32)
		block = read_word(thread + SPECIFIC_BLOCKS + key / 32 * 8);
	if (block == 0 || block == UNKNOWN)
		return block;
	return block + key % 32 * 16 + 8;
}

/* Is pthread_self() this thread's? On arm64 the thread pointer is at the end of struct pthread. */
static __always_inline bool is_own_thread(__u64 self)
{
#if defined(__TARGET_ARCH_x86)
	return self == thread_pointer();
#else
	return thread_pointer() - self < 4096;
#endif
}

/* The state under the thread's key; 0: none; UNKNOWN: it could not be read. */
static __noinline __u64 python_own_state(const struct xsp_python_spec *spec)
{
	__u64 slot = python_key_slot(spec), state;

	if (slot == 0 || slot == UNKNOWN)
		return slot;
	state = read_word(slot);
	if (state == 0 || state == UNKNOWN || spec->current)
		return state;
	return is_own_thread(read_word(state + spec->thread_id)) ? state : UNKNOWN;
}

/* With 128 turns, 5.15 took minutes in an emulator. So before 5.17 fewer frames are read, and longer
 * stacks are marked as cut. */
#define PYTHON_TURNS 24

struct python_way {
	const struct xsp_python_spec *spec;
	struct python_slot *slot;
};

/* ---- several interpreters ---- */

static __noinline bool python_is_several(const struct xsp_python_spec *spec)
{
	__u64 newest_main[2];

	if (!spec->interpreters ||
	    bpf_probe_read_user(newest_main, sizeof(newest_main), (void *)spec->interpreters))
		return false;
	return newest_main[1] && newest_main[0] != newest_main[1];
}

/* Looks at one state, or goes on to the next interpreter; 1: all were seen. */
static __noinline long python_look(__u32 index, void *at)
{
	const struct python_way *way = at;
	const struct xsp_python_spec *spec = way->spec;
	struct python_search *s = &way->slot->search;
	__u64 place;

	if (s->state == UNKNOWN || s->interpreter == UNKNOWN)
		return 1;
	if (s->state == 0) {
		if (s->interpreter == 0)
			return 1;
		s->state = read_word(s->interpreter + spec->threads_head);
		s->interpreter = read_word(s->interpreter);
		return 0;
	}
	place = read_word(s->state + spec->on_stack);
	if (place - s->sp < s->nearest - s->sp) {
		s->nearest = place;
		s->found = s->state;
	}
	s->state = read_word(s->state + spec->thread_next);
	return 0;
}

#define STACK_MOST (8ULL << 20) /* from there on, the stack is another thread's */
#define STATES_MOST 512

/* The state of whichever interpreter whose innermost call of C is the innermost on the thread's
 * stack; 0: none; UNKNOWN: they could not all be read. */
static __noinline __u64 python_search(const struct xsp_python_spec *spec, struct python_slot *p)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct python_way way = {.spec = spec, .slot = p};
	struct python_search *s = &p->search;
	__u64 room;

	if (!spec->on_stack)
		return UNKNOWN;
	s->sp = XSP_REG_SP((struct pt_regs *)bpf_task_pt_regs(task));
	/* a thread's stack ends at its struct pthread, but for the main one's */
	room = thread_pointer() - s->sp;
	s->nearest = s->sp + (room < STACK_MOST ? room : STACK_MOST);
	s->found = 0;
	s->state = 0;
	s->interpreter = read_word(spec->interpreters);
	XSP_LOOP(STATES_MOST, PYTHON_TURNS, python_look, &way);
	return s->state || s->interpreter ? UNKNOWN : s->found;
}

/* ---- frames ---- */

/* The innermost frame; 0: none; UNKNOWN: it, or the state, could not be read. */
static __noinline __u64 python_first(const struct xsp_python_spec *spec, __u64 state)
{
	__u64 frame;

	if (state == 0 || state == UNKNOWN)
		return state;
	frame = read_word(state + spec->thread_frame);
	if (frame && frame != UNKNOWN && spec->cframe_frame != XSP_PYTHON_NO_CFRAME)
		frame = read_word(frame + spec->cframe_frame);
	return frame;
}

static __always_inline __u64 python_word(const struct python_slot *p, __u8 index)
{
	return p->raw[index & (XSP_PYTHON_READ / 8 - 1)];
}

/* Reads the frame's `self` and its class, which are part of the stack's identity: soon after a
 * module is gone, another one may have its address. */
static __noinline void python_self(const struct xsp_python_spec *spec, struct python_slot *p,
				   struct xsp_python_frame *f, __u64 frame)
{
	__u64 self = read_word(frame + spec->first_local);

	f->self = self == UNKNOWN ? 0 : self & ~7ULL;
	f->type = f->self ? read_word(f->self + spec->object_type) : 0;
	p->event.id = hash_word(hash_word(p->event.id, f->self), f->type);
}

/* Takes one frame; false: it was the last. */
static __always_inline bool python_step(const struct xsp_python_spec *spec, struct python_slot *p)
{
	__u64 frame = p->next, code;
	__u32 size = spec->read_bytes, n = p->event.count;

	if (frame == 0)
		return false;
	barrier_var(size);
	if (size > XSP_PYTHON_READ)
		size = XSP_PYTHON_READ;
	if (bpf_probe_read_user(p->raw, size, (void *)(frame + spec->read_from))) {
		p->event.flags |= XSP_PYTHON_TORN;
		return false;
	}
	p->next = python_word(p, spec->previous);
	if (spec->owner && ((__u8 *)p->raw)[spec->owner & (XSP_PYTHON_READ - 1)] >= spec->owners)
		return true;
	if (n >= xsp_python_frames) {
		p->event.flags |= XSP_PYTHON_CUT;
		return false;
	}
	code = python_word(p, spec->code) & ~7ULL; /* from 3.14 on, the low bits are tags */
	struct xsp_python_frame *f = &p->frame[n & (XSP_PYTHON_MAX - 1)];
	f->code = code;
	f->instruction = python_word(p, spec->instruction);
	if (spec->number_bits == 32)
		f->instruction = (__u32)f->instruction;
	f->self = f->type = 0;
	p->event.id = hash_word(hash_word(p->event.id, code), f->instruction);
	if (code && code == spec->method)
		python_self(spec, p, f, frame);
	p->event.count = n + 1;
	return true;
}

/* Takes one frame; 1: the walk has ended. */
static __noinline long python_visit(__u32 index, void *at)
{
	const struct python_way *way = at;
	struct python_slot *p = way->slot;
	const __u32 i = index + 1;

	p->walks = 0;
	if (!python_step(way->spec, p))
		return 1;
	if ((i & (i - 1)) == 0) {
		p->seen = p->next;
	} else if (p->next && p->next == p->seen) {
		p->event.flags |= XSP_PYTHON_TORN;
		p->event.count = 0;
		return 1;
	}
	p->walks = 1;
	return 0;
}

static __always_inline void python_walk(const struct xsp_python_spec *spec, struct python_slot *p)
{
	struct python_way way = {.spec = spec, .slot = p};
	/* each Python frame has at most one C frame */
	__u32 most = 2 * xsp_python_frames + 1;

	if (most > 2 * XSP_PYTHON_MAX)
		most = 2 * XSP_PYTHON_MAX;
	XSP_LOOP(most, PYTHON_TURNS, python_visit, &way);
	if (p->walks)
		p->event.flags |= XSP_PYTHON_CUT;
}

static __noinline void python_send(struct python_slot *p)
{
	__u32 size = p->event.count * sizeof(p->frame[0]), one = 1;

	barrier_var(size);
	if (size > sizeof(p->frame))
		return;
	size += sizeof(p->event);
	p->event.head.size = size;
	if (xsp_output((__u32)bpf_get_current_pid_tgid(), &p->event, size) == 0)
		bpf_map_update_elem(&xsp_python_stacks, &p->event.id, &one, BPF_ANY);
	else
		xsp_count(XSP_COUNT_LOST_OTHER);
}

/* Gathers the stack; its id is 0 if there is none. */
static __noinline void python_gather(const struct xsp_python_spec *spec, struct python_slot *p,
				     __u64 first, __u64 time)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();

	xsp_fill_head(&p->event.head, time, 0, pid_tgid, 0, XSP_EVENT_PYTHON, 0, 0);
	p->event.id = hash_word(hash_begin(spec->generation), pid_tgid >> 32);
	p->event.generation = spec->generation;
	p->event.count = 0;
	p->event.flags = first == UNKNOWN ? XSP_PYTHON_TORN : 0;
	p->event.reserved = 0;
	p->seen = 0;
	p->next = first;
	if (first != UNKNOWN)
		python_walk(spec, p);
	p->event.id = hash_end(hash_word(p->event.id, p->event.flags));
	if (p->event.flags & XSP_PYTHON_TORN)
		xsp_count(XSP_COUNT_PYTHON_TORN);
	if (p->event.count && !bpf_map_lookup_elem(&xsp_python_stacks, &p->event.id))
		python_send(p);
}

/* The id of the current thread's stack, and its xsp_section.value; false: no stack. */
static __always_inline bool python_stack_id(__u32 tgid, __u64 time, __u64 *id, __u32 *value)
{
	const struct xsp_python_spec *spec = bpf_map_lookup_elem(&xsp_pythons, &tgid);
	struct python_slot *p;
	bool several;
	__u64 first;

	if (!spec)
		return false;
	several = python_is_several(spec);
	first = several ? UNKNOWN : python_first(spec, python_own_state(spec));
	p = first ? acquire_python_slot() : 0;
	if (!p) {
		if (first)
			xsp_count(XSP_COUNT_PYTHON_TORN);
		return false;
	}
	if (several)
		first = python_first(spec, python_search(spec, p));
	if (first)
		python_gather(spec, p, first, time);
	*id = p->event.id;
	*value = p->event.count | p->event.flags;
	xsp_give_slot_back(p);
	return first != 0;
}

static __noinline __u32 xsp_put_python(char *e, __u32 at)
{
	struct xsp_section *s;

	at = xsp_forget(e, at);
	if (at > XSP_DETAIL_LEAST - sizeof(*s) - 8)
		return at;
	s = (struct xsp_section *)(e + at);
	if (!python_stack_id(((struct xsp_event *)e)->tgid, ((struct xsp_event *)e)->time_ns,
			     (__u64 *)(s + 1), &s->value))
		return at;
	s->type = XSP_SECTION_PYTHON;
	s->size = sizeof(*s) + 8;
	return at + sizeof(*s) + 8;
}

#endif
