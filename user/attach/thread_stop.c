/* SPDX-License-Identifier: BSD-2-Clause */
/* thread_stop.c - asks for threads to be stopped. */
#include "attach/thread_stop.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/message.h"

struct xsp_thread_stopper {
	struct xsp_broker *broker;
	pid_t pid;
	int socket; /* -1: there is no process */
	struct xsp_parcel in;
};

int xsp_thread_stopper_new(struct xsp_broker *b, pid_t pid, struct xsp_thread_stopper **out)
{
	struct xsp_thread_stopper *s = *out = calloc(1, sizeof(*s));

	if (s == NULL)
		return -ENOMEM;
	s->broker = b;
	s->pid = pid;
	s->socket = -1;
	return 0;
}

static void hang_up(struct xsp_thread_stopper *s)
{
	xsp_close(s->socket);
	s->socket = -1;
}

void xsp_thread_stopper_free(struct xsp_thread_stopper *s)
{
	if (s == NULL)
		return;
	hang_up(s);
	free(s);
}

static int ask(struct xsp_thread_stopper *s, uint32_t op, const void *body, size_t size)
{
	struct xsp_message m = {.op = op, .size = (uint32_t)size};
	int rc = xsp_message_send(s->socket, &m, body, NULL, 0);

	while (rc == 0 && (rc = xsp_message_receive(s->socket, &s->in)) == -EINTR)
		rc = 0;
	if (rc == 0 && (s->in.head.op != op || s->in.fd_count != 0)) {
		xsp_parcel_close(&s->in);
		rc = -EPROTO;
	}
	if (rc < 0)
		hang_up(s);
	return rc < 0 ? rc : s->in.head.result;
}

int xsp_thread_stop(struct xsp_thread_stopper *s, pid_t tid, const struct xsp_stopped_thread **out)
{
	const struct xsp_stopped_thread *t = (const void *)s->in.body;
	int32_t number = tid;

	if (s->socket < 0)
		s->socket = xsp_broker_thread_stopper(s->broker, s->pid);
	if (s->socket < 0)
		return s->socket;
	int rc = ask(s, XSP_THREAD_STOP, &number, sizeof(number));
	if (rc == -ETIMEDOUT) /* only the end of that process takes its request to stop back */
		hang_up(s);
	if (rc < 0)
		return rc;
	const size_t head = offsetof(struct xsp_stopped_thread, stack);
	if (s->in.head.size < head || t->stack_bytes != s->in.head.size - head) {
		hang_up(s);
		return -EPROTO;
	}
	*out = t;
	return 0;
}

int xsp_thread_release(struct xsp_thread_stopper *s, struct xsp_released_thread *out)
{
	int rc = s->socket < 0 ? -EPIPE : ask(s, XSP_THREAD_RELEASE, NULL, 0);

	if (rc == 0 && s->in.head.size != sizeof(*out))
		rc = -EPROTO;
	if (rc == 0)
		memcpy(out, s->in.body, sizeof(*out));
	return rc;
}
