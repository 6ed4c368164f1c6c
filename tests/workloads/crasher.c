/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * crasher - writes its JSON after --calls calls and then ends in the way its argument says, inside
 * a traced function: segv, abort, kill, overflow, exit (status 7), quick.
 */
#include "workload.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { F_WORK, F_DIE, F_COUNT };

static struct wl_count counts[F_COUNT] = {
	{"crasher_work", 0, 0},
	{"crasher_die", 0, 0},
};

WL_TRACED uint64_t crasher_work(uint64_t x)
{
	counts[F_WORK].calls++;
	return wl_mix(x);
}

WL_TRACED uint64_t crasher_overflow(uint64_t x)
{
	volatile char frame[4096];

	frame[x % 4096] = (char)x;
	return crasher_overflow(x + 1) + (uint64_t)frame[x % 4096];
}

WL_TRACED int crasher_die(const char *how)
{
	volatile int *volatile nowhere = NULL;

	if (!strcmp(how, "segv"))
		*nowhere = 1;
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "kill"))
		kill(getpid(), SIGKILL);
	if (!strcmp(how, "overflow"))
		return (int)crasher_overflow(1);
	if (!strcmp(how, "quick"))
		_exit(7);
	exit(7);
}

int main(int argc, char **argv)
{
	struct wl_options o = {.workload = "crasher", .calls = 1000};
	uint64_t i, start, sum = 0;

	wl_parse(&o, argc, argv);
	wl_start(&o);
	start = wl_now_ns();
	for (i = 0; !wl_stop() && (o.seconds > 0 || i < o.calls); i++) {
		wl_pace(&o, start, i);
		sum += crasher_work(i);
	}
	counts[F_DIE].calls = counts[F_DIE].unwound = 1;
	if (wl_finish(&o, sum, counts, F_COUNT, NULL))
		return 1;
	return crasher_die(o.argc > 0 ? o.argv[0] : "exit");
}
