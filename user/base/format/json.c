/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/format/json.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* How many bytes may follow a lead byte, and the bounds of the first of them. The bounds exclude
 * overlong forms, surrogates and what lies above U+10FFFF. */
struct lead {
	uint8_t first, last, length, low, high;
};
static const struct lead leads[] = {
	{0xC2, 0xDF, 2, 0x80, 0xBF}, {0xE0, 0xE0, 3, 0xA0, 0xBF}, {0xE1, 0xEC, 3, 0x80, 0xBF},
	{0xED, 0xED, 3, 0x80, 0x9F}, {0xEE, 0xEF, 3, 0x80, 0xBF}, {0xF0, 0xF0, 4, 0x90, 0xBF},
	{0xF1, 0xF3, 4, 0x80, 0xBF}, {0xF4, 0xF4, 4, 0x80, 0x8F},
};

unsigned xsp_utf8_next(const char *text, size_t length, uint32_t *point)
{
	const uint8_t *s = (const uint8_t *)text;
	const struct lead *lead = NULL;

	if (s[0] < 0x80) {
		*point = s[0];
		return 1;
	}
	*point = XSP_REPLACEMENT;
	for (size_t i = 0; i < sizeof(leads) / sizeof(leads[0]); i++)
		if (s[0] >= leads[i].first && s[0] <= leads[i].last)
			lead = &leads[i];
	if (lead == NULL)
		return 1;
	uint32_t p = s[0] & (0x7FU >> lead->length);
	for (unsigned i = 1; i < lead->length; i++) {
		uint8_t low = i == 1 ? lead->low : 0x80, high = i == 1 ? lead->high : 0xBF;
		if (i >= length || s[i] < low || s[i] > high)
			return i;
		p = p << 6 | (s[i] & 0x3F);
	}
	*point = p;
	return lead->length;
}

char *xsp_utf8_put(char *out, uint32_t p)
{
	if (p < 0x80) {
		*out++ = (char)p;
		return out;
	}
	if (p < 0x800) {
		*out++ = (char)(0xC0 | p >> 6);
	} else {
		if (p < 0x10000) {
			*out++ = (char)(0xE0 | p >> 12);
		} else {
			*out++ = (char)(0xF0 | p >> 18);
			*out++ = (char)(0x80 | (p >> 12 & 0x3F));
		}
		*out++ = (char)(0x80 | (p >> 6 & 0x3F));
	}
	*out++ = (char)(0x80 | (p & 0x3F));
	return out;
}

/* Calls `put` for each character. */
static inline char *put_each(char *out, const char *text, size_t length,
			     char *(*put)(char *out, uint32_t point))
{
	uint32_t point;

	for (size_t i = 0; i < length; out = put(out, point))
		i += xsp_utf8_next(text + i, length - i, &point);
	return out;
}

/* For formats without escapes. */
static char *put_shown(char *out, uint32_t point)
{
	const bool stays = !xsp_is_control(point) || point == '\t' || point == '\n';

	return xsp_utf8_put(out, stays ? point : XSP_REPLACEMENT);
}

static char *put_text(char *out, const char *text)
{
	size_t n = strlen(text);
	/* NOLINTNEXTLINE(bugprone-not-null-terminated-result): the caller continues here */
	memcpy(out, text, n);
	return out + n;
}

static char *put_json_number(char *out, unsigned point)
{
	static const char digits[] = "0123456789abcdef";

	*out++ = '\\';
	*out++ = 'u';
	for (int shift = 12; shift >= 0; shift -= 4)
		*out++ = digits[point >> shift & 15];
	return out;
}

static char *put_json_ascii(char *out, unsigned c)
{
	static const char shorts[] = "\bb\ff\nn\rr\tt\"\"\\\\";

	for (const char *s = shorts; *s; s += 2) {
		if ((unsigned)*s == c) {
			*out++ = '\\';
			*out++ = s[1];
			return out;
		}
	}
	if (c >= 0x20 && c != 0x7F) {
		*out++ = (char)c;
		return out;
	}
	return put_json_number(out, c);
}

static char *put_json(char *out, uint32_t point)
{
	if (point < 0x80)
		return put_json_ascii(out, point);
	if (!xsp_is_control(point))
		return xsp_utf8_put(out, point);
	if (point < 0x10000)
		return put_json_number(out, point);
	out = put_json_number(out, 0xD800 + ((point - 0x10000) >> 10));
	return put_json_number(out, 0xDC00 + ((point - 0x10000) & 0x3FF));
}

char *xsp_json_escape(char *out, const char *text, size_t length)
{
	return put_each(out, text, length, put_json);
}

static char *put_xml(char *out, uint32_t point)
{
	switch (point) {
	case '&':
		return put_text(out, "&amp;");
	case '<':
		return put_text(out, "&lt;");
	case '>':
		return put_text(out, "&gt;");
	case '"':
		return put_text(out, "&quot;");
	case '\'':
		return put_text(out, "&#39;");
	case '\t':
		return put_text(out, "&#9;");
	case '\n':
		return put_text(out, "&#10;");
	case '\r':
		return put_text(out, "&#13;");
	}
	return point == 0xFFFE || point == 0xFFFF ? xsp_utf8_put(out, XSP_REPLACEMENT)
						  : put_shown(out, point);
}

char *xsp_xml_escape(char *out, const char *text, size_t length)
{
	return put_each(out, text, length, put_xml);
}

static char *escaped(char *(*escape)(char *, const char *, size_t), const char *text,
		     size_t *length)
{
	size_t n = strlen(text);

	if (n > (SIZE_MAX - 1) / 6)
		return NULL;
	char *out = malloc(XSP_ESCAPED_MAX(n) + 1);
	if (out == NULL)
		return NULL;
	char *end = escape(out, text, n);
	*end = '\0';
	n = (size_t)(end - out);
	if (length)
		*length = n;
	/* most text needs no escape: free the spare room */
	char *shrunk = realloc(out, n + 1);
	return shrunk != NULL ? shrunk : out; // cppcheck-suppress memleak
}

char *xsp_json_escaped(const char *text, size_t *length)
{
	return escaped(xsp_json_escape, text, length);
}

char *xsp_xml_escaped(const char *text, size_t *length)
{
	return escaped(xsp_xml_escape, text, length);
}

static char *show(char *out, const char *text, size_t length)
{
	return put_each(out, text, length, put_shown);
}

char *xsp_utf8_shown(const char *text, size_t *length)
{
	return escaped(show, text, length);
}

char *xsp_csv_quoted(const char *text, size_t *length)
{
	size_t n, used = 0;
	char *clean = xsp_utf8_shown(text, &n), *out = clean != NULL ? malloc(2 * n + 3) : NULL;

	if (out == NULL) {
		free(clean);
		return NULL;
	}
	out[used++] = '"';
	for (size_t i = 0; i < n; i++) {
		if (clean[i] == '"')
			out[used++] = '"';
		out[used++] = clean[i];
	}
	out[used++] = '"';
	out[used] = '\0';
	free(clean);
	if (length != NULL)
		*length = used;
	return out;
}
