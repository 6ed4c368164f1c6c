/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * args.h - the sections ARGS and OUTPUTS (xsptrace/args.h): bounded copies, directed by a table
 * that user space made for the probe. Everything is read straight into the reservation, and a
 * tensor is then compacted in place. Each form has a function of its own, which keeps the stack
 * small (slots.h).
 *
 * Meanwhile the event's head holds how much of the event is used (xsp_event.size), and each form
 * loads it again. To the verifier a number from memory is one state. A number that the code
 * computed would be a path of its own for each form that may have come before.
 */
#ifndef XSP_BPF_ARGS_H
#define XSP_BPF_ARGS_H

#include "common.h"

/* The reservation is at least this large where a probe wants these sections. */
#if !defined(XSP_ARGS_BYTES) /* detail_large.bpf.c */
#define XSP_ARGS_BYTES XSP_ARGS_SMALL
#define XSP_ARGS_STEPS 20 /* items and tensors of lists together */
#endif
#define XSP_ARGS_ROOM (XSP_ARGS_BYTES - sizeof(struct xsp_args_work))
#define XSP_ARGS_IMPL_WORDS 32U /* of a TensorImpl, at most; a power of two */
#define XSP_ARGS_TENSOR_ROOM 320U /* head, struct xsp_args_tensor, 2 * 16 dimensions */
#define XSP_ARGS_ITEM_ROOM (sizeof(struct xsp_args_record) + XSP_ARGS_BYTES_MAX + 24)
#define XSP_ARGS_START_ROOM (sizeof(struct xsp_section) + XSP_ARGS_WORDS * 8)

/* The state of the work: at the end of the reservation, for the same reason. */
struct xsp_args_work {
	__u64 impl; /* the next tensor */
	/* of a list: its next element, the number left, and whether elements are addresses */
	__u64 first;
	__u32 left, references;
	__u32 item, end; /* the next item, and the end of the items */
	__u32 argument, in_list;
};

/* What a tensor of five dimensions needs while it is compacted, beyond its record. */
#define XSP_ARGS_MOVING                                                                            \
	(XSP_ARGS_TENSOR_ROOM - sizeof(struct xsp_args_record) - sizeof(struct xsp_args_tensor) -  \
	 5 * 16)
_Static_assert(sizeof(struct xsp_args_work) + XSP_ARGS_MOVING <= XSP_ARGS_RESERVED,
	       "user space leaves them room");

static __always_inline volatile struct xsp_args_work *xsp_args_work(char *e)
{
	return (volatile struct xsp_args_work *)(e + XSP_ARGS_ROOM);
}

/* By probe id; resized before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xsp_args_spec);
} xsp_args __weak SEC(".maps");

static __always_inline __u32 xsp_args_used(const char *e)
{
	return ((const volatile struct xsp_event *)e)->size;
}

static __always_inline void xsp_args_use(char *e, __u32 end)
{
	((volatile struct xsp_event *)e)->size = end;
}

/* Writes the head of a record of `bytes` at `at`, which ends the event. `status`: enum
 * xsp_args_status */
static __always_inline void xsp_args_head(char *e, __u32 at, __u32 argument, __u32 kind,
					  __u32 status, __u32 bytes, __u32 count)
{
	struct xsp_args_record *r = (struct xsp_args_record *)(e + at);

	r->argument = argument;
	r->kind = kind;
	r->status = status;
	r->size = bytes / 8;
	r->count = count;
	xsp_args_use(e, at + bytes);
}

/* Writes a record without data: why there is none, or the length of a list. */
static __noinline void xsp_args_put_head(char *e, __u32 argument, __u32 kind, __u32 status,
					 __u32 count)
{
	__u32 at = xsp_args_used(e);

	if (at > XSP_ARGS_ROOM - sizeof(struct xsp_args_record))
		return;
	xsp_args_head(e, at, argument, kind, status, sizeof(struct xsp_args_record), count);
}

/* ---- elements of tensors ---- */

/* Bytes of an element, by dtype (c10/core/ScalarType.h); 0: its elements are not shown. */
static const __u8 xsp_args_itemsize[64] = {1, 1, 2, 4, 8, 2, 4, 8, 0, 8, 16, 1, 0, 0, 0, 2};

/* The address of the first element, with the bytes of an element in its top byte. 0: it is not in
 * host memory, or unknown. `w`: the TensorImpl as the target has it. */
static __noinline __u64 xsp_args_data(const struct xsp_args_spec *s, const __u64 *w)
{
	__u64 type = w[s->layout.type & (XSP_ARGS_IMPL_WORDS - 1)];
	__u64 offset = w[s->layout.storage_offset & (XSP_ARGS_IMPL_WORDS - 1)];
	__u64 storage = w[s->layout.storage & (XSP_ARGS_IMPL_WORDS - 1)];
	__u8 device = s->optional_flag_first ? type >> 24 : type >> 16;
	__u64 data = 0, item = xsp_args_itemsize[type & 63];

	if (device != 0 || (type & 0xffff) > 63 || item == 0 || storage == 0)
		return 0;
	if (bpf_probe_read_user(&data, sizeof(data), (void *)(storage + s->layout.data * 8)))
		return 0;
	return data ? ((data + offset * item) & 0xffffffffffffffULL) | item << 56 : 0;
}

static __noinline void xsp_args_put_values(char *e, __u64 data, __u64 numel, __u32 argument)
{
	__u32 size = numel > XSP_ARGS_VALUES_MAX ? XSP_ARGS_VALUES_MAX : numel;
	__u32 at = xsp_args_used(e);

	if (at > XSP_ARGS_ROOM - XSP_ARGS_ITEM_ROOM)
		return;
	size *= data >> 56;
	barrier_var(size);
	if (size > XSP_ARGS_VALUES_MAX)
		size = XSP_ARGS_VALUES_MAX;
	if (bpf_probe_read_user(e + at + sizeof(struct xsp_args_record), size,
				(void *)(data & 0xffffffffffffffULL)))
		return;
	xsp_args_head(e, at, argument, XSP_ARGS_VALUES, XSP_ARGS_READ,
		      (sizeof(struct xsp_args_record) + size + 7) & ~7U, size);
}

/* ---- tensors ---- */

/*
 * Moves sizes and strides after the four words of struct xsp_args_tensor. Returns the number of
 * dimensions moved; 0: there are too many. Branches by their number would be as many paths to the
 * verifier. So it moves too much, and the surplus lies after the record.
 */
static __noinline __u32 xsp_args_move_dims(const struct xsp_args_spec *s, __u64 *w)
{
	__u32 from = s->layout.sizes, dims = w[1] > XSP_ARGS_DIMS_MAX ? 0 : w[1];

	barrier_var(dims);
	if (dims > XSP_ARGS_DIMS_MAX)
		return 0;
	if (dims > 5) /* stored elsewhere: sizes, then strides */
		return bpf_probe_read_user(&w[4], dims * 16,
					   (void *)w[(from + 1) & (XSP_ARGS_IMPL_WORDS - 1)])
			       ? 0
			       : dims;
#pragma unroll
	for (__u32 i = 0; i < 5; i++)
		w[4 + i] = w[(from + 1 + i) & (XSP_ARGS_IMPL_WORDS - 1)];
#pragma unroll
	for (__u32 i = 0; i < 5; i++)
		w[(4 + dims + i) & (XSP_ARGS_IMPL_WORDS - 1)] =
			w[(from + 6 + i) & (XSP_ARGS_IMPL_WORDS - 1)];
	return dims;
}

static __noinline void xsp_args_put_tensor(const struct xsp_args_spec *s, char *e, __u64 impl,
					   __u32 argument)
{
	__u32 size = s->layout.words & (XSP_ARGS_IMPL_WORDS - 1), at = xsp_args_used(e);
	__u64 data = 0;

	if (at > XSP_ARGS_ROOM - XSP_ARGS_TENSOR_ROOM)
		return;
	__u64 *w = (__u64 *)(e + at + sizeof(struct xsp_args_record));
	if (bpf_probe_read_user(w, size * 8, (void *)impl)) {
		xsp_args_head(e, at, argument, XSP_ARGS_TENSOR,
			      impl ? XSP_ARGS_UNREADABLE : XSP_ARGS_ABSENT,
			      sizeof(struct xsp_args_record), 0);
		return;
	}
	if (s->values && !xsp_args_work(e)->in_list) /* a list leaves no room for them */
		data = xsp_args_data(s, w);
	w[1] = w[s->layout.sizes & (XSP_ARGS_IMPL_WORDS - 1)];
	w[2] = w[s->layout.numel & (XSP_ARGS_IMPL_WORDS - 1)];
	w[3] = w[s->layout.type & (XSP_ARGS_IMPL_WORDS - 1)];
	__u32 dims = xsp_args_move_dims(s, w);
	xsp_args_head(e, at, argument, XSP_ARGS_TENSOR, dims == w[1] ? XSP_ARGS_READ : XSP_ARGS_CUT,
		      sizeof(struct xsp_args_record) + sizeof(struct xsp_args_tensor) + dims * 16,
		      0);
	if (data)
		xsp_args_put_values(e, data, w[2], argument);
}

/* ---- the other forms ---- */

/* `what`: argument, bytes of an element, and kind, in the low three bytes. */
static __noinline void xsp_args_put_bytes(char *e, __u64 address, __u64 length, __u32 what)
{
	__u32 size = length > XSP_ARGS_BYTES_MAX ? XSP_ARGS_BYTES_MAX : length;
	__u32 at = xsp_args_used(e), status = XSP_ARGS_READ;

	if (at > XSP_ARGS_ROOM - XSP_ARGS_ITEM_ROOM)
		return;
	size *= (what >> 8) & 63;
	if (size > XSP_ARGS_BYTES_MAX)
		status = XSP_ARGS_CUT;
	/* the compiler may have compared a copy in another register, which tells older verifiers
	 * nothing about this one */
	barrier_var(size);
	if (size > XSP_ARGS_BYTES_MAX)
		size = XSP_ARGS_BYTES_MAX;
	if (bpf_probe_read_user(e + at + sizeof(struct xsp_args_record), size, (void *)address)) {
		status = XSP_ARGS_UNREADABLE;
		size = 0;
	}
	xsp_args_head(e, at, what & 0xff, (what >> 16) & 0xff, status,
		      (size + sizeof(struct xsp_args_record) + 7) & ~7U, length);
}

/* Reads the list object at `address` to where its record will be, and puts the address and the
 * number of its elements there. Returns XSP_ARGS_READ, or why not. */
static __noinline __u32 xsp_args_unwrap(char *e, __u64 address, __u32 kind)
{
	__u32 at = xsp_args_used(e);

	if (at > XSP_ARGS_ROOM - XSP_ARGS_ITEM_ROOM)
		return XSP_ARGS_UNREADABLE;
	__u64 *w = (__u64 *)(e + at + sizeof(struct xsp_args_record));
	if (bpf_probe_read_user(w, 24, (void *)address))
		return XSP_ARGS_UNREADABLE;
	if (kind == XSP_ARGS_ARRAY_BEHIND) {
		if (!(w[0] & 0xff))
			return XSP_ARGS_ABSENT;
		w[0] = w[1];
		w[1] = w[2];
		return XSP_ARGS_READ;
	}
	if (kind == XSP_ARGS_TENSORS_BEHIND) {
		if ((__u32)w[2] == 0) /* IListRefTag::Unboxed: an ArrayRef */
			return XSP_ARGS_READ;
		/* Materialized: a vector of references */
		if ((__u32)w[2] != 2 || bpf_probe_read_user(w, 24, (void *)w[0]))
			return XSP_ARGS_UNKNOWN;
		xsp_args_work(e)->references = 1;
	}
	w[1] = (w[1] - w[0]) / 8;
	return XSP_ARGS_READ;
}

/* ---- all forms ---- */

static __always_inline __u64 xsp_args_word(const char *e, __u32 start, __u32 slot)
{
	return *(const __u64 *)(e + start + sizeof(struct xsp_section) +
				(slot & (XSP_ARGS_WORDS - 1)) * 8);
}

static __always_inline bool xsp_args_is_behind(__u32 kind)
{
	return kind == XSP_ARGS_TENSORS_BEHIND || kind == XSP_ARGS_VECTOR ||
	       kind == XSP_ARGS_ARRAY_BEHIND;
}

/* Takes the Tensor at an address, if the byte at `flag` says that there is one (0: always). True:
 * its impl is next; else it wrote a record. */
static __noinline bool xsp_args_at_tensor(char *e, __u64 tensor, __u64 flag, __u32 argument)
{
	__u32 status = XSP_ARGS_READ;
	__u64 impl = 0;
	__u8 has = 1;

	if (flag && bpf_probe_read_user(&has, 1, (void *)flag))
		status = XSP_ARGS_UNREADABLE;
	else if (!has)
		status = XSP_ARGS_ABSENT;
	else if (bpf_probe_read_user(&impl, 8, (void *)tensor))
		status = XSP_ARGS_UNREADABLE;
	xsp_args_work(e)->impl = impl;
	if (status == XSP_ARGS_READ)
		return true;
	xsp_args_put_head(e, argument, XSP_ARGS_TENSOR, status, 0);
	return false;
}

static __noinline void xsp_args_begin_list(char *e, __u64 first, __u64 length, __u32 argument)
{
	volatile struct xsp_args_work *work = xsp_args_work(e);

	work->in_list = 1;
	work->first = first;
	work->left = length > XSP_ARGS_LIST_MAX ? XSP_ARGS_LIST_MAX : length;
	xsp_args_put_head(e, argument, XSP_ARGS_TENSORS,
			  length > XSP_ARGS_LIST_MAX ? XSP_ARGS_CUT : XSP_ARGS_READ, length);
}

/* Puts an item, or its beginning. True: a tensor is next. */
static __noinline bool xsp_args_put_item(const struct xsp_args_item *item, char *e, __u32 start)
{
	__u32 kind = item->kind, argument = item->argument;

	if (start > XSP_ARGS_ROOM - XSP_ARGS_START_ROOM)
		return false;
	__u64 first = xsp_args_word(e, start, item->slot);
	__u64 second = xsp_args_word(e, start, item->second);
	if (kind == XSP_ARGS_TENSOR || kind == XSP_ARGS_OPTIONAL_TENSOR)
		return xsp_args_at_tensor(e, first + item->offset,
					  kind == XSP_ARGS_TENSOR ? 0 : first + item->flag,
					  argument);
	if (xsp_args_is_behind(kind)) {
		__u32 status = xsp_args_unwrap(e, first, kind);
		__u32 at = xsp_args_used(e);
		if (at > XSP_ARGS_ROOM - XSP_ARGS_ITEM_ROOM)
			return false;
		if (status != XSP_ARGS_READ) {
			xsp_args_put_head(e, argument, kind, status, 0);
			return false;
		}
		first = *(__u64 *)(e + at + sizeof(struct xsp_args_record));
		second = *(__u64 *)(e + at + sizeof(struct xsp_args_record) + 8);
	}
	if (kind == XSP_ARGS_MEMORY || kind == XSP_ARGS_ARRAY || kind == XSP_ARGS_ARRAY_BEHIND)
		xsp_args_put_bytes(e, first, kind == XSP_ARGS_MEMORY ? 1 : second,
				   argument | item->element << 8 | kind << 16);
	else
		xsp_args_begin_list(e, first, second, argument);
	return false;
}

/* The next tensor of the current list. False: it cannot be read, and the list ends. */
static __noinline bool xsp_args_next_of_list(char *e)
{
	volatile struct xsp_args_work *work = xsp_args_work(e);
	__u64 impl;

	work->left--;
	if (bpf_probe_read_user(&impl, 8, (void *)work->first) ||
	    (work->references && bpf_probe_read_user(&impl, 8, (void *)impl))) {
		work->left = 0;
		return false;
	}
	work->first += 8;
	work->impl = impl;
	return true;
}

enum { XSP_ARGS_DONE, XSP_ARGS_GO_ON, XSP_ARGS_PUT_TENSOR };

static __always_inline __u32 xsp_args_step(const struct xsp_args_spec *s, char *e, __u32 start)
{
	volatile struct xsp_args_work *work = xsp_args_work(e);

	if (work->left)
		return xsp_args_next_of_list(e) ? XSP_ARGS_PUT_TENSOR : XSP_ARGS_GO_ON;
	__u32 i = work->item;
	if (i >= work->end || i >= XSP_ARGS_ITEMS)
		return XSP_ARGS_DONE;
	work->item = i + 1;
	work->references = work->in_list = 0;
	barrier_var(i);
	if (i >= XSP_ARGS_ITEMS)
		return XSP_ARGS_DONE;
	work->argument = s->item[i].argument;
	return xsp_args_put_item(&s->item[i], e, start) ? XSP_ARGS_PUT_TENSOR : XSP_ARGS_GO_ON;
}

struct xsp_args_way {
	const struct xsp_args_spec *spec;
	char *event;
	__u32 start;
};

static __noinline long xsp_args_visit(__u32 index, void *at)
{
	const struct xsp_args_way *way = at;
	volatile struct xsp_args_work *work = xsp_args_work(way->event);
	__u32 step = xsp_args_step(way->spec, way->event, way->start);

	if (step == XSP_ARGS_PUT_TENSOR)
		xsp_args_put_tensor(way->spec, way->event, work->impl, work->argument);
	return step == XSP_ARGS_DONE;
}

/* Puts the items from `first` to `end` into the section that begins at `start`. */
static __noinline void xsp_args_put_items(const struct xsp_args_spec *s, char *e, __u32 start,
					  __u32 first, __u32 end)
{
	volatile struct xsp_args_work *work = xsp_args_work(e);

	work->left = 0;
	work->item = first;
	work->end = end;
	struct xsp_args_way way = {.spec = s, .event = e, .start = start};
	XSP_LOOP(XSP_ARGS_STEPS, XSP_ARGS_STEPS, xsp_args_visit, &way);
}

/* Puts the words of ARGS. */
static __noinline void xsp_args_put_words(struct pt_regs *ctx, const struct xsp_args_spec *s,
					  char *e, __u32 at)
{
	__u32 size = s->stack * 8;

	if (at > XSP_ARGS_ROOM - XSP_ARGS_START_ROOM)
		return;
	struct xsp_section *section = (struct xsp_section *)(e + at);
	__u64 *w = (__u64 *)(section + 1);
	w[0] = XSP_REG_ARG1(ctx);
	w[1] = XSP_REG_ARG2(ctx);
	w[2] = XSP_REG_ARG3(ctx);
	w[3] = XSP_REG_ARG4(ctx);
	w[4] = XSP_REG_ARG5(ctx);
	w[5] = XSP_REG_ARG6(ctx);
	section->type = XSP_SECTION_ARGS;
	section->value = XSP_ARGS_REGISTERS + s->stack;
	if (size) {
		__u64 from = xsp_entry_sp(ctx, xsp_cookie(ctx)) + XSP_RETURN_SLOT;
		barrier_var(size);
		if (size > (XSP_ARGS_WORDS - XSP_ARGS_REGISTERS) * 8)
			size = (XSP_ARGS_WORDS - XSP_ARGS_REGISTERS) * 8;
		if (bpf_probe_read_user(&w[XSP_ARGS_REGISTERS], size, (void *)from)) {
			section->value = XSP_ARGS_REGISTERS | XSP_ARGS_STACK_UNREADABLE;
			size = 0;
		}
	}
	xsp_args_use(e, at + sizeof(*section) + XSP_ARGS_REGISTERS * 8 + size);
}

/* Puts ARGS or OUTPUTS for a probe; returns its end. Inlined: a kernel allows eight frames. */
static __always_inline __u32 xsp_put_args(struct pt_regs *ctx, __u32 probe, char *e, __u32 at,
					  __u32 type)
{
	const struct xsp_args_spec *s = bpf_map_lookup_elem(&xsp_args, &probe);

	xsp_args_use(e, at); /* see above */
	at = xsp_args_used(e);
	if (!s || at > XSP_ARGS_ROOM - XSP_ARGS_START_ROOM)
		return at;
	struct xsp_section *section = (struct xsp_section *)(e + at);
	__u32 first = 0, end = s->items;
	if (type == XSP_SECTION_ARGS) {
		xsp_args_put_words(ctx, s, e, at);
	} else {
		section->type = XSP_SECTION_OUTPUTS;
		section->value = 1;
		*(__u64 *)(section + 1) = xsp_result(ctx);
		xsp_args_use(e, at + sizeof(*section) + 8);
		first = end;
		end += s->outputs;
	}
	xsp_args_put_items(s, e, at, first, end);
	section->size = xsp_args_used(e) - at;
	return xsp_args_used(e);
}

#endif
