/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * signal_malloc SECONDS - with an allocator that signal handlers may call (libsignal_malloc.c); and signals 2,000 times a
 * second, whose handler runs on a stack above that of the thread, and allocates. Prints how often it came inside of malloc().
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

#define STACK (1UL << 20)

extern _Thread_local volatile int inside_malloc;
static volatile sig_atomic_t met;

static void on_signal(int number)
{
	(void)number;
	met += inside_malloc > 0;
	for (int i = 0; i < 3; i++)
		free(memset(malloc(100), 1, 100));
}

static time_t end;

static void *work(void *stack)
{
	const stack_t own = {.ss_sp = stack, .ss_size = STACK};

	sigaltstack(&own, NULL);
	while (time(NULL) < end)
		for (int i = 0; i < 1000; i++)
			free(memset(malloc(64), 1, 64));
	return NULL;
}

int main(int argc, char **argv)
{
	char *area =
		mmap(NULL, 4 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct sigaction action = {.sa_handler = on_signal,
					 .sa_flags = SA_ONSTACK | SA_RESTART};
	const struct itimerval often = {{0, 500}, {0, 500}};
	pthread_attr_t a;
	pthread_t thread;
	sigset_t all;

	end = time(NULL) + 2 + (argc > 1 ? atoi(argv[1]) : 1);
	pthread_attr_init(&a);
	if (area == MAP_FAILED || pthread_attr_setstack(&a, area, STACK) != 0 ||
	    sigaction(SIGPROF, &action, NULL) != 0 ||
	    pthread_create(&thread, &a, work, area + 2 * STACK) != 0)
		return 1;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	setitimer(ITIMER_PROF, &often, NULL);
	pthread_join(thread, NULL);
	printf("%d\n", (int)met);
	return 0;
}
