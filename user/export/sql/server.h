/* SPDX-License-Identifier: BSD-2-Clause */
/* server.h - a ClickHouse server as its HTTP interface shows it: statements there, answers and errors back. */
#ifndef XSP_EXPORT_SQL_SERVER_H
#define XSP_EXPORT_SQL_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct xsp_sql_server;

/* An answer as it is wanted: a few words. */
#define XSP_SQL_ANSWER 1024

/*
 * Takes clickhouse://HOST[:PORT]/DATABASE (clickhouses://: by TLS) apart and reads who we are, from the environment
 * and the file it names (docs/sql.md). Nothing is sent yet.
 */
int xsp_sql_server_new(const char *url, struct xsp_sql_server **out, struct xsp_error *err);
/* NULL is allowed. */
void xsp_sql_server_free(struct xsp_sql_server *s);

/*
 * Has a statement done, once; `data` are the rows of an INSERT, or NULL. answer[XSP_SQL_ANSWER] gets what it answers.
 * 0, or a negative errno with *err filled. -EAGAIN: it may go well another time, and whether it was done is not known.
 */
int xsp_sql_server_do(struct xsp_sql_server *s, const char *statement, const void *data,
		      size_t size, char *answer, struct xsp_error *err);
/* How long it is worth to try again, and how long the server asked to be left alone at the last error (0: it did
 * not); ns. */
uint64_t xsp_sql_server_patience_ns(const struct xsp_sql_server *s);
uint64_t xsp_sql_server_pause_ns(const struct xsp_sql_server *s);

#endif
