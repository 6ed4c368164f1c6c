/* SPDX-License-Identifier: BSD-2-Clause */
/* requests.h - the requests to planners, for both ends. */
#ifndef XSP_PLANNER_REQUESTS_H
#define XSP_PLANNER_REQUESTS_H

#include <stddef.h>

#include "base/files/message.h"
#include "planner/plan.h"

enum xsp_planner_op {
	/* struct xsp_module_ask, the path as the target sees it; a descriptor → PART, ..., DONE or FAILED */
	XSP_READ_MODULE = 1,
	/* sent by the planner: a build id, or "/NAME" of a debug file that the file itself names → HAVE_DEBUG_FILE */
	XSP_WANT_DEBUG_FILE,
	XSP_HAVE_DEBUG_FILE, /* result 0 and a descriptor, or a negative errno */
	XSP_PART, /* bytes of the answer */
	XSP_DONE, /* the last bytes */
	XSP_FAILED, /* result; struct xsp_error */
	XSP_READ_HINT, /* struct xsp_hint_ask, the path; a descriptor → DONE with text */
	XSP_LOOK_AT_MODULE, /* as READ_MODULE, before the costs are known → LOOKED or FAILED */
	/* struct xsp_lines_ask with its addresses, the path; a descriptor → for each address a line
	 * "LINE HELPERS COUNT PATH" and COUNT lines with names of inlined functions: PART, ..., DONE with the result of
	 * xsp_module_lines(). LINE is 0 if it is not known, -1 if there was no time */
	XSP_READ_LINES,
	XSP_LOOKED, /* struct xsp_looked, up to the end of its text */
};

struct xsp_module_ask {
	struct xsp_site_costs costs;
	uint32_t part, parts; /* which part of its probes: struct xsp_plan */
	uint32_t look; /* the look's number, from 1; READ_MODULE: the look at the same file, or 0 */
	uint32_t forget; /* READ_MODULE: the look did not find everything */
	uint64_t exit_by_site; /* READ_MODULE */
};

#define XSP_PLANNER_LINES 8192U
struct xsp_lines_ask {
	uint32_t count, limit_ms;
	uint64_t addr[XSP_PLANNER_LINES];
};
#define XSP_LINES_ASK(count) (offsetof(struct xsp_lines_ask, addr) + 8 * (size_t)(count))

#define XSP_WANTED_SIZE 390
/* It is small, as hundreds of answers wait in a socket until the recorder has time for them. */
struct xsp_looked {
	uint32_t probes;
	uint8_t empty; /* it has no probes, and nothing else to report */
	uint8_t is_static;
	uint32_t symbols;
	uint8_t lacks; /* enum xsp_lacks */
	/* the build id whose debug file it wanted, and "/NAME" if the file also names one; "": none */
	char wanted[XSP_WANTED_SIZE];
};

/* The planner itself; never returns. It receives into `in`. */
_Noreturn void xsp_planner_serve(const struct xsp_plan *plan, int socket, struct xsp_parcel *in);

#endif
