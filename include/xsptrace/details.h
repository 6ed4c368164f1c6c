/* SPDX-License-Identifier: BSD-2-Clause */
/* details.h - what a recording may read at its probes, beside place and time. */
#ifndef XSPTRACE_DETAILS_H
#define XSPTRACE_DETAILS_H

/* What is recorded of a span beside its times: bits of xsp_selection.details. */
enum xsp_detail {
	/* --shapes: dimensions, strides and types of tensor arguments */
	XSP_DETAIL_SHAPES = 1 << 0,
	XSP_DETAIL_OUTPUTS = 1 << 1, /* --shapes=all: the same for results */
	XSP_DETAIL_INPUTS = 1 << 2, /* --inputs: arguments that are no tensors */
	XSP_DETAIL_VALUES = 1 << 3, /* --inputs=values: first elements of small tensors */
	XSP_DETAIL_SEQUENCE = 1 << 4, /* --sequence: autograd's numbers */
	XSP_DETAIL_STACKS = 1 << 5, /* --stacks */
	XSP_DETAIL_COUNTERS = 1 << 6, /* --counters */
	XSP_DETAIL_CUDA = 1 << 7, /* arguments and results of CUDA calls */
	XSP_DETAIL_FLOPS = 1 << 8, /* --flops: what the estimates need */
	XSP_DETAIL_SCOPE = 1 << 9, /* of ranges that say their scope at each call */
	XSP_DETAIL_PYTHON = 1 << 10, /* --python */
	XSP_DETAIL_MEMORY = 1 << 11, /* --memory: allocations, which are no spans */
	XSP_DETAIL_MALLOC = 1 << 12, /* --memory=malloc: a sample of the heap's */
	XSP_DETAIL_TORCH_PYTHON = 1 << 13, /* --python by default: of PyTorch's operators */
	XSP_DETAIL_ALLOCATIONS = XSP_DETAIL_MEMORY | XSP_DETAIL_MALLOC,
};

#endif
