/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * args.c - what an operator is called with: which optional arguments have values, and sizes, strides and types of tensors, as
 * bpf/args.h reads it for probes. Equal ones are kept once: the same sizes come again and again.
 *
 * Runs in a thunk (calls.h), with general registers only. How to read was worked out for this library, but its tensors may be laid
 * out otherwise: nothing is read that is not known to be readable.
 */
#ifdef __x86_64__
#include "agent/calls.h"
#include "agent/kept/known.h"
#include "agent/put.h"

enum {
	WORDS = 500, /* of a section; a probe's has no more room either */
	TENSOR_WORDS = 1 + 4 + 2 * XSP_ARGS_DIMS_MAX,
	IMPL_WORDS = 32,
	INLINE_DIMS = 5,
};

struct section {
	const struct xsp_tensor_layout *layout;
	uint32_t used; /* words */
	uint64_t mix; /* of those that differ from call to call */
	uint64_t word[WORDS];
};

/* ---- reading ---- */

static inline bool may_read_all(uint64_t at, uint64_t bytes)
{
	const uint64_t last = at + bytes - 1;

	return may_read(at) && (LIKELY(at / READABLE_PAGE == last / READABLE_PAGE) ||
				(last > at && may_read(last)));
}

static inline uint64_t load(uint64_t at)
{
	return *(const uint64_t *)at;
}

static inline bool read_words(uint64_t at, uint64_t *words, uint32_t count)
{
	if (!may_read_all(at, count * sizeof(*words)))
		return false;
	for (uint32_t i = 0; i < count; i++)
		words[i] = load(at + i * sizeof(*words));
	return true;
}

/* ---- writing ---- */

static inline void add(struct section *s, uint64_t word)
{
	s->word[s->used++] = word;
	s->mix = known_mix(s->mix, word);
}

/* The head of a record of so many words. */
static inline void add_head(struct section *s, uint32_t argument, uint32_t kind, uint32_t status,
			    uint32_t words, uint64_t count)
{
	add(s, argument | kind << 8 | status << 16 | words << 24 | count << 32);
}

static inline void add_words(struct section *s, uint64_t from, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		add(s, load(from + i * sizeof(uint64_t)));
}

/* Of {u16 dtype, optional<Device>}; flags of the tensor follow, which nobody shows. */
#define TYPE_BYTES 0xffffffffffULL

static void add_tensor(struct section *s, uint64_t impl, uint32_t argument)
{
	const struct xsp_tensor_layout *l = s->layout;
	const uint64_t *w = (const uint64_t *)impl;

	if (s->used > WORDS - TENSOR_WORDS)
		return;
	if (!may_read_all(impl, (l->words % IMPL_WORDS) * sizeof(*w))) {
		add_head(s, argument, XSP_ARGS_TENSOR, impl ? XSP_ARGS_UNREADABLE : XSP_ARGS_ABSENT,
			 1, 0);
		return;
	}
	const uint64_t all = w[l->sizes % IMPL_WORDS], dims = all > XSP_ARGS_DIMS_MAX ? 0 : all;
	uint64_t sizes = (uint64_t)&w[l->sizes % IMPL_WORDS + 1], read = dims;
	uint64_t strides = sizes + INLINE_DIMS * sizeof(*w);
	if (dims > INLINE_DIMS) { /* both are elsewhere, one after the other */
		sizes = load(sizes);
		strides = sizes + dims * sizeof(*w);
		read = may_read_all(sizes, 2 * dims * sizeof(*w)) ? dims : 0;
	}
	add_head(s, argument, XSP_ARGS_TENSOR, read == all ? XSP_ARGS_READ : XSP_ARGS_CUT,
		 (uint32_t)(1 + 4 + 2 * read), 0);
	add(s, w[0]);
	add(s, all);
	add(s, w[l->numel % IMPL_WORDS]);
	add(s, w[l->type % IMPL_WORDS] & TYPE_BYTES);
	add_words(s, sizes, read);
	add_words(s, strides, read);
}

/* ---- forms ---- */

/* A Tensor; flag: the address of its optional's flag, 0: it has none. */
static void add_tensor_at(struct section *s, uint64_t at, uint64_t flag, uint32_t argument)
{
	uint64_t impl;

	if (flag && may_read(flag) && !*(const uint8_t *)flag)
		add_head(s, argument, XSP_ARGS_TENSOR, XSP_ARGS_ABSENT, 1, 0);
	else if ((flag && !may_read(flag)) || !read_words(at, &impl, 1))
		add_head(s, argument, XSP_ARGS_TENSOR, XSP_ARGS_UNREADABLE, 1, 0);
	else
		add_tensor(s, impl, argument);
}

/* An optional: whether it has a value. */
static void add_flag(struct section *s, const struct xsp_args_item *item, uint64_t at)
{
	const uint32_t words = item->element / (uint32_t)sizeof(uint64_t);
	const bool there = may_read_all(at, item->element);

	if (s->used + 1 + words > WORDS)
		return;
	add_head(s, item->argument, XSP_ARGS_MEMORY, there ? XSP_ARGS_READ : XSP_ARGS_UNREADABLE,
		 there ? 1 + words : 1, 1);
	for (uint32_t i = 0; there && i < words; i++)
		add(s, i == item->flag / sizeof(uint64_t)
			       ? load(at + i * sizeof(uint64_t)) &
					 (uint64_t)0xff << item->flag % sizeof(uint64_t) * 8
			       : 0);
}

/* `behind`: an element is the address of a Tensor. */
static void add_list(struct section *s, uint64_t first, uint64_t length, uint32_t argument,
		     bool behind)
{
	const uint64_t count = length > XSP_ARGS_LIST_MAX ? XSP_ARGS_LIST_MAX : length;

	if (s->used == WORDS)
		return;
	add_head(s, argument, XSP_ARGS_TENSORS, count < length ? XSP_ARGS_CUT : XSP_ARGS_READ, 1,
		 (uint32_t)length);
	for (uint64_t i = 0; i < count; i++) {
		uint64_t impl;
		if (!read_words(first + i * sizeof(impl), &impl, 1) ||
		    (behind && !read_words(impl, &impl, 1)))
			return;
		add_tensor(s, impl, argument);
	}
}

/* A list object: std::vector<Tensor>, or IListRef<Tensor>, whose tag says what it refers to. */
static void add_list_behind(struct section *s, const struct xsp_args_item *item, uint64_t at)
{
	enum { UNBOXED = 0, MATERIALIZED = 2 };
	uint64_t w[3];
	uint32_t status = read_words(at, w, 3) ? XSP_ARGS_READ : XSP_ARGS_UNREADABLE;
	bool behind = false;

	if (status == XSP_ARGS_READ && item->kind == XSP_ARGS_TENSORS_BEHIND) {
		if ((uint32_t)w[2] == UNBOXED) {
			add_list(s, w[0], w[1], item->argument, false);
			return;
		}
		behind = (uint32_t)w[2] == MATERIALIZED && read_words(w[0], w, 3);
		status = behind ? XSP_ARGS_READ : XSP_ARGS_UNKNOWN;
	}
	if (status == XSP_ARGS_READ)
		add_list(s, w[0], (w[1] - w[0]) / sizeof(uint64_t), item->argument, behind);
	else if (s->used < WORDS)
		add_head(s, item->argument, item->kind, status, 1, 0);
}

/* ---- the section ---- */

/* The registers, then the stack above the return address. */
static inline uint64_t argument_word(const struct call *call, uint32_t n, uint32_t stack)
{
	if (n < XSP_ARGS_REGISTERS)
		return call->registers[n];
	/* the frame's end, the saved rbp and the return address */
	return n - XSP_ARGS_REGISTERS < stack
		       ? ((const uint64_t *)(call + 1))[2 + n - XSP_ARGS_REGISTERS]
		       : 0;
}

static void add_item(struct section *s, const struct call *call, const struct xsp_args_item *item,
		     uint32_t stack)
{
	const uint64_t first = argument_word(call, item->slot, stack);

	switch (item->kind) {
	case XSP_ARGS_TENSOR:
		add_tensor_at(s, first + item->offset, 0, item->argument);
		break;
	case XSP_ARGS_OPTIONAL_TENSOR:
		add_tensor_at(s, first + item->offset, first + item->flag, item->argument);
		break;
	case XSP_ARGS_MEMORY:
		add_flag(s, item, first);
		break;
	case XSP_ARGS_TENSORS:
		add_list(s, first, argument_word(call, item->second, stack), item->argument, false);
		break;
	case XSP_ARGS_TENSORS_BEHIND:
	case XSP_ARGS_VECTOR:
		add_list_behind(s, item, first);
		break;
	default: /* none that the recorder asks the agent for */
		break;
	}
}

static void build(struct section *s, const struct call *call, const struct xsp_ring_args *how)
{
	const uint32_t stack = how->spec.stack % (XSP_ARGS_WORDS - XSP_ARGS_REGISTERS + 1),
		       words = XSP_ARGS_REGISTERS + stack;

	s->layout = &how->spec.layout;
	s->mix = call->function;
	s->used = 1 + words;
	for (uint32_t i = 1; i < s->used; i++)
		s->word[i] = 0;
	for (uint32_t left = how->kept_words; left != 0; left &= left - 1) {
		const uint32_t n = (uint32_t)__builtin_ctz(left), k = how->kept_how[n];
		const uint64_t word = argument_word(call, n, stack);
		if (n >= words)
			break;
		s->word[1 + n] =
			k == XSP_ARGS_KEEP_TRUTH ? word != 0 : word & (uint64_t)0xff << k % 8 * 8;
		s->mix = s->mix * 31 + s->word[1 + n];
	}
	for (uint32_t i = 0; i < how->spec.items && i < XSP_ARGS_ITEMS; i++)
		add_item(s, call, &how->spec.item[i], stack);
	s->word[0] = XSP_SECTION_ARGS | s->used * sizeof(uint64_t) << 16 | (uint64_t)words << 32;
}

struct xsp_ring_args *args_wanted(const struct call *call)
{
	struct xsp_rings *file = rings_file();
	struct xsp_ring_args *how = &file->argument[call->function];
	const uint32_t stamp = __atomic_load_n(&how->stamp, __ATOMIC_ACQUIRE);

	return stamp != 0 && stamp == file->args ? how : NULL;
}

uint64_t args_place(const struct call *call, struct xsp_ring_args *how)
{
	struct section s;
	uint64_t known = how->last;

	for (uint32_t line = 0; line < 4; line++)
		__builtin_prefetch(known_text(known) + line * 8);
	build(&s, call, how);
	struct kept_words w = {.word = s.word, .used = s.used, .mix = s.mix};
	if (known_is(known, &w))
		return known_place(known);
	known = known_find(&w);
	if (known != 0)
		__atomic_store_n(&how->last, known, __ATOMIC_RELAXED);
	return w.place;
}
#endif
