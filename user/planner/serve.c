/* SPDX-License-Identifier: BSD-2-Clause */
/* serve.c - the process that reads files of targets, without rights. */
#include <errno.h>
#include <stddef.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "planner/hint.h"
#include "planner/requests.h"
#include "planner/sandbox.h"
#include "planner/wire.h"
#include "target/elf/lines.h"

#define SOCKET 0 /* its first descriptor; the others are of files that it is asked about */
/* for one module and the looks that are kept; the rest is freed before the next module */
#define MEMORY (512ULL << 20)
#define CPU_SECONDS 600U /* for all modules together */
#define KEPT 4
#define LINE_MAX_BYTES (4200 + XSP_INLINED_MOST * (XSP_INLINED_NAME + 1))

/* A file that was looked at before its costs were known. */
struct found {
	uint32_t look; /* 0: none */
	struct xsp_module *module;
	struct xsp_planned_module m;
};

struct reader {
	struct xsp_opener opener; /* first: want_debug_file() finds the reader by it */
	int socket;
	struct xsp_plan plan;
	struct xsp_parcel *in;
	struct found kept[KEPT]; /* the looks with the most probes, until they are read */
	struct xsp_looked *looking; /* NULL: not in a look */
};

static int send_out(int socket, uint32_t op, int result, const void *data, size_t size)
{
	struct xsp_message m = {.op = op, .result = result, .size = (uint32_t)size};

	return xsp_message_send(socket, &m, data, NULL, 0);
}

static int want(struct reader *r, const char *text)
{
	/* the answer would come after other requests */
	if (r->looking != NULL) {
		char *wanted = r->looking->wanted;
		const size_t used = strlen(wanted);
		snprintf(wanted + used, sizeof(r->looking->wanted) - used, "%s", text);
		return -ENOENT;
	}
	int rc = send_out(r->socket, XSP_WANT_DEBUG_FILE, 0, text, strlen(text));
	if (rc == 0)
		rc = xsp_message_receive(r->socket, r->in);
	if (rc < 0 || r->in->head.op != XSP_HAVE_DEBUG_FILE)
		_exit(1);
	if (r->in->head.result < 0 || r->in->fd_count != 1) {
		xsp_parcel_close(r->in);
		return -ENOENT;
	}
	r->in->fd_count = 0;
	return r->in->fds[0];
}

static int want_debug_file(const struct xsp_opener *o, const char *build_id)
{
	return want((struct reader *)(uintptr_t)o, build_id);
}

/* The recorder knows the process and the path. */
static int want_debug_link(const struct xsp_opener *o, pid_t pid, const char *path,
			   const char *name)
{
	char text[257];

	(void)pid;
	(void)path;
	if ((size_t)snprintf(text, sizeof(text), "/%s", name) >= sizeof(text))
		return -ENAMETOOLONG;
	return want((struct reader *)(uintptr_t)o, text);
}

static int send_part(void *ctx, const void *data, size_t size)
{
	const struct reader *r = ctx;

	if (send_out(r->socket, XSP_PART, 0, data, size) < 0)
		_exit(1);
	return 0;
}

static int send_module(struct reader *r, const struct xsp_planned_module *m)
{
	struct xsp_wire w = {.send = send_part,
			     .ctx = r,
			     .part = r->in->body, /* free: the request has been read */
			     .room = sizeof(r->in->body)};
	/* the first part has reported everything, but for the sites of other parts */
	const struct xsp_plan *plan = &r->plan;
	const bool first = plan->part == 0;
	int rc = xsp_wire_put(&w, m, first ? 0 : xsp_plan_part(m->count, plan->part, plan->parts),
			      first ? m->count
				    : xsp_plan_part(m->count, plan->part + 1, plan->parts));

	if (rc == 0 && send_out(r->socket, XSP_DONE, 0, w.part, w.used) < 0)
		_exit(1);
	return rc;
}

static void send_failure(const struct reader *r, int code, const char *display_path,
			 struct xsp_error *err)
{
	if (code == -ENOMEM) {
		*err = (struct xsp_error){0};
		xsp_error_set(err, code, XSP_STATUS_TARGET,
			      "reading %.300s takes more than %llu MiB", display_path,
			      (unsigned long long)(MEMORY >> 20));
	}
	if (send_out(r->socket, XSP_FAILED, code, err, sizeof(*err)) < 0)
		_exit(1);
}

/* Copies the path that follows `head` bytes. */
static void copy_display_path(const struct reader *r, size_t head, char *display_path, size_t size)
{
	size_t length = r->in->head.size - head;

	if (length >= size)
		length = size - 1;
	memcpy(display_path, r->in->body + head, length);
	display_path[length] = '\0';
}

static void read_hint(struct reader *r)
{
	struct xsp_hint_ask ask;
	char display_path[4097], text[XSP_HINT_SIZE];

	memcpy(&ask, r->in->body, sizeof(ask));
	copy_display_path(r, sizeof(ask), display_path, sizeof(display_path));
	int fd = r->in->fds[0];
	r->in->fd_count = 0;
	xsp_hint_read(&r->plan, &r->opener, fd, display_path, &ask, text);
	if (send_out(r->socket, XSP_DONE, 0, text, strlen(text)) < 0)
		_exit(1);
}

static struct xsp_code_line *read_lines_ask(const struct reader *r, struct xsp_lines_ask *ask)
{
	struct xsp_code_line *lines = NULL;

	memcpy(ask, r->in->body, XSP_LINES_ASK(0));
	if (ask->count <= XSP_PLANNER_LINES && XSP_LINES_ASK(ask->count) <= r->in->head.size)
		lines = calloc(ask->count + 1U, sizeof(*lines));
	if (lines == NULL)
		_exit(1);
	memcpy(ask->addr, r->in->body + XSP_LINES_ASK(0), 8 * (size_t)ask->count);
	for (uint32_t i = 0; i < ask->count; i++)
		lines[i].addr = ask->addr[i];
	return lines;
}

static size_t count_newlines(const char *text)
{
	size_t n = 0;

	for (; text != NULL && (text = strchr(text, '\n')) != NULL; text++)
		n++;
	return n;
}

static size_t put_line(char text[LINE_MAX_BYTES], const struct xsp_code_line *l)
{
	const bool known = l->path != NULL && strchr(l->path, '\n') == NULL;

	return (size_t)snprintf(text, LINE_MAX_BYTES, "%d %u %zu %.4096s\n%s",
				l->missed ? -1
				: known	  ? l->line
					  : 0,
				l->helpers, count_newlines(l->inlined), known ? l->path : "",
				l->inlined != NULL ? l->inlined : "");
}

static void send_lines(struct reader *r, int result, struct xsp_code_line *lines, uint32_t count)
{
	char *text = (char *)r->in->body; /* free: the request has been read */
	size_t used = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (used + LINE_MAX_BYTES > sizeof(r->in->body)) {
			send_part(r, text, used);
			used = 0;
		}
		used += put_line(text + used, &lines[i]);
		free(lines[i].path);
		free(lines[i].inlined);
	}
	if (send_out(r->socket, XSP_DONE, result, text, used) < 0)
		_exit(1);
}

static void read_lines(struct reader *r)
{
	struct xsp_lines_ask ask;
	struct xsp_code_line *lines = read_lines_ask(r, &ask);
	struct xsp_module *m;
	char display_path[4097];

	copy_display_path(r, XSP_LINES_ASK(ask.count), display_path, sizeof(display_path));
	int fd = r->in->fds[0];
	r->in->fd_count = 0;
	int rc = xsp_module_adopt(&r->opener, fd, display_path, &m, NULL);
	if (rc == 0) {
		rc = xsp_module_lines(m, lines, ask.count, ask.limit_ms);
		xsp_module_free(m);
	}
	send_lines(r, rc, lines, ask.count);
	free(lines);
}

static void forget(struct found *f)
{
	xsp_planned_module_clear(&f->m);
	xsp_module_free(f->module);
	*f = (struct found){0};
}

/* Looks at the file of a request, and copies its path. */
static int look_at(struct reader *r, struct found *f, char *display_path, size_t size,
		   struct xsp_error *err)
{
	int fd = r->in->fds[0];

	copy_display_path(r, sizeof(struct xsp_module_ask), display_path, size);
	r->in->fd_count = 0;
	f->m.display_path = display_path;
	int rc = xsp_plan_look(&r->plan, &r->opener, fd, &f->m, &f->module, err);
	f->m.display_path = NULL;
	return rc;
}

/* Keeps this look, or the one with the fewest probes goes. Prepares now, while there is time, what choosing any site
 * needs. */
static void keep(struct reader *r, struct found *f)
{
	const struct xsp_probe *first = &f->m.list.items[0];
	struct xsp_placement place;
	struct found *least = r->kept, other;

	if (xsp_place(f->module, first->addr, first->size, first->args_read, NULL, &place) == 0)
		xsp_placement_clear(&place);
	for (size_t i = 1; i < KEPT; i++)
		if (r->kept[i].m.list.count < least->m.list.count)
			least = &r->kept[i];
	if (least->m.list.count >= f->m.list.count)
		return;
	other = *least;
	*least = *f;
	*f = other;
}

static void look_at_module(struct reader *r)
{
	struct found f = {.look = ((const struct xsp_module_ask *)r->in->body)->look};
	struct xsp_looked looked = {0};
	struct xsp_error err = {0};
	char display_path[4097];

	r->looking = &looked;
	int rc = look_at(r, &f, display_path, sizeof(display_path), &err);
	r->looking = NULL;
	looked.probes = (uint32_t)f.m.list.count;
	looked.empty = looked.probes == 0 && f.m.python.version == 0;
	looked.symbols = (uint32_t)f.m.symbols;
	looked.is_static = f.m.is_static;
	looked.lacks = (uint8_t)f.m.lacks;
	if (rc < 0)
		send_failure(r, rc, display_path, &err);
	else if (send_out(r->socket, XSP_LOOKED, 0, &looked,
			  offsetof(struct xsp_looked, wanted) + strlen(looked.wanted)) < 0)
		_exit(1);
	if (rc == 0 && looked.probes > 0)
		keep(r, &f);
	forget(&f);
}

static void read_module(struct reader *r)
{
	struct found f = {0};
	struct xsp_error err = {0};
	char display_path[4097];
	struct xsp_module_ask ask;
	int rc = 0;

	memcpy(&ask, r->in->body, sizeof(ask));
	r->plan.costs = ask.costs;
	r->plan.exit_by_site = ask.exit_by_site != 0;
	r->plan.part = ask.part;
	r->plan.parts = ask.parts;
	for (size_t i = 0; i < KEPT; i++) {
		if (ask.look == 0 || ask.look != r->kept[i].look)
			continue;
		f = r->kept[i];
		r->kept[i] = (struct found){0};
	}
	if (ask.forget)
		forget(&f);
	if (f.module == NULL) {
		rc = look_at(r, &f, display_path, sizeof(display_path), &err);
	} else {
		copy_display_path(r, sizeof(ask), display_path, sizeof(display_path));
		xsp_parcel_close(r->in);
	}
	if (rc == 0)
		rc = xsp_plan_place(&r->plan, f.module, &f.m, &err);
	if (rc == 0)
		rc = send_module(r, &f.m);
	forget(&f);
	for (size_t i = 0; rc == -ENOMEM && i < KEPT; i++)
		if (r->kept[i].look != 0) /* a new process will have enough memory */
			_exit(0);
	if (rc < 0)
		send_failure(r, rc, display_path, &err);
}

/* The recorder has the broker, the rings, the capture and more open, and the user's terminal. */
static int close_all_but(int socket)
{
	if (dup2(socket, SOCKET) < 0 || syscall(SYS_close_range, SOCKET + 1, ~0U, 0) != 0)
		return -errno;
	return 0;
}

void xsp_planner_serve(const struct xsp_plan *plan, int socket, struct xsp_parcel *in)
{
	static const struct {
		void (*serve)(struct reader *r);
		size_t head; /* bytes before the path */
	} requests[] = {
		[XSP_READ_MODULE] = {read_module, sizeof(struct xsp_module_ask)},
		[XSP_READ_HINT] = {read_hint, sizeof(struct xsp_hint_ask)},
		[XSP_READ_LINES] = {read_lines, XSP_LINES_ASK(0)},
		[XSP_LOOK_AT_MODULE] = {look_at_module, sizeof(struct xsp_module_ask)},
	};
	struct reader r = {.opener = xsp_open_directly, .socket = SOCKET, .plan = *plan, .in = in};

	r.opener.debug_file = xsp_opener_lacks_debug_file(NULL) ? NULL : want_debug_file;
	r.opener.debug_link = want_debug_link;
	prctl(PR_SET_NAME, "xsp-planner");
	signal(SIGINT, SIG_IGN); /* the recorder ends us */
	signal(SIGTERM, SIG_DFL);
	signal(SIGHUP, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (close_all_but(socket) < 0 || xsp_sandbox_powerless() < 0 ||
	    xsp_sandbox_compute_only(MEMORY, CPU_SECONDS) < 0)
		_exit(2);
	while (xsp_message_receive(SOCKET, r.in) == 0) {
		const uint32_t op = r.in->head.op;
		if (op >= sizeof(requests) / sizeof(requests[0]) || requests[op].serve == NULL ||
		    r.in->fd_count != 1 || r.in->head.size < requests[op].head)
			_exit(1);
		requests[op].serve(&r);
	}
	_exit(0);
}
