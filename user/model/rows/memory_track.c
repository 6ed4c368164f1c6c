/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/rows/memory_track.h"

#include <stdio.h>

#include "catalog/allocators.h"
#include "timeline/cut.h"

#define LAST_NS 100000000ULL /* from a process's end to that of the recording */

static const char *track_of(const struct xsp_memory_event *e)
{
	switch (e->pool) {
	case XSP_MEMORY_PINNED:
		return "pinned host memory";
	case XSP_MEMORY_TORCH:
		return e->device_type == XSP_C10_CPU ? "PyTorch host memory"
						     : "PyTorch device memory";
	case XSP_MEMORY_HEAP:
		return "heap (estimated)";
	default:
		return "GPU memory";
	}
}

bool xsp_memory_track(const struct xsp_view *v, const struct xsp_memory_event *e,
		      char name[XSP_MEMORY_TRACK])
{
	char number[16] = "";

	if (e->device != XSP_GPU_NO_ID)
		snprintf(number, sizeof(number), " %u", e->device);
	snprintf(name, XSP_MEMORY_TRACK, "%s%s", track_of(e), number);
	/* much may have been freed between two windows of the brake */
	return !xsp_memory_is_allocator(e->pool) || e->device_type != XSP_C10_CPU ||
	       !xsp_timeline_allocations_in_windows(v->timeline);
}

bool xsp_memory_is_over(const struct xsp_view *v, const struct xsp_process_memory_at *at)
{
	uint64_t start_ns, end_ns;

	xsp_timeline_window(v->timeline, &start_ns, &end_ns);
	return at->memory.resident == 0 && end_ns < at->time_ns + LAST_NS;
}
