/* SPDX-License-Identifier: BSD-2-Clause */
#include "timeline/gpu_category.h"

#include <stdio.h>

#include "catalog/gpu_words.h"

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
		snprintf(buffer, XSP_GPU_NAME_SIZE, "Memcpy %s (%s -> %s)",
			 xsp_gpu_word(xsp_gpu_copy_words, c->copy_kind),
			 xsp_gpu_word(xsp_gpu_memory_words, c->source_kind),
			 xsp_gpu_word(xsp_gpu_memory_words, c->destination_kind));
		return buffer;
	case XSP_GPU_IS_MEMSET:
		snprintf(buffer, XSP_GPU_NAME_SIZE, "Memset (%s)",
			 xsp_gpu_word(xsp_gpu_memory_words, m->memory_kind));
		return buffer;
	case XSP_GPU_IS_SYNC:
		return xsp_gpu_sync_name(s->what);
	case XSP_GPU_IS_OVERHEAD:
		return xsp_gpu_word(xsp_gpu_overhead_words, o->what);
	case XSP_GPU_IS_GRAPH:
		return "CUDA graph";
	default:
		return "cudaEvent";
	}
}

const char *xsp_gpu_sync_name(uint32_t what)
{
	return xsp_gpu_word(xsp_gpu_sync_words, what);
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
