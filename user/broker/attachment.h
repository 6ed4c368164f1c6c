/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * attachment.h - what the broker is asked to attach, and what it counts: plain data, which both of its ends know.
 */
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

/* Rows of the tables that are looked into by a probe's id. Losses and prices: 16 bytes each of the kernel's memory, for each
 * function. What is read of calls: up to 270 bytes, for few. */
#define XSP_ATTACH_PROBES 524288U
#define XSP_ATTACH_SPECS 65536U

/* Which BPF program a site runs. */
enum xsp_program { /* in the order in which they are attached: what ends calls first */
		   XSP_PROGRAM_UNWIND = 0, /* landing of an exception */
		   XSP_PROGRAM_LONGJMP, /* entry of longjmp */
		   XSP_PROGRAM_RETURN, /* exits through return probes (--exit=return): they swap the return address
			     * on the target's stack, and an exception through it kills the target */
		   XSP_PROGRAM_DETAIL_RETURN, /* the same with sections */
		   XSP_PROGRAM_SPAN, /* function entries and exits */
		   XSP_PROGRAM_DETAIL, /* entries and exits whose events carry sections */
		   XSP_PROGRAM_DETAIL_LARGE, /* the same with more room: xsp_args_spec.large */
		   XSP_PROGRAM_RANGE_END,
		   XSP_PROGRAM_RANGE_BEGIN, /* record_function: enter(name) */
		   XSP_PROGRAM_GPU_BATCH, /* the agent's records */
		   XSP_PROGRAM_GPU_WANT, /* what it is to collect: after the batches' probe */
		   XSP_PROGRAM_HEAP, /* malloc and its kin */
		   XSP_PROGRAM_HEAP_RETURN, /* their exits through return probes */
		   XSP_PROGRAMS,
};

static inline bool xsp_program_is_return(enum xsp_program program)
{
	return program == XSP_PROGRAM_RETURN || program == XSP_PROGRAM_DETAIL_RETURN ||
	       program == XSP_PROGRAM_HEAP_RETURN;
}

/* The mark of longjmp is of use on x86-64 only: where else it leads to is not known. */
static inline bool xsp_program_exists(enum xsp_program program)
{
#if defined(__x86_64__)
	(void)program;
	return true;
#else
	return program != XSP_PROGRAM_LONGJMP;
#endif
}

enum xsp_attach_method {
	XSP_ATTACH_UPROBE_MULTI, /* one link a library and program (Linux 6.6) */
	XSP_ATTACH_TRACEFS, /* a few dozen events of tracefs, with many sites each */
	XSP_ATTACH_PERF_EVENT, /* one perf event a site: taking them out takes long */
};

const char *xsp_attach_method_name(enum xsp_attach_method method); /* "uprobe_multi", … */

/* What is on without being asked for, where something is traced: it is the first that goes when it costs too much. */
enum xsp_default {
	XSP_DEFAULT_WAITS = 1 << 0,
	XSP_DEFAULT_PYTHON = 1 << 1, /* XSP_DETAIL_TORCH_PYTHON */
	XSP_DEFAULT_SAMPLES = 1 << 2,
};

struct xsp_attach_options {
	size_t buffer_bytes; /* of all rings together; rounded up to powers of two of pages */
	unsigned rings; /* 0: by the number of CPUs */
	enum xsp_attach_method method; /* the best that may be used */
	bool follow; /* children of recorded processes are recorded too */
	bool stop; /* ... each stopped at its birth and at exec until xsp_attach_continue() */
	uint64_t min_duration_ns;
	uint32_t max_depth;
	const pid_t *tids; /* only these threads; root namespace ids */
	size_t tid_count;
	const char *const *comms; /* only threads of these names; a trailing '*' matches a prefix */
	size_t comm_count; /* at most XSP_MAX_COMM_FILTERS */
	bool ranges; /* xsp_selection_has_ranges(); without it only functions can be probed */
	unsigned details; /* what events may carry: enum xsp_detail (probes/probe.h) */
	const struct xsp_counter *counters; /* of XSP_DETAIL_COUNTERS; borrowed while a lives */
	size_t counter_count; /* at most XSP_COUNTERS_MAX */
	uint32_t stack_frames; /* of XSP_DETAIL_STACKS and samples; at most XSP_STACK_MAX */
	uint32_t python_frames; /* of XSP_DETAIL_PYTHON and samples; at most XSP_PYTHON_MAX */
	bool waits; /* when threads run, and what they wait for: xsp_attach_waits() */
	uint64_t wait_least_ns; /* of those with an event */
	uint32_t sample_hz; /* of what threads do on their CPU, so often a second; 0: none */
	bool wait_stacks; /* where the thread stood as it began to wait: */
	bool wait_stacks_thinned; /* ... as often as costs little: xsptrace/programs.h */
	uint64_t wait_stack_least_ns; /* of waits that lasted so long */
	uint32_t
		heap_period; /* of XSP_DETAIL_MALLOC: bytes that a block of the sample stands for at least */
	const uint8_t *
		wait_classes; /* of a broker, borrowed; with `waits`, as xsp_broker_options has them */
	struct xsp_journal *journal; /* of a guardian (journal.h), borrowed; NULL: none */
	unsigned defaults; /* enum xsp_default: of what is on, what nobody asked for */
	bool brake; /* probes can be let go of, and hits that no event tells of are counted */
	bool verbose; /* libbpf's messages go to standard error */
};

/* These are to be as if they had been declined. */
void xsp_attach_without(struct xsp_attach_options *o, unsigned defaults);
/* The same with nothing attached to code: what was on by default beside that is all that there is. */
void xsp_attach_bare(struct xsp_attach_options *o);

struct xsp_attach_site {
	uint64_t offset; /* in the file */
	uint64_t ref_ctr_offset; /* semaphore in the file; 0: none */
	uint64_t cookie;
	uint32_t length; /* of the instruction, bytes; 0: not known */
	uint32_t reserved;
};

/* What is asked of pieces of code in a process's memory: links/verify.h. */
enum xsp_verify {
	XSP_VERIFY_CODE, /* is it other code? Breakpoints count as unchanged */
	XSP_VERIFY_LINKED, /* the same where our probes are in, so that the whole of a 5-byte nop tells nothing */
	/* Is there no breakpoint at its first byte, in none of the mappings? The page was dropped, or could be written, or is
	 * shared, when the kernel was asked. */
	XSP_VERIFY_UNPROBED,
	XSP_VERIFY_QUESTIONS,
};

struct xsp_attach_counters {
	uint64_t lost_entries, lost_exits, lost_other, lost_names, filtered, silent_hits, untracked;
	uint64_t lost_gpu_records; /* of batches that are among lost_other */
	uint64_t detail_hits,
		detail_ns; /* time in the program of some of the hits that put sections */
	uint64_t objects_opened, objects_closed; /* of the ranges that belong to one */
	uint64_t unseen_ns; /* of what xsp_attach_unseen() tells: that which had no room there */
	uint64_t python_torn; /* Python stacks of which not all that there is could be read */
	uint64_t samples, samples_ns; /* taken or lost, and the time in their program */
	uint64_t stacks_torn; /* of waits */
	uint64_t heap_unseen; /* calls of --memory=malloc's sample whose end was not seen */
	uint64_t missed; /* by the kernel: returns it does not probe, programs it did not run */
};

struct xsp_held_back {
	uint64_t time_ns, sp;
	uint32_t tid, tgid, probe, reserved;
};

/* A function of a stack of the kernel that samples have. Of its address nothing is told. */
struct xsp_kernel_function {
	uint32_t stack; /* XSP_SECTION_KERNEL */
	uint32_t depth; /* 0: the innermost */
	char name[120]; /* as /proc/kallsyms has it, cut */
};

/* The price of entries and exits of a probe, ns. */
struct xsp_probe_price {
	uint32_t entry_ns, exit_ns;
};

/* Time spent in hits that no event tells of (lost, silent, filtered). */
struct xsp_attach_unseen {
	uint32_t tid, probe;
	uint64_t ns;
};

struct xsp_attach_change {
	bool busy;
	int error; /* of the last change: negative errno; -EOPNOTSUPP: this way of attaching cannot do
		    * all of it, the sites that could not be taken out stay and report nothing */
	uint64_t took_ns; /* the last change */
	uint64_t abandoned_ns; /* when, if that was the last pause; or 0 */
	uint64_t left_out; /* that xsp_attach_left_out() tells */
};

/* A probe whose code was found to be another one in a process, when a change was to put its sites in
 * again: they were left out. */
struct xsp_left_out {
	int32_t pid;
	uint32_t probe;
};
#define XSP_LEFT_OUT_ROWS 1024 /* at a time */
#define XSP_STOPPED_ROWS 256

struct xsp_broker_options {
	const struct xsp_attach_options *attach; /* loaded at once, for load(); NULL: nothing */
	const pid_t *pids; /* which processes may be asked for; with attach->follow also their
			    * children */
	size_t pid_count;
	const char *agent; /* the library that inject() loads; NULL: none */
	xsp_image_serve_fn
		*serve_image; /* reads what a process has mapped for inject(), without rights */
	const uint8_t *
		wait_classes; /* XSP_SYSCALLS_MAX of enum xsp_wait_class: what each system call waits for */
	bool stop_threads; /* thread_stopper() may be asked for */
};

struct xsp_broker_injected {
	int64_t entry_value; /* what the agent's start function returned */
	int64_t stopped_ns;
	int32_t tid;
	uint32_t cleaned;
	char notes[1024]; /* lines */
};
#endif
