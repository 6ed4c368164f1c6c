/* SPDX-License-Identifier: BSD-2-Clause */
/* planner_read.c - looks at files ahead, and reads modules, in one planner or in parts. */
#include "attach/planner_private.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rows/grow.h"
#include "planner/wire.h"

#define LARGE (1U << 20) /* a file of this size may be read in parts */
#define HUGE_FILE (16U << 20) /* all processes look at such a file before its probes are counted */
#define MANY 256 /* probes that are worth reading a file in parts */
#define LOOKS_S 10U /* for all looks, from the first wait on */
#define LOOKS_MAX 4096U

static off_t size_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 ? st.st_size : 0;
}

/* ---- looking ahead ---- */

/* The number of this process's (NULL: any) look at the file; 0: it has none. */
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
		rc = xsp_planner_send(p, c, XSP_LOOK_AT_MODULE, &ask, sizeof(ask), fd,
				      display_path);
	if (rc < 0)
		return rc;
	p->looks[p->look_count] = *l;
	p->looks[p->look_count].display_path = strdup(display_path);
	p->looks[p->look_count++].by = c;
	c->looks++;
	c->fresh = false;
	return 0;
}

/* Large files are looked at by every process that may read them, as all will choose sites there; others by the least
 * busy one. */
static int look(struct xsp_planner *p, int fd, const struct look *l, const char *display_path)
{
	const bool large = size_of(fd) >= HUGE_FILE;
	struct owner owner;
	int rc = xsp_planner_owner(fd, &owner);
	struct process *least = rc < 0 ? NULL : xsp_planner_process_for(p, &owner);

	if (least == NULL) /* no process is ended for a look */
		return rc < 0 ? rc : -EAGAIN;
	if (least->pid == 0)
		rc = xsp_planner_start_one(p, least);
	if (rc == 0 && large)
		rc = look_by(p, least, fd, l, display_path);
	least->owner = owner;
	for (uint32_t i = 0; rc == 0 && i < HELPERS; i++) {
		struct process *other = xsp_planner_helper(p, i);
		if (!xsp_planner_may_read(other, &owner))
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

/* A process answers in the order of its requests. */
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
	if (m->size < offsetof(struct xsp_looked, wanted) || m->size >= sizeof(l->answer))
		return -EPROTO;
	memcpy(&l->answer, p->in->body, m->size); /* the rest is zero, so the text is terminated */
	return 0;
}

/* Ends processes that do not answer in time. */
static void receive_looks(struct xsp_planner *p)
{
	const uint64_t now_ns = xsp_now_ns(), by_ns = p->plan->read_by_ns;
	/* half of the time that is left is for reading what they find */
	const uint64_t left_ns = by_ns > now_ns ? (by_ns - now_ns) / 2
				 : by_ns != 0	? 0
						: UINT64_MAX;
	const uint64_t most_ns = LOOKS_S * 1000000000ULL;
	const uint64_t deadline_ns = now_ns + (left_ns < most_ns ? left_ns : most_ns);
	size_t next = 0; /* the look that is waited for */
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
		int i = xsp_planner_wait(p, a, n, n - 1, deadline_ns);
		rc = i < 0 ? i : receive_look(p, a[i].from);
	}
	xsp_planner_stop_lookers(p);
}

/* Does neither of the debug files exist that it wanted? */
static bool lacks_debug_file(const struct look *l)
{
	char build_id[XSP_WANTED_SIZE];

	memcpy(build_id, l->answer.wanted, sizeof(build_id));
	char *link = strchr(build_id, '/');
	if (link != NULL)
		*link = '\0';
	return (build_id[0] == '\0' || xsp_opener_lacks_debug_file(build_id)) &&
	       (link == NULL || xsp_opener_lacks_debug_link(l->display_path, l->inode, link + 1));
}

/* NULL: no look, or its symbols may be in a separate debug file. */
static const struct xsp_looked *looked_at(const struct xsp_planner *p, uint64_t dev, uint64_t inode)
{
	const uint32_t number = find_look(p, dev, inode, NULL);
	const struct look *l = number > 0 ? &p->looks[number - 1] : NULL;

	return l != NULL && l->answered && !l->failed && lacks_debug_file(l) ? &l->answer : NULL;
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
	m->lacks = l->lacks < XSP_LACKS ? l->lacks : XSP_LACKS_NOTHING;
}

/* In how many parts the file is worth reading. */
static uint32_t parts_of(const struct xsp_planner *p, int fd, const struct xsp_planned_module *m)
{
	const struct xsp_looked *l = looked_at(p, m->dev, m->inode);

	return size_of(fd) < LARGE || (l != NULL && l->probes < MANY) ? 1
								      : 1 + xsp_planner_helpers();
}

/* Prefers the process that has looked at the file. */
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

	if (parts == 1 && by != NULL && by >= xsp_planner_helper(p, 0))
		number = (uint32_t)(by - xsp_planner_helper(p, 0)) + 1;
	for (bool again = false;; again = true) {
		int rc = xsp_planner_choose(p, fd, number);
		ask.look = find_look(p, m->dev, m->inode, p->now);
		ask.forget = looked_at(p, m->dev, m->inode) == NULL;
		if (rc == 0)
			rc = xsp_planner_send(p, p->now, XSP_READ_MODULE, &ask, sizeof(ask), fd,
					      m->display_path);
		if (rc != -EPIPE || again)
			return rc == -EPIPE ? -EOWNERDEAD : rc;
		xsp_planner_stop(p, p->now); /* it has died of another file */
	}
}

/* Takes over the sites that a helper has chosen. -ESTALE: the helper found other functions, so the file has changed. */
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

/* Frees the answer's bytes at once, as there are many. */
static int read_answer(struct answer *a, struct xsp_planned_module *m)
{
	int rc = xsp_wire_get(a->data, a->size, m);

	free(a->data);
	a->data = NULL;
	return rc;
}

/* Takes everything of the first part, and only the chosen sites of the others. */
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

/* Reads the module by one process, or in parts by several. */
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
		xsp_planner_stop(p, a[i].from);
	for (uint32_t i = 0; i < parts && rc == 0; i++) {
		rc = xsp_planner_receive(p, deadline_ns, a, parts, i, err);
		if (rc == 0)
			rc = join(m, &a[i], i, parts, err);
		/* what they still send is about this file */
		for (uint32_t k = 0; rc < 0 && k < parts; k++)
			if (rc == -EPROTO || !a[k].whole)
				xsp_planner_stop(p, a[k].from);
	}
	for (uint32_t i = 0; i < parts; i++)
		free(a[i].data);
	return rc;
}

int xsp_planner_read(struct xsp_planner *p, pid_t pid, int fd, struct xsp_planned_module *m,
		     struct xsp_error *err)
{
	const bool looked = p->look_count > 0;

	if (fd < 0) {
		copy_look(p, m);
		return 0;
	}
	p->asked_path = m->display_path;
	p->asked_pid = pid;
	int rc = read_parts(p, fd, m, err);
	if (looked && (rc == -EPIPE || rc == -EPROTO || rc == -EOWNERDEAD)) {
		/* a look at another file may be to blame */
		xsp_planned_module_empty(m);
		for (size_t i = 0; i < PROCESSES; i++)
			xsp_planner_stop(p, &p->processes[i]);
		rc = read_parts(p, fd, m, err);
	}
	close(fd);
	return rc == 0 ? 0 : xsp_planner_explain(rc, m->display_path, err);
}
