/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * schedule.h - --windows: at which times everything is recorded. Between them nothing of ours is in the target. Windows
 * begin at fixed times, so that recordings on several hosts have theirs at the same moments.
 */
#ifndef XSP_RECORD_SCHEDULE_H
#define XSP_RECORD_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xsp_schedule {
	uint64_t length_ns; /* of a window; 0: there is no schedule */
	uint64_t every_ns; /* from one beginning to the next */
	uint64_t count; /* of windows; 0: they go on */
	bool adapts; /* --sample-rate: a window in which new names come lasts longer */
	uint64_t origin_ns; /* when the first one begins, CLOCK_MONOTONIC */
};

static inline bool xsp_is_scheduled(const struct xsp_schedule *s)
{
	return s->length_ns > 0;
}

/* When the first window after that time is to begin. One that begins late lasts as long all the same. */
uint64_t xsp_schedule_next(const struct xsp_schedule *s, uint64_t ns);
/* "5 of 2 s, one every 60 s" */
#define XSP_SCHEDULE_TEXT 96
const char *xsp_schedule_text(const struct xsp_schedule *s, char text[XSP_SCHEDULE_TEXT]);

#endif
