/* SPDX-License-Identifier: BSD-2-Clause */
#include "catalog/allocators.h"

#include <string.h>

/*
 * PyTorch, c10/core/CPUAllocator.cpp and c10/core/Allocator.cpp: the CPU's allocator tells its reporter of each
 * block; those of devices (c10/cuda/CUDACachingAllocator.cpp) tell the profiler that may be there. The totals are
 * int64_t up to 1.13 and size_t since.
 */
const struct xsp_allocator_function xsp_allocator_functions[] = {
	{"_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm", "c10::ProfiledCPUMemoryReporter::New",
	 XSP_ALLOCATOR_GAVE, 1, 2},
	{"_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv", "c10::ProfiledCPUMemoryReporter::Delete",
	 XSP_ALLOCATOR_TAKES, 1, 1},
	{"_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE",
	 "c10::reportMemoryUsageToProfiler", XSP_ALLOCATOR_REPORTS, 0, 5},
	{"_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE",
	 "c10::reportMemoryUsageToProfiler", XSP_ALLOCATOR_REPORTS, 0, 5},
};
const size_t xsp_allocator_function_count =
	sizeof(xsp_allocator_functions) / sizeof(xsp_allocator_functions[0]);

const struct xsp_allocator_function *xsp_allocator_function(const char *symbol)
{
	for (size_t i = 0; i < xsp_allocator_function_count; i++)
		if (strcmp(xsp_allocator_functions[i].symbol, symbol) == 0)
			return &xsp_allocator_functions[i];
	return NULL;
}
