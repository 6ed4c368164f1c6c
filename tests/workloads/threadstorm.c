/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * threadstorm - creates and joins --calls threads, --threads of them at a time; each calls traced
 * functions and ends. Thread ids are reused while the trace runs.
 */
#include "workload.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { F_THREAD, F_WORK, F_EXIT, F_COUNT };

static struct wl_count counts[F_COUNT] = {
	{"storm_thread", 0, 0},
	{"storm_work", 0, 0},
	{"storm_exit", 0, 0},
};

struct storm {
	uint64_t index, sum;
	struct wl_count counts[F_COUNT];
};

static _Thread_local struct storm *mine;

WL_TRACED uint64_t storm_work(uint64_t x)
{
	mine->counts[F_WORK].calls++;
	return wl_mix(x);
}

/* Never returns: the thread ends with this span and its caller's open. */
WL_TRACED void storm_exit(uint64_t x)
{
	mine->counts[F_EXIT].calls++;
	mine->counts[F_EXIT].unwound++;
	mine->sum += storm_work(x);
	pthread_exit(mine);
}

WL_TRACED void *storm_thread(void *argument)
{
	uint64_t i;

	mine = argument;
	mine->counts[F_THREAD].calls++;
	for (i = 0; i < 10; i++)
		mine->sum += storm_work(mine->index * 10 + i);
	if (mine->index % 2) {
		mine->counts[F_THREAD].unwound++;
		storm_exit(mine->index);
	}
	return mine;
}

static int one_batch(unsigned threads, uint64_t first, uint64_t *sum)
{
	pthread_t *ids = calloc(threads, sizeof(*ids));
	struct storm *storms = calloc(threads, sizeof(*storms));
	unsigned i, started = 0;
	int k, failed = !ids || !storms;

	for (i = 0; !failed && i < threads; i++) {
		storms[i].index = first + i;
		failed = pthread_create(&ids[i], NULL, storm_thread, &storms[i]);
		started += !failed;
	}
	for (i = 0; i < started; i++) {
		pthread_join(ids[i], NULL);
		*sum += wl_mix(storms[i].sum);
		for (k = 0; k < F_COUNT; k++) {
			counts[k].calls += storms[i].counts[k].calls;
			counts[k].unwound += storms[i].counts[k].unwound;
		}
	}
	free(storms);
	free(ids);
	return failed;
}

int main(int argc, char **argv)
{
	struct wl_options o = {.workload = "threadstorm", .threads = 16, .calls = 4000};
	uint64_t i, sum = 0;

	wl_parse(&o, argc, argv);
	wl_start(&o);
	for (i = 0; !wl_stop() && (o.seconds > 0 || i < o.calls); i += o.threads)
		if (one_batch(o.threads, i, &sum))
			return 1;
	return wl_finish(&o, sum, counts, F_COUNT, NULL);
}
