/* SPDX-License-Identifier: BSD-2-Clause */
/* many - a program over libmany.so's 4,096 functions: --calls rounds on each of --threads threads, each round
 * calls all of them. */
#include "workload.h"

#include <pthread.h>

#define MANY 4096
#define THREADS_MOST 64
extern uint64_t (*const many_table[MANY])(uint64_t);

static struct wl_options options = {.workload = "many", .threads = 1, .calls = 10};
static uint64_t started;

struct share {
	uint64_t rounds, sum;
};

static void *call_all(void *argument)
{
	struct share *s = argument;

	for (; !wl_stop() && (options.seconds > 0 || s->rounds < options.calls); s->rounds++) {
		wl_pace(&options, started, s->rounds);
		for (uint64_t k = 0; k < MANY; k++)
			s->sum += many_table[k](s->rounds + k);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS_MOST];
	struct share shares[THREADS_MOST] = {0}, all = {0};

	wl_parse(&options, argc, argv);
	if (options.threads < 1 || options.threads > THREADS_MOST)
		return 2;
	wl_start(&options);
	started = wl_now_ns();
	for (unsigned i = 1; i < options.threads; i++)
		if (pthread_create(&threads[i], NULL, call_all, &shares[i]) != 0)
			return 1;
	call_all(&shares[0]);
	for (unsigned i = 0; i < options.threads; i++) {
		if (i > 0)
			pthread_join(threads[i], NULL);
		all.rounds += shares[i].rounds;
		all.sum += shares[i].sum;
	}
	struct wl_count counts[] = {{"many_*", all.rounds * MANY, 0}};
	return wl_finish(&options, all.sum, counts, 1, NULL);
}
