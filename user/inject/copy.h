/* SPDX-License-Identifier: BSD-2-Clause */
/* copy.h - a library, written into a memfd that the target has made. */
#ifndef XSP_INJECT_COPY_H
#define XSP_INJECT_COPY_H

#include "inject/held.h"

#define XSP_COPY_FLAGS 3U /* MFD_CLOEXEC | MFD_ALLOW_SEALING, which the target makes it with */

/*
 * Fills the file behind descriptor `number` of the process and seals it, so that what is loaded is
 * what was written. The number is only what the target says: nothing is written unless it is an
 * empty memfd that belongs to the target's user, and never through another descriptor than the one
 * that was looked at. 0, or a negative errno with a constant text.
 */
int xsp_copy_fill(const struct xsp_held *h, uint64_t number, const char *library, const char **why);

#endif
