/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/names/name_rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rows/grow.h"
#include "base/text.h"

const char *xsp_name_common(const struct xsp_timeline *t, const char *name, char *out, size_t size)
{
	const size_t stem = xsp_timeline_step_stem(t, name);

	if (stem == 0)
		return name;
	snprintf(out, size, "%.*s*", (int)(stem < size - 2 ? stem : size - 2), name);
	return out;
}

void xsp_name_rows_free(struct xsp_name_rows *r)
{
	free(r->row_of);
	xsp_u64map_free(&r->first_of);
	xsp_u64map_free(&r->several);
}

static int find_row(struct xsp_name_rows *r, xsp_name_id id, xsp_name_id *row)
{
	const char *name = xsp_timeline_name(r->timeline, id);
	const size_t stem = xsp_timeline_step_stem(r->timeline, name);
	const uint64_t hash = xsp_text_hash(name, stem);
	const uint32_t *first = stem > 0 ? xsp_u64map_get(&r->first_of, hash) : NULL;

	*row = first != NULL ? *first : id;
	if (stem == 0)
		return 0;
	return first == NULL ? xsp_u64map_set(&r->first_of, hash, id)
			     : xsp_u64map_set(&r->several, *first, 1);
}

int xsp_name_rows_learn(struct xsp_name_rows *r, xsp_name_id id)
{
	int rc = xsp_grow(&r->row_of, &r->capacity, (size_t)id + 1);

	for (; rc == 0 && r->count <= id; r->count++)
		rc = find_row(r, (xsp_name_id)r->count, &r->row_of[r->count]);
	return rc;
}

const char *xsp_name_rows_text(const struct xsp_name_rows *r, xsp_name_id row,
			       char out[XSP_NAME_ROW_TEXT])
{
	const char *name = xsp_timeline_name(r->timeline, row);

	return xsp_u64map_get(&r->several, row) == NULL
		       ? name
		       : xsp_name_common(r->timeline, name, out, XSP_NAME_ROW_TEXT);
}
