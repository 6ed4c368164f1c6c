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
#include "base/u64map.h"
#include "xsptrace/event.h"
#include "xsptrace/python.h"

/* ---- what a capture defines; the same structs are written and read ---- */

struct xsp_capture_process {
	uint32_t pid; /* root namespace */
	uint32_t ns_pid; /* as the process sees itself; what outputs show */
	uint32_t parent; /* 0: not known */
	const char *comm, *cmdline, *exe;
	/* What of its environment is recorded (catalog/job_variables.h), as it was when its program began:
	 * "NAME=value" lines, "" if none is known. Written: NULL leaves what was said of it. */
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
	uint64_t filtered; /* held back by --min-duration, --max-depth, -t, --comm */
	uint64_t silent_hits; /* conditional sites passed without being an exit */
	uint64_t
		missed_hits; /* hits that the kernel skipped: nested too deep for its return probes, or recursion */
	uint64_t untracked; /* spans, or what they wrote, not followed because a table was full */
	uint64_t probes_cost_ns; /* estimated time that the target's threads spent in probes */
	uint64_t recorder_cpu_ns; /* CPU time of xsptrace itself */
};

/* Lost events of one probe, written at the end for those with any. */
struct xsp_capture_lost {
	uint32_t probe;
	uint64_t entries, exits;
};

/* How the sections ARGS and OUTPUTS (xsptrace/args.h) of a PyTorch operator are to be understood:
 * written when its first event with one comes. */
struct xsp_capture_operator {
	uint32_t probe;
	uint32_t parts; /* enum xsp_torch_parts */
	uint32_t flavor; /* enum xsp_torch_flavor */
	bool doubtful; /* the names of the arguments are not certain */
	const char *schema; /* without defaults */
};

/* With --max-overhead: when everything was on, if not all the time. Spans do not go beyond one. */
struct xsp_capture_window {
	uint64_t start_ns, end_ns;
};

/* ... and probes of which nothing was reported from a moment on. */
struct xsp_capture_let_go {
	uint32_t probe;
	uint64_t time_ns;
	uint64_t
		calls_per_second; /* under the probe, before; 0: others jump behind its entry, to its exits */
};

#define XSP_LET_GO_REASON_MAX 80
/* "55,958 calls/s even under the probe"; `least`: entries were lost. */
const char *xsp_capture_let_go_reason(uint64_t calls_per_second, bool least,
				      char text[XSP_LET_GO_REASON_MAX]);

/* The text of a named range: XSP_EVENT_NAME. */
struct xsp_capture_name {
	uint64_t hash; /* name_hash of the ranges that bear it */
	const char *text;
	bool cut; /* the name was longer than XSP_NAME_MAX */
};

/* A Python stack: XSP_SECTION_PYTHON. */
struct xsp_capture_python_frame {
	uint64_t
		name; /* hash of a name of three lines: path of the file, line (0: none), function */
	uint64_t
		module; /* of the name of the torch.nn.Module that is called; 0: none, or not known */
};
struct xsp_capture_python {
	uint64_t id;
	uint32_t count;
	uint32_t flags; /* enum xsp_python_flag */
	const struct xsp_capture_python_frame *frames; /* the innermost first */
};

/* Names of addresses, which mean nothing once their process is gone: what the address was. */
enum xsp_address_name {
	XSP_NAME_OF_FUNCTION = 0x57ab, /* a host function that stands for a kernel */
	XSP_NAME_OF_RETURN =
		0x57ac, /* a return address in a stack, or where its thread stood. "": it is none, and neither is
				      * anything beyond it in the stack */
	XSP_NAME_OF_CODE =
		0x57ad, /* where a sample found the thread, two lines: the file's name, the
				    * function; "" where that is not known */
	XSP_NAME_OF_KERNEL =
		0x57ae, /* a function of the kernel's: the number of its stack stands for the
				      * process, its depth there for the address */
	XSP_NAME_OF_LINE =
		0x57af, /* the line of a return address that allocates: path of the source, number; no name where it is not known */
};
/* Under which hash the capture has the name of an address in a process. `key`: of the capture's own, see below. */
static inline uint64_t xsp_address_name_hash(uint64_t key, enum xsp_address_name what, uint32_t pid,
					     uint64_t address)
{
	uint64_t hash = xsp_u64_mix(address ^ xsp_u64_mix(((uint64_t)pid << 32 | what) ^ key));

	return hash != 0 ? hash : 1;
}

/* What a recording lacks beside events that were lost. Each is an info whose text begins with a number,
 * where there is something to count. */
enum xsp_capture_gap {
	XSP_GAP_SITES, /* refused by the kernel */
	XSP_GAP_DROPPED, /* functions whose breakpoints were gone at the end */
	XSP_GAP_FUNCTIONS, /* left out: their code is not that of the file */
	XSP_GAP_FILES, /* left out: they could not be read, or attached to */
	XSP_GAP_THREADS, /* without counters */
	XSP_GAP_PYTHON, /* stacks of Python that could not be read, or not to their end */
	XSP_GAP_PYTHON_CODE, /* those, each counted once, with a frame that could not be named */
	XSP_GAP_STACKS, /* native ones of waits, the same */
	XSP_GAP_ALLOCATIONS, /* of the heap, whose calls' ends were not seen */
	XSP_GAP_SIDE_RECORDS, /* of the kernel's, of any process: files mapped, births, execs, ends */
	XSP_GAP_WAITS_END, /* they were on by default, and cost too much: not counted, as what follows */
	XSP_GAP_PYTHON_END, /* the same of lines of Python */
	XSP_GAP_SAMPLES_END, /* ... and of samples */
	XSP_GAP_END, /* it ended before it was told to */
	XSP_GAPS,
};
const char *xsp_capture_gap_key(enum xsp_capture_gap gap);
/* Facts (xsp_capture_info) that tell of calls before their probes were there: children, libraries ... */
#define XSP_CAPTURE_LATES 4
const char *xsp_capture_late_key(size_t index);

/* ---- sections of events ---- */

/* Bytes of the event before its sections, if it has any (XSP_EVENT_SECTIONS). */
size_t xsp_event_fixed_part(const struct xsp_event *e);
/* The event's next section after that one (NULL: its first), with its size checked. NULL: there is none that is well
 * formed. */
const struct xsp_section *xsp_event_next_section(const struct xsp_event *e,
						 const struct xsp_section *after);
/* Bytes behind the section's head. */
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

/* Begins a capture in an empty file or a pipe: `fd`, which is taken over on success. `display_path` is its name
 * in messages. A file-size limit (RLIMIT_FSIZE) fails like a full disk if SIGXFSZ is ignored. */
int xsp_capture_create(int fd, const char *display_path, struct xsp_capture_writer **out,
		       struct xsp_error *err);

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
/* The text that a hash stands for; what is longer than XSP_NAME_MAX is cut, and says so. */
int xsp_capture_put_name(struct xsp_capture_writer *w, uint64_t hash, const char *text);
/* ... and that an address stands for; its hash has this key. */
uint64_t xsp_capture_writer_key(const struct xsp_capture_writer *w);
int xsp_capture_put_address_name(struct xsp_capture_writer *w, enum xsp_address_name what,
				 uint32_t pid, uint64_t address, const char *text);
/* Samples both clocks now and writes the pair; or one that is known. */
int xsp_capture_put_clock(struct xsp_capture_writer *w);
int xsp_capture_put_clock_pair(struct xsp_capture_writer *w, const struct xsp_capture_clock *c);

/*
 * One event (struct xsp_event and its payload), as it stands in the ring buffer.
 * Copied into the open chunk of ring `ring` (0-based, < 64); a full chunk (1 MiB) is
 * checksummed and written. The hot path: no allocation, no system call but that write.
 * All events of one thread must come through one ring in order. XSP_EVENT_NAME events become
 * definitions (xsp_capture_names), so that a name is known before any event is read.
 */
int xsp_capture_put_event(struct xsp_capture_writer *w, unsigned ring, const void *event,
			  size_t size);

/* Writes open chunks out (so that a SIGKILL now loses nothing so far). Call about once a second. */
int xsp_capture_flush(struct xsp_capture_writer *w);
/* Flushes, writes the end chunk (with window start and end), closes. Frees w also on error. */
int xsp_capture_finish(struct xsp_capture_writer *w, uint64_t start_ns, uint64_t end_ns,
		       struct xsp_error *err);
/* Closes without an end chunk. NULL is allowed. */
void xsp_capture_abandon(struct xsp_capture_writer *w);
uint64_t xsp_capture_bytes(const struct xsp_capture_writer *w);
/* Events that are in the file, not in memory. */
uint64_t xsp_capture_written(const struct xsp_capture_writer *w);

/* ---- reader ---- */

struct xsp_capture_reader;

enum xsp_capture_end { XSP_CAPTURE_COMPLETE = 0, XSP_CAPTURE_NO_END, XSP_CAPTURE_TORN };

/*
 * Opens a capture. Not a capture, or a newer major version: XSP_STATUS_CAPTURE. One pass over
 * the chunk headers collects definitions, counters and the time window; event chunks are
 * skipped by length (checked later, when read). Memory: definitions only.
 */
int xsp_capture_open(const char *path, struct xsp_capture_reader **out, struct xsp_error *err);
/* ... one that need not have a name: `fd` stays the caller's, `display_path` is for messages. */
int xsp_capture_open_descriptor(int fd, const char *display_path, struct xsp_capture_reader **out,
				struct xsp_error *err);
/* ... `fd` is the reader's from now on, also when this fails. */
int xsp_capture_adopt(int fd, const char *display_path, struct xsp_capture_reader **out,
		      struct xsp_error *err);
void xsp_capture_close(struct xsp_capture_reader *r);

const char *xsp_capture_info(const struct xsp_capture_reader *r, const char *key); /* or NULL */
/* The number that it begins with; 0 where there is none. */
uint64_t xsp_capture_number(const struct xsp_capture_reader *r, const char *key);
/* Was that ("waits", ...) on without being asked for? And until when, if it was taken out before the end, CLOCK_MONOTONIC;
 * 0: it was not. */
bool xsp_capture_by_default(const struct xsp_capture_reader *r, const char *what);
uint64_t xsp_capture_until_ns(const struct xsp_capture_reader *r, const char *what);
/* A random number that tells captures apart. */
uint64_t xsp_capture_id(const struct xsp_capture_reader *r);
/* The key of the hashes of addresses: the number above, which no recorded process can know. With it none can choose its
 * address, and its number among processes, for the hash of another's. 0 in captures of formats before 1.2. */
uint64_t xsp_capture_address_key(const struct xsp_capture_reader *r);
/* The info of a gap, or NULL; *count: how many, 0 where there is nothing to count. */
const char *xsp_capture_gap(const struct xsp_capture_reader *r, enum xsp_capture_gap gap,
			    uint64_t *count);
size_t xsp_capture_processes(const struct xsp_capture_reader *r,
			     const struct xsp_capture_process **);
/* NULL: it is not among them. */
const struct xsp_capture_process *xsp_capture_process_of(const struct xsp_capture_reader *r,
							 uint32_t pid);
/* The value of a variable of its environment into `value`. False: it was not set, is not known, or is longer than
 * `size`. Any bytes but control characters: hostile. */
bool xsp_capture_variable(const struct xsp_capture_process *p, const char *name, char *value,
			  size_t size);
/* The same as a number: nine decimal digits at most, and nothing else. */
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
/* One entry an id: the first that came with it. */
size_t xsp_capture_pythons(const struct xsp_capture_reader *r, const struct xsp_capture_python **);
/* Time in which everything was on, of the recording's window. */
uint64_t xsp_capture_recorded_ns(const struct xsp_capture_reader *r);
/* One entry a hash: the first text that came with it. */
size_t xsp_capture_names(const struct xsp_capture_reader *r, const struct xsp_capture_name **);
/* The last counters that are in the file; all 0 if there are none, which _known tells. */
const struct xsp_capture_stats *xsp_capture_stats(const struct xsp_capture_reader *r);
bool xsp_capture_stats_known(const struct xsp_capture_reader *r);
/* Events that were lost while it was recorded, of all kinds. What the file lost later is xsp_capture_damage(). */
uint64_t xsp_capture_events_lost(const struct xsp_capture_reader *r);
/* Events in the file's whole chunks: what the headers say, with those of wrong checksums. */
uint64_t xsp_capture_events(const struct xsp_capture_reader *r);
/* Recording window, CLOCK_MONOTONIC; of an unfinished file: first and last event seen. */
void xsp_capture_window(const struct xsp_capture_reader *r, uint64_t *start_ns, uint64_t *end_ns);
enum xsp_capture_end xsp_capture_how_ended(const struct xsp_capture_reader *r);
/* Bytes after the last whole chunk, and chunks whose checksum was wrong (skipped). */
void xsp_capture_damage(const struct xsp_capture_reader *r, uint64_t *torn_bytes,
			uint64_t *bad_chunks, uint64_t *bad_events);
/* Converts by the clock samples (piecewise linear). */
uint64_t xsp_capture_realtime(const struct xsp_capture_reader *r, uint64_t monotonic_ns);
/* Does the file say what time it was? Other profilers' traces may begin at 0. */
bool xsp_capture_realtime_known(const struct xsp_capture_reader *r);

/*
 * Streams all events, chunk after chunk; per-thread order holds, order between threads only
 * roughly. `fn` returns 0 to go on, else the walk ends with that value. Every event is
 * checked (size, kind, probe id) before fn sees it; bad ones are counted in the damage.
 * May be called again for another pass.
 */
typedef int (*xsp_capture_event_fn)(void *ctx, const struct xsp_event *event);
int xsp_capture_read_events(struct xsp_capture_reader *r, xsp_capture_event_fn fn, void *ctx,
			    struct xsp_error *err);

/*
 * A capture that is still being written: hands on what has been added since it was opened or this was called last.
 * `more` is called behind new definitions, before the events that use them. What has been read is given back: the
 * file's room, where its file system can (in memory it can), so that it takes no more than what is new.
 * 0, what a function returned, or a negative errno.
 */
int xsp_capture_follow(struct xsp_capture_reader *r, int (*more)(void *ctx),
		       xsp_capture_event_fn fn, void *ctx, struct xsp_error *err);
/* ... and forgets names, mappings, clocks, and the processes and threads that `keep` does not want (tid 0: the process).
 * 0 or -ENOMEM. */
int xsp_capture_forget(struct xsp_capture_reader *r,
		       bool (*keep)(void *ctx, uint32_t pid, uint32_t tid), void *ctx);
/* Share of the file read so far by read_events, 0..1, for a progress line. */
double xsp_capture_progress(const struct xsp_capture_reader *r);

#endif
