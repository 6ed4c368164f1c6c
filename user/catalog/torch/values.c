/* SPDX-License-Identifier: BSD-2-Clause */
#include "catalog/torch/values.h"

#include <string.h>

/* c10::Scalar::Tag: double, int, then in 2.x uint64, complex, bool, and symbols. */
static enum xsp_torch_number scalar_number(enum xsp_torch_flavor flavor, const uint8_t *scalar,
					   int64_t *integer, double real[2])
{
	uint32_t tag;
	uint32_t truth = flavor == XSP_TORCH_C10_OPTIONAL ? 3 : 4;

	memcpy(&tag, scalar, sizeof(tag));
	memcpy(integer, scalar + 16, sizeof(*integer));
	memcpy(real, scalar + 16, 2 * sizeof(*real));
	if (tag == 0)
		return XSP_TORCH_REAL;
	if (tag == 1)
		return XSP_TORCH_INTEGER;
	if (tag == truth - 1)
		return XSP_TORCH_COMPLEX;
	if (tag != truth || (uint64_t)*integer > 1)
		return XSP_TORCH_NO_NUMBER;
	return XSP_TORCH_TRUTH;
}

/* A symbol's top bits: in 1.13 the top two are 10, in 2.x the top three are 101
 * (c10/core/SymInt.h). */
static bool is_symbol(enum xsp_torch_flavor flavor, int64_t value)
{
	uint64_t v = (uint64_t)value;

	return flavor == XSP_TORCH_C10_OPTIONAL ? v >> 62 == 2 : v >> 61 == 5;
}

static enum xsp_torch_number element(const struct xsp_torch_values *all,
				     const struct xsp_torch_value *v, size_t i, int64_t *integer,
				     double real[2])
{
	size_t size = v->form == XSP_TORCH_FORM_SCALARS ? 32 : 8;

	if (v->form == XSP_TORCH_FORM_BOOLS && i < v->length && i < sizeof(v->object)) {
		*integer = v->object[i];
		return XSP_TORCH_TRUTH;
	}
	if (v->form == XSP_TORCH_FORM_STRING || v->bytes == NULL || i >= v->length ||
	    (i + 1) * size > v->size)
		return XSP_TORCH_NO_NUMBER;
	memcpy(integer, v->bytes + i * size, sizeof(*integer));
	memcpy(real, v->bytes + i * size, sizeof(*real));
	if (v->form == XSP_TORCH_FORM_SCALARS)
		return scalar_number(all->flavor, v->bytes + i * size, integer, real);
	if (v->form == XSP_TORCH_FORM_SYMINTS && is_symbol(all->flavor, *integer))
		return XSP_TORCH_NO_NUMBER;
	return v->form == XSP_TORCH_FORM_DOUBLES ? XSP_TORCH_REAL : XSP_TORCH_INTEGER;
}

enum xsp_torch_number xsp_torch_number(const struct xsp_torch_values *all,
				       const struct xsp_torch_value *v, size_t index,
				       int64_t *integer, double real[2])
{
	if (!v->known || v->presence != XSP_TORCH_PRESENT)
		return XSP_TORCH_NO_NUMBER;
	memcpy(integer, v->object, sizeof(*integer));
	memcpy(real, v->object, sizeof(*real));
	switch (v->form) {
	case XSP_TORCH_FORM_INT:
		return XSP_TORCH_INTEGER;
	case XSP_TORCH_FORM_SYMINT:
		return is_symbol(all->flavor, *integer) ? XSP_TORCH_NO_NUMBER : XSP_TORCH_INTEGER;
	case XSP_TORCH_FORM_INT8:
		*integer = v->object[0] - (v->object[0] >= 0x80 ? 0x100 : 0);
		return XSP_TORCH_INTEGER;
	case XSP_TORCH_FORM_BOOL:
		*integer = v->object[0];
		return v->object[0] <= 1 ? XSP_TORCH_TRUTH : XSP_TORCH_NO_NUMBER;
	case XSP_TORCH_FORM_DOUBLE:
		return XSP_TORCH_REAL;
	case XSP_TORCH_FORM_SCALAR:
		return scalar_number(all->flavor, v->object, integer, real);
	case XSP_TORCH_FORM_INTS:
	case XSP_TORCH_FORM_SYMINTS:
	case XSP_TORCH_FORM_DOUBLES:
	case XSP_TORCH_FORM_SCALARS:
	case XSP_TORCH_FORM_BOOLS:
		return element(all, v, index, integer, real);
	default:
		return XSP_TORCH_NO_NUMBER;
	}
}
