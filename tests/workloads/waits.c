/* SPDX-License-Identifier: BSD-2-Clause */
/* waits - threads that wait in known ways, each with what the kernel says of it at its end, for --waits. */
#include "workload.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000ULL

struct member {
	const char *name;
	void (*work)(struct member *m);
	pthread_t thread;
	int tid;
	uint64_t lived_ns, running_ns, runnable_ns; /* the last two: schedstat */
	uint64_t waited_ns; /* as it saw it itself */
	uint64_t cpu_ns, calls; /* of waits_call() */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t robust; /* its lock is its holder, where others have 2 */
static pthread_barrier_t held;
static int ends[2]; /* of the pipe */
static int silent[2]; /* a pipe in which nothing ever comes */
static uint32_t liar[1024]
	__attribute__((aligned(4096))); /* looks like a mutex, held by thread 1 */

static void sleep_ns(uint64_t ns)
{
	struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) != 0)
		;
}

static uint64_t thread_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void stay_on(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((unsigned)cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static void spin_until(uint64_t end_ns)
{
	while (wl_now_ns() < end_ns)
		;
}

uint64_t waits_call(uint64_t spin_ns, uint64_t naps, uint64_t nap_ns);

/* Runs and sleeps in turn. */
WL_TRACED uint64_t waits_call(uint64_t spin_ns, uint64_t naps, uint64_t nap_ns)
{
	uint64_t until = thread_cpu_ns() + spin_ns;

	for (uint64_t i = 0; i < naps; i++)
		sleep_ns(nap_ns);
	while (thread_cpu_ns() < until)
		;
	return wl_mix(naps);
}

static void call_it(struct member *m, uint64_t spin_ns, uint64_t naps, uint64_t nap_ns)
{
	uint64_t before = thread_cpu_ns();

	waits_call(spin_ns, naps, nap_ns);
	m->cpu_ns += thread_cpu_ns() - before;
	m->calls++;
}

static void w_sleeps(struct member *m)
{
	for (int i = 0; i < 5; i++)
		sleep_ns(40 * MS);
	m->waited_ns = 200 * MS;
}

/* Spans whose waits are long, and such whose waits are too short for an event. */
static void w_calls(struct member *m)
{
	for (int i = 0; i < 3; i++)
		call_it(m, 10 * MS, 2, 5 * MS);
	for (int i = 0; i < 3; i++)
		call_it(m, 5 * MS, 200, 1);
}

static void w_holds(struct member *m)
{
	(void)m;
	pthread_mutex_lock(&mutex);
	pthread_mutex_lock(&robust);
	pthread_barrier_wait(&held);
	sleep_ns(150 * MS);
	pthread_mutex_unlock(&robust);
	pthread_mutex_unlock(&mutex);
}

static void w_robust(struct member *m)
{
	(void)m;
	pthread_barrier_wait(&held);
	pthread_mutex_lock(&robust);
	pthread_mutex_unlock(&robust);
}

static void make_robust(void)
{
	pthread_mutexattr_t a;

	pthread_mutexattr_init(&a);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&robust, &a);
}

static void w_locks(struct member *m)
{
	pthread_barrier_wait(&held);
	uint64_t before = wl_now_ns();
	pthread_mutex_lock(&mutex);
	m->waited_ns = wl_now_ns() - before;
	pthread_mutex_unlock(&mutex);
}

static void w_reads(struct member *m)
{
	char byte;
	uint64_t before = wl_now_ns();

	if (read(ends[0], &byte, 1) == 1)
		m->waited_ns = wl_now_ns() - before;
}

static void w_writes(struct member *m)
{
	(void)m;
	sleep_ns(100 * MS);
	if (write(ends[1], "x", 1) != 1)
		abort();
}

static void w_polls(struct member *m)
{
	struct pollfd fd = {.fd = silent[0], .events = POLLIN};

	poll(&fd, 1, 120);
	m->waited_ns = 120 * MS;
}

/* Two of these share a CPU. */
static void w_spins(struct member *m)
{
	(void)m;
	stay_on(0);
	spin_until(wl_now_ns() + 400 * MS);
}

/* The word that looks like a holder is made up: the kernel side may believe it, the reader must not. */
static void w_is_lied_to(struct member *m)
{
	struct timespec t = {0, 60 * MS};

	liar[0] = 2;
	liar[2] = 0x3ffffe;
	liar[3] = 1;
	syscall(SYS_futex, liar, 128, 2, &t, NULL, 0);
	/* one behind which no memory is */
	syscall(SYS_futex, &liar[1023], 128, 0, &t, NULL, 0);
	/* a lock as Rust's, with data behind it: a number that a thread has, and others */
	memcpy(&liar[32], (uint32_t[]){2, 0, (uint32_t)getpid(), 1, 0, 0, 42}, 28);
	syscall(SYS_futex, &liar[32], 128, 2, &t, NULL, 0);
	m->waited_ns = 180 * MS;
}

/* Sleeps with other registers than it should: a stack that ends in the middle of what is read of it, full of what looks
 * like nothing, and a frame that is its own caller, or behind which no memory is. */
static void w_lies(struct member *m)
{
#if defined(__x86_64__)
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct timespec nap = {0, 40 * MS};

	if (page == MAP_FAILED || munmap(page + 4096, 4096) != 0)
		abort();
	memset(page, 0x41, 4096);
	uint64_t *circle = (uint64_t *)(void *)(page + 4096 - 64);
	circle[0] = (uintptr_t)circle;
	circle[1] = (uintptr_t)w_sleeps;
	uint64_t frames[] = {(uintptr_t)circle, (uintptr_t)page + 4096};
	for (size_t i = 0; i < 2; i++) {
		long result = SYS_nanosleep;
		__asm__ volatile("mov %%rsp, %%r12\n\tmov %%rbp, %%r13\n\t"
				 "mov %[stack], %%rsp\n\tmov %[frame], %%rbp\n\tsyscall\n\t"
				 "mov %%r13, %%rbp\n\tmov %%r12, %%rsp"
				 : "+a"(result)
				 : [stack] "r"(circle - 4), [frame] "r"(frames[i]), "D"(&nap),
				   "S"(0)
				 : "rcx", "r11", "r12", "r13", "memory");
		m->waited_ns += result == 0 ? 40 * MS : 0;
	}
#endif
	(void)m;
}

static struct member members[] = {
	{.name = "w_sleeps", .work = w_sleeps}, {.name = "w_calls", .work = w_calls},
	{.name = "w_holds", .work = w_holds},	{.name = "w_locks", .work = w_locks},
	{.name = "w_reads", .work = w_reads},	{.name = "w_writes", .work = w_writes},
	{.name = "w_polls", .work = w_polls},	{.name = "w_spins", .work = w_spins},
	{.name = "w_spins2", .work = w_spins},	{.name = "w_is_lied_to", .work = w_is_lied_to},
	{.name = "w_robust", .work = w_robust}, {.name = "w_lies", .work = w_lies},
};
#define MEMBERS (sizeof(members) / sizeof(members[0]))

static void read_schedstat(struct member *m)
{
	char text[96] = "";
	int fd = open("/proc/thread-self/schedstat", O_RDONLY);
	unsigned long long running = 0, runnable = 0;

	if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0)
		sscanf(text, "%llu %llu", &running, &runnable);
	if (fd >= 0)
		close(fd);
	m->running_ns = running;
	m->runnable_ns = runnable;
}

static void *run(void *argument)
{
	struct member *m = argument;
	uint64_t begun;

	read_schedstat(m);
	begun = wl_now_ns() - m->running_ns - m->runnable_ns; /* it was born then */
	m->tid = (int)syscall(SYS_gettid);
	pthread_setname_np(pthread_self(), m->name);
	/* Else schedstat may lie: where a sleeper whose dequeueing is put off is moved to another CPU, the kernel
	 * takes the rest of its sleep for time in which it could have run (enqueue_task() of 6.12 and later calls
	 * sched_info_enqueue() for it, where psi_enqueue() looks at se.sched_delayed). Not where the two spin. */
	stay_on((int)sysconf(_SC_NPROCESSORS_ONLN) - 1);
	m->work(m);
	sched_yield(); /* what it ran until now is counted */
	read_schedstat(m);
	m->lived_ns = wl_now_ns() - begun;
	return NULL;
}

static char *describe(void)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	fprintf(f, "\"mutex\":%llu,\"robust\":%llu,\"threads\":{",
		(unsigned long long)(uintptr_t)&mutex, (unsigned long long)(uintptr_t)&robust);
	for (size_t i = 0; i < MEMBERS; i++) {
		const struct member *m = &members[i];
		fprintf(f,
			"%s\"%s\":{\"tid\":%d,\"lived_ns\":%llu,\"running_ns\":%llu,\"runnable_"
			"ns\":%llu,"
			"\"waited_ns\":%llu,\"cpu_ns\":%llu,\"calls\":%llu}",
			i ? "," : "", m->name, m->tid, (unsigned long long)m->lived_ns,
			(unsigned long long)m->running_ns, (unsigned long long)m->runnable_ns,
			(unsigned long long)m->waited_ns, (unsigned long long)m->cpu_ns,
			(unsigned long long)m->calls);
	}
	fputc('}', f);
	fclose(f);
	return text;
}

int main(int argc, char **argv)
{
	struct wl_options o = {.workload = "waits"};

	wl_parse(&o, argc, argv);
	if (pipe(ends) != 0 || pipe(silent) != 0 || pthread_barrier_init(&held, NULL, 3) != 0)
		return 1;
	make_robust();
	wl_start(&o);
	for (size_t i = 0; i < MEMBERS; i++)
		if (pthread_create(&members[i].thread, NULL, run, &members[i]) != 0)
			return 1;
	for (size_t i = 0; i < MEMBERS; i++)
		pthread_join(members[i].thread, NULL);
	uint64_t calls = 0;
	for (size_t i = 0; i < MEMBERS; i++)
		calls += members[i].calls;
	struct wl_count counts[] = {{"waits_call", calls, 0}};
	return wl_finish(&o, calls, counts, 1, describe());
}
