/* SPDX-License-Identifier: BSD-2-Clause */
/* opener.c - has the broker open what belongs to targets. */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "attach/client_private.h"

static struct xsp_broker *broker_of(const struct xsp_opener *o)
{
	return (struct xsp_broker *)(uintptr_t)o;
}

static int ask_name(struct xsp_broker *b, enum xsp_broker_op op, pid_t pid, const char *name)
{
	struct xsp_ask_name a = {.pid = pid};

	if (strlen(name) >= sizeof(a.name))
		return -ENAMETOOLONG;
	memcpy(a.name, name, strlen(name));
	return xsp_ask(b, op, &a, sizeof(a), NULL);
}

static int ask_file(const struct xsp_opener *o, pid_t pid, const char *name)
{
	struct xsp_broker *b = broker_of(o);

	return xsp_receive_fd(b, ask_name(b, XSP_ASK_FILE, pid, name));
}

static long ask_link(const struct xsp_opener *o, pid_t pid, const char *name, char *text,
		     size_t size)
{
	struct xsp_broker *b = broker_of(o);
	int rc = ask_name(b, XSP_ASK_READ_LINK, pid, name);

	if (rc < 0)
		return rc;
	if (b->in->head.size >= size)
		return -ENAMETOOLONG;
	memcpy(text, b->in->body, b->in->head.size);
	text[b->in->head.size] = '\0';
	return (long)b->in->head.size;
}

static int ask_pidfd(const struct xsp_opener *o, pid_t pid)
{
	struct xsp_broker *b = broker_of(o);

	return xsp_receive_fd(b, xsp_ask_about(b, XSP_ASK_PIDFD, pid));
}

static int ask_perf_map(const struct xsp_opener *o, pid_t pid)
{
	struct xsp_broker *b = broker_of(o);

	return xsp_receive_fd(b, xsp_ask_about(b, XSP_ASK_PERF_MAP, pid));
}

static int ask_debug_file(const struct xsp_opener *o, const char *build_id)
{
	struct xsp_broker *b = broker_of(o);

	return xsp_receive_fd(b, ask_name(b, XSP_ASK_DEBUG_FILE, 0, build_id));
}

static int ask_debug_link(const struct xsp_opener *o, pid_t pid, const char *path, const char *name)
{
	struct xsp_broker *b = broker_of(o);
	struct xsp_ask_debug_link a = {.pid = pid};
	const size_t length = strlen(path) + 1, all = length + strlen(name);

	if (all > sizeof(a.text))
		return -ENAMETOOLONG;
	memcpy(a.text, path, length);
	memcpy(a.text + length, name, all - length);
	return xsp_receive_fd(b, xsp_ask(b, XSP_ASK_DEBUG_LINK, &a,
					 offsetof(struct xsp_ask_debug_link, text) + all, NULL));
}

/* Fills the request. Returns its size, or -ENAMETOOLONG. */
static int describe_mapped(pid_t pid, const struct xsp_mapping *m, struct xsp_ask_mapped *a)
{
	size_t length = strlen(m->path);

	if (length > sizeof(a->path))
		return -ENAMETOOLONG;
	a->pid = pid;
	a->length = (uint32_t)length;
	a->start = m->start;
	a->end = m->end;
	a->dev = m->dev;
	a->inode = m->inode;
	memcpy(a->path, m->path, length);
	return (int)(offsetof(struct xsp_ask_mapped, path) + length);
}

/* Takes descriptor and handle of the answer in b->in. */
static int receive_mapped(struct xsp_broker *b, uint32_t *handle)
{
	if (b->in->head.size != sizeof(*handle)) {
		xsp_parcel_close(b->in);
		return -EPROTO;
	}
	memcpy(handle, b->in->body, sizeof(*handle));
	return xsp_receive_fd(b, 0);
}

static int ask_mapped(const struct xsp_opener *o, pid_t pid, const struct xsp_mapping *m,
		      uint32_t *handle)
{
	struct xsp_broker *b = broker_of(o);
	struct xsp_ask_mapped a;
	uint32_t ignored;

	if (handle == NULL)
		handle = &ignored;
	for (size_t i = 0; i < b->opened_count; i++) {
		struct opened_file *f = &b->opened[i];
		if (f->fd < 0 || f->pid != pid || f->start != m->start || f->dev != m->dev ||
		    f->inode != m->inode)
			continue;
		int fd = f->fd;
		f->fd = -1;
		*handle = f->handle;
		return fd;
	}
	int rc = describe_mapped(pid, m, &a);
	if (rc > 0)
		rc = xsp_ask(b, XSP_ASK_MAPPED, &a, (size_t)rc, NULL);
	return rc < 0 ? rc : receive_mapped(b, handle);
}

void xsp_opener_close(struct xsp_broker *b)
{
	for (size_t i = 0; i < b->opened_count; i++)
		xsp_close(b->opened[i].fd);
	b->opened_count = 0;
}

/* Sends all requests before it waits for the first answer: 64 small answers fit into the socket. */
static void open_ahead(const struct xsp_opener *o, pid_t pid, const struct xsp_mapping *m,
		       size_t count)
{
	struct xsp_broker *b = broker_of(o);
	struct xsp_ask_mapped a;
	uint32_t first = b->sequence + 1;
	size_t sent = 0;

	xsp_opener_close(b);
	for (; sent < count && sent < XSP_OPEN_AHEAD && !b->gone; sent++) {
		int size = describe_mapped(pid, &m[sent], &a);
		struct xsp_message head = {.op = XSP_ASK_MAPPED,
					   .sequence = first + (uint32_t)sent,
					   .size = (uint32_t)size};
		if (size < 0 || xsp_message_send(b->socket, &head, &a, NULL, 0) < 0)
			break;
		b->sequence = head.sequence;
	}
	for (size_t i = 0; i < sent; i++) {
		struct opened_file *f = &b->opened[b->opened_count];
		if (xsp_ask_wait(b, first + (uint32_t)i) < 0)
			return; /* mapped() will report the reason */
		f->fd = b->in->head.result < 0 ? -1 : receive_mapped(b, &f->handle);
		f->pid = pid;
		f->start = m[i].start;
		f->dev = m[i].dev;
		f->inode = m[i].inode;
		b->opened_count += f->fd >= 0;
	}
}

const struct xsp_opener xsp_open_by_broker = {.file = ask_file,
					      .link = ask_link,
					      .pidfd = ask_pidfd,
					      .debug_file = ask_debug_file,
					      .debug_link = ask_debug_link,
					      .mapped = ask_mapped,
					      .perf_map = ask_perf_map,
					      .ahead = open_ahead};
