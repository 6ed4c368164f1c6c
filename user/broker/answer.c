/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/broker.h"

#include <string.h>

void xsp_answer(struct broker *b, const void *data, size_t size)
{
	if (size > 0) /* data may be NULL then */
		memcpy(b->body, data, size);
	b->size = (uint32_t)size;
}

int xsp_answer_fd(struct broker *b, int fd)
{
	if (fd < 0)
		return fd;
	b->fds[b->fd_count++] = fd;
	return 0;
}

int xsp_allow(struct broker *b, pid_t pid)
{
	b->permitted = pid;
	return xsp_broker_files_allow(b->files, pid);
}
