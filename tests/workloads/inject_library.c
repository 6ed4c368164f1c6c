/* SPDX-License-Identifier: BSD-2-Clause */
/* A library to inject: its constructor and its entry count, use memory, threads' locks and AVX. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static int constructed, started;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void construct(void)
{
	char *memory = malloc(100000);

	memset(memory, 0xaa, 100000);
	free(memory);
	constructed++;
}

int probe_start(void);
int probe_start(void)
{
	sigset_t mask;

	pthread_mutex_lock(&lock);
	started++;
	pthread_mutex_unlock(&lock);
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	/* 1000: signals are blocked here, as promised */
	return constructed * 100 + started + (sigismember(&mask, SIGALRM) ? 1000 : 0);
}

int probe_slow(void);
int probe_slow(void)
{
	volatile double x = 0;

	for (int i = 0; i < 50000000; i++)
		x = x + 1;
	return 7;
}
