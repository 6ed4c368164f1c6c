/* SPDX-License-Identifier: BSD-2-Clause */
/* copy.h - writes a library into a memfd that the target has made. */
#ifndef XSP_INJECT_COPY_H
#define XSP_INJECT_COPY_H

#include "inject/held.h"

#define XSP_COPY_FLAGS 3U /* the target's flags: MFD_CLOEXEC | MFD_ALLOW_SEALING */

/*
 * Fills the file of the process's descriptor `number` and seals it, so that what is loaded is what was written. The
 * target chose the number. So we write only to an empty memfd of the target's user, and through the very descriptor
 * that we checked. 0, or a negative errno with a constant text.
 */
int xsp_copy_fill(const struct xsp_held *h, uint64_t number, const char *library, const char **why);

#endif
