/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "base/text.h"

#define MANGLED_KEPT 1024

/* Characters that end a line for some reader: control characters, U+0085, and JavaScript's U+2028
 * and U+2029. */
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
		else if (xsp_is_control(c))
			c = XSP_REPLACEMENT;
		out = xsp_utf8_put(out, c);
	}
	return out;
}

/* "frame 12" and "frame 1.5" end like a line with two counts: replaces the last blank. */
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

const char *xsp_text_short(const char *name, char buffer[XSP_TEXT_SHORT])
{
	const char *mangled = name[0] == '_' && name[1] == '_' ? name + 1 : name;
	uint64_t hash = 0xCBF29CE484222325ULL;
	size_t length;

	if (mangled[0] != '_' ||
	    (mangled[1] != 'Z' &&
	     (mangled[1] != 'R' || strspn(mangled + 2, "0123456789CMXYNIB") == 0)))
		return name;
	length = strlen(name);
	int n = snprintf(buffer, XSP_TEXT_SHORT, "[mangled] %.*s", MANGLED_KEPT, name);
	if (length <= MANGLED_KEPT)
		return buffer;
	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (uint8_t)name[i]) * 0x100000001B3ULL;
	snprintf(buffer + n, XSP_TEXT_SHORT - (size_t)n, "...[%zu bytes, %016llx]", length,
		 (unsigned long long)hash);
	return buffer;
}

char *xsp_text_folded(const char *full, size_t *length)
{
	static const char nothing[] = "[no name]";
	char buffer[XSP_TEXT_SHORT];
	const char *name = xsp_text_short(full, buffer);
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

/* What a symbol may not contain, and its replacement; the first match counts. */
static const struct {
	const char *from, *to;
} symbol_parts[] = {
	{"(anonymous namespace)", "{anonymous}"},
	{"(", "{"},
	{")", "}"},
	{"->", "\xE2\x86\x92"},
	{"\"", "\xE2\x80\x9D"},
	{"'", "\xE2\x80\x99"},
};

/* Returns how many bytes of `in` it read; writes at most three bytes for each of them. */
static size_t rewrite_part(const char *in, char **out)
{
	for (size_t i = 0; i < sizeof(symbol_parts) / sizeof(symbol_parts[0]); i++) {
		size_t n = strlen(symbol_parts[i].from);
		if (strncmp(in, symbol_parts[i].from, n) == 0) {
			*out = stpcpy(*out, symbol_parts[i].to);
			return n;
		}
	}
	*(*out)++ = *in;
	return 1;
}

char *xsp_text_symbol(const char *name, size_t *length)
{
	size_t n;
	char *plain = xsp_text_folded(name, &n);
	char *out = plain != NULL ? malloc(n * 3 + 1) : NULL;

	if (out != NULL) {
		char *end = out;
		for (const char *in = plain; *in != '\0';)
			in += rewrite_part(in, &end);
		*end = '\0';
		if (length)
			*length = (size_t)(end - out);
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
