/* SPDX-License-Identifier: BSD-2-Clause */
/* sort.h - arrays in order. */
#ifndef XSP_BASE_SORT_H
#define XSP_BASE_SORT_H

#include <stddef.h>
#include <stdlib.h>

/* Also of no elements, where the array may be NULL. */
#define XSP_SORT(list, count, order)                                                               \
	((count) > 0 ? qsort((list), (count), sizeof(*(list)), (order)) : (void)0)

/* Pointers to the rows, of `size` bytes each, in an order that compares such pointers. The caller frees them; NULL: no
 * memory. */
static inline void *xsp_sorted(const void *rows, size_t size, size_t count,
			       int (*order)(const void *, const void *))
{
	const char **out = calloc(count + 1, sizeof(*out));

	for (size_t i = 0; out != NULL && i < count; i++)
		out[i] = (const char *)rows + i * size;
	if (out != NULL)
		qsort(out, count, sizeof(*out), order);
	return out;
}

#endif
