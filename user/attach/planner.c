/* SPDX-License-Identifier: BSD-2-Clause */
/* planner.c - starts planners and talks to them. */
#include "attach/planner_private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "planner/hint.h"

#define WAIT_MS 20
#define ANSWER_MAX (128ULL << 20) /* node has 80,000 functions: 55 MB */

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

void xsp_planner_stop(struct xsp_planner *p, struct process *c)
{
	if (c->pid <= 0)
		return;
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
	close(c->socket);
	*c = (struct process){0};
	for (size_t i = 0; i < p->look_count; i++)
		if (p->looks[i].by == c)
			p->looks[i].by = NULL;
}

void xsp_planner_stop_lookers(struct xsp_planner *p)
{
	for (size_t i = 0; i < PROCESSES; i++)
		if (p->processes[i].looks > 0)
			xsp_planner_stop(p, &p->processes[i]);
}

void xsp_planner_forget_looks(struct xsp_planner *p)
{
	xsp_planner_stop_lookers(p); /* nobody waits for their answers */
	while (p->look_count > 0)
		free(p->looks[--p->look_count].display_path);
}

void xsp_planner_free(struct xsp_planner *p)
{
	if (p == NULL)
		return;
	for (size_t i = 0; i < PROCESSES; i++)
		xsp_planner_stop(p, &p->processes[i]);
	xsp_planner_forget_looks(p);
	free(p->looks);
	free(p->question.answer.data);
	free(p->question.path);
	free(p->in);
	free(p);
}

int xsp_planner_start_one(struct xsp_planner *p, struct process *c)
{
	int sockets[2];
	int rc = xsp_message_pair(sockets);

	if (rc < 0)
		return rc;
	pid_t pid = fork();
	if (pid == 0)
		xsp_planner_serve(p->plan, sockets[1], p->in);
	rc = pid < 0 ? -errno : 0;
	close(sockets[1]);
	if (rc < 0) {
		close(sockets[0]);
		return rc;
	}
	/* it may not read what we send; never wait for it */
	fcntl(sockets[0], F_SETFL, O_NONBLOCK);
	*c = (struct process){.pid = pid, .socket = sockets[0], .fresh = true};
	return 0;
}

struct process *xsp_planner_helper(struct xsp_planner *p, uint32_t number)
{
	return &p->processes[READERS + number];
}

uint32_t xsp_planner_helpers(void)
{
	cpu_set_t cpus;
	const int n = sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? CPU_COUNT(&cpus) - 1 : 0;

	return n <= 0 ? 0 : n < HELPERS ? (uint32_t)n : HELPERS;
}

int xsp_planner_start(struct xsp_planner *p)
{
	int rc = xsp_planner_start_one(p, &p->processes[0]);

	for (uint32_t i = 0; rc == 0 && i < xsp_planner_helpers(); i++)
		rc = xsp_planner_start_one(p, xsp_planner_helper(p, i));
	return rc;
}

int xsp_planner_owner(int fd, struct owner *out)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return -errno;
	*out = (struct owner){(st.st_mode & S_IWOTH) != 0 ? ANYBODY : st.st_uid, st.st_dev};
	return 0;
}

bool xsp_planner_may_read(const struct process *c, const struct owner *owner)
{
	return c->pid > 0 &&
	       (c->fresh || (c->owner.uid == owner->uid && c->owner.device == owner->device));
}

struct process *xsp_planner_process_for(struct xsp_planner *p, const struct owner *owner)
{
	struct process *unused = NULL;

	for (size_t i = 0; i < READERS; i++) {
		if (xsp_planner_may_read(&p->processes[i], owner))
			return &p->processes[i];
		if (p->processes[i].pid == 0)
			unused = &p->processes[i];
	}
	return unused;
}

int xsp_planner_choose(struct xsp_planner *p, int fd, uint32_t number)
{
	struct owner owner;
	int rc = xsp_planner_owner(fd, &owner);

	if (rc < 0)
		return rc;
	p->now =
		number > 0 ? xsp_planner_helper(p, number - 1) : xsp_planner_process_for(p, &owner);
	if (p->now == NULL)
		p->now = &p->processes[p->next++ % READERS];
	if (!xsp_planner_may_read(p->now, &owner)) {
		xsp_planner_stop(p, p->now);
		rc = xsp_planner_start_one(p, p->now);
	}
	p->now->fresh = false;
	p->now->owner = owner;
	return rc;
}

/* Which process has sent a message; -1: none. Receives only the first bytes of later answers: two whole ones would
 * take twice the memory. */
static int poll_answers(const struct answer *a, size_t count, size_t wanted)
{
	struct pollfd fds[PROCESSES];

	for (size_t i = 0; i < count; i++) {
		const bool skipped = a[i].whole || (i > wanted && a[i].size > 0);
		fds[i] = (struct pollfd){.fd = skipped ? -1 : a[i].from->socket, .events = POLLIN};
	}
	if (poll(fds, count, WAIT_MS) < 0 && errno != EINTR)
		return -EPIPE;
	for (size_t i = 0; i < count; i++)
		if (fds[i].revents != 0)
			return (int)i;
	return -EINTR;
}

int xsp_planner_wait(struct xsp_planner *p, const struct answer *a, size_t count, size_t wanted,
		     uint64_t deadline_ns)
{
	/* check for each message: they may never end */
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
	char wanted[XSP_WANTED_SIZE] = "";
	size_t length = p->in->head.size;

	memcpy(wanted, p->in->body, length < sizeof(wanted) ? length : sizeof(wanted) - 1);
	int fd = wanted[0] == '/'
			 ? p->opener->debug_link(p->opener, p->asked_pid, p->asked_path, wanted + 1)
		 : xsp_opener_lacks_debug_file(wanted) ? -ENOENT
						       : p->opener->debug_file(p->opener, wanted);
	struct xsp_message m = {.op = XSP_HAVE_DEBUG_FILE, .result = fd < 0 ? fd : 0};
	int rc = xsp_message_send(p->now->socket, &m, NULL, &fd, fd < 0 ? 0 : 1);
	xsp_close(fd);
	return rc == -EAGAIN ? -EPROTO : rc; /* it asks, but does not read the answers */
}

static int receive_part(const struct xsp_planner *p, struct answer *a)
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

/* Every failure becomes -ENOEXEC: an error of the planner's memory is none of ours. */
static int receive_failure(const struct xsp_planner *p, struct answer *a, struct xsp_error *err)
{
	const struct xsp_error *failure = (const void *)p->in->body;

	if (p->in->head.size != sizeof(*failure))
		return -EPROTO;
	a->no = true;
	return xsp_error_set(err, -ENOEXEC, XSP_STATUS_TARGET, "%.*s",
			     (int)sizeof(failure->text) - 1, failure->text);
}

int xsp_planner_take(struct xsp_planner *p, struct answer *a, struct xsp_error *err)
{
	switch (p->in->head.op) {
	case XSP_WANT_DEBUG_FILE:
		return give_debug_file(p);
	case XSP_PART:
		return receive_part(p, a);
	case XSP_DONE:
		a->whole = true;
		a->result = p->in->head.result;
		return receive_part(p, a);
	case XSP_FAILED:
		a->whole = true;
		return receive_failure(p, a, err);
	default:
		return -EPROTO;
	}
}

/* The process has closed its socket: was it killed? xsp_planner_stop() will reap it. */
static bool was_killed(const struct process *c)
{
	siginfo_t how = {0};

	if (c->pid <= 0)
		return false;
	kill(c->pid, SIGKILL); /* it may have closed the socket and live on */
	return waitid(P_PID, (id_t)c->pid, &how, WEXITED | WNOWAIT) == 0 &&
	       how.si_code == CLD_KILLED && how.si_status == SIGKILL;
}

int xsp_planner_receive(struct xsp_planner *p, uint64_t deadline_ns, struct answer *a, size_t count,
			size_t wanted, struct xsp_error *err)
{
	int rc = 0;

	while (rc == 0 && !a[wanted].whole) {
		int i = xsp_planner_wait(p, a, count, wanted, deadline_ns);
		rc = i < 0 ? i : xsp_planner_take(p, &a[i], err);
		if (rc < 0 && i >= 0 && !a[i].no)
			a[i].whole = false;
	}
	if (rc == -EPIPE && was_killed(p->now))
		rc = -EOWNERDEAD;
	for (size_t i = 0; rc < 0 && i < count; i++)
		if (!a[i].whole)
			xsp_planner_stop(p, a[i].from);
	return rc;
}

int xsp_planner_explain(int code, const char *display_path, struct xsp_error *err)
{
	switch (code) {
	case -EINTR:
		return xsp_error_set(err, code, XSP_STATUS_FAILED, "interrupted");
	case -ETIME:
		return xsp_error_set(err, code, XSP_STATUS_TARGET,
				     "reading %.300s took more than %u s", display_path, WALL_S);
	case -EFBIG:
		return xsp_error_set(
			err, code, XSP_STATUS_TARGET,
			"what matches in %.300s takes more than %llu MiB: give a narrower -e",
			display_path, (unsigned long long)(ANSWER_MAX >> 20));
	case -EOWNERDEAD:
		return xsp_error_set(
			err, -EPROTO, XSP_STATUS_TARGET,
			"%.300s was not read: the process that reads files for xsptrace was killed (out of memory, or by somebody)",
			display_path);
	case -EPIPE:
	case -EPROTO:
		return xsp_error_set(
			err, -EPROTO, XSP_STATUS_TARGET,
			"the process that reads files for xsptrace died of %.300s: please report the file",
			display_path);
	default:
		return code;
	}
}

int xsp_planner_send(struct xsp_planner *p, const struct process *c, uint32_t op, const void *head,
		     size_t size, int fd, const char *display_path)
{
	const size_t length = strlen(display_path);
	struct xsp_message ask = {.op = op, .size = (uint32_t)(size + length)};

	if (size + length > sizeof(p->in->body))
		return -ENAMETOOLONG;
	memcpy(p->in->body, head, size);
	memcpy(p->in->body + size, display_path, length);
	return xsp_message_send(c->socket, &ask, p->in->body, &fd, 1);
}

/* Asks one process about the file at `fd`, which it takes over. The caller frees a->data. 0 or a negative errno. */
static int ask_one(struct xsp_planner *p, uint32_t op, const void *head, size_t size, int fd,
		   const char *display_path, unsigned limit_ms, struct answer *a)
{
	int rc = xsp_planner_choose(p, fd, 0);

	p->asked_path = display_path;
	if (rc == 0)
		rc = xsp_planner_send(p, p->now, op, head, size, fd, display_path);
	*a = (struct answer){.from = p->now};
	close(fd);
	if (rc < 0)
		xsp_planner_stop(p, p->now);
	else
		rc = xsp_planner_receive(p, xsp_now_ns() + (uint64_t)limit_ms * 1000000U, a, 1, 0,
					 NULL);
	return rc;
}

void xsp_planner_hint(struct xsp_planner *p, int fd, const char *display_path,
		      const struct xsp_hint_ask *ask, unsigned limit_ms, char *text)
{
	struct answer a;
	int rc = ask_one(p, XSP_READ_HINT, ask, sizeof(*ask), fd, display_path, limit_ms, &a);

	if (rc == 0 && a.size > 0 && a.size < XSP_HINT_SIZE)
		memcpy(text, a.data, a.size);
	text[rc == 0 && a.size < XSP_HINT_SIZE ? a.size : 0] = '\0';
	free(a.data);
}
