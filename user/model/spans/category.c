/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/spans/category.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/providers.h"
#include "model/spans/scope.h"

/* The number of a trace's category, new if needed. */
static unsigned number_of(struct xsp_categories *c, const char *name)
{
	unsigned i = 0;

	while (i < c->count && strcmp(c->names[i], name) != 0)
		i++;
	if (i == XSP_CATEGORIES_MAX)
		return i - 1;
	if (i == c->count)
		c->names[c->count++] = i + 1 < XSP_CATEGORIES_MAX ? name : "other";
	return i;
}

int xsp_categories_init(struct xsp_categories *c, const struct xsp_view *v)
{
	*c = (struct xsp_categories){
		.names = {"cpu_op", "user_annotation", "cuda_runtime", "cuda_driver"},
		.count = XSP_CATEGORIES};
	c->probe_count = xsp_capture_probes(v->reader, &c->probes);
	c->of = calloc(c->probe_count + 1, 1);
	if (c->of == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->probe_count; i++) {
		const struct xsp_capture_probe *p = &c->probes[i];
		const struct xsp_cuda_entry *cuda = xsp_timeline_cuda(v->timeline, i);
		if (cuda != NULL)
			c->of[i] = cuda->api == XSP_CUDA_DRIVER ? XSP_CUDA_DRIVER_CALL
								: XSP_CUDA_RUNTIME_CALL;
		else if (p->kind == XSP_PROBE_FUNCTION &&
			 (xsp_provider_traits(p->provider) & XSP_PROVIDER_READ))
			c->of[i] = (uint8_t)number_of(c, p->symbol);
	}
	return 0;
}

void xsp_categories_clear(struct xsp_categories *c)
{
	free(c->of);
	c->of = NULL;
}

unsigned xsp_category_of(const struct xsp_categories *c, const struct xsp_span *span)
{
	if (span->probe >= c->probe_count)
		return XSP_CPU_OP;
	return c->of[span->probe] == XSP_CPU_OP &&
			       xsp_is_user_annotation(&c->probes[span->probe], span)
		       ? XSP_USER_ANNOTATION
		       : c->of[span->probe];
}

const char *xsp_ending_name(enum xsp_ending ending)
{
	static const char *const names[XSP_ENDINGS] = {"returned",   "unwound",	  "tail call",
						       "unfinished", "exit lost", "point"};

	return names[ending];
}

enum xsp_ending xsp_ending_of(const struct xsp_span *span)
{
	return span->flags & XSP_SPAN_UNFINISHED  ? XSP_UNFINISHED
	       : span->flags & XSP_SPAN_EXIT_LOST ? XSP_EXIT_LOST
	       : span->flags & XSP_SPAN_POINT	  ? XSP_POINT
	       : span->flags & XSP_SPAN_UNWOUND	  ? XSP_UNWOUND
	       : span->flags & XSP_SPAN_TAIL	  ? XSP_TAIL_CALL
						  : XSP_RETURNED;
}
