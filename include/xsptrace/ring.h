/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ring.h - the memory file through which the agent in the target hands calls to the recorder: a
 * ring a thread, without a trap or a system call.
 *
 * The agent makes the file (memfd_create), seals its size, maps it and closes the descriptor. The
 * broker opens it by the mapping. One recorder at a time reads it: it holds a lock (flock) on the
 * file. A ring has one writer, its thread, and one reader.
 *
 * The target owns this memory and may write anything into it at any time. A reader takes the sizes
 * from here, never from the file, copies a record before it looks at it, and keeps its own position.
 */
#ifndef XSPTRACE_RING_H
#define XSPTRACE_RING_H

#ifndef XSP_NO_LINUX_TYPES
#include <linux/types.h>
#endif
#include "xsptrace/args.h"
#include "xsptrace/python.h"

#define XSP_RINGS_NAME "xsptrace-rings" /* of the memory file */
#define XSP_RINGS_PATH "/memfd:" XSP_RINGS_NAME " (deleted)" /* as /proc shows it */
#define XSP_RINGS_MAGIC 0x31676e6972707378ULL /* "xspring1", little endian */
#define XSP_RINGS_VERSION 5

#define XSP_RINGS_COUNT 256U
#define XSP_RING_SLOTS 32768U /* records of a ring: 1 MiB */
#define XSP_RING_FUNCTIONS 16384U
#define XSP_RING_TEXT (4U << 20) /* bytes of all names */
#define XSP_RING_NAMES                                                                             \
	131072U /* of regions and values, arguments, and stacks of Python; a power of two */
#define XSP_RING_NAMES_TEXT (32U << 20)
#define XSP_RING_ARGS_MAX 4096U /* bytes of a section */
#define XSP_RING_PYTHON_MAX                                                                        \
	(sizeof(struct xsp_section) + XSP_PYTHON_MAX * sizeof(struct xsp_python_frame))

/* A record: 32 bytes. */
struct xsp_ring_record {
	/* XSP_RING_WORD(); written last. A record is there once the serial in it is the low half of
	 * its number + 1 */
	__u64 word;
	__u64 time; /* in the unit of xsp_rings.clock */
	/* the stack pointer at the function's entry; in an exit, that of its entry; VALUE: its name's place */
	__u64 sp;
	/* of a node: its name; of a range: its object; of a region: its name's place; VALUE: the bits; ARGS, STACK: places */
	__u64 value;
};
/* kind: enum xsp_event_kind (event.h); function: its row in the table */
#define XSP_RING_WORD(serial, kind, flags, function)                                               \
	((__u64)(__u32)(serial) | (__u64)(__u8)(kind) << 32 | (__u64)(__u8)(flags) << 40 |         \
	 (__u64)(__u16)(function) << 48)
enum xsp_ring_flag {
	XSP_RING_UNWOUND = 1 << 0, /* EXIT: an exception passed */
	/* ENTRY of a node: value is the hash of its name, which is in the NAME records before; without
	 * the flag it is the address of its class's vtable */
	XSP_RING_NAMED = 1 << 1,
	/* ENTRY: value is the place of the call's arguments, which are kept as a name is: a section ARGS
	 * (args.h), without what its function's kept words leave out */
	XSP_RING_ARGS = 1 << 2,
	/* ENTRY by a callback: value is XSP_RING_NUMBERED() of its name's place, and of the number that
	 * autograd gives the next node of this thread */
	XSP_RING_PLACED = 1 << 3,
	/* EXIT by a callback: value is XSP_RING_NUMBERED() of torch's number of the thread, and of that of
	 * the next node. LABEL: of both of a node of the backward pass, which is the innermost one open */
	XSP_RING_NUMBERS = 1 << 4,
	/* ENTRY of an operator: the upper half of value is the place of the thread's Python stack, and the lower that of
	 * the arguments. Of nodes, ranges and regions a record of kind PYTHON, whose value is that place, stands before. */
	XSP_RING_STACK = 1 << 5,
};
/* Two numbers in one word. The second one is 0, or one more than it is. */
#define XSP_RING_NUMBER_BITS 20
#define XSP_RING_NUMBER_MAX ((1U << XSP_RING_NUMBER_BITS) - 1) /* of the first one: there is none */
#define XSP_RING_NUMBERED(first, second) ((__u64)(first) | (__u64)(second) << XSP_RING_NUMBER_BITS)

/* A Python stack, as it is kept: a section PYTHON whose value is as python.h says, but of two words a frame, code and instruction.
 * The code has this bit if self and type follow it. */
#define XSP_RING_SELF 1ULL

/* The function whose calls are ranges (BEGIN with a name, if it has one, and END): value is the
 * object that begins and ends with the range. */
#define XSP_RING_RANGE "_ZN2at14RecordFunctionC1ENS_11RecordScopeE"

/* The function whose calls are operators that a callback of PyTorch tells of. Nodes of the backward
 * pass are calls of the function that evaluates them. Their sp is the address of the RecordFunction,
 * which lies on the stack. */
#define XSP_RING_OPERATOR "_ZN2at14RecordFunctionC1EONS_13StepCallbacksE"
#define XSP_RING_NODE_PREFIX "autograd::engine::evaluate_function: " /* of the names of nodes */

/* A part of a name: 16 bytes in sp and value, padded with zeros; the flags are its number. They
 * stand before the entry, and are of the same function. */
#define XSP_RING_PART 16U
#define XSP_RING_PARTS 12U /* as in XSP_NAME_MAX */
static inline __u64 xsp_ring_hash(const char *text, __u32 length)
{
	__u64 h = 14695981039346656037ULL;

	for (__u32 i = 0; i < length; i++)
		h = (h ^ (__u8)text[i]) * 1099511628211ULL;
	return h;
}
/* The functions of regions (record_function.h), in the table like all others, and what their records are. */
#define XSP_RING_ENTER "xsp_record_function_enter" /* BEGIN */
#define XSP_RING_EXIT "xsp_record_function_exit" /* END */
#define XSP_RING_VALUE "xsp_record_function_value" /* VALUE */
#define XSP_RECORD_FUNCTION_LISTEN "xsp_record_function_listen"
#define XSP_RING_NO_NAME (~0ULL) /* in place of a name's: it could not be read or kept */
/* XSigma's scopes are regions, too: functions whose symbols begin so. An object that begins and ends one is in the value of both records, above the name's
 * place. */
#define XSP_RING_SCOPE "_ZN6xsigma"
#define XSP_RING_GUARD_AT 18
#define XSP_RING_GUARD_PLACE ((1ULL << XSP_RING_GUARD_AT) - 1)
static inline __u64 xsp_ring_guard(__u64 place, __u64 object)
{
	return (place & XSP_RING_GUARD_PLACE) | object >> 3 << XSP_RING_GUARD_AT;
}

/* A name. Its place is found by its hash; it may follow a few rows later. */
struct xsp_ring_name {
	__u64 hash; /* 0: free */
	__u32 text_at; /* in names_text */
	__u32 what; /* written last: enum xsp_ring_name_is, and its length: at most XSP_NAME_MAX */
};
enum xsp_ring_name_is {
	XSP_RING_NAME_THERE = 1 << 16,
	XSP_RING_NAME_CUT = 1 << 17, /* it is longer */
};
#define XSP_RING_NAME_LENGTH(what) ((what)&0xffffU)

enum xsp_ring_state {
	XSP_RING_FREE = 0,
	XSP_RING_USED = 1, /* a thread writes it */
	XSP_RING_ENDED = 2, /* its thread has ended: the reader frees it when it is empty */
};

/* The two halves are in cache lines of their own. */
struct xsp_ring {
	__u64 head; /* records written, ever; of the writer */
	__u64 lost; /* calls that found it full: neither entry nor exit was written */
	__u32 tid; /* as the target sees it */
	__u32 state; /* enum xsp_ring_state */
	/* of the writer: regions that are open; and such as are not recorded, as the first of them found the ring full; and
	 * in which recording that was */
	__u32 regions, dropped, dropped_in, unused_32;
	__u64 reserved[11];
	__u64 tail; /* records read, ever; of the reader */
	__u64 unused[15];
};

enum xsp_ring_clock {
	XSP_RING_TSC = 1, /* the time stamp counter: the reader relates it to its own clock */
	XSP_RING_MONOTONIC = 2, /* CLOCK_MONOTONIC, ns */
};

enum xsp_rings_active {
	XSP_RINGS_OPERATORS = 1 << 0,
	XSP_RINGS_REGIONS = 1 << 1,
	XSP_RINGS_RANGES =
		1
		<< 2, /* calls of XSP_RING_RANGE: given up, if it is in the table and this is not set */
	XSP_RINGS_ARGS = 1 << 3, /* arguments of operators, as the rows of `argument` say */
	XSP_RINGS_CALLBACKS = 1 << 4, /* operators, nodes and ranges, by PyTorch's callbacks */
	XSP_RINGS_UNKNOWN = 1 << 5, /* callbacks are wanted, and this PyTorch's are not known */
	XSP_RINGS_PYTHON = 1 << 6, /* stacks of Python */
};

/* Where a RecordFunction of PyTorch has what the agent reads of it, in bytes; the recorder's to write. */
struct xsp_record_layout {
	__u16 size; /* all that its constructor writes lies before this byte */
	__u16 name; /* a std::string, or the address of a schema, which begins with one */
	__u16 which; /* a byte; 0: that is the string, 1: the schema */
	/* of a node of the backward pass; at first they are -1 and 0 */
	__u16 sequence, thread;
	__u16 handle; /* -1 at first, as well */
	__u16 old_string; /* _GLIBCXX_USE_CXX11_ABI=0 */
	__u16 unused;
};
#define XSP_RECORD_LAYOUTS 8

/* A function whose calls are recorded. */
struct xsp_ring_function {
	__u64 address;
	__u32 text_at, length; /* of its symbol, in the text */
};

/* How the arguments of the function in the same row are read: the recorder's to write. */
struct xsp_ring_args {
	__u32 stamp; /* written last: it is that of xsp_rings.args, or nothing is read */
	__u32 kept_words;
	__u64 last; /* of the agent */
	struct xsp_args_spec spec; /* of most, what is used of it is in the first cache line */
	__u8 kept_how[XSP_ARGS_WORDS];
} __attribute__((aligned(64)));

/* How stacks of Python are read: the recorder's to write. */
struct xsp_ring_python {
	__u32 stamp; /* written last: another one each time; 0: they are not read */
	__u32 frames; /* at most */
	__u64 finalizing; /* the address of a word that is not 0 once the interpreter ends */
	struct xsp_python_spec spec;
};

/* The file: this head, then the rings of records, XSP_RING_SLOTS each, in the order of ring[]. */
struct xsp_rings {
	__u64 magic;
	__u32 version;
	__u32 clock; /* enum xsp_ring_clock */
	__u32 active; /* of the agent: enum xsp_rings_active */
	__u32 functions; /* rows that are complete; they only grow */
	__u64 homeless; /* calls of threads that found no free ring */
	__u64 refused; /* slots that were left as they are: they did not hold what their symbol resolves to */
	__u64 taken; /* rings that threads have taken, ever: counted before the first record */
	__u32 names, names_bytes; /* in use, ever asked for: also more than there is room for */
	__u32 args; /* of the recorder: arguments are wanted, by rows with this stamp. 0: they are not */
	__u32 args_stamp; /* of the recorder: the last stamp */
	__u32 layouts; /* of the recorder: so many rows of `layout` are there; written last */
	__u32 numbers; /* of the recorder: callbacks tell of autograd's numbers */
	struct xsp_ring_python python;
	__u64 reserved[7];
	struct xsp_record_layout layout[XSP_RECORD_LAYOUTS];
	struct xsp_ring ring[XSP_RINGS_COUNT];
	struct xsp_ring_function function[XSP_RING_FUNCTIONS];
	char text[XSP_RING_TEXT];
	struct xsp_ring_args argument[XSP_RING_FUNCTIONS];
	struct xsp_ring_name name[XSP_RING_NAMES];
	char names_text[XSP_RING_NAMES_TEXT];
};
#define XSP_RINGS_AT ((sizeof(struct xsp_rings) + 4095) & ~4095UL) /* where the records begin */
#define XSP_RINGS_SIZE                                                                             \
	(XSP_RINGS_AT + (__u64)XSP_RINGS_COUNT * XSP_RING_SLOTS * sizeof(struct xsp_ring_record))

#endif
