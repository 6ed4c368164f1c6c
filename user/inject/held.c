/* SPDX-License-Identifier: BSD-2-Clause */
#include "inject/held.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "procfs/procfs.h"

#define STATUS_MAX 65536U
#define AUXV_MAX 65536U

/* Joins those lines of /proc/PID/status that change when a program with more rights is started. */
static int read_ids(pid_t pid, char **out, uid_t *fsuid)
{
	static const char *const keys[] = {"Uid", "Gid", "CapPrm", "CapEff"};
	char *status = NULL, ids[512];
	unsigned uids[4];
	size_t length = 0;
	int ret = xsp_procfs_read(&xsp_open_directly, pid, "status", STATUS_MAX, &status, NULL);

	for (size_t i = 0; ret == 0 && i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *at = xsp_procfs_field(status, keys[i]);
		size_t line = at != NULL ? strcspn(at, "\n") : 0;
		if (at == NULL || line >= sizeof(ids) - length) {
			ret = -ESRCH;
			break;
		}
		if (i == 0) /* real, effective, saved, file system */
			ret = sscanf(at, "%u %u %u %u", &uids[0], &uids[1], &uids[2], &uids[3]) == 4
				      ? 0
				      : -ESRCH;
		memcpy(ids + length, at, line);
		length += line;
	}
	free(status);
	if (ret < 0)
		return ret;
	*fsuid = uids[3];
	*out = strndup(ids, length);
	return *out == NULL ? -ENOMEM : 0;
}

int xsp_held_open(struct xsp_held *h, pid_t pid, int pidfd)
{
	char path[64];

	*h = (struct xsp_held){.pid = pid, .pidfd = -1, .memory = -1};
	h->pidfd =
		pidfd > 0 ? fcntl(pidfd, F_DUPFD_CLOEXEC, 3) : (int)syscall(SYS_pidfd_open, pid, 0);
	int ret = h->pidfd < 0 ? -errno : 0;
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	if (ret == 0) {
		h->memory = open(path, O_RDWR | O_CLOEXEC);
		ret = h->memory < 0 ? -errno : 0;
	}
	/* after the memory was opened: a later change is noticed */
	if (ret == 0)
		ret = read_ids(pid, &h->ids, &h->fsuid);
	if (ret == 0)
		ret = xsp_procfs_read(&xsp_open_directly, pid, "auxv", AUXV_MAX, &h->auxv,
				      &h->auxv_size);
	if (ret < 0)
		xsp_held_close(h);
	return ret;
}

void xsp_held_close(struct xsp_held *h)
{
	xsp_close(h->pidfd);
	xsp_close(h->memory);
	free(h->ids);
	free(h->auxv);
	*h = (struct xsp_held){.pidfd = -1, .memory = -1};
}

bool xsp_held_alive(const struct xsp_held *h)
{
	return syscall(SYS_pidfd_send_signal, h->pidfd, 0, NULL, 0) == 0;
}

int xsp_held_check(const struct xsp_held *h, pid_t tid)
{
	char path[64], *ids = NULL, *auxv = NULL;
	size_t size = 0;
	uid_t fsuid;

	snprintf(path, sizeof(path), "/proc/%d/task/%d", h->pid, tid);
	if (access(path, F_OK) != 0)
		return -ESRCH;
	int ret = read_ids(h->pid, &ids, &fsuid);
	if (ret == 0)
		ret = xsp_procfs_read(&xsp_open_directly, h->pid, "auxv", AUXV_MAX, &auxv, &size);
	if (ret == 0 &&
	    (strcmp(ids, h->ids) != 0 || size != h->auxv_size || memcmp(auxv, h->auxv, size) != 0))
		ret = -ESTALE;
	/* last: while the process is there, its pid is its own */
	if (ret == 0 && !xsp_held_alive(h))
		ret = -ESRCH;
	free(ids);
	free(auxv);
	return ret;
}

int xsp_held_load(const struct xsp_held *h, uint64_t address, void *to, size_t size)
{
	return xsp_procfs_load(h->memory, address, to, size);
}

int xsp_held_store(const struct xsp_held *h, uint64_t address, const void *from, size_t size)
{
	ssize_t n = pwrite(h->memory, from, size, (off_t)address);

	return n < 0 ? -errno : (size_t)n == size ? 0 : -EFAULT;
}
