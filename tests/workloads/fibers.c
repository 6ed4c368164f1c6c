/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fibers - two ucontext fibers on adjacent 64 KiB stacks from malloc, switching in the middle of
 * traced functions: the stack pointer jumps from stack to stack while spans are open on each.
 */
#include "workload.h"

#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define STACK_SIZE (64 * 1024)

enum { F_OUTER, F_INNER, F_LEAF, F_MAIN, F_COUNT };

static struct wl_count counts[F_COUNT] = {
	{"fiber_outer", 0, 0},
	{"fiber_inner", 0, 0},
	{"fiber_leaf", 0, 0},
	{"fiber_main", 0, 0},
};

static ucontext_t main_context, context[2];
static uint64_t sums[2], switches;
static bool done[2];
static uint64_t rounds;

/* To the other fiber while that lives, else to main. */
static void switch_from(int self)
{
	switches++;
	if (!done[!self])
		swapcontext(&context[self], &context[!self]);
	else
		swapcontext(&context[self], &main_context);
}

WL_TRACED uint64_t fiber_leaf(uint64_t x)
{
	counts[F_LEAF].calls++;
	return wl_mix(x);
}

WL_TRACED uint64_t fiber_inner(int self, unsigned depth, uint64_t x)
{
	counts[F_INNER].calls++;
	if (depth)
		x ^= fiber_inner(self, depth - 1, x + 1);
	if (x % 3)
		switch_from(self);
	return fiber_leaf(x);
}

WL_TRACED uint64_t fiber_outer(int self, uint64_t x)
{
	uint64_t a, b;

	counts[F_OUTER].calls++;
	a = fiber_inner(self, (unsigned)(x % 5), x);
	switch_from(self);
	b = fiber_leaf(x + 2);
	return a ^ b;
}

static void fiber_entry(int self)
{
	uint64_t i;

	for (i = 0; i < rounds && !wl_stop(); i++)
		sums[self] += fiber_outer(self, i * 2 + (uint64_t)self);
	done[self] = true;
}

WL_TRACED void fiber_main(void)
{
	counts[F_MAIN].calls++;
	while (!done[0] || !done[1]) {
		int next = done[0] ? 1 : 0;

		fiber_leaf(switches);
		swapcontext(&main_context, &context[next]);
	}
}

int main(int argc, char **argv)
{
	struct wl_options o = {.workload = "fibers", .calls = 2000};
	char *stacks = malloc(2 * STACK_SIZE);
	int i;

	wl_parse(&o, argc, argv);
	if (!stacks)
		return 1;
	rounds = o.seconds > 0 ? UINT64_MAX : o.calls;
	for (i = 0; i < 2; i++) {
		getcontext(&context[i]);
		context[i].uc_stack.ss_sp = stacks + i * STACK_SIZE;
		context[i].uc_stack.ss_size = STACK_SIZE;
		context[i].uc_link = &main_context;
		makecontext(&context[i], (void (*)(void))(void *)fiber_entry, 1, i);
	}
	wl_start(&o);
	fiber_main();
	free(stacks);
	return wl_finish(&o, sums[0] + 3 * sums[1] + switches, counts, F_COUNT, NULL);
}
