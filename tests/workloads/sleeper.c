/* SPDX-License-Identifier: BSD-2-Clause */
/* sleeper - does nothing until a signal; --threads idle threads beside the first. Also built as
 * `stripped_static`: a static program without symbols. */
#include "workload.h"

#include <pthread.h>
#include <time.h>

uint64_t sleeper_call(uint64_t x);

WL_TRACED uint64_t sleeper_call(uint64_t x)
{
	return wl_mix(x);
}

static void *idle(void *argument)
{
	struct timespec t = {0, 50 * 1000 * 1000};

	while (!wl_stop())
		nanosleep(&t, NULL);
	return argument;
}

int main(int argc, char **argv)
{
	struct wl_options o = {.workload = "sleeper", .wait = true};
	struct wl_count counts[] = {{"sleeper_call", 1, 0}};
	pthread_t id;
	unsigned i;

	wl_parse(&o, argc, argv);
	for (i = 0; i < o.threads; i++)
		if (pthread_create(&id, NULL, idle, NULL) || pthread_detach(id))
			return 1;
	wl_start(&o);
	return wl_finish(&o, sleeper_call(1), counts, 1, NULL);
}
