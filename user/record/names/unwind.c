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
	struct xsp_java *java;
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
		     struct xsp_java *java, struct xsp_unwinder **out)
{
	*out = calloc(1, sizeof(**out));
	if (*out == NULL)
		return -ENOMEM;
	(*out)->resolver = resolver;
	(*out)->javascript = javascript;
	(*out)->java = java;
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

/* ---- the stack ---- */

struct stack {
	uint64_t *words;
	size_t count;
	uint64_t above; /* the stack pointer of the last frame's caller */
	bool more; /* further out than the copy reaches */
};

/* Where a call pushes nothing, a function without a frame has the stack pointer of its caller. */
static bool push(struct stack *s, uint64_t address, uint64_t above)
{
	const uint64_t distance = (above - s->above) / 8;

	if (s->count == XSP_STACK_MAX || address == 0 || address >= 1ULL << XSP_FRAME_SHIFT ||
	    above < s->above + (XSP_RETURN_SLOT != 0) || distance >= 1ULL << (64 - XSP_FRAME_SHIFT))
		return false;
	s->words[s->count++] = address | distance << XSP_FRAME_SHIFT;
	s->above = above;
	return true;
}

/* A frame of the stack: the code at `pc` in it, and what stands for its functions in a language that has its own frames. */
struct frame {
	pid_t pid;
	uint64_t pc;
	bool standing; /* the thread is there */
	size_t count; /* of functions; 0: none is known */
	uint64_t functions[XSP_JVM_INLINED]; /* the innermost one first */
	enum xsp_v8_code code; /* what is at `pc`, if the process runs V8 */
	bool java; /* it is of a JVM: */
	struct xsp_java_frame of_java;
};

static uint64_t javascript_of(const struct xsp_unwinder *u, const struct copy *quietly,
			      const struct xsp_walk *w, struct frame *f)
{
	const uint64_t rbp = w->values[XSP_WALK_RBP];
	struct xsp_v8_frame v8;

	if (u->javascript == NULL)
		return 0;
	const bool known = w->known & 1U << XSP_WALK_RBP &&
			   load(quietly, rbp - sizeof(v8), &v8, sizeof(v8)) == 0;
	return xsp_javascript_frame(u->javascript, f->pid, f->pc, known ? &v8 : NULL, &f->code);
}

/* What is at `pc` in the frame `w`. */
static void look_at(const struct xsp_unwinder *u, const struct copy *c, const struct xsp_walk *w,
		    uint64_t pc, struct frame *f)
{
	bool beyond;
	const struct copy quietly = {c->from, c->bytes, c->size, &beyond};

	f->pc = pc;
	f->count = 0;
	f->code = XSP_V8_NONE;
	f->java = false;
	if (XSP_RETURN_SLOT == 0)
		return;
	f->functions[0] = javascript_of(u, &quietly, w, f);
	f->count = f->functions[0] != 0;
	if (f->count > 0 || f->code != XSP_V8_NONE || u->java == NULL)
		return;
	f->java = xsp_java_frame(u->java, f->pid, pc, f->standing, load, &quietly, w, &f->of_java);
	f->count = f->java ? f->of_java.count : 0;
	memcpy(f->functions, f->of_java.functions, f->count * sizeof(f->functions[0]));
}

/* 0; 1: it is the outermost; or -ENOENT. */
static int up(const struct xsp_unwinder *u, const struct frame *f, const struct copy *c,
	      struct xsp_walk *w)
{
	struct xsp_module *module;
	uint64_t addr;

	if (f->java)
		return xsp_jvm_up(f->of_java.jvm, &f->of_java.code, f->pc, f->standing, load, c, w);
	int rc = xsp_resolve_learned(u->resolver, f->pid, f->pc, &module, &addr);
	if (rc == 0)
		rc = xsp_walk_up(module, addr, load, c, w);
	return rc < 0 ? xsp_walk_up_frame_pointer(load, c, w) : rc;
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
	const uint64_t saved[][2] = {
		{XSP_WALK_RBP, r->rbp},
		{XSP_WALK_RSP, waits ? e->sp + XSP_RETURN_SLOT : e->sp},
#if defined(__aarch64__)
		{XSP_WALK_RA, r->rbx},
#else
		{XSP_WALK_RBX, r->rbx},
		{12, r->r12},
		{13, r->r13},
		{14, r->r14},
		{15, r->r15},
		{XSP_WALK_RA, stood_at(e, p)},
#endif
	};
	for (size_t i = 0; i < sizeof(saved) / sizeof(saved[0]); i++) {
		w->values[saved[i][0]] = saved[i][1];
		w->known |= 1U << saved[i][0];
	}
}

/* The functions around the innermost one of a frame at `sp`, into which they are inlined: each gets a word of its memory. */
static bool push_inlined(struct stack *s, const struct frame *f, uint64_t sp)
{
	for (size_t i = 1; i < f->count; i++)
		if (8 * (i + 1) < f->of_java.code.frame_bytes &&
		    !push(s, f->functions[i] | XSP_FRAME_INTERRUPTED, sp + 8 * i))
			return false;
	return true;
}

/* Callers beyond the copy, from stack pointer `above` on: the kernel side found them by frame pointers. Of these only compiled
 * functions of Java have names. Are there any? */
static bool push_rest(const struct xsp_unwinder *u, struct frame *f, struct stack *s,
		      uint64_t above, const struct xsp_section *found)
{
	const uint64_t *words = (const void *)(found + 1);
	const struct copy nothing = {.size = 0};
	const struct xsp_walk unknown = {.known = 0};
	const size_t before = s->count;

	for (size_t i = 0; i < words_of(found); i++) {
		const uint64_t address = XSP_FRAME_ADDRESS(words[i]);
		above += XSP_FRAME_WORDS(words[i]) * 8;
		if (above <= s->above)
			continue;
		look_at(u, &nothing, &unknown, address - 1, f);
		if (!push(s,
			  f->count > 0 && f->java ? f->functions[0] | XSP_FRAME_INTERRUPTED
						  : address,
			  above) ||
		    (f->java && !push_inlined(s, f, above)))
			break;
	}
	return s->count > before;
}

/* Does it say nothing of the program? */
static bool is_nothing(const struct frame *f)
{
	return f->code == XSP_V8_BRIDGE || (f->java && f->of_java.code.kind == XSP_JVM_STUB);
}

/* Where the thread is. *address: of the sample, replaced where it is in a function of such a language. */
static void push_inner(struct stack *s, const struct frame *f, bool sample, uint64_t *address)
{
	const uint64_t sp = s->above;

	if (f->count == 0)
		return;
	if (is_beside(f->code))
		push(s, f->functions[0] | XSP_FRAME_INTERRUPTED, sp + 8);
	else if (s->count > 0)
		s->words[0] = f->functions[0] | XSP_FRAME_INTERRUPTED;
	else if (sample)
		*address = f->functions[0];
	push_inlined(s, f, sp);
}

static void walk(const struct xsp_unwinder *u, const struct xsp_event *e, const struct parts *p,
		 struct stack *s, uint64_t *address)
{
	const bool sample = e->kind == XSP_EVENT_SAMPLE;
	bool beyond = false;
	struct xsp_walk w;
	int rc = 0;

	start(e, p, &w);
	const uint64_t sp = w.values[XSP_WALK_RSP], pc = stood_at(e, p);
	const struct copy c = {
		.from = sp,
		.bytes = (const uint8_t *)(p->copy + 1) + sizeof(struct xsp_stack_copy),
		.size = p->copy->size - sizeof(*p->copy) - sizeof(struct xsp_stack_copy),
		.beyond = &beyond};
	struct frame f = {.pid = (pid_t)e->tgid, .standing = true};
	if (is_frame(e, p))
		s->words[s->count++] = XSP_FRAME_ADDRESS(pc);
	/* the timeline begins with the slot below a sample's stack pointer, as if a return address were there */
	s->above = sample ? sp - 8 + XSP_RETURN_SLOT : sp;
	look_at(u, &c, &w, pc, &f);
	push_inner(s, &f, sample, address);
	bool part = f.count == 0 && sample && f.code == XSP_V8_PART;
	for (;; part = false) {
		beyond = false;
		rc = up(u, &f, &c, &w);
		if (rc != 0)
			break;
		f.standing = w.interrupted;
		look_at(u, &c, &w, w.values[XSP_WALK_RA] - !w.interrupted /* the call */, &f);
		if (part && f.count > 0 && !is_beside(f.code))
			*address = f.functions[0];
		else if (!is_nothing(&f) &&
			 (!push_caller(s, &w,
				       is_beside(f.code) || f.count == 0 ? 0 : f.functions[0]) ||
			  !push_inlined(s, &f, w.values[XSP_WALK_RSP])))
			break;
	}
	if (rc < 0 && !push_rest(u, &f, s, sp, p->stack))
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
