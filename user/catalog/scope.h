/* SPDX-License-Identifier: BSD-2-Clause */
/* scope.h - what a span is to PyTorch's profiler: an operator, a node of the backward pass, a range
 * that the program names, and so on. Captures hold these numbers. */
#ifndef XSP_CATALOG_SCOPE_H
#define XSP_CATALOG_SCOPE_H

/* The scope of a probe, as --scopes names it. */
enum xsp_scope {
	XSP_SCOPE_NONE = 0, /* a pattern of the user, an API: not selected by scope */
	XSP_SCOPE_FUNCTION, /* an operator */
	XSP_SCOPE_BACKWARD, /* a node of the backward pass */
	XSP_SCOPE_USER, /* a range that the program names */
	XSP_SCOPE_OWN, /* each call says its own: enum xsp_record_scope, in the section SCOPE */
	XSP_SCOPES,
};
/* The name for messages and outputs: "function", "backward", "user", else NULL. */
const char *xsp_scope_name(enum xsp_scope scope);

/* The scope of a call: at::RecordScope of ATen/record_function.h. The others are kinds of
 * functions. */
enum xsp_record_scope {
	XSP_RECORD_SCOPE_BACKWARD = 1,
	XSP_RECORD_SCOPE_USER = 7,
	XSP_RECORD_SCOPES = 10,
};
const char *xsp_record_scope_name(unsigned scope); /* NULL: unknown */

#endif
