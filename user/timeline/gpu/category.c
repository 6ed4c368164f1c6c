/* SPDX-License-Identifier: BSD-2-Clause */
#include "timeline/gpu_category.h"

#include <stdio.h>

const char *xsp_gpu_sync_name(uint32_t what)
{
	static const char *const names[] = {"Unknown Sync", "Event Sync", "Stream Wait Event",
					    "Stream Sync", "Context Sync"};

	return what < sizeof(names) / sizeof(names[0]) ? names[what] : names[0];
}

static const char *copy_name(uint8_t kind)
{
	static const char *const names[] = {"Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
					    "AtoD",    "DtoA", "DtoD", "HtoH", "PtoP"};

	return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : names[0];
}

static const char *memory_name(uint32_t kind)
{
	static const char *const names[] = {"Unknown",	     "Pageable",      "Pinned",
					    "Device",	     "Array",	      "Managed",
					    "Device Static", "Managed Static"};

	return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : names[0];
}

static const char *overhead_name(uint32_t what)
{
	static const struct {
		uint32_t what;
		const char *name;
	} names[] = {
		/* CUpti_ActivityOverheadKind; Kineto's words */
		{1, "Driver Compiler"},
		{1U << 16, "Buffer Flush"},
		{2U << 16, "Instrumentation"},
		{3U << 16, "Resource"},
		{4U << 16, "Runtime Triggered Module Loading"},
		{5U << 16, "Lazy Function Loading"},
		{6U << 16, "Command Buffer Full"},
		{7U << 16, "Activity Buffer Request"},
		{8U << 16, "UVM Activity Init"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].what == what)
			return names[i].name;
	return "Unrecognized";
}

const char *xsp_gpu_activity_name(const struct xsp_gpu_activity *a, char buffer[XSP_GPU_NAME_SIZE])
{
	const struct xsp_gpu_memcpy *c = a->record;
	const struct xsp_gpu_memset *m = a->record;
	const struct xsp_gpu_overhead *o = a->record;
	const struct xsp_gpu_sync *s = a->record;

	switch (a->kind) {
	case XSP_GPU_IS_KERNEL:
	case XSP_GPU_IS_ANNOTATION:
		return a->name;
	case XSP_GPU_IS_MEMCPY:
		snprintf(buffer, XSP_GPU_NAME_SIZE, "Memcpy %s (%s -> %s)", copy_name(c->copy_kind),
			 memory_name(c->source_kind), memory_name(c->destination_kind));
		return buffer;
	case XSP_GPU_IS_MEMSET:
		snprintf(buffer, XSP_GPU_NAME_SIZE, "Memset (%s)", memory_name(m->memory_kind));
		return buffer;
	case XSP_GPU_IS_SYNC:
		return xsp_gpu_sync_name(s->what);
	case XSP_GPU_IS_OVERHEAD:
		return overhead_name(o->what);
	case XSP_GPU_IS_GRAPH:
		return "CUDA graph";
	default:
		return "cudaEvent";
	}
}

const char *xsp_gpu_category(enum xsp_gpu_kind kind)
{
	static const char *const categories[XSP_GPU_KINDS] = {
		[XSP_GPU_IS_KERNEL] = "kernel",	    [XSP_GPU_IS_MEMCPY] = "gpu_memcpy",
		[XSP_GPU_IS_MEMSET] = "gpu_memset", [XSP_GPU_IS_SYNC] = "cuda_sync",
		[XSP_GPU_IS_GRAPH] = "gpu_graph",   [XSP_GPU_IS_EVENT] = "cuda_event",
		[XSP_GPU_IS_OVERHEAD] = "overhead", [XSP_GPU_IS_ANNOTATION] = "gpu_user_annotation",
	};

	return categories[kind];
}

bool xsp_gpu_is_work(enum xsp_gpu_kind kind)
{
	return kind == XSP_GPU_IS_KERNEL || kind == XSP_GPU_IS_MEMCPY ||
	       kind == XSP_GPU_IS_MEMSET || kind == XSP_GPU_IS_GRAPH;
}

bool xsp_gpu_is_wait(const struct xsp_gpu_activity *a)
{
	return a->kind == XSP_GPU_IS_SYNC && ((const struct xsp_gpu_sync *)a->record)->what != 2;
}
