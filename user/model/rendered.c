/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/rendered.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"

struct xsp_renderer {
	struct xsp_timeline *timeline;
	xsp_render_fn render;
	void *ctx;
	struct xsp_rendered *table; /* by name id */
	size_t capacity;
};

int xsp_renderer_new(struct xsp_timeline *t, xsp_render_fn render, void *ctx,
		     struct xsp_renderer **out)
{
	*out = calloc(1, sizeof(**out));
	if (*out == NULL)
		return -ENOMEM;
	(*out)->timeline = t;
	(*out)->render = render;
	(*out)->ctx = ctx;
	return 0;
}

void xsp_renderer_free(struct xsp_renderer *n)
{
	if (n == NULL)
		return;
	for (size_t i = 0; i < n->capacity; i++)
		free(n->table[i].text);
	free(n->table);
	free(n);
}

const struct xsp_rendered *xsp_renderer_get(struct xsp_renderer *n, xsp_name_id id)
{
	const char *source = xsp_timeline_name(n->timeline, id);

	if (xsp_grow_zeroed(&n->table, &n->capacity, (size_t)id + 1) < 0)
		return NULL;
	struct xsp_rendered *r = &n->table[id];
	if (r->text && r->source == source)
		return r;
	free(r->text);
	r->source = source;
	r->length = 0;
	r->text = n->render(n->ctx, source ? source : "", &r->length);
	return r->text ? r : NULL;
}
