/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * planted - a healthy loop of steps of some 5 ms until a line of standard input says what is to go wrong, once:
 * "slow" a step, and the function planted_step in it, of 1.5 s; "stall" one that never ends; "often" 300 calls of
 * planted_call at once; "lock" 700 ms of waiting for a mutex; "grow" 64 MiB; "fail" the end, with status 3. The end of
 * the input is an end in order. "ready" is printed after the first steps.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "workload.h"
#include "xsptrace/record_function.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int fault; /* the first letter of what is to go wrong */
static volatile long calls;

WL_TRACED void planted_call(void)
{
	calls++;
	__asm__ volatile("" ::: "memory");
}

static void grow(void)
{
	static char *volatile kept;

	kept = malloc(64 << 20);
	if (kept != NULL)
		memset(kept, 1, 64 << 20);
}

WL_TRACED void planted_step(int wrong)
{
	planted_call();
	for (int i = 0; wrong == 'o' && i < 300; i++)
		planted_call();
	if (wrong == 'g')
		grow();
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	usleep(wrong == 's' ? 1500000 : 5000);
	while (wrong == 't')
		usleep(10000);
	calls++;
}

static void *work(void *unused)
{
	(void)unused;
	for (long n = 0;; n++) {
		const int wrong = fault;
		fault = wrong == 'f' ? wrong : 0;
		if (wrong == 'f')
			exit(3);
		planted_step(wrong);
		xsp_record_function_enter("Optimizer.step#SGD.step");
		xsp_record_function_exit();
		if (n == 20) {
			puts("ready");
			fflush(stdout);
		}
	}
}

int main(void)
{
	char line[80];
	pthread_t thread;

	if (pthread_create(&thread, NULL, work, NULL) != 0)
		return 2;
	while (fgets(line, sizeof(line), stdin) != NULL) {
		if (line[0] != 'l') {
			fault = strncmp(line, "stall", 5) == 0 ? 't' : line[0];
			continue;
		}
		pthread_mutex_lock(&lock);
		usleep(700000);
		pthread_mutex_unlock(&lock);
	}
	_exit(0);
}
