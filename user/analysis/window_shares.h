/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * window_shares.h - with windows of --max-overhead: what part of the time each name takes, without probes, and the 95 %
 * error of that.
 *
 * Of a call that is cut at a window's end the part in it is seen, and of one that is cut at the beginning nothing. Both
 * are equally long on average, so the seen part counts twice.
 */
#ifndef XSP_ANALYSIS_WINDOW_SHARES_H
#define XSP_ANALYSIS_WINDOW_SHARES_H

#include "timeline/timeline.h"

#define XSP_SHARE_GROUPS 24U /* of windows; their spread is the error */

struct xsp_window_shares;

/* Of one name. Zero-initialise. */
struct xsp_share_sums {
	double ns[XSP_SHARE_GROUPS];
	double probes_ns[XSP_SHARE_GROUPS]; /* estimated, taken from them */
	double squares; /* of what each call adds */
	double whole_squares; /* of the lengths of calls that were seen whole */
	uint64_t calls, whole;
};

/* *out NULL: there are too few windows, or only a part of the recording is read. 0 or -ENOMEM. */
int xsp_window_shares_new(const struct xsp_timeline *t, struct xsp_window_shares **out);
void xsp_window_shares_free(struct xsp_window_shares *s);
/* Adds a span to its name's sums, which it makes. 0 or -ENOMEM. */
int xsp_window_shares_add(struct xsp_window_shares *s, struct xsp_share_sums **sums,
			  const struct xsp_span *span);
/* After the run, of one thread's time. False: it is not known. */
bool xsp_window_shares_of(struct xsp_window_shares *s, const struct xsp_share_sums *sums,
			  double *share, double *error);

#endif
