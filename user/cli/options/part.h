/* SPDX-License-Identifier: BSD-2-Clause */
/* part.h - the options that choose a range of a capture, for the verbs that read one. */
#ifndef XSP_CLI_CUT_OPTIONS_H
#define XSP_CLI_CUT_OPTIONS_H

#include "base/error.h"
#include "capture/capture.h"
#include "timeline/timeline.h"

struct xsp_cut_options {
	struct xsp_cut cut; /* the part that does not depend on the capture */
	const char *from, *to; /* as given, or NULL */
	const char *step; /* --step */
	pid_t *tids;
	const char **comms;
	struct xsp_cut_pattern *patterns;
	char *text; /* all of these options, for outputs */
	bool given; /* any of them was given */
};

/* Call it after the last option. Finds the times and steps in the capture and completes o->cut;
 * reads the capture if steps are asked for. 0 or a negative errno. */
int xsp_cut_resolve(struct xsp_cut_options *o, struct xsp_capture_reader *r, struct xsp_error *err);
/* Several captures are always read whole: -EINVAL if a range is asked for. */
int xsp_cut_refuse_several(const struct xsp_cut_options *o, const char *verb,
			   struct xsp_error *err);
/* NULL: no range is asked for. */
static inline const struct xsp_cut *xsp_cut_of(const struct xsp_cut_options *o)
{
	return o->given ? &o->cut : NULL;
}
void xsp_cut_clear(struct xsp_cut_options *o);

/* What a range keeps of a capture besides spans and values, as a sink counts it. */
struct xsp_cut_left {
	uint64_t waits, samples, activities, memory;
};
struct xsp_timeline_sink xsp_cut_left_sink(struct xsp_cut_left *left);
/*
 * Call it after the run. 0, or -ENOENT and XSP_STATUS_NO_MATCH if the range keeps nothing. It also
 * fails without spans if the options choose among spans (-e, --min-duration).
 */
int xsp_cut_check_left(const struct xsp_cut_options *o, const struct xsp_timeline_counts *counts,
		       const struct xsp_cut_left *left, struct xsp_error *err);

#endif
