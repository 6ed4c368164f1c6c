/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/spans/scope.h"

#include "catalog/scope.h"

const char *xsp_span_scope(const struct xsp_capture_probe *probe, const struct xsp_span *span)
{
	const struct xsp_section *s = xsp_details_own_scope(span->details, probe->scope);
	const char *name = s != NULL ? xsp_record_scope_name(s->value) : NULL;

	return name != NULL ? name : xsp_scope_name((enum xsp_scope)probe->scope);
}

bool xsp_is_user_annotation(const struct xsp_capture_probe *probe, const struct xsp_span *span)
{
	const struct xsp_section *s = xsp_details_own_scope(span->details, probe->scope);

	if (probe->kind != XSP_PROBE_ANNOTATION)
		return false;
	return s == NULL || s->value >= XSP_RECORD_SCOPES || s->value == XSP_RECORD_SCOPE_USER;
}
