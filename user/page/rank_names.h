/* SPDX-License-Identifier: BSD-2-Clause */
/* rank_names.h - how outputs name the processes of a job, and how its captures' clocks differ. */
#ifndef XSP_REPORT_RANK_NAMES_H
#define XSP_REPORT_RANK_NAMES_H

#include "analysis/ranks/ranks.h"
#include "model/view.h"

/* Zero-initialise. */
struct xsp_rank_names {
	struct xsp_view_job job; /* points to the fields below */
	int64_t *shifts;
	struct xsp_view_named *names;
};

/* For a number of captures that have been matched. 0 or -ENOMEM; call xsp_rank_names_clear() in
 * either case. */
int xsp_rank_names_of(const struct xsp_ranks *ranks, size_t captures, struct xsp_rank_names *out);
void xsp_rank_names_clear(struct xsp_rank_names *n);

#endif
