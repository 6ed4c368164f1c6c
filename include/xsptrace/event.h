/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * event.h - the record layout shared by the kernel side, the recorder and the reader.
 *
 * An event is one hit of a site. The BPF program writes it straight into its ring-buffer
 * reservation, and the recorder copies it unchanged into the capture file. So this is also the
 * layout on disk (little endian, 8-byte aligned). Changing it means raising XSP_EVENT_VERSION.
 */
#ifndef XSPTRACE_EVENT_H
#define XSPTRACE_EVENT_H

#if !defined(__bpf__) && !defined(XSP_NO_LINUX_TYPES)
#include <linux/types.h>
#endif

#define XSP_EVENT_VERSION 1

/* What an event reports. The value is also the `kind` field of the attach cookie. */
enum xsp_event_kind {
	XSP_EVENT_INVALID = 0,
	XSP_EVENT_ENTRY = 1, /* a function was entered; sp is its entry stack pointer */
	XSP_EVENT_EXIT = 2, /* a function returns or tail-calls out */
	XSP_EVENT_POINT = 3, /* entry and exit are the same instruction: a span of one hit */
	/* an exception or longjmp lands: every frame whose entry sp is below .sp (that of the
	 * landing frame) is gone */
	XSP_EVENT_UNWIND = 4,
	XSP_EVENT_NAME = 5, /* a string seen for the first time: struct xsp_event_name */
	XSP_EVENT_BEGIN = 6, /* a named range opens (record_function): struct xsp_event_range.
			       * Ranges nest per thread and are closed by XSP_EVENT_END */
	/* a range of this probe closes: the one that XSP_SECTION_RANGE names, else the innermost
	 * open one of this thread */
	XSP_EVENT_END = 7,
	XSP_EVENT_TASK = 8, /* life of processes and threads: struct xsp_event_task */
	XSP_EVENT_PYTHON = 9, /* a Python stack seen for the first time: python.h */
	XSP_EVENT_LABEL = 10, /* an open range gets its name: struct xsp_event_label */
	XSP_EVENT_WAIT = 11, /* a thread runs again: struct xsp_event_wait */
	XSP_EVENT_GPU = 12, /* a batch of records of the agent in the target: gpu.h */
	XSP_EVENT_TIMES = 13, /* where all the time of a thread went: struct xsp_event_times */
	XSP_EVENT_SAMPLE = 14, /* what a thread was doing on its CPU: struct xsp_event_sample */
	XSP_EVENT_MEMORY = 15, /* memory of a process: its sections say what */
	/* from here on only in events: the cookie has four bits */
	XSP_EVENT_VALUE = 16, /* a number that the program reports: struct xsp_event_value */
	XSP_EVENT_KINDS,
};

/* xsp_event.flags */
enum xsp_event_flag {
	/* sp is the exact stack pointer at function entry (at its first instruction, pointing at
	 * the return address). Otherwise it is the stack pointer at the site, at or below that */
	XSP_EVENT_SP_EXACT = 1 << 0,
	XSP_EVENT_TAIL = 1 << 1, /* EXIT through a tail call */
	XSP_EVENT_JUMP = XSP_EVENT_TAIL, /* UNWIND by longjmp, which runs no destructors */
	/* ENTRY held back by --min-duration and emitted later, with its original time; the order
	 * within a thread still holds */
	XSP_EVENT_REPLAYED = 1 << 2,
	/* EXIT in an imported trace: the span is a part of a longer one */
	XSP_EVENT_CUT = XSP_EVENT_REPLAYED,
	XSP_EVENT_NAME_CUT = 1 << 3, /* NAME: the string was longer than the read limit */
	/* BEGIN, ENTRY: the name could not be read; name_hash is 0. NAME from the kernel: the name
	 * was not in memory. The text is its address and its length (~0: up to a zero), 64 bits
	 * each; the recorder replaces it */
	XSP_EVENT_NAME_LOST = 1 << 4,
	/* NAME from the kernel: the text is 8 bytes, an address of code; the recorder replaces it
	 * with the name of the function */
	XSP_EVENT_NAME_CODE = 1 << 5,
	/* the same for the vtable pointer of a C++ object: its class; or, if the text is longer, the
	 * class in Python of a node that is written there */
	XSP_EVENT_NAME_VTABLE = 1 << 6,
	XSP_EVENT_SECTIONS = 1 << 7, /* sections follow the fixed part: struct xsp_section */
};

/* Common head of every event. 32 bytes. */
struct xsp_event {
	__u64 time_ns; /* CLOCK_MONOTONIC (bpf_ktime_get_ns) */
	__u64 sp; /* see XSP_EVENT_SP_EXACT */
	__u32 tid; /* thread id in the root pid namespace */
	__u32 tgid; /* process id in the root pid namespace */
	__u32 probe; /* probe id: index into the capture's probe table */
	__u8 kind; /* enum xsp_event_kind */
	__u8 flags; /* enum xsp_event_flag */
	__u16 size; /* size of this event with its payload in bytes, a multiple of 8 */
};

/* XSP_EVENT_BEGIN; and an ENTRY whose span has a name of its own */
struct xsp_event_range {
	struct xsp_event head;
	/* of the bytes of the name. The XSP_EVENT_NAME comes before or shortly after, from any
	 * thread. 0: the probe's own name, or with XSP_EVENT_NAME_LOST one that could not be
	 * read */
	__u64 name_hash;
};

/* XSP_EVENT_VALUE. The function of its probe determines its meaning: user/catalog/values.h */
enum xsp_value_flag {
	XSP_VALUE_UNREAD = 1 << 0, /* the number was not in memory; bits is 0 */
	XSP_VALUE_OF_RANGE = 1 << 1, /* the same hit begins a range; its BEGIN follows */
};
struct xsp_event_value {
	struct xsp_event head;
	__u64 name_hash; /* as in struct xsp_event_range */
	__u64 bits; /* as passed, or as in memory: a short type has other data after it */
	__u32 type; /* by the numbers of the function's own interface; 0: it has only one type */
	__u32 flags; /* enum xsp_value_flag */
};

/* XSP_EVENT_LABEL: for the open range of this thread and probe whose BEGIN has the time begin_ns */
struct xsp_event_label {
	struct xsp_event head;
	__u64 name_hash; /* as in struct xsp_event_range */
	__u64 begin_ns;
};

/*
 * Details of a span: sections after the fixed part of the event, back to back up to head.size. With
 * sections, the fixed part of ENTRY, POINT and BEGIN is struct xsp_event_range (name_hash 0: the
 * probe's own name), and that of others their struct. A reader ignores types that it does not know.
 */
enum xsp_section_type {
	XSP_SECTION_WORDS = 1, /* operands at entry, 64 bits each: struct xsp_detail_spec.word */
	XSP_SECTION_RESULT = 2, /* EXIT: the return register, 64 bits */
	XSP_SECTION_ARGS = 3, /* arguments of a PyTorch operator */
	/* the callers: XSP_FRAME_*, innermost first; value: 1 if there are more. In a wait, the
	 * first one is where the thread itself was */
	XSP_SECTION_STACK = 4,
	/* counters at entry, in the order of the capture's info "counters": 64 bits each, or struct
	 * xsp_perf_value; value: bit n: number n is there */
	XSP_SECTION_COUNTERS = 5,
	XSP_SECTION_COUNTERS_END = 6, /* the same at exit */
	/* 64 bits: the number that autograd gives the next node of this thread; at exit, value:
	 * torch's number of the thread, or ~0 */
	XSP_SECTION_SEQUENCE = 7,
	XSP_SECTION_OUTPUTS = 8, /* EXIT: what a PyTorch operator returns */
	/* the number of a node of autograd's graph (~0: none), and torch's number of the thread
	 * that made it, 64 bits each */
	XSP_SECTION_NODE = 9,
	/* value: the kind of a RecordFunction, at::RecordScope of ATen/record_function.h */
	XSP_SECTION_SCOPE = 10,
	/* END: time of the range's BEGIN, 64 bits; value: thread of the BEGIN. Without it, the
	 * stack pointer determines the range */
	XSP_SECTION_RANGE = 11,
	/* EXIT: the 64-bit word that the call wrote where an argument points; value: 1 if it could
	 * not be read */
	XSP_SECTION_WRITTEN = 12,
	/* 64 bits: the id of the thread's Python stack (python.h); value: the number of its frames,
	 * and enum xsp_python_flag */
	XSP_SECTION_PYTHON = 13,
	/* SAMPLE, WAIT, only up to the recorder, which makes a STACK of it: struct
	 * xsp_stack_copy */
	XSP_SECTION_COPY = 14,
	/* MEMORY, added by the recorder: struct xsp_process_memory */
	XSP_SECTION_PROCESS_MEMORY = 15,
	/* SAMPLE, WAIT; value: the number of the kernel's own stack. The capture has the
	 * functions */
	XSP_SECTION_KERNEL = 16,
	/* TIMES, at the end of the thread or the recording: minor and major page faults in its
	 * time, 64 bits each; then struct xsp_thread_io */
	XSP_SECTION_FAULTS = 17,
	/* WAIT for one descriptor: struct xsp_peer */
	XSP_SECTION_PEER = 18,
	XSP_SECTION_TYPES,
};
#define XSP_PEER_NAME 48
/* What a thread waits for at a descriptor, as it was when the wait ended. */
struct xsp_peer {
	__u16 type; /* of the file: S_IFMT of its mode */
	__u16 family; /* of a socket: AF_* */
	__u16 own_port, port; /* of a socket of the internet; port: the peer's */
	__u32 inode;
	/* who woke the thread: a process that is not its own, as the root pid namespace knows it; 0: not known, or an
	 * interrupt of which nobody knows the cause */
	__u32 process;
	char comm[16]; /* its name */
	union {
		__u8 address[16]; /* of the peer on the internet: 4 bytes, or 16 */
		/* the end of a unix socket's path, the peer's or its own, or of a file's name without its
		 * folders. An abstract one begins with a zero */
		char name[XSP_PEER_NAME];
	};
};
#define XSP_KERNEL_FRAMES 32 /* most frames of a stack of the kernel */
#define XSP_COUNTERS_MAX 8
/* How a counter is read. */
enum xsp_counter_kind {
	XSP_COUNTER_NONE = 0,
	XSP_COUNTER_PAGE_FAULTS = 1, /* the kernel counts them for each thread: 64 bits */
	XSP_COUNTER_MINOR_FAULTS = 2,
	XSP_COUNTER_MAJOR_FAULTS = 3,
	XSP_COUNTER_CONTEXT_SWITCHES = 4,
	XSP_COUNTER_CPU_MIGRATIONS = 5,
	XSP_COUNTER_PERF = 6, /* a perf event for each thread: struct xsp_perf_value */
};
struct xsp_perf_value {
	__u64 counter, enabled_ns, running_ns; /* running < enabled: it shared its hardware */
};

/* A frame of XSP_SECTION_STACK: the return address, and the number of words on the stack between
 * where this address is and where that of the previous frame is. For the first frame they count
 * from the entry stack pointer. */
#define XSP_FRAME_SHIFT 48
#define XSP_FRAME_ADDRESS(frame) ((frame) & ((1ULL << XSP_FRAME_SHIFT) - 1))
#define XSP_FRAME_WORDS(frame) ((frame) >> XSP_FRAME_SHIFT)
/* In samples and waits of x86-64, where user addresses have 47 bits: not a return address, but that
 * of an instruction which a signal interrupted. */
#if defined(__aarch64__)
#define XSP_FRAME_INTERRUPTED 0ULL /* they have 48 there */
#else
#define XSP_FRAME_INTERRUPTED (1ULL << 47)
#endif
/* What unwinding by .eh_frame starts from (arm64: rbp is x29, rbx x30), beside the address and the
 * stack pointer of the sample or the wait's first frame. The bytes of the stack from there follow. */
struct xsp_stack_copy {
	__u64 rbx, rbp, r12, r13, r14, r15;
};
#define XSP_STACK_COPY_PIECE 1024
#define XSP_STACK_COPY_PIECES 8
struct xsp_section {
	__u16 type; /* enum xsp_section_type */
	__u16 size; /* bytes with this head, a multiple of 8 */
	__u32 value; /* depends on the type; WORDS: bit n: word n could not be read and is 0 */
};

/* XSP_EVENT_NAME. Bytes follow the struct, unterminated, padded with zeros to 8. */
#define XSP_NAME_MAX 192
struct xsp_event_name {
	struct xsp_event head;
	__u64 name_hash;
	__u32 length; /* bytes, at most XSP_NAME_MAX */
	__u32 reserved;
	/* char text[] */
};

/* XSP_EVENT_TASK; head.tid/tgid: the task it happened to */
enum xsp_task_what {
	XSP_TASK_FORK = 1, /* head.* is the new task; other_* its parent */
	XSP_TASK_EXEC = 2, /* comm is the new name */
	/* other_tid is the signal that ended it, or 0; other_tgid the status that it ended with */
	XSP_TASK_EXIT = 3,
	XSP_TASK_RENAME = 4, /* comm is the new name */
};

/* What the kernel side knows of a recorded process. */
enum xsp_tgid_flag {
	XSP_TGID_RECORDED = 1 << 0,
	/* stopped before the first instruction of its next program */
	XSP_TGID_STOP_AT_EXEC = 1 << 1,
	/* where it waits, its own functions are beyond the first words of the stack */
	XSP_TGID_DEEP_STACKS = 1 << 2,
};

struct xsp_event_task {
	struct xsp_event head;
	__u32 what; /* enum xsp_task_what */
	__u32 other_tgid;
	__u32 other_tid;
	__u32 ns_tid; /* tid as the task sees it, in its own pid namespace */
	char comm[16];
};

/* XSP_EVENT_GPU. head.tid: the agent's thread. `bytes` of records (gpu.h) follow the struct. */
struct xsp_event_gpu {
	struct xsp_event head;
	__u32 bytes;
	__u32 reserved;
};

/* What a thread waits for while it does not run. */
enum xsp_wait_class {
	XSP_WAIT_RUNNABLE = 0, /* for a processor: it was preempted, or yielded */
	XSP_WAIT_OTHER = 1,
	XSP_WAIT_LOCK = 2, /* futex: mutexes, condition variables, joins */
	XSP_WAIT_POLL = 3, /* for any of many descriptors: poll, select, epoll */
	XSP_WAIT_SLEEP = 4,
	XSP_WAIT_FILE = 5, /* a descriptor of unknown kind */
	XSP_WAIT_PIPE = 6,
	XSP_WAIT_NETWORK = 7, /* a socket */
	XSP_WAIT_DISK = 8, /* the bytes of a file */
	XSP_WAIT_CHILD = 9,
	XSP_WAIT_SIGNAL = 10,
	XSP_WAIT_MEMORY = 11, /* the address space of the process: mmap, munmap, madvise */
	XSP_WAIT_FAULT = 12, /* a page of memory */
	XSP_WAIT_DEVICE = 13, /* ioctl */
	XSP_WAIT_STOPPED = 14, /* by a signal or a debugger */
	XSP_WAIT_GPU = 15, /* inside a call of CUDA's API: set by the timeline, not the kernel */
	XSP_WAIT_CLASSES = 16, /* a power of two */
};
enum xsp_wait_flag {
	/* it had left before it was watched: left_ns is when that began */
	XSP_WAIT_BEFORE = 1 << 0,
	XSP_WAIT_OPEN = 1 << 1, /* it had not run again when the recording ended: head.time_ns */
	XSP_WAIT_INTERRUPT = 1 << 2, /* the kernel woke it: a timer, a device */
	XSP_WAIT_IO = 1 << 3, /* the kernel counts it as waiting for input or output */
	XSP_WAIT_SHORT = 1 << 4, /* no wait: only short_ns, reported before an event of a span */
	XSP_WAIT_BORN = 1 << 5, /* the thread's first: it has not run before */
	/* with SHORT: the thread runs, which was not reported; the event of the wait before comes
	 * later */
	XSP_WAIT_UNSEEN_RETURN = 1 << 6,
	/* a futex that is 2 while somebody waits: mutexes of glibc, musl, Rust and Go are, condition
	 * variables, joins and barriers are not */
	XSP_WAIT_MUTEX = 1 << 7,
};

/*
 * XSP_EVENT_WAIT. head.time_ns: when the thread runs again; head.probe: ~0. Waits shorter than the
 * capture's info "waits" have no event: the short_ns of the thread's next event counts them, which
 * precedes any event of its spans. With --wait-stacks, waits as long as the info "wait stacks" have
 * the sections STACK and PYTHON from when the thread left. head.sp is then the entry stack pointer
 * of what it would have called next.
 */
struct xsp_event_wait {
	struct xsp_event head;
	__u64 left_ns; /* when it stopped running */
	__u64 woken_ns; /* when it could run again; 0: always (XSP_WAIT_RUNNABLE), or unknown */
	/* the first argument of the system call: the address of a futex, a descriptor. Of a socket
	 * the upper half are its ports: its own, and << 16 its peer's */
	__u64 argument;
	/* time off its CPU in shorter waits since the last event that reported any */
	__u64 short_ns;
	__s32 syscall; /* its number; -1: none */
	__u32 waker; /* thread id in the root pid namespace; 0: unknown, or an interrupt */
	__u32 owner; /* of glibc's mutex: thread id as the process sees it; 0: unknown */
	__u16 state; /* of the task as it left: include/linux/sched.h */
	__u8 why; /* enum xsp_wait_class */
	__u8 flags; /* enum xsp_wait_flag */
};

/* XSP_EVENT_TIMES, at the end of a thread or of the recording, and in between if somebody watches
 * (xsptrace top). From since_ns to head.time_ns: running, runnable and blocked add up to all of
 * it. */
enum xsp_times_now {
	XSP_NOW_UNKNOWN = 0,
	XSP_NOW_RUNS = 1,
	XSP_NOW_WAITS = 2, /* for XSP_WAIT_RUNNABLE: it was woken, or preempted */
};
/* Of a thread in its time: what it read and wrote by system calls, files and others. All 0: unknown. */
struct xsp_thread_io {
	__u64 read_bytes, written_bytes, reads, writes;
};
struct xsp_event_times {
	struct xsp_event head;
	__u64 since_ns;
	__u64 running_ns, runnable_ns;
	__u32 ended; /* 1: the thread has ended */
	/* while it goes on: enum xsp_times_now, or XSP_NOW_WAITS + enum xsp_wait_class */
	__u32 now;
	__u64 blocked_ns[XSP_WAIT_CLASSES]; /* until it was woken */
	__u32 waits[XSP_WAIT_CLASSES]; /* their number; RUNNABLE: without those after a wait */
};

enum xsp_sample_hit {
	XSP_HIT_NONE,
	XSP_HIT_IN, /* the kernel is at an instruction that has a probe */
	XSP_HIT_STEP, /* the kernel's copy of that instruction is single-stepped */
	/* it is just before this one in memory: an interrupt that came while the kernel was on its way out waits until then,
	 * or nothing was hit */
	XSP_HIT_LEFT,
};

/* XSP_EVENT_SAMPLE. head.sp: the stack pointer in user space; head.probe: ~0. The sections STACK,
 * whose first frame counts its words from head.sp, and PYTHON follow. */
struct xsp_event_sample {
	struct xsp_event head;
	/* of the user-space instruction that it ran, or that it entered the kernel from */
	__u64 address;
	/* the time on a CPU that it stands for; 0: none, a signal ends its process */
	__u32 period_ns;
	__s16 syscall; /* in the kernel: the system call, or -1: a page fault or an interrupt */
	__u8 kernel; /* 1: it was in the kernel */
	__u8 hit; /* enum xsp_sample_hit */
};

/* WORDS of a MEMORY event of --memory=malloc: all of these for an allocation, the address alone for
 * a free. The sections STACK and PYTHON follow; head.sp: the stack pointer there. */
enum xsp_memory_word {
	XSP_MEMORY_ADDRESS,
	XSP_MEMORY_BYTES,
	XSP_MEMORY_IP, /* of the instruction at which the call was seen */
	XSP_MEMORY_RETURNED, /* 1: that is after the call, in the caller */
	XSP_MEMORY_WORDS,
};

/* XSP_SECTION_PROCESS_MEMORY: bytes, as the kernel counts them (proc_pid_status(5)). */
struct xsp_process_memory {
	__u64 resident; /* the sum of the next three */
	__u64 anonymous, file, shared;
	__u64 swapped; /* anonymous */
	__u64 peak; /* the most that was resident since the process began its program */
};

/* What a range probe reads from the target, for the providers and the BPF program. An operand is a
 * register, or the 64-bit word at that register + offset. */
enum xsp_operand_base {
	XSP_OPERAND_ARG = 0, /* 0..5: integer arguments, in the order of the calling convention */
	XSP_OPERAND_SP = 6, /* stack pointer at entry; [sp] is the return address on x86-64 */
	XSP_OPERAND_NONE = 7,
};
struct xsp_operand {
	__u8 base; /* enum xsp_operand_base */
	__u8 deref;
	__u16 offset;
};

enum xsp_range_name {
	XSP_RANGE_NAME_NONE = 0,
	XSP_RANGE_NAME_TEXT = 1, /* bytes at `text`, `length` of them (NONE: a C string) */
	XSP_RANGE_NAME_PENDING = 2, /* what this thread remembered last, see XSP_RANGE_REMEMBER */
	XSP_RANGE_NAME_CODE = 3, /* the function in which `text`, an address, lies */
	/* the class whose vtable pointer is `text`, the first word of the object in that register */
	XSP_RANGE_NAME_VTABLE = 4,
};
enum xsp_range_flag {
	XSP_RANGE_REMEMBER = 1 << 0, /* no range opens: the name is kept for the next one */
	/* argument 0 is the range's object: only a range that it opened is closed, and only once
	 * (end() and then a destructor) */
	XSP_RANGE_KEYED = 1 << 1,
	XSP_RANGE_CONDITION = 1 << 2, /* only when the low 32 bits of `condition` equal the value */
	XSP_RANGE_BYTE = 1 << 3, /* ... the low 8 bits */
	/* no range opens: the open range of the object (argument 0) and probe `opener` gets the
	 * name */
	XSP_RANGE_LABEL = 1 << 4,
	/* if the condition is false, a range opens with the probe's name */
	XSP_RANGE_UNNAMED = 1 << 5,
	XSP_RANGE_SHARED = 1 << 6, /* another way to open the ranges of probe `opener` */
	/* with XSP_RANGE_CONDITION: it is a number below 32, and bit n of condition_value says
	 * whether n is wanted */
	XSP_RANGE_MASK = 1 << 7,
	XSP_RANGE_VALUE = 1 << 8, /* no range opens: a value is reported, if there is one */
	/* With XSP_RANGE_REMEMBER: a call without a name clears what was remembered; of several
	 * names with this flag, the first is kept */
	XSP_RANGE_FIRST = 1 << 9,
};
struct xsp_range_spec {
	__u8 name; /* enum xsp_range_name */
	__u8 reserved;
	__u16 flags; /* enum xsp_range_flag */
	struct xsp_operand text, length, condition;
	__u32 condition_value;
	__u32 opener; /* probe id, see XSP_RANGE_LABEL and XSP_RANGE_SHARED */
	/* XSP_EVENT_VALUE, with the range's name; its type is the low 32 bits of value_type, or 0
	 * if that is NONE */
	struct xsp_operand value, value_type;
	__u32 value_types; /* bit n: type n has a value; 0: there never is one */
};

/* Which sections the events of a probe have. */
#define XSP_WORDS_MAX 12
struct xsp_detail_spec {
	__u16 entry; /* bit n: section type n at entry */
	__u16 exit; /* ... at exit */
	__u8 words; /* the number of operands in WORDS */
	__u8 written; /* WRITTEN: 1 + the number of the word that is the pointer; else 0 */
	__u8 reserved[2];
	struct xsp_operand word[XSP_WORDS_MAX];
};

/* Where each thread of a process has its own copy of a variable (ELF thread-local storage). */
enum xsp_tls_kind {
	XSP_TLS_NONE = 0,
	XSP_TLS_DYNAMIC = 1, /* slot: the module's number, then an offset in its block */
	XSP_TLS_INITIAL = 2, /* slot: an offset from the thread pointer */
	XSP_TLS_CONSTANT = 3, /* displacement is the offset from the thread pointer */
};
struct xsp_tls_place {
	__u64 slot; /* an address: in the file for a provider, in the process for the kernel */
	__s64 displacement; /* added to the offset */
	__u32 kind; /* enum xsp_tls_kind */
	/* the generation of the process's program, for the kernel: another one has other places */
	__u32 generation;
};
/* Where XSP_SECTION_SEQUENCE is read. */
struct xsp_sequence_spec {
	struct xsp_tls_place counter, thread; /* 64 bits each */
};

/* Where the result is at an exit site, before it reaches the return register. */
enum xsp_result_register {
	XSP_RESULT_RETURN = 0, /* there: rax, x0 */
	XSP_RESULT_RBX = 1,
	XSP_RESULT_RBP = 2,
	XSP_RESULT_R12 = 3,
	XSP_RESULT_R13 = 4,
	XSP_RESULT_R14 = 5,
	XSP_RESULT_R15 = 6,
	XSP_RESULT_NONE = 7, /* unknown: no such site is chosen */
};

/*
 * The attach cookie of a site: made by the placement, decoded in the BPF program.
 *  bits  0..23  probe id
 *  bits 24..27  enum xsp_event_kind
 *  bits 28..32  condition: 0 none, 1 + x86 condition code (0x0..0xf) of the conditional jump
 *               at the site: the event counts only if the jump falls through
 *  bit  33      the event counts only if the conditional jump IS taken (tail call by jcc)
 *  bit  34      stack base register: 0 rsp / sp, 1 rbp / x29
 *  bit  35      base + delta is exact (sets XSP_EVENT_SP_EXACT)
 *  bit  36      tail call
 *  bit  37      no cookie, but the number of an event with many sites: see XSP_COOKIE_PAGES
 *  bits 38..40  enum xsp_result_register: where the result is, at an exit whose probe reads it.
 *               At an entry, XSP_RESULT_NONE: its exit is seen by a return probe
 *  bits 41..62  signed: (entry sp - base register) / 8
 *  bit  63      phase of the link that the site is in: brake.h
 */
#define XSP_COOKIE_PROBE_BITS 24
#define XSP_COOKIE_KIND_SHIFT 24
#define XSP_COOKIE_COND_SHIFT 28
#define XSP_COOKIE_TAKEN (1ULL << 33)
#define XSP_COOKIE_BASE_FP (1ULL << 34)
#define XSP_COOKIE_SP_EXACT (1ULL << 35)
#define XSP_COOKIE_TAIL (1ULL << 36)
/* If an event serves many sites, its cookie is this, with its number in the low bits. The cookies
 * of the sites are in a table, at number * XSP_PAGE_SLOTS + the lowest 12 bits of the address. */
#define XSP_COOKIE_PAGES (1ULL << 37)
#define XSP_PAGE_SLOTS 4096
#define XSP_COOKIE_RESULT_SHIFT 38
#define XSP_COOKIE_DELTA_SHIFT 41
#define XSP_COOKIE_DELTA_BITS 22
#define XSP_COOKIE_PHASE (1ULL << 63)
#define XSP_MAX_PROBES (1U << XSP_COOKIE_PROBE_BITS)

#define XSP_COOKIE_PROBE(c) ((__u32)((c) & (XSP_MAX_PROBES - 1)))
#define XSP_COOKIE_KIND(c) ((__u8)(((c) >> XSP_COOKIE_KIND_SHIFT) & 0xf))
#define XSP_COOKIE_RESULT(c) ((__u32)(((c) >> XSP_COOKIE_RESULT_SHIFT) & 7))
#define XSP_COOKIE_COND(c) ((__u32)(((c) >> XSP_COOKIE_COND_SHIFT) & 0x1f))
/* gcc and clang shift signed values arithmetically */
#define XSP_COOKIE_DELTA(c)                                                                        \
	(((__s64)((__u64)(c) << (64 - XSP_COOKIE_DELTA_SHIFT - XSP_COOKIE_DELTA_BITS)) >>          \
	  (64 - XSP_COOKIE_DELTA_BITS)) *                                                          \
	 8)

#endif /* XSPTRACE_EVENT_H */
