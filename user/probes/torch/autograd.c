/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * autograd.c - what a PyTorch process without a profiler executes beside operators: the nodes
 * of a backward pass, and the regions that Python code names.
 */
#include "probes/torch/autograd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "probes/ranges.h"
#include "xsptrace/ring.h"

/*
 * torch::autograd::Engine::evaluate_function(shared_ptr<GraphTask>&, Node *, ...): an ordinary
 * member, so the node is argument 2 (this, graph task, node). The first word of the node is the
 * vtable pointer. The rest of the mangled name differs between versions.
 */
#define EVALUATE_FUNCTION "_ZN5torch8autograd6Engine17evaluate_functionE"
#define NODE_ARGUMENT 2

/* Nodes that PyTorch generates name themselves without their namespaces (name() in
 * torch/csrc/autograd/generated/Functions.h), others by their C++ type. */
void xsp_torch_name_node(char *text, size_t size)
{
	static const char generated[] = "torch::autograd::generated::";
	static const char prefix[] = XSP_TORCH_BACKWARD ": ";
	char node[1024];

	snprintf(node, sizeof(node), "%s",
		 strncmp(text, generated, sizeof(generated) - 1) == 0 ? text + sizeof(generated) - 1
								      : text);
	snprintf(text, size, "%s%s", prefix, node);
}

static const struct xsp_symbol *find_prefix(struct xsp_module *m, const char *prefix)
{
	const struct xsp_symbol *symbols;
	size_t count;

	if (xsp_module_symbols(m, &symbols, &count, NULL) < 0)
		return NULL;
	for (size_t i = 0; i < count; i++)
		if (strncmp(symbols[i].name, prefix, strlen(prefix)) == 0 &&
		    strstr(symbols[i].name, ".cold") == NULL)
			return &symbols[i];
	return NULL;
}

int xsp_torch_find_backward(const struct xsp_provider *self, struct xsp_module *m,
			    struct xsp_probe_list *list)
{
	const struct xsp_symbol *s = find_prefix(m, EVALUATE_FUNCTION);

	if (s == NULL)
		return 0;
	struct xsp_probe p = xsp_probe_on(self, XSP_ACTION_NAMED_SPAN, s, XSP_TORCH_BACKWARD);
	p.scope = XSP_SCOPE_BACKWARD;
	p.args_read = 1U << NODE_ARGUMENT;
	p.range = (struct xsp_range_spec){.name = XSP_RANGE_NAME_VTABLE,
					  .text = {.base = NODE_ARGUMENT, .deref = 1},
					  .length = {.base = XSP_OPERAND_NONE}};
	p.rename = xsp_torch_name_node;
	long rc = xsp_probe_list_add(list, &p);
	return rc < 0 ? (int)rc : 0;
}

int xsp_torch_find_callbacks(const struct xsp_provider *self, struct xsp_module *m,
			     struct xsp_probe_list *list)
{
	struct xsp_symbol s;

	if (!xsp_probe_function(m, XSP_RING_OPERATOR, &s))
		return 0;
	struct xsp_probe p = xsp_probe_on(self, XSP_ACTION_NAMED_SPAN, &s, "operator");
	p.scope = XSP_SCOPE_FUNCTION;
	long rc = xsp_probe_list_add(list, &p);
	return rc < 0 ? (int)rc : 0;
}

/*
 * record_function("name") in Python calls the operator profiler::_record_function_enter_new. First,
 * the name becomes an IValue. ConstantString::create(std::string) is a static member that returns
 * through a hidden slot, so the string is argument 1. Then the same thread makes a RecordFunction
 * of scope 7 (RecordScope::USER_SCOPE, ATen/record_function.h). It is over at end(), which its
 * destructor calls as well.
 *
 * Other operators get strings too, and this one may get more after the name. A call of an operator
 * from Python clears what was remembered, and of its strings the first one is kept. TorchScript
 * makes its strings when it is compiled: its ranges have no readable name, and must not get that of
 * another.
 */
#define USER_SCOPE 7 /* a byte: the rest of its register is undefined */

/* What makes a range of a title, and ends it at once if no profiler is on: c10d::Work, and gloo's
 * AsyncWork, which gives its base class no title. */
#define TITLE(operand, ...)                                                                        \
	{                                                                                          \
		.action = XSP_ACTION_RANGE_BEGIN, .symbols = {__VA_ARGS__},                        \
		.spec = {.name = XSP_RANGE_NAME_TEXT,                                              \
			 .flags = XSP_RANGE_REMEMBER,                                              \
			 .text = operand,                                                          \
			 .length = XSP_C_STRING},                                                  \
		.optional = true                                                                   \
	}
/* the type is c10::optional<vector<Tensor>>, or std's */
#define WORK "_ZN4c10d4WorkC1EiNS_6OpTypeEPKcRK"
#define GLOO_WORK                                                                                  \
	"_ZN4c10d16ProcessGroupGloo9AsyncWorkC1ESt6vectorIS2_IN2at6TensorESaIS4_EESaIS6_EE"

#define FORGET(how, ...)                                                                           \
	{                                                                                          \
		.action = XSP_ACTION_RANGE_BEGIN, .symbols = {__VA_ARGS__},                        \
		.spec = {.flags = XSP_RANGE_REMEMBER | (how), .text = {.base = XSP_OPERAND_NONE}}, \
		.optional = true                                                                   \
	}
#define OPERATORS "ERKSt6vectorISt10shared_ptrINS0_8OperatorEESaIS4_EE"
#define INVOKE "_ZN5torch3jit24invokeOperatorFromPython" OPERATORS

/* In libtorch_python. In 2.x the others call the first one, and some code calls only that. */
static const struct xsp_range_row user_calls = {
	.name = "record_function",
	.parts =
		{FORGET(XSP_RANGE_FIRST,
			"_ZN5torch3jit37_get_operation_for_overload_or_packet" OPERATORS
			"N3c106SymbolERKN8pybind114argsERKNSB_6kwargsEbSt8optionalINS9_11DispatchKeyEE"),
		 FORGET(XSP_RANGE_FIRST,
			INVOKE "N8pybind114argsERKNS9_6kwargsEN3c108optionalINSE_11DispatchKeyEEE",
			INVOKE "RKN8pybind114argsERKNS9_6kwargsESt8optionalIN3c1011DispatchKeyEE")},
};

static const struct xsp_range_row user_ranges = {
	.name = "record_function",
	.parts =
		{/* (int, OpType, const char *title, ...) */
		 TITLE(XSP_REGISTER(3), WORK "N3c108optionalISt6vectorIN2at6TensorESaIS8_EEEE",
		       WORK "St8optionalISt6vectorIN2at6TensorESaIS7_EEE"),
		 /* (outputs, title, ...) in 1.x and 2.0; (outputs, OpType, uint64_t, title, ...)
		  * later. In the newest, the group's context comes first and the time before the
		  * title, which is then on the stack */
		 TITLE(XSP_REGISTER(2), GLOO_WORK "PKcRKN3c108optionalIS6_EE"),
		 TITLE(XSP_REGISTER(4), GLOO_WORK "NS_6OpTypeEmPKcRKN3c108optionalIS6_EE",
		       GLOO_WORK "NS_6OpTypeEmPKcRKSt8optionalIS6_E"),
		 TITLE(XSP_WORD(XSP_OPERAND_SP, 8),
		       "_ZN4c10d16ProcessGroupGloo9AsyncWorkC1ESt10shared_ptrIN4gloo7ContextEESt6vectorIS6_IN2at6TensorESaIS8_EESaISA_EENS_6OpTypeEmNSt6chrono8durationIlSt"
		       "5ratioILl1ELl1000EEEEPKcRKSt8optionalISA_E"),
		 FORGET(0, "_ZN5torch3jit16InterpreterState3runERSt6vectorIN3c106IValueESaIS4_EE"),
		 XSP_RANGE_BEGINS(
			 XSP_RANGE_REMEMBER | XSP_RANGE_FIRST, XSP_WORD(1, 0), XSP_WORD(1, 8),
			 "_ZN3c106ivalue14ConstantString6createENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"),
		 {
			 .action = XSP_ACTION_RANGE_BEGIN,
			 .symbols = {"_ZN2at14RecordFunctionC1ENS_11RecordScopeE"},
			 .spec = {.name = XSP_RANGE_NAME_PENDING,
				  .flags = XSP_RANGE_KEYED | XSP_RANGE_CONDITION | XSP_RANGE_BYTE,
				  .condition = {.base = 1},
				  .condition_value = USER_SCOPE},
		 },
		 XSP_RANGE_ENDS("_ZN2at14RecordFunction3endEv")},
};

int xsp_torch_find_user_ranges(const struct xsp_provider *self, struct xsp_module *m,
			       struct xsp_probe_list *list)
{
	int rc = xsp_ranges_add(self, m, &user_ranges, 1, list);

	return rc == 0 ? xsp_ranges_add(self, m, &user_calls, 1, list) : rc;
}
