/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * timeline.h - events become spans: pairing by stack pointer, nesting, self time.
 *
 * Streaming: memory is bounded by open spans and names, not by the length of the run.
 */
#ifndef XSP_TIMELINE_H
#define XSP_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "capture/capture.h"
#include "timeline/charge.h"
#include "timeline/cut.h"
#include "timeline/details.h"
#include "timeline/gpu.h"
#include "timeline/memory.h"
#include "timeline/samples.h"
#include "timeline/steps.h"
#include "timeline/waits.h"

/* Names of spans: a probe's name, or the text of a range. Ids are dense from 0. */
typedef uint32_t xsp_name_id;

enum xsp_span_flag {
	XSP_SPAN_UNFINISHED = 1 << 0, /* open when the recording ended (finished: false) */
	XSP_SPAN_UNWOUND = 1 << 1, /* left by an exception or longjmp, not by a return */
	/* its exit was not seen (lost events, incomplete placement); the stack later showed that it
	 * was gone */
	XSP_SPAN_EXIT_LOST = 1 << 2,
	XSP_SPAN_TAIL = 1 << 3, /* left by a tail call */
	XSP_SPAN_POINT = 1 << 4, /* entry and exit are one instruction: no duration was measured */
	/* it reaches beyond the part (timeline/cut.h): start_ns, end_ns and self_ns are of what
	 * lies inside */
	XSP_SPAN_CUT = 1 << 5,
};

#define XSP_PATH_FRAME (1U << 31) /* in xsp_span.path: a native function, not a span */

struct xsp_span {
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC */
	uint64_t self_ns; /* without the time of direct children on the same stack */
	/* estimated time of probes inside: of its own exit, and of spans in it */
	uint64_t probe_ns;
	/* the part of it in self_ns: its own exit, and hits of direct children */
	uint64_t self_probe_ns;
	uint32_t pid, tid; /* root namespace */
	uint32_t row; /* 0: the thread's own stack; 1..: another stack of this thread (fiber, a
		       * sigaltstack above it); rows never hold overlapping spans */
	uint32_t probe;
	xsp_name_id name;
	uint32_t flags; /* enum xsp_span_flag */
	uint32_t depth; /* ancestors open on the same row */
	/* name ids of the ancestors, outermost first, `depth` of them; valid during the call */
	const xsp_name_id *ancestors;
	uint64_t serial; /* unique: counts entries in order */
	uint64_t parent; /* serial + 1 of the innermost ancestor; 0: none */
	/* sections of its events, or NULL; valid during the call, longer with xsp_details_ref */
	struct xsp_details *details;
	/* for a CUDA call: ids of the operator and the user's range around it (0: none) and their
	 * names. A span's id is its serial + 1 */
	uint64_t op, user;
	xsp_name_id op_name, user_name;
	xsp_name_id text; /* 1 + name id of a string argument; 0: none */
	uint64_t outer_ns; /* beginning of the outermost CUDA call around it; 0: none */
	bool call_follows; /* xsp_timeline_sink.call reports it again, with CUPTI's data */
	/* With native stacks (--stacks): the ancestors with the functions between them, outermost
	 * first, and the functions between the last one and the span. Functions' ids have
	 * XSP_PATH_FRAME added. Without stacks NULL. Valid during the call */
	const xsp_name_id *path;
	uint32_t path_length;
	/* With --waits: the span's time during which its thread was on a CPU; XSP_CPU_UNKNOWN if
	 * not known */
	uint64_t cpu_ns;
	uint64_t self_cpu_ns; /* the same of self_ns */
	uint64_t off_start_ns, off_end_ns; /* the thread's own sums; private to the timeline */
	uint64_t child_off_ns; /* the same, of the children */
	/* With --python (timeline/python.h): its stack, or NULL if not known. A range's stack lacks
	 * the innermost frames that only opened the range. And: did a Python function call it,
	 * rather than the span around it? */
	const struct xsp_capture_python *python;
	uint32_t python_first;
	bool python_calls;
	/* in_total: its part of its name's total, which counts recursion once. If its end was not
	 * seen, that is the time of the outermost calls of that name inside it whose ends were
	 * seen. False: another call around it adds it */
	bool in_total;
	uint64_t total_ns, total_cpu_ns; /* its part on a CPU, or XSP_CPU_UNKNOWN */
	uint64_t total_off_ns; /* private to the timeline */
	unsigned left_out; /* enum xsp_left_out of timeline_private.h: dropped; 0: kept */
};
#define XSP_CPU_UNKNOWN UINT64_MAX

/* Was its end seen, and its duration measured? Otherwise it is in no total, no mean and no ranking.
 * A span with XSP_SPAN_CUT adds its part inside the cut to totals, and nothing to means. */
static inline bool xsp_span_has_duration(const struct xsp_span *s)
{
	return !(s->flags & (XSP_SPAN_UNFINISHED | XSP_SPAN_EXIT_LOST | XSP_SPAN_POINT));
}

/* Did only a later event show that it had ended? It may then come after the spans that were around
 * it, which ended at that time. */
static inline bool xsp_span_passed(const struct xsp_span *s)
{
	return (s->flags & (XSP_SPAN_UNWOUND | XSP_SPAN_EXIT_LOST)) != 0;
}

/* Do probes inside it take most of its time, and not the program? */
static inline bool xsp_span_is_mostly_probes(const struct xsp_span *s)
{
	return !(s->flags & XSP_SPAN_POINT) && 2 * s->probe_ns > s->end_ns - s->start_ns;
}

/* A number that the program reports: XSP_RECORD_VALUE, counters and metadata of ITT, payloads of
 * NVTX. */
struct xsp_value {
	uint64_t time_ns;
	uint32_t pid, tid; /* root namespace */
	xsp_name_id name;
	double value; /* any, also infinite or not a number. Integers beyond 2^53 are rounded */
};

/* What a consumer (exporter, summary) gets. NULL members are skipped. Each returns 0 to go on, or a
 * negative errno to end the run. */
struct xsp_timeline_sink {
	void *ctx;
	/* A span has closed: children before parents. End times rise for each (tid, row). Only
	 * spans of dropped stacks come later, when they are known to be gone. */
	int (*span)(void *ctx, const struct xsp_span *span);
	/* Steps (timeline/steps.h), in order for each thread. Before each step come the spans in
	 * it, with their whole times and the index of the thread. */
	int (*step)(void *ctx, const struct xsp_step *step);
	int (*in_step)(void *ctx, const struct xsp_span *span, uint32_t thread);
	/* CUDA calls and what the GPU did (timeline/gpu.h): seconds late, in no order. */
	int (*call)(void *ctx, const struct xsp_gpu_call *call);
	int (*gpu)(void *ctx, const struct xsp_gpu_activity *activity);
	/* Those whose times cannot be true: they are counted, and have no times. */
	int (*untimed)(void *ctx, const struct xsp_gpu_activity *activity);
	/* Allocations, in order of time (timeline/memory.h). */
	int (*memory)(void *ctx, const struct xsp_memory_event *event);
	/* Memory of processes, in order for each. */
	int (*process_memory)(void *ctx, const struct xsp_process_memory_at *at);
	/* --waits (timeline/waits.h), as each ends: in order for each thread, before the spans
	 * around it. */
	int (*wait)(void *ctx, const struct xsp_wait *wait);
	/* Every moment of a thread (timeline/charge.h), in order for each. */
	int (*charge)(void *ctx, const struct xsp_charge *charge);
	/* --sample (timeline/samples.h), in order for each thread. */
	int (*sample)(void *ctx, const struct xsp_sample *sample);
	/* Values that the program reports, in order for each thread. */
	int (*value)(void *ctx, const struct xsp_value *value);
};

struct xsp_timeline_counts {
	uint64_t entries, exits, spans, unfinished, unwound, exit_lost;
	uint64_t orphan_exits; /* exits and ends whose entry was not seen */
	/* the part of them that began before their thread, or anything, was watched */
	uint64_t begun_before;
	uint64_t stack_switches, points;
	/* recorded, but shorter than --min-duration or deeper than --max-depth: dropped; their time
	 * belongs to what is around them */
	uint64_t filtered;
	uint64_t cut; /* dropped by the cut, and in no other count */
	uint64_t clipped; /* how many of `spans` have XSP_SPAN_CUT */
	uint64_t relayed; /* ranges that were shown already, in no other count: catalog/relay.h */
	uint64_t names_unresolved; /* ranges whose name never arrived */
	uint64_t values; /* handed on */
	uint64_t values_unread; /* values that were not in memory, or of no known type */
	uint64_t other_threads; /* timeline/others.h: how often a thread had one of their rows */
	uint64_t other_dropped; /* events of threads for which none was left */
};

struct xsp_timeline;

int xsp_timeline_new(struct xsp_capture_reader *r, struct xsp_timeline **out,
		     struct xsp_error *err);
void xsp_timeline_free(struct xsp_timeline *t);
const struct xsp_capture_reader *xsp_timeline_reader(const struct xsp_timeline *t);

/* Reads all events of the capture once and calls every sink. */
int xsp_timeline_run(struct xsp_timeline *t, const struct xsp_timeline_sink *sinks, size_t count,
		     struct xsp_error *err);

/*
 * A capture that is still being written: follow() reads what has been added, and keeps open spans
 * open. Only waits take part as listeners: no GPU, no samples, no stacks. forget() drops
 * threads' times that have been read, and ended threads; without it both grow.
 */
int xsp_timeline_new_live(struct xsp_capture_reader *r, struct xsp_timeline **out,
			  struct xsp_error *err);
int xsp_timeline_follow(struct xsp_timeline *t, const struct xsp_timeline_sink *sinks, size_t count,
			struct xsp_error *err);
int xsp_timeline_forget(struct xsp_timeline *t); /* 0 or -ENOMEM */

/* Open spans on one stack of a living thread, without those that were open when a window ended.
 * Valid during the call. */
struct xsp_open_spans {
	const struct xsp_timeline_thread *thread;
	bool current; /* the stack that the thread was on last */
	const xsp_name_id *names; /* outermost first */
	size_t count; /* may be 0 */
	bool in_cuda; /* the innermost is a CUDA call */
	const void *spans; /* private to the timeline */
};
/* CLOCK_MONOTONIC; 0: its function was released, so nobody knows how it ended. */
uint64_t xsp_timeline_open_since(const struct xsp_timeline *t, const struct xsp_open_spans *open,
				 size_t index);
void xsp_timeline_open(const struct xsp_timeline *t,
		       void (*fn)(void *ctx, const struct xsp_open_spans *open), void *ctx);

/* Probe names are valid from new() on; the run adds range names. Raw bytes from the target,
 * zero-terminated: escape them on output. */
const char *xsp_timeline_name(const struct xsp_timeline *t, xsp_name_id id);
/* The function that a stack's address returns into. "": it is no return address, and the stack ends
 * there. NULL: the capture lacks its name. */
const char *xsp_timeline_frame(const struct xsp_timeline *t, uint32_t pid, uint64_t address);
/* All that stand for that address, the innermost first: the functions that the compiler inlined there, and then the
 * one around them, which is that function. How many; 0: as "" or NULL above. */
#define XSP_FRAME_FUNCTIONS (XSP_INLINED_DEPTH + 1)
size_t xsp_timeline_functions(const struct xsp_timeline *t, uint32_t pid, uint64_t address,
			      xsp_name_id ids[XSP_FRAME_FUNCTIONS]);
size_t xsp_timeline_name_count(const struct xsp_timeline *t);
/* Was all recorded between the two, without a pause of --max-overhead? */
bool xsp_timeline_recorded(const struct xsp_timeline *t, uint64_t from_ns, uint64_t to_ns);
/* How much of it was recorded. */
uint64_t xsp_timeline_recorded_between(const struct xsp_timeline *t, uint64_t from_ns,
				       uint64_t to_ns);
const struct xsp_timeline_counts *xsp_timeline_counts(const struct xsp_timeline *t);

struct xsp_timeline_thread {
	uint32_t pid, tid; /* root namespace */
	uint32_t ns_pid, ns_tid; /* what outputs show */
	uint32_t rows; /* 1 + highest row used */
	bool has_spans;
	const char *comm; /* last known name */
};
/* Threads with spans, complete after run(). Sorted by pid, tid. */
size_t xsp_timeline_threads(const struct xsp_timeline *t,
			    const struct xsp_timeline_thread **threads);
/* The same for one thread, during the run too; NULL if never seen. */
const struct xsp_timeline_thread *xsp_timeline_thread(const struct xsp_timeline *t, uint32_t tid);

#endif
