/* SPDX-License-Identifier: BSD-2-Clause */
/* What a child does, step by step and counted, against what the sideband reports of it. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "record/sideband/sideband.h"

/* A library that neither the tests nor /bin/true have loaded. */
#define LIBRARY "libBrokenLocale.so.1"
#define THREADS 3
#define FORKS 2

struct seen {
	pid_t pid;
	size_t counts[XSP_SIDEBAND_KINDS];
	size_t library, thread_births, process_births, thread_exits, process_exits;
	size_t execs, out_of_order;
	uint64_t last_ns;
	int stop_after;
};

static int record(void *ctx, const struct xsp_sideband_record *r)
{
	struct seen *s = ctx;

	s->counts[r->kind]++;
	s->out_of_order += r->time_ns < s->last_ns;
	s->last_ns = r->time_ns;
	switch (r->kind) {
	case XSP_SIDEBAND_MMAP:
		s->library += r->pid == s->pid && s->execs == 0; /* it maps nothing else */
		break;
	case XSP_SIDEBAND_EXEC:
		s->execs += r->pid == s->pid;
		break;
	case XSP_SIDEBAND_FORK:
		s->thread_births += r->pid == s->pid && r->parent_pid == s->pid;
		s->process_births += r->pid != s->pid && r->parent_pid == s->pid;
		break;
	case XSP_SIDEBAND_EXIT:
		s->thread_exits += r->pid == s->pid && r->tid != s->pid;
		s->process_exits += r->pid == s->pid && r->tid == s->pid;
		break;
	default:
		break;
	}
	return s->stop_after > 0 && --s->stop_after == 0 ? -ECANCELED : 0;
}

static void pause_ms(long ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};

	nanosleep(&t, NULL);
}

static void *thread_body(void *arg)
{
	pause_ms(5);
	return arg;
}

/* The child: waits for the word, then does everything once (or the counted number of times). */
static void child_body(int go, long step_ms)
{
	char c;
	pthread_t threads[THREADS];

	if (read(go, &c, 1) != 1)
		_exit(1);
	if (dlopen(LIBRARY, RTLD_NOW) == NULL)
		_exit(2);
	pause_ms(step_ms);
	for (int i = 0; i < THREADS; i++) {
		if (pthread_create(&threads[i], NULL, thread_body, NULL) != 0)
			_exit(3);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < FORKS; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			pause_ms(step_ms);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
	prctl(PR_SET_NAME, "new-name"); /* is no exec */
	pause_ms(step_ms);
	execl("/bin/true", "true", (char *)NULL);
	_exit(4);
}

struct child {
	pid_t pid;
	int go;
};

static struct child start_child(long step_ms)
{
	int ends[2];

	cr_assert_eq(pipe(ends), 0);
	pid_t pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0) {
		close(ends[1]);
		child_body(ends[0], step_ms);
	}
	close(ends[0]);
	return (struct child){pid, ends[1]};
}

static void let_go(struct child *c)
{
	cr_assert_eq(write(c->go, "x", 1), 1);
	close(c->go);
}

static struct xsp_sideband *listen_to(const struct xsp_sideband_options *o, pid_t pid)
{
	struct xsp_error err = {0};
	struct xsp_sideband *s;

	cr_assert_eq(xsp_sideband_new(o, &s, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_sideband_watch(s, pid), 0);
	cr_assert_eq(xsp_sideband_watch(s, pid), 0);
	cr_assert(xsp_sideband_watches(s, pid));
	return s;
}

static bool needs_perf(const struct xsp_sideband *s)
{
	if (xsp_sideband_mode(s) == XSP_SIDEBAND_PERF)
		return true;
	cr_skip_test("%s", xsp_sideband_reason(s));
	return false;
}

Test(sideband, perf_tells_every_step_exactly)
{
	struct child c = start_child(0);
	struct xsp_sideband *s = listen_to(NULL, c.pid);
	if (!needs_perf(s))
		return;
	cr_assert_str_eq(xsp_sideband_reason(s), "");
	struct seen seen = {.pid = c.pid};
	let_go(&c);
	int status;
	waitpid(c.pid, &status, 0);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child failed: %x", status);
	pause_ms(3);
	cr_assert_gt(xsp_sideband_drain(s, 0, record, &seen), 0);
	cr_expect_eq(seen.library, 1, "library mapped %zu times", seen.library);
	cr_expect_eq(seen.thread_births, THREADS);
	cr_expect_eq(seen.thread_exits, THREADS);
	cr_expect_eq(seen.process_births, FORKS);
	cr_expect_eq(seen.execs, 1);
	cr_expect_eq(seen.process_exits, 1);
	cr_expect_eq(seen.counts[XSP_SIDEBAND_LOST], 0);
	cr_expect_eq(seen.out_of_order, 0);
	cr_expect_not(xsp_sideband_watches(s, c.pid), "an ended process is still watched");
	/* everything was handed over once */
	cr_expect_eq(xsp_sideband_drain(s, XSP_SIDEBAND_ALL, record, &seen), 0);
	xsp_sideband_free(s);
}

Test(sideband, perf_says_nothing_of_others)
{
	struct child watched = start_child(0), other = start_child(0);
	struct xsp_sideband *s = listen_to(NULL, watched.pid);
	if (!needs_perf(s))
		return;
	struct seen seen = {.pid = watched.pid};
	let_go(&other);
	waitpid(other.pid, NULL, 0);
	cr_expect_eq(xsp_sideband_drain(s, XSP_SIDEBAND_ALL, record, &seen), 0);
	xsp_sideband_unwatch(s, watched.pid);
	let_go(&watched);
	waitpid(watched.pid, NULL, 0);
	cr_expect_eq(xsp_sideband_drain(s, XSP_SIDEBAND_ALL, record, &seen), 0);
	xsp_sideband_free(s);
}

Test(sideband, perf_counts_what_a_tiny_ring_loses)
{
	struct xsp_sideband_options options = {.pages = 1};
	/* Every processor has a ring of its own: the records after the loss must go to the same
	 * one. */
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET((unsigned)sched_getcpu(), &one);
	cr_assert_eq(sched_setaffinity(0, sizeof(one), &one), 0);
	struct child c = start_child(0);
	struct xsp_sideband *s = listen_to(&options, c.pid);
	if (!needs_perf(s))
		return;
	struct seen seen = {.pid = c.pid};
	for (int i = 0; i < 400; i++) {
		pid_t pid = fork();
		if (pid == 0)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
	let_go(&c);
	waitpid(c.pid, NULL, 0);
	xsp_sideband_drain(s, XSP_SIDEBAND_ALL, record, &seen);
	/* a LOST record is written when the next record finds room */
	for (int i = 0; i < 20; i++) {
		pid_t pid = fork();
		if (pid == 0)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
	xsp_sideband_drain(s, XSP_SIDEBAND_ALL, record, &seen);
	cr_expect_gt(seen.counts[XSP_SIDEBAND_LOST], 0);
	xsp_sideband_free(s);
}

Test(sideband, perf_follows_children)
{
	struct xsp_sideband_options options = {.follow = true};
	struct child c = start_child(0);
	struct xsp_sideband *s = listen_to(&options, c.pid);
	if (!needs_perf(s))
		return;
	struct seen seen = {.pid = c.pid};
	let_go(&c);
	waitpid(c.pid, NULL, 0);
	xsp_sideband_drain(s, XSP_SIDEBAND_ALL, record, &seen);
	/* with the exits of the children, which are other processes */
	cr_expect_eq(seen.counts[XSP_SIDEBAND_EXIT], THREADS + 1 + FORKS);
	xsp_sideband_free(s);
}

Test(sideband, callback_ends_the_drain_and_nothing_is_lost)
{
	struct child c = start_child(0);
	struct xsp_sideband *s = listen_to(NULL, c.pid);
	if (!needs_perf(s))
		return;
	struct seen seen = {.pid = c.pid, .stop_after = 2};
	let_go(&c);
	waitpid(c.pid, NULL, 0);
	cr_expect_eq(xsp_sideband_drain(s, XSP_SIDEBAND_ALL, record, &seen), -ECANCELED);
	xsp_sideband_drain(s, XSP_SIDEBAND_ALL, record, &seen);
	cr_expect_eq(seen.execs, 1);
	cr_expect_eq(seen.thread_births, THREADS);
	xsp_sideband_free(s);
}

Test(sideband, polling_sees_what_stays)
{
	struct xsp_sideband_options options = {.force_poll = true};
	struct child c = start_child(250);
	struct xsp_sideband *s = listen_to(&options, c.pid);
	cr_assert_eq(xsp_sideband_mode(s), XSP_SIDEBAND_POLL);
	struct seen seen = {.pid = c.pid};
	let_go(&c);
	for (int i = 0; i < 400 && xsp_sideband_watches(s, c.pid); i++) {
		cr_assert_geq(xsp_sideband_drain(s, 0, record, &seen), 0);
		waitpid(-1, NULL, WNOHANG);
		pause_ms(10);
	}
	cr_expect_eq(seen.library, 1, "library mapped %zu times", seen.library);
	cr_expect_eq(seen.process_births, FORKS);
	cr_expect_eq(seen.process_exits, 1);
	xsp_sideband_free(s);
}
