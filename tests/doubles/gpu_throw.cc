// SPDX-License-Identifier: BSD-2-Clause
// gpu_throw - a C++ program that throws through frames that called CUDA, is interrupted by a timer
// signal 500 times a second all the while, and cancels a thread that waits.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <stdexcept>
#include <sys/time.h>
#include <unistd.h>
#include "cuda_double.h"

static std::atomic<long> ticks;

static void must(CUresult result)
{
	if (result)
		std::abort();
}

static void work(CUfunction f, int i)
{
	must(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr));
	if (i % 3 == 0)
		throw std::runtime_error("third");
	must(cuCtxSynchronize());
}

static void *waiter(void *)
{
	pause();
	return nullptr;
}

int main()
{
	CUcontext context;
	CUmodule module;
	CUfunction f;
	int caught = 0;
	pthread_t thread;
	void *status;
	itimerval every = {{0, 2000}, {0, 2000}};

	std::signal(SIGALRM, [](int) { ticks++; });
	setitimer(ITIMER_REAL, &every, nullptr);
	must(cuInit(0));
	must(cuDevicePrimaryCtxRetain(&context, 0));
	must(cuCtxSetCurrent(context));
	must(cuModuleLoadData(&module, "image"));
	must(cuModuleGetFunction(&f, module, "_Z6throwsv"));
	pthread_create(&thread, nullptr, waiter, nullptr);
	for (int i = 0; i < 3000; i++)
		try {
			work(f, i);
		} catch (const std::runtime_error &) {
			caught++;
		}
	pthread_cancel(thread);
	pthread_join(thread, &status);
	std::printf("{\"caught\":%d,\"cancelled\":%d}\n", caught, status == PTHREAD_CANCELED);
	return ticks > 0 ? 0 : 1;
}
