/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/files/file_io.h"

#include <errno.h>
#include <unistd.h>

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
