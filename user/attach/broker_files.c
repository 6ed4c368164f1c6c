/* SPDX-License-Identifier: BSD-2-Clause */
/* broker_files.c - which processes the broker opens for others, and the mapped files that it has opened. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/broker_private.h"
#include "attach/verify.h"
#include "base/grow.h"
#include "target/procfs.h"

#define GENERATIONS 64 /* how far up a process's ancestors are looked at */

struct allowed {
	pid_t pid;
	int pidfd; /* tells when it has ended and its number may be another's; -1: it has */
	bool named; /* by the user */
};

struct kept {
	struct xsp_verified_file file;
	char *shown;
};

struct xsp_broker_files {
	bool follow;
	struct allowed *allowed;
	size_t count, room;
	struct kept *kept;
	size_t kept_count, kept_room;
};

/* ---- processes ---- */

static bool has_ended(int pidfd)
{
	struct pollfd fd = {.fd = pidfd, .events = POLLIN};

	return poll(&fd, 1, 0) != 0;
}

static int add(struct xsp_broker_files *f, pid_t pid, bool named)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (pidfd < 0 && !named)
		return errno == EINVAL ? -ESRCH : -errno;
	if (xsp_grow(&f->allowed, &f->room, f->count + 1) < 0) {
		if (pidfd >= 0)
			close(pidfd);
		return -ENOMEM;
	}
	f->allowed[f->count++] = (struct allowed){pid, pidfd, named};
	return 0;
}

int xsp_broker_files_new(const pid_t *pids, size_t count, bool follow,
			 struct xsp_broker_files **out)
{
	struct xsp_broker_files *f = *out = calloc(1, sizeof(*f));

	if (f == NULL)
		return -ENOMEM;
	f->follow = follow;
	for (size_t i = 0; i < count; i++)
		if (add(f, pids[i], true) < 0)
			return -ENOMEM;
	return 0;
}

/* 1: yes, 0: no, -ESRCH: it was, and has ended. */
static int is_allowed(struct xsp_broker_files *f, pid_t pid)
{
	for (size_t i = 0; i < f->count; i++) {
		if (f->allowed[i].pid != pid)
			continue;
		if (f->allowed[i].pidfd >= 0 && !has_ended(f->allowed[i].pidfd))
			return 1;
		if (f->allowed[i].named)
			return -ESRCH;
		close(f->allowed[i].pidfd);
		f->allowed[i] = f->allowed[--f->count];
		return -ESRCH;
	}
	return 0;
}

int xsp_broker_files_may_read(struct xsp_broker_files *f, pid_t pid)
{
	for (size_t i = 0; i < f->count; i++)
		if (f->allowed[i].pid == pid && f->allowed[i].named)
			return 0;
	return xsp_broker_files_allow(f, pid);
}

static pid_t parent_of(pid_t pid)
{
	char *status;
	pid_t parent = 0;

	if (xsp_procfs_read(&xsp_open_directly, pid, "status", 65536, &status, NULL) == 0) {
		parent = xsp_procfs_last_id(status, "PPid", 0);
		free(status);
	}
	return parent;
}

int xsp_broker_files_allow(struct xsp_broker_files *f, pid_t pid)
{
	int yes = pid > 0 ? is_allowed(f, pid) : 0;
	pid_t ancestor = pid;

	if (yes != 0)
		return yes < 0 ? yes : 0;
	for (int i = 0; f->follow && i < GENERATIONS && ancestor > 1; i++) {
		ancestor = parent_of(ancestor);
		if (ancestor > 1 && is_allowed(f, ancestor) == 1)
			return add(f, pid, false);
	}
	return kill(pid, 0) != 0 && errno == ESRCH ? -ESRCH : -EACCES;
}

/* ---- files ---- */

int xsp_broker_files_keep(struct xsp_broker_files *f, int fd, const struct xsp_mapping *m,
			  uint32_t *handle)
{
	struct xsp_verified_file file = {.fd = fd, .dev = m->dev, .inode = m->inode};
	int rc = xsp_verified_file_note(&file);

	for (size_t i = 0; i < f->kept_count && rc == 0; i++) {
		const struct xsp_verified_file *known = &f->kept[i].file;
		if (known->inode != m->inode || known->dev != m->dev ||
		    xsp_verified_file_check(known) < 0)
			continue;
		close(fd);
		*handle = (uint32_t)i;
		return 0;
	}
	char *shown = rc == 0 ? strdup(m->path) : NULL;
	if (shown == NULL || xsp_grow(&f->kept, &f->kept_room, f->kept_count + 1) < 0) {
		free(shown);
		close(fd);
		return rc < 0 ? rc : -ENOMEM;
	}
	*handle = (uint32_t)f->kept_count;
	f->kept[f->kept_count++] = (struct kept){file, shown};
	return 0;
}

const struct xsp_verified_file *xsp_broker_files_get(const struct xsp_broker_files *f,
						     uint32_t handle, const char **shown)
{
	if (handle >= f->kept_count)
		return NULL;
	if (shown != NULL)
		*shown = f->kept[handle].shown;
	return &f->kept[handle].file;
}
