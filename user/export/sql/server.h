/* SPDX-License-Identifier: BSD-2-Clause */
/* server.h - a ClickHouse server through its HTTP interface: sends statements, gets answers and
 * errors. */
#ifndef XSP_EXPORT_SQL_SERVER_H
#define XSP_EXPORT_SQL_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct xsp_sql_server;

/* Room for an answer: we ask only for a few words. */
#define XSP_SQL_ANSWER 1024

/*
 * Parses clickhouse://HOST[:PORT]/DATABASE (clickhouses:// uses TLS). Reads user and password from
 * the environment and the file that it names (docs/sql.md). Sends nothing yet.
 */
int xsp_sql_server_new(const char *url, struct xsp_sql_server **out, struct xsp_error *err);
/* NULL is allowed. */
void xsp_sql_server_free(struct xsp_sql_server *s);

/*
 * Sends a statement once; `data` are the rows of an INSERT, or NULL. answer[XSP_SQL_ANSWER] gets
 * the answer. 0, or a negative errno with *err filled. -EAGAIN: a repetition may succeed, and
 * nobody knows whether the statement was done.
 */
int xsp_sql_server_do(struct xsp_sql_server *s, const char *statement, const void *data,
		      size_t size, char *answer, struct xsp_error *err);
/* How long it is worth trying again; and how long the server asked us to wait at its last error (0:
 * it did not). In ns. */
uint64_t xsp_sql_server_patience_ns(const struct xsp_sql_server *s);
uint64_t xsp_sql_server_pause_ns(const struct xsp_sql_server *s);

#endif
