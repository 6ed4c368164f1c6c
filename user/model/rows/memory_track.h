/* SPDX-License-Identifier: BSD-2-Clause */
/* memory_track.h - the track of a kind of memory: the total after each event. */
#ifndef XSP_MODEL_MEMORY_TRACK_H
#define XSP_MODEL_MEMORY_TRACK_H

#include "model/view.h"

#define XSP_MEMORY_TRACK 64

/* "GPU memory 0". False: the total after the event is not known. */
bool xsp_memory_track(const struct xsp_view *v, const struct xsp_memory_event *e,
		      char name[XSP_MEMORY_TRACK]);

/* Does this say only that the process whose end ended the recording has no memory any more? Its
 * track keeps what it had last. */
bool xsp_memory_is_over(const struct xsp_view *v, const struct xsp_process_memory_at *at);

#endif
