/* SPDX-License-Identifier: BSD-2-Clause */
/* search.h - where something begins in an array that is in order. */
#ifndef XSP_BASE_SEARCH_H
#define XSP_BASE_SEARCH_H

#include <stdbool.h>
#include <stddef.h>

/*
 * A statement: `low` becomes the first index from itself up to `end` for which `before` (an expression of the index `i`,
 * which is declared by it) is false; `end` if there is none. What is true for one index must be for all before it.
 */
#define XSP_LOWER_BOUND(low, end, i, before)                                                       \
	for (size_t i, high_##i = (end);                                                           \
	     (low) < high_##i && ((i) = (low) + (high_##i - (low)) / 2, true);)                    \
		if (before)                                                                        \
			(low) = (i) + 1;                                                           \
		else                                                                               \
			high_##i = (i)

#endif
