/* SPDX-License-Identifier: BSD-2-Clause */
/* torch_sequence.h - --sequence: what pairs the operators of a PyTorch library with the nodes of the
 * backward pass. */
#ifndef XSP_PROBES_TORCH_SEQUENCE_H
#define XSP_PROBES_TORCH_SEQUENCE_H

#include "probes/probe.h"

/*
 * Has operators of the list carry autograd's counter (XSP_SECTION_SEQUENCE) and backward nodes their
 * number (XSP_SECTION_NODE), and tells where the counter is. What is not understood in this library
 * is left out.
 */
void xsp_torch_capture_sequence(const struct xsp_provider *self, struct xsp_module *m,
				struct xsp_probe_list *list);

#endif
