// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * detail_large.bpf.c - the program of detail.bpf.c again, for probes that read large arguments:
 * lists of tensors, many tensors, texts. All reservations of a program have the same size, and the
 * largest would waste the ring.
 */
#define xsp_detail_bytes xsp_detail_large_bytes
#define XSP_ARGS_BYTES XSP_ARGS_LARGE
#define XSP_ARGS_STEPS 56
#define xsp_detail xsp_detail_large
#define xsp_emit_detailed xsp_emit_detailed_large
#include "detail.bpf.c"
