/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * manual.c - the manual pages, made of the table of options and of the text that --help shows around
 * it. roff: man(7); a line that begins with a dot or a quote, and a backslash, mean something there.
 */
#include "cli/options/help.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/private.h"

/* Text of a line as it is: blanks, quotes and hyphens are what they are in a shell. */
static void put(FILE *f, const char *text, size_t length)
{
	static const char *const escapes[UCHAR_MAX + 1] = {
		['\\'] = "\\e",	 ['-'] = "\\-",	  ['\''] = "\\(aq",
		['`'] = "\\(ga", ['^'] = "\\(ha", ['~'] = "\\(ti",
	};

	for (size_t i = 0; i < length; i++) {
		const char *escape = escapes[(unsigned char)text[i]];

		if (escape != NULL)
			fputs(escape, f);
		else
			fputc(text[i], f);
	}
}

static void put_line(FILE *f, const char *text, size_t length)
{
	if (length > 0 && text[0] == '.')
		fputs("\\&", f);
	put(f, text, length);
	fputc('\n', f);
}

/* The next line of *text, without its end; false: there is none. */
static bool next_line(const char **text, const char **line, size_t *length)
{
	const char *end = strchrnul(*text, '\n');

	if (**text == '\0')
		return false;
	*line = *text;
	*length = (size_t)(end - *text);
	*text = *end == '\n' ? end + 1 : end;
	return true;
}

/* Paragraphs are filled; lines that are indented stay as they are. */
static void put_text(FILE *f, const char *text)
{
	const char *line;
	size_t length;
	bool as_is = false, empty = true;

	while (next_line(&text, &line, &length)) {
		const bool indented = length > 0 && line[0] == ' ';
		if (indented != as_is && length > 0) {
			fputs(indented ? ".nf\n" : ".fi\n", f);
			as_is = indented;
		}
		if (length > 0)
			put_line(f, line, length);
		else if (!empty && !as_is)
			fputs(".PP\n", f);
		else if (!empty)
			fputs("\n", f);
		empty = length == 0;
	}
	if (as_is)
		fputs(".fi\n", f);
}

/* ".SH EXAMPLES" of "Examples:" */
static void put_heading(FILE *f, const char *macro, const char *text, size_t length)
{
	while (length > 0 && (text[length - 1] == ':' || text[length - 1] == ' '))
		length--;
	fputs(macro, f);
	for (size_t i = 0; i < length; i++)
		fputc(macro[2] == 'H' && text[i] >= 'a' && text[i] <= 'z' ? text[i] - 'a' + 'A'
									  : text[i],
		      f);
	fputc('\n', f);
}

/* "Usage: xsptrace ..." up to an empty line; *head then points to what follows. */
static void put_synopsis(FILE *f, const char **head)
{
	const char *line;
	size_t length;

	fputs(".SH SYNOPSIS\n.nf\n", f);
	while (next_line(head, &line, &length) && length > 0)
		put_line(f, length > 7 ? line + 7 : line, length > 7 ? length - 7 : length);
	fputs(".fi\n", f);
}

/* "Keys:", "Examples:", "Exit status: ...", each a section. */
static void put_tail(FILE *f, const char *tail)
{
	static const char *const titles[] = {
		"Keys:", "Examples:", "Example:", "Exit status:", "Providers", "Rules"};
	const char *line, *rest = tail;
	size_t length;

	while (next_line(&rest, &line, &length)) {
		for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++) {
			const size_t n = strlen(titles[i]);
			if (length < n || strncmp(line, titles[i], n) != 0)
				continue;
			const size_t whole = titles[i][n - 1] == ':' ? n : length;
			fputs(".fi\n", f);
			put_heading(f, ".SH ", line, whole);
			line += whole;
			length -= whole;
			while (length > 0 && line[0] == ' ')
				line++, length--;
			if (line[0] != '\0' && strncmp(titles[i], "Exit", 4) != 0)
				fputs(".nf\n", f);
			break;
		}
		if (length > 0)
			put_line(f, line, length);
	}
	fputs(".fi\n", f);
}

static void put_option(FILE *f, const struct xsp_option *row)
{
	const char *argument = row->argument != NULL ? row->argument : "";
	const bool joined = xsp_option_is_joined(row);

	fputs(".TP\n\\fB", f);
	if (row->letter)
		fprintf(f, "\\-%c\\fR, \\fB", row->letter);
	fputs("\\-\\-", f);
	put(f, row->name, strlen(row->name));
	fputs(joined ? "\\fR" : "\\fR ", f);
	put_line(f, argument, strlen(argument));
	put_text(f, row->help);
}

static void put_options(FILE *f, enum xsp_verb verb)
{
	bool any = false;

	for (size_t i = 0; i < xsp_option_count; i++) {
		const struct xsp_option *row = &xsp_option_table[i];
		if (!(row->verbs & 1U << verb) || row->help == NULL)
			continue;
		if (!any)
			fputs(".SH OPTIONS\n", f);
		any = true;
		if (row->name != NULL) {
			put_option(f, row);
			continue;
		}
		const char *heading = row->help + strspn(row->help, "\n");
		if (heading[0] == ' ') { /* "  -h, --help" */
			fputs(".PP\n", f);
			put_text(f, heading);
		} else
			put_heading(f, ".SS ", heading, strcspn(heading, "(\n"));
	}
}

static void put_more(FILE *f, void (*more)(FILE *f))
{
	char *text = NULL;
	size_t length;
	FILE *memory = open_memstream(&text, &length);

	if (memory == NULL)
		return;
	more(memory);
	if (fclose(memory) == 0)
		put_tail(f, text);
	free(text);
}

static void put_see_also(FILE *f, enum xsp_verb but)
{
	fputs(".SH SEE ALSO\n", f);
	for (unsigned i = 0; i < XSP_VERBS; i++)
		if (i != but)
			fprintf(f, ".BR xsptrace%s%s (1),\n", i == XSP_VERB_RECORD ? "" : "\\-",
				i == XSP_VERB_RECORD ? "" : xsp_verb_help[i].name);
	fputs(".BR xspt (5)\n.PP\n/usr/share/doc/xsptrace\n", f);
}

int xsp_manual(const char *word, FILE *f)
{
	enum xsp_verb verb = XSP_VERB_RECORD;

	while (verb < XSP_VERBS && strcmp(xsp_verb_help[verb].name, word) != 0)
		verb++;
	if (verb == XSP_VERBS)
		return -EINVAL;
	/* a recording's page also says what list's --help says around the same options */
	const struct xsp_verb_help *v = &xsp_verb_help[verb];
	const struct xsp_verb_help *text =
		verb == XSP_VERB_RECORD ? &xsp_verb_help[XSP_VERB_LIST] : v;
	const char *head = text->head;
	const char *const dash = verb == XSP_VERB_RECORD ? "" : "-";
	const char *const name = verb == XSP_VERB_RECORD ? "" : v->name;

	fprintf(f, ".TH \"XSPTRACE%s%s\" 1 \"\" \"xsptrace %s\" \"User Commands\"\n", dash, name,
		XSP_VERSION);
	fprintf(f, ".SH NAME\nxsptrace%s%s \\- %s\n", dash, name, v->what);
	put_synopsis(f, &head);
	if (verb == XSP_VERB_RECORD || head[0] != '\0')
		fputs(".SH DESCRIPTION\n", f);
	if (verb == XSP_VERB_RECORD)
		fputs("Nothing is restarted or recompiled: a running process is attached to, or a program is\n"
		      "started. At the end, or at Ctrl\\-C, the answer in short is printed.\n",
		      f);
	put_text(f, head);
	if (verb == XSP_VERB_LIST)
		fputs(".SH OPTIONS\nThose of a recording:\n.BR xsptrace (1).\n", f);
	else
		put_options(f, verb);
	if (verb != XSP_VERB_LIST && text->more != NULL)
		put_more(f, text->more);
	if (verb != XSP_VERB_LIST)
		put_tail(f, text->tail);
	put_see_also(f, verb);
	return 0;
}
