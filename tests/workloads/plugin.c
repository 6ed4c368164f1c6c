/* SPDX-License-Identifier: BSD-2-Clause */
/* plugin - a small library for dlopener; built twice, with different names and code. */
#include "workload.h"

#ifndef PLUGIN_STEP
#define PLUGIN_STEP 1
#endif

uint64_t plugin_calls[2];
uint64_t plugin_work(uint64_t x);
uint64_t plugin_inner(uint64_t x);

WL_TRACED uint64_t plugin_inner(uint64_t x)
{
	plugin_calls[1]++;
	return (x ^ (x >> 13)) * 0x9e3779b97f4a7c15ULL + PLUGIN_STEP;
}

WL_TRACED uint64_t plugin_work(uint64_t x)
{
	plugin_calls[0]++;
#if PLUGIN_STEP > 1
	/* moves the code of the second plugin away from the first one's offsets */
	x = plugin_inner(x + 1) ^ plugin_inner(x + 2);
#endif
	return plugin_inner(x) + plugin_inner(x + PLUGIN_STEP);
}
