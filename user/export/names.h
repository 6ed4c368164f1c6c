/* SPDX-License-Identifier: BSD-2-Clause */
/* names.h - each name rendered once, in the form that a format writes it. */
#ifndef XSP_EXPORT_NAMES_H
#define XSP_EXPORT_NAMES_H

#include "export/export_private.h"

struct xsp_rendered {
	const char *source; /* the raw name that `text` was made from */
	char *text;
	size_t length;
};

/* Returns a malloc'd string made of the raw name, and its length; NULL: no memory. */
typedef char *(*xsp_render_fn)(void *ctx, const char *name, size_t *length);

struct xsp_names;

int xsp_names_new(struct xsp_timeline *t, xsp_render_fn render, void *ctx, struct xsp_names **out);
void xsp_names_free(struct xsp_names *n); /* NULL is allowed */

/* NULL: no memory. Valid until the next call. Rendered again if the timeline's text moved (the
 * text of a range may come after its first span). */
const struct xsp_rendered *xsp_names_get(struct xsp_names *n, xsp_name_id id);

#endif
