// SPDX-License-Identifier: BSD-2-Clause
// gpu_ranks - a job on simulated GPUs: --threads ranks, a process each, of which rank `argument` multiplies three times as long as the
// others. --calls steps: all begin together, multiply, and reduce over all ranks by a method with the name, `this` and members of
// PyTorch's. The kernel of that ends on all ranks when the slowest has come, and 1 ms more. Kernels last as many us as they are given
// bytes of shared memory (XSP_DOUBLE_SHARED_US, which this program sets).
//
// Prints what rank 0 waited for the slow one in a step, in us.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xsptrace/record_function.h>
#include "../workloads/workload.h"
#include "cuda_double.h"

static constexpr unsigned MULTIPLY_US = 2000, TRANSFER_US = 1000;

static void stub_multiply()
{
	asm volatile("# multiply");
}
static void stub_reduce()
{
	asm volatile("# reduce");
}

static void must(int error)
{
	if (error)
		std::abort();
}

static void launch(void (*stub)(), unsigned us)
{
	must(cudaLaunchKernel(reinterpret_cast<const void *>(stub), dim3{8, 1, 1}, dim3{256, 1, 1},
			      nullptr, us, nullptr));
}

namespace c10d
{
// Returned through memory, as an intrusive_ptr is.
struct Work {
	~Work()
	{
	}
	int kind = 0;
};

class ProcessGroupNCCL
{
      public:
	ProcessGroupNCCL(int rank, int size) : rank_(rank), size_(size)
	{
	}
	virtual ~ProcessGroupNCCL() = default;
	__attribute__((noinline, visibility("default"))) Work allreduce(unsigned us);

      private:
	uint64_t references_ = 1;
	int rank_, size_;
};

Work ProcessGroupNCCL::allreduce(unsigned us)
{
	launch(stub_reduce, us);
	return Work{rank_ + size_};
}
} // namespace c10d

static void run(unsigned rank, const wl_options &o, unsigned slow, pthread_barrier_t *barrier)
{
	c10d::ProcessGroupNCCL group(static_cast<int>(rank), static_cast<int>(o.threads));
	const unsigned own = rank == slow ? 3 * MULTIPLY_US : MULTIPLY_US;

	must(cudaSetDevice(0));
	for (uint64_t n = 0; n < o.calls; n++) {
		const std::string name = "ProfilerStep#" + std::to_string(n);
		must(cudaDeviceSynchronize());
		pthread_barrier_wait(barrier);
		XSP_RECORD_FUNCTION(name.c_str());
		launch(stub_multiply, own);
		group.allreduce(3 * MULTIPLY_US - own + TRANSFER_US);
		must(cudaDeviceSynchronize());
	}
}

int main(int argc, char **argv)
{
	wl_options o = {};
	pthread_barrierattr_t shared;

	o.workload = "gpu_ranks";
	o.threads = 4;
	o.calls = 20;
	wl_parse(&o, argc, argv);
	const unsigned slow = o.argc > 0 ? static_cast<unsigned>(std::atoi(o.argv[0])) : 2;
	setenv("XSP_DOUBLE_SHARED_US", "1", 1);
	void *memory = mmap(nullptr, sizeof(pthread_barrier_t), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return 1;
	auto *barrier = static_cast<pthread_barrier_t *>(memory);
	pthread_barrierattr_init(&shared);
	pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(barrier, &shared, o.threads);
	__cudaRegisterFunction(nullptr, reinterpret_cast<const char *>(stub_multiply), nullptr,
			       "_Z8multiplyPf", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
	__cudaRegisterFunction(nullptr, reinterpret_cast<const char *>(stub_reduce), nullptr,
			       "ncclDevKernel_AllReduce_Sum_f32_RING_LL", -1, nullptr, nullptr,
			       nullptr, nullptr, nullptr);
	for (unsigned rank = 0; rank < o.threads; rank++)
		if (fork() == 0) {
			run(rank, o, slow, barrier);
			std::exit(0);
		}
	int status = 0, failed = 0;
	while (wait(&status) > 0)
		failed |= status;
	std::printf("%u\n", 2 * MULTIPLY_US);
	return failed ? 1 : 0;
}
