// SPDX-License-Identifier: BSD-2-Clause
// cuda_wrapper - functions of its own by the names of CUDA's, as wrappers and preloaded libraries have
// them; here they throw. --calls times; each third call of cudaMalloc throws through cudaMalloc itself.
#include <stdexcept>

#include "workload.h"

enum { F_MALLOC, F_LAUNCH, F_COUNT };
static struct wl_count counts[F_COUNT] = {{"cudaMalloc", 0, 0}, {"cuLaunchKernel", 0, 0}};

extern "C" WL_TRACED int cuLaunchKernel(uint64_t x)
{
	counts[F_LAUNCH].calls++;
	if (x % 3 == 0) {
		counts[F_LAUNCH].unwound++;
		throw std::runtime_error("no such kernel");
	}
	return (int)wl_mix(x);
}

extern "C" WL_TRACED int cudaMalloc(uint64_t x)
{
	counts[F_MALLOC].calls++;
	if (x % 3 == 0)
		counts[F_MALLOC].unwound++;
	return cuLaunchKernel(x) + 1;
}

int main(int argc, char **argv)
{
	struct wl_options o = {};
	uint64_t start, sum = 0;

	o.workload = "cuda_wrapper";
	o.calls = 3000;
	wl_parse(&o, argc, argv);
	wl_start(&o);
	start = wl_now_ns();
	for (uint64_t i = 0; !wl_stop() && (o.seconds > 0 || i < o.calls); i++) {
		wl_pace(&o, start, i);
		try {
			sum += (uint64_t)cudaMalloc(i);
		} catch (const std::runtime_error &) {
			sum++;
		}
	}
	return wl_finish(&o, sum, counts, F_COUNT, nullptr);
}
