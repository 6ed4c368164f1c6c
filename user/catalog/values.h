/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * values.h - the functions by which programs report numbers (XSP_EVENT_VALUE): how each numbers the
 * types of its argument, and whether it reports the value or a change of it. Captures hold the
 * symbols of the functions.
 */
#ifndef XSP_CATALOG_VALUES_H
#define XSP_CATALOG_VALUES_H

#include <stdbool.h>
#include <stdint.h>

struct xsp_value_function {
	const char *symbol;
	const uint8_t *types; /* XSP_VALUE_TYPES of them, by number: the enum in values.c */
	int change; /* 1, -1: added to or subtracted from the previous value; 0: the value itself */
};
#define XSP_VALUE_TYPES 9

/* Which numbers of types there are, for xsp_range_spec.value_types: only a double;
 * __itt_metadata_type (ittnotify.h); nvtxPayloadType_t (nvToolsExt.h). */
#define XSP_VALUE_DOUBLE_TYPES 0x001
#define XSP_VALUE_ITT_TYPES 0x1fe
#define XSP_VALUE_NVTX_TYPES 0x07e

/* NULL: the symbol is none of them. */
const struct xsp_value_function *xsp_value_function(const char *symbol);
/* Decodes `bits` as the nearest double. False: the function has no such type. */
bool xsp_value_decode(const struct xsp_value_function *f, uint32_t type, uint64_t bits,
		      double *value);

#endif
