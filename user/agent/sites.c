/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sites.c - the functions that the tracer probes, and the counters (semaphores) that the kernel keeps for them, as
 * gpu.h describes.
 */
#include "agent.h"

/* Its section has file contents, as the kernel identifies a counter by its file offset. */
#define SEMAPHORE(name)                                                                            \
	AGENT_EXPORT extern volatile unsigned short name##_semaphore;                              \
	__attribute__((used, section(".probes"))) volatile unsigned short name##_semaphore = 0

#if defined(__x86_64__)
#define SITE(function)                                                                             \
	AGENT_EXPORT __attribute__((naked, noinline, noipa, used, nocf_check)) function            \
	{                                                                                          \
		/* the 5-byte nop that Linux 6.18 turns into a call */                             \
		__asm__ volatile(".byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n\tret");                     \
	}
#else
#define SITE(function)                                                                             \
	AGENT_EXPORT __attribute__((noinline, used, patchable_function_entry(1))) function         \
	{                                                                                          \
		__asm__ volatile("" ::: "memory");                                                 \
	}
#endif

#define REQUEST(name)                                                                              \
	void name(void);                                                                           \
	SITE(void name(void))                                                                      \
	SEMAPHORE(name)

#pragma GCC diagnostic ignored "-Wunused-parameter"
#ifdef __x86_64__
/* nocf_check without -fcf-protection */
#pragma GCC diagnostic ignored "-Wattributes"
#endif
SITE(void xsp_gpu_batch(const void *records, size_t bytes))
SEMAPHORE(xsp_gpu_batch);
REQUEST(xsp_gpu_want_activity);
REQUEST(xsp_gpu_want_memory);
REQUEST(xsp_gpu_want_events);
REQUEST(xsp_gpu_want_markers);
REQUEST(xsp_gpu_want_graphs);
REQUEST(xsp_gpu_want_latency);
REQUEST(xsp_gpu_want_all_api);
REQUEST(xsp_gpu_want_shared);
REQUEST(xsp_agent_want_operators);
REQUEST(xsp_agent_want_callbacks);
REQUEST(xsp_agent_want_regions);

bool agent_wants(enum agent_want want)
{
	static const volatile unsigned short *const semaphores[WANTS] = {
		[WANT_ACTIVITY] = &xsp_gpu_want_activity_semaphore,
		[WANT_MEMORY] = &xsp_gpu_want_memory_semaphore,
		[WANT_EVENTS] = &xsp_gpu_want_events_semaphore,
		[WANT_MARKERS] = &xsp_gpu_want_markers_semaphore,
		[WANT_GRAPHS] = &xsp_gpu_want_graphs_semaphore,
		[WANT_LATENCY] = &xsp_gpu_want_latency_semaphore,
		[WANT_ALL_API] = &xsp_gpu_want_all_api_semaphore,
		[WANT_SHARED] = &xsp_gpu_want_shared_semaphore,
		[WANT_OPERATORS] = &xsp_agent_want_operators_semaphore,
		[WANT_CALLBACKS] = &xsp_agent_want_callbacks_semaphore,
		[WANT_REGIONS] = &xsp_agent_want_regions_semaphore,
	};

	return *semaphores[want] != 0;
}

bool agent_heard(void)
{
	return xsp_gpu_batch_semaphore || xsp_gpu_want_activity_semaphore;
}
