/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/scope.h"

#include "catalog/scope.h"

static const struct xsp_section *own(const struct xsp_capture_probe *probe,
				     const struct xsp_span *span)
{
	return probe->scope == XSP_SCOPE_OWN
		       ? xsp_details_find(span->details, XSP_SECTION_SCOPE, NULL)
		       : NULL;
}

const char *xsp_span_scope(const struct xsp_capture_probe *probe, const struct xsp_span *span)
{
	const struct xsp_section *s = own(probe, span);
	const char *name = s != NULL ? xsp_record_scope_name(s->value) : NULL;

	return name != NULL ? name : xsp_scope_name((enum xsp_scope)probe->scope);
}

bool xsp_is_user_annotation(const struct xsp_capture_probe *probe, const struct xsp_span *span)
{
	const struct xsp_section *s = own(probe, span);

	if (probe->kind != XSP_PROBE_ANNOTATION)
		return false;
	return s == NULL || s->value >= XSP_RECORD_SCOPES || s->value == XSP_RECORD_SCOPE_USER;
}
