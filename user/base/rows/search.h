/* SPDX-License-Identifier: BSD-2-Clause */
/* search.h - binary search in a sorted array. */
#ifndef XSP_BASE_SEARCH_H
#define XSP_BASE_SEARCH_H

#include <stdbool.h>
#include <stddef.h>

/*
 * A statement. `low` becomes the first index from `low` to `end` for which `before` is false, or
 * `end`. `before` is an expression of the index `i`, which this declares. It must be true up to
 * some index and false from there on.
 */
#define XSP_LOWER_BOUND(low, end, i, before)                                                       \
	for (size_t i, high_##i = (end);                                                           \
	     (low) < high_##i && ((i) = (low) + (high_##i - (low)) / 2, true);)                    \
		if (before)                                                                        \
			(low) = (i) + 1;                                                           \
		else                                                                               \
			high_##i = (i)

#endif
