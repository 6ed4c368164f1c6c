/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * records.h - the records of the sections ARGS and OUTPUTS, and whether a tensor in one is
 * plausible. All of it comes from the target and is not to be trusted.
 */
#ifndef XSP_CATALOG_TORCH_RECORDS_H
#define XSP_CATALOG_TORCH_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xsptrace/args.h"

/* The words of a section, and their number; 0 if the section is damaged. */
const uint64_t *xsp_torch_argument_words(const struct xsp_section *s, size_t *count);

/* The record after `after` (NULL: the first), or NULL. It lies wholly in the section. */
const struct xsp_args_record *xsp_torch_next_record(const struct xsp_section *s,
						    const struct xsp_args_record *after);

/* The hash under which the capture defines a vtable pointer (XSP_RECORD_NAME), for each process. */
uint64_t xsp_torch_vtable_hash(uint64_t vtable, uint32_t tgid);

enum xsp_torch_impl {
	XSP_TORCH_IMPL_UNKNOWN = 0, /* a class that may not hold its sizes there */
	XSP_TORCH_IMPL_TENSOR, /* c10::TensorImpl, or a class that keeps its sizes there */
	XSP_TORCH_IMPL_NO_STRIDES, /* the same, but its layout has no strides */
	/* an undefined tensor, or a nested one, whose sizes are elsewhere: PyTorch's profiler shows
	 * both as nothing */
	XSP_TORCH_IMPL_NONE,
};
enum xsp_torch_impl xsp_torch_impl_of(const char *class_name);

/* Are the members of this TENSOR record those of a tensor? `flag_first` is that of struct
 * xsp_args_spec. */
bool xsp_torch_tensor_good(const struct xsp_args_record *r, bool flag_first);
/* Its members (struct xsp_args_tensor, then the sizes); NULL: the record is too short. */
const struct xsp_args_tensor *xsp_torch_tensor(const struct xsp_args_record *r);
const int64_t *xsp_torch_sizes(const struct xsp_args_tensor *t);
const int64_t *xsp_torch_strides(const struct xsp_args_tensor *t);

#endif
