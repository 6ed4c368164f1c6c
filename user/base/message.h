/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * protocol.h - messages between xsptrace's processes: a head, a body whose length is checked against it,
 * and descriptors, over a SOCK_SEQPACKET socket pair, which keeps them whole. Both ends are the same
 * program, so structs travel as they are in memory; what they hold is checked by whoever receives them.
 */
#ifndef XSP_BASE_MESSAGE_H
#define XSP_BASE_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

/* Below net.core.wmem_default, 212,992 bytes, which bounds a message. */
#define XSP_MESSAGE_MAX (128U << 10)
#define XSP_MESSAGE_FDS 250 /* SCM_MAX_FD is 253 */

struct xsp_message {
	uint32_t op; /* of the request; its reply has the same */
	uint32_t sequence; /* of the request; its reply has the same */
	int32_t result; /* of a reply: 0 or a negative errno */
	uint32_t size; /* bytes that follow */
};

struct xsp_parcel {
	struct xsp_message head;
	uint8_t body[XSP_MESSAGE_MAX] __attribute__((aligned(8)));
	int fds[XSP_MESSAGE_FDS];
	size_t fd_count;
};

/* A pair of sockets, close-on-exec. 0 or a negative errno. */
int xsp_message_pair(int sockets[2]);

/* The descriptors stay the caller's. 0 or a negative errno; -EPIPE: the other end is gone. */
int xsp_message_send(int socket, const struct xsp_message *head, const void *body, const int *fds,
		     size_t fd_count);

/* Waits for one. Its descriptors, close-on-exec, become the caller's. 0; -EPIPE: the other end is gone;
 * -EPROTO: not a message, nothing is kept of it; -EINTR; or another negative errno. */
int xsp_message_receive(int socket, struct xsp_parcel *p);

void xsp_parcel_close(struct xsp_parcel *p); /* the descriptors that it still has */

#endif
