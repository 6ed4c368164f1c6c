/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tally.h - rows that are found by a key, made when they are met first, up to a limit; what finds no room is counted.
 *
 *	XSP_TALLY(struct kernel) kernels;                 zeros to begin with
 *	struct kernel *k = xsp_tally_row(&g->kernels, key, &(struct kernel){.name = name});
 *	if (k == NULL)
 *		return g->kernels.tally.error;            0: there are as many as may be
 *	for (size_t i = 0; i < g->kernels.count; i++)     in the order in which they were met
 *		use(&g->kernels.rows[i]);
 *
 * A row's address is valid until the next one is made.
 */
#ifndef XSP_BASE_TALLY_H
#define XSP_BASE_TALLY_H

#include "base/rows/order.h"
#include "base/rows/u64map.h"

struct xsp_tally {
	void *rows;
	size_t count, capacity;
	size_t most; /* rows; 0: any number */
	uint64_t left_out; /* calls that found `most` rows, none of them their key's */
	int error; /* -ENOMEM, once a row could not be made */
	struct xsp_u64map index_of;
};

#define XSP_TALLY(type)                                                                            \
	union {                                                                                    \
		struct xsp_tally tally;                                                            \
		struct {                                                                           \
			type *rows;                                                                \
			size_t count;                                                              \
		};                                                                                 \
	}

/* The key's row, or NULL. */
#define xsp_tally_find(t, key)                                                                     \
	((__typeof__((t)->rows))xsp_tally_find_raw(&(t)->tally, key, sizeof(*(t)->rows)))
/*
 * The key's row; a new one is a copy of what the last argument points to, which is evaluated only then, and the key a second
 * time. NULL: there are `most` rows, or no memory.
 */
#define xsp_tally_row(t, key, ...)                                                                 \
	(xsp_tally_find(t, key)                                                                    \
		 ?: (__typeof__((t)->rows))xsp_tally_add_raw(&(t)->tally, key, sizeof(*(t)->rows), \
							     1 ? (__VA_ARGS__) : (t)->rows))
#define xsp_tally_index(t, row) ((uint32_t)((row) - (t)->rows))
/* The row has that key as well. 0 or -ENOMEM, which is the tally's error, too. */
#define xsp_tally_alias(t, key, row) xsp_tally_alias_raw(&(t)->tally, key, xsp_tally_index(t, row))
/* The key finds nothing any more; its row stays. */
#define xsp_tally_forget(t, key) xsp_u64map_remove(&(t)->tally.index_of, key)
/* For when all have been counted: keys find nothing afterwards. */
#define xsp_tally_sort(t, order) xsp_tally_sort_raw(&(t)->tally, sizeof(*(t)->rows), order)
/* Defines a function that gives an owner's rows, and returns how many they are. */
#define XSP_TALLY_ROWS(name, owner, type, member)                                                  \
	size_t name(const struct owner *o, const struct type **rows)                               \
	{                                                                                          \
		*rows = o->member.rows;                                                            \
		return o->member.count;                                                            \
	}

/* No row is left; the limit is, and the memory if they are to come again. */
#define xsp_tally_free(t) xsp_tally_free_raw(&(t)->tally)
#define xsp_tally_begin_anew(t) xsp_tally_begin_anew_raw(&(t)->tally)

/* ---- what the above are made of ---- */

void *xsp_tally_add_raw(struct xsp_tally *t, uint64_t key, size_t size, const void *first);
int xsp_tally_alias_raw(struct xsp_tally *t, uint64_t key, uint32_t index);
void xsp_tally_free_raw(struct xsp_tally *t);
void xsp_tally_begin_anew_raw(struct xsp_tally *t);
void xsp_tally_sort_raw(struct xsp_tally *t, size_t size, xsp_order_fn order);

static inline void *xsp_tally_find_raw(const struct xsp_tally *t, uint64_t key, size_t size)
{
	const uint32_t *at = xsp_u64map_get(&t->index_of, key);

	return at != NULL ? (char *)t->rows + *at * size : NULL;
}

#endif
