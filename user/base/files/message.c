/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/files/message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

union control {
	struct cmsghdr head;
	char room[CMSG_SPACE(XSP_MESSAGE_FDS * sizeof(int))];
};

int xsp_message_pair(int sockets[2])
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) == 0 ? 0 : -errno;
}

int xsp_message_send(int socket, const struct xsp_message *head, const void *body, const int *fds,
		     size_t fd_count)
{
	union control control = {0};
	struct iovec parts[2] = {
		{.iov_base = (void *)(uintptr_t)head, .iov_len = sizeof(*head)},
		{.iov_base = (void *)(uintptr_t)body, .iov_len = head->size},
	};
	struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};
	ssize_t n;

	if (head->size > XSP_MESSAGE_MAX || fd_count > XSP_MESSAGE_FDS)
		return -E2BIG;
	if (fd_count > 0) {
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(c), fds, fd_count * sizeof(int));
	}
	do
		n = sendmsg(socket, &m, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		return 0;
	return errno == ECONNRESET || errno == ENOTCONN ? -EPIPE : -errno;
}

static void receive_descriptors(struct msghdr *m, struct xsp_parcel *p)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (p->fd_count < XSP_MESSAGE_FDS)
				p->fds[p->fd_count++] = fd;
			else
				close(fd);
		}
	}
}

int xsp_message_receive(int socket, struct xsp_parcel *p)
{
	union control control;
	struct iovec parts[2] = {
		{.iov_base = &p->head, .iov_len = sizeof(p->head)},
		{.iov_base = p->body, .iov_len = sizeof(p->body)},
	};
	struct msghdr m = {.msg_iov = parts,
			   .msg_iovlen = 2,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};

	p->fd_count = 0;
	ssize_t n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	if (n == 0)
		return -EPIPE;
	receive_descriptors(&m, p);
	if (!(m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) && (size_t)n >= sizeof(p->head) &&
	    (size_t)n == sizeof(p->head) + p->head.size)
		return 0;
	xsp_parcel_close(p);
	/* there is room for as many as are sent, but not in our table */
	return m.msg_flags & MSG_CTRUNC ? -EMFILE : -EPROTO;
}

void xsp_parcel_close(struct xsp_parcel *p)
{
	while (p->fd_count > 0)
		close(p->fds[--p->fd_count]);
}
