/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * listens.c - at which ports the recorded processes' networks listen, of those that a client's end may have as well. Numbers
 * alone do not tell there whether a thread waits for a request or for an answer.
 */
#include "record/recorder_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "catalog/wait_reasons.h"

#define TABLE_MOST 65536U /* sockets that listen come first in the kernel's tables */
#define PROCESSES_MOST 64U
#define LISTENS 10U /* TCP_LISTEN (Linux' include/net/tcp_states.h) */

static void add_port(struct xsp_listens *l, uint16_t port)
{
	size_t i = 0;

	while (i < l->count && l->ports[i] != port)
		i++;
	if (i < l->count)
		return;
	if (l->count == XSP_LISTENS_MOST) {
		l->more = true;
		return;
	}
	l->ports[l->count++] = port;
}

/* A heading, and "   0: 0100007F:C350 00000000:0000 0A ..." (Documentation/networking/proc_net_tcp.rst) */
static void read_table(struct xsp_listens *l, char *text)
{
	char *rest = NULL;

	strtok_r(text, "\n", &rest);
	for (const char *line; (line = strtok_r(NULL, "\n", &rest)) != NULL;) {
		unsigned port, state;
		if (sscanf(line, "%*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x", &port, &state) !=
			    2 ||
		    state != LISTENS)
			return;
		if (port >= XSP_FREE_PORTS && port <= UINT16_MAX)
			add_port(l, (uint16_t)port);
	}
}

static bool load_table(struct xsp_recorder *r, pid_t pid, const char *name)
{
	const struct xsp_opener *o = xsp_broker_opener(r->broker);
	const int fd = o->file(o, pid, name);
	char *text = fd >= 0 ? malloc(TABLE_MOST) : NULL;
	size_t length = 0;
	ssize_t n = 1;

	while (text != NULL && n > 0 && length < TABLE_MOST - 1) {
		n = read(fd, text + length, TABLE_MOST - 1 - length);
		length += n > 0 ? (size_t)n : 0;
	}
	if (text != NULL) {
		text[length] = '\0';
		read_table(&r->listens, text);
	}
	free(text);
	xsp_close(fd);
	return length > 0;
}

int xsp_recorder_meet_listeners(struct xsp_recorder *r, pid_t pid)
{
	struct xsp_listens *l = &r->listens;
	char text[8 * XSP_LISTENS_MOST] = "";

	if (!r->options.attach.waits || l->processes >= PROCESSES_MOST)
		return 0;
	const size_t before = l->count;
	const bool known = load_table(r, pid, "net/tcp");
	load_table(r, pid, "net/tcp6");
	if (!known || (l->processes++ > 0 && l->count == before))
		return 0;
	for (size_t i = 0; i < l->count; i++)
		xsp_join(text, sizeof(text), " ", "%u", l->ports[i]);
	return xsp_capture_put_info(r->writer, "listening ports", l->more ? "?" : text);
}
