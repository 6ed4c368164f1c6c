/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * steps_guess.h - steps of a program that marks none: the longest pattern of outermost spans that a thread repeats.
 *
 * It is looked for at the beginning of the capture, before the run that counts steps. A guess is said to be one, and
 * rules that would be wrong with a wrong one do not use it.
 */
#ifndef XSP_ANALYSIS_STEPS_GUESS_H
#define XSP_ANALYSIS_STEPS_GUESS_H

#include "base/u64map.h"
#include "timeline/timeline.h"

struct xsp_steps_guess {
	char *name; /* of a span that is in each once, without the number that it ends in */
	bool is; /* that span is the step; else it is the last one of a step */
	struct xsp_u64map
		depths; /* threads that repeat it → how many spans are around those that do */
};

/* Reads the beginning of the capture, if no span of it marks steps. `cut` may be NULL. *out NULL: there is no such pattern. 0
 * or a negative errno. */
int xsp_steps_guess_new(struct xsp_capture_reader *r, const struct xsp_cut *cut,
			struct xsp_steps_guess **out, struct xsp_error *err);
static inline uint64_t xsp_steps_guess_thread(uint32_t pid, uint32_t tid)
{
	return (uint64_t)pid << 32 | tid;
}

/* False: the thread does not repeat it. */
static inline bool xsp_steps_guess_depth(const struct xsp_steps_guess *g, uint32_t pid,
					 uint32_t tid, uint32_t *depth)
{
	const uint32_t *at = xsp_u64map_get(&g->depths, xsp_steps_guess_thread(pid, tid));

	*depth = at != NULL ? *at : 0;
	return at != NULL;
}
void xsp_steps_guess_free(struct xsp_steps_guess *g);

#endif
