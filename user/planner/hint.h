/* SPDX-License-Identifier: BSD-2-Clause */
/* hint.h - what a file says about a pattern that finds nothing, or less than its author expects. */
#ifndef XSP_PLANNER_HINT_H
#define XSP_PLANNER_HINT_H

#include "planner/plan.h"

enum xsp_hint {
	XSP_HINT_INLINED, /* "f was inlined into its callers (2 places: g at a.c:4, h at a.c:9)" */
	XSP_HINT_SCOPE, /* "-e '*::f' names shop::detail::f" */
	XSP_HINT_VERSION, /* "it is there with version V_1, V_2" */
	XSP_HINT_NEAREST, /* "the nearest are f1, f2" */
	XSP_HINT_PROVIDER, /* "the nearest are ...", for a pattern of a provider */
	XSP_HINTS,
};
#define XSP_HINT_SIZE 480

/* The request; the module's path follows. */
struct xsp_hint_ask {
	uint32_t kind, pattern;
};

/* The plan's patterns that this kind of hint is about; ask.pattern is an index. */
static inline const struct xsp_pattern *xsp_hint_patterns(const struct xsp_plan *plan,
							  uint32_t kind, size_t *count)
{
	const struct xsp_selection *s = &plan->selection;

	*count = kind == XSP_HINT_PROVIDER ? s->provider_pattern_count : s->pattern_count;
	return kind == XSP_HINT_PROVIDER ? s->provider_patterns : s->patterns;
}

/* Reads the hint from the file at `fd`, which it takes over. Runs in the planner. */
void xsp_hint_read(const struct xsp_plan *plan, const struct xsp_opener *o, int fd,
		   const char *display_path, const struct xsp_hint_ask *ask,
		   char text[static XSP_HINT_SIZE]);

#endif
