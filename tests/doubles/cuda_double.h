/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cuda_double.h - the part of the CUDA driver and runtime API that the doubles have, with the
 * signatures of cuda.h and cuda_runtime_api.h (CUDA 13.0). Symbols are the real ones, so the names
 * here carry the suffixes that cuda.h adds by macro.
 */
#ifndef XSP_CUDA_DOUBLE_H
#define XSP_CUDA_DOUBLE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUlib_st *CUlibrary;
typedef struct CUfunc_st *CUfunction;
typedef struct CUkern_st *CUkernel;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct {
	char bytes[16];
} CUuuid;

enum {
	CUDA_SUCCESS = 0,
	CUDA_ERROR_INVALID_VALUE = 1,
	CUDA_ERROR_OUT_OF_MEMORY = 2,
	CUDA_ERROR_NOT_INITIALIZED = 3,
	CUDA_ERROR_INVALID_DEVICE = 101,
	CUDA_ERROR_INVALID_HANDLE = 400,
	CUDA_ERROR_NOT_FOUND = 500,
	CUDA_ERROR_NOT_READY = 600,
	CUDA_ERROR_LAUNCH_FAILED = 719,
};
#define CU_STREAM_LEGACY ((CUstream)0x1)
#define CU_STREAM_PER_THREAD ((CUstream)0x2)

typedef struct CUlaunchConfig_st {
	unsigned int gridDimX, gridDimY, gridDimZ;
	unsigned int blockDimX, blockDimY, blockDimZ;
	unsigned int sharedMemBytes;
	CUstream hStream;
	void *attrs;
	unsigned int numAttrs;
} CUlaunchConfig;

typedef struct CUDA_KERNEL_NODE_PARAMS_v2_st {
	CUfunction func;
	unsigned int gridDimX, gridDimY, gridDimZ;
	unsigned int blockDimX, blockDimY, blockDimZ;
	unsigned int sharedMemBytes;
	void **kernelParams;
	void **extra;
	CUkernel kern;
	CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS_v2;

typedef struct CUDA_MEMSET_NODE_PARAMS_st {
	CUdeviceptr dst;
	size_t pitch;
	unsigned int value;
	unsigned int elementSize;
	size_t width;
	size_t height;
} CUDA_MEMSET_NODE_PARAMS;

/* memory types: 1 host, 2 device, 3 array, 4 unified */
typedef struct CUDA_MEMCPY2D_st {
	size_t srcXInBytes, srcY;
	unsigned int srcMemoryType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	void *srcArray;
	size_t srcPitch;
	size_t dstXInBytes, dstY;
	unsigned int dstMemoryType;
	void *dstHost;
	CUdeviceptr dstDevice;
	void *dstArray;
	size_t dstPitch;
	size_t WidthInBytes, Height;
} CUDA_MEMCPY2D;

typedef struct CUDA_MEMCPY3D_st {
	size_t srcXInBytes, srcY, srcZ, srcLOD;
	unsigned int srcMemoryType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	void *srcArray;
	void *reserved0;
	size_t srcPitch, srcHeight;
	size_t dstXInBytes, dstY, dstZ, dstLOD;
	unsigned int dstMemoryType;
	void *dstHost;
	CUdeviceptr dstDevice;
	void *dstArray;
	void *reserved1;
	size_t dstPitch, dstHeight;
	size_t WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D;

CUresult cuInit(unsigned int flags);
CUresult cuDriverGetVersion(int *version);
CUresult cuGetErrorString(CUresult error, const char **text);
CUresult cuGetErrorName(CUresult error, const char **text);
CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
			     int *status);
CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDeviceGetCount(int *count);
CUresult cuDeviceGetName(char *name, int length, CUdevice device);
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device);
CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device);
CUresult cuDeviceGetPCIBusId(char *text, int length, CUdevice device);
CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device);
CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device);
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);
CUresult cuCtxCreate_v4(CUcontext *context, void *parameters, unsigned int flags, CUdevice device);
CUresult cuCtxDestroy_v2(CUcontext context);
CUresult cuCtxGetCurrent(CUcontext *context);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxGetDevice(CUdevice *device);
CUresult cuCtxSynchronize(void);
CUresult cuModuleLoad(CUmodule *module, const char *path);
CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count, int *options,
			    void **values);
CUresult cuModuleUnload(CUmodule module);
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUresult cuLibraryLoadData(CUlibrary *library, const void *code, int *jit, void **jit_values,
			   unsigned int jit_count, int *options, void **values, unsigned int count);
CUresult cuLibraryUnload(CUlibrary library);
CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name);
CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel);
CUresult cuFuncGetName(const char **name, CUfunction function);
CUresult cuMemGetInfo_v2(size_t *available, size_t *total);
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
			    unsigned int element);
CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned int flags);
CUresult cuMemFree_v2(CUdeviceptr address);
CUresult cuMemAllocHost_v2(void **address, size_t bytes);
CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned int flags);
CUresult cuMemFreeHost(void *address);
CUresult cuMemPoolCreate(CUmemoryPool *pool, const void *properties);
CUresult cuMemPoolDestroy(CUmemoryPool pool);
CUresult cuStreamCreate(CUstream *stream, unsigned int flags);
CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority);
CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuEventCreate(CUevent *event, unsigned int flags);
CUresult cuEventSynchronize(CUevent event);
CUresult cuEventQuery(CUevent event);
CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end);
CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end);
CUresult cuEventDestroy_v2(CUevent event);
CUresult cuGraphCreate(CUgraph *graph, unsigned int flags);
CUresult cuGraphDestroy(CUgraph graph);
CUresult cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
			      size_t count, const CUDA_KERNEL_NODE_PARAMS_v2 *parameters);
CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
				 size_t count, const CUDA_KERNEL_NODE_PARAMS_v2 *parameters);
CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
			      size_t count, const CUDA_MEMCPY3D *parameters, CUcontext context);
CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
			      size_t count, const CUDA_MEMSET_NODE_PARAMS *parameters,
			      CUcontext context);
CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *error, char *log,
			       size_t size);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags);
CUresult cuGraphExecDestroy(CUgraphExec exec);

/* Functions that exist twice: the second takes stream 0 for the thread's own default stream. */
#define XD_TWICE(type, name, suffix, ...)                                                          \
	type name(__VA_ARGS__);                                                                    \
	type name##suffix(__VA_ARGS__);
#define XD_PTSZ(name, ...) XD_TWICE(CUresult, name, _ptsz, __VA_ARGS__)
#define XD_PTDS(name, ...) XD_TWICE(CUresult, name, _ptds, __VA_ARGS__)
XD_PTSZ(cuLaunchKernel, CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
	unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared, CUstream stream,
	void **parameters, void **extra)
XD_PTSZ(cuLaunchKernelEx, const CUlaunchConfig *config, CUfunction f, void **parameters,
	void **extra)
XD_PTSZ(cuLaunchCooperativeKernel, CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
	unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared, CUstream stream,
	void **parameters)
XD_PTSZ(cuGraphLaunch, CUgraphExec exec, CUstream stream)
XD_PTSZ(cuStreamBeginCapture_v2, CUstream stream, int mode)
XD_PTSZ(cuStreamEndCapture, CUstream stream, CUgraph *graph)
XD_PTSZ(cuStreamSynchronize, CUstream stream)
XD_PTSZ(cuStreamQuery, CUstream stream)
XD_PTSZ(cuStreamWaitEvent, CUstream stream, CUevent event, unsigned int flags)
XD_PTSZ(cuEventRecord, CUevent event, CUstream stream)
XD_PTSZ(cuEventRecordWithFlags, CUevent event, CUstream stream, unsigned int flags)
XD_PTSZ(cuMemAllocAsync, CUdeviceptr *address, size_t bytes, CUstream stream)
XD_PTSZ(cuMemAllocFromPoolAsync, CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
	CUstream stream)
XD_PTSZ(cuMemFreeAsync, CUdeviceptr address, CUstream stream)
XD_PTDS(cuMemcpy, CUdeviceptr to, CUdeviceptr from, size_t bytes)
XD_PTSZ(cuMemcpyAsync, CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
XD_PTDS(cuMemcpyHtoD_v2, CUdeviceptr to, const void *from, size_t bytes)
XD_PTSZ(cuMemcpyHtoDAsync_v2, CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
XD_PTDS(cuMemcpyDtoH_v2, void *to, CUdeviceptr from, size_t bytes)
XD_PTSZ(cuMemcpyDtoHAsync_v2, void *to, CUdeviceptr from, size_t bytes, CUstream stream)
XD_PTDS(cuMemcpyDtoD_v2, CUdeviceptr to, CUdeviceptr from, size_t bytes)
XD_PTSZ(cuMemcpyDtoDAsync_v2, CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
XD_PTDS(cuMemcpyPeer, CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
	CUcontext from_context, size_t bytes)
XD_PTSZ(cuMemcpyPeerAsync, CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
	CUcontext from_context, size_t bytes, CUstream stream)
XD_PTDS(cuMemcpy2D_v2, const CUDA_MEMCPY2D *copy)
XD_PTSZ(cuMemcpy2DAsync_v2, const CUDA_MEMCPY2D *copy, CUstream stream)
XD_PTDS(cuMemcpy3D_v2, const CUDA_MEMCPY3D *copy)
XD_PTSZ(cuMemcpy3DAsync_v2, const CUDA_MEMCPY3D *copy, CUstream stream)
XD_PTDS(cuMemsetD8_v2, CUdeviceptr to, unsigned char value, size_t count)
XD_PTDS(cuMemsetD16_v2, CUdeviceptr to, unsigned short value, size_t count)
XD_PTDS(cuMemsetD32_v2, CUdeviceptr to, unsigned int value, size_t count)
XD_PTDS(cuMemsetD2D8_v2, CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
	size_t height)
XD_PTSZ(cuMemsetD8Async, CUdeviceptr to, unsigned char value, size_t count, CUstream stream)
XD_PTSZ(cuMemsetD16Async, CUdeviceptr to, unsigned short value, size_t count, CUstream stream)
XD_PTSZ(cuMemsetD32Async, CUdeviceptr to, unsigned int value, size_t count, CUstream stream)

/* ---- runtime API (libcudart) ---- */
typedef int cudaError_t;
typedef CUstream cudaStream_t;
typedef CUevent cudaEvent_t;
typedef CUgraph cudaGraph_t;
typedef CUgraphExec cudaGraphExec_t;
typedef CUkernel cudaKernel_t;
#ifndef XD_NO_DIM3
typedef struct dim3 {
	unsigned int x, y, z;
} dim3;
#endif
typedef struct cudaLaunchConfig_st {
	dim3 gridDim, blockDim;
	size_t dynamicSmemBytes;
	cudaStream_t stream;
	void *attrs;
	unsigned int numAttrs;
} cudaLaunchConfig_t;
enum {
	cudaMemcpyHostToHost,
	cudaMemcpyHostToDevice,
	cudaMemcpyDeviceToHost,
	cudaMemcpyDeviceToDevice,
	cudaMemcpyDefault
};

cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaMalloc(void **address, size_t bytes);
cudaError_t cudaMallocManaged(void **address, size_t bytes, unsigned int flags);
cudaError_t cudaFree(void *address);
cudaError_t cudaMallocHost(void **address, size_t bytes);
cudaError_t cudaHostAlloc(void **address, size_t bytes, unsigned int flags);
cudaError_t cudaFreeHost(void *address);
cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device,
			   size_t bytes);
cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
				size_t bytes, cudaStream_t stream);
cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned int flags);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
				 unsigned long long flags);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaGetKernel(cudaKernel_t *kernel, const void *stub);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *stub);
void **__cudaRegisterFatBinary(void *binary);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *stub, char *device_stub,
			    const char *device_name, int limit, void *tid, void *bid, dim3 *block,
			    dim3 *grid, int *warp);
unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
#define XD_RT_PTSZ(name, ...) XD_TWICE(cudaError_t, name, _ptsz, __VA_ARGS__)
#define XD_RT_PTDS(name, ...) XD_TWICE(cudaError_t, name, _ptds, __VA_ARGS__)
XD_RT_PTSZ(cudaLaunchKernel, const void *stub, dim3 grid, dim3 block, void **arguments,
	   size_t shared, cudaStream_t stream)
XD_RT_PTSZ(__cudaLaunchKernel, cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
	   size_t shared, cudaStream_t stream)
XD_RT_PTSZ(cudaLaunchKernelExC, const cudaLaunchConfig_t *config, const void *stub,
	   void **arguments)
XD_RT_PTSZ(cudaLaunchCooperativeKernel, const void *stub, dim3 grid, dim3 block, void **arguments,
	   size_t shared, cudaStream_t stream)
XD_RT_PTSZ(cudaGraphLaunch, cudaGraphExec_t exec, cudaStream_t stream)
XD_RT_PTSZ(cudaStreamBeginCapture, cudaStream_t stream, int mode)
XD_RT_PTSZ(cudaStreamEndCapture, cudaStream_t stream, cudaGraph_t *graph)
XD_RT_PTSZ(cudaStreamSynchronize, cudaStream_t stream)
XD_RT_PTSZ(cudaStreamQuery, cudaStream_t stream)
XD_RT_PTSZ(cudaStreamWaitEvent, cudaStream_t stream, cudaEvent_t event, unsigned int flags)
XD_RT_PTSZ(cudaEventRecord, cudaEvent_t event, cudaStream_t stream)
XD_RT_PTSZ(cudaMallocAsync, void **address, size_t bytes, cudaStream_t stream)
XD_RT_PTSZ(cudaFreeAsync, void *address, cudaStream_t stream)
XD_RT_PTDS(cudaMemcpy, void *to, const void *from, size_t bytes, int kind)
XD_RT_PTSZ(cudaMemcpyAsync, void *to, const void *from, size_t bytes, int kind, cudaStream_t stream)
XD_RT_PTSZ(cudaMemcpy2DAsync, void *to, size_t to_pitch, const void *from, size_t from_pitch,
	   size_t width, size_t height, int kind, cudaStream_t stream)
XD_RT_PTDS(cudaMemset, void *to, int value, size_t bytes)
XD_RT_PTSZ(cudaMemsetAsync, void *to, int value, size_t bytes, cudaStream_t stream)

#ifdef __cplusplus
}
#endif

#endif
