/* SPDX-License-Identifier: BSD-2-Clause */
#include "page/texts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "export/text.h"

int xsp_texts_exactly(struct xsp_texts *t, const char *text, size_t length, uint32_t *number)
{
	const long at = xsp_u64map_index(&t->index, xsp_u64_mix(xsp_text_hash(text, length)),
					 &t->list, &t->capacity, t->count);

	if (at < 0)
		return -ENOMEM;
	*number = (uint32_t)at;
	if ((size_t)at < t->count)
		return 0;
	t->list[t->count] = xsp_arena_copy(&t->arena, text, length);
	return t->list[t->count++] != NULL ? 0 : -ENOMEM;
}

int xsp_texts_number(struct xsp_texts *t, const char *text, uint32_t *number)
{
	char buffer[XSP_TEXT_SHORT];
	const char *display_text = xsp_text_short(text, buffer);

	if (t->count >= XSP_TEXTS_MAX &&
	    xsp_u64map_get(&t->index, xsp_u64_mix(xsp_text_hash(display_text,
								strlen(display_text)))) == NULL) {
		t->left_out++;
		display_text = "[other names]";
	}
	return xsp_texts_exactly(t, display_text, strlen(display_text), number);
}

void xsp_texts_write(const struct xsp_texts *t, struct xsp_json_writer *j)
{
	xsp_json_begin(j, "names", '[');
	for (size_t i = 0; i < t->count; i++)
		xsp_json_text(j, NULL, t->list[i]);
	xsp_json_end(j, '[');
}

void xsp_texts_free(struct xsp_texts *t)
{
	xsp_u64map_free(&t->index);
	xsp_arena_free(&t->arena);
	free(t->list);
}
