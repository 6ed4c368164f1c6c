/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * schema.h - PyTorch's operator schemas, as text and as the C++ functions that they describe.
 *
 * Grammar (aten/src/ATen/native/README.md, torch/csrc/jit/frontend/function_schema_parser.cpp):
 * [NAMESPACE::]NAME[.OVERLOAD](TYPE NAME[=DEFAULT], ..., *, TYPE NAME[=DEFAULT]...) -> RETURNS
 * TYPE = BASE[(ALIAS)] followed by any of ?, [], [N]
 */
#ifndef XSP_CATALOG_TORCH_SCHEMA_H
#define XSP_CATALOG_TORCH_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XSP_TORCH_SCHEMA_MAX 4096U /* bytes of one schema; the longest of 2.6 has 700 */
#define XSP_TORCH_NAME_MAX 256U /* NAME.OVERLOAD */
#define XSP_TORCH_ARGUMENTS_MAX 64U

enum xsp_torch_base {
	XSP_TORCH_OTHER = 0, /* a type that is not in this list */
	XSP_TORCH_TENSOR,
	XSP_TORCH_SCALAR,
	XSP_TORCH_INT,
	XSP_TORCH_SYMINT,
	XSP_TORCH_FLOAT,
	XSP_TORCH_BOOL,
	XSP_TORCH_STR,
	XSP_TORCH_SCALAR_TYPE,
	XSP_TORCH_LAYOUT,
	XSP_TORCH_DEVICE,
	XSP_TORCH_MEMORY_FORMAT,
	XSP_TORCH_GENERATOR,
	XSP_TORCH_DIMNAME,
	XSP_TORCH_STORAGE,
	XSP_TORCH_STREAM,
	XSP_TORCH_QSCHEME,
};

/* What a reader of an argument must know of its type. */
struct xsp_torch_kind {
	uint8_t base; /* enum xsp_torch_base */
	bool list; /* BASE[] */
	bool optional_item; /* BASE?[] */
	bool optional; /* BASE?, BASE[]? */
	/* (a!): the operator writes to it. In C++ it is a reference that is not const */
	bool written;
};

struct xsp_torch_argument {
	const char *type; /* as written: "Tensor(a!)", "int[2]?" */
	const char *name;
	struct xsp_torch_kind kind;
	bool keyword_only; /* it comes after the '*' */
};

struct xsp_torch_schema {
	const char *name; /* "aten::add": what profilers show */
	const char *overload; /* "Tensor", or "" */
	const char *returns; /* "Tensor(a!)", "(Tensor, Tensor)", "()" */
	struct xsp_torch_argument *arguments;
	size_t count;
	char *text; /* holds all the strings above */
};

/* Parses `length` bytes (hostile). A name without a namespace is in aten. -EINVAL: not a schema;
 * -ENOMEM. Free the result with xsp_torch_schema_clear. */
int xsp_torch_schema_parse(const char *text, size_t length, struct xsp_torch_schema *out);
void xsp_torch_schema_clear(struct xsp_torch_schema *s);

/* Have they the same name, overload and arguments (names, types, keyword-only)? Defaults and
 * returns may differ. */
bool xsp_torch_schema_same(const struct xsp_torch_schema *a, const struct xsp_torch_schema *b);

/*
 * The kinds of the parameters of a demangled C++ function ("at::_ops::add_Tensor::call( at::Tensor
 * const&, ...)"). Returns their number, or -EINVAL: there is no parameter list, or it has more than
 * `max`.
 */
long xsp_torch_parameters(const char *demangled, struct xsp_torch_kind *out, size_t max);

/* Can a function with these parameters be the one that the schema describes? A few operators take
 * what they write to by const reference (use_const_ref_for_mutable_tensors), none the other way
 * round. */
bool xsp_torch_schema_fits(const struct xsp_torch_schema *s,
			   const struct xsp_torch_kind *parameters, size_t count);

#endif
