/* SPDX-License-Identifier: BSD-2-Clause */
/* attachment.h - what the broker is asked to attach, and what it counts: plain data that both ends know. */
#ifndef XSP_BROKER_ATTACHMENT_H
#define XSP_BROKER_ATTACHMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "broker/kernel/perf_counters.h"
#include "inject/questions.h"
#include "xsptrace/details.h"
#include "xsptrace/programs.h"

struct xsp_journal;

/* Rows of the tables that are indexed by a probe's id. Losses and prices take 16 bytes of kernel memory each for every
 * function; what is read of calls takes up to 270, for few functions. */
#define XSP_ATTACH_PROBES 524288U
#define XSP_ATTACH_SPECS 65536U

/* The BPF program that a site runs. They are attached in this order: what ends calls comes first. */
enum xsp_program {
	XSP_PROGRAM_UNWIND = 0, /* landing of an exception */
	XSP_PROGRAM_LONGJMP, /* entry of longjmp */
	/* exits through return probes (--exit=return): the kernel swaps the return address on the target's
	 * stack, and an exception that passes it kills the target */
	XSP_PROGRAM_RETURN,
	XSP_PROGRAM_DETAIL_RETURN, /* the same with sections */
	XSP_PROGRAM_SPAN, /* function entries and exits */
	XSP_PROGRAM_DETAIL, /* entries and exits whose events carry sections */
	XSP_PROGRAM_DETAIL_LARGE, /* the same with more room: xsp_args_spec.large */
	XSP_PROGRAM_RANGE_END,
	XSP_PROGRAM_RANGE_BEGIN, /* record_function: enter(name) */
	XSP_PROGRAM_GPU_BATCH, /* the agent hands over records */
	/* what the agent is to collect; attached after GPU_BATCH */
	XSP_PROGRAM_GPU_WANT,
	XSP_PROGRAM_HEAP, /* malloc and the like */
	XSP_PROGRAM_HEAP_RETURN, /* the same, exits through return probes */
	XSP_PROGRAMS,
};

static inline bool xsp_program_is_return(enum xsp_program program)
{
	return program == XSP_PROGRAM_RETURN || program == XSP_PROGRAM_DETAIL_RETURN ||
	       program == XSP_PROGRAM_HEAP_RETURN;
}

enum xsp_attach_method {
	XSP_ATTACH_UPROBE_MULTI, /* one link a library and program (Linux 6.6) */
	XSP_ATTACH_TRACEFS, /* a few dozen events of tracefs, with many sites each */
	XSP_ATTACH_PERF_EVENT, /* one perf event a site, slow to take out */
};

const char *xsp_attach_method_name(enum xsp_attach_method method);

/* What is on by default. It is dropped first when the recording costs too much. */
enum xsp_default {
	XSP_DEFAULT_WAITS = 1 << 0,
	XSP_DEFAULT_PYTHON = 1 << 1, /* XSP_DETAIL_TORCH_PYTHON */
	XSP_DEFAULT_SAMPLES = 1 << 2,
};

struct xsp_attach_options {
	size_t buffer_bytes; /* all rings together; each is rounded up to a power of two of pages */
	unsigned rings; /* 0: chosen by the number of CPUs */
	enum xsp_attach_method method; /* the best one that may be used */
	bool follow; /* children of recorded processes are recorded too */
	bool launched; /* the target begins with the recording: it may still move its code */
	bool stop; /* ... and stopped when it begins and at exec, until xsp_attach_continue() */
	uint64_t min_duration_ns;
	uint32_t max_depth;
	const pid_t *tids; /* record only these threads (ids of the root namespace) */
	size_t tid_count;
	/* record only threads with these names; a trailing '*' matches a prefix */
	const char *const *comms;
	size_t comm_count; /* at most XSP_MAX_COMM_FILTERS */
	bool ranges; /* probes may read names: xsp_selection_has_ranges() */
	unsigned details; /* what events may carry: enum xsp_detail (probes/probe.h) */
	const struct xsp_counter *counters; /* for XSP_DETAIL_COUNTERS; borrowed */
	size_t counter_count; /* at most XSP_COUNTERS_MAX */
	uint32_t stack_frames; /* for XSP_DETAIL_STACKS and samples; at most XSP_STACK_MAX */
	uint32_t python_frames; /* for XSP_DETAIL_PYTHON and samples; at most XSP_PYTHON_MAX */
	bool waits; /* record when threads run, and what they wait for: xsp_attach_waits() */
	uint64_t wait_least_ns; /* shorter waits get no event */
	uint32_t sample_hz; /* samples a second of what threads do on their CPU; 0: none */
	bool fatal_signals; /* with samples: also where threads are when a signal ends their process */
	bool wait_stacks; /* record where the thread stood when it began to wait */
	bool wait_stacks_thinned; /* ... but not each time: xsptrace/programs.h */
	uint64_t wait_stack_least_ns; /* ... and only if it waited this long */
	/* for XSP_DETAIL_MALLOC: the bytes that one sampled block stands for, at least */
	uint32_t heap_period;
	/* set by the broker, borrowed: xsp_broker_options.wait_classes */
	const uint8_t *wait_classes;
	struct xsp_journal *journal; /* set by the broker, borrowed; NULL: there is no guardian */
	unsigned defaults; /* enum xsp_default: what is on by default, not on request */
	bool brake; /* probes can be released, and hits without an event are counted */
	bool verbose; /* libbpf's messages go to standard error */
};

/* Turns these defaults off, as if the user had. */
void xsp_attach_without(struct xsp_attach_options *o, unsigned defaults);
/* The same with nothing attached to code: what was on by default beside that is all that there is. */
void xsp_attach_bare(struct xsp_attach_options *o);

struct xsp_attach_site {
	uint64_t offset; /* in the file */
	uint64_t ref_ctr_offset; /* file offset of the semaphore; 0: none */
	uint64_t cookie;
	uint32_t length; /* bytes of the instruction; 0: not known */
	uint32_t reserved;
};

/* What links/verify.h is asked about pieces of code in a process's memory. */
enum xsp_verify {
	XSP_VERIFY_CODE, /* is it other code than the file's? Breakpoints count as unchanged */
	/* the same for code with our probes in it: all of a 5-byte nop may be ours */
	XSP_VERIFY_LINKED,
	/* Does its first byte have no breakpoint in any mapping? The page was dropped, or it was shared or writable
	 * when the kernel was asked to put one in. */
	XSP_VERIFY_UNPROBED,
	XSP_VERIFY_QUESTIONS,
};

/* In the order of enum xsp_count. */
struct xsp_attach_counters {
	uint64_t lost_entries, lost_exits, lost_other, lost_names, filtered, silent_hits, untracked;
	uint64_t lost_gpu_records; /* in batches that lost_other counts */
	/* how many hits with sections were timed, and how long the program took for them */
	uint64_t detail_hits, detail_ns;
	uint64_t objects_opened, objects_closed; /* ranges that belong to an object */
	/* by the kernel: return probes that it did not put in, programs that it did not run */
	uint64_t missed;
	uint64_t unseen_ns; /* time that found no row in xsp_attach_unseen() */
	uint64_t python_torn; /* Python stacks that could be read in part only */
	uint64_t samples, samples_ns; /* taken or lost, and the time their program took */
	uint64_t stacks_torn; /* stacks of waits that could be read in part only */
	uint64_t heap_unseen; /* sampled calls of --memory=malloc whose end was not seen */
};

struct xsp_held_back {
	uint64_t time_ns, sp;
	uint32_t tid, tgid, probe, reserved;
};

/* What a thread has done so far. */
struct xsp_thread_now {
	struct xsp_event_times times;
	struct xsp_event_wait
		open; /* the wait that it is in, as if that ended now; kind 0: it runs */
};

/* A function of a kernel stack. Its address stays in the broker. */
struct xsp_kernel_function {
	uint32_t stack; /* XSP_SECTION_KERNEL */
	uint32_t depth; /* 0: the innermost */
	char name[XSP_SYMBOL_BYTES]; /* as /proc/kallsyms has it, elided */
};

/* ns */
struct xsp_probe_price {
	uint32_t entry_ns, exit_ns;
};

/* Time spent in hits without an event (lost, silent, filtered). */
struct xsp_attach_unseen {
	uint32_t tid, probe;
	uint64_t ns;
};

struct xsp_attach_change {
	bool busy;
	/* of the last change, a negative errno. -EOPNOTSUPP: this way of attaching cannot take some sites out; they
	 * stay and report nothing */
	int error;
	uint64_t took_ns; /* by the last change */
	/* when the last pause began, if the broker began it by itself; else 0 */
	uint64_t unasked_ns;
	uint64_t changed; /* rows that xsp_attach_changed_code() has */
};

/* The probe's function has other code now in that process, so its sites were not put in again. */
struct xsp_changed_code {
	int32_t pid;
	uint32_t probe;
};
#define XSP_CHANGED_CODE_ROWS 1024 /* in one answer */
#define XSP_STOPPED_ROWS 256

/* A process has moved its code to other memory (large pages). */
struct xsp_moved_code {
	int32_t pid;
	uint32_t probe; /* one of those that were there; UINT32_MAX: there was none */
	uint32_t functions; /* no longer probed in that process */
	uint32_t mended; /* breakpoints that its copy had */
};
#define XSP_MOVED_ROWS 64

/* The smallest limit of CPU time that a control group sets for a recorded process. */
struct xsp_cpu_limit {
	double cpus; /* that the group may use at once */
	uint64_t periods; /* in which the group wanted to run, since it was found */
	uint64_t stopped; /* of them, in which the kernel stopped it at its limit */
};

struct xsp_broker_options {
	const struct xsp_attach_options *attach; /* loaded at once, for load(); NULL: nothing */
	const pid_t *pids; /* which processes may be asked for; with attach->follow also their
			    * children */
	size_t pid_count;
	const char *agent; /* the library that inject() loads; NULL: inject() is not allowed */
	/* without rights, reads for inject() what a process has mapped */
	xsp_image_serve_fn *serve_image;
	/* XSP_SYSCALLS_MAX of enum xsp_wait_class: what each system call waits for */
	const uint8_t *wait_classes;
	bool stop_threads; /* thread_stopper() is allowed */
	/* who gets what lies beside a target's files, if it could open that by itself */
	uid_t uid;
	gid_t gid;
};

/* What load() answers, beside the descriptors of the rings. */
struct xsp_broker_loaded {
	uint32_t method, rings;
	uint64_t ring_bytes; /* of each */
	/* bytes of a ring that an event with sections takes, even if it uses few; 0: few events have sections */
	uint64_t detail_bytes;
	uint64_t sample_cycles; /* samples count cycles here, else a clock */
	uint64_t without; /* enum xsp_default: what the kernel refused */
};

struct xsp_broker_injected {
	int64_t entry_value; /* what the agent's start function returned */
	int64_t stopped_ns;
	int32_t tid;
	uint32_t cleaned;
	char notes[1024]; /* lines */
};
#endif
