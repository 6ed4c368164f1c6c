/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * run_stats.h - what an output says about its own making: losses, damage, overhead, names. One table of counters for
 * all formats, so that all have the same. Keys: docs/formats.md.
 */
#ifndef XSP_MODEL_RUN_STATS_H
#define XSP_MODEL_RUN_STATS_H

#include "model/view.h"

struct xsp_run_stat {
	const char *key;
	uint64_t value;
};

#define XSP_RUN_STATS_MAX 24
struct xsp_run_stats {
	struct xsp_run_stat list[XSP_RUN_STATS_MAX];
	size_t count;
};

/* Before the events are read. */
void xsp_run_stats_losses(const struct xsp_capture_reader *r, struct xsp_run_stats *out);
void xsp_run_stats_overhead(const struct xsp_capture_reader *r, struct xsp_run_stats *out);
/* After: pairing, and damage found while reading. */
void xsp_run_stats_timeline(const struct xsp_capture_reader *r, const struct xsp_timeline *t,
			    struct xsp_run_stats *out);
/* Of the GPU's records, or what of them is missing or wrong; none without GPU activity. */
void xsp_run_stats_gpu(const struct xsp_timeline *t, bool losses, struct xsp_run_stats *out);

/* "complete", "no end" (the recorder was killed) or "torn" (and the last chunk is missing). */
const char *xsp_run_how_ended(const struct xsp_capture_reader *r);

/* How far real time was set or slewed against monotonic time while recording: the greatest difference between clock
 * samples, ns. */
uint64_t xsp_run_clock_step(const struct xsp_capture_reader *r);

/* Base name of the program of a process (root pid), or its comm, or "process". */
void xsp_run_process_name(const struct xsp_capture_reader *r, uint32_t pid, char *out, size_t size);
/* The same with its arguments: "python3 train.py". */
void xsp_run_process_command(const struct xsp_capture_reader *r, uint32_t pid, char *out,
			     size_t size);

/* One line (plain ASCII) about losses and damage; false and "" if there are none. */
bool xsp_run_losses_line(const struct xsp_capture_reader *r, const struct xsp_timeline *t,
			 char *out, size_t size);

#endif
