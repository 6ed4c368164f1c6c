/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gpu_sim - a program that keeps the simulated GPU busy: --threads threads, each with --calls
 * rounds. A round is an op (a range of record_function.h) with a launch in one of its forms, or a
 * graph launch; now and then copies, sets, waits. Each op launches its own kernel, so that a trace
 * shows whether each kernel is with its op: op "sim::<k>" launches kernels named <k>; the
 * grid of a launch is (round % 1000 + 1, thread + 1, 1).
 *
 * Further arguments:
 *   runtime     through libcudart (default: the driver API)
 *   streams=N   (8) in all; thread t uses stream t % N
 *   graphs=N    each Nth round launches a graph of 10 kernels, a copy and a set (0: never)
 *   plain       launches only: no copies, sets and waits but one wait in each 1000 rounds
 *   devices=N   threads use device t % N
 *   forkafter   forks after the work; the child tries a CUDA call and exits
 *   quit        ends by exit() of the main thread while the others still work
 *   rates       adds "rates": for each 100 ms, the first thread's CPU time a round in ns
 *
 * Prints the launches and kernels of each name; the simulated driver's own counts are in
 * XSP_DOUBLE_TRUTH.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <xsptrace/record_function.h>
#include "../workloads/workload.h"
#include "cuda_double.h"

enum { KERNELS = 6, MAX_STREAMS = 64, GRAPH_KERNELS = 10, BYTES = 4096, MAX_THREADS = 64 };

/* name of the op, of the kernel as the driver knows it, and as it reads demangled */
static const struct {
	const char *op, *kernel;
} work[KERNELS] = {
	{"sim::gemm", "_Z4gemmPfS_i"},		{"sim::axpy", "_Z4axpyfPKfPf"},
	{"sim::softmax", "_Z7softmaxPfi"},	{"sim::reduce", "_Z6reduceIfEvPT_i"},
	{"sim::dropout", "_ZN2nn7dropoutEPff"}, {"sim::gather", "gather_kernel"},
};
static const char graph_kernel[] = "_Z10graph_nodePfi";

static struct {
	struct wl_options o;
	bool runtime, plain, quit, fork_after, rates;
	unsigned streams, graphs, devices;
	CUcontext context[8];
	CUfunction function[KERNELS], node;
	CUkernel kernel[KERNELS];
	CUstream stream[MAX_STREAMS];
	_Atomic uint64_t rounds;
	_Atomic unsigned working;
} sim = {.streams = 8, .graphs = 16, .devices = 1};

struct thread {
	pthread_t id;
	unsigned index;
	uint64_t launches[KERNELS], graph_launches, rounds, sum, bad;
	CUdeviceptr memory;
	CUgraphExec exec;
};

/* A kernel's host function, as nvcc makes it. */
#define STUB(n)                                                                                    \
	static void stub_##n(void)                                                                 \
	{                                                                                          \
		__asm__ volatile("# " #n);                                                         \
	}
STUB(0)
STUB(1)
STUB(2)
STUB(3)
STUB(4)
STUB(5)
static void (*const stub[KERNELS])(void) = {stub_0, stub_1, stub_2, stub_3, stub_4, stub_5};

static void must(int result, const char *what)
{
	if (!result)
		return;
	fprintf(stderr, "gpu_sim: %s failed: %d\n", what, result);
	exit(1);
}
#define MUST(call) must((call), #call)

/* ---- one round ------------------------------------------------------------------- */

static int launch_driver(struct thread *t, unsigned k, unsigned x, CUstream stream)
{
	unsigned y = t->index + 1;
	CUlaunchConfig c = {.gridDimX = x,
			    .gridDimY = y,
			    .gridDimZ = 1,
			    .blockDimX = 128,
			    .blockDimY = 1,
			    .blockDimZ = 1,
			    .sharedMemBytes = 256,
			    .hStream = stream};

	switch (t->rounds % 8) {
	case 1:
		return cuLaunchKernelEx(&c, sim.function[k], NULL, NULL);
	case 2:
		return cuLaunchCooperativeKernel(sim.function[k], x, y, 1, 128, 1, 1, 256, stream,
						 NULL);
	case 3:
		return cuLaunchKernel_ptsz(sim.function[k], x, y, 1, 128, 1, 1, 256, stream, NULL,
					   NULL);
	default:
		return cuLaunchKernel(sim.function[k], x, y, 1, 128, 1, 1, 256, stream, NULL, NULL);
	}
}

static int launch_runtime(struct thread *t, unsigned k, unsigned x, CUstream stream)
{
	dim3 grid = {x, t->index + 1, 1}, block = {128, 1, 1};
	cudaLaunchConfig_t c = {
		.gridDim = grid, .blockDim = block, .dynamicSmemBytes = 256, .stream = stream};

	switch (t->rounds % 8) {
	case 1:
		return cudaLaunchKernelExC(&c, (const void *)stub[k], NULL);
	case 2:
		return cudaLaunchCooperativeKernel((const void *)stub[k], grid, block, NULL, 256,
						   stream);
	case 3:
	case 4:
		return __cudaLaunchKernel(sim.kernel[k], grid, block, NULL, 256, stream);
	default:
		return cudaLaunchKernel((const void *)stub[k], grid, block, NULL, 256, stream);
	}
}

WL_APART static void op(struct thread *t, unsigned k, CUstream stream)
{
	unsigned x = (unsigned)(t->rounds % 1000) + 1;

	XSP_RECORD_FUNCTION(work[k].op);
	if ((sim.runtime ? launch_runtime : launch_driver)(t, k, x, stream))
		t->bad++;
	t->launches[k]++;
}

WL_APART static void graph_op(struct thread *t, CUstream stream)
{
	XSP_RECORD_FUNCTION("sim::graph");
	if (sim.runtime ? cudaGraphLaunch(t->exec, stream) : cuGraphLaunch(t->exec, stream))
		t->bad++;
	t->graph_launches++;
}

WL_APART static void copies(struct thread *t, CUstream stream)
{
	uint64_t in[8], out[8];

	XSP_RECORD_FUNCTION("sim::copies");
	for (unsigned i = 0; i < 8; i++)
		in[i] = wl_mix(t->rounds + i);
	if (sim.runtime) {
		MUST(cudaMemcpyAsync((void *)(uintptr_t)t->memory, in, sizeof(in),
				     cudaMemcpyHostToDevice, stream));
		MUST(cudaMemcpyAsync(out, (void *)(uintptr_t)t->memory, sizeof(out),
				     cudaMemcpyDeviceToHost, stream));
		MUST(cudaMemsetAsync((void *)(uintptr_t)(t->memory + 1024), 7, 512, stream));
		MUST(cudaStreamSynchronize(stream));
	} else {
		MUST(cuMemcpyHtoDAsync_v2(t->memory, in, sizeof(in), stream));
		MUST(cuMemcpyDtoHAsync_v2(out, t->memory, sizeof(out), stream));
		MUST(cuMemsetD32Async(t->memory + 1024, 7, 128, stream));
		MUST(cuStreamSynchronize(stream));
	}
	for (unsigned i = 0; i < 8; i++)
		t->sum += wl_mix(out[i]);
}

static void round_of(struct thread *t, CUstream stream)
{
	uint64_t n = t->rounds;

	if (sim.graphs && n % sim.graphs == sim.graphs - 1)
		graph_op(t, stream);
	else
		op(t, (unsigned)((n + t->index) % KERNELS), stream);
	if (!sim.plain && n % 64 == 63)
		copies(t, stream);
	if (sim.plain && n % 1000 == 999)
		MUST(cuStreamSynchronize(stream));
	t->rounds++;
	if (sim.rates && !t->index)
		atomic_fetch_add(&sim.rounds, 1);
}

/* ---- threads --------------------------------------------------------------------- */

static void make_graph(struct thread *t, CUstream stream)
{
	CUgraph graph;
	CUDA_KERNEL_NODE_PARAMS_v2 p = {.func = sim.node,
					.gridDimX = 1,
					.gridDimY = t->index + 1,
					.gridDimZ = 1,
					.blockDimX = 64,
					.blockDimY = 1,
					.blockDimZ = 1};
	CUDA_MEMSET_NODE_PARAMS s = {
		.dst = t->memory, .value = 1, .elementSize = 4, .width = 16, .height = 1};

	if (t->index % 2) {
		/* by hand */
		MUST(cuGraphCreate(&graph, 0));
		for (unsigned i = 0; i < GRAPH_KERNELS; i++)
			MUST(cuGraphAddKernelNode_v2(NULL, graph, NULL, 0, &p));
		MUST(cuGraphAddMemsetNode(NULL, graph, NULL, 0, &s, NULL));
	} else {
		/* by capture */
		MUST(cuStreamBeginCapture_v2(stream, 0));
		for (unsigned i = 0; i < GRAPH_KERNELS; i++)
			MUST(cuLaunchKernel(sim.node, 1, t->index + 1, 1, 64, 1, 1, 0, stream, NULL,
					    NULL));
		MUST(cuMemsetD32Async(t->memory, 1, 16, stream));
		MUST(cuStreamEndCapture(stream, &graph));
	}
	MUST(cuGraphInstantiateWithFlags(&t->exec, graph, 0));
	MUST(cuGraphDestroy(graph));
}

static void *thread_main(void *argument)
{
	struct thread *t = argument;
	CUstream stream = sim.stream[t->index % sim.streams];
	uint64_t start = wl_now_ns();

	if (sim.runtime)
		MUST(cudaSetDevice((int)(t->index % sim.streams % sim.devices)));
	else
		MUST(cuCtxSetCurrent(sim.context[t->index % sim.streams % sim.devices]));
	for (uint64_t i = 0; !wl_stop() && (sim.o.seconds > 0 || i < sim.o.calls); i++) {
		wl_pace(&sim.o, start, i);
		round_of(t, stream);
	}
	MUST(cuStreamSynchronize(stream));
	atomic_fetch_sub(&sim.working, 1);
	return NULL;
}

static unsigned number(const char *text, const char *key, unsigned otherwise)
{
	size_t length = strlen(key);

	return strncmp(text, key, length) ? otherwise : (unsigned)strtoul(text + length, NULL, 10);
}

static void options(void)
{
	for (int i = 0; i < sim.o.argc; i++) {
		const char *a = sim.o.argv[i];

		sim.runtime |= !strcmp(a, "runtime");
		sim.plain |= !strcmp(a, "plain");
		sim.quit |= !strcmp(a, "quit");
		sim.rates |= !strcmp(a, "rates");
		sim.fork_after |= !strcmp(a, "forkafter");
		sim.streams = number(a, "streams=", sim.streams);
		sim.graphs = number(a, "graphs=", sim.graphs);
		sim.devices = number(a, "devices=", sim.devices);
	}
	if (!sim.streams || sim.streams > MAX_STREAMS || sim.o.threads > MAX_THREADS ||
	    !sim.devices || sim.devices > 8)
		exit(2);
}

static void prepare(void)
{
	CUmodule module;

	MUST(cuInit(0));
	for (unsigned d = 0; d < sim.devices; d++)
		MUST(cuDevicePrimaryCtxRetain(&sim.context[d], (int)d));
	MUST(cuCtxSetCurrent(sim.context[0]));
	MUST(cuModuleLoadData(&module, "image"));
	for (unsigned k = 0; k < KERNELS; k++) {
		MUST(cuModuleGetFunction(&sim.function[k], module, work[k].kernel));
		__cudaRegisterFunction(NULL, (const char *)stub[k], NULL, work[k].kernel, -1, NULL,
				       NULL, NULL, NULL, NULL);
		MUST(__cudaGetKernel(&sim.kernel[k], (const void *)stub[k]));
	}
	MUST(cuModuleGetFunction(&sim.node, module, graph_kernel));
	for (unsigned s = 0; s < sim.streams; s++) {
		MUST(cuCtxSetCurrent(sim.context[s % sim.devices]));
		MUST(cuStreamCreate(&sim.stream[s], 1));
	}
}

static void fork_child(void)
{
	pid_t child = fork();

	if (child == 0) {
		/* CUDA does not work in it, so an agent must not run there */
		int result = cuCtxSynchronize();

		_exit(result ? 0 : 1);
	}
	if (child < 0 || waitpid(child, NULL, 0) != child)
		exit(1);
}

/* While the threads work. */
static void sample_rates(const struct thread *t, char *text, size_t size)
{
	uint64_t rounds = 0, cpu = 0;
	size_t used = (size_t)snprintf(text, size, "\"rates\":[0");
	clockid_t clock;

	MUST(pthread_getcpuclockid(t->id, &clock));
	while (atomic_load(&sim.working) && used + 32 < size) {
		struct timespec ts;
		uint64_t now, cpu_now;

		usleep(100000);
		if (clock_gettime(clock, &ts))
			break;
		cpu_now = (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
		now = atomic_load(&sim.rounds);
		used += (size_t)snprintf(
			text + used, size - used, ",%llu",
			(unsigned long long)(now > rounds ? (cpu_now - cpu) / (now - rounds) : 0));
		rounds = now;
		cpu = cpu_now;
	}
	snprintf(text + used, size - used, "]");
}

int main(int argc, char **argv)
{
	static char rates[65536];
	static struct thread threads[MAX_THREADS];
	struct wl_count counts[KERNELS + 2];
	uint64_t sum = 0;

	sim.o = (struct wl_options){.workload = "gpu_sim", .threads = 4, .calls = 10000};
	wl_parse(&sim.o, argc, argv);
	options();
	prepare();
	for (unsigned i = 0; i < sim.o.threads; i++) {
		threads[i].index = i;
		MUST(cuCtxSetCurrent(sim.context[i % sim.streams % sim.devices]));
		MUST(cuMemAlloc_v2(&threads[i].memory, BYTES));
		make_graph(&threads[i], sim.stream[i % sim.streams]);
	}
	wl_start(&sim.o);
	sim.working = sim.o.threads;
	for (unsigned i = 0; i < sim.o.threads; i++)
		if (pthread_create(&threads[i].id, NULL, thread_main, &threads[i]))
			exit(1);
	if (sim.quit) {
		usleep((useconds_t)(sim.o.seconds * 1e6 / 2) + 300000);
		printf("{\"quit\":true}\n");
		exit(0);
	}
	if (sim.rates)
		sample_rates(threads, rates, sizeof(rates));
	for (unsigned k = 0; k < KERNELS; k++)
		counts[k] = (struct wl_count){work[k].kernel, 0, 0};
	counts[KERNELS] = (struct wl_count){graph_kernel, 0, 0};
	counts[KERNELS + 1] = (struct wl_count){"graph launches", 0, 0};
	for (unsigned i = 0; i < sim.o.threads; i++) {
		struct thread *t = &threads[i];

		pthread_join(t->id, NULL);
		for (unsigned k = 0; k < KERNELS; k++)
			counts[k].calls += t->launches[k];
		counts[KERNELS].calls += t->graph_launches * GRAPH_KERNELS;
		counts[KERNELS + 1].calls += t->graph_launches;
		sum += t->sum + t->bad;
		MUST(cuGraphExecDestroy(t->exec));
		MUST(cuMemFree_v2(t->memory));
	}
	MUST(cuCtxSynchronize());
	if (sim.fork_after)
		fork_child();
	return wl_finish(&sim.o, sum, counts, KERNELS + 2, *rates ? rates : NULL);
}
