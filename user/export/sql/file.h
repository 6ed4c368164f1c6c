/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * file.h - SQLite on a file that has no name yet (base/files/new_file.h).
 *
 * SQLite opens files by name, but a half-written database must not have one. So SQLite gets a file
 * system of its own (sqlite3_vfs), whose only database is the output's descriptor. Sorting that
 * exceeds memory goes to nameless files beside the output, where there is room.
 */
#ifndef XSP_EXPORT_SQL_FILE_H
#define XSP_EXPORT_SQL_FILE_H

#include <sqlite3.h>

struct xsp_sql_file;

/* Opens a database in the empty file `fd`, which the caller keeps. `path` is the file's later
 * name. */
int xsp_sql_file_open(int fd, const char *path, struct xsp_sql_file **out);
sqlite3 *xsp_sql_file_database(struct xsp_sql_file *f);
/* The negative errno for a code of SQLite. */
int xsp_sql_file_error(const struct xsp_sql_file *f, int code);
/* Finalize all statements before. NULL is allowed. */
void xsp_sql_file_free(struct xsp_sql_file *f);

#endif
