/* SPDX-License-Identifier: BSD-2-Clause */
#include "catalog/allocators.h"

#include <string.h>

#include "base/text.h"

/*
 * PyTorch, c10/core/CPUAllocator.cpp and c10/core/Allocator.cpp. The CPU's allocator reports each
 * block to its reporter; allocators of devices (c10/cuda/CUDACachingAllocator.cpp) report it to the
 * profiler, if there is one. The totals are int64_t up to 1.13 and size_t since.
 */
const struct xsp_allocator_function xsp_allocator_functions[] = {
	{"_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm", "c10::ProfiledCPUMemoryReporter::New",
	 XSP_ALLOCATOR_ALLOCATES, 1, 2},
	{"_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv", "c10::ProfiledCPUMemoryReporter::Delete",
	 XSP_ALLOCATOR_FREES, 1, 1},
	{"_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE",
	 "c10::reportMemoryUsageToProfiler", XSP_ALLOCATOR_REPORTS, 0, 5},
	{"_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE",
	 "c10::reportMemoryUsageToProfiler", XSP_ALLOCATOR_REPORTS, 0, 5},
};
const size_t xsp_allocator_function_count =
	sizeof(xsp_allocator_functions) / sizeof(xsp_allocator_functions[0]);

/* malloc(3), posix_memalign(3); operator new and delete: [new.delete] of C++17, with the symbols of
 * the Itanium ABI. */
#define NONE XSP_HEAP_NONE
#define NEW(symbol, name)                                                                          \
	{                                                                                          \
		symbol, name, 0, NONE, NONE, NONE, true                                            \
	}
#define DELETE(symbol, name)                                                                       \
	{                                                                                          \
		symbol, name, NONE, NONE, 0, NONE, true                                            \
	}
const struct xsp_heap_function xsp_heap_functions[] = {
	{"malloc", "malloc", 0, NONE, NONE, NONE, false},
	{"free", "free", NONE, NONE, 0, NONE, false},
	{"calloc", "calloc", 0, 1, NONE, NONE, false},
	{"realloc", "realloc", 1, NONE, 0, NONE, false},
	{"reallocarray", "reallocarray", 1, 2, 0, NONE, false},
	{"aligned_alloc", "aligned_alloc", 1, NONE, NONE, NONE, false},
	{"memalign", "memalign", 1, NONE, NONE, NONE, false},
	{"posix_memalign", "posix_memalign", 2, NONE, NONE, 0, false},
	{"valloc", "valloc", 0, NONE, NONE, NONE, false},
	{"pvalloc", "pvalloc", 0, NONE, NONE, NONE, false},
	NEW("_Znwm", "operator new"),
	NEW("_Znam", "operator new[]"),
	NEW("_ZnwmRKSt9nothrow_t", "operator new"),
	NEW("_ZnamRKSt9nothrow_t", "operator new[]"),
	NEW("_ZnwmSt11align_val_t", "operator new"),
	NEW("_ZnamSt11align_val_t", "operator new[]"),
	NEW("_ZnwmSt11align_val_tRKSt9nothrow_t", "operator new"),
	NEW("_ZnamSt11align_val_tRKSt9nothrow_t", "operator new[]"),
	DELETE("_ZdlPv", "operator delete"),
	DELETE("_ZdaPv", "operator delete[]"),
	DELETE("_ZdlPvm", "operator delete"),
	DELETE("_ZdaPvm", "operator delete[]"),
	DELETE("_ZdlPvRKSt9nothrow_t", "operator delete"),
	DELETE("_ZdaPvRKSt9nothrow_t", "operator delete[]"),
	DELETE("_ZdlPvSt11align_val_t", "operator delete"),
	DELETE("_ZdaPvSt11align_val_t", "operator delete[]"),
	DELETE("_ZdlPvmSt11align_val_t", "operator delete"),
	DELETE("_ZdaPvmSt11align_val_t", "operator delete[]"),
};
#undef NEW
#undef DELETE
#undef NONE
const size_t xsp_heap_function_count = sizeof(xsp_heap_functions) / sizeof(xsp_heap_functions[0]);

const struct xsp_allocator_function *xsp_allocator_function(const char *symbol)
{
	static const struct xsp_allocator_function heap = {.call = XSP_ALLOCATOR_HEAP};

	for (size_t i = 0; i < xsp_allocator_function_count; i++)
		if (strcmp(xsp_allocator_functions[i].symbol, symbol) == 0)
			return &xsp_allocator_functions[i];
	for (size_t i = 0; i < xsp_heap_function_count; i++)
		if (strcmp(xsp_heap_functions[i].symbol, symbol) == 0)
			return &heap;
	return NULL;
}

bool xsp_heap_never_throws(const char *soname)
{
	/* glibc, musl (by Alpine's name), and allocators whose malloc() is in C or catches what a
	 * new-handler throws */
	static const char *const beginnings[] = {"libc.so", "libc.musl-", "libjemalloc",
						 "libtcmalloc", "libmimalloc"};

	return XSP_BEGINS_WITH_ANY(soname, beginnings);
}

bool xsp_is_allocating(const char *name)
{
	static const char *const beginnings[] = {"operator new", "__gnu_cxx::new_allocator"};

	if (XSP_BEGINS_WITH_ANY(name, beginnings))
		return true;
	for (size_t i = 0; i < xsp_heap_function_count; i++)
		if (strcmp(name, xsp_heap_functions[i].name) == 0)
			return true;
	return false;
}
