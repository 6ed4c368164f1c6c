/* SPDX-License-Identifier: BSD-2-Clause */
/* refuse.h - targets that nothing is injected into, and why. */
#ifndef XSP_INJECT_REFUSE_H
#define XSP_INJECT_REFUSE_H

#include <sys/types.h>

#include "base/error.h"
#include "inject/questions.h"

/* Looks at the process from outside. 0, or a negative errno with the reason and what to do. */
int xsp_refuse_process(pid_t pid, struct xsp_error *err);
/* Is libc there, with all that is needed? Fills the functions of the stub. */
struct xsp_stub_data;
int xsp_refuse_image(pid_t pid, const struct xsp_image_facts *facts, struct xsp_stub_data *stub,
		     struct xsp_error *err);

#endif
