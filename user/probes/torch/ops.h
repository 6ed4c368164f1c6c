/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ops.h - the operators that a module defines, each with its schema.
 *
 * Every C++ call of an operator passes at::_ops::NAME_OVERLOAD::call (torchgen/gen.py,
 * ComputeOperators). The symbol does not show which "_" separates name and overload; the schema
 * string in the library's read-only data does.
 */
#ifndef XSP_PROBES_TORCH_OPS_H
#define XSP_PROBES_TORCH_OPS_H

#include "catalog/torch/schema.h"
#include "target/module.h"

struct xsp_torch_op {
	const struct xsp_symbol *symbol; /* owned by the module */
	struct xsp_torch_schema schema; /* .name is NULL: no schema matched */
	/* several schemas fit, with this name but with different names or aliases of arguments */
	bool doubtful;
};

struct xsp_torch_ops {
	struct xsp_torch_op *items; /* by address */
	size_t count, matched;
};

/* Finds them; having none is no error. Free `out` with xsp_torch_ops_clear. The module must outlive
 * it. */
int xsp_torch_ops_find(struct xsp_module *m, struct xsp_torch_ops *out, struct xsp_error *err);
void xsp_torch_ops_clear(struct xsp_torch_ops *ops);

#endif
