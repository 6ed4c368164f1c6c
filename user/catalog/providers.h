/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * providers.h - what is special about the probes of a provider, for readers of a capture, which
 * holds the provider's name.
 */
#ifndef XSP_CATALOG_PROVIDERS_H
#define XSP_CATALOG_PROVIDERS_H

/* Most providers have none: their probes are functions or named ranges. */
enum xsp_provider_trait {
	XSP_PROVIDER_CUDA_CALLS = 1 << 0, /* symbols are calls of CUDA's API: gpu/cuda_table.h */
	XSP_PROVIDER_GPU_RECORDS = 1 << 1, /* passes on the agent's records: xsptrace/gpu.h */
	/* functions are operators with a schema: torch/schema.h */
	XSP_PROVIDER_OPERATORS = 1 << 2,
	XSP_PROVIDER_SCOPES = 1 << 3, /* each call says its scope: XSP_SCOPE_OWN */
	/* it has no probes: read from a Chrome trace, where symbols of functions and ranges were
	 * categories */
	XSP_PROVIDER_READ = 1 << 4,
	XSP_PROVIDER_C10D = 1 << 5, /* collectives of torch.distributed: collectives.h */
	XSP_PROVIDER_NCCL = 1 << 6, /* the same, of NCCL */
	XSP_PROVIDER_REGIONS = 1 << 7, /* those that the agent records as well */
};
#define XSP_PROVIDER_COLLECTIVES (XSP_PROVIDER_C10D | XSP_PROVIDER_NCCL)

/* Bits of enum xsp_provider_trait; 0: the provider has none, or is unknown. */
unsigned xsp_provider_traits(const char *name);

#endif
