/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * args.h - arguments and results of PyTorch's operators under the keys and in the spelling of
 * PyTorch's own profiler with record_shapes (torch/csrc/profiler/kineto_shim.cpp, profiler_kineto.cpp):
 * "Input Dims", "Input Strides", "Input type", "Concrete Inputs".
 */
#ifndef XSP_EXPORT_CHROME_ARGS_H
#define XSP_EXPORT_CHROME_ARGS_H

#include "export/export_private.h"

/* Of the sections ARGS and OUTPUTS. */
int xsp_chrome_args(struct xsp_export *x, const struct xsp_span *span,
		    const struct xsp_section *section);

#endif
