/* SPDX-License-Identifier: BSD-2-Clause */
/* names.c - class, name, source and line of a function of Java. */
#include "target/jvm/jvm_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define LINES_MOST 16384U /* bytes of a table of lines */
#define HAS_LINES 1U /* ConstMethodFlags: has_linenumber_table */

static bool is_pointer(uint64_t word)
{
	return word != 0 && word < XSP_JVM_ADDRESSES && word % 8 == 0;
}

/* Modified UTF-8, shown without control characters. False: it is none. */
static bool read_symbol(const struct xsp_jvm *j, uint64_t symbol, char *text, size_t size)
{
	const struct xsp_jvm_layout *l = &j->layout;
	uint16_t length;

	text[0] = '\0';
	if (!is_pointer(symbol) ||
	    !xsp_jvm_read(j, symbol + l->symbol_length, &length, sizeof(length)) || length == 0)
		return false;
	const size_t n = length < size - 1 ? length : size - 1;
	if (!xsp_jvm_read(j, symbol + l->symbol_body, text, n))
		return false;
	text[n] = '\0';
	for (size_t i = 0; i < n; i++)
		if ((uint8_t)text[i] < 0x20 || text[i] == 0x7f)
			text[i] = '?';
	return true;
}

/* The symbol of that number in a pool of constants. */
static uint64_t symbol_of(const struct xsp_jvm *j, uint64_t pool, uint16_t index)
{
	const struct xsp_jvm_layout *l = &j->layout;

	return index > 0 && index < xsp_jvm_u32(j, pool + l->pool_length)
		       ? xsp_jvm_u64(j, pool + l->pool_bytes + 8ULL * index)
		       : 0;
}

uint64_t xsp_jvm_const_of(const struct xsp_jvm *j, uint64_t method)
{
	const uint64_t c = is_pointer(method) ? xsp_jvm_u64(j, method + j->layout.method_const) : 0;

	return is_pointer(c) ? c : 0;
}

uint32_t xsp_jvm_bci(const struct xsp_jvm *j, uint64_t method, uint64_t bcp)
{
	const struct xsp_jvm_layout *l = &j->layout;
	const uint64_t c = xsp_jvm_const_of(j, method), code = c + l->const_bytes;

	return c != 0 && bcp >= code && bcp - code < xsp_jvm_u16(j, c + l->const_code)
		       ? (uint32_t)(bcp - code)
		       : XSP_JVM_NO_BCI;
}

/* ---- lines ---- */

static int32_t with_sign(uint32_t number)
{
	return (int32_t)((number >> 1) ^ -(number & 1));
}

#define LINE_END 0U
#define LINE_LONG 0xffU
#define LINE_BITS 3U

/* The next pair of bci and line, which are differences to the last one. */
static bool next_line(struct xsp_jvm_stream *s, int64_t *bci, int64_t *line)
{
	uint32_t a, b;

	if (s->at == s->end || *s->at == LINE_END)
		return false;
	const uint8_t byte = *s->at++;
	if (byte != LINE_LONG) {
		*bci += byte >> LINE_BITS;
		*line += byte & ((1U << LINE_BITS) - 1);
		return true;
	}
	if (!xsp_jvm_number(s, &a) || !xsp_jvm_number(s, &b))
		return false;
	*bci += with_sign(a);
	*line += with_sign(b);
	return true;
}

/* The table follows the bytecode, in its ConstMethod. 0: not known. */
static uint32_t line_at(const struct xsp_jvm *j, uint64_t c, uint32_t wanted)
{
	const struct xsp_jvm_layout *l = &j->layout;
	const uint64_t from = l->const_bytes + xsp_jvm_u16(j, c + l->const_code),
		       end = 8ULL * xsp_jvm_u32(j, c + l->const_size);
	int64_t bci = 0, line = 0, best = -1, found = 0;
	uint8_t bytes[LINES_MOST];

	if (wanted == XSP_JVM_NO_BCI || from >= end ||
	    !(xsp_jvm_u16(j, c + l->const_flags) & HAS_LINES))
		return 0;
	const size_t n = end - from < sizeof(bytes) ? end - from : sizeof(bytes);
	struct xsp_jvm_stream s = {.at = bytes, .excluded = j->excluded};
	s.end = bytes + xsp_jvm_read_some(j, c + from, bytes, n);
	while (next_line(&s, &bci, &line))
		if (bci <= wanted && bci >= best) {
			best = bci;
			found = line;
		}
	return found > 0 && found <= UINT16_MAX ? (uint32_t)found : 0;
}

/* ---- names ---- */

/* Without what makes it unique: "Shop$$Lambda$14+0x0000000800c03000". */
static void cut_class(char *class)
{
	char *address = strstr(class, "+0x");

	if (address == NULL)
		address = strstr(class, "/0x");
	if (address != NULL)
		*address = '\0';
}

int xsp_jvm_name_of(const struct xsp_jvm *j, const struct xsp_jvm_at *at, struct xsp_jvm_name *out)
{
	const struct xsp_jvm_layout *l = &j->layout;
	const uint64_t c = xsp_jvm_const_of(j, at->method),
		       pool = c != 0 ? xsp_jvm_u64(j, c + l->const_pool) : 0,
		       holder = is_pointer(pool) ? xsp_jvm_u64(j, pool + l->pool_holder) : 0;
	char class[XSP_JVM_FILE], function[XSP_JVM_NAME / 2], source[XSP_JVM_NAME / 2];

	*out = (struct xsp_jvm_name){0};
	if (!is_pointer(holder) ||
	    !read_symbol(j, xsp_jvm_u64(j, holder + l->klass_name), class, sizeof(class)) ||
	    !read_symbol(j, symbol_of(j, pool, xsp_jvm_u16(j, c + l->const_name)), function,
			 sizeof(function)))
		return -ENOENT;
	cut_class(class);
	const char *slash = strrchr(class, '/'), *simple = slash != NULL ? slash + 1 : class;
	snprintf(out->function, sizeof(out->function), "%.*s.%s", (int)(XSP_JVM_NAME / 2 - 2),
		 simple, function);
	if (l->pool_file == XSP_JVM_NONE ||
	    !read_symbol(j, symbol_of(j, pool, xsp_jvm_u16(j, pool + l->pool_file)), source,
			 sizeof(source))) {
		snprintf(out->file, sizeof(out->file), "%s", class);
		return 0;
	}
	snprintf(out->file, sizeof(out->file), "%.*s%s",
		 (int)(simple - class < XSP_JVM_NAME / 2 ? simple - class : XSP_JVM_NAME / 2),
		 class, source);
	out->line = line_at(j, c, at->bci);
	return 0;
}
