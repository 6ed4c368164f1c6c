/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libcudart.c - the runtime API over the driver's double. As in the real one, a call makes the
 * driver call inside it, both are reported, and both have the outer call's correlation id.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include "engine.h"

#ifndef XD_RUNTIME_VERSION
#define XD_RUNTIME_VERSION 13000
#endif

enum { MAX_STUBS = 256 };
static struct {
	_Atomic uint32_t count;
	const void *_Atomic stub[MAX_STUBS];
	CUkernel kernel[MAX_STUBS];
	const char *name[MAX_STUBS];
} stubs;

static _Thread_local struct {
	dim3 grid, block;
	size_t shared;
	cudaStream_t stream;
	int device;
	bool ready;
	cudaError_t last;
} self;

/* The primary context of the thread's device, with the thread's first runtime call. */
static void ready(void)
{
	CUcontext context = NULL;

	if (self.ready)
		return;
	cuInit(0);
	cuDevicePrimaryCtxRetain(&context, self.device);
	cuCtxSetCurrent(context);
	self.ready = true;
}

#define RT_CALL(name)                                                                              \
	struct xd_call call;                                                                       \
	xd_enter(&call, XD_RUNTIME, XD_##name);                                                    \
	if (call.fail)                                                                             \
	return finish(&call, CUDA_ERROR_OUT_OF_MEMORY)
/* the errors of the doubles have the same codes in driver and runtime */
#define RT_RETURN(result) return finish(&call, (result))
#define RT_SIMPLE(name, parameters, driver)                                                        \
	cudaError_t name parameters                                                                \
	{                                                                                          \
		RT_CALL(name);                                                                     \
		ready();                                                                           \
		RT_RETURN(driver);                                                                 \
	}
/* the function and its _ptsz twin, each over the driver's */
#define RT_TWICE(name, suffix, parameters, driver, arguments)                                      \
	RT_SIMPLE(name, parameters, driver arguments)                                              \
	RT_SIMPLE(name##suffix, parameters, driver##suffix arguments)

static cudaError_t finish(struct xd_call *call, int result)
{
	int error = xd_leave(call, result);

	if (error && error != CUDA_ERROR_NOT_READY)
		self.last = error;
	return error;
}

#define ADDRESS(pointer) ((CUdeviceptr)(uintptr_t)(pointer))

cudaError_t cudaDriverGetVersion(int *version)
{
	RT_CALL(cudaDriverGetVersion);
	RT_RETURN(cuDriverGetVersion(version));
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
	RT_CALL(cudaRuntimeGetVersion);
	*version = XD_RUNTIME_VERSION;
	RT_RETURN(CUDA_SUCCESS);
}

RT_SIMPLE(cudaGetDeviceCount, (int *count), cuDeviceGetCount(count))

cudaError_t cudaGetDevice(int *device)
{
	RT_CALL(cudaGetDevice);
	*device = self.device;
	RT_RETURN(CUDA_SUCCESS);
}

cudaError_t cudaSetDevice(int device)
{
	RT_CALL(cudaSetDevice);
	self.ready &= self.device == device;
	self.device = device;
	ready();
	RT_RETURN(CUDA_SUCCESS);
}

cudaError_t cudaGetLastError(void)
{
	cudaError_t last = self.last;
	RT_CALL(cudaGetLastError);

	self.last = 0;
	xd_leave(&call, 0);
	return last;
}

cudaError_t cudaPeekAtLastError(void)
{
	RT_CALL(cudaPeekAtLastError);
	xd_leave(&call, 0);
	return self.last;
}

const char *cudaGetErrorString(cudaError_t error)
{
	const char *text;

	cuGetErrorString(error, &text);
	return text;
}

RT_SIMPLE(cudaDeviceSynchronize, (void), cuCtxSynchronize())

/* ---- kernels --------------------------------------------------------------------- */

void **__cudaRegisterFatBinary(void *binary)
{
	return (void **)binary;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
	(void)handle;
}

void __cudaUnregisterFatBinary(void **handle)
{
	(void)handle;
}

void __cudaRegisterFunction(void **handle, const char *stub, char *device_stub,
			    const char *device_name, int limit, void *tid, void *bid, dim3 *block,
			    dim3 *grid, int *warp)
{
	uint32_t at = atomic_fetch_add(&stubs.count, 1);

	(void)handle;
	(void)device_stub;
	(void)limit;
	(void)tid;
	(void)bid;
	(void)block;
	(void)grid;
	(void)warp;
	if (at >= MAX_STUBS)
		abort();
	stubs.name[at] = device_name;
	atomic_store(&stubs.stub[at], stub);
}

static CUkernel kernel_of(const void *stub)
{
	for (uint32_t i = 0; i < MAX_STUBS && i < atomic_load(&stubs.count); i++)
		if (atomic_load(&stubs.stub[i]) == stub) {
			if (!stubs.kernel[i])
				cuLibraryGetKernel(&stubs.kernel[i], NULL, stubs.name[i]);
			return stubs.kernel[i];
		}
	return NULL;
}

cudaError_t cudaGetKernel(cudaKernel_t *kernel, const void *stub)
{
	RT_CALL(cudaGetKernel);
	ready();
	*kernel = kernel_of(stub);
	RT_RETURN(*kernel ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *stub)
{
	RT_CALL(__cudaGetKernel);
	ready();
	*kernel = kernel_of(stub);
	RT_RETURN(*kernel ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream)
{
	self.grid = grid;
	self.block = block;
	self.shared = shared;
	self.stream = stream;
	return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
	*grid = self.grid;
	*block = self.block;
	*shared = self.shared;
	*(cudaStream_t *)stream = self.stream;
	return CUDA_SUCCESS;
}

#define LAUNCH(name, type, kernel, driver)                                                         \
	cudaError_t name(type what, dim3 grid, dim3 block, void **arguments, size_t shared,        \
			 cudaStream_t stream)                                                      \
	{                                                                                          \
		RT_CALL(name);                                                                     \
		ready();                                                                           \
		RT_RETURN(driver((CUfunction)(kernel), grid.x, grid.y, grid.z, block.x, block.y,   \
				 block.z, (unsigned)shared, stream, arguments, NULL));             \
	}
#define COOPERATIVE(f, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra)                   \
	cuLaunchCooperativeKernel(f, gx, gy, gz, bx, by, bz, shared, stream, arguments)
#define COOPERATIVE_ptsz(f, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra)              \
	cuLaunchCooperativeKernel_ptsz(f, gx, gy, gz, bx, by, bz, shared, stream, arguments)
LAUNCH(cudaLaunchKernel, const void *, kernel_of(what), cuLaunchKernel)
LAUNCH(cudaLaunchKernel_ptsz, const void *, kernel_of(what), cuLaunchKernel_ptsz)
LAUNCH(__cudaLaunchKernel, cudaKernel_t, what, cuLaunchKernel)
LAUNCH(__cudaLaunchKernel_ptsz, cudaKernel_t, what, cuLaunchKernel_ptsz)
LAUNCH(cudaLaunchCooperativeKernel, const void *, kernel_of(what), COOPERATIVE)
LAUNCH(cudaLaunchCooperativeKernel_ptsz, const void *, kernel_of(what), COOPERATIVE_ptsz)

static CUlaunchConfig config_of(const cudaLaunchConfig_t *c)
{
	return (CUlaunchConfig){.gridDimX = c->gridDim.x,
				.gridDimY = c->gridDim.y,
				.gridDimZ = c->gridDim.z,
				.blockDimX = c->blockDim.x,
				.blockDimY = c->blockDim.y,
				.blockDimZ = c->blockDim.z,
				.sharedMemBytes = (unsigned)c->dynamicSmemBytes,
				.hStream = c->stream};
}

#define LAUNCH_EX(name, driver)                                                                    \
	cudaError_t name(const cudaLaunchConfig_t *config, const void *stub, void **arguments)     \
	{                                                                                          \
		CUlaunchConfig c = config_of(config);                                              \
		RT_CALL(name);                                                                     \
		ready();                                                                           \
		RT_RETURN(driver(&c, (CUfunction)kernel_of(stub), arguments, NULL));               \
	}
LAUNCH_EX(cudaLaunchKernelExC, cuLaunchKernelEx)
LAUNCH_EX(cudaLaunchKernelExC_ptsz, cuLaunchKernelEx_ptsz)

/* ---- memory ---------------------------------------------------------------------- */

RT_SIMPLE(cudaMalloc, (void **address, size_t bytes), cuMemAlloc_v2((CUdeviceptr *)address, bytes))
RT_SIMPLE(cudaMallocManaged, (void **address, size_t bytes, unsigned int flags),
	  cuMemAllocManaged((CUdeviceptr *)address, bytes, flags))
RT_SIMPLE(cudaFree, (void *address), cuMemFree_v2(ADDRESS(address)))
RT_SIMPLE(cudaMallocHost, (void **address, size_t bytes), cuMemHostAlloc(address, bytes, 0))
RT_SIMPLE(cudaHostAlloc, (void **address, size_t bytes, unsigned int flags),
	  cuMemHostAlloc(address, bytes, flags))
RT_SIMPLE(cudaFreeHost, (void *address), cuMemFreeHost(address))
RT_TWICE(cudaMallocAsync, _ptsz, (void **address, size_t bytes, cudaStream_t stream),
	 cuMemAllocAsync, ((CUdeviceptr *)address, bytes, stream))
RT_TWICE(cudaFreeAsync, _ptsz, (void *address, cudaStream_t stream), cuMemFreeAsync,
	 (ADDRESS(address), stream))

#define COPY(name, suffix)                                                                         \
	cudaError_t name(void *to, const void *from, size_t bytes, int kind)                       \
	{                                                                                          \
		RT_CALL(name);                                                                     \
		ready();                                                                           \
		if (kind == cudaMemcpyHostToDevice)                                                \
			RT_RETURN(cuMemcpyHtoD_v2##suffix(ADDRESS(to), from, bytes));              \
		if (kind == cudaMemcpyDeviceToHost)                                                \
			RT_RETURN(cuMemcpyDtoH_v2##suffix(to, ADDRESS(from), bytes));              \
		RT_RETURN(cuMemcpy##suffix(ADDRESS(to), ADDRESS(from), bytes));                    \
	}
COPY(cudaMemcpy, )
COPY(cudaMemcpy_ptds, _ptds)

#define COPY_ASYNC(name, suffix)                                                                   \
	cudaError_t name(void *to, const void *from, size_t bytes, int kind, cudaStream_t stream)  \
	{                                                                                          \
		RT_CALL(name);                                                                     \
		ready();                                                                           \
		if (kind == cudaMemcpyHostToDevice)                                                \
			RT_RETURN(cuMemcpyHtoDAsync_v2##suffix(ADDRESS(to), from, bytes, stream)); \
		if (kind == cudaMemcpyDeviceToHost)                                                \
			RT_RETURN(cuMemcpyDtoHAsync_v2##suffix(to, ADDRESS(from), bytes, stream)); \
		RT_RETURN(cuMemcpyAsync##suffix(ADDRESS(to), ADDRESS(from), bytes, stream));       \
	}
COPY_ASYNC(cudaMemcpyAsync, )
COPY_ASYNC(cudaMemcpyAsync_ptsz, _ptsz)

#define COPY_2D(name, suffix)                                                                      \
	cudaError_t name(void *to, size_t to_pitch, const void *from, size_t from_pitch,           \
			 size_t width, size_t height, int kind, cudaStream_t stream)               \
	{                                                                                          \
		CUDA_MEMCPY2D c = {.srcMemoryType = kind == cudaMemcpyHostToDevice ? 1 : 2,        \
				   .srcHost = from,                                                \
				   .srcDevice = ADDRESS(from),                                     \
				   .srcPitch = from_pitch,                                         \
				   .dstMemoryType = kind == cudaMemcpyDeviceToHost ? 1 : 2,        \
				   .dstHost = to,                                                  \
				   .dstDevice = ADDRESS(to),                                       \
				   .dstPitch = to_pitch,                                           \
				   .WidthInBytes = width,                                          \
				   .Height = height};                                              \
		RT_CALL(name);                                                                     \
		ready();                                                                           \
		RT_RETURN(cuMemcpy2DAsync_v2##suffix(&c, stream));                                 \
	}
COPY_2D(cudaMemcpy2DAsync, )
COPY_2D(cudaMemcpy2DAsync_ptsz, _ptsz)

static CUcontext context_of(int device)
{
	CUcontext context = NULL;

	cuDevicePrimaryCtxRetain(&context, device);
	return context;
}

RT_SIMPLE(cudaMemcpyPeer,
	  (void *to, int to_device, const void *from, int from_device, size_t bytes),
	  cuMemcpyPeer(ADDRESS(to), context_of(to_device), ADDRESS(from), context_of(from_device),
		       bytes))
RT_SIMPLE(cudaMemcpyPeerAsync,
	  (void *to, int to_device, const void *from, int from_device, size_t bytes,
	   cudaStream_t stream),
	  cuMemcpyPeerAsync(ADDRESS(to), context_of(to_device), ADDRESS(from),
			    context_of(from_device), bytes, stream))

RT_SIMPLE(cudaMemset, (void *to, int value, size_t bytes),
	  cuMemsetD8_v2(ADDRESS(to), (unsigned char)value, bytes))
RT_SIMPLE(cudaMemset_ptds, (void *to, int value, size_t bytes),
	  cuMemsetD8_v2_ptds(ADDRESS(to), (unsigned char)value, bytes))
RT_TWICE(cudaMemsetAsync, _ptsz, (void *to, int value, size_t bytes, cudaStream_t stream),
	 cuMemsetD8Async, (ADDRESS(to), (unsigned char)value, bytes, stream))

/* ---- streams, events, graphs ----------------------------------------------------- */

RT_SIMPLE(cudaStreamCreate, (cudaStream_t * stream), cuStreamCreate(stream, 0))
RT_SIMPLE(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned int flags),
	  cuStreamCreate(stream, flags))
RT_SIMPLE(cudaStreamCreateWithPriority, (cudaStream_t * stream, unsigned int flags, int priority),
	  cuStreamCreateWithPriority(stream, flags, priority))
RT_SIMPLE(cudaStreamDestroy, (cudaStream_t stream), cuStreamDestroy_v2(stream))
RT_TWICE(cudaStreamSynchronize, _ptsz, (cudaStream_t stream), cuStreamSynchronize, (stream))
RT_TWICE(cudaStreamQuery, _ptsz, (cudaStream_t stream), cuStreamQuery, (stream))
RT_TWICE(cudaStreamWaitEvent, _ptsz, (cudaStream_t stream, cudaEvent_t event, unsigned int flags),
	 cuStreamWaitEvent, (stream, event, flags))
RT_TWICE(cudaStreamBeginCapture, _ptsz, (cudaStream_t stream, int mode), cuStreamBeginCapture_v2,
	 (stream, mode))
RT_TWICE(cudaStreamEndCapture, _ptsz, (cudaStream_t stream, cudaGraph_t *graph), cuStreamEndCapture,
	 (stream, graph))
RT_SIMPLE(cudaEventCreate, (cudaEvent_t * event), cuEventCreate(event, 0))
RT_SIMPLE(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned int flags),
	  cuEventCreate(event, flags))
RT_TWICE(cudaEventRecord, _ptsz, (cudaEvent_t event, cudaStream_t stream), cuEventRecord,
	 (event, stream))
RT_SIMPLE(cudaEventSynchronize, (cudaEvent_t event), cuEventSynchronize(event))
RT_SIMPLE(cudaEventQuery, (cudaEvent_t event), cuEventQuery(event))
RT_SIMPLE(cudaEventElapsedTime, (float *ms, cudaEvent_t start, cudaEvent_t end),
	  cuEventElapsedTime_v2(ms, start, end))
RT_SIMPLE(cudaEventDestroy, (cudaEvent_t event), cuEventDestroy_v2(event))
RT_SIMPLE(cudaGraphCreate, (cudaGraph_t * graph, unsigned int flags), cuGraphCreate(graph, flags))
RT_SIMPLE(cudaGraphInstantiate,
	  (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags),
	  cuGraphInstantiateWithFlags(exec, graph, flags))
RT_TWICE(cudaGraphLaunch, _ptsz, (cudaGraphExec_t exec, cudaStream_t stream), cuGraphLaunch,
	 (exec, stream))
RT_SIMPLE(cudaGraphDestroy, (cudaGraph_t graph), cuGraphDestroy(graph))
RT_SIMPLE(cudaGraphExecDestroy, (cudaGraphExec_t exec), cuGraphExecDestroy(exec))
