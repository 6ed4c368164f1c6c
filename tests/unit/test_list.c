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
	{"known", "known", XSP_UNIT_NUMBER, false, OF(known)},
	{"shown", "who", XSP_UNIT_TEXT, false, XSP_BY(shown)},
};
static const struct xsp_list list = XSP_LIST_MORE(columns, more);
static const struct animal animals[] = {
	{"cat\n", 4, 1500, true, 0.25},
	{"a very long millipede of the woods", 1000000, UINT64_MAX, true, 0.5},
	{NULL, 0, 7, false, 0},
};

/* What `write` writes; malloc'd. */
static char *written(void (*write)(FILE *f))
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	write(f);
	fclose(f);
	return text;
}

static void write_json(FILE *f)
{
	struct xsp_json_writer j = {.f = f};

	xsp_list_json_rows(&j, NULL, &list, "known name time_ns? share legs", NULL, animals,
			   sizeof(animals[0]), 3);
}

Test(list, json)
{
	char *text = written(write_json);
	char *to = text;

	for (const char *from = text; *from != '\0'; from++)
		if (*from != ' ' && *from != '\n')
			*to++ = *from;
	*to = '\0';
	/* what is too large is unknown; a key with a question mark is then omitted */
	cr_assert_str_eq(
		text,
		"[{\"known\":true,\"name\":\"cat\\n\",\"time_ns\":1500,\"share\":0.25,\"legs\":4},"
		"{\"known\":true,\"name\":\"averylongmillipedeofthewoods\",\"share\":0.5,\"legs\":"
		"1000000},{\"known\":false,\"name\":null,\"share\":null,\"legs\":0}]");
	free(text);
}

static void write_rows(FILE *f)
{
	static const struct xsp_list_column shown_columns[] = {
		{.key = "name", .width = -8},
		{.key = "legs", .title = "feet", .width = 9},
		{.key = "share", .width = 7, .format = "%.2f %%", .times = 100},
		{.key = "shown"},
	};
	const struct xsp_list_text text = {&list, shown_columns, 4, 0};

	xsp_list_head(&text, f, false);
	for (size_t i = 0; i < 3; i++) {
		xsp_list_row(&text, f, NULL, &animals[i]);
		fputc('\n', f);
	}
}

Test(list, rows_of_fixed_widths)
{
	char *text = written(write_rows);

	cr_assert_str_eq(text,
			 "animal         feet     part  who\n"
			 "cat?              4  25.00 %  cat?\n"
			 "a ve…ods  1,000,000  50.00 %  a very long millipede of the woods\n"
			 "-                 0        -  nobody\n",
			 "%s", text);
	free(text);
}

static int terminal;

static void write_fitted(FILE *f)
{
	static const struct xsp_list_column shown_columns[] = {
		{.key = "name"},
		{.key = "legs", .spare = 1},
		{.key = "time_ns"},
		{.key = "share", .spare = 2},
	};
	const struct xsp_list_text text = {&list, shown_columns, 4, 0};
	struct xsp_list_fit fit;

	xsp_list_fit(&text, NULL, animals, sizeof(animals[0]), 2, terminal, &fit);
	xsp_list_fitted(&text, &fit, f, NULL, animals, sizeof(animals[0]), 2, false);
	xsp_list_hidden(&text, &fit, f);
}

Test(list, rows_as_wide_as_they_must_be)
{
	terminal = 0;
	char *text = written(write_fitted);
	cr_assert_str_eq(text,
			 "animal                                   legs     time    part\n"
			 "cat?                                        4  1.50 us  25.0 %\n"
			 "a very long millipede of the woods  1,000,000        -  50.0 %\n",
			 "%s", text);
	free(text);
	/* a terminal: spare columns go before a name is cut to less than can be read */
	terminal = 45;
	text = written(write_fitted);
	cr_assert_str_eq(text,
			 "animal                          legs     time\n"
			 "cat?                               4  1.50 us\n"
			 "a very long …of the woods  1,000,000        -\n"
			 "not shown, as the terminal is narrow: part\n",
			 "%s", text);
	free(text);
}
