/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/gpu/gpu_flops.h"

#include <errno.h>
#include <stdlib.h>

#include "base/rows/grow.h"
#include "base/saturate.h"
#include "base/rows/tally.h"
#include "catalog/torch/flops.h"
#include "timeline/torch_args.h"

struct op {
	uint64_t id;
	uint64_t flops, bytes, gpu_ns;
	xsp_name_id name;
};

struct xsp_gpu_flops {
	struct xsp_torch_args *arguments;
	struct xsp_torch_values values; /* values of one call; too large for the stack */
	struct op *ops; /* becomes a ring once it is full */
	size_t count, capacity, oldest;
	struct xsp_u64map op_of;
	XSP_TALLY(struct xsp_gpu_flops_use) uses; /* by name */
};

int xsp_gpu_flops_new(const struct xsp_capture_reader *r, struct xsp_gpu_flops **out)
{
	*out = calloc(1, sizeof(**out));
	if (*out == NULL)
		return -ENOMEM;
	const int rc = xsp_torch_args_new(r, &(*out)->arguments);
	if (rc < 0) {
		free(*out);
		*out = NULL;
	}
	return rc;
}

void xsp_gpu_flops_free(struct xsp_gpu_flops *f)
{
	if (f == NULL)
		return;
	xsp_torch_args_free(f->arguments);
	xsp_u64map_free(&f->op_of);
	xsp_tally_free(&f->uses);
	free(f->ops);
	free(f);
}

/* ---- operators that wait for their kernels ---- */

static int add_up(struct xsp_gpu_flops *f, const struct op *op)
{
	xsp_u64map_remove(&f->op_of, op->id);
	if (op->gpu_ns == 0)
		return 0;
	struct xsp_gpu_flops_use *use =
		xsp_tally_row(&f->uses, op->name, &(struct xsp_gpu_flops_use){.name = op->name});
	if (use == NULL)
		return -ENOMEM;
	use->calls++;
	xsp_add_saturated(&use->flops, op->flops);
	xsp_add_saturated(&use->bytes, op->bytes);
	xsp_add_saturated(&use->gpu_ns, op->gpu_ns);
	return 0;
}

int xsp_gpu_flops_op(struct xsp_gpu_flops *f, uint64_t id, xsp_name_id name, uint64_t flops,
		     uint64_t bytes)
{
	size_t at = f->count;
	int rc = 0;

	if (f->count < XSP_GPU_FLOPS_WAITING) {
		rc = xsp_grow(&f->ops, &f->capacity, f->count + 1);
		f->count += rc == 0;
	} else {
		at = f->oldest;
		f->oldest = (f->oldest + 1) % XSP_GPU_FLOPS_WAITING;
		rc = add_up(f, &f->ops[at]);
	}
	if (rc < 0)
		return rc;
	f->ops[at] = (struct op){.id = id, .flops = flops, .bytes = bytes, .name = name};
	return xsp_u64map_set(&f->op_of, id, (uint32_t)at);
}

void xsp_gpu_flops_work(struct xsp_gpu_flops *f, uint64_t id, uint64_t ns)
{
	const uint32_t *at = id != 0 ? xsp_u64map_get(&f->op_of, id) : NULL;

	if (at != NULL)
		xsp_add_saturated(&f->ops[*at].gpu_ns, ns);
}

int xsp_gpu_flops_end(struct xsp_gpu_flops *f)
{
	int rc = 0;

	for (size_t i = 0; i < f->count && rc == 0; i++)
		rc = add_up(f, &f->ops[i]);
	f->count = 0;
	return rc;
}

/* ---- arguments ---- */

static bool add_tensors(const struct xsp_torch_values *v, uint64_t *bytes)
{
	bool fits = true;

	for (size_t i = 0; i < v->count; i++)
		for (size_t k = 0; k < v->items[i].tensor_count; k++) {
			const struct xsp_torch_tensor *t = &v->items[i].tensors[k];
			uint64_t size;
			if (t->presence != XSP_TORCH_PRESENT || t->numel < 0 || t->on_host)
				continue;
			fits = fits &&
			       !__builtin_mul_overflow((uint64_t)t->numel,
						       xsp_torch_type_size(t->dtype), &size) &&
			       !__builtin_add_overflow(*bytes, size, bytes);
		}
	return fits;
}

int xsp_gpu_flops_span(struct xsp_gpu_flops *f, const struct xsp_span *span)
{
	const struct xsp_section *s = xsp_details_find(span->details, XSP_SECTION_ARGS, NULL);
	uint64_t flops, bytes = 0;

	if (s == NULL || !xsp_span_has_duration(span) ||
	    span->end_ns - span->start_ns > XSP_GPU_FLOPS_LONGEST_NS ||
	    !xsp_torch_args_read(f->arguments, span, s, &f->values) ||
	    !xsp_flops(&f->values, &flops) || !add_tensors(&f->values, &bytes))
		return 0;
	s = xsp_details_find(span->details, XSP_SECTION_OUTPUTS, NULL);
	if (s != NULL && xsp_torch_args_read(f->arguments, span, s, &f->values) &&
	    !add_tensors(&f->values, &bytes))
		return 0;
	return xsp_gpu_flops_op(f, span->serial + 1, span->name, flops, bytes);
}

XSP_TALLY_ROWS(xsp_gpu_flops_uses, xsp_gpu_flops, xsp_gpu_flops_use, uses);
