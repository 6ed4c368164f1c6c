/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows by columns: JSON by keys, text of fixed widths, and of those that the rows need. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "report/list.h"

struct animal {
	const char *name;
	uint64_t legs, ns;
	bool known; /* ns */
	double share;
};

#define OF(member) XSP_FIELD(struct animal, member)
XSP_REPORT_CELL(shown, void, struct animal, xsp_cell_text(row->known ? row->name : "nobody"));

static const struct xsp_report_column columns[] = {
	{"name", "animal", XSP_UNIT_TEXT, true, OF(name)},
	{"legs", "legs", XSP_UNIT_COUNT, false, OF(legs)},
	{"time_ns", "time", XSP_UNIT_NS, false, XSP_FIELD_IF(struct animal, ns, known)},
	{"share", "share", XSP_UNIT_SHARE, false, OF(share)},
};
static const struct xsp_report_column more[] = {
	{"share", "part", XSP_UNIT_SHARE, false, XSP_FIELD_IF(struct animal, share, known)},
	{"at.home", "at home", XSP_UNIT_COUNT, false, OF(legs)},
	{"known", "known", XSP_UNIT_NUMBER, false, OF(known)},
	{"shown", "who", XSP_UNIT_TEXT, false, XSP_BY(shown)},
};
static const struct animal animals[] = {
	{"cat\n", 4, 1500, true, 0.25},
	{"a very long millipede of the woods", 1000000, UINT64_MAX, true, 0.5},
	{NULL, 0, 7, false, 0},
};

/* A summary of the first `count` of them; malloc'd. */
static char *summary(enum xsp_report_form form, const struct xsp_list *list, size_t count,
		     size_t most, int terminal)
{
	const struct xsp_report_how how = {.width = terminal};
	struct xsp_report *r;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	cr_assert_eq(xsp_report_new_summary(form, &how, &r), 0);
	xsp_list_rows(xsp_report_section(r, "animals", "Animals"), list, NULL, animals,
		      sizeof(animals[0]), count, most);
	cr_assert_eq(xsp_report_write_summary(r, f), 0);
	xsp_report_free(r);
	fclose(f);
	return text;
}

static const struct xsp_list_column fixed[] = {
	{.key = "name", .width = -8},
	{.key = "legs", .title = "feet", .width = 9},
	{.key = "share", .width = 7, .format = "%.2f %%", .times = 100},
	{.key = "shown"},
};
static const struct xsp_list list = {
	XSP_LIST_COLUMNS(columns), XSP_LIST_MORE(more),
	.json = "in.animals",	   .keys = "known name time_ns? share legs at.home",
	XSP_LIST_TEXT(fixed),	   .rows = "animal",
};

Test(list, json)
{
	char *text = summary(XSP_FORM_JSON, &list, 3, 1, 0);
	char *to = text;

	for (const char *from = text; *from != '\0'; from++)
		if (*from != ' ' && *from != '\n' && *from != '\t')
			*to++ = *from;
	*to = '\0';
	/* what is too large is unknown; a key with a question mark is then omitted */
	cr_assert_str_eq(
		text,
		"{\"in\":{\"animals\":[{\"known\":true,\"name\":\"cat\\n\",\"time_ns\":1500,"
		"\"share\":0.25,\"legs\":4,\"at\":{\"home\":4}},{\"known\":true,\"name\":"
		"\"averylongmillipedeofthewoods\",\"share\":0.5,\"legs\":1000000,\"at\":{\"home\":"
		"1000000}},{\"known\":false,\"name\":null,\"share\":null,\"legs\":0,\"at\":{"
		"\"home\":"
		"0}}]}}",
		"%s", text);
	free(text);
}

Test(list, rows_of_fixed_widths)
{
	char *text = summary(XSP_FORM_TEXT, &list, 3, 0, 0);

	cr_assert_str_eq(text,
			 "animal         feet     part  who\n"
			 "cat?              4  25.00 %  cat?\n"
			 "a ve…ods  1,000,000  50.00 %  a very long millipede of the woods\n"
			 "-                 0        -  nobody\n",
			 "%s", text);
	free(text);
	text = summary(XSP_FORM_TEXT, &list, 2, 1, 0);
	cr_assert_str_eq(text,
			 "animal         feet     part  who\n"
			 "cat?              4  25.00 %  cat?\n"
			 "... and 1 more animal\n",
			 "%s", text);
	free(text);
}

static const struct xsp_list_column as_needed[] = {
	{.key = "name"},
	{.key = "legs", .spare = 1},
	{.key = "time_ns"},
	{.key = "share", .spare = 2},
};
static const struct xsp_list fitted = {XSP_LIST_COLUMNS(columns), XSP_LIST_MORE(more),
				       XSP_LIST_TEXT(as_needed)};

Test(list, rows_as_wide_as_they_must_be)
{
	char *text = summary(XSP_FORM_TEXT, &fitted, 2, 0, 0);

	cr_assert_str_eq(text,
			 "animal                                   legs     time    part\n"
			 "cat?                                        4  1.50 us  25.0 %\n"
			 "a very long millipede of the woods  1,000,000        -  50.0 %\n",
			 "%s", text);
	free(text);
	/* a terminal: spare columns go before a name is cut to less than can be read */
	text = summary(XSP_FORM_TEXT, &fitted, 2, 0, 45);
	cr_assert_str_eq(text,
			 "animal                          legs     time\n"
			 "cat?                               4  1.50 us\n"
			 "a very long …of the woods  1,000,000        -\n"
			 "not shown, as the terminal is narrow: part\n",
			 "%s", text);
	free(text);
	/* as JSON it is nowhere */
	text = summary(XSP_FORM_JSON, &fitted, 2, 0, 0);
	cr_assert_str_eq(text, "{}\n", "%s", text);
	free(text);
}
