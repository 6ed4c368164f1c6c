/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * figures.h - what a recorder and the service that supervises it say to each other, over a SOCK_SEQPACKET pair.
 *
 * The recorder may have been taken over by what it reads. So each message has a fixed size, the service takes numbers for
 * numbers and texts for texts, and acts on none of them.
 */
#ifndef XSP_SERVICE_FIGURES_H
#define XSP_SERVICE_FIGURES_H

#include <stdint.h>

#include "xsptrace/event.h"

/* To the recorder: a byte. If the service is gone, the recording ends as by XSP_SUPERVISOR_END. */
enum { XSP_SUPERVISOR_SNAPSHOT = 's', XSP_SUPERVISOR_END = 'e' };

#define XSP_FIGURE_VALUES 8 /* of the program's own; more are not shown */

enum xsp_figures_kind { XSP_FIGURES = 1, XSP_FIGURES_WRITTEN = 2 };

/* Sums since the recording began; about once a second. */
struct xsp_figures {
	uint32_t kind; /* XSP_FIGURES */
	uint32_t value_count;
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t busy_ns; /* CPU time of the process */
	uint64_t steps, steps_ns;
	uint64_t step_p50_ns, step_p99_ns; /* of the last ones; 0: there are none */
	uint64_t passed_ns; /* in which steps and values were not looked at */
	uint64_t gpu_ns; /* in which a GPU was busy */
	uint64_t resident, events, lost;
	double overhead, slowdown; /* shares: of one processor, and of the thread slowed most */
	uint64_t runnable_ns, waits_ns[XSP_WAIT_CLASSES]; /* of threads that live */
	struct {
		char name[48];
		double value; /* the last one */
	} values[XSP_FIGURE_VALUES];
};

/* A snapshot was written, or could not be. */
struct xsp_figures_written {
	uint32_t kind; /* XSP_FIGURES_WRITTEN */
	int32_t status; /* exit status */
	char name[256]; /* the file's, without a folder */
	char why[300];
};

#endif
