/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/record/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "planner/sandbox.h"
#include "target/module.h"
#include "target/process.h"

struct xsp_launch {
	pid_t pid;
	bool traced; /* we are its ptracer, and it is stopped */
	bool ended;
	int status;
	bool armed; /* the breakpoint is set */
	bool at_exec; /* exec stopped it, and it has not run yet */
	bool has_run; /* the loader is done */
	uint64_t breakpoint;
	long saved; /* the word that the breakpoint replaced */
	int hits;
};

/* ld.so calls it with RT_ADD before and RT_CONSISTENT after mapping the program's libraries. */
#define LOADER_BREAKPOINT "_dl_debug_state"
#define LOADER_HITS 2

static void child_main(char *const argv[], uid_t uid, gid_t gid, int report)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGINT, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	int code = -xsp_sandbox_user(uid, gid);
	if (code == 0 && ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0)
		execvp(argv[0], argv);
	if (code == 0)
		code = errno;
	ssize_t n = write(report, &code, sizeof(code));
	_exit(n < 0 ? 125 : 126);
}

static int exec_failed(int code, const char *name, struct xsp_error *err)
{
	if (code == ENOENT)
		return xsp_error_set(err, -code, XSP_STATUS_NOT_FOUND, "%s: command not found",
				     name);
	return xsp_error_set(err, -code, XSP_STATUS_CANNOT_RUN, "%s cannot be started: %s", name,
			     strerror(code));
}

/* Kills the program if we die. If only we died, the breakpoint would stay and kill the program
 * later, in the middle of its work. Until release the program has done nothing yet. */
static int go_together(const struct xsp_launch *l)
{
	return ptrace(PTRACE_SETOPTIONS, l->pid, NULL, (void *)PTRACE_O_EXITKILL) ? -errno : 0;
}

static int wait_for_exec(struct xsp_launch *l)
{
	if (waitpid(l->pid, &l->status, 0) < 0)
		return -errno;
	if (!WIFSTOPPED(l->status)) {
		l->ended = true;
		return -ECHILD;
	}
	l->traced = true;
	l->at_exec = true;
	return go_together(l);
}

int xsp_launch_start(char *const argv[], uid_t uid, gid_t gid, struct xsp_launch **out,
		     struct xsp_error *err)
{
	struct xsp_launch *l = calloc(1, sizeof(*l));
	int report[2] = {-1, -1}, code = 0, rc = -ENOMEM;

	if (l == NULL || pipe2(report, O_CLOEXEC) != 0)
		goto fail;
	l->pid = fork();
	if (l->pid == 0)
		child_main(argv, uid, gid, report[1]);
	rc = l->pid < 0 ? -errno : 0;
	close(report[1]);
	report[1] = -1;
	if (rc < 0)
		goto fail;
	rc = wait_for_exec(l);
	if (l->ended && read(report[0], &code, sizeof(code)) == sizeof(code)) {
		rc = exec_failed(code, argv[0], err);
		goto fail;
	}
	if (rc < 0)
		goto fail;
	close(report[0]);
	*out = l;
	return 0;
fail:
	if (report[0] >= 0)
		close(report[0]);
	if (report[1] >= 0)
		close(report[1]);
	free(l);
	return xsp_error_set(err, rc, XSP_STATUS_CANNOT_RUN, "%s cannot be started: %s", argv[0],
			     strerror(-rc));
}

/* Exchanges a stop that everybody sees (SIGSTOP at exec) for one that only we see. */
static int attach_at_stop(struct xsp_launch *l)
{
	if (waitpid(l->pid, &l->status, WUNTRACED) < 0)
		return -errno;
	if (!WIFSTOPPED(l->status)) {
		l->ended = true;
		return -ECHILD;
	}
	if (ptrace(PTRACE_ATTACH, l->pid, NULL, NULL) != 0)
		return -errno;
	l->traced = true;
	if (waitpid(l->pid, &l->status, 0) < 0)
		return -errno;
	return WIFSTOPPED(l->status) ? go_together(l) : -ECHILD;
}

int xsp_launch_again(struct xsp_launch *l)
{
	int rc = l->ended || l->traced ? -EBUSY : attach_at_stop(l);

	if (rc < 0)
		return rc;
	l->at_exec = true;
	l->armed = false;
	l->hits = 0;
	return 0;
}

pid_t xsp_launch_pid(const struct xsp_launch *l)
{
	return l->pid;
}

/* The address of the loader's breakpoint function in the stopped process; 0: there is none. */
static uint64_t find_breakpoint(const struct xsp_opener *o, pid_t pid)
{
	struct xsp_process *p = NULL;
	struct xsp_mapped_files *files = NULL;
	uint64_t address = 0;

	if (xsp_process_open(o, pid, &p, NULL) < 0)
		return 0;
	if (xsp_process_mapped_files(p, &files, NULL) == 0) {
		for (size_t i = 0; i < files->count && address == 0; i++) {
			const struct xsp_mapped_file *f = &files->files[i];
			struct xsp_module *m;
			struct xsp_symbol s;
			if (strstr(f->display_path, "ld-") == NULL &&
			    strstr(f->display_path, "ld.") == NULL)
				continue;
			if (xsp_module_open_mapped(p, f, &m, NULL) < 0)
				continue;
			if (xsp_module_find(m, LOADER_BREAKPOINT, &s) == 0 && s.offset >= f->offset)
				address = f->start + (s.offset - f->offset);
			xsp_module_free(m);
		}
		xsp_mapped_files_free(files);
	}
	xsp_process_free(p);
	return address;
}

#if defined(__x86_64__)
static int step_back(pid_t pid, uint64_t address)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, pid, NULL, &regs) != 0 || regs.rip != address + 1)
		return -EINVAL;
	regs.rip = address;
	return ptrace(PTRACE_SETREGS, pid, NULL, &regs) == 0 ? 0 : -errno;
}
#define BREAKPOINT_MASK 0xffL
#define BREAKPOINT_CODE 0xccL
#elif defined(__aarch64__)
static int step_back(pid_t pid, uint64_t address)
{
	struct user_regs_struct regs;
	struct iovec iov = {&regs, sizeof(regs)};

	/* brk leaves the pc on itself */
	if (ptrace(PTRACE_GETREGSET, pid, 1 /* NT_PRSTATUS */, &iov) != 0)
		return -errno;
	return regs.pc == address ? 0 : -EINVAL;
}
#define BREAKPOINT_MASK 0xffffffffL
#define BREAKPOINT_CODE 0xd4200000L
#endif

static int poke_breakpoint(struct xsp_launch *l, bool in)
{
	long word = in ? (l->saved & ~BREAKPOINT_MASK) | BREAKPOINT_CODE : l->saved;

	if (ptrace(PTRACE_POKETEXT, l->pid, (void *)l->breakpoint, (void *)word) != 0)
		return -errno;
	l->armed = in;
	return 0;
}

static int arm(struct xsp_launch *l, const struct xsp_opener *o)
{
	l->breakpoint = find_breakpoint(o, l->pid);
	if (l->breakpoint == 0)
		return -ENOENT;
	errno = 0;
	l->saved = ptrace(PTRACE_PEEKTEXT, l->pid, (void *)l->breakpoint, NULL);
	return errno ? -errno : poke_breakpoint(l, true);
}

/* Runs the program until it stops again; -ECHILD when it ends. */
static int run_and_wait(struct xsp_launch *l, enum __ptrace_request how, int signal_number)
{
	if (ptrace(how, l->pid, NULL, (void *)(intptr_t)signal_number) != 0)
		return -errno;
	if (waitpid(l->pid, &l->status, 0) < 0)
		return -errno;
	if (WIFSTOPPED(l->status))
		return 0;
	l->ended = l->has_run = true;
	l->traced = false;
	return -ECHILD;
}

/* Steps over the breakpoint: restores the word, takes one step, and sets the breakpoint again. */
static int step_over(struct xsp_launch *l)
{
	int rc = poke_breakpoint(l, false);

	if (rc < 0)
		return rc;
	rc = run_and_wait(l, PTRACE_SINGLESTEP, 0);
	return rc < 0 ? rc : poke_breakpoint(l, true);
}

/* Waits for the breakpoint, and passes on the signals that come before it. */
static int run_to_breakpoint(struct xsp_launch *l)
{
	int signal_number = 0;

	for (;;) {
		int rc = run_and_wait(l, PTRACE_CONT, signal_number);
		if (rc < 0)
			return rc;
		signal_number = WSTOPSIG(l->status);
		if (signal_number == SIGTRAP && step_back(l->pid, l->breakpoint) == 0)
			return 0;
		if (signal_number == SIGTRAP)
			signal_number = 0;
	}
}

int xsp_launch_next(struct xsp_launch *l, const struct xsp_opener *o)
{
	int rc = 0;

	if (!l->traced || l->ended)
		return 0;
	if (l->at_exec) {
		l->at_exec = false;
		rc = arm(l, o);
	} else if (l->hits >= LOADER_HITS) {
		rc = -EALREADY;
	} else {
		rc = step_over(l);
	}
	if (rc == 0)
		rc = run_to_breakpoint(l);
	if (rc == 0) {
		l->hits++;
		return 1;
	}
	xsp_launch_release(l);
	return rc == -ENOENT || rc == -EALREADY || rc == -ECHILD ? 0 : rc;
}

void xsp_launch_release(struct xsp_launch *l)
{
	if (!l->traced)
		return;
	if (l->armed)
		poke_breakpoint(l, false);
	ptrace(PTRACE_DETACH, l->pid, NULL, NULL);
	l->traced = false;
	l->has_run = true;
}

bool xsp_launch_ended(struct xsp_launch *l, int *status)
{
	if (!l->ended && !l->traced && waitpid(l->pid, &l->status, WNOHANG) == l->pid)
		l->ended = WIFEXITED(l->status) || WIFSIGNALED(l->status);
	if (l->ended && status != NULL)
		*status = l->status;
	return l->ended;
}

void xsp_launch_signal(struct xsp_launch *l, int signal_number)
{
	if (!l->ended)
		kill(l->pid, signal_number);
}

bool xsp_launch_has_run(const struct xsp_launch *l)
{
	return l->has_run;
}

void xsp_launch_free(struct xsp_launch *l)
{
	if (l == NULL)
		return;
	if (!l->has_run && !l->ended) { /* a program that could not be traced does not run either */
		kill(l->pid, SIGKILL);
		waitpid(l->pid, &l->status, 0);
		l->ended = true;
		l->traced = false;
	}
	xsp_launch_release(l);
	free(l);
}

int xsp_launch_exit_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
