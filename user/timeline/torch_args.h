/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * torch_args.h - the arguments and results of a PyTorch operator, from the sections ARGS and
 * OUTPUTS of its span. What fails a check (a tensor of an unknown class, sizes that do not multiply
 * to its number of elements, ...) is unknown, never a guess.
 */
#ifndef XSP_TIMELINE_TORCH_ARGS_H
#define XSP_TIMELINE_TORCH_ARGS_H

#include <stdbool.h>

#include "catalog/torch/records.h"
#include "catalog/torch/values.h"
#include "timeline/timeline.h"

struct xsp_torch_args;

/* For the operators that the capture defines. 0 or -ENOMEM. */
int xsp_torch_args_new(const struct xsp_capture_reader *r, struct xsp_torch_args **out);
void xsp_torch_args_free(struct xsp_torch_args *a); /* NULL is allowed */

/* Reads a section of a span. False: another section, or its operator is not defined. `out` points
 * into the section. */
bool xsp_torch_args_read(const struct xsp_torch_args *a, const struct xsp_span *span,
			 const struct xsp_section *s, struct xsp_torch_values *out);

#endif
