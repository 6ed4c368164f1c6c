/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/chrome_scope.h"

#include "export/out.h"

/* xsp_capture_probe.scope (enum xsp_scope of probes/probe.h) */
enum { OWN = 4 };
static const char *const of_probe[] = {NULL, "function", "backward", "user"};

/* at::RecordScope, ATen/record_function.h */
enum { USER_SCOPE = 7 };
static const char *const of_call[] = {
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
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct xsp_section *own(const struct xsp_capture_probe *probe,
				     const struct xsp_span *span)
{
	return probe->scope == OWN ? xsp_details_find(span->details, XSP_SECTION_SCOPE, NULL)
				   : NULL;
}

char *xsp_chrome_put_scope(char *p, const struct xsp_capture_probe *probe,
			   const struct xsp_span *span)
{
	const struct xsp_section *s = own(probe, span);
	const char *name = NULL;

	if (s != NULL && s->value < COUNT(of_call))
		name = of_call[s->value];
	else if (probe->scope < COUNT(of_probe))
		name = of_probe[probe->scope];
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
	return s == NULL || s->value >= COUNT(of_call) || s->value == USER_SCOPE;
}
