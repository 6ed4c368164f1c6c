/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/files/new_file.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODE 0600
#define OTHERS 1000 /* how many other names are tried if the wanted one is taken */

struct xsp_new_file {
	int fd;
	bool hidden; /* its hidden name is in the folder */
	const char *name; /* the name that it got; NULL: none yet */
	struct xsp_standing before;
	/* allocated at the start: a signal handler may not */
	char *path, *temp;
	char *other; /* has room for a number before the ending */
	size_t split; /* where the ending of `path` begins */
	char proc[32]; /* the descriptor as a path */
};

/* ---- opening ---- */

/* "run.xspt" is split before ".xspt", "run.json.gz" before ".json.gz". */
static size_t ending_of(const char *path)
{
	const char *base = xsp_base_name(path);
	size_t length = strlen(path), end = length;

	if (length > 3 && strcmp(path + length - 3, ".gz") == 0)
		end = length - 3;
	for (size_t i = end; path + i > base + 1; i--)
		if (path[i - 1] == '.')
			return i - 1;
	return length;
}

static int choose_names(struct xsp_new_file *f, const char *path)
{
	const char *slash = strrchr(path, '/');
	int folder = slash != NULL ? (int)(slash - path) + 1 : 0;
	uint64_t number;

	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		return -errno;
	f->path = strdup(path);
	f->other = malloc(strlen(path) + 8);
	/* not derived from the final name, which may be 255 bytes long already */
	if (asprintf(&f->temp, "%.*s.xsptrace-%016llx.tmp", folder, path,
		     (unsigned long long)number) < 0) {
		f->temp = NULL;
		return -ENOMEM;
	}
	f->split = ending_of(path);
	return f->path != NULL && f->other != NULL && f->temp != NULL ? 0 : -ENOMEM;
}

static int open_unnamed(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *folder = slash == NULL   ? strdup(".")
		       : slash == path ? strdup("/")
				       : strndup(path, (size_t)(slash - path));
	int fd = folder == NULL ? -1 : open(folder, O_RDWR | O_TMPFILE | O_CLOEXEC, MODE);

	free(folder);
	return fd;
}

struct xsp_standing xsp_standing_at(const char *path)
{
	struct xsp_standing s = {0};

	s.there = lstat(path, &s.stat) == 0;
	return s;
}

int xsp_new_file_open(const char *path, const struct xsp_standing *before,
		      struct xsp_new_file **out)
{
	struct xsp_new_file *f = calloc(1, sizeof(*f));

	*out = NULL;
	if (f == NULL)
		return -ENOMEM;
	f->fd = -1;
	int rc = choose_names(f, path);
	if (rc == 0) {
		f->before = before != NULL ? *before : xsp_standing_at(path);
		f->fd = open_unnamed(path);
		if (f->fd < 0 &&
		    /* EOPNOTSUPP, EISDIR, EINVAL; other errors occur again here */
		    f->temp != NULL) {
			f->fd = open(f->temp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
				     MODE);
			f->hidden = f->fd >= 0;
		}
		rc = f->fd < 0 ? -errno : 0;
	}
	if (rc < 0) {
		xsp_new_file_free(f);
		return rc;
	}
	snprintf(f->proc, sizeof(f->proc), "/proc/self/fd/%d", f->fd);
	/* locked while it is written, by every process that has the descriptor */
	(void)flock(f->fd, LOCK_EX | LOCK_NB);
	*out = f;
	return 0;
}

int xsp_new_file_in_memory(struct xsp_new_file **out)
{
	struct xsp_new_file *f = calloc(1, sizeof(*f));

	*out = f;
	if (f == NULL)
		return -ENOMEM;
	f->fd = memfd_create("xsptrace", MFD_CLOEXEC);
	if (f->fd >= 0)
		return 0;
	int rc = -errno;
	*out = NULL;
	xsp_new_file_free(f);
	return rc;
}

int xsp_new_file_descriptor(const struct xsp_new_file *f)
{
	return f->fd;
}

/* ---- giving it a name: only calls that a signal handler may make ---- */

static bool is_being_written(const char *path)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return false;
	bool locked = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
	close(fd);
	return locked;
}

/* Has another program put a file under that name since this one was opened? */
static bool is_anothers(const struct xsp_new_file *f)
{
	const struct xsp_standing now = xsp_standing_at(f->path);
	const struct stat *a = &now.stat, *b = &f->before.stat;

	if (!now.there)
		return false;
	return !f->before.there || a->st_ino != b->st_ino || a->st_dev != b->st_dev ||
	       a->st_mtim.tv_sec != b->st_mtim.tv_sec || a->st_mtim.tv_nsec != b->st_mtim.tv_nsec ||
	       (S_ISREG(a->st_mode) && is_being_written(f->path));
}

static int link_unnamed(const struct xsp_new_file *f, const char *name)
{
	return linkat(AT_FDCWD, f->proc, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0 ? 0 : -errno;
}

/* -EEXIST if the name is taken. */
static int link_if_free(struct xsp_new_file *f, const char *name)
{
	if (!f->hidden)
		return link_unnamed(f, name);
	if (renameat2(AT_FDCWD, f->temp, AT_FDCWD, name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (link(f->temp, name) == 0) /* for file systems that cannot rename like this */
		return unlink(f->temp) == 0 ? 0 : -errno;
	if (errno != EPERM && errno != EOPNOTSUPP)
		return -errno;
	/* nor link: only one user at a time mounts such a file system */
	struct stat st;
	if (lstat(name, &st) == 0)
		return -EEXIST;
	return rename(f->temp, name) == 0 ? 0 : -errno;
}

static int rename_over(struct xsp_new_file *f)
{
	if (!f->hidden) {
		int rc = link_unnamed(f, f->temp);
		if (rc < 0)
			return rc;
		f->hidden = true;
	}
	return rename(f->temp, f->path) == 0 ? 0 : -errno;
}

static const char *number_name(struct xsp_new_file *f, unsigned number)
{
	char digits[8], *d = digits + sizeof(digits), *p = f->other;

	for (; number > 0; number /= 10)
		*--d = (char)('0' + number % 10);
	memcpy(p, f->path, f->split);
	p += f->split;
	*p++ = '-';
	memcpy(p, d, (size_t)(digits + sizeof(digits) - d));
	p += digits + sizeof(digits) - d;
	memcpy(p, f->path + f->split, strlen(f->path + f->split) + 1);
	return f->other;
}

int xsp_new_file_place(struct xsp_new_file *f, bool replace)
{
	int rc = -EEXIST;

	if (f->name != NULL)
		return 0;
	if (f->path == NULL)
		return -EOPNOTSUPP;
	/* network file systems report a failed write when a descriptor is closed */
	int again = dup(f->fd);
	if (again >= 0 && close(again) < 0 && errno != EINTR)
		return -errno;
	if (!is_anothers(f))
		rc = replace && f->before.there ? rename_over(f) : link_if_free(f, f->path);
	const char *name = f->path;
	for (unsigned n = 2; rc < 0 && n < OTHERS; n++) {
		name = number_name(f, n);
		rc = link_if_free(f, name);
		if (rc < 0 && rc != -EEXIST)
			break;
	}
	if (rc == 0) {
		f->hidden = false;
		f->name = name;
	}
	return rc;
}

const char *xsp_new_file_name(const struct xsp_new_file *f)
{
	return f->name;
}

bool xsp_new_file_elsewhere(const struct xsp_new_file *f)
{
	return f->name == f->other;
}

void xsp_new_file_free(struct xsp_new_file *f)
{
	if (f == NULL)
		return;
	if (f->hidden && f->temp != NULL)
		unlink(f->temp);
	if (f->fd >= 0)
		close(f->fd);
	free(f->path);
	free(f->temp);
	free(f->other);
	free(f);
}
