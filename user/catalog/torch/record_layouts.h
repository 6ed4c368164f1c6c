/* SPDX-License-Identifier: BSD-2-Clause */
/* record_layouts.h - at::RecordFunction, of which PyTorch's callbacks get the address. */
#ifndef XSP_CATALOG_TORCH_RECORD_LAYOUTS_H
#define XSP_CATALOG_TORCH_RECORD_LAYOUTS_H

#include "xsptrace/ring.h"

/* In the known versions. An empty row fits none. */
extern const struct xsp_record_layout xsp_record_layouts[XSP_RECORD_LAYOUTS];

#endif
