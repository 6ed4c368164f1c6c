/* SPDX-License-Identifier: BSD-2-Clause */
#include "catalog/torch/records.h"

#include <string.h>

#include "base/rows/u64map.h"

#define WORDS_MASK 0xffU

const uint64_t *xsp_torch_argument_words(const struct xsp_section *s, size_t *count)
{
	size_t n = s->value & WORDS_MASK;

	*count = sizeof(*s) + n * sizeof(uint64_t) <= s->size ? n : 0;
	return (const uint64_t *)(s + 1);
}

const struct xsp_args_record *xsp_torch_next_record(const struct xsp_section *s,
						    const struct xsp_args_record *after)
{
	const uint8_t *begin = (const uint8_t *)s, *at = (const uint8_t *)after;

	at = after != NULL ? at + (size_t)after->size * 8
			   : begin + sizeof(*s) + (s->value & WORDS_MASK) * sizeof(uint64_t);
	size_t used = (size_t)(at - begin);
	const struct xsp_args_record *r = (const void *)at;
	if (used + sizeof(*r) > s->size || r->size == 0 || (size_t)r->size * 8 > s->size - used)
		return NULL;
	return r;
}

uint64_t xsp_torch_vtable_hash(uint64_t vtable, uint32_t tgid)
{
	/* differs from the hashes of names, which are hashes of texts */
	uint64_t h = xsp_u64_mix(vtable ^ 0x7461626c65730000ULL) ^ tgid;

	h = xsp_u64_mix(h);
	return h != 0 ? h : 1;
}

enum xsp_torch_impl xsp_torch_impl_of(const char *class_name)
{
	static const struct {
		const char *end;
		enum xsp_torch_impl impl;
	} rows[] = {
		{"UndefinedTensorImpl", XSP_TORCH_IMPL_NONE},
		{"NestedTensorImpl", XSP_TORCH_IMPL_NONE},
		{"SparseTensorImpl", XSP_TORCH_IMPL_NO_STRIDES},
		{"SparseCsrTensorImpl", XSP_TORCH_IMPL_NO_STRIDES},
		{"OpaqueTensorImpl", XSP_TORCH_IMPL_NO_STRIDES},
		{"TensorImpl", XSP_TORCH_IMPL_TENSOR},
		{"FunctionalTensorWrapper", XSP_TORCH_IMPL_TENSOR},
		{"functorch::TensorWrapper", XSP_TORCH_IMPL_TENSOR},
	};
	/* at::OpaqueTensorImpl<...> */
	size_t length = strcspn(class_name, "<");

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t n = strlen(rows[i].end);
		if (n <= length && memcmp(class_name + length - n, rows[i].end, n) == 0)
			return rows[i].impl;
	}
	return XSP_TORCH_IMPL_UNKNOWN;
}

const struct xsp_args_tensor *xsp_torch_tensor(const struct xsp_args_record *r)
{
	const struct xsp_args_tensor *t = (const void *)(r + 1);
	size_t room = (size_t)r->size * 8 - sizeof(*r);

	if (r->kind != XSP_ARGS_TENSOR || r->status != XSP_ARGS_READ || room < sizeof(*t) ||
	    t->dims > XSP_ARGS_DIMS_MAX || room < sizeof(*t) + t->dims * 2 * sizeof(int64_t))
		return NULL;
	return t;
}

const int64_t *xsp_torch_sizes(const struct xsp_args_tensor *t)
{
	return (const int64_t *)(t + 1);
}

const int64_t *xsp_torch_strides(const struct xsp_args_tensor *t)
{
	return xsp_torch_sizes(t) + t->dims;
}

/* c10/core/ScalarType.h, as of 2.14: 47 and Undefined. */
#define TYPES_MAX 64U

/* Every tensor except the undefined one has a device. With a wrong layout this word is often 0, and
 * one beside it the number of elements of a tensor without dimensions. */
static bool device_good(uint64_t type, bool flag_first)
{
	uint8_t flag = (uint8_t)(type >> (flag_first ? 16 : 32));
	uint8_t device = (uint8_t)(type >> (flag_first ? 24 : 16));

	return flag == 1 && device < 64;
}

bool xsp_torch_tensor_good(const struct xsp_args_record *r, bool flag_first)
{
	const struct xsp_args_tensor *t = xsp_torch_tensor(r);
	int64_t product = 1;

	if (t == NULL || (uint16_t)t->type >= TYPES_MAX || !device_good(t->type, flag_first))
		return false;
	for (size_t i = 0; i < t->dims; i++) {
		int64_t size = xsp_torch_sizes(t)[i];
		if (size < 0)
			return false;
		if (__builtin_mul_overflow(product, size, &product))
			return false;
	}
	return (uint64_t)product == t->numel;
}
