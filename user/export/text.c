/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

static const char anonymous[] = "(anonymous namespace)";

/* What ends a line somewhere: besides the control characters, JavaScript's U+2028 and U+2029,
 * and U+0085. */
static bool is_blank(uint32_t c)
{
	return c == ' ' || (c >= '\t' && c <= '\r') || c == 0x85 || c == 0x2028 || c == 0x2029;
}

static char *clean(char *out, const char *in, size_t length)
{
	uint32_t c;

	for (size_t i = 0, used; i < length; i += used) {
		used = xsp_utf8_next(in + i, length - i, &c);
		if (is_blank(c))
			c = ' ';
		else if (c == ';')
			c = ':';
		else if (c < 0x20 || (c >= 0x7F && c < 0xA0))
			c = XSP_REPLACEMENT;
		out = xsp_utf8_put(out, c);
	}
	return out;
}

/* "frame 12" and "frame 1.5" end like a line with two counts: the last blank is filled. */
static void guard_number(char *text, size_t length)
{
	size_t i = length;

	while (i > 0 && isdigit((unsigned char)text[i - 1]))
		i--;
	if (i > 0 && text[i - 1] == '.') {
		i--;
		while (i > 0 && isdigit((unsigned char)text[i - 1]))
			i--;
	}
	if (i > 0 && i < length && text[i - 1] == ' ' && text[i] != '.')
		text[i - 1] = '_';
}

char *xsp_text_folded(const char *name, size_t *length)
{
	static const char nothing[] = "[no name]";
	size_t n = strlen(name);

	/* a bad byte becomes three */
	if (n > (SIZE_MAX - 16) / 3)
		return NULL;
	char *out = malloc(n * 3 + sizeof(nothing));
	if (out == NULL)
		return NULL;
	char *end = clean(out, name, n), *start = out;
	while (start < end && *start == ' ')
		start++;
	while (end > start && end[-1] == ' ')
		end--;
	n = (size_t)(end - start);
	memmove(out, start, n);
	if (n == 0) {
		n = sizeof(nothing) - 1;
		memcpy(out, nothing, n);
	}
	out[n] = '\0';
	guard_number(out, n);
	if (length)
		*length = n;
	return out;
}

/* In place where it gets shorter or stays; the arrow is one byte longer than "->". */
static size_t rewrite_symbol(char *out, const char *in, size_t n)
{
	size_t o = 0;

	for (size_t i = 0; i < n;) {
		if (n - i >= sizeof(anonymous) - 1 &&
		    memcmp(in + i, anonymous, sizeof(anonymous) - 1) == 0) {
			memcpy(out + o, "{anonymous}", 11);
			o += 11;
			i += sizeof(anonymous) - 1;
		} else if (in[i] == '-' && i + 1 < n && in[i + 1] == '>') {
			memcpy(out + o, "\xE2\x86\x92", 3);
			o += 3;
			i += 2;
		} else {
			out[o++] = in[i++];
		}
	}
	out[o] = '\0';
	return o;
}

char *xsp_text_symbol(const char *name, size_t *length)
{
	size_t n;
	char *plain = xsp_text_folded(name, &n);

	if (plain == NULL)
		return NULL;
	char *out = malloc(n + n / 2 + 2);
	if (out) {
		n = rewrite_symbol(out, plain, n);
		if (out[0] == '(') {
			char *close = strchr(out, ')');
			out[0] = '{';
			if (close)
				*close = '}';
		}
		if (length)
			*length = n;
	}
	free(plain);
	return out;
}

void xsp_text_comm(char *out, size_t size, const char *comm)
{
	size_t n = 0;

	for (const char *c = comm; *c && n + 1 < size; c++) {
		bool good = isalnum((unsigned char)*c) || strchr("_.:/@-", *c);
		/* one mark for a character of several bytes */
		if (((unsigned char)*c & 0xC0) != 0x80)
			out[n++] = good ? *c : '_';
	}
	while (n < 2 && n + 1 < size)
		out[n++] = '_';
	out[n] = '\0';
}

char *xsp_text_dso(const char *path)
{
	char *out = xsp_text_folded(*path ? path : "[unknown]", NULL);

	for (char *c = out; c && *c; c++)
		if (*c == ' ' || *c == '(' || *c == ')')
			*c = '_';
	return out;
}
