/* SPDX-License-Identifier: BSD-2-Clause */
/* call_sites_private.h - what the counting of calls and the naming of places share. */
#ifndef XSP_ANALYSIS_CALL_SITES_PRIVATE_H
#define XSP_ANALYSIS_CALL_SITES_PRIVATE_H

#include "analysis/calls/call_sites.h"
#include "analysis/calls/loader.h"
#include "analysis/calls/sync_work.h"
#include "analysis/names/step_shares.h"

struct xsp_call_sites {
	struct xsp_timeline *timeline;
	struct xsp_capture_reader *reader;
	XSP_TALLY(struct xsp_call_site) sites; /* by name, operator and lines; also by stack */
	struct xsp_step_shares *in_steps; /* calls by site */
	uint64_t serial; /* 1 + serial number of the span looked up last */
	uint32_t site; /* 1 + its site; 0: none */
	struct xsp_sync_work sync_work;
	struct xsp_copies copies;
	struct xsp_loader loader;
	/* lines were on by default and were released then; 0: they were not */
	uint64_t lines_until_ns;
	/* steps before that time; `cut` holds calls, by site, of the step in which lines were
	 * released */
	uint64_t steps_with_lines, steps_with_lines_ns, steps_with_lines_probe_ns;
	struct cut_calls {
		uint64_t calls, ns;
	} * cut;
	size_t cut_capacity;
};

#endif
