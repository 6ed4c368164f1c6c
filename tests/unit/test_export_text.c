/* SPDX-License-Identifier: BSD-2-Clause */
/* Names made safe: base/format/json.h and export/text.h. Expected values: RFC 8259, XML 1.0, the
 * Unicode standard's table 3-8 (U+FFFD for maximal subparts), and the table of consumers.md. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "export/text.h"

static void check(char *got, const char *want, const char *in)
{
	cr_assert_not_null(got);
	cr_expect_str_eq(got, want, "of \"%s\": \"%s\", not \"%s\"", in, got, want);
	free(got);
}

struct pair {
	const char *in, *want;
};

#define R "\xEF\xBF\xBD"

static const struct pair utf8[] = {
	{"plain", "plain"},
	{"\xC3\xBC \xE6\xBC\xA2 \xF0\x9F\x94\xA5", "\xC3\xBC \xE6\xBC\xA2 \xF0\x9F\x94\xA5"},
	{"\xFF\xFE", R R},
	{"\xC0\xAF", R R}, /* overlong */
	{"\xED\xA0\x80", R R R}, /* surrogate */
	{"\xF4\x90\x80\x80", R R R R}, /* above U+10FFFF */
	{"\xE2\x82", R}, /* cut: one maximal subpart */
	{"\xF0\x9F\x94"
	 "a",
	 R "a"},
	{"\xF1\x80\x80\xE1\x80\xC2"
	 "b",
	 R R R "b"}, /* table 3-8's second row, without its ends */
	{"\x80", R},
};

Test(export_text, repairs_utf8)
{
	for (size_t i = 0; i < sizeof(utf8) / sizeof(utf8[0]); i++) {
		check(xsp_json_escaped(utf8[i].in, NULL), utf8[i].want, utf8[i].in);
		check(xsp_xml_escaped(utf8[i].in, NULL), utf8[i].want, utf8[i].in);
	}
}

Test(export_text, escapes)
{
	static const struct pair cases[] = {
		{"say \"hi\"", "say \\\"hi\\\""},
		{"C:\\p", "C:\\\\p"},
		{"\b\f\n\r\t", "\\b\\f\\n\\r\\t"},
		{"\x01\x1f\x7f", "\\u0001\\u001f\\u007f"},
		{"a/b", "a/b"},
		{"", ""},
		{"\xC2\x9B\xE2\x80\xAE\xE2\x81\xA9x", "\\u009b\\u202e\\u2069x"},
		{"\xF3\xA0\x81\x81x", "\\udb40\\udc41x"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check(xsp_json_escaped(cases[i].in, NULL), cases[i].want, cases[i].in);
}

Test(export_text, escapes_xml)
{
	check(xsp_xml_escaped("<a b=\"c\" d='e'>&]]>", NULL),
	      "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;]]&gt;", "markup");
	check(xsp_xml_escaped("\t\n\r", NULL), "&#9;&#10;&#13;", "white space");
	check(xsp_xml_escaped("\x01\x1b\x7f\xC2\x85", NULL), R R R R, "controls");
	check(xsp_xml_escaped("\xE2\x80\xAEx\xF3\xA0\x81\x81", NULL), R "x" R, "directions, tags");
	check(xsp_xml_escaped("\xEF\xBF\xBE\xEF\xBF\xBF", NULL), R R, "non-characters");
}

Test(export_text, shows_controls_where_nothing_escapes_them)
{
	check(xsp_utf8_shown("a\tb\nc\rd\x1b[2J\x7f\xC2\x9B\xE2\x80\xAE\xFF", NULL),
	      "a\tb\nc" R "d" R "[2J" R R R R, "text");
	check(xsp_csv_quoted("say \"\x1b\"\n", NULL), "\"say \"\"" R "\"\"\n\"", "CSV");
}

/* Every byte pair: never more room than promised, always well-formed UTF-8 without raw
 * control characters, quotes or markup. */
Test(export_text, holds_for_every_pair_of_bytes)
{
	for (unsigned a = 1; a < 256; a++) {
		for (unsigned b = 1; b < 256; b++) {
			const char in[2] = {(char)a, (char)b};
			char out[XSP_ESCAPED_MAX(2)];
			char *end = xsp_json_escape(out, in, 2);
			cr_assert_leq((size_t)(end - out), sizeof(out));
			for (char *c = out; c < end;) {
				uint32_t point;
				unsigned n = xsp_utf8_next(c, (size_t)(end - c), &point);
				cr_assert(n > 1 || (unsigned char)*c < 0x80, "%u %u", a, b);
				cr_assert_geq(point, 0x20U);
				c += n;
			}
			end = xsp_xml_escape(out, in, 2);
			cr_assert_leq((size_t)(end - out), sizeof(out));
			cr_assert_null(memchr(out, '<', (size_t)(end - out)));
		}
	}
}

Test(export_text, takes_long_names)
{
	char name[10001];
	size_t length = 0;

	memset(name, '"', 10000);
	name[10000] = '\0';
	char *out = xsp_json_escaped(name, &length);
	cr_assert_eq(length, 20000);
	free(out);
}

Test(export_text, frames_of_folded_stacks)
{
	static const struct pair cases[] = {
		{"at::_ops::mm::call", "at::_ops::mm::call"},
		{"a;b ;c", "a:b :c"},
		{"line\nbreak\ttab", "line break tab"},
		{"js\xE2\x80\xA8sep\xC2\x85x", "js sep x"},
		{"  padded  ", "padded"},
		{"", "[no name]"},
		{" \n ", "[no name]"},
		{"frame 12", "frame_12"},
		{"frame 3.5", "frame_3.5"},
		{"frame 3.", "frame_3."},
		{"frame .5", "frame .5"}, /* flamegraph.pl wants a digit before the dot */
		{"12", "12"},
		{"v1.2.3", "v1.2.3"},
		{"x 1.2.3", "x 1.2.3"},
		{"bell\x07", "bell" R},
		{"\xE2\x80\xAEturned", R "turned"},
		{"bad\xff", "bad" R},
		{"operator+", "operator+"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check(xsp_text_folded(cases[i].in, NULL), cases[i].want, cases[i].in);
}

Test(export_text, symbols_of_perf_script)
{
	static const struct pair cases[] = {
		{"(anonymous namespace)::f", "{anonymous}::f"},
		{"a::(anonymous namespace)::f<(anonymous namespace)::T>",
		 "a::{anonymous}::f<{anonymous}::T>"},
		{"(lambda)::f", "{lambda}::f"},
		{"Ptr::operator->", "Ptr::operator\xE2\x86\x92"},
		{"->->->", "\xE2\x86\x92\xE2\x86\x92\xE2\x86\x92"},
		{"f(int)", "f{int}"},
		{"main::{lambda(int)#1}::operator()", "main::{lambda{int}#1}::operator{}"},
		{"say \"hi\" 'x'", "say \xE2\x80\x9Dhi\xE2\x80\x9D \xE2\x80\x99x\xE2\x80\x99"},
		{"'a'", "\xE2\x80\x99"
			"a\xE2\x80\x99"},
		{"a;b", "a:b"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check(xsp_text_symbol(cases[i].in, NULL), cases[i].want, cases[i].in);
}

Test(export_text, long_mangled_names)
{
	char a[4000] = "_ZN", b[4000], first[XSP_TEXT_SHORT], second[XSP_TEXT_SHORT];

	memset(a + 3, 'a', sizeof(a) - 4);
	memcpy(b, a, sizeof(b));
	b[2500] = 'b';
	const char *x = xsp_text_short(a, first), *y = xsp_text_short(b, second);
	cr_expect_leq(strlen(x), 1090);
	cr_expect_eq(strncmp(x, "[mangled] ", 10), 0);
	cr_expect_eq(strncmp(x + 10, a, 1024), 0);
	cr_expect_str_neq(x, y, "names that differ stay different");
	a[1024] = '\0';
	cr_expect_eq(strcmp(xsp_text_short(a, first) + 10, a), 0, "whole");
	cr_expect_str_eq(xsp_text_short("_RNvC1a1b", first), "[mangled] _RNvC1a1b");
	cr_expect_str_eq(xsp_text_short("_Read", first), "_Read");
	memcpy(b, "std", 3);
	cr_expect_eq(xsp_text_short(b, first), b, "it is not mangled");
}

Test(export_text, comms_of_perf_script)
{
	static const struct pair cases[] = {
		{"python3", "python3"},
		{"a", "a_"},
		{"", "__"},
		{"worker 12", "worker_12"},
		{"k/0:1", "k/0:1"},
		{"\xE6\xBC\xA2", "__"},
		{"x(y)\"", "x_y__"},
		{"0123456789abcdef", "0123456789abcde"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char out[16];
		xsp_text_comm(out, sizeof(out), cases[i].in);
		cr_expect_str_eq(out, cases[i].want, "%s: %s", cases[i].in, out);
	}
}

Test(export_text, paths_of_perf_script)
{
	check(xsp_text_dso("/opt/my app (x86)/lib.so"), "/opt/my_app__x86_/lib.so", "blanks");
	check(xsp_text_dso(""), "[unknown]", "nothing");
}
