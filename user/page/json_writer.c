/* SPDX-License-Identifier: BSD-2-Clause */
#include "page/json_writer.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/format/json.h"

static void put_key(struct xsp_json_writer *j, const char *key)
{
	fprintf(j->f, "%s%s%*s", j->more ? "," : "", j->depth > 0 ? "\n" : "", (int)(2 * j->depth),
		"");
	if (key != NULL)
		fprintf(j->f, "\"%s\": ", key);
	j->more = true;
}

void xsp_json_begin(struct xsp_json_writer *j, const char *key, char with)
{
	put_key(j, key);
	fputc(with, j->f);
	j->depth++;
	j->more = false;
}

void xsp_json_end(struct xsp_json_writer *j, char with)
{
	j->depth--;
	if (j->more)
		fprintf(j->f, "\n%*s", (int)(2 * j->depth), "");
	fputc(with == '{' ? '}' : ']', j->f);
	j->more = true;
}

void xsp_json_text(struct xsp_json_writer *j, const char *key, const char *value)
{
	char *safe = value != NULL ? xsp_json_escaped(value, NULL) : NULL;

	put_key(j, key);
	j->failed = j->failed || (value != NULL && safe == NULL);
	if (safe != NULL)
		fprintf(j->f, "\"%s\"", safe);
	else
		fputs("null", j->f);
	free(safe);
}

void xsp_json_number(struct xsp_json_writer *j, const char *key, uint64_t value)
{
	put_key(j, key);
	fprintf(j->f, "%" PRIu64, value);
}

void xsp_json_signed(struct xsp_json_writer *j, const char *key, int64_t value)
{
	put_key(j, key);
	fprintf(j->f, "%" PRId64, value);
}

void xsp_json_bool(struct xsp_json_writer *j, const char *key, bool value)
{
	put_key(j, key);
	fputs(value ? "true" : "false", j->f);
}
