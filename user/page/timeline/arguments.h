/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arguments.h - what else is known of spans, states, samples and GPU work, as the Chrome trace has
 * it: shapes, stacks, modules. It is made of parts (for a span, its sections). Most parts repeat,
 * so each is stored once.
 */
#ifndef XSP_REPORT_ARGUMENTS_H
#define XSP_REPORT_ARGUMENTS_H

#include "model/rows/states.h"
#include "page/texts.h"
#include "timeline/gpu.h"

struct xsp_arguments;

int xsp_arguments_new(struct xsp_arguments **out); /* 0 or -ENOMEM */
void xsp_arguments_free(struct xsp_arguments *a); /* NULL is allowed */
void xsp_arguments_begin(struct xsp_arguments *a, struct xsp_capture_reader *reader,
			 struct xsp_timeline *timeline);
void xsp_arguments_end(struct xsp_arguments *a); /* call it after the capture's run */

/* Each returns the number of its arguments in *number, 0: none. 0 or a negative errno. */
int xsp_arguments_span(struct xsp_arguments *a, const struct xsp_span *span, uint32_t *number);
int xsp_arguments_state(struct xsp_arguments *a, const struct xsp_state_slice *s, uint32_t *number);
int xsp_arguments_sample(struct xsp_arguments *a, const struct xsp_sample *s, uint32_t *number);
int xsp_arguments_activity(struct xsp_arguments *a, const struct xsp_gpu_activity *activity,
			   uint32_t *number);

uint64_t xsp_arguments_left_out(const struct xsp_arguments *a); /* how many found no room */
/* Call these after the last capture: writes only those that are marked. 0 or -ENOMEM. */
int xsp_arguments_mark(struct xsp_arguments *a, uint32_t number);
int xsp_arguments_write(const struct xsp_arguments *a, struct xsp_json_writer *j);

#endif
