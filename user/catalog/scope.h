/* SPDX-License-Identifier: BSD-2-Clause */
/* scope.h - what a span is to PyTorch's profiler: an operator, a node of the backward pass, a range that
 * the program names, ... Captures carry these numbers. */
#ifndef XSP_CATALOG_SCOPE_H
#define XSP_CATALOG_SCOPE_H

/* Of a probe, as --scopes has it. */
enum xsp_scope {
	XSP_SCOPE_NONE = 0, /* the user's own pattern, an API: not chosen by scope */
	XSP_SCOPE_FUNCTION, /* an operator */
	XSP_SCOPE_BACKWARD, /* a node of the backward pass */
	XSP_SCOPE_USER, /* a range that the program names */
	XSP_SCOPE_OWN, /* each call says: enum xsp_record_scope, the section SCOPE */
	XSP_SCOPES,
};
/* For messages and outputs: "function", "backward", "user", else NULL. */
const char *xsp_scope_name(enum xsp_scope scope);

/* Of a call: at::RecordScope, ATen/record_function.h. What is not named here is a kind of functions. */
enum xsp_record_scope {
	XSP_RECORD_SCOPE_BACKWARD = 1,
	XSP_RECORD_SCOPE_USER = 7,
	XSP_RECORD_SCOPES = 10,
};
const char *xsp_record_scope_name(unsigned scope); /* NULL: none that is known */

#endif
