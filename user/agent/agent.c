/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * agent.c - the agent's entry points, its thread, fork and exit.
 *
 * The agent's own thread makes all calls of CUPTI, with two exceptions. In InitializeInjection the driver itself waits
 * for us, so that a launched program's first kernels are not missed. And the program's exit waits for the last flush,
 * but not for ever.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "agent.h"

#define THREAD_NAME "xsptrace-agent"
#define INJECTION "CUDA_INJECTION64_PATH"

enum {
	IDLE_NS = 100000000, /* how late it notices that the semaphore rises */
	ACTIVE_NS = 20000000, /* how late it notices that the semaphore falls */
	FRESH_TURNS = 50, /* who has loaded it into a running process is about to ask */
	EXIT_WAIT_US = 5000000,
	WAIT_MAX_MS = 30000,
};

enum exit_state { EXIT_NOT, EXIT_ASKED, EXIT_DONE };

static struct {
	_Atomic pid_t pid; /* the process that has our thread; 0: none */
	_Atomic uint32_t exit; /* enum exit_state; a futex */
	_Atomic bool fork_known;
	_Atomic bool exit_seen; /* the handler may be registered more than once */
	/* the driver is to call us when it starts (CUDA_INJECTION64_PATH): until then CUPTI is left alone */
	_Atomic bool driver_comes;
	_Atomic bool second; /* another copy was there before us: operators are that one's */
} agent;

int InitializeInjection(void);
int xsp_agent_start(void);

static void futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t ns)
{
	struct timespec t = {.tv_sec = (time_t)(ns / 1000000000),
			     .tv_nsec = (long)(ns % 1000000000)};

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &t, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* Runs in exit(): waits a moment for what CUPTI still has. */
static void exit_handler(void)
{
	uint64_t end = agent_now() + (uint64_t)EXIT_WAIT_US * 1000;
	uint32_t state = EXIT_NOT;
	int saved = errno;

	if (atomic_load(&agent.pid) != getpid() || !window_active() ||
	    atomic_exchange(&agent.exit_seen, true))
		return;
	atomic_compare_exchange_strong(&agent.exit, &state, EXIT_ASKED);
	futex_wake(&agent.exit);
	while (atomic_load(&agent.exit) != EXIT_DONE && agent_now() < end)
		futex_wait(&agent.exit, EXIT_ASKED, 10000000);
	errno = saved;
}

/* Exit handlers run last to first, and ours must run before CUPTI's and the driver's. So it is registered once those
 * are there. */
static void register_exit(void)
{
	/* without memory for it, the last 250 ms are missing from the trace */
	if (atexit(exit_handler))
		return;
}

static enum operators_by operators_wanted(void)
{
	return atomic_load(&agent.second)    ? BY_NOTHING
	       : agent_wants(WANT_CALLBACKS) ? BY_CALLBACKS
	       : agent_wants(WANT_OPERATORS) ? BY_SLOTS
					     : BY_NOTHING;
}

static void *thread_main(void *in_driver)
{
	unsigned fresh = in_driver ? 0 : FRESH_TURNS;
	bool regions = false;

	prctl(PR_SET_NAME, THREAD_NAME, 0, 0, 0);
	prctl(PR_SET_TIMERSLACK, 10000000, 0, 0, 0); /* 10 ms, to wake together with others */
	while (atomic_load(&agent.exit) == EXIT_NOT) {
		bool wanted = agent_wants(WANT_ACTIVITY);
		bool first = !atomic_load(&agent.second);
		bool scopes = agent_wants(WANT_REGIONS) && first && !operators_failed();
		bool recording;

		/* a library that came is met at once; but at first the thunks of scopes are to be there */
		if (regions)
			regions = regions_turn(scopes);
		recording = operators_turn(operators_wanted(), scopes);
		if (!regions)
			regions = regions_turn(scopes && !operators_failed());
		rings_turn();
		python_turn();
		if (atomic_load(&agent.driver_comes))
			; /* the window is the driver's thread's */
		else if (wanted && !window_active())
			window_begin(false, register_exit);
		else if (!wanted && window_active())
			window_end(false);
		else if (window_active())
			window_tick();
		futex_wait(&agent.exit, EXIT_NOT,
			   window_active() || recording || regions || fresh > 0 ? ACTIVE_NS
										: IDLE_NS);
		fresh -= fresh > 0;
	}
	if (window_active())
		window_end(true);
	atomic_store(&agent.exit, EXIT_DONE);
	futex_wake(&agent.exit);
	return NULL;
}

/* The child does not have our thread, and CUDA does not work in it. */
static void in_child(void)
{
	atomic_store(&agent.pid, 0);
	atomic_store(&agent.exit, EXIT_NOT);
	atomic_store(&agent.exit_seen, false);
	window_reset();
	regions_in_child();
	operators_in_child();
}

/* `xsptrace -- COMMAND` sets this variable, as the tracer needs a moment to put its probes on a new library. */
static void wait_for_tracer(void)
{
	const char *text = getenv(XSP_GPU_WAIT_VARIABLE);
	long ms = text ? strtol(text, NULL, 10) : 0;
	uint64_t end = agent_now() + (uint64_t)(ms < 0		   ? 0
						: ms > WAIT_MAX_MS ? WAIT_MAX_MS
								   : ms) *
					     1000000;
	struct timespec pause = {.tv_nsec = 2000000};

	while (!agent_wants(WANT_ACTIVITY) && agent_now() < end)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

static int start_thread(bool in_driver)
{
	sigset_t all, before;
	pthread_t thread;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&thread, NULL, thread_main, in_driver ? &agent : NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!error)
		pthread_detach(thread);
	return -error;
}

/* The driver waits for us. */
static void begin_in_driver(void)
{
	wait_for_tracer();
	if (agent_wants(WANT_ACTIVITY) && !window_active())
		window_begin(true, register_exit);
	atomic_store(&agent.driver_comes, false);
}

static int start(bool in_driver)
{
	pid_t pid = getpid();
	const char *limit = getenv(XSP_GPU_BUFFER_VARIABLE), *by_driver = getenv(INJECTION);
	int error;

	if (atomic_exchange(&agent.pid, pid) == pid) {
		if (in_driver && atomic_load(&agent.driver_comes))
			begin_in_driver();
		return 0;
	}
	if (!atomic_exchange(&agent.fork_known, true))
		pthread_atfork(operators_before_fork, NULL, in_child);
	if (limit)
		buffers_limit((uint64_t)strtoul(limit, NULL, 10) << 20);
	atomic_store(&agent.driver_comes, !in_driver && by_driver &&
						  strstr(by_driver, XSP_GPU_AGENT) &&
						  !cupti_driver());
	if (in_driver)
		begin_in_driver();
	error = start_thread(in_driver);
	if (error)
		atomic_store(&agent.pid, 0);
	return error;
}

/* Does the process have a second copy of this library, from another file? Two copies would take each other's records.
 * The other's thread has a name that we know. */
static bool another_agent(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;
	bool found = false;

	while (tasks && !found && (task = readdir(tasks))) {
		char path[64], name[32] = "";
		int fd;

		if ((size_t)snprintf(path, sizeof(path), "/proc/self/task/%.20s/comm",
				     task->d_name) >= sizeof(path))
			continue;
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		found = read(fd, name, sizeof(name) - 1) > 0 &&
			!strncmp(name, THREAD_NAME "\n", sizeof(THREAD_NAME));
		close(fd);
	}
	if (tasks)
		closedir(tasks);
	return found;
}

/* The driver calls it: CUDA_INJECTION64_PATH. */
AGENT_EXPORT int InitializeInjection(void)
{
	int saved = errno;

	if (atomic_load(&agent.pid) != getpid())
		atomic_store(&agent.second, another_agent());
	start(true);
	errno = saved;
	return 1;
}

/* Called by a tracer that has loaded this library into a running process. */
AGENT_EXPORT int xsp_agent_start(void)
{
	int saved = errno, error = 0;

	if (atomic_load(&agent.pid) != getpid())
		error = another_agent() ? -EALREADY : start(false);
	errno = saved;
	return error;
}
