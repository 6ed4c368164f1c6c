/* SPDX-License-Identifier: BSD-2-Clause */
/* waits.h - --waits in the Chrome trace: a row of states under each thread, arrows from who wakes to who is woken. */
#ifndef XSP_EXPORT_CHROME_WAITS_H
#define XSP_EXPORT_CHROME_WAITS_H

#include "export/export_private.h"
#include "model/rows/states.h"

int xsp_chrome_wait(struct xsp_export *x, const struct xsp_wait *wait);
/* The arguments of a state: `"key":value` pairs. 0 or a negative errno. */
int xsp_chrome_state_arguments(struct xsp_export *x, const struct xsp_state_slice *s);
/* After the last wait: that threads run on. */
int xsp_chrome_last_states(struct xsp_export *x);
/* The top-level key: where all of each thread's time went. */
void xsp_chrome_threads(struct xsp_export *x);

#endif
