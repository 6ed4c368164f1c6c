/* SPDX-License-Identifier: BSD-2-Clause */
/* metadata.h - top-level keys of the Chrome trace that PyTorch and Kineto give theirs: what was recorded, by which rank. */
#ifndef XSP_EXPORT_CHROME_METADATA_H
#define XSP_EXPORT_CHROME_METADATA_H

#include "export/export_private.h"

void xsp_chrome_metadata(struct xsp_export *x);

#endif
