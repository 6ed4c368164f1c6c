/* SPDX-License-Identifier: BSD-2-Clause */
#include "catalog/gpu/occupancy.h"

#include <limits.h>
#include <stddef.h>

#define REGISTER_UNIT 256U /* allocated for a warp at a time */

static uint64_t round_up(uint64_t n, uint64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

static int as_int(uint64_t n)
{
	return n > INT_MAX ? INT_MAX : (int)n;
}

static uint64_t shared_unit(const struct xsp_gpu_device *d)
{
	return d->compute_major >= 8 ? 128 : 256;
}

static uint64_t partitions(const struct xsp_gpu_device *d)
{
	return d->compute_major == 6 && d->compute_minor == 0 ? 2 : 4;
}

static int limit_by_registers(const struct xsp_gpu_device *d, uint64_t registers, uint64_t warps,
			      uint64_t *allocated)
{
	uint64_t a_warp = round_up(registers * d->warp_size, REGISTER_UNIT);
	uint64_t most = d->compute_major >= 7 ? 256 : 255, parts = partitions(d);
	/* GP100 also limits the kernel to what the other Pascals could run */
	uint64_t assumed = a_warp * round_up(warps, d->compute_major == 6 ? 4 : parts);

	*allocated = a_warp * warps;
	if (assumed > d->registers_per_block || *allocated > d->registers_per_block ||
	    registers > most)
		return 0;
	if (a_warp == 0)
		return INT_MAX;
	return as_int(d->registers_per_multiprocessor / parts / a_warp * parts / warps);
}

static int limit_by_shared(const struct xsp_gpu_device *d, uint64_t wanted, uint64_t *allocated)
{
	uint64_t most = d->compute_major >= 7 ? d->shared_per_block_optin : d->shared_per_block;

	wanted += d->reserved_shared_per_block;
	if (d->compute_major >= 8)
		most += d->reserved_shared_per_block;
	*allocated = round_up(wanted, shared_unit(d));
	if (*allocated > most)
		return 0;
	return *allocated == 0 ? INT_MAX : as_int(d->shared_per_multiprocessor / *allocated);
}

static int least(int a, int b)
{
	return a < b ? a : b;
}

/* Indexed by bits: warps, registers, shared memory, blocks. The order is Kineto's. */
static const char *factors(const struct xsp_occupancy *o)
{
	static const char *const texts[16] = {
		"none",
		"WARPS",
		"REGS",
		"WARPS|REGS",
		"SMEM",
		"WARPS|SMEM",
		"REGS|SMEM",
		"WARPS|REGS|SMEM",
		"BLOCKS",
		"WARPS|BLOCKS",
		"REGS|BLOCKS",
		"WARPS|REGS|BLOCKS",
		"SMEM|BLOCKS",
		"WARPS|SMEM|BLOCKS",
		"REGS|SMEM|BLOCKS",
		"WARPS|REGS|SMEM|BLOCKS",
	};
	int n = o->active_blocks;

	return texts[(n == o->limit_warps) | (n == o->limit_registers) << 1 |
		     (n == o->limit_shared) << 2 | (n == o->limit_blocks) << 3];
}

static bool is_known(const struct xsp_gpu_device *d)
{
	return d->compute_major >= 5 && d->compute_major <= 12 && d->warp_size > 0 &&
	       d->max_threads_per_multiprocessor > 0 && d->registers_per_multiprocessor > 0 &&
	       d->registers_per_block > 0 && d->shared_per_multiprocessor > 0 &&
	       d->max_blocks_per_multiprocessor > 0 && d->max_threads_per_block > 0;
}

bool xsp_occupancy(const struct xsp_gpu_device *d, const struct xsp_gpu_kernel *k,
		   struct xsp_occupancy *out)
{
	uint64_t threads = (uint64_t)k->block[0] * k->block[1], registers, shared;

	if (!is_known(d) || __builtin_mul_overflow(threads, (uint64_t)k->block[2], &threads) ||
	    threads == 0 || threads > 1U << 20)
		return false;
	uint64_t warps = round_up(threads, d->warp_size) / d->warp_size;
	uint64_t slots = d->max_threads_per_multiprocessor / d->warp_size;
	*out = (struct xsp_occupancy){
		.limit_registers = limit_by_registers(d, k->registers, warps, &registers),
		.limit_shared =
			limit_by_shared(d, (uint64_t)k->static_shared + k->dynamic_shared, &shared),
		.limit_warps = threads > d->max_threads_per_block ? 0 : as_int(slots / warps),
		.limit_blocks = as_int(d->max_blocks_per_multiprocessor),
		.limit_barriers = INT_MAX,
		.registers_per_block = as_int(registers),
		.shared_per_block = as_int(shared),
	};
	out->active_blocks = least(least(out->limit_registers, out->limit_shared),
				   least(out->limit_warps, out->limit_blocks));
	out->factors = factors(out);
	return true;
}

static double product(const uint32_t v[3])
{
	return (double)v[0] * v[1] * v[2];
}

double xsp_blocks_per_multiprocessor(const struct xsp_gpu_device *d, const struct xsp_gpu_kernel *k)
{
	return product(k->grid) / d->multiprocessors;
}

double xsp_occupancy_share(const struct xsp_gpu_device *d, const struct xsp_gpu_kernel *k,
			   const struct xsp_occupancy *o)
{
	const double blocks = xsp_blocks_per_multiprocessor(d, k);
	const double active = o->active_blocks < blocks ? o->active_blocks : blocks;

	return active * product(k->block) / d->max_threads_per_multiprocessor;
}
