/* SPDX-License-Identifier: BSD-2-Clause */
#include "catalog/values.h"

#include <stddef.h>
#include <string.h>

enum { NONE, U64, S64, U32, S32, U16, S16, FLOAT, DOUBLE, ONE };

static const uint8_t doubles[XSP_VALUE_TYPES] = {DOUBLE};
/* __itt_metadata_type */
static const uint8_t itt[XSP_VALUE_TYPES] = {NONE, U64, S64, U32, S32, U16, S16, FLOAT, DOUBLE};
/* nvtxPayloadType_t */
static const uint8_t nvtx[XSP_VALUE_TYPES] = {NONE, U64, S64, DOUBLE, U32, S32, FLOAT};
/* for functions without an argument that says the type */
static const uint8_t deltas[XSP_VALUE_TYPES] = {U64}, ones[XSP_VALUE_TYPES] = {ONE};

static const struct xsp_value_function functions[] = {
	{"xsp_record_function_value", doubles, 0},
	{"__itt_counter_set_value", itt, 0},
	{"__itt_counter_set_value_ex", itt, 0},
	{"__itt_counter_set_value_v3", itt, 0},
	{"__itt_counter_inc", ones, 1},
	{"__itt_counter_dec", ones, -1},
	{"__itt_counter_inc_delta", deltas, 1},
	{"__itt_counter_dec_delta", deltas, -1},
	{"__itt_counter_inc_v3", ones, 1},
	{"__itt_counter_dec_v3", ones, -1},
	{"__itt_counter_inc_delta_v3", deltas, 1},
	{"__itt_counter_dec_delta_v3", deltas, -1},
	{"__itt_metadata_add", itt, 0},
	{"__itt_metadata_add_with_scope", itt, 0},
	{"nvtxMarkEx", nvtx, 0},
	{"nvtxDomainMarkEx", nvtx, 0},
	{"nvtxRangePushEx", nvtx, 0},
	{"nvtxDomainRangePushEx", nvtx, 0},
};

const struct xsp_value_function *xsp_value_function(const char *symbol)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (strcmp(functions[i].symbol, symbol) == 0)
			return &functions[i];
	return NULL;
}

bool xsp_value_decode(const struct xsp_value_function *f, uint32_t type, uint64_t bits,
		      double *value)
{
	const uint32_t low = (uint32_t)bits;
	float real;

	switch (type < XSP_VALUE_TYPES ? f->types[type] : NONE) {
	case U64:
		*value = (double)bits;
		return true;
	case S64:
		*value = (double)(int64_t)bits;
		return true;
	case U32:
		*value = low;
		return true;
	case S32:
		*value = (int32_t)low;
		return true;
	case U16:
		*value = (uint16_t)bits;
		return true;
	case S16:
		*value = (int16_t)bits;
		return true;
	case FLOAT:
		memcpy(&real, &low, sizeof(real));
		*value = (double)real;
		return true;
	case DOUBLE:
		memcpy(value, &bits, sizeof(*value));
		return true;
	case ONE:
		*value = 1;
		return true;
	default:
		return false;
	}
}
