/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * region_rings.c - the regions of record_function.h in the agent alone, without xsptrace and so without the kernel: it loads
 * the agent, raises the semaphores itself, and reads its own ring, but only each second time, so that the ring overflows.
 * A timer's signals make regions, too, in the middle of others.
 *
 *	region_rings AGENT
 *
 * Prints what it made, what it read, and what was counted as lost, in words and numbers.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "xsptrace/event.h"
#include "xsptrace/record_function.h"
#include "xsptrace/ring.h"

enum { TURNS = 60, NESTS = 2000, DEEPEST = 17 };

static struct xsp_rings *rings;
static uint64_t made, number, begins, ends, bad, backwards, last;
static volatile uint64_t by_signal;

static void on_signal(int unused)
{
	(void)unused;
	xsp_record_function_enter("signal");
	xsp_record_function_enter("in it");
	xsp_record_function_exit();
	xsp_record_function_exit();
	by_signal += 2;
}

static void nest(int depth)
{
	XSP_RECORD_FUNCTION("nested");
	made++;
	if (depth > 0)
		nest(depth - 1);
}

static void read_ring(void)
{
	const struct xsp_ring_record *records = (void *)((char *)rings + XSP_RINGS_AT);
	struct xsp_ring *ring = &rings->ring[0];
	sigset_t alarm;

	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	sigprocmask(SIG_BLOCK, &alarm, NULL);
	for (; number < ring->head; number++) {
		const struct xsp_ring_record *r = &records[number % XSP_RING_SLOTS];
		const unsigned kind = r->word >> 32 & 0xff;
		bad += (uint32_t)r->word != (uint32_t)(number + 1) ||
		       (kind != XSP_EVENT_BEGIN && kind != XSP_EVENT_END);
		begins += kind == XSP_EVENT_BEGIN;
		ends += kind == XSP_EVENT_END;
		bad += ends > begins;
		backwards += r->time < last;
		last = r->time;
	}
	ring->tail = number;
	sigprocmask(SIG_UNBLOCK, &alarm, NULL);
}

static void find_rings(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (strstr(line, XSP_RINGS_NAME) != NULL)
			rings = (void *)strtoul(line, NULL, 16);
	if (rings == NULL)
		exit(1);
	fclose(f);
}

static unsigned short *wanted;

static void begin(const char *agent)
{
	void *library = dlopen(agent, RTLD_NOW);
	int (*start)(void) =
		library ? (int (*)(void))(uintptr_t)dlsym(library, "xsp_agent_start") : NULL;

	wanted = library ? dlsym(library, "xsp_agent_want_regions_semaphore") : NULL;
	if (start == NULL || wanted == NULL || start() != 0)
		exit(1);
	*wanted = 1;
	usleep(400000);
	find_rings();
	*(volatile unsigned short *)&xsp_record_function_semaphore = 1;
}

/* 0, or how the child ended. */
static int child(void)
{
	int status = 0;
	const pid_t pid = fork();

	if (pid == 0) {
		for (int i = 0; i < 1000; i++)
			nest(3);
		XSP_RECORD_VALUE("of the child", 1);
		_exit(0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid ? status : -1;
}

int main(int argc, char **argv)
{
	struct itimerval timer = {{0, 50}, {0, 50}};

	if (argc < 2)
		return 2;
	begin(argv[1]);
	signal(SIGALRM, on_signal);
	setitimer(ITIMER_REAL, &timer, NULL);
	for (int turn = 0; turn < TURNS; turn++) {
		for (int i = 0; i < NESTS; i++)
			nest(i % DEEPEST);
		if (turn % 2)
			read_ring();
	}
	timer = (struct itimerval){0};
	setitimer(ITIMER_REAL, &timer, NULL);
	read_ring();
	printf("made %llu begins %llu ends %llu lost %llu bad %llu backwards %llu open %u signals %llu ",
	       (unsigned long long)(made + by_signal), (unsigned long long)begins,
	       (unsigned long long)ends, (unsigned long long)rings->ring[0].lost,
	       (unsigned long long)bad, (unsigned long long)backwards, rings->ring[0].regions,
	       (unsigned long long)by_signal);
	printf("child %d ", child());
	*wanted = 0;
	usleep(400000);
	nest(3);
	printf("afterwards %llu active %u\n", (unsigned long long)(rings->ring[0].head - number),
	       rings->active);
	return 0;
}
