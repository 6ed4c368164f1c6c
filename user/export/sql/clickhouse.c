/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * clickhouse.c - puts rows into the tables of a ClickHouse server, each row once, whatever happens
 * meanwhile.
 *
 * Each TABLE of the schema is a view there, of the rows of all_TABLE that count. We send rows in
 * batches, and give a batch a new number each time we send it. In the end `batches` holds only
 * numbers whose INSERT was answered. If an answer is lost, the batch is sent again under another
 * number. Then it makes no difference whether, or when, the first INSERT was done after all.
 *
 * A batch counts once its load is in `loads`. That row is written when the server has counted all
 * other rows. If a run has several loads, only the last counts.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/rows/grow.h"
#include "base/text.h"
#include "export/sql/batch.h"
#include "export/sql/server.h"

#define FULL (15U << 20) /* bytes of a batch: some 140,000 spans */
#define COLUMNS 2048U /* bytes of a table's columns, with their types */
#define FIRST_PAUSE_NS 200000000ULL
#define LONGEST_PAUSE_NS 10000000000ULL

/* A batch that the server has. */
struct arrived {
	enum xsp_sql_table table;
	uint64_t number, rows;
};

struct clickhouse {
	struct xsp_export *x;
	struct xsp_sql_server *server;
	int64_t run;
	uint64_t load;
	struct xsp_sql_batch batches[XSP_SQL_TABLES];
	uint64_t rows[XSP_SQL_TABLES]; /* rows that the server has */
	struct arrived *arrived;
	size_t count, capacity;
	unsigned repeated; /* statements that failed at first */
	bool reached; /* it has answered */
	char answer[XSP_SQL_ANSWER];
};

/* ---- statements ---- */

static int draw(uint64_t *number)
{
	return getrandom(number, sizeof(*number), 0) == (ssize_t)sizeof(*number) ? 0 : -EIO;
}

/* Sends it once; *number: the number under which the batch was sent. */
static int attempt(struct clickhouse *c, const char *statement, struct xsp_sql_batch *b,
		   uint64_t *number, struct xsp_error *err)
{
	int rc = b != NULL ? draw(number) : 0;

	if (rc < 0)
		return rc;
	if (b != NULL)
		xsp_sql_batch_number(b, *number);
	return xsp_sql_server_do(c->server, statement, b != NULL ? b->bytes : NULL,
				 b != NULL ? b->size : 0, c->answer, err);
}

/* Tries again until the statement is done, cannot be done, or patience ends. Does not wait for a
 * server that never answered: its address may be wrong. */
static int insist(struct clickhouse *c, const char *statement, struct xsp_sql_batch *b,
		  uint64_t *number)
{
	const uint64_t begin = xsp_now_ns(), patience = xsp_sql_server_patience_ns(c->server);
	uint64_t pause = FIRST_PAUSE_NS;

	for (;;) {
		struct xsp_error err = {0};
		int rc = attempt(c, statement, b, number, &err);
		if (rc == 0) {
			c->reached = true;
			return 0;
		}
		const uint64_t wanted = xsp_sql_server_pause_ns(c->server),
			       longer = wanted > pause ? wanted : pause;
		if (rc != -EAGAIN || !c->reached || xsp_now_ns() - begin + longer > patience) {
			if (c->x->why.status == XSP_STATUS_OK)
				c->x->why = err;
			return rc;
		}
		c->repeated++;
		xsp_nap_ns(longer);
		pause = pause * 2 < LONGEST_PAUSE_NS ? pause * 2 : LONGEST_PAUSE_NS;
	}
}

__attribute__((format(printf, 2, 3))) static int say(struct clickhouse *c, const char *fmt, ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	int rc = vasprintf(&text, fmt, ap) < 0 ? -ENOMEM : 0;
	va_end(ap);
	if (rc < 0)
		return rc;
	rc = insist(c, text, NULL, NULL);
	free(text);
	return rc;
}

/* The answer to the last statement, as a number. */
static int answered(struct clickhouse *c, uint64_t *number)
{
	char *end;

	*number = strtoull(c->answer, &end, 10);
	if (end != c->answer && strcmp(end, "\n") == 0)
		return 0;
	return xsp_error_set(&c->x->why, -EPROTO, XSP_STATUS_SERVER,
			     "cannot write %.200s: what answers there is no ClickHouse",
			     c->x->options.path);
}

static int ask(struct clickhouse *c, const char *question, uint64_t *number)
{
	int rc = insist(c, question, NULL, NULL);

	return rc == 0 ? answered(c, number) : rc;
}

/* ---- tables ---- */

/* The columns of a table as ClickHouse declares them; without types as INSERT and SELECT name
 * them. */
static const char *columns_of(const struct xsp_sql_table_text *t, bool types, char out[COLUMNS])
{
	static const char *const names[XSP_SQL_TYPES] = {
		[XSP_SQL_I64] = "Int64",   [XSP_SQL_U32] = "UInt32",	[XSP_SQL_U8] = "UInt8",
		[XSP_SQL_F64] = "Float64", [XSP_SQL_STRING] = "String",
	};

	out[0] = '\0';
	for (const struct xsp_sql_column *c = t->columns; c->name != NULL; c++) {
		xsp_join(out, COLUMNS, "", ", %s", c->name);
		if (types)
			xsp_join(out, COLUMNS, "", c->null ? " Nullable(%s)" : " %s",
				 names[c->type]);
	}
	return out;
}

static int make_table(struct clickhouse *c, const struct xsp_sql_table_text *t)
{
	char columns[COLUMNS];

	return say(
		c,
		"CREATE TABLE IF NOT EXISTS all_%s (run Int64, batch UInt64%s) ENGINE = MergeTree ORDER BY (run, %s)",
		t->name, columns_of(t, true, columns), t->order);
}

static int make_table_view(struct clickhouse *c, const struct xsp_sql_table_text *t)
{
	const bool derived = t->derived != NULL;
	char columns[COLUMNS];

	return say(
		c,
		"CREATE VIEW IF NOT EXISTS %s AS SELECT run%s%s%s%s%s FROM all_%s WHERE batch IN (SELECT batch FROM batches WHERE table_name = '%s' AND (run, load) IN "
		"(SELECT run, max(load) FROM loads GROUP BY run))",
		t->name, columns_of(t, false, columns), derived ? ", " : "",
		derived ? t->derived_from : "", derived ? " AS " : "", derived ? t->derived : "",
		t->name, t->name);
}

static int make_view(struct clickhouse *c, const struct xsp_sql_view *v)
{
	return say(c, "CREATE VIEW IF NOT EXISTS %s AS %s", v->name, v->select);
}

static int make_all(struct clickhouse *c)
{
	int rc = say(
		c,
		"CREATE TABLE IF NOT EXISTS batches (run Int64, load UInt64, table_name String, batch UInt64, rows UInt64) ENGINE = MergeTree ORDER BY (run, load)");

	for (unsigned i = 0; rc == 0 && i < XSP_SQL_TABLES; i++)
		rc = make_table(c, &xsp_sql_tables[i]);
	if (rc == 0)
		rc = say(
			c,
			"CREATE TABLE IF NOT EXISTS loads (run Int64, load UInt64, loaded_at DateTime, xsptrace_version String) ENGINE = MergeTree ORDER BY (run, load)");
	for (unsigned i = 0; rc == 0 && i < XSP_SQL_TABLES; i++)
		rc = make_table_view(c, &xsp_sql_tables[i]);
	for (const struct xsp_sql_view *v = xsp_sql_views + 1; rc == 0 && v->name != NULL; v++)
		rc = make_view(c, v);
	return rc;
}

static int refuse_version(struct clickhouse *c, uint64_t version)
{
	return xsp_error_set(&c->x->why, -EEXIST, XSP_STATUS_USAGE,
			     "cannot write %.200s: its tables are of version %" PRIu64
			     " of the schema, and this xsptrace writes version " XSP_SQL_VERSION
			     ": CREATE DATABASE makes another one",
			     c->x->options.path, version);
}

/* Checks the version that made the tables. The version's view comes before them: tables without it
 * are of the first version. */
static int check_version(struct clickhouse *c, bool there)
{
	uint64_t version;
	int rc = there ? 0 : make_view(c, &xsp_sql_views[0]);

	if (rc == 0)
		rc = ask(c, "SELECT version FROM schema_version", &version);
	return rc == 0 && version != strtoull(XSP_SQL_VERSION, NULL, 10)
		       ? refuse_version(c, version)
		       : rc;
}

/* A number for the run's next load. It is above all earlier loads, and differs from that of anybody
 * who loads the run right now. */
static int number_load(struct clickhouse *c)
{
	uint64_t last = 0, random;
	int rc = say(c, "SELECT max(load) FROM loads WHERE run = %" PRId64, c->run);

	if (rc == 0)
		rc = answered(c, &last);
	if (rc == 0)
		rc = draw(&random);
	if (rc == 0)
		c->load = ((last >> 32) + 1) << 32 | random >> 32;
	return rc;
}

/* Do all tables exist? They do if the last one does. But names as short as ours may belong to
 * others, too. */
static int look(struct clickhouse *c, uint64_t *there)
{
	uint64_t begun = 0, first = 0, tables = 0;
	int rc = ask(c, "EXISTS TABLE kernels", there);

	if (rc == 0)
		rc = ask(c, "EXISTS TABLE batches", &first);
	if (rc == 0)
		rc = ask(c, "EXISTS TABLE schema_version", &begun);
	if (rc == 0 && first && !begun)
		return refuse_version(c, 1);
	if (rc == 0)
		rc = ask(c, "SELECT count() FROM system.tables WHERE database = currentDatabase()",
			 &tables);
	if (rc == 0 && !begun && tables > 0)
		rc = xsp_error_set(
			&c->x->why, -EEXIST, XSP_STATUS_USAGE,
			"cannot write %.200s: the database has tables that are not xsptrace's: CREATE DATABASE makes one for it",
			c->x->options.path);
	return rc;
}

static int clickhouse_open(struct xsp_export *x, int64_t run, void **store)
{
	struct clickhouse *c = calloc(1, sizeof(*c));
	uint64_t there = 0;

	*store = c;
	if (c == NULL)
		return -ENOMEM;
	c->x = x;
	c->run = run;
	int rc = xsp_sql_server_new(x->options.path, &c->server, &x->why);
	if (rc == 0)
		rc = look(c, &there);
	if (rc == 0)
		rc = check_version(c, there != 0);
	if (rc == 0 && !there)
		rc = make_all(c);
	return rc == 0 ? number_load(c) : rc;
}

static void clickhouse_free(void *store)
{
	struct clickhouse *c = store;

	xsp_sql_server_free(c->server);
	for (unsigned i = 0; i < XSP_SQL_TABLES; i++)
		xsp_sql_batch_free(&c->batches[i]);
	free(c->arrived);
	free(c);
}

/* ---- rows ---- */

static int flush(struct clickhouse *c, enum xsp_sql_table table)
{
	struct xsp_sql_batch *b = &c->batches[table];
	const struct xsp_sql_table_text *t = &xsp_sql_tables[table];
	struct arrived a = {.table = table, .rows = b->count};
	char columns[COLUMNS], text[COLUMNS + 128];

	if (b->count == 0)
		return 0;
	snprintf(text, sizeof(text), "INSERT INTO all_%s (run, batch%s) FORMAT RowBinary", t->name,
		 columns_of(t, false, columns));
	int rc = insist(c, text, b, &a.number);
	if (rc == 0)
		rc = XSP_APPEND(c->arrived, c->capacity, c->count, a);
	if (rc < 0)
		return rc;
	c->rows[table] += b->count;
	xsp_sql_batch_clear(b);
	return 0;
}

static int clickhouse_put(void *store, enum xsp_sql_table table, const struct xsp_sql_value *values)
{
	struct clickhouse *c = store;
	struct xsp_sql_batch *b = &c->batches[table];
	int rc = xsp_sql_batch_add(b, c->run, xsp_sql_tables[table].columns, values);

	return rc == 0 && b->size >= FULL ? flush(c, table) : rc;
}

/* Writes `batches`. A row that arrives twice does no harm there, so it needs no number. */
static int insert_batches(struct clickhouse *c)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (f == NULL)
		return -ENOMEM;
	fputs("INSERT INTO batches (run, load, table_name, batch, rows) VALUES ", f);
	for (size_t i = 0; i < c->count; i++)
		fprintf(f, "%s(%" PRId64 ",%" PRIu64 ",'%s',%" PRIu64 ",%" PRIu64 ")",
			i > 0 ? "," : "", c->run, c->load, xsp_sql_tables[c->arrived[i].table].name,
			c->arrived[i].number, c->arrived[i].rows);
	int rc = fclose(f) == 0 && text != NULL ? insist(c, text, NULL, NULL) : -ENOMEM;
	free(text);
	return rc;
}

/* A server that lost power meanwhile does not have all the rows that it confirmed. */
static int check_rows(struct clickhouse *c, enum xsp_sql_table table)
{
	const char *name = xsp_sql_tables[table].name;
	uint64_t there;
	int rc = say(c,
		     "SELECT count() FROM all_%s WHERE run = %" PRId64
		     " AND batch IN (SELECT batch FROM batches WHERE run = %" PRId64
		     " AND load = %" PRIu64 " AND table_name = '%s')",
		     name, c->run, c->run, c->load, name);

	if (rc == 0)
		rc = answered(c, &there);
	if (rc == 0 && there != c->rows[table])
		rc = xsp_error_set(&c->x->why, -EIO, XSP_STATUS_OUTPUT,
				   "cannot write %.200s: the server has %" PRIu64 " of %" PRIu64
				   " rows of %s that it had taken; nothing of this load counts",
				   c->x->options.path, there, c->rows[table], name);
	return rc;
}

static void note(struct clickhouse *c)
{
	uint64_t rows = 0;
	char again[48] = "";
	char **text = c->x->options.note;

	for (unsigned i = 0; i < XSP_SQL_TABLES; i++)
		rows += c->rows[i];
	if (c->repeated > 0)
		snprintf(again, sizeof(again), "; %u times something was sent again", c->repeated);
	if (text != NULL &&
	    asprintf(text, "run %" PRId64 ", %" PRIu64 " rows%s", c->run, rows, again) < 0)
		*text = NULL;
}

static int clickhouse_complete(void *store)
{
	struct clickhouse *c = store;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < XSP_SQL_TABLES; i++)
		rc = flush(c, i);
	if (rc == 0)
		rc = insert_batches(c);
	for (unsigned i = 0; rc == 0 && i < XSP_SQL_TABLES; i++)
		rc = check_rows(c, i);
	if (rc == 0)
		rc = say(
			c,
			"INSERT INTO loads (run, load, loaded_at, xsptrace_version) SELECT %" PRId64
			", %" PRIu64 ", now(), '" XSP_VERSION "'",
			c->run, c->load);
	if (rc == 0)
		note(c);
	return rc;
}

const struct xsp_sql_engine xsp_sql_clickhouse = {clickhouse_open, clickhouse_put,
						  clickhouse_complete, clickhouse_free};
