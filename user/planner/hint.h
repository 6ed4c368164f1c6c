/* SPDX-License-Identifier: BSD-2-Clause */
/* hint.h - why a pattern finds nothing, or less than its author expects: what a file says. */
#ifndef XSP_PLANNER_HINT_H
#define XSP_PLANNER_HINT_H

#include "planner/plan.h"

enum xsp_hint {
	XSP_HINT_INLINED, /* "f was inlined into its callers (2 places: g at a.c:4, h at a.c:9)" */
	XSP_HINT_SCOPE, /* "-e '*::f' names shop::detail::f" */
	XSP_HINT_NEAREST, /* "the nearest are f1, f2" */
	XSP_HINT_PROVIDER, /* the same for a pattern of a provider */
	XSP_HINTS,
};
#define XSP_HINT_SIZE 480

/* What is asked of the planner; the module's path follows. */
struct xsp_hint_ask {
	uint32_t kind, pattern;
};

/* Those that a hint of that kind may be about; ask.pattern counts them. */
static inline const struct xsp_pattern *xsp_hint_patterns(const struct xsp_plan *plan,
							  uint32_t kind, size_t *count)
{
	const struct xsp_selection *s = &plan->selection;

	*count = kind == XSP_HINT_PROVIDER ? s->provider_pattern_count : s->pattern_count;
	return kind == XSP_HINT_PROVIDER ? s->provider_patterns : s->patterns;
}

/* In the planner: what the file at `fd`, which it takes over, tells. */
void xsp_hint_read(const struct xsp_plan *plan, const struct xsp_opener *o, int fd,
		   const char *display_path, const struct xsp_hint_ask *ask,
		   char text[static XSP_HINT_SIZE]);

#endif
