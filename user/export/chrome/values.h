/* SPDX-License-Identifier: BSD-2-Clause */
/* values.h - values that programs tell in the Chrome trace: a track of counters for each name and process. */
#ifndef XSP_EXPORT_CHROME_VALUES_H
#define XSP_EXPORT_CHROME_VALUES_H

#include "export/export_private.h"

int xsp_chrome_value(struct xsp_export *x, const struct xsp_value *v);

#endif
