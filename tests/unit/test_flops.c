/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers worked out by hand; against PyTorch's own: tests/e2e/torch_metadata.py. */
#include "catalog/torch/flops.h"

#include <criterion/criterion.h>
#include <string.h>

static struct xsp_torch_schema schema;
static struct xsp_torch_values v;
static int64_t sizes[4][5], lists[6][3];
static unsigned lists_used;

static void begin(const char *text)
{
	memset(&v, 0, sizeof(v));
	lists_used = 0;
	cr_assert_eq(xsp_torch_schema_parse(text, strlen(text), &schema), 0);
	v.schema = &schema;
	v.count = schema.count;
	for (size_t i = 0; i < v.count; i++)
		v.items[i].name = schema.arguments[i].name;
}

static void tensor(size_t i, unsigned dims, const int64_t *of)
{
	struct xsp_torch_value *a = &v.items[i];

	memcpy(sizes[i], of, dims * sizeof(*of));
	a->form = XSP_TORCH_FORM_TENSOR;
	a->presence = a->tensors[0].presence = XSP_TORCH_PRESENT;
	a->known = true;
	a->tensor_count = 1;
	a->tensors[0].dims = dims;
	a->tensors[0].sizes = sizes[i];
}
#define TENSOR(i, ...)                                                                             \
	tensor(i, sizeof((int64_t[]){__VA_ARGS__}) / 8, (const int64_t[]){__VA_ARGS__})

static void list(size_t i, size_t count, const int64_t *of)
{
	struct xsp_torch_value *a = &v.items[i];
	int64_t *kept = lists[lists_used++];

	memcpy(kept, of, count * sizeof(*of));
	a->form = XSP_TORCH_FORM_INTS;
	a->presence = XSP_TORCH_PRESENT;
	a->known = true;
	a->length = count;
	a->bytes = (const uint8_t *)kept;
	a->size = count * 8;
}
#define LIST(i, ...) list(i, sizeof((int64_t[]){__VA_ARGS__}) / 8, (const int64_t[]){__VA_ARGS__})

static void expect(uint64_t wanted)
{
	uint64_t flops = 0;
	bool known = xsp_flops(&v, &flops);

	if (wanted == 0)
		cr_expect_not(known, "%s: %lu", schema.name, (unsigned long)flops);
	else
		cr_expect(known && flops == wanted, "%s: %lu, not %lu", schema.name,
			  (unsigned long)flops, (unsigned long)wanted);
	xsp_torch_schema_clear(&schema);
}

Test(flops, matrices)
{
	begin("mm(Tensor self, Tensor mat2) -> Tensor");
	TENSOR(0, 3, 4);
	TENSOR(1, 4, 5);
	expect(2 * 3 * 4 * 5);
	begin("baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1) -> Tensor");
	TENSOR(0, 7, 3, 5);
	TENSOR(1, 7, 3, 4);
	TENSOR(2, 7, 4, 5);
	expect(7 * 2 * 3 * 4 * 5);
	begin("mv(Tensor self, Tensor vec) -> Tensor");
	TENSOR(0, 3, 4);
	TENSOR(1, 4);
	expect(2 * 3 * 4);
}

Test(flops, shapes_that_do_not_fit_or_are_too_large_tell_nothing)
{
	begin("mm(Tensor self, Tensor mat2) -> Tensor");
	TENSOR(0, 3, 4);
	TENSOR(1, 5, 4);
	expect(0);
	begin("mm(Tensor self, Tensor mat2) -> Tensor");
	TENSOR(0, 1LL << 40, 1LL << 20);
	TENSOR(1, 1LL << 20, 1LL << 40);
	expect(0);
	begin("mm(Tensor self, Tensor mat2) -> Tensor");
	expect(0);
	begin("matmul(Tensor self, Tensor other) -> Tensor");
	TENSOR(0, 3, 4);
	TENSOR(1, 4, 5);
	expect(0); /* counted in the mm inside */
}

#define CONV                                                                                       \
	"conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] "          \
	"padding=0, "                                                                              \
	"int[2] dilation=1, int groups=1) -> Tensor"

Test(flops, convolutions)
{
	begin(CONV);
	TENSOR(0, 2, 4, 9, 8);
	TENSOR(1, 6, 2, 3, 2); /* two groups */
	LIST(3, 2, 1);
	LIST(4, 1, 0);
	LIST(5, 1); /* one for both */
	expect(2 * 2 * 6 * 2 * 3 * 2 * 5 * 7);
	begin(CONV);
	TENSOR(0, 1, 1, 9, 9);
	TENSOR(1, 1, 1, 3, 3);
	LIST(3, 0, 1); /* a stride of 0 */
	LIST(4, 0);
	LIST(5, 1);
	expect(0);
	begin("conv_transpose2d(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor");
	TENSOR(0, 2, 4, 5, 5);
	TENSOR(1, 4, 3, 2, 2);
	expect(2 * 2 * 4 * 5 * 5 * 3 * 2 * 2);
}

Test(flops, attention_and_elementwise)
{
	begin("_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value) "
	      "-> "
	      "Tensor");
	TENSOR(0, 2, 3, 10, 8);
	TENSOR(1, 2, 3, 20, 8);
	TENSOR(2, 2, 3, 20, 16);
	expect(2 * 3 * (2 * 10 * 8 * 20 + 2 * 10 * 20 * 16));
	begin("mul.Tensor(Tensor self, Tensor other) -> Tensor");
	TENSOR(0, 3, 1, 4);
	TENSOR(1, 5, 1);
	expect(3 * 5 * 4);
	begin("add.Tensor(Tensor self, Tensor other) -> Tensor");
	TENSOR(0, 3, 2);
	TENSOR(1, 3);
	expect(0); /* cannot be broadcast */
}
