/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * apis.c - which API calls are collected: those that start work on a GPU, wait for it, or take memory. They are chosen
 * by the names that libcupti has for its callback numbers, so one agent knows the functions of every version.
 */
#include <string.h>
#include "agent.h"

static const char *const driver[] = {
	"cuLaunch",	"cuGraphLaunch",  "cuMemcpy",	   "cuMemset",
	"cuStreamSync", "cuStreamWait",	  "cuStreamWrite", "cuStreamBatchMemOp",
	"cuCtxSync",	"cuEventSync",	  "cuEventRecord", "cuMemAlloc",
	"cuMemFree",	"cuMemHostAlloc", "cuMemCreate",   "cuMemMap",
	"cuMemUnmap",	"cuMemRelease",	  "cuMemPrefetch", "cuMemExportToShareable",
	"cuMemImport",	"cuMemDiscard",
};
static const char *const runtime[] = {
	"cudaLaunch",	  "__cudaLaunch",   "cudaGraphLaunch", "cudaMemcpy",
	"cudaMemset",	  "cudaStreamSync", "cudaStreamWait",  "cudaDeviceSync",
	"cudaThreadSync", "cudaEventSync",  "cudaEventRecord", "cudaMalloc",
	"cudaFree",	  "cudaHostAlloc",  "cudaMemPrefetch", "cudaMemDiscard",
};

bool apis_wanted(const char *name, int domain)
{
	const char *const *prefixes = domain == CUPTI_DOMAIN_DRIVER ? driver : runtime;
	size_t count = domain == CUPTI_DOMAIN_DRIVER ? sizeof(driver) / sizeof(*driver)
						     : sizeof(runtime) / sizeof(*runtime);

	for (size_t i = 0; i < count; i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

void apis_choose(struct apis *apis, const struct cupti *cupti)
{
	for (int domain = CUPTI_DOMAIN_DRIVER; domain <= CUPTI_DOMAIN_RUNTIME; domain++)
		for (uint32_t cbid = 1; cbid < API_MAX; cbid++) {
			const char *name = NULL;

			if (cupti->get_callback_name(domain, cbid, &name) != CUPTI_OK || !name ||
			    !apis_wanted(name, domain))
				continue;
			apis->wanted[domain][cbid] = true;
			apis->last[domain] = cbid;
		}
	apis->chosen = true;
}
