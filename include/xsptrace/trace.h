/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace.h - libxsptrace: reads captures of xsptrace from a C or C++ program. `pkg-config --cflags
 * --libs xsptrace`.
 *
 * Open a trace, then run it. In one pass, the library calls back for each span, call of
 * CUDA's API, activity of a GPU, sample, wait and amount of memory, once it is over. Memory
 * does not grow with the length of the capture. A trace may be run again. Neither root nor anything
 * of the recorded process is needed.
 *
 * Times are ns of CLOCK_MONOTONIC of the recorded machine. Names are raw bytes of the recorded
 * program, zero-terminated, in no known encoding: escape them before you show them. What a record
 * points to is valid during its callback.
 *
 * Structs grow only at their ends. `size` says how much of one the caller knows: up to the end of
 * one of its members. A caller built with a later version may pass more than this one knows (up to
 * 4096); the rest is ignored. Functions return 0 or a negative errno unless stated otherwise. Only
 * one thread at a time may use a trace.
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
 * Opens a capture, or a Chrome trace (.json, .json.gz: of torch.profiler or xsptrace), which is
 * first converted into a file without a name.
 * -ENOENT, -EACCES ...: the file cannot be opened; -EILSEQ: it is neither; -ENODATA: it is empty,
 * or truncated in its first bytes; -EPROTONOSUPPORT: a capture of another version; -EINVAL: not a
 * regular file; -ENOSPC ...: no room in $TMPDIR for the conversion; -ENOMEM.
 * `why` (may be NULL) then gets one line of at most `size` bytes that explains it. A truncated
 * capture is opened, and read as far as it goes (xsp_trace_is_complete).
 */
int xsp_trace_open(const char *path, struct xsp_trace **trace, char *why, size_t size);
void xsp_trace_close(struct xsp_trace *trace); /* NULL is allowed */

/* The recorded time, from begin to end, and for how long of it everything was on. Each pointer may
 * be NULL. */
void xsp_trace_window(const struct xsp_trace *trace, uint64_t *start_ns, uint64_t *end_ns,
		      uint64_t *recorded_ns);
/* The same moment in ns since 1970 UTC. */
uint64_t xsp_trace_realtime(const struct xsp_trace *trace, uint64_t ns);
/* Did the recording end properly, is the whole file intact, and were no events lost? Traces of
 * other profilers do not say what they lost; that counts as 0. */
bool xsp_trace_is_complete(const struct xsp_trace *trace);
uint64_t xsp_trace_events_lost(const struct xsp_trace *trace);
/* "version", "host", "kernel", "arguments" ...: docs/capture-format.md. NULL: it is not there. */
const char *xsp_trace_info(const struct xsp_trace *trace, const char *key);

struct xsp_trace_process {
	uint32_t pid, ns_pid; /* on the machine, and as the process sees itself */
	uint32_t parent; /* 0: unknown */
	const char *comm, *command, *executable;
};
/* Process number `index`, from 0; false: there are no more. Valid until the trace is closed. */
bool xsp_trace_process(const struct xsp_trace *trace, size_t index,
		       struct xsp_trace_process *process);

struct xsp_trace_thread {
	uint32_t pid, tid, ns_tid;
	const char *comm;
};
/* The same for threads: those that existed when the recording began and, after a complete run,
 * those that it met with spans. */
bool xsp_trace_thread(const struct xsp_trace *trace, size_t index, struct xsp_trace_thread *thread);

/* ---- what a run reports ---- */

enum xsp_trace_span_flag {
	XSP_TRACE_UNFINISHED = 1 << 0, /* open when the recording ended */
	XSP_TRACE_UNWOUND = 1 << 1, /* left by an exception or longjmp */
	XSP_TRACE_END_NOT_SEEN = 1 << 2, /* end_ns is when it was known to be gone */
	XSP_TRACE_NO_DURATION = 1 << 3, /* entry and exit are one instruction */
	XSP_TRACE_CUT = 1 << 4, /* it goes beyond the range that was asked for */
};
#define XSP_TRACE_UNKNOWN UINT64_MAX

/* A call of a function or operator, or a named range. Children come before their parents. */
struct xsp_trace_span {
	size_t size;
	uint64_t id, parent; /* parent 0: none */
	uint64_t start_ns, end_ns;
	uint64_t self_ns; /* without direct children; 0 with XSP_TRACE_NO_DURATION */
	/* time on a CPU; XSP_TRACE_UNKNOWN without --waits, or with XSP_TRACE_NO_DURATION */
	uint64_t cpu_ns;
	uint64_t probe_ns; /* estimated time in probes */
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

/* What a GPU did. Reported seconds late, in no order. */
struct xsp_trace_activity {
	size_t size;
	enum xsp_trace_activity_kind kind;
	uint64_t start_ns, end_ns;
	uint32_t pid, device, context, stream;
	uint32_t correlation; /* of the call that caused it; 0: none */
	uint64_t operator_id; /* id of the span of the operator that started it; 0: none */
	uint64_t bytes; /* of copies and sets, else 0 */
	const char *name; /* of kernels, else "" */
};

/* A look at a thread on its CPU (--sample). */
struct xsp_trace_sample {
	size_t size;
	uint64_t time_ns;
	uint64_t period_ns; /* the time on a CPU that it stands for */
	uint32_t pid, tid;
	const char *const *stack; /* outermost first: spans, Python functions and native ones */
	size_t depth;
};

/* A thread left its CPU (--waits), was woken, and ran again. Waits below the minimum of the
 * recording are not reported. */
struct xsp_trace_wait {
	size_t size;
	uint64_t left_ns, woken_ns, back_ns;
	uint32_t pid, tid;
	/* threads: the one that held the lock, the one that woke it; 0: unknown */
	uint32_t owner, waker;
	/* until it was woken: "lock", "disk", "sleep" ...; "runnable": it was not waiting */
	const char *reason;
	const char *place; /* line of the program: "train.py:21 train_step"; NULL: unknown */
};

/* An amount that changes with time: memory, and what the program reports (XSP_RECORD_VALUE,
 * counters of ITT, payloads of NVTX). */
struct xsp_trace_counter {
	size_t size;
	uint64_t time_ns;
	uint32_t pid;
	const char *name; /* "resident memory", "anonymous memory", or the program's */
	/* bytes of memory; the program's may be anything, also infinite or not a number */
	double value;
	uint32_t tid; /* the thread that reported it; 0: memory, which belongs to the process */
};

/* Each returns 0 to go on. Any other value ends the run, which returns it. NULL: not reported. */
struct xsp_trace_callbacks {
	size_t size; /* sizeof(struct xsp_trace_callbacks) */
	void *ctx;
	int (*span)(void *ctx, const struct xsp_trace_span *span);
	int (*activity)(void *ctx, const struct xsp_trace_activity *activity);
	int (*sample)(void *ctx, const struct xsp_trace_sample *sample);
	int (*wait)(void *ctx, const struct xsp_trace_wait *wait);
	int (*counter)(void *ctx, const struct xsp_trace_counter *counter);
};

/* A range of the trace. All 0: all of it. */
struct xsp_trace_part {
	size_t size; /* sizeof(struct xsp_trace_part) */
	/* what goes beyond them is reported up to them; to_ns 0: to the end */
	uint64_t from_ns, to_ns;
	uint64_t min_duration_ns;
	uint64_t max_depth; /* 0: any */
};

/*
 * `part` may be NULL. Returns 0; what a callback returned; -EINVAL: no callbacks, or an invalid
 * size; -EBUSY: called from a callback of this trace (nor may it be closed there); -ENOMEM, -EIO
 * ...: it cannot be read. If not 0, `why` (may be NULL) gets one line of at most `size` bytes. If a
 * callback ended the run, that is "stopped by a callback", so that its negative numbers are not
 * taken for ours. Damaged parts of a capture are not reported: xsp_trace_is_complete().
 */
int xsp_trace_run(struct xsp_trace *trace, const struct xsp_trace_callbacks *callbacks,
		  const struct xsp_trace_part *part, char *why, size_t size);

/* ---- what is slow, and why ---- */

enum xsp_trace_format { XSP_TRACE_TEXT, XSP_TRACE_JSON, XSP_TRACE_CSV };
/*
 * Writes what `xsptrace analyze FILE --format ... --top all` writes: findings, and the figures that
 * prove them (docs/analyze.md; `xsptrace analyze --json-schema` is the schema of the JSON). `part`
 * may be NULL. The caller keeps `to`, and checks it for write errors (ferror(3)). 0; -EINVAL: an
 * invalid size, no such format, or no file; others as in xsp_trace_run().
 */
int xsp_trace_analyze(struct xsp_trace *trace, const struct xsp_trace_part *part,
		      enum xsp_trace_format format, FILE *to, char *why, size_t size);

#ifdef __cplusplus
}
#endif

#endif
