/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * allocators.h - functions that allocators call for each allocation and each free, whether a profiler listens or not,
 * and where their arguments say which.
 */
#ifndef XSP_CATALOG_ALLOCATORS_H
#define XSP_CATALOG_ALLOCATORS_H

#include <stddef.h>
#include <stdint.h>

enum xsp_allocator_call {
	XSP_ALLOCATOR_GAVE, /* address, bytes */
	XSP_ALLOCATOR_TAKES, /* address */
	XSP_ALLOCATOR_REPORTS, /* address, bytes (negative: taken), allocated, reserved, c10::Device */
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

/* The row of a symbol, or NULL. */
const struct xsp_allocator_function *xsp_allocator_function(const char *symbol);

#endif
