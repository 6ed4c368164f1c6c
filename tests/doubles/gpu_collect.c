/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gpu_collect - replaces the kernel and the tracer: a preloaded library with the agent's probed
 * functions and counters under the same names, so the agent uses these. It raises and lowers the
 * counters and writes each batch to a file, after its length (u32).
 *
 * Environment:
 *   XSP_COLLECT_OUT=FILE
 *   XSP_COLLECT_WANT=a,b       counters besides activity: memory, events, …
 *   XSP_COLLECT_PLAN=ON:OFF,…  milliseconds from the start at which activity rises and falls; OFF 0:
 *                              never. Default 0:0: raised from the first instruction on
 *   XSP_COLLECT_KILL=1         at a fall the batch counter falls too, as when a tracer is killed
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include <stdint.h>

#define SEMAPHORE(name)                                                                            \
	extern volatile unsigned short name##_semaphore;                                           \
	volatile unsigned short name##_semaphore
SEMAPHORE(xsp_gpu_batch);
SEMAPHORE(xsp_gpu_want_activity);
SEMAPHORE(xsp_gpu_want_memory);
SEMAPHORE(xsp_gpu_want_events);
SEMAPHORE(xsp_gpu_want_markers);
SEMAPHORE(xsp_gpu_want_graphs);
SEMAPHORE(xsp_gpu_want_latency);
SEMAPHORE(xsp_gpu_want_all_api);
SEMAPHORE(xsp_gpu_want_shared);

static const struct {
	const char *name;
	volatile unsigned short *semaphore;
} requests[] = {
	{"memory", &xsp_gpu_want_memory_semaphore},   {"events", &xsp_gpu_want_events_semaphore},
	{"markers", &xsp_gpu_want_markers_semaphore}, {"graphs", &xsp_gpu_want_graphs_semaphore},
	{"latency", &xsp_gpu_want_latency_semaphore}, {"all_api", &xsp_gpu_want_all_api_semaphore},
	{"shared", &xsp_gpu_want_shared_semaphore},
};

static int out = -1;

void xsp_gpu_batch(const void *records, size_t bytes);

/* One write() is one piece of the file, whatever other threads write. */
void xsp_gpu_batch(const void *records, size_t bytes)
{
	uint32_t length = (uint32_t)bytes;
	struct iovec v[2] = {{&length, sizeof(length)}, {(void *)(uintptr_t)records, bytes}};

	if (!xsp_gpu_batch_semaphore)
		return;
	if (writev(out, v, 2) != (ssize_t)(bytes + sizeof(length)))
		abort();
}

static void sleep_until(const struct timespec *start, unsigned long ms)
{
	uint64_t ns =
		(uint64_t)start->tv_sec * 1000000000 + (uint64_t)start->tv_nsec + ms * 1000000;
	struct timespec t = {.tv_sec = (time_t)(ns / 1000000000),
			     .tv_nsec = (long)(ns % 1000000000)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL))
		;
}

static void set(int on)
{
	if (on || getenv("XSP_COLLECT_KILL"))
		xsp_gpu_batch_semaphore = (unsigned short)on;
	xsp_gpu_want_activity_semaphore = (unsigned short)on;
}

static void *plan_main(void *plan)
{
	struct timespec start;

	clock_gettime(CLOCK_MONOTONIC, &start);
	for (char *at = plan; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
		unsigned long on = strtoul(at, &at, 10),
			      off = *at == ':' ? strtoul(at + 1, NULL, 10) : 0;

		if (on)
			sleep_until(&start, on);
		set(1);
		if (!off)
			break;
		sleep_until(&start, off);
		set(0);
	}
	return NULL;
}

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("XSP_COLLECT_OUT"), *want = getenv("XSP_COLLECT_WANT");
	char *plan = getenv("XSP_COLLECT_PLAN");
	sigset_t all, before;
	pthread_t thread;

	if (!path)
		return;
	out = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (out < 0)
		abort();
	for (size_t i = 0; want && i < sizeof(requests) / sizeof(*requests); i++)
		if (strstr(want, requests[i].name))
			*requests[i].semaphore = 1;
	if (!plan || !strcmp(plan, "0:0")) {
		set(1);
		return;
	}
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&thread, NULL, plan_main, plan))
		abort();
	pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}
