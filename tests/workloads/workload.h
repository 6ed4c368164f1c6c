/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * workload.h - what the test programs share: options, counting, the JSON they end with.
 *
 * A workload counts its own calls, so that a trace can be held against the truth, and folds what
 * it computes into a checksum. With --calls (not --seconds) its output depends on its options
 * alone: a traced run must print the same bytes as an untraced one.
 *
 * Options of every workload:
 *   --out FILE   write the JSON there, not to standard output
 *   --wait       wait for SIGUSR1 before the work (SIGUSR1 is caught before "ready" is written to
 *                standard error), so that a tracer can be attached first
 *   --hold       after the JSON is written, wait for SIGUSR1 or SIGTERM before the exit
 *   --threads N, --calls N, --seconds S, --rate R   as far as the workload knows them
 * SIGTERM and SIGINT end the work early; the JSON is still written.
 */
#ifndef XSP_WORKLOAD_H
#define XSP_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A function for tracing: never inlined, cloned or folded, visible under its own name. */
#if defined(__clang__)
#define WL_APART __attribute__((noinline))
#else
#define WL_APART __attribute__((noipa))
#endif
#define WL_TRACED WL_APART __attribute__((visibility("default")))

/* A truth of one function. Each thread adds up its own and merges at its end. */
struct wl_count {
	const char *name; /* as a trace shows it (demangled) */
	uint64_t calls;
	uint64_t unwound; /* of the calls: left by an exception or longjmp */
};

struct wl_options {
	const char *workload;
	const char *out;
	bool wait, hold;
	unsigned threads;
	uint64_t calls;
	double seconds; /* 0: by calls */
	double rate; /* rounds per second and thread; 0: as fast as it goes */
	int argc; /* what is left: arguments without -- in front */
	char **argv;
};

/* Parses the options over the given defaults, catches the signals; leaves the program with status
 * 2 on a bad option. */
void wl_parse(struct wl_options *o, int argc, char **argv);
/* Tells that the program is ready and waits, if asked. */
void wl_start(const struct wl_options *o);
/* True when the work is to end: signal, or the seconds are over. */
bool wl_stop(void);
/* Sleeps until round `n` of a thread is due, by --rate, counted from `start_ns`. */
void wl_pace(const struct wl_options *o, uint64_t start_ns, uint64_t n);
uint64_t wl_now_ns(void);

/* One step of the checksum (splitmix64): the sum over all steps does not depend on the order in
 * which threads ran. */
uint64_t wl_mix(uint64_t x);

/* Writes {"workload":…,"checksum":…,"calls":{…},"unwound":{…},EXTRA} in one line and holds if
 * asked. `extra` is JSON members without a leading comma, or NULL. Returns the exit status. */
int wl_finish(const struct wl_options *o, uint64_t checksum, const struct wl_count *counts,
	      size_t count, const char *extra);

#ifdef __cplusplus
}
#endif

#endif
