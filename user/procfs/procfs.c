/* SPDX-License-Identifier: BSD-2-Clause */
#include "procfs/procfs.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/rows/grow.h"
#include "base/text.h"
#include "base/units.h"

#define STAT_MAX 4096

int xsp_procfs_read_whole(int fd, size_t max, char **out, size_t *length)
{
	size_t room = 4096, done = 0;
	int ret = 0;
	char *text = malloc(room);

	if (text == NULL)
		ret = -ENOMEM;
	while (ret == 0 && done < max) {
		if (done + 1 >= room) {
			char *grown = realloc(text, room * 2);
			if (grown == NULL) {
				ret = -ENOMEM;
				break;
			}
			text = grown;
			room *= 2;
		}
		size_t want = room - 1 - done < max - done ? room - 1 - done : max - done;
		ssize_t n = read(fd, text + done, want);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			ret = -errno;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	if (ret < 0) {
		free(text);
		return ret;
	}
	text[done] = '\0';
	*out = text;
	if (length != NULL)
		*length = done;
	return 0;
}

int xsp_procfs_read(const struct xsp_opener *o, pid_t pid, const char *name, size_t max, char **out,
		    size_t *length)
{
	int fd = o->file(o, pid, name);

	if (fd < 0)
		return fd;
	int ret = xsp_procfs_read_whole(fd, max, out, length);
	close(fd);
	return ret;
}

int xsp_procfs_load(int memory, uint64_t address, void *to, size_t size)
{
	ssize_t n = pread(memory, to, size, (off_t)address);

	return n < 0 ? -errno : (size_t)n == size ? 0 : -EFAULT;
}

int xsp_procfs_threads(const struct xsp_opener *o, pid_t pid, pid_t **tids, size_t *count)
{
	size_t room = 0;
	int rc = 0;

	*tids = NULL;
	*count = 0;
	const int fd = o->file(o, pid, "task");
	if (fd < 0)
		return fd;
	DIR *dir = fdopendir(fd);
	if (dir == NULL) {
		rc = -errno;
		close(fd);
		return rc;
	}
	for (struct dirent *e; rc == 0 && (e = readdir(dir)) != NULL;) {
		const pid_t tid = (pid_t)strtol(e->d_name, NULL, 10);
		if (tid > 0)
			rc = XSP_APPEND(*tids, room, *count, tid);
	}
	closedir(dir);
	return rc;
}

int xsp_procfs_schedstat(const struct xsp_opener *o, pid_t pid, pid_t tid)
{
	char name[64];

	snprintf(name, sizeof(name), "task/%d/schedstat", (int)tid);
	return o->file(o, pid, name);
}

int xsp_procfs_command(const struct xsp_opener *o, pid_t pid, size_t max, char **out,
		       size_t *length)
{
	int rc = xsp_procfs_read(o, pid, "cmdline", max, out, length);

	if (rc < 0)
		return rc;
	while (*length > 0 && (*out)[*length - 1] == '\0')
		--*length;
	for (size_t i = 0; i < *length; i++)
		if ((*out)[i] == '\0')
			(*out)[i] = ' ';
	return 0;
}

const char *xsp_procfs_variable(const char *environment, size_t size, const char *name)
{
	const size_t length = strlen(name);
	const char *end;

	for (; (end = memchr(environment, '\0', size)) != NULL; environment = end + 1) {
		if (strncmp(environment, name, length) == 0 && environment[length] == '=')
			return environment + length + 1;
		size -= (size_t)(end + 1 - environment);
	}
	return NULL;
}

int xsp_procfs_link(const struct xsp_opener *o, pid_t pid, const char *name, char **out)
{
	char target[PATH_MAX + 1];

	long n = o->link(o, pid, name, target, sizeof(target));
	if (n < 0)
		return (int)n;
	*out = strdup(target);
	return *out == NULL ? -ENOMEM : 0;
}

bool xsp_procfs_cut_deleted(char *path)
{
	static const char mark[] = " (deleted)";
	const size_t length = strlen(path), tail = sizeof(mark) - 1;

	if (length == tail || !xsp_ends_with(path, length, mark))
		return false;
	path[length - tail] = '\0';
	return true;
}

const char *xsp_procfs_field(const char *status, const char *key)
{
	size_t length = strlen(key);

	/* Name comes first, with its newlines escaped, so no name can forge a line */
	for (const char *line = status; line != NULL && *line != '\0';) {
		if (strncmp(line, key, length) == 0 && line[length] == ':')
			return line + length + 1 + strspn(line + length + 1, " \t");
		line = strchr(line, '\n');
		if (line != NULL)
			line++;
	}
	return NULL;
}

pid_t xsp_procfs_last_id(const char *status, const char *key, pid_t fallback)
{
	const char *at = xsp_procfs_field(status, key);
	pid_t id = fallback;

	while (at != NULL && *at >= '0' && *at <= '9') {
		char *end;
		id = (pid_t)strtol(at, &end, 10);
		at = end + strspn(end, " \t");
	}
	return id;
}

pid_t xsp_procfs_status_id(const struct xsp_opener *o, pid_t pid, const char *key)
{
	char *status;
	int rc = xsp_procfs_read(o, pid, "status", 65536, &status, NULL);

	if (rc < 0)
		return rc;
	pid_t id = xsp_procfs_last_id(status, key, 0);
	free(status);
	return id;
}

int xsp_procfs_stat(const struct xsp_opener *o, pid_t pid, struct xsp_stat *out)
{
	char *text = NULL;
	int ret = xsp_procfs_read(o, pid, "stat", STAT_MAX, &text, NULL);

	if (ret < 0 || text == NULL)
		return ret;
	/* fields: proc_pid_stat(5); 3 state, 4 ppid, 9 flags, 20 num_threads, 22 starttime */
	const char *at = strrchr(text, ')');
	ret = -EINVAL;
	if (at != NULL &&
	    sscanf(at,
		   ") %c %d %*s %*s %*s %*s %u %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld %*s %" SCNu64,
		   &out->state, &out->parent, &out->flags, &out->threads, &out->start_ticks) == 5)
		ret = 0;
	free(text);
	return ret;
}

int xsp_procfs_cpu_ns(int schedstat, uint64_t *ns, uint64_t *queued_ns, uint64_t *times)
{
	char text[128], *end;
	ssize_t n = pread(schedstat, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return n < 0 ? -errno : -ESRCH;
	text[n] = '\0';
	*ns = strtoull(text, &end, 10);
	if (end == text)
		return -EINVAL;
	*queued_ns = strtoull(end, &end, 10);
	if (times != NULL)
		*times = strtoull(end, NULL, 10);
	return 0;
}

bool xsp_process_cpu_ns(pid_t pid, uint64_t *ns)
{
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
		return false;
	*ns = (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
	return true;
}

void xsp_procfs_call(const struct xsp_opener *o, pid_t pid, pid_t tid, struct xsp_procfs_call *out)
{
	uint64_t *a = out->arguments;
	char path[48], text[256];

	*out = (struct xsp_procfs_call){.number = -1};
	snprintf(path, sizeof(path), "task/%d/syscall", (int)tid);
	if (o->link(o, pid, path, text, sizeof(text)) <= 0)
		return;
	/* "running", "-1 SP PC", or "NUMBER ARGUMENT... SP PC" */
	if (sscanf(text,
		   "%d %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64
		   " %" SCNx64 " %" SCNx64,
		   &out->number, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5], &out->sp, &out->pc) == 9)
		out->placed = out->number >= 0;
	else if (sscanf(text, "-1 %" SCNx64 " %" SCNx64, &out->sp, &out->pc) == 2)
		out->placed = true;
	if (!out->placed)
		out->number = -1;
}

void xsp_text_clean(char *text)
{
	for (char *p = text; *p != '\0';) {
		size_t n = xsp_printable_bytes(p);
		if (n == 0)
			*p = '?';
		p += n == 0 ? 1 : n;
	}
}
