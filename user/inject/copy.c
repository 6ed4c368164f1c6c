/* SPDX-License-Identifier: BSD-2-Clause */
#include "inject/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/files/file_io.h"

#define LIBRARY_MAX (256U << 20)
#define SEALS (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define SEAL_EXEC 0x20 /* F_SEAL_EXEC, Linux 6.3; some systems seal every new memfd so */

/* Only memfds that can be sealed have no seal (or SEAL_EXEC): tmpfs files and other memfds have F_SEAL_SEAL, other
 * files give an error. */
static bool is_new_memory(const struct xsp_held *h, int fd)
{
	static const char memfd[] = "/memfd:";
	char path[64], link[sizeof(memfd)] = "";
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return (seals & ~SEAL_EXEC) == 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       st.st_nlink == 0 && st.st_size == 0 && st.st_uid == h->fsuid &&
	       readlink(path, link, sizeof(link) - 1) > 0 && strcmp(link, memfd) == 0;
}

static int write_library(const char *library, int to)
{
	char buffer[65536];
	size_t total = 0;
	ssize_t n = -1;
	int from = open(library, O_RDONLY | O_CLOEXEC), ret = from < 0 ? -errno : 0;

	while (ret == 0 && (n = read(from, buffer, sizeof(buffer))) > 0) {
		ssize_t put = pwrite(to, buffer, (size_t)n, (off_t)total);
		total += (size_t)n;
		if (put != n || total > LIBRARY_MAX)
			ret = put < 0 ? -errno : -EFBIG;
	}
	if (ret == 0 && n < 0)
		ret = -errno;
	xsp_close(from);
	return ret;
}

static int failed(int ret, const char **why, const char *text)
{
	*why = text;
	return ret;
}

int xsp_copy_fill(const struct xsp_held *h, uint64_t number, const char *library, const char **why)
{
	if (number > INT_MAX)
		return failed(-EBADF, why, "memfd_create answered with no descriptor");
	int fd = (int)syscall(SYS_pidfd_getfd, h->pidfd, (int)number, 0);
	if (fd < 0 && errno == EBADF)
		return failed(-EBADF, why, "memfd_create answered with no such descriptor");
	if (fd < 0)
		return failed(-errno, why,
			      "this kernel does not hand its descriptors over (pidfd_getfd)");
	int ret = 0;
	if (!is_new_memory(h, fd))
		ret = failed(
			-EPERM, why,
			"memfd_create answered with what is not a new file in memory; nothing was written");
	else if (write_library(library, fd) < 0)
		ret = failed(-EIO, why, "its file in memory cannot be written");
	else if (fcntl(fd, F_ADD_SEALS, SEALS) != 0)
		ret = failed(-EBUSY, why, "its file in memory cannot be sealed");
	close(fd);
	return ret;
}
