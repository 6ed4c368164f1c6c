/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * capture.h - the capture file `.xspt`: append-only, chunked, checksummed.
 *
 * Layout: docs/capture-format.md. A file is a file header and then chunks, each
 * {magic, type, flags, payload length, crc32 (zlib), sequence number}. Definition chunks
 * (process, thread, module, probe, clock, info) come before the events that use them.
 * A torn tail loses at most its last chunk, and the reader says so.
 */
#ifndef XSP_CAPTURE_H
#define XSP_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/site_costs.h"
#include "base/rows/u64map.h"
#include "xsptrace/event.h"
#include "xsptrace/python.h"

/* ---- what a capture defines; the same structs are written and read ---- */

struct xsp_capture_process {
	uint32_t pid; /* root namespace */
	uint32_t ns_pid; /* as the process sees itself; what outputs show */
	uint32_t parent; /* 0: not known */
	const char *comm, *cmdline, *exe;
	/* What the recording knows of its environment (catalog/job_variables.h), as of its program's beginning:
	 * "NAME=value" lines, or "". The writer takes NULL for "as before". */
	const char *environment;
};

struct xsp_capture_thread {
	uint32_t pid, tid, ns_tid;
	const char *comm;
};

struct xsp_capture_module {
	uint32_t id; /* dense from 0 */
	const char *path; /* as the target sees it */
	const uint8_t *build_id;
	uint32_t build_id_length;
};

/* A mapping of a module in a process (several chunks may follow as libraries come). */
struct xsp_capture_mapping {
	uint32_t pid, module;
	uint64_t start, end, offset;
	uint64_t time_ns;
};

/* What a probe's events are in the trace. */
enum xsp_probe_kind {
	XSP_PROBE_FUNCTION = 0, /* entry/exit of a function, category cpu_op */
	XSP_PROBE_ANNOTATION, /* named ranges, category user_annotation */
	XSP_PROBE_MARK, /* internal: unwind landings, loader notifications */
};

struct xsp_capture_probe {
	uint32_t id; /* dense from 0 */
	uint32_t module; /* UINT32_MAX: none */
	uint64_t addr, size; /* in the module */
	enum xsp_probe_kind kind;
	const char *provider; /* "function", "record_function", "torch", ... */
	const char *symbol; /* mangled; "" if there is none */
	const char *name; /* what outputs show: demangled without parameters, or module+0x... */
	uint32_t entry_cost_ns, exit_cost_ns; /* calibrated price of a hit */
	uint8_t scope; /* enum xsp_scope of catalog/scope.h; below 8 */
	uint8_t relay; /* enum xsp_relay of catalog/relay.h; below 4 */
	bool nests; /* an END is that of the thread's innermost range, wherever it is called from */
	bool exit_complete; /* placement covers every way out */
};

struct xsp_capture_clock {
	uint64_t monotonic_ns, realtime_ns; /* of one moment */
	uint64_t uncertainty_ns; /* half the distance of the two monotonic reads around it */
};

/* Counters, written now and then and at the end (the last chunk counts). */
struct xsp_capture_stats {
	uint64_t events; /* accepted by the ring buffers */
	uint64_t lost_entries; /* no room in the ring buffer */
	uint64_t lost_exits;
	uint64_t lost_other;
	uint64_t lost_names; /* name strings that could not be read or kept */
	uint64_t filtered; /* dropped by --min-duration, --max-depth, -t, --comm */
	uint64_t silent_hits; /* hits of conditional sites that were no exits */
	/* hits that the kernel skipped: too deep for its return probes, or recursion */
	uint64_t missed_hits;
	uint64_t untracked; /* spans, or what they wrote, not followed because a table was full */
	uint64_t probes_cost_ns; /* estimated time that the target's threads spent in probes */
	uint64_t recorder_cpu_ns; /* CPU time of xsptrace itself */
};

/* Lost events of one probe; written at the end for probes with any. */
struct xsp_capture_lost {
	uint32_t probe, reserved;
	uint64_t entries, exits;
};

/* How to read the sections ARGS and OUTPUTS (xsptrace/args.h) of a PyTorch operator. The writer adds it with the first
 * event that has one. */
struct xsp_capture_operator {
	uint32_t probe;
	uint32_t parts; /* enum xsp_torch_parts */
	uint32_t flavor; /* enum xsp_torch_flavor */
	bool doubtful; /* the names of the arguments are not certain */
	const char *schema; /* without defaults */
};

/* With --max-overhead: a time in which everything was on, if pauses lie between. No span reaches beyond its window. */
struct xsp_capture_window {
	uint64_t start_ns, end_ns;
};

enum xsp_let_go_reason {
	XSP_LET_GO_HOT, /* too many calls */
	XSP_LET_GO_FAMILY, /* before its first call, as others of its pattern cost too much */
	XSP_LET_GO_AHEAD, /* before it was attached to: samples of its first instructions stand for too many calls */
};

/* A probe that was released: nothing of it was recorded from then on. */
struct xsp_capture_let_go {
	uint32_t probe;
	uint32_t why; /* enum xsp_let_go_reason */
	uint64_t time_ns;
	/* under the probe, before; 0: other functions jump to its exits. AHEAD: at least, by samples */
	uint64_t calls_per_second;
};

#define XSP_LET_GO_REASON_MAX 80
/* "55,958 calls/s even under the probe"; `least`: entries were lost. */
const char *xsp_capture_let_go_reason(const struct xsp_capture_let_go *l, bool least,
				      char text[XSP_LET_GO_REASON_MAX]);

/* The text of a named range: XSP_EVENT_NAME. */
struct xsp_capture_name {
	uint64_t hash; /* name_hash of the ranges that bear it */
	const char *text;
	bool cut; /* the name was longer than XSP_NAME_MAX */
};

/* A Python stack: XSP_SECTION_PYTHON. */
struct xsp_capture_python_frame {
	/* hash of a name of three lines: path of the file, line (0: none), function */
	uint64_t name;
	/* of the name of the torch.nn.Module that is called; 0: none, or not known */
	uint64_t module;
};
struct xsp_capture_python {
	uint64_t id;
	uint32_t count;
	uint32_t flags; /* enum xsp_python_flag */
	uint64_t
		call; /* of a reader: hash of the name of what the innermost frame calls; 0: not known */
	const struct xsp_capture_python_frame *frames; /* the innermost first */
};

/* Addresses mean nothing once their process is gone: what an address was. */
enum xsp_address_name {
	XSP_NAME_OF_FUNCTION = 0x57ab, /* a host function that stands for a kernel */
	/* a return address in a stack, or where its thread was. "": no such thing, and the stack ends there */
	XSP_NAME_OF_RETURN = 0x57ac,
	/* where a sample found the thread, two lines: the file's name, the function; "" if not known */
	XSP_NAME_OF_CODE = 0x57ad,
	/* a function of the kernel: its stack's number replaces the process, its depth there the address */
	XSP_NAME_OF_KERNEL = 0x57ae,
	/* the line of a return address that allocates: path of the source, number; no name if not known */
	XSP_NAME_OF_LINE = 0x57af,
	/* of an address in a stack, or of a sample: path of its file. No name if that is the system's (xsp_is_system_file) */
	XSP_NAME_OF_FILE = 0x57b0,
	/* a function that the compiler put around a return address, or around where a sample found the thread, instead of
	 * calling it: xsp_inlined_name_hash() */
	XSP_NAME_OF_INLINED = 0x57b1,
	XSP_NAME_OF_INLINED_CODE = 0x57b2,
};
/* The hash under which the capture has the name of an address in a process. `key`: the capture's own, see below. */
static inline uint64_t xsp_address_name_hash(uint64_t key, enum xsp_address_name what, uint32_t pid,
					     uint64_t address)
{
	uint64_t hash = xsp_u64_mix(address ^ xsp_u64_mix(((uint64_t)pid << 32 | what) ^ key));

	return hash != 0 ? hash : 1;
}
/* The same for the outermost of the functions inlined there (depth 0), or the next ones, until there is no name. */
#define XSP_INLINED_DEPTH 16
static inline uint64_t xsp_inlined_name_hash(uint64_t key, enum xsp_address_name what, uint32_t pid,
					     uint64_t address, unsigned depth)
{
	return xsp_address_name_hash(key, (enum xsp_address_name)(what | depth << 16), pid,
				     address);
}
/* At that depth: how many of the innermost ones are helpers, that is, were put into several functions. No name: none. */
#define XSP_INLINED_HELPERS XSP_INLINED_DEPTH
/* The info of a capture that has such names: of how many addresses they are not known, as there was no time. */
#define XSP_INFO_INLINED "inlined functions"
/* With a process: lines in which the tasks of asyncio waited while its loop did. How many times one was seen to; and in each
 * line how often, the line of Python and what it awaits, with tabs between. */
#define XSP_INFO_AWAITS "awaits"

/* What a recording lacks beside lost events. Each is an info; its text begins with a number, if there is something to
 * count. */
enum xsp_capture_gap {
	XSP_GAP_SITES, /* refused by the kernel */
	XSP_GAP_DROPPED, /* functions without breakpoints at the end */
	XSP_GAP_FUNCTIONS, /* dropped: their code is not the file's */
	XSP_GAP_FILES, /* dropped: not readable, or no probes there */
	XSP_GAP_THREADS, /* without counters */
	XSP_GAP_PYTHON, /* stacks of Python that could not be read, or not to their end */
	XSP_GAP_PYTHON_CODE, /* those, each counted once, with a frame that could not be named */
	XSP_GAP_STACKS, /* native ones of waits, the same */
	XSP_GAP_ALLOCATIONS, /* of the heap: the ends of their calls were not seen */
	XSP_GAP_SLOTS, /* entries of libraries' tables that the agent left to another tool */
	XSP_GAP_SIDE_RECORDS, /* of the kernel, of any process: mapped files, forks, execs, ends */
	/* waits were on by default, and cost too much: not counted, nor are the next two */
	XSP_GAP_WAITS_END,
	XSP_GAP_PYTHON_END, /* the same for lines of Python */
	XSP_GAP_SAMPLES_END, /* the same for samples */
	XSP_GAP_END, /* the recording ended too soon */
	XSP_GAPS,
};
const char *xsp_capture_gap_key(enum xsp_capture_gap gap);
/* Facts (xsp_capture_info) about calls before their probes: children, libraries ... */
#define XSP_CAPTURE_LATES 4
const char *xsp_capture_late_key(size_t index);

/* ---- sections of events ---- */

/* Bytes of the event before its sections, if it has any (XSP_EVENT_SECTIONS). */
size_t xsp_event_fixed_part(const struct xsp_event *e);
/* The event's next section after that one (NULL: its first), with its size checked. NULL: there is none that is well
 * formed. */
const struct xsp_section *xsp_event_next_section(const struct xsp_event *e,
						 const struct xsp_section *after);
/* Bytes after the section's head. */
static inline size_t xsp_section_length(const struct xsp_section *s)
{
	return s->size - sizeof(*s);
}
static inline const void *xsp_section_data(const struct xsp_section *s)
{
	return s + 1;
}

/* ---- writer: one thread at a time ---- */

struct xsp_capture_writer;

/* Begins a capture in an empty file or a pipe and, on success, owns `fd`. Messages call it `display_path`. The caller
 * ignores SIGXFSZ, so that a file-size limit (RLIMIT_FSIZE) fails like a full disk. */
int xsp_capture_create(int fd, const char *display_path, struct xsp_capture_writer **out,
		       struct xsp_error *err);
/* The same for a snapshot of a recording whose addresses are hashed with `key`. */
int xsp_capture_create_keyed(int fd, const char *display_path, uint64_t key,
			     struct xsp_capture_writer **out, struct xsp_error *err);
/* The same without a file. What is written is only kept in memory: capture/recent.h. */
struct xsp_recent;
int xsp_capture_create_recent(struct xsp_recent *recent, struct xsp_capture_writer **out);
/* From now on what is written is kept there as well; borrowed. */
void xsp_capture_keep(struct xsp_capture_writer *w, struct xsp_recent *recent);
/* Hands it the chunks that are not full yet; nothing is written to the file any more. */
void xsp_capture_keep_rest(struct xsp_capture_writer *w);
/* Looks for what no kept event needs any more, some milliseconds at most, and drops it. */
void xsp_capture_prune(const struct xsp_capture_writer *w);

/* What hits cost in the target, by samples in them: times the price of their probes, which readers see corrected. */
struct xsp_capture_prices {
	struct {
		double factor, error; /* error: with 95 % certainty, a part of the factor */
		uint64_t samples;
	} of[2]; /* of hits without single-stepping, and of that */
	struct xsp_price_steps steps;
	double error; /* of all hits' cost, a part of it */
};
/* What a record of an agent costs its thread. It is no hit of a probe, so theirs correct nothing. */
#define XSP_AGENT_RECORD_NS 10U
#define XSP_AGENT_ARGS_NS 60U /* more, with arguments */
#define XSP_AGENT_CALLBACK_NS 40U /* of what PyTorch's callbacks tell, with what these take */
#define XSP_AGENT_PYTHON_NS 150U /* more, with the stack of Python: of 13 frames */
#define XSP_INFO_PRICES "hit costs there"
int xsp_capture_put_prices(struct xsp_capture_writer *w, const struct xsp_capture_prices *p);

/* Free text facts: "host", "kernel", "version", "arguments", "filters", ... */
int xsp_capture_put_info(struct xsp_capture_writer *w, const char *key, const char *value);
int xsp_capture_put_number(struct xsp_capture_writer *w, const char *key, uint64_t value);
int xsp_capture_put_process(struct xsp_capture_writer *w, const struct xsp_capture_process *p);
int xsp_capture_put_thread(struct xsp_capture_writer *w, const struct xsp_capture_thread *t);
int xsp_capture_put_module(struct xsp_capture_writer *w, const struct xsp_capture_module *m);
int xsp_capture_put_mapping(struct xsp_capture_writer *w, const struct xsp_capture_mapping *m);
int xsp_capture_put_probe(struct xsp_capture_writer *w, const struct xsp_capture_probe *p);
int xsp_capture_put_stats(struct xsp_capture_writer *w, const struct xsp_capture_stats *s);
int xsp_capture_put_lost(struct xsp_capture_writer *w, const struct xsp_capture_lost *l);
int xsp_capture_put_operator(struct xsp_capture_writer *w, const struct xsp_capture_operator *o);
int xsp_capture_put_window(struct xsp_capture_writer *w, const struct xsp_capture_window *v);
int xsp_capture_put_let_go(struct xsp_capture_writer *w, const struct xsp_capture_let_go *l);
int xsp_capture_put_python(struct xsp_capture_writer *w, const struct xsp_capture_python *p);
/* The text of a hash; a text longer than XSP_NAME_MAX is cut and marked. */
int xsp_capture_put_name(struct xsp_capture_writer *w, uint64_t hash, const char *text);
/* The text of an address; xsp_capture_writer_key() is the key of its hash. */
uint64_t xsp_capture_writer_key(const struct xsp_capture_writer *w);
int xsp_capture_put_address_name(struct xsp_capture_writer *w, enum xsp_address_name what,
				 uint32_t pid, uint64_t address, const char *text);
/* A record of another capture with the same key, as it is there. */
struct xsp_record;
int xsp_capture_put_record(struct xsp_capture_writer *w, const struct xsp_record *record);
/* Samples both clocks now and writes the pair. The next one writes a known pair. */
int xsp_capture_put_clock(struct xsp_capture_writer *w);
int xsp_capture_put_clock_pair(struct xsp_capture_writer *w, const struct xsp_capture_clock *c);

/*
 * Copies one event (struct xsp_event and its payload), as in the ring buffer, into the open chunk of ring `ring`
 * (0-based, < 64). Writes a full chunk (1 MiB) with its checksum. The hot path: no allocation, no system call but that
 * write. All events of one thread come through one ring, in order. XSP_EVENT_NAME events become definitions
 * (xsp_capture_names), so that readers know a name before any event.
 */
int xsp_capture_put_event(struct xsp_capture_writer *w, unsigned ring, const void *event,
			  size_t size);

/* Writes the open chunks, so that a SIGKILL now loses nothing. Call it about once a second. */
int xsp_capture_flush(struct xsp_capture_writer *w);
/* Flushes, writes the end chunk (with the window's start and end), closes, and frees w, also on error. */
int xsp_capture_finish(struct xsp_capture_writer *w, uint64_t start_ns, uint64_t end_ns,
		       struct xsp_error *err);
/* Closes without an end chunk. NULL is allowed. */
void xsp_capture_abandon(struct xsp_capture_writer *w);
uint64_t xsp_capture_bytes(const struct xsp_capture_writer *w);
/* Events in the file, not in memory. */
uint64_t xsp_capture_written(const struct xsp_capture_writer *w);

/* ---- reader ---- */

struct xsp_capture_reader;

enum xsp_capture_end { XSP_CAPTURE_COMPLETE = 0, XSP_CAPTURE_NO_END, XSP_CAPTURE_TORN };

/*
 * Opens a capture. XSP_STATUS_CAPTURE: it is none, or of a newer major version. One pass over the chunk headers
 * collects definitions, counters and the time window and skips event chunks (readers check them later). Memory:
 * definitions only.
 */
int xsp_capture_open(const char *path, struct xsp_capture_reader **out, struct xsp_error *err);
/* The same for a file without a name: `fd` stays the caller's, messages call it `display_path`. */
int xsp_capture_open_descriptor(int fd, const char *display_path, struct xsp_capture_reader **out,
				struct xsp_error *err);
/* The same; the reader owns `fd` from now on, also when this fails. */
int xsp_capture_adopt(int fd, const char *display_path, struct xsp_capture_reader **out,
		      struct xsp_error *err);
void xsp_capture_close(struct xsp_capture_reader *r);

const char *xsp_capture_info(const struct xsp_capture_reader *r, const char *key); /* or NULL */
/* False: they were not measured. */
bool xsp_capture_prices(const struct xsp_capture_reader *r, struct xsp_capture_prices *out);
/* The number that it begins with; 0 where there is none. */
uint64_t xsp_capture_number(const struct xsp_capture_reader *r, const char *key);
/* Was `what` ("waits", ...) on by default? And when was it dropped before the end (CLOCK_MONOTONIC; 0: never)? */
bool xsp_capture_by_default(const struct xsp_capture_reader *r, const char *what);
uint64_t xsp_capture_until_ns(const struct xsp_capture_reader *r, const char *what);
/* A random number for this capture. */
uint64_t xsp_capture_id(const struct xsp_capture_reader *r);
/* The key of the hashes of addresses: the number above, which no recorded process knows. So none can choose its
 * address, and its number among processes, to match another's hash. 0 in formats before 1.2. */
uint64_t xsp_capture_address_key(const struct xsp_capture_reader *r);
/* The info of a gap, or NULL; *count: how many, 0 if the text has no number. */
const char *xsp_capture_gap(const struct xsp_capture_reader *r, enum xsp_capture_gap gap,
			    uint64_t *count);
size_t xsp_capture_processes(const struct xsp_capture_reader *r,
			     const struct xsp_capture_process **);
/* NULL: not in the capture. */
const struct xsp_capture_process *xsp_capture_process_of(const struct xsp_capture_reader *r,
							 uint32_t pid);
/* Copies the value of a variable of its environment to `value`. False: not set, not known, or longer than `size`.
 * Hostile: any bytes but control characters. */
bool xsp_capture_variable(const struct xsp_capture_process *p, const char *name, char *value,
			  size_t size);
/* The same as a number: at most nine decimal digits, and nothing else. */
bool xsp_capture_variable_number(const struct xsp_capture_process *p, const char *name,
				 uint32_t *value);
size_t xsp_capture_threads(const struct xsp_capture_reader *r, const struct xsp_capture_thread **);
size_t xsp_capture_modules(const struct xsp_capture_reader *r, const struct xsp_capture_module **);
size_t xsp_capture_mappings(const struct xsp_capture_reader *r,
			    const struct xsp_capture_mapping **);
size_t xsp_capture_probes(const struct xsp_capture_reader *r, const struct xsp_capture_probe **);
size_t xsp_capture_clocks(const struct xsp_capture_reader *r, const struct xsp_capture_clock **);
size_t xsp_capture_losts(const struct xsp_capture_reader *r, const struct xsp_capture_lost **);
size_t xsp_capture_operators(const struct xsp_capture_reader *r,
			     const struct xsp_capture_operator **);
size_t xsp_capture_windows(const struct xsp_capture_reader *r,
			   const struct xsp_capture_window **); /* rising; none: on all the time */
size_t xsp_capture_let_gos(const struct xsp_capture_reader *r, const struct xsp_capture_let_go **);
/* One entry an id: the first in the file. */
size_t xsp_capture_pythons(const struct xsp_capture_reader *r, const struct xsp_capture_python **);
/* How long everything was on within the recording's window. */
uint64_t xsp_capture_recorded_ns(const struct xsp_capture_reader *r);
/* One entry a hash: the first text in the file. */
size_t xsp_capture_names(const struct xsp_capture_reader *r, const struct xsp_capture_name **);
/* The last counters in the file. All 0 if there are none, which xsp_capture_stats_known() says. */
const struct xsp_capture_stats *xsp_capture_stats(const struct xsp_capture_reader *r);
bool xsp_capture_stats_known(const struct xsp_capture_reader *r);
/* Events of all kinds that were lost while recording. xsp_capture_damage() says what the file lost later. */
uint64_t xsp_capture_events_lost(const struct xsp_capture_reader *r);
/* Events in the file's whole chunks by the headers, including chunks with wrong checksums. */
uint64_t xsp_capture_events(const struct xsp_capture_reader *r);
/* The recording's window, CLOCK_MONOTONIC. In an unfinished file: its first and last event. */
void xsp_capture_window(const struct xsp_capture_reader *r, uint64_t *start_ns, uint64_t *end_ns);
enum xsp_capture_end xsp_capture_how_ended(const struct xsp_capture_reader *r);
/* Bytes after the last whole chunk, and skipped chunks with wrong checksums. */
void xsp_capture_damage(const struct xsp_capture_reader *r, uint64_t *torn_bytes,
			uint64_t *bad_chunks, uint64_t *bad_events);
/* Converts by the clock samples (piecewise linear). */
uint64_t xsp_capture_realtime(const struct xsp_capture_reader *r, uint64_t monotonic_ns);
/* Does the file know the time of day? Other profilers' traces may begin at 0. */
bool xsp_capture_realtime_known(const struct xsp_capture_reader *r);

/*
 * Streams all events, chunk after chunk: in order for each thread, only roughly between threads. `fn` returns 0 to go
 * on; another value ends the walk and is returned. The reader checks every event (size, kind, probe id) first and
 * counts bad ones as damage. May be called again for another pass.
 */
typedef int (*xsp_capture_event_fn)(void *ctx, const struct xsp_event *event);
int xsp_capture_read_events(struct xsp_capture_reader *r, xsp_capture_event_fn fn, void *ctx,
			    struct xsp_error *err);

/*
 * Reads a capture that is still being written, from the last call (or the opening) on. Calls `more` after new
 * definitions, before the events that use them. Returns read parts of the file to a file system that can take them back
 * (memory can), so that the file takes no more room than what is new. `fn` NULL: passes the events over. 0, a function's
 * value, or a negative errno.
 */
int xsp_capture_follow(struct xsp_capture_reader *r, int (*more)(void *ctx),
		       xsp_capture_event_fn fn, void *ctx, struct xsp_error *err);
/* Releases names, mappings, clocks, and the processes and threads that `keep` does not want (tid 0: the process). 0 or
 * -ENOMEM. */
int xsp_capture_forget(struct xsp_capture_reader *r,
		       bool (*keep)(void *ctx, uint32_t pid, uint32_t tid), void *ctx);
/* Share of the file read so far by read_events, 0..1, for a progress line. */
double xsp_capture_progress(const struct xsp_capture_reader *r);

#endif
