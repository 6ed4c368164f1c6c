/* SPDX-License-Identifier: BSD-2-Clause */
/* sequence.h - --sequence: what pairs the operators of a PyTorch library with the nodes of
 * the backward pass. */
#ifndef XSP_PROBES_TORCH_SEQUENCE_H
#define XSP_PROBES_TORCH_SEQUENCE_H

#include "probes/probe.h"

/*
 * Adds autograd's counter to the operators of the list (XSP_SECTION_SEQUENCE) and their number to
 * backward nodes (XSP_SECTION_NODE), and finds the counter. Drops what is not understood in this
 * library.
 */
void xsp_torch_capture_sequence(const struct xsp_provider *self, struct xsp_module *m,
				struct xsp_probe_list *list);

#endif
