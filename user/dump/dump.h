/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dump.h - what every thread of a process does at one moment: its state, what it waits for and who holds that, its
 * Python and its native stack. The caller has no rights: the broker opens what it reads, and stops a thread for a
 * moment if asked (attach/thread_stop.h). All of it is the target's and may lie: lengths are bounded, and what does not
 * fit together is dropped with a note.
 */
#ifndef XSP_DUMP_H
#define XSP_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "attach/broker.h"
#include "base/arena.h"
#include "target/process.h"

#define XSP_DUMP_NATIVE_MAX 256 /* frames of a thread */
#define XSP_DUMP_PYTHON_MAX 256
#define XSP_DUMP_OPEN_MAX 256 /* open spans of a thread */

struct xsp_dump_native {
	uint64_t address; /* for callers: where they go on */
	const char *function; /* demangled; NULL: no symbol covers it */
	uint64_t offset; /* in the function, else in the module */
	const char *module; /* NULL: no file */
	bool own; /* code of the program, not of a library of the system or a package */
	bool script; /* of JavaScript: `module` is its file and line, and there is no offset */
};

struct xsp_dump_python {
	const char *function, *file;
	int32_t line; /* 0: not known */
};

/* An open span, as a recording knew it xsp_dump.open_age_ns ago. */
struct xsp_dump_open {
	const char *name;
	int64_t began_ago_ns;
	const struct xsp_dump_open *outer; /* NULL: none */
};

/* How the holder is known. */
enum xsp_dump_held {
	XSP_HELD_UNKNOWN = 0,
	XSP_HELD_MUTEX, /* glibc's mutex names its owner */
	XSP_HELD_PI, /* the futex is the owner's number */
	XSP_HELD_THREAD, /* pthread_join: until that thread ends */
	XSP_HELD_GIL, /* Python's lock, by its runtime */
};

struct xsp_dump_wait {
	int call; /* number of the system call, -1: none */
	const char *call_name; /* NULL: not in the table */
	unsigned why; /* enum xsp_wait_class, if it is in a call */
	uint64_t argument; /* its first */
	bool timed; /* it ends by itself */
	bool own; /* a futex without a timeout: only a thread of this process can end it, or a signal */
	const char *file; /* its descriptor's file; NULL: none, or not known */
	enum xsp_dump_held held;
	size_t holder; /* index of the thread, if it is held */
};

struct xsp_dump_thread {
	pid_t tid, ns_tid;
	char name[16];
	char state; /* as in /proc/PID/stat; 0: gone */
	bool running;
	int64_t since_ns; /* asleep for at least so long; -1: not known */
	struct xsp_dump_wait wait;
	bool stopped;
	uint64_t stopped_ns;
	const char *note; /* a constant text: a caveat of the look; NULL: none */
	const struct xsp_dump_native *native;
	size_t native_count;
	const char *native_end; /* a constant text: why it ends here; NULL: it is whole */
	bool wants_registers; /* a stop would show more of it */
	const struct xsp_dump_python *python;
	size_t python_count;
	const char *python_end;
	const struct xsp_dump_open *open; /* the innermost; NULL: none, or no recording runs */
	bool open_cut; /* more are open, outside of these */
	size_t cycle; /* 1 + index of the cycle of waits that it is in, 0: none */
};

struct xsp_dump {
	pid_t pid;
	const char *command;
	time_t time;
	struct xsp_dump_thread *threads;
	size_t count, cycles;
	size_t gil; /* 1 + index of the thread that holds Python's lock, 0: none, or there is none */
	/* why its Python frames are missing; NULL: they are there, or it has none */
	const char *python_note;
	const char *open_note; /* why open spans are missing, or some; NULL: they are all there */
	int64_t open_age_ns; /* the recording knew the open spans so long ago; -1: none runs */
	const char *note;
	struct xsp_arena arena; /* has all texts and frames */
};

struct xsp_dump_options {
	bool no_stop;
	const int64_t *lags; /* by xsp_dump_lags() */
	size_t lag_count;
};

/* ---- before it gives up its rights ---- */

/* A file with a copy of the code that the kernel maps into each program, here ours. -1: none. */
int xsp_dump_vdso(void);
/* By CPU, how far the scheduler's clock is behind CLOCK_MONOTONIC; INT64_MIN: not known. Runs on each CPU for a
 * moment. */
int64_t *xsp_dump_lags(size_t *count);

/* ---- looking ---- */

struct xsp_dump_target; /* a process whose threads are listed */

/* `vdso`: by xsp_dump_vdso(). */
int xsp_dump_open(struct xsp_broker *b, pid_t pid, int vdso, struct xsp_dump_target **out,
		  struct xsp_error *err);
/* From here on it reads files and memory of the target. */
int xsp_dump_run(struct xsp_dump_target *t, const struct xsp_dump_options *o, struct xsp_dump *out,
		 struct xsp_error *err);
void xsp_dump_close(struct xsp_dump_target *t); /* NULL is allowed */
void xsp_dump_clear(struct xsp_dump *d);

/* ---- showing ---- */

/* `width`: columns of the terminal, 0: none. */
void xsp_dump_text(FILE *f, const struct xsp_dump *d, unsigned width);
/* An object, without a newline at its end. 0 or -ENOMEM, and then nothing is written. */
int xsp_dump_json(FILE *f, const struct xsp_dump *d);

/* For how long threads were stopped. */
struct xsp_dump_stops {
	size_t count;
	uint64_t total_ns, longest_ns;
};
struct xsp_dump_stops xsp_dump_stops(const struct xsp_dump *d);

#endif
