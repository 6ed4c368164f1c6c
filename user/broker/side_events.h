/* SPDX-License-Identifier: BSD-2-Clause */
/* side_events.h - one perf event a CPU: for the side records of perf_event_open(2), which tell what happens to processes
 * beside their probes; or for a look at where the CPUs are before anything is attached. */
#ifndef XSP_BROKER_SIDE_EVENTS_H
#define XSP_BROKER_SIDE_EVENTS_H

#include <stddef.h>

unsigned xsp_side_look_hz(void); /* of a look, for each CPU */

enum xsp_side_kind {
	XSP_SIDE_RECORDS, /* counts nothing; each record ends in {u32 pid, tid; u64 time} */
	XSP_SIDE_LOOK, /* PERF_RECORD_SAMPLE: {u64 ip; u32 pid, tid}, by a clock that runs while the CPU works */
};

/* Fills an array that the caller frees; whoever maps the descriptors reads the records. Takes CAP_PERFMON. 0 or a
 * negative errno. */
int xsp_side_events_open(enum xsp_side_kind kind, int **fds, size_t *count);

#endif
