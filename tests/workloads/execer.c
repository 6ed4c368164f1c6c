/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * execer - replaces itself by itself: each generation calls traced functions --calls times and
 * execs the next one. The process id stays, everything else goes.
 * Arguments: GENERATIONS LEFT, WORK CALLS SO FAR, CHECKSUM SO FAR (the first run needs only the
 * first one; 5 if there is none).
 */
#include "workload.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { F_WORK, F_EXEC, F_COUNT };

static uint64_t calls;

WL_TRACED uint64_t execer_work(uint64_t x)
{
	calls++;
	return wl_mix(x);
}

/* Leaves by exec: its span never closes. */
WL_TRACED void execer_exec(char **argv)
{
	execv("/proc/self/exe", argv);
	perror("execv");
	exit(1);
}

int main(int argc, char **argv)
{
	struct wl_options o = {.workload = "execer", .calls = 1000};
	uint64_t left, generation, sum, i;
	char text[4][32];

	wl_parse(&o, argc, argv);
	left = o.argc > 0 ? strtoull(o.argv[0], NULL, 10) : 5;
	generation = o.argc > 1 ? strtoull(o.argv[1], NULL, 10) : 0;
	calls = o.argc > 2 ? strtoull(o.argv[2], NULL, 10) : 0;
	sum = o.argc > 3 ? strtoull(o.argv[3], NULL, 10) : 0;
	if (!generation)
		wl_start(&o);
	for (i = 0; i < o.calls; i++)
		sum += execer_work(generation * o.calls + i);
	if (left && !wl_stop()) {
		uint64_t values[4] = {left - 1, generation + 1, calls, sum};
		char *next[16], per[32];
		int n = 0, k;

		snprintf(per, sizeof(per), "%llu", (unsigned long long)o.calls);
		next[n++] = argv[0];
		next[n++] = "--calls";
		next[n++] = per;
		if (o.hold)
			next[n++] = "--hold";
		if (o.out) {
			next[n++] = "--out";
			next[n++] = (char *)o.out;
		}
		for (k = 0; k < 4; k++) {
			snprintf(text[k], sizeof(text[k]), "%llu", (unsigned long long)values[k]);
			next[n++] = text[k];
		}
		next[n] = NULL;
		execer_exec(next);
	}
	struct wl_count counts[F_COUNT] = {
		{"execer_work", calls, 0},
		{"execer_exec", generation, generation},
	};
	return wl_finish(&o, sum, counts, F_COUNT, NULL);
}
