/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * flops.h - estimates the floating-point operations of a PyTorch operator from the shapes of its
 * arguments. A multiplication and an addition are two.
 *
 * They are counted once, where the work is done: in aten::mm, not in the aten::matmul around it; in
 * aten::conv2d, not in the aten::convolution inside it. The formulas are those of PyTorch's
 * profiler (torch/csrc/profiler/util.cpp, computeFlops), and those of torch/utils/flop_counter.py
 * for the rest.
 */
#ifndef XSP_CATALOG_FLOPS_H
#define XSP_CATALOG_FLOPS_H

#include "catalog/torch/values.h"

/* False: there is no formula for this operator, or the shapes are unknown. */
bool xsp_flops(const struct xsp_torch_values *v, uint64_t *flops);

#endif
