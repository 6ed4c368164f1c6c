/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * args.h - the sections ARGS and OUTPUTS: what a PyTorch operator is called with, and what it
 * returns.
 *
 * The kernel side copies, within bounds, what struct xsp_args_spec asks for, without understanding
 * it. When the capture is read, the operator's schema says what the bytes mean and whether they are
 * plausible (user/timeline/torch_args.h).
 *
 * A section is: struct xsp_section (value: number of words in the low byte, then enum
 * xsp_args_flag), the words, and records back to back: struct xsp_args_record and its data. The
 * words of ARGS are the six integer argument registers, then the stack from the first word above
 * the return address. OUTPUTS has one word, the return register. Items refer to words by number.
 */
#ifndef XSPTRACE_ARGS_H
#define XSPTRACE_ARGS_H

#include "xsptrace/event.h"

#define XSP_ARGS_REGISTERS 6
#define XSP_ARGS_WORDS 32 /* at most, with the registers */
#define XSP_ARGS_ITEMS 20
#define XSP_ARGS_LIST_MAX 32 /* most tensors of one list that are read */
#define XSP_ARGS_DIMS_MAX 16 /* most dimensions of a tensor that are read */
#define XSP_ARGS_BYTES_MAX 128 /* most bytes of an array or a string */
#define XSP_ARGS_VALUES_MAX 64 /* most bytes of a tensor's elements */

/* The size of the reservation for an event with these sections (bpf/detail.bpf.c,
 * detail_large.bpf.c). Two parts of it are not for records: the kernel side's state, and the room
 * in which a tensor is compacted, beyond its record of five dimensions. */
#define XSP_ARGS_SMALL 1024U
#define XSP_ARGS_LARGE 4096U
#define XSP_ARGS_RESERVED 256U

enum xsp_args_kind {
	XSP_ARGS_NOTHING = 0,
	XSP_ARGS_MEMORY = 1, /* `element` bytes at the address in the slot */
	XSP_ARGS_TENSOR = 2, /* at::Tensor at the address in the slot */
	/* optional<at::Tensor> at that address; `flag`: the offset of its flag */
	XSP_ARGS_OPTIONAL_TENSOR = 3,
	/* ArrayRef<Tensor>: address of the first in `slot`, length in `second` */
	XSP_ARGS_TENSORS = 4,
	XSP_ARGS_TENSORS_BEHIND = 5, /* IListRef<Tensor> at the address in the slot */
	XSP_ARGS_VECTOR = 6, /* std::vector<Tensor> at the address in the slot */
	XSP_ARGS_ARRAY = 7, /* elements of `element` bytes: address in `slot`, length in `second` */
	/* {?, address, length} at the address in the slot, 8 bytes each */
	XSP_ARGS_ARRAY_BEHIND = 8,
	XSP_ARGS_VALUES = 9, /* only in records: the first elements of the tensor before */
};

/* What is read for an argument that the words do not hold, or for a result. */
struct xsp_args_item {
	__u8 kind; /* enum xsp_args_kind */
	__u8 slot, second; /* numbers of words */
	__u8 element; /* bytes of an element; MEMORY: of the object, a multiple of 8 */
	__u8 offset; /* bytes added to the address: a Tensor in a tuple or after a flag */
	__u8 flag; /* OPTIONAL_TENSOR: see there. MEMORY: the same, of what is an optional */
	/* its number, from 0; for OUTPUTS, that of the result. Repeated in the records */
	__u8 argument;
	__u8 reserved;
};

/*
 * Where members are in c10::TensorImpl and StorageImpl, in units of 8 bytes. 1.13: 24, 9, 21, 22,
 * 3, 20, 3. From `sizes` on, all versions are alike (c10/core/TensorImpl.h, members in order):
 * number of dimensions, five inline sizes (or one pointer), five inline strides, storage offset,
 * number of elements, {u16 dtype, optional<Device>}.
 */
struct xsp_tensor_layout {
	__u8 words; /* how many are read, from the beginning */
	__u8 sizes; /* the number of dimensions; the sizes follow */
	__u8 numel;
	__u8 type; /* the word with the dtype and the device */
	__u8 storage; /* pointer to the StorageImpl */
	__u8 storage_offset;
	__u8 data; /* in StorageImpl: pointer to the bytes */
	__u8 reserved;
};

/* By probe. `item`: those of ARGS, then those of OUTPUTS. */
struct xsp_args_spec {
	struct xsp_tensor_layout layout;
	__u8 stack; /* number of words of the stack that ARGS holds */
	__u8 items, outputs;
	__u8 values; /* read elements of small tensors in host memory */
	/* of optional<Device>: {flag, type, index}, else {type, index, flag} */
	__u8 optional_flag_first;
	__u8 large; /* use the program with the larger reservation */
	__u8 reserved[2];
	struct xsp_args_item item[XSP_ARGS_ITEMS];
};

/*
 * For the agent, which keeps equal sections once: the words that say whether an argument has a value. It writes all others as 0, and
 * of those what is not kept: addresses, and values that are not shown.
 */
#define XSP_ARGS_KEEP_TRUTH 8 /* 1, if it is not 0; else the number of the byte that is kept */
struct xsp_args_kept {
	__u32 words; /* bit n: word n */
	__u8 how[XSP_ARGS_WORDS];
};

enum xsp_args_flag {
	XSP_ARGS_STACK_UNREADABLE = 1 << 8, /* the words of the stack could not be read */
};

enum xsp_args_status {
	XSP_ARGS_READ = 0,
	XSP_ARGS_UNREADABLE = 1, /* the address cannot be read */
	XSP_ARGS_CUT = 2, /* there is more than was read */
	/* an optional without a value; the null pointer of an undefined tensor */
	XSP_ARGS_ABSENT = 3,
	XSP_ARGS_UNKNOWN = 4, /* its form cannot be read */
};

/*
 * An argument may have several records: that of a list (kind TENSORS, count: its length) precedes
 * those of its tensors. Arguments for which there was no room have none.
 * TENSOR: struct xsp_args_tensor, then `dims` sizes and as many strides (with status CUT: none).
 * MEMORY, ARRAY: bytes. VALUES: bytes, `count` of them valid.
 */
struct xsp_args_record {
	__u8 argument; /* xsp_args_item.argument */
	__u8 kind; /* enum xsp_args_kind */
	__u8 status; /* enum xsp_args_status */
	__u8 size; /* in units of 8 bytes, including this head */
	__u32 count; /* ARRAY, TENSORS: the length in the target; low 32 bits */
};

struct xsp_args_tensor {
	__u64 vtable;
	__u64 dims;
	__u64 numel;
	__u64 type; /* u16 dtype, then the device */
	/* __s64 sizes[dims], strides[dims] */
};

#endif /* XSPTRACE_ARGS_H */
