/* SPDX-License-Identifier: BSD-2-Clause */
/* files.c - the processes that the broker may open, and the mapped files that it has opened. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "broker/files.h"
#include "broker/links/verify.h"
#include "base/rows/grow.h"
#include "base/rows/u64map.h"
#include "procfs/map_line.h"
#include "procfs/procfs.h"

#define GENERATIONS 64 /* ancestors of a process that are looked at */

struct allowed {
	pid_t pid;
	int pidfd; /* readable when the process has ended; -1: there is none */
	bool named; /* by the user */
};

struct kept {
	struct xsp_verified_file file;
	char *display_path;
};

struct xsp_broker_files {
	bool follow;
	struct allowed *allowed;
	size_t count, room;
	struct kept *kept;
	size_t kept_count, kept_room;
	struct xsp_u64map by_file; /* xsp_file_key() → index of the last one kept */
};

/* ---- processes ---- */

static bool has_ended(int pidfd)
{
	struct pollfd fd = {.fd = pidfd, .events = POLLIN};

	return poll(&fd, 1, 0) != 0;
}

/* True for a zombie, too. */
static bool keeps_number(int pidfd)
{
	return syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) == 0 || errno != ESRCH;
}

static int open_pidfd(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	/* it is a thread */
	return fd >= 0 ? fd : errno == EINVAL || errno == ENOENT ? -ESRCH : -errno;
}

/* Takes the descriptor over. */
static int add(struct xsp_broker_files *f, pid_t pid, int pidfd, bool named)
{
	int rc = XSP_APPEND(f->allowed, f->room, f->count, (struct allowed){pid, pidfd, named});

	if (rc < 0)
		xsp_close(pidfd);
	return rc;
}

int xsp_broker_files_new(const pid_t *pids, size_t count, bool follow,
			 struct xsp_broker_files **out)
{
	struct xsp_broker_files *f = *out = calloc(1, sizeof(*f));

	if (f == NULL)
		return -ENOMEM;
	f->follow = follow;
	for (size_t i = 0; i < count; i++)
		if (add(f, pids[i], open_pidfd(pids[i]), true) < 0)
			return -ENOMEM;
	return 0;
}

/* 1: yes, 0: no, -ESRCH: it was allowed, and has ended. */
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

static const struct allowed *find(const struct xsp_broker_files *f, pid_t pid)
{
	for (size_t i = 0; i < f->count; i++)
		if (f->allowed[i].pid == pid)
			return &f->allowed[i];
	return NULL;
}

bool xsp_broker_files_is_it(const struct xsp_broker_files *f, pid_t pid)
{
	const struct allowed *a = find(f, pid);

	return a != NULL && (a->pidfd < 0 || keeps_number(a->pidfd));
}

int xsp_broker_files_pidfd(const struct xsp_broker_files *f, pid_t pid)
{
	const struct allowed *a = find(f, pid);

	return a != NULL ? a->pidfd : -1;
}

int xsp_broker_files_may_read(struct xsp_broker_files *f, pid_t pid, const char *name)
{
	const struct allowed *a = find(f, pid);

	if (a == NULL || !a->named)
		return xsp_broker_files_allow(f, pid);
	if (a->pidfd >= 0)
		return keeps_number(a->pidfd) ? 0 : -ESRCH;
	/* a thread, or a process that never was: its status says what it is */
	return strcmp(name, "status") == 0 || strcmp(name, "comm") == 0 ? 0 : -ESRCH;
}

/* Fills `line` with the process and its ancestors up to an allowed one. Returns how many; 0: none of them is
 * allowed. */
static size_t line_of(struct xsp_broker_files *f, pid_t pid, pid_t line[GENERATIONS])
{
	size_t n = 0;

	for (line[n++] = pid; n < GENERATIONS; n++) {
		line[n] = xsp_procfs_status_id(&xsp_open_directly, line[n - 1], "PPid");
		if (line[n] <= 1)
			return 0;
		if (is_allowed(f, line[n]) == 1)
			return n + 1;
	}
	return 0;
}

/* Reads the line twice. If a process of it had ended and its number had been given away, its children would have
 * another parent the second time. */
static int add_descendant(struct xsp_broker_files *f, pid_t pid)
{
	pid_t line[GENERATIONS], again[GENERATIONS];
	int pidfd = open_pidfd(pid);

	if (pidfd < 0)
		return pidfd;
	size_t n = line_of(f, pid, line);
	if (n > 0 && line_of(f, pid, again) == n && memcmp(line, again, n * sizeof(*line)) == 0 &&
	    keeps_number(pidfd))
		return add(f, pid, pidfd, false);
	int rc = keeps_number(pidfd) ? -EACCES : -ESRCH;
	close(pidfd);
	return rc;
}

int xsp_broker_files_allow(struct xsp_broker_files *f, pid_t pid)
{
	int yes = is_allowed(f, pid);

	if (pid <= 0)
		return -ESRCH;
	if (yes != 0)
		return yes < 0 ? yes : 0;
	if (f->follow)
		return add_descendant(f, pid);
	return kill(pid, 0) != 0 && errno == ESRCH ? -ESRCH : -EACCES;
}

/* ---- files ---- */

/* At most half of the descriptors, so that a program that maps ever more files leaves some for other work. */
static size_t kept_most(void)
{
	struct rlimit files;

	return getrlimit(RLIMIT_NOFILE, &files) == 0 ? (size_t)files.rlim_cur / 2 : 512;
}

int xsp_broker_files_keep(struct xsp_broker_files *f, int fd, const struct xsp_mapping *m,
			  uint32_t *handle)
{
	struct xsp_verified_file file = {.fd = fd, .dev = m->dev, .inode = m->inode};
	int rc = xsp_verified_file_note(&file);
	uint64_t key = xsp_file_key(m->dev, m->inode);
	const uint32_t *at;

	for (; rc == 0 && (at = xsp_u64map_get(&f->by_file, key)) != NULL; key++) {
		const struct xsp_verified_file *known = &f->kept[*at].file;
		if (known->inode != m->inode || known->dev != m->dev)
			continue;
		if (xsp_verified_file_check(known) < 0)
			break; /* it has changed: keeps it as another one */
		close(fd);
		*handle = *at;
		return 0;
	}
	if (rc == 0 && f->kept_count >= kept_most())
		rc = -EMFILE;
	char *display_path = rc == 0 ? strdup(m->path) : NULL;
	if (display_path == NULL || xsp_grow(&f->kept, &f->kept_room, f->kept_count + 1) < 0 ||
	    xsp_u64map_set(&f->by_file, key, (uint32_t)f->kept_count) < 0) {
		free(display_path);
		close(fd);
		return rc < 0 ? rc : -ENOMEM;
	}
	*handle = (uint32_t)f->kept_count;
	f->kept[f->kept_count++] = (struct kept){file, display_path};
	return 0;
}

const struct xsp_verified_file *xsp_broker_files_get(const struct xsp_broker_files *f,
						     uint32_t handle, const char **display_path)
{
	if (handle >= f->kept_count)
		return NULL;
	if (display_path != NULL)
		*display_path = f->kept[handle].display_path;
	return &f->kept[handle].file;
}
