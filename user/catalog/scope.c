/* SPDX-License-Identifier: BSD-2-Clause */
#include "catalog/scope.h"

#include <stddef.h>

const char *xsp_scope_name(enum xsp_scope scope)
{
	static const char *const names[XSP_SCOPES] = {[XSP_SCOPE_FUNCTION] = "function",
						      [XSP_SCOPE_BACKWARD] = "backward",
						      [XSP_SCOPE_USER] = "user"};

	return (unsigned)scope < XSP_SCOPES ? names[scope] : NULL;
}

const char *xsp_record_scope_name(unsigned scope)
{
	static const char *const names[XSP_RECORD_SCOPES] = {
		"function",
		"backward",
		"torchscript function",
		"kernel function dtype",
		"custom class",
		"build feature",
		"lite interpreter",
		"user",
		"static runtime op",
		"static runtime model",
	};

	return scope < XSP_RECORD_SCOPES ? names[scope] : NULL;
}
