/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/names/unwind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/capture.h"
#include "target/unwind.h"
#include "xsptrace/programs.h"

struct xsp_unwinder {
	struct xsp_resolver *resolver;
	struct xsp_javascript *javascript;
	union {
		struct xsp_event head;
		uint8_t bytes[XSP_SAMPLE_BYTES];
		uint64_t words[XSP_SAMPLE_BYTES / 8];
	} out;
};

/* The kernel side's copy of a stack. */
struct copy {
	uint64_t from;
	const uint8_t *bytes;
	size_t size;
	bool *beyond; /* set if a read lies further out */
};

/* An event's sections, and their offset; 0: another kind of event. */
struct parts {
	size_t begin;
	/* NULL: there is none */
	const struct xsp_section *kernel, *words, *python, *peer, *stack, *copy;
};

int xsp_unwinder_new(struct xsp_resolver *resolver, struct xsp_javascript *javascript,
		     struct xsp_unwinder **out)
{
	*out = calloc(1, sizeof(**out));
	if (*out == NULL)
		return -ENOMEM;
	(*out)->resolver = resolver;
	(*out)->javascript = javascript;
	return 0;
}

void xsp_unwinder_free(struct xsp_unwinder *u)
{
	free(u);
}

static struct parts find_parts(const struct xsp_event *e)
{
	struct parts p = {0};

	if (e->kind != XSP_EVENT_SAMPLE && e->kind != XSP_EVENT_WAIT && e->kind != XSP_EVENT_MEMORY)
		return p;
	p.begin = xsp_event_fixed_part(e);
	for (const struct xsp_section *s = NULL; (s = xsp_event_next_section(e, s)) != NULL;)
		if (s->type == XSP_SECTION_KERNEL)
			p.kernel = s;
		else if (s->type == XSP_SECTION_WORDS)
			p.words = s;
		else if (s->type == XSP_SECTION_PYTHON)
			p.python = s;
		else if (s->type == XSP_SECTION_PEER)
			p.peer = s;
		else if (s->type == XSP_SECTION_STACK)
			p.stack = s;
		else if (s->type == XSP_SECTION_COPY &&
			 xsp_section_length(s) >= sizeof(struct xsp_stack_copy))
			p.copy = s;
	return p;
}

/* ---- one frame up ---- */

static int load(const void *ctx, uint64_t address, void *to, size_t size)
{
	const struct copy *c = ctx;

	if (address < c->from)
		return -EFAULT;
	if (address - c->from > c->size || size > c->size - (address - c->from)) {
		*c->beyond = true;
		return -EFAULT;
	}
	memcpy(to, c->bytes + (address - c->from), size);
	return 0;
}

/* 0; 1: it is the outermost; or -ENOENT. */
static int up(const struct xsp_unwinder *u, pid_t pid, const struct copy *c, struct xsp_walk *w,
	      uint64_t pc)
{
	struct xsp_module *module;
	uint64_t addr;
	int rc = xsp_resolve_learned(u->resolver, pid, pc, &module, &addr);

	if (rc == 0 && xsp_module_arch(module) == XSP_ARCH_X86_64)
		rc = xsp_walk_up(module, addr, load, c, w);
	return rc < 0 ? xsp_walk_up_frame_pointer(load, c, w) : rc;
}

/* ---- the stack ---- */

struct stack {
	uint64_t *words;
	size_t count;
	uint64_t above; /* the stack pointer of the last frame's caller */
	bool more; /* further out than the copy reaches */
};

static bool push(struct stack *s, uint64_t address, uint64_t above)
{
	const uint64_t distance = (above - s->above) / 8;

	if (s->count == XSP_STACK_MAX || address == 0 || address >= 1ULL << XSP_FRAME_SHIFT ||
	    above <= s->above || distance >= 1ULL << (64 - XSP_FRAME_SHIFT))
		return false;
	s->words[s->count++] = address | distance << XSP_FRAME_SHIFT;
	s->above = above;
	return true;
}

/* What stands for the function of the frame that code at `pc` has; 0: it is none of JavaScript. *code: what is at `pc`. */
static uint64_t javascript_of(const struct xsp_unwinder *u, pid_t pid, const struct copy *c,
			      const struct xsp_walk *w, uint64_t pc, enum xsp_v8_code *code)
{
	const uint64_t rbp = w->values[XSP_WALK_RBP];
	bool beyond;
	const struct copy quietly = {c->from, c->bytes, c->size, &beyond};
	struct xsp_v8_frame f;

	*code = XSP_V8_NONE;
	if (XSP_RETURN_SLOT == 0 || u->javascript == NULL)
		return 0;
	const bool known = w->known & 1U << XSP_WALK_RBP &&
			   load(&quietly, rbp - sizeof(f), &f, sizeof(f)) == 0;
	return xsp_javascript_frame(u->javascript, pid, pc, known ? &f : NULL, code);
}

/* Is it a function that the frame's one has called? */
static bool is_beside(enum xsp_v8_code code)
{
	return code == XSP_V8_BUILTIN || code == XSP_V8_BRIDGE;
}

/* The caller, or what stands for it. A signal handler returns to code that nobody called and that is no function: the
 * interrupted frame replaces it. */
static bool push_caller(struct stack *s, const struct xsp_walk *w, uint64_t instead)
{
	if (instead != 0)
		return push(s, instead | XSP_FRAME_INTERRUPTED, w->values[XSP_WALK_RSP]);
	if (w->interrupted && s->count > 0 && XSP_FRAME_WORDS(s->words[s->count - 1]) > 0)
		s->above -= XSP_FRAME_WORDS(s->words[--s->count]) * 8;
	return push(s, w->values[XSP_WALK_RA] | (w->interrupted ? XSP_FRAME_INTERRUPTED : 0),
		    w->values[XSP_WALK_RSP]);
}

/* Its length in words of 64 bits. */
static size_t words_of(const struct xsp_section *s)
{
	return s != NULL ? xsp_section_length(s) / 8 : 0;
}

/* Where the thread was: the first frame of a wait's stack. */
static uint64_t stood_at(const struct xsp_event *e, const struct parts *p)
{
	switch (e->kind) {
	case XSP_EVENT_WAIT:
		return XSP_FRAME_ADDRESS(*(const uint64_t *)(p->stack + 1));
	case XSP_EVENT_MEMORY:
		return ((const uint64_t *)(p->words + 1))[XSP_MEMORY_IP];
	default:
		return ((const struct xsp_event_sample *)e)->address;
	}
}

/* Is that a frame of the stack, too? malloc()'s caller is one, once malloc() has returned. */
static bool is_frame(const struct xsp_event *e, const struct parts *p)
{
	return e->kind == XSP_EVENT_WAIT ||
	       (e->kind == XSP_EVENT_MEMORY &&
		((const uint64_t *)(p->words + 1))[XSP_MEMORY_RETURNED] != 0);
}

static void start(const struct xsp_event *e, const struct parts *p, struct xsp_walk *w)
{
	const struct xsp_stack_copy *r = (const void *)(p->copy + 1);
	const bool waits = e->kind == XSP_EVENT_WAIT;

	*w = (struct xsp_walk){0};
	const uint64_t saved[][2] = {{XSP_WALK_RBX, r->rbx},
				     {XSP_WALK_RBP, r->rbp},
				     {XSP_WALK_RSP, waits ? e->sp + XSP_RETURN_SLOT : e->sp},
				     {12, r->r12},
				     {13, r->r13},
				     {14, r->r14},
				     {15, r->r15},
				     {XSP_WALK_RA, stood_at(e, p)}};
	for (size_t i = 0; i < sizeof(saved) / sizeof(saved[0]); i++) {
		w->values[saved[i][0]] = saved[i][1];
		w->known |= 1U << saved[i][0];
	}
}

/* Callers beyond the copy, from stack pointer `above` on: the kernel side found them by frame pointers. Are there
 * any? */
static bool push_rest(struct stack *s, uint64_t above, const struct xsp_section *found)
{
	const uint64_t *words = (const void *)(found + 1);
	const size_t before = s->count;

	for (size_t i = 0; i < words_of(found); i++) {
		above += XSP_FRAME_WORDS(words[i]) * 8;
		if (above > s->above && !push(s, XSP_FRAME_ADDRESS(words[i]), above))
			break;
	}
	return s->count > before;
}

/* *address: of the sample, replaced where the thread is in a function of JavaScript. */
static void walk(const struct xsp_unwinder *u, const struct xsp_event *e, const struct parts *p,
		 struct stack *s, uint64_t *address)
{
	bool beyond = false;
	struct xsp_walk w;
	int rc = 0;

	start(e, p, &w);
	const uint64_t sp = w.values[XSP_WALK_RSP];
	const struct copy c = {
		.from = sp,
		.bytes = (const uint8_t *)(p->copy + 1) + sizeof(struct xsp_stack_copy),
		.size = p->copy->size - sizeof(*p->copy) - sizeof(struct xsp_stack_copy),
		.beyond = &beyond};
	uint64_t pc = w.values[XSP_WALK_RA];
	const pid_t pid = (pid_t)e->tgid;
	enum xsp_v8_code code;
	if (is_frame(e, p))
		s->words[s->count++] = XSP_FRAME_ADDRESS(pc);
	s->above = sp;
	const uint64_t inner = javascript_of(u, pid, &c, &w, pc, &code);
	if (inner != 0 && is_beside(code))
		push(s, inner | XSP_FRAME_INTERRUPTED, sp + 8);
	else if (inner != 0 && s->count > 0)
		s->words[0] = inner | XSP_FRAME_INTERRUPTED;
	else if (inner != 0 && e->kind == XSP_EVENT_SAMPLE)
		*address = inner;
	bool part = inner == 0 && e->kind == XSP_EVENT_SAMPLE && code == XSP_V8_PART;
	for (;; part = false) {
		beyond = false;
		rc = up(u, pid, &c, &w, pc);
		if (rc != 0)
			break;
		pc = w.values[XSP_WALK_RA] - (w.interrupted ? 0 : 1); /* the call */
		const uint64_t outer = javascript_of(u, pid, &c, &w, pc, &code);
		if (part && outer != 0 && !is_beside(code))
			*address = outer;
		else if (code != XSP_V8_BRIDGE && !push_caller(s, &w, is_beside(code) ? 0 : outer))
			break;
	}
	if (rc < 0 && !push_rest(s, sp, p->stack))
		s->more = beyond;
}

/* Where what follows it goes. */
static uint8_t *copy_section(uint8_t *to, const struct xsp_section *s)
{
	memcpy(to, s, s->size);
	return to + s->size;
}

const struct xsp_event *xsp_unwind(struct xsp_unwinder *u, const struct xsp_event *e)
{
	const struct parts p = find_parts(e);
	uint8_t *at = u->out.bytes + p.begin;

	if (p.copy == NULL || e->size > sizeof(u->out) ||
	    (e->kind == XSP_EVENT_WAIT && words_of(p.stack) == 0) ||
	    (e->kind == XSP_EVENT_MEMORY && words_of(p.words) != XSP_MEMORY_WORDS))
		return e;
	memcpy(u->out.bytes, e, p.begin);
	if (p.kernel != NULL && words_of(p.kernel) == 0)
		at = copy_section(at, p.kernel);
	if (e->kind == XSP_EVENT_MEMORY)
		at = copy_section(at, p.words);
	if (p.python != NULL && words_of(p.python) == 1)
		at = copy_section(at, p.python);
	if (p.peer != NULL && xsp_section_length(p.peer) == sizeof(struct xsp_peer))
		at = copy_section(at, p.peer);
	struct xsp_section *head = (void *)at;
	struct stack s = {.words = (void *)(head + 1)};
	uint64_t address = 0;
	walk(u, e, &p, &s, &address);
	if (address != 0)
		((struct xsp_event_sample *)u->out.bytes)->address = address;
	*head = (struct xsp_section){.type = XSP_SECTION_STACK,
				     .size = (uint16_t)(sizeof(*head) + 8 * s.count),
				     .value = s.more};
	u->out.head.size = (uint16_t)(at + head->size - u->out.bytes);
	return &u->out.head;
}
