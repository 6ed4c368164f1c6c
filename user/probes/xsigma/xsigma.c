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

#define SP XSP_OPERAND_SP

/* Scope guards: the object identifies the range that ends, and that it ends once. */
#define GUARD_ENDS(class) XSP_RANGE_ENDS(class "D1Ev", class "D2Ev", class "D0Ev")
#define GUARD_BEGINS(name_text, name_length, class, arguments)                                     \
	{                                                                                          \
		.action = XSP_ACTION_RANGE_BEGIN,                                                  \
		.symbols = {class "C1" arguments, class "C2" arguments},                           \
		.spec = {.name = XSP_RANGE_NAME_TEXT,                                              \
			 .flags = XSP_RANGE_KEYED,                                                 \
			 .text = name_text,                                                        \
			 .length = name_length},                                                   \
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
					   .text = XSP_WORD(SP, 0)},
				  .call_site = xsp_xsigma_literal,
			  },
			  {
				  .action = XSP_ACTION_RANGE_LABEL,
				  .symbols = {XSP_XSIGMA_BEFORE},
				  .spec = {.name = XSP_RANGE_NAME_TEXT,
					   .flags = XSP_RANGE_LABEL | XSP_RANGE_CONDITION |
						    XSP_RANGE_BYTE,
					   .text = XSP_WORD(SP, 16),
					   .length = XSP_WORD(SP, 8),
					   .condition = XSP_WORD(SP, 24)},
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
		.parts = {GUARD_BEGINS(XSP_REGISTER(1), XSP_C_STRING, MAIN_RECORD, "EPKc"),
			  GUARD_ENDS(MAIN_RECORD)},
	},
	{
		.name = "xsigma::profiler::ScopedActivity",
		.relay = XSP_RELAY_BEGIN,
		.relay_by = ITT "EPKc",
		.parts = {GUARD_BEGINS(XSP_REGISTER(1), XSP_C_STRING, MAIN_SCOPED, "EPKc"),
			  GUARD_ENDS(MAIN_SCOPED)},
	},
	{
		/* branch graph, native/session/profiler.h; std::string: pointer, length */
		.name = "xsigma::profiler_scope",
		.parts =
			{GUARD_BEGINS(
				 XSP_WORD(1, 0), XSP_WORD(1, 8), PROFILER_SCOPE,
				 "ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEPNS_16profiler_sessionE"),
			 GUARD_ENDS(PROFILER_SCOPE)},
	},
	{
		/* branch graph, native/tracing/tracing.h: this, category, length, pointer */
		.name = "xsigma::tracing::scoped_region",
		.parts = {GUARD_BEGINS(XSP_REGISTER(3), XSP_REGISTER(2), SCOPED_REGION,
				       "ENS0_14event_categoryE" STRING_VIEW),
			  GUARD_ENDS(SCOPED_REGION)},
	},
	{
		/* native/cpu/annotation_stack.h: static functions, a stack per thread */
		.name = "xsigma::profiler::annotation_stack",
		.parts = {XSP_RANGE_BEGINS(0, XSP_REGISTER(1), XSP_REGISTER(0),
					   ANNOTATION "15push_annotationE" STRING_VIEW),
			  XSP_RANGE_ENDS(ANNOTATION "14pop_annotationEv")},
	},
	{
		/* Guards of branch main call these themselves. One scope would become two ranges
		 * that do not nest, because the pop is inside the guard's destructor. */
		.name = "xsigma::profiler::itt_range",
		.relay = XSP_RELAY_BEGIN,
		.unless = MAIN_RECORD "C1EPKc",
		.parts = {XSP_RANGE_BEGINS(0, XSP_REGISTER(0), XSP_C_STRING, ITT "EPKc"),
			  XSP_RANGE_ENDS("_ZN6xsigma8profiler13itt_range_popEv")},
	},
};

const struct xsp_provider xsp_provider_xsigma = {
	.name = "xsigma",
	.help = "XSigma's scopes: RecordFunction, profiler_scope, scoped_region, annotations",
	.by_default = true,
	.ranges = rows,
	.range_count = sizeof(rows) / sizeof(rows[0]),
};
