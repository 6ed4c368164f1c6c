/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * leaver - functions that never return: --threads threads end inside leaver_thread, and another one replaces
 * the program inside leaver_exec. With the argument `exit` the process ends inside leaver_exit. Each
 * calls leaver_short --calls times, which returns, and then stays for 100 ms.
 */
#include "workload.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct wl_options o = {.workload = "leaver", .calls = 100, .threads = 4};
#define STAY_US 100000

WL_TRACED uint64_t leaver_short(uint64_t x)
{
	return wl_mix(x);
}

static void stay(void)
{
	for (uint64_t i = 0; i < o.calls; i++)
		leaver_short(i);
	usleep(STAY_US);
}

WL_TRACED void leaver_thread(void)
{
	stay();
	for (;;) /* no tail call */
		syscall(SYS_exit, 0);
}

WL_TRACED void leaver_exec(void)
{
	stay();
	execl("/bin/true", "true", NULL);
	_exit(1);
}

WL_TRACED void leaver_exit(void)
{
	stay();
	_exit(0);
}

static void *end(void *unused)
{
	leaver_thread();
	return unused;
}

static void *replace(void *unused)
{
	leaver_exec();
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t id;

	wl_parse(&o, argc, argv);
	wl_start(&o);
	if (o.argc > 0)
		leaver_exit();
	for (unsigned i = 0; i < o.threads; i++)
		if (pthread_create(&id, NULL, end, NULL))
			return 1;
	usleep(3 * STAY_US);
	if (pthread_create(&id, NULL, replace, NULL))
		return 1;
	pause();
	return 1;
}
