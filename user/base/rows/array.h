/* SPDX-License-Identifier: BSD-2-Clause */
/* array.h - an array with its count. Zeros to begin with. */
#ifndef XSP_BASE_ARRAY_H
#define XSP_BASE_ARRAY_H

#include <stdlib.h>

#include "base/rows/grow.h"

#define XSP_ARRAY(type)                                                                            \
	struct {                                                                                   \
		type *rows;                                                                        \
		size_t count, capacity;                                                            \
	}
/* Appends: 0 or -ENOMEM. */
#define XSP_PUT(array, ...)                                                                        \
	XSP_APPEND((array)->rows, (array)->capacity, (array)->count, __VA_ARGS__)
/* It is empty afterwards, and may be used again. */
#define XSP_FREE(array)                                                                            \
	(free((array)->rows), (array)->rows = NULL, (array)->count = (array)->capacity = 0)

#endif
