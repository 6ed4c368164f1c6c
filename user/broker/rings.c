/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rings.c - opens the memory file that the agent in a process shares with the recorder (xsptrace/ring.h), for reading and
 * writing. A target may have mapped somebody else's file at the asked place: nothing is opened for writing that it
 * could not write itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "broker/broker.h"
#include "procfs/map_line.h"
#include "procfs/procfs.h"
#include "xsptrace/ring.h"

static bool is_ours(const struct xsp_map_line *line, uint64_t start, uint64_t end)
{
	return line->start == start && line->end == end && line->offset == 0 &&
	       xsp_map_line_is_of_rings(line);
}

/* Has the process such a mapping, which it can write? */
static int find_mapping(pid_t pid, uint64_t start, uint64_t end)
{
	struct xsp_map_line line;
	char *text = NULL;
	int rc = xsp_procfs_read(&xsp_open_directly, pid, "maps", XSP_MAPS_MAX, &text, NULL);
	const char *at = text;
	bool found = false;

	while (rc == 0 && !found && xsp_map_line_next(&at, &line))
		found = is_ours(&line, start, end);
	free(text);
	return rc < 0 ? rc : found ? 0 : -ENOENT;
}

/* The user that its files belong to. */
static bool user_of(pid_t pid, uid_t *uid)
{
	char *status = NULL;
	unsigned real, effective, saved, file;
	const int rc = xsp_procfs_read(&xsp_open_directly, pid, "status", 65536, &status, NULL);
	const char *ids = rc == 0 ? xsp_procfs_field(status, "Uid") : NULL;
	const bool known =
		ids != NULL && sscanf(ids, "%u %u %u %u", &real, &effective, &saved, &file) == 4;

	if (known)
		*uid = (uid_t)file;
	free(status);
	return known;
}

/* Why the file at the link is not the agent's, or NULL. Nothing is opened yet: a device would notice. */
static const char *what_is_wrong(int look, pid_t pid)
{
	char link[32], name[sizeof(XSP_RINGS_PATH) + 8];
	struct stat st;
	uid_t uid;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", look);
	const ssize_t length = readlink(link, name, sizeof(name));
	if (fstat(look, &st) != 0 || !S_ISREG(st.st_mode))
		return "it is no regular file";
	if (length != sizeof(XSP_RINGS_PATH) - 1 ||
	    memcmp(name, XSP_RINGS_PATH, sizeof(XSP_RINGS_PATH) - 1) != 0 || st.st_nlink != 0)
		return "it has another name";
	if ((uint64_t)st.st_size != XSP_RINGS_SIZE)
		return "it has another size";
	if (!user_of(pid, &uid) || st.st_uid != uid)
		return "it is another user's";
	return NULL;
}

static const char *what_is_unsafe(int fd)
{
	struct statfs fs;
	const int seals = fcntl(fd, F_GET_SEALS);

	if (fstatfs(fd, &fs) != 0 || fs.f_type != TMPFS_MAGIC)
		return "it is no memory";
	return seals < 0 || !(seals & F_SEAL_SHRINK) ? "it could become smaller" : NULL;
}

static int refuse(struct xsp_error *err, int code, pid_t pid, const char *why)
{
	return xsp_error_set(err, code, XSP_STATUS_TARGET,
			     "the memory that the agent in process %d shares cannot be used: %s",
			     (int)pid, why);
}

static int open_link(const char *link, int flags)
{
	const int fd = open(link, flags | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int open_rings(pid_t pid, uint64_t start, uint64_t end, struct xsp_error *err)
{
	char link[96];
	int rc = find_mapping(pid, start, end);

	if (rc < 0)
		return refuse(err, rc, pid, "it is not mapped there, shared and to be written");
	snprintf(link, sizeof(link), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64,
		 (int)xsp_living_thread(pid), start, end);
	const int look = open_link(link, O_PATH);
	if (look < 0)
		return refuse(err, look, pid,
			      look == -EPERM || look == -EACCES
				      ? "this needs root, or the capability CAP_CHECKPOINT_RESTORE"
				      : strerror(-look));
	const char *why = what_is_wrong(look, pid);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", look);
	int fd = why == NULL ? open_link(link, O_RDWR | O_NONBLOCK) : -EACCES;
	close(look);
	if (fd < 0)
		return refuse(err, fd, pid, why != NULL ? why : strerror(-fd));
	why = what_is_unsafe(fd);
	if (why == NULL)
		return fd;
	close(fd);
	return refuse(err, -EACCES, pid, why);
}

int xsp_handle_rings(struct broker *b)
{
	const struct xsp_ask_rings *a = (const void *)b->in->body;
	int rc = xsp_allow(b, a->pid);

	return rc < 0 ? rc : xsp_answer_fd(b, open_rings(a->pid, a->start, a->end, &b->err));
}
