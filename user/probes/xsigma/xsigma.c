/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * xsigma.c - the scopes of XSigma, in the four forms that its branches have. The functions probed
 * here run with or without a profiler.
 */
#include "probes/ranges.h"

#include "probes/xsigma/literal.h"

#define STRING_VIEW "St17basic_string_viewIcSt11char_traitsIcEE"
#define GRAPH "_ZN6xsigma14RecordFunction"
#define MAIN_RECORD "_ZN6xsigma8profiler14RecordFunction"
#define MAIN_SCOPED "_ZN6xsigma8profiler14ScopedActivity"
#define PROFILER_SCOPE "_ZN6xsigma14profiler_scope"
#define SCOPED_REGION "_ZN6xsigma7tracing13scoped_region"
#define ANNOTATION "_ZN6xsigma8profiler16annotation_stack"
#define ITT "_ZN6xsigma8profiler14itt_range_push"

/* Operands; a word in memory at register + offset. */
#define REGISTER(n)                                                                                \
	{                                                                                          \
		.base = (n)                                                                        \
	}
#define WORD(n, at)                                                                                \
	{                                                                                          \
		.base = (n), .deref = 1, .offset = (at)                                            \
	}
#define SP XSP_OPERAND_SP
#define C_STRING REGISTER(XSP_OPERAND_NONE)

/* Scope guards: the object identifies the range that ends, and that it ends once. */
#define GUARD_ENDS(class)                                                                          \
	{                                                                                          \
		.action = XSP_ACTION_RANGE_END, .symbols = {                                       \
			class "D1Ev",                                                              \
			class "D2Ev",                                                              \
			class "D0Ev",                                                              \
		}                                                                                  \
	}

static const struct xsp_range_row rows[] = {
	{
		/* branch graph, Library/Core/profiler/common/record_function.h. The name comes by
		 * before(), if at all: a string_view (word 0 length, 1 pointer) or a
		 * FunctionSchema, in a variant passed in memory above the return address; its index
		 * is byte 16. before() calls observers: that of ITT calls itt_range_push. */
		.name = "xsigma::RecordFunction",
		.relay = XSP_RELAY_LABEL,
		.relay_by = ITT "EPKc",
		.scope = XSP_SCOPE_OWN,
		.parts = {{
				  .action = XSP_ACTION_RANGE_BEGIN,
				  .symbols = {GRAPH "C1ENS_11RecordScopeE",
					      GRAPH "C2ENS_11RecordScopeE"},
				  .spec = {.name = XSP_RANGE_NAME_CODE,
					   .flags = XSP_RANGE_KEYED,
					   .text = WORD(SP, 0)},
				  .call_site = xsp_xsigma_literal,
			  },
			  {
				  .action = XSP_ACTION_RANGE_LABEL,
				  .symbols = {XSP_XSIGMA_BEFORE},
				  .spec = {.name = XSP_RANGE_NAME_TEXT,
					   .flags = XSP_RANGE_LABEL | XSP_RANGE_CONDITION |
						    XSP_RANGE_BYTE,
					   .text = WORD(SP, 16),
					   .length = WORD(SP, 8),
					   .condition = WORD(SP, 24)},
				  .optional = true,
			  },
			  {
				  .action = XSP_ACTION_RANGE_END,
				  .symbols = {GRAPH "3endEv", GRAPH "D1Ev", GRAPH "D2Ev",
					      GRAPH "D0Ev"},
				  .hands_on = xsp_xsigma_hands_on,
			  }},
	},
	{
		/* branch main and older, profiler_guard.h; built with ITT, guards are tasks as
		 * well */
		.name = "xsigma::profiler::RecordFunction",
		.relay = XSP_RELAY_BEGIN,
		.relay_by = ITT "EPKc",
		.parts = {{
				  .action = XSP_ACTION_RANGE_BEGIN,
				  .symbols = {MAIN_RECORD "C1EPKc", MAIN_RECORD "C2EPKc"},
				  .spec = {.name = XSP_RANGE_NAME_TEXT,
					   .flags = XSP_RANGE_KEYED,
					   .text = REGISTER(1),
					   .length = C_STRING},
			  },
			  GUARD_ENDS(MAIN_RECORD)},
	},
	{
		.name = "xsigma::profiler::ScopedActivity",
		.relay = XSP_RELAY_BEGIN,
		.relay_by = ITT "EPKc",
		.parts = {{
				  .action = XSP_ACTION_RANGE_BEGIN,
				  .symbols = {MAIN_SCOPED "C1EPKc", MAIN_SCOPED "C2EPKc"},
				  .spec = {.name = XSP_RANGE_NAME_TEXT,
					   .flags = XSP_RANGE_KEYED,
					   .text = REGISTER(1),
					   .length = C_STRING},
			  },
			  GUARD_ENDS(MAIN_SCOPED)},
	},
	{
		/* branch graph, native/session/profiler.h; std::string: pointer, length */
		.name = "xsigma::profiler_scope",
		.parts = {{
				  .action = XSP_ACTION_RANGE_BEGIN,
				  .symbols = {PROFILER_SCOPE
					      "C1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESa"
					      "IcEEEPNS_16profiler_sessionE",
					      PROFILER_SCOPE
					      "C2ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESa"
					      "IcEEEPNS_16profiler_sessionE"},
				  .spec = {.name = XSP_RANGE_NAME_TEXT,
					   .flags = XSP_RANGE_KEYED,
					   .text = WORD(1, 0),
					   .length = WORD(1, 8)},
			  },
			  GUARD_ENDS(PROFILER_SCOPE)},
	},
	{
		/* branch graph, native/tracing/tracing.h: this, category, length, pointer */
		.name = "xsigma::tracing::scoped_region",
		.parts = {{
				  .action = XSP_ACTION_RANGE_BEGIN,
				  .symbols = {SCOPED_REGION "C1ENS0_14event_categoryE" STRING_VIEW,
					      SCOPED_REGION "C2ENS0_14event_categoryE" STRING_VIEW},
				  .spec = {.name = XSP_RANGE_NAME_TEXT,
					   .flags = XSP_RANGE_KEYED,
					   .text = REGISTER(3),
					   .length = REGISTER(2)},
			  },
			  GUARD_ENDS(SCOPED_REGION)},
	},
	{
		/* native/cpu/annotation_stack.h: static functions, a stack per thread */
		.name = "xsigma::profiler::annotation_stack",
		.parts = {{
				  .action = XSP_ACTION_RANGE_BEGIN,
				  .symbols = {ANNOTATION "15push_annotationE" STRING_VIEW},
				  .spec = {.name = XSP_RANGE_NAME_TEXT,
					   .text = REGISTER(1),
					   .length = REGISTER(0)},
			  },
			  {
				  .action = XSP_ACTION_RANGE_END,
				  .symbols = {ANNOTATION "14pop_annotationEv"},
			  }},
	},
	{
		/* Guards of branch main call these themselves. One scope would become two ranges
		 * that do not nest, because the pop is inside the guard's destructor. */
		.name = "xsigma::profiler::itt_range",
		.relay = XSP_RELAY_BEGIN,
		.unless = MAIN_RECORD "C1EPKc",
		.parts = {{
				  .action = XSP_ACTION_RANGE_BEGIN,
				  .symbols = {ITT "EPKc"},
				  .spec = {.name = XSP_RANGE_NAME_TEXT,
					   .text = REGISTER(0),
					   .length = C_STRING},
			  },
			  {
				  .action = XSP_ACTION_RANGE_END,
				  .symbols = {"_ZN6xsigma8profiler13itt_range_popEv"},
			  }},
	},
};

const struct xsp_provider xsp_provider_xsigma = {
	.name = "xsigma",
	.help = "XSigma's scopes: RecordFunction, profiler_scope, scoped_region, annotations",
	.by_default = true,
	.ranges = rows,
	.range_count = sizeof(rows) / sizeof(rows[0]),
};
