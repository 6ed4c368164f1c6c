/* SPDX-License-Identifier: BSD-2-Clause */
/* scope.h - what a span is to PyTorch's profiler: an operator, a node of the backward pass, a
 * user's range. */
#ifndef XSP_MODEL_SCOPE_H
#define XSP_MODEL_SCOPE_H

#include "model/view.h"

/* "function", "backward", "user", ...; NULL: not known. At most 16 bytes. */
const char *xsp_span_scope(const struct xsp_capture_probe *probe, const struct xsp_span *span);
/* Category user_annotation, not cpu_op? As in Kineto: the users' scope, and ranges without a known scope. */
bool xsp_is_user_annotation(const struct xsp_capture_probe *probe, const struct xsp_span *span);

#endif
