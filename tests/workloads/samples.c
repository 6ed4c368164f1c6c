/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * samples.c - threads that spend known shares of their CPU time in three functions and in the kernel; each counts its
 * own on its CPU clock.
 *
 * Options: --seconds, --threads; LEAVE: the process goes while its threads spin; SIGNALS: they are in a function
 * that mostly moves its stack pointer, and in the handler of a signal that interrupts it anywhere; BIG: in one with large variables.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "workload.h"

#define UNIT_NS                                                                                    \
	400000 /* of CPU time, on average: the functions get one, two and five, the kernel two */
#define PARTS 4
#define BLOCK (1 << 20)

static volatile uint64_t sink;

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

/* The clock is a system call: asked seldom. */
#define SPIN(name)                                                                                 \
	WL_TRACED void name(uint64_t until)                                                        \
	{                                                                                          \
		do                                                                                 \
			for (uint64_t i = 0; i < 100000; i++)                                      \
				sink = sink * 3 + i;                                               \
		while (cpu_ns() < until);                                                          \
	}
SPIN(samples_a)
SPIN(samples_b)
SPIN(samples_c)

/* Filling pages with zeros is the kernel's own work. */
WL_TRACED void samples_reads(uint64_t until)
{
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	char *block = malloc(BLOCK);

	while (fd >= 0 && block != NULL && cpu_ns() < until)
		sink += (uint64_t)read(fd, block, BLOCK);
	free(block);
	close(fd);
}

static const struct {
	void (*spend)(uint64_t until);
	uint64_t units;
} parts[PARTS] = {{samples_a, 1}, {samples_b, 2}, {samples_c, 5}, {samples_reads, 2}};

struct spinner {
	pthread_t thread;
	uint64_t spent_ns[PARTS], rounds;
};

WL_TRACED void samples_round(struct spinner *s)
{
	/* samples would come in step with rounds of one length */
	const uint64_t unit = UNIT_NS / 2 + wl_mix(s->rounds) % UNIT_NS;

	for (size_t i = 0; i < PARTS; i++) {
		uint64_t start = cpu_ns();
		parts[i].spend(start + parts[i].units * unit);
		s->spent_ns[i] += cpu_ns() - start;
	}
	s->rounds++;
}

static void *spin(void *argument)
{
	prctl(PR_SET_NAME, "spinner");
	while (!wl_stop())
		samples_round(argument);
	return NULL;
}

WL_TRACED uint64_t samples_depth(unsigned n)
{
	return n < 2 ? n : samples_depth(n - 1) + samples_depth(n - 2);
}

WL_TRACED void samples_handler(int signal)
{
	for (int i = 0; i < 1000000; i++)
		sink += (uint64_t)signal;
}

/* Its caller's address stands further out than --sample reads. */
WL_TRACED void samples_big(void)
{
	volatile char room[16384];

	for (size_t i = 0; i < 1000000; i++)
		room[i % sizeof(room)] = (char)i;
	sink += (uint64_t)room[0];
}

static void *run_big(void *argument)
{
	while (!wl_stop()) {
		samples_big();
		((struct spinner *)argument)->rounds++;
	}
	return NULL;
}

static void *interrupted(void *argument)
{
	while (!wl_stop()) {
		sink += samples_depth(20);
		((struct spinner *)argument)->rounds++;
	}
	return NULL;
}

static void send_signals(void)
{
	const struct sigaction handler = {.sa_handler = samples_handler};
	const struct itimerval each = {{0, 4000}, {0, 4000}};

	sigaction(SIGPROF, &handler, NULL);
	setitimer(ITIMER_PROF, &each, NULL);
}

static char *describe(const struct spinner *spinners, unsigned count)
{
	uint64_t spent[PARTS] = {0};
	char *text = NULL;

	for (unsigned i = 0; i < count; i++)
		for (size_t k = 0; k < PARTS; k++)
			spent[k] += spinners[i].spent_ns[k];
	if (asprintf(&text,
		     "\"cpu_ns\":{\"samples_a\":%llu,\"samples_b\":%llu,\"samples_c\":%llu,"
		     "\"samples_reads\":%llu}",
		     (unsigned long long)spent[0], (unsigned long long)spent[1],
		     (unsigned long long)spent[2], (unsigned long long)spent[3]) < 0)
		return NULL;
	return text;
}

int main(int argc, char **argv)
{
	struct wl_options o = {.workload = "samples", .threads = 2, .seconds = 2};
	uint64_t rounds = 0;

	wl_parse(&o, argc, argv);
	const bool signals = o.argc > 0 && strcmp(o.argv[0], "SIGNALS") == 0;
	const bool big = o.argc > 0 && strcmp(o.argv[0], "BIG") == 0;
	struct spinner *spinners = calloc(o.threads, sizeof(*spinners));
	wl_start(&o);
	if (signals)
		send_signals();
	for (unsigned i = 0; i < o.threads; i++)
		if (pthread_create(&spinners[i].thread, NULL,
				   signals ? interrupted
				   : big   ? run_big
					   : spin,
				   &spinners[i]) != 0)
			return 1;
	if (o.argc > 0 && strcmp(o.argv[0], "LEAVE") == 0) {
		usleep(500000);
		_exit(0);
	}
	for (unsigned i = 0; i < o.threads; i++) {
		pthread_join(spinners[i].thread, NULL);
		rounds += spinners[i].rounds;
	}
	struct wl_count counts[] = {{signals ? "samples_depth"
				     : big   ? "samples_big"
					     : "samples_round",
				     rounds, 0}};
	return wl_finish(&o, rounds, counts, 1, describe(spinners, o.threads));
}
