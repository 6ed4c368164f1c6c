/* SPDX-License-Identifier: BSD-2-Clause */
/* side_events.h - one perf event a CPU that counts nothing, but carries the side records of perf_event_open(2): what
 * happens to processes beside their probes. */
#ifndef XSP_BROKER_SIDE_EVENTS_H
#define XSP_BROKER_SIDE_EVENTS_H

#include <stddef.h>

/* Fills an array that the caller frees; whoever maps the descriptors reads the records. Takes CAP_PERFMON. 0 or a
 * negative errno. */
int xsp_side_events_open(int **fds, size_t *count);

#endif
