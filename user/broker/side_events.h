/* SPDX-License-Identifier: BSD-2-Clause */
/* side_events.h - the perf events that tell what happens to processes beside their probes: one a CPU, which
 * counts nothing and carries the side records of perf_event_open(2). */
#ifndef XSP_BROKER_SIDE_EVENTS_H
#define XSP_BROKER_SIDE_EVENTS_H

#include <stddef.h>

/* Descriptors, in an array that the caller frees; whoever maps them reads the records. Takes
 * CAP_PERFMON. 0 or a negative errno. */
int xsp_side_events_open(int **fds, size_t *count);

#endif
