/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * torch.c - PyTorch's operators: at::_ops::NAME_OVERLOAD::call, shown as profilers show them
 * (aten::NAME). They are called with or without a profiler. Backward nodes and ranges of the user:
 * autograd.c.
 */
#include "probes/probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "probes/torch/arguments.h"
#include "probes/torch/autograd.h"
#include "probes/torch/ops.h"
#include "probes/torch/sequence.h"

/* PyTorch's dispatcher shows these to no profiler (ObservedOperators.cpp: getters, called all the
 * time), so neither do we. -e 'libtorch_cpu.so:at::_ops::size_int::call' still traces them. */
static const char *const unobserved[] = {"aten::size", "aten::is_leaf", "aten::output_nr",
					 "aten::_version", "aten::is_complex"};

static bool is_observed(const struct xsp_torch_op *op)
{
	const char *name = op->schema.name;

	return name == NULL || !XSP_IS_AMONG(name, strlen(name), unobserved);
}

/* An operator without a schema keeps the name of its function: never a guess. */
static int add_operator(const struct xsp_provider *self, const struct xsp_torch_op *op,
			const struct xsp_torch_module *t, const struct xsp_selection *selection,
			struct xsp_probe_list *list)
{
	char *demangled = op->schema.name == NULL ? xsp_demangle(op->symbol->name, false) : NULL;
	const char *name = op->schema.name != NULL ? op->schema.name
			   : demangled != NULL	   ? demangled
						   : op->symbol->name;
	struct xsp_probe p = xsp_probe_on(self, XSP_ACTION_SPAN, op->symbol, name);
	long rc = 0;

	if (xsp_selection_includes(selection, self, name)) {
		p.scope = XSP_SCOPE_FUNCTION;
		rc = xsp_torch_capture_arguments(t, op, &p);
		if (rc == 0)
			rc = xsp_probe_list_add(list, &p);
		if (rc < 0)
			free(p.arguments);
	}
	free(demangled);
	return rc < 0 ? (int)rc : 0;
}

static int find_operators(const struct xsp_provider *self, struct xsp_module *m,
			  const struct xsp_selection *selection, struct xsp_probe_list *list,
			  struct xsp_error *err)
{
	struct xsp_torch_ops ops;
	int ret = xsp_torch_ops_find(m, &ops, err);
	struct xsp_torch_module t = xsp_torch_look(m, &ops, selection->details);

	for (size_t i = 0; ret == 0 && i < ops.count; i++)
		if (!ops.items[i].symbol->ifunc && is_observed(&ops.items[i]))
			ret = add_operator(self, &ops.items[i], &t, selection, list);
	xsp_torch_ops_clear(&ops);
	return ret;
}

static int find_torch(const struct xsp_provider *self, struct xsp_module *m,
		      const struct xsp_selection *selection, struct xsp_probe_list *list,
		      struct xsp_error *err)
{
	int ret = find_operators(self, m, selection, list, err);

	if (ret == 0 && xsp_selection_includes(selection, self, XSP_TORCH_BACKWARD))
		ret = xsp_torch_find_backward(self, m, list);
	if (ret == 0 && xsp_selection_includes(selection, self, XSP_TORCH_USER_RANGE))
		ret = xsp_torch_find_user_ranges(self, m, list);
	if (ret == 0 && (selection->details & XSP_DETAIL_SEQUENCE))
		xsp_torch_capture_sequence(self, m, list);
	if (ret == 0 && (selection->gpu & XSP_WANT_CALLBACKS))
		ret = xsp_torch_find_callbacks(self, m, list);
	return ret;
}

const struct xsp_provider xsp_provider_torch = {
	.name = "torch",
	.help = "PyTorch: operators (aten::NAME), backward nodes, record_function ranges",
	.by_default = true,
	.names_known = true,
	.find = find_torch,
};
