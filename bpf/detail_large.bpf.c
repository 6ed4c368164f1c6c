// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * detail_large.bpf.c - the program of detail.bpf.c once more, for probes that read more of their
 * arguments: lists of tensors, many tensors, texts. A reservation has one size in all of a program,
 * and one for the largest would fill the ring with nothing.
 */
#define xsp_detail_bytes xsp_detail_large_bytes
#define XSP_ARGS_BYTES XSP_ARGS_LARGE
#define XSP_ARGS_STEPS 56
#define xsp_detail xsp_detail_large
#include "detail.bpf.c"
