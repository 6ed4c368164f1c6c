/* SPDX-License-Identifier: BSD-2-Clause */
/* planner.c - asking the planners. */
#include "attach/planner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/hint.h"
#include "base/clock.h"
#include "base/grow.h"
#include "planner/requests.h"
#include "planner/wire.h"
#include "target/lines.h"

#define READERS 4 /* owners whose files are read in turn, without a fork each time */
#define HELPERS 3 /* that choose sites beside the first, in files that hold many functions */
#define PROCESSES (READERS + HELPERS)
#define LARGE (1U << 20) /* bytes of such a file */
#define HUGE_FILE (16U << 20) /* ... that all are to know before it is known to have many */
#define MANY 256 /* such functions */
#define WALL_S 60U /* of one */
#define LOOKS_S 10U /* of all that are looked at ahead, once they are waited for */
#define LOOKS_MAX 4096U
#define WAIT_MS 20
#define ANSWER_MAX (128ULL << 20) /* node has 80,000 functions, 55 MB */

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
	size_t looks; /* that it has not answered */
};

/* What a process was asked to look at. */
struct look {
	uint64_t dev, inode;
	uint32_t handle;
	struct process *by; /* NULL: it has been ended */
	char *display_path;
	bool answered, failed;
	struct xsp_looked answer;
};

struct xsp_planner {
	const struct xsp_plan *plan;
	const struct xsp_opener *opener;
	bool (*stopped)(void *ctx);
	void *stopped_ctx;
	struct process processes[PROCESSES], *now; /* READERS, behind them HELPERS */
	size_t next; /* the one to be replaced */
	struct look *looks; /* in the order in which they were asked for */
	size_t look_count, look_room;
	struct xsp_parcel *in;
};

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

static void stop(struct xsp_planner *p, struct process *c)
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

static void stop_lookers(struct xsp_planner *p)
{
	for (size_t i = 0; i < PROCESSES; i++)
		if (p->processes[i].looks > 0)
			stop(p, &p->processes[i]);
}

void xsp_planner_forget_looks(struct xsp_planner *p)
{
	stop_lookers(p); /* nobody waits for their answers */
	while (p->look_count > 0)
		free(p->looks[--p->look_count].display_path);
}

void xsp_planner_free(struct xsp_planner *p)
{
	if (p == NULL)
		return;
	for (size_t i = 0; i < PROCESSES; i++)
		stop(p, &p->processes[i]);
	xsp_planner_forget_looks(p);
	free(p->looks);
	free(p->in);
	free(p);
}

static int start(struct xsp_planner *p, struct process *c)
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
	/* it need not read what it is sent, and is not waited for */
	fcntl(sockets[0], F_SETFL, O_NONBLOCK);
	*c = (struct process){.pid = pid, .socket = sockets[0], .fresh = true};
	return 0;
}

static struct process *helper(struct xsp_planner *p, uint32_t number)
{
	return &p->processes[READERS + number];
}

/* Helpers that are worth their start. */
static uint32_t helpers(void)
{
	cpu_set_t cpus;
	const int n = sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? CPU_COUNT(&cpus) - 1 : 0;

	return n <= 0 ? 0 : n < HELPERS ? (uint32_t)n : HELPERS;
}

int xsp_planner_start(struct xsp_planner *p)
{
	int rc = start(p, &p->processes[0]);

	for (uint32_t i = 0; rc == 0 && i < helpers(); i++)
		rc = start(p, helper(p, i));
	return rc;
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

/* One that has read its owner's files, or one that may be started for them; NULL: all have others'. */
static struct process *process_for(struct xsp_planner *p, const struct owner *owner)
{
	struct process *unused = NULL;

	for (size_t i = 0; i < READERS; i++) {
		if (may_read(&p->processes[i], owner))
			return &p->processes[i];
		if (p->processes[i].pid == 0)
			unused = &p->processes[i];
	}
	return unused;
}

/* The process that reads the file. helper 0: the first, else the one of that number beside it. */
static int choose(struct xsp_planner *p, int fd, uint32_t number)
{
	struct owner owner;
	int rc = owner_of(fd, &owner);

	if (rc < 0)
		return rc;
	p->now = number > 0 ? helper(p, number - 1) : process_for(p, &owner);
	if (p->now == NULL)
		p->now = &p->processes[p->next++ % READERS];
	if (!may_read(p->now, &owner)) {
		stop(p, p->now);
		rc = start(p, p->now);
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
	struct xsp_message m = {.op = XSP_HAVE_DEBUG_FILE, .result = fd < 0 ? fd : 0};
	int rc = xsp_message_send(p->now->socket, &m, NULL, &fd, fd < 0 ? 0 : 1);
	if (fd >= 0)
		close(fd);
	return rc == -EAGAIN ? -EPROTO : rc; /* it asks, and does not read the answers */
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

/* Whatever it was: to the caller, errors of memory or processes are its own. */
static int receive_failure(const struct xsp_planner *p, struct answer *a, struct xsp_error *err)
{
	const struct xsp_error *failure = (const void *)p->in->body;

	if (p->in->head.size != sizeof(*failure))
		return -EPROTO;
	a->no = true;
	return xsp_error_set(err, -ENOEXEC, XSP_STATUS_TARGET, "%.*s",
			     (int)sizeof(failure->text) - 1, failure->text);
}

static int receive_message(struct xsp_planner *p, struct answer *a, struct xsp_error *err)
{
	switch (p->in->head.op) {
	case XSP_WANT_DEBUG_FILE:
		return give_debug_file(p);
	case XSP_PART:
		return receive_part(p, a);
	case XSP_DONE:
		a->whole = true;
		return receive_part(p, a);
	case XSP_FAILED:
		a->whole = true;
		return receive_failure(p, a, err);
	default:
		return -EPROTO;
	}
}

/* One whose socket is closed: did a SIGKILL end it? It is left for stop(). */
static bool was_killed(const struct process *c)
{
	siginfo_t how = {0};

	if (c->pid <= 0)
		return false;
	kill(c->pid, SIGKILL); /* it may have closed it and live */
	return waitid(P_PID, (id_t)c->pid, &how, WEXITED | WNOWAIT) == 0 &&
	       how.si_code == CLD_KILLED && how.si_status == SIGKILL;
}

/* The one that is wanted up to its end. After an error those whose answers are not whole are ended: the next module gets new
 * ones. */
static int receive_answers(struct xsp_planner *p, uint64_t deadline_ns, struct answer *a,
			   size_t count, size_t wanted, struct xsp_error *err)
{
	int rc = 0;

	while (rc == 0 && !a[wanted].whole) {
		int i = wait_for_message(p, a, count, wanted, deadline_ns);
		rc = i < 0 ? i : receive_message(p, &a[i], err);
		if (rc < 0 && i >= 0 && !a[i].no)
			a[i].whole = false;
	}
	if (rc == -EPIPE && was_killed(p->now))
		rc = -EOWNERDEAD;
	for (size_t i = 0; rc < 0 && i < count; i++)
		if (!a[i].whole)
			stop(p, a[i].from);
	return rc;
}

static int explain(int code, const char *display_path, struct xsp_error *err)
{
	switch (code) {
	case -EINTR:
		return xsp_error_set(err, code, XSP_STATUS_FAILED, "interrupted");
	case -ETIME:
		return xsp_error_set(err, code, XSP_STATUS_TARGET,
				     "reading %.300s took more than %u s", display_path, WALL_S);
	case -EFBIG:
		return xsp_error_set(err, code, XSP_STATUS_TARGET,
				     "what matches in %.300s takes more than %llu MiB: give a "
				     "narrower -e",
				     display_path, (unsigned long long)(ANSWER_MAX >> 20));
	case -EOWNERDEAD:
		return xsp_error_set(err, -EPROTO, XSP_STATUS_TARGET,
				     "%.300s was not read: the process that reads files for "
				     "xsptrace was killed (out of memory, or by somebody)",
				     display_path);
	case -EPIPE:
	case -EPROTO:
		return xsp_error_set(err, -EPROTO, XSP_STATUS_TARGET,
				     "the process that reads files for xsptrace died of %.300s: "
				     "please report the file",
				     display_path);
	default:
		return code;
	}
}

/* A request with a file and its path. */
static int send_about(struct xsp_planner *p, const struct process *c, uint32_t op, const void *head,
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

/* What one process answers about the file at `fd` (taken over); a->data is to be freed. 0 or a negative errno. */
static int ask_one(struct xsp_planner *p, uint32_t op, const void *head, size_t size, int fd,
		   const char *display_path, unsigned limit_ms, struct answer *a)
{
	int rc = choose(p, fd, 0);

	if (rc == 0)
		rc = send_about(p, p->now, op, head, size, fd, display_path);
	*a = (struct answer){.from = p->now};
	close(fd);
	if (rc < 0)
		stop(p, p->now);
	else
		rc = receive_answers(p, xsp_now_ns() + (uint64_t)limit_ms * 1000000U, a, 1, 0,
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

/* "LINE PATH\n" each, "0 \n" where it is not known. */
static void parse_lines(const struct answer *a, struct xsp_code_line *lines, size_t count)
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

void xsp_planner_lines(struct xsp_planner *p, int fd, const char *display_path,
		       struct xsp_code_line *lines, size_t count, unsigned limit_ms)
{
	struct xsp_lines_ask ask = {.count = (uint32_t)count, .limit_ms = limit_ms};

	for (size_t i = 0; i < count; i++)
		ask.addr[i] = lines[i].addr;
	struct answer a;
	int rc = ask_one(p, XSP_READ_LINES, &ask, XSP_LINES_ASK(count), fd, display_path, limit_ms,
			 &a);
	if (rc == 0)
		parse_lines(&a, lines, count);
	free(a.data);
}

static off_t size_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 ? st.st_size : 0;
}

/* ---- looking ahead ---- */

/* The number of what that process (NULL: any) was asked to look at; 0: not that file. */
static uint32_t find_look(const struct xsp_planner *p, uint64_t dev, uint64_t inode,
			  const struct process *by)
{
	for (size_t i = 0; i < p->look_count; i++)
		if (p->looks[i].inode == inode && p->looks[i].dev == dev &&
		    (by == NULL || p->looks[i].by == by))
			return (uint32_t)i + 1;
	return 0;
}

bool xsp_planner_is_asked(const struct xsp_planner *p, const struct xsp_mapped_file *f)
{
	return find_look(p, f->dev, f->inode, NULL) != 0;
}

static int look_by(struct xsp_planner *p, struct process *c, int fd, const struct look *l,
		   const char *display_path)
{
	const struct xsp_module_ask ask = {.look = (uint32_t)p->look_count + 1};
	int rc = xsp_grow(&p->looks, &p->look_room, p->look_count + 1);

	if (rc == 0)
		rc = send_about(p, c, XSP_LOOK_AT_MODULE, &ask, sizeof(ask), fd, display_path);
	if (rc < 0)
		return rc;
	p->looks[p->look_count] = *l;
	p->looks[p->look_count].display_path = strdup(display_path);
	p->looks[p->look_count++].by = c;
	c->looks++;
	c->fresh = false;
	return 0;
}

/* Those in which all will choose sites by all who may; others by who has least to do. */
static int look(struct xsp_planner *p, int fd, const struct look *l, const char *display_path)
{
	const bool large = size_of(fd) >= HUGE_FILE;
	struct owner owner;
	int rc = owner_of(fd, &owner);
	struct process *least = rc < 0 ? NULL : process_for(p, &owner);

	if (least == NULL) /* nobody is ended for it */
		return rc < 0 ? rc : -EAGAIN;
	if (least->pid == 0)
		rc = start(p, least);
	if (rc == 0 && large)
		rc = look_by(p, least, fd, l, display_path);
	least->owner = owner;
	for (uint32_t i = 0; rc == 0 && i < HELPERS; i++) {
		struct process *other = helper(p, i);
		if (!may_read(other, &owner))
			continue;
		if (large)
			rc = look_by(p, other, fd, l, display_path);
		else if (other->looks < least->looks)
			least = other;
		other->owner = owner;
	}
	if (rc == 0 && !large)
		rc = look_by(p, least, fd, l, display_path);
	return rc;
}

bool xsp_planner_look(struct xsp_planner *p, int fd, const struct xsp_mapped_file *f,
		      uint32_t handle)
{
	const struct look l = {.dev = f->dev, .inode = f->inode, .handle = handle};

	look(p, fd, &l, f->display_path);
	close(fd);
	return p->look_count < LOOKS_MAX;
}

/* They are answered in the order in which they were asked for. */
static int receive_look(struct xsp_planner *p, struct process *by)
{
	const struct xsp_message *m = &p->in->head;
	size_t i = 0;

	while (i < p->look_count && (p->looks[i].by != by || p->looks[i].answered))
		i++;
	if (i == p->look_count || (m->op != XSP_FAILED && m->op != XSP_LOOKED))
		return -EPROTO;
	struct look *l = &p->looks[i];
	l->answered = true;
	l->failed = m->op == XSP_FAILED;
	by->looks--;
	if (l->failed)
		return 0;
	if (m->size < offsetof(struct xsp_looked, build_id) || m->size >= sizeof(l->answer))
		return -EPROTO;
	memcpy(&l->answer, p->in->body, m->size); /* the rest is zeros: the text ends */
	return 0;
}

/* Those who do not answer are ended. */
static void receive_looks(struct xsp_planner *p)
{
	const uint64_t deadline_ns = xsp_now_ns() + LOOKS_S * 1000000000ULL;
	size_t next = 0; /* the one that is waited for */
	int rc = 0;

	while (rc == 0) {
		struct answer a[PROCESSES] = {0};
		size_t n = 0;
		for (size_t i = 0; i < PROCESSES; i++)
			if (p->processes[i].looks > 0)
				a[n++].from = &p->processes[i];
		if (n == 0)
			return;
		while (next + 1 < p->look_count && p->looks[next].answered)
			next++;
		if (p->looks[next].display_path != NULL)
			xsp_plan_progress(p->plan, p->looks[next].display_path, "reading");
		int i = wait_for_message(p, a, n, n - 1, deadline_ns);
		rc = i < 0 ? i : receive_look(p, a[i].from);
	}
	stop_lookers(p);
}

/* NULL: nobody has, or the symbols may be in another file. */
static const struct xsp_looked *looked_at(const struct xsp_planner *p, uint64_t dev, uint64_t inode)
{
	const uint32_t number = find_look(p, dev, inode, NULL);
	const struct look *l = number > 0 ? &p->looks[number - 1] : NULL;

	return l != NULL && l->answered && !l->failed &&
			       (l->answer.build_id[0] == '\0' ||
				xsp_opener_lacks_debug_file(l->answer.build_id))
		       ? &l->answer
		       : NULL;
}

bool xsp_planner_knows_empty(struct xsp_planner *p, const struct xsp_mapped_file *f,
			     uint32_t *handle)
{
	receive_looks(p);
	const struct xsp_looked *l = looked_at(p, f->dev, f->inode);
	if (l == NULL || !l->empty)
		return false;
	*handle = p->looks[find_look(p, f->dev, f->inode, NULL) - 1].handle;
	return true;
}

/* ---- reading ---- */

static void copy_look(const struct xsp_planner *p, struct xsp_planned_module *m)
{
	const struct xsp_looked *l = looked_at(p, m->dev, m->inode);

	m->symbols = l->symbols;
	m->is_static = l->is_static;
}

/* How many processes are worth their start. */
static uint32_t parts_of(const struct xsp_planner *p, int fd, const struct xsp_planned_module *m)
{
	const struct xsp_looked *l = looked_at(p, m->dev, m->inode);

	return size_of(fd) < LARGE || (l != NULL && l->probes < MANY) ? 1 : 1 + helpers();
}

/* By who has looked at it, if somebody has. */
static int ask_module(struct xsp_planner *p, uint32_t part, uint32_t parts, int fd,
		      const struct xsp_planned_module *m)
{
	struct xsp_module_ask ask = {.costs = p->plan->costs,
				     .part = part,
				     .parts = parts,
				     .exit_by_site = p->plan->exit_by_site};
	const uint32_t known = find_look(p, m->dev, m->inode, NULL);
	const struct process *by = known > 0 ? p->looks[known - 1].by : NULL;
	uint32_t number = part;

	if (parts == 1 && by != NULL && by >= helper(p, 0))
		number = (uint32_t)(by - helper(p, 0)) + 1;
	for (bool again = false;; again = true) {
		int rc = choose(p, fd, number);
		ask.look = find_look(p, m->dev, m->inode, p->now);
		ask.forget = looked_at(p, m->dev, m->inode) == NULL;
		if (rc == 0)
			rc = send_about(p, p->now, XSP_READ_MODULE, &ask, sizeof(ask), fd,
					m->display_path);
		if (rc != -EPIPE || again)
			return rc == -EPIPE ? -EOWNERDEAD : rc;
		stop(p, p->now); /* it has died of something else */
	}
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
	struct xsp_planned_module other = {.display_path = NULL};

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

/* By one process, or by several in parts. */
static int read_parts(struct xsp_planner *p, int fd, struct xsp_planned_module *m,
		      struct xsp_error *err)
{
	const uint32_t parts = parts_of(p, fd, m);
	const uint64_t deadline_ns = xsp_now_ns() + WALL_S * 1000000000ULL;
	struct answer a[HELPERS + 1] = {0};
	uint32_t asked = 0;
	int rc = 0;

	for (; asked < parts && rc == 0; asked++) {
		rc = ask_module(p, asked, parts, fd, m);
		a[asked].from = p->now;
	}
	for (uint32_t i = 0; rc < 0 && i < asked; i++)
		stop(p, a[i].from);
	for (uint32_t i = 0; i < parts && rc == 0; i++) {
		rc = receive_answers(p, deadline_ns, a, parts, i, err);
		if (rc == 0)
			rc = join(m, &a[i], i, parts, err);
		/* what else comes is of this file */
		for (uint32_t k = 0; rc < 0 && k < parts; k++)
			if (rc == -EPROTO || !a[k].whole)
				stop(p, a[k].from);
	}
	for (uint32_t i = 0; i < parts; i++)
		free(a[i].data);
	return rc;
}

int xsp_planner_read(struct xsp_planner *p, int fd, struct xsp_planned_module *m,
		     struct xsp_error *err)
{
	const bool looked = p->look_count > 0;

	if (fd < 0) {
		copy_look(p, m);
		return 0;
	}
	int rc = read_parts(p, fd, m, err);
	if (looked && (rc == -EPIPE || rc == -EPROTO || rc == -EOWNERDEAD)) {
		/* what they keep of another file may be to blame */
		xsp_planned_module_empty(m);
		for (size_t i = 0; i < PROCESSES; i++)
			stop(p, &p->processes[i]);
		rc = read_parts(p, fd, m, err);
	}
	close(fd);
	return rc == 0 ? 0 : explain(rc, m->display_path, err);
}
