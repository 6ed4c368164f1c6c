/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libcuda.c - the driver API of the simulated GPU, with the real symbols. Device memory is ordinary
 * memory, copies and sets are done when they are called, kernels compute nothing.
 *
 * As the real driver does, cuInit loads the library that CUDA_INJECTION64_PATH names and calls its
 * InitializeInjection, once.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define XD_BODIES
#include "stubs.h" /* first: it names what follows */
#include "engine.h"

struct CUmod_st {
	int unused;
};
struct CUlib_st {
	int unused;
};
struct CUfunc_st {
	char *name;
	uint16_t registers;
	uint32_t shared;
	struct CUfunc_st *next;
};
struct CUevent_st {
	uint32_t id;
	CUstream stream;
	uint64_t at; /* ns at which the work before it is done */
	uint64_t position; /* in the stream */
	uint64_t sync_id;
};
struct CUmemPoolHandle_st {
	uint64_t used;
};
/* in front of each allocation */
struct block {
	uint64_t magic, bytes;
	int device;
	uint8_t kind;
	CUmemoryPool pool;
};
enum { MAGIC = 0x0b10cced, HEAD = 64 };

static struct {
	pthread_mutex_t lock;
	CUfunction functions;
	_Atomic uint32_t events;
	_Atomic uint64_t sync_ids;
	_Atomic bool injected;
} driver = {.lock = PTHREAD_MUTEX_INITIALIZER};

#define XD_CALL(name)                                                                              \
	struct xd_call call;                                                                       \
	xd_enter(&call, XD_DRIVER, XD_##name);                                                     \
	if (call.fail || !xd_alive())                                                              \
	return xd_leave(&call, CUDA_ERROR_NOT_INITIALIZED)
#define XD_RETURN(result) return xd_leave(&call, (result))

/* ---- start, devices, contexts ---------------------------------------------------- */

static void inject(void)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	int (*initialize)(void);
	void *library;

	if (!path || !*path || atomic_exchange(&driver.injected, true))
		return;
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return;
	initialize = (int (*)(void))dlsym(library, "InitializeInjection");
	if (initialize)
		initialize();
}

CUresult cuInit(unsigned int flags)
{
	int result = xd_start();
	struct xd_call call;

	(void)flags;
	xd_enter(&call, XD_DRIVER, XD_cuInit);
	if (!result)
		inject();
	XD_RETURN(result);
}

CUresult cuDriverGetVersion(int *version)
{
	struct xd_call call;

	xd_enter(&call, XD_DRIVER, XD_cuDriverGetVersion);
	*version = (int)xd_env("XSP_DOUBLE_DRIVER", 13000);
	XD_RETURN(CUDA_SUCCESS);
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
	*text = error == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory"
		: error				  ? "an error"
						  : "no error";
	return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **text)
{
	*text = error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
		: error				  ? "CUDA_ERROR"
						  : "CUDA_SUCCESS";
	return CUDA_SUCCESS;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
			     int *status)
{
	char with[96];
	XD_CALL(cuGetProcAddress_v2);

	(void)version;
	snprintf(with, sizeof(with), "%s_v2%s", symbol, flags & 2 ? "_ptsz" : "");
	*function = dlsym(RTLD_DEFAULT, with);
	if (!*function && flags & 2) {
		snprintf(with, sizeof(with), "%s_ptsz", symbol);
		*function = dlsym(RTLD_DEFAULT, with);
	}
	if (!*function)
		*function = dlsym(RTLD_DEFAULT, symbol);
	if (status)
		*status = *function ? 0 : 1;
	XD_RETURN(*function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND);
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	XD_CALL(cuDeviceGet);
	*device = ordinal;
	XD_RETURN(ordinal < xd_devices() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE);
}

CUresult cuDeviceGetCount(int *count)
{
	XD_CALL(cuDeviceGetCount);
	*count = xd_devices();
	XD_RETURN(CUDA_SUCCESS);
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
	XD_CALL(cuDeviceGetName);
	snprintf(name, (size_t)length, "Simulated GPU %d", device);
	XD_RETURN(CUDA_SUCCESS);
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
	XD_CALL(cuDeviceGetUuid_v2);
	memset(uuid, 0xd0 + device, sizeof(*uuid));
	XD_RETURN(CUDA_SUCCESS);
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
	return cuDeviceGetUuid_v2(uuid, device);
}

CUresult cuDeviceGetPCIBusId(char *text, int length, CUdevice device)
{
	XD_CALL(cuDeviceGetPCIBusId);
	snprintf(text, (size_t)length, "0000:%02x:00.0", 0x41 + device);
	XD_RETURN(CUDA_SUCCESS);
}

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
	/* an H100's; attribute numbers of CUdevice_attribute in cuda.h */
	static const int values[128] = {
		[1] = 1024,    [8] = 49152, [10] = 32,	    [12] = 65536,  [13] = 1980000,
		[16] = 132,    [34] = 0,    [36] = 2619000, [37] = 5120,   [38] = 52428800,
		[39] = 2048,   [75] = 9,    [76] = 0,	    [81] = 233472, [82] = 65536,
		[97] = 232448, [106] = 32,  [111] = 1024,
	};
	XD_CALL(cuDeviceGetAttribute);

	if (attribute < 0 || attribute >= 128 || device >= xd_devices())
		XD_RETURN(CUDA_ERROR_INVALID_VALUE);
	*value = attribute == 33 ? 0x41 + device : values[attribute];
	XD_RETURN(CUDA_SUCCESS);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	XD_CALL(cuDeviceTotalMem_v2);
	(void)device;
	*bytes = (size_t)80 << 30;
	XD_RETURN(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	XD_CALL(cuDevicePrimaryCtxRetain);
	if (device < 0 || device >= xd_devices())
		XD_RETURN(CUDA_ERROR_INVALID_DEVICE);
	*context = xd_context(device);
	XD_RETURN(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	XD_CALL(cuDevicePrimaryCtxRelease_v2);
	(void)device;
	XD_RETURN(CUDA_SUCCESS);
}

static int context_create(CUcontext *context, CUdevice device)
{
	if (device < 0 || device >= xd_devices())
		return CUDA_ERROR_INVALID_DEVICE;
	*context = xd_context_new(device);
	*xd_current() = *context;
	return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
	XD_CALL(cuCtxCreate_v2);
	(void)flags;
	XD_RETURN(context_create(context, device));
}

CUresult cuCtxCreate_v4(CUcontext *context, void *parameters, unsigned int flags, CUdevice device)
{
	XD_CALL(cuCtxCreate_v4);
	(void)parameters;
	(void)flags;
	XD_RETURN(context_create(context, device));
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
	XD_CALL(cuCtxDestroy_v2);
	xd_wait_context(context);
	if (*xd_current() == context)
		*xd_current() = NULL;
	XD_RETURN(CUDA_SUCCESS);
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
	XD_CALL(cuCtxGetCurrent);
	*context = *xd_current();
	XD_RETURN(CUDA_SUCCESS);
}

CUresult cuCtxSetCurrent(CUcontext context)
{
	XD_CALL(cuCtxSetCurrent);
	*xd_current() = context;
	XD_RETURN(CUDA_SUCCESS);
}

CUresult cuCtxGetDevice(CUdevice *device)
{
	XD_CALL(cuCtxGetDevice);
	if (!*xd_current())
		XD_RETURN(201); /* CUDA_ERROR_INVALID_CONTEXT */
	*device = (*xd_current())->device;
	XD_RETURN(CUDA_SUCCESS);
}

/* ---- modules and functions ------------------------------------------------------- */

static CUfunction function_get(const char *name)
{
	CUfunction f;

	pthread_mutex_lock(&driver.lock);
	for (f = driver.functions; f && strcmp(f->name, name); f = f->next)
		;
	if (!f) {
		f = calloc(1, sizeof(*f));
		if (!f || !(f->name = strdup(name)))
			abort();
		f->registers = (uint16_t)(16 + strlen(name) % 48);
		f->shared = (uint32_t)(strlen(name) % 8) * 1024;
		f->next = driver.functions;
		driver.functions = f;
	}
	pthread_mutex_unlock(&driver.lock);
	return f;
}

static int module_new(CUmodule *module)
{
	*module = calloc(1, sizeof(**module));
	return *module ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuModuleLoad(CUmodule *module, const char *path)
{
	XD_CALL(cuModuleLoad);
	(void)path;
	XD_RETURN(module_new(module));
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	XD_CALL(cuModuleLoadData);
	(void)image;
	XD_RETURN(module_new(module));
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count, int *options,
			    void **values)
{
	XD_CALL(cuModuleLoadDataEx);
	(void)image;
	(void)count;
	(void)options;
	(void)values;
	XD_RETURN(module_new(module));
}

CUresult cuModuleUnload(CUmodule module)
{
	XD_CALL(cuModuleUnload);
	free(module);
	XD_RETURN(CUDA_SUCCESS);
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
	XD_CALL(cuModuleGetFunction);
	(void)module;
	*function = function_get(name);
	XD_RETURN(CUDA_SUCCESS);
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, int *jit, void **jit_values,
			   unsigned int jit_count, int *options, void **values, unsigned int count)
{
	XD_CALL(cuLibraryLoadData);
	(void)code;
	(void)jit;
	(void)jit_values;
	(void)jit_count;
	(void)options;
	(void)values;
	(void)count;
	*library = calloc(1, sizeof(**library));
	XD_RETURN(*library ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult cuLibraryUnload(CUlibrary library)
{
	XD_CALL(cuLibraryUnload);
	free(library);
	XD_RETURN(CUDA_SUCCESS);
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
	XD_CALL(cuLibraryGetKernel);
	(void)library;
	*kernel = (CUkernel)function_get(name);
	XD_RETURN(CUDA_SUCCESS);
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
	XD_CALL(cuKernelGetFunction);
	*function = (CUfunction)kernel;
	XD_RETURN(CUDA_SUCCESS);
}

CUresult cuFuncGetName(const char **name, CUfunction function)
{
	XD_CALL(cuFuncGetName);
	*name = function->name;
	XD_RETURN(CUDA_SUCCESS);
}

/* ---- launches -------------------------------------------------------------------- */

static void op_kernel(struct xd_op *op, CUfunction f, const uint32_t grid[3],
		      const uint32_t block[3], uint32_t shared)
{
	*op = (struct xd_op){.kind = XD_KERNEL,
			     .name = f->name,
			     .registers = f->registers,
			     .static_shared = f->shared,
			     .dynamic_shared = shared};
	memcpy(op->grid, grid, sizeof(op->grid));
	memcpy(op->block, block, sizeof(op->block));
}

static int launch(CUfunction f, const uint32_t grid[3], const uint32_t block[3], uint32_t shared,
		  CUstream handle, bool per_thread, uint8_t type)
{
	CUstream stream = xd_stream(handle, per_thread);
	struct xd_op op;

	if (!f || !grid[0] || !block[0])
		return CUDA_ERROR_INVALID_VALUE;
	op_kernel(&op, f, grid, block, shared);
	op.launch_type = type;
	return xd_queue(stream, &op);
}

#define LAUNCH_KERNEL(name, per_thread)                                                            \
	CUresult name(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,             \
		      unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,      \
		      CUstream stream, void **parameters, void **extra)                            \
	{                                                                                          \
		XD_CALL(name);                                                                     \
		(void)parameters;                                                                  \
		(void)extra;                                                                       \
		XD_RETURN(launch(f, (uint32_t[]){gx, gy, gz}, (uint32_t[]){bx, by, bz}, shared,    \
				 stream, per_thread, 0));                                          \
	}
LAUNCH_KERNEL(cuLaunchKernel, false)
LAUNCH_KERNEL(cuLaunchKernel_ptsz, true)

#define LAUNCH_COOPERATIVE(name, per_thread)                                                       \
	CUresult name(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,             \
		      unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,      \
		      CUstream stream, void **parameters)                                          \
	{                                                                                          \
		XD_CALL(name);                                                                     \
		(void)parameters;                                                                  \
		XD_RETURN(launch(f, (uint32_t[]){gx, gy, gz}, (uint32_t[]){bx, by, bz}, shared,    \
				 stream, per_thread, 1));                                          \
	}
LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel, false)
LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel_ptsz, true)

#define LAUNCH_EX(name, per_thread)                                                                \
	CUresult name(const CUlaunchConfig *c, CUfunction f, void **parameters, void **extra)      \
	{                                                                                          \
		XD_CALL(name);                                                                     \
		(void)parameters;                                                                  \
		(void)extra;                                                                       \
		XD_RETURN(launch(f, (uint32_t[]){c->gridDimX, c->gridDimY, c->gridDimZ},           \
				 (uint32_t[]){c->blockDimX, c->blockDimY, c->blockDimZ},           \
				 c->sharedMemBytes, c->hStream, per_thread, 0));                   \
	}
LAUNCH_EX(cuLaunchKernelEx, false)
LAUNCH_EX(cuLaunchKernelEx_ptsz, true)

/* ---- memory ---------------------------------------------------------------------- */

static struct block *block_of(uint64_t address)
{
	struct block *b = (struct block *)(uintptr_t)(address - HEAD);

	return address && b->magic == MAGIC ? b : NULL;
}

static int allocate(const struct xd_call *call, uint64_t *address, size_t bytes, uint8_t kind,
		    CUstream stream, bool async, CUmemoryPool pool)
{
	CUcontext context = stream ? stream->context : *xd_current();
	struct block *b;
	struct xd_memory m;

	if (!context)
		return 201; /* CUDA_ERROR_INVALID_CONTEXT */
	b = bytes > (size_t)16 << 30 ? NULL : malloc(HEAD + bytes);
	if (!b)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*b = (struct block){.magic = MAGIC,
			    .bytes = bytes,
			    .kind = kind,
			    .device = context->device,
			    .pool = pool};
	*address = (uint64_t)(uintptr_t)b + HEAD;
	if (kind != XD_PINNED)
		xd_count_memory((int64_t)bytes);
	m = (struct xd_memory){.kind = kind,
			       .async = async,
			       .address = *address,
			       .bytes = bytes,
			       .time = xd_now(),
			       .pool = (uint64_t)(uintptr_t)pool,
			       .correlation = call->correlation,
			       .stream = stream ? stream->id : ~0U,
			       .context = context};
	xd_report_memory(&m);
	return CUDA_SUCCESS;
}

static int release(const struct xd_call *call, uint64_t address, CUstream stream, bool async)
{
	struct block *b = block_of(address);
	struct xd_memory m;

	if (!address)
		return CUDA_SUCCESS;
	if (!b)
		return CUDA_ERROR_INVALID_VALUE;
	if (b->kind != XD_PINNED)
		xd_count_memory(-(int64_t)b->bytes);
	m = (struct xd_memory){.release = true,
			       .kind = b->kind,
			       .async = async,
			       .address = address,
			       .bytes = b->bytes,
			       .time = xd_now(),
			       .pool = (uint64_t)(uintptr_t)b->pool,
			       .correlation = call->correlation,
			       .stream = stream ? stream->id : ~0U,
			       .context = stream ? stream->context : *xd_current()};
	xd_report_memory(&m);
	b->magic = 0;
	free(b);
	return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *available, size_t *total)
{
	XD_CALL(cuMemGetInfo_v2);
	*available = *total = (size_t)80 << 30;
	XD_RETURN(CUDA_SUCCESS);
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
	uint64_t a = 0;
	int result;
	XD_CALL(cuMemAlloc_v2);

	result = allocate(&call, &a, bytes, XD_DEVICE, NULL, false, NULL);
	*address = a;
	XD_RETURN(result);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
			    unsigned int element)
{
	uint64_t a = 0;
	int result;
	XD_CALL(cuMemAllocPitch_v2);

	(void)element;
	*pitch = (width + 511) & ~(size_t)511;
	result = allocate(&call, &a, *pitch * height, XD_DEVICE, NULL, false, NULL);
	*address = a;
	XD_RETURN(result);
}

CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned int flags)
{
	uint64_t a = 0;
	int result;
	XD_CALL(cuMemAllocManaged);

	(void)flags;
	result = allocate(&call, &a, bytes, XD_MANAGED, NULL, false, NULL);
	*address = a;
	XD_RETURN(result);
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
	XD_CALL(cuMemFree_v2);
	XD_RETURN(release(&call, address, NULL, false));
}

CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned int flags)
{
	uint64_t a = 0;
	int result;
	XD_CALL(cuMemHostAlloc);

	(void)flags;
	result = allocate(&call, &a, bytes, XD_PINNED, NULL, false, NULL);
	*address = (void *)(uintptr_t)a;
	XD_RETURN(result);
}

CUresult cuMemAllocHost_v2(void **address, size_t bytes)
{
	uint64_t a = 0;
	int result;
	XD_CALL(cuMemAllocHost_v2);

	result = allocate(&call, &a, bytes, XD_PINNED, NULL, false, NULL);
	*address = (void *)(uintptr_t)a;
	XD_RETURN(result);
}

CUresult cuMemFreeHost(void *address)
{
	XD_CALL(cuMemFreeHost);
	XD_RETURN(release(&call, (uintptr_t)address, NULL, false));
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const void *properties)
{
	XD_CALL(cuMemPoolCreate);
	(void)properties;
	*pool = calloc(1, sizeof(**pool));
	XD_RETURN(*pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	XD_CALL(cuMemPoolDestroy);
	free(pool);
	XD_RETURN(CUDA_SUCCESS);
}

#define ALLOC_ASYNC(name, per_thread)                                                              \
	CUresult name(CUdeviceptr *address, size_t bytes, CUstream stream)                         \
	{                                                                                          \
		uint64_t a = 0;                                                                    \
		int result;                                                                        \
		XD_CALL(name);                                                                     \
		result = allocate(&call, &a, bytes, XD_DEVICE, xd_stream(stream, per_thread),      \
				  true, NULL);                                                     \
		*address = a;                                                                      \
		XD_RETURN(result);                                                                 \
	}
ALLOC_ASYNC(cuMemAllocAsync, false)
ALLOC_ASYNC(cuMemAllocAsync_ptsz, true)

#define ALLOC_POOL(name, per_thread)                                                               \
	CUresult name(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream)      \
	{                                                                                          \
		uint64_t a = 0;                                                                    \
		int result;                                                                        \
		XD_CALL(name);                                                                     \
		result = allocate(&call, &a, bytes, XD_DEVICE, xd_stream(stream, per_thread),      \
				  true, pool);                                                     \
		*address = a;                                                                      \
		XD_RETURN(result);                                                                 \
	}
ALLOC_POOL(cuMemAllocFromPoolAsync, false)
ALLOC_POOL(cuMemAllocFromPoolAsync_ptsz, true)

#define FREE_ASYNC(name, per_thread)                                                               \
	CUresult name(CUdeviceptr address, CUstream stream)                                        \
	{                                                                                          \
		XD_CALL(name);                                                                     \
		XD_RETURN(release(&call, address, xd_stream(stream, per_thread), true));           \
	}
FREE_ASYNC(cuMemFreeAsync, false)
FREE_ASYNC(cuMemFreeAsync_ptsz, true)

/* ---- copies and sets ------------------------------------------------------------- */

struct copy {
	void *to;
	const void *from;
	size_t bytes;
	uint8_t kind, from_kind, to_kind;
};

static int copy_queue(const struct copy *c, CUstream handle, bool per_thread, bool async)
{
	CUstream stream = xd_stream(handle, per_thread);
	struct xd_op op = {.kind = XD_MEMCPY,
			   .async = async,
			   .copy_kind = c->kind,
			   .from_kind = c->from_kind,
			   .to_kind = c->to_kind,
			   .bytes = c->bytes};
	int result;

	if (!stream || !c->to || !c->from)
		return CUDA_ERROR_INVALID_VALUE;
	memmove(c->to, c->from, c->bytes);
	result = xd_queue(stream, &op);
	if (!async && !result && !stream->capture)
		xd_wait_stream(stream);
	return result;
}

#define POINTER(address) ((void *)(uintptr_t)(address))
#define COPY_KIND_H2D XD_HTOD, XD_PAGEABLE, XD_DEVICE
#define COPY_KIND_H2D_ASYNC XD_HTOD, XD_PINNED, XD_DEVICE
#define COPY_KIND_D2H XD_DTOH, XD_DEVICE, XD_PAGEABLE
#define COPY_KIND_D2H_ASYNC XD_DTOH, XD_DEVICE, XD_PINNED
#define COPY_KIND_D2D XD_DTOD, XD_DEVICE, XD_DEVICE

#define COPY(name, to_type, from_type, what, per_thread)                                           \
	CUresult name(to_type to, from_type from, size_t bytes)                                    \
	{                                                                                          \
		XD_CALL(name);                                                                     \
		XD_RETURN(copy_queue(&(struct copy){POINTER(to), POINTER(from), bytes, what},      \
				     NULL, per_thread, false));                                    \
	}
#define COPY_ASYNC(name, to_type, from_type, what, per_thread)                                     \
	CUresult name(to_type to, from_type from, size_t bytes, CUstream stream)                   \
	{                                                                                          \
		XD_CALL(name);                                                                     \
		XD_RETURN(copy_queue(&(struct copy){POINTER(to), POINTER(from), bytes, what},      \
				     stream, per_thread, true));                                   \
	}
COPY(cuMemcpy, CUdeviceptr, CUdeviceptr, COPY_KIND_D2D, false)
COPY(cuMemcpy_ptds, CUdeviceptr, CUdeviceptr, COPY_KIND_D2D, true)
COPY(cuMemcpyHtoD_v2, CUdeviceptr, const void *, COPY_KIND_H2D, false)
COPY(cuMemcpyHtoD_v2_ptds, CUdeviceptr, const void *, COPY_KIND_H2D, true)
COPY(cuMemcpyDtoH_v2, void *, CUdeviceptr, COPY_KIND_D2H, false)
COPY(cuMemcpyDtoH_v2_ptds, void *, CUdeviceptr, COPY_KIND_D2H, true)
COPY(cuMemcpyDtoD_v2, CUdeviceptr, CUdeviceptr, COPY_KIND_D2D, false)
COPY(cuMemcpyDtoD_v2_ptds, CUdeviceptr, CUdeviceptr, COPY_KIND_D2D, true)
COPY_ASYNC(cuMemcpyAsync, CUdeviceptr, CUdeviceptr, COPY_KIND_D2D, false)
COPY_ASYNC(cuMemcpyAsync_ptsz, CUdeviceptr, CUdeviceptr, COPY_KIND_D2D, true)
COPY_ASYNC(cuMemcpyHtoDAsync_v2, CUdeviceptr, const void *, COPY_KIND_H2D_ASYNC, false)
COPY_ASYNC(cuMemcpyHtoDAsync_v2_ptsz, CUdeviceptr, const void *, COPY_KIND_H2D_ASYNC, true)
COPY_ASYNC(cuMemcpyDtoHAsync_v2, void *, CUdeviceptr, COPY_KIND_D2H_ASYNC, false)
COPY_ASYNC(cuMemcpyDtoHAsync_v2_ptsz, void *, CUdeviceptr, COPY_KIND_D2H_ASYNC, true)
COPY_ASYNC(cuMemcpyDtoDAsync_v2, CUdeviceptr, CUdeviceptr, COPY_KIND_D2D, false)
COPY_ASYNC(cuMemcpyDtoDAsync_v2_ptsz, CUdeviceptr, CUdeviceptr, COPY_KIND_D2D, true)

static int copy_peer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
		     size_t bytes, CUstream handle, bool per_thread, bool async)
{
	CUstream stream = xd_stream(handle, per_thread);
	struct xd_op op = {.kind = XD_MEMCPY_P2P,
			   .async = async,
			   .copy_kind = XD_PTOP,
			   .from_kind = XD_DEVICE,
			   .to_kind = XD_DEVICE,
			   .bytes = bytes};
	int result;

	if (!stream || !to || !from || !to_context || !from_context)
		return CUDA_ERROR_INVALID_VALUE;
	op.from_device = from_context->device;
	op.to_device = to_context->device;
	memmove(POINTER(to), POINTER(from), bytes);
	result = xd_queue(stream, &op);
	if (!async && !result)
		xd_wait_stream(stream);
	return result;
}

#define COPY_PEER(name, per_thread)                                                                \
	CUresult name(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,                      \
		      CUcontext from_context, size_t bytes)                                        \
	{                                                                                          \
		XD_CALL(name);                                                                     \
		XD_RETURN(copy_peer(to, to_context, from, from_context, bytes, NULL, per_thread,   \
				    false));                                                       \
	}
COPY_PEER(cuMemcpyPeer, false)
COPY_PEER(cuMemcpyPeer_ptds, true)
#define COPY_PEER_ASYNC(name, per_thread)                                                          \
	CUresult name(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,                      \
		      CUcontext from_context, size_t bytes, CUstream stream)                       \
	{                                                                                          \
		XD_CALL(name);                                                                     \
		XD_RETURN(copy_peer(to, to_context, from, from_context, bytes, stream, per_thread, \
				    true));                                                        \
	}
COPY_PEER_ASYNC(cuMemcpyPeerAsync, false)
COPY_PEER_ASYNC(cuMemcpyPeerAsync_ptsz, true)

/* host: 1 is CU_MEMORYTYPE_HOST */
static void copy_side(unsigned type, const void *host, CUdeviceptr device, size_t offset,
		      const void **at, uint8_t *kind)
{
	*at = (const char *)(type == 1 ? host : POINTER(device)) + offset;
	*kind = type == 1 ? XD_PAGEABLE : XD_DEVICE;
}

static uint8_t copy_kind(uint8_t from, uint8_t to)
{
	if (from == XD_DEVICE)
		return to == XD_DEVICE ? XD_DTOD : XD_DTOH;
	return to == XD_DEVICE ? XD_HTOD : XD_HTOH;
}

static int copy_3d(const CUDA_MEMCPY3D *c, CUstream handle, bool per_thread, bool async)
{
	CUstream stream = xd_stream(handle, per_thread);
	struct xd_op op = {
		.kind = XD_MEMCPY, .async = async, .bytes = c->WidthInBytes * c->Height * c->Depth};
	int result;

	if (!stream)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t z = 0; z < c->Depth; z++)
		for (size_t y = 0; y < c->Height; y++) {
			const void *from, *to;

			copy_side(c->srcMemoryType, c->srcHost, c->srcDevice,
				  ((z + c->srcZ) * c->srcHeight + y + c->srcY) * c->srcPitch +
					  c->srcXInBytes,
				  &from, &op.from_kind);
			copy_side(c->dstMemoryType, c->dstHost, c->dstDevice,
				  ((z + c->dstZ) * c->dstHeight + y + c->dstY) * c->dstPitch +
					  c->dstXInBytes,
				  &to, &op.to_kind);
			memmove((void *)(uintptr_t)to, from, c->WidthInBytes);
		}
	op.copy_kind = copy_kind(op.from_kind, op.to_kind);
	result = xd_queue(stream, &op);
	if (!async && !result)
		xd_wait_stream(stream);
	return result;
}

static int copy_2d(const CUDA_MEMCPY2D *c, CUstream stream, bool per_thread, bool async)
{
	CUDA_MEMCPY3D d = {.srcXInBytes = c->srcXInBytes,
			   .srcY = c->srcY,
			   .srcMemoryType = c->srcMemoryType,
			   .srcHost = c->srcHost,
			   .srcDevice = c->srcDevice,
			   .srcPitch = c->srcPitch,
			   .dstXInBytes = c->dstXInBytes,
			   .dstY = c->dstY,
			   .dstMemoryType = c->dstMemoryType,
			   .dstHost = c->dstHost,
			   .dstDevice = c->dstDevice,
			   .dstPitch = c->dstPitch,
			   .WidthInBytes = c->WidthInBytes,
			   .Height = c->Height,
			   .Depth = 1};

	return copy_3d(&d, stream, per_thread, async);
}

#define COPY_SHAPED(name, shape, function, per_thread)                                             \
	CUresult name(const shape *copy)                                                           \
	{                                                                                          \
		XD_CALL(name);                                                                     \
		XD_RETURN(function(copy, NULL, per_thread, false));                                \
	}
#define COPY_SHAPED_ASYNC(name, shape, function, per_thread)                                       \
	CUresult name(const shape *copy, CUstream stream)                                          \
	{                                                                                          \
		XD_CALL(name);                                                                     \
		XD_RETURN(function(copy, stream, per_thread, true));                               \
	}
COPY_SHAPED(cuMemcpy2D_v2, CUDA_MEMCPY2D, copy_2d, false)
COPY_SHAPED(cuMemcpy2D_v2_ptds, CUDA_MEMCPY2D, copy_2d, true)
COPY_SHAPED(cuMemcpy3D_v2, CUDA_MEMCPY3D, copy_3d, false)
COPY_SHAPED(cuMemcpy3D_v2_ptds, CUDA_MEMCPY3D, copy_3d, true)
COPY_SHAPED_ASYNC(cuMemcpy2DAsync_v2, CUDA_MEMCPY2D, copy_2d, false)
COPY_SHAPED_ASYNC(cuMemcpy2DAsync_v2_ptsz, CUDA_MEMCPY2D, copy_2d, true)
COPY_SHAPED_ASYNC(cuMemcpy3DAsync_v2, CUDA_MEMCPY3D, copy_3d, false)
COPY_SHAPED_ASYNC(cuMemcpy3DAsync_v2_ptsz, CUDA_MEMCPY3D, copy_3d, true)

static int set(CUdeviceptr to, uint32_t value, size_t element, size_t count, CUstream handle,
	       bool per_thread, bool async)
{
	CUstream stream = xd_stream(handle, per_thread);
	struct xd_op op = {
		.kind = XD_MEMSET, .async = async, .value = value, .bytes = element * count};

	if (!stream || !to)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++)
		memcpy((char *)POINTER(to) + i * element, &value, element);
	return xd_queue(stream, &op);
}

#define SET(name, type, per_thread)                                                                \
	CUresult name(CUdeviceptr to, type value, size_t count)                                    \
	{                                                                                          \
		XD_CALL(name);                                                                     \
		XD_RETURN(set(to, value, sizeof(value), count, NULL, per_thread, false));          \
	}
#define SET_ASYNC(name, type, per_thread)                                                          \
	CUresult name(CUdeviceptr to, type value, size_t count, CUstream stream)                   \
	{                                                                                          \
		XD_CALL(name);                                                                     \
		XD_RETURN(set(to, value, sizeof(value), count, stream, per_thread, true));         \
	}
SET(cuMemsetD8_v2, unsigned char, false)
SET(cuMemsetD8_v2_ptds, unsigned char, true)
SET(cuMemsetD16_v2, unsigned short, false)
SET(cuMemsetD16_v2_ptds, unsigned short, true)
SET(cuMemsetD32_v2, unsigned int, false)
SET(cuMemsetD32_v2_ptds, unsigned int, true)
SET_ASYNC(cuMemsetD8Async, unsigned char, false)
SET_ASYNC(cuMemsetD8Async_ptsz, unsigned char, true)
SET_ASYNC(cuMemsetD16Async, unsigned short, false)
SET_ASYNC(cuMemsetD16Async_ptsz, unsigned short, true)
SET_ASYNC(cuMemsetD32Async, unsigned int, false)
SET_ASYNC(cuMemsetD32Async_ptsz, unsigned int, true)

#define SET_2D(name, per_thread)                                                                   \
	CUresult name(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,             \
		      size_t height)                                                               \
	{                                                                                          \
		XD_CALL(name);                                                                     \
		(void)pitch;                                                                       \
		XD_RETURN(set(to, value, 1, width *height, NULL, per_thread, false));              \
	}
SET_2D(cuMemsetD2D8_v2, false)
SET_2D(cuMemsetD2D8_v2_ptds, true)

/* ---- streams, events, waiting ---------------------------------------------------- */

static int stream_create(CUstream *stream, int priority)
{
	if (!*xd_current())
		return 201; /* CUDA_ERROR_INVALID_CONTEXT */
	*stream = xd_stream_new(*xd_current(), priority);
	return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
	XD_CALL(cuStreamCreate);
	(void)flags;
	XD_RETURN(stream_create(stream, 0));
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
	XD_CALL(cuStreamCreateWithPriority);
	(void)flags;
	XD_RETURN(stream_create(stream, priority));
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
	XD_CALL(cuStreamDestroy_v2);
	xd_stream_free(stream);
	XD_RETURN(CUDA_SUCCESS);
}

static int synchronize(const struct xd_call *call, CUstream stream)
{
	struct xd_sync s = {.kind = XD_SYNC_STREAM, .correlation = call->correlation, .event = ~0U};

	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	s.start = xd_now();
	xd_wait_stream(stream);
	s.end = xd_now();
	s.stream = stream->id;
	s.context = stream->context;
	xd_report_sync(&s);
	return CUDA_SUCCESS;
}

#define STREAM_SYNCHRONIZE(name, per_thread)                                                       \
	CUresult name(CUstream stream)                                                             \
	{                                                                                          \
		XD_CALL(name);                                                                     \
		XD_RETURN(synchronize(&call, xd_stream(stream, per_thread)));                      \
	}
STREAM_SYNCHRONIZE(cuStreamSynchronize, false)
STREAM_SYNCHRONIZE(cuStreamSynchronize_ptsz, true)

CUresult cuCtxSynchronize(void)
{
	struct xd_sync s = {.kind = XD_SYNC_CONTEXT, .stream = ~0U, .event = ~0U};
	XD_CALL(cuCtxSynchronize);

	s.correlation = call.correlation;
	s.context = *xd_current();
	if (!s.context)
		XD_RETURN(201); /* CUDA_ERROR_INVALID_CONTEXT */
	s.start = xd_now();
	xd_wait_context(s.context);
	s.end = xd_now();
	xd_report_sync(&s);
	XD_RETURN(CUDA_SUCCESS);
}

#define STREAM_QUERY(name, per_thread)                                                             \
	CUresult name(CUstream stream)                                                             \
	{                                                                                          \
		XD_CALL(name);                                                                     \
		stream = xd_stream(stream, per_thread);                                            \
		XD_RETURN(!stream		   ? CUDA_ERROR_INVALID_HANDLE                     \
			  : xd_stream_idle(stream) ? CUDA_SUCCESS                                  \
						   : CUDA_ERROR_NOT_READY);                        \
	}
STREAM_QUERY(cuStreamQuery, false)
STREAM_QUERY(cuStreamQuery_ptsz, true)

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
	XD_CALL(cuEventCreate);
	(void)flags;
	*event = calloc(1, sizeof(**event));
	if (!*event)
		XD_RETURN(CUDA_ERROR_OUT_OF_MEMORY);
	(*event)->id = atomic_fetch_add(&driver.events, 1) + 1;
	XD_RETURN(CUDA_SUCCESS);
}

CUresult cuEventDestroy_v2(CUevent event)
{
	XD_CALL(cuEventDestroy_v2);
	free(event);
	XD_RETURN(CUDA_SUCCESS);
}

static int event_record(const struct xd_call *call, CUevent event, CUstream stream)
{
	struct xd_event_record r;

	if (!event || !stream)
		return CUDA_ERROR_INVALID_HANDLE;
	event->stream = stream;
	event->at = stream->busy_until > xd_now() ? stream->busy_until : xd_now();
	event->sync_id = atomic_fetch_add(&driver.sync_ids, 1) + 1;
	r = (struct xd_event_record){.correlation = call->correlation,
				     .event = event->id,
				     .stream = stream->id,
				     .context = stream->context,
				     .sync_id = event->sync_id};
	xd_report_event(&r);
	return CUDA_SUCCESS;
}

#define EVENT_RECORD(name, per_thread)                                                             \
	CUresult name(CUevent event, CUstream stream)                                              \
	{                                                                                          \
		XD_CALL(name);                                                                     \
		XD_RETURN(event_record(&call, event, xd_stream(stream, per_thread)));              \
	}
EVENT_RECORD(cuEventRecord, false)
EVENT_RECORD(cuEventRecord_ptsz, true)
#define EVENT_RECORD_FLAGS(name, per_thread)                                                       \
	CUresult name(CUevent event, CUstream stream, unsigned int flags)                          \
	{                                                                                          \
		XD_CALL(name);                                                                     \
		(void)flags;                                                                       \
		XD_RETURN(event_record(&call, event, xd_stream(stream, per_thread)));              \
	}
EVENT_RECORD_FLAGS(cuEventRecordWithFlags, false)
EVENT_RECORD_FLAGS(cuEventRecordWithFlags_ptsz, true)

CUresult cuEventSynchronize(CUevent event)
{
	struct xd_sync s = {.kind = XD_SYNC_EVENT};
	XD_CALL(cuEventSynchronize);

	if (!event || !event->stream)
		XD_RETURN(CUDA_ERROR_INVALID_HANDLE);
	s.correlation = call.correlation;
	s.stream = event->stream->id;
	s.event = event->id;
	s.context = event->stream->context;
	s.start = xd_now();
	if (event->at > s.start)
		xd_wait_until(event->at);
	s.end = xd_now();
	xd_report_sync(&s);
	XD_RETURN(CUDA_SUCCESS);
}

CUresult cuEventQuery(CUevent event)
{
	XD_CALL(cuEventQuery);
	XD_RETURN(event && event->at <= xd_now() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
{
	XD_CALL(cuEventElapsedTime_v2);
	if (!start || !end)
		XD_RETURN(CUDA_ERROR_INVALID_HANDLE);
	*ms = (float)((double)(end->at - start->at) / 1e6);
	XD_RETURN(CUDA_SUCCESS);
}

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
	XD_CALL(cuEventElapsedTime);
	if (!start || !end)
		XD_RETURN(CUDA_ERROR_INVALID_HANDLE);
	*ms = (float)((double)(end->at - start->at) / 1e6);
	XD_RETURN(CUDA_SUCCESS);
}

static int wait_event(const struct xd_call *call, CUstream stream, CUevent event)
{
	struct xd_sync s = {.kind = XD_SYNC_WAIT_EVENT, .correlation = call->correlation};

	if (!stream || !event)
		return CUDA_ERROR_INVALID_HANDLE;
	s.start = xd_now();
	if (event->at > stream->busy_until)
		stream->busy_until = event->at;
	s.end = xd_now();
	s.stream = stream->id;
	s.event = event->id;
	s.context = stream->context;
	xd_report_sync(&s);
	return CUDA_SUCCESS;
}

#define WAIT_EVENT(name, per_thread)                                                               \
	CUresult name(CUstream stream, CUevent event, unsigned int flags)                          \
	{                                                                                          \
		XD_CALL(name);                                                                     \
		(void)flags;                                                                       \
		XD_RETURN(wait_event(&call, xd_stream(stream, per_thread), event));                \
	}
WAIT_EVENT(cuStreamWaitEvent, false)
WAIT_EVENT(cuStreamWaitEvent_ptsz, true)

/* ---- graphs ---------------------------------------------------------------------- */

CUresult cuGraphCreate(CUgraph *graph, unsigned int flags)
{
	XD_CALL(cuGraphCreate);
	(void)flags;
	*graph = xd_graph_new();
	XD_RETURN(*graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult cuGraphDestroy(CUgraph graph)
{
	XD_CALL(cuGraphDestroy);
	xd_graph_free(graph);
	XD_RETURN(CUDA_SUCCESS);
}

static int add_node(CUgraphNode *node, CUgraph graph, const struct xd_op *op)
{
	uint64_t id = 0;
	int result = xd_graph_add(graph, op, &id);

	if (node)
		*node = (CUgraphNode)(uintptr_t)id;
	return result;
}

#define ADD_KERNEL_NODE(name)                                                                      \
	CUresult name(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,           \
		      size_t count, const CUDA_KERNEL_NODE_PARAMS_v2 *p)                           \
	{                                                                                          \
		struct xd_op op;                                                                   \
		XD_CALL(name);                                                                     \
		(void)dependencies;                                                                \
		(void)count;                                                                       \
		op_kernel(&op, p->func ? p->func : (CUfunction)p->kern,                            \
			  (uint32_t[]){p->gridDimX, p->gridDimY, p->gridDimZ},                     \
			  (uint32_t[]){p->blockDimX, p->blockDimY, p->blockDimZ},                  \
			  p->sharedMemBytes);                                                      \
		XD_RETURN(add_node(node, graph, &op));                                             \
	}
ADD_KERNEL_NODE(cuGraphAddKernelNode_v2)
/* version 1 of the parameters ends before kern; the callers of the double pass func */
CUresult cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
			      size_t count, const CUDA_KERNEL_NODE_PARAMS_v2 *p)
{
	struct xd_op op;
	XD_CALL(cuGraphAddKernelNode);

	(void)dependencies;
	(void)count;
	op_kernel(&op, p->func, (uint32_t[]){p->gridDimX, p->gridDimY, p->gridDimZ},
		  (uint32_t[]){p->blockDimX, p->blockDimY, p->blockDimZ}, p->sharedMemBytes);
	XD_RETURN(add_node(node, graph, &op));
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
			      size_t count, const CUDA_MEMCPY3D *c, CUcontext context)
{
	struct xd_op op = {.kind = XD_MEMCPY, .async = 1};
	XD_CALL(cuGraphAddMemcpyNode);

	(void)dependencies;
	(void)count;
	(void)context;
	op.bytes = c->WidthInBytes * c->Height * c->Depth;
	op.from_kind = c->srcMemoryType == 1 ? XD_PAGEABLE : XD_DEVICE;
	op.to_kind = c->dstMemoryType == 1 ? XD_PAGEABLE : XD_DEVICE;
	op.copy_kind = copy_kind(op.from_kind, op.to_kind);
	XD_RETURN(add_node(node, graph, &op));
}

CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
			      size_t count, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext context)
{
	struct xd_op op = {.kind = XD_MEMSET, .async = 1};
	XD_CALL(cuGraphAddMemsetNode);

	(void)dependencies;
	(void)count;
	(void)context;
	op.bytes = p->width * p->height * p->elementSize;
	op.value = p->value;
	XD_RETURN(add_node(node, graph, &op));
}

CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *error, char *log,
			       size_t size)
{
	XD_CALL(cuGraphInstantiate_v2);
	(void)error;
	(void)log;
	(void)size;
	*exec = xd_graph_instantiate(graph);
	XD_RETURN(*exec ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
	XD_CALL(cuGraphInstantiateWithFlags);
	(void)flags;
	*exec = xd_graph_instantiate(graph);
	XD_RETURN(*exec ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
	XD_CALL(cuGraphExecDestroy);
	xd_graph_exec_free(exec);
	XD_RETURN(CUDA_SUCCESS);
}

#define GRAPH_LAUNCH(name, per_thread)                                                             \
	CUresult name(CUgraphExec exec, CUstream stream)                                           \
	{                                                                                          \
		XD_CALL(name);                                                                     \
		XD_RETURN(xd_graph_launch(exec, xd_stream(stream, per_thread), call.correlation)); \
	}
GRAPH_LAUNCH(cuGraphLaunch, false)
GRAPH_LAUNCH(cuGraphLaunch_ptsz, true)

#define BEGIN_CAPTURE(name, per_thread)                                                            \
	CUresult name(CUstream stream, int mode)                                                   \
	{                                                                                          \
		XD_CALL(name);                                                                     \
		(void)mode;                                                                        \
		stream = xd_stream(stream, per_thread);                                            \
		if (!stream || stream->capture)                                                    \
			XD_RETURN(CUDA_ERROR_INVALID_VALUE);                                       \
		stream->capture = xd_graph_new();                                                  \
		XD_RETURN(CUDA_SUCCESS);                                                           \
	}
BEGIN_CAPTURE(cuStreamBeginCapture_v2, false)
BEGIN_CAPTURE(cuStreamBeginCapture_v2_ptsz, true)

#define END_CAPTURE(name, per_thread)                                                              \
	CUresult name(CUstream stream, CUgraph *graph)                                             \
	{                                                                                          \
		XD_CALL(name);                                                                     \
		stream = xd_stream(stream, per_thread);                                            \
		if (!stream || !stream->capture)                                                   \
			XD_RETURN(CUDA_ERROR_INVALID_VALUE);                                       \
		*graph = stream->capture;                                                          \
		stream->capture = NULL;                                                            \
		XD_RETURN(CUDA_SUCCESS);                                                           \
	}
END_CAPTURE(cuStreamEndCapture, false)
END_CAPTURE(cuStreamEndCapture_ptsz, true)
