/* SPDX-License-Identifier: BSD-2-Clause */
/* span_check.h - what holds for the spans of any capture, however damaged or invented. */
#ifndef XSP_TESTS_SPAN_CHECK_H
#define XSP_TESTS_SPAN_CHECK_H

#include <stdlib.h>

#include "timeline/timeline.h"

static inline int span_check_order(const void *a, const void *b)
{
	const struct xsp_span *x = a, *y = b;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->end_ns != y->end_ns)
		return x->end_ns > y->end_ns ? -1 : 1;
	return x->serial < y->serial ? -1 : 1;
}

static inline const char *span_check_counts(const struct xsp_timeline_counts *c, size_t count)
{
	if (c->spans != count || c->entries != c->spans)
		return "every entry gives one span";
	if (c->exits - c->orphan_exits + c->unfinished + c->unwound + c->exit_lost != c->spans)
		return "every span ends in one way";
	return NULL;
}

/* Returns NULL, or says what is wrong. Sorts the spans. */
static inline const char *span_check(struct xsp_span *spans, size_t count,
				     const struct xsp_timeline_counts *c)
{
	const char *wrong = span_check_counts(c, count);
	uint64_t *ends = calloc(count + 1, sizeof(*ends));
	size_t depth = 0;
	if (ends == NULL)
		return "out of memory";
	if (count > 0)
		qsort(spans, count, sizeof(*spans), span_check_order);
	for (size_t i = 0; i < count && wrong == NULL; i++) {
		const struct xsp_span *s = &spans[i], *p = i > 0 ? &spans[i - 1] : s;
		if (p->pid != s->pid || p->tid != s->tid || p->row != s->row)
			depth = 0;
		if (s->end_ns < s->start_ns)
			wrong = "no duration is negative";
		else if (s->self_ns > s->end_ns - s->start_ns)
			wrong = "self time is part of the duration";
		while (depth > 0 && ends[depth - 1] <= s->start_ns)
			depth--;
		if (depth > 0 && s->end_ns > ends[depth - 1])
			wrong = "rows hold no overlapping spans";
		ends[depth++] = s->end_ns;
	}
	free(ends);
	return wrong;
}

#endif
