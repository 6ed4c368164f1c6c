/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * values.h - the arguments or results of one call of a PyTorch operator, as far as they are
 * known. What is not plausible is unknown, never guessed.
 */
#ifndef XSP_CATALOG_TORCH_VALUES_H
#define XSP_CATALOG_TORCH_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "catalog/torch/abi.h"
#include "catalog/torch/schema.h"

enum xsp_torch_presence {
	XSP_TORCH_UNKNOWN = 0,
	XSP_TORCH_NOTHING, /* an optional without a value; an undefined tensor */
	XSP_TORCH_PRESENT,
};

struct xsp_torch_tensor {
	enum xsp_torch_presence presence;
	const char *type; /* as PyTorch's profiler writes it */
	unsigned dtype, dims;
	bool strided; /* has strides */
	bool on_host;
	const int64_t *sizes, *strides;
	int64_t numel;
	const uint8_t *elements; /* the first ones, in memory order; NULL: not read */
	size_t element_bytes; /* of all of them */
};

struct xsp_torch_value {
	const char *name; /* in the schema; "" for results */
	uint8_t form; /* enum xsp_torch_form */
	uint8_t base; /* enum xsp_torch_base */
	enum xsp_torch_presence presence;
	bool known; /* its value is there; of tensors, all that is needed to show them */
	/* TENSOR: one; TENSORS: the ones that were read. `length` is that of the whole list */
	struct xsp_torch_tensor tensors[XSP_ARGS_LIST_MAX];
	size_t tensor_count;
	uint64_t length; /* of a list; BOOLS too */
	bool cut; /* there are more elements than here */
	uint8_t object[32]; /* its bytes, if it is no list */
	const uint8_t *bytes; /* the bytes of a list or a string */
	size_t size;
};

struct xsp_torch_values {
	const struct xsp_torch_schema *schema;
	unsigned parts; /* enum xsp_torch_parts */
	enum xsp_torch_flavor flavor;
	bool doubtful;
	bool tensors_known; /* all that the profiler would show of the arguments is known */
	struct xsp_torch_value items[XSP_TORCH_ARGUMENTS_MAX];
	size_t count;
};

/* The number that a value, or an element of a list, is. A complex one has two reals. */
enum xsp_torch_number {
	XSP_TORCH_NO_NUMBER,
	XSP_TORCH_INTEGER,
	XSP_TORCH_REAL,
	XSP_TORCH_COMPLEX,
	XSP_TORCH_TRUTH,
};
enum xsp_torch_number xsp_torch_number(const struct xsp_torch_values *all,
				       const struct xsp_torch_value *v, size_t index,
				       int64_t *integer, double real[2]);

#endif
