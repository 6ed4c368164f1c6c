/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/torch/flops.h"
#include "export/chrome/json.h"
#include "export/chrome/parts.h"
#include "timeline/torch_args.h"

/* PyTorch shows no longer lists of numbers (torch/csrc/profiler/collection.cpp,
 * SCALAR_LIST_LENGTH_LIMIT). */
#define LIST_LIMIT 30U

/* ---- tensors ---- */

static void put_numbers(struct xsp_out *o, const int64_t *numbers, size_t count)
{
	char *p = xsp_out_reserve(o, 24 * XSP_ARGS_DIMS_MAX);

	*p++ = '[';
	for (size_t i = 0; i < count && i < XSP_ARGS_DIMS_MAX; i++) {
		if (i > 0)
			p = XSP_PUT(p, ", ");
		if (numbers[i] < 0)
			*p++ = '-';
		p = xsp_put_u64(p, numbers[i] < 0 ? -(uint64_t)numbers[i] : (uint64_t)numbers[i]);
	}
	*p++ = ']';
	xsp_out_commit(o, p);
}

static void put_dims(struct xsp_out *o, const struct xsp_torch_tensor *t)
{
	put_numbers(o, t->sizes, t->presence == XSP_TORCH_PRESENT ? t->dims : 0);
}

static void put_strides(struct xsp_out *o, const struct xsp_torch_tensor *t)
{
	put_numbers(o, t->strides, t->presence == XSP_TORCH_PRESENT && t->strided ? t->dims : 0);
}

/* Writes a list of what `put` writes for each tensor; other arguments are []. */
static void put_tensors(struct xsp_out *o, const char *key, const struct xsp_torch_values *v,
			void (*put)(struct xsp_out *o, const struct xsp_torch_tensor *t))
{
	xsp_out_text(o, key);
	for (size_t i = 0; i < v->count; i++) {
		const struct xsp_torch_value *a = &v->items[i];
		if (i > 0)
			xsp_out_text(o, ", ");
		if (a->form == XSP_TORCH_FORM_TENSOR && a->tensor_count == 1) {
			put(o, &a->tensors[0]);
			continue;
		}
		xsp_out_text(o, "[");
		for (size_t k = 0; a->form == XSP_TORCH_FORM_TENSORS && k < a->tensor_count; k++) {
			if (k > 0)
				xsp_out_text(o, ", ");
			put(o, &a->tensors[k]);
		}
		xsp_out_text(o, "]");
	}
	xsp_out_text(o, "]");
}

/* The profiler's name for the type of an argument. */
static const char *type_of(const struct xsp_torch_values *all, const struct xsp_torch_value *v)
{
	if (v->presence != XSP_TORCH_PRESENT)
		return "";
	switch (v->form) {
	case XSP_TORCH_FORM_TENSOR:
		return v->tensors[0].type;
	case XSP_TORCH_FORM_TENSORS:
		return "TensorList";
	case XSP_TORCH_FORM_INT:
	case XSP_TORCH_FORM_SYMINT:
	case XSP_TORCH_FORM_INT8:
	case XSP_TORCH_FORM_BOOL:
	case XSP_TORCH_FORM_DOUBLE:
	case XSP_TORCH_FORM_SCALAR:
		return "Scalar";
	case XSP_TORCH_FORM_INTS:
	case XSP_TORCH_FORM_SYMINTS:
	case XSP_TORCH_FORM_DOUBLES:
	case XSP_TORCH_FORM_SCALARS:
	case XSP_TORCH_FORM_BOOLS:
		/* the profiler of 1.13 had no lists */
		return all->flavor == XSP_TORCH_STD_OPTIONAL && v->length <= LIST_LIMIT
			       ? "ScalarList"
			       : "";
	default:
		return "";
	}
}

static void put_types(struct xsp_out *o, const char *key, const struct xsp_torch_values *v)
{
	xsp_out_text(o, key);
	for (size_t i = 0; i < v->count; i++) {
		xsp_out_text(o, i > 0 ? ", \"" : "\"");
		xsp_out_text(o, type_of(v, &v->items[i]));
		xsp_out_text(o, "\"");
	}
	xsp_out_text(o, "]");
}

/* Writes the true lengths of lists of tensors that were read in part. */
static void put_cut(struct xsp_out *o, const struct xsp_torch_values *v)
{
	bool any = false;

	for (size_t i = 0; i < v->count; i++) {
		const struct xsp_torch_value *a = &v->items[i];
		if (a->form != XSP_TORCH_FORM_TENSORS || !a->cut)
			continue;
		xsp_out_text(o, any ? ", " : ",\"List lengths\":[");
		xsp_out_u64(o, a->length);
		any = true;
	}
	if (any)
		xsp_out_text(o, "]");
}

/* ---- other arguments, as operator<< of c10::IValue prints them ---- */

static void put_real(FILE *f, double d)
{
	if ((fpclassify(d) == FP_NORMAL || d == 0) && fabs(d) < 1e10 && d == (double)(int64_t)d)
		fprintf(f, "%s%lld.", d == 0 && signbit(d) ? "-" : "", (long long)d);
	else
		fprintf(f, "%.17g", d);
}

static bool put_number(FILE *f, const struct xsp_torch_values *all, const struct xsp_torch_value *v,
		       size_t index)
{
	int64_t integer = 0;
	double real[2] = {0};

	switch (xsp_torch_number(all, v, index, &integer, real)) {
	case XSP_TORCH_INTEGER:
		fprintf(f, "%lld", (long long)integer);
		return true;
	case XSP_TORCH_REAL:
		put_real(f, real[0]);
		return true;
	case XSP_TORCH_COMPLEX:
		put_real(f, real[0]);
		fputc(real[1] >= 0 ? '+' : '-', f);
		put_real(f, fabs(real[1]));
		fputc('j', f);
		return true;
	case XSP_TORCH_TRUTH:
		fputs(integer ? "True" : "False", f);
		return true;
	default:
		return false;
	}
}

static bool is_list(const struct xsp_torch_value *v)
{
	return v->form == XSP_TORCH_FORM_INTS || v->form == XSP_TORCH_FORM_SYMINTS ||
	       v->form == XSP_TORCH_FORM_DOUBLES || v->form == XSP_TORCH_FORM_SCALARS ||
	       v->form == XSP_TORCH_FORM_BOOLS;
}

/* False: the value is not known, or has no text. */
static bool put_value(FILE *f, const struct xsp_torch_values *all, const struct xsp_torch_value *v)
{
	bool known = v->known;

	if (!v->known || v->presence != XSP_TORCH_PRESENT)
		return false;
	if (!is_list(v))
		return put_number(f, all, v, 0);
	fputc('[', f);
	for (size_t i = 0; i < v->length && known; i++) {
		if (i > 0)
			fputs(", ", f);
		known = put_number(f, all, v, i);
		if (!known && v->cut) {
			fputs("...", f);
			known = true;
			break;
		}
	}
	fputc(']', f);
	return known;
}

/* PyTorch shows only numbers and lists of numbers here. */
static bool put_concrete(FILE *f, const struct xsp_torch_values *all,
			 const struct xsp_torch_value *v)
{
	return !(is_list(v) && v->length > LIST_LIMIT) && put_value(f, all, v);
}

/* c10/core/DeviceType.h */
static void put_device(FILE *f, const uint8_t *device)
{
	static const char *const types[] = {"cpu",    "cuda",  "mkldnn", "opengl", "opencl",
					    "ideep",  "hip",   "fpga",	 "maia",   "xla",
					    "vulkan", "metal", "xpu",	 "mps",	   "meta",
					    "hpu",    "ve",    "lazy",	 "ipu",	   "mtia"};

	if (device[0] < sizeof(types) / sizeof(types[0]))
		fputs(types[device[0]], f);
	else
		fprintf(f, "device type %u", device[0]);
	if ((int8_t)device[1] >= 0)
		fprintf(f, ":%u", device[1]);
}

/* The same, and what PyTorch does not show: strings, devices, names of types. */
static bool put_named(FILE *f, const struct xsp_torch_values *all, const struct xsp_torch_value *v)
{
	const char *type;

	if (!v->known || v->presence != XSP_TORCH_PRESENT)
		return false;
	if (v->form == XSP_TORCH_FORM_STRING) {
		fwrite(v->bytes, 1, v->length < v->size ? v->length : v->size, f);
		fputs(v->cut ? "..." : "", f);
		return true;
	}
	if (v->form == XSP_TORCH_FORM_DEVICE) {
		put_device(f, v->object);
		return true;
	}
	type = v->base == XSP_TORCH_SCALAR_TYPE ? xsp_torch_type_name(v->object[0], all->flavor)
						: NULL;
	if (type != NULL) {
		fputs(type, f);
		return true;
	}
	return put_value(f, all, v);
}

/* ---- elements of tensors ---- */

static bool is_contiguous(const struct xsp_torch_tensor *t)
{
	int64_t expected = 1;

	for (unsigned i = t->dims; i > 0; i--) {
		if (t->sizes[i - 1] != 1 && t->strides[i - 1] != expected)
			return false;
		expected *= t->sizes[i - 1];
	}
	return true;
}

static double half(uint16_t bits)
{
	int exponent = bits >> 10 & 31, fraction = bits & 1023;
	double d = exponent == 31 ? (fraction ? NAN : INFINITY)
		   : exponent	  ? ldexp(1024 + fraction, exponent - 25)
				  : ldexp(fraction, -24);

	return bits >> 15 ? -d : d;
}

static double bfloat(uint16_t bits)
{
	uint32_t wide = (uint32_t)bits << 16;
	float f;

	memcpy(&f, &wide, sizeof(f));
	return (double)f;
}

static bool put_element(FILE *f, unsigned dtype, size_t size, const uint8_t *p)
{
	union {
		uint8_t u8;
		int8_t i8;
		int16_t i16;
		int32_t i32;
		int64_t i64;
		uint16_t bits;
		float real32;
		double real64;
	} v = {.i64 = 0};

	memcpy(&v, p, size < sizeof(v) ? size : sizeof(v));
	switch (dtype) { /* c10/core/ScalarType.h */
	case 0:
		return fprintf(f, "%u", v.u8) > 0;
	case 1:
		return fprintf(f, "%d", v.i8) > 0;
	case 2:
		return fprintf(f, "%d", v.i16) > 0;
	case 3:
		return fprintf(f, "%d", v.i32) > 0;
	case 4:
		return fprintf(f, "%lld", (long long)v.i64) > 0;
	case 5:
		return fprintf(f, "%.5g", half(v.bits)) > 0;
	case 6:
		return fprintf(f, "%.9g", (double)v.real32) > 0;
	case 7:
		return fprintf(f, "%.17g", v.real64) > 0;
	case 11:
		return fputs(v.u8 ? "True" : "False", f) >= 0;
	case 15:
		return fprintf(f, "%.5g", bfloat(v.bits)) > 0;
	default:
		return false;
	}
}

static bool put_elements(FILE *f, const struct xsp_torch_values *all,
			 const struct xsp_torch_value *v)
{
	const struct xsp_torch_tensor *t = &v->tensors[0];
	size_t size = v->tensor_count == 1 ? xsp_torch_type_size(t->dtype) : 0;

	(void)all;
	if (v->form != XSP_TORCH_FORM_TENSOR || size == 0 || t->elements == NULL || !t->on_host ||
	    !t->strided || !is_contiguous(t))
		return false;
	size_t count = t->element_bytes / size;
	fputc('[', f);
	for (size_t i = 0; i < count; i++) {
		fputs(i > 0 ? ", " : "", f);
		if (!put_element(f, t->dtype, size, t->elements + i * size))
			return false;
	}
	fputs((uint64_t)t->numel > count ? ", ...]" : "]", f);
	return true;
}

/* ---- keys ---- */

typedef bool (*put_fn)(FILE *f, const struct xsp_torch_values *all,
		       const struct xsp_torch_value *v);

/* What `put` writes for a value, malloced; *any says whether it wrote something. NULL: no
 * memory. */
static char *text_of(put_fn put, const struct xsp_torch_values *all,
		     const struct xsp_torch_value *v, bool *any)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (f == NULL)
		return NULL;
	*any = put(f, all, v);
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

static int put_list(struct xsp_out *o, const char *key, const struct xsp_torch_values *v,
		    put_fn put)
{
	xsp_out_text(o, key);
	for (size_t i = 0; i < v->count; i++) {
		bool any = false;
		char *text = text_of(put, v, &v->items[i], &any);
		if (text == NULL)
			return -ENOMEM;
		xsp_out_text(o, i > 0 ? ", " : "");
		xsp_out_json(o, any ? text : "");
		free(text);
	}
	xsp_out_text(o, "]");
	return 0;
}

/* {"stride": "[1, 1]", ...}: the values that are known. */
static int put_object(struct xsp_out *o, const char *key, const struct xsp_torch_values *v,
		      put_fn put)
{
	size_t written = 0;

	for (size_t i = 0; i < v->count && !v->doubtful; i++) {
		bool any = false;
		char *text = text_of(put, v, &v->items[i], &any);
		if (text == NULL)
			return -ENOMEM;
		if (any) {
			xsp_out_text(o, written++ == 0 ? key : ", ");
			xsp_out_json(o, v->items[i].name);
			xsp_out_text(o, ":");
			xsp_out_json(o, text);
		}
		free(text);
	}
	xsp_out_text(o, written > 0 ? "}" : "");
	return 0;
}

static int put_arguments(struct xsp_out *o, const struct xsp_torch_values *v)
{
	uint64_t flops;
	int rc = 0;

	if (v->count == 0)
		return 0;
	if (v->tensors_known) {
		put_tensors(o, ",\"Input Dims\":[", v, put_dims);
		put_tensors(o, ",\"Input Strides\":[", v, put_strides);
		put_types(o, ",\"Input type\":[", v);
		put_cut(o, v);
	} else {
		xsp_out_text(o, ",\"Input unknown\":true");
	}
	if ((v->parts & XSP_TORCH_PART_FLOPS) && xsp_flops(v, &flops)) {
		xsp_out_text(o, ",\"FLOPs\":");
		xsp_out_u64(o, flops);
	}
	if (v->parts & XSP_TORCH_PART_INPUTS) {
		rc = put_list(o, ",\"Concrete Inputs\":[", v, put_concrete);
		if (rc == 0)
			rc = put_object(o, ",\"Named Inputs\":{", v, put_named);
	}
	if (rc == 0 && (v->parts & XSP_TORCH_PART_VALUES))
		rc = put_object(o, ",\"Input Values\":{", v, put_elements);
	return rc;
}

static void put_results(struct xsp_out *o, const struct xsp_torch_values *v)
{
	if (v->count == 0)
		return;
	if (!v->tensors_known) {
		xsp_out_text(o, ",\"Output unknown\":true");
		return;
	}
	put_tensors(o, ",\"Output Dims\":[", v, put_dims);
	put_tensors(o, ",\"Output Strides\":[", v, put_strides);
	put_types(o, ",\"Output type\":[", v);
}

int xsp_chrome_args(struct xsp_export *x, const struct xsp_span *span,
		    const struct xsp_section *section)
{
	struct xsp_torch_args **arguments = &xsp_chrome_of(x)->arguments;
	struct xsp_torch_values v;

	if (*arguments == NULL) {
		int rc = xsp_torch_args_new(x->view.reader, arguments);
		if (rc < 0)
			return rc;
	}
	if (!xsp_torch_args_read(*arguments, span, section, &v))
		return 0;
	if (section->type == XSP_SECTION_ARGS)
		return put_arguments(x->out, &v);
	put_results(x->out, &v);
	return 0;
}
