/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * leavers - a function by the name of one of CUDA's, which --calls threads, one after another, enter and do not
 * return from: each ends there or, with the argument `stay`, waits there. Then it returns ten times.
 */
#include "workload.h"

#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <unistd.h>

static struct wl_count count = {.name = "cudaMalloc"};
static sem_t inside;
static bool stay;

WL_TRACED int cudaMalloc(void **address, size_t bytes)
{
	count.calls++;
	if (bytes == 0) {
		count.unwound++;
		sem_post(&inside);
		while (stay)
			pause();
		pthread_exit(NULL);
	}
	*address = (void *)bytes;
	return 0;
}

static void *enter(void *address)
{
	cudaMalloc(address, 0);
	return NULL;
}

int main(int argc, char **argv)
{
	struct wl_options o = {.workload = "leavers", .calls = 100};
	void *address = NULL;
	pthread_attr_t small;
	pthread_t thread;
	uint64_t sum = 0;

	wl_parse(&o, argc, argv);
	stay = o.argc > 0 && strcmp(o.argv[0], "stay") == 0;
	sem_init(&inside, 0, 0);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	wl_start(&o);
	for (uint64_t i = 0; i < o.calls; i++) {
		if (pthread_create(&thread, &small, enter, &address) != 0)
			return 1;
		sem_wait(&inside);
		if (!stay)
			pthread_join(thread, NULL);
	}
	for (size_t i = 1; i <= 10; i++) {
		cudaMalloc(&address, i);
		sum += wl_mix((uint64_t)address);
	}
	return wl_finish(&o, sum, &count, 1, NULL);
}
