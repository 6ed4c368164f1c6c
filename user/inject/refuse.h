/* SPDX-License-Identifier: BSD-2-Clause */
/* refuse.h - which targets are refused, and why. */
#ifndef XSP_INJECT_REFUSE_H
#define XSP_INJECT_REFUSE_H

#include <sys/types.h>

#include "base/error.h"
#include "inject/questions.h"

/* Checks the process from outside. 0, or a negative errno with the reason and what to do. */
int xsp_refuse_process(pid_t pid, struct xsp_error *err);
/* Is libc there, with all functions that the stub needs? Fills them in. */
struct xsp_stub_data;
int xsp_refuse_image(pid_t pid, const struct xsp_image_facts *facts, struct xsp_stub_data *stub,
		     struct xsp_error *err);

#endif
