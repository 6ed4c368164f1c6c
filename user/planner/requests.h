/* SPDX-License-Identifier: BSD-2-Clause */
/* requests.h - what planners are asked, and how. Both ends include it. */
#ifndef XSP_PLANNER_REQUESTS_H
#define XSP_PLANNER_REQUESTS_H

#include <stddef.h>

#include "base/files/message.h"
#include "planner/plan.h"

enum xsp_planner_op {
	/* struct xsp_module_ask, the path as the target sees it; descriptor → PART, ..., DONE or FAILED */
	XSP_READ_MODULE = 1,
	XSP_WANT_DEBUG_FILE, /* from the planner: a build id → HAVE_DEBUG_FILE */
	XSP_HAVE_DEBUG_FILE, /* result: 0 and a descriptor, or negative */
	XSP_PART, /* bytes of the answer */
	XSP_DONE, /* the last bytes */
	XSP_FAILED, /* result; struct xsp_error */
	XSP_READ_HINT, /* struct xsp_hint_ask, the path; descriptor → DONE with text */
	XSP_LOOK_AT_MODULE, /* as READ_MODULE, but for the costs → LOOKED or FAILED */
	/* struct xsp_lines_ask with its addresses, the path; descriptor → "LINE PATH\n" of each: PART, ..., DONE */
	XSP_READ_LINES,
	XSP_LOOKED, /* so much of struct xsp_looked as its text needs */
};

struct xsp_module_ask {
	struct xsp_site_costs costs;
	uint32_t part, parts; /* of its probes: struct xsp_plan */
	uint32_t look; /* its number, from 1 on; READ_MODULE: that of the same file, or 0 */
	uint32_t forget; /* READ_MODULE: what was found there is not all */
	uint64_t exit_by_site; /* READ_MODULE */
};

#define XSP_PLANNER_LINES 8192U
struct xsp_lines_ask {
	uint32_t count, limit_ms;
	uint64_t addr[XSP_PLANNER_LINES];
};
#define XSP_LINES_ASK(count) (offsetof(struct xsp_lines_ask, addr) + 8 * (size_t)(count))

/* Hundreds of answers wait in a socket until the recorder has time for them: they are small. */
struct xsp_looked {
	uint32_t probes;
	uint8_t empty; /* no probes, nor anything else that would have to be told */
	uint8_t is_static;
	uint32_t symbols;
	char build_id[133]; /* whose debug file was wanted; "": nobody's */
};

/* The process itself; never returns. `in`: for what it receives. */
_Noreturn void xsp_planner_serve(const struct xsp_plan *plan, int socket, struct xsp_parcel *in);

#endif
