/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sorter.h - sorts any number of records of any size by time. What does not fit into memory is
 * sorted in runs, written into a nameless file, and merged from there.
 */
#ifndef XSP_IMPORT_SORTER_H
#define XSP_IMPORT_SORTER_H

#include <stddef.h>
#include <stdint.h>

/* The head of each record. */
struct xsp_sorted {
	int64_t time_ns;
	uint32_t size; /* with this, a multiple of 8, at most XSP_SORTED_MAX */
	uint32_t reserved; /* for the caller */
};
#define XSP_SORTED_MAX 512U
#define XSP_SORTER_MEMORY ((size_t)64 << 20)

struct xsp_sorter;

/*
 * `compare` orders records of equal times (as for qsort); if it returns 0, they keep their order.
 * `memory`: the most bytes of records in memory. `folder`: where the file would be. 0 or -ENOMEM.
 */
typedef int (*xsp_sorter_compare_fn)(const struct xsp_sorted *a, const struct xsp_sorted *b);
int xsp_sorter_new(size_t memory, const char *folder, xsp_sorter_compare_fn compare,
		   struct xsp_sorter **out);
void xsp_sorter_free(struct xsp_sorter *s); /* NULL is allowed */

/* Keeps a copy. 0 or a negative errno. */
int xsp_sorter_add(struct xsp_sorter *s, const struct xsp_sorted *record);
/* The next record in order, valid until the next call. After the first call no record may be added.
 * 1; 0 at the end; or a negative errno. */
int xsp_sorter_next(struct xsp_sorter *s, const struct xsp_sorted **record);

#endif
