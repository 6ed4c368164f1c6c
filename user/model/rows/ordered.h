/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ordered.h - spans come when they end, children first; some formats need each begin and each end in order of time, row
 * by row. Nameless files beside the output keep them until all have come, so memory does not grow. Spans out of order
 * (of abandoned stacks) are sorted, XSP_ORDERED_LATE of them at a time.
 */
#ifndef XSP_MODEL_ORDERED_H
#define XSP_MODEL_ORDERED_H

#include <stdbool.h>
#include <stdint.h>

#define XSP_ORDERED_LATE (1U << 20)

struct xsp_ordered_span {
	uint64_t start_ns, end_ns;
	uint32_t name; /* the caller's */
	uint32_t depth; /* spans around it */
};

struct xsp_ordered;

/* `path`: the output's name. */
int xsp_ordered_new(const char *path, struct xsp_ordered **out);
void xsp_ordered_free(struct xsp_ordered *o); /* NULL is allowed */

/* `row` counts from 0; its spans nest. `passed`: its end was not seen. It may come after spans that were around it and
 * after spans that began at its end. */
int xsp_ordered_add(struct xsp_ordered *o, uint32_t row, const struct xsp_ordered_span *span,
		    bool passed);

/* Calls `fn` with the begins and ends of a row: they nest, and times never fall. Once a row at most. 0, or a value of
 * `fn` other than 0. */
typedef int (*xsp_ordered_fn)(void *ctx, bool begins, uint32_t name, uint64_t time_ns);
int xsp_ordered_emit(struct xsp_ordered *o, uint32_t row, xsp_ordered_fn fn, void *ctx);

#endif
