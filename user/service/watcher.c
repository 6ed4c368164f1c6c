/* SPDX-License-Identifier: BSD-2-Clause */
#include "service/watcher.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/file_io.h"
#include "base/files/message.h"
#include "base/rows/tally.h"
#include "base/units.h"
#include "procfs/family.h"
#include "procfs/procfs.h"
#include "service/match.h"

#define HANGS_NS 3000000000ULL
#define SOON_NS                                                                                    \
	500000000ULL /* a new process is looked at again so soon, then after twice that, ... */
#define LATE_NS 30000000000ULL
#define AGAIN_NS 5000000000ULL /* one that was found */

/* ---- in the process ---- */

struct known {
	pid_t pid;
	uint64_t start_ticks, next_ns, wait_ns;
};

struct looking {
	const struct xsp_service_config *config;
	struct xsp_watcher_state *state;
	int socket;
	XSP_TALLY(struct known) before, now;
	uint64_t now_ns;
	struct statx self; /* our program: no recorder is recorded */
};

static uint64_t age_ns(uint64_t start_ticks)
{
	struct timespec boot;

	clock_gettime(CLOCK_BOOTTIME, &boot);
	const uint64_t now = (uint64_t)boot.tv_sec * 1000000000ULL + (uint64_t)boot.tv_nsec;
	const uint64_t began = start_ticks * (1000000000ULL / (uint64_t)sysconf(_SC_CLK_TCK));
	return now > began ? now - began : 0;
}

/* Asks no file system that somebody else may run. */
static int look_at_program(const char *name, struct statx *out)
{
	return statx(AT_FDCWD, name, AT_STATX_DONT_SYNC, STATX_INO, out);
}

static bool is_ours(const struct looking *l, pid_t pid)
{
	char name[64];
	struct statx st;

	snprintf(name, sizeof(name), "/proc/%d/exe", (int)pid);
	return look_at_program(name, &st) == 0 && st.stx_ino == l->self.stx_ino &&
	       st.stx_dev_major == l->self.stx_dev_major &&
	       st.stx_dev_minor == l->self.stx_dev_minor;
}

static uid_t user_of(pid_t pid)
{
	char *text = NULL;
	const char *value = NULL;
	uid_t uid = (uid_t)-1;

	if (xsp_procfs_read(&xsp_open_directly, pid, "status", 8192, &text, NULL) == 0)
		value = xsp_procfs_field(text, "Uid");
	if (value != NULL)
		uid = (uid_t)strtoul(value, NULL, 10);
	free(text);
	return uid;
}

static void name_of(pid_t pid, char name[16])
{
	char *text = NULL, clean[64 + 4] = "";

	if (xsp_procfs_read(&xsp_open_directly, pid, "comm", 60, &text, NULL) == 0) {
		text[strcspn(text, "\n")] = '\0';
		xsp_printable(clean, sizeof(clean), text, 0);
	}
	snprintf(name, 16, "%.15s", clean);
	free(text);
}

/* How long until the next look, in k->wait_ns. */
static int look(struct looking *l, struct known *k)
{
	const pid_t pid = k->pid;
	struct xsp_watcher_found f = {.pid = pid, .start_ticks = k->start_ticks};
	const uint64_t age = age_ns(k->start_ticks);

	k->wait_ns = k->wait_ns == 0		? SOON_NS
		     : 2 * k->wait_ns < LATE_NS ? 2 * k->wait_ns
						: LATE_NS;
	f.uid = user_of(pid);
	const int watch = xsp_match(l->config, pid, f.uid);
	if (watch < 0)
		return 0;
	const uint64_t least = l->config->watches[watch].min_age_ns;
	k->wait_ns = age < least ? least - age : AGAIN_NS;
	if (age < least)
		return 0;
	f.watch = (uint32_t)watch;
	name_of(pid, f.comm);
	return send(l->socket, &f, sizeof(f), MSG_NOSIGNAL) == (ssize_t)sizeof(f) ? 0 : -EPIPE;
}

static bool is_skipped(const struct looking *l, pid_t pid)
{
	for (unsigned i = 0; i < XSP_WATCHER_SKIPS; i++)
		if (l->state->skips[i] == pid)
			return true;
	return false;
}

static int look_if_due(struct looking *l, struct known *k)
{
	struct xsp_stat st;
	int rc = 0;

	if (l->now_ns < k->next_ns || is_skipped(l, k->pid))
		return 0;
	l->state->since_ns = xsp_now_ns();
	l->state->at = k->pid;
	if (xsp_procfs_stat(&xsp_open_directly, k->pid, &st) < 0 || st.state == 'Z') {
		k->next_ns = l->now_ns + SOON_NS;
	} else {
		if (st.start_ticks != k->start_ticks) /* another one has the number */
			*k = (struct known){.pid = k->pid, .start_ticks = st.start_ticks};
		if (st.flags & XSP_PF_KTHREAD || is_ours(l, k->pid))
			k->wait_ns = LATE_NS;
		else
			rc = look(l, k);
		k->next_ns = l->now_ns + k->wait_ns;
	}
	l->state->at = 0;
	return rc;
}

static int on_process(void *ctx, pid_t pid)
{
	struct looking *l = ctx;
	const struct known *before = xsp_tally_find(&l->before, (uint64_t)pid);
	struct known *k = xsp_tally_row(&l->now, (uint64_t)pid,
					before != NULL ? before : &(struct known){.pid = pid});

	return k == NULL ? l->now.tally.error : look_if_due(l, k);
}

static void watch(struct looking *l)
{
	struct pollfd service = {.fd = l->socket, .events = POLLIN};
	const int ms = (int)(l->config->scan_ns / 1000000);
	int rc = 0;

	while (rc == 0 && poll(&service, 1, ms) == 0) { /* its end speaks only by closing */
		const __typeof__(l->now) swapped = l->before;
		l->before = l->now;
		l->now = swapped;
		xsp_tally_begin_anew(&l->now);
		l->now_ns = xsp_now_ns();
		rc = xsp_each_process(on_process, l);
	}
}

/* Only looking at other processes is left. */
static int give_up_rights(void)
{
	const int kept[] = {CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH};
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct now[_LINUX_CAPABILITY_U32S_3],
		data[_LINUX_CAPABILITY_U32S_3] = {0};

	if (syscall(SYS_capget, &head, now) != 0)
		return -errno;
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		data[0].effective |= now[0].permitted & 1U << kept[i];
	data[0].permitted = data[0].effective;
	if (syscall(SYS_capset, &head, data) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
		return -errno;
	return 0;
}

static void run(const struct xsp_watcher *w, int socket)
{
	struct looking l = {.config = w->config, .state = w->state, .socket = socket};
	int kept[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, socket};
	sigset_t none;

	prctl(PR_SET_NAME, "xsp-watcher");
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGINT, SIG_IGN); /* Ctrl-C is the service's, whose end is ours */
	if (look_at_program("/proc/self/exe", &l.self) != 0 || xsp_close_all_but(kept, 4) < 0 ||
	    give_up_rights() < 0)
		_exit(1);
	watch(&l);
	_exit(0);
}

/* ---- in the service ---- */

int xsp_watcher_start(struct xsp_watcher *w)
{
	int ends[2];

	if (w->state == NULL) {
		void *shared = mmap(NULL, sizeof(*w->state), PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (shared == MAP_FAILED)
			return -errno;
		w->state = shared;
	}
	w->state->at = 0;
	const int rc = xsp_message_pair(ends);
	if (rc < 0)
		return rc;
	fflush(NULL);
	w->pid = fork();
	if (w->pid == 0)
		run(w, ends[1]);
	close(ends[1]);
	w->socket = ends[0];
	if (w->pid > 0)
		return 0;
	const int error = errno;
	xsp_watcher_stop(w);
	return -error;
}

void xsp_watcher_stop(struct xsp_watcher *w)
{
	xsp_close(w->socket);
	w->socket = -1;
	if (w->pid > 0) {
		kill(w->pid, SIGKILL);
		waitpid(w->pid, NULL, WNOHANG); /* if it hangs, the service reaps it later */
	}
	w->pid = 0;
}

pid_t xsp_watcher_hangs(struct xsp_watcher *w, uint64_t now_ns)
{
	const pid_t at = w->state->at;

	if (at == 0 || now_ns < w->state->since_ns + HANGS_NS)
		return 0;
	w->state->skips[w->state->skip_count++ % XSP_WATCHER_SKIPS] = at;
	return at;
}

bool xsp_watcher_next(struct xsp_watcher *w, struct xsp_watcher_found *found, bool *gone)
{
	const ssize_t n = recv(w->socket, found, sizeof(*found), MSG_DONTWAIT | MSG_TRUNC);

	*gone = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
	if (n != (ssize_t)sizeof(*found) || found->watch >= w->config->watch_count ||
	    found->pid <= 0)
		return false;
	found->comm[sizeof(found->comm) - 1] = '\0';
	return true;
}

uint64_t xsp_process_start(pid_t pid)
{
	struct xsp_stat st;

	return xsp_procfs_stat(&xsp_open_directly, pid, &st) < 0 || st.state == 'Z'
		       ? 0
		       : st.start_ticks;
}
