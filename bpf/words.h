/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * words.h - the sections WORDS (operands at entry), RESULT (the return register at exit) and
 * WRITTEN (what the call wrote where an operand pointed).
 */
#ifndef XSP_BPF_WORDS_H
#define XSP_BPF_WORDS_H

#include "operand.h"

/* Bytes reserved for an event with sections; 0: no probe has any. Set before loading. */
__weak const volatile __u32 xsp_detail_bytes = 0;

/* The reservation has at least XSP_DETAIL_LEAST bytes; sections that need more check
 * xsp_detail_bytes. */
#define XSP_WORDS_BYTES (sizeof(struct xsp_section) + XSP_WORDS_MAX * 8)

/* By probe id; resized before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xsp_detail_spec);
} xsp_details __weak SEC(".maps");

/* Pointers kept from entry to exit, by thread and probe. The recorder deletes those of threads that
 * ended in a call. A call for which there is no room is counted. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u64);
	__type(value, __u64);
} xsp_pointers __weak SEC(".maps");

static __always_inline __u64 xsp_pointer_key(__u32 probe)
{
	return XSP_POINTER_KEY(bpf_get_current_pid_tgid(), probe);
}

/* The head is written last, so that few values live across the loop. */
static __always_inline void xsp_put_section_head(char *e, __u32 at, __u16 type, __u16 size,
						 __u32 value)
{
	struct xsp_section *s = (struct xsp_section *)(e + at);

	s->type = type;
	s->size = size;
	s->value = value;
}

/* Returns `at`, but hides from the verifier how it came about. Else the verifier would walk through
 * all that follows once for each length of what came before. The event's size is put last. */
static __always_inline __u32 xsp_forget(char *e, __u32 at)
{
	volatile __u16 *size = &((struct xsp_event *)e)->size;

	*size = at;
	return *size;
}

/* One word. If it cannot be read, it is 0 and marked in the section's head. The mark is in memory
 * and set without a branch: one path for the verifier, not one for each word. */
static __always_inline void put_word(struct pt_regs *ctx, const struct xsp_operand *o, __u64 *word,
				     __u32 *unread, __u32 bit)
{
	long failed;

	*word = xsp_operand_base(ctx, o);
	if (!o->deref)
		return;
	failed = bpf_probe_read_user(word, sizeof(*word), (void *)(*word + o->offset));
	*unread |= (__u32)((__u64)failed >> 63) << bit;
}

static __noinline __attribute__((unused)) void
xsp_put_word(struct pt_regs *ctx, const struct xsp_operand *o, __u64 *word, __u32 *unread)
{
	put_word(ctx, o, word, unread, 0);
}

struct words_way {
	struct pt_regs *ctx;
	const struct xsp_detail_spec *spec;
	struct xsp_section *section;
};

static __noinline long put_next_word(__u32 index, void *at)
{
	const struct words_way *way = at;

	if (index >= XSP_WORDS_MAX)
		return 1;
	put_word(way->ctx, &way->spec->word[index], (__u64 *)(way->section + 1) + index,
		 &way->section->value, index);
	return 0;
}

static __noinline __u32 xsp_put_words(struct pt_regs *ctx, const struct xsp_detail_spec *spec,
				      char *e, __u32 at)
{
	__u32 words = spec->words;

	at = xsp_forget(e, at);
	if (at > XSP_DETAIL_LEAST - XSP_WORDS_BYTES || words > XSP_WORDS_MAX)
		return at;
	struct words_way way = {
		.ctx = ctx, .spec = spec, .section = (struct xsp_section *)(e + at)};
	xsp_put_section_head(e, at, XSP_SECTION_WORDS, sizeof(struct xsp_section) + words * 8, 0);
	XSP_LOOP(words, XSP_WORDS_MAX, put_next_word, &way);
	return xsp_forget(e, at + sizeof(struct xsp_section) + words * 8);
}

/* `spec->written` is not 0. */
static __noinline void xsp_keep_pointer(struct pt_regs *ctx, const struct xsp_detail_spec *spec,
					__u32 probe)
{
	__u64 key = xsp_pointer_key(probe), pointer;
	__u32 i = spec->written - 1;

	if (i >= XSP_WORDS_MAX)
		return;
	pointer = xsp_operand(ctx, &spec->word[i]);
	if (bpf_map_update_elem(&xsp_pointers, &key, &pointer, BPF_ANY))
		xsp_count(XSP_COUNT_UNTRACKED);
}

static __noinline __u32 xsp_put_written(char *e, __u32 at, __u32 probe)
{
	__u64 key = xsp_pointer_key(probe), *pointer = bpf_map_lookup_elem(&xsp_pointers, &key);
	__u32 failed;

	if (!pointer || at > XSP_DETAIL_LEAST - sizeof(struct xsp_section) - 8)
		return at;
	failed = bpf_probe_read_user(e + at + sizeof(struct xsp_section), 8, (void *)*pointer) != 0;
	xsp_put_section_head(e, at, XSP_SECTION_WRITTEN, sizeof(struct xsp_section) + 8, failed);
	bpf_map_delete_elem(&xsp_pointers, &key);
	return at + sizeof(struct xsp_section) + 8;
}

/* A byte, the first operand: callers do not clear the rest of its register. */
static __noinline __u32 xsp_put_scope(struct pt_regs *ctx, const struct xsp_detail_spec *spec,
				      char *e, __u32 at)
{
	if (at > XSP_DETAIL_LEAST - sizeof(struct xsp_section))
		return at;
	xsp_put_section_head(e, at, XSP_SECTION_SCOPE, sizeof(struct xsp_section),
			     (__u8)xsp_operand(ctx, &spec->word[0]));
	return at + sizeof(struct xsp_section);
}

static __always_inline __u32 xsp_put_result(struct pt_regs *ctx, char *e, __u32 at)
{
	if (at > XSP_DETAIL_LEAST - sizeof(struct xsp_section) - 8)
		return at;
	*(__u64 *)(e + at + sizeof(struct xsp_section)) = xsp_result(ctx);
	xsp_put_section_head(e, at, XSP_SECTION_RESULT, sizeof(struct xsp_section) + 8, 0);
	return at + sizeof(struct xsp_section) + 8;
}

#endif
