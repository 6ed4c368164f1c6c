/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * record_function.c - regions and values that a program names itself through
 * include/xsptrace/record_function.h: functions that begin with the 5-byte nop, guarded by a
 * semaphore.
 */
#include "probes/ranges.h"

#include "catalog/values.h"
#include "xsptrace/ring.h"

static const struct xsp_range_row rows[] = {
	{
		.name = "record_function",
		/* until it is raised, the program never calls them */
		.semaphore = "xsp_record_function_semaphore",
		.parts = {XSP_RANGE_BEGINS(0, XSP_REGISTER(0), XSP_REGISTER(1), XSP_RING_ENTER),
			  XSP_RANGE_ENDS(XSP_RING_EXIT)},
	},
	{
		.name = "record_function value",
		.semaphore = "xsp_record_function_semaphore",
		.parts = {{
			.action = XSP_ACTION_VALUE,
			.symbols = {XSP_RING_VALUE},
			.spec = {.name = XSP_RANGE_NAME_TEXT,
				 .text = {.base = 0},
				 .length = {.base = 1},
				 .value = {.base = 2},
				 .value_type = {.base = XSP_OPERAND_NONE},
				 .value_types = XSP_VALUE_DOUBLE_TYPES},
		}},
	},
	{
		.name = "record_function by the agent",
		.semaphore = "xsp_record_function_semaphore",
		.parts = {{.action = XSP_ACTION_GPU_WANT, .symbols = {XSP_RECORD_FUNCTION_LISTEN}}},
	},
};

/* The last row raises the semaphore where the agent records the others without probes. */
static int find(const struct xsp_provider *self, struct xsp_module *m,
		const struct xsp_selection *selection, struct xsp_probe_list *list,
		struct xsp_error *err)
{
	const size_t count = sizeof(rows) / sizeof(rows[0]);

	(void)err;
	return xsp_ranges_add(self, m, rows, selection->gpu & XSP_WANT_REGIONS ? count : count - 1,
			      list);
}

const struct xsp_provider xsp_provider_record_function = {
	.name = "record_function",
	.help = "regions and values named with <xsptrace/record_function.h>",
	.by_default = true,
	.find = find,
};
