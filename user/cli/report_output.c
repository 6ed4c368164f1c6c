/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/report_output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/rules/rules.h"
#include "base/text.h"
#include "cli/cli.h"
#include "export/out.h"

#define TOP 20 /* rows of a text table */

static const struct xsp_report_format {
	const char *name, *ending;
	size_t top; /* rows, if --rows does not say it */
	int (*write)(const struct xsp_report *r, FILE *f, const struct xsp_report_how *how);
} formats[] = {
	{"text", ".txt", TOP, xsp_report_write_text},
	{"json", ".json", 0, xsp_report_write_json},
	{"csv", ".csv", 0, xsp_report_write_csv},
};
#define FORMATS (sizeof(formats) / sizeof(formats[0]))

/* ---- options ---- */

int xsp_report_output_format(struct xsp_report_output *o, const char *name)
{
	for (size_t i = 0; i < FORMATS; i++)
		if (strcmp(formats[i].name, name) == 0) {
			o->format = &formats[i];
			return 0;
		}
	return -EINVAL;
}

int xsp_report_output_choose(struct xsp_report_output *o, struct xsp_error *err)
{
	const size_t length = o->path != NULL ? strlen(o->path) : 0;

	for (size_t i = 0; i < FORMATS && o->format == NULL; i++)
		if (o->path != NULL && xsp_ends_with(o->path, length, formats[i].ending))
			o->format = &formats[i];
	if (o->format == NULL && o->path != NULL && xsp_out_is_file(o->path))
		return xsp_error_set(
			err, -EINVAL, XSP_STATUS_USAGE,
			"-o %.200s: the ending must be .txt, .json or .csv, or --format says which",
			o->path);
	if (o->format == NULL)
		o->format = &formats[0];
	return 0;
}

/* ---- writing ---- */

static int write_file(const struct xsp_report_output *o, const char *text, size_t length,
		      struct xsp_error *err)
{
	struct xsp_out_options how = {
		.path = o->path, .owner_uid = (uid_t)-1, .owner_gid = (gid_t)-1};
	char *elsewhere = NULL;
	struct xsp_out *out;

	how.elsewhere = &elsewhere;
	xsp_sudo_user(&how.owner_uid, &how.owner_gid);
	int rc = xsp_out_open(&how, &out, err);
	if (rc < 0)
		return rc;
	xsp_out_write(out, text, length);
	rc = xsp_out_close(out, err);
	if (elsewhere != NULL)
		xsp_say_elsewhere(o->path, elsewhere);
	free(elsewhere);
	return rc;
}

void xsp_report_output_screen(const struct xsp_report *report, const char *files, const char *next,
			      const char *moment)
{
	const int width = xsp_terminal_width(STDOUT_FILENO);
	const struct xsp_report_how how = {.width = width,
					   .color = width > 0 && getenv("NO_COLOR") == NULL,
					   .files = files,
					   .next = next,
					   .moment = moment};

	xsp_report_write_brief(report, stdout, &how);
}

bool xsp_report_output_is_screen(const struct xsp_report_output *o)
{
	return o->path == NULL && o->format == &formats[0] && !o->full && !o->top_given &&
	       o->schema == NULL;
}

/* Writes into memory first: a report is small, and then one message covers every error. */
int xsp_report_output_write(const struct xsp_report_output *o, const struct xsp_report *report,
			    struct xsp_error *err)
{
	const bool terminal = o->path == NULL && isatty(STDOUT_FILENO);
	const struct xsp_report_how how = {
		.top = o->top_given ? o->top : o->format->top,
		.brief = !o->top_given,
		.moment = o->moment,
		.width = terminal ? xsp_terminal_width(STDOUT_FILENO) : 0,
		.color = terminal && getenv("NO_COLOR") == NULL,
	};
	const bool brief = xsp_report_output_is_screen(o);
	char *text = NULL;
	size_t length = 0;
	FILE *f = open_memstream(&text, &length);
	int rc = f == NULL	     ? -ENOMEM
		 : o->schema != NULL ? xsp_report_write_schema(o->schema, xsp_rule_key, f)
		 : brief	     ? xsp_report_write_brief(report, f, &how)
				     : o->format->write(report, f, &how);

	if (f != NULL && fclose(f) != 0 && rc == 0)
		rc = -ENOMEM;
	if (rc < 0)
		xsp_error_set(err, rc, XSP_STATUS_FAILED, "out of memory");
	else if (o->path != NULL)
		rc = write_file(o, text, length, err);
	if (rc == 0 && o->path == NULL) {
		if (o->format == &formats[0])
			xsp_wrap_stdout();
		fwrite(text, 1, length, stdout); /* xsp_finish_stdout() reports errors */
	}
	free(text);
	return rc;
}
