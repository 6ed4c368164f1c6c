/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * allocators.h - functions that allocators call for each allocation and each free, whether a profiler listens or not,
 * and where their arguments say which.
 */
#ifndef XSP_CATALOG_ALLOCATORS_H
#define XSP_CATALOG_ALLOCATORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum xsp_allocator_call {
	XSP_ALLOCATOR_ALLOCATES, /* address, bytes */
	XSP_ALLOCATOR_FREES, /* address */
	XSP_ALLOCATOR_REPORTS, /* address, bytes (negative: taken), allocated, reserved, c10::Device */
	XSP_ALLOCATOR_HEAP, /* of the table below: its events tell all of it */
};

struct xsp_allocator_function {
	const char *symbol;
	const char *name;
	enum xsp_allocator_call call;
	unsigned first, count; /* of the integer arguments, those above */
};
extern const struct xsp_allocator_function xsp_allocator_functions[];
extern const size_t xsp_allocator_function_count;

/* c10::Device: the type, then the index, -1: none, a byte each (c10/core/Device.h). Types as in
 * c10/core/DeviceType.h. */
#define XSP_C10_DEVICE_TYPE(word) ((uint8_t)(word))
#define XSP_C10_DEVICE_INDEX(word) ((int8_t)((word) >> 8))
#define XSP_C10_CPU 0
#define XSP_C10_CUDA 1

/* malloc and its kin, in whatever library exports them: numbers of integer arguments. */
#define XSP_HEAP_NONE 7 /* XSP_OPERAND_NONE */
struct xsp_heap_function {
	const char *symbol;
	const char *name;
	uint8_t bytes, factor, old, result; /* as enum xsp_heap_word */
	bool throws; /* operator new and delete, of allocators that have their own */
};
extern const struct xsp_heap_function xsp_heap_functions[];
extern const size_t xsp_heap_function_count;

/* Is that the name (DT_SONAME) of a library whose C functions of that table are known to let no exception pass? */
bool xsp_heap_never_throws(const char *soname);

/* Is a function, by its shown name, one of these or of the C++ library's that hand on to them? */
bool xsp_is_allocating(const char *name);

/* The row of a symbol, or NULL; of the heap all have one. */
const struct xsp_allocator_function *xsp_allocator_function(const char *symbol);

#endif
