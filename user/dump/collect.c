/* SPDX-License-Identifier: BSD-2-Clause */
/* collect.c - looks at one thread after the other, then names what it read. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "attach/thread_stop.h"
#include "broker/broken_calls.h"
#include "base/clock.h"
#include "catalog/wait_reasons.h"
#include "dump/dump.h"
#include "dump/look.h"
#include "dump/native.h"
#include "dump/python.h"
#include "dump/waits.h"
#include "procfs/procfs.h"

#define ATTEMPTS 3 /* to look at an unstopped thread while it does not run */
/* When processors are busy: after so long no more threads are stopped. */
#define STOPPING_NS 20000000000ULL
/* So long, together, stopped threads have to wait again as before. */
#define SETTLING_NS 500000000ULL
#define BEGINS_ANEW "was not stopped: the timeout of its system call would begin anew"
#define TOGETHER 512 /* threads whose stacks are held at a time */

struct xsp_dump_target {
	struct xsp_broker *broker;
	struct xsp_process *process;
	struct xsp_thread_info *threads;
	size_t count;
	int mem; /* -1: none */
	int vdso;
	pid_t tracer; /* 0 or less: none */
};

struct snapshot {
	struct xsp_look look;
	struct xsp_thread_snapshot native;
	bool has_python;
	struct xsp_python_raw python;
};

struct run {
	const struct xsp_dump_target *target;
	const struct xsp_dump_options *options;
	struct xsp_dump *dump;
	struct xsp_space space;
	struct xsp_dump_interpreter *python; /* NULL: none */
	struct xsp_thread_stopper *stopper; /* NULL: no thread is stopped */
	struct snapshot *snapshots;
	uint64_t begun_ns;
};

static const struct xsp_opener *opener(const struct run *r)
{
	return xsp_broker_opener(r->target->broker);
}

static struct xsp_dump_source source(const struct run *r)
{
	return (struct xsp_dump_source){opener(r), r->target->mem, r->python};
}

/* ---- before ---- */

int xsp_dump_open(struct xsp_broker *b, pid_t pid, int vdso, struct xsp_dump_target **out,
		  struct xsp_error *err)
{
	const struct xsp_opener *o = xsp_broker_opener(b);
	struct xsp_dump_target *t = *out = calloc(1, sizeof(*t));

	if (t == NULL)
		return xsp_out_of_memory(err);
	t->broker = b;
	t->mem = -1;
	t->vdso = -1;
	int rc = xsp_process_open(o, pid, &t->process, err);
	if (rc == 0) {
		t->mem = o->file(o, pid, "mem");
		t->vdso = vdso >= 0 ? dup(vdso) : -1;
		t->tracer = xsp_procfs_status_id(o, pid, "TracerPid");
		rc = xsp_process_threads(t->process, &t->threads, &t->count);
		if (rc < 0)
			xsp_error_set(err, rc, XSP_STATUS_NO_TARGET,
				      "process %d has exited, or its threads cannot be seen",
				      (int)pid);
	}
	if (rc < 0) {
		xsp_dump_close(t);
		*out = NULL;
	}
	return rc;
}

void xsp_dump_close(struct xsp_dump_target *t)
{
	if (t == NULL)
		return;
	xsp_close(t->mem);
	xsp_close(t->vdso);
	xsp_process_free(t->process);
	free(t->threads);
	free(t);
}

/* ---- one thread ---- */

static void read_python(struct run *r, const struct xsp_dump_thread *t, uint64_t sp,
			struct snapshot *k)
{
	k->has_python = r->python != NULL &&
			xsp_dump_interpreter_stack(r->python, t->ns_tid, sp, &k->python);
}

static int keep_stack(struct snapshot *k, const uint8_t *stack, uint64_t size)
{
	uint8_t *copy = size > 0 ? realloc(k->native.stack, size) : NULL;

	if (size > 0 && copy == NULL)
		return -ENOMEM;
	if (size > 0) {
		memcpy(copy, stack, size);
		k->native.stack = copy;
	}
	k->native.stack_bytes = size;
	return 0;
}

_Static_assert(XSP_STOP_REGISTERS == XSP_WALK_REGISTERS, "a thread has what a frame has");

static int read_stopped_once(struct run *r, struct xsp_dump_thread *t, struct snapshot *k)
{
	const struct xsp_stopped_thread *s;
	struct xsp_released_thread released = {0};
	int rc = xsp_thread_stop(r->stopper, t->tid, &s);

	if (rc < 0)
		return rc;
	memcpy(k->native.registers.values, s->registers, sizeof(s->registers));
	k->native.registers.known = XSP_WALK_ALL;
	rc = keep_stack(k, s->stack, s->stack_bytes);
	read_python(r, t, s->registers[XSP_WALK_RSP], k);
	int released_rc = xsp_thread_release(r->stopper, &released);
	t->stopped = true;
	t->stopped_ns += released.stopped_ns;
	if (rc == 0 && (released_rc < 0 || released.late))
		k->python.flags |= XSP_PYTHON_TORN; /* it may have run while they were read */
	return rc;
}

/* Others may have had the processors while the thread was stopped; by then its parts are read. */
static int read_stopped(struct run *r, struct xsp_dump_thread *t, struct snapshot *k)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < ATTEMPTS; i++) {
		rc = read_stopped_once(r, t, k);
		if (!k->has_python || !(k->python.flags & XSP_PYTHON_TORN))
			break;
	}
	return rc;
}

static int read_stack(const struct run *r, struct snapshot *k)
{
	uint8_t *stack = malloc(XSP_STOP_STACK);
	const uint64_t sp = k->look.call.sp;

	if (stack == NULL)
		return -ENOMEM;
	ssize_t n = sp > INT64_MAX || r->target->mem < 0
			    ? 0
			    : pread(r->target->mem, stack, XSP_STOP_STACK, (off_t)sp);
	int rc = keep_stack(k, stack, n > 0 ? (uint64_t)n : 0);
	free(stack);
	k->native.registers =
		(struct xsp_walk){.known = 1U << XSP_WALK_RSP | 1U << XSP_WALK_RA, .called = true};
	k->native.registers.values[XSP_WALK_RSP] = sp;
	k->native.registers.values[XSP_WALK_RA] = k->look.call.pc;
	return rc;
}

static int look(const struct run *r, const struct xsp_dump_thread *t, struct xsp_look *l)
{
	return xsp_look_at(opener(r), r->dump->pid, t->tid, r->target->mem, l);
}

/* A sleeping thread does not change: looks at it before and after. A running one has no native stack here, and its
 * Python stack counts if two reads agree. */
static int read_unstopped(struct run *r, struct xsp_dump_thread *t, struct snapshot *k)
{
	struct xsp_python_raw first = {0};
	struct xsp_look after;
	int rc = 0;

	t->running = false;
	for (int i = 0; rc == 0 && i < ATTEMPTS && k->look.state != 0; i++) {
		if (k->look.call.placed)
			rc = read_stack(r, k);
		read_python(r, t, k->look.call.placed ? k->look.call.sp : 0, k);
		first = k->python;
		if (rc == 0)
			rc = look(r, t, &after);
		if (rc < 0 || xsp_look_same(&k->look, &after))
			return rc;
		read_python(r, t, after.call.placed ? after.call.sp : 0, k);
		k->look = after;
	}
	k->native.registers.known = 0;
	t->running = k->look.state != 0;
	if (k->has_python &&
	    (first.count != k->python.count ||
	     memcmp(first.frames, k->python.frames, first.count * sizeof(*first.frames)) != 0))
		k->python.flags |= XSP_PYTHON_TORN;
	return rc;
}

/* Why a thread could not be stopped. */
static const char *why_not_stopped(int error, char state)
{
	static const struct {
		int error;
		const char *text;
	} rows[] = {
		{-ETIMEDOUT,
		 "did not stop within 20 ms, as it sleeps in the kernel where nothing wakes it"},
		{-ETIME, BEGINS_ANEW},
		{-EPERM, "was not stopped: it is traced by another process, or must not be"},
		{-EACCES, "was not stopped: it is traced by another process, or must not be"},
		{-ENOTSUP, "was not stopped: its code is not for x86-64"},
	};

	if (error == -ETIMEDOUT && state == 'R')
		return "did not stop within 2 s, as no processor was free for it";
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].error == error)
			return rows[i].text;
	return "was not stopped: the process that does it failed";
}

static int64_t asleep_for(const struct run *r, const struct xsp_look *l)
{
	const struct xsp_dump_options *o = r->options;

	if (l->state == 'R' || l->left_ns < 0 || l->cpu < 0 || (size_t)l->cpu >= o->lag_count ||
	    o->lags[l->cpu] == INT64_MIN)
		return -1;
	/* time that the hypervisor took since then counts as sleep: it may be longer */
	int64_t ns = (int64_t)xsp_now_ns() - o->lags[l->cpu] - l->left_ns;
	return ns >= 0 ? ns : -1;
}

/* broker/thread_stop.c would repair it, but the call would last longer than it should. */
static bool begins_anew(const struct xsp_look *l)
{
	if (!l->call.placed || l->call.number < 0 || !xsp_call_breaks((unsigned)l->call.number))
		return false;
#ifdef SYS_epoll_wait
	if (l->call.number == SYS_epoll_wait)
		return (int32_t)l->call.arguments[3] > 0;
#endif
	if (l->call.number == SYS_epoll_pwait)
		return (int32_t)l->call.arguments[3] > 0;
	return xsp_wait_class_of((unsigned)l->call.number) == XSP_WAIT_POLL ||
	       l->call.number == SYS_semtimedop || l->call.number == SYS_rt_sigtimedwait;
}

/* Does not wake sleepers for a look: stops only threads that run, or stacks that need all registers. */
static int stop(struct run *r, struct xsp_dump_thread *t, struct snapshot *k)
{
	int rc = 1;

	if (r->stopper != NULL && begins_anew(&k->look))
		t->note = BEGINS_ANEW;
	else if (r->stopper != NULL && xsp_now_ns() - r->begun_ns > STOPPING_NS)
		t->note = "was not stopped: it has taken too long with the others";
	else if (r->stopper != NULL)
		rc = read_stopped(r, t, k);
	if (rc == -ENOMEM || rc == 0)
		return rc;
	if (rc < 0 && rc != -ESRCH)
		t->note = why_not_stopped(rc, k->look.state);
	/* gone, or not: that function looks again */
	return read_unstopped(r, t, k);
}

static int read_thread(struct run *r, struct xsp_dump_thread *t, struct snapshot *k)
{
	int rc = look(r, t, &k->look);

	if (rc < 0 || k->look.state == 0)
		return rc;
	if (k->look.state == 'Z' || k->look.state == 'X')
		return 0;
	t->since_ns = asleep_for(r, &k->look);
	t->running = true;
	if (k->look.call.placed)
		rc = read_unstopped(r, t, k);
	return rc == 0 && t->running ? stop(r, t, k) : rc;
}

/* ---- all ---- */

static int name(struct run *r, struct xsp_dump_thread *t, struct snapshot *k)
{
	int rc = 0;

	if (k->has_python)
		rc = xsp_dump_interpreter_name(r->python, &k->python, &r->dump->arena, t);
	if (rc == 0)
		rc = xsp_native_stack(&r->space, &k->native, &r->dump->arena, t);
	return rc;
}

static int finish_thread(struct run *r, size_t index, struct snapshot *k)
{
	struct xsp_dump_thread *t = &r->dump->threads[index];
	int rc = name(r, t, k);

	if (rc == 0 && t->wants_registers && r->stopper != NULL) {
		rc = look(r, t, &k->look);
		if (rc == 0 && k->look.state != 0)
			rc = stop(r, t, k);
		if (rc == 0)
			rc = name(r, t, k);
	}
	t->state = k->look.state;
	t->running |= t->state == 'R';
	const struct xsp_dump_source from = source(r);
	return rc == 0 ? xsp_dump_wait(r->dump, index, &k->look, &from) : rc;
}

static int read_threads(struct run *r, size_t first, size_t count)
{
	int rc = 0;

	memset(r->snapshots, 0, TOGETHER * sizeof(*r->snapshots));
	for (size_t i = 0; rc == 0 && i < count; i++)
		rc = read_thread(r, &r->dump->threads[first + i], &r->snapshots[i]);
	for (size_t i = 0; i < count; i++) {
		if (rc == 0)
			rc = finish_thread(r, first + i, &r->snapshots[i]);
		free(r->snapshots[i].native.stack);
	}
	return rc;
}

/* A stopped thread needs a processor to wait again. */
static int look_settled(const struct run *r, const struct xsp_dump_thread *t, uint64_t until_ns,
			struct xsp_look *l)
{
	int rc = look(r, t, l);

	while (rc == 0 && l->state != 0 && (!l->call.placed || l->state == 'R') &&
	       xsp_now_ns() < until_ns) {
		xsp_nap_ns(1000000);
		rc = look(r, t, l);
	}
	return rc;
}

#define STUCK                                                                                      \
	"a deadlock: every thread waits for a lock or a condition, none with a timeout, so that nobody is left to release one (but a signal's handler)"

/* All of them waited; did they go on waiting until all were seen? */
static int confirm_stuck(struct run *r)
{
	struct xsp_dump *d = r->dump;
	bool same = true;

	for (size_t i = 0; i < d->count && same; i++) {
		const struct xsp_dump_thread *t = &d->threads[i];
		struct xsp_look now;
		const int rc = t->state != 0 ? look(r, t, &now) : 0;
		if (rc < 0)
			return rc;
		same = t->state == 0 || (now.call.placed && now.call.number == t->wait.call &&
					 now.call.arguments[0] == t->wait.argument);
	}
	if (same && d->note == NULL)
		d->note = STUCK;
	return 0;
}

/* A circle counts if all of its threads still wait, each for the same, after all were seen to wait. */
static int confirm_cycles(struct run *r)
{
	struct xsp_dump *d = r->dump;
	const struct xsp_dump_source from = source(r);
	const uint64_t until_ns = xsp_now_ns() + SETTLING_NS;
	bool gone = false;

	xsp_dump_gil(d, &from);
	xsp_dump_cycles(d);
	for (size_t i = 0; i < d->count; i++) {
		struct xsp_dump_thread *t = &d->threads[i];
		const struct xsp_dump_wait before = t->wait;
		struct xsp_look now;
		if (t->cycle == 0)
			continue;
		int rc = look_settled(r, t, until_ns, &now);
		if (rc == 0)
			rc = xsp_dump_wait(d, i, &now, &from);
		if (rc < 0)
			return rc;
		gone |= before.call != t->wait.call || before.argument != t->wait.argument ||
			before.held != t->wait.held || before.holder != t->wait.holder;
	}
	if (gone)
		xsp_dump_cycles(d);
	return d->cycles == 0 && xsp_dump_is_stuck(d) ? confirm_stuck(r) : 0;
}

static int begin(struct run *r, struct xsp_error *why)
{
	const struct xsp_dump_target *t = r->target;
	struct xsp_dump *d = r->dump;
	const char *command = xsp_process_cmdline(t->process);

	if (command[0] == '\0')
		command = xsp_process_comm(t->process);
	d->pid = xsp_process_pid(t->process);
	d->command = xsp_arena_copy(&d->arena, command, strlen(command));
	d->threads = calloc(t->count, sizeof(*d->threads));
	r->snapshots = calloc(TOGETHER, sizeof(*r->snapshots));
	if (d->command == NULL || d->threads == NULL || r->snapshots == NULL)
		return -ENOMEM;
	d->count = t->count;
	for (size_t i = 0; i < t->count; i++) {
		struct xsp_dump_thread *out = &d->threads[i];
		*out = (struct xsp_dump_thread){
			.tid = t->threads[i].tid, .ns_tid = t->threads[i].ns_tid, .since_ns = -1};
		memcpy(out->name, t->threads[i].comm, sizeof(out->name));
		out->state = '?'; /* it exists, as far as is known */
		out->wait.call = -1;
	}
	if (t->mem < 0)
		d->note = "its memory cannot be read";
	else if (t->tracer > 0)
		d->note = "another process traces it (a debugger, strace): nothing was stopped";
	int rc = xsp_space_read(&r->space, t->process, t->mem, t->vdso);
	if (rc == 0 && t->mem >= 0)
		rc = xsp_dump_interpreter_open(&r->space, xsp_process_exe(t->process), t->count,
					       &r->python, why);
	if (rc == 0 && !r->options->no_stop && t->tracer <= 0)
		rc = xsp_thread_stopper_new(t->broker, d->pid, &r->stopper);
	d->time = time(NULL);
	r->begun_ns = xsp_now_ns();
	return rc;
}

static int finish(struct run *r, int rc, const struct xsp_error *python, struct xsp_error *err)
{
	struct xsp_dump *d = r->dump;
	bool any = false;

	xsp_thread_stopper_free(r->stopper);
	xsp_dump_interpreter_close(r->python);
	xsp_space_clear(&r->space);
	free(r->snapshots);
	for (size_t i = 0; i < d->count; i++)
		any |= d->threads[i].state != 0;
	if (rc == 0 && python->text[0] != '\0') {
		d->python_note = xsp_arena_copy(&d->arena, python->text, strlen(python->text));
		rc = d->python_note == NULL ? -ENOMEM : 0;
	}
	if (rc == 0 && !any)
		rc = -ESRCH;
	if (rc < 0)
		xsp_dump_clear(d);
	if (rc == -ESRCH)
		return xsp_error_set(err, rc, XSP_STATUS_NO_TARGET,
				     "process %d exited while it was looked at",
				     (int)xsp_process_pid(r->target->process));
	return rc == 0 ? 0
		       : xsp_error_set(err, rc, XSP_STATUS_FAILED,
				       "process %d could not be looked at: %s",
				       (int)xsp_process_pid(r->target->process), strerror(-rc));
}

int xsp_dump_run(struct xsp_dump_target *t, const struct xsp_dump_options *o, struct xsp_dump *out,
		 struct xsp_error *err)
{
	struct run r = {.target = t, .options = o, .dump = out, .space = {.vdso = -1}};
	struct xsp_error python = {0};

	*out = (struct xsp_dump){.open_age_ns = -1};
	int rc = begin(&r, &python);
	t->vdso = -1; /* the space owns it now */
	for (size_t at = 0; rc == 0 && at < out->count; at += TOGETHER)
		rc = read_threads(&r, at, out->count - at < TOGETHER ? out->count - at : TOGETHER);
	if (rc == 0)
		rc = confirm_cycles(&r);
	return finish(&r, rc, &python, err);
}

void xsp_dump_clear(struct xsp_dump *d)
{
	free(d->threads);
	xsp_arena_free(&d->arena);
	*d = (struct xsp_dump){0};
}
