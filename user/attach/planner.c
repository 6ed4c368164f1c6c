/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/planner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/hint.h"
#include "attach/protocol.h"
#include "attach/sandbox.h"
#include "base/clock.h"
#include "target/lines.h"

#define READERS 4 /* owners whose files are read in turn, without a fork each time */
#define HELPERS 3 /* that choose sites beside the first, in files that hold many functions */
#define LARGE (1U << 20) /* bytes of such a file */
#define SOCKET 0 /* of the process: the first of its descriptors and the only one */
/* For each module: what is read of it is forgotten before the next. */
#define MEMORY (256ULL << 20)
#define CPU_SECONDS 600U /* of all modules together */
#define WALL_S 60U /* of one */
#define WAIT_MS 20
#define ANSWER_MAX (128ULL << 20) /* node has 80,000 functions, 55 MB */

enum {
	READ_MODULE =
		1, /* struct module_ask, the path as the target sees it; descriptor → PART, ..., DONE or FAILED */
	WANT_DEBUG_FILE, /* from the planner: a build id → HAVE_DEBUG_FILE */
	HAVE_DEBUG_FILE, /* result: 0 and a descriptor, or negative */
	PART, /* bytes of the answer */
	DONE, /* the last bytes */
	FAILED, /* result; struct xsp_error */
	READ_HINT, /* struct xsp_hint_ask, the path; descriptor → DONE with text */
	READ_LINES, /* struct lines_ask with its addresses, the path; descriptor → "LINE PATH\n" of each: PART, ..., DONE */
};

struct module_ask {
	struct xsp_site_costs costs;
	uint32_t part, parts; /* of its probes: struct xsp_plan */
	uint64_t exit_by_site;
};

struct lines_ask {
	uint32_t count, limit_ms;
	uint64_t addr[XSP_PLANNER_LINES];
};
#define LINES_ASK(count) (offsetof(struct lines_ask, addr) + 8 * (size_t)(count))
#define LINE_MAX_BYTES 4200

/* Whose files a process reads. An owner's number may be another's on another device: of a container, or of
 * what a user has mounted. */
struct owner {
	uid_t uid;
	dev_t device;
};
#define ANYBODY ((uid_t)-1)

struct process {
	pid_t pid; /* 0: not running */
	int socket;
	bool fresh; /* has read nothing: it may be anybody's */
	struct owner owner;
};

struct xsp_planner {
	const struct xsp_plan *plan;
	const struct xsp_opener *opener;
	bool (*stopped)(void *ctx);
	void *stopped_ctx;
	struct process processes[READERS], helpers[HELPERS], *now;
	size_t next; /* the one to be replaced */
	struct xsp_parcel *in;
};

/* ---- the process ---- */

struct reader {
	struct xsp_opener opener; /* first: the reader is found by it */
	int socket;
	struct xsp_plan plan;
	struct xsp_parcel *in;
};

static int send_out(int socket, uint32_t op, int result, const void *data, size_t size)
{
	struct xsp_message m = {.op = op, .result = result, .size = (uint32_t)size};

	return xsp_message_send(socket, &m, data, NULL, 0);
}

static int want_debug_file(const struct xsp_opener *o, const char *build_id)
{
	struct reader *r = (struct reader *)(uintptr_t)o;
	int rc = send_out(r->socket, WANT_DEBUG_FILE, 0, build_id, strlen(build_id));

	if (rc == 0)
		rc = xsp_message_receive(r->socket, r->in);
	if (rc < 0 || r->in->head.op != HAVE_DEBUG_FILE)
		_exit(1);
	if (r->in->head.result < 0 || r->in->fd_count != 1) {
		xsp_parcel_close(r->in);
		return -ENOENT;
	}
	r->in->fd_count = 0;
	return r->in->fds[0];
}

static int no_debug_file(const struct xsp_opener *o, const char *build_id)
{
	(void)o;
	(void)build_id;
	return -ENOENT;
}

static int send_part(void *ctx, const void *data, size_t size)
{
	const struct reader *r = ctx;

	if (send_out(r->socket, PART, 0, data, size) < 0)
		_exit(1);
	return 0;
}

static int tell_module(struct reader *r, const struct xsp_planned_module *m)
{
	struct xsp_wire w = {.send = send_part,
			     .ctx = r,
			     .part = r->in->body, /* the request has been read */
			     .room = sizeof(r->in->body)};
	/* the first has told all, but for the sites that others have chosen */
	const struct xsp_plan *plan = &r->plan;
	const bool first = plan->part == 0;
	int rc = xsp_wire_put(&w, m, first ? 0 : xsp_plan_part(m->count, plan->part, plan->parts),
			      first ? m->count
				    : xsp_plan_part(m->count, plan->part + 1, plan->parts));

	if (rc == 0 && send_out(r->socket, DONE, 0, w.part, w.used) < 0)
		_exit(1);
	return rc;
}

static void tell_failure(const struct reader *r, int code, const char *shown, struct xsp_error *err)
{
	if (code == -ENOMEM) {
		*err = (struct xsp_error){0};
		xsp_error_set(err, code, XSP_STATUS_TARGET,
			      "reading %.300s takes more than %llu MiB", shown,
			      (unsigned long long)(MEMORY >> 20));
	}
	if (send_out(r->socket, FAILED, code, err, sizeof(*err)) < 0)
		_exit(1);
}

/* The path that follows `head` bytes. */
static void take_shown(const struct reader *r, size_t head, char *shown, size_t size)
{
	size_t length = r->in->head.size - head;

	if (length >= size)
		length = size - 1;
	memcpy(shown, r->in->body + head, length);
	shown[length] = '\0';
}

static void read_hint(struct reader *r)
{
	struct xsp_hint_ask ask;
	char shown[4097], text[XSP_HINT_SIZE];

	memcpy(&ask, r->in->body, sizeof(ask));
	take_shown(r, sizeof(ask), shown, sizeof(shown));
	int fd = r->in->fds[0];
	r->in->fd_count = 0;
	xsp_hint_read(&r->plan, &r->opener, fd, shown, &ask, text);
	if (send_out(r->socket, DONE, 0, text, strlen(text)) < 0)
		_exit(1);
}

static struct xsp_code_line *take_lines(const struct reader *r, struct lines_ask *ask)
{
	struct xsp_code_line *lines = NULL;

	memcpy(ask, r->in->body, LINES_ASK(0));
	if (ask->count <= XSP_PLANNER_LINES && LINES_ASK(ask->count) <= r->in->head.size)
		lines = calloc(ask->count + 1U, sizeof(*lines));
	if (lines == NULL)
		_exit(1);
	memcpy(ask->addr, r->in->body + LINES_ASK(0), 8 * (size_t)ask->count);
	for (uint32_t i = 0; i < ask->count; i++)
		lines[i].addr = ask->addr[i];
	return lines;
}

static void tell_lines(struct reader *r, struct xsp_code_line *lines, uint32_t count)
{
	char *text = (char *)r->in->body; /* the request has been read */
	size_t used = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (used + LINE_MAX_BYTES > sizeof(r->in->body)) {
			send_part(r, text, used);
			used = 0;
		}
		const char *path = lines[i].path;
		const bool told = path != NULL && strchr(path, '\n') == NULL;
		used += (size_t)snprintf(text + used, LINE_MAX_BYTES, "%d %.4096s\n",
					 told ? lines[i].line : 0, told ? path : "");
		free(lines[i].path);
	}
	if (send_out(r->socket, DONE, 0, text, used) < 0)
		_exit(1);
}

static void read_lines(struct reader *r)
{
	struct lines_ask ask;
	struct xsp_code_line *lines = take_lines(r, &ask);
	struct xsp_module *m;
	char shown[4097];

	take_shown(r, LINES_ASK(ask.count), shown, sizeof(shown));
	int fd = r->in->fds[0];
	r->in->fd_count = 0;
	if (xsp_module_adopt(&r->opener, fd, shown, &m, NULL) == 0) {
		xsp_module_lines(m, lines, ask.count, ask.limit_ms);
		xsp_module_free(m);
	}
	tell_lines(r, lines, ask.count);
	free(lines);
}

static void read_module(struct reader *r)
{
	struct xsp_planned_module m = {0};
	struct xsp_error err = {0};
	char shown[4097];
	struct module_ask ask;

	memcpy(&ask, r->in->body, sizeof(ask));
	r->plan.costs = ask.costs;
	r->plan.exit_by_site = ask.exit_by_site != 0;
	r->plan.part = ask.part;
	r->plan.parts = ask.parts;
	take_shown(r, sizeof(ask), shown, sizeof(shown));
	int fd = r->in->fds[0];
	r->in->fd_count = 0;
	m.shown = shown;
	int rc = xsp_plan_read(&r->plan, &r->opener, fd, &m, &err);
	if (rc == 0)
		rc = tell_module(r, &m);
	m.shown = NULL;
	xsp_planned_module_clear(&m);
	if (rc < 0)
		tell_failure(r, rc, shown, &err);
}

/* The recorder has the broker, rings, the capture and more open, and who typed the command its terminal. */
static int close_all_but(int socket)
{
	if (dup2(socket, SOCKET) < 0 || syscall(SYS_close_range, SOCKET + 1, ~0U, 0) != 0)
		return -errno;
	return 0;
}

static const struct {
	uint32_t op;
	size_t least; /* bytes of it */
	void (*serve)(struct reader *r);
} requests[] = {
	{READ_MODULE, sizeof(struct module_ask), read_module},
	{READ_HINT, sizeof(struct xsp_hint_ask), read_hint},
	{READ_LINES, LINES_ASK(0), read_lines},
};

static bool serve_one(struct reader *r)
{
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		if (requests[i].op != r->in->head.op)
			continue;
		if (r->in->fd_count != 1 || r->in->head.size < requests[i].least)
			return false;
		requests[i].serve(r);
		return true;
	}
	return false;
}

static _Noreturn void serve(const struct xsp_planner *p, int socket)
{
	struct reader r = {
		.opener = xsp_open_directly, .socket = SOCKET, .plan = *p->plan, .in = p->in};

	r.opener.debug_file = xsp_opener_lacks_debug_file(NULL) ? no_debug_file : want_debug_file;
	prctl(PR_SET_NAME, "xsp-planner");
	signal(SIGINT, SIG_IGN); /* the recorder ends us */
	signal(SIGTERM, SIG_DFL);
	signal(SIGHUP, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (close_all_but(socket) < 0 || xsp_sandbox_powerless() < 0 ||
	    xsp_sandbox_compute_only(MEMORY, CPU_SECONDS) < 0)
		_exit(2);
	while (xsp_message_receive(SOCKET, r.in) == 0)
		if (!serve_one(&r))
			_exit(1);
	_exit(0);
}

/* ---- asking it ---- */

int xsp_planner_new(const struct xsp_plan *plan, const struct xsp_opener *o,
		    struct xsp_planner **out)
{
	struct xsp_planner *p = *out = calloc(1, sizeof(*p));

	if (p == NULL || (p->in = malloc(sizeof(*p->in))) == NULL) {
		free(p);
		*out = NULL;
		return -ENOMEM;
	}
	p->in->fd_count = 0;
	p->plan = plan;
	p->opener = o;
	p->now = p->processes;
	return 0;
}

void xsp_planner_on_wait(struct xsp_planner *p, bool (*stopped)(void *ctx), void *ctx)
{
	p->stopped = stopped;
	p->stopped_ctx = ctx;
}

static void stop(struct process *c)
{
	if (c->pid <= 0)
		return;
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
	close(c->socket);
	c->pid = 0;
}

static void stop_helpers(struct xsp_planner *p)
{
	for (size_t i = 0; i < HELPERS; i++)
		stop(&p->helpers[i]);
}

void xsp_planner_free(struct xsp_planner *p)
{
	if (p == NULL)
		return;
	for (size_t i = 0; i < READERS; i++)
		stop(&p->processes[i]);
	stop_helpers(p);
	free(p->in);
	free(p);
}

int xsp_planner_start(struct xsp_planner *p)
{
	int sockets[2];
	int rc = xsp_message_pair(sockets);

	if (rc < 0)
		return rc;
	pid_t pid = fork();
	if (pid == 0)
		serve(p, sockets[1]);
	rc = pid < 0 ? -errno : 0;
	close(sockets[1]);
	if (rc < 0) {
		close(sockets[0]);
		return rc;
	}
	/* it need not read what it is sent, and is not waited for */
	fcntl(sockets[0], F_SETFL, O_NONBLOCK);
	*p->now = (struct process){.pid = pid, .socket = sockets[0], .fresh = true};
	return 0;
}

static int owner_of(int fd, struct owner *out)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return -errno;
	*out = (struct owner){(st.st_mode & S_IWOTH) != 0 ? ANYBODY : st.st_uid, st.st_dev};
	return 0;
}

static bool may_read(const struct process *c, const struct owner *owner)
{
	return c->pid > 0 &&
	       (c->fresh || (c->owner.uid == owner->uid && c->owner.device == owner->device));
}

static struct process *process_for(struct xsp_planner *p, const struct owner *owner)
{
	struct process *unused = NULL;

	for (size_t i = 0; i < READERS; i++) {
		if (may_read(&p->processes[i], owner))
			return &p->processes[i];
		if (p->processes[i].pid == 0)
			unused = &p->processes[i];
	}
	return unused != NULL ? unused : &p->processes[p->next++ % READERS];
}

/* The process that reads the file: one that has read its owner's files, or none yet. helper 0: the first, else
 * the one of that number beside it. */
static int choose(struct xsp_planner *p, int fd, uint32_t helper)
{
	struct owner owner;
	int rc = owner_of(fd, &owner);

	if (rc < 0)
		return rc;
	p->now = helper > 0 ? &p->helpers[helper - 1] : process_for(p, &owner);
	if (!may_read(p->now, &owner)) {
		stop(p->now);
		rc = xsp_planner_start(p);
	}
	p->now->fresh = false;
	p->now->owner = owner;
	return rc;
}

/* The bytes of an answer. */
struct answer {
	struct process *from;
	uint8_t *data;
	size_t size, room;
	bool whole;
	bool no; /* it is one, which says that and why the file cannot be read */
};

/* Whose message has come, of those whose answers are not whole; -1: nobody's. Of answers behind the one that is wanted only
 * the first bytes are taken: two at once would take twice the memory. */
static int poll_answers(const struct answer *a, size_t count, size_t wanted)
{
	struct pollfd fds[HELPERS + 1];

	for (size_t i = 0; i < count; i++) {
		const bool taken = a[i].whole || (i > wanted && a[i].size > 0);
		fds[i] = (struct pollfd){.fd = taken ? -1 : a[i].from->socket, .events = POLLIN};
	}
	if (poll(fds, count, WAIT_MS) < 0 && errno != EINTR)
		return -EPIPE;
	for (size_t i = 0; i < count; i++)
		if (fds[i].revents != 0)
			return (int)i;
	return -EINTR;
}

/* Whose it is, -EINTR when the user does not want to wait, -ETIME, -EPIPE when it has died. */
static int wait_for_message(struct xsp_planner *p, const struct answer *a, size_t count,
			    size_t wanted, uint64_t deadline_ns)
{
	/* asked for each message: there may be no end of them */
	while (xsp_now_ns() < deadline_ns) {
		if (p->stopped != NULL && p->stopped(p->stopped_ctx))
			return -EINTR;
		int i = poll_answers(a, count, wanted);
		if (i == -EPIPE)
			return i;
		if (i < 0)
			continue;
		p->now = a[i].from;
		int rc = xsp_message_receive(p->now->socket, p->in);
		if (rc == 0 && p->in->fd_count > 0) {
			xsp_parcel_close(p->in);
			return -EPROTO;
		}
		if (rc != -EINTR)
			return rc < 0 ? rc : i;
	}
	return -ETIME;
}

static int give_debug_file(struct xsp_planner *p)
{
	char build_id[132] = "";
	size_t length = p->in->head.size;

	memcpy(build_id, p->in->body, length < sizeof(build_id) ? length : sizeof(build_id) - 1);
	int fd = xsp_opener_lacks_debug_file(build_id) ? -ENOENT
						       : p->opener->debug_file(p->opener, build_id);
	struct xsp_message m = {.op = HAVE_DEBUG_FILE, .result = fd < 0 ? fd : 0};
	int rc = xsp_message_send(p->now->socket, &m, NULL, &fd, fd < 0 ? 0 : 1);
	if (fd >= 0)
		close(fd);
	return rc == -EAGAIN ? -EPROTO : rc; /* it asks, and does not read the answers */
}

static int take_part(const struct xsp_planner *p, struct answer *a)
{
	size_t size = p->in->head.size, need = a->size + size;

	if (need > ANSWER_MAX)
		return -EFBIG;
	if (size == 0)
		return 0;
	if (need > a->room) {
		size_t room = need + need / 4;
		uint8_t *grown = realloc(a->data, room);
		if (grown == NULL)
			return -ENOMEM;
		a->data = grown;
		a->room = room;
	}
	memcpy(a->data + a->size, p->in->body, size);
	a->size += size;
	return 0;
}

/* Whatever it was: to the caller, errors of memory or processes are its own. */
static int take_failure(const struct xsp_planner *p, struct answer *a, struct xsp_error *err)
{
	const struct xsp_error *told = (const void *)p->in->body;

	if (p->in->head.size != sizeof(*told))
		return -EPROTO;
	a->no = true;
	return xsp_error_set(err, -ENOEXEC, XSP_STATUS_TARGET, "%.*s", (int)sizeof(told->text) - 1,
			     told->text);
}

static int take_message(struct xsp_planner *p, struct answer *a, struct xsp_error *err)
{
	switch (p->in->head.op) {
	case WANT_DEBUG_FILE:
		return give_debug_file(p);
	case PART:
		return take_part(p, a);
	case DONE:
		a->whole = true;
		return take_part(p, a);
	case FAILED:
		a->whole = true;
		return take_failure(p, a, err);
	default:
		return -EPROTO;
	}
}

/* The one that is wanted up to its end. After an error those whose answers are not whole are ended: the next module gets new
 * ones. */
static int take_answers(struct xsp_planner *p, uint64_t deadline_ns, struct answer *a, size_t count,
			size_t wanted, struct xsp_error *err)
{
	int rc = 0;

	while (rc == 0 && !a[wanted].whole) {
		int i = wait_for_message(p, a, count, wanted, deadline_ns);
		rc = i < 0 ? i : take_message(p, &a[i], err);
		if (rc < 0 && i >= 0 && !a[i].no)
			a[i].whole = false;
	}
	for (size_t i = 0; rc < 0 && i < count; i++)
		if (!a[i].whole)
			stop(a[i].from);
	return rc;
}

static int explain(int code, const char *shown, struct xsp_error *err)
{
	switch (code) {
	case -EINTR:
		return xsp_error_set(err, code, XSP_STATUS_FAILED, "interrupted");
	case -ETIME:
		return xsp_error_set(err, code, XSP_STATUS_TARGET,
				     "reading %.300s took more than %u s", shown, WALL_S);
	case -EFBIG:
		return xsp_error_set(err, code, XSP_STATUS_TARGET,
				     "what matches in %.300s takes more than %llu MiB: give a "
				     "narrower -e",
				     shown, (unsigned long long)(ANSWER_MAX >> 20));
	case -EPIPE:
	case -EPROTO:
		return xsp_error_set(err, -EPROTO, XSP_STATUS_TARGET,
				     "the process that reads files for xsptrace died of %.300s: "
				     "please report the file",
				     shown);
	default:
		return code;
	}
}

/* A request with a file and its path. */
static int ask_about(struct xsp_planner *p, uint32_t helper, uint32_t op, const void *head,
		     size_t size, int fd, const char *shown)
{
	const size_t length = strlen(shown);
	struct xsp_message ask = {.op = op, .size = (uint32_t)(size + length)};
	int rc = choose(p, fd, helper);

	if (rc == 0 && size + length <= sizeof(p->in->body)) {
		memcpy(p->in->body, head, size);
		memcpy(p->in->body + size, shown, length);
		rc = xsp_message_send(p->now->socket, &ask, p->in->body, &fd, 1);
	}
	return rc;
}

void xsp_planner_hint(struct xsp_planner *p, int fd, const char *shown,
		      const struct xsp_hint_ask *ask, unsigned limit_ms, char *text)
{
	int rc = ask_about(p, 0, READ_HINT, ask, sizeof(*ask), fd, shown);
	struct answer a = {.from = p->now};

	close(fd);
	if (rc < 0)
		stop(p->now);
	else
		rc = take_answers(p, xsp_now_ns() + (uint64_t)limit_ms * 1000000U, &a, 1, 0, NULL);
	if (rc == 0 && a.size > 0 && a.size < XSP_HINT_SIZE)
		memcpy(text, a.data, a.size);
	text[rc == 0 && a.size < XSP_HINT_SIZE ? a.size : 0] = '\0';
	free(a.data);
}

/* "LINE PATH\n" each, "0 \n" where it is not known. */
static void take_told_lines(const struct answer *a, struct xsp_code_line *lines, size_t count)
{
	const char *at = (const char *)a->data, *end = at + a->size;

	for (size_t i = 0; i < count && at < end; i++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *space = memchr(at, ' ', (size_t)(end - at));
		if (newline == NULL || space == NULL || space > newline)
			return;
		lines[i].line = atoi(at); /* ends at the space */
		if (lines[i].line > 0)
			lines[i].path = strndup(space + 1, (size_t)(newline - space - 1));
		at = newline + 1;
	}
}

void xsp_planner_lines(struct xsp_planner *p, int fd, const char *shown,
		       struct xsp_code_line *lines, size_t count, unsigned limit_ms)
{
	struct lines_ask ask = {.count = (uint32_t)count, .limit_ms = limit_ms};

	for (size_t i = 0; i < count; i++)
		ask.addr[i] = lines[i].addr;
	int rc = ask_about(p, 0, READ_LINES, &ask, LINES_ASK(count), fd, shown);
	struct answer a = {.from = p->now};
	close(fd);
	if (rc < 0)
		stop(p->now);
	else
		rc = take_answers(p, xsp_now_ns() + (uint64_t)limit_ms * 1000000U, &a, 1, 0, NULL);
	if (rc == 0)
		take_told_lines(&a, lines, count);
	free(a.data);
}

static int ask_module(struct xsp_planner *p, uint32_t part, uint32_t parts, int fd,
		      const char *shown)
{
	const struct module_ask ask = {.costs = p->plan->costs,
				       .part = part,
				       .parts = parts,
				       .exit_by_site = p->plan->exit_by_site};

	return ask_about(p, part, READ_MODULE, &ask, sizeof(ask), fd, shown);
}

/* How many processes are worth their start. */
static uint32_t parts_of(int fd)
{
	cpu_set_t cpus;
	struct stat st;

	if (fstat(fd, &st) != 0 || st.st_size < LARGE ||
	    sched_getaffinity(0, sizeof(cpus), &cpus) != 0)
		return 1;
	const int n = CPU_COUNT(&cpus);
	return n <= 1 ? 1 : n <= HELPERS ? (uint32_t)n : HELPERS + 1;
}

/* The sites of a part, as a helper has chosen them. Not the same functions: it has read another file. */
static int join_part(struct xsp_planned_module *m, struct xsp_planned_module *other, uint32_t part,
		     uint32_t parts)
{
	const size_t from = xsp_plan_part(m->count, part, parts),
		     to = xsp_plan_part(m->count, part + 1, parts);

	if (other->count != to - from || other->wanted != m->wanted)
		return -ESTALE;
	for (size_t i = from; i < to; i++) {
		struct xsp_planned_probe *mine = &m->probes[i], *theirs = &other->probes[i - from];
		if (mine->probe.offset != theirs->probe.offset ||
		    mine->probe.action != theirs->probe.action)
			return -ESTALE;
		const struct xsp_planned_probe empty = *mine;
		mine->error = theirs->error;
		mine->by_return = theirs->by_return;
		mine->place = theirs->place;
		mine->note = theirs->note;
		theirs->place = empty.place;
		theirs->note = empty.note;
	}
	if (m->list.note[0] == '\0')
		memcpy(m->list.note, other->list.note, sizeof(m->list.note));
	return 0;
}

/* An answer is large, and gone when it has been read. */
static int read_answer(struct answer *a, struct xsp_planned_module *m)
{
	int rc = xsp_wire_get(a->data, a->size, m);

	free(a->data);
	a->data = NULL;
	return rc;
}

/* Of the first all, of the others the sites that they have chosen. */
static int join(struct xsp_planned_module *m, struct answer *a, uint32_t part, uint32_t parts,
		struct xsp_error *err)
{
	struct xsp_planned_module other = {.shown = NULL};

	if (part == 0)
		return read_answer(a, m);
	int rc = read_answer(a, &other);
	if (rc == 0)
		rc = join_part(m, &other, part, parts);
	xsp_planned_module_clear(&other);
	return rc == -ESTALE
		       ? xsp_error_set(err, rc, XSP_STATUS_TARGET, "it changes while it is read")
		       : rc;
}

int xsp_planner_read(struct xsp_planner *p, int fd, struct xsp_planned_module *m,
		     struct xsp_error *err)
{
	const uint32_t parts = parts_of(fd);
	const uint64_t deadline_ns = xsp_now_ns() + WALL_S * 1000000000ULL;
	struct answer a[HELPERS + 1] = {0};
	uint32_t asked = 0;
	int rc = 0;

	for (; asked < parts && rc == 0; asked++) {
		rc = ask_module(p, asked, parts, fd, m->shown);
		a[asked].from = p->now;
	}
	close(fd);
	for (uint32_t i = 0; rc < 0 && i < asked; i++)
		stop(a[i].from);
	for (uint32_t i = 0; i < parts && rc == 0; i++) {
		rc = take_answers(p, deadline_ns, a, parts, i, err);
		if (rc == 0)
			rc = join(m, &a[i], i, parts, err);
		/* what else comes is of this file */
		for (uint32_t k = 0; rc < 0 && k < parts; k++)
			if (rc == -EPROTO || !a[k].whole)
				stop(a[k].from);
	}
	for (uint32_t i = 0; i < parts; i++)
		free(a[i].data);
	return rc == 0 ? 0 : explain(rc, m->shown, err);
}
