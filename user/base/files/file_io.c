/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/files/file_io.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/rows/order.h"

long xsp_read_at(int fd, void *buffer, size_t size, uint64_t at)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = pread(fd, (char *)buffer + done, size - done, (off_t)(at + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (long)done;
}

int xsp_write_at(int fd, const void *data, size_t size, uint64_t at)
{
	const char *p = data;

	while (size > 0) {
		ssize_t n = pwrite(fd, p, size, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		p += n;
		at += (uint64_t)n;
		size -= (size_t)n;
	}
	return 0;
}

char *xsp_next_path(const char **list)
{
	const char *from = *list;
	const size_t first = strcspn(from, ",");
	size_t length = first;
	char *path = NULL;

	if (*from == '\0')
		return NULL;
	for (;; length += 1 + strcspn(from + length + 1, ",")) {
		free(path);
		path = strndup(from, length);
		if (path == NULL || from[length] == '\0' || access(path, F_OK) == 0)
			break;
	}
	if (path != NULL && from[length] == '\0' && length > first && access(path, F_OK) != 0) {
		free(path);
		path = strndup(from, length = first); /* none is there: whoever opens it says so */
	}
	*list = from + length + (from[length] == ',');
	return path;
}

static XSP_ORDER(by_number, int, XSP_COMPARE(*x, *y));

int xsp_close_all_but(int *kept, size_t count)
{
	unsigned next = 0;

	qsort(kept, count, sizeof(*kept), by_number);
	for (size_t i = 0; i < count; i++) {
		const unsigned fd = (unsigned)kept[i];
		if (kept[i] < 0)
			continue;
		if (fd > next && syscall(SYS_close_range, next, fd - 1, 0) != 0)
			return -errno;
		next = fd + 1;
	}
	return syscall(SYS_close_range, next, ~0U, 0) == 0 ? 0 : -errno;
}
