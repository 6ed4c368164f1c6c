/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sigaltstack - signal handlers on a stack of their own call traced functions in the middle of
 * traced functions; every third one leaves by siglongjmp.
 */
#include "workload.h"

#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { F_OUTER, F_RAISE, F_HANDLER, F_LEAF, F_COUNT };

static struct wl_count counts[F_COUNT] = {
	{"signal_outer", 0, 0},
	{"signal_raise", 0, 0},
	{"signal_handler", 0, 0},
	{"signal_leaf", 0, 0},
};

static sigjmp_buf landing;
static volatile uint64_t current, handled;

WL_TRACED uint64_t signal_leaf(uint64_t x)
{
	counts[F_LEAF].calls++;
	return wl_mix(x);
}

WL_TRACED void signal_handler(int signal)
{
	counts[F_HANDLER].calls++;
	handled += signal_leaf(current + (uint64_t)signal);
	if (current % 3 == 0) {
		counts[F_HANDLER].unwound++;
		siglongjmp(landing, 1);
	}
}

WL_TRACED uint64_t signal_raise(uint64_t x)
{
	counts[F_RAISE].calls++;
	current = x;
	if (x % 3 == 0)
		counts[F_RAISE].unwound++;
	raise(SIGUSR2);
	return signal_leaf(x);
}

WL_TRACED uint64_t signal_outer(uint64_t x)
{
	counts[F_OUTER].calls++;
	if (sigsetjmp(landing, 1))
		return handled;
	return signal_raise(x) + signal_leaf(x + 1);
}

int main(int argc, char **argv)
{
	struct wl_options o = {.workload = "sigaltstack", .calls = 3000};
	size_t size = 64 * 1024;
	stack_t stack = {.ss_sp = malloc(size), .ss_size = size};
	struct sigaction action;
	uint64_t i, sum = 0;

	wl_parse(&o, argc, argv);
	memset(&action, 0, sizeof(action));
	action.sa_handler = signal_handler;
	action.sa_flags = SA_ONSTACK;
	if (!stack.ss_sp || sigaltstack(&stack, NULL) || sigaction(SIGUSR2, &action, NULL))
		return 1;
	wl_start(&o);
	for (i = 0; !wl_stop() && (o.seconds > 0 || i < o.calls); i++)
		sum += wl_mix(signal_outer(i));
	return wl_finish(&o, sum, counts, F_COUNT, NULL);
}
