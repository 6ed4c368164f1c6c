/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cuda_table.h - CUDA's entry points: the purpose of each, and where its arguments are.
 *
 * Driver API: what libcuda.so.1 exports. Runtime API: what libcudart exports, or what a static one
 * defines if the program has symbols. The layouts follow the prototypes of CUDA 12 and 13 (cuda.h,
 * cuda_runtime_api.h). tests/e2e/cuda_table.py compares them with those headers where they are
 * installed.
 */
#ifndef XSP_CATALOG_CUDA_TABLE_H
#define XSP_CATALOG_CUDA_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum xsp_cuda_api { XSP_CUDA_DRIVER = 0, XSP_CUDA_RUNTIME = 1 };

enum xsp_cuda_kind {
	XSP_CUDA_LAUNCH = 1, /* a kernel */
	XSP_CUDA_GRAPH_LAUNCH,
	XSP_CUDA_MEMCPY,
	XSP_CUDA_MEMSET,
	XSP_CUDA_SYNC, /* the calling thread waits */
	XSP_CUDA_WAIT, /* a stream waits for an event */
	XSP_CUDA_ALLOC,
	XSP_CUDA_FREE,
	XSP_CUDA_MEMORY, /* other work on memory: mappings, pools, arrays */
	XSP_CUDA_STREAM,
	XSP_CUDA_EVENT,
	XSP_CUDA_MODULE, /* modules, libraries, functions */
	XSP_CUDA_GRAPH,
	XSP_CUDA_HOST, /* enqueues a function for the host */
	XSP_CUDA_CONTEXT,
};

/* The kind of memory that ALLOC and FREE are about. */
enum xsp_cuda_space {
	XSP_CUDA_NOWHERE = 0,
	XSP_CUDA_DEVICE, /* of the current device */
	XSP_CUDA_MANAGED,
	XSP_CUDA_PHYSICAL, /* of a device, by a handle that is mapped later (cuMemCreate) */
	XSP_CUDA_PINNED, /* of the host */
};

enum xsp_cuda_field {
	XSP_CUDA_NONE = 0,
	XSP_CUDA_STREAM_HANDLE,
	XSP_CUDA_FUNCTION, /* CUfunction, CUkernel, cudaKernel_t, or the stub on the host */
	XSP_CUDA_GRID_X,
	XSP_CUDA_GRID_Y,
	XSP_CUDA_GRID_Z,
	XSP_CUDA_BLOCK_X,
	XSP_CUDA_BLOCK_Y,
	XSP_CUDA_BLOCK_Z,
	/* two 32-bit values, the first one in the low half: a dim3 in registers, a launch
	 * configuration */
	XSP_CUDA_GRID_XY,
	XSP_CUDA_BLOCK_XY,
	XSP_CUDA_GRID_Z_BLOCK_X,
	XSP_CUDA_BLOCK_YZ,
	XSP_CUDA_SHARED, /* dynamic shared memory, bytes */
	XSP_CUDA_BYTES,
	XSP_CUDA_WIDTH, /* bytes = width * height * depth */
	XSP_CUDA_HEIGHT,
	XSP_CUDA_DEPTH,
	XSP_CUDA_DIRECTION, /* enum cudaMemcpyKind */
	XSP_CUDA_DESTINATION,
	XSP_CUDA_SOURCE,
	XSP_CUDA_ADDRESS, /* of the memory to free */
	XSP_CUDA_OUT, /* points to where the call writes its result */
	XSP_CUDA_EVENT_HANDLE,
	XSP_CUDA_GRAPH_HANDLE,
	XSP_CUDA_GRAPH_EXEC,
	XSP_CUDA_MODULE_HANDLE,
	XSP_CUDA_DEVICE_NUMBER,
	XSP_CUDA_NAME, /* a C string */
	XSP_CUDA_STUB, /* the function on the host that stands for a kernel */
	XSP_CUDA_FIELDS,
};

struct xsp_cuda_arg {
	uint8_t field; /* enum xsp_cuda_field */
	/* the n-th 64-bit word of the arguments, in the order of the calling convention */
	uint8_t slot;
	bool deref; /* not the word, but the value `offset` bytes after the address in it */
	uint16_t offset;
};

#define XSP_CUDA_ARGS 9
struct xsp_cuda_entry {
	const char *name; /* without _ptsz, _ptds: the forms for per-thread default streams */
	uint8_t api; /* enum xsp_cuda_api */
	uint8_t kind; /* enum xsp_cuda_kind */
	uint8_t direction; /* MEMCPY: enum cudaMemcpyKind, if the name implies it; else 0 */
	uint8_t unit; /* MEMSET: bytes of one element; 0 means 1 */
	uint8_t space; /* enum xsp_cuda_space */
	bool calls_back; /* it calls code of the user: an exception may pass */
	struct xsp_cuda_arg args[XSP_CUDA_ARGS]; /* if there are fewer, field NONE ends them */
};

extern const struct xsp_cuda_entry xsp_cuda_entries[];
extern const size_t xsp_cuda_entry_count;

/* By symbol, with or without _ptsz or _ptds; a call of HIP's or of Intel's has the row of CUDA's
 * that does the same. NULL: not in the table. */
const struct xsp_cuda_entry *xsp_cuda_find(const char *symbol);
/* The API of a call, by its row or else by its name; and a row that says nothing but the API. */
enum xsp_cuda_api xsp_cuda_api_of(const char *symbol);
const struct xsp_cuda_entry *xsp_cuda_any(enum xsp_cuda_api api);
unsigned xsp_cuda_args(const struct xsp_cuda_entry *e); /* how many it has */

/* What the words of a call say. */
struct xsp_cuda_call {
	/* bit n: field n is known; GRID_X, BLOCK_X and BYTES stand for their groups */
	uint32_t has;
	uint32_t grid[3], block[3];
	uint64_t stream, function, shared, bytes, destination, source, address, out, event, graph;
	uint64_t module, device, stub;
	uint32_t direction;
};
#define XSP_CUDA_HAS(call, field) (((call)->has >> (field)) & 1)

/* Decodes the words that a probe on `e` read, in the order of its args. Bit n of `unreadable`: word
 * n could not be read. With fewer words than args, the other fields are unknown. */
void xsp_cuda_decode(const struct xsp_cuda_entry *e, const uint64_t *words, size_t count,
		     uint32_t unreadable, struct xsp_cuda_call *out);

/* The name of a result: "CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation"; NULL: not in the
 * table. */
const char *xsp_cuda_error(enum xsp_cuda_api api, uint32_t code);
/* Neither success nor the answer "not ready". */
bool xsp_cuda_is_error(uint32_t code);

#endif
