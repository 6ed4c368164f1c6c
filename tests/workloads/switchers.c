/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * switchers - two threads, there before the work begins, hand a byte to and fro, 60 times in a row, then one sleeps for
 * 10 ms; they call nothing that is traced. The main thread calls switchers_call() --rate times a second. The JSON has of
 * each of both its "tid", how long it played, and what the kernel says of it at its end: how often it changed, its CPU time, and
 * how long it stood in line for that.
 *
 * switchers spin: they run all the time instead.
 */
#include "workload.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static struct player {
	pthread_t thread;
	int from, to;
	bool sleeps, spins;
	int tid;
	uint64_t switches, cpu_ns, queued_ns, lived_ns;
} players[2];
static uint64_t begun;

static uint64_t queued_ns(void)
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

uint64_t switchers_call(uint64_t x);
WL_TRACED uint64_t switchers_call(uint64_t x)
{
	return wl_mix(x);
}

static void *play(void *argument)
{
	struct player *p = argument;
	struct timespec pause = {0, 10000000}, cpu;
	struct rusage usage;
	char byte;

	p->tid = gettid();
	for (uint64_t n = 1; read(p->from, &byte, 1) == 1 && !(p->sleeps && wl_stop()); n++) {
		while (p->spins && !wl_stop())
			;
		if (p->sleeps && n % 60 == 0)
			nanosleep(&pause, NULL);
		if (write(p->to, &byte, 1) != 1)
			break;
	}
	close(p->to);
	getrusage(RUSAGE_THREAD, &usage);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
	p->switches = (uint64_t)(usage.ru_nvcsw + usage.ru_nivcsw);
	p->cpu_ns = (uint64_t)cpu.tv_sec * 1000000000 + (uint64_t)cpu.tv_nsec;
	p->queued_ns = queued_ns();
	p->lived_ns = wl_now_ns() - begun;
	return NULL;
}

int main(int argc, char **argv)
{
	struct wl_options o = {.workload = "switchers", .seconds = 3, .rate = 100};
	struct wl_count calls = {"switchers_call", 0, 0};
	uint64_t sum = 0;
	int go[2], back[2];
	char extra[400];

	wl_parse(&o, argc, argv);
	if (pipe(go) || pipe(back))
		return 1;
	players[0] = (struct player){.from = go[0], .to = back[1], .sleeps = true};
	players[1] = (struct player){.from = back[0], .to = dup(go[1])};
	for (int i = 0; i < 2; i++) {
		players[i].spins = o.argc > 0 && !strcmp(o.argv[0], "spin");
		if (pthread_create(&players[i].thread, NULL, play, &players[i]))
			return 1;
	}
	wl_start(&o);
	begun = wl_now_ns();
	if (write(go[1], "x", 1) != 1 || (players[1].spins && write(back[1], "x", 1) != 1))
		return 1;
	for (; !wl_stop(); calls.calls++) {
		sum += switchers_call(calls.calls);
		wl_pace(&o, begun, calls.calls);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(players[i].thread, NULL);
	size_t at = (size_t)snprintf(extra, sizeof(extra), "\"players\":");
	for (int i = 0; i < 2; i++)
		at += (size_t)snprintf(extra + at, sizeof(extra) - at,
				       "%c{\"tid\":%d,\"switches\":%llu,\"cpu_ns\":%llu,"
				       "\"queued_ns\":%llu,\"lived_ns\":%llu}",
				       i == 0 ? '[' : ',', players[i].tid,
				       (unsigned long long)players[i].switches,
				       (unsigned long long)players[i].cpu_ns,
				       (unsigned long long)players[i].queued_ns,
				       (unsigned long long)players[i].lived_ns);
	snprintf(extra + at, sizeof(extra) - at, "]");
	return wl_finish(&o, sum, &calls, 1, extra);
}
