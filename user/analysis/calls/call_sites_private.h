/* SPDX-License-Identifier: BSD-2-Clause */
/* call_sites_private.h - what counting calls and naming their places share. */
#ifndef XSP_ANALYSIS_CALL_SITES_PRIVATE_H
#define XSP_ANALYSIS_CALL_SITES_PRIVATE_H

#include "analysis/calls/call_sites.h"
#include "analysis/calls/loader.h"
#include "analysis/calls/sync_work.h"
#include "analysis/names/step_shares.h"

struct xsp_call_sites {
	struct xsp_timeline *timeline;
	struct xsp_capture_reader *reader;
	XSP_TALLY(struct xsp_call_site) sites; /* by name, operator and lines; and by stack */
	struct xsp_step_shares *in_steps; /* calls by site */
	uint64_t serial; /* 1 + that of the span that was looked at last */
	uint32_t site; /* ... and 1 + its site; 0: none */
	struct xsp_sync_work sync_work;
	struct xsp_copies copies;
	struct xsp_loader loader;
	uint64_t lines_until_ns; /* they were on by default, and taken out then; 0: they were not */
	/* ... steps until then; what was called in the one in which they ended, which is none of them, by site */
	uint64_t steps_with_lines, steps_with_lines_ns, steps_with_lines_probe_ns;
	struct cut_calls {
		uint64_t calls, ns;
	} * cut;
	size_t cut_capacity;
};

#endif
