/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * values.h - functions by which programs tell numbers (XSP_EVENT_VALUE): how each numbers the types of what it is
 * given, and whether that is the value or a change of it. Captures carry the functions' symbols.
 */
#ifndef XSP_CATALOG_VALUES_H
#define XSP_CATALOG_VALUES_H

#include <stdbool.h>
#include <stdint.h>

struct xsp_value_function {
	const char *symbol;
	const uint8_t *types; /* by number, XSP_VALUE_TYPES of them: enum in values.c */
	int change; /* 1, -1: it is added to, taken from the value before; 0: it is the value */
};
#define XSP_VALUE_TYPES 9

/* Of one type, a double; of __itt_metadata_type (ittnotify.h); of nvtxPayloadType_t (nvToolsExt.h): the numbers there
 * are, as xsp_range_spec.value_types has them. */
#define XSP_VALUE_DOUBLE_TYPES 0x001
#define XSP_VALUE_ITT_TYPES 0x1fe
#define XSP_VALUE_NVTX_TYPES 0x07e

/* NULL: none of them. */
const struct xsp_value_function *xsp_value_function(const char *symbol);
/* The number that `bits` are, the nearest double to it. False: the function has no such type. */
bool xsp_value_decode(const struct xsp_value_function *f, uint32_t type, uint64_t bits,
		      double *value);

#endif
