/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * faults lock|own_locks|hot|cool: a program with a fault of a known size, and the same without it. Prints as JSON how long it
 * took by its own clock, and what of it the fault took.
 *
 * lock: thread f_wants waits for a mutex that f_holds sleeps with for most of the time; own_locks: each has its own. What it stood
 * in line for a CPU meanwhile, as the kernel counts it, is no part of how long it waited for the mutex.
 * hot: burn() takes most of the time; cool: both functions sleep.
 */
#include "workload.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#define MS 1000000ULL
#define TURNS 60

static pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static uint64_t waited_ns;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void sleep_ns(uint64_t ns)
{
	clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){0, (long)ns}, NULL);
}

/* Where a thread that sleeps is moved to another CPU, some kernels take its sleep for time in line (waits.c). */
static void stay_here(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)sched_getcpu(), &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static uint64_t in_line_ns(void)
{
	unsigned long long ns = 0;
	FILE *f = fopen("/proc/thread-self/schedstat", "re");

	if (f == NULL)
		return 0;
	if (fscanf(f, "%*u %llu", &ns) != 1)
		ns = 0;
	fclose(f);
	return ns;
}

WL_TRACED void hold_it(pthread_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
	sleep_ns(8 * MS);
	pthread_mutex_unlock(mutex);
	sleep_ns(MS / 2);
}

WL_TRACED void want_it(pthread_mutex_t *mutex)
{
	const uint64_t in_line = in_line_ns(), from = clock_ns(CLOCK_MONOTONIC);

	pthread_mutex_lock(mutex);
	waited_ns += clock_ns(CLOCK_MONOTONIC) - from;
	pthread_mutex_unlock(mutex);
	waited_ns -= in_line_ns() - in_line;
	sleep_ns(MS / 4);
}

static void *holder(void *mutex)
{
	pthread_setname_np(pthread_self(), "f_holds");
	for (int i = 0; i < TURNS; i++)
		hold_it(mutex);
	return NULL;
}

static void *wanter(void *mutex)
{
	pthread_setname_np(pthread_self(), "f_wants");
	stay_here();
	for (int i = 0; i < TURNS; i++)
		want_it(mutex);
	return NULL;
}

/* Time on a CPU, whoever else wants one. */
WL_TRACED void burn(uint64_t ns)
{
	const uint64_t until = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until)
		;
}

WL_TRACED void rest(uint64_t ns)
{
	sleep_ns(ns);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	const uint64_t from = clock_ns(CLOCK_MONOTONIC);
	pthread_t threads[2];

	if (strcmp(how, "lock") == 0 || strcmp(how, "own_locks") == 0) {
		pthread_create(&threads[0], NULL, holder, &shared);
		pthread_create(&threads[1], NULL, wanter, how[0] == 'l' ? &shared : &other);
		pthread_join(threads[0], NULL);
		pthread_join(threads[1], NULL);
	}
	for (int i = 0; i < TURNS && (strcmp(how, "hot") == 0 || strcmp(how, "cool") == 0); i++) {
		if (how[0] == 'h')
			burn(6 * MS);
		rest(4 * MS);
	}
	printf("{\"ns\": %" PRIu64 ", \"waited_ns\": %" PRIu64 ", \"cpu_ns\": %" PRIu64 "}\n",
	       clock_ns(CLOCK_MONOTONIC) - from, waited_ns, clock_ns(CLOCK_PROCESS_CPUTIME_ID));
	return 0;
}
