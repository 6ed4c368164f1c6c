/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * record_function.c - regions and values that a program names itself through
 * include/xsptrace/record_function.h: functions that begin with the 5-byte nop, guarded by a
 * semaphore.
 */
#include "probes/ranges.h"

#include "catalog/values.h"

static const struct xsp_range_row rows[] = {
	{
		.name = "record_function",
		/* until it is raised, the program never calls them */
		.semaphore = "xsp_record_function_semaphore",
		.parts = {XSP_RANGE_BEGINS(0, XSP_REGISTER(0), XSP_REGISTER(1),
					   "xsp_record_function_enter"),
			  XSP_RANGE_ENDS("xsp_record_function_exit")},
	},
	{
		.name = "record_function value",
		.semaphore = "xsp_record_function_semaphore",
		.parts = {{
			.action = XSP_ACTION_VALUE,
			.symbols = {"xsp_record_function_value"},
			.spec = {.name = XSP_RANGE_NAME_TEXT,
				 .text = {.base = 0},
				 .length = {.base = 1},
				 .value = {.base = 2},
				 .value_type = {.base = XSP_OPERAND_NONE},
				 .value_types = XSP_VALUE_DOUBLE_TYPES},
		}},
	},
};

const struct xsp_provider xsp_provider_record_function = {
	.name = "record_function",
	.help = "regions and values named with <xsptrace/record_function.h>",
	.by_default = true,
	.ranges = rows,
	.range_count = sizeof(rows) / sizeof(rows[0]),
};
