/* SPDX-License-Identifier: BSD-2-Clause */
/* Occupancy, held against NVIDIA's own cuda_occupancy.h where it is installed. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/gpu/occupancy.h"

#if __has_include("/usr/local/cuda/include/cuda_occupancy.h")
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wshadow"
#include "/usr/local/cuda/include/cuda_occupancy.h"
#pragma GCC diagnostic pop
#define HAVE_HEADER 1
#endif

/* Data sheets: CUDA programming guide, table of compute capabilities. */
static const struct xsp_gpu_device devices[] = {
	{.compute_major = 7,
	 .compute_minor = 0,
	 .warp_size = 32,
	 .max_threads_per_block = 1024,
	 .max_threads_per_multiprocessor = 2048,
	 .registers_per_block = 65536,
	 .registers_per_multiprocessor = 65536,
	 .shared_per_block = 49152,
	 .shared_per_block_optin = 98304,
	 .shared_per_multiprocessor = 98304,
	 .max_blocks_per_multiprocessor = 32},
	{.compute_major = 8,
	 .compute_minor = 0,
	 .warp_size = 32,
	 .max_threads_per_block = 1024,
	 .max_threads_per_multiprocessor = 2048,
	 .registers_per_block = 65536,
	 .registers_per_multiprocessor = 65536,
	 .shared_per_block = 49152,
	 .shared_per_block_optin = 166912,
	 .shared_per_multiprocessor = 167936,
	 .reserved_shared_per_block = 1024,
	 .max_blocks_per_multiprocessor = 32},
	{.compute_major = 8,
	 .compute_minor = 6,
	 .warp_size = 32,
	 .max_threads_per_block = 1024,
	 .max_threads_per_multiprocessor = 1536,
	 .registers_per_block = 65536,
	 .registers_per_multiprocessor = 65536,
	 .shared_per_block = 49152,
	 .shared_per_block_optin = 101376,
	 .shared_per_multiprocessor = 102400,
	 .reserved_shared_per_block = 1024,
	 .max_blocks_per_multiprocessor = 16},
	{.compute_major = 9,
	 .compute_minor = 0,
	 .warp_size = 32,
	 .max_threads_per_block = 1024,
	 .max_threads_per_multiprocessor = 2048,
	 .registers_per_block = 65536,
	 .registers_per_multiprocessor = 65536,
	 .shared_per_block = 49152,
	 .shared_per_block_optin = 232448,
	 .shared_per_multiprocessor = 233472,
	 .reserved_shared_per_block = 1024,
	 .max_blocks_per_multiprocessor = 32},
};
#define DEVICES (sizeof(devices) / sizeof(devices[0]))

Test(occupancy, known_cases)
{
	struct xsp_occupancy o;
	/* H100: 256 threads of 128 registers: 2 blocks fit by registers */
	struct xsp_gpu_kernel k = {.registers = 128, .block = {256, 1, 1}};
	cr_assert(xsp_occupancy(&devices[3], &k, &o));
	cr_assert_eq(o.active_blocks, 2);
	cr_assert_str_eq(o.factors, "REGS");
	/* 100 KiB of shared memory a block: 2 of 228 KiB */
	k = (struct xsp_gpu_kernel){
		.registers = 16, .block = {64, 1, 1}, .dynamic_shared = 100 << 10};
	cr_assert(xsp_occupancy(&devices[3], &k, &o));
	cr_assert_eq(o.active_blocks, 2);
	cr_assert_str_eq(o.factors, "SMEM");
	/* one warp a block: 32 blocks */
	k = (struct xsp_gpu_kernel){.registers = 16, .block = {32, 1, 1}};
	cr_assert(xsp_occupancy(&devices[3], &k, &o));
	cr_assert_eq(o.active_blocks, 32);
	cr_assert_str_eq(o.factors, "BLOCKS");
}

Test(occupancy, nonsense)
{
	struct xsp_occupancy o;
	struct xsp_gpu_device none = {0};
	struct xsp_gpu_kernel k = {.registers = 128, .block = {256, 1, 1}};
	cr_assert_not(xsp_occupancy(&none, &k, &o));
	k.block[1] = 0;
	cr_assert_not(xsp_occupancy(&devices[3], &k, &o));
	k = (struct xsp_gpu_kernel){.block = {UINT32_MAX, UINT32_MAX, UINT32_MAX}};
	cr_assert_not(xsp_occupancy(&devices[3], &k, &o));
	k = (struct xsp_gpu_kernel){.registers = UINT16_MAX,
				    .block = {1024, 1, 1},
				    .static_shared = UINT32_MAX,
				    .dynamic_shared = UINT32_MAX};
	cr_assert(xsp_occupancy(&devices[3], &k, &o));
	cr_assert_eq(o.active_blocks, 0);
}

#ifdef HAVE_HEADER
static void compare(const struct xsp_gpu_device *d, const struct xsp_gpu_kernel *k)
{
	cudaOccDeviceProp properties;
	cudaOccFuncAttributes attributes;
	cudaOccDeviceState state;
	cudaOccResult want = {0};
	struct xsp_occupancy got;

	memset(&properties, 0, sizeof(properties));
	memset(&attributes, 0, sizeof(attributes));
	memset(&state, 0, sizeof(state));
	properties.numSms = 1;
	properties.computeMajor = (int)d->compute_major;
	properties.computeMinor = (int)d->compute_minor;
	properties.maxThreadsPerBlock = (int)d->max_threads_per_block;
	properties.maxThreadsPerMultiprocessor = (int)d->max_threads_per_multiprocessor;
	properties.regsPerBlock = (int)d->registers_per_block;
	properties.regsPerMultiprocessor = (int)d->registers_per_multiprocessor;
	properties.warpSize = (int)d->warp_size;
	properties.sharedMemPerBlock = d->shared_per_block;
	properties.sharedMemPerMultiprocessor = d->shared_per_multiprocessor;
	properties.sharedMemPerBlockOptin = d->shared_per_block_optin;
	properties.reservedSharedMemPerBlock = d->reserved_shared_per_block;
	/* as Kineto asks: KernelRegistry and occupancy in CuptiActivity */
	attributes.maxThreadsPerBlock = INT_MAX;
	attributes.numRegs = k->registers;
	attributes.sharedSizeBytes = k->static_shared;
	attributes.partitionedGCConfig = PARTITIONED_GC_OFF;
	attributes.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
	attributes.maxDynamicSharedSizeBytes = INT_MAX;
	state.carveoutConfig = SHAREDMEM_CARVEOUT_DEFAULT;
	int threads = (int)(k->block[0] * k->block[1] * k->block[2]);
	cr_assert_eq(cudaOccMaxActiveBlocksPerMultiprocessor(&want, &properties, &attributes,
							     &state, threads, k->dynamic_shared),
		     CUDA_OCC_SUCCESS);
	cr_assert(xsp_occupancy(d, k, &got));
	cr_assert_eq(got.active_blocks, want.activeBlocksPerMultiprocessor,
		     "sm_%u%u, %d threads, %u registers, %u + %u bytes: %d blocks, not %d",
		     d->compute_major, d->compute_minor, threads, k->registers, k->static_shared,
		     k->dynamic_shared, got.active_blocks, want.activeBlocksPerMultiprocessor);
	cr_assert_eq(got.limit_registers, want.blockLimitRegs);
	cr_assert_eq(got.limit_shared, want.blockLimitSharedMem);
	cr_assert_eq(got.limit_warps, want.blockLimitWarps);
	cr_assert_eq(got.limit_blocks, want.blockLimitBlocks);
	cr_assert_eq(got.registers_per_block, want.allocatedRegistersPerBlock);
	cr_assert_eq(got.shared_per_block, (int)want.allocatedSharedMemPerBlock);
}

Test(occupancy, the_same_as_the_header)
{
	unsigned seed = 1;

	for (int i = 0; i < 20000; i++) {
		struct xsp_gpu_kernel k = {.registers = (uint16_t)(rand_r(&seed) % 256),
					   .block = {(uint32_t)(rand_r(&seed) % 1024) + 1, 1, 1},
					   .static_shared = (uint32_t)rand_r(&seed) % 49152,
					   .dynamic_shared = (uint32_t)rand_r(&seed) % (2 << 16)};
		if (i % 3 == 0)
			k.static_shared = k.dynamic_shared = 0;
		compare(&devices[(size_t)i % DEVICES], &k);
	}
}
#endif
