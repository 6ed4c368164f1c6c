/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/sql/file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file_io.h"
#include "base/files/new_file.h"

struct xsp_sql_file {
	sqlite3_vfs vfs;
	char name[48]; /* the file system's, by which SQLite finds it */
	int fd;
	char *path;
	bool registered;
	sqlite3 *database;
	int error; /* the last errno */
};

/* An open file, as SQLite allocates it. */
struct open_file {
	sqlite3_file base;
	struct xsp_sql_file *of;
	int fd;
	struct xsp_new_file *own; /* a file of its own, for sorting */
};

static struct open_file *open_of(sqlite3_file *f)
{
	return (struct open_file *)f;
}

/* `error`: a negative errno. */
static int failed(struct open_file *f, long error, int code)
{
	f->of->error = (int)-error;
	return error == -ENOSPC || error == -EDQUOT ? SQLITE_FULL : code;
}

static int file_close(sqlite3_file *base)
{
	xsp_new_file_free(open_of(base)->own);
	open_of(base)->own = NULL;
	return SQLITE_OK;
}

static int file_read(sqlite3_file *base, void *buffer, int amount, sqlite3_int64 at)
{
	struct open_file *f = open_of(base);
	const long n = xsp_read_at(f->fd, buffer, (size_t)amount, (uint64_t)at);

	if (n < 0)
		return failed(f, n, SQLITE_IOERR_READ);
	if (n == amount)
		return SQLITE_OK;
	memset((char *)buffer + n, 0, (size_t)(amount - n)); /* SQLite wants zeros there */
	return SQLITE_IOERR_SHORT_READ;
}

static int file_write(sqlite3_file *base, const void *data, int amount, sqlite3_int64 at)
{
	struct open_file *f = open_of(base);
	const int rc = xsp_write_at(f->fd, data, (size_t)amount, (uint64_t)at);

	return rc == 0 ? SQLITE_OK : failed(f, rc, SQLITE_IOERR_WRITE);
}

static int file_truncate(sqlite3_file *base, sqlite3_int64 size)
{
	struct open_file *f = open_of(base);

	return ftruncate(f->fd, size) == 0 ? SQLITE_OK : failed(f, -errno, SQLITE_IOERR_TRUNCATE);
}

static int file_size(sqlite3_file *base, sqlite3_int64 *size)
{
	struct open_file *f = open_of(base);
	struct stat st;

	if (fstat(f->fd, &st) < 0)
		return failed(f, -errno, SQLITE_IOERR_FSTAT);
	*size = st.st_size;
	return SQLITE_OK;
}

/* A file that nobody else can open and that vanishes if we die. */
static int file_nothing(sqlite3_file *base, int how)
{
	(void)base;
	(void)how;
	return SQLITE_OK;
}

static int file_check_lock(sqlite3_file *base, int *taken)
{
	(void)base;
	*taken = 0;
	return SQLITE_OK;
}

static int file_control(sqlite3_file *base, int what, void *argument)
{
	(void)base;
	(void)what;
	(void)argument;
	return SQLITE_NOTFOUND;
}

static int file_sector(sqlite3_file *base)
{
	(void)base;
	return 4096;
}

static int file_traits(sqlite3_file *base)
{
	(void)base;
	return SQLITE_IOCAP_UNDELETABLE_WHEN_OPEN;
}

static const sqlite3_io_methods methods = {
	.iVersion = 1,
	.xClose = file_close,
	.xRead = file_read,
	.xWrite = file_write,
	.xTruncate = file_truncate,
	.xSync = file_nothing,
	.xFileSize = file_size,
	.xLock = file_nothing,
	.xUnlock = file_nothing,
	.xCheckReservedLock = file_check_lock,
	.xFileControl = file_control,
	.xSectorSize = file_sector,
	.xDeviceCharacteristics = file_traits,
};

static int vfs_open(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *out, int flags,
		    int *given)
{
	struct xsp_sql_file *of = vfs->pAppData;
	struct open_file *f = open_of(out);
	int rc = 0;

	(void)name;
	*f = (struct open_file){.of = of, .fd = of->fd};
	if (!(flags & SQLITE_OPEN_MAIN_DB)) {
		rc = xsp_new_file_open(of->path, NULL, &f->own);
		f->fd = rc == 0 ? xsp_new_file_descriptor(f->own) : -1;
	}
	if (rc < 0) {
		of->error = -rc;
		return SQLITE_CANTOPEN;
	}
	f->base.pMethods = &methods;
	if (given != NULL)
		*given = flags;
	return SQLITE_OK;
}

/* Only the database exists: no journal of an earlier one. */
static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *found)
{
	(void)vfs;
	(void)name;
	(void)flags;
	*found = 0;
	return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
	(void)vfs;
	(void)name;
	(void)sync;
	return SQLITE_OK;
}

static int vfs_full_name(sqlite3_vfs *vfs, const char *name, int size, char *out)
{
	(void)vfs;
	snprintf(out, (size_t)size, "%s", name);
	return SQLITE_OK;
}

static int open_database(struct xsp_sql_file *f)
{
	const sqlite3_vfs *usual =
		sqlite3_initialize() == SQLITE_OK ? sqlite3_vfs_find(NULL) : NULL;

	if (usual == NULL)
		return -ENOMEM;
	snprintf(f->name, sizeof(f->name), "xsptrace-%p", (void *)f);
	f->vfs = *usual; /* time and random numbers come from the usual one */
	f->vfs.iVersion = 1;
	f->vfs.pNext = NULL;
	f->vfs.zName = f->name;
	f->vfs.pAppData = f;
	f->vfs.szOsFile = sizeof(struct open_file);
	f->vfs.xOpen = vfs_open;
	f->vfs.xAccess = vfs_access;
	f->vfs.xDelete = vfs_delete;
	f->vfs.xFullPathname = vfs_full_name;
	if (sqlite3_vfs_register(&f->vfs, 0) != SQLITE_OK)
		return -ENOMEM;
	f->registered = true;
	int rc = sqlite3_open_v2("database", &f->database,
				 SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
				 f->name);
	return rc == SQLITE_OK ? 0 : xsp_sql_file_error(f, rc);
}

int xsp_sql_file_open(int fd, const char *path, struct xsp_sql_file **out)
{
	struct xsp_sql_file *f = calloc(1, sizeof(*f));
	int rc = -ENOMEM;

	*out = NULL;
	if (f == NULL)
		return rc;
	f->fd = fd;
	f->path = strdup(path);
	if (f->path != NULL)
		rc = open_database(f);
	if (rc < 0) {
		xsp_sql_file_free(f);
		return rc;
	}
	*out = f;
	return 0;
}

sqlite3 *xsp_sql_file_database(struct xsp_sql_file *f)
{
	return f->database;
}

int xsp_sql_file_error(const struct xsp_sql_file *f, int code)
{
	switch (code & 0xff) {
	case SQLITE_OK:
	case SQLITE_DONE:
	case SQLITE_ROW:
		return 0;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_TOOBIG:
		return -EOVERFLOW;
	case SQLITE_FULL:
		return f->error != 0 ? -f->error : -EFBIG;
	default:
		return f->error != 0 ? -f->error : -EIO;
	}
}

void xsp_sql_file_free(struct xsp_sql_file *f)
{
	if (f == NULL)
		return;
	sqlite3_close(f->database);
	if (f->registered)
		sqlite3_vfs_unregister(&f->vfs);
	free(f->path);
	free(f);
}
