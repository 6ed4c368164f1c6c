/* SPDX-License-Identifier: BSD-2-Clause */
#include "inject/reader.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "procfs/maps.h"

int xsp_image_source_open(struct xsp_image_source *s, pid_t pid)
{
	const struct xsp_opener *o = &xsp_open_directly;
	struct xsp_mapped_files *files = NULL;
	struct stat program = {0};
	char path[64];

	*s = (struct xsp_image_source){.library = -1};
	s->memory = o->file(o, pid, "mem");
	s->maps = o->file(o, pid, "maps");
	int rc = s->memory < 0 ? s->memory : s->maps < 0 ? s->maps : 0;
	if (rc == 0)
		rc = xsp_mapped_files_read(o, pid, &files);
	s->files = files;
	if (rc == 0)
		s->fds = calloc(files->count + 1, sizeof(*s->fds));
	if (rc == 0 && s->fds == NULL)
		rc = -ENOMEM;
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	if (stat(path, &program) == 0)
		s->program = program.st_ino;
	for (size_t i = 0; rc == 0 && i < files->count; i++) {
		const struct xsp_mapping m = xsp_mapping_of(&files->files[i]);
		s->fds[i] = o->mapped(o, pid, &m, NULL);
	}
	if (rc < 0)
		xsp_image_source_close(s);
	return rc;
}

void xsp_image_source_close(struct xsp_image_source *s)
{
	for (size_t i = 0; s->fds != NULL && i < s->files->count; i++)
		xsp_close(s->fds[i]);
	free(s->fds);
	xsp_mapped_files_free((struct xsp_mapped_files *)(uintptr_t)s->files);
	const int others[] = {s->memory, s->maps, s->library};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		xsp_close(others[i]);
	*s = (struct xsp_image_source){.memory = -1, .maps = -1, .library = -1};
}

int xsp_reader_start(struct xsp_reader *r, const struct xsp_image_source *source,
		     xsp_image_serve_fn *serve)
{
	int sockets[2];

	*r = (struct xsp_reader){.socket = -1, .in = malloc(sizeof(*r->in))};
	int rc = r->in == NULL ? -ENOMEM : xsp_message_pair(sockets);
	if (rc < 0)
		return rc;
	r->in->fd_count = 0;
	r->pid = fork();
	if (r->pid == 0) {
		serve(source, sockets[1]);
		_exit(1);
	}
	rc = r->pid < 0 ? -errno : 0;
	close(sockets[1]);
	r->socket = sockets[0];
	if (rc < 0)
		r->pid = 0;
	return rc;
}

void xsp_reader_end(struct xsp_reader *r)
{
	if (r->pid > 0) {
		kill(r->pid, SIGKILL);
		waitpid(r->pid, NULL, 0);
	}
	if (r->in != NULL && r->socket >= 0)
		close(r->socket);
	free(r->in);
	*r = (struct xsp_reader){.socket = -1};
}

/* Receives its next message. ask() passes over answers that came too late. */
static int receive(struct xsp_reader *r, uint64_t end_ns)
{
	struct pollfd fd = {.fd = r->socket, .events = POLLIN};

	for (;;) {
		const uint64_t now = xsp_now_ns();
		const int n = now >= end_ns ? 0 : poll(&fd, 1, (int)((end_ns - now) / 1000000 + 1));
		if (n == 0)
			return -ETIMEDOUT;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n < 0)
			continue;
		const int rc = xsp_message_receive(r->socket, r->in);
		if (rc != -EINTR)
			return rc;
	}
}

static int ask(struct xsp_reader *r, uint32_t question, const void *body, size_t size,
	       unsigned limit_ms, void *out, size_t out_size)
{
	const struct xsp_message m = {
		.op = question, .sequence = ++r->sequence, .size = (uint32_t)size};
	const uint64_t end_ns = xsp_now_ns() + limit_ms * 1000000ULL;
	int rc = r->pid <= 0 ? -EPIPE : xsp_message_send(r->socket, &m, body, NULL, 0);

	while (rc == 0 && (rc = receive(r, end_ns)) == 0) {
		const struct xsp_message *head = &r->in->head;
		if (r->in->fd_count > 0 || head->sequence > m.sequence) {
			xsp_parcel_close(r->in);
			return -EPROTO;
		}
		if (head->sequence < m.sequence)
			continue;
		if (head->op != question || head->size != out_size)
			return -EPROTO;
		memcpy(out, r->in->body, out_size);
		return 0;
	}
	return rc;
}

int xsp_reader_facts(struct xsp_reader *r, const struct xsp_image_ask *a, unsigned limit_ms,
		     struct xsp_image_facts *out)
{
	return ask(r, XSP_IMAGE_FACTS, a, sizeof(*a), limit_ms, out, sizeof(*out));
}

int xsp_reader_judge(struct xsp_reader *r, const struct xsp_image_thread *thread, unsigned limit_ms,
		     struct xsp_image_verdict *out)
{
	int rc = ask(r, XSP_IMAGE_JUDGE, thread, sizeof(*thread), limit_ms, out, sizeof(*out));

	return rc == 0 && (out->danger >= XSP_DANGERS || out->error > 0) ? -EPROTO : rc;
}

bool xsp_image_is_code(pid_t pid, uint64_t address)
{
	struct xsp_maps maps = {0};
	const struct xsp_map *m = NULL;

	if (xsp_maps_read(&xsp_open_directly, pid, false, &maps) == 0)
		m = xsp_maps_find(&maps, address);
	const bool found = m != NULL && m->executable && m->inode != 0;
	XSP_FREE(&maps);
	return found;
}
