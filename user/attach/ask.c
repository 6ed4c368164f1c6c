/* SPDX-License-Identifier: BSD-2-Clause */
/* ask.c - sends a request to the broker and waits for its answer. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach/client_private.h"

#define WAIT_MS 20 /* how often the user may break off the wait */

static int refused(const struct xsp_broker *b, struct xsp_error *err)
{
	const struct xsp_broker_refusal *r = (const void *)b->in->body;

	if (b->in->head.size == sizeof(*r) && r->status != 0)
		return xsp_error_set(err, b->in->head.result, (enum xsp_status)r->status, "%.*s",
				     (int)sizeof(r->text) - 1, r->text);
	return b->in->head.result;
}

int xsp_broker_gone(const struct xsp_broker *b, struct xsp_error *err)
{
	static const char left[] =
		"breakpoints may be left in the target, which the same command once more takes out";

	return xsp_error_set(err, -EPIPE, XSP_STATUS_FAILED,
			     "xsptrace's privileged process has ended unexpectedly; %s%s",
			     !b->mended	    ? "so have its guardians: "
			     : b->left == 0 ? "its guardian has taken the probes out"
					    : "its guardian could not take all probes out: ",
			     b->mended && b->left == 0 ? "" : left);
}

static int is_gone(struct xsp_broker *b, struct xsp_error *err)
{
	b->gone = true;
	return xsp_broker_gone(b, err);
}

int xsp_ask_wait(struct xsp_broker *b, uint32_t sequence)
{
	struct pollfd fd = {.fd = b->socket, .events = POLLIN};
	bool again = false;

	for (;;) {
		int n = poll(&fd, 1, b->stopped != NULL ? WAIT_MS : -1);
		/* EINVAL: our limit of descriptors was taken away */
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n <= 0 && b->stopped != NULL && b->stopped(b->stopped_ctx))
			return -EINTR;
		if (n <= 0)
			continue;
		int rc = xsp_message_receive(b->socket, b->in);
		if (rc == -EINTR)
			continue;
		/* the first may be of a request that nobody read; a report may still be there */
		if (rc == -EPIPE && !again) {
			again = true;
			continue;
		}
		if (rc < 0)
			return rc;
		if (b->in->head.op == XSP_GUARDIAN_REPORTS) {
			b->mended = true;
			b->left = b->in->head.result;
			return -EPIPE;
		}
		if (b->in->head.sequence == sequence)
			return 0;
		xsp_parcel_close(b->in);
	}
}

int xsp_ask(struct xsp_broker *b, enum xsp_broker_op op, const void *body, size_t size,
	    struct xsp_error *err)
{
	struct xsp_message m = {.op = op, .sequence = ++b->sequence, .size = (uint32_t)size};

	if (b->gone)
		return is_gone(b, err);
	/* also here, as thousands of short requests take long */
	int rc = b->stopped != NULL && b->stopped(b->stopped_ctx) ? -EINTR : 0;
	if (rc == 0)
		rc = xsp_message_send(b->socket, &m, body, NULL, 0);
	if (rc == 0 || rc == -EPIPE)
		rc = xsp_ask_wait(b, m.sequence);
	if (rc == -EINTR)
		return xsp_error_set(err, rc, XSP_STATUS_FAILED, "interrupted");
	if (rc == -EMFILE)
		return xsp_error_set(err, rc, XSP_STATUS_FAILED,
				     "too many open files: raise the limit (ulimit -n)");
	if (rc < 0)
		return is_gone(b, err);
	return b->in->head.result < 0 ? refused(b, err) : b->in->head.result;
}

int xsp_ask_for(struct xsp_broker *b, enum xsp_broker_op op, const void *body, size_t size,
		void *out, size_t out_size)
{
	int rc = xsp_ask(b, op, body, size, NULL);

	if (rc < 0)
		return rc;
	if (b->in->head.size != out_size)
		return -EPROTO;
	memcpy(out, b->in->body, out_size);
	return rc;
}

int xsp_ask_with_rows(struct xsp_broker *b, enum xsp_broker_op op, const void *head,
		      size_t head_size, const void *rows, size_t size, struct xsp_error *err)
{
	uint8_t *body = malloc(head_size + size);

	if (body == NULL)
		return xsp_out_of_memory(err);
	memcpy(body, head, head_size);
	memcpy(body + head_size, rows, size);
	int rc = xsp_ask(b, op, body, head_size + size, err);
	free(body);
	return rc;
}

long xsp_ask_for_rows(struct xsp_broker *b, enum xsp_broker_op op, void *rows, size_t row_size,
		      size_t room)
{
	int rc = xsp_ask(b, op, NULL, 0, NULL);

	if (rc < 0)
		return rc;
	size_t n = b->in->head.size / row_size;
	if (n > room)
		n = room;
	memcpy(rows, b->in->body, n * row_size);
	return (long)n;
}

int xsp_ask_about(struct xsp_broker *b, enum xsp_broker_op op, pid_t pid)
{
	struct xsp_ask_pid a = {pid};

	return xsp_ask(b, op, &a, sizeof(a), NULL);
}

int xsp_receive_fd(struct xsp_broker *b, int rc)
{
	if (rc < 0)
		return rc;
	if (b->in->fd_count != 1) {
		xsp_parcel_close(b->in);
		return -EPROTO;
	}
	b->in->fd_count = 0;
	return b->in->fds[0];
}

int xsp_ask_for_file(struct xsp_broker *b, enum xsp_broker_op op, size_t row_size, void **rows,
		     size_t *count)
{
	int fd = xsp_receive_fd(b, xsp_ask(b, op, NULL, 0, NULL));
	struct stat st = {0};
	int rc = fd < 0 ? fd : fstat(fd, &st) != 0 ? -errno : 0;

	*count = rc == 0 ? (size_t)st.st_size / row_size : 0;
	*rows = calloc(*count + 1, row_size);
	if (*rows == NULL)
		rc = -ENOMEM;
	if (rc == 0 && pread(fd, *rows, *count * row_size, 0) != (ssize_t)(*count * row_size))
		rc = -EIO;
	xsp_close(fd);
	if (rc < 0)
		*count = 0;
	return rc;
}
