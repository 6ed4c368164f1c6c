// SPDX-License-Identifier: BSD-2-Clause
/*
 * stuck - threads that stand where `xsptrace dump` is to find them, and what the program knows of them.
 *
 *   stuck              a deadlock of two mutexes, a third thread that waits for one of them, and threads in poll,
 *                      nanosleep, epoll_wait, read, a condition variable, pthread_join, a priority-inheriting
 *                      mutex, and in a loop; writes the truth to standard output as one line of JSON and stands
 *   stuck count        threads that go round in such calls and count the rounds, and how often a call failed with
 *                      EINTR; on SIGTERM their counts go to standard output. SIGCHLD is counted by a parent.
 *   stuck uninterruptible  a thread in state D, by vfork(2)
 *   stuck timeouts     a thread in recv(2) and one in connect(2), on sockets that have timeouts of 3 s; writes how long
 *                      each took, ms, and its error
 *   stuck liar         a thread whose frames lead in a circle, and one whose stack pointer is nowhere
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "workload.h"

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t inheriting, condition_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t both, all;
static pthread_t nap;
static int never[2]; /* a pipe that nobody writes to */
static atomic_ulong turns;

/* ---- the functions that are to be found ---- */

WL_TRACED void spin_here(void)
{
	for (;;)
		atomic_fetch_add_explicit(&turns, 1, memory_order_relaxed);
}

WL_TRACED void lock_second(void)
{
	pthread_mutex_lock(&second);
	pthread_mutex_unlock(&second);
}

WL_TRACED void lock_first(void)
{
	pthread_mutex_lock(&first);
	pthread_mutex_unlock(&first);
}

/* The frame's size is not known to the compiler, so that its caller is found by the frame pointer only. */
WL_TRACED void nap_in_a_frame_of_any_size(size_t size)
{
	volatile char *room = __builtin_alloca(size);
	const struct timespec long_time = {100000, 0};

	room[0] = 1;
	nanosleep(&long_time, NULL);
	room[size - 1] = 1;
}

static void *run_alpha(void *arg)
{
	pthread_mutex_lock(&first);
	pthread_barrier_wait(&both);
	lock_second();
	return arg;
}

static void *run_beta(void *arg)
{
	pthread_mutex_lock(&second);
	pthread_barrier_wait(&both);
	lock_first();
	return arg;
}

static void *run_gamma(void *arg)
{
	lock_first();
	return arg;
}

static void *run_poll(void *arg)
{
	struct pollfd fd = {.fd = never[0], .events = POLLIN};

	poll(&fd, 1, -1);
	return arg;
}

static void *run_epoll(void *arg)
{
	struct epoll_event e = {.events = EPOLLIN};
	int fd = epoll_create1(0);

	epoll_ctl(fd, EPOLL_CTL_ADD, never[0], &e);
	epoll_wait(fd, &e, 1, -1);
	return arg;
}

static void *run_nap(void *arg)
{
	nap_in_a_frame_of_any_size((size_t)getpid() % 64 + 64);
	return arg;
}

static void *run_read(void *arg)
{
	char byte;

	return read(never[0], &byte, 1) == 1 ? arg : NULL;
}

static void *run_condition(void *arg)
{
	pthread_mutex_lock(&condition_lock);
	pthread_cond_wait(&condition, &condition_lock);
	return arg;
}

static void *run_join(void *arg)
{
	pthread_join(nap, NULL);
	return arg;
}

static void *run_holder(void *arg)
{
	pthread_mutex_lock(&inheriting);
	pthread_barrier_wait(&all);
	pause();
	return arg;
}

static void *run_inherit(void *arg)
{
	pthread_mutex_lock(&inheriting);
	return arg;
}

static void *run_spin(void *arg)
{
	spin_here();
	return arg;
}

/* ---- standing ---- */

struct stander {
	const char *name;
	void *(*run)(void *);
	pthread_t *handle;
	pid_t tid;
};

static void *enter(void *arg)
{
	struct stander *s = arg;

	pthread_setname_np(pthread_self(), s->name);
	s->tid = (pid_t)syscall(SYS_gettid);
	pthread_barrier_wait(&all);
	return s->run(NULL);
}

static int stand(bool leaves)
{
	static struct stander standers[] = {
		{"alpha", run_alpha, NULL, 0},	   {"beta", run_beta, NULL, 0},
		{"gamma", run_gamma, NULL, 0},	   {"poll", run_poll, NULL, 0},
		{"epoll", run_epoll, NULL, 0},	   {"nap", run_nap, &nap, 0},
		{"read", run_read, NULL, 0},	   {"condition", run_condition, NULL, 0},
		{"join", run_join, NULL, 0},	   {"holder", run_holder, NULL, 0},
		{"inherit", run_inherit, NULL, 0}, {"spin", run_spin, NULL, 0},
	};
	const unsigned count = sizeof(standers) / sizeof(standers[0]);
	pthread_mutexattr_t inherit;
	pthread_t one;

	pthread_mutexattr_init(&inherit);
	pthread_mutexattr_setprotocol(&inherit, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&inheriting, &inherit);
	pthread_barrier_init(&both, NULL, 2);
	/* each waits for the one before it to be where it is to be */
	for (unsigned i = 0; i < count; i++) {
		const bool holds = standers[i].run == run_holder;
		pthread_barrier_init(&all, NULL, 2);
		if (pthread_create(&one, NULL, enter, &standers[i]) != 0)
			return 1;
		if (standers[i].handle != NULL)
			*standers[i].handle = one;
		pthread_barrier_wait(&all);
		if (holds)
			pthread_barrier_wait(&all);
		usleep(20000);
	}
	printf("{\"first\":\"0x%" PRIxPTR "\",\"second\":\"0x%" PRIxPTR "\"", (uintptr_t)&first,
	       (uintptr_t)&second);
	for (unsigned i = 0; i < count; i++)
		printf(",\"%s\":%d", standers[i].name, (int)standers[i].tid);
	printf(",\"spin_here\":\"0x%" PRIxPTR "\"}\n", (uintptr_t)spin_here);
	fflush(stdout);
	if (leaves)
		pthread_exit(NULL);
	pause();
	return 0;
}

/* ---- counting ---- */

#define CALLS 8
static const char *const call_names[CALLS] = {"nanosleep", "poll",   "futex", "epoll_wait",
					      "read",	   "select", "write", "timed_futex"};
static struct {
	atomic_ulong rounds, interrupted, wrong;
} counts[CALLS];
static atomic_bool over;

static uint64_t now_ms(void)
{
	return wl_now_ns() / 1000000;
}

/* A call that lasts 20 ms. Returns -1 with errno if it failed. */
static int one_call(size_t which, int fd, int poller)
{
	static const struct timespec duration = {0, 20000000};
	struct pollfd none = {.fd = never[0], .events = POLLIN};
	struct timeval part = {0, 20000};
	struct epoll_event e;
	static int word;
	uint64_t value = 1;

	switch (which) {
	case 0:
		return nanosleep(&duration, NULL);
	case 1:
		return poll(&none, 1, 20);
	case 2: /* ended by a waker */
	case 4:
		return read(fd, &value, sizeof(value)) < 0 ? -1 : 0;
	case 3:
		return epoll_wait(poller, &e, 1, 20);
	case 5:
		return select(0, NULL, NULL, NULL, &part);
	case 6:
		return nanosleep(&duration, NULL) != 0 || write(fd, &value, sizeof(value)) < 0 ? -1
											       : 0;
	default:
		if (syscall(SYS_futex, &word, 0 /* FUTEX_WAIT */, 0, &duration, NULL, 0) == 0)
			return 0;
		return errno == ETIMEDOUT ? 0 : -1;
	}
}

static int wakes; /* an eventfd that the thread `write` writes to */

static void *count_calls(void *arg)
{
	size_t which = (size_t)(uintptr_t)arg;
	int poller = epoll_create1(0);

	pthread_setname_np(pthread_self(), call_names[which]);
	while (!atomic_load(&over)) {
		uint64_t begun = now_ms();
		int rc = one_call(which, wakes, poller);
		if (rc < 0 && errno == EINTR)
			atomic_fetch_add(&counts[which].interrupted, 1);
		else if (rc < 0 || (rc == 0 && which != 2 && which != 4 && now_ms() - begun < 19))
			atomic_fetch_add(&counts[which].wrong, 1);
		atomic_fetch_add(&counts[which].rounds, 1);
	}
	return NULL;
}

static void write_counts(void)
{
	for (size_t i = 0; i < CALLS; i++)
		printf("%s\"%s\":[%lu,%lu,%lu]", i > 0 ? "," : "{", call_names[i],
		       atomic_load(&counts[i].rounds), atomic_load(&counts[i].interrupted),
		       atomic_load(&counts[i].wrong));
}

static int count_all(int ready)
{
	pthread_t threads[CALLS];
	sigset_t term;
	int got;

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &term, NULL);
	wakes = eventfd(0, EFD_SEMAPHORE);
	for (size_t i = 0; i < CALLS; i++)
		pthread_create(&threads[i], NULL, count_calls, (void *)(uintptr_t)i);
	if (write(ready, "1", 1) != 1)
		return 1;
	sigwait(&term, &got);
	atomic_store(&over, true);
	uint64_t many = 1000;
	got = (int)write(wakes, &many, sizeof(many));
	for (size_t i = 0; i < CALLS; i++)
		pthread_join(threads[i], NULL);
	write_counts();
	return 0;
}

static volatile sig_atomic_t children_said;

static void on_child(int number)
{
	(void)number;
	children_said++;
}

/* The parent of what is looked at is told of its end, and of nothing else. */
static int count_with_parent(void)
{
	struct sigaction on = {.sa_handler = on_child};
	int ready[2], status;
	char byte;

	sigaction(SIGCHLD, &on, NULL); /* stops, too */
	if (pipe(ready) != 0)
		return 1;
	pid_t child = fork();
	if (child == 0) {
		int rc = count_all(ready[1]);
		fflush(stdout);
		_exit(rc);
	}
	if (read(ready[0], &byte, 1) != 1)
		return 1;
	fprintf(stderr, "ready %d\n", (int)child);
	unsigned interrupted = 0;
	while (waitpid(child, &status, WUNTRACED | WCONTINUED) != child)
		interrupted++;
	printf(",\"sigchld\":%d,\"status\":%d,\"waits\":%u}\n", (int)children_said, status,
	       interrupted);
	return 0;
}

/* ---- states and lies ---- */

/* A parent in vfork(2) sleeps uninterruptibly, but for signals that kill. */
static int uninterruptible(void)
{
	fprintf(stderr, "ready %d\n", (int)getpid());
	if (vfork() == 0) {
		syscall(SYS_nanosleep, &(struct timespec){100, 0}, NULL);
		_exit(0);
	}
	return 0;
}

/* Frame pointers in a circle, in code that no file holds. */
static void *run_in_a_circle(void *arg)
{
	uint8_t *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	/* mov %rdi,%rbp; pause; jmp back */
	static const uint8_t loop[] = {0x48, 0x89, 0xfd, 0xf3, 0x90, 0xeb, 0xfc};

	memcpy(code, loop, sizeof(loop));
	uint64_t frame[4] __attribute__((aligned(16)));
	frame[0] = (uint64_t)(uintptr_t)frame; /* the caller's frame pointer: itself */
	frame[1] = (uint64_t)(uintptr_t)code + 3;
	((void (*)(uint64_t *))(uintptr_t)code)(frame);
	return arg;
}

/* The stack pointer points to nothing. */
static void *run_without_stack(void *arg)
{
	__asm__ volatile("mov $0x10, %%rsp; 1: pause; jmp 1b" ::: "memory");
	return arg;
}

static int lie(void)
{
	pthread_t one;

	pthread_create(&one, NULL, run_in_a_circle, NULL);
	pthread_setname_np(one, "circle");
	pthread_create(&one, NULL, run_without_stack, NULL);
	pthread_setname_np(one, "nowhere");
	fprintf(stderr, "ready %d\n", (int)getpid());
	pause();
	return 0;
}

static int pair[2], full; /* `full`: a listening socket whose queue is */
static struct sockaddr_un queue = {AF_UNIX, ""};

static void limit(int fd)
{
	const struct timeval three_seconds = {3, 0};

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &three_seconds, sizeof(three_seconds));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &three_seconds, sizeof(three_seconds));
}

/* Its caller is found by the frame pointer only: who wants the stack stops it. */
WL_TRACED long wait_on_a_socket(size_t size, bool receive)
{
	volatile char *room = __builtin_alloca(size);
	int fd = receive ? pair[0] : socket(AF_UNIX, SOCK_STREAM, 0);
	char byte;

	limit(fd);
	room[0] = 1;
	long result = receive ? recv(fd, &byte, 1, 0)
			      : connect(fd, (struct sockaddr *)&queue, sizeof(queue));
	room[size - 1] = 1;
	return result;
}

static void *run_with_timeout(void *arg)
{
	struct timespec begin, end;
	const bool receive = arg != NULL;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	wait_on_a_socket(64, receive);
	const int error = errno;
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%s %ld %d\n", receive ? "recv" : "connect",
	       (end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000, error);
	return arg;
}

static int time_out(void)
{
	pthread_t threads[2];

	snprintf(queue.sun_path + 1, sizeof(queue.sun_path) - 1, "stuck.%d", (int)getpid());
	full = socket(AF_UNIX, SOCK_STREAM, 0);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0 ||
	    bind(full, (struct sockaddr *)&queue, sizeof(queue)) != 0 || listen(full, 0) != 0 ||
	    connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&queue, sizeof(queue)) != 0)
		return 1;
	fprintf(stderr, "ready %d\n", (int)getpid());
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, run_with_timeout, i == 0 ? NULL : &full);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";

	if (pipe(never) != 0)
		return 1;
	if (strcmp(how, "count") == 0)
		return count_with_parent();
	if (strcmp(how, "uninterruptible") == 0)
		return uninterruptible();
	if (strcmp(how, "timeouts") == 0)
		return time_out();
	return strcmp(how, "liar") == 0 ? lie() : stand(strcmp(how, "leaves") == 0);
}
