/* SPDX-License-Identifier: BSD-2-Clause */
/* grow.h - arrays that grow by doubling. */
#ifndef XSP_BASE_GROW_H
#define XSP_BASE_GROW_H

#include <errno.h>
#include <stddef.h>

/*
 * Makes room for `need` elements of `size` bytes in the array *array, whose capacity (in
 * elements) is *capacity. New elements are not initialised. Returns 0, or -ENOMEM with the
 * array unchanged (also when the size would overflow).
 */
int xsp_grow_raw(void **array, size_t *capacity, size_t need, size_t size);

/* xsp_grow(&pointer, &capacity, need): the same with the element size taken from the pointer. */
#define xsp_grow(array, capacity, need)                                                            \
	((need) <= *(capacity)                                                                     \
		 ? 0                                                                               \
		 : xsp_grow_raw((void **)(array), (capacity), (need), sizeof(**(array))))

/* The same, and all new elements up to the capacity are zeros. */
int xsp_grow_zeroed_raw(void **array, size_t *capacity, size_t need, size_t size);
#define xsp_grow_zeroed(array, capacity, need)                                                     \
	((need) <= *(capacity)                                                                     \
		 ? 0                                                                               \
		 : xsp_grow_zeroed_raw((void **)(array), (capacity), (need), sizeof(**(array))))

/* Appends one element. 0 or -ENOMEM. */
#define XSP_APPEND(list, capacity, count, ...)                                                     \
	(xsp_grow(&(list), &(capacity), (size_t)(count) + 1) < 0                                   \
		 ? -ENOMEM                                                                         \
		 : ((list)[(count)++] = __VA_ARGS__, 0))

/* The same of an array of pointers, to an element of zeros that is made: it, or NULL. */
void *xsp_append_zeroed_raw(void **array, size_t *capacity, size_t *count, size_t size);
#define XSP_APPEND_ZEROED(list, capacity, count)                                                   \
	xsp_append_zeroed_raw((void **)&(list), &(capacity), &(count), sizeof(**(list)))

#endif
