/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ordered.h - spans come when they end, children first; some formats want each begin and each end in order of
 * time, row by row.
 *
 * They are kept in nameless files beside the output until all have come: memory does not grow with them. What
 * came out of order (stacks that proved to be abandoned) is sorted, XSP_ORDERED_LATE of them at a time.
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

/* `row` counts from 0; its spans nest. `passed`: it was not seen to end, and may come behind those that were around it and
 * those that began at its end. */
int xsp_ordered_add(struct xsp_ordered *o, uint32_t row, const struct xsp_ordered_span *span,
		    bool passed);

/* Tells begins and ends of a row, so that they nest and times never fall: at most once a row. 0, or what `fn`
 * returned that was not 0. */
typedef int (*xsp_ordered_fn)(void *ctx, bool begins, uint32_t name, uint64_t time_ns);
int xsp_ordered_emit(struct xsp_ordered *o, uint32_t row, xsp_ordered_fn fn, void *ctx);

#endif
