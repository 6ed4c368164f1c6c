/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * abi.h - where the arguments of a PyTorch operator are when it is entered.
 *
 * The demangled parameter types determine it (System V x86-64 psABI, 3.2.3): which travel in
 * integer registers, in vector registers, on the stack, or by a hidden reference. Sizes and members
 * of PyTorch's classes are those of 1.13.1, 2.6.0 and 2.14.1, compiled and dumped with the headers
 * and compiler of each. It is used when a probe is made, and again when its capture is read.
 */
#ifndef XSP_CATALOG_TORCH_ABI_H
#define XSP_CATALOG_TORCH_ABI_H

#include "catalog/torch/schema.h"
#include "xsptrace/args.h"

/* What the bytes of an argument are. */
enum xsp_torch_form {
	XSP_TORCH_FORM_NONE = 0, /* nothing to show: generators, names, streams */
	XSP_TORCH_FORM_TENSOR,
	XSP_TORCH_FORM_TENSORS,
	XSP_TORCH_FORM_OPTIONAL_TENSORS, /* List<optional<Tensor>>: not read */
	XSP_TORCH_FORM_INT, /* 64 bits */
	XSP_TORCH_FORM_SYMINT, /* 64 bits, or a symbol */
	XSP_TORCH_FORM_INT8, /* ScalarType, Layout, MemoryFormat, QScheme */
	XSP_TORCH_FORM_BOOL,
	XSP_TORCH_FORM_DOUBLE,
	XSP_TORCH_FORM_DEVICE, /* type, index: 8 bits each */
	XSP_TORCH_FORM_SCALAR, /* c10::Scalar: u32 tag, 16 bytes at 16 */
	XSP_TORCH_FORM_STRING,
	XSP_TORCH_FORM_INTS, /* lists */
	XSP_TORCH_FORM_SYMINTS,
	XSP_TORCH_FORM_DOUBLES,
	XSP_TORCH_FORM_SCALARS,
	XSP_TORCH_FORM_BOOLS, /* std::array<bool, N>: in the argument itself */
};

#define XSP_TORCH_NO_WORD 0xff
#define XSP_TORCH_NO_FLAG 0xff

/* One argument: an object of up to three words. */
struct xsp_torch_place {
	uint8_t form; /* enum xsp_torch_form */
	bool behind; /* the first word is the address of the object, which an item reads */
	uint8_t size; /* of the object in bytes; of one behind an address, the bytes to read */
	/* numbers of words (xsptrace/args.h), or XSP_TORCH_NO_WORD: it is in a vector register,
	 * which a probe cannot see */
	uint8_t word[3];
	uint8_t value; /* offset of the value, or of a list's address, in the object */
	uint8_t length; /* offset of a list's length; BOOLS: the length */
	uint8_t flag; /* offset of an optional's flag (one byte), or XSP_TORCH_NO_FLAG */
	bool null_is_none; /* an ArrayRef {NULL, not 0} is an optional without value */
};

/* The optional of the C++ library that the module was built with. */
enum xsp_torch_flavor {
	XSP_TORCH_C10_OPTIONAL = 0, /* PyTorch's own c10::optional: {flag, value} */
	XSP_TORCH_STD_OPTIONAL = 1, /* libstdc++'s: {value, flag} */
};

struct xsp_torch_call {
	struct xsp_torch_place places[XSP_TORCH_ARGUMENTS_MAX];
	size_t count;
	unsigned stack; /* words of the stack that hold arguments */
	bool result_slot; /* the first register is the address for the result */
};

/* The flavor that the parameters of a demangled function show; -ENOENT: either is possible. */
int xsp_torch_flavor(const char *demangled);

/* Places the arguments of a function whose demangled name has a parameter list. -ENOTSUP: a type or
 * the return type is not in the table, or there are too many words. Then nothing may be read. */
int xsp_torch_place(const struct xsp_torch_schema *s, const char *demangled,
		    enum xsp_torch_flavor flavor, struct xsp_torch_call *out);

/* What to read. */
enum xsp_torch_parts {
	XSP_TORCH_PART_TENSORS = 1 << 0, /* tensors, and which optionals have a value */
	XSP_TORCH_PART_INPUTS = 1 << 1, /* the values of other arguments */
	XSP_TORCH_PART_VALUES = 1 << 2, /* first elements of tensors */
	XSP_TORCH_PART_OUTPUTS = 1 << 3, /* the tensors that are returned */
	/* what FLOPs of convolutions depend on: stride, padding, ... */
	XSP_TORCH_PART_FLOPS = 1 << 4,
};

/* Fills all of `out` except the layout. False: some arguments are beyond XSP_ARGS_ITEMS and are not
 * read. */
bool xsp_torch_build_spec(const struct xsp_torch_schema *s, const struct xsp_torch_call *call,
			  unsigned parts, enum xsp_torch_flavor flavor, struct xsp_args_spec *out);

/* Which words of the call say whether an argument that is no tensor has a value. */
struct xsp_args_kept xsp_torch_kept(const struct xsp_torch_call *call);

/* The number of tensors that the schema returns, if they can be read, else 0. *list: it is one list
 * of tensors. */
unsigned xsp_torch_outputs(const struct xsp_torch_schema *s, bool *list);

#define XSP_TORCH_LAYOUTS 3
/* c10::TensorImpl in the known versions, newest last. */
extern const struct xsp_tensor_layout xsp_torch_layouts[XSP_TORCH_LAYOUTS];

/* The name of a TypeMeta as PyTorch's profiler shows it ("float", "c10::Half"), or NULL. */
const char *xsp_torch_type_name(unsigned dtype, enum xsp_torch_flavor flavor);
/* Bytes of an element; 0: unknown. */
unsigned xsp_torch_type_size(unsigned dtype);

#endif
