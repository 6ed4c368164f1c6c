/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sqlite.c - puts rows into a new SQLite file.
 *
 * Everything is one transaction without a journal: an incomplete file never gets a name.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/format/json.h"
#include "base/text.h"
#include "export/out.h"
#include "export/sql/engine.h"
#include "export/sql/file.h"

struct sqlite {
	struct xsp_sql_file *file;
	sqlite3_stmt *insert[XSP_SQL_TABLES];
	unsigned columns[XSP_SQL_TABLES]; /* columns without the run */
	int64_t run;
};

/* ---- statements ---- */

static int execute(struct sqlite *s, const char *statement)
{
	return xsp_sql_file_error(
		s->file, sqlite3_exec(xsp_sql_file_database(s->file), statement, NULL, NULL, NULL));
}

/* Executes the text and frees it; NULL: no memory for it. */
static int execute_text(struct sqlite *s, char *text)
{
	int rc = text != NULL ? execute(s, text) : -ENOMEM;

	free(text);
	return rc;
}

static char *table_text(const struct xsp_sql_table_text *t)
{
	static const char *const types[XSP_SQL_TYPES] = {
		[XSP_SQL_I64] = "INTEGER", [XSP_SQL_U32] = "INTEGER", [XSP_SQL_U8] = "INTEGER",
		[XSP_SQL_F64] = "REAL",	   [XSP_SQL_STRING] = "TEXT",
	};
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (f == NULL)
		return NULL;
	fprintf(f, "CREATE TABLE %s (run INTEGER NOT NULL", t->name);
	for (const struct xsp_sql_column *c = t->columns; c->name != NULL; c++)
		fprintf(f, ", %s %s%s", c->name, types[c->type], c->null ? "" : " NOT NULL");
	if (t->derived != NULL)
		fprintf(f, ", %s INTEGER GENERATED ALWAYS AS (%s) VIRTUAL", t->derived,
			t->derived_from);
	fputc(')', f);
	fclose(f);
	return text;
}

static int make_table(struct sqlite *s, enum xsp_sql_table table)
{
	const struct xsp_sql_table_text *t = &xsp_sql_tables[table];
	char insert[256];
	int rc = execute_text(s, table_text(t));

	if (rc < 0)
		return rc;
	snprintf(insert, sizeof(insert), "INSERT INTO %s VALUES (?", t->name);
	for (; t->columns[s->columns[table]].name != NULL; s->columns[table]++)
		xsp_join(insert, sizeof(insert), "", ",?");
	xsp_join(insert, sizeof(insert), "", ")");
	return xsp_sql_file_error(s->file, sqlite3_prepare_v3(xsp_sql_file_database(s->file),
							      insert, -1, SQLITE_PREPARE_PERSISTENT,
							      &s->insert[table], NULL));
}

/* There is no journal, since nothing is ever rolled back. Sorting goes to files, since memory is
 * bounded. */
static const char *const settings[] = {
	"PRAGMA journal_mode = OFF",
	"PRAGMA synchronous = OFF",
	"PRAGMA locking_mode = EXCLUSIVE",
	"PRAGMA cache_size = -16384",
	"PRAGMA temp_store = FILE",
	"PRAGMA encoding = 'UTF-8'",
	"PRAGMA user_version = " XSP_SQL_VERSION,
	"BEGIN",
};

static const char *const indexes[] = {
	"CREATE INDEX spans_by_id ON spans (id)",
	"CREATE INDEX spans_by_parent ON spans (parent_id)",
	"CREATE INDEX names_by_id ON names (name_id)",
	"CREATE INDEX stacks_by_id ON stacks (stack_id)",
};

static int execute_all(struct sqlite *s, const char *const *list, size_t count)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < count; i++)
		rc = execute(s, list[i]);
	return rc;
}

static int sqlite_open(struct xsp_export *x, int64_t run, void **store)
{
	struct sqlite *s = calloc(1, sizeof(*s));
	const int fd = xsp_out_descriptor(x->out);

	*store = s;
	if (s == NULL)
		return -ENOMEM;
	s->run = run;
	int rc = fd < 0 ? fd : xsp_sql_file_open(fd, x->options.path, &s->file);
	if (rc == 0)
		rc = execute_all(s, settings, sizeof(settings) / sizeof(settings[0]));
	for (unsigned i = 0; rc == 0 && i < XSP_SQL_TABLES; i++)
		rc = make_table(s, i);
	return rc;
}

static void sqlite_free(void *store)
{
	struct sqlite *s = store;

	for (unsigned i = 0; i < XSP_SQL_TABLES; i++)
		sqlite3_finalize(s->insert[i]);
	xsp_sql_file_free(s->file);
	free(s);
}

/* ---- rows ---- */

static int bind_text(sqlite3_stmt *s, int column, const char *text)
{
	size_t length;
	char *clean = xsp_utf8_shown(text, &length);

	if (clean == NULL)
		return SQLITE_NOMEM;
	return sqlite3_bind_text64(s, column, clean, length, free, SQLITE_UTF8);
}

static int sqlite_put(void *store, enum xsp_sql_table table, const struct xsp_sql_value *values)
{
	struct sqlite *q = store;
	sqlite3_stmt *s = q->insert[table];
	int rc = sqlite3_bind_int64(s, 1, q->run);

	for (int i = 0; rc == SQLITE_OK && i < (int)q->columns[table]; i++) {
		const struct xsp_sql_value *v = &values[i];
		if (v->type == XSP_SQL_INTEGER)
			rc = sqlite3_bind_int64(s, i + 2, v->integer);
		else if (v->type == XSP_SQL_REAL)
			rc = sqlite3_bind_double(s, i + 2, v->real);
		else if (v->type == XSP_SQL_TEXT)
			rc = bind_text(s, i + 2, v->text);
		else
			rc = sqlite3_bind_null(s, i + 2);
	}
	if (rc == SQLITE_OK) {
		sqlite3_step(s);
		rc = sqlite3_reset(s); /* it returns the error of step() */
	}
	return xsp_sql_file_error(q->file, rc);
}

static int sqlite_complete(void *store)
{
	struct sqlite *s = store;
	int rc = execute_all(s, indexes, sizeof(indexes) / sizeof(indexes[0]));

	for (const struct xsp_sql_view *v = xsp_sql_views; rc == 0 && v->name != NULL; v++) {
		char *text = NULL;
		if (asprintf(&text, "CREATE VIEW %s AS %s", v->name, v->select) < 0)
			text = NULL;
		rc = execute_text(s, text);
	}
	return rc == 0 ? execute(s, "COMMIT") : rc;
}

const struct xsp_sql_engine xsp_sql_sqlite = {sqlite_open, sqlite_put, sqlite_complete,
					      sqlite_free};
