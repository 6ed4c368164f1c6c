/* SPDX-License-Identifier: BSD-2-Clause */
/* Text on a narrow terminal: what is written, and line by line what must come out. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/wrap.h"

static char *wrapped(const char *text, size_t width)
{
	char *out = NULL;
	size_t size;
	FILE *to = open_memstream(&out, &size), *f = xsp_wrap_open(to, width);

	cr_assert(to != NULL && f != NULL);
	fputs(text, f);
	cr_assert(fclose(f) == 0 && fclose(to) == 0);
	return out;
}

Test(wrap, lines)
{
	static const struct {
		const char *what, *text, *expected;
	} cases[] = {
		{"nothing", "", ""},
		{"empty lines stay", "\n\na\n", "\n\na\n"},
		{"as long as the terminal is wide", "12345678901234567890\n",
		 "12345678901234567890\n"},
		{"one column too long", "1234567890 1234567890\n", "1234567890\n  1234567890\n"},
		{"the indent goes on", "    aaaa bbbb cccc dddd\n",
		 "    aaaa bbbb cccc\n      dddd\n"},
		{"below the text of a key", "key   aaaa bbbb cccc dddd\n",
		 "key   aaaa bbbb cccc\n      dddd\n"},
		{"a table's blanks are no key", "aa  bb  cc  dd  ee  ff\n",
		 "aa  bb  cc  dd  ee\n  ff\n"},
		{"a word with no room at all", "/a/path/without/a/blank/in/it\n",
		 "/a/path/without/a/bl\n  ank/in/it\n"},
		{"blanks at the end", "1234567890123456789           \n", "1234567890123456789\n"},
		{"characters, not bytes", "ääää öööö üüüü ßßßß …\n", "ääää öööö üüüü ßßßß\n  …\n"},
		{"colors take no column", "\033[33maaaa bbbb cccc ddddd\033[0m\n",
		 "\033[33maaaa bbbb cccc ddddd\033[0m\n"},
		{"a status line is left alone", "\r1234567890 1234567890 12\033[K",
		 "\r1234567890 1234567890 12\033[K"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *out = wrapped(cases[i].text, 20);
		cr_expect_str_eq(out, cases[i].expected, "%s: '%s'", cases[i].what, out);
		free(out);
	}
}

/* stdio hands a long text over in blocks, which end anywhere in a line. */
Test(wrap, lines_that_come_in_pieces)
{
	static const char text[] = "key   aaaa bbbb cccc dddd\n    eeee ffff gggg hhhh iiii\n";
	char *whole = wrapped(text, 20);

	for (size_t cut = 1; cut < sizeof(text) - 1; cut++) {
		char *out = NULL;
		size_t size, column = 0;
		FILE *to = open_memstream(&out, &size), *f = xsp_wrap_open(to, 20);
		fwrite(text, 1, cut, f);
		fflush(f);
		fputs(text + cut, f);
		cr_assert(fclose(f) == 0 && fclose(to) == 0);
		for (const char *c = out; *c != '\0'; c++) {
			column = *c == '\n' ? 0 : column + 1;
			cr_expect(column <= 20, "cut at %zu: '%s'", cut, out);
		}
		if (text[cut] == '\n' || text[cut - 1] == '\n')
			cr_expect_str_eq(out, whole, "cut at %zu", cut);
		free(out);
	}
	free(whole);
}

/* Whatever the words and the width: no line is longer, and all words are there in their order. */
Test(wrap, nothing_is_lost)
{
	char text[600] = "", words[600];

	for (unsigned i = 0; i < 90; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%.*s%c",
			 (int)(i * 7 % 13 % 10), "abcdefghij", i % 11 == 10 ? '\n' : ' ');
	for (size_t width = 12; width < 60; width++) {
		char *out = wrapped(text, width);
		size_t at = 0, column = 0;
		for (const char *c = out; *c != '\0'; c++) {
			column = *c == '\n' ? 0 : column + 1;
			cr_assert(column <= width, "width %zu: '%s'", width, out);
			if (*c != ' ' && *c != '\n')
				words[at++] = *c;
		}
		words[at] = '\0';
		at = 0;
		for (const char *c = text; *c != '\0'; c++)
			if (*c != ' ' && *c != '\n')
				cr_assert(*c == words[at++], "width %zu", width);
		cr_assert(words[at] == '\0');
		free(out);
	}
}

/* A message does not come after the status line, but in its place. */
Test(wrap, after_a_status_line)
{
	char *out = NULL;
	size_t size;
	FILE *to = open_memstream(&out, &size), *f = xsp_wrap_open(to, 80);

	setvbuf(f, NULL, _IONBF, 0);
	fprintf(f, "\r%s\033[K", "5.0 s");
	fprintf(f, "%s\n", "xsptrace: a message");
	fprintf(f, "\r%s\033[K", "5.2 s");
	fputs("\r\033[K", f);
	cr_assert(fclose(f) == 0 && fclose(to) == 0);
	cr_expect_str_eq(out, "\r5.0 s\033[K\r\033[Kxsptrace: a message\n\r5.2 s\033[K\r\033[K",
			 "'%s'", out);
	free(out);
}

Test(wrap, errors_are_told)
{
	FILE *to = fopen("/dev/full", "w"), *f = to != NULL ? xsp_wrap_open(to, 80) : NULL;

	cr_assert(f != NULL);
	cr_expect(fputs("a line\n", f) == EOF || fflush(f) == EOF);
	cr_expect(ferror(f));
	fclose(f);
	fclose(to);
}
