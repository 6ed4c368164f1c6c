/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * timeline_private.h - shared by the parts of the timeline. Words beside DESIGN.md's: a row is a
 * set of open spans that are properly nested in time (a stack, as far as we know). A parked run is
 * a piece of a row that an event at a higher stack pointer has passed over: its spans are gone
 * (exit not seen) or belong to another stack that sleeps (fiber). Until that is known it lies
 * beside the rows.
 */
#ifndef XSP_TIMELINE_PRIVATE_H
#define XSP_TIMELINE_PRIVATE_H

#include "base/arena.h"
#include "base/rows/tally.h"
#include "catalog/allocators.h"
#include "timeline/cut.h"
#include "timeline/listener.h"
#include "timeline/timeline.h"

#define XSP_MAX_RANGE_NAMES (1U << 22)
#define XSP_MAX_LIVE_NAMES (1U << 17) /* for a timeline that runs for ever */

/* A length of time, and the part of it that its thread was off its CPU. */
struct length {
	uint64_t ns, off_ns; /* off_ns: or XSP_OFF_UNKNOWN */
};

struct open_span {
	uint64_t sp;
	/* an event above this limit has left the span: its sp. For a range it is the sp of the
	 * function beneath it, so that limits never rise along a row */
	uint64_t limit;
	uint64_t start_ns;
	uint64_t event_ns; /* for a range: the time of its BEGIN, before it was ordered */
	struct length child; /* the time of closed direct children */
	/* has_same: of closed calls of its name inside, the outermost with a seen end */
	struct length same;
	bool has_same;
	uint64_t probe_ns; /* estimated, of the probes of all closed spans inside */
	uint64_t self_probe_ns; /* the part of direct children */
	uint64_t off_ns; /* its thread's sum when it began: xsp_off_at() */
	uint64_t serial;
	uint32_t probe;
	xsp_name_id name;
	xsp_name_id text; /* see struct xsp_span */
	bool range;
	uint8_t relay; /* a range: enum xsp_relay, how far it was passed on */
	bool passed; /* a range: an exception has landed above its beginning */
	/* windows.c: its function was released; it ends with the last span that is open in it */
	bool let_go;
	const struct xsp_capture_python *python; /* these: see struct xsp_span */
	uint32_t python_first;
	bool python_calls;
	uint32_t place; /* charges.c: see struct xsp_charge */
	uint32_t call; /* 1 + index of the innermost call of its row up to it; row.call_levels */
	bool in_step;
	struct xsp_details *details; /* owned; moves with the span */
};

/* As xsp_span.path. Zero-initialise. */
struct name_path {
	xsp_name_id *ids;
	uint32_t length;
	size_t capacity;
};

struct row {
	struct open_span *spans; /* outermost first */
	xsp_name_id *names; /* names of the same spans */
	size_t count, spans_capacity, names_capacity;
	uint64_t last_ns; /* nothing on this row began or ended later */
	struct length child; /* the time of closed spans with nothing beneath them */
	uint64_t base; /* sp of the last function here with no other around it */
	uint32_t index;
	/* frames.c: names of the open spans and of the functions between them */
	struct name_path path;
	uint32_t *path_ends; /* by level: length of the path with its span */
	size_t ends_capacity;
	size_t path_levels; /* spans that the path has already */
	size_t call_levels; /* charges.c: spans whose `call` is known */
};

struct parked {
	struct open_span *spans;
	xsp_name_id *names; /* names of its ancestors then, and of its spans */
	size_t count, prefix, spans_capacity, names_capacity;
	uint64_t park_ns;
	uint64_t park_off_ns; /* xsp_off_at() at that time */
	uint64_t parent_serial; /* the innermost ancestor's, if prefix > 0 */
	uint64_t kept_parent; /* id of the innermost one that -e keeps; 0: none */
	struct length parent_child; /* that of the parent (or the row) before this run was parked */
	struct length charged; /* the same with it */
	uint32_t row; /* its row before */
	bool far; /* passed over by more than XSP_FAR */
	bool marked; /* an unwind mark explains it */
	bool homeless; /* an older run has come back to the row: this one cannot */
	bool gone; /* a function whose slot was reused: only a mark is still waited for */
};

struct thread_record {
	struct xsp_timeline_thread thread_info;
	char comm[32];
	uint64_t last_ns; /* when the ended thread with this record was last seen */
};

/* Which exit a thread's last event was. */
enum last_exit {
	EXIT_NONE = 0, /* no exit, or not with its exact stack pointer */
	EXIT_PAIRED,
	EXIT_ORPHAN,
	EXIT_BEGUN_BEFORE,
};

struct thread {
	uint32_t tid, pid;
	uint32_t record;
	uint32_t position; /* in the list of live threads */
	struct row **rows; /* at least one */
	size_t row_count, row_capacity, used_rows;
	uint32_t current; /* row of the last event */
	struct parked **parked; /* oldest first; those beyond parked_count are spare */
	size_t parked_count, parked_capacity, parked_made;
	uint64_t born_ns; /* nothing on its rows is earlier */
	bool many_stacks; /* a parked run has come back */
	struct xsp_off *off; /* off_cpu.c; NULL: no waits yet */
	size_t windows, let_gos; /* windows.c: those that it has passed */
	/* calls.c, ranges.c */
	/* highest stack pointer of an event since the thread, or the window, began */
	uint64_t top_sp;
	enum last_exit exit;
	uint64_t exit_sp, exit_ns;
	uint32_t exit_probe;
	/* 1 + serial of the last range to begin or get a name; 0: one ended since */
	uint64_t relaying;
	/* how far the last range to end was passed on, and how many of those have ended as well */
	uint8_t relayed, relayed_ended;
	uint64_t relay_sp; /* stack pointer of the event that ended it */
};

/* The end of a range that another thread began. */
struct far_end {
	struct xsp_event end;
	uint64_t begin_ns;
	uint32_t tid;
};

struct xsp_timeline {
	struct xsp_capture_reader *reader;
	const struct xsp_capture_probe *probes;
	size_t probe_count;
	bool stacks; /* some spans have them */
	const xsp_name_id *path; /* the path of the span that is handed on next, or NULL */
	uint32_t path_length;
	bool live; /* the capture is being written */
	bool lossy; /* the capture reports lost events */
	uint64_t start_ns, end_ns;
	uint64_t min_duration_ns, max_depth; /* the recording's limits for spans; 0: all */

	const struct xsp_timeline_sink *sinks;
	size_t sink_count;
	bool steps_wanted; /* by a sink, and there may be some */
	bool steps_end; /* and only their ends are marked */
	bool places_wanted; /* of samples: by a sink of charges */
	bool charges_wanted; /* the same, and the capture has waits */
	struct xsp_timeline_counts counts;
	uint64_t serial;

	struct far_end *far_ends; /* ranges.c: of ranges that are still open */
	size_t far_end_count, far_end_capacity;

	/* names.c */
	struct xsp_arena texts;
	const char **names; /* NULL: a range's name that has not come */
	size_t name_count, name_capacity;
	xsp_name_id *probe_names;
	size_t named_probes;
	struct xsp_u64map probe_texts; /* hash of a probe's name → name id */
	struct xsp_u64map range_names; /* hash → name id */
	bool inlined; /* the capture has names of inlined functions */
	struct xsp_u64map range_texts; /* for ranges with a text: its hash → name id */
	xsp_name_id first_range_name;
	uint64_t *range_hashes; /* of name ids from first_range_name */
	size_t hash_capacity;
	char unresolved[4][40]; /* texts for names that have not come */
	unsigned unresolved_next;

	/* threads.c */
	struct xsp_u64map definitions; /* pid << 32 | tid → index of the capture's thread */
	struct xsp_u64map processes; /* pid → index of the capture's process */
	struct xsp_u64map by_tid; /* tid → index in alive */
	struct xsp_u64map record_of; /* tid → index of its latest record */
	struct thread **alive; /* those from alive_count on are spare */
	size_t alive_count, alive_capacity, alive_made;
	struct thread *last;
	struct thread_record **records;
	size_t record_count, record_capacity;
	struct xsp_timeline_thread *sorted;

	/* cut.c */
	struct xsp_cut cut; /* nothing is cut: 0 and UINT64_MAX */
	bool is_cut;
	bool *probe_left_out; /* by probe, by its own name; NULL: no patterns */
	struct xsp_u64map range_left_out; /* probe << 32 | name of a range → the same */
	xsp_name_id *ancestors; /* the current span's, those that are kept */
	size_t ancestors_capacity;

	const struct xsp_listener *listeners[XSP_LISTENERS_MAX]; /* that take part */
	size_t listener_count;
	/* each its listener's own; NULL: it takes no part */
	const struct xsp_cuda_entry **cuda_probes; /* by probe; NULL: there is none */
	size_t cuda_room, cuda_looked; /* probes that were looked at */
	struct xsp_gpu *gpu;
	struct xsp_memory *memory;
	const struct xsp_allocator_function **allocators; /* by probe */
	struct xsp_memory_events *memory_events;
	struct xsp_values *values;
	struct xsp_kernels *kernels;
	struct xsp_waits *waits;
	/* before.c: sums of threads before this part of the recording, and when it began; 0: it is no later part */
	XSP_TALLY(struct xsp_event_times) before;
	uint64_t part_ns;
	struct xsp_peers *peers; /* NULL: none so far */
	uint64_t waits_until_ns; /* xsp_timeline_waits_until_ns() */
	struct xsp_samples *samples;
	struct xsp_charges *charges;
	struct xsp_steps_of_timeline *steps;

	/* python.c */
	const struct xsp_capture_python *pythons;
	struct xsp_u64map python_index; /* id of a stack → index in pythons */
	struct xsp_u64map python_names; /* hash of a frame's name → id of the shown text */

	struct xsp_others *others; /* others.c; NULL: there are none */

	/* windows.c */
	const struct xsp_capture_window *windows;
	const struct xsp_capture_let_go *let_gos;
	size_t window_count, let_go_count;
	bool scheduled; /* of --windows: between them not even waits were recorded */
	uint64_t *gone_ns; /* by probe: when it was released; NULL: none was */
};

static inline uint64_t xsp_timeline_address_hash(const struct xsp_timeline *t,
						 enum xsp_address_name what, uint32_t pid,
						 uint64_t address)
{
	return xsp_address_name_hash(xsp_capture_address_key(t->reader), what, pid, address);
}

/* begin() functions may be called again when more has come. */

/* ---- names.c ---- */

int xsp_names_begin(struct xsp_timeline *t, struct xsp_error *err);
void xsp_names_free(struct xsp_timeline *t);
/* The id of a range's name, new if the hash is. */
int xsp_names_of_hash(struct xsp_timeline *t, uint64_t hash, xsp_name_id *out);
/* The text of a hash, or NULL: it has not come. */
const char *xsp_names_text(const struct xsp_timeline *t, uint64_t hash);
/* The id of a text that is made here. */
int xsp_names_of_text(struct xsp_timeline *t, const char *text, size_t length, xsp_name_id *out);
int xsp_names_add(struct xsp_timeline *t, uint64_t hash, const char *text, size_t length, bool cut);
uint64_t xsp_names_unresolved(const struct xsp_timeline *t);

/* ---- threads.c ---- */

int xsp_threads_begin(struct xsp_timeline *t);
void xsp_threads_free(struct xsp_timeline *t);
int xsp_threads_get(struct xsp_timeline *t, const struct xsp_event *e, struct thread **out);
int xsp_threads_task(struct xsp_timeline *t, const struct xsp_event *e);
/* Drops ended threads, except those in `times`. 0 or -ENOMEM. */
int xsp_threads_forget(struct xsp_timeline *t);
/* Closes the open spans of every thread, at the end of the run. */
int xsp_threads_end(struct xsp_timeline *t, uint64_t end_ns);

/* Root tid of a thread by its process's numbers; false: not seen yet. */
bool xsp_threads_by_ns(const struct xsp_timeline *t, uint32_t pid, uint32_t ns_tid, uint32_t *out);

/* The outputs' data of the event's thread, known to live or not; `ended`: it lives no more. */
int xsp_threads_info(struct xsp_timeline *t, const struct xsp_event *e, bool ended,
		     const struct xsp_timeline_thread **out);

/* Ends the thread if nothing is open on its stacks: 1; 0: something is; or a negative errno. */
int xsp_threads_end_idle(struct xsp_timeline *t, uint32_t tid, uint64_t now);

/* ---- others.c ---- */

#define XSP_OTHERS_ROW 1
#define XSP_OTHERS_DROP 2
/* Is the thread one too many? XSP_OTHERS_ROW: *e is now a copy with other numbers, and done() must
 * come after it; XSP_OTHERS_DROP; 0: it is not; or a negative errno. */
int xsp_others_event(struct xsp_timeline *t, const struct xsp_event **e);
int xsp_others_done(struct xsp_timeline *t, const struct xsp_event *e);
void xsp_others_free(struct xsp_timeline *t);

/* ---- cut.c ---- */

/* Why something is dropped: bits. */
enum xsp_left_out {
	XSP_LEFT_OUT_TIME = 1 << 0,
	XSP_LEFT_OUT_THREAD = 1 << 1,
	XSP_LEFT_OUT_NAME = 1 << 2,
	XSP_LEFT_OUT_SHORT = 1 << 3,
	XSP_LEFT_OUT_DEEP = 1 << 4,
};
/* Marks names of open spans with XSP_LEFT_OUT_NAME. */
#define XSP_NAME_LEFT_OUT (1U << 30)

void xsp_cut_free(struct xsp_timeline *t);
/* The name of an open span, with that bit. */
xsp_name_id xsp_cut_name(struct xsp_timeline *t, uint32_t probe, xsp_name_id name);
/* A call that only CUPTI saw. */
bool xsp_cut_leaves_call_out(const struct xsp_timeline *t, const char *name);
/* Bits of a span with these ancestors; of a stretch of time; of a thread. */
unsigned xsp_cut_span(struct xsp_timeline *t, const struct open_span *s, uint64_t duration,
		      const xsp_name_id *ancestors, size_t depth);
unsigned xsp_cut_time(const struct xsp_timeline *t, uint64_t start_ns, uint64_t end_ns);
unsigned xsp_cut_thread(const struct xsp_timeline *t, uint32_t tid);
/* Replaces ancestors by their plain names, for patterns; `kept_only`: keeps only kept ones. 0 or
 * -ENOMEM. */
int xsp_cut_ancestors(struct xsp_timeline *t, struct xsp_span *span, bool kept_only);
/* Does the cut choose calls by thread or name? It then drops what belongs to none of them. */
bool xsp_cut_chooses(const struct xsp_timeline *t);

/* ---- notify.c: hands the kept part to the sinks; each 0 or a negative errno ---- */

int xsp_notify_step(const struct xsp_timeline *t, const struct xsp_step *step);
/* Comes before the span itself; not for a dropped one. */
int xsp_notify_in_step(const struct xsp_timeline *t, const struct xsp_span *span, uint32_t thread);
int xsp_notify_span(struct xsp_timeline *t, const struct xsp_span *span);
int xsp_notify_call(const struct xsp_timeline *t, const struct xsp_gpu_call *call);
/* *reported: was it? */
int xsp_notify_activity(const struct xsp_timeline *t, const struct xsp_gpu_activity *a,
			bool *reported);
int xsp_notify_memory(const struct xsp_timeline *t, const struct xsp_memory_event *e);
int xsp_notify_process_memory(const struct xsp_timeline *t, const struct xsp_process_memory_at *at);
/* `probe`: the value's, for patterns. */
int xsp_notify_value(struct xsp_timeline *t, uint32_t probe, const struct xsp_value *v);
int xsp_notify_charge(const struct xsp_timeline *t, const struct xsp_charge *c);
int xsp_notify_sample(const struct xsp_timeline *t, const struct xsp_sample *s);
/* *w becomes the kept part, with XSP_WAIT_BEFORE and XSP_WAIT_OPEN if it reaches beyond. */
int xsp_notify_wait(const struct xsp_timeline *t, struct xsp_wait *w, bool *reported);
/* ---- before.c: a part of a recording that is read without those before it ---- */

/* The sums of a thread are those of the part: *e may become *own. 1: they are those before it, and of no other use; 0, or
 * -ENOMEM. */
int xsp_times_of_part(struct xsp_timeline *t, const struct xsp_event **e,
		      struct xsp_event_times *own);
/* A wait that began before the part. */
void xsp_wait_of_part(const struct xsp_timeline *t, struct xsp_wait *w);

/* ---- waits.c ---- */

void xsp_waits_forget(struct xsp_timeline *t); /* the times that came */

/* ---- charges.c: only if t->charges_wanted; each 0 or a negative errno ---- */

/* The thread ran until `ns`, in what is open now; the hit there costs probe_ns. */
int xsp_charge_until(struct xsp_timeline *t, const struct thread *th, uint64_t ns,
		     uint64_t probe_ns);
/* It waited. `w`: its part in the cut; back_ns: when it ran again. */
int xsp_charge_wait(struct xsp_timeline *t, const struct thread *th, const struct xsp_wait *w,
		    uint64_t back_ns);
/* The innermost span that a charge names, or NULL. Ranges name parts of the program: if there are samples, they say what
 * ran there. */
const struct open_span *xsp_charge_call(const struct xsp_timeline *t, struct row *row);
/* A span opens on the row: fills in its place. Also without charges. */
int xsp_charge_place(struct xsp_timeline *t, const struct row *row, struct open_span *s);

/* ---- off_cpu.c ---- */

/* How long the thread was off its CPU before `ns`, since it is watched. */
#define XSP_OFF_UNKNOWN UINT64_MAX
uint64_t xsp_off_at(const struct xsp_timeline *t, const struct thread *th, uint64_t ns);
/* The same before the beginning (0) and the end (1) of the cut, as far as waits are known. */
uint64_t xsp_off_at_cut(const struct xsp_timeline *t, const struct thread *th, int end);
/* 0 or -ENOMEM. */
/* What it waits for at one descriptor. 0 or -ENOMEM. */
int xsp_wait_peer(struct xsp_timeline *t, const struct xsp_event_wait *e, struct xsp_wait *w);
void xsp_peers_free(struct xsp_timeline *t);
int xsp_off_add(const struct xsp_timeline *t, struct thread *th, const struct xsp_event_wait *e);
void xsp_off_forget(struct thread *th);

/* ---- waits/place.c ---- */

/* Fills in `inside` and `place`. 0 or -ENOMEM. */
int xsp_wait_place(struct xsp_timeline *t, struct xsp_wait *w);
/* The same by a Python stack alone, which is not empty. */
int xsp_python_place(struct xsp_timeline *t, const struct xsp_capture_python *stack,
		     uint32_t *inside, uint32_t *place, struct xsp_own_callers *callers);

/* ---- memory.c ---- */

/* Adds an allocation, or with bytes -1 a free; in any order within seconds. Only if
 * xsp_listener_memory takes part. 0 or -ENOMEM. */
int xsp_memory_put(struct xsp_timeline *t, const struct xsp_memory_event *e);
/* The process has become another program: all that it had is gone. */
int xsp_memory_exec(struct xsp_timeline *t, const struct xsp_event *e);
/* Allocations of --memory without room. */
uint64_t xsp_memory_untracked(const struct xsp_timeline *t);

/* ---- gpu/cuda_calls.c ---- */

/* Is it known of a call of CUDA's API that it did what it was called for? */
bool xsp_cuda_succeeded(const struct xsp_details *d);
/* What it wrote to where its argument points: a handle, an address. False: that is not known. */
bool xsp_cuda_written(const struct xsp_details *d, uint64_t *out);

/* ---- windows.c ---- */

/* 0 or -ENOMEM. */
int xsp_windows_begin(struct xsp_timeline *t);
/* The thread does something at `now`: closes what ended with a window or a release. 0 or a negative
 * errno. */
int xsp_windows_pass(struct xsp_timeline *t, struct thread *th, uint64_t now);
/* Was its function released before? Some hits come during the release. */
bool xsp_windows_leave_out(const struct xsp_timeline *t, const struct xsp_event *e);

/* ---- rows.c ---- */

/* The innermost open span that -e keeps, or NULL. */
const struct open_span *xsp_row_innermost_kept(const struct row *row);

/* ---- frames.c ---- */

/* Makes row->path the path to the span `s` of process pid at depth `depth` of the row. This and the
 * next ones: 0 or -ENOMEM. */
int xsp_path_to(struct xsp_timeline *t, uint32_t pid, struct row *row, size_t depth,
		const struct open_span *s);
/* The functions that the compiler inlined at that address, the outermost first: how many. */
size_t xsp_inlined_at(const struct xsp_timeline *t, enum xsp_address_name what, uint32_t pid,
		      uint64_t address, xsp_name_id ids[XSP_INLINED_DEPTH]);
/* So many of the innermost of `count` functions there are helpers: put into several functions, so that
 * a place is better named by the one around them. */
size_t xsp_inlined_helpers(const struct xsp_timeline *t, enum xsp_address_name what, uint32_t pid,
			   uint64_t address, size_t count);
/* Which of these functions at an address, the innermost first and `helpers` to begin with, is the
 * program's own place, if the file is its own; `count`: none is. */
size_t xsp_own_place(const struct xsp_timeline *t, const xsp_name_id *ids, size_t count,
		     size_t helpers);
/* Adds those of them that are the program's own, from the one at `from` on. */
void xsp_own_callers_add(const struct xsp_timeline *t, const xsp_name_id *ids, size_t count,
			 size_t from, struct xsp_own_callers *callers);
/* Append functions to a path, given innermost first: Python frames; return addresses; functions by
 * name. `own`: the function of the return address after these is in the path already, but not what
 * is inlined there. */
int xsp_path_push_python(struct xsp_timeline *t, struct name_path *path,
			 const struct xsp_capture_python_frame *frames, uint32_t count);
int xsp_path_push_frames(struct xsp_timeline *t, struct name_path *path, uint32_t pid,
			 const uint64_t *frames, size_t count, bool own);
int xsp_path_push(struct name_path *path, const xsp_name_id *functions, size_t count);
/* Is the file of that address of a stack, or of a sample, the program's own? False: nobody knows. */
bool xsp_frame_is_own(const struct xsp_timeline *t, uint32_t pid, uint64_t address);

/* The section STACK of a span, or of a sample in a span's form. */
struct stack_frames {
	const uint64_t *frames; /* XSP_FRAME_*, innermost first */
	size_t count;
	bool more; /* further out */
};
struct stack_frames xsp_stack_frames_of(const struct open_span *s);
/* How many of them, from the innermost on, lie between it and the span around it (NULL: none). `own`:
 * the next one returns into that span's function. */
struct frames_between {
	size_t count;
	bool own;
};
struct frames_between xsp_frames_between(const struct xsp_timeline *t, uint32_t pid,
					 const struct open_span *s, const struct open_span *around);

/* The kernel's own functions in it, the innermost first: how many. */
size_t xsp_kernel_functions(const struct xsp_timeline *t, const struct xsp_details *details,
			    xsp_name_id ids[XSP_KERNEL_FRAMES]);

/* ---- python.c ---- */

int xsp_python_begin(struct xsp_timeline *t);
void xsp_python_free(struct xsp_timeline *t);
/* How many frames of the span's Python stack lie between it and the spans around it, the `depth`
 * outermost ones of the row; *frames: the innermost of them. */
uint32_t xsp_python_between(const struct xsp_timeline *t, const struct row *row, size_t depth,
			    const struct open_span *s,
			    const struct xsp_capture_python_frame **frames);
/* The span begins inside those on the row: notes which of Python's functions called it. */
void xsp_python_note(const struct xsp_timeline *t, const struct row *row, struct open_span *s);
/* The first of these frames (the innermost first) that is the program's own, not the interpreter's
 * nor a package's; `count`: none is. */
uint32_t xsp_python_own(const struct xsp_timeline *t, const struct xsp_capture_python_frame *frames,
			uint32_t count);
/* The own ones around the frame at `own`. 0 or -ENOMEM. */
int xsp_python_callers(struct xsp_timeline *t, const struct xsp_capture_python *stack, uint32_t own,
		       struct xsp_own_callers *callers);
/* The frame's shown text. 0 or -ENOMEM. */
int xsp_python_name(struct xsp_timeline *t, const struct xsp_capture_python_frame *frame,
		    xsp_name_id *out);

/* ---- spans/: the rules ---- */

int xsp_pair(struct xsp_timeline *t, struct thread *th, const struct xsp_event *e);
/* Its probe's own name, or another one if the event has a name_hash. 0 or -ENOMEM. */
int xsp_event_name(struct xsp_timeline *t, const struct xsp_event *e, xsp_name_id *name);
/* xsp_thread_close(), and what the last event left open. */
int xsp_pair_close(struct xsp_timeline *t, struct thread *th, uint64_t end_ns, uint32_t flags);
/* The thread has come to `now`: closes its ranges that other threads have ended. 0 or a negative
 * errno. */
int xsp_pair_far_ends(struct xsp_timeline *t, struct thread *th, uint64_t now);

/* xsp_timeline_clip() */
static inline uint64_t xsp_cut_clip(const struct xsp_timeline *t, uint64_t ns)
{
	return ns < t->cut.from_ns ? t->cut.from_ns : ns > t->cut.to_ns ? t->cut.to_ns : ns;
}

static inline uint64_t xsp_max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

#endif
