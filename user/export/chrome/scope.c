/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/chrome/scope.h"

#include "catalog/scope.h"
#include "export/out.h"

static const struct xsp_section *own(const struct xsp_capture_probe *probe,
				     const struct xsp_span *span)
{
	return probe->scope == XSP_SCOPE_OWN
		       ? xsp_details_find(span->details, XSP_SECTION_SCOPE, NULL)
		       : NULL;
}

char *xsp_chrome_put_scope(char *p, const struct xsp_capture_probe *probe,
			   const struct xsp_span *span)
{
	const struct xsp_section *s = own(probe, span);
	const char *name = s != NULL ? xsp_record_scope_name(s->value) : NULL;

	if (name == NULL)
		name = xsp_scope_name((enum xsp_scope)probe->scope);
	if (name == NULL)
		return p;
	p = XSP_PUT(p, ",\"Scope\":\"");
	p = stpcpy(p, name);
	return XSP_PUT(p, "\"");
}

bool xsp_chrome_is_annotation(const struct xsp_capture_probe *probe, const struct xsp_span *span)
{
	const struct xsp_section *s = own(probe, span);

	if (probe->kind != XSP_PROBE_ANNOTATION)
		return false;
	return s == NULL || s->value >= XSP_RECORD_SCOPES || s->value == XSP_RECORD_SCOPE_USER;
}
