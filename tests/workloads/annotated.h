/* SPDX-License-Identifier: BSD-2-Clause */
/* annotated.h - the parts of the workload `annotated`, each counting the scopes it opened. */
#ifndef XSP_ANNOTATED_H
#define XSP_ANNOTATED_H

#include "workload.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Names that stand each on a page of its own, which nothing else touches. */
#define ANNOTATED_PAGES 40
#define ANNOTATED_DYNAMIC 16

struct annotated_counts {
	uint64_t cpp_outer, cpp_inner, cpp_throw, dynamic[ANNOTATED_DYNAMIC], view, c_outer,
		c_inner, c_manual, library, pages[ANNOTATED_PAGES];
};

uint64_t annotated_c(struct annotated_counts *n, uint64_t x);
uint64_t annotated_pages(struct annotated_counts *n, uint64_t x);
/* in libannotated.so */
uint64_t annotated_library(struct annotated_counts *n, uint64_t x);

#ifdef __cplusplus
}
#endif

#endif
