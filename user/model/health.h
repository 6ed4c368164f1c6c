/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * health.h - what of a program's run is not in its capture: one definition for all outputs, in the same words.
 *
 * Lost are events that happened and were not recorded. Damage is of the file. What was left out on purpose, or could
 * not be traced at all, is neither: see left_out and gaps.
 */
#ifndef XSP_MODEL_HEALTH_H
#define XSP_MODEL_HEALTH_H

#include <stddef.h>

#include "capture/capture.h"

enum xsp_loss {
	XSP_LOSS_ENTRIES,
	XSP_LOSS_EXITS,
	XSP_LOSS_OTHER,
	XSP_LOSS_NAMES, /* names, and no events */
	XSP_LOSS_MISSED,
	XSP_LOSS_UNTRACKED,
	XSP_LOSSES
};

/* "entry", "entries". */
struct xsp_loss_words {
	const char *one, *several;
};
extern const struct xsp_loss_words xsp_loss_words[XSP_LOSSES];

struct xsp_health {
	bool known; /* does the capture hold counters of what it lost? */
	uint64_t lost[XSP_LOSSES];
	uint64_t events_lost; /* all of them, without names */
	uint64_t left_out; /* calls held back by filters of the recording */
	bool gaps; /* something of what was asked for could not be recorded: xsp_capture_gap() */
	uint64_t torn_bytes, bad_chunks,
		bad_events; /* so far: events are looked at when they are read */
	enum xsp_capture_end ended;
};

struct xsp_health xsp_health_of(const struct xsp_capture_reader *r);

/* Is the file damaged, or without its end? */
bool xsp_health_is_damaged(const struct xsp_health *h);
/* Nothing was lost, and nothing is damaged. */
bool xsp_health_is_whole(const struct xsp_health *h);

/* A sentence each for what is wrong with the file; NULL: that is not. */
enum xsp_damage { XSP_DAMAGE_BROKEN, XSP_DAMAGE_TORN, XSP_DAMAGE_NO_END, XSP_DAMAGES };
#define XSP_HEALTH_TEXT 256
const char *xsp_health_damage(const struct xsp_health *h, enum xsp_damage which,
			      char text[XSP_HEALTH_TEXT]);
/* "12 events were lost; the capture is damaged: ..."; NULL: the capture has all events. */
const char *xsp_health_text(const struct xsp_health *h, char text[XSP_HEALTH_TEXT]);

#endif
