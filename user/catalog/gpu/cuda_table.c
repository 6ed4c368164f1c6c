/* SPDX-License-Identifier: BSD-2-Clause */
/* cuda_table.c - one row for each entry point. */
#include "catalog/gpu/cuda_table.h"

#include <string.h>

/* Abbreviations for the rows below. */
#define D(of, symbol) .name = (symbol), .api = XSP_CUDA_DRIVER, .kind = XSP_CUDA_##of
#define R(of, symbol) .name = (symbol), .api = XSP_CUDA_RUNTIME, .kind = XSP_CUDA_##of
#define F_ADDRESS XSP_CUDA_ADDRESS
#define F_BLOCK_X XSP_CUDA_BLOCK_X
#define F_BLOCK_XY XSP_CUDA_BLOCK_XY
#define F_BLOCK_Y XSP_CUDA_BLOCK_Y
#define F_BLOCK_YZ XSP_CUDA_BLOCK_YZ
#define F_BLOCK_Z XSP_CUDA_BLOCK_Z
#define F_BYTES XSP_CUDA_BYTES
#define F_DEPTH XSP_CUDA_DEPTH
#define F_DESTINATION XSP_CUDA_DESTINATION
#define F_DEVICE XSP_CUDA_DEVICE_NUMBER
#define F_DIRECTION XSP_CUDA_DIRECTION
#define F_EVENT XSP_CUDA_EVENT_HANDLE
#define F_FUNCTION XSP_CUDA_FUNCTION
#define F_GRAPH_EXEC XSP_CUDA_GRAPH_EXEC
#define F_GRAPH XSP_CUDA_GRAPH_HANDLE
#define F_GRID_X XSP_CUDA_GRID_X
#define F_GRID_XY XSP_CUDA_GRID_XY
#define F_GRID_Y XSP_CUDA_GRID_Y
#define F_GRID_Z XSP_CUDA_GRID_Z
#define F_GRID_Z_BLOCK_X XSP_CUDA_GRID_Z_BLOCK_X
#define F_HEIGHT XSP_CUDA_HEIGHT
#define F_MODULE XSP_CUDA_MODULE_HANDLE
#define F_NAME XSP_CUDA_NAME
#define F_OUT XSP_CUDA_OUT
#define F_SHARED XSP_CUDA_SHARED
#define F_SOURCE XSP_CUDA_SOURCE
#define F_STREAM XSP_CUDA_STREAM_HANDLE
#define F_STUB XSP_CUDA_STUB
#define F_WIDTH XSP_CUDA_WIDTH

/* clang-format off */
const struct xsp_cuda_entry xsp_cuda_entries[] = {
	{D(LAUNCH, "cuLaunchCooperativeKernel"), .args = {{F_FUNCTION, 0}, {F_GRID_X, 1}, {F_GRID_Y, 2}, {F_GRID_Z, 3}, {F_BLOCK_X, 4}, {F_BLOCK_Y, 5}, {F_BLOCK_Z, 6}, {F_SHARED, 7}, {F_STREAM, 8}}},
	{D(LAUNCH, "cuLaunchCooperativeKernelMultiDevice")},
	{D(LAUNCH, "cuLaunchKernel"), .args = {{F_FUNCTION, 0}, {F_GRID_X, 1}, {F_GRID_Y, 2}, {F_GRID_Z, 3}, {F_BLOCK_X, 4}, {F_BLOCK_Y, 5}, {F_BLOCK_Z, 6}, {F_SHARED, 7}, {F_STREAM, 8}}},
	{D(LAUNCH, "cuLaunchKernelEx"), .args = {{F_FUNCTION, 1}, {F_GRID_XY, 0, true, 0}, {F_GRID_Z_BLOCK_X, 0, true, 8}, {F_BLOCK_YZ, 0, true, 16}, {F_SHARED, 0, true, 24}, {F_STREAM, 0, true, 32}}},

	{D(GRAPH_LAUNCH, "cuGraphLaunch"), .args = {{F_GRAPH_EXEC, 0}, {F_STREAM, 1}}},

	{D(MEMCPY, "cuMemcpy"), .args = {{F_DESTINATION, 0}, {F_SOURCE, 1}, {F_BYTES, 2}}},
	{D(MEMCPY, "cuMemcpy2DAsync_v2"), .args = {{F_STREAM, 1}, {F_WIDTH, 0, true, 112}, {F_HEIGHT, 0, true, 120}}},
	{D(MEMCPY, "cuMemcpy2DUnaligned_v2"), .args = {{F_WIDTH, 0, true, 112}, {F_HEIGHT, 0, true, 120}}},
	{D(MEMCPY, "cuMemcpy2D_v2"), .args = {{F_WIDTH, 0, true, 112}, {F_HEIGHT, 0, true, 120}}},
	{D(MEMCPY, "cuMemcpy3DAsync_v2"), .args = {{F_STREAM, 1}, {F_WIDTH, 0, true, 176}, {F_HEIGHT, 0, true, 184}, {F_DEPTH, 0, true, 192}}},
	{D(MEMCPY, "cuMemcpy3DBatchAsync"), .args = {{F_STREAM, 4}}},
	{D(MEMCPY, "cuMemcpy3DBatchAsync_v2"), .args = {{F_STREAM, 3}}},
	{D(MEMCPY, "cuMemcpy3DPeer"), .args = {{F_WIDTH, 0, true, 176}, {F_HEIGHT, 0, true, 184}, {F_DEPTH, 0, true, 192}}},
	{D(MEMCPY, "cuMemcpy3DPeerAsync"), .args = {{F_STREAM, 1}, {F_WIDTH, 0, true, 176}, {F_HEIGHT, 0, true, 184}, {F_DEPTH, 0, true, 192}}},
	{D(MEMCPY, "cuMemcpy3D_v2"), .args = {{F_WIDTH, 0, true, 176}, {F_HEIGHT, 0, true, 184}, {F_DEPTH, 0, true, 192}}},
	{D(MEMCPY, "cuMemcpyAsync"), .args = {{F_DESTINATION, 0}, {F_SOURCE, 1}, {F_BYTES, 2}, {F_STREAM, 3}}},
	{D(MEMCPY, "cuMemcpyAtoA_v2"), .args = {{F_BYTES, 4}}, .direction = 3},
	{D(MEMCPY, "cuMemcpyAtoD_v2"), .args = {{F_DESTINATION, 0}, {F_BYTES, 3}}, .direction = 3},
	{D(MEMCPY, "cuMemcpyAtoHAsync_v2"), .args = {{F_DESTINATION, 0}, {F_BYTES, 3}, {F_STREAM, 4}}, .direction = 2},
	{D(MEMCPY, "cuMemcpyAtoH_v2"), .args = {{F_DESTINATION, 0}, {F_BYTES, 3}}, .direction = 2},
	{D(MEMCPY, "cuMemcpyBatchAsync"), .args = {{F_STREAM, 8}}},
	{D(MEMCPY, "cuMemcpyBatchAsync_v2"), .args = {{F_STREAM, 7}}},
	{D(MEMCPY, "cuMemcpyDtoA_v2"), .args = {{F_SOURCE, 2}, {F_BYTES, 3}}, .direction = 3},
	{D(MEMCPY, "cuMemcpyDtoDAsync_v2"), .args = {{F_DESTINATION, 0}, {F_SOURCE, 1}, {F_BYTES, 2}, {F_STREAM, 3}}, .direction = 3},
	{D(MEMCPY, "cuMemcpyDtoD_v2"), .args = {{F_DESTINATION, 0}, {F_SOURCE, 1}, {F_BYTES, 2}}, .direction = 3},
	{D(MEMCPY, "cuMemcpyDtoHAsync_v2"), .args = {{F_DESTINATION, 0}, {F_SOURCE, 1}, {F_BYTES, 2}, {F_STREAM, 3}}, .direction = 2},
	{D(MEMCPY, "cuMemcpyDtoH_v2"), .args = {{F_DESTINATION, 0}, {F_SOURCE, 1}, {F_BYTES, 2}}, .direction = 2},
	{D(MEMCPY, "cuMemcpyHtoAAsync_v2"), .args = {{F_SOURCE, 2}, {F_BYTES, 3}, {F_STREAM, 4}}, .direction = 1},
	{D(MEMCPY, "cuMemcpyHtoA_v2"), .args = {{F_SOURCE, 2}, {F_BYTES, 3}}, .direction = 1},
	{D(MEMCPY, "cuMemcpyHtoDAsync_v2"), .args = {{F_DESTINATION, 0}, {F_SOURCE, 1}, {F_BYTES, 2}, {F_STREAM, 3}}, .direction = 1},
	{D(MEMCPY, "cuMemcpyHtoD_v2"), .args = {{F_DESTINATION, 0}, {F_SOURCE, 1}, {F_BYTES, 2}}, .direction = 1},
	{D(MEMCPY, "cuMemcpyPeer"), .args = {{F_DESTINATION, 0}, {F_SOURCE, 2}, {F_BYTES, 4}}},
	{D(MEMCPY, "cuMemcpyPeerAsync"), .args = {{F_DESTINATION, 0}, {F_SOURCE, 2}, {F_BYTES, 4}, {F_STREAM, 5}}},

	{D(MEMSET, "cuMemsetD16Async"), .args = {{F_DESTINATION, 0}, {F_BYTES, 2}, {F_STREAM, 3}}, .unit = 2},
	{D(MEMSET, "cuMemsetD16_v2"), .args = {{F_DESTINATION, 0}, {F_BYTES, 2}}, .unit = 2},
	{D(MEMSET, "cuMemsetD2D16Async"), .args = {{F_DESTINATION, 0}, {F_WIDTH, 3}, {F_HEIGHT, 4}, {F_STREAM, 5}}, .unit = 2},
	{D(MEMSET, "cuMemsetD2D16_v2"), .args = {{F_DESTINATION, 0}, {F_WIDTH, 3}, {F_HEIGHT, 4}}, .unit = 2},
	{D(MEMSET, "cuMemsetD2D32Async"), .args = {{F_DESTINATION, 0}, {F_WIDTH, 3}, {F_HEIGHT, 4}, {F_STREAM, 5}}, .unit = 4},
	{D(MEMSET, "cuMemsetD2D32_v2"), .args = {{F_DESTINATION, 0}, {F_WIDTH, 3}, {F_HEIGHT, 4}}, .unit = 4},
	{D(MEMSET, "cuMemsetD2D8Async"), .args = {{F_DESTINATION, 0}, {F_WIDTH, 3}, {F_HEIGHT, 4}, {F_STREAM, 5}}},
	{D(MEMSET, "cuMemsetD2D8_v2"), .args = {{F_DESTINATION, 0}, {F_WIDTH, 3}, {F_HEIGHT, 4}}},
	{D(MEMSET, "cuMemsetD32Async"), .args = {{F_DESTINATION, 0}, {F_BYTES, 2}, {F_STREAM, 3}}, .unit = 4},
	{D(MEMSET, "cuMemsetD32_v2"), .args = {{F_DESTINATION, 0}, {F_BYTES, 2}}, .unit = 4},
	{D(MEMSET, "cuMemsetD8Async"), .args = {{F_DESTINATION, 0}, {F_BYTES, 2}, {F_STREAM, 3}}},
	{D(MEMSET, "cuMemsetD8_v2"), .args = {{F_DESTINATION, 0}, {F_BYTES, 2}}},

	{D(SYNC, "cuCtxSynchronize")},
	{D(SYNC, "cuEventSynchronize"), .args = {{F_EVENT, 0}}},
	{D(SYNC, "cuStreamSynchronize"), .args = {{F_STREAM, 0}}},

	{D(WAIT, "cuStreamWaitEvent"), .args = {{F_STREAM, 0}, {F_EVENT, 1}}},

	{D(ALLOC, "cuMemAllocAsync"), .args = {{F_OUT, 0}, {F_BYTES, 1}, {F_STREAM, 2}}, .space = XSP_CUDA_DEVICE},
	{D(ALLOC, "cuMemAllocFromPoolAsync"), .args = {{F_OUT, 0}, {F_BYTES, 1}, {F_STREAM, 3}}, .space = XSP_CUDA_DEVICE},
	{D(ALLOC, "cuMemAllocHost_v2"), .args = {{F_OUT, 0}, {F_BYTES, 1}}, .space = XSP_CUDA_PINNED},
	{D(ALLOC, "cuMemAllocManaged"), .args = {{F_OUT, 0}, {F_BYTES, 1}}, .space = XSP_CUDA_MANAGED},
	{D(ALLOC, "cuMemAllocPitch_v2"), .args = {{F_OUT, 0}, {F_WIDTH, 2}, {F_HEIGHT, 3}}, .space = XSP_CUDA_DEVICE},
	{D(ALLOC, "cuMemAlloc_v2"), .args = {{F_OUT, 0}, {F_BYTES, 1}}, .space = XSP_CUDA_DEVICE},
	{D(ALLOC, "cuMemCreate"), .args = {{F_OUT, 0}, {F_BYTES, 1}}, .space = XSP_CUDA_PHYSICAL},
	{D(ALLOC, "cuMemHostAlloc"), .args = {{F_OUT, 0}, {F_BYTES, 1}}, .space = XSP_CUDA_PINNED},
	{D(ALLOC, "cuMemHostRegister_v2"), .args = {{F_ADDRESS, 0}, {F_BYTES, 1}}, .space = XSP_CUDA_PINNED},

	{D(FREE, "cuMemFreeAsync"), .args = {{F_ADDRESS, 0}, {F_STREAM, 1}}, .space = XSP_CUDA_DEVICE},
	{D(FREE, "cuMemFreeHost"), .args = {{F_ADDRESS, 0}}, .space = XSP_CUDA_PINNED},
	{D(FREE, "cuMemFree_v2"), .args = {{F_ADDRESS, 0}}, .space = XSP_CUDA_DEVICE},
	{D(FREE, "cuMemHostUnregister"), .args = {{F_ADDRESS, 0}}, .space = XSP_CUDA_PINNED},
	{D(FREE, "cuMemRelease"), .args = {{F_ADDRESS, 0}}, .space = XSP_CUDA_PHYSICAL},

	{D(MEMORY, "cuArray3DCreate_v2")},
	{D(MEMORY, "cuArrayCreate_v2")},
	{D(MEMORY, "cuArrayDestroy")},
	{D(MEMORY, "cuMemAddressFree"), .args = {{F_BYTES, 1}}},
	{D(MEMORY, "cuMemAddressReserve"), .args = {{F_BYTES, 1}}},
	{D(MEMORY, "cuMemExportToShareableHandle")},
	{D(MEMORY, "cuMemImportFromShareableHandle")},
	{D(MEMORY, "cuMemMap"), .args = {{F_BYTES, 1}}},
	{D(MEMORY, "cuMemPoolCreate")},
	{D(MEMORY, "cuMemPoolDestroy")},
	{D(MEMORY, "cuMemPoolExportToShareableHandle")},
	{D(MEMORY, "cuMemPoolImportFromShareableHandle")},
	{D(MEMORY, "cuMemPoolSetAccess")},
	{D(MEMORY, "cuMemPoolTrimTo")},
	{D(MEMORY, "cuMemPrefetchAsync"), .args = {{F_DESTINATION, 0}, {F_BYTES, 1}, {F_STREAM, 3}}},
	{D(MEMORY, "cuMemPrefetchAsync_v2"), .args = {{F_DESTINATION, 0}, {F_BYTES, 1}, {F_STREAM, 4}}},
	{D(MEMORY, "cuMemPrefetchBatchAsync"), .args = {{F_STREAM, 7}}},
	{D(MEMORY, "cuMemSetAccess"), .args = {{F_BYTES, 1}}},
	{D(MEMORY, "cuMemUnmap"), .args = {{F_BYTES, 1}}},

	{D(STREAM, "cuStreamBatchMemOp_v2"), .args = {{F_STREAM, 0}}},
	{D(STREAM, "cuStreamBeginCapture"), .args = {{F_STREAM, 0}}},
	{D(STREAM, "cuStreamBeginCaptureToGraph"), .args = {{F_STREAM, 0}, {F_GRAPH, 1}}},
	{D(STREAM, "cuStreamBeginCapture_v2"), .args = {{F_STREAM, 0}}},
	{D(STREAM, "cuStreamCreate")},
	{D(STREAM, "cuStreamCreateWithPriority")},
	{D(STREAM, "cuStreamDestroy_v2"), .args = {{F_STREAM, 0}}},
	{D(STREAM, "cuStreamEndCapture"), .args = {{F_STREAM, 0}}},
	{D(STREAM, "cuStreamQuery"), .args = {{F_STREAM, 0}}},
	{D(STREAM, "cuStreamWaitValue32_v2"), .args = {{F_STREAM, 0}}},
	{D(STREAM, "cuStreamWaitValue64_v2"), .args = {{F_STREAM, 0}}},
	{D(STREAM, "cuStreamWriteValue32_v2"), .args = {{F_STREAM, 0}}},
	{D(STREAM, "cuStreamWriteValue64_v2"), .args = {{F_STREAM, 0}}},

	{D(EVENT, "cuEventCreate")},
	{D(EVENT, "cuEventDestroy_v2"), .args = {{F_EVENT, 0}}},
	{D(EVENT, "cuEventElapsedTime")},
	{D(EVENT, "cuEventElapsedTime_v2")},
	{D(EVENT, "cuEventQuery"), .args = {{F_EVENT, 0}}},
	{D(EVENT, "cuEventRecord"), .args = {{F_EVENT, 0}, {F_STREAM, 1}}},
	{D(EVENT, "cuEventRecordWithFlags"), .args = {{F_EVENT, 0}, {F_STREAM, 1}}},

	{D(MODULE, "cuFuncLoad"), .args = {{F_FUNCTION, 0}}},
	{D(MODULE, "cuKernelGetFunction"), .args = {{F_OUT, 0}, {F_FUNCTION, 1}}},
	{D(MODULE, "cuLibraryGetKernel"), .args = {{F_OUT, 0}, {F_MODULE, 1}, {F_NAME, 2}}},
	{D(MODULE, "cuLibraryGetModule"), .args = {{F_MODULE, 1}}},
	{D(MODULE, "cuLibraryLoadData")},
	{D(MODULE, "cuLibraryLoadFromFile")},
	{D(MODULE, "cuLibraryUnload"), .args = {{F_MODULE, 0}}},
	{D(MODULE, "cuLinkAddData_v2")},
	{D(MODULE, "cuLinkAddFile_v2")},
	{D(MODULE, "cuLinkComplete")},
	{D(MODULE, "cuLinkCreate_v2")},
	{D(MODULE, "cuLinkDestroy")},
	{D(MODULE, "cuModuleGetFunction"), .args = {{F_OUT, 0}, {F_MODULE, 1}, {F_NAME, 2}}},
	{D(MODULE, "cuModuleLoad")},
	{D(MODULE, "cuModuleLoadData")},
	{D(MODULE, "cuModuleLoadDataEx")},
	{D(MODULE, "cuModuleLoadFatBinary")},
	{D(MODULE, "cuModuleUnload"), .args = {{F_MODULE, 0}}},

	{D(GRAPH, "cuGraphClone"), .args = {{F_GRAPH, 1}}},
	{D(GRAPH, "cuGraphCreate")},
	{D(GRAPH, "cuGraphDestroy"), .args = {{F_GRAPH, 0}}},
	{D(GRAPH, "cuGraphExecDestroy"), .args = {{F_GRAPH_EXEC, 0}}},
	{D(GRAPH, "cuGraphExecUpdate"), .args = {{F_GRAPH_EXEC, 0}, {F_GRAPH, 1}}},
	{D(GRAPH, "cuGraphExecUpdate_v2"), .args = {{F_GRAPH_EXEC, 0}, {F_GRAPH, 1}}},
	{D(GRAPH, "cuGraphInstantiate"), .args = {{F_GRAPH, 1}}},
	{D(GRAPH, "cuGraphInstantiateWithFlags"), .args = {{F_GRAPH, 1}}},
	{D(GRAPH, "cuGraphInstantiateWithParams"), .args = {{F_GRAPH, 1}}},
	{D(GRAPH, "cuGraphInstantiate_v2"), .args = {{F_GRAPH, 1}}},
	{D(GRAPH, "cuGraphUpload"), .args = {{F_GRAPH_EXEC, 0}, {F_STREAM, 1}}},

	{D(HOST, "cuLaunchHostFunc"), .args = {{F_STREAM, 0}}, .calls_back = true},
	{D(HOST, "cuStreamAddCallback"), .args = {{F_STREAM, 0}}, .calls_back = true},

	{D(CONTEXT, "cuCtxCreate_v2"), .args = {{F_DEVICE, 2}}},
	{D(CONTEXT, "cuCtxCreate_v3"), .args = {{F_DEVICE, 4}}},
	{D(CONTEXT, "cuCtxCreate_v4"), .args = {{F_DEVICE, 3}}},
	{D(CONTEXT, "cuCtxDestroy_v2")},
	{D(CONTEXT, "cuDevicePrimaryCtxRelease_v2"), .args = {{F_DEVICE, 0}}},
	{D(CONTEXT, "cuDevicePrimaryCtxReset_v2"), .args = {{F_DEVICE, 0}}},
	{D(CONTEXT, "cuDevicePrimaryCtxRetain"), .args = {{F_DEVICE, 1}}},
	{D(CONTEXT, "cuInit")},

	{R(LAUNCH, "__cudaLaunchKernel"), .args = {{F_FUNCTION, 0}, {F_GRID_XY, 1}, {F_GRID_Z, 2}, {F_BLOCK_XY, 3}, {F_BLOCK_Z, 4}, {F_SHARED, 6}, {F_STREAM, 7}}},
	{R(LAUNCH, "cudaLaunchCooperativeKernel"), .args = {{F_FUNCTION, 0}, {F_GRID_XY, 1}, {F_GRID_Z, 2}, {F_BLOCK_XY, 3}, {F_BLOCK_Z, 4}, {F_SHARED, 6}, {F_STREAM, 7}}},
	{R(LAUNCH, "cudaLaunchCooperativeKernelMultiDevice")},
	{R(LAUNCH, "cudaLaunchKernel"), .args = {{F_FUNCTION, 0}, {F_GRID_XY, 1}, {F_GRID_Z, 2}, {F_BLOCK_XY, 3}, {F_BLOCK_Z, 4}, {F_SHARED, 6}, {F_STREAM, 7}}},
	{R(LAUNCH, "cudaLaunchKernelExC"), .args = {{F_FUNCTION, 1}, {F_GRID_XY, 0, true, 0}, {F_GRID_Z_BLOCK_X, 0, true, 8}, {F_BLOCK_YZ, 0, true, 16}, {F_SHARED, 0, true, 24}, {F_STREAM, 0, true, 32}}},

	{R(GRAPH_LAUNCH, "cudaGraphLaunch"), .args = {{F_GRAPH_EXEC, 0}, {F_STREAM, 1}}},

	{R(MEMCPY, "cudaMemcpy"), .args = {{F_DESTINATION, 0}, {F_SOURCE, 1}, {F_BYTES, 2}, {F_DIRECTION, 3}}},
	{R(MEMCPY, "cudaMemcpy2D"), .args = {{F_DESTINATION, 0}, {F_SOURCE, 2}, {F_WIDTH, 4}, {F_HEIGHT, 5}, {F_DIRECTION, 6}}},
	{R(MEMCPY, "cudaMemcpy2DArrayToArray"), .args = {{F_WIDTH, 6}, {F_HEIGHT, 7}, {F_DIRECTION, 8}}},
	{R(MEMCPY, "cudaMemcpy2DAsync"), .args = {{F_DESTINATION, 0}, {F_SOURCE, 2}, {F_WIDTH, 4}, {F_HEIGHT, 5}, {F_DIRECTION, 6}, {F_STREAM, 7}}},
	{R(MEMCPY, "cudaMemcpy2DFromArray"), .args = {{F_DESTINATION, 0}, {F_WIDTH, 5}, {F_HEIGHT, 6}, {F_DIRECTION, 7}}},
	{R(MEMCPY, "cudaMemcpy2DFromArrayAsync"), .args = {{F_DESTINATION, 0}, {F_WIDTH, 5}, {F_HEIGHT, 6}, {F_DIRECTION, 7}, {F_STREAM, 8}}},
	{R(MEMCPY, "cudaMemcpy2DToArray"), .args = {{F_SOURCE, 3}, {F_WIDTH, 5}, {F_HEIGHT, 6}, {F_DIRECTION, 7}}},
	{R(MEMCPY, "cudaMemcpy2DToArrayAsync"), .args = {{F_SOURCE, 3}, {F_WIDTH, 5}, {F_HEIGHT, 6}, {F_DIRECTION, 7}, {F_STREAM, 8}}},
	{R(MEMCPY, "cudaMemcpy3D"), .args = {{F_DIRECTION, 0, true, 152}}},
	{R(MEMCPY, "cudaMemcpy3DAsync"), .args = {{F_STREAM, 1}, {F_DIRECTION, 0, true, 152}}},
	{R(MEMCPY, "cudaMemcpy3DBatchAsync"), .args = {{F_STREAM, 3}}},
	{R(MEMCPY, "cudaMemcpy3DPeer")},
	{R(MEMCPY, "cudaMemcpy3DPeerAsync"), .args = {{F_STREAM, 1}}},
	{R(MEMCPY, "cudaMemcpyArrayToArray"), .args = {{F_BYTES, 6}, {F_DIRECTION, 7}}},
	{R(MEMCPY, "cudaMemcpyAsync"), .args = {{F_DESTINATION, 0}, {F_SOURCE, 1}, {F_BYTES, 2}, {F_DIRECTION, 3}, {F_STREAM, 4}}},
	{R(MEMCPY, "cudaMemcpyBatchAsync"), .args = {{F_STREAM, 7}}},
	{R(MEMCPY, "cudaMemcpyFromArray"), .args = {{F_DESTINATION, 0}, {F_BYTES, 4}, {F_DIRECTION, 5}}},
	{R(MEMCPY, "cudaMemcpyFromArrayAsync"), .args = {{F_DESTINATION, 0}, {F_BYTES, 4}, {F_DIRECTION, 5}, {F_STREAM, 6}}},
	{R(MEMCPY, "cudaMemcpyFromSymbol"), .args = {{F_DESTINATION, 0}, {F_BYTES, 2}, {F_DIRECTION, 4}}},
	{R(MEMCPY, "cudaMemcpyFromSymbolAsync"), .args = {{F_DESTINATION, 0}, {F_BYTES, 2}, {F_DIRECTION, 4}, {F_STREAM, 5}}},
	{R(MEMCPY, "cudaMemcpyPeer"), .args = {{F_DESTINATION, 0}, {F_SOURCE, 2}, {F_BYTES, 4}}},
	{R(MEMCPY, "cudaMemcpyPeerAsync"), .args = {{F_DESTINATION, 0}, {F_SOURCE, 2}, {F_BYTES, 4}, {F_STREAM, 5}}},
	{R(MEMCPY, "cudaMemcpyToArray"), .args = {{F_SOURCE, 3}, {F_BYTES, 4}, {F_DIRECTION, 5}}},
	{R(MEMCPY, "cudaMemcpyToArrayAsync"), .args = {{F_SOURCE, 3}, {F_BYTES, 4}, {F_DIRECTION, 5}, {F_STREAM, 6}}},
	{R(MEMCPY, "cudaMemcpyToSymbol"), .args = {{F_SOURCE, 1}, {F_BYTES, 2}, {F_DIRECTION, 4}}},
	{R(MEMCPY, "cudaMemcpyToSymbolAsync"), .args = {{F_SOURCE, 1}, {F_BYTES, 2}, {F_DIRECTION, 4}, {F_STREAM, 5}}},

	{R(MEMSET, "cudaMemset"), .args = {{F_DESTINATION, 0}, {F_BYTES, 2}}},
	{R(MEMSET, "cudaMemset2D"), .args = {{F_DESTINATION, 0}, {F_WIDTH, 3}, {F_HEIGHT, 4}}},
	{R(MEMSET, "cudaMemset2DAsync"), .args = {{F_DESTINATION, 0}, {F_WIDTH, 3}, {F_HEIGHT, 4}, {F_STREAM, 5}}},
	{R(MEMSET, "cudaMemset3D")},
	{R(MEMSET, "cudaMemset3DAsync")},
	{R(MEMSET, "cudaMemsetAsync"), .args = {{F_DESTINATION, 0}, {F_BYTES, 2}, {F_STREAM, 3}}},

	{R(SYNC, "cudaDeviceSynchronize")},
	{R(SYNC, "cudaEventSynchronize"), .args = {{F_EVENT, 0}}},
	{R(SYNC, "cudaStreamSynchronize"), .args = {{F_STREAM, 0}}},

	{R(WAIT, "cudaStreamWaitEvent"), .args = {{F_STREAM, 0}, {F_EVENT, 1}}},

	{R(ALLOC, "cudaHostAlloc"), .args = {{F_OUT, 0}, {F_BYTES, 1}}, .space = XSP_CUDA_PINNED},
	{R(ALLOC, "cudaHostRegister"), .args = {{F_ADDRESS, 0}, {F_BYTES, 1}}, .space = XSP_CUDA_PINNED},
	{R(ALLOC, "cudaMalloc"), .args = {{F_OUT, 0}, {F_BYTES, 1}}, .space = XSP_CUDA_DEVICE},
	{R(ALLOC, "cudaMallocAsync"), .args = {{F_OUT, 0}, {F_BYTES, 1}, {F_STREAM, 2}}, .space = XSP_CUDA_DEVICE},
	{R(ALLOC, "cudaMallocFromPoolAsync"), .args = {{F_OUT, 0}, {F_BYTES, 1}, {F_STREAM, 3}}, .space = XSP_CUDA_DEVICE},
	{R(ALLOC, "cudaMallocHost"), .args = {{F_OUT, 0}, {F_BYTES, 1}}, .space = XSP_CUDA_PINNED},
	{R(ALLOC, "cudaMallocManaged"), .args = {{F_OUT, 0}, {F_BYTES, 1}}, .space = XSP_CUDA_MANAGED},
	{R(ALLOC, "cudaMallocPitch"), .args = {{F_OUT, 0}, {F_WIDTH, 2}, {F_HEIGHT, 3}}, .space = XSP_CUDA_DEVICE},

	{R(FREE, "cudaFree"), .args = {{F_ADDRESS, 0}}, .space = XSP_CUDA_DEVICE},
	{R(FREE, "cudaFreeAsync"), .args = {{F_ADDRESS, 0}, {F_STREAM, 1}}, .space = XSP_CUDA_DEVICE},
	{R(FREE, "cudaFreeHost"), .args = {{F_ADDRESS, 0}}, .space = XSP_CUDA_PINNED},
	{R(FREE, "cudaHostUnregister"), .args = {{F_ADDRESS, 0}}, .space = XSP_CUDA_PINNED},

	{R(MEMORY, "cudaFreeArray")},
	{R(MEMORY, "cudaFreeMipmappedArray")},
	{R(MEMORY, "cudaMalloc3D")},
	{R(MEMORY, "cudaMalloc3DArray")},
	{R(MEMORY, "cudaMallocArray"), .args = {{F_WIDTH, 2}, {F_HEIGHT, 3}}},
	{R(MEMORY, "cudaMallocMipmappedArray")},
	{R(MEMORY, "cudaMemPoolCreate")},
	{R(MEMORY, "cudaMemPoolDestroy")},
	{R(MEMORY, "cudaMemPoolExportToShareableHandle")},
	{R(MEMORY, "cudaMemPoolImportFromShareableHandle")},
	{R(MEMORY, "cudaMemPoolSetAccess")},
	{R(MEMORY, "cudaMemPoolTrimTo")},
	{R(MEMORY, "cudaMemPrefetchAsync"), .args = {{F_DESTINATION, 0}, {F_BYTES, 1}}},
	{R(MEMORY, "cudaMemPrefetchBatchAsync"), .args = {{F_STREAM, 7}}},

	{R(STREAM, "cudaStreamBeginCapture"), .args = {{F_STREAM, 0}}},
	{R(STREAM, "cudaStreamBeginCaptureToGraph"), .args = {{F_STREAM, 0}, {F_GRAPH, 1}}},
	{R(STREAM, "cudaStreamCreate")},
	{R(STREAM, "cudaStreamCreateWithFlags")},
	{R(STREAM, "cudaStreamCreateWithPriority")},
	{R(STREAM, "cudaStreamDestroy"), .args = {{F_STREAM, 0}}},
	{R(STREAM, "cudaStreamEndCapture"), .args = {{F_STREAM, 0}}},
	{R(STREAM, "cudaStreamQuery"), .args = {{F_STREAM, 0}}},

	{R(EVENT, "cudaEventCreate")},
	{R(EVENT, "cudaEventCreateWithFlags")},
	{R(EVENT, "cudaEventDestroy"), .args = {{F_EVENT, 0}}},
	{R(EVENT, "cudaEventElapsedTime")},
	{R(EVENT, "cudaEventQuery"), .args = {{F_EVENT, 0}}},
	{R(EVENT, "cudaEventRecord"), .args = {{F_EVENT, 0}, {F_STREAM, 1}}},
	{R(EVENT, "cudaEventRecordWithFlags"), .args = {{F_EVENT, 0}, {F_STREAM, 1}}},

	{R(MODULE, "__cudaGetKernel"), .args = {{F_OUT, 0}, {F_STUB, 1}}},
	{R(MODULE, "cudaGetFuncBySymbol"), .args = {{F_OUT, 0}, {F_STUB, 1}}},
	{R(MODULE, "cudaGetKernel"), .args = {{F_OUT, 0}, {F_STUB, 1}}},
	{R(MODULE, "cudaLibraryGetKernel"), .args = {{F_OUT, 0}, {F_MODULE, 1}, {F_NAME, 2}}},
	{R(MODULE, "cudaLibraryLoadData")},
	{R(MODULE, "cudaLibraryLoadFromFile")},
	{R(MODULE, "cudaLibraryUnload"), .args = {{F_MODULE, 0}}},

	{R(GRAPH, "cudaGraphClone"), .args = {{F_GRAPH, 1}}},
	{R(GRAPH, "cudaGraphCreate")},
	{R(GRAPH, "cudaGraphDestroy"), .args = {{F_GRAPH, 0}}},
	{R(GRAPH, "cudaGraphExecDestroy"), .args = {{F_GRAPH_EXEC, 0}}},
	{R(GRAPH, "cudaGraphExecUpdate"), .args = {{F_GRAPH_EXEC, 0}, {F_GRAPH, 1}}},
	{R(GRAPH, "cudaGraphInstantiate"), .args = {{F_GRAPH, 1}}},
	{R(GRAPH, "cudaGraphInstantiateWithFlags"), .args = {{F_GRAPH, 1}}},
	{R(GRAPH, "cudaGraphInstantiateWithParams"), .args = {{F_GRAPH, 1}}},
	{R(GRAPH, "cudaGraphUpload"), .args = {{F_GRAPH_EXEC, 0}, {F_STREAM, 1}}},

	{R(HOST, "cudaLaunchHostFunc"), .args = {{F_STREAM, 0}}, .calls_back = true},
	{R(HOST, "cudaStreamAddCallback"), .args = {{F_STREAM, 0}}, .calls_back = true},

	{R(CONTEXT, "cudaDeviceReset")},
	{R(CONTEXT, "cudaSetDevice"), .args = {{F_DEVICE, 0}}},
};
/* clang-format on */

const size_t xsp_cuda_entry_count = sizeof(xsp_cuda_entries) / sizeof(xsp_cuda_entries[0]);

unsigned xsp_cuda_args(const struct xsp_cuda_entry *e)
{
	unsigned n = 0;

	while (n < XSP_CUDA_ARGS && e->args[n].field != XSP_CUDA_NONE)
		n++;
	return n;
}

static bool is_form_of(const char *symbol, const char *name)
{
	size_t length = strlen(name);

	if (strncmp(symbol, name, length) != 0)
		return false;
	symbol += length;
	return *symbol == '\0' || strcmp(symbol, "_ptsz") == 0 || strcmp(symbol, "_ptds") == 0;
}

static const struct xsp_cuda_entry *find(const char *symbol)
{
	for (size_t i = 0; i < xsp_cuda_entry_count; i++)
		if (is_form_of(symbol, xsp_cuda_entries[i].name))
			return &xsp_cuda_entries[i];
	return NULL;
}

/* Calls of other vendors that do the same, as torch.profiler's traces name them: of Intel's Unified
 * Runtime (ur..., before it pi...) and Level Zero, and those of HIP that are not CUDA's with
 * another beginning. */
static const char *const others[][2] = {
	{"urEnqueueKernelLaunch", "cudaLaunchKernel"},
	{"urEnqueueKernelLaunchCustomExp", "cudaLaunchKernel"},
	{"urEnqueueCooperativeKernelLaunchExp", "cudaLaunchCooperativeKernel"},
	{"piEnqueueKernelLaunch", "cudaLaunchKernel"},
	{"zeCommandListAppendLaunchKernel", "cudaLaunchKernel"},
	{"zeCommandListAppendLaunchCooperativeKernel", "cudaLaunchCooperativeKernel"},
	{"urEnqueueUSMMemcpy", "cudaMemcpyAsync"},
	{"piextUSMEnqueueMemcpy", "cudaMemcpyAsync"},
	{"zeCommandListAppendMemoryCopy", "cudaMemcpyAsync"},
	{"urEnqueueUSMFill", "cudaMemsetAsync"},
	{"piextUSMEnqueueMemset", "cudaMemsetAsync"},
	{"zeCommandListAppendMemoryFill", "cudaMemsetAsync"},
	{"urQueueFinish", "cudaStreamSynchronize"},
	{"piQueueFinish", "cudaStreamSynchronize"},
	{"zeCommandQueueSynchronize", "cudaStreamSynchronize"},
	{"zeCommandListHostSynchronize", "cudaStreamSynchronize"},
	{"urEventWait", "cudaEventSynchronize"},
	{"piEventsWait", "cudaEventSynchronize"},
	{"zeEventHostSynchronize", "cudaEventSynchronize"},
	{"zeFenceHostSynchronize", "cudaEventSynchronize"},
	{"hipModuleLaunchKernel", "cudaLaunchKernel"},
	{"hipExtModuleLaunchKernel", "cudaLaunchKernel"},
	{"hipExtLaunchKernel", "cudaLaunchKernel"},
	{"hipMemcpyWithStream", "cudaMemcpy"},
};

const struct xsp_cuda_entry *xsp_cuda_find(const char *symbol)
{
	char name[64];

	if (strncmp(symbol, "cu", 2) == 0 || strncmp(symbol, "__cu", 4) == 0)
		return find(symbol);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strcmp(symbol, others[i][0]) == 0)
			return find(others[i][1]);
	if (strncmp(symbol, "hip", 3) != 0 || strlen(symbol) >= sizeof(name) - 2)
		return NULL;
	stpcpy(stpcpy(name, "cuda"), symbol + 3);
	return find(name);
}

enum xsp_cuda_api xsp_cuda_api_of(const char *symbol)
{
	const struct xsp_cuda_entry *e = xsp_cuda_find(symbol);

	if (e != NULL)
		return (enum xsp_cuda_api)e->api;
	return strncmp(symbol, "cu", 2) == 0 && symbol[2] >= 'A' && symbol[2] <= 'Z'
		       ? XSP_CUDA_DRIVER
		       : XSP_CUDA_RUNTIME;
}

const struct xsp_cuda_entry *xsp_cuda_any(enum xsp_cuda_api api)
{
	static const struct xsp_cuda_entry entries[] = {
		[XSP_CUDA_DRIVER] = {.name = "", .api = XSP_CUDA_DRIVER},
		[XSP_CUDA_RUNTIME] = {.name = "", .api = XSP_CUDA_RUNTIME}};

	return &entries[api];
}

/* ---- decoding ---- */

/* Where the word of a field goes: to offset `at` of the struct, from bits [shift, shift + 32) of
 * the word, or from all of them. */
struct target {
	uint16_t at;
	uint8_t half; /* 0: 64 bits; 1: the low 32 */
	uint8_t mark; /* field whose bit in `has` it sets */
	uint16_t high_at; /* 0, or where the high 32 bits go */
	uint8_t high_mark;
};
#define AT(member) offsetof(struct xsp_cuda_call, member)
#define WORD(member, mark)                                                                         \
	{                                                                                          \
		AT(member), 0, mark, 0, 0                                                          \
	}
#define LOW(member, mark)                                                                          \
	{                                                                                          \
		AT(member), 1, mark, 0, 0                                                          \
	}
#define PAIR(low, low_mark, high, high_mark)                                                       \
	{                                                                                          \
		AT(low), 1, low_mark, AT(high), high_mark                                          \
	}

static const struct target targets[XSP_CUDA_FIELDS] = {
	[XSP_CUDA_STREAM_HANDLE] = WORD(stream, XSP_CUDA_STREAM_HANDLE),
	[XSP_CUDA_FUNCTION] = WORD(function, XSP_CUDA_FUNCTION),
	[XSP_CUDA_GRID_X] = LOW(grid[0], XSP_CUDA_GRID_X),
	[XSP_CUDA_GRID_Y] = LOW(grid[1], XSP_CUDA_GRID_Y),
	[XSP_CUDA_GRID_Z] = LOW(grid[2], XSP_CUDA_GRID_Z),
	[XSP_CUDA_BLOCK_X] = LOW(block[0], XSP_CUDA_BLOCK_X),
	[XSP_CUDA_BLOCK_Y] = LOW(block[1], XSP_CUDA_BLOCK_Y),
	[XSP_CUDA_BLOCK_Z] = LOW(block[2], XSP_CUDA_BLOCK_Z),
	[XSP_CUDA_GRID_XY] = PAIR(grid[0], XSP_CUDA_GRID_X, grid[1], XSP_CUDA_GRID_Y),
	[XSP_CUDA_BLOCK_XY] = PAIR(block[0], XSP_CUDA_BLOCK_X, block[1], XSP_CUDA_BLOCK_Y),
	[XSP_CUDA_GRID_Z_BLOCK_X] = PAIR(grid[2], XSP_CUDA_GRID_Z, block[0], XSP_CUDA_BLOCK_X),
	[XSP_CUDA_BLOCK_YZ] = PAIR(block[1], XSP_CUDA_BLOCK_Y, block[2], XSP_CUDA_BLOCK_Z),
	[XSP_CUDA_SHARED] = WORD(shared, XSP_CUDA_SHARED),
	[XSP_CUDA_BYTES] = WORD(bytes, XSP_CUDA_BYTES),
	[XSP_CUDA_DIRECTION] = LOW(direction, XSP_CUDA_DIRECTION),
	[XSP_CUDA_DESTINATION] = WORD(destination, XSP_CUDA_DESTINATION),
	[XSP_CUDA_SOURCE] = WORD(source, XSP_CUDA_SOURCE),
	[XSP_CUDA_ADDRESS] = WORD(address, XSP_CUDA_ADDRESS),
	[XSP_CUDA_OUT] = WORD(out, XSP_CUDA_OUT),
	[XSP_CUDA_EVENT_HANDLE] = WORD(event, XSP_CUDA_EVENT_HANDLE),
	[XSP_CUDA_GRAPH_HANDLE] = WORD(graph, XSP_CUDA_GRAPH_HANDLE),
	[XSP_CUDA_GRAPH_EXEC] = WORD(graph, XSP_CUDA_GRAPH_EXEC),
	[XSP_CUDA_MODULE_HANDLE] = WORD(module, XSP_CUDA_MODULE_HANDLE),
	[XSP_CUDA_DEVICE_NUMBER] = WORD(device, XSP_CUDA_DEVICE_NUMBER),
	[XSP_CUDA_STUB] = WORD(stub, XSP_CUDA_STUB),
};

static void store_word(struct xsp_cuda_call *c, const struct target *t, uint64_t word)
{
	uint32_t low = (uint32_t)word, high = (uint32_t)(word >> 32);

	if (t->mark == XSP_CUDA_NONE)
		return;
	if (t->half)
		memcpy((char *)c + t->at, &low, sizeof(low));
	else
		memcpy((char *)c + t->at, &word, sizeof(word));
	c->has |= 1U << t->mark;
	if (t->high_mark != XSP_CUDA_NONE) {
		memcpy((char *)c + t->high_at, &high, sizeof(high));
		c->has |= 1U << t->high_mark;
	}
}

/* The product of a row's width, height and depth. */
struct extent {
	uint64_t bytes;
	bool any, whole;
};

static void extend(struct extent *x, uint64_t by, bool known)
{
	x->any = true;
	x->whole = x->whole && known && !__builtin_mul_overflow(x->bytes, by, &x->bytes);
}

static bool has_all(const struct xsp_cuda_call *c, unsigned first)
{
	return ((c->has >> first) & 7) == 7;
}

/* Three dimensions are shown together or not at all. */
static void settle_dimensions(struct xsp_cuda_call *c, unsigned first)
{
	if (!has_all(c, first))
		c->has &= ~(7U << first);
}

static void settle_bytes(const struct xsp_cuda_entry *e, struct extent *x, struct xsp_cuda_call *c)
{
	if (XSP_CUDA_HAS(c, XSP_CUDA_BYTES))
		extend(x, c->bytes, true);
	if (!x->any)
		return;
	extend(x, e->unit ? e->unit : 1, true);
	c->bytes = x->bytes;
	c->has &= ~(1U << XSP_CUDA_BYTES);
	if (x->whole)
		c->has |= 1U << XSP_CUDA_BYTES;
}

void xsp_cuda_decode(const struct xsp_cuda_entry *e, const uint64_t *words, size_t count,
		     uint32_t unreadable, struct xsp_cuda_call *out)
{
	struct extent x = {.bytes = 1, .whole = true};
	unsigned args = xsp_cuda_args(e);

	*out = (struct xsp_cuda_call){.direction = e->direction};
	if (e->direction != 0)
		out->has |= 1U << XSP_CUDA_DIRECTION;
	for (unsigned i = 0; i < args; i++) {
		unsigned field = e->args[i].field;
		bool known = i < count && i < 32 && !(unreadable >> i & 1);
		if (field == XSP_CUDA_WIDTH || field == XSP_CUDA_HEIGHT || field == XSP_CUDA_DEPTH)
			extend(&x, known ? words[i] : 0, known);
		else if (known)
			store_word(out, &targets[field], words[i]);
	}
	if (e->api == XSP_CUDA_DRIVER) /* an unsigned int; size_t in the runtime API */
		out->shared = (uint32_t)out->shared;
	out->device = (uint32_t)out->device;
	settle_dimensions(out, XSP_CUDA_GRID_X);
	settle_dimensions(out, XSP_CUDA_BLOCK_X);
	settle_bytes(e, &x, out);
}
