/* SPDX-License-Identifier: BSD-2-Clause */
#include "catalog/gpu_words.h"

#include <string.h>

#include "xsptrace/gpu.h"

#define OTHERS UINT32_MAX

const struct xsp_gpu_word xsp_gpu_copy_words[] = {
	{0, "Unknown"}, {1, "HtoD"}, {2, "DtoH"}, {3, "HtoA"}, {4, "AtoH"},  {5, "AtoA"},
	{6, "AtoD"},	{7, "DtoA"}, {8, "DtoD"}, {9, "HtoH"}, {10, "PtoP"}, {OTHERS, "Unknown"},
};
const struct xsp_gpu_word xsp_gpu_memory_words[] = {
	{0, "Unknown"},	      {1, "Pageable"},	     {2, "Pinned"},
	{3, "Device"},	      {4, "Array"},	     {5, "Managed"},
	{6, "Device Static"}, {7, "Managed Static"}, {OTHERS, "Unknown"},
};
const struct xsp_gpu_word xsp_gpu_sync_words[] = {
	{0, "Unknown Sync"}, {1, "Event Sync"},	  {2, "Stream Wait Event"},
	{3, "Stream Sync"},  {4, "Context Sync"}, {OTHERS, "Unknown Sync"},
};
/* CUpti_ActivityOverheadKind */
const struct xsp_gpu_word xsp_gpu_overhead_words[] = {
	{1, "Driver Compiler"},
	{1U << 16, "Buffer Flush"},
	{2U << 16, "Instrumentation"},
	{3U << 16, "Resource"},
	{4U << 16, "Runtime Triggered Module Loading"},
	{5U << 16, "Lazy Function Loading"},
	{6U << 16, "Command Buffer Full"},
	{7U << 16, "Activity Buffer Request"},
	{8U << 16, "UVM Activity Init"},
	{OTHERS, "Unrecognized"},
};
const struct xsp_gpu_word xsp_gpu_channel_words[] = {
	{0, "INVALID"}, {1, "COMPUTE"}, {2, "ASYNC_MEMCPY"}, {OTHERS, "UNKNOWN"}};

const char *xsp_gpu_word(const struct xsp_gpu_word *list, uint32_t number)
{
	while (list->number != number && list->number != OTHERS)
		list++;
	return list->word;
}

uint32_t xsp_gpu_word_number(const struct xsp_gpu_word *list, const char *word, size_t length)
{
	for (; list->number != OTHERS; list++)
		if (strlen(list->word) == length && memcmp(list->word, word, length) == 0)
			return list->number;
	return 0;
}

#define KEY(key, member)                                                                           \
	{                                                                                          \
		key, offsetof(struct xsp_gpu_device, member),                                      \
			sizeof(((struct xsp_gpu_device *)NULL)->member)                            \
	}
const struct xsp_number_at xsp_gpu_device_keys[] = {
	KEY("id", id),
	KEY("totalGlobalMem", total_memory),
	KEY("computeMajor", compute_major),
	KEY("computeMinor", compute_minor),
	KEY("maxThreadsPerBlock", max_threads_per_block),
	KEY("maxThreadsPerMultiprocessor", max_threads_per_multiprocessor),
	KEY("regsPerBlock", registers_per_block),
	KEY("warpSize", warp_size),
	KEY("sharedMemPerBlock", shared_per_block),
	KEY("numSms", multiprocessors),
	KEY("regsPerMultiprocessor", registers_per_multiprocessor),
	KEY("sharedMemPerBlockOptin", shared_per_block_optin),
	KEY("sharedMemPerMultiprocessor", shared_per_multiprocessor),
	KEY("maxBlocksPerMultiprocessor", max_blocks_per_multiprocessor), /* ours */
	{NULL, 0, 0},
};
