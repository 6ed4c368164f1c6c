/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * itt.c - tasks of Intel's Instrumentation and Tracing Technology, where a library exports the
 * functions: the collector that INTEL_LIBITTNOTIFY64 names. The part that is linked into programs
 * calls them through pointers, and not at all while there is no collector.
 */
#include "probes/ranges.h"

/*
 * void __itt_task_begin(const __itt_domain *domain, __itt_id taskid, __itt_id parentid,
 *                       __itt_string_handle *name)      (ittapi, include/ittnotify.h)
 * __itt_id is a struct of 24 bytes, passed in memory: `name` is the second register. Its
 * first member is strA, a C string.
 */
static const struct xsp_range_row row = {
	.name = "__itt_task",
	.nests = true,
	.relay = XSP_RELAY_COLLECTOR,
	.parts = {{
			  .action = XSP_ACTION_RANGE_BEGIN,
			  .symbols = {"__itt_task_begin"},
			  .spec = {.name = XSP_RANGE_NAME_TEXT,
				   .text = {.base = 1, .deref = 1},
				   .length = {.base = XSP_OPERAND_NONE}},
		  },
		  {
			  .action = XSP_ACTION_RANGE_END,
			  .symbols = {"__itt_task_end"},
		  }},
};

static int find_tasks(const struct xsp_provider *self, struct xsp_module *m,
		      const struct xsp_selection *selection, struct xsp_probe_list *list,
		      struct xsp_error *err)
{
	(void)selection;
	return xsp_ranges_add(self, m, &row, 1, list, err);
}

const struct xsp_provider xsp_provider_itt = {
	.name = "itt",
	.help = "ITT tasks, where a collector library is loaded",
	.by_default = true,
	.find = find_tasks,
};
