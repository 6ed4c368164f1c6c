/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * programs.h - what the BPF programs share with the side that loads them and reads their maps:
 * limits, keys and values of maps. event.h, args.h and gpu.h have what is in events.
 */
#ifndef XSPTRACE_PROGRAMS_H
#define XSPTRACE_PROGRAMS_H

#include "xsptrace/args.h"
#include "xsptrace/event.h"
#include "xsptrace/gpu.h"
#include "xsptrace/python.h"

#define XSP_MAX_RINGS 64 /* masks the thread id: a power of two */
#define XSP_MAX_COMM_FILTERS 4
#define XSP_COMM_BYTES 16 /* TASK_COMM_LEN */
_Static_assert((XSP_MAX_RINGS & (XSP_MAX_RINGS - 1)) == 0, "a power of two");
_Static_assert(XSP_COMM_BYTES == sizeof(((struct xsp_event_task *)0)->comm), "names of threads");

#if defined(__x86_64__) || defined(__TARGET_ARCH_x86)
#define XSP_RETURN_SLOT 8 /* a call pushes the return address */
#else
#define XSP_RETURN_SLOT 0
#endif

/* What is counted, for each CPU: the map xsp_counters. */
enum xsp_count {
	XSP_COUNT_LOST_ENTRY,
	XSP_COUNT_LOST_EXIT,
	XSP_COUNT_LOST_OTHER,
	XSP_COUNT_LOST_NAME,
	XSP_COUNT_FILTERED,
	XSP_COUNT_SILENT,
	XSP_COUNT_UNTRACKED,
	XSP_COUNT_LOST_GPU, /* records of lost batches */
	/* one hit in eight that puts sections: how many, and the time that they took */
	XSP_COUNT_DETAIL_HITS,
	XSP_COUNT_DETAIL_NS,
	XSP_COUNT_OBJECTS_OPENED, /* added to the map xsp_objects */
	XSP_COUNT_OBJECTS_CLOSED, /* deleted by us; the kernel evicts others for lack of room */
	/* returns that the kernel does not probe: it follows 64 nested calls of a thread */
	XSP_COUNT_MISSED,
	XSP_COUNT_UNSEEN_NS, /* time in hits without an event, for which xsp_unseen had no room */
	XSP_COUNT_PYTHON_TORN, /* Python stacks of which a part could not be read */
	/* --sample: how often its program looked at a recorded thread, and the time it took */
	XSP_COUNT_SAMPLES,
	XSP_COUNT_SAMPLES_NS,
	XSP_COUNT_STACKS_TORN, /* stacks of waits that were partly in pages not in memory */
	XSP_COUNT_HEAP_UNSEEN, /* --memory=malloc: calls in the sample that ended in unknown code */
	XSP_COUNTS,
};

#define XSP_OBJECTS_MOST 65536 /* entries of the map xsp_objects */

/* The map xsp_stopped: why a process was stopped. */
enum xsp_stopped_why {
	XSP_STOPPED_NEW = 1, /* it has just begun, or become another program */
	XSP_STOPPED_MOVES, /* it replaces its own code, of which it has a copy: the map xsp_moves */
};

/* The map xsp_moves: a part of a file that a process had mapped as code, with our breakpoints in it, and maps no
 * longer. */
struct xsp_move {
	__u64 start, end; /* where it was */
	__u64 offset, inode; /* of the file */
};
#define XSP_MOVE_KEY(tgid, start) ((__u64)(tgid) << 32 | (__u32)((start) >> 12))

/* The map xsp_lost: lost entries and lost exits by probe. n probes have XSP_LOST_KEY(n, 0) keys. */
#define XSP_LOST_KEY(probe, exits) ((probe)*2 + ((exits) ? 1 : 0))

/* The map xsp_pointers. */
#define XSP_POINTER_KEY(tid, probe) ((__u64)(tid) << 32 | (probe))

/* The map xsp_cookies: the cookie of a site whose event, `number`, serves many
 * (XSP_COOKIE_PAGES). */
#define XSP_COOKIE_KEY(number, address)                                                            \
	((__u32)(number)*XSP_PAGE_SLOTS + ((__u32)(address) & (XSP_PAGE_SLOTS - 1)))
_Static_assert((XSP_PAGE_SLOTS & (XSP_PAGE_SLOTS - 1)) == 0, "a power of two");

/* --min-duration and --max-depth: the map xsp_thread_states, by thread. */
#define XSP_FILTER_FRAMES 64
struct xsp_frame {
	__u64 time_ns;
	__u64 sp;
	__u32 probe;
	__u32 emitted;
};
struct xsp_thread_state {
	__u32 depth;
	__u32 tgid;
	struct xsp_frame frames[XSP_FILTER_FRAMES];
};
_Static_assert((XSP_FILTER_FRAMES & (XSP_FILTER_FRAMES - 1)) == 0, "a power of two");
_Static_assert(sizeof(struct xsp_thread_state) == 8 + 24 * XSP_FILTER_FRAMES, "no padding");

/* --waits: system calls that have a class, and threads that are followed. */
#define XSP_SYSCALLS_MAX 512
#define XSP_WAITS_THREADS 16384
/* The map xsp_thread_waits, by the address of the task. From since_ns to at_ns: running, runnable
 * and blocked add up to all of it. */
struct xsp_thread_waits {
	__u64 at_ns; /* its last switch; 0: the rest is not filled yet */
	__u64 since_ns, woken_ns, argument, short_ns;
	__u64 running_ns, runnable_ns, blocked_ns[XSP_WAIT_CLASSES];
	__u32 waits[XSP_WAIT_CLASSES];
	__u32 tid, tgid, waker, owner;
	__s32 syscall;
	__u16 state;
	__u8 why, flags;
	__u32 off; /* the thread does not run */
	__u32 named; /* its name was asked for: --comm */
	__u64 ran_ns; /* the kernel's sum when it left last */
	__u64 owed_ns; /* counted by the kernel as running, and by us as ready, so far */
	__u64 scratch;
	__u64 minor_faults, major_faults; /* the kernel's counts at since_ns */
	struct xsp_thread_io io;
	/* time that it waited without a stack being read: XSP_WAIT_STACK_EVERY_NS */
	__u64 credit_ns;
	__u32 without; /* stacks not read since then, for lack of credit */
	__u32 has_stack; /* the stack of the current wait was read */
	__u32 ran_unknown; /* it ran when we met it: ran_ns may lack a tick */
	__u32 unplaced_ns; /* waited since a stack was reported, up to xsp_wait_stack_least_ns */
	__u32 descriptor; /* that it waits for; XSP_NO_DESCRIPTOR */
	__u32 reserved;
	struct xsp_peer
		peer; /* of the wait that is reported; process and comm: since it was woken */
};
#define XSP_NO_DESCRIPTOR ~0U
/* --wait-stacks: of a thread that leaves its CPU. */
#define XSP_WAIT_FRAMES 64
#define XSP_WAIT_WORDS 128 /* bytes of its stack in words; a power of two */
#define XSP_WAIT_DEEP_WORDS 384 /* further ones, of a process with XSP_TGID_DEEP_STACKS */
#define XSP_WAIT_DEEP_STACKS 512 /* threads that have room for these */
/*
 * By default, stacks are thinned out. Reading one takes up to 0.8 us; one for this much waiting is
 * about 1 % of it. Without credit, one in so many is still read. The recorder needs another 10 us
 * for each.
 */
#define XSP_WAIT_STACK_EVERY_NS 65536ULL
#define XSP_WAIT_CREDIT_FIRST_NS (64 * XSP_WAIT_STACK_EVERY_NS)
#define XSP_WAIT_CREDIT_MOST_NS (4096 * XSP_WAIT_STACK_EVERY_NS)
#define XSP_WAIT_STACK_OF 16
#define XSP_WAIT_STACKS_A_SECOND 500 /* on each CPU */
#define XSP_WAIT_STACKS_THREADS 2048 /* threads that have room for one */
/* Names that the kernel side remembers having sent. When it knows that many, it sends others each time. */
#define XSP_NAMES_MOST 65536
/* --memory=malloc: blocks of the sample that are alive, and threads. */
#define XSP_HEAP_BLOCKS 262144
#define XSP_HEAP_THREADS 16384
#define XSP_HEAP_PERIOD_MAX (1U << 30) /* bytes a sample, of --memory=malloc:BYTES */
/* Which of xsp_detail_spec.word says what about such a call; with base XSP_OPERAND_NONE, none
 * does. */
enum xsp_heap_word {
	XSP_HEAP_BYTES,
	XSP_HEAP_FACTOR, /* times this number */
	XSP_HEAP_OLD, /* address of the block that it takes back */
	XSP_HEAP_RESULT, /* where it writes the address; else it returns it */
	XSP_HEAP_WORDS,
};
_Static_assert((XSP_SYSCALLS_MAX & (XSP_SYSCALLS_MAX - 1)) == 0, "a power of two");
_Static_assert((XSP_WAIT_CLASSES & (XSP_WAIT_CLASSES - 1)) == 0, "a power of two");

/* The reservation for an event with sections: at least this, if they need little room;
 * XSP_ARGS_SMALL or XSP_ARGS_LARGE if there are arguments, plus what these two need. */
#define XSP_DETAIL_LEAST 256
#define XSP_STACK_MAX 127 /* the kernel's own limit: kernel.perf_event_max_stack */
/* A frame is read as two words: one more than is kept. */
#define XSP_STACK_BYTES(frames) (sizeof(struct xsp_section) + 8 * ((frames) + 1))
/* Distinct stacks of the kernel in samples. */
#define XSP_KERNEL_STACKS 8192
#define XSP_SYMBOL_BYTES 120 /* the name of a function of the kernel, with its end */
/* An event of a sample or of a block (--memory=malloc): the latest offsets of its STACK and its
 * COPY, and the size of its reservation. */
#define XSP_SAMPLE_STACK_AT (sizeof(struct xsp_event_sample) + sizeof(struct xsp_section) + 32)
#define XSP_SAMPLE_COPY_AT (XSP_SAMPLE_STACK_AT + XSP_STACK_BYTES(XSP_STACK_MAX))
#define XSP_SAMPLE_BYTES                                                                           \
	(XSP_SAMPLE_COPY_AT + sizeof(struct xsp_section) + sizeof(struct xsp_stack_copy) +         \
	 XSP_STACK_COPY_PIECE * XSP_STACK_COPY_PIECES)
#define XSP_HEAP_COPY_PIECES 3 /* only its innermost callers are wanted */
#define XSP_HEAP_EVENT_BYTES                                                                       \
	(XSP_SAMPLE_BYTES - XSP_STACK_COPY_PIECE * (XSP_STACK_COPY_PIECES - XSP_HEAP_COPY_PIECES))
_Static_assert(XSP_SAMPLE_BYTES % 8 == 0 && XSP_SAMPLE_BYTES < 1 << 14, "fits into a __u16");
_Static_assert(sizeof(struct xsp_event_range) + sizeof(struct xsp_section) + 8 * XSP_WORDS_MAX <=
		       XSP_DETAIL_LEAST,
	       "all words of an entry fit");
_Static_assert(XSP_ARGS_SMALL >= XSP_DETAIL_LEAST && XSP_ARGS_LARGE >= XSP_ARGS_SMALL,
	       "more room, not less");

/* Values of maps: one compiler writes them, the other reads them. */
_Static_assert(sizeof(struct xsp_range_spec) == 36, "xsp_specs");
_Static_assert(sizeof(struct xsp_thread_waits) ==
		       8 * (7 + XSP_WAIT_CLASSES) + 4 * XSP_WAIT_CLASSES + 104 +
			       sizeof(struct xsp_peer) + sizeof(struct xsp_thread_io),
	       "no padding");
_Static_assert(sizeof(struct xsp_detail_spec) == 8 + 4 * XSP_WORDS_MAX, "xsp_details");
_Static_assert(sizeof(struct xsp_args_spec) == 16 + 8 * XSP_ARGS_ITEMS, "xsp_args");
_Static_assert(sizeof(struct xsp_sequence_spec) == 48, "xsp_sequences");
_Static_assert(sizeof(struct xsp_python_spec) == 64, "xsp_pythons");
_Static_assert(sizeof(struct xsp_python_frame) == 32, "xsp_python_slots");
_Static_assert((XSP_PYTHON_MAX & (XSP_PYTHON_MAX - 1)) == 0, "a mask");

/* Events: also the layout on disk. */
_Static_assert(sizeof(struct xsp_event) == 32, "XSP_EVENT_VERSION");
_Static_assert(sizeof(struct xsp_event_range) == 40, "XSP_EVENT_VERSION");
_Static_assert(sizeof(struct xsp_event_label) == 48, "XSP_EVENT_VERSION");
_Static_assert(sizeof(struct xsp_event_value) == 56, "XSP_EVENT_VERSION");
_Static_assert(sizeof(struct xsp_event_name) == 48, "XSP_EVENT_VERSION");
_Static_assert(sizeof(struct xsp_event_task) == 64, "XSP_EVENT_VERSION");
_Static_assert(sizeof(struct xsp_event_wait) == 80, "XSP_EVENT_VERSION");
_Static_assert(sizeof(struct xsp_event_times) == 256, "XSP_EVENT_VERSION");
_Static_assert(sizeof(struct xsp_event_sample) == 48, "XSP_EVENT_VERSION");
_Static_assert(sizeof(struct xsp_event_gpu) + XSP_GPU_BATCH_MAX == XSP_GPU_BATCH_ROOM,
	       "a batch fills its reservation");
_Static_assert(sizeof(struct xsp_section) == 8, "XSP_EVENT_VERSION");
_Static_assert(sizeof(struct xsp_perf_value) == 24, "XSP_EVENT_VERSION");
_Static_assert(sizeof(struct xsp_peer) == 80, "XSP_EVENT_VERSION");
_Static_assert(sizeof(struct xsp_process_memory) == 48, "XSP_EVENT_VERSION");
_Static_assert(sizeof(struct xsp_args_record) == 8, "XSP_EVENT_VERSION");
_Static_assert(sizeof(struct xsp_args_tensor) == 32, "XSP_EVENT_VERSION");

#endif /* XSPTRACE_PROGRAMS_H */
