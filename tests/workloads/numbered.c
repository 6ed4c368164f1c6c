/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * numbered - ranges with a number each, "T step N" with N = 1, 2, 3, ..., of threads T = 0, 1. A snapshot of it shows
 * which are missing. COUNTERS, a file, has the last N of each: 64 bits each, written before the range ends.
 * SIGTERM ends it, SIGUSR1 is a crash.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "workload.h"
#include "xsptrace/record_function.h"

#define THREADS 2

static volatile sig_atomic_t stop, crash;
static volatile uint64_t *counters;

static void on_signal(int number)
{
	if (number == SIGTERM)
		stop = 1;
	else
		crash = 1;
}

WL_TRACED void numbered_dies(volatile int *nowhere)
{
	usleep(1); /* so that it is more than one instruction */
	*nowhere = 1;
}

static void *work(void *thread)
{
	const unsigned long t = (unsigned long)thread;
	char name[40];

	while (!stop) {
		snprintf(name, sizeof(name), "%lu step %lu", t, (unsigned long)(counters[t] + 1));
		xsp_record_function_enter(name);
		counters[t]++;
		xsp_record_function_exit();
		if (crash && t == 1)
			numbered_dies(NULL);
		usleep(500);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int fd = argc > 1 ? open(argv[1], O_RDWR | O_CREAT, 0644) : -1;
	pthread_t thread;

	if (fd < 0 || ftruncate(fd, 4096) != 0)
		return 2;
	counters = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	signal(SIGTERM, on_signal);
	signal(SIGUSR1, on_signal);
	if (counters == MAP_FAILED || pthread_create(&thread, NULL, work, (void *)1) != 0)
		return 2;
	work(NULL);
	pthread_join(thread, NULL);
	return 0;
}
