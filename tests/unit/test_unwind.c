/* SPDX-License-Identifier: BSD-2-Clause */
/* Callers of a sample from a copy of its stack, where no file says how to unwind: by frame
 * pointers, and only ever upwards. */
#include <criterion/criterion.h>
#include <string.h>

#include "record/names/unwind.h"
#include "xsptrace/programs.h"

#define SP 0x7ff000000000ULL
#define CODE 0x400000ULL

struct built {
	struct {
		struct xsp_event_sample e;
		uint64_t words[XSP_SAMPLE_BYTES / 8];
	} u;
	uint64_t *at;
	struct xsp_stack_copy *registers;
	uint64_t *stack; /* the copy's words */
	struct xsp_section *copy;
};

static struct xsp_section *section(struct built *b, uint16_t type, size_t words)
{
	struct xsp_section *s = (void *)b->at;

	*s = (struct xsp_section){.type = type, .size = (uint16_t)(sizeof(*s) + 8 * words)};
	b->at += 1 + words;
	b->u.e.head.size = (uint16_t)((char *)b->at - (char *)&b->u);
	return s;
}

static void begin(struct built *b)
{
	memset(b, 0, sizeof(*b));
	b->u.e.head = (struct xsp_event){.kind = XSP_EVENT_SAMPLE, .sp = SP, .tgid = 1};
	b->u.e.head.flags = XSP_EVENT_SECTIONS;
	b->u.e.address = CODE;
	b->at = b->u.words;
}

static void copy_of(struct built *b, size_t words, uint64_t frame)
{
	b->copy = section(b, XSP_SECTION_COPY, sizeof(struct xsp_stack_copy) / 8 + words);
	b->registers = (void *)(b->copy + 1);
	b->registers->rbp = frame;
	b->stack = (void *)(b->registers + 1);
}

/* {the caller's frame pointer, return address} at that word of the stack */
static void frame_at(struct built *b, size_t word, uint64_t next, uint64_t address)
{
	b->stack[word] = next;
	b->stack[word + 1] = address;
}

static size_t callers_of(const struct built *b, uint64_t addresses[XSP_STACK_MAX],
			 uint64_t places[XSP_STACK_MAX])
{
	struct xsp_resolver *r;
	struct xsp_unwinder *u;
	uint64_t at = b->u.e.head.sp;

	cr_assert_eq(xsp_resolver_new(NULL, &r), 0);
	cr_assert_eq(xsp_unwinder_new(r, NULL, NULL, &u), 0);
	const struct xsp_event *e = xsp_unwind(u, &b->u.e.head);
	cr_assert_neq(e, &b->u.e.head);
	const struct xsp_section *s = (const void *)((const struct xsp_event_sample *)e + 1);
	if (s->type == XSP_SECTION_PYTHON)
		s += s->size / sizeof(*s);
	cr_assert_eq(s->type, XSP_SECTION_STACK);
	const size_t n = s->size / 8 - 1;
	cr_assert_leq(n, XSP_STACK_MAX);
	cr_assert_eq((const char *)s + s->size - (const char *)e, e->size);
	for (size_t i = 0; i < n; i++) {
		const uint64_t frame = ((const uint64_t *)(s + 1))[i];
		at += XSP_FRAME_WORDS(frame) * 8;
		addresses[i] = XSP_FRAME_ADDRESS(frame);
		places[i] = at;
	}
	xsp_unwinder_free(u);
	xsp_resolver_free(r);
	return n;
}

Test(unwind, follows_frame_pointers_and_goes_on_beyond_the_copy)
{
	uint64_t addresses[XSP_STACK_MAX], places[XSP_STACK_MAX];
	struct built b;

	begin(&b);
	section(&b, XSP_SECTION_PYTHON, 1);
	struct xsp_section *found = section(&b, XSP_SECTION_STACK, 3);
	uint64_t *word = (void *)(found + 1);
	word[0] = (CODE + 1) | 4ULL << XSP_FRAME_SHIFT;
	word[1] = (CODE + 2) | 4ULL << XSP_FRAME_SHIFT;
	word[2] = (CODE + 3) | 100ULL << XSP_FRAME_SHIFT;
	copy_of(&b, 16, SP + 16);
	frame_at(&b, 2, SP + 48, CODE + 1);
	frame_at(&b, 6, SP + 800, CODE + 2);
	cr_assert_eq(callers_of(&b, addresses, places), 3);
	for (size_t i = 0; i < 3; i++)
		cr_expect_eq(addresses[i], CODE + 1 + i);
	cr_expect_eq(places[0], SP + 32);
	cr_expect_eq(places[1], SP + 64);
	cr_expect_eq(places[2], SP + 64 + 800, "what the kernel side found");
}

Test(unwind, goes_up_only)
{
	uint64_t addresses[XSP_STACK_MAX], places[XSP_STACK_MAX];
	static const uint64_t wild[] = {SP + 16, SP + 15, SP, 0, ~7ULL, SP - 8, SP + 16 * 8 - 8};
	struct built b;

	for (size_t i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
		begin(&b);
		copy_of(&b, 16, SP + 16);
		frame_at(&b, 2, wild[i], CODE + 1);
		frame_at(&b, 0, SP + 16, CODE + 9);
		cr_expect_eq(callers_of(&b, addresses, places), 1, "%zu", i);
		begin(&b);
		copy_of(&b, 16, wild[i]);
		cr_expect_eq(callers_of(&b, addresses, places), 0, "%zu", i);
	}
}

Test(unwind, ends_after_as_many_as_there_is_room_for)
{
	uint64_t addresses[XSP_STACK_MAX], places[XSP_STACK_MAX];
	struct built b;

	begin(&b);
	copy_of(&b, 1024, SP);
	for (size_t i = 0; i + 2 < 1024; i += 2)
		frame_at(&b, i, SP + 8 * (i + 2), CODE + i);
	cr_expect_eq(callers_of(&b, addresses, places), XSP_STACK_MAX);
}

Test(unwind, gives_back_what_is_no_copy)
{
	struct xsp_resolver *r;
	struct xsp_unwinder *u;
	struct built b;

	cr_assert_eq(xsp_resolver_new(NULL, &r), 0);
	cr_assert_eq(xsp_unwinder_new(r, NULL, NULL, &u), 0);
	for (int i = 0; i < 4; i++) {
		begin(&b);
		copy_of(&b, 16, SP);
		if (i == 0)
			b.copy->size = 24; /* no room for registers */
		else if (i == 1)
			b.copy->size = 4;
		else if (i == 2)
			b.copy->size += 8; /* beyond the event */
		else
			b.u.e.head.size = sizeof(struct xsp_event);
		cr_expect_eq(xsp_unwind(u, &b.u.e.head), &b.u.e.head, "%d", i);
	}
	xsp_unwinder_free(u);
	xsp_resolver_free(r);
}
