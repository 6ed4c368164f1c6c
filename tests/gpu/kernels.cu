/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernels.cu - a CUDA program that knows what it did: threads, streams, a graph, copies, memsets.
 * Prints the counts as JSON. The runtime is linked statically: only the driver API is to be seen.
 *
 *	kernels [THREADS] [LAUNCHES] [SECONDS-TO-WAIT-FIRST]
 */
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <unistd.h>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                                                \
	do {                                                                                       \
		cudaError_t error_ = (call);                                                       \
		if (error_ != cudaSuccess) {                                                       \
			fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error_));            \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

__global__ void add_one(float *x, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		x[i] += 1;
}

__global__ void twice(float *x, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		x[i] *= 2;
}

static const int N = 1 << 16;

static void work(int launches)
{
	std::vector<float> host(N, 1.0f);
	float *device;
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMalloc(&device, N * sizeof(float)));
	CHECK(cudaMemcpyAsync(device, host.data(), N * sizeof(float), cudaMemcpyHostToDevice, stream));
	for (int i = 0; i < launches; i++)
		add_one<<<N / 256, 256, 0, stream>>>(device, N);
	CHECK(cudaMemsetAsync(device, 0, N * sizeof(float), stream));
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	for (int i = 0; i < 3; i++)
		twice<<<N / 256, 256, 0, stream>>>(device, N);
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < launches / 10; i++)
		CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaMemcpyAsync(host.data(), device, N * sizeof(float), cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaFree(device));
	CHECK(cudaStreamDestroy(stream));
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 4, launches = argc > 2 ? atoi(argv[2]) : 1000;
	int wait = argc > 3 ? atoi(argv[3]) : 0;
	std::vector<std::thread> all;

	CHECK(cudaFree(0)); /* the context */
	for (int i = 0; i < wait * 10; i++) {
		CHECK(cudaDeviceSynchronize()); /* an agent starts at CUDA calls */
		usleep(100000);
	}
	for (int i = 0; i < threads; i++)
		all.emplace_back(work, launches);
	for (auto &t : all)
		t.join();
	CHECK(cudaDeviceSynchronize());
	printf("{\"add_one\": %d, \"twice\": %d, \"graph_launches\": %d, \"memsets\": %d, "
	       "\"HtoD\": %d, \"DtoH\": %d, \"bytes\": %zu}\n",
	       threads * launches, threads * (launches / 10) * 3, threads * (launches / 10), threads,
	       threads, threads, N * sizeof(float));
	return 0;
}
