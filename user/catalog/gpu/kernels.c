/* SPDX-License-Identifier: BSD-2-Clause */
#include "catalog/gpu/kernels.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "base/text.h"

#define LONGEST 512U

/* The name without its result, parameters and template arguments, in lowercase: some tools write
 * names so. "void a::B<int>::c<2>(x*)" becomes "a::b::c". */
static void bare_name(const char *name, char out[LONGEST])
{
	static const char anonymous[] = "(anonymous namespace)";
	size_t n = 0;
	int depth = 0;

	for (const char *c = name; *c != '\0' && n + 1 < LONGEST; c++) {
		if (depth == 0 && strncmp(c, anonymous, strlen(anonymous)) == 0)
			c += strlen(anonymous) - 1;
		else if (*c == '<' || *c == '>')
			depth += *c == '<' ? 1 : depth > 0 ? -1 : 0;
		else if (depth == 0 && *c == '(')
			break;
		else if (depth == 0 && *c == ' ')
			n = 0;
		else if (depth == 0)
			out[n++] = (char)tolower((unsigned char)*c);
	}
	out[n] = '\0';
}

/* Is it there, and not between the threads of a block or warp only? */
static bool has_part(const char *bare, const char *part)
{
	const char *at = strstr(bare, part);
	size_t before = at != NULL ? (size_t)(at - bare) : 0;

	if (before > 0 && bare[before - 1] == '_')
		before--;
	return at != NULL && !xsp_ends_with(bare, before, "block") &&
	       !xsp_ends_with(bare, before, "warp");
}

/* Inductor names a kernel after the operators that are fused in it: it computes, and copies. */
static bool is_fused(const char *name)
{
	return strncmp(name, "triton_", 7) == 0 && strstr(name, "_fused_") != NULL;
}

bool xsp_kernel_communicates(const char *name)
{
	/* libraries, and what collectives are called in kernels of vLLM, SGLang, flashinfer,
	 * TensorRT-LLM, PyTorch's symmetric memory, DeepEP, Transformer Engine */
	static const char *const beginnings[] = {"nccl", "rccl", "hccl", "msccl", "oneccl"};
	static const char *const parts[] = {
		"ncclkernel",
		"nccldevkernel",
		"ncclsymdevkernel",
		"rcclgenerickernel",
		"all_reduce",
		"allreduce",
		"cross_device_reduce",
		"crossdevicereduce",
		"reduce_scatter",
		"reducescatter",
		"all_gather",
		"allgather",
		"all_to_all",
		"alltoall",
		"all2all",
		"nvshmem",
		"deep_ep::",
		"userbuffers_",
		"mscclpp::",
		"multimem_",
		"put_signal_kernel",
		"wait_signal_kernel",
		"barrier_kernel",
	};
	char bare[LONGEST];

	bare_name(name, bare);
	if (is_fused(bare))
		return false;
	if (XSP_BEGINS_WITH_ANY(bare, beginnings))
		return true;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (has_part(bare, parts[i]))
			return true;
	return false;
}
