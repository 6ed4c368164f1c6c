/* SPDX-License-Identifier: BSD-2-Clause */
/* processes.c - the recorded processes: how they come, become other programs, and end. */
#include "record/recorder_private.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "catalog/job_variables.h"
#include "procfs/procfs.h"
#include "record/flight/flight.h"

/* A thread that cannot be counted is recorded all the same. */
static void count_thread(struct xsp_recorder *r, pid_t tid)
{
	int rc = xsp_broker_thread(r->broker, tid);
	const char *why = rc == -E2BIG ? "too many threads" : strerror(-rc);

	if (rc == 0 || rc == -ESRCH)
		return;
	if (r->gaps[XSP_GAP_THREADS].count == 0)
		xsp_recorder_note(r, "--counters: thread %d and perhaps others are not counted: %s",
				  (int)tid, why);
	xsp_recorder_gap(r, XSP_GAP_THREADS, 1, "by --counters: %s", why);
}

/* How many CPUs the process may use, by its affinity and its control groups: of several, those of the last one. */
static int put_cpus(struct xsp_recorder *r, pid_t pid)
{
	struct xsp_cpu_limit limit;
	cpu_set_t cpus;

	if (sched_getaffinity(pid, sizeof(cpus), &cpus) != 0)
		return 0;
	const double may =
		xsp_broker_cpu_limit(r->broker, &limit, 1) == 1 ? ceil(limit.cpus) : CPU_SETSIZE;
	return xsp_capture_put_number(r->writer, "cpus", (uint64_t)fmin(CPU_COUNT(&cpus), may));
}

int xsp_recorder_put_cpu_limit(struct xsp_recorder *r)
{
	struct xsp_cpu_limit limit;
	char text[80];

	if (xsp_broker_cpu_limit(r->broker, &limit, 1) != 1)
		return 0;
	snprintf(text, sizeof(text), "%g %" PRIu64 " %" PRIu64, limit.cpus, limit.periods,
		 limit.stopped);
	return xsp_capture_put_info(r->writer, "cpu limit", text);
}

static int announce_process(struct xsp_recorder *r, const struct recorded_process *p)
{
	char *environment = xsp_process_environment(p->process, xsp_job_variables);
	struct xsp_capture_process definition = {
		.pid = (uint32_t)p->pid,
		.ns_pid = (uint32_t)xsp_process_ns_pid(p->process),
		.parent = (uint32_t)p->parent,
		.comm = xsp_process_comm(p->process),
		.cmdline = xsp_process_cmdline(p->process),
		.exe = xsp_process_exe(p->process),
		.environment = environment,
	};
	struct xsp_thread_info *threads = NULL;
	size_t count = 0;
	int rc = environment == NULL ? -ENOMEM : xsp_capture_put_process(r->writer, &definition);

	free(environment);
	if (rc == 0)
		rc = put_cpus(r, p->pid);
	if (rc == 0)
		rc = xsp_recorder_meet_listeners(r, p->pid);
	if (rc == 0 && xsp_process_threads(p->process, &threads, &count) < 0)
		count = 0; /* it has just exited */
	for (size_t i = 0; i < count && rc == 0; i++) {
		struct xsp_capture_thread t = {
			.pid = (uint32_t)p->pid,
			.tid = (uint32_t)threads[i].tid,
			.ns_tid = (uint32_t)threads[i].ns_tid,
			.comm = threads[i].comm,
		};
		rc = xsp_capture_put_thread(r->writer, &t);
		count_thread(r, threads[i].tid);
		xsp_overhead_meet(r, p->pid, threads[i].tid);
	}
	free(threads);
	return rc;
}

/* ---- reports of the sideband ---- */

/* What loaded then, at the end of a process or of the recording. 0: nothing */
static void count_unlooked(struct xsp_recorder *r, uint64_t since_ns)
{
	const uint64_t now = xsp_now_ns();

	if (since_ns != 0 && now - since_ns > r->late.unlooked_ns)
		r->late.unlooked_ns = now - since_ns;
}

void xsp_recorder_free_modules(struct recorded_process *p)
{
	for (size_t i = 0; i < p->room; i++)
		free(p->modules[i].spared);
	free(p->modules);
}

/* The rings are empty, and so are its agent's. */
static int take_all(struct xsp_recorder *r, const struct recorded_process *p)
{
	const long moved = xsp_drain_run(r->drain, SIZE_MAX);

	return moved < 0 ? (int)moved : xsp_operators_end(r, p);
}

/* All of its events are in the rings now; their names are known while it exists. */
static int process_has_gone(struct xsp_recorder *r, struct recorded_process *p)
{
	const int rc = take_all(r, p);

	count_unlooked(r, p->mapped_ns);
	xsp_flight_gone(r, p->pid);
	xsp_broker_forget_process(r->broker, p->pid);
	if (r->pythons != NULL)
		xsp_pythons_forget(r->pythons, p->pid);
	xsp_javascript_forget(r->javascript, p->pid);
	xsp_java_forget(r->java, p->pid);
	xsp_process_free(p->process);
	xsp_recorder_free_modules(p);
	if (p->status >= 0)
		close(p->status);
	*p = r->processes[--r->process_count];
	return rc;
}

static int on_exec(struct xsp_recorder *r, struct recorded_process *p, uint64_t time_ns)
{
	p->program_ns = time_ns;
	xsp_process_refresh(p->process);
	if (!p->child)
		xsp_flight_exec(r, p->pid, xsp_process_comm(p->process));
	p->dirty = true;
	p->numbered = NULL;
	p->driver = p->operators = p->injected = p->child = false;
	p->inject_by_ns = 0;
	if (r->pythons != NULL || r->agents != NULL) {
		const int rc = take_all(r, p);
		if (rc < 0)
			return rc;
	}
	if (r->pythons != NULL) /* it knows names for the stacks of the program before */
		xsp_pythons_forget(r->pythons, p->pid);
	xsp_javascript_forget(r->javascript, p->pid);
	xsp_java_forget(r->java, p->pid);
	p->probed_pages = 0;
	for (size_t i = 0; i < p->room; i++)
		p->modules[i].mapped = p->modules[i].late = false;
	return announce_process(r, p);
}

static int on_record(void *ctx, const struct xsp_sideband_record *record)
{
	struct xsp_recorder *r = ctx;
	struct recorded_process *p = xsp_recorder_find(r, record->pid);

	switch (record->kind) {
	case XSP_SIDEBAND_MMAP:
		if (p != NULL && p->mapped_ns == 0)
			p->mapped_ns = record->time_ns;
		if (p != NULL)
			p->dirty = true;
		break;
	case XSP_SIDEBAND_EXEC:
		if (p != NULL)
			return on_exec(r, p, record->time_ns);
		break;
	case XSP_SIDEBAND_FORK:
		if (p != NULL)
			count_thread(r, record->tid);
		if (record->pid != record->parent_pid && p == NULL)
			xsp_children_born(r, record->pid, record->parent_pid, record->time_ns);
		break;
	case XSP_SIDEBAND_EXIT:
		xsp_broker_forget_thread(r->broker, record->tid);
		break;
	case XSP_SIDEBAND_LOST:
		xsp_recorder_gap(
			r, XSP_GAP_SIDE_RECORDS, record->lost,
			"of the kernel's, of any process: what was mapped was looked for in /proc instead; births, execs and ends may be missing");
		for (size_t i = 0; i < r->process_count; i++)
			r->processes[i].dirty = true;
		break;
	default:
		break;
	}
	return 0;
}

/* ---- processes ---- */

/* If a process ends or becomes another program, any failure is due to that. */
static int scan_first(struct xsp_recorder *r, pid_t pid, struct xsp_error *err)
{
	struct recorded_process *p = xsp_recorder_find(r, pid);
	uint64_t program_ns = p->program_ns;
	int rc = xsp_recorder_scan(r, p, err);

	if (rc == 0 || rc == -EINTR)
		return rc;
	if (!xsp_process_alive(p->process))
		return xsp_recorder_cannot_record(pid, -ESRCH, err);
	xsp_sideband_drain(r->sideband, 0, on_record, r);
	p = xsp_recorder_find(r, pid);
	if (p != NULL && p->program_ns != program_ns)
		return xsp_error_set(
			err, -ESRCH, XSP_STATUS_NO_TARGET,
			"process %d has ended its program and runs another one: try again",
			(int)pid);
	return rc;
}

int xsp_recorder_scan_standing(struct xsp_recorder *r, pid_t pid, struct xsp_error *err)
{
	xsp_sideband_drain(r->sideband, 0, on_record, r);
	struct recorded_process *p = xsp_recorder_find(r, pid);

	p->exec_ns = 0;
	const int rc = xsp_recorder_scan(r, p, err);
	xsp_recorder_say_file_notes(r);
	return rc;
}

/* A debugger puts back what it finds at the place of its breakpoint: ours, if that breakpoint outlives us. */
static void note_debugger(struct xsp_recorder *r, const struct recorded_process *p,
			  const char *status)
{
	const pid_t tracer = xsp_procfs_last_id(status, "TracerPid", 0);
	if (tracer != 0 && tracer != getpid())
		xsp_recorder_note(
			r,
			"process %d is traced by process %d: if that is a debugger, its breakpoints must be gone before this recording ends, or the program dies of them",
			(int)p->pid, (int)tracer);
}

int xsp_recorder_add_child(struct xsp_recorder *r, pid_t pid, pid_t parent, struct xsp_error *err)
{
	char status[XSP_STATUS_SIZE];
	struct xsp_process *process;
	int rc = xsp_process_open(xsp_broker_opener(r->broker), pid, &process, err);

	if (rc < 0) {
		if (rc == -ESRCH) /* the kernel side has added it to its set */
			xsp_broker_forget_process(r->broker, pid);
		return rc;
	}
	struct recorded_process *grown =
		reallocarray(r->processes, r->process_count + 1, sizeof(*grown));
	if (grown == NULL) {
		xsp_process_free(process);
		return xsp_out_of_memory(err);
	}
	r->processes = grown;
	struct recorded_process *p = &r->processes[r->process_count++];
	*p = (struct recorded_process){.process = process, .pid = pid, .child = parent != 0};
	const struct xsp_opener *o = xsp_broker_opener(r->broker);
	p->status = o->file(o, pid, "status");
	if (xsp_recorder_read_status(p, status) < 0)
		status[0] = '\0';
	p->parent = parent < 0 ? xsp_procfs_last_id(status, "PPid", 0) : parent;
	note_debugger(r, p, status);
	rc = xsp_plan_process(&r->plan, r->broker, pid, err);
	if (rc < 0)
		return rc;
	rc = xsp_sideband_watch(r->sideband,
				pid); /* before the look at its maps: nothing falls between */
	if (rc == 0)
		rc = xsp_broker_process(r->broker, pid);
	if (rc == 0)
		rc = announce_process(r, p);
	if (rc < 0)
		return xsp_recorder_cannot_record(pid, rc, err);
	return scan_first(r, pid, err);
}

int xsp_recorder_stop_at_exec(struct xsp_recorder *r, pid_t pid)
{
	const int rc = xsp_broker_stop_at_exec(r->broker, pid);

	r->launched = rc < 0 ? 0 : pid;
	return rc;
}

bool xsp_recorder_is_stopped(const struct xsp_recorder *r, pid_t pid)
{
	pid_t pids[XSP_STOPPED_ROWS];
	const long n = xsp_broker_stopped(r->broker, pids, XSP_STOPPED_ROWS);

	for (long i = 0; i < n; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

void xsp_recorder_go_on(struct xsp_recorder *r, pid_t pid)
{
	xsp_broker_continue(r->broker, pid);
}

int xsp_recorder_follow_sideband(struct xsp_recorder *r)
{
	/* asks before it reads the records: an ended process writes no more of them */
	for (size_t i = 0; i < r->process_count; i++) {
		struct recorded_process *p = &r->processes[i];
		if (p->ended_ns == 0 && !xsp_process_alive(p->process))
			p->ended_ns = xsp_now_ns();
	}
	const uint64_t now_ns = xsp_now_ns();
	long rc = xsp_sideband_drain(r->sideband, 0, on_record, r);

	/* from the end: the last one moves to a removed one's place */
	for (size_t i = r->process_count; i > 0 && rc >= 0; i--) {
		struct recorded_process *p = &r->processes[i - 1];
		struct xsp_error why = {0};
		if (p->ended_ns != 0 && now_ns - p->ended_ns >= XSP_SIDEBAND_KEPT_NS) {
			rc = process_has_gone(r, p);
			continue;
		}
		xsp_operators_look(r, p);
		if (!p->dirty)
			continue;
		/* the exec's report includes what follows it */
		const uint64_t mapped_ns = p->mapped_ns;
		r->late.since_ns = p->exec_ns == 0 ? mapped_ns : 0;
		r->late.missed = false;
		r->following = true;
		int failed = xsp_recorder_scan(r, p, &why);
		r->following = false;
		r->late.since_ns = 0;
		/* a process was gone before all was attached to: its libraries were not examined */
		if (failed == -ESRCH ||
		    ((failed < 0 || r->late.missed) && !xsp_process_alive(p->process)))
			p->mapped_ns = mapped_ns;
		if (failed == 0 && p->dirty) /* its operators wait for the agent */
			p->mapped_ns = mapped_ns;
		if (failed == -EINTR) /* the user does not want to wait for its files */
			count_unlooked(r, mapped_ns);
		if (failed == 0)
			xsp_children_exec_attached(r, p);
		else if (failed != -ESRCH && failed != -EINTR && xsp_process_alive(p->process))
			xsp_recorder_note(r, "%s", why.text);
		p->exec_ns = 0;
	}
	xsp_recorder_say_file_notes(r);
	return rc < 0 ? (int)rc : 0;
}
