/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * allocators.h - the functions that allocators call for each allocation and each free, with or
 * without a profiler, and which of their arguments say what.
 */
#ifndef XSP_CATALOG_ALLOCATORS_H
#define XSP_CATALOG_ALLOCATORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum xsp_allocator_call {
	XSP_ALLOCATOR_ALLOCATES, /* address, bytes */
	XSP_ALLOCATOR_FREES, /* address */
	/* address, bytes (negative: freed), allocated, reserved, c10::Device */
	XSP_ALLOCATOR_REPORTS,
	XSP_ALLOCATOR_HEAP, /* of malloc's table below: its events say everything */
};

struct xsp_allocator_function {
	const char *symbol;
	const char *name;
	enum xsp_allocator_call call;
	unsigned first, count; /* which integer arguments are the ones above */
};
extern const struct xsp_allocator_function xsp_allocator_functions[];
extern const size_t xsp_allocator_function_count;

/* c10::Device is the type and then the index (-1: none), a byte each (c10/core/Device.h). The types
 * are those of c10/core/DeviceType.h. */
#define XSP_C10_DEVICE_TYPE(word) ((uint8_t)(word))
#define XSP_C10_DEVICE_INDEX(word) ((int8_t)((word) >> 8))
#define XSP_C10_CPU 0
#define XSP_C10_CUDA 1

/* malloc and similar functions, in any library: the numbers of their integer arguments. */
#define XSP_HEAP_NONE 7 /* XSP_OPERAND_NONE */
struct xsp_heap_function {
	const char *symbol;
	const char *name;
	uint8_t bytes, factor, old, result; /* as enum xsp_heap_word */
	bool throws; /* operator new and delete, in allocators that have their own */
};
extern const struct xsp_heap_function xsp_heap_functions[];
extern const size_t xsp_heap_function_count;

/* Does no exception pass through the functions of that table in the library of this name
 * (DT_SONAME), for certain? */
bool xsp_heap_never_throws(const char *soname);

/* Is this (shown) name that of one of these functions, or of one of the C++ library's that pass the
 * call on? */
bool xsp_is_allocating(const char *name);

/* The row of a symbol, or NULL. All of malloc's functions share one. */
const struct xsp_allocator_function *xsp_allocator_function(const char *symbol);

#endif
