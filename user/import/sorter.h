/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sorter.h - records of any size in order of time, however many: what does not fit into memory is sorted piece by piece
 * into a nameless file, and merged from there.
 */
#ifndef XSP_IMPORT_SORTER_H
#define XSP_IMPORT_SORTER_H

#include <stddef.h>
#include <stdint.h>

/* What each record begins with. */
struct xsp_sorted {
	int64_t time_ns;
	uint32_t size; /* with this, a multiple of 8, at most XSP_SORTED_MAX */
	uint32_t reserved; /* the caller's */
};
#define XSP_SORTED_MAX 512U
#define XSP_SORTER_MEMORY ((size_t)64 << 20)

struct xsp_sorter;

/*
 * `compare` orders records of equal times (as qsort's does); those that are equal to it stay in the order in which they
 * came. `memory`: bytes of records kept, at most. `folder`: where the file would be. 0 or -ENOMEM.
 */
typedef int (*xsp_sorter_compare_fn)(const struct xsp_sorted *a, const struct xsp_sorted *b);
int xsp_sorter_new(size_t memory, const char *folder, xsp_sorter_compare_fn compare,
		   struct xsp_sorter **out);
void xsp_sorter_free(struct xsp_sorter *s); /* NULL is allowed */

/* A copy is kept. 0 or a negative errno. */
int xsp_sorter_add(struct xsp_sorter *s, const struct xsp_sorted *record);
/* The next one, in order, valid until the next call; no more is added from the first call on. 1, 0 at the end, or a
 * negative errno. */
int xsp_sorter_next(struct xsp_sorter *s, const struct xsp_sorted **record);

#endif
