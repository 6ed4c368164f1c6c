/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * target.c - the program that tools/bench traces. It waits for orders on stdin, so that it is
 * idle while tools attach and detach, and every call is between two orders:
 *
 *   SHAPE CALLS CHUNKS   calls the function, prints for each chunk the ns a call of wall time
 *                        and of this thread's CPU time: "done CALLS wall... | cpu..."
 *
 * With arguments it does one order and ends (for tools that cannot attach): target SHAPE CALLS CHUNKS
 */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "xsptrace/record_function.h"

#define MAX_CHUNKS 256

uint64_t shape_emulated(uint64_t x);
uint64_t shape_nop5(uint64_t x);
uint64_t shape_ret(uint64_t x);

/* The functions themselves, past the header's semaphore, which only xsptrace raises. */
static uint64_t range(uint64_t x)
{
	(xsp_record_function_enter)("training step", SIZE_MAX);
	(xsp_record_function_exit)();
	return x + 1;
}

static uint64_t value(uint64_t x)
{
	(xsp_record_function_enter)("training step", SIZE_MAX);
	(xsp_record_function_value)("loss", SIZE_MAX, x);
	(xsp_record_function_exit)();
	return x + 1;
}

static int there[2], back[2]; /* pipes */

/* On a stack of so many frames. */
static __attribute__((noinline, optimize("no-omit-frame-pointer"))) uint64_t
deep(unsigned depth, uint64_t (*call)(void))
{
	uint64_t x = depth > 0 ? deep(depth - 1, call) : call();

	__asm__ volatile("" : "+r"(x));
	return x;
}

static uint64_t answer(void)
{
	char byte = 0;

	while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
		;
	return 0;
}

static uint64_t ask(void)
{
	char byte = 0;

	return write(there[1], &byte, 1) == 1 && read(back[0], &byte, 1) == 1;
}

static void *other(void *nothing)
{
	deep(12, answer);
	return nothing;
}

/* To another thread on the same CPU, and back. */
static uint64_t switch_threads(uint64_t x)
{
	if (there[1] == 0) {
		pthread_t thread;
		cpu_set_t one;
		CPU_ZERO(&one);
		CPU_SET(sched_getcpu(), &one);
		if (sched_setaffinity(0, sizeof(one), &one) != 0 || pipe(there) != 0 ||
		    pipe(back) != 0 || pthread_create(&thread, NULL, other, NULL) != 0)
			abort();
	}
	return x + deep(12, ask);
}

static uint64_t heap(uint64_t x)
{
	void *volatile block = malloc(64);

	free(block);
	return x + 1;
}

static const struct {
	const char *name;
	uint64_t (*call)(uint64_t);
} shapes[] = {
	{"shape_emulated", shape_emulated},
	{"shape_nop5", shape_nop5},
	{"shape_ret", shape_ret},
	{"range", range},
	{"switch", switch_threads},
	{"value", value},
	{"heap", heap},
};

static double now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int run(const char *shape, uint64_t calls, unsigned chunks)
{
	static volatile uint64_t sink;
	double wall[MAX_CHUNKS], cpu[MAX_CHUNKS];
	uint64_t (*call)(uint64_t) = NULL;
	uint64_t each, x = 0;

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		if (strcmp(shapes[i].name, shape) == 0)
			call = shapes[i].call;
	if (call == NULL || chunks == 0 || chunks > MAX_CHUNKS || calls < chunks)
		return -1;
	each = calls / chunks;
	for (unsigned c = 0; c < chunks; c++) {
		double w = now_ns(CLOCK_MONOTONIC), t = now_ns(CLOCK_THREAD_CPUTIME_ID);
		for (uint64_t i = 0; i < each; i++)
			x = call(x);
		cpu[c] = (now_ns(CLOCK_THREAD_CPUTIME_ID) - t) / (double)each;
		wall[c] = (now_ns(CLOCK_MONOTONIC) - w) / (double)each;
	}
	sink = x;
	(void)sink;
	printf("done %" PRIu64, each * chunks);
	for (unsigned c = 0; c < chunks; c++)
		printf(" %.3f", wall[c]);
	printf(" |");
	for (unsigned c = 0; c < chunks; c++)
		printf(" %.3f", cpu[c]);
	printf("\n");
	fflush(stdout);
	return 0;
}

int main(int argc, char **argv)
{
	char line[256], shape[64];
	unsigned long long calls;
	unsigned chunks;

	if (argc == 4)
		return run(argv[1], strtoull(argv[2], NULL, 10), (unsigned)atoi(argv[3])) < 0;
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin) != NULL) {
		if (sscanf(line, "%63s %llu %u", shape, &calls, &chunks) != 3 ||
		    run(shape, calls, chunks) < 0) {
			printf("error\n");
			fflush(stdout);
		}
	}
	return 0;
}
