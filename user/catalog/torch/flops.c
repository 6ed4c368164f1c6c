/* SPDX-License-Identifier: BSD-2-Clause */
#include "catalog/torch/flops.h"

#include <string.h>

/* A product that notices when it is too large, or when a factor is unknown. */
struct product {
	uint64_t value;
	bool bad;
};

static void times(struct product *p, int64_t factor)
{
	if (factor < 0 || __builtin_mul_overflow(p->value, (uint64_t)factor, &p->value))
		p->bad = true;
}

static struct product product_of(const int64_t *sizes, size_t from, size_t to)
{
	struct product p = {.value = 1};

	for (size_t i = from; i < to; i++)
		times(&p, sizes[i]);
	return p;
}

static bool finish(struct product p, uint64_t *flops)
{
	*flops = p.value;
	return !p.bad;
}

/* ---- arguments ---- */

static const struct xsp_torch_value *find(const struct xsp_torch_values *v, const char *name)
{
	for (size_t i = 0; i < v->count; i++)
		if (strcmp(v->items[i].name, name) == 0)
			return &v->items[i];
	return NULL;
}

static const struct xsp_torch_tensor *tensor_at(const struct xsp_torch_values *v, size_t index)
{
	const struct xsp_torch_value *a = index < v->count ? &v->items[index] : NULL;

	if (a == NULL || a->form != XSP_TORCH_FORM_TENSOR || a->presence != XSP_TORCH_PRESENT)
		return NULL;
	return &a->tensors[0];
}

/* Element `index` of a list of integers. A list of one element stands for all. */
static bool list_number(const struct xsp_torch_values *v, const char *name, size_t index,
			int64_t *number)
{
	const struct xsp_torch_value *a = find(v, name);
	double unused[2];

	if (a == NULL || a->length == 0)
		return false;
	return xsp_torch_number(v, a, a->length == 1 ? 0 : index, number, unused) ==
	       XSP_TORCH_INTEGER;
}

/* ---- products of matrices ---- */

/* (..., n, m) x (..., m, p): each element of the first with p of the second. */
static bool matrices(const struct xsp_torch_values *v, size_t first, uint64_t *flops)
{
	const struct xsp_torch_tensor *a = tensor_at(v, first), *b = tensor_at(v, first + 1);

	if (a == NULL || b == NULL || a->dims < 2 || a->dims != b->dims ||
	    a->sizes[a->dims - 1] != b->sizes[b->dims - 2])
		return false;
	struct product p = product_of(a->sizes, 0, a->dims);
	times(&p, b->sizes[b->dims - 1]);
	times(&p, 2);
	return finish(p, flops);
}

/* A matrix, or a vector, and a vector. */
static bool vectors(const struct xsp_torch_values *v, size_t first, uint64_t *flops)
{
	const struct xsp_torch_tensor *a = tensor_at(v, first), *b = tensor_at(v, first + 1);

	if (a == NULL || b == NULL || a->dims < 1 || b->dims != 1 ||
	    a->sizes[a->dims - 1] != b->sizes[0])
		return false;
	struct product p = product_of(a->sizes, 0, a->dims);
	times(&p, 2);
	return finish(p, flops);
}

/* ---- convolutions ---- */

/* The number of positions of the kernel along dimension `d` of the image, not counting its first
 * two. */
static bool places(const struct xsp_torch_values *v, const struct xsp_torch_tensor *input,
		   const struct xsp_torch_tensor *weight, size_t d, int64_t *out)
{
	const struct xsp_torch_value *padding = find(v, "padding");
	int64_t stride, dilation, pad = 0, reach;

	if (!list_number(v, "stride", d, &stride) || !list_number(v, "dilation", d, &dilation) ||
	    stride <= 0 || stride > INT32_MAX || dilation <= 0 || dilation > INT32_MAX ||
	    padding == NULL)
		return false;
	int64_t kernel = weight->sizes[d + 2], image = input->sizes[d + 2];
	if (kernel > INT32_MAX || image > INT32_MAX)
		return false;
	if (padding->form == XSP_TORCH_FORM_STRING) {
		bool same = padding->bytes != NULL && padding->size >= 4 &&
			    memcmp(padding->bytes, "same", 4) == 0;
		reach = image - (same ? 0 : dilation * (kernel - 1));
	} else {
		if (!list_number(v, "padding", d, &pad) || pad < 0 || pad > INT32_MAX)
			return false;
		reach = image + 2 * pad - dilation * (kernel - 1);
	}
	*out = reach < 1 ? 0 : (reach - 1) / stride + 1;
	return true;
}

static bool convolution(const struct xsp_torch_values *v, size_t first, uint64_t *flops)
{
	const struct xsp_torch_tensor *input = tensor_at(v, first),
				      *weight = tensor_at(v, first + 1);
	struct product p = {.value = 2};
	int64_t n;

	if (input == NULL || weight == NULL || weight->dims < 3 || input->dims != weight->dims)
		return false;
	times(&p, input->sizes[0]);
	for (size_t i = 0; i < weight->dims; i++) /* its second dimension is in channels / groups */
		times(&p, weight->sizes[i]);
	for (size_t d = 0; d + 2 < weight->dims; d++) {
		if (!places(v, input, weight, d, &n))
			return false;
		times(&p, n);
	}
	return finish(p, flops);
}

/* Each element of the input meets the kernels of its channel once. */
static bool transposed(const struct xsp_torch_values *v, size_t first, uint64_t *flops)
{
	const struct xsp_torch_tensor *input = tensor_at(v, first),
				      *weight = tensor_at(v, first + 1);

	if (input == NULL || weight == NULL || weight->dims < 3 || input->dims != weight->dims)
		return false;
	struct product p = product_of(input->sizes, 0, input->dims);
	for (size_t i = 1; i < weight->dims; i++)
		times(&p, weight->sizes[i]);
	times(&p, 2);
	return finish(p, flops);
}

/* The work of the forward pass for the gradient of the input, and again for that of the weight. */
static bool convolution_backward(const struct xsp_torch_values *v, size_t first, uint64_t *flops)
{
	const struct xsp_torch_tensor *out = tensor_at(v, first), *input = tensor_at(v, first + 1);
	const struct xsp_torch_tensor *weight = tensor_at(v, first + 2);
	const struct xsp_torch_value *mask = find(v, "output_mask"), *t = find(v, "transposed");
	int64_t is_transposed;
	double unused[2];

	if (out == NULL || input == NULL || weight == NULL || weight->dims < 3 || mask == NULL ||
	    !mask->known || mask->form != XSP_TORCH_FORM_BOOLS || t == NULL ||
	    xsp_torch_number(v, t, 0, &is_transposed, unused) != XSP_TORCH_TRUTH)
		return false;
	const struct xsp_torch_tensor *moved = is_transposed ? input : out;
	struct product p = product_of(moved->sizes, 0, moved->dims);
	for (size_t i = 1; i < weight->dims; i++)
		times(&p, weight->sizes[i]);
	times(&p, 2 * (!!mask->object[0] + !!mask->object[1]));
	return finish(p, flops);
}

/* ---- attention ---- */

/* Queries (b, h, q, d), keys (b, h, k, d), values (b, h, k, e): a matrix product with the dimension d
 * and one with e, for each of b * h. The backward pass, whose first argument is a gradient, computes
 * the scores again, then the gradients of scores, values, queries, keys: 3 with d, 2 with e. */
static bool attention(const struct xsp_torch_values *v, size_t first, uint64_t *flops)
{
	const bool backward = first > 0;
	const struct xsp_torch_tensor *query = tensor_at(v, first), *key = tensor_at(v, first + 1);
	const struct xsp_torch_tensor *value = tensor_at(v, first + 2);

	if (query == NULL || key == NULL || value == NULL || query->dims != 4 || key->dims != 4 ||
	    value->dims != 4)
		return false;
	struct product p = product_of(query->sizes, 0, 3), d = {.value = 2}, e = {.value = 2};
	times(&p, key->sizes[2]);
	times(&d, query->sizes[3]);
	times(&d, backward ? 3 : 1);
	times(&e, value->sizes[3]);
	times(&e, backward ? 2 : 1);
	uint64_t both;
	if (d.bad || e.bad || __builtin_add_overflow(d.value, e.value, &both) || both > INT64_MAX)
		return false;
	times(&p, (int64_t)both);
	return finish(p, flops);
}

/* ---- elementwise ---- */

/* One operation for each element of the result: the sizes of the arguments, broadcast. */
static bool elementwise(const struct xsp_torch_values *v, size_t first, uint64_t *flops)
{
	const struct xsp_torch_tensor *a = tensor_at(v, first), *b = tensor_at(v, first + 1);
	struct product p = {.value = 1};

	if (a == NULL)
		return false;
	unsigned b_dims = b != NULL ? b->dims : 0, dims = a->dims > b_dims ? a->dims : b_dims;
	for (unsigned i = 1; i <= dims; i++) {
		int64_t of_a = i <= a->dims ? a->sizes[a->dims - i] : 1;
		int64_t of_b = i <= b_dims ? b->sizes[b_dims - i] : 1;
		if (of_a != of_b && of_a != 1 && of_b != 1)
			return false;
		times(&p, of_a == 1 ? of_b : of_a);
	}
	return finish(p, flops);
}

/* ---- which operator uses which ---- */

static const struct {
	const char *name;
	bool (*count)(const struct xsp_torch_values *v, size_t first, uint64_t *flops);
	size_t first; /* the first argument that counts */
} formulas[] = {
	{"aten::mm", matrices, 0},
	{"aten::bmm", matrices, 0},
	{"aten::addmm", matrices, 1},
	{"aten::addmm_", matrices, 1},
	{"aten::baddbmm", matrices, 1},
	{"aten::baddbmm_", matrices, 1},
	{"aten::_addmm_activation", matrices, 1},
	{"aten::_int_mm", matrices, 0},
	{"aten::_scaled_mm", matrices, 0},
	{"aten::mv", vectors, 0},
	{"aten::dot", vectors, 0},
	{"aten::vdot", vectors, 0},
	{"aten::addmv", vectors, 1},
	{"aten::addmv_", vectors, 1},
	{"aten::conv1d", convolution, 0},
	{"aten::conv2d", convolution, 0},
	{"aten::conv3d", convolution, 0},
	{"aten::conv_transpose1d", transposed, 0},
	{"aten::conv_transpose2d", transposed, 0},
	{"aten::conv_transpose3d", transposed, 0},
	{"aten::convolution_backward", convolution_backward, 0},
	{"aten::_scaled_dot_product_flash_attention", attention, 0},
	{"aten::_scaled_dot_product_flash_attention_for_cpu", attention, 0},
	{"aten::_scaled_dot_product_efficient_attention", attention, 0},
	{"aten::_scaled_dot_product_cudnn_attention", attention, 0},
	{"aten::_scaled_dot_product_flash_attention, 1", attention, 1},
	{"aten::_scaled_dot_product_flash_attention_for_cpu_backward", attention, 1},
	{"aten::_scaled_dot_product_efficient_attention, 1", attention, 1},
	{"aten::_scaled_dot_product_cudnn_attention, 1", attention, 1},
	{"aten::add", elementwise, 0},
	{"aten::add_", elementwise, 0},
	{"aten::sub", elementwise, 0},
	{"aten::sub_", elementwise, 0},
	{"aten::mul", elementwise, 0},
	{"aten::mul_", elementwise, 0},
	{"aten::div", elementwise, 0},
	{"aten::div_", elementwise, 0},
};

bool xsp_flops(const struct xsp_torch_values *v, uint64_t *flops)
{
	for (size_t i = 0; i < sizeof(formulas) / sizeof(formulas[0]); i++)
		if (strcmp(formulas[i].name, v->schema->name) == 0)
			return formulas[i].count(v, formulas[i].first, flops);
	return false;
}
