/* SPDX-License-Identifier: BSD-2-Clause */
/* order.h - arrays in order: comparing, sorting, adding up what is equal, keeping the first few. */
#ifndef XSP_BASE_ORDER_H
#define XSP_BASE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

typedef int (*xsp_order_fn)(const void *a, const void *b);

/* -1, 0 or 1. */
#define XSP_COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

/*
 * A function `name` for qsort(): by the first of several members in which rows x and y of that type differ.
 *
 *	static XSP_ORDER(by_time, struct place, XSP_FALLING(ns) ?: XSP_RISING(key));
 */
#define XSP_ORDER(name, type, ...)                                                                 \
	int name(const void *a, const void *b)                                                     \
	{                                                                                          \
		const type *x = a, *y = b;                                                         \
                                                                                                   \
		return __VA_ARGS__;                                                                \
	}
/* The same of an array of pointers to rows. */
#define XSP_ORDER_POINTERS(name, type, ...)                                                        \
	int name(const void *a, const void *b)                                                     \
	{                                                                                          \
		const type *x = *(const type *const *)a, *y = *(const type *const *)b;             \
                                                                                                   \
		return __VA_ARGS__;                                                                \
	}
#define XSP_RISING(member) XSP_COMPARE(x->member, y->member)
#define XSP_FALLING(member) XSP_COMPARE(y->member, x->member)

/* qsort(); the list may be NULL where the count is 0. */
#define XSP_SORT(list, count, order) xsp_sort_raw(list, count, sizeof(*(list)), order)
static inline void xsp_sort_raw(void *list, size_t count, size_t size, xsp_order_fn order)
{
	if (list != NULL && count > 1)
		qsort(list, count, size, order);
}

/* Pointers to the rows, in an order that compares such pointers. The caller frees them; NULL: no memory. */
void *xsp_sorted_raw(const void *rows, size_t size, size_t count, xsp_order_fn order);
#define xsp_sorted(rows, count, order) xsp_sorted_raw(rows, sizeof(*(rows)), count, order)

/* Sorts, and makes one row of those that are equal in that order: add(to, more). How many are left. */
#define XSP_SUM_UP(list, count, order, add) xsp_sum_up_raw(list, count, sizeof(*(list)), order, add)
size_t xsp_sum_up_raw(void *list, size_t count, size_t size, xsp_order_fn order,
		      void (*add)(void *to, const void *more));

/*
 * Puts a copy of *one into a list that is in order, after its equals, and holds at most `most`: the last goes where it is full.
 * False: it would come after all of a full list.
 */
#define XSP_RANK(list, count, most, one, order)                                                    \
	xsp_rank_raw(list, count, most, sizeof(*(list)), 1 ? (one) : (list), order)
bool xsp_rank_raw(void *list, size_t *count, size_t most, size_t size, const void *one,
		  xsp_order_fn order);

#endif
