/* SPDX-License-Identifier: BSD-2-Clause */
/* autograd.h - backward nodes and the user's own ranges in a PyTorch library. */
#ifndef XSP_PROBES_TORCH_AUTOGRAD_H
#define XSP_PROBES_TORCH_AUTOGRAD_H

#include "probes/probe.h"

/* The names of the two in -e 'torch:GLOB' and in lists. */
#define XSP_TORCH_BACKWARD "autograd::engine::evaluate_function"
#define XSP_TORCH_USER_RANGE "record_function"

/* "autograd::engine::evaluate_function: AddmmBackward0", as PyTorch's profiler names them. */
/* Turns the name of a node's class into what profilers show. */
void xsp_torch_name_node(char *text, size_t size);

int xsp_torch_find_backward(const struct xsp_provider *self, struct xsp_module *m,
			    struct xsp_probe_list *list);

/* What stands for all operators that PyTorch's callbacks tell the agent of: nothing ever stops there. */
int xsp_torch_find_callbacks(const struct xsp_provider *self, struct xsp_module *m,
			     struct xsp_probe_list *list);

/* torch.profiler.record_function("...") and torch's own ranges (Optimizer.step#SGD.step). */
int xsp_torch_find_user_ranges(const struct xsp_provider *self, struct xsp_module *m,
			       struct xsp_probe_list *list);

#endif
