/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * message.h - messages between xsptrace's processes: a head, a body whose length is checked against
 * it, and descriptors. They travel over a SOCK_SEQPACKET socket pair, which keeps them whole. Both
 * ends are the same program, so structs travel as they are in memory. The receiver checks what they
 * hold.
 */
#ifndef XSP_BASE_MESSAGE_H
#define XSP_BASE_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

/* Below net.core.wmem_default, 212,992 bytes, which bounds a message. */
#define XSP_MESSAGE_MAX (128U << 10)
#define XSP_MESSAGE_FDS 250 /* SCM_MAX_FD is 253 */

struct xsp_message {
	uint32_t op; /* of the request; the reply repeats it */
	uint32_t sequence; /* of the request; the reply repeats it */
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

/* The caller keeps the descriptors. 0 or a negative errno; -EPIPE: the other end is gone. */
int xsp_message_send(int socket, const struct xsp_message *head, const void *body, const int *fds,
		     size_t fd_count);

/* Waits for a message. The caller gets its descriptors, which are close-on-exec. 0; -EPIPE: the
 * other end is gone; -EPROTO: not a message, and nothing of it is kept; -EMFILE: our limit
 * of descriptors is too low for those of the message; -EINTR; or another errno. */
int xsp_message_receive(int socket, struct xsp_parcel *p);

void xsp_parcel_close(struct xsp_parcel *p); /* closes the descriptors that it still has */

#endif
