/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * javascript.h - names for frames of JavaScript in processes that run V8 (node). Interpreted functions share their code,
 * and compiled ones have it in memory of no file; but each frame says which function it is of. The resolver gets an
 * address for each function, which stands for it in stacks ("app.js:12 handler").
 */
#ifndef XSP_RECORD_JAVASCRIPT_H
#define XSP_RECORD_JAVASCRIPT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "target/resolve.h"
#include "target/v8/v8.h"

struct xsp_javascript;

/* `o` and `r` are borrowed. 0 or -ENOMEM. */
int xsp_javascript_new(const struct xsp_opener *o, struct xsp_resolver *r,
		       struct xsp_javascript **out);
void xsp_javascript_free(struct xsp_javascript *j);

/* The address that stands for the function of a frame with code at `pc`; 0: it is none of JavaScript, or not known.
 * `frame`: what is below its rbp; NULL: not known. *code: what is at `pc`, if the process is known to run V8. A builtin or
 * a bridge is called by the frame's function; other code is a part of it. */
uint64_t xsp_javascript_frame(struct xsp_javascript *j, pid_t pid, uint64_t pc,
			      const struct xsp_v8_frame *frame, enum xsp_v8_code *code);
/* The process has ended, or runs another program. */
void xsp_javascript_forget(struct xsp_javascript *j, pid_t pid);

#endif
