/* SPDX-License-Identifier: BSD-2-Clause */
/* windows.h - why a capture is of a part of the time: --windows, or the brake's. */
#ifndef XSP_TIMELINE_WINDOWS_H
#define XSP_TIMELINE_WINDOWS_H

#include "capture/capture.h"

/* The windows that were asked for, in words. Between them nothing was recorded, not even waits. NULL: there were none. */
static inline const char *xsp_capture_schedule(const struct xsp_capture_reader *r)
{
	return xsp_capture_info(r, "schedule");
}

/* The option that made the windows. */
static inline const char *xsp_capture_windows_option(const struct xsp_capture_reader *r)
{
	return xsp_capture_schedule(r) != NULL ? "--windows" : "--max-overhead";
}

#endif
