/* SPDX-License-Identifier: BSD-2-Clause */
/* sud.c - Syscall User Dispatch (prctl(2), Linux 5.11), by which Wine catches system calls. */
#include <errno.h>
#include <unistd.h>

#include "broker/kernel/attach_private.h"

/* The iterator writes the process of each thread that uses it. */
static int find(int fd, uint32_t pid)
{
	uint32_t found[256];
	ssize_t n;

	/* the kernel hands out whole records */
	while ((n = read(fd, found, sizeof(found))) > 0)
		for (size_t i = 0; i < (size_t)n / sizeof(found[0]); i++)
			if (found[i] == pid)
				return 1;
	return n < 0 ? -errno : 0;
}

int xsp_attach_uses_dispatch(const struct xsp_attach *a, pid_t pid)
{
	if (!a->kernel.return_calls) /* this kernel turns no probe into a system call */
		return 0;
	struct bpf_link *link = bpf_program__attach_iter(a->bpf->progs.xsp_dispatch_users, NULL);
	if (link == NULL)
		return -errno;
	int fd = bpf_iter_create(bpf_link__fd(link)), ret = fd < 0 ? -errno : 0;
	if (ret == 0) {
		ret = find(fd, (uint32_t)pid);
		close(fd);
	}
	bpf_link__destroy(link);
	return ret;
}
