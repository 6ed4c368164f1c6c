/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hot - as many calls as the machine makes: --threads threads call one small function. The
 * argument picks it by what its sites cost: `frame` (push at the entry, the stack protector's
 * jump before the return: both emulated by the kernel; the default), `leaf` (a load, arithmetic
 * and a return: single-stepped), `nested` (frame, calling leaf). A second argument, `naps`: with
 * --rate, it sleeps between any two calls; else it makes up for what it was late with.
 */
#include "workload.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { F_FRAME, F_LEAF, F_NESTED, F_COUNT };

static struct wl_count counts[F_COUNT] = {
	{"hot_frame", 0, 0},
	{"hot_leaf", 0, 0},
	{"hot_nested", 0, 0},
};

uint64_t hot_leaf(uint64_t x);
uint64_t hot_frame(uint64_t x);
uint64_t hot_nested(uint64_t x);

__attribute__((optimize("no-stack-protector"))) WL_TRACED uint64_t hot_leaf(uint64_t x)
{
	return x * 3 + 1;
}

/* The clobbered register is saved, so the function begins with a push. */
WL_TRACED uint64_t hot_frame(uint64_t x)
{
	volatile unsigned char cell[16];

#ifdef __x86_64__
	__asm__ volatile("" ::: "rbx");
#endif
	cell[x % 16] = (unsigned char)x;
	return x * 3 + cell[x % 16];
}

WL_TRACED uint64_t hot_nested(uint64_t x)
{
	volatile unsigned char cell[16];

#ifdef __x86_64__
	__asm__ volatile("" ::: "rbx");
#endif
	cell[x % 16] = (unsigned char)x;
	return hot_leaf(x) + cell[x % 16];
}

static uint64_t (*const functions[F_COUNT])(uint64_t) = {hot_frame, hot_leaf, hot_nested};

struct hot_thread {
	pthread_t id;
	const struct wl_options *options;
	int function;
	bool naps;
	uint64_t index, calls, sum;
};

static void *run(void *argument)
{
	struct hot_thread *t = argument;
	uint64_t (*call)(uint64_t) = functions[t->function];
	uint64_t limit = t->options->seconds > 0 ? UINT64_MAX : t->options->calls;
	uint64_t start = wl_now_ns(), x = t->index, i;

	for (i = 0; i < limit; i++) {
		x = call(x);
		if (t->options->rate > 0)
			wl_pace(t->options, t->naps ? wl_now_ns() : start, t->naps ? 1 : i);
		if (!(i % 64) && wl_stop()) {
			i++;
			break;
		}
	}
	t->calls = i;
	t->sum = x;
	return NULL;
}

int main(int argc, char **argv)
{
	struct wl_options o = {.workload = "hot", .threads = 2, .seconds = 1};
	struct hot_thread *threads;
	uint64_t sum = 0, begun, took;
	int function = F_FRAME;
	char extra[96];
	unsigned i;

	wl_parse(&o, argc, argv);
	if (o.argc > 0)
		function = !strcmp(o.argv[0], "leaf")	  ? F_LEAF
			   : !strcmp(o.argv[0], "nested") ? F_NESTED
							  : F_FRAME;
	threads = calloc(o.threads, sizeof(*threads));
	if (!threads)
		return 1;
	wl_start(&o);
	begun = wl_now_ns();
	for (i = 0; i < o.threads; i++) {
		threads[i] = (struct hot_thread){.options = &o,
						 .function = function,
						 .naps = o.argc > 1 && !strcmp(o.argv[1], "naps"),
						 .index = i};
		if (pthread_create(&threads[i].id, NULL, run, &threads[i]))
			return 1;
	}
	for (i = 0; i < o.threads; i++) {
		pthread_join(threads[i].id, NULL);
		counts[function].calls += threads[i].calls;
		sum += wl_mix(threads[i].sum);
	}
	took = wl_now_ns() - begun;
	if (function == F_NESTED)
		counts[F_LEAF].calls = counts[F_NESTED].calls;
	snprintf(extra, sizeof(extra), "\"ns_a_call\":%.2f",
		 counts[function].calls ? (double)took * o.threads / (double)counts[function].calls
					: 0.0);
	/* the time is no part of a run by --calls: those print the same bytes each time */
	free(threads);
	return wl_finish(&o, sum, counts, F_COUNT, o.seconds > 0 ? extra : NULL);
}
