/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * flops.h - floating-point operations of a PyTorch operator, estimated from the shapes of its
 * arguments. A multiplication and an addition are two.
 *
 * Counted where the work is done, once: aten::mm and not the aten::matmul around it, aten::conv2d and
 * not the aten::convolution inside. The formulas are those of PyTorch's profiler
 * (torch/csrc/profiler/util.cpp, computeFlops), and of torch/utils/flop_counter.py for what it lacks.
 */
#ifndef XSP_CATALOG_FLOPS_H
#define XSP_CATALOG_FLOPS_H

#include "catalog/torch_values.h"

/* False: no formula for this operator, or its arguments do not tell. */
bool xsp_flops(const struct xsp_torch_values *v, uint64_t *flops);

#endif
