/* SPDX-License-Identifier: BSD-2-Clause */
/* part.h - the options that cut a part out of a capture, for the verbs that read one. */
#ifndef XSP_CLI_CUT_OPTIONS_H
#define XSP_CLI_CUT_OPTIONS_H

#include "base/error.h"
#include "capture/capture.h"
#include "timeline/timeline.h"

struct xsp_cut_options {
	struct xsp_cut cut; /* what does not depend on the capture */
	const char *from, *to; /* as given, or NULL */
	const char *step; /* --step */
	pid_t *tids;
	const char **comms;
	struct xsp_cut_pattern *patterns;
	char *text; /* all of them, for outputs */
	bool given; /* any of them */
};

/* When all have been taken: finds times and steps in the capture; then o->cut is whole. Reads the capture where steps
 * are asked for. 0 or a negative errno. */
int xsp_cut_resolve(struct xsp_cut_options *o, struct xsp_capture_reader *r, struct xsp_error *err);
/* Several captures are taken whole: -EINVAL where a part is asked for. */
int xsp_cut_refuse_several(const struct xsp_cut_options *o, const char *verb,
			   struct xsp_error *err);
/* NULL: no part is asked for. */
static inline const struct xsp_cut *xsp_cut_of(const struct xsp_cut_options *o)
{
	return o->given ? &o->cut : NULL;
}
void xsp_cut_clear(struct xsp_cut_options *o);

/* What is left of a capture beside spans and values, as a sink counts it. */
struct xsp_cut_left {
	uint64_t waits, samples, activities, memory;
};
struct xsp_timeline_sink xsp_cut_left_sink(struct xsp_cut_left *left);
/*
 * Behind the run: 0, or -ENOENT and XSP_STATUS_NO_MATCH where nothing of the capture is left, or no span, and it is spans that
 * the cut chooses among (-e, --min-duration).
 */
int xsp_cut_check_left(const struct xsp_cut_options *o, const struct xsp_timeline_counts *counts,
		       const struct xsp_cut_left *left, struct xsp_error *err);

#endif
