/* SPDX-License-Identifier: BSD-2-Clause */
#include "catalog/gpu/peaks.h"

#include <stddef.h>

/* Units a multiprocessor, by compute capability: CUDA C++ Programming Guide, "Arithmetic
 * Instructions". */
static unsigned units(const struct xsp_gpu_device *d)
{
	static const struct {
		unsigned major, minor, units;
	} table[] = {
		{5, 0, 128},  {5, 2, 128},  {5, 3, 128},  {6, 0, 64},	{6, 1, 128},
		{6, 2, 128},  {7, 0, 64},   {7, 2, 64},	  {7, 5, 64},	{8, 0, 64},
		{8, 6, 128},  {8, 7, 128},  {8, 9, 128},  {9, 0, 128},	{10, 0, 128},
		{10, 3, 128}, {11, 0, 128}, {12, 0, 128}, {12, 1, 128},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].major == d->compute_major && table[i].minor == d->compute_minor)
			return table[i].units;
	return 0;
}

bool xsp_gpu_peaks(const struct xsp_gpu_device *d, double *flops, double *bytes)
{
	/* a unit multiplies and adds once a clock; memory transfers twice a clock */
	*flops = 2.0 * units(d) * d->multiprocessors * d->clock_khz * 1e3;
	*bytes = 2.0 * d->memory_clock_khz * 1e3 * d->memory_bus_bits / 8;
	return *flops > 0 && *bytes > 0;
}
