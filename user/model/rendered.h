/* SPDX-License-Identifier: BSD-2-Clause */
/* rendered.h - renders each name once, as a format writes it. */
#ifndef XSP_MODEL_RENDERED_H
#define XSP_MODEL_RENDERED_H

#include "model/view.h"

struct xsp_rendered {
	const char *source; /* the raw name behind `text` */
	char *text;
	size_t length;
};

/* Makes a malloc'd string of the raw name, and its length; NULL: no memory. */
typedef char *(*xsp_render_fn)(void *ctx, const char *name, size_t *length);

struct xsp_renderer;

int xsp_renderer_new(struct xsp_timeline *t, xsp_render_fn render, void *ctx,
		     struct xsp_renderer **out);
void xsp_renderer_free(struct xsp_renderer *n); /* NULL is allowed */

/* NULL: no memory. Valid until the next call. Renders again if the timeline's text changed (a range's text may come
 * after its first span). */
const struct xsp_rendered *xsp_renderer_get(struct xsp_renderer *n, xsp_name_id id);

#endif
