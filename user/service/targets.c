/* SPDX-License-Identifier: BSD-2-Clause */
/* targets.c - the processes that are recorded, and the recorder of each. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/file_io.h"
#include "base/files/message.h"
#include "base/units.h"
#include "procfs/procfs.h"
#include "service/private.h"

#define SECOND_NS 1000000000ULL
#define BACK_OFF_NS SECOND_NS /* after the first failure; then twice as long each time, */
#define BACK_OFF_MOST_NS (300 * SECOND_NS)
#define BUDGET_NS (300 * SECOND_NS) /* so long a target is left alone that cost too much */
#define GOOD_NS (60 * SECOND_NS) /* armed for so long, it has not failed */
#define STARTS_NS (120 * SECOND_NS) /* a planner alone may take 60 s */
#define ENDS_NS (60 * SECOND_NS)
#define GONE_NS (120 * SECOND_NS) /* the target has ended, and its recorder writes a snapshot */
#define STARTING 2U /* recorders at the same time */
#define LATELY 0.1 /* weight of the last second */
#define QUIET_NS (60 * SECOND_NS) /* between two lines about targets that find no room */

const char *xsp_target_watch(const struct xsp_service *s, const struct xsp_target *t)
{
	return s->config.watches[t->is.watch].name;
}

static void enter(struct xsp_service *s, struct xsp_target *t, enum xsp_target_state state)
{
	t->state = state;
	t->since_ns = s->now_ns;
}

size_t xsp_targets_in(const struct xsp_service *s, enum xsp_target_state state)
{
	size_t n = 0;

	for (size_t i = 0; i < s->count; i++)
		n += s->targets[i].state == state;
	return n;
}

/* ---- finding them ---- */

static bool has_room(const struct xsp_service *s, uid_t uid)
{
	uint64_t of_user = 0;

	for (size_t i = 0; i < s->count; i++)
		of_user += s->targets[i].is.uid == uid;
	return s->count < s->config.max_targets && of_user < s->config.max_per_user;
}

static void refuse(struct xsp_service *s, const struct xsp_watcher_found *found)
{
	s->totals.refused++;
	if (s->refused_ns != 0 && s->now_ns < s->refused_ns + QUIET_NS)
		return;
	s->refused_ns = s->now_ns;
	xsp_log(XSP_LOG_WARNING,
		"%s (%d) is not recorded: %s (%llu); the next line on this comes in a minute at the earliest",
		found->comm, (int)found->pid,
		s->count >= s->config.max_targets ? "there are max-targets already"
						  : "its user has max-targets-per-user already",
		(unsigned long long)(s->count >= s->config.max_targets ? s->config.max_targets
								       : s->config.max_per_user));
}

void xsp_target_found(struct xsp_service *s, const struct xsp_watcher_found *found)
{
	struct xsp_target *t = s->targets;

	for (; t < s->targets + s->count; t++)
		if (t->is.pid == found->pid)
			return; /* with another start it is one whose row is about to go */
	if (!has_room(s, found->uid))
		return refuse(s, found);
	const int pidfd = pidfd_open(found->pid, 0);
	/* from here on the number is that process's, if it still was then */
	if (pidfd < 0 || xsp_process_start(found->pid) != found->start_ticks) {
		xsp_close(pidfd);
		return;
	}
	*t = (struct xsp_target){.is = *found,
				 .pidfd = pidfd,
				 .socket = -1,
				 .next_ns = s->now_ns, /* who came first is first */
				 .back_off_ns = BACK_OFF_NS};
	s->count++;
	enter(s, t, XSP_TARGET_WAITS);
}

static void forget(struct xsp_service *s, struct xsp_target *t)
{
	xsp_target_answer(s, t, "has ended", false);
	xsp_close(t->pidfd);
	xsp_close(t->socket);
	*t = s->targets[--s->count];
}

/* ---- a recorder ---- */

static bool has_option(const struct xsp_watch_rule *w, const char *name)
{
	const size_t length = strlen(name);

	for (size_t i = 0; i < w->option_count; i++)
		if (strncmp(w->options[i], name, length) == 0 && strchr("=", w->options[i][length]))
			return true;
	return false;
}

/* As if somebody had started it in a shell, but that it hears of us. Never returns. */
static void record(const struct xsp_service *s, const struct xsp_target *t, int socket)
{
	const struct xsp_watch_rule *w = &s->config.watches[t->is.watch];
	int kept[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, socket};
	char pid[16], user[32], fd[32], *folder = NULL, *argv[XSP_WATCH_OPTIONS + 16];
	int argc = 0;
	sigset_t none;

	prctl(PR_SET_NAME, "xsp-recorder");
	setsid(); /* Ctrl-C is the service's */
	snprintf(pid, sizeof(pid), "%d", (int)t->is.pid);
	snprintf(user, sizeof(user), "--user=%u", (unsigned)s->config.uid);
	snprintf(fd, sizeof(fd), "--supervisor=%d", socket);
	if (asprintf(&folder, "%s/", s->config.folder) < 0)
		_exit(XSP_STATUS_FAILED);
	char *const own[] = {"record", "-q", "-p", pid, "-o", folder, user, fd};
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		argv[argc++] = own[i];
	if (!w->end_snapshots)
		argv[argc++] = "--only-crashes";
	if (!has_option(w, "--flight-record"))
		argv[argc++] = "--flight-record=30s,128M";
	if (!has_option(w, "--max-overhead") && !has_option(w, "--profile"))
		argv[argc++] = "--max-overhead=5";
	if (!has_option(w, "--buffer"))
		argv[argc++] = "--buffer=16M";
	for (size_t i = 0; i < w->option_count; i++)
		argv[argc++] = w->options[i];
	argv[argc] = NULL;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* sockets of others, and the lock, must go with the service */
	if (xsp_close_all_but(kept, 4) < 0 || xsp_process_start(t->is.pid) != t->is.start_ticks)
		_exit(XSP_STATUS_NO_TARGET);
	const int status = s->options->record(argc, argv);
	fflush(NULL);
	_exit(status);
}

static void wait_until(struct xsp_service *s, struct xsp_target *t, uint64_t ns)
{
	enter(s, t, XSP_TARGET_WAITS);
	t->next_ns = s->now_ns + ns;
}

static void back_off(struct xsp_service *s, struct xsp_target *t)
{
	char when[XSP_UNITS_SIZE];

	xsp_log(XSP_LOG_WARNING, "%s (%d): %s; the next try is in %s", t->is.comm, (int)t->is.pid,
		t->why, xsp_format_ns(when, t->back_off_ns));
	wait_until(s, t, t->back_off_ns);
	t->back_off_ns =
		2 * t->back_off_ns < BACK_OFF_MOST_NS ? 2 * t->back_off_ns : BACK_OFF_MOST_NS;
}

static void start(struct xsp_service *s, struct xsp_target *t)
{
	int ends[2] = {-1, -1}, rc = xsp_message_pair(ends);

	fflush(NULL);
	t->recorder = rc < 0 ? -1 : fork();
	if (t->recorder == 0)
		record(s, t, ends[1]);
	if (t->recorder < 0) {
		rc = rc < 0 ? rc : -errno;
		t->recorder = 0;
		xsp_close(ends[0]);
		xsp_close(ends[1]);
		snprintf(t->why, sizeof(t->why), "no process for its recorder: %s", strerror(-rc));
		return back_off(s, t);
	}
	close(ends[1]);
	t->socket = ends[0];
	t->figures = (struct xsp_figures){0};
	t->steps_per_s = t->busy = t->gpu_busy = t->processors = 0;
	t->recorder_ns = t->recorder_resident = 0;
	t->why[0] = '\0';
	t->killed = false;
	s->totals.started++;
	enter(s, t, XSP_TARGET_STARTS);
}

static void tell(const struct xsp_target *t, char what)
{
	(void)!send(t->socket, &what, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void xsp_target_end(struct xsp_service *s, struct xsp_target *t, const char *why)
{
	if (t->recorder == 0 || t->state == XSP_TARGET_ENDS)
		return;
	snprintf(t->why, sizeof(t->why), "%s", why);
	tell(t, XSP_SUPERVISOR_END);
	enter(s, t, XSP_TARGET_ENDS);
}

static void after_end(struct xsp_service *s, struct xsp_target *t, int status)
{
	const bool asked = t->state == XSP_TARGET_ENDS;

	if (t->disarm) {
		t->disarm = false;
		return enter(s, t, XSP_TARGET_DISARMED);
	}
	if (s->ends || t->gone)
		return;
	if (asked && t->why[0] != '\0') /* it cost too much */
		return wait_until(s, t, BUDGET_NS);
	if (t->state == XSP_TARGET_ARMED && s->now_ns > t->since_ns + GOOD_NS)
		t->back_off_ns = BACK_OFF_NS;
	s->totals.failed++;
	if (WIFSIGNALED(status))
		snprintf(t->why, sizeof(t->why), "its recorder was ended by signal %d",
			 WTERMSIG(status));
	else
		snprintf(t->why, sizeof(t->why), "its recorder ended with status %d",
			 WEXITSTATUS(status));
	back_off(s, t);
}

bool xsp_target_reap(struct xsp_service *s, pid_t pid, int status)
{
	for (struct xsp_target *t = s->targets; t < s->targets + s->count; t++) {
		if (t->recorder != pid)
			continue;
		xsp_target_listen(s, t); /* what it said last */
		xsp_target_answer(s, t, "has a recorder that ended", false);
		t->recorder = 0;
		xsp_close(t->socket);
		t->socket = -1;
		after_end(s, t, status);
		return true;
	}
	return false;
}

/* ---- what recorders say ---- */

void xsp_target_answer(struct xsp_service *s, struct xsp_target *t, const char *text, bool written)
{
	char line[800];

	for (unsigned i = 0; i < XSP_CTL_CLIENTS; i++) {
		struct xsp_ctl_client *c = &s->ctl.clients[i];
		if (!(t->asked & 1U << i) || c->socket < 0 || !c->waits)
			continue;
		if (written)
			snprintf(line, sizeof(line), "%s\n", text);
		else
			snprintf(line, sizeof(line), "%s (%d) %s: no snapshot\n", t->is.comm,
				 (int)t->is.pid, text);
		xsp_ctl_say(c, line);
		c->failed += !written;
		if (--c->left == 0)
			xsp_ctl_end(c, c->failed > 0 ? XSP_STATUS_FAILED : XSP_STATUS_OK);
	}
	t->asked = 0;
}

static void take_written(struct xsp_service *s, struct xsp_target *t, struct xsp_figures_written *w)
{
	char line[700];

	w->name[sizeof(w->name) - 1] = '\0';
	w->why[sizeof(w->why) - 1] = '\0';
	xsp_text_clean(w->name);
	xsp_text_clean(w->why);
	if (w->status != 0)
		return xsp_target_answer(s, t, "has a recorder that could not write it", false);
	t->snapshots++;
	xsp_log(XSP_LOG_NOTICE, "wrote %s/%s (%s)", s->config.folder, w->name, w->why);
	snprintf(line, sizeof(line), "%.200s/%.256s", s->config.folder, w->name);
	xsp_target_answer(s, t, line, true);
	s->kept_ns = 0; /* is there still room for it? */
}

static double rate(uint64_t now, uint64_t before, double ns)
{
	return now > before && ns > 0 ? (double)(now - before) / ns : 0;
}

/* A recorder that was taken over may say anything: what is no number of its kind is none. */
static double share(double value)
{
	return isfinite(value) && value > 0 ? value : 0;
}

static void measure(struct xsp_target *t, double ns)
{
	uint64_t cpu_ns = t->recorder_ns;
	char *text = NULL;
	const char *value;

	xsp_process_cpu_ns(t->recorder, &cpu_ns);
	const double cost = rate(cpu_ns, t->recorder_ns, ns) + t->figures.overhead;
	/* its start is dear, and over */
	if (t->recorder_ns != 0)
		t->processors += LATELY * (cost - t->processors);
	t->recorder_ns = cpu_ns;
	if (xsp_procfs_read(&xsp_open_directly, t->recorder, "status", 8192, &text, NULL) == 0 &&
	    (value = xsp_procfs_field(text, "VmRSS")) != NULL)
		t->recorder_resident = strtoull(value, NULL, 10) * 1024;
	free(text);
}

static void take_figures(struct xsp_service *s, struct xsp_target *t, const struct xsp_figures *f)
{
	const struct xsp_figures before = t->figures;
	const double ns = f->time_ns > before.time_ns ? (double)(f->time_ns - before.time_ns) : 0;

	t->figures = *f;
	t->figures.overhead = share(f->overhead);
	t->figures.slowdown = share(f->slowdown);
	if (before.time_ns != 0) {
		t->steps_per_s = 1e9 * rate(f->steps, before.steps, ns);
		t->busy = rate(f->busy_ns, before.busy_ns, ns);
		t->gpu_busy = rate(f->gpu_ns, before.gpu_ns, ns);
	}
	measure(t, ns);
	if (t->state == XSP_TARGET_STARTS) {
		enter(s, t, XSP_TARGET_ARMED);
		xsp_log(XSP_LOG_INFO, "%s (%d) is recorded: watch %s", t->is.comm, (int)t->is.pid,
			xsp_target_watch(s, t));
	}
	if (t->recorder_resident > s->config.memory && t->state == XSP_TARGET_ARMED) {
		xsp_log(XSP_LOG_WARNING,
			"%s (%d): its recorder has more memory than one may have and is ended; again in %llu s",
			t->is.comm, (int)t->is.pid, BUDGET_NS / SECOND_NS);
		xsp_target_end(s, t, "its recorder needed too much memory");
	}
}

void xsp_target_listen(struct xsp_service *s, struct xsp_target *t)
{
	union {
		uint32_t kind;
		struct xsp_figures figures;
		struct xsp_figures_written written;
	} m;
	ssize_t n;

	while (t->socket >= 0 &&
	       (n = recv(t->socket, &m, sizeof(m), MSG_DONTWAIT | MSG_TRUNC)) != 0) {
		if (n < 0)
			return;
		if (n == (ssize_t)sizeof(m.figures) && m.kind == XSP_FIGURES)
			take_figures(s, t, &m.figures);
		else if (n == (ssize_t)sizeof(m.written) && m.kind == XSP_FIGURES_WRITTEN)
			take_written(s, t, &m.written);
	}
	/* it has closed its end: its death comes next */
	xsp_close(t->socket);
	t->socket = -1;
}

/* ---- in each turn ---- */

static bool user_starts(const struct xsp_service *s, uid_t uid)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->targets[i].state == XSP_TARGET_STARTS && s->targets[i].is.uid == uid)
			return true;
	return false;
}

/* The one that has waited longest, of a user who has none that starts: nobody holds up the others. */
static struct xsp_target *next_to_start(struct xsp_service *s)
{
	struct xsp_target *next = NULL;

	for (struct xsp_target *t = s->targets; t < s->targets + s->count; t++)
		if (t->state == XSP_TARGET_WAITS && !t->gone && t->next_ns <= s->now_ns &&
		    !user_starts(s, t->is.uid) && (next == NULL || t->next_ns < next->next_ns))
			next = t;
	return next;
}

static void kill_late(struct xsp_service *s, struct xsp_target *t)
{
	const uint64_t most = t->gone			      ? GONE_NS
			      : t->state == XSP_TARGET_STARTS ? STARTS_NS
			      : t->state == XSP_TARGET_ENDS   ? ENDS_NS
							      : UINT64_MAX / 2;

	if (t->recorder == 0 || t->killed || s->now_ns < t->since_ns + most)
		return;
	xsp_log(XSP_LOG_ERROR, "the recorder of %s (%d) does not %s and is killed", t->is.comm,
		(int)t->is.pid, t->state == XSP_TARGET_STARTS ? "begin" : "end");
	t->killed = true;
	kill(t->recorder, SIGKILL); /* its broker takes the probes out */
}

/* All of them together cost too much: the dearest goes. */
static void keep_budget(struct xsp_service *s)
{
	struct xsp_target *dearest = NULL;
	double sum = 0;

	for (struct xsp_target *t = s->targets; t < s->targets + s->count; t++) {
		if (t->state != XSP_TARGET_ARMED)
			continue;
		sum += t->processors;
		if (dearest == NULL || t->processors > dearest->processors)
			dearest = t;
	}
	if (s->now_ns < s->judged_ns + 10 * SECOND_NS || dearest == NULL || sum <= s->config.budget)
		return;
	s->judged_ns = s->now_ns;
	s->totals.over_budget++;
	xsp_log(XSP_LOG_WARNING,
		"recording takes %.0f %% of a processor, and budget is %.0f %%: %s (%d), which takes %.0f %%, is left alone for %llu s",
		100 * sum, 100 * s->config.budget, dearest->is.comm, (int)dearest->is.pid,
		100 * dearest->processors, BUDGET_NS / SECOND_NS);
	xsp_target_end(s, dearest, "it cost too much of the budget");
}

void xsp_targets_turn(struct xsp_service *s)
{
	for (size_t i = s->count; i > 0; i--) {
		struct xsp_target *t = &s->targets[i - 1];
		if ((t->gone || s->ends) && t->recorder == 0)
			forget(s, t);
		else
			kill_late(s, t);
	}
	if (s->ends)
		return;
	keep_budget(s);
	for (struct xsp_target *t;
	     xsp_targets_in(s, XSP_TARGET_STARTS) < STARTING && (t = next_to_start(s)) != NULL;)
		start(s, t);
}
