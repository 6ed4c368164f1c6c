/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dump.h - what every thread of a process does at one moment: its state, what it waits for and who holds
 * that, its Python and its native stack.
 *
 * Whoever calls has no rights: the broker opens what is read, and stops a thread for a moment where that is
 * wanted (attach/thread_stop.h). What is read is the target's and may lie: all lengths are bounded, and what
 * does not fit together is left out and said.
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
};

struct xsp_dump_python {
	const char *function, *file;
	int32_t line; /* 0: not known */
};

/* A span that is open by what a recording knew xsp_dump.open_age_ns ago. */
struct xsp_dump_open {
	const char *name;
	int64_t began_ago_ns;
	const struct xsp_dump_open *outer; /* NULL: none */
};

/* By whom, and how that is known. */
enum xsp_dump_held {
	XSP_HELD_UNKNOWN = 0,
	XSP_HELD_MUTEX, /* glibc's mutex names its owner */
	XSP_HELD_PI, /* the futex is the owner's number */
	XSP_HELD_THREAD, /* pthread_join: until that thread ends */
	XSP_HELD_GIL, /* Python's lock, as its runtime tells */
};

struct xsp_dump_wait {
	int call; /* number of the system call, -1: none */
	const char *call_name; /* NULL: not in the table */
	unsigned why; /* enum xsp_wait_class, if there is a call */
	uint64_t argument; /* its first */
	bool timed; /* it ends by itself */
	const char *file; /* what its descriptor is of; NULL: none, or not known */
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
	const char *
		note; /* a constant text: what is to be known about how it was looked at; NULL: nothing */
	const struct xsp_dump_native *native;
	size_t native_count;
	const char *native_end; /* a constant text: why there is no more; NULL: that is all */
	bool wants_registers; /* more would be seen of it if the thread were stopped */
	const struct xsp_dump_python *python;
	size_t python_count;
	const char *python_end;
	const struct xsp_dump_open *open; /* the innermost; NULL: none, or no recording runs */
	bool open_cut; /* there are more, outside of these */
	size_t cycle; /* 1 + index of the cycle of waits that it is in, 0: none */
};

struct xsp_dump {
	pid_t pid;
	const char *command;
	time_t time;
	struct xsp_dump_thread *threads;
	size_t count, cycles;
	size_t gil; /* 1 + index of the thread that holds Python's lock, 0: none, or there is none */
	const char *
		python_note; /* why its Python frames are not read; NULL: they are, or there is none */
	const char *
		open_note; /* why open spans are not known, or not all; NULL: they are, or there are none */
	int64_t open_age_ns; /* so long ago the recording knew it; -1: none runs */
	const char *note;
	struct xsp_arena arena; /* of all texts and frames */
};

struct xsp_dump_options {
	bool no_stop;
	const int64_t *lags; /* of xsp_dump_lags() */
	size_t lag_count;
};

/* ---- before the rights are given up ---- */

/* A copy of the code that the kernel maps into each program, ours here: a file. -1: not to be had. */
int xsp_dump_vdso(void);
/* How far the scheduler's clock is behind CLOCK_MONOTONIC, for each CPU; INT64_MIN: not known. Runs on each of them
 * for a moment. */
int64_t *xsp_dump_lags(size_t *count);

/* ---- looking ---- */

struct xsp_dump_target; /* a process whose threads are known */

/* `vdso`: of xsp_dump_vdso(). */
int xsp_dump_open(struct xsp_broker *b, pid_t pid, int vdso, struct xsp_dump_target **out,
		  struct xsp_error *err);
/* Files and memory of the target are read from here on. */
int xsp_dump_run(struct xsp_dump_target *t, const struct xsp_dump_options *o, struct xsp_dump *out,
		 struct xsp_error *err);
void xsp_dump_close(struct xsp_dump_target *t); /* NULL is allowed */
void xsp_dump_clear(struct xsp_dump *d);

/* ---- showing ---- */

/* `width`: columns of the terminal, 0: none. */
void xsp_dump_text(FILE *f, const struct xsp_dump *d, unsigned width);
/* An object, without a newline behind it. 0 or -ENOMEM, and then nothing is written. */
int xsp_dump_json(FILE *f, const struct xsp_dump *d);

/* For how long threads were stopped. */
struct xsp_dump_stops {
	size_t count;
	uint64_t total_ns, longest_ns;
};
struct xsp_dump_stops xsp_dump_stops(const struct xsp_dump *d);

#endif
