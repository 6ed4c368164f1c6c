/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * file.h - SQLite on a file that has no name yet (base/files/new_file.h).
 *
 * SQLite opens files by name, and a half-written database must not have one: so it gets a file system of
 * its own (sqlite3_vfs), whose one database is the output's descriptor. What it sorts outside of memory goes
 * to nameless files beside the output, where there is room for that.
 */
#ifndef XSP_EXPORT_SQL_FILE_H
#define XSP_EXPORT_SQL_FILE_H

#include <sqlite3.h>

struct xsp_sql_file;

/* A database in the empty file `fd`, which stays the caller's; `path`: what the file is to be called. */
int xsp_sql_file_open(int fd, const char *path, struct xsp_sql_file **out);
sqlite3 *xsp_sql_file_database(struct xsp_sql_file *f);
/* The negative errno that a code of SQLite's is. */
int xsp_sql_file_error(const struct xsp_sql_file *f, int code);
/* All statements must be finalized. NULL is allowed. */
void xsp_sql_file_free(struct xsp_sql_file *f);

#endif
