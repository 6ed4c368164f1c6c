/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * torch_ops.h - the operators that a module defines, each with its schema.
 *
 * at::_ops::NAME_OVERLOAD::call is the function through which every C++ call of an operator goes
 * (torchgen/gen.py, ComputeOperators). Which "_" separates name and overload cannot be seen from
 * the symbol; the schema string in the library's read-only data decides.
 */
#ifndef XSP_PROBES_TORCH_OPS_H
#define XSP_PROBES_TORCH_OPS_H

#include "catalog/torch_schema.h"
#include "target/module.h"

struct xsp_torch_op {
	const struct xsp_symbol *symbol; /* owned by the module */
	struct xsp_torch_schema schema; /* .name is NULL: no schema could be matched */
	bool doubtful; /* several fit, with this name, but with other names or aliases of arguments */
};

struct xsp_torch_ops {
	struct xsp_torch_op *items; /* by address */
	size_t count, matched;
};

/* Finds them; none is no error. Freed by xsp_torch_ops_clear. The module must outlive `out`. */
int xsp_torch_ops_find(struct xsp_module *m, struct xsp_torch_ops *out, struct xsp_error *err);
void xsp_torch_ops_clear(struct xsp_torch_ops *ops);

#endif
