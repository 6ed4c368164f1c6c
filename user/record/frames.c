/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/frames.h"
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "xsptrace/programs.h"

/* Different addresses: a program's code has some hundred thousand call sites at most; garbage
 * where there are no frame pointers must not fill the memory. */
#define FRAMES_MAX (1U << 20)

struct pending {
	uint64_t address;
	uint32_t pid;
	enum xsp_address_name what;
	bool standing; /* no return address: where the thread itself stood, perhaps XSP_FRAME_INTERRUPTED */
};

/* A wait, as it is written. */
struct wait_event {
	struct xsp_event_wait wait;
	uint64_t sections[1024];
};

struct xsp_frames {
	struct xsp_capture_writer *writer;
	struct xsp_resolver *resolver;
	struct xsp_u64map seen; /* by hash */
	struct pending *pending;
	size_t count, room, next;
	struct xsp_u64map
		sizes; /* address in a process → 1 + how far up the return address is; 0: not known */
	struct wait_event made;
};

int xsp_frames_new(struct xsp_capture_writer *writer, struct xsp_resolver *resolver,
		   struct xsp_frames **out)
{
	struct xsp_frames *f = calloc(1, sizeof(*f));

	*out = f;
	if (f == NULL)
		return -ENOMEM;
	f->writer = writer;
	f->resolver = resolver;
	return 0;
}

void xsp_frames_free(struct xsp_frames *f)
{
	if (f == NULL)
		return;
	xsp_u64map_free(&f->seen);
	xsp_u64map_free(&f->sizes);
	free(f->pending);
	free(f);
}

static int see(struct xsp_frames *f, enum xsp_address_name what, uint32_t pid, uint64_t address,
	       bool standing)
{
	uint64_t hash = xsp_address_name_hash(what, pid, address);

	if (xsp_u64map_get(&f->seen, hash) != NULL || f->seen.count >= FRAMES_MAX)
		return 0;
	if (xsp_u64map_set(&f->seen, hash, 1) < 0 ||
	    xsp_grow(&f->pending, &f->room, f->count + 1) < 0)
		return -ENOMEM;
	f->pending[f->count++] = (struct pending){
		.pid = pid, .address = address, .what = what, .standing = standing};
	return 0;
}

/* ---- waits ---- */

/* The same of one address, which is asked for at each wait there. */
static bool frame_size(struct xsp_frames *f, uint32_t pid, uint64_t address, uint64_t *bytes)
{
	const uint64_t key = xsp_u64_mix(address ^ xsp_u64_mix(pid));
	const uint32_t *known = xsp_u64map_get(&f->sizes, key);

	if (known != NULL) {
		*bytes = *known - 1;
		return *known != 0;
	}
	bool found = xsp_resolve_frame(f->resolver, (pid_t)pid, address, bytes) == 0 &&
		     *bytes < UINT32_MAX;
	if (f->sizes.count < FRAMES_MAX) /* without memory it is asked for again */
		xsp_u64map_set(&f->sizes, key, found ? (uint32_t)*bytes + 1 : 0);
	return found;
}

/* What the kernel side took: frames by frame pointers, the first where it stood; words from the stack pointer on. */
struct taken {
	const uint64_t *frames, *words;
	size_t frame_count, word_count;
};

/*
 * From where it stood outwards by the unwind tables of the files, as far as these tell it by the stack pointer alone
 * and the words reach; what frame pointers say follows, and is left out where a frame of the table lies around it.
 */
static size_t make_frames(struct xsp_frames *f, const struct xsp_event *e, const struct taken *t,
			  uint64_t *out, size_t room)
{
	const uint64_t base = e->sp + XSP_RETURN_SLOT;
	uint64_t at = e->sp, look = XSP_FRAME_ADDRESS(t->frames[0]), bytes;
	uint64_t next_at = e->sp; /* where the return address of frame `next` stands */
	size_t n = 0, next = 0;

	out[n++] = t->frames[next++];
	if (next < t->frame_count)
		next_at += XSP_FRAME_WORDS(t->frames[next]) * 8;
	while (XSP_RETURN_SLOT != 0 && n < room && frame_size(f, e->tgid, look, &bytes)) {
		const uint64_t slot = at + XSP_RETURN_SLOT + bytes;
		const uint64_t word = (slot - base) / 8;
		if (slot % 8 != base % 8 || word >= t->word_count || bytes / 8 > 0xfffe ||
		    t->words[word] - 1 >= (1ULL << XSP_FRAME_SHIFT) - 1)
			break;
		out[n++] = t->words[word] | (slot - at) / 8 << XSP_FRAME_SHIFT;
		at = slot;
		look = t->words[word] - 1; /* the call */
		for (; next < t->frame_count && next_at <= at; next++)
			if (next + 1 < t->frame_count)
				next_at += XSP_FRAME_WORDS(t->frames[next + 1]) * 8;
	}
	for (; next < t->frame_count && n < room; next++) {
		const uint64_t words = (next_at - at) / 8;
		if (words > 0xffff)
			break;
		out[n++] = XSP_FRAME_ADDRESS(t->frames[next]) | words << XSP_FRAME_SHIFT;
		at = next_at;
		if (next + 1 < t->frame_count)
			next_at += XSP_FRAME_WORDS(t->frames[next + 1]) * 8;
	}
	return n;
}

const struct xsp_event *xsp_frames_of_wait(struct xsp_frames *f, const struct xsp_event *e)
{
	struct taken t = {.frames = NULL};
	uint8_t *out = (uint8_t *)f->made.sections;
	size_t used = 0;

	if (e->kind != XSP_EVENT_WAIT || !(e->flags & XSP_EVENT_SECTIONS) ||
	    e->size > sizeof(f->made) / 2)
		return e;
	memcpy(&f->made.wait, e, sizeof(f->made.wait));
	for (size_t at = sizeof(f->made.wait); at + sizeof(struct xsp_section) <= e->size;) {
		const struct xsp_section *s = (const void *)((const uint8_t *)e + at);
		if (s->size < sizeof(*s) || s->size % 8 != 0 || s->size > e->size - at)
			break;
		at += s->size;
		const size_t count = (s->size - sizeof(*s)) / 8;
		if (s->type == XSP_SECTION_STACK)
			t.frames = (const void *)(s + 1), t.frame_count = count;
		else if (s->type == XSP_SECTION_STACK_WORDS)
			t.words = (const void *)(s + 1), t.word_count = count;
		else
			memcpy(out + used, s, s->size), used += s->size;
	}
	if (t.frame_count > 0) {
		struct xsp_section *s = (void *)(out + used);
		const size_t n = make_frames(f, e, &t, (uint64_t *)(s + 1), XSP_STACK_MAX);
		*s = (struct xsp_section){.type = XSP_SECTION_STACK,
					  .size = (uint16_t)(sizeof(*s) + 8 * n)};
		used += s->size;
	}
	f->made.wait.head.size = (uint16_t)(sizeof(f->made.wait) + used);
	return &f->made.wait.head;
}

/* ---- names ---- */

static size_t fixed_part(const struct xsp_event *e)
{
	switch (e->kind) {
	case XSP_EVENT_ENTRY:
	case XSP_EVENT_POINT:
	case XSP_EVENT_BEGIN:
		return sizeof(struct xsp_event_range);
	case XSP_EVENT_SAMPLE:
		return sizeof(struct xsp_event_sample);
	case XSP_EVENT_WAIT:
		return sizeof(struct xsp_event_wait);
	default:
		return sizeof(*e);
	}
}

/* Is a stack's frame, its `index`-th, no return address? */
static bool is_standing(const struct xsp_event *e, uint64_t frame, size_t index)
{
	if (e->kind == XSP_EVENT_WAIT)
		return index == 0;
	return XSP_RETURN_SLOT != 0 && e->kind == XSP_EVENT_SAMPLE &&
	       (frame & XSP_FRAME_INTERRUPTED);
}

int xsp_frames_see(struct xsp_frames *f, const struct xsp_event *e)
{
	size_t at = fixed_part(e);
	const uint8_t *data = (const uint8_t *)e;
	int rc = 0;

	if (!(e->flags & XSP_EVENT_SECTIONS))
		return 0;
	if (e->kind == XSP_EVENT_SAMPLE && e->size >= at)
		rc = see(f, XSP_NAME_OF_CODE, e->tgid,
			 ((const struct xsp_event_sample *)e)->address, false);
	while (rc == 0 && e->size >= at + sizeof(struct xsp_section)) {
		const struct xsp_section *s = (const void *)(data + at);
		if (s->size < sizeof(*s) || s->size % 8 != 0 || s->size > e->size - at)
			break;
		const uint64_t *frame = (const void *)(s + 1);
		size_t n = s->type == XSP_SECTION_STACK ? (s->size - sizeof(*s)) / 8 : 0;
		for (size_t i = 0; i < n && rc == 0; i++)
			rc = see(f, XSP_NAME_OF_RETURN, e->tgid, XSP_FRAME_ADDRESS(frame[i]),
				 is_standing(e, frame[i], i));
		at += s->size;
	}
	return rc;
}

static int resolve(struct xsp_frames *f, const struct pending *p, char *text, size_t size)
{
	if (p->what == XSP_NAME_OF_CODE)
		return xsp_resolve_instruction(f->resolver, (pid_t)p->pid, p->address, text, size);
	if (p->standing)
		return xsp_resolve_standing(f->resolver, (pid_t)p->pid,
					    p->address & ~XSP_FRAME_INTERRUPTED, text, size);
	return xsp_resolve_return(f->resolver, (pid_t)p->pid, p->address, text, size);
}

int xsp_frames_resolve(struct xsp_frames *f, uint64_t budget_ns)
{
	uint64_t end = xsp_now_ns() + budget_ns;
	char text[1024];
	int rc = 0;

	while (rc == 0 && f->next < f->count) {
		const struct pending *p = &f->pending[f->next++];
		rc = resolve(f, p, text, sizeof(text));
		if (rc == 0)
			rc = xsp_capture_put_name(
				f->writer, xsp_address_name_hash(p->what, p->pid, p->address),
				text);
		if (budget_ns != 0 && xsp_now_ns() > end)
			break;
	}
	if (f->next == f->count)
		f->next = f->count = 0;
	return rc;
}
