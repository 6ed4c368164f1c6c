/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cbids.h - the API functions that the doubles have, and CUPTI's numbers for them. Numbers and names
 * from cupti_driver_cbid.h and cupti_runtime_cbid.h of CUDA 13.0; check_headers.c compares them with
 * the real headers, if those are installed.
 */
#ifndef XSP_DOUBLE_CBIDS_H
#define XSP_DOUBLE_CBIDS_H

/* clang-format off */
/* X(name, number) */
#define XD_DRIVER_CBIDS(X) \
	X(cuInit, 1) \
	X(cuDriverGetVersion, 2) \
	X(cuDeviceGet, 3) \
	X(cuDeviceGetCount, 4) \
	X(cuDeviceGetName, 5) \
	X(cuDeviceGetAttribute, 9) \
	X(cuCtxGetDevice, 16) \
	X(cuCtxSynchronize, 17) \
	X(cuModuleLoad, 18) \
	X(cuModuleLoadData, 19) \
	X(cuModuleLoadDataEx, 20) \
	X(cuModuleUnload, 22) \
	X(cuModuleGetFunction, 23) \
	X(cuMemFreeHost, 38) \
	X(cuMemHostAlloc, 39) \
	X(cuEventCreate, 118) \
	X(cuEventRecord, 119) \
	X(cuEventQuery, 120) \
	X(cuEventSynchronize, 121) \
	X(cuEventElapsedTime, 123) \
	X(cuStreamCreate, 124) \
	X(cuStreamQuery, 125) \
	X(cuStreamSynchronize, 126) \
	X(cuMemsetD8Async, 216) \
	X(cuMemsetD16Async, 218) \
	X(cuMemsetD32Async, 220) \
	X(cuCtxCreate_v2, 235) \
	X(cuMemGetInfo_v2, 242) \
	X(cuMemAlloc_v2, 243) \
	X(cuMemAllocPitch_v2, 244) \
	X(cuMemFree_v2, 245) \
	X(cuMemsetD8_v2, 249) \
	X(cuMemsetD16_v2, 250) \
	X(cuMemsetD32_v2, 251) \
	X(cuMemsetD2D8_v2, 252) \
	X(cuDeviceTotalMem_v2, 259) \
	X(cuMemcpyHtoD_v2, 276) \
	X(cuMemcpyHtoDAsync_v2, 277) \
	X(cuMemcpyDtoH_v2, 278) \
	X(cuMemcpyDtoHAsync_v2, 279) \
	X(cuMemcpyDtoD_v2, 280) \
	X(cuMemcpyDtoDAsync_v2, 281) \
	X(cuMemcpy2D_v2, 287) \
	X(cuMemcpy2DAsync_v2, 289) \
	X(cuMemcpy3D_v2, 290) \
	X(cuMemcpy3DAsync_v2, 291) \
	X(cuMemAllocHost_v2, 294) \
	X(cuStreamWaitEvent, 295) \
	X(cuCtxSetCurrent, 303) \
	X(cuCtxGetCurrent, 304) \
	X(cuMemcpy, 305) \
	X(cuMemcpyAsync, 306) \
	X(cuLaunchKernel, 307) \
	X(cuMemcpyPeer, 318) \
	X(cuMemcpyPeerAsync, 319) \
	X(cuCtxDestroy_v2, 322) \
	X(cuEventDestroy_v2, 325) \
	X(cuStreamDestroy_v2, 326) \
	X(cuDeviceGetPCIBusId, 332) \
	X(cuStreamCreateWithPriority, 367) \
	X(cuMemAllocManaged, 371) \
	X(cuGetErrorString, 372) \
	X(cuGetErrorName, 373) \
	X(cuDevicePrimaryCtxRetain, 386) \
	X(cuMemcpyHtoD_v2_ptds, 397) \
	X(cuMemcpyDtoH_v2_ptds, 398) \
	X(cuMemcpyDtoD_v2_ptds, 399) \
	X(cuMemcpy2D_v2_ptds, 405) \
	X(cuMemcpy3D_v2_ptds, 407) \
	X(cuMemcpy_ptds, 408) \
	X(cuMemcpyPeer_ptds, 409) \
	X(cuMemsetD8_v2_ptds, 411) \
	X(cuMemsetD16_v2_ptds, 412) \
	X(cuMemsetD32_v2_ptds, 413) \
	X(cuMemsetD2D8_v2_ptds, 414) \
	X(cuMemcpyAsync_ptsz, 418) \
	X(cuMemcpyHtoDAsync_v2_ptsz, 421) \
	X(cuMemcpyDtoHAsync_v2_ptsz, 422) \
	X(cuMemcpyDtoDAsync_v2_ptsz, 423) \
	X(cuMemcpy2DAsync_v2_ptsz, 424) \
	X(cuMemcpy3DAsync_v2_ptsz, 425) \
	X(cuMemcpyPeerAsync_ptsz, 426) \
	X(cuMemsetD8Async_ptsz, 428) \
	X(cuMemsetD16Async_ptsz, 429) \
	X(cuMemsetD32Async_ptsz, 430) \
	X(cuStreamWaitEvent_ptsz, 436) \
	X(cuStreamQuery_ptsz, 439) \
	X(cuStreamSynchronize_ptsz, 440) \
	X(cuEventRecord_ptsz, 441) \
	X(cuLaunchKernel_ptsz, 442) \
	X(cuLaunchCooperativeKernel, 477) \
	X(cuLaunchCooperativeKernel_ptsz, 478) \
	X(cuDeviceGetUuid, 482) \
	X(cuStreamEndCapture, 497) \
	X(cuStreamEndCapture_ptsz, 498) \
	X(cuGraphCreate, 501) \
	X(cuGraphAddKernelNode, 502) \
	X(cuGraphAddMemcpyNode, 504) \
	X(cuGraphAddMemsetNode, 506) \
	X(cuGraphLaunch, 514) \
	X(cuGraphLaunch_ptsz, 515) \
	X(cuGraphExecDestroy, 516) \
	X(cuGraphDestroy, 517) \
	X(cuStreamBeginCapture_v2, 539) \
	X(cuStreamBeginCapture_v2_ptsz, 540) \
	X(cuDevicePrimaryCtxRelease_v2, 544) \
	X(cuGraphInstantiate_v2, 578) \
	X(cuEventRecordWithFlags, 587) \
	X(cuEventRecordWithFlags_ptsz, 588) \
	X(cuMemAllocAsync, 598) \
	X(cuMemAllocAsync_ptsz, 599) \
	X(cuMemFreeAsync, 600) \
	X(cuMemFreeAsync_ptsz, 601) \
	X(cuMemPoolCreate, 607) \
	X(cuMemPoolDestroy, 608) \
	X(cuMemAllocFromPoolAsync, 611) \
	X(cuMemAllocFromPoolAsync_ptsz, 612) \
	X(cuGraphInstantiateWithFlags, 643) \
	X(cuDeviceGetUuid_v2, 647) \
	X(cuLaunchKernelEx, 652) \
	X(cuLaunchKernelEx_ptsz, 653) \
	X(cuGetProcAddress_v2, 677) \
	X(cuLibraryLoadData, 678) \
	X(cuLibraryUnload, 680) \
	X(cuLibraryGetKernel, 681) \
	X(cuKernelGetFunction, 683) \
	X(cuGraphAddKernelNode_v2, 689) \
	X(cuFuncGetName, 718) \
	X(cuCtxCreate_v4, 757) \
	X(cuEventElapsedTime_v2, 780)

/* X(name as CUPTI says it, function, number) */
#define XD_RUNTIME_CBIDS(X) \
	X(cudaDriverGetVersion_v3020, cudaDriverGetVersion, 1) \
	X(cudaRuntimeGetVersion_v3020, cudaRuntimeGetVersion, 2) \
	X(cudaGetDeviceCount_v3020, cudaGetDeviceCount, 3) \
	X(cudaGetLastError_v3020, cudaGetLastError, 10) \
	X(cudaPeekAtLastError_v3020, cudaPeekAtLastError, 11) \
	X(cudaSetDevice_v3020, cudaSetDevice, 16) \
	X(cudaGetDevice_v3020, cudaGetDevice, 17) \
	X(cudaMalloc_v3020, cudaMalloc, 20) \
	X(cudaFree_v3020, cudaFree, 22) \
	X(cudaMallocHost_v3020, cudaMallocHost, 25) \
	X(cudaFreeHost_v3020, cudaFreeHost, 26) \
	X(cudaHostAlloc_v3020, cudaHostAlloc, 27) \
	X(cudaMemcpy_v3020, cudaMemcpy, 31) \
	X(cudaMemcpyAsync_v3020, cudaMemcpyAsync, 41) \
	X(cudaMemcpy2DAsync_v3020, cudaMemcpy2DAsync, 44) \
	X(cudaMemset_v3020, cudaMemset, 49) \
	X(cudaMemsetAsync_v3020, cudaMemsetAsync, 51) \
	X(cudaStreamCreate_v3020, cudaStreamCreate, 129) \
	X(cudaStreamSynchronize_v3020, cudaStreamSynchronize, 131) \
	X(cudaStreamQuery_v3020, cudaStreamQuery, 132) \
	X(cudaEventCreate_v3020, cudaEventCreate, 133) \
	X(cudaEventCreateWithFlags_v3020, cudaEventCreateWithFlags, 134) \
	X(cudaEventRecord_v3020, cudaEventRecord, 135) \
	X(cudaEventDestroy_v3020, cudaEventDestroy, 136) \
	X(cudaEventSynchronize_v3020, cudaEventSynchronize, 137) \
	X(cudaEventQuery_v3020, cudaEventQuery, 138) \
	X(cudaStreamWaitEvent_v3020, cudaStreamWaitEvent, 147) \
	X(cudaMemcpyPeer_v4000, cudaMemcpyPeer, 160) \
	X(cudaMemcpyPeerAsync_v4000, cudaMemcpyPeerAsync, 161) \
	X(cudaDeviceSynchronize_v3020, cudaDeviceSynchronize, 165) \
	X(cudaStreamCreateWithFlags_v5000, cudaStreamCreateWithFlags, 198) \
	X(cudaStreamDestroy_v5050, cudaStreamDestroy, 201) \
	X(cudaStreamCreateWithPriority_v5050, cudaStreamCreateWithPriority, 202) \
	X(cudaMallocManaged_v6000, cudaMallocManaged, 206) \
	X(cudaLaunchKernel_v7000, cudaLaunchKernel, 211) \
	X(cudaLaunchKernel_ptsz_v7000, cudaLaunchKernel_ptsz, 214) \
	X(cudaMemcpy_ptds_v7000, cudaMemcpy_ptds, 215) \
	X(cudaMemcpyAsync_ptsz_v7000, cudaMemcpyAsync_ptsz, 225) \
	X(cudaMemcpy2DAsync_ptsz_v7000, cudaMemcpy2DAsync_ptsz, 228) \
	X(cudaMemset_ptds_v7000, cudaMemset_ptds, 233) \
	X(cudaMemsetAsync_ptsz_v7000, cudaMemsetAsync_ptsz, 235) \
	X(cudaStreamSynchronize_ptsz_v7000, cudaStreamSynchronize_ptsz, 239) \
	X(cudaStreamQuery_ptsz_v7000, cudaStreamQuery_ptsz, 240) \
	X(cudaEventRecord_ptsz_v7000, cudaEventRecord_ptsz, 242) \
	X(cudaStreamWaitEvent_ptsz_v7000, cudaStreamWaitEvent_ptsz, 247) \
	X(cudaLaunchCooperativeKernel_v9000, cudaLaunchCooperativeKernel, 269) \
	X(cudaLaunchCooperativeKernel_ptsz_v9000, cudaLaunchCooperativeKernel_ptsz, 270) \
	X(cudaGraphCreate_v10000, cudaGraphCreate, 286) \
	X(cudaGraphLaunch_v10000, cudaGraphLaunch, 311) \
	X(cudaGraphLaunch_ptsz_v10000, cudaGraphLaunch_ptsz, 312) \
	X(cudaGraphExecDestroy_v10000, cudaGraphExecDestroy, 313) \
	X(cudaGraphDestroy_v10000, cudaGraphDestroy, 314) \
	X(cudaStreamBeginCapture_v10000, cudaStreamBeginCapture, 315) \
	X(cudaStreamBeginCapture_ptsz_v10000, cudaStreamBeginCapture_ptsz, 316) \
	X(cudaStreamEndCapture_v10000, cudaStreamEndCapture, 319) \
	X(cudaStreamEndCapture_ptsz_v10000, cudaStreamEndCapture_ptsz, 320) \
	X(cudaMallocAsync_v11020, cudaMallocAsync, 373) \
	X(cudaMallocAsync_ptsz_v11020, cudaMallocAsync_ptsz, 374) \
	X(cudaFreeAsync_v11020, cudaFreeAsync, 375) \
	X(cudaFreeAsync_ptsz_v11020, cudaFreeAsync_ptsz, 376) \
	X(cudaLaunchKernelExC_v11060, cudaLaunchKernelExC, 430) \
	X(cudaLaunchKernelExC_ptsz_v11060, cudaLaunchKernelExC_ptsz, 431) \
	X(cudaGetKernel_v12000, cudaGetKernel, 439) \
	X(cudaGraphInstantiate_v12000, cudaGraphInstantiate, 443) \
	X(cudaEventElapsedTime_v12080, cudaEventElapsedTime, 486) \
	X(__cudaGetKernel_v13000, __cudaGetKernel, 504) \
	X(__cudaLaunchKernel_v13000, __cudaLaunchKernel, 505) \
	X(__cudaLaunchKernel_ptsz_v13000, __cudaLaunchKernel_ptsz, 506)
/* clang-format on */

enum xd_driver_cbid {
#define XD_ONE(name, number) XD_##name = number,
	XD_DRIVER_CBIDS(XD_ONE)
#undef XD_ONE
};
enum xd_runtime_cbid {
#define XD_ONE(name, function, number) XD_##function = number,
	XD_RUNTIME_CBIDS(XD_ONE)
#undef XD_ONE
};
#define XD_MAX_CBID 1024

#endif
