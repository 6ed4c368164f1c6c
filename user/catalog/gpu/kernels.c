/* SPDX-License-Identifier: BSD-2-Clause */
#include "catalog/gpu/kernels.h"

#include <stddef.h>
#include <string.h>

bool xsp_kernel_communicates(const char *name)
{
	static const char *const beginnings[] = {"nccl", "rccl", "hccl"};

	for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++)
		if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
			return true;
	return strstr(name, "ncclKernel") != NULL;
}
