/* SPDX-License-Identifier: BSD-2-Clause */
#include "catalog/providers.h"

#include <stddef.h>
#include <string.h>

static const struct {
	const char *name; /* struct xsp_provider.name */
	unsigned traits;
} providers[] = {
	{"cuda", XSP_PROVIDER_CUDA_CALLS},
	{"gpu", XSP_PROVIDER_GPU_RECORDS},
	{"record_function", XSP_PROVIDER_REGIONS},
	{"torch", XSP_PROVIDER_OPERATORS},
	{"trace", XSP_PROVIDER_READ},
	{"trace-cuda", XSP_PROVIDER_READ | XSP_PROVIDER_CUDA_CALLS},
	{"xsigma", XSP_PROVIDER_SCOPES | XSP_PROVIDER_REGIONS},
	{"c10d", XSP_PROVIDER_C10D},
	{"nccl", XSP_PROVIDER_NCCL},
};

unsigned xsp_provider_traits(const char *name)
{
	for (size_t i = 0; i < sizeof(providers) / sizeof(providers[0]); i++)
		if (strcmp(providers[i].name, name) == 0)
			return providers[i].traits;
	return 0;
}
