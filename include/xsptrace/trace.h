/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace.h - libxsptrace: reads captures of xsptrace from a C or C++ program. `pkg-config --cflags --libs xsptrace`.
 *
 * A trace is opened, and run: one pass in which the library calls back for each span, call of CUDA's API, activity of a
 * GPU, sample, wait and amount of memory, as it is known to be over. Memory does not grow with the length of the capture. It may
 * be run again. No root is needed, and nothing of the process that was recorded.
 *
 * Times are ns of CLOCK_MONOTONIC of the machine that was recorded. Names are raw bytes of the recorded program,
 * zero-terminated, in no certain encoding: escape them before they are shown. What is pointed to from a record is valid
 * during its callback.
 *
 * Structs grow at their ends only; `size` says how much of one its maker knows: up to the end of one of its members, or, of a
 * later one, more than stands here (up to 4096), which is not read. What a function returns is 0 or a negative
 * errno unless it says otherwise. One trace is for one thread at a time.
 */
#ifndef XSPTRACE_TRACE_H
#define XSPTRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xsp_trace;

/*
 * A capture, or a Chrome trace (.json, .json.gz: torch.profiler's, xsptrace's), which is read into a file without a name first.
 * -ENOENT, -EACCES ...: the file cannot be opened; -EILSEQ: it is neither; -ENODATA: it is empty, or cut off in its first bytes;
 * -EPROTONOSUPPORT: a capture of another version; -EINVAL: no regular file; -ENOSPC ...: no room in $TMPDIR for what is read; -ENOMEM.
 * `why` (may be NULL) gets one line of at most `size` bytes that says so. A capture that was cut off is opened, and read
 * as far as it goes (xsp_trace_is_complete).
 */
int xsp_trace_open(const char *path, struct xsp_trace **trace, char *why, size_t size);
void xsp_trace_close(struct xsp_trace *trace); /* NULL is allowed */

/* What was recorded: from its beginning to its end, and for how long of it everything was on. Each may be NULL. */
void xsp_trace_window(const struct xsp_trace *trace, uint64_t *start_ns, uint64_t *end_ns,
		      uint64_t *recorded_ns);
/* The same moment, ns since 1970 UTC. */
uint64_t xsp_trace_realtime(const struct xsp_trace *trace, uint64_t ns);
/* Was it ended properly, is nothing of the file damaged, and were no events lost? Traces of other profilers do not say what
 * they lost: that counts as 0. */
bool xsp_trace_is_complete(const struct xsp_trace *trace);
uint64_t xsp_trace_events_lost(const struct xsp_trace *trace);
/* "version", "host", "kernel", "arguments" ...: docs/capture-format.md. NULL: it is not there. */
const char *xsp_trace_info(const struct xsp_trace *trace, const char *key);

struct xsp_trace_process {
	uint32_t pid, ns_pid; /* of the machine, and as the process saw itself */
	uint32_t parent; /* 0: not known */
	const char *comm, *command, *executable;
};
/* Process `index`, from 0; false: there are no more. Valid until the trace is closed. */
bool xsp_trace_process(const struct xsp_trace *trace, size_t index,
		       struct xsp_trace_process *process);

struct xsp_trace_thread {
	uint32_t pid, tid, ns_tid;
	const char *comm;
};
/* The same for threads: those that were there when the recording began and, behind a run that went to its end, those
 * that it met with spans. */
bool xsp_trace_thread(const struct xsp_trace *trace, size_t index, struct xsp_trace_thread *thread);

/* ---- what a run tells of ---- */

enum xsp_trace_span_flag {
	XSP_TRACE_UNFINISHED = 1 << 0, /* open when the recording ended */
	XSP_TRACE_UNWOUND = 1 << 1, /* left by an exception or longjmp */
	XSP_TRACE_END_NOT_SEEN = 1 << 2, /* end_ns is when it was known to be gone */
	XSP_TRACE_NO_DURATION = 1 << 3, /* entry and exit are one instruction */
	XSP_TRACE_CUT = 1 << 4, /* it goes beyond the part that was asked for */
};
#define XSP_TRACE_UNKNOWN UINT64_MAX

/* A call of a function or operator, or a named range. Children come before their parents. */
struct xsp_trace_span {
	size_t size;
	uint64_t id, parent; /* parent 0: none */
	uint64_t start_ns, end_ns;
	uint64_t self_ns; /* without direct children; of XSP_TRACE_NO_DURATION it is 0 */
	uint64_t cpu_ns; /* of its time, on a CPU; XSP_TRACE_UNKNOWN without --waits, and of
			    XSP_TRACE_NO_DURATION */
	uint64_t probe_ns; /* of its time, estimated, in probes */
	uint32_t pid, tid;
	uint32_t row; /* 0: the thread's own stack; 1..: others (fibers, signal stacks) */
	uint32_t depth; /* ancestors on the same row */
	unsigned flags; /* enum xsp_trace_span_flag */
	const char *name;
	const char *provider; /* "torch", "cuda", "function" ... */
	/* names of the ancestors, outermost first, `depth` of them */
	const char *const *ancestors;
};
/* Has it a duration that may go into a total or a mean? */
static inline bool xsp_trace_span_has_duration(const struct xsp_trace_span *span)
{
	return !(span->flags &
		 (XSP_TRACE_UNFINISHED | XSP_TRACE_END_NOT_SEEN | XSP_TRACE_NO_DURATION));
}

enum xsp_trace_activity_kind {
	XSP_TRACE_KERNEL,
	XSP_TRACE_COPY,
	XSP_TRACE_SET,
	XSP_TRACE_SYNC,
	XSP_TRACE_OTHER,
};
#define XSP_TRACE_NO_STREAM UINT32_MAX

/* What a GPU did. Seconds late, in no order. */
struct xsp_trace_activity {
	size_t size;
	enum xsp_trace_activity_kind kind;
	uint64_t start_ns, end_ns;
	uint32_t pid, device, context, stream;
	uint32_t correlation; /* of the call that caused it; 0: none */
	uint64_t operator_id; /* id of the span of the operator that it belongs to; 0: none */
	uint64_t bytes; /* of copies and sets, else 0 */
	const char *name; /* of kernels, else "" */
};

/* A look at a thread on its CPU (--sample). */
struct xsp_trace_sample {
	size_t size;
	uint64_t time_ns;
	uint64_t period_ns; /* it stands for so much of the thread's time on a CPU */
	uint32_t pid, tid;
	const char *const *stack; /* outermost first: spans, functions of Python and native ones */
	size_t depth;
};

/* A thread went off its CPU (--waits), was woken, and ran again. Those below the recording's least are not told. */
struct xsp_trace_wait {
	size_t size;
	uint64_t left_ns, woken_ns, back_ns;
	uint32_t pid, tid;
	uint32_t owner, waker; /* threads: who held the lock, who woke it; 0: not known */
	const char *
		reason; /* until it was woken: "lock", "disk", "sleep" ...; "runnable": it was not waiting */
	const char *place; /* line of the program: "train.py:21 train_step"; NULL: not known */
};

/* An amount that changes with time: memory, and what the program tells (XSP_RECORD_VALUE, counters of ITT, payloads of NVTX). */
struct xsp_trace_counter {
	size_t size;
	uint64_t time_ns;
	uint32_t pid;
	const char *name; /* "resident memory", "anonymous memory", or the program's */
	double value; /* bytes of memory; of the program's any, also infinite or not a number */
	uint32_t tid; /* who told it; 0: memory, which is the process's */
};

/* Each returns 0 to go on; anything else ends the run, which returns it. NULL: not told. */
struct xsp_trace_callbacks {
	size_t size; /* sizeof(struct xsp_trace_callbacks) */
	void *ctx;
	int (*span)(void *ctx, const struct xsp_trace_span *span);
	int (*activity)(void *ctx, const struct xsp_trace_activity *activity);
	int (*sample)(void *ctx, const struct xsp_trace_sample *sample);
	int (*wait)(void *ctx, const struct xsp_trace_wait *wait);
	int (*counter)(void *ctx, const struct xsp_trace_counter *counter);
};

/* A part of it. All 0: all of it. */
struct xsp_trace_part {
	size_t size; /* sizeof(struct xsp_trace_part) */
	uint64_t from_ns, to_ns; /* what goes beyond them is told up to them; to_ns 0: to the end */
	uint64_t min_duration_ns;
	uint64_t max_depth; /* 0: any */
};

/*
 * `part` may be NULL. 0; what a callback returned; -EINVAL: no callbacks, or a size that is none; -EBUSY: from a callback of this
 * trace, which is being run (nor is it to be closed there); -ENOMEM, -EIO ...: it cannot be read. `why` (may be NULL) gets one line
 * of at most `size` bytes whenever it is not 0: of what a callback returned "stopped by a callback", which tells a negative number of
 * its own from ours. What of a capture is damaged is left out: xsp_trace_is_complete().
 */
int xsp_trace_run(struct xsp_trace *trace, const struct xsp_trace_callbacks *callbacks,
		  const struct xsp_trace_part *part, char *why, size_t size);

/* ---- what is slow, and why ---- */

enum xsp_trace_format { XSP_TRACE_TEXT, XSP_TRACE_JSON, XSP_TRACE_CSV };
/*
 * Writes what `xsptrace analyze FILE --format ... --top all` does: findings, and the figures that prove them
 * (docs/analyze.md; of the JSON `xsptrace analyze --json-schema` is the schema). `part` may be NULL. `to` stays the caller's, who looks for
 * errors of writing (ferror(3)). 0; -EINVAL: a size that is none, no such format, or no file; others as xsp_trace_run().
 */
int xsp_trace_analyze(struct xsp_trace *trace, const struct xsp_trace_part *part,
		      enum xsp_trace_format format, FILE *to, char *why, size_t size);

#ifdef __cplusplus
}
#endif

#endif
