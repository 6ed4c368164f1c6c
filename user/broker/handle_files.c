/* SPDX-License-Identifier: BSD-2-Clause */
/* handle_files.c - requests for files of a target. They are answered with descriptors, never with paths. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "broker/broker.h"
#include "broker/links/verify.h"
#include "procfs/opener.h"
#include "procfs/perf_map_file.h"

static int may_read(struct broker *b, const struct xsp_ask_name *a)
{
	b->permitted = a->pid;
	return xsp_broker_files_may_read(b->files, a->pid, a->name);
}

static const struct xsp_ask_name *asked_name(struct broker *b)
{
	struct xsp_ask_name *a = (void *)b->in->body;

	a->name[sizeof(a->name) - 1] = '\0';
	return a;
}

int xsp_handle_file(struct broker *b)
{
	const struct xsp_ask_name *a = asked_name(b);
	int rc = may_read(b, a);

	return rc < 0 ? rc
		      : xsp_answer_fd(b,
				      xsp_open_directly.file(&xsp_open_directly, a->pid, a->name));
}

int xsp_handle_read_link(struct broker *b)
{
	const struct xsp_ask_name *a = asked_name(b);
	char text[PATH_MAX];
	int rc = may_read(b, a);
	long n = rc < 0 ? rc
			: xsp_open_directly.link(&xsp_open_directly, a->pid, a->name, text,
						 sizeof(text));

	if (n < 0)
		return (int)n;
	xsp_answer(b, text, (size_t)n);
	return 0;
}

int xsp_handle_pidfd(struct broker *b)
{
	const pid_t pid = xsp_asked_pid(b);
	int rc = xsp_allow(b, pid);

	return rc < 0 ? rc : xsp_answer_fd(b, xsp_open_directly.pidfd(&xsp_open_directly, pid));
}

int xsp_handle_perf_map(struct broker *b)
{
	int rc = xsp_allow(b, xsp_asked_pid(b));

	return rc < 0 ? rc : xsp_answer_fd(b, xsp_perf_map_open(xsp_asked_pid(b)));
}

int xsp_handle_debug_file(struct broker *b)
{
	return xsp_answer_fd(b,
			     xsp_open_directly.debug_file(&xsp_open_directly, asked_name(b)->name));
}

/* The process may have ended, and others may still map the file: then by our own root. */
int xsp_handle_debug_link(struct broker *b)
{
	const struct xsp_ask_debug_link *a = (const void *)b->in->body;
	const size_t length = b->in->head.size - offsetof(struct xsp_ask_debug_link, text);
	char text[sizeof(a->text) + 1] = "";
	const int rc = xsp_allow(b, a->pid);

	memcpy(text, a->text, length);
	const char *name = memchr(text, '\0', length);
	if (rc < 0 && rc != -ESRCH)
		return rc;
	if (name == NULL)
		return -EINVAL;
	return xsp_answer_fd(b, xsp_open_debug_link(rc < 0 ? 0 : a->pid, text, name + 1,
						    b->options->uid, b->options->gid));
}

int xsp_handle_mapped(struct broker *b)
{
	const struct xsp_ask_mapped *a = (const void *)b->in->body;
	char path[PATH_MAX + 1] = "";
	size_t length = b->in->head.size - offsetof(struct xsp_ask_mapped, path);
	uint32_t handle;

	memcpy(path, a->path, length < PATH_MAX ? length : PATH_MAX);
	struct xsp_mapping m = {a->start, a->end, a->dev, a->inode, path};
	int rc = xsp_allow(b, a->pid);
	int fd = rc < 0 ? rc : xsp_open_directly.mapped(&xsp_open_directly, a->pid, &m, NULL);
	if (fd < 0)
		return fd;
	int kept = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	rc = kept < 0 ? -errno : xsp_broker_files_keep(b->files, kept, &m, &handle);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	xsp_answer(b, &handle, sizeof(handle));
	return xsp_answer_fd(b, fd);
}

/* Also serves what a process had mapped that has ended. */
int xsp_handle_kept(struct broker *b)
{
	const struct xsp_verified_file *file =
		xsp_broker_files_get(b->files, xsp_asked_word(b), NULL);

	if (file == NULL)
		return -ENOENT;
	int fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 3);
	return xsp_answer_fd(b, fd < 0 ? -errno : fd);
}
