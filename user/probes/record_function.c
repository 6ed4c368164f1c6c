/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * record_function.c - regions that a program names itself through include/xsptrace/
 * record_function.h: two functions that begin with the 5-byte nop, behind a semaphore.
 */
#include "probes/probe.h"

#include <errno.h>

#define ENTER "xsp_record_function_enter"
#define EXIT "xsp_record_function_exit"
#define SEMAPHORE "xsp_record_function_semaphore"

static int find_record_function(const struct xsp_provider *self, struct xsp_module *m,
				const struct xsp_selection *selection, struct xsp_probe_list *list,
				struct xsp_error *err)
{
	struct xsp_symbol enter, leave, semaphore;

	(void)selection;
	if (xsp_module_find(m, ENTER, &enter) < 0 || xsp_module_find(m, EXIT, &leave) < 0)
		return 0;
	/* Without its semaphore raised the program never calls them. */
	if (xsp_module_find(m, SEMAPHORE, &semaphore) < 0 || semaphore.offset == 0)
		return 0;
	struct xsp_probe p = {
		.provider = self->name,
		.action = XSP_ACTION_RANGE_BEGIN,
		.args_read = 3,
		.addr = enter.addr,
		.size = enter.size,
		.offset = enter.offset,
		.semaphore = semaphore.offset,
		.range = {.name = XSP_RANGE_NAME_TEXT, .text = {.base = 0}, .length = {.base = 1}},
		.symbol = (char *)(uintptr_t)ENTER,
		.name = (char *)(uintptr_t) "record_function",
	};
	long begin = xsp_probe_list_add(list, &p);
	if (begin < 0)
		return xsp_error_set(err, (int)begin, XSP_STATUS_FAILED, "out of memory");
	p.action = XSP_ACTION_RANGE_END;
	p.args_read = 0;
	p.addr = leave.addr;
	p.size = leave.size;
	p.offset = leave.offset;
	p.pair = (uint32_t)begin;
	p.symbol = (char *)(uintptr_t)EXIT;
	long end = xsp_probe_list_add(list, &p);
	return end < 0 ? (int)end : 0;
}

const struct xsp_provider xsp_provider_record_function = {
	.name = "record_function",
	.help = "regions named with <xsptrace/record_function.h>",
	.by_default = true,
	.find = find_record_function,
};
