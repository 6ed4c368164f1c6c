/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inlined.c - what it does is in functions that the compiler puts into main(), so that they are no symbols. Each round computes
 * twice as long in work_here() as in leaf(), which ask_here() calls; it sleeps in rest_here(), waits for a lock in lock_here(),
 * and allocates in keep_here(). It ends after as many rounds as its argument says. With a second
 * argument it only computes.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define STEPS 400000UL
#define BLOCK 4096
#define HOLD_US 3000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *volatile kept;

static unsigned long step_here(unsigned long x)
{
	x = x * 6364136223846793005UL + 1;
	__asm__ volatile("" : "+r"(x));
	return x;
}

static unsigned long work_here(unsigned long x)
{
	for (unsigned long i = 0; i < 2 * STEPS; i++)
		x = step_here(x);
	return x;
}

__attribute__((noinline)) unsigned long leaf(unsigned long x)
{
	for (unsigned long i = 0; i < STEPS; i++) {
		x = x * 6364136223846793005UL + 1;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

static unsigned long ask_here(unsigned long x)
{
	return leaf(x + 1) ^ 5;
}

static void rest_here(void)
{
	usleep(2000);
}

static void lock_here(void)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
}

static void keep_here(void)
{
	free(kept);
	kept = malloc(BLOCK);
}

static void *holder(void *end)
{
	while (!__atomic_load_n((int *)end, __ATOMIC_RELAXED)) {
		pthread_mutex_lock(&lock);
		usleep(HOLD_US);
		pthread_mutex_unlock(&lock);
		usleep(HOLD_US);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const long rounds = argc > 1 ? atol(argv[1]) : 300;
	unsigned long x = (unsigned long)argc;
	int end = 0;
	pthread_t thread;

	if (pthread_create(&thread, NULL, holder, &end) != 0)
		return 1;
	for (long i = 0; i < rounds; i++) {
		x = work_here(x);
		x = ask_here(x);
		if (argc > 2)
			continue;
		rest_here();
		lock_here();
		keep_here();
	}
	__atomic_store_n(&end, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	printf("%lu\n", x);
	return 0;
}
