/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * health.h - what a capture lacks of a program's run: one definition for all outputs, in the same words. Losses are
 * events that happened and were not recorded. Damage is the file's. What filters dropped, or nothing could trace, is
 * neither: see left_out and gaps.
 */
#ifndef XSP_MODEL_HEALTH_H
#define XSP_MODEL_HEALTH_H

#include <stddef.h>

#include "capture/capture.h"

enum xsp_loss {
	XSP_LOSS_ENTRIES,
	XSP_LOSS_EXITS,
	XSP_LOSS_OTHER,
	XSP_LOSS_NAMES, /* names, not events */
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
	bool known; /* does the capture count its losses? */
	uint64_t lost[XSP_LOSSES];
	uint64_t events_lost; /* of all kinds but names */
	uint64_t left_out; /* calls that the recording's filters dropped */
	bool gaps; /* a part of what was asked for could not be recorded: xsp_capture_gap() */
	uint64_t torn_bytes, bad_chunks, bad_events; /* so far: reading an event checks it */
	enum xsp_capture_end ended;
};

struct xsp_health xsp_health_of(const struct xsp_capture_reader *r);

/* One sentence: what was lost, or that nothing was, as far as the capture tells. Raw bytes of the capture's may be in it.
 * *warns: it is no good news. */
#define XSP_HEALTH_LOSSES 768
const char *xsp_health_losses(const struct xsp_capture_reader *r, const struct xsp_health *h,
			      bool *warns, char text[XSP_HEALTH_LOSSES]);

/* Is the file damaged, or does it lack its end? */
bool xsp_health_is_damaged(const struct xsp_health *h);
/* Nothing was lost, and nothing is damaged. */
bool xsp_health_is_whole(const struct xsp_health *h);

/* A sentence for each kind of damage; NULL: not present. */
enum xsp_damage { XSP_DAMAGE_BROKEN, XSP_DAMAGE_TORN, XSP_DAMAGE_NO_END, XSP_DAMAGES };
#define XSP_HEALTH_TEXT 256
const char *xsp_health_damage(const struct xsp_health *h, enum xsp_damage which,
			      char text[XSP_HEALTH_TEXT]);
/* "12 events were lost; the capture is damaged: ..."; NULL: the capture has all events. */
const char *xsp_health_text(const struct xsp_health *h, char text[XSP_HEALTH_TEXT]);

#endif
