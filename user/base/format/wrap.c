/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/format/wrap.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define FAR_IN 16 /* a line that begins here or later continues another one */

struct wrap {
	FILE *to;
	size_t width, column, indent; /* `indent`: of the line that has begun */
	bool status; /* the cursor is at the end of a status line */
};

static bool continues_character(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* The length of what takes no column: an escape sequence or a control character. */
static size_t bytes_without_column(const char *text, size_t length)
{
	size_t n = 1;

	if ((unsigned char)text[0] >= 0x20 && !continues_character(text[0]))
		return 0;
	if (text[0] != '\033' || length < 2 || text[1] != '[')
		return 1;
	while (++n < length && !(text[n] >= '@' && text[n] <= '~'))
		;
	return n < length ? n + 1 : n;
}

static size_t columns_of(const char *text, size_t length)
{
	size_t columns = 0;

	for (size_t at = 0; at < length;) {
		const size_t without = bytes_without_column(text + at, length - at);
		columns = text[at] == '\r' ? 0 : columns + (without == 0);
		at += without == 0 ? 1 : without;
	}
	return columns;
}

/* The column where the rest of a line continues: that of its last column of text, unless little
 * room is left there. */
static size_t indent_of(const char *line, size_t length, size_t width)
{
	size_t begin = 0, column = 0;

	while (begin < length && line[begin] == ' ')
		begin++;
	for (size_t at = begin; at < length; at++)
		if (at >= begin + 2 && line[at - 1] == ' ' && line[at - 2] == ' ' &&
		    line[at] != ' ')
			column = columns_of(line, at);
	if (column > 0 && column <= width * 2 / 3)
		return column;
	if (begin < FAR_IN)
		begin += 2;
	return begin <= width / 2 ? begin : width / 2;
}

static void begin_line(struct wrap *w)
{
	fprintf(w->to, "\n%*s", (int)w->indent, "");
	w->column = w->indent;
}

static void put_word(struct wrap *w, const char *word, size_t length)
{
	for (size_t at = 0; at < length;) {
		const size_t without = bytes_without_column(word + at, length - at);
		if (without == 0 && w->column == w->width)
			begin_line(w);
		fwrite(word + at, 1, without == 0 ? 1 : without, w->to);
		w->column += without == 0;
		at += without == 0 ? 1 : without;
	}
}

/* A line, or some of it: stdio may hand over its beginning alone. */
static void put_text(struct wrap *w, const char *line, size_t length, bool ends)
{
	if (w->column == 0)
		w->indent = indent_of(line, length, w->width);
	while (ends && length > 0 && line[length - 1] == ' ')
		length--;
	const size_t columns = columns_of(line, length);
	if (w->column + columns <= w->width) {
		fwrite(line, 1, length, w->to);
		w->column += columns;
		length = 0;
	}
	for (size_t at = 0; at < length;) {
		size_t blanks = 0, bytes = 0;
		while (at + blanks < length && line[at + blanks] == ' ')
			blanks++;
		const char *word = line + at + blanks;
		while (at + blanks + bytes < length && word[bytes] != ' ')
			bytes++;
		if (w->column > w->indent &&
		    w->column + blanks + columns_of(word, bytes) > w->width)
			begin_line(w);
		else
			put_word(w, line + at, blanks);
		put_word(w, word, bytes);
		at += blanks + bytes;
	}
	if (ends) {
		fputc('\n', w->to);
		w->column = 0;
	}
}

static ssize_t wrap_write(void *cookie, const char *bytes, size_t size)
{
	struct wrap *w = cookie;
	size_t at = 0;

	if (w->status && size > 0 && bytes[0] != '\r' && memchr(bytes, '\n', size) != NULL) {
		fputs("\r\033[K", w->to);
		w->column = 0;
	}
	w->status = false;
	for (const char *end; (end = memchr(bytes + at, '\n', size - at)) != NULL;) {
		put_text(w, bytes + at, (size_t)(end - bytes) - at, true);
		at = (size_t)(end - bytes) + 1;
	}
	if (at < size && bytes[at] == '\r') {
		fwrite(bytes + at, 1, size - at, w->to);
		w->status = true;
		w->column = columns_of(bytes + at, size - at);
	} else if (at < size) {
		put_text(w, bytes + at, size - at, false);
	}
	return fflush(w->to) == 0 && !ferror(w->to) ? (ssize_t)size : 0;
}

static int wrap_close(void *cookie)
{
	free(cookie);
	return 0;
}

FILE *xsp_wrap_open(FILE *to, size_t width)
{
	static const cookie_io_functions_t functions = {.write = wrap_write, .close = wrap_close};
	struct wrap *w = malloc(sizeof(*w));
	FILE *f = NULL;

	if (w != NULL) {
		*w = (struct wrap){.to = to, .width = width > 0 ? width : 1};
		f = fopencookie(w, "w", functions);
	}
	if (f == NULL)
		free(w);
	else
		setvbuf(f, NULL, _IOLBF, 0); /* lines arrive whole */
	return f;
}
