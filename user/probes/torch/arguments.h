/* SPDX-License-Identifier: BSD-2-Clause */
/* arguments.h - how to read the arguments and results of a module's operators. */
#ifndef XSP_PROBES_TORCH_ARGUMENTS_H
#define XSP_PROBES_TORCH_ARGUMENTS_H

#include "probes/probe.h"
#include "catalog/torch/abi.h"
#include "probes/torch/ops.h"

/* What is common to all operators of a module. */
struct xsp_torch_module {
	unsigned parts; /* enum xsp_torch_parts; 0: nothing is read */
	enum xsp_torch_flavor flavor;
	/* of xsp_torch_layouts: the likely one. The recorder checks it against what is read, and
	 * tries the others */
	unsigned layout;
};

/* `details`: enum xsp_detail. */
struct xsp_torch_module xsp_torch_look(struct xsp_module *m, const struct xsp_torch_ops *ops,
				       unsigned details);

/* Fills detail, arguments (malloc'd) and args_read of the operator's probe. Leaves an operator
 * alone whose signature is not understood. 0 or -ENOMEM. */
int xsp_torch_capture_arguments(const struct xsp_torch_module *t, const struct xsp_torch_op *op,
				struct xsp_probe *p);

#endif
