/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counted - functions that do a known amount of what --counters counts; what the kernel says of the
 * thread (getrusage, its task clock) around each goes to a file.
 *
 * counted OUT CALLS: in the main thread and in one more, which begins later.
 */
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone))
#define PAGES 64

volatile long sink;

static long ns_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

/* PAGES page faults, none major. */
KEPT void faults(void)
{
	size_t size = PAGES * 4096;
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(p, size, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < size; i += 4096)
		p[i] = 1;
	munmap(p, size);
	sink++;
}

/* Three times off the CPU. */
KEPT void sleeps(void)
{
	for (int i = 0; i < 3; i++)
		usleep(2000);
	sink++;
}

/* To another CPU and back: two migrations. Does some work on each. */
KEPT void travels(void)
{
	cpu_set_t all, one;
	int cpu = sched_getcpu();

	sched_getaffinity(0, sizeof(all), &all);
	for (int i = 0; i < CPU_SETSIZE; i++) {
		if (i == cpu || !CPU_ISSET(i, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(i, &one);
		sched_setaffinity(0, sizeof(one), &one);
		break;
	}
	for (long end = ns_of(CLOCK_THREAD_CPUTIME_ID) + 2000000;
	     ns_of(CLOCK_THREAD_CPUTIME_ID) < end;)
		sink++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
	sched_setaffinity(0, sizeof(all), &all);
	sink++;
}

/* 5 ms on the CPU, 5 ms off. */
KEPT void burns(void)
{
	for (long end = ns_of(CLOCK_THREAD_CPUTIME_ID) + 5000000;
	     ns_of(CLOCK_THREAD_CPUTIME_ID) < end;)
		sink++;
	usleep(5000);
}

static const struct {
	const char *name;
	void (*call)(void);
} table[] = {{"faults", faults}, {"sleeps", sleeps}, {"travels", travels}, {"burns", burns}};

static FILE *out;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * The kernel's task clock of the calling thread. CLOCK_THREAD_CPUTIME_ID leaves out time in
 * interrupts and time that a hypervisor stole, which the task clock has, so it is no measure of it.
 */
static long task_clock(void)
{
	static __thread int fd = -1;
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_TASK_CLOCK};
	long ns = 0;

	if (fd < 0)
		fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	if (fd < 0 || read(fd, &ns, sizeof(ns)) != sizeof(ns)) {
		perror("the task clock");
		exit(1);
	}
	return ns;
}

static void measured(size_t i)
{
	struct rusage a, b;
	long clock = task_clock();

	getrusage(RUSAGE_THREAD, &a);
	table[i].call();
	getrusage(RUSAGE_THREAD, &b);
	clock = task_clock() - clock;
	pthread_mutex_lock(&lock);
	fprintf(out, "%d %s %ld %ld %ld %ld\n", (int)gettid(), table[i].name,
		b.ru_minflt - a.ru_minflt, b.ru_majflt - a.ru_majflt,
		b.ru_nvcsw + b.ru_nivcsw - a.ru_nvcsw - a.ru_nivcsw, clock);
	pthread_mutex_unlock(&lock);
}

static void *work(void *argument)
{
	long calls = *(long *)argument;

	usleep(100000); /* a tracer meets a new thread a little later */
	for (long n = 0; n < calls; n++)
		for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
			measured(i);
	return NULL;
}

int main(int argc, char **argv)
{
	long calls = argc > 2 ? atol(argv[2]) : 3;
	pthread_t thread;

	out = argc > 1 ? fopen(argv[1], "we") : stdout;
	if (out == NULL || pthread_create(&thread, NULL, work, &calls) != 0)
		return 1;
	work(&calls);
	pthread_join(thread, NULL);
	return fclose(out) != 0;
}
