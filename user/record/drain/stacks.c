/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/drain/stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A stack that has been put. */
struct xsp_ring_stack {
	uint64_t id;
	uint32_t value, generation;
};

struct stack_event {
	struct xsp_event_python python;
	struct xsp_python_frame frames[XSP_PYTHON_MAX];
};

void xsp_ring_stacks_free(struct xsp_ring_stacks *s)
{
	free(s->at);
	s->at = NULL;
}

/* The frames of the words of a stack. False: it is none. */
static bool read_frames(const struct xsp_section *section, struct stack_event *e)
{
	const uint64_t *word = (const void *)(section + 1);
	size_t left = (section->size - sizeof(*section)) / sizeof(*word);
	const uint32_t count = XSP_PYTHON_COUNT(section->value);

	if (count > XSP_PYTHON_MAX ||
	    (section->value & ~(0xffffU | XSP_PYTHON_CUT | XSP_PYTHON_TORN)) != 0)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		struct xsp_python_frame *f = &e->frames[i];
		const size_t words = left >= 2 && (word[0] & XSP_RING_SELF) ? 4 : 2;
		if (left < words)
			return false;
		*f = (struct xsp_python_frame){.code = word[0] & ~XSP_RING_SELF,
					       .instruction = word[1]};
		if (words == 4)
			f->self = word[2], f->type = word[3];
		word += words;
		left -= words;
	}
	e->python.count = count;
	e->python.flags = section->value & ~0xffffU;
	return left == 0;
}

/* Makes the stack known, and puts it. 0: it is lost. */
static int put_new(struct xsp_ring_stacks *s, const struct xsp_node_names *keys,
		   const struct xsp_ring_memory *m, uint64_t place, const struct xsp_event *of,
		   int (*put)(void *ctx, const struct xsp_event *e), void *ctx)
{
	struct {
		struct xsp_section head;
		uint8_t rest[XSP_RING_PYTHON_MAX - sizeof(struct xsp_section)];
	} section;
	struct stack_event e;

	if (!xsp_ring_memory_section(m, place, XSP_SECTION_PYTHON, &section.head,
				     sizeof(section)) ||
	    !read_frames(&section.head, &e))
		return 0;
	const uint64_t own[2] = {(uint64_t)of->tgid << 32 | s->generation, section.head.value};
	const uint32_t frames = e.python.count * (uint32_t)sizeof(e.frames[0]);
	e.python.id = xsp_node_names_hash(keys, (const char *)e.frames, frames) ^
		      xsp_node_names_hash(keys, (const char *)own, sizeof(own));
	s->at[place] = (struct xsp_ring_stack){
		.id = e.python.id, .value = section.head.value, .generation = s->generation};
	e.python.head = *of;
	e.python.head.kind = XSP_EVENT_PYTHON;
	e.python.head.flags = 0;
	e.python.head.size = (uint16_t)(sizeof(e.python) + frames);
	e.python.generation = s->generation;
	e.python.reserved = 0;
	return e.python.count > 0 ? put(ctx, &e.python.head) : 0;
}

int xsp_put_stack(struct xsp_ring_stacks *s, const struct xsp_node_names *keys,
		  const struct xsp_ring_memory *m, uint64_t place, const struct xsp_event *of,
		  int (*put)(void *ctx, const struct xsp_event *e), void *ctx,
		  struct xsp_stack_section *out)
{
	int rc = 0;

	*out = (struct xsp_stack_section){0};
	if (s->at == NULL)
		s->at = calloc(XSP_RING_NAMES, sizeof(*s->at));
	if (s->at == NULL)
		return -ENOMEM;
	const bool there = place < XSP_RING_NAMES;
	if (there && (s->at[place].id == 0 || s->at[place].generation != s->generation)) {
		s->at[place].id = 0;
		rc = put_new(s, keys, m, place, of, put, ctx);
	}
	if (!there || s->at[place].id == 0) {
		s->lost++;
		return rc;
	}
	s->torn += (s->at[place].value & XSP_PYTHON_TORN) != 0;
	out->head = (struct xsp_section){
		.type = XSP_SECTION_PYTHON, .size = sizeof(*out), .value = s->at[place].value};
	out->id = s->at[place].id;
	return rc;
}

int xsp_put_with_stack(const struct xsp_stack_section *section, const struct xsp_event *e,
		       int (*put)(void *ctx, const struct xsp_event *e), void *ctx)
{
	struct {
		struct xsp_event_range range;
		uint8_t rest[XSP_RING_ARGS_MAX + sizeof(*section)];
	} all;
	size_t size = e->size;

	memset(&all.range, 0, sizeof(all.range));
	memcpy(&all, e, size);
	if (size < sizeof(all.range)) /* with sections an entry is as long */
		size = sizeof(all.range);
	memcpy((uint8_t *)&all + size, section, sizeof(*section));
	all.range.head.flags |= XSP_EVENT_SECTIONS;
	all.range.head.size = (uint16_t)(size + sizeof(*section));
	return put(ctx, &all.range.head);
}
