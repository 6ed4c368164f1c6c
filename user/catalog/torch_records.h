/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * torch_records.h - the records of the sections ARGS and OUTPUTS, and whether a tensor in one can be
 * what it should be. Everything in them comes from the target and is not to be believed.
 */
#ifndef XSP_CATALOG_TORCH_RECORDS_H
#define XSP_CATALOG_TORCH_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xsptrace/args.h"

/* The words of a section, and their number; a damaged section has none. */
const uint64_t *xsp_torch_argument_words(const struct xsp_section *s, size_t *count);

/* The record behind `after` (NULL: the first), or NULL. Whole in the section. */
const struct xsp_args_record *xsp_torch_next_record(const struct xsp_section *s,
						    const struct xsp_args_record *after);

/* What a record's vtable pointer is defined as in the capture (XSP_RECORD_NAME): by process. */
uint64_t xsp_torch_vtable_hash(uint64_t vtable, uint32_t tgid);

enum xsp_torch_impl {
	XSP_TORCH_IMPL_UNKNOWN = 0, /* no class that we know to hold its sizes */
	XSP_TORCH_IMPL_TENSOR, /* c10::TensorImpl, or a class that keeps its sizes there */
	XSP_TORCH_IMPL_NO_STRIDES, /* the same, but its layout has no strides */
	XSP_TORCH_IMPL_NONE, /* an undefined tensor; a nested one, whose sizes are not there:
			      * PyTorch's profiler shows both as nothing */
};
enum xsp_torch_impl xsp_torch_impl_of(const char *class_name);

/* A record of kind TENSOR that was read: are its members what those of a tensor are? `flag_first`: of
 * struct xsp_args_spec. */
bool xsp_torch_tensor_good(const struct xsp_args_record *r, bool flag_first);
/* Its members (struct xsp_args_tensor and the sizes behind it); NULL: too short. */
const struct xsp_args_tensor *xsp_torch_tensor(const struct xsp_args_record *r);
const int64_t *xsp_torch_sizes(const struct xsp_args_tensor *t);
const int64_t *xsp_torch_strides(const struct xsp_args_tensor *t);

#endif
