/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gpu.c - the agent in the target (user/agent/, include/xsptrace/gpu.h): its batches of records,
 * and the functions whose semaphores say what to collect.
 */
#include "probes/probe.h"
#include "base/path.h"

#include <stdio.h>
#include <string.h>

#include "xsptrace/gpu.h"

/* The wish for activity comes last: it makes the agent read the others. */
static const struct request {
	unsigned bit; /* enum xsp_gpu_request */
	const char *symbol;
} requests[] = {
	{XSP_WANT_EVENTS, XSP_GPU_WANT_EVENTS},
	{XSP_WANT_GRAPHS, XSP_GPU_WANT_GRAPHS},
	{XSP_WANT_LATENCY, XSP_GPU_WANT_LATENCY},
	{XSP_WANT_ALL_API, XSP_GPU_WANT_ALL_API},
	{XSP_WANT_SHARED, XSP_GPU_WANT_SHARED},
	{XSP_WANT_ACTIVITY, XSP_GPU_WANT_ACTIVITY},
	{XSP_WANT_OPERATORS, XSP_AGENT_WANT_OPERATORS},
	{XSP_WANT_CALLBACKS, XSP_AGENT_WANT_CALLBACKS},
	{XSP_WANT_REGIONS, XSP_AGENT_WANT_REGIONS},
};

static long add(const struct xsp_provider *self, struct xsp_module *m, const char *symbol,
		enum xsp_probe_action action, struct xsp_probe_list *list)
{
	struct xsp_symbol function, semaphore;
	char name[64];

	snprintf(name, sizeof(name), "%s%s", symbol, XSP_GPU_SEMAPHORE_SUFFIX);
	if (xsp_module_find(m, symbol, &function) < 0 || !xsp_module_is_code(m, function.addr) ||
	    xsp_module_find(m, name, &semaphore) < 0 || semaphore.offset == UINT64_MAX)
		return 0;
	struct xsp_probe p = xsp_probe_on(self, action, &function, NULL);
	p.semaphore = semaphore.offset;
	return xsp_probe_list_add(list, &p);
}

bool xsp_is_agent(const char *display_path)
{
	static const char in_memory[] = "/memfd:";
	const char *name = xsp_base_name(display_path);

	if (strncmp(display_path, in_memory, sizeof(in_memory) - 1) == 0)
		name = display_path + sizeof(in_memory) - 1;
	return strncmp(name, XSP_GPU_AGENT, sizeof(XSP_GPU_AGENT) - 1) == 0;
}

static int find_agent(const struct xsp_provider *self, struct xsp_module *m,
		      const struct xsp_selection *selection, struct xsp_probe_list *list,
		      struct xsp_error *err)
{
	long rc;

	(void)err;
	if (selection->gpu == 0 || !xsp_is_agent(xsp_module_display_path(m)))
		return 0;
	rc = selection->gpu & XSP_WANT_ACTIVITY
		     ? add(self, m, XSP_GPU_BATCH_SYMBOL, XSP_ACTION_GPU_BATCH, list)
		     : 0;
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]) && rc >= 0; i++)
		if (selection->gpu & requests[i].bit)
			rc = add(self, m, requests[i].symbol, XSP_ACTION_GPU_WANT, list);
	return rc < 0 ? (int)rc : 0;
}

const struct xsp_provider xsp_provider_gpu = {
	.name = "gpu",
	.help = "GPU activity from the agent in the target",
	.internal = true, /* xsp_selection.gpu turns it on */
	.find = find_agent,
};
