/* SPDX-License-Identifier: BSD-2-Clause */
#include "page/texts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "export/text.h"

int xsp_texts_exactly(struct xsp_texts *t, const char *text, size_t length, uint32_t *number)
{
	const char **known = xsp_tally_row(&t->all, xsp_u64_mix(xsp_text_hash(text, length)),
					   &(const char *){NULL});

	if (known == NULL)
		return -ENOMEM;
	*number = xsp_tally_index(&t->all, known);
	if (*known == NULL)
		*known = xsp_arena_copy(&t->arena, text, length);
	return *known != NULL ? 0 : -ENOMEM;
}

int xsp_texts_number(struct xsp_texts *t, const char *text, uint32_t *number)
{
	char buffer[XSP_TEXT_SHORT];
	const char *display_text = xsp_text_short(text, buffer);

	if (t->all.count >= XSP_TEXTS_MAX &&
	    xsp_tally_find(&t->all, xsp_u64_mix(xsp_text_hash(display_text,
							      strlen(display_text)))) == NULL) {
		t->left_out++;
		display_text = "[other names]";
	}
	return xsp_texts_exactly(t, display_text, strlen(display_text), number);
}

void xsp_texts_write(const struct xsp_texts *t, struct xsp_json_writer *j)
{
	xsp_json_begin(j, "names", '[');
	for (size_t i = 0; i < t->all.count; i++)
		xsp_json_text(j, NULL, t->all.rows[i]);
	xsp_json_end(j, '[');
}

void xsp_texts_free(struct xsp_texts *t)
{
	xsp_tally_free(&t->all);
	xsp_arena_free(&t->arena);
}
