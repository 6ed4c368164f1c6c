/* SPDX-License-Identifier: BSD-2-Clause */
/* calls.h - how long outermost calls and ranges last, for the length of windows. Zero-initialise. */
#ifndef XSP_RECORD_CALLS_H
#define XSP_RECORD_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "xsptrace/event.h"

#define XSP_CALLS_THREADS 1024

struct xsp_calls {
	uint64_t since_ns; /* the window's beginning: nothing open is known from before */
	uint64_t longest_ns; /* seen so far, also in part */
	uint32_t longest_probe;
	bool cut; /* the longest one was, so it lasts for longer */
	struct xsp_open_call {
		uint32_t tid, probe;
		uint32_t depth; /* of ranges, or of the same function; 0: none is open */
		bool is_range;
		uint64_t sp, start_ns;
	} open[XSP_CALLS_THREADS]; /* by the low bits of the thread's id: another thread takes the place */
};

void xsp_calls_see(struct xsp_calls *c, const struct xsp_event *e);
void xsp_calls_begin(struct xsp_calls *c, uint64_t now);
/* Open calls have lasted at least until then. */
void xsp_calls_end(struct xsp_calls *c, uint64_t now);

#endif
