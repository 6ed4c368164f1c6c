/* SPDX-License-Identifier: BSD-2-Clause */
/* service.c - the service's life: its start, its loop, its end. */
#include "service/service.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/file_io.h"
#include "procfs/procfs.h"
#include "service/private.h"

#define SECOND_NS 1000000000ULL
#define CONFIG_MAX (256U << 10)
#define TURN_MS 250
#define TICK_NS SECOND_NS /* metrics, what systemd shows */
#define KEEP_NS (30 * SECOND_NS) /* between two looks at the folder */
#define AGAIN_NS (30 * SECOND_NS) /* until the metrics' process is started again */
#define LAST_NS (30 * SECOND_NS) /* recorders may take so long to end */

/* ---- its start ---- */

static void say_bad_line(void *ctx, unsigned line, const char *text)
{
	const char *path = ctx;

	if (line > 0)
		xsp_log(XSP_LOG_ERROR, "%s:%u: %s", path, line, text);
	else
		xsp_log(XSP_LOG_ERROR, "%s: %s", path, text);
}

static int read_config(struct xsp_service *s)
{
	const char *path = s->options->path;
	const struct xsp_config_check check = {
		.option = s->options->option, .bad = say_bad_line, .ctx = (void *)path};
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = NULL;
	size_t length;
	int rc = fd < 0 ? -errno : xsp_procfs_read_whole(fd, CONFIG_MAX, &text, &length);

	xsp_close(fd);
	if (rc < 0) {
		xsp_log(XSP_LOG_ERROR, "cannot read the configuration %s: %s", path, strerror(-rc));
		return XSP_STATUS_USAGE;
	}
	rc = xsp_config_parse(text, &check, &s->config);
	free(text);
	if (s->config.user == NULL) {
		s->config.uid = getuid();
		s->config.gid = getgid();
	}
	if (rc < 0)
		xsp_log(XSP_LOG_ERROR, "out of memory");
	return rc < 0 ? XSP_STATUS_FAILED : rc > 0 ? XSP_STATUS_USAGE : XSP_STATUS_OK;
}

/* No two services at the same socket. Children close it. */
static int take_lock(struct xsp_service *s)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s.lock", s->config.socket);
	s->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->lock >= 0 && flock(s->lock, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno == EWOULDBLOCK)
		xsp_log(XSP_LOG_ERROR, "another service runs with the socket %s", s->config.socket);
	else
		xsp_log(XSP_LOG_ERROR, "cannot lock %s: %s", path, strerror(errno));
	return -EEXIST;
}

/* Only the recorders' user reads what is there. */
static int open_folder(struct xsp_service *s)
{
	const char *path = s->config.folder;
	const bool made = mkdir(path, 0700) == 0;
	struct stat st;

	s->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->folder < 0 || fstat(s->folder, &st) != 0 ||
	    (made && fchown(s->folder, s->config.uid, s->config.gid) != 0)) {
		xsp_log(XSP_LOG_ERROR, "cannot use the folder %s: %s", path, strerror(errno));
		return -errno;
	}
	if (!made && s->config.uid != st.st_uid) {
		xsp_log(XSP_LOG_ERROR,
			"%s does not belong to the user whom recorders run as: chown %u %s", path,
			(unsigned)s->config.uid, path);
		return -EPERM;
	}
	if (!made && (st.st_mode & 022) != 0) {
		xsp_log(XSP_LOG_ERROR,
			"others may write to %s, and so put files in the place of snapshots: chmod go-w",
			path);
		return -EPERM;
	}
	return 0;
}

static int catch_signals(struct xsp_service *s)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->signals < 0 ? -errno : 0;
}

static int begin(struct xsp_service *s)
{
	struct xsp_error err = {0};

	if (geteuid() != 0 && getuid() != 0)
		xsp_log(XSP_LOG_WARNING,
			"the service is not root: its recorders need the file capabilities of docs/security.md");
	if (take_lock(s) < 0 || open_folder(s) < 0)
		return XSP_STATUS_OUTPUT;
	s->ctl = (struct xsp_ctl){.requests = xsp_service_requests,
				  .request_count = xsp_service_request_count,
				  .ctx = s,
				  .uid = geteuid(),
				  .gid = s->config.group_id};
	if (xsp_ctl_listen(&s->ctl, s->config.socket, &err) < 0) {
		xsp_log(XSP_LOG_ERROR, "%s", err.text);
		return (int)err.status;
	}
	s->watcher = (struct xsp_watcher){.config = &s->config, .socket = -1};
	int rc = catch_signals(s);
	if (rc == 0)
		rc = xsp_watcher_start(&s->watcher);
	if (rc < 0)
		xsp_log(XSP_LOG_ERROR, "the service cannot begin: %s", strerror(-rc));
	return rc < 0 ? XSP_STATUS_FAILED : XSP_STATUS_OK;
}

/* ---- snapshots that go ---- */

static void say_removed(void *ctx, const char *name, const char *why, int error)
{
	struct xsp_service *s = ctx;

	if (error < 0) {
		xsp_log(XSP_LOG_ERROR, "%s/%s cannot be removed: %s", s->config.folder, name,
			strerror(-error));
		return;
	}
	s->totals.removed++;
	xsp_log(XSP_LOG_NOTICE, "%s/%s is removed: %s", s->config.folder, name, why);
}

static void keep_snapshots(struct xsp_service *s)
{
	const struct xsp_keep keep = {.age_s = s->config.keep_age_ns / SECOND_NS,
				      .bytes = s->config.keep_size,
				      .removed = say_removed,
				      .ctx = s};
	struct xsp_keep_totals now;
	const int rc = xsp_keep(s->folder, &keep, time(NULL), &now);

	if (rc < 0)
		xsp_log(XSP_LOG_ERROR, "%s cannot be read: %s", s->config.folder, strerror(-rc));
	s->totals.kept_files = now.files;
	s->totals.kept_bytes = now.bytes;
	s->kept_ns = s->now_ns;
}

/* ---- metrics ---- */

static void serve_metrics(struct xsp_service *s)
{
	int kept[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, -1};
	const pid_t service = getpid();
	sigset_t none;

	if (s->config.metrics_port == 0 || s->metrics != 0 || s->now_ns < s->metrics_next_ns)
		return;
	s->metrics_next_ns = s->now_ns + AGAIN_NS;
	fflush(NULL);
	s->metrics = fork();
	if (s->metrics < 0)
		s->metrics = 0;
	if (s->metrics != 0 || getpid() == service)
		return;
	prctl(PR_SET_NAME, "xsp-metrics");
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGINT, SIG_IGN);
	if (xsp_close_all_but(kept, 4) < 0)
		_exit(XSP_STATUS_FAILED);
	_exit(s->options->serve(s->config.metrics_file, (uint16_t)s->config.metrics_port));
}

static void write_metrics(struct xsp_service *s)
{
	struct xsp_metrics_target rows[XSP_TARGETS_MAX];
	size_t n = 0;

	s->totals.armed = xsp_targets_in(s, XSP_TARGET_ARMED);
	s->totals.disarmed = xsp_targets_in(s, XSP_TARGET_DISARMED);
	s->totals.waiting = s->count - s->totals.armed - s->totals.disarmed;
	if (s->config.metrics_file == NULL)
		return;
	for (size_t i = 0; i < s->count; i++) {
		const struct xsp_target *t = &s->targets[i];
		if (t->state == XSP_TARGET_ARMED)
			rows[n++] = (struct xsp_metrics_target){
				.watch = xsp_target_watch(s, t),
				.comm = t->is.comm,
				.pid = t->is.pid,
				.figures = &t->figures,
				.steps_per_s = t->steps_per_s,
				.busy = t->busy,
				.gpu_busy = t->gpu_busy,
				.snapshots = t->snapshots,
				.recorder_processors = t->processors,
				.recorder_resident = t->recorder_resident};
	}
	const int rc = xsp_metrics_write(s->config.metrics_file, &s->totals, rows, n);
	if (rc < 0 && s->now_ns > s->told_ns + 60 * SECOND_NS) {
		s->told_ns = s->now_ns;
		xsp_log(XSP_LOG_ERROR, "%s cannot be written: %s", s->config.metrics_file,
			strerror(-rc));
	}
}

/* ---- the loop ---- */

static void reap(struct xsp_service *s)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == s->metrics)
			s->metrics = 0;
		else if (pid == s->watcher.pid)
			s->watcher.pid = 0;
		else
			xsp_target_reap(s, pid, status);
	}
}

static void begin_end(struct xsp_service *s)
{
	if (s->ends)
		return;
	s->ends = true;
	s->ends_ns = s->now_ns;
	xsp_notify("STOPPING=1");
	xsp_watcher_stop(&s->watcher);
	if (s->metrics > 0)
		kill(s->metrics, SIGKILL);
	for (size_t i = 0; i < s->count; i++)
		xsp_target_end(s, &s->targets[i], "");
}

static void take_signals(struct xsp_service *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
			begin_end(s);
	reap(s);
}

static void take_found(struct xsp_service *s)
{
	struct xsp_watcher_found found;
	bool gone = false;

	while (xsp_watcher_next(&s->watcher, &found, &gone))
		xsp_target_found(s, &found);
	if (!gone)
		return;
	xsp_watcher_stop(&s->watcher); /* started again in the next tick */
}

static void look_after_watcher(struct xsp_service *s)
{
	const pid_t at = s->watcher.socket >= 0 ? xsp_watcher_hangs(&s->watcher, s->now_ns) : 0;

	if (at != 0) {
		xsp_log(XSP_LOG_WARNING, "looking at process %d hangs: it is not recorded",
			(int)at);
		xsp_watcher_stop(&s->watcher);
	}
	if (s->watcher.socket < 0 && xsp_watcher_start(&s->watcher) < 0)
		xsp_log(XSP_LOG_ERROR, "the process that looks for targets cannot be started");
}

static void tick(struct xsp_service *s)
{
	if (s->now_ns < s->ticked_ns + TICK_NS)
		return;
	s->ticked_ns = s->now_ns;
	reap(s); /* who could not be waited for at once */
	if (!s->ends) {
		look_after_watcher(s);
		serve_metrics(s);
		write_metrics(s);
		xsp_notify("STATUS=%zu processes are recorded, %zu wait", (size_t)s->totals.armed,
			   (size_t)s->totals.waiting);
	}
	xsp_ctl_expire(&s->ctl, s->now_ns);
	if (s->watchdog_ns != 0)
		xsp_notify("WATCHDOG=1");
	if (s->now_ns > s->kept_ns + KEEP_NS)
		keep_snapshots(s);
}

/* Whoever of them has something to say. */
static void wait_for_any(struct xsp_service *s, struct pollfd *fds)
{
	struct xsp_target *t = s->targets;
	size_t n = 0;

	fds[n++] = (struct pollfd){.fd = s->signals, .events = POLLIN};
	fds[n++] = (struct pollfd){.fd = s->ctl.socket, .events = POLLIN};
	fds[n++] = (struct pollfd){.fd = s->watcher.socket, .events = POLLIN};
	for (size_t i = 0; i < XSP_CTL_CLIENTS; i++)
		fds[n++] = (struct pollfd){.fd = s->ctl.clients[i].socket, .events = POLLIN};
	const size_t first = n;
	for (size_t i = 0; i < s->count; i++) {
		fds[n++] = (struct pollfd){.fd = t[i].socket, .events = POLLIN};
		fds[n++] = (struct pollfd){.fd = t[i].gone ? -1 : t[i].pidfd, .events = POLLIN};
	}
	if (poll(fds, n, TURN_MS) <= 0)
		n = 0;
	s->now_ns = xsp_now_ns();
	/* rows stay where they are until all have been looked at */
	for (size_t i = first; i < n; i += 2, t++) {
		if (fds[i].revents != 0)
			xsp_target_listen(s, t);
		if (fds[i + 1].revents != 0) {
			t->gone = true;
			t->since_ns = s->now_ns;
		}
	}
	if (n == 0)
		return;
	if (fds[2].revents != 0)
		take_found(s);
	for (size_t i = 0; i < XSP_CTL_CLIENTS; i++)
		if (fds[3 + i].revents != 0 && s->ctl.clients[i].socket >= 0)
			xsp_ctl_serve(&s->ctl, i);
	if (fds[1].revents != 0)
		xsp_ctl_accept(&s->ctl, s->now_ns);
	if (fds[0].revents != 0)
		take_signals(s);
}

static void run(struct xsp_service *s)
{
	struct pollfd fds[3 + XSP_CTL_CLIENTS + 2 * XSP_TARGETS_MAX];

	s->watchdog_ns = xsp_notify_watchdog_ns();
	xsp_log(XSP_LOG_INFO, "watches with %zu rules; snapshots go to %s", s->config.watch_count,
		s->config.folder);
	xsp_notify("READY=1");
	while (!s->ends || (s->count > 0 && s->now_ns < s->ends_ns + LAST_NS)) {
		wait_for_any(s, fds);
		xsp_targets_turn(s);
		tick(s);
	}
	if (s->count > 0)
		xsp_log(XSP_LOG_WARNING,
			"%zu recorders have not ended yet: they do so by themselves", s->count);
}

int xsp_service_run(const struct xsp_service_options *options)
{
	struct xsp_service *s = calloc(1, sizeof(*s));
	int status;

	if (s == NULL)
		return XSP_STATUS_FAILED;
	s->options = options;
	s->lock = s->folder = s->signals = s->ctl.socket = s->watcher.socket = -1;
	s->now_ns = xsp_now_ns();
	status = read_config(s);
	if (status == XSP_STATUS_OK && !options->check) {
		status = begin(s);
		if (status == XSP_STATUS_OK)
			run(s);
		if (s->ctl.socket >= 0) {
			unlink(s->config.socket);
			xsp_ctl_close(&s->ctl);
		}
		xsp_watcher_stop(&s->watcher);
		xsp_close(s->signals);
		xsp_close(s->folder);
		xsp_close(s->lock);
	}
	xsp_config_clear(&s->config);
	free(s);
	return status;
}
